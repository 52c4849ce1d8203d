//! What a loss leaves, law by law, as the whole sender shows it.
//!
//! One path for all: 100 ms, and a bottleneck that lets an ACK come every 10 ms, so that its pipe is 10 segments. The
//! threshold is 10 at first, so that 40 ACKs in congestion avoidance make the window 13.4; then a segment is lost.

mod common;

use std::fmt::Write;

use common::{plain, play};
use lasthop_tcp::{Algorithm, Sender, SenderParams};

/// Forty ACKs, three duplicates, and then `more`.
fn after_a_loss(cc: Algorithm, more: &str) -> Sender {
    let mut script = String::from("0 ms: poll -> syn\n100 ms: syn-ack -> sends 0..9\n");
    for number in 1..=40 {
        writeln!(script, "{} ms: ack {number} -> anything", 190 + 10 * number).expect("a string");
    }
    for duplicate in 1..=3 {
        writeln!(script, "{} ms: ack 40 -> anything", 590 + 10 * duplicate).expect("a string");
    }
    script.push_str(more);
    play(SenderParams { initial_window: 10, initial_ssthresh: Some(10.0), ..plain(cc) }, &script)
}

/// Half of the 13 that are outstanding.
#[test]
fn newreno_halves_what_is_outstanding() {
    let snapshot = after_a_loss(Algorithm::NewReno, "").snapshot();
    assert_eq!((snapshot.cwnd, snapshot.ssthresh), (6.5, 6.5));
}

/// 100 segments/s x 100 ms.
#[test]
fn westwood_falls_back_to_the_pipe() {
    let sender = after_a_loss(Algorithm::Westwood, "");
    assert!((sender.snapshot().ssthresh - 10.0).abs() < 0.1, "{:?}", sender.snapshot());
    assert!((sender.snapshot().cwnd - 10.0).abs() < 0.1);
}

/// The same by a sample per round trip: the first ends at 300 ms, and each has ten ACKs in 100 ms.
#[test]
fn westwood_plus_falls_back_to_the_pipe() {
    let sender = after_a_loss(Algorithm::WestwoodPlus, "");
    assert!((sender.snapshot().ssthresh - 10.0).abs() < 1.1, "{:?}", sender.snapshot());
    assert_eq!(sender.snapshot().cwnd, sender.snapshot().ssthresh);
}

/// Forty ACKs at the pace of 0.31 per window make 10 into 11.2: eleven are outstanding, and 0.875 of them stay.
#[test]
fn aimd_leaves_what_it_is_told_to() {
    let snapshot = after_a_loss(Algorithm::Aimd, "").snapshot();
    assert_eq!((snapshot.cwnd, snapshot.ssthresh), (0.875 * 11.0, 0.875 * 11.0));
}

/// The same, with the sample window shorter than the round trip by what queues.
#[test]
fn westwood_abse_falls_back_to_about_the_pipe() {
    let ssthresh = after_a_loss(Algorithm::WestwoodAbse, "").snapshot().ssthresh;
    assert!((8.0..13.0).contains(&ssthresh), "{ssthresh}");
}

/// Silence moves no estimate before an ACK ends it: the threshold stands, and slow start begins.
#[test]
fn westwood_keeps_its_threshold_over_a_timeout() {
    let sender = after_a_loss(Algorithm::Westwood, "2000 ms: poll -> anything; cwnd 1");
    assert!((sender.snapshot().ssthresh - 10.0).abs() < 0.1, "{:?}", sender.snapshot());
}

/// 0.7 x 13.
#[test]
fn cubic_leaves_seven_tenths() {
    let snapshot = after_a_loss(Algorithm::Cubic, "").snapshot();
    assert!((snapshot.ssthresh - 9.1).abs() < 1e-9, "{snapshot:?}");
    assert_eq!(snapshot.cwnd, snapshot.ssthresh);
}

#[test]
fn tahoe_starts_over() {
    let snapshot = after_a_loss(Algorithm::Tahoe, "").snapshot();
    assert_eq!((snapshot.cwnd, snapshot.ssthresh), (1.0, 6.5));
}

/// RFC 5681 section 3.1 for every law: the second timeout in a row changes nothing but the timer.
#[test]
fn a_second_timeout_in_a_row_leaves_the_threshold() {
    // BBR and WTCP have no threshold, and their paces do not let them send ten at once; the other one probes first.
    for cc in
        Algorithm::ALL.into_iter().filter(|cc| !matches!(cc, Algorithm::Bbr | Algorithm::Wtcp | Algorithm::Probing))
    {
        let once = after_a_loss(cc, "2000 ms: poll -> anything; cwnd 1; timeouts 1").snapshot();
        let more = "2000 ms: poll -> anything\n60000 ms: poll -> anything; cwnd 1; timeouts 2";
        assert_eq!(after_a_loss(cc, more).snapshot().ssthresh, once.ssthresh, "{cc:?}");
    }
}

/// Three quarters of the 13 that are outstanding.
#[test]
fn vegas_leaves_three_quarters() {
    let snapshot = after_a_loss(Algorithm::Vegas, "").snapshot();
    assert_eq!((snapshot.cwnd, snapshot.ssthresh), (0.75 * snapshot_of_forty().floor(), snapshot.cwnd));
}

/// Where Vegas stands before the loss: its round trips are 100 ms at first and more as the window queues.
fn snapshot_of_forty() -> f64 {
    let mut script = String::from("0 ms: poll -> syn\n100 ms: syn-ack -> sends 0..9\n");
    for number in 1..=40 {
        writeln!(script, "{} ms: ack {number} -> anything", 190 + 10 * number).expect("a string");
    }
    play(SenderParams { initial_window: 10, initial_ssthresh: Some(10.0), ..plain(Algorithm::Vegas) }, &script)
        .snapshot()
        .cwnd
}

/// One duplicate is enough for Vegas when the segment is overdue: SRTT 100 ms and RTTVAR 50 ms after the handshake, then
/// 17/16 (100 + 2 x 37.5) = 186 ms.
#[test]
fn vegas_believes_a_duplicate_when_the_segment_is_overdue() {
    let script = "
        0 ms: poll -> syn
        100 ms: syn-ack -> sends 0..3
        200 ms: ack 1 -> sends 4..5
        # segment 1 was sent 105 ms ago
        205 ms: ack 1 -> open
        # and now 190 ms ago
        290 ms: ack 1 -> resends 1; recovering
        ";
    let params = |cc| SenderParams { initial_window: 4, ..plain(cc) };
    play(params(Algorithm::Vegas), script);
    let newreno = script.replace("resends 1; recovering", "open");
    play(params(Algorithm::NewReno), &newreno);
}

/// 2.885 x 10 segments in 100 ms: one each 3.466 ms, and the timer of the handshake's round trip behind them.
#[test]
fn bbr_spaces_what_its_window_would_let_go_at_once() {
    play(
        SenderParams { initial_window: 10, ..plain(Algorithm::Bbr) },
        "
        0 ms: poll -> syn
        100 ms: syn-ack -> sends 0; deadline 103.466
        # early
        103 ms: poll -> deadline 103.466
        103.5 ms: poll -> sends 1; deadline 106.966
        # late: no burst makes up for it
        120 ms: poll -> sends 2; deadline 123.466
        ",
    );
}

/// Marks (ECN) halve Reno, and leave BBR, whose version 1 does not look at them.
#[test]
fn a_mark_cuts_all_but_bbr() {
    for cc in Algorithm::ALL {
        let mut sender = after_a_round(cc);
        let before = sender.cwnd();
        sender.on_congestion_echo();
        if cc == Algorithm::Bbr {
            assert_eq!(sender.cwnd(), before);
        } else if !matches!(
            cc,
            Algorithm::Wtcp | Algorithm::Westwood | Algorithm::WestwoodAbse | Algorithm::WestwoodPlus
        ) {
            assert!(sender.cwnd() < before, "{cc:?}: {} of {before}", sender.cwnd());
        }
    }
}

/// Ten segments sent, and the first of them acknowledged.
fn after_a_round(cc: Algorithm) -> Sender {
    let script = "0 ms: poll -> syn\n100 ms: syn-ack -> anything\n140 ms: poll -> anything\n200 ms: ack 1 -> anything";
    play(SenderParams { initial_window: 10, initial_ssthresh: Some(10.0), ..plain(cc) }, script)
}

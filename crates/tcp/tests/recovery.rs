//! Losses without blocks: RFC 5681 section 3.2, RFC 6582, RFC 3042. Round trips of 100 ms.
//!
//! Most scripts start alike: window 8 in slow start; 0..7 go out at 100 ms; the acknowledgments of 0 and 1 at 200 ms make
//! it 10, so that 2..11 are outstanding when the first duplicates come.

mod common;

use common::{plain, play};
use lasthop_tcp::{Algorithm, Conduct, Sender, SenderParams};

const START: &str = "
    # the start
    0 ms: poll -> syn
    100 ms: syn-ack -> cwnd 8; sends 0..7
    200 ms: ack 1 -> cwnd 9; sends 8..9
    200 ms: ack 2 -> cwnd 10; sends 10..11
";

fn after_start(cc: Algorithm, script: &str) -> Sender {
    play(SenderParams { initial_window: 8, ..plain(cc) }, &format!("{START}{script}"))
}

/// 2 is lost. flight 10, so ssthresh = cwnd = 5; the window is 5 + 3, and 5 + n after n duplicates: the sixth makes it 11.
#[test]
fn newreno_repairs_one_loss_and_goes_on_with_half_the_window() {
    let sender = after_start(
        Algorithm::NewReno,
        "
        # of 3, 4, 5
        200 ms: ack 2
        200 ms: ack 2
        200 ms: ack 2 -> cwnd 5; ssthresh 5; resends 2; recovering
        # of 6, 7: the window is 10, as much as is outstanding
        200 ms: ack 2
        200 ms: ack 2 -> pipe 10
        # of 8..11
        300 ms: ack 2 -> sends 12
        300 ms: ack 2 -> sends 13
        300 ms: ack 2 -> sends 14
        300 ms: ack 2 -> sends 15; cwnd 5
        # of 2: everything up to 11; 12..15 are outstanding
        300 ms: ack 12 -> cwnd 5; sends 16; open
        # congestion avoidance: 5 + 1/5
        400 ms: ack 13 -> cwnd 5.2; sends 17
        ",
    );
    assert_eq!(sender.snapshot().fast_retransmits, 1);
    assert_eq!(sender.snapshot().retransmitted, 1);
}

/// The same loss: Reno and NewReno do not differ.
#[test]
fn reno_repairs_one_loss_as_newreno_does() {
    after_start(
        Algorithm::Reno,
        "
        200 ms: ack 2
        200 ms: ack 2
        200 ms: ack 2 -> cwnd 5; ssthresh 5; resends 2; recovering
        200 ms: ack 2
        200 ms: ack 2
        300 ms: ack 2 -> sends 12
        300 ms: ack 2 -> sends 13
        300 ms: ack 2 -> sends 14
        300 ms: ack 2 -> sends 15
        300 ms: ack 12 -> cwnd 5; sends 16; open
        400 ms: ack 13 -> cwnd 5.2; sends 17
        ",
    );
}

/// 2 and 4 are lost.
#[test]
fn newreno_repairs_two_losses_in_two_round_trips() {
    let sender = after_start(
        Algorithm::NewReno,
        "
        # of 3, 5, 6, 7
        200 ms: ack 2
        200 ms: ack 2
        200 ms: ack 2 -> cwnd 5; ssthresh 5; resends 2
        200 ms: ack 2
        # of 8..11: the window is 10 to 13
        300 ms: ack 2
        300 ms: ack 2 -> sends 12
        300 ms: ack 2 -> sends 13
        300 ms: ack 2 -> sends 14
        # of 2, partial: two acknowledged, inflation 8 - 1 = 7; 4..14 outstanding and room for 12
        300 ms: ack 4 -> resends 4; sends 15; recovering; cwnd 5
        # of 12, 13, 14
        400 ms: ack 4 -> sends 16
        400 ms: ack 4 -> sends 17
        400 ms: ack 4 -> sends 18
        # of 4: past 11, where recovery began
        400 ms: ack 15 -> open; cwnd 5; sends 19
        400 ms: ack 16 -> cwnd 5.2; sends 20
        ",
    );
    assert_eq!(sender.snapshot().fast_retransmits, 1);
}

/// The same two losses: Reno leaves with the partial ACK and halves again at the second hole; flight is then 5.
#[test]
fn reno_halves_twice_for_two_losses() {
    let sender = after_start(
        Algorithm::Reno,
        "
        200 ms: ack 2
        200 ms: ack 2
        200 ms: ack 2 -> cwnd 5; ssthresh 5; resends 2
        200 ms: ack 2
        300 ms: ack 2
        300 ms: ack 2 -> sends 12
        300 ms: ack 2 -> sends 13
        300 ms: ack 2 -> sends 14
        # 4..14 are outstanding and cwnd is 5
        300 ms: ack 4 -> open; cwnd 5
        # of 12, 13, 14
        400 ms: ack 4
        400 ms: ack 4
        400 ms: ack 4 -> resends 4; ssthresh 2.5; cwnd 2.5; recovering
        500 ms: ack 15 -> open; cwnd 2.5; sends 15..16
        ",
    );
    assert_eq!(sender.snapshot().fast_retransmits, 2);
}

/// 2, 4 and 6 are lost: a hole per round trip.
#[test]
fn newreno_repairs_three_losses_in_three_round_trips() {
    after_start(
        Algorithm::NewReno,
        "
        # of 3, 5, 7
        200 ms: ack 2
        200 ms: ack 2
        200 ms: ack 2 -> resends 2; cwnd 5
        # of 8..11: the window is 9 to 12
        300 ms: ack 2
        300 ms: ack 2
        300 ms: ack 2 -> sends 12
        300 ms: ack 2 -> sends 13
        # inflation 7 - 1, 4..13 outstanding, room for 11
        300 ms: ack 4 -> resends 4; sends 14
        # of 12, 13
        400 ms: ack 4 -> sends 15
        400 ms: ack 4 -> sends 16
        400 ms: ack 6 -> resends 6; sends 17; recovering
        500 ms: ack 6 -> sends 18
        500 ms: ack 6 -> sends 19
        500 ms: ack 6 -> sends 20
        500 ms: ack 17 -> open; cwnd 5; sends 21
        ",
    );
}

/// The same three: Reno has only two duplicates left for the second hole, and waits for its timer. The samples are 100 ms
/// twice: SRTT 100, RTTVAR 37.5, RTO 250, counted from 300 ms.
#[test]
fn reno_needs_its_timer_for_three_losses() {
    let sender = after_start(
        Algorithm::Reno,
        "
        200 ms: ack 2
        200 ms: ack 2
        200 ms: ack 2 -> resends 2; cwnd 5
        300 ms: ack 2
        300 ms: ack 2
        300 ms: ack 2 -> sends 12
        300 ms: ack 2 -> sends 13
        300 ms: ack 4 -> open; cwnd 5; deadline 550
        # of 12, 13
        400 ms: ack 4
        400 ms: ack 4
        # the timer: half of cwnd 5, backoff to 500 ms
        550 ms: poll -> resends 4; cwnd 1; ssthresh 2.5; deadline 1050
        # go-back-N: 7 goes again although it has arrived
        650 ms: ack 6 -> cwnd 2; resends 6..7
        750 ms: ack 14 -> cwnd 3; sends 14..16
        ",
    );
    assert_eq!(sender.snapshot().timeouts, 1);
}

/// 2..5 are lost, a hole per round trip, and the timer, restarted by the first partial ACK only, ends it.
#[test]
fn an_impatient_newreno_gives_up_when_holes_are_many() {
    let sender = after_start(
        Algorithm::NewReno,
        "
        # of 6, 7, 8
        200 ms: ack 2
        200 ms: ack 2
        300 ms: ack 2 -> resends 2; cwnd 5; ssthresh 5
        # of 9, 10, 11: the window is 9 to 11
        300 ms: ack 2
        300 ms: ack 2
        300 ms: ack 2 -> sends 12
        # partial, one acknowledged: inflation stays at 6
        400 ms: ack 3 -> resends 3; sends 13; deadline 650
        400 ms: ack 3 -> sends 14
        500 ms: ack 4 -> resends 4; sends 15; deadline 650
        500 ms: ack 4 -> sends 16
        500 ms: ack 4 -> sends 17
        600 ms: ack 5 -> resends 5; sends 18; deadline 650
        650 ms: poll -> resends 5; cwnd 1; ssthresh 2.5; open; deadline 1150
        ",
    );
    assert_eq!(sender.snapshot().timeouts, 1);
}

/// 2 is lost: slow start from one segment, everything from 2 on again.
#[test]
fn tahoe_starts_over_after_three_duplicates() {
    after_start(
        Algorithm::Tahoe,
        "
        200 ms: ack 2
        200 ms: ack 2
        200 ms: ack 2 -> cwnd 1; ssthresh 5; resends 2; pipe 1
        200 ms: ack 2
        300 ms: ack 2
        # the receiver had the rest
        300 ms: ack 12 -> cwnd 2; sends 12..13
        400 ms: ack 13 -> cwnd 3; sends 14..15
        400 ms: ack 14 -> cwnd 4; sends 16..17
        500 ms: ack 15 -> cwnd 5; sends 18..19
        # congestion avoidance from ssthresh on
        500 ms: ack 16 -> cwnd 5.2; sends 20
        ",
    );
}

#[test]
fn limited_transmit_sends_a_segment_for_each_of_the_first_two_duplicates() {
    let sender = play(
        SenderParams { initial_window: 8, limited_transmit: true, ..plain(Algorithm::NewReno) },
        "
        0 ms: poll -> syn
        100 ms: syn-ack -> sends 0..7
        200 ms: ack 0 -> sends 8; cwnd 8
        200 ms: ack 0 -> sends 9; cwnd 8
        # the two do not count: half of 8 (RFC 5681 section 3.2 step 2)
        200 ms: ack 0 -> resends 0; cwnd 4; ssthresh 4; pipe 10
        ",
    );
    assert!(sender.snapshot().recovering);
}

/// Everything from 0 on is sent again after the timeout; duplicates that this makes must not halve the window once more.
#[test]
fn duplicates_of_what_was_sent_before_a_timeout_mean_nothing() {
    play(
        SenderParams { initial_window: 8, ..plain(Algorithm::NewReno) },
        "
        # 0 is lost, and all acknowledgments of the others
        0 ms: poll -> syn
        100 ms: syn-ack -> sends 0..7; deadline 400
        400 ms: poll -> resends 0; cwnd 1; ssthresh 4
        500 ms: ack 1 -> cwnd 2; resends 1..2
        500 ms: ack 1
        500 ms: ack 1
        # RFC 6582: 1 is not beyond what was outstanding, 0..7
        500 ms: ack 1 -> cwnd 2; ssthresh 4; open
        600 ms: ack 8 -> cwnd 3; sends 8..10
        # nor is 8; 9 is (section 3.2 step 2: covers more than recover)
        700 ms: ack 9 -> cwnd 4; sends 11..12
        700 ms: ack 9
        700 ms: ack 9
        700 ms: ack 9 -> resends 9; sends 13; recovering; cwnd 2
        ",
    );
}

/// SRTT 100, RTTVAR 50: RTO 300, then 600, 1200, 2400.
#[test]
fn timeouts_double_the_timer_until_something_sent_once_is_measured() {
    play(
        SenderParams { initial_window: 1, ..plain(Algorithm::NewReno) },
        "
        0 ms: poll -> syn
        100 ms: syn-ack -> sends 0; deadline 400
        399.9 ms: poll -> deadline 400
        # a late poll counts from when it comes
        400 ms: poll -> resends 0; cwnd 1; ssthresh 2; deadline 1000
        1010 ms: poll -> resends 0; deadline 2210
        2210 ms: poll -> resends 0; deadline 4610; timeouts 3
        # Karn: sent four times, so it measures nothing and the backoff stays
        2310 ms: ack 1 -> cwnd 2; sends 1..2; deadline 4710
        # measured, 100 ms: RTTVAR 37.5, RTO 250
        2410 ms: ack 2 -> cwnd 2.5; sends 3; deadline 2660
        ",
    );
}

/// RFC 5681 section 3.1: a segment that times out again leaves ssthresh where it is. ns-2 halves cwnd = 1 to its least, 2.
#[test]
fn a_repeated_timeout_holds_the_threshold_unless_told_otherwise() {
    // A millisecond after each timer: ns-2's are rounded.
    let script = |second: &str| {
        format!(
            "
            0 ms: poll -> syn
            100 ms: syn-ack -> sends 0..9
            401 ms: poll -> resends 0; ssthresh 5
            1002 ms: poll -> resends 0; ssthresh {second}
            "
        )
    };
    let rfc = SenderParams { initial_window: 10, ..plain(Algorithm::NewReno) };
    play(rfc, &script("5"));
    play(SenderParams { conduct: Conduct::Ns2, ..rfc }, &script("2"));
}

/// RFC 6298 rule 5.7: 3 s after a handshake that needed its timer; RFC 5681 section 3.1: a window of one segment.
#[test]
fn a_lost_syn_backs_off_and_opens_with_one_segment() {
    play(
        plain(Algorithm::NewReno),
        "
        0 ms: poll -> syn; deadline 1000
        1000 ms: poll -> syn; deadline 3000
        3000 ms: poll -> syn; deadline 7000
        3100 ms: syn-ack -> cwnd 1; sends 0; deadline 6100
        3200 ms: ack 1 -> cwnd 2; sends 1..2; deadline 3500
        ",
    );
}

#[test]
fn a_closed_window_is_probed_until_it_opens() {
    play(
        plain(Algorithm::NewReno),
        "
        0 ms: poll -> syn
        100 ms: syn-ack window 2 -> sends 0..1
        # RTO 250 from two samples of 100 ms
        200 ms: ack 2 window 0 -> deadline 450
        450 ms: poll -> probe; deadline 950
        550 ms: ack 2 -> deadline 950
        950 ms: poll -> probe; deadline 1950
        1950 ms: poll -> probe; deadline 3950
        # what was acknowledged had used all of cwnd, and the window held the sender since
        2050 ms: ack 2 window 9 -> sends 2..5; cwnd 4; deadline 2300
        ",
    );
}

/// RFC 9293 section 3.8.6.2.1: whole segments only, but a window that stays under a segment is used after a while.
#[test]
fn a_window_of_half_a_segment_is_used_after_the_override_time() {
    let sender = play(
        plain(Algorithm::NewReno),
        "
        0 ms: poll -> syn
        100 ms: syn-ack window 2 -> sends 0..1
        200 ms: ack 2 window 0.5 -> deadline 450
        450 ms: poll -> sends 2
        ",
    );
    assert_eq!(sender.snapshot().inflight, 500);
}

#[test]
fn the_last_segment_may_be_short_and_ends_the_stream() {
    let sender = play(
        SenderParams { bytes: Some(2500), ..plain(Algorithm::NewReno) },
        "
        0 ms: poll -> syn
        100 ms: syn-ack -> sends 0..1
        200 ms: ack 1 -> sends 2
        200 ms: ack 2
        300 ms: ack 2.5
        ",
    );
    assert!(sender.is_done());
    assert_eq!(sender.next_deadline(), None);
    assert_eq!(sender.snapshot().acked_bytes, 2500);
}

#[test]
fn a_stopped_sender_repairs_what_is_outstanding_and_sends_nothing_new() {
    let sender = play(
        plain(Algorithm::NewReno),
        "
        0 ms: poll -> syn
        100 ms: syn-ack -> sends 0..1
        150 ms: stop
        200 ms: ack 1 -> deadline 450
        450 ms: poll -> resends 1
        550 ms: ack 2
        ",
    );
    assert!(sender.is_done());
    assert_eq!(sender.next_deadline(), None);
}

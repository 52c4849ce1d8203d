//! How the window grows while nothing is lost: RFC 5681 section 3.1.

mod common;

use common::{plain, play};
use lasthop_tcp::{Algorithm, SenderParams};

/// RTT 100 ms. In slow start each segment acknowledged adds one, so that it releases two.
#[test]
fn slow_start_doubles_the_window_each_round_trip() {
    play(
        plain(Algorithm::NewReno),
        "
        # RFC 6298 2.1: the SYN waits a second
        0 ms: poll -> syn; deadline 1000
        100 ms: syn-ack -> cwnd 2; sends 0..1
        200 ms: ack 1 -> cwnd 3; sends 2..3
        200 ms: ack 2 -> cwnd 4; sends 4..5
        300 ms: ack 3 -> cwnd 5; sends 6..7
        300 ms: ack 4 -> cwnd 6; sends 8..9
        300 ms: ack 5 -> cwnd 7; sends 10..11
        300 ms: ack 6 -> cwnd 8; sends 12..13
        # a delayed ACK for two adds two (RFC 3465): two acknowledged and two more
        400 ms: ack 8 -> cwnd 10; sends 14..17
        # one for four adds two as well, lest it release a burst
        400 ms: ack 12 -> cwnd 12; sends 18..23
        ",
    );
}

/// Above the threshold each ACK adds 1/cwnd: 2, then 2 + 1/2, then 2.5 + 1/2.5 = 2.9, then 2.9 + 1/2.9 = 3.2448.
#[test]
fn congestion_avoidance_adds_about_one_segment_per_round_trip() {
    play(
        SenderParams { initial_ssthresh: Some(2.0), ..plain(Algorithm::Reno) },
        "
        0 ms: poll -> syn
        100 ms: syn-ack -> cwnd 2; sends 0..1
        200 ms: ack 1 -> cwnd 2.5; sends 2
        200 ms: ack 2 -> cwnd 2.9; sends 3
        300 ms: ack 3 -> cwnd 3.2448; sends 4..5
        ",
    );
}

/// The offered window is the other limit: `min(cwnd, window)`, whole segments only. Where it holds the sender cwnd grows no more, once it
/// has been so for a round trip and is twice as large.
#[test]
fn the_offered_window_holds_the_sender() {
    play(
        plain(Algorithm::NewReno),
        "
        0 ms: poll -> syn
        100 ms: syn-ack window 3.5 -> cwnd 2; sends 0..1
        # room for 1.5 segments beyond 1..1: one
        200 ms: ack 1 -> cwnd 3; sends 2..3
        # the window stops it now; but cwnd held it when these were sent, so that it grows until they are acknowledged
        200 ms: ack 2 -> cwnd 4; sends 4
        300 ms: ack 3 -> cwnd 5; sends 5
        300 ms: ack 4 -> cwnd 6; sends 6
        # from then on it holds nothing back, and is twice what is in flight (Linux, tcp_is_cwnd_limited; RFC 7661 in spirit)
        300 ms: ack 5 -> cwnd 6; sends 7
        400 ms: ack 6 -> cwnd 6; sends 8
        ",
    );
}

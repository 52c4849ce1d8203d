//! Losses with blocks: RFC 6675. Round trips of 100 ms, ten segments at first.

mod common;

use common::{plain, play};
use lasthop_tcp::{Algorithm, Sender, SenderParams};

fn sacking(cc: Algorithm, bytes: Option<u64>, script: &str) -> Sender {
    let start = "
        0 ms: poll -> syn
        100 ms: syn-ack -> sends 0..9; cwnd 10
    ";
    play(SenderParams { sack: true, initial_window: 10, bytes, ..plain(cc) }, &format!("{start}{script}"))
}

/// 0, 3 and 4 are lost. Two round trips repair all of them, and the window is halved once.
#[test]
fn three_losses_are_repaired_as_the_pipe_allows() {
    let sender = sacking(
        Algorithm::NewReno,
        None,
        "
        # section 5 step 3: a segment leaves the pipe, a new one may follow
        200 ms: ack 0 sack 1..1 -> sends 10; pipe 10
        200 ms: ack 0 sack 1..2 -> sends 11; pipe 10
        # three segments above 0: it is lost. ssthresh = 10 / 2; pipe = 3, 4, 6..11 and 0 once more
        200 ms: ack 0 sack 5..5 1..2 -> resends 0; cwnd 5; ssthresh 5; pipe 9; recovering
        200 ms: ack 0 sack 5..6 1..2 -> pipe 8
        # three segments above 3 and 4: lost. pipe = 0, 8..11
        200 ms: ack 0 sack 5..7 1..2 -> pipe 5
        200 ms: ack 0 sack 5..8 1..2 -> resends 3; pipe 5
        200 ms: ack 0 sack 5..9 1..2 -> resends 4; pipe 5
        # of 10 and 11
        300 ms: ack 0 sack 5..10 1..2 -> sends 12; pipe 5
        300 ms: ack 0 sack 5..11 1..2 -> sends 13; pipe 5
        # of 0
        300 ms: ack 3 sack 5..11 -> sends 14; pipe 5; recovering
        # of 3 and 4: all of 0..11
        300 ms: ack 4 sack 5..11 -> sends 15
        300 ms: ack 12 -> open; cwnd 5; sends 16; pipe 5
        ",
    );
    assert_eq!(sender.snapshot().retransmitted, 3);
    assert_eq!(sender.snapshot().fast_retransmits, 1);
}

/// RFC 6675 section 4, IsLost: three separate ranges above tell as much as three segments.
#[test]
fn three_short_ranges_tell_a_loss() {
    sacking(
        Algorithm::Reno,
        None,
        "
        200 ms: ack 0 sack 2..2 -> sends 10
        200 ms: ack 0 sack 4..4 2..2 -> sends 11
        # 0 and 1 lie below three ranges
        200 ms: ack 0 sack 6..6 4..4 2..2 -> resends 0; cwnd 5; pipe 8
        ",
    );
}

/// 0 and 9, the last of all, are lost: nothing above 9 can tell, and NextSeg's fourth rule sends it once.
#[test]
fn the_end_of_the_stream_is_rescued() {
    let sender = sacking(
        Algorithm::NewReno,
        Some(10_000),
        "
        200 ms: ack 0 sack 1..1
        200 ms: ack 0 sack 1..2
        200 ms: ack 0 sack 1..3 -> resends 0; cwnd 5; pipe 7
        200 ms: ack 0 sack 1..4 -> pipe 6
        200 ms: ack 0 sack 1..5 -> pipe 5
        # room for one: nothing is lost, nothing new, no hole: the highest
        200 ms: ack 0 sack 1..6 -> resends 9; pipe 4
        200 ms: ack 0 sack 1..7 -> pipe 3
        200 ms: ack 0 sack 1..8 -> pipe 2
        300 ms: ack 9 -> recovering
        300 ms: ack 10 -> open
        ",
    );
    assert!(sender.is_done());
    assert_eq!(sender.snapshot().timeouts, 0);
}

/// 0 is lost, and so is its repetition: 11 was sent after that and has arrived (RFC 8985), so that no timer is needed.
#[test]
fn what_is_lost_again_is_sent_again_at_once() {
    let sender = sacking(
        Algorithm::NewReno,
        None,
        "
        200 ms: ack 0 sack 1..1 -> sends 10
        201 ms: ack 0 sack 1..2 -> sends 11
        202 ms: ack 0 sack 1..3 -> resends 0; cwnd 5; pipe 9
        203 ms: ack 0 sack 1..4
        204 ms: ack 0 sack 1..5
        205 ms: ack 0 sack 1..6
        206 ms: ack 0 sack 1..7 -> pipe 5
        207 ms: ack 0 sack 1..8 -> sends 12; pipe 5
        208 ms: ack 0 sack 1..9 -> sends 13; pipe 5
        # sent before the repetition: they tell nothing of it
        300 ms: ack 0 sack 1..10 -> sends 14; pipe 5
        301 ms: ack 0 sack 1..11 -> sends 15; pipe 5
        # sent after it: the pipe has lost two
        307 ms: ack 0 sack 1..12 -> resends 0; sends 16; pipe 5
        407 ms: ack 13 -> open; cwnd 5; sends 17
        ",
    );
    assert_eq!((sender.snapshot().retransmitted, sender.snapshot().timeouts), (2, 0));
}

/// The window is closed to new bytes: NextSeg's third rule sends a hole that is not lost for sure.
#[test]
fn a_hole_that_may_be_lost_goes_again_when_nothing_new_may() {
    sacking(
        Algorithm::NewReno,
        Some(10_000),
        "
        # 0 and 7 are lost
        200 ms: ack 0 sack 1..1
        200 ms: ack 0 sack 1..2
        200 ms: ack 0 sack 1..3 -> resends 0; cwnd 5; pipe 7
        200 ms: ack 0 sack 1..4
        200 ms: ack 0 sack 1..5 -> pipe 5
        200 ms: ack 0 sack 1..6 -> resends 9; pipe 4
        # of 8: 7 is below it; it counts twice from now on
        200 ms: ack 0 sack 8..8 1..6 -> resends 7; pipe 4
        ",
    );
}

/// What was sacked is not sent again after a timeout either.
#[test]
fn a_timeout_skips_what_has_arrived() {
    sacking(
        Algorithm::NewReno,
        Some(10_000),
        "
        # 0, 1 and the rest but 4 and 5 are lost
        200 ms: ack 0 sack 4..4
        200 ms: ack 0 sack 4..5 -> deadline 400
        # the timer: everything else is lost
        400 ms: poll -> resends 0; cwnd 1; ssthresh 5; pipe 1
        500 ms: ack 1 sack 4..5 -> cwnd 2; resends 1..2
        600 ms: ack 2 sack 4..5 -> cwnd 3; resends 3 6
        600 ms: ack 3 sack 4..5 -> cwnd 4; resends 7..8
        700 ms: ack 6 -> cwnd 5; resends 9
        700 ms: ack 7
        700 ms: ack 8
        700 ms: ack 9
        800 ms: ack 10 -> open
        ",
    );
}

/// With blocks Reno stays until everything is repaired, as RFC 6675 says.
#[test]
fn reno_with_blocks_stays_in_recovery() {
    let sender = sacking(
        Algorithm::Reno,
        Some(10_000),
        "
        # 0 and 2 are lost
        200 ms: ack 0 sack 1..1
        200 ms: ack 0 sack 3..3 1..1
        200 ms: ack 0 sack 3..4 1..1 -> resends 0; cwnd 5; recovering
        200 ms: ack 0 sack 3..5 1..1 -> pipe 5
        200 ms: ack 0 sack 3..6 1..1 -> resends 2; pipe 5
        # the stream is at its end, 2 under way: the rescue takes the room
        300 ms: ack 2 sack 3..6 -> resends 9; recovering
        ",
    );
    assert_eq!(sender.snapshot().fast_retransmits, 1);
}

/// Tahoe has no fast recovery: slow start over the holes.
#[test]
fn tahoe_with_blocks_fills_the_holes_in_slow_start() {
    sacking(
        Algorithm::Tahoe,
        None,
        "
        # 0 and 2 are lost
        200 ms: ack 0 sack 1..1 -> sends 10
        200 ms: ack 0 sack 3..3 1..1 -> sends 11
        200 ms: ack 0 sack 3..4 1..1 -> resends 0; cwnd 1; ssthresh 5; pipe 1
        200 ms: ack 0 sack 3..9 1..1 -> pipe 1
        300 ms: ack 2 sack 3..9 -> cwnd 2; resends 2 10
        400 ms: ack 10 -> cwnd 3; resends 11; sends 12
        ",
    );
}

/// Blocks that tell nothing new are no duplicates (RFC 6675 section 2).
#[test]
fn repeated_blocks_do_not_count() {
    sacking(
        Algorithm::NewReno,
        Some(10_000),
        "
        200 ms: ack 0 sack 1..1
        200 ms: ack 0 sack 1..1
        200 ms: ack 0 sack 1..1
        200 ms: ack 0 sack 1..1 -> open; cwnd 10
        ",
    );
}

/// A receiver that reports nothing is served by duplicates even when blocks were hoped for.
#[test]
fn without_blocks_duplicates_are_counted() {
    sacking(
        Algorithm::NewReno,
        Some(10_000),
        "
        200 ms: ack 0
        200 ms: ack 0
        200 ms: ack 0 -> resends 0; cwnd 5; recovering
        ",
    );
}

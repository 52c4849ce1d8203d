//! Losses of QUIC: RFC 9002. Round trips of 100 ms, ten segments at first. The probe timeout is 100 + 4 x 50 + 25 ms.

mod common;

use common::{plain, play};
use lasthop_tcp::{Algorithm, Conduct, Sender, SenderParams};

fn quic(bytes: Option<u64>, script: &str) -> Sender {
    let start = "
        0 ms: poll -> syn
        100 ms: syn-ack -> sends 0..9; cwnd 10; deadline 425
    ";
    let params =
        SenderParams { sack: true, initial_window: 10, bytes, conduct: Conduct::Quic, ..plain(Algorithm::NewReno) };
    play(params, &format!("{start}{script}"))
}

/// Section 6.1.1: 0 is lost when 3 has arrived, 1 when 4 has; TCP would wait for three segments above 1, too.
#[test]
fn three_packets_beyond_it_tell_that_one_is_lost() {
    quic(
        None,
        "
        200 ms: ack 0 sack 3..3 -> resends 0; cwnd 5; pipe 9; recovering
        200 ms: ack 0 sack 3..4 -> pipe 7
        200 ms: ack 0 sack 3..5 -> pipe 5
        200 ms: ack 0 sack 3..6 -> resends 1; pipe 5
        ",
    );
}

/// Sections 6.2.4 and 7.5: all ten and their acknowledgments are late. Two probes beyond the window, and the window stays; when one of them is
/// acknowledged, what was sent three packets before it or earlier is lost, and cuts once.
#[test]
fn the_timer_sends_probes_and_cuts_nothing() {
    let sender = quic(
        None,
        "
        425 ms: poll -> sends 10..11; cwnd 10; pipe 12; deadline 1075; open
        # 0 to 7 are lost, 8, 9 and 11 may be under way
        525 ms: ack 0 sack 10..10 -> resends 0..1; cwnd 5; pipe 5; recovering
        625 ms: ack 1 sack 10..10 -> resends 2; cwnd 5; recovering
        ",
    );
    assert_eq!((sender.snapshot().timeouts, sender.snapshot().fast_retransmits), (1, 1));
}

/// Section 6.2.4: at the end of the stream what was sent first goes out again.
#[test]
fn a_stream_without_new_data_is_probed_by_its_first_segment() {
    let sender = quic(
        Some(10_000),
        "
        425 ms: poll -> resends 0; cwnd 10
        525 ms: ack 10 -> open; cwnd 12
        ",
    );
    assert!(sender.is_done());
}

/// Section 7.6: 1 + 2 PTOs pass without an acknowledgment, and the third expiration takes the window but for two segments.
#[test]
fn congestion_that_lasts_for_three_timeouts_takes_the_window() {
    quic(
        None,
        "
        425 ms: poll -> sends 10..11; cwnd 10
        1075 ms: poll -> sends 12..13; cwnd 10
        2375 ms: poll -> resends 0..1; cwnd 2
        ",
    );
}

/// Section 6.2.1: 0 is missing for long, but what was sent after it arrives: no congestion persists, however often the timer has expired.
#[test]
fn whatever_is_delivered_starts_the_timer_anew() {
    let sender = quic(
        None,
        "
        425 ms: poll -> sends 10..11; cwnd 10
        1075 ms: poll -> sends 12..13; cwnd 10
        1080 ms: ack 0 sack 1..1 -> anything; open
        2375 ms: poll -> anything; cwnd 10
        ",
    );
    assert_eq!(sender.snapshot().timeouts, 3);
}

/// Section 7.3.2: 0 was sent again after recovery began and is lost again. That is another congestion event; for TCP it is not.
#[test]
fn what_is_lost_again_cuts_again() {
    let script = "
        201 ms: ack 0 sack 1..1 -> anything
        202 ms: ack 0 sack 1..2 -> anything
        203 ms: ack 0 sack 1..3 -> anything; cwnd 5; recovering
        204 ms: ack 0 sack 1..9 -> anything
        304 ms: ack 0 sack 1..10 -> anything
        305 ms: ack 0 sack 1..11 -> anything
        306 ms: ack 0 sack 1..12 -> anything
        307 ms: ack 0 sack 1..13 -> anything
    ";
    let again = quic(None, script).snapshot();
    let start = "0 ms: poll -> syn\n100 ms: syn-ack -> sends 0..9\n";
    let once = SenderParams { sack: true, initial_window: 10, ..plain(Algorithm::NewReno) };
    let once = play(once, &format!("{start}{script}")).snapshot();
    assert!(again.cwnd < 4.0 && once.cwnd == 5.0, "{again:?}\n{once:?}");
}

/// Section 7.7: at 5/4 of the window per round trip, which the handshake has told: ten over 100 ms, one each 8 ms.
#[test]
fn what_paces_spreads_its_window_over_a_round_trip() {
    let params = SenderParams {
        sack: true,
        initial_window: 10,
        conduct: Conduct::Quic,
        paced: true,
        ..plain(Algorithm::NewReno)
    };
    play(
        params,
        "
        0 ms: poll -> syn
        100 ms: syn-ack -> sends 0; cwnd 10; deadline 108
        108 ms: poll -> sends 1; deadline 116
        116 ms: poll -> sends 2; deadline 124
        ",
    );
}

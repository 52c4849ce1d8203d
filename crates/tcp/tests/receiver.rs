//! What a receiver answers: RFC 5681 section 4.2, RFC 2018 section 4, RFC 9293 section 3.8.6.

use lasthop_core::units::{Span, Time};
use lasthop_tcp::{Ack, Receiver, ReceiverParams, Segment};

const MSS: u64 = 1000;

fn ms(milliseconds: u64) -> Time {
    Time::from_nanos(milliseconds * 1_000_000)
}

fn segment(number: u64) -> Segment {
    Segment { offset: number * MSS, bytes: MSS as u32, syn: false, fin: false, again: false }
}

/// A receiver that has answered the SYN.
fn open(params: ReceiverParams) -> Receiver {
    let mut receiver = Receiver::new(ReceiverParams { mss: MSS as u32, ..params });
    receiver.on_segment(ms(0), &Segment { offset: 0, bytes: 0, syn: true, fin: false, again: false });
    let answer = receiver.poll(ms(0)).expect("an answer to the SYN");
    assert!(answer.syn && answer.offset == 0);
    assert_eq!(receiver.poll(ms(0)), None);
    receiver
}

fn fixed(sack: bool, delayed_ack: bool) -> Receiver {
    open(ReceiverParams { sack, delayed_ack, window: Some(64 * MSS), ..Default::default() })
}

/// The acknowledgment at once, in segments.
fn answer(receiver: &mut Receiver, now: Time, number: u64) -> Option<u64> {
    receiver.on_segment(now, &segment(number));
    let ack = receiver.poll(now);
    assert_eq!(receiver.poll(now), None, "one is enough");
    ack.map(|ack| ack.offset / MSS)
}

/// The blocks of the acknowledgment, in segments.
fn blocks(ack: &Ack) -> Vec<(u64, u64)> {
    ack.sack.as_slice().iter().map(|&(start, end)| (start / MSS, end / MSS)).collect()
}

#[test]
fn every_second_segment_is_acknowledged_and_a_single_one_after_40_ms() {
    let mut receiver = fixed(false, true);
    assert_eq!(answer(&mut receiver, ms(10), 0), None);
    assert_eq!(receiver.next_deadline(), Some(ms(50)));
    assert_eq!(answer(&mut receiver, ms(11), 1), Some(2));
    assert_eq!(receiver.next_deadline(), None);
    assert_eq!(answer(&mut receiver, ms(12), 2), None);
    assert_eq!(receiver.poll(ms(51)), None);
    assert_eq!(receiver.poll(ms(52)).map(|ack| ack.offset), Some(3 * MSS));
    assert_eq!(receiver.next_deadline(), None);
}

#[test]
fn without_delay_every_segment_is_acknowledged() {
    let mut receiver = fixed(false, false);
    for number in 0..5 {
        assert_eq!(answer(&mut receiver, ms(number), number), Some(number + 1));
    }
}

#[test]
fn a_hole_is_told_at_once_and_so_is_its_end() {
    let mut receiver = fixed(false, true);
    assert_eq!(answer(&mut receiver, ms(1), 0), None);
    assert_eq!(answer(&mut receiver, ms(2), 2), Some(1), "out of order");
    assert_eq!(answer(&mut receiver, ms(3), 3), Some(1));
    assert_eq!(answer(&mut receiver, ms(4), 2), Some(1), "a duplicate");
    assert_eq!(answer(&mut receiver, ms(5), 1), Some(4), "the hole is filled");
    assert_eq!(answer(&mut receiver, ms(6), 4), None, "and delay is back");
    assert_eq!(receiver.duplicate_bytes(), MSS);
}

#[test]
fn the_last_segment_is_acknowledged_at_once() {
    let mut receiver = fixed(false, true);
    receiver.on_segment(ms(1), &Segment { fin: true, ..segment(0) });
    assert_eq!(receiver.poll(ms(1)).map(|ack| ack.offset), Some(MSS));
    assert!(receiver.is_finished());
}

#[test]
fn new_bytes_are_counted_once() {
    let mut receiver = fixed(true, false);
    let news: Vec<u32> = [0, 2, 2, 4, 1, 3, 3].map(|number| receiver.on_segment(ms(1), &segment(number))).to_vec();
    assert_eq!(news, [1000, 1000, 0, 1000, 1000, 1000, 0]);
    assert_eq!(receiver.received(), 5 * MSS);
    let across = Segment { offset: 4500, bytes: 1000, ..segment(0) };
    assert_eq!(receiver.on_segment(ms(1), &across), 500, "half of it is new");
}

/// RFC 2018 section 4: the block of the newest segment first, then those reported before it.
#[test]
fn blocks_come_newest_first() {
    let mut receiver = fixed(true, false);
    let expected: [(u64, &[(u64, u64)]); 9] = [
        (0, &[]),
        (2, &[(2, 3)]),
        (4, &[(4, 5), (2, 3)]),
        (6, &[(6, 7), (4, 5), (2, 3)]),
        (8, &[(8, 9), (6, 7), (4, 5)]),
        // joins 4 and 2, which stands behind what was reported last
        (3, &[(2, 5), (8, 9), (6, 7)]),
        (9, &[(8, 10), (2, 5), (6, 7)]),
        // the hole below is filled: what is in order leaves the blocks
        (1, &[(8, 10), (6, 7)]),
        (5, &[(8, 10)]),
    ];
    for (number, blocks_expected) in expected {
        receiver.on_segment(ms(number), &segment(number));
        let ack = receiver.poll(ms(number)).expect("an acknowledgment");
        assert_eq!(blocks(&ack), blocks_expected, "after {number}");
    }
    assert_eq!(receiver.received(), 7 * MSS);
}

#[test]
fn without_sack_nothing_is_reported() {
    let mut receiver = fixed(false, false);
    receiver.on_segment(ms(1), &segment(2));
    assert!(receiver.poll(ms(1)).expect("a duplicate").sack.is_empty());
}

#[test]
fn what_lies_beyond_the_window_is_refused_and_counted() {
    let mut receiver = fixed(false, false);
    assert_eq!(receiver.on_segment(ms(1), &segment(63)), 1000);
    assert_eq!(receiver.on_segment(ms(1), &segment(64)), 0);
    assert_eq!(receiver.refused(), 1);
    assert_eq!(receiver.poll(ms(1)).map(|ack| ack.offset), Some(0));
}

#[test]
fn holes_without_end_are_refused_and_counted() {
    let mut receiver = open(ReceiverParams { window: Some(1 << 30), ..Default::default() });
    receiver.on_segment(ms(1), &segment(0));
    receiver.poll(ms(100));
    for number in 0..5000 {
        receiver.on_segment(ms(1), &segment(2 * number + 2));
    }
    assert_eq!(receiver.refused(), 5000 - 4096);
}

/// A zero-length segment is a probe.
#[test]
fn a_probe_is_answered_at_once() {
    let mut receiver = fixed(false, true);
    receiver.on_segment(ms(1), &Segment { bytes: 0, ..segment(0) });
    assert_eq!(receiver.poll(ms(1)).map(|ack| ack.offset), Some(0));
}

#[test]
fn a_limit_never_takes_back_what_was_offered() {
    let mut receiver = fixed(false, false);
    receiver.set_limit(Some(10 * MSS));
    let mut edge = 64 * MSS;
    for number in 0..100 {
        receiver.on_segment(ms(number), &segment(number));
        let ack = receiver.poll(ms(number)).expect("an acknowledgment");
        assert!(ack.offset + ack.window_bytes >= edge, "the edge moved left at {number}");
        edge = ack.offset + ack.window_bytes;
        assert_eq!(ack.window_bytes, 64u64.saturating_sub(number + 1).max(10) * MSS);
    }
    receiver.set_limit(None);
    receiver.on_segment(ms(100), &segment(100));
    assert_eq!(receiver.poll(ms(100)).map(|ack| ack.window_bytes), Some(64 * MSS));
}

#[test]
fn the_scale_expresses_the_largest_window() {
    let scale = |window| Receiver::new(ReceiverParams { window, ..Default::default() }).window_scale();
    assert_eq!(scale(Some(65_535)), 0);
    assert_eq!(scale(Some(65_536)), 1);
    assert_eq!(scale(Some(1_460_000)), 5);
    assert_eq!(scale(None), 7, "6 MiB, as Linux");
    assert_eq!(scale(Some(1 << 40)), 14);
}

#[test]
fn the_answer_to_a_syn_is_not_scaled() {
    let mut receiver = Receiver::new(ReceiverParams { window: Some(1 << 20), ..Default::default() });
    receiver.on_segment(ms(0), &Segment { offset: 0, bytes: 0, syn: true, fin: false, again: false });
    assert_eq!(receiver.poll(ms(0)).map(|ack| ack.window_bytes), Some(65_535));
}

/// RTT 50 ms, and `rate` segments in each: the window ends at twice what arrives in one, and more while it grows.
#[test]
fn an_autotuned_window_grows_with_what_arrives() {
    let window_after = |rounds: u64, per_round: fn(u64) -> u64| {
        let mut receiver = open(ReceiverParams { delayed_ack: false, ack_delay: Span::ZERO, ..Default::default() });
        let (mut number, mut window) = (0, 0);
        for round in 1..=rounds {
            for _ in 0..per_round(round) {
                receiver.on_segment(ms(50 * round), &segment(number));
                window = receiver.poll(ms(50 * round)).expect("an acknowledgment").window_bytes;
                number += 1;
            }
        }
        window
    };
    assert_eq!(window_after(20, |_| 10), 64 << 10, "ten segments per round trip need no more than the least");
    let steady = window_after(40, |_| 60);
    assert!((2 * 60 * MSS..1000 * MSS).contains(&steady), "{steady}");
    let doubling = window_after(9, |round| 10 << round);
    assert!(doubling >= 2 * (10 << 8) * MSS, "a doubling sender is not held: {doubling}");
    assert_eq!(window_after(13, |round| 10 << round), 6 << 20);
}

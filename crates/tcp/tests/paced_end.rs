//! A sender that paces itself is done when all is acknowledged, also within the gap after its last segment.

use lasthop_core::units::{Span, Time};
use lasthop_tcp::{Ack, Algorithm, SackBlocks, Sender, SenderParams};

#[test]
fn a_paced_sender_that_is_done_waits_for_nothing() {
    let mut now = Time::ZERO;
    let mut sender =
        Sender::new(SenderParams { cc: Algorithm::Bbr, bytes: Some(40 * 1460), mss: 1460, ..SenderParams::default() });
    let ack = |offset, syn| Ack { offset, window_bytes: 1 << 20, sack: SackBlocks::default(), syn };
    assert!(sender.poll(now).is_some_and(|segment| segment.syn));
    now += Span::from_millis(20);
    sender.on_ack(now, &ack(0, true));
    let mut sent = 0;
    for _ in 0..10_000 {
        while let Some(segment) = sender.poll(now) {
            sent = sent.max(segment.offset + u64::from(segment.bytes));
        }
        // Sooner than the next segment may go.
        now += Span::from_micros(1);
        sender.on_ack(now, &ack(sent, false));
        if sender.is_done() {
            assert_eq!((sender.poll(now), sender.next_deadline()), (None, None));
            break;
        }
        now = sender.next_deadline().map_or(now, |at| now.max(at));
    }
    assert_eq!((sent, sender.is_done(), sender.next_deadline()), (40 * 1460, true, None));
}

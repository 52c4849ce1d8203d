//! How fast what was sent is delivered, for the laws that go by that.
//!
//! ```text
//! of the newest segment that an ACK reports:
//! rate = (delivered now - delivered when it was sent) / max(sending time, acknowledging time)             [bytes/s]
//! sending time:        from the sending of the segment whose delivery was newest then, to its own
//! acknowledging time:  from that delivery to now
//! ```
//!
//! A sample is limited by the application when the sender had run out of data before it was sent. Bytes count as delivered when a
//! cumulative acknowledgment or a block reports them, and one segment per duplicate without blocks.
//!
//! Source: draft-cheng-iccrg-delivery-rate-estimation-00 (Linux `tcp_rate.c`). Ours: a repair that is reported gives no sample, as
//! its first sending may have been what arrived.

use std::collections::VecDeque;

use lasthop_core::units::{Span, Time};

use super::{Phase, Sender};
use crate::cc::Sample;
use crate::segment::{Ack, Segment};

/// What was so when a segment was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    offset: u64,
    bytes: u32,
    sent_at: Time,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    app_limited: bool,
    again: bool,
    /// Reported by a block.
    done: bool,
}

#[derive(Debug, Default)]
pub(super) struct Delivery {
    sent: VecDeque<Sent>,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    /// Samples of what is sent before so much is delivered are the application's; 0: none.
    app_limited_until: u64,
    /// Counted by duplicates without blocks and not yet acknowledged, bytes.
    duplicated: u64,
}

impl Delivery {
    pub(super) fn on_sent(&mut self, now: Time, segment: &Segment, outstanding: bool) {
        if !outstanding {
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        let sent = Sent {
            offset: segment.offset,
            bytes: segment.bytes,
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited_until > self.delivered,
            again: segment.again,
            done: false,
        };
        let at = self.sent.partition_point(|other| other.offset < segment.offset);
        match self.sent.get_mut(at).filter(|other| other.offset == segment.offset) {
            Some(other) => *other = Sent { done: other.done, again: true, ..sent },
            None => self.sent.push_back(sent),
        }
    }

    /// Nothing more to send, although there is room; `inflight` bytes are in flight.
    pub(super) fn on_limited(&mut self, inflight: u64) {
        self.app_limited_until = (self.delivered + inflight).max(1);
    }

    /// What `ack` reports for the first time. `duplicate`: it advances nothing, and the receiver reports no blocks.
    fn on_ack(&mut self, now: Time, ack: &Ack, duplicate: Option<u64>) -> Sample {
        let before = self.delivered;
        let mut newest: Option<Sent> = None;
        let mut note = |sent: &Sent| {
            if !sent.again
                && newest.is_none_or(|newest| (sent.delivered, sent.sent_at) >= (newest.delivered, newest.sent_at))
            {
                newest = Some(*sent);
            }
        };
        let mut arrived = 0;
        while let Some(first) = self.sent.front().copied().filter(|first| first.offset < ack.offset) {
            let end = first.offset + u64::from(first.bytes);
            let bytes = end.min(ack.offset) - first.offset;
            arrived += if first.done { 0 } else { bytes };
            if !first.done {
                note(&first);
            }
            self.sent.pop_front();
            if end > ack.offset {
                let rest = Sent { offset: ack.offset, bytes: (end - ack.offset) as u32, ..first };
                self.sent.push_front(rest);
            }
        }
        for &(start, end) in ack.sack.as_slice() {
            let from = self.sent.partition_point(|sent| sent.offset < start);
            let inside = |sent: &Sent| sent.offset + u64::from(sent.bytes) <= end;
            for sent in self.sent.range_mut(from..).take_while(|sent| inside(sent)).filter(|sent| !sent.done) {
                sent.done = true;
                arrived += u64::from(sent.bytes);
                note(sent);
            }
        }
        let counted = self.duplicated.min(arrived.saturating_sub(1));
        self.duplicated -= counted;
        let one = duplicate.unwrap_or(0);
        self.duplicated += one;
        self.delivered += arrived - counted + one;
        let mut sample = Sample { now, delivered: self.delivered, newly: self.delivered - before, ..Sample::default() };
        if sample.newly > 0 {
            self.delivered_at = now;
        }
        if self.app_limited_until > 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        if let Some(newest) = newest {
            self.measure(&newest, &mut sample);
        }
        sample
    }

    fn measure(&mut self, newest: &Sent, sample: &mut Sample) {
        self.first_sent_at = newest.sent_at;
        let sending = newest.sent_at.since(newest.first_sent_at);
        let acknowledging = self.delivered_at.since(newest.delivered_at);
        let interval = sending.max(acknowledging);
        let rtt = sample.now.since(newest.sent_at);
        sample.prior = Some(newest.delivered);
        sample.rtt = Some(rtt);
        sample.app_limited = newest.app_limited;
        if interval > Span::ZERO {
            sample.rate = Some((self.delivered - newest.delivered) as f64 / interval.as_secs_f64());
        }
    }
}

impl Sender {
    /// Tells a law that goes by delivery; `advanced`: the acknowledgment acknowledged something new.
    #[inline(never)]
    pub(super) fn sample_delivery(&mut self, now: Time, ack: &Ack, advanced: bool) {
        let Some(delivery) = &mut self.delivery else { return };
        let duplicate = !advanced && !self.sacking && self.next > self.una;
        let mss = u64::from(self.params.mss);
        // Not more than what is outstanding, whatever comes twice.
        let room = (self.next - self.una).saturating_sub(delivery.duplicated);
        let sample = delivery.on_ack(now, ack, duplicate.then_some(mss.min(room)));
        if sample.newly == 0 && sample.prior.is_none() {
            return;
        }
        let inflight = self.flight.pipe().saturating_sub(if self.sacking { 0 } else { delivery.duplicated });
        let recovering = self.phase != Phase::Open;
        let sample = Sample { inflight, recovering, mss: f64::from(self.params.mss), ..sample };
        self.control.on_sample(&mut self.window, &sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::SackBlocks;

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    fn send(delivery: &mut Delivery, at: u64, number: u64) {
        let segment = Segment { offset: number * 1000, bytes: 1000, syn: false, fin: false, again: false };
        delivery.on_sent(ms(at), &segment, number > 0);
    }

    fn ack(number: u64) -> Ack {
        Ack { offset: number * 1000, ..Ack::default() }
    }

    /// Sent at 0, 0, 10, 20 ms, acknowledged at 100, 110, 120 and 130 ms. The second: 2000 B since its sending, sent within 0 ms
    /// and acknowledged within 110. The third: sent 10 ms after the one whose delivery was newest, none, so 10 ms after the
    /// first; 3000 B in 120 ms.
    #[test]
    fn rates_by_hand() {
        let mut delivery = Delivery::default();
        [(0, 0), (0, 1), (10, 2), (20, 3)].into_iter().for_each(|(at, number)| send(&mut delivery, at, number));
        let rates: Vec<f64> = [(100, 1), (110, 2), (120, 3), (130, 4)]
            .into_iter()
            .map(|(at, number)| delivery.on_ack(ms(at), &ack(number), None).rate.unwrap_or(0.0))
            .collect();
        for (found, expected) in rates.iter().zip([1000.0 / 0.1, 2000.0 / 0.11, 3000.0 / 0.12, 4000.0 / 0.13]) {
            assert!((found - expected).abs() < 1e-6, "{rates:?}");
        }
        // What is sent at 100 ms saw 1000 B delivered; after 5000 at 200 ms: 4000 B in 100 ms.
        let mut delivery = Delivery::default();
        [(0, 0), (25, 1), (50, 2), (75, 3)].into_iter().for_each(|(at, number)| send(&mut delivery, at, number));
        delivery.on_ack(ms(100), &ack(1), None);
        send(&mut delivery, 100, 4);
        [(125, 2), (150, 3), (175, 4)].into_iter().for_each(|(at, number)| {
            delivery.on_ack(ms(at), &ack(number), None);
        });
        let sample = delivery.on_ack(ms(200), &ack(5), None);
        assert_eq!((sample.rate, sample.prior, sample.rtt), (Some(40_000.0), Some(1000), Some(Span::from_millis(100))));
    }

    #[test]
    fn every_byte_is_delivered_once_whoever_reports_it() {
        let mut delivery = Delivery::default();
        (0..10).for_each(|number| send(&mut delivery, 0, number));
        let mut blocks = SackBlocks::default();
        blocks.push(2000, 4000);
        let sacked = Ack { sack: blocks, ..ack(1) };
        assert_eq!(delivery.on_ack(ms(100), &sacked, None).newly, 3000);
        assert_eq!(delivery.on_ack(ms(101), &sacked, None).newly, 0);
        assert_eq!(delivery.on_ack(ms(102), &ack(4), None).newly, 1000);
        // Two duplicates without blocks, then the hole is filled: three in all.
        assert_eq!(delivery.on_ack(ms(103), &ack(4), Some(1000)).newly, 1000);
        assert_eq!(delivery.on_ack(ms(104), &ack(4), Some(1000)).newly, 1000);
        let sample = delivery.on_ack(ms(105), &ack(7), None);
        assert_eq!((sample.newly, sample.delivered), (1000, 7000));
    }

    #[test]
    fn what_the_application_held_back_is_marked() {
        let mut delivery = Delivery::default();
        send(&mut delivery, 0, 0);
        delivery.on_limited(1000);
        send(&mut delivery, 50, 1);
        assert!(!delivery.on_ack(ms(100), &ack(1), None).app_limited, "sent before");
        assert!(delivery.on_ack(ms(150), &ack(2), None).app_limited);
        send(&mut delivery, 150, 2);
        assert!(!delivery.on_ack(ms(250), &ack(3), None).app_limited, "what was held back has been delivered");
    }
}

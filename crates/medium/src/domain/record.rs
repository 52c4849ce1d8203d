//! What a capture shows of one attempt.

use lasthop_core::packet::Packet;
use lasthop_core::units::{Span, Time};

use super::Domain;
use super::exchange::{Fate, Frames};
use crate::attempt::{Attempt, AttemptFate, Frame};
use crate::medium::NodeId;
use crate::phy::Rate;

impl<P: Packet + Copy> Domain<P> {
    /// Notes an attempt that starts at `at`; without a fate it collides.
    #[cold]
    pub(super) fn record(&mut self, at: Time, sender: u16, frames: Frames, fate: Option<Fate>) {
        let Some(service) = &self.nodes[usize::from(sender)].service else { return };
        let station = if sender == 0 { service.to.0 } else { sender };
        let times = self.rates.get(self.nodes[usize::from(station)].times);
        let sifs = self.waits.sifs;
        let control = |start: Time, duration: Span| Frame { start, duration, rate: times.control };
        let sends_data = !frames.rts || !matches!(fate, None | Some(Fate::RtsLost | Fate::CtsLost));
        let answers_rts = frames.rts && !matches!(fate, None | Some(Fate::RtsLost));
        let answers_data = matches!(fate, Some(Fate::Acked | Fate::AckLost));
        let start = frames.data_start(times, &self.waits, at);
        let protects = sends_data && times.protection > Span::ZERO;
        let cts_to_self = Frame { start, duration: times.protection - sifs, rate: self.phy.control(Rate::DSSS_11) };
        let data =
            Frame { start: start + times.protection, duration: frames.data - times.protection, rate: times.rate };
        self.attempts.push_back(Attempt {
            from: NodeId(sender),
            to: service.to,
            is_retry: service.attempts > 1,
            rts: frames.rts.then(|| control(at, times.rts)),
            cts: answers_rts.then(|| control(at + times.rts + sifs, times.answer)),
            cts_to_self: protects.then_some(cts_to_self),
            data: sends_data.then_some(data),
            ack: answers_data.then(|| control(data.end() + sifs, times.answer)),
            fate: match fate {
                None => AttemptFate::Collided,
                Some(Fate::Acked) => AttemptFate::Acked,
                Some(Fate::AckLost) => AttemptFate::AckLost,
                Some(Fate::CtsLost) => AttemptFate::CtsLost,
                Some(Fate::DataLost | Fate::RtsLost) => AttemptFate::Lost,
            },
            packet: service.packet,
            ip_bytes: service.bytes,
            class: None,
            aggregate: None,
        });
    }
}

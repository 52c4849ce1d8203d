//! What a capture shows of one exchange: an attempt for every packet of it. Block ack requests are not shown.

use lasthop_core::packet::{AccessCategory, Packet};
use lasthop_core::units::{Span, Time};

use super::Edca;
use super::exchange::Fate;
use super::window::RECEIVED;
use crate::attempt::{Attempt, AttemptFate, Frame, InAggregate};
use crate::medium::NodeId;
use crate::phy::Rate;

impl<P: Packet + Copy> Edca<P> {
    /// Notes an exchange that starts at `at`; without a fate it collides.
    #[cold]
    pub(super) fn record(&mut self, at: Time, number: u16, fate: Option<Fate>) {
        let access = &self.accesses[usize::from(number)];
        let (flight, at_window) = (access.flight, access.window);
        if flight.is_request {
            return;
        }
        let (from, to) = (NodeId(number / 4), self.windows[at_window].to);
        let frames = flight.frames;
        let times = &self.times[usize::from(frames.times)];
        let sifs = self.waits.sifs;
        let control = |start: Time, duration: Span| Frame { start, duration, rate: times.control };
        let answers_rts = frames.rts && !matches!(fate, None | Some(Fate::RtsLost));
        let is_answered = matches!(fate, Some(Fate::Answered | Fate::AnswerLost));
        let start = at + frames.before_data(times, sifs);
        let protects = flight.has_data && times.protection > Span::ZERO;
        let cts_to_self =
            Frame { start, duration: times.protection.saturating_sub(sifs), rate: self.phy.control(Rate::DSSS_11) };
        let data =
            Frame { start: start + times.protection, duration: frames.data - times.protection, rate: times.rate };
        let (rts, cts) = (control(at, times.rts), control(at + times.rts + sifs, times.ack));
        let answer = control(data.end() + sifs, frames.answer);
        let class =
            self.radios[usize::from(from.0.max(to.0))].qos.then(|| AccessCategory::ALL[usize::from(number % 4)]);
        // Without its data an exchange is an attempt at its first packet.
        let packets = if flight.has_data { flight.aggregate.packets } else { 1 };
        self.aggregates = self.aggregates.wrapping_add(u32::from(packets > 1));
        let (aggregate, attempts) = (self.aggregates, &mut self.attempts);
        let mut index = 0;
        self.windows[at_window].mpdus(&flight.aggregate, |slot, is_retry| {
            if index == packets {
                return;
            }
            let (is_first, is_last) = (index == 0, index + 1 == packets);
            let arrived = flight.whole || slot.state & RECEIVED != 0;
            attempts.push_back(Attempt {
                from,
                to,
                is_retry,
                rts: (frames.rts && is_first).then_some(rts),
                cts: (answers_rts && is_first).then_some(cts),
                cts_to_self: (protects && is_first).then_some(cts_to_self),
                data: flight.has_data.then_some(data),
                ack: (is_answered && is_last).then_some(answer),
                fate: match fate {
                    None => AttemptFate::Collided,
                    Some(Fate::Answered) if arrived => AttemptFate::Acked,
                    Some(Fate::AnswerLost) if arrived => AttemptFate::AckLost,
                    Some(Fate::CtsLost) => AttemptFate::CtsLost,
                    Some(_) => AttemptFate::Lost,
                },
                packet: slot.packet,
                ip_bytes: slot.bytes,
                class,
                aggregate: (packets > 1).then_some(InAggregate { number: aggregate, index, mpdus: packets }),
            });
            index += 1;
        });
    }
}

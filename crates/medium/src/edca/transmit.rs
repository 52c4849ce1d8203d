//! What a start of transmission leads to: an exchange, or a collision; before both, collisions within a node.

use lasthop_core::packet::{AccessCategory, Packet};
use lasthop_core::units::{Span, Time};

use super::Edca;
use super::access::{Flight, Link, State};
use super::contention::Own;
use super::exchange::{Fate, Frames};
use super::times::DELIMITER_BYTES;
use super::window::{Aggregate, Room};
use crate::domain::agenda::Step;
use crate::medium::NodeId;
use crate::params::AfterCollision;
use crate::phy::Timing;

impl<P: Packet + Copy> Edca<P> {
    /// Everybody whose backoff ends at `at` sends, one class of each node.
    pub(super) fn transmit(&mut self, at: Time) {
        let mut senders = std::mem::take(&mut self.senders);
        self.contention.begin(at, &mut senders);
        if let [sender] = senders[..] {
            self.alone(at, sender, true);
        } else {
            self.several(at, &mut senders);
        }
        self.senders = senders;
    }

    #[inline(never)]
    fn several(&mut self, at: Time, senders: &mut Vec<u16>) {
        let mut losers = std::mem::take(&mut self.losers);
        losers.clear();
        // Sorted: the classes of a node lie together, the highest one first.
        senders.dedup_by(|next, first| {
            let same = *next / 4 == *first / 4;
            if same {
                losers.push(*next);
            }
            same
        });
        for loser in &losers {
            self.collide_within(*loser);
        }
        self.losers = losers;
        match senders[..] {
            [sender] => self.alone(at, sender, true),
            _ => self.collide(at, senders),
        }
    }

    /// A class of higher priority of the same node goes first.
    fn collide_within(&mut self, number: u16) {
        let window = self.choose(number);
        let access = &mut self.accesses[usize::from(number)];
        access.stats.internal_collisions += 1;
        access.double_window();
        self.windows[window].fail_first();
        let slots = access.random_slots();
        self.contention.draw(number, slots, true);
    }

    /// Which window a class serves next.
    #[inline]
    pub(super) fn choose(&mut self, number: u16) -> usize {
        if number >= 4 {
            return self.accesses[usize::from(number)].window;
        }
        let (_, station) = self.ready[usize::from(number)].first().expect("who contends has a packet");
        let class = AccessCategory::ALL[usize::from(number)];
        let window = self.window_at(NodeId::ACCESS_POINT, NodeId(station), class);
        self.accesses[usize::from(number)].window = window;
        window
    }

    /// How much the next frame of a class may hold. Within a TXOP it has to end, with its answer, before that does.
    #[inline]
    fn room(&self, at: Time, number: u16, to: NodeId) -> Room {
        let access = &self.accesses[usize::from(number)];
        let link = &self.links[Self::link_of(NodeId(number / 4), to)];
        let mut room = match link.ampdu {
            Some(ampdu) if access.class.aggregates => Room { bytes: link.most_bytes, mpdus: ampdu.packets.max(1) },
            _ => Room { bytes: link.longest_bytes, mpdus: 1 },
        };
        if access.class.txop_limit > Span::ZERO {
            let times = &self.times[usize::from(link.times)];
            let around = times.protection + self.waits.sifs + times.block_ack(link.window(&access.class));
            let left = access.txop_end.since(at).saturating_sub(around);
            room.bytes = room.bytes.min(times.bytes_within(left));
        }
        room
    }

    /// Makes the frames of a class's next exchange. `opens`: the first of its TXOP, which an RTS may announce.
    #[inline]
    fn prepare(&mut self, at: Time, number: u16, opens: bool) -> Frames {
        let window = self.choose(number);
        let to = self.windows[window].to;
        let link_at = Self::link_of(NodeId(number / 4), to);
        let mut wants = (false, false);
        if self.adapts[link_at].is_some() {
            self.adapt(at, window, link_at);
            wants = self.progress[window].wants();
        }
        let times_at = self.links[link_at].times;
        let mut room = self.room(at, number, to);
        if wants.0 {
            room.mpdus = 1;
        }
        let access = &self.accesses[usize::from(number)];
        if access.managed
            && access.limit == 0
            && self.linux.as_ref().is_none_or(|linux| number >= 4 || linux.pulls(&self.params))
        {
            self.pull(at, number, to, room);
        }
        let times = &self.times[usize::from(times_at)];
        let access = &mut self.accesses[usize::from(number)];
        access.state = State::Sends;
        access.stats.attempts += 1;
        let window = &mut self.windows[window];
        let mut flight = Flight::default();
        let block_ack = times.block_ack(window.window());
        if window.asks {
            let data = times.request;
            flight.frames = Frames { data, answer: block_ack, rts: false, times: times_at };
            flight.is_request = true;
        } else {
            let aggregate = window.compose(room);
            flight.by_block_ack = aggregate.mpdus > 1;
            let rts = opens
                && (wants.1
                    || aggregate.bytes > self.params.rts_threshold
                    || (flight.by_block_ack && self.params.rts_for_aggregates));
            let answer = if flight.by_block_ack { block_ack } else { times.ack };
            flight.frames = Frames { data: times.data(aggregate.bytes), answer, rts, times: times_at };
            flight.aggregate = aggregate;
        }
        access.flight = flight;
        flight.frames
    }

    /// One sender. `opens`: it has won the channel, and does not go on with what it has won.
    #[inline]
    pub(super) fn alone(&mut self, at: Time, number: u16, opens: bool) {
        if opens {
            let access = &mut self.accesses[usize::from(number)];
            access.txop_end = at + access.class.txop_limit;
        }
        let frames = self.prepare(at, number, opens);
        let fate = self.draw_fate(number);
        let outcome = frames.outcome(&self.times[usize::from(frames.times)], &self.waits, at, fate);
        let cost = outcome.busy_until.since(at);
        self.count_sent(at, number, matches!(fate, Fate::Answered | Fate::DataLost | Fate::AnswerLost), cost);
        if self.recording {
            self.record(at, number, Some(fate));
        }
        let to = self.windows[self.accesses[usize::from(number)].window].to;
        if matches!(fate, Fate::Answered | Fate::AnswerLost) {
            self.agenda.push(Step::deliver(outcome.data_end, number, outcome.settled, fate == Fate::Answered));
        } else {
            self.expect_settled(outcome.settled, number, false);
        }
        let base = outcome.busy_until + self.waits.sifs;
        if fate == Fate::Answered {
            return self.contention.resume(outcome.busy_until, base, Time::ZERO, &[]);
        }
        let own = [
            Own { node: number / 4, base: outcome.sender, deaf_until: outcome.settled },
            Own { node: to.0, base: outcome.receiver, deaf_until: Time::ZERO },
        ];
        self.contention.resume(outcome.busy_until, base, outcome.nav, &own);
    }

    /// Several nodes at once.
    #[inline(never)]
    fn collide(&mut self, at: Time, senders: &[u16]) {
        let mut own = std::mem::take(&mut self.own);
        own.clear();
        let mut frames_end = at;
        for number in senders {
            let access = &mut self.accesses[usize::from(*number)];
            access.txop_end = at + access.class.txop_limit;
            access.stats.collisions += 1;
            let frames = self.prepare(at, *number, true);
            let first = frames.first(&self.times[usize::from(frames.times)]);
            frames_end = frames_end.max(at + first);
            self.count_sent(at, *number, !frames.rts, first);
            let stats = &mut self.radios[usize::from(*number / 4)].stats;
            let access = &self.accesses[usize::from(*number)];
            stats.collisions += if access.flight.has_data { u64::from(access.flight.aggregate.mpdus) } else { 1 };
        }
        let sifs = self.waits.sifs;
        let (survivor, busy_until, base) = if self.phy.timing == Timing::Ns3 {
            self.lock(at, senders, frames_end)
        } else {
            (None, frames_end, frames_end + self.waits.undecoded)
        };
        for number in senders.iter().rev().filter(|number| Some(**number) != survivor) {
            let frames = self.accesses[usize::from(*number)].flight.frames;
            let times = &self.times[usize::from(frames.times)];
            let settled = at + frames.first(times) + times.answer_timeout;
            self.expect_settled(settled, *number, false);
            let (base, deaf_until) = match self.params.after_collision {
                AfterCollision::Standard => (settled.max(busy_until) + sifs, settled),
                AfterCollision::Eifs => (base.max(settled), settled - sifs),
            };
            own.push(Own { node: *number / 4, base, deaf_until });
        }
        if self.recording {
            senders.iter().for_each(|number| self.record(at, *number, None));
        }
        self.contention.resume(busy_until, base, Time::ZERO, &own);
        self.own = own;
    }

    /// ns-3's receivers lock on one of the frames of a collision, which one is drawn here, for all of them alike. An error is
    /// noticed when that frame ends, and EIFS counts from there; of an aggregate that goes on when all others have ended the
    /// MPDUs behind their end arrive. The survivor, until when the medium is busy, the base of those who did not send.
    fn lock(&mut self, at: Time, senders: &[u16], frames_end: Time) -> (Option<u16>, Time, Time) {
        let locked = senders[self.channel.below(senders.len() as u64) as usize];
        let end_of = |number: u16| {
            let frames = self.accesses[usize::from(number)].flight.frames;
            at + frames.first(&self.times[usize::from(frames.times)])
        };
        let end = end_of(locked);
        let others_end = senders.iter().filter(|number| **number != locked).map(|n| end_of(*n)).max().unwrap_or(at);
        let sifs = self.waits.sifs;
        // Who sends hears nothing.
        let to = self.windows[self.accesses[usize::from(locked)].window].to.0;
        let is_deaf = senders.iter().any(|number| number / 4 == to);
        if end > others_end && !is_deaf && self.survive(locked, others_end.since(at)) {
            let answer = self.accesses[usize::from(locked)].flight.frames.answer;
            let settled = end + sifs + answer;
            self.agenda.push(Step::deliver(end, locked, settled, true));
            return (Some(locked), settled, settled + sifs);
        }
        (None, frames_end, (end + self.waits.undecoded).max(frames_end + sifs))
    }

    /// What of a frame arrives whose first part, so long, collided; whether anything does.
    fn survive(&mut self, number: u16, collided: Span) -> bool {
        let access = &mut self.accesses[usize::from(number)];
        let to = self.windows[access.window].to;
        if !access.flight.has_data {
            return false;
        }
        let times = &self.times[usize::from(access.flight.frames.times)];
        let destroyed = times.bytes_within(collided.saturating_sub(times.protection));
        let hazard = self.links[Self::link_of(NodeId(number / 4), to)].hazard;
        let (losses, mut offset) = (&mut self.losses[access.window], 0);
        let (arrived, mpdus) = self.windows[access.window].receive(&access.flight.aggregate, |bytes| {
            let start = offset;
            offset += (bytes + DELIMITER_BYTES).next_multiple_of(4);
            start < destroyed || (hazard > 0.0 && losses.lose(hazard))
        });
        access.flight.arrived = arrived;
        mpdus > 0
    }

    /// Counts a frame that goes on the air, with data or only the RTS before it.
    #[inline]
    fn count_sent(&mut self, at: Time, number: u16, has_data: bool, cost: Span) {
        let access = &mut self.accesses[usize::from(number)];
        let flight = &mut access.flight;
        let has_data = has_data && !flight.is_request;
        (flight.has_data, flight.cost) = (has_data, cost);
        let Aggregate { mpdus, fresh, .. } = flight.aggregate;
        let radio = &mut self.radios[usize::from(number / 4)];
        radio.stats.airtime += cost;
        access.stats.airtime += cost;
        if !has_data {
            access.stats.bars += u64::from(flight.is_request);
            radio.stats.attempts += u64::from(!flight.is_request);
            radio.stats.retries += u64::from(fresh < mpdus && !flight.is_request);
            return;
        }
        let retries = u64::from(mpdus - fresh);
        access.stats.mpdus += u64::from(mpdus);
        access.stats.retries += retries;
        radio.stats.attempts += u64::from(mpdus);
        radio.stats.frames += u64::from(fresh);
        radio.stats.retries += retries;
        let (metrics, waiting) = (&mut radio.metrics, &mut radio.waiting);
        self.windows[access.window].mark_sent(&flight.aggregate, |arrived, bytes, packets| {
            *waiting -= packets as usize;
            metrics.on_dequeue_all(at, arrived, bytes, packets);
        });
    }

    /// Draws what of an exchange arrives.
    #[inline]
    fn draw_fate(&mut self, number: u16) -> Fate {
        let from = NodeId(number / 4);
        let access = &mut self.accesses[usize::from(number)];
        let to = self.windows[access.window].to;
        let (there, back) = (self.links[Self::link_of(from, to)], self.links[Self::link_of(to, from)]);
        let lossless = there.hazard == 0.0 && there.byte_hazard == 0.0;
        if lossless && there.loss == 0.0 && back.loss == 0.0 && self.windows[access.window].is_plain() {
            access.flight.whole = !access.flight.is_request;
            access.flight.arrived = access.flight.aggregate.packets;
            access.flight.acked = access.flight.aggregate.mpdus;
            return Fate::Answered;
        }
        self.draw_losses(number, &there, back.loss)
    }

    #[inline(never)]
    fn draw_losses(&mut self, number: u16, link: &Link, back: f64) -> Fate {
        let Link { loss: there, hazard, byte_hazard, .. } = *link;
        let access = &mut self.accesses[usize::from(number)];
        let (flight, window) = (&mut access.flight, access.window);
        let channel = &mut self.channel;
        let mut lost = |probability: f64| probability > 0.0 && channel.chance(probability);
        if flight.frames.rts {
            if lost(there) {
                return Fate::RtsLost;
            }
            if lost(back) {
                return Fate::CtsLost;
            }
        }
        if lost(there) {
            return Fate::DataLost;
        }
        if !flight.is_request {
            let losses = &mut self.losses[window];
            let (arrived, mpdus) = self.windows[window].receive(&flight.aggregate, |bytes| {
                let hazard = hazard + byte_hazard * f64::from(bytes);
                hazard > 0.0 && losses.lose(hazard)
            });
            (flight.arrived, flight.acked) = (arrived, mpdus);
            if mpdus == 0 {
                return Fate::DataLost;
            }
        }
        if lost(back) { Fate::AnswerLost } else { Fate::Answered }
    }
}

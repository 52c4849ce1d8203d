//! What a start of transmission leads to: an exchange, or a collision.

use lasthop_core::aqm::Queue;
use lasthop_core::packet::Packet;
use lasthop_core::units::{Span, Time};

use super::Domain;
use super::agenda::{Certain, Step};
use super::exchange::{Fate, Frames, Outcome};
use crate::contention::Own;
use crate::medium::NodeId;
use crate::node::{Addressed, Service};
use crate::params::AfterCollision;
use crate::propagation::{self, Loss};

/// What those wait who neither send nor receive.
struct Resumes {
    busy_until: Time,
    /// From when they count slots.
    start: Time,
    nav: Time,
}

impl<P: Packet + Copy> Domain<P> {
    /// Everybody whose backoff ends at `at` sends.
    #[inline]
    pub(super) fn transmit(&mut self, at: Time) {
        match self.contention.begin(at, &mut self.senders) {
            Some(sender) => self.alone(at, sender),
            None => self.collide(at),
        }
    }

    /// One sender.
    #[inline(always)]
    fn alone(&mut self, at: Time, sender: u16) {
        let frames = self.attempt(sender);
        let fate = self.draw_fate(sender, frames, false);
        // What follows a frame is known early only where the queue is a plain one.
        if fate != Fate::Acked || !self.agenda.is_empty() || !self.nodes[usize::from(sender)].queue.is_plain() {
            return self.exchange(at, sender, fate);
        }
        if self.recording {
            self.record(at, sender, frames, Some(fate));
        }
        let outcome = frames.outcome(self.rates.get(frames.times), &self.waits, at, Fate::Acked);
        self.nodes[usize::from(sender)].stats.airtime += outcome.busy_until.since(at);
        let at_receiver = outcome.busy_until - self.rates.get(frames.times).answer - self.waits.sifs;
        self.certain = Certain { at: at_receiver, settled: outcome.settled, node: sender, delivered: false };
        self.resume(sender, &outcome, Fate::Acked, at);
        self.draw_ahead(sender);
    }

    /// After an exchange that began at `at`, everybody counts slots again.
    #[inline(always)]
    fn resume(&mut self, sender: u16, outcome: &Outcome, fate: Fate, at: Time) {
        let start = outcome.busy_until + self.waits.difs;
        if fate == Fate::Acked && self.contention.is_common(start, outcome.nav) {
            self.contention.resume_together(start, outcome.nav);
        } else {
            let own = self.apart(sender, outcome, fate, at);
            self.contention.resume(start, outcome.nav, &own);
        }
    }

    /// An exchange in which something is lost, or while colliders still wait. Apart from the rest, and reckoning the frames once more, so that what
    /// happens nearly always stays in registers.
    #[inline(never)]
    fn exchange(&mut self, at: Time, sender: u16, fate: Fate) {
        let frames = self.frames(sender);
        if self.recording {
            self.record(at, sender, frames, Some(fate));
        }
        let outcome = frames.outcome(self.rates.get(frames.times), &self.waits, at, fate);
        self.nodes[usize::from(sender)].stats.airtime += outcome.busy_until.since(at);
        self.expect(sender, &outcome, fate);
        self.resume(sender, &outcome, fate, at);
    }

    /// Several senders.
    #[inline(never)]
    fn collide(&mut self, at: Time) {
        let senders = std::mem::take(&mut self.senders);
        let mut own = std::mem::take(&mut self.own);
        own.clear();
        let survivor = self.captured(&senders);
        // How many frames end last: one that ends alone hides the others from its sender.
        let (mut frames_end, mut last) = (at, 0);
        // From the last one on, so that steps of one nanosecond come in order without being sorted.
        for sender in senders.iter().rev() {
            let frames = self.attempt(*sender);
            let times = self.rates.get(frames.times);
            let end = at + frames.first(times);
            let stats = &mut self.nodes[usize::from(*sender)].stats;
            stats.collisions += 1;
            stats.airtime += frames.first(times);
            last = if end == frames_end { last + 1 } else { last };
            (frames_end, last) = if end > frames_end { (end, 1) } else { (frames_end, last) };
            if Some(*sender) != survivor {
                let settled = end + times.answer_timeout;
                self.expect_settled(settled, *sender, false);
                own.push(Own { node: *sender, start: settled, deaf_until: end });
            }
        }
        let colliders = own.len();
        let resumes = match survivor {
            Some(survivor) => self.survive(at, survivor, frames_end, &mut own),
            None => Resumes { busy_until: frames_end, nav: Time::ZERO, start: frames_end + self.waits.eifs },
        };
        let Resumes { busy_until, start, nav } = resumes;
        let difs = self.waits.difs;
        for own in &mut own[..colliders] {
            let (settled, end) = (own.start, own.deaf_until);
            let hears_another = end < frames_end || last > 1;
            let timed_out = settled.max(busy_until) + difs;
            (own.start, own.deaf_until) = match self.params.after_collision {
                // Frames of one length end later at their hearers, by the way through the air: ns-2 models that.
                AfterCollision::Standard if self.waits.is_ns2 && hears_another => {
                    let undecoded = frames_end + self.waits.eifs;
                    (timed_out.max(undecoded), settled.max(undecoded - difs))
                }
                AfterCollision::Standard => (timed_out, settled),
                AfterCollision::Eifs => (start.max(settled), settled - difs),
            };
        }
        if self.recording {
            for sender in senders.iter().filter(|sender| Some(**sender) != survivor) {
                self.record(at, *sender, self.frames(*sender), None);
            }
        }
        self.contention.resume(start, nav, &own);
        (self.senders, self.own) = (senders, own);
    }

    /// One frame of a collision is decoded by its receiver all the same.
    fn survive(&mut self, at: Time, sender: u16, frames_end: Time, own: &mut Vec<Own>) -> Resumes {
        let frames = self.frames(sender);
        let fate = self.draw_fate(sender, frames, true);
        if self.recording {
            self.record(at, sender, frames, Some(fate));
        }
        let outcome = frames.outcome(self.rates.get(frames.times), &self.waits, at, fate);
        self.nodes[usize::from(sender)].stats.airtime +=
            outcome.busy_until.since(at + frames.first(self.rates.get(frames.times)));
        self.expect(sender, &outcome, fate);
        let difs = self.waits.difs;
        let mut resumes = Resumes { busy_until: frames_end, nav: Time::ZERO, start: frames_end + self.waits.eifs };
        if outcome.busy_until > frames_end {
            let Outcome { busy_until, nav, .. } = outcome;
            // Overhearers decode the answer, which ends their EIFS; ns-2 keeps it as a NAV.
            let undecoded = if self.waits.is_ns2 { resumes.start } else { Time::ZERO };
            resumes = Resumes { busy_until, nav, start: undecoded.max(busy_until + difs) };
        }
        own.extend(self.apart(sender, &outcome, fate, resumes.busy_until + difs));
        resumes
    }

    /// Sender and receiver of an exchange count slots from their own times, not before `earliest`.
    fn apart(&self, sender: u16, outcome: &Outcome, fate: Fate, earliest: Time) -> [Own; 2] {
        let deaf_until = if fate == Fate::Acked { Time::ZERO } else { outcome.settled };
        let receiver = self.receiver(sender);
        [
            Own { node: sender, start: outcome.sender.max(earliest), deaf_until },
            Own { node: receiver, start: outcome.receiver.max(earliest), deaf_until: Time::ZERO },
        ]
    }

    /// Counts one attempt of a node's frame.
    #[inline(always)]
    fn attempt(&mut self, sender: u16) -> Frames {
        let node = &mut self.nodes[usize::from(sender)];
        let service = node.service.as_mut().expect("a sender has a frame");
        service.attempts += 1;
        node.stats.attempts += 1;
        let first = service.attempts == 1;
        node.stats.frames += u64::from(first);
        node.stats.retries += u64::from(!first);
        self.frames(sender)
    }

    #[inline(always)]
    fn frames(&self, sender: u16) -> Frames {
        let service = self.nodes[usize::from(sender)].service.as_ref().expect("a sender has a frame");
        self.frames_of(sender, service.to, service.bytes)
    }

    /// The first frame that a contender sends next: of what it has in service, or will have when that is over.
    #[inline]
    pub(super) fn next_first(&self, sender: u16) -> Span {
        let node = &self.nodes[usize::from(sender)];
        let frames = match &node.queue {
            Queue::Fifo(queue) if self.certain.is_of(sender) => match queue.front() {
                Some(next) => self.frames_of(sender, next.to, next.packet.bytes()),
                None => self.frames(sender),
            },
            _ => self.frames(sender),
        };
        frames.first(self.rates.get(frames.times))
    }

    #[inline(always)]
    fn frames_of(&self, sender: u16, to: NodeId, bytes: u32) -> Frames {
        let station = if sender == 0 { to.0 } else { sender };
        let rts = self.phy.frame_bytes(bytes) > self.params.rts_threshold;
        let times = self.nodes[usize::from(station)].times;
        Frames { data: self.rates.get(times).data(bytes), rts, times }
    }

    /// A frame arrived. When the access point has it, what it can see of the air time that took is charged to the flow's
    /// account. It sees the frame that arrived, its ACK, and from the retry bit that there was at least one before it.
    #[cold]
    pub(super) fn charge_received(&mut self, station: u16) {
        let Some(service) = self.nodes[usize::from(station)].service.filter(|_| station != 0) else { return };
        let frames = self.frames(station);
        let exchange = frames.outcome(self.rates.get(frames.times), &self.waits, Time::ZERO, Fate::Acked);
        let cost = exchange.busy_until.since(Time::ZERO);
        let is_retry = service.attempts > 1 && !service.delivered;
        let packet = Addressed { packet: service.packet, to: service.to };
        self.nodes[0].queue.charge_received(&packet, station, cost * (1 + u64::from(is_retry)));
    }

    #[inline]
    pub(super) fn receiver(&self, sender: u16) -> u16 {
        self.nodes[usize::from(sender)].service.as_ref().map_or(0, |s| s.to.0)
    }

    /// Notes when the packet arrives and when its sender knows.
    #[inline]
    fn expect(&mut self, sender: u16, outcome: &Outcome, fate: Fate) {
        let (settled, acked) = (outcome.settled, fate == Fate::Acked);
        match outcome.delivered {
            Some(at) => self.agenda.push(Step::deliver(at, sender, settled, acked)),
            None => self.expect_settled(settled, sender, acked),
        }
    }

    #[inline]
    pub(super) fn expect_settled(&mut self, at: Time, sender: u16, acked: bool) {
        let gives_up = |s: &Service<P>| s.attempts >= self.params.limit(&self.phy, &s.packet);
        let seen = !acked && self.nodes[usize::from(sender)].service.as_ref().is_some_and(gives_up);
        self.agenda.push(Step::settle(at, sender, acked, seen));
    }

    /// Draws which frame of an exchange is lost first; `captured`: the one that contends is known to arrive.
    #[inline(always)]
    fn draw_fate(&mut self, sender: u16, frames: Frames, captured: bool) -> Fate {
        let station = if sender == 0 { self.receiver(sender) } else { sender };
        let node = &self.nodes[usize::from(station)];
        let (up, down) = (node.loss_up, node.loss_down);
        let (there, back) = if sender == 0 { (down, up) } else { (up, down) };
        let mut lost = |probability: f64| probability > 0.0 && self.channel.chance(probability);
        if frames.rts {
            if !captured && lost(there) {
                return Fate::RtsLost;
            }
            if lost(back) {
                return Fate::CtsLost;
            }
        }
        let certain = captured && !frames.rts;
        if !certain && lost(there) {
            return Fate::DataLost;
        }
        if lost(back) { Fate::AckLost } else { Fate::Acked }
    }

    /// The sender whose frame survives a collision at the node it is addressed to.
    ///
    /// A node that sends hears nothing; so when the access point sends, only its own frame can survive.
    fn captured(&mut self, senders: &[u16]) -> Option<u16> {
        let Loss::Shadowing { deviation_db, .. } = self.params.loss else { return None };
        let by_access_point = senders.first() == Some(&0);
        let receiver = if by_access_point { self.receiver(0) } else { 0 };
        if senders.contains(&receiver) {
            return None;
        }
        let mut sum = 0.0;
        let mut strongest: Option<(u16, f64)> = None;
        for sender in senders {
            let metres = self.nodes[usize::from(*sender)].distance_to(&self.nodes[usize::from(receiver)]);
            let mean = self.nodes[usize::from(*sender)].mean_power_at(&self.params, metres);
            let power = self.channel.normal(mean, deviation_db);
            sum += propagation::milliwatts(power);
            let wanted = !by_access_point || *sender == 0;
            if wanted && strongest.is_none_or(|(_, p)| power > p) {
                strongest = Some((*sender, power));
            }
        }
        let (sender, power) = strongest?;
        let rest = sum - propagation::milliwatts(power);
        let radio = &self.params.radio;
        let survives = power >= propagation::dbm(radio.receive_threshold_w)
            && power >= 10.0 * libm::log10(rest) + radio.capture_db;
        survives.then_some(sender)
    }
}

//! What a start of transmission leads to: an exchange, or a collision.

use lasthop_core::packet::Packet;
use lasthop_core::units::Time;

use super::exchange::{Fate, Frames, Outcome};
use super::{Due, Medium, Step};
use crate::contention::Own;
use crate::params::AfterCollision;
use crate::propagation::{self, Loss};

impl<P: Packet> Medium<P> {
    /// Everybody whose backoff ends at `at` sends.
    pub(super) fn transmit(&mut self, at: Time) {
        let mut senders = std::mem::take(&mut self.senders);
        let mut apart = std::mem::take(&mut self.apart);
        senders.clear();
        apart.clear();
        self.contention.begin(at, &mut senders);
        let (start, nav) = match senders[..] {
            [sender] => self.alone(at, sender, &mut apart),
            _ => self.collide(at, &senders, &mut apart),
        };
        self.contention.resume(start, nav, &apart);
        (self.senders, self.apart) = (senders, apart);
    }

    /// One sender; returns the overhearers' start and NAV.
    fn alone(&mut self, at: Time, sender: u16, apart: &mut Vec<Own>) -> (Time, Time) {
        let frames = self.attempt(sender);
        let fate = self.draw_fate(sender, &frames, false);
        let outcome = frames.outcome(&self.phy, at, fate);
        self.nodes[usize::from(sender)].stats.airtime += outcome.busy_until.since(at);
        self.expect(sender, &outcome, fate);
        self.part(sender, &outcome, fate, at, apart);
        (outcome.busy_until + self.phy.difs(), outcome.nav)
    }

    /// Several senders; returns the same.
    fn collide(&mut self, at: Time, senders: &[u16], apart: &mut Vec<Own>) -> (Time, Time) {
        let difs = self.phy.difs();
        let survivor = self.captured(senders);
        let mut frames_end = at;
        for sender in senders {
            let frames = self.attempt(*sender);
            let stats = &mut self.nodes[usize::from(*sender)].stats;
            stats.collisions += 1;
            stats.airtime += frames.first();
            frames_end = frames_end.max(at + frames.first());
        }
        let mut busy_until = frames_end;
        let mut nav = Time::ZERO;
        let mut start = frames_end + self.phy.eifs();
        if let Some(sender) = survivor {
            let frames = self.frames(sender);
            let fate = self.draw_fate(sender, &frames, true);
            let outcome = frames.outcome(&self.phy, at, fate);
            self.nodes[usize::from(sender)].stats.airtime += outcome.busy_until.since(at + frames.first());
            self.expect(sender, &outcome, fate);
            if outcome.busy_until > frames_end {
                // Overhearers decode the answer, which ends their EIFS.
                (busy_until, nav, start) = (outcome.busy_until, outcome.nav, outcome.busy_until + difs);
            }
            self.part(sender, &outcome, fate, busy_until + difs, apart);
        }
        for sender in senders.iter().filter(|s| Some(**s) != survivor) {
            let frames = self.frames(*sender);
            let settled = at + frames.first() + frames.timeout;
            self.steps.push(Step { at: settled, node: *sender, what: Due::Settle { acked: false } });
            let (own, deaf_until) = match self.params.after_collision {
                AfterCollision::Standard if settled < busy_until => (busy_until + difs, self.deaf_until(settled)),
                AfterCollision::Standard => (settled + self.phy.after_timeout(), self.deaf_until(settled)),
                AfterCollision::Eifs => (start.max(settled), settled - difs),
            };
            apart.push(Own { node: *sender, start: own, deaf_until });
        }
        (start, nav)
    }

    /// Sender and receiver of an exchange count slots from their own times, not before `earliest`.
    fn part(&self, sender: u16, outcome: &Outcome, fate: Fate, earliest: Time, apart: &mut Vec<Own>) {
        let deaf_until = if fate == Fate::Acked { Time::ZERO } else { self.deaf_until(outcome.settled) };
        apart.push(Own { node: sender, start: outcome.sender.max(earliest), deaf_until });
        let node = self.receiver(sender);
        apart.push(Own { node, start: outcome.receiver.max(earliest), deaf_until: Time::ZERO });
    }

    /// A sender whose attempt settles then counts slots from `after_timeout` later at the earliest.
    fn deaf_until(&self, settled: Time) -> Time {
        settled + self.phy.after_timeout() - self.phy.difs()
    }

    /// Counts one attempt of a node's frame.
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

    fn frames(&self, sender: u16) -> Frames {
        let service = self.nodes[usize::from(sender)].service.as_ref().expect("a sender has a frame");
        let station = if sender == 0 { service.to.0 } else { sender };
        let rts = self.phy.frame_bytes(service.bytes) > self.params.rts_threshold;
        Frames::of(&self.nodes[usize::from(station)].times, service.bytes, rts)
    }

    fn receiver(&self, sender: u16) -> u16 {
        self.nodes[usize::from(sender)].service.as_ref().map_or(0, |s| s.to.0)
    }

    /// Notes when the packet arrives and when its sender knows.
    fn expect(&mut self, sender: u16, outcome: &Outcome, fate: Fate) {
        if let Some(at) = outcome.delivered {
            self.steps.push(Step { at, node: sender, what: Due::Deliver });
        }
        let acked = fate == Fate::Acked;
        self.steps.push(Step { at: outcome.settled, node: sender, what: Due::Settle { acked } });
    }

    /// Draws which frame of an exchange is lost first; `captured`: the one that contends is known to arrive.
    fn draw_fate(&mut self, sender: u16, frames: &Frames, captured: bool) -> Fate {
        let station = if sender == 0 { self.receiver(sender) } else { sender };
        let node = &self.nodes[usize::from(station)];
        let (up, down) = (node.loss_up, node.loss_down);
        let (there, back) = if sender == 0 { (down, up) } else { (up, down) };
        let mut lost = |probability: f64| probability > 0.0 && self.channel.chance(probability);
        if frames.rts.is_some() {
            if !captured && lost(there) {
                return Fate::RtsLost;
            }
            if lost(back) {
                return Fate::CtsLost;
            }
        }
        let sure = captured && frames.rts.is_none();
        if !sure && lost(there) {
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

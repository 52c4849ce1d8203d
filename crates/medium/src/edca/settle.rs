//! What follows an exchange: packets reach the host, the sender learns, the class goes on.

use lasthop_core::packet::{AccessCategory, Packet};
use lasthop_core::units::Time;

use super::access::State;
use super::window::Slot;
use super::{Cursor, Edca};
use crate::edca_params::MissedBlockAck;
use crate::medium::{DropPlace, Event, NodeId};

impl<P: Packet + Copy> Edca<P> {
    /// A data frame ends: its receiver hands on what is in order.
    #[inline]
    pub(super) fn deliver(&mut self, at: Time, number: u16) {
        let access = &mut self.accesses[usize::from(number)];
        if access.flight.is_request {
            return;
        }
        access.held -= usize::from(access.flight.arrived);
        let window = &mut self.windows[access.window];
        let (next, end) = if access.flight.whole { window.pass_plain(&access.flight.aggregate) } else { window.pass() };
        self.cursor = Cursor { at, from: NodeId(number / 4), window: access.window, next, end, is_last: false };
        if self.counts_air_time && number >= 4 {
            self.charge(number);
        }
    }

    /// A class knows how its frame went.
    #[inline]
    pub(super) fn settle(&mut self, at: Time, number: u16, answered: bool) {
        if self.counts_air_time && number < 4 {
            self.charge(number);
        }
        let access = &mut self.accesses[usize::from(number)];
        let link = Self::link_of(NodeId(number / 4), self.windows[access.window].to);
        if self.adapts[link].is_some() {
            let flight = access.flight;
            self.report(at, number, &flight, answered);
        }
        let access = &mut self.accesses[usize::from(number)];
        if answered && access.flight.whole {
            if number < 4 && self.linux.is_some() {
                self.settle_linux(number);
            }
            let access = &mut self.accesses[usize::from(number)];
            self.windows[access.window].acknowledge_plain(&access.flight.aggregate);
            access.reset_window();
        } else {
            self.settle_losses(at, number, answered);
        }
        self.go_on(at, number, answered);
    }

    #[inline(never)]
    fn settle_losses(&mut self, at: Time, number: u16, answered: bool) {
        let access = &mut self.accesses[usize::from(number)];
        let (flight, at_window, class) = (access.flight, access.window, access.class);
        let window = &mut self.windows[at_window];
        let first = window.first();
        let (params, phy, events) = (&self.params, &self.phy, &mut self.events);
        let plan_of = self.plan_of;
        let limit = |slot: &Slot<P>| match plan_of {
            Some(plan_of) => u32::from(plan_of(&slot.packet).tries()),
            None => class.attempts.unwrap_or_else(|| params.limit(phy, &slot.packet)),
        };
        if flight.is_request {
            window.requests += 1;
            let gives_up = window.front().is_none_or(|slot| u32::from(window.requests) >= limit(slot));
            if answered {
                window.learn();
            }
            if answered || gives_up {
                (window.asks, window.requests) = (false, 0);
            }
        } else {
            let (node, place) = (NodeId(number / 4), DropPlace::Channel);
            let radio = &mut self.radios[usize::from(number / 4)];
            let held = &mut access.held;
            let given_up = window.settle(
                &flight.aggregate,
                answered,
                |slot| u32::from(slot.attempts) >= limit(slot),
                |slot, sent| {
                    *held -= 1;
                    radio.forget(at, slot, sent);
                    events.push_back(Event::Dropped { at, node, place, packet: slot.packet });
                },
            );
            access.stats.given_up += given_up;
            radio.stats.given_up += given_up;
            window.asks =
                !answered && flight.has_data && flight.by_block_ack && params.missed_block_ack == MissedBlockAck::Bar;
        }
        self.release(at, number);
        let window = &mut self.windows[at_window];
        window.asks &= window.has_sent();
        let access = &mut self.accesses[usize::from(number)];
        // The first MPDU is done, one way or the other: what comes next starts anew.
        if answered || window.first() != first { access.reset_window() } else { access.double_window() }
    }

    /// What is given up lets go of what waited behind it.
    fn release(&mut self, at: Time, number: u16) {
        let at_window = self.accesses[usize::from(number)].window;
        let (next, end) = self.windows[at_window].pass();
        self.cursor = Cursor { at, from: NodeId(number / 4), window: at_window, next, end, is_last: false };
        self.hand_on_all();
        self.windows[at_window].shrink();
    }

    /// The class's next frame, if there is one.
    #[inline]
    fn go_on(&mut self, at: Time, number: u16, answered: bool) {
        let (class, at_window) = {
            let access = &self.accesses[usize::from(number)];
            (access.class, access.window)
        };
        if class.lifetime.is_some() {
            self.expire(at, number);
        }
        if number < 4 {
            self.line_up(number, at_window);
        }
        let access = &self.accesses[usize::from(number)];
        if access.managed {
            let all_known = answered && access.flight.whole && class.lifetime.is_none();
            if number < 4 && !all_known {
                self.recount_pending(AccessCategory::ALL[usize::from(number)], at_window);
            }
            if number < 4 {
                self.follow_rate(at_window);
            }
            self.feed(at, number);
        }
        let pending = match number {
            0..4 => self.ready[usize::from(number)].first().is_some(),
            _ => !self.windows[at_window].is_empty(),
        };
        let next = at + self.waits.sifs;
        if answered && pending && self.accesses[usize::from(number)].txop_end > next && self.fits(next, number) {
            self.contention.interrupt(next, &mut self.senders);
            return self.alone(next, number, false);
        }
        let access = &mut self.accesses[usize::from(number)];
        access.state = if pending { State::Contends } else { State::Idle };
        let slots = access.random_slots();
        self.contention.draw(number, slots, pending);
    }

    /// Whether what it sends next, a SIFS after the last answer, ends with its answer while the TXOP lasts.
    #[cold]
    fn fits(&mut self, at: Time, number: u16) -> bool {
        let window = self.choose(number);
        let access = &self.accesses[usize::from(number)];
        let window = &self.windows[window];
        let link = &self.links[Self::link_of(NodeId(number / 4), window.to)];
        let times = &self.times[usize::from(link.times)];
        let data = if window.asks { times.request } else { times.data(window.next_bytes()) };
        at + data + self.waits.sifs + times.block_ack(window.window()) <= access.txop_end
    }

    /// The access point's window has another oldest packet, or none.
    #[inline]
    fn line_up(&mut self, number: u16, at_window: usize) {
        let window = &self.windows[at_window];
        let ready = &mut self.ready[usize::from(number)];
        match window.front() {
            Some(slot) => ready.put(slot.order, window.to.0),
            None => ready.remove(window.to.0),
        }
    }

    /// Drops what is too old in the window that was served.
    #[cold]
    fn expire(&mut self, at: Time, number: u16) {
        let access = &mut self.accesses[usize::from(number)];
        let Some(lifetime) = access.class.lifetime else { return };
        let oldest = Time::from_nanos(at.as_nanos().saturating_sub(lifetime.as_nanos()));
        let (events, node, place) = (&mut self.events, NodeId(number / 4), DropPlace::Channel);
        let (radio, held) = (&mut self.radios[usize::from(number / 4)], &mut access.held);
        let given_up = self.windows[access.window].expire(oldest, |slot, sent| {
            *held -= 1;
            radio.forget(at, slot, sent);
            events.push_back(Event::Dropped { at, node, place, packet: slot.packet });
        });
        if given_up == 0 {
            return;
        }
        access.stats.given_up += given_up;
        radio.stats.given_up += given_up;
        self.release(at, number);
    }
}

//! Queue disciplines of the interfaces: what waits in ours or anybody's, and what others have put there.

use std::collections::BTreeMap;

use lasthop_core::packet::Direction;
use lasthop_core::units::{BitRate, Span, Time};

use super::journal::Journal;
use crate::config::Config;
use crate::discipline::{self, Discipline, Side};
use crate::interface::{self, InterfaceName};
use crate::netlink::Socket;
use lasthop_status::FoundStatus;

/// Between two looks for what others have put there.
const LOOK_EVERY: Span = Span::from_secs(5);

pub(super) struct Disciplines {
    route: Option<Socket>,
    newest: Vec<Discipline>,
    newest_at: Option<Time>,
    looked: Option<Time>,
    lan: Vec<InterfaceName>,
    wan: Vec<InterfaceName>,
    found: Vec<FoundStatus>,
    /// By interface: what the classes of an HTB that is its root may use.
    classes: BTreeMap<u32, BitRate>,
    /// Numbers of the interfaces that what comes from and goes to the provider is shaped at.
    line: [Option<u32>; 2],
}

impl Disciplines {
    pub(super) fn new(config: &Config) -> Self {
        let ifb = config.wan.as_ref().and_then(discipline::ifb_of);
        Self {
            route: Socket::open(libc::NETLINK_ROUTE).ok(),
            newest: Vec::new(),
            newest_at: None,
            looked: None,
            lan: Vec::new(),
            wan: config.wan.iter().cloned().chain(ifb).collect(),
            found: Vec::new(),
            classes: BTreeMap::new(),
            line: [None; 2],
        }
    }

    /// As if they had been found.
    #[cfg(test)]
    pub(super) fn made_up(newest: Vec<Discipline>) -> Self {
        Self { route: None, newest, ..Self::new(&Config::default()) }
    }

    /// From now on those of these interfaces are looked at, and at once.
    pub(super) fn follow(&mut self, lan: impl Iterator<Item = InterfaceName>) {
        let lan: Vec<_> = lan.collect();
        if lan != self.lan {
            self.lan = lan;
            self.looked = None;
        }
    }

    /// Looks at them, but where nothing `moves` and nothing waits; false when that failed, and then the last look stands.
    pub(super) fn refresh(&mut self, now: Time, moves: bool, journal: &mut Journal) -> bool {
        let is_over = |looked| now.since(looked) >= LOOK_EVERY;
        let waits = self.newest.iter().any(|discipline| discipline.backlog > 0);
        if !moves && !waits && !self.looked.is_none_or(is_over) {
            return true;
        }
        let Some(route) = &mut self.route else { return true };
        let Ok(newest) = discipline::all(route) else { return false };
        (self.newest, self.newest_at) = (newest, Some(now));
        if self.looked.is_none_or(is_over) {
            self.looked = Some(now);
            self.look(now, journal);
        }
        true
    }

    /// What is known of them was seen after this: in a quiet home that takes a while.
    pub(super) fn were_seen_after(&self, at: Time) -> bool {
        self.newest_at.is_some_and(|seen| seen > at)
    }

    fn look(&mut self, now: Time, journal: &mut Journal) {
        let Some(route) = &mut self.route else { return };
        let mut found = Vec::new();
        let (lan, wan) = (self.lan.iter(), self.wan.iter());
        for (side, name) in lan.map(|name| (Side::Lan, name)).chain(wan.map(|name| (Side::Wan, name))) {
            let there = interface::state(route, name).ok().flatten();
            let Some(list) = there.and_then(|there| discipline::of(route, there.ifindex).ok()) else { continue };
            let Some(one) = discipline::found(side, &list) else { continue };
            let (interface, follows) = (name.to_string(), one.follows.to_owned());
            found.push(FoundStatus { interface, what: one.what, shapes: one.shapes, short: one.is_short, follows });
        }
        for new in found.iter().filter(|new| !self.found.contains(new)) {
            journal.say(now, format!("{}: found {}: {}", new.interface, new.what, new.follows));
        }
        for gone in self.found.iter().filter(|old| !found.iter().any(|new| new.interface == old.interface)) {
            journal.say(now, format!("{}: {} is gone", gone.interface, gone.what));
        }
        self.found = found;
        self.look_at_shapers();
    }

    fn look_at_shapers(&mut self) {
        let Some(route) = &mut self.route else { return };
        let htb = self.newest.iter().filter(|one| one.is_root() && one.kind == "htb" && one.takes_all);
        let rate = |one: &Discipline| discipline::htb_rate(route, one.ifindex).ok().flatten();
        let mut rate = rate;
        self.classes = htb.filter_map(|one| Some((one.ifindex, rate(one)?))).collect();
        // The device that SQM queues downloads in stands behind the one towards the provider.
        let mut number = |at: usize| {
            let name = self.wan.get(at)?;
            interface::state(route, name).ok().flatten().map(|there| there.ifindex)
        };
        self.line[Direction::ToRemote.index()] = number(0);
        self.line[Direction::ToStation.index()] = number(1);
    }

    /// Most that the root discipline of an interface lets out, where it says so, bits of frames per second.
    pub(super) fn shaped(&self, ifindex: u32) -> Option<BitRate> {
        let root = self.root(ifindex)?;
        match root.kind.as_str() {
            "htb" => self.classes.get(&ifindex).copied(),
            kind => root.rate.filter(|_| discipline::shapes(kind)),
        }
    }

    /// The rate of a shaper towards the provider, and of one for what comes from there.
    pub(super) fn wan_shaped(&self) -> [Option<BitRate>; 2] {
        self.line.map(|ifindex| self.shaped(ifindex?))
    }

    /// The first discipline that a packet to this interface meets, when the kernel tells of one.
    pub(super) fn root(&self, ifindex: u32) -> Option<&Discipline> {
        self.newest.iter().find(|discipline| discipline.ifindex == ifindex && discipline.is_root())
    }

    pub(super) fn status(&self) -> Vec<FoundStatus> {
        self.found.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's list in a quiet home, where it is read seldom: what is put meanwhile is not in it.
    #[test]
    fn a_list_that_stands_is_as_old_as_its_reading() {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let mut disciplines = Disciplines::new(&Config::default());
        let mut journal = Journal::new(Time::ZERO);
        assert!(!disciplines.were_seen_after(Time::ZERO), "nobody has looked");
        assert!(disciplines.refresh(at(1000), false, &mut journal));
        assert!(disciplines.were_seen_after(at(950)) && !disciplines.were_seen_after(at(1000)));
        disciplines.newest.iter_mut().for_each(|discipline| discipline.backlog = 0);
        assert!(disciplines.refresh(at(1050), false, &mut journal));
        assert!(!disciplines.were_seen_after(at(1000)), "nothing moved: nobody has looked again");
        assert!(disciplines.refresh(at(1100), true, &mut journal) && disciplines.were_seen_after(at(1050)));
    }
}

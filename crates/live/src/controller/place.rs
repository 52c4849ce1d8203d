//! Queue disciplines of the interfaces: what waits in ours or anybody's, and what others have put there.

use lasthop_core::units::{Span, Time};

use super::journal::Journal;
use crate::config::Config;
use crate::discipline::{self, Discipline, Side};
use crate::interface::{self, InterfaceName};
use crate::netlink::Socket;
use crate::status::FoundStatus;

/// Between two looks for what others have put there.
const LOOK_EVERY: Span = Span::from_secs(5);

pub(super) struct Disciplines {
    route: Option<Socket>,
    newest: Vec<Discipline>,
    looked: Option<Time>,
    lan: Vec<InterfaceName>,
    wan: Vec<InterfaceName>,
    found: Vec<FoundStatus>,
}

impl Disciplines {
    pub(super) fn new(config: &Config) -> Self {
        let ifb = config.wan.as_ref().and_then(discipline::ifb_of);
        Self {
            route: Socket::open(libc::NETLINK_ROUTE).ok(),
            newest: Vec::new(),
            looked: None,
            lan: Vec::new(),
            wan: config.wan.iter().cloned().chain(ifb).collect(),
            found: Vec::new(),
        }
    }

    /// From now on those of these interfaces are looked at, and at once.
    pub(super) fn follow(&mut self, lan: impl Iterator<Item = InterfaceName>) {
        let lan: Vec<_> = lan.collect();
        if lan != self.lan {
            self.lan = lan;
            self.looked = None;
        }
    }

    /// Looks at them; false when that failed, and then the last look stands.
    pub(super) fn refresh(&mut self, now: Time, journal: &mut Journal) -> bool {
        let Some(route) = &mut self.route else { return true };
        let Ok(newest) = discipline::all(route) else { return false };
        self.newest = newest;
        if self.looked.is_none_or(|looked| now.since(looked) >= LOOK_EVERY) {
            self.looked = Some(now);
            self.look(now, journal);
        }
        true
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
    }

    /// The first discipline that a packet to this interface meets, when the kernel tells of one.
    pub(super) fn root(&self, ifindex: u32) -> Option<&Discipline> {
        self.newest.iter().find(|discipline| discipline.ifindex == ifindex && discipline.is_root())
    }

    pub(super) fn status(&self) -> Vec<FoundStatus> {
        self.found.clone()
    }
}

//! The interfaces: found, hooked, watched, followed as they come, go, are renamed, and join and leave bridges.
//!
//! The kernel tells of every change (`monitor`); then all is read anew (`topology`), chosen anew (`ports`), and what is chosen is
//! hooked, the rest let go. An interface that is not there is waited for: none is a reason to end. An interface that was away
//! has a new number; tcx links die with the old one, clsact filters too. Someone may also take our hooks off by force, of
//! which nobody tells: they are looked after as often as the counters are read.

mod slot;
mod watched;

use std::os::fd::BorrowedFd;

use lasthop_core::units::{Span, Time};

use super::ControllerError;
use super::journal::Journal;
use super::locals::{Changes, Locals};
use crate::attach::AttachError;
use crate::config::{AttachMode, Config, ConfigError};
use crate::fdb;
use crate::handover::Inheritance;
use crate::interface::{self, InterfaceName};
use crate::monitor::{Monitor, News};
use crate::netlink::Socket;
use crate::ports::{self, Choice, Port};
use crate::program::{LinkLayer, Program};
use crate::stations::Nl80211;
use crate::topology::Machine;
use lasthop_status::{InterfaceStatus, Role};

use slot::Slot;
use watched::Watched;

/// Between two readings of the counters, and looks at the hooks.
const LOOK_EVERY: Span = Span::from_millis(500);
/// All is read anew so often even when nobody told of a change: radios of drivers that tell nothing, and whatever was missed.
const READ_EVERY: Span = Span::from_secs(5);
/// Changes come in bursts: they are read together.
const READ_AT_MOST_EVERY: Span = Span::from_millis(50);
/// Reading takes at most a twentieth of the time, however much there is, and however often somebody makes it change.
const REST: u64 = 20;
/// All the same a change of interfaces waits for no longer.
const LONGEST_REST: Span = Span::from_millis(500);

pub(super) struct Links {
    route: Socket,
    wifi: Option<Nl80211>,
    monitor: Monitor,
    /// What was told, and not read yet.
    news: News,
    /// When all was last read, and before when it is not read again.
    read: Time,
    rested: Time,
    /// When counters and hooks were last looked at.
    looked: Option<Time>,
    /// What bridges have learned is not read again before.
    learned_until: Time,
    /// How the programs get there.
    mode: AttachMode,
    lan: Vec<InterfaceName>,
    slots: Vec<Slot>,
    remarks: Vec<String>,
    wan: Option<Watched>,
    /// What interfaces that were let go had carried, IP bytes by direction.
    gone_bytes: [u64; 2],
    locals: Locals,
}

/// An interface that is there and hooked.
#[derive(Clone, Copy)]
pub(super) struct Present {
    pub(super) ifindex: u32,
    pub(super) layer: LinkLayer,
    /// Longest packet that it carries now, bytes.
    pub(super) mtu: u32,
}

impl Links {
    /// Looks what there is, and claims every interface that is named; nothing is attached yet.
    pub(super) fn claim(config: &Config, now: Time) -> Result<Self, ControllerError> {
        let mut route = Socket::open(libc::NETLINK_ROUTE).map_err(ControllerError::Netlink)?;
        let mut wifi = Nl80211::open().ok();
        // Before anything is read, so that no change is missed.
        let monitor = Monitor::new(wifi.as_ref()).map_err(ControllerError::Netlink)?;
        let machine = Machine::read(&mut route, wifi.as_mut()).map_err(ControllerError::Netlink)?;
        ports::check(&config.lan, config.wan.as_ref(), &machine).map_err(ConfigError::from)?;
        let choice = ports::choose(&config.lan, config.wan.as_ref(), &machine);
        let mut links = Self {
            route,
            wifi,
            monitor,
            news: News { machine: false, stations: true },
            read: now,
            rested: now,
            looked: None,
            learned_until: now,
            mode: config.attach,
            lan: config.lan.clone(),
            slots: choice.ports.iter().cloned().map(Slot::new).collect(),
            remarks: Vec::new(),
            wan: config.wan.as_ref().map(Watched::new),
            gone_bytes: [0; 2],
            locals: Locals::default(),
        };
        for slot in links.slots.iter_mut().filter(|slot| slot.port.is_named) {
            slot.port.ifindex.map_or(Ok(()), |ifindex| slot.claim(ifindex))?;
        }
        links.remarks = choice.remarks;
        Ok(links)
    }

    /// Chooses by these names from now on, and at the next look; what was hooked stays until then.
    ///
    /// # Errors
    /// When they cannot be right on this machine: nothing changes.
    pub(super) fn set_names(&mut self, config: &Config, now: Time) -> Result<(), ControllerError> {
        let machine = Machine::read(&mut self.route, self.wifi.as_mut()).map_err(ControllerError::Netlink)?;
        ports::check(&config.lan, config.wan.as_ref(), &machine).map_err(ConfigError::from)?;
        self.lan.clone_from(&config.lan);
        if self.wan.as_ref().map(|wan| &wan.name) != config.wan.as_ref() {
            self.wan = config.wan.as_ref().map(Watched::new);
        }
        (self.news.machine, self.rested, self.looked) = (true, now, None);
        Ok(())
    }

    /// Hooks every interface that is there, those that somebody hands over in its place. One that was named and is refused is an
    /// error; the others are tried on.
    pub(super) fn attach(
        &mut self,
        now: Time,
        program: &Program,
        mut inheritance: Option<&mut Inheritance>,
        journal: &mut Journal,
    ) -> Result<(), AttachError> {
        self.remarks.iter().for_each(|line| journal.say(now, line.clone()));
        self.read_states(now, journal);
        for slot in &mut self.slots {
            let links = inheritance.as_mut().zip(slot.port.ifindex).and_then(|(all, ifindex)| all.hook(ifindex));
            if links.is_some_and(|links| slot.inherit(program, links)) {
                continue;
            }
            if slot.port.is_named {
                slot.hook(now, program, self.mode, journal)?;
            } else {
                slot.keep_hooked(now, program, self.mode, journal);
            }
        }
        Ok(())
    }

    /// Every hook, for whoever takes over, and nobody claims the interfaces any more.
    pub(super) fn hooks(&mut self) -> Vec<(u32, Vec<BorrowedFd<'_>>)> {
        self.slots.iter_mut().for_each(Slot::release_claim);
        self.slots.iter().filter_map(Slot::hooks).collect()
    }

    /// Nobody took over: the interfaces are claimed again. True when all could be.
    pub(super) fn claim_again(&mut self) -> bool {
        let hooked: Vec<_> = self.slots.iter().map(|slot| slot.hooks().map(|(ifindex, _)| ifindex)).collect();
        let claims = self.slots.iter_mut().zip(hooked);
        claims.filter_map(|(slot, ifindex)| slot.claim(ifindex?).err()).count() == 0
    }

    /// Somebody took over: everything stays where it is.
    pub(super) fn leave(&mut self) {
        self.slots.iter_mut().for_each(Slot::leave);
    }

    /// Descriptors that become readable when something changed.
    pub(super) fn waits_for(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.monitor.waits_for()
    }

    /// When to look at a change that was told, but came too soon after the one before.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.news.machine.then_some(self.rested)
    }

    /// What is to be hooked now, when that may have changed; none also while the kernel does not answer.
    pub(super) fn choose(&mut self, now: Time, is_ready: bool) -> Option<Choice> {
        if is_ready {
            let news = self.monitor.news();
            self.news.machine |= news.machine;
            self.news.stations |= news.stations;
        }
        let is_ready = self.news.machine && now >= self.rested;
        if !is_ready && now.since(self.read) < READ_EVERY {
            return None;
        }
        self.read = now;
        let machine = Machine::read(&mut self.route, self.wifi.as_mut());
        self.rested = now + (super::now().since(now) * REST).clamp(READ_AT_MOST_EVERY, LONGEST_REST);
        let machine = machine.ok()?;
        self.news = News { machine: false, stations: true };
        Some(ports::choose(&self.lan, self.wan.as_ref().map(|wan| &wan.name), &machine))
    }

    /// Follows a choice: lets go what is not in it, hooks what is new.
    pub(super) fn follow(&mut self, now: Time, choice: Choice, program: &Program, journal: &mut Journal) {
        for line in choice.remarks.iter().filter(|line| !self.remarks.contains(line)) {
            journal.say(now, line.clone());
        }
        self.remarks = choice.remarks;
        let mut before = std::mem::take(&mut self.slots);
        for port in choice.ports {
            let known = before.iter().position(|slot| slot.goes_on_as(&port));
            let slot = known.map(|at| before.remove(at)).map(|mut slot| {
                slot.follow(now, &port, journal);
                slot
            });
            self.slots.push(slot.unwrap_or_else(|| Slot::new(port)));
        }
        for slot in before {
            journal.say(now, format!("{}: let go", slot.port.name));
            for (sum, bytes) in self.gone_bytes.iter_mut().zip(slot.watched.ip_bytes) {
                *sum += bytes;
            }
        }
        self.looked = None;
        self.look(now, program, journal);
    }

    /// Reads the counters, and hooks again what lost its hooks; true when it was time.
    pub(super) fn look(&mut self, now: Time, program: &Program, journal: &mut Journal) -> bool {
        if self.looked.is_some_and(|looked| now.since(looked) < LOOK_EVERY) {
            return false;
        }
        self.looked = Some(now);
        self.read_states(now, journal);
        for slot in &mut self.slots {
            slot.keep_hooked(now, program, self.mode, journal);
        }
        true
    }

    fn read_states(&mut self, now: Time, journal: &mut Journal) {
        for slot in &mut self.slots {
            // When netlink fails for once, the last state stands.
            let state = slot.port.ifindex.map_or(Ok(None), |ifindex| interface::state_of(&mut self.route, ifindex));
            if let Some(change) = state.ok().and_then(|state| slot.watched.on_state(state)) {
                journal.say(now, format!("{} {change}", slot.port.name));
            }
        }
        if let Some(wan) = &mut self.wan
            && let Ok(state) = interface::state(&mut self.route, &wan.name)
            && let Some(change) = wan.on_state(state)
        {
            journal.say(now, format!("{} {change}", wan.name));
        }
    }

    /// Which stations came, went or moved behind the hooked ports of bridges, when somebody told that they did.
    pub(super) fn locals(&mut self, now: Time) -> Option<Changes> {
        if !self.news.stations || now < self.learned_until {
            return None;
        }
        self.news.stations = false;
        let ports: Vec<_> = self.slots.iter().filter(|slot| slot.port.bridge.is_some()).collect();
        let ports: Vec<_> = ports.into_iter().filter_map(|slot| Some(slot.present()?.ifindex)).collect();
        self.locals.begin();
        // Behind one port alone nobody sends to another port.
        if ports.len() > 1 {
            let locals = &mut self.locals;
            let read = fdb::learned(&mut self.route, |mac, ifindex| {
                if ports.contains(&ifindex) {
                    locals.on_entry(mac, ifindex);
                }
            });
            self.learned_until = now + READ_AT_MOST_EVERY.max(super::now().since(now) * REST);
            // What is known stands until the next change.
            read.ok()?;
        }
        Some(self.locals.end())
    }

    /// Each interface towards stations, in the order of the configuration.
    pub(super) fn ports(&self) -> Vec<Port> {
        self.slots.iter().map(|slot| slot.port.clone()).collect()
    }

    /// Each of [`Self::ports`] that is there and hooked.
    pub(super) fn present(&self) -> Vec<Option<Present>> {
        self.slots.iter().map(Slot::present).collect()
    }

    /// IP bytes that the LAN interfaces counted, by direction. Grows only.
    pub(super) fn ip_bytes(&self) -> [u64; 2] {
        let sum = |i: usize| self.slots.iter().map(|slot| slot.watched.ip_bytes[i]).sum::<u64>();
        [0, 1].map(|i| self.gone_bytes[i] + sum(i))
    }

    /// Two ports of one bridge are hooked: a packet between them is counted by both interfaces, and by one hook.
    pub(super) fn joins_hooked_ports(&self) -> bool {
        let bridge = |slot: &Slot| slot.present().and(slot.port.bridge.clone());
        let mut bridges: Vec<_> = self.slots.iter().filter_map(bridge).collect();
        let all = bridges.len();
        bridges.sort();
        bridges.dedup();
        bridges.len() < all
    }

    pub(super) fn describe(&self) -> String {
        let list: Vec<_> = self.slots.iter().map(Slot::describe).collect();
        if list.is_empty() { "no interface yet".to_owned() } else { list.join(", ") }
    }

    pub(super) fn status(&self) -> Vec<InterfaceStatus> {
        self.slots.iter().map(Slot::status).chain(self.wan.iter().map(|wan| wan.status(Role::Wan))).collect()
    }

    /// Why some interfaces are not hooked.
    pub(super) fn remarks(&self) -> Vec<String> {
        self.remarks.iter().cloned().chain(self.slots.iter().filter_map(|s| s.refused().map(str::to_owned))).collect()
    }
}

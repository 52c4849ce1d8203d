//! The queue of one interface: put there when the interface comes, put there again when it comes back, given up when somebody
//! else changes it.

use lasthop_core::units::{BitRate, Time};

use super::super::air_time_cost::AirTimeCost;
use super::super::journal::Journal;
use super::super::links::Present;
use super::keeper::{Keeper, QueueError};
use super::{Machine, Wanted};
use crate::config::Duplex;
use crate::interface;
use crate::ports::Port;
use crate::program::Program;

pub(super) struct Queue {
    pub(super) port: Port,
    /// It is a radio, or may be one: nobody knows what a program behind a TAP plays.
    pub(super) is_radio: bool,
    pub(super) shares_channel: bool,
    /// What it carries, of a wire.
    pub(super) wire: Option<BitRate>,
    pub(super) keeper: Option<Keeper>,
    put_at: Option<Time>,
    /// Somebody else changed the discipline of the interface with this number: it is theirs.
    pub(super) given_up: Option<GivenUp>,
    pub(super) put_again: u64,
    refused: bool,
    pub(super) air_time_cost: AirTimeCost,
}

/// A discipline that is somebody else's now.
pub(super) struct GivenUp {
    ifindex: u32,
    pub(super) before: String,
    pub(super) ours: String,
}

impl Queue {
    pub(super) fn new(port: &Port) -> Self {
        Self {
            port: port.clone(),
            wire: None,
            is_radio: true,
            shares_channel: true,
            keeper: None,
            put_at: None,
            given_up: None,
            put_again: 0,
            refused: false,
            air_time_cost: AirTimeCost::default(),
        }
    }

    /// Takes over the state of `port`: the same interface, another one of the same name, or none for now.
    pub(super) fn follow(&mut self, port: &Port, duplex: Duplex) {
        if self.keeper.as_ref().is_some_and(|keeper| Some(keeper.ifindex()) != port.ifindex) {
            self.keeper = None;
        }
        self.port = port.clone();
        // A wire that is unplugged keeps the speed that it had.
        self.wire = port.ifindex.and_then(|_| interface::speed(&port.name)).or(self.wire);
        self.is_radio = port.medium.is_radio || interface::driver(&port.name) == "tun";
        self.shares_channel = duplex.shares_channel(self.is_radio);
    }

    pub(super) fn put(
        &mut self,
        wanted: Wanted,
        there: Present,
        program: &Program,
        (now, rate, is_known): (Time, BitRate, bool),
        journal: &mut Journal,
    ) -> Result<(), QueueError> {
        let keeper = Keeper::new(self, wanted, there, program, (now, rate), journal)?;
        let was_put = self.put_at.replace(now).is_some();
        let how = match (was_put, is_known, self.wire) {
            (true, ..) => "again".to_owned(),
            (_, true, _) => format!("at {}", rate.rounded()),
            (_, false, None) => "not paced until something is known of what the hop carries".to_owned(),
            (_, false, Some(_)) => {
                format!("at {}, the speed of the wire, until something is known of the hop", rate.rounded())
            }
        };
        let comma = if was_put { "" } else { "," };
        journal.say(now, format!("{}: {}{comma} {how}", self.port.name, keeper.describe()));
        self.keeper = Some(keeper);
        self.put_again += u64::from(was_put);
        self.refused = false;
        Ok(())
    }

    /// Puts it there when the interface came, or came back. When somebody put another there, it is given up: two that
    /// take turns at one knob help nobody.
    pub(super) fn keep(
        &mut self,
        wanted: Wanted,
        known: (Time, BitRate, bool),
        there: Option<Present>,
        machine: &Machine<'_>,
        journal: &mut Journal,
    ) {
        let now = known.0;
        let Some(there) = there else {
            self.keeper = None;
            return;
        };
        if self.given_up.as_ref().is_some_and(|given_up| given_up.ifindex == there.ifindex) {
            return;
        }
        self.given_up = None;
        let root = machine.disciplines.root(there.ifindex);
        let seen_since = self.put_at.is_some_and(|at| machine.disciplines.were_seen_after(at));
        let stays = |keeper: &Keeper| {
            keeper.ifindex() == there.ifindex && keeper.is_intact(root, seen_since) && keeper.carries(there.mtu)
        };
        if self.keeper.as_ref().is_some_and(stays) {
            return;
        }
        // It goes before anything else comes; of a knob that is somebody else's it puts nothing back.
        let lost = self.keeper.take().filter(|keeper| keeper.ifindex() == there.ifindex);
        if let Some((before, ours)) = lost.and_then(|keeper| keeper.replaced()) {
            let now_there = root.map_or("noqueue", |root| root.kind.as_str());
            let line = format!(
                "{}: somebody else made {now_there} its queue discipline instead of our {ours}: given up, it stays as it is",
                self.port.name
            );
            journal.say(now, line);
            self.given_up = Some(GivenUp { ifindex: there.ifindex, before, ours });
            return;
        }
        match self.put(wanted, there, machine.program, known, journal) {
            // Tried again every interval; said once.
            Err(error) if !self.refused => {
                journal.say(now, format!("{}; trying on", chain(&error)));
                self.refused = true;
            }
            _ => {}
        }
    }
}

/// An error with what is behind it.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

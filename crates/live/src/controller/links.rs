//! The interfaces: hooked, watched, hooked again when they come back.
//!
//! Looked at every interval by name. An interface that went away and came back has a new number; tcx links die with
//! the old one, clsact filters too. Someone may also take our hooks off by force: then they are put back.

use lasthop_core::packet::Direction;
use lasthop_core::units::Time;

use super::journal::Journal;
use super::{ControllerError, now};
use crate::attach::{AttachError, Attachment, Claim, remove_leftovers};
use crate::config::{AttachMode, Config};
use crate::interface::{self, InterfaceName, LinkState};
use crate::netlink::Socket;
use crate::program::{LinkLayer, Program};
use crate::status::{InterfaceStatus, Presence, Role};

/// Bytes of an Ethernet header, which interface counters include.
const ETHERNET_HEADER: u64 = 14;

pub(super) struct Links {
    route: Socket,
    /// How the programs get there.
    mode: AttachMode,
    lan: Vec<Lan>,
    wan: Option<Watched>,
}

/// An interface that is there.
#[derive(Clone, Copy)]
pub(super) struct Present {
    pub(super) ifindex: u32,
    pub(super) layer: LinkLayer,
}

struct Lan {
    // Before the claim, so that a successor finds the interface free of hooks.
    attachment: Option<Attachment>,
    watched: Watched,
    reattached: u64,
    refused: bool,
    _claim: Claim,
}

struct Watched {
    name: InterfaceName,
    newest: Option<LinkState>,
    went_down: u64,
    received: u64,
    sent: u64,
    /// Without link headers, both ways.
    ip_bytes: u64,
}

impl Watched {
    fn new(name: &InterfaceName) -> Self {
        Self { name: name.clone(), newest: None, went_down: 0, received: 0, sent: 0, ip_bytes: 0 }
    }

    /// Takes in the newest state; says what changed, if a person should know.
    fn on_state(&mut self, newest: Option<LinkState>) -> Option<&'static str> {
        let before = std::mem::replace(&mut self.newest, newest);
        if let (Some(before), Some(newest)) = (&before, &self.newest)
            && before.ifindex == newest.ifindex
        {
            let received = newest.received_bytes.saturating_sub(before.received_bytes);
            let sent = newest.sent_bytes.saturating_sub(before.sent_bytes);
            let packets = newest.received_packets.saturating_sub(before.received_packets)
                + newest.sent_packets.saturating_sub(before.sent_packets);
            let headers = if newest.ethernet { packets * ETHERNET_HEADER } else { 0 };
            self.received += received;
            self.sent += sent;
            self.ip_bytes += (received + sent).saturating_sub(headers);
        }
        let change = match (before.as_ref(), self.newest.as_ref()) {
            (Some(_), None) => "went away",
            (Some(b), Some(n)) if b.up && !n.up => "went down",
            (Some(b), Some(n)) if !b.up && n.up => "came up",
            _ => return None,
        };
        self.went_down += u64::from(change != "came up");
        Some(change)
    }

    fn status(&self, role: Role) -> InterfaceStatus {
        InterfaceStatus {
            name: self.name.clone(),
            role,
            state: match &self.newest {
                None => Presence::Away,
                Some(state) if state.up => Presence::Up,
                Some(_) => Presence::Down,
            },
            attached: None,
            reattached: 0,
            went_down: self.went_down,
            received_bytes: self.received,
            sent_bytes: self.sent,
        }
    }
}

impl Links {
    /// Claims every LAN interface; nothing is attached yet.
    pub(super) fn claim(config: &Config) -> Result<Self, ControllerError> {
        let mut route = Socket::open(libc::NETLINK_ROUTE).map_err(ControllerError::Netlink)?;
        let mut watch = |name: &InterfaceName| -> Result<Watched, ControllerError> {
            let state = interface::state(&mut route, name).map_err(ControllerError::Netlink)?;
            let mut watched = Watched::new(name);
            watched.on_state(Some(state.ok_or_else(|| ControllerError::NoSuchInterface(name.clone()))?));
            Ok(watched)
        };
        let mut lan = Vec::new();
        for name in &config.lan {
            let (watched, claim) = (watch(name)?, Claim::new(name)?);
            lan.push(Lan { watched, attachment: None, reattached: 0, refused: false, _claim: claim });
        }
        let wan = config.wan.as_ref().map(watch).transpose()?;
        Ok(Self { route, mode: config.attach, lan, wan })
    }

    /// Hooks every LAN interface, and removes what a dead predecessor left there.
    pub(super) fn attach(&mut self, program: &Program, journal: &mut Journal) -> Result<(), ControllerError> {
        for lan in &mut self.lan {
            let Some(state) = lan.watched.newest.clone() else { continue };
            // Nothing of ours can be alive there: the claim is held.
            match remove_leftovers(state.ifindex) {
                Ok(0) => {}
                Ok(n) => {
                    journal
                        .say(now(), format!("{}: removed {n} filters that a dead controller left", lan.watched.name));
                }
                Err(error) => {
                    journal.say(now(), format!("{}: leftovers could not be removed: {error}", lan.watched.name));
                }
            }
            lan.attachment = Some(hook(program, &lan.watched.name, &state, self.mode)?);
        }
        Ok(())
    }

    /// Looks at every interface and hooks again what lost its hooks.
    pub(super) fn refresh(&mut self, now: Time, program: &Program, journal: &mut Journal) {
        let watched = self.lan.iter_mut().map(|lan| &mut lan.watched).chain(&mut self.wan);
        for watched in watched {
            // When netlink fails for once, the last state stands.
            let Ok(state) = interface::state(&mut self.route, &watched.name) else { continue };
            if let Some(change) = watched.on_state(state) {
                journal.say(now, format!("{} {change}", watched.name));
            }
        }
        for lan in &mut self.lan {
            lan.keep_hooked(now, program, self.mode, journal);
        }
    }

    /// Each LAN interface that is there, in the order of the configuration.
    pub(super) fn present(&self) -> Vec<Option<Present>> {
        let present = |state: &LinkState| Present { ifindex: state.ifindex, layer: layer(state) };
        self.lan.iter().map(|lan| lan.watched.newest.as_ref().map(present)).collect()
    }

    /// IP bytes that the LAN interfaces counted, both ways.
    pub(super) fn ip_bytes(&self) -> u64 {
        self.lan.iter().map(|lan| lan.watched.ip_bytes).sum()
    }

    pub(super) fn describe(&self) -> String {
        let one = |lan: &Lan| {
            let how = lan.attachment.as_ref().map_or("not hooked", |a| a.mechanism().name());
            format!("{} by {how}", lan.watched.name)
        };
        self.lan.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn status(&self) -> Vec<InterfaceStatus> {
        let lan = self.lan.iter().map(|lan| InterfaceStatus {
            attached: lan.attachment.as_ref().map(Attachment::mechanism),
            reattached: lan.reattached,
            ..lan.watched.status(Role::Lan)
        });
        lan.chain(self.wan.iter().map(|wan| wan.status(Role::Wan))).collect()
    }
}

impl Lan {
    fn keep_hooked(&mut self, now: Time, program: &Program, mode: AttachMode, journal: &mut Journal) {
        let Some(state) = &self.watched.newest else {
            self.attachment = None;
            return;
        };
        if self.attachment.as_ref().is_some_and(|a| a.ifindex() == state.ifindex && a.is_intact()) {
            return;
        }
        self.attachment = None;
        match hook(program, &self.watched.name, state, mode) {
            Ok(attachment) => {
                let line = format!("{}: hooked again by {}", self.watched.name, attachment.mechanism().name());
                journal.say(now, line);
                self.attachment = Some(attachment);
                self.reattached += 1;
                self.refused = false;
            }
            // Tried again every interval; said once.
            Err(error) if !self.refused => {
                journal.say(now, format!("{error}; trying on"));
                self.refused = true;
            }
            Err(_) => {}
        }
    }
}

const fn layer(state: &LinkState) -> LinkLayer {
    if state.ethernet { LinkLayer::Ethernet } else { LinkLayer::Ip }
}

fn hook(
    program: &Program,
    name: &InterfaceName,
    state: &LinkState,
    mode: AttachMode,
) -> Result<Attachment, AttachError> {
    let [ingress, egress] = [Direction::ToRemote, Direction::ToStation].map(|way| program.prog_fd(way, layer(state)));
    Attachment::new(name, state.ifindex, mode, ingress, egress)
}

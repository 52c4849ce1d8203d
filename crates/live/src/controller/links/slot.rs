//! One interface towards stations: claimed, hooked, hooked again when its hooks are lost, let go.

use std::os::fd::{BorrowedFd, OwnedFd};

use lasthop_core::packet::Direction;
use lasthop_core::units::Time;

use super::Present;
use super::watched::Watched;
use crate::attach::{AttachError, Attachment, Claim, remove_leftovers};
use crate::config::AttachMode;
use crate::controller::journal::Journal;
use crate::interface::{InterfaceName, LinkState};
use crate::ports::Port;
use crate::program::{LinkLayer, Program};
use lasthop_status::{InterfaceStatus, Role};

pub(super) struct Slot {
    // Before the claim, so that a successor finds the interface free of hooks.
    attachment: Option<Attachment>,
    claim: Option<(u32, Claim)>,
    pub(super) port: Port,
    pub(super) watched: Watched,
    was_hooked: bool,
    reattached: u64,
    /// Why it could not be hooked; said once.
    refused: Option<String>,
}

impl Slot {
    pub(super) fn new(port: Port) -> Self {
        Self {
            attachment: None,
            claim: None,
            watched: Watched::new(&port.name),
            port,
            was_hooked: false,
            reattached: 0,
            refused: None,
        }
    }

    /// Whether it goes on as `port`: by name where it was named, else by number; where it was found and is named now, or the other way
    /// round, as the same interface that is there.
    pub(super) fn goes_on_as(&self, port: &Port) -> bool {
        match (self.port.is_named, port.is_named) {
            (true, true) => self.port.name == port.name,
            (false, false) => self.port.ifindex == port.ifindex,
            _ => self.port.ifindex.is_some() && self.port.ifindex == port.ifindex,
        }
    }

    /// Takes over the state of `port`: the same interface, another one of the same name, or none for now.
    pub(super) fn follow(&mut self, now: Time, port: &Port, journal: &mut Journal) {
        if self.port.name != port.name {
            journal.say(now, format!("{} is called {} now", self.port.name, port.name));
            self.watched.name = port.name.clone();
        }
        self.port = port.clone();
        if self.attachment.as_ref().is_some_and(|attachment| Some(attachment.ifindex()) != port.ifindex) {
            self.released();
        }
    }

    /// Takes the hooks off, then lets others have it.
    fn released(&mut self) {
        self.attachment = None;
        self.claim = None;
    }

    /// Takes it for this controller alone.
    pub(super) fn claim(&mut self, ifindex: u32) -> Result<(), AttachError> {
        if self.claim.as_ref().is_none_or(|(claimed, _)| *claimed != ifindex) {
            self.claim = None;
            self.claim = Some((ifindex, Claim::new(&self.port.name, ifindex)?));
        }
        Ok(())
    }

    /// Hooks it in the place of the one who hands over `links`; false when that cannot be, and it has to be hooked as any other.
    pub(super) fn inherit(&mut self, program: &Program, links: Vec<OwnedFd>) -> bool {
        let Some(state) = &self.watched.newest else { return false };
        let (ifindex, [ingress, egress]) = (state.ifindex, programs(program, state));
        if self.claim(ifindex).is_err() {
            return false;
        }
        self.attachment = Attachment::inherit(ifindex, links, ingress, egress).ok();
        self.was_hooked = self.attachment.is_some();
        self.was_hooked
    }

    /// Number of the interface and its links, where it is hooked.
    pub(super) fn hooks(&self) -> Option<(u32, Vec<BorrowedFd<'_>>)> {
        self.attachment.as_ref().map(|attachment| (attachment.ifindex(), attachment.links()))
    }

    /// Whoever takes over may claim it.
    pub(super) fn release_claim(&mut self) {
        self.claim = None;
    }

    /// Leaves everything on the interface, for whoever has taken over.
    pub(super) fn leave(&mut self) {
        if let Some(attachment) = self.attachment.take() {
            attachment.leave();
        }
    }

    /// Hooks it, and removes what a dead predecessor left there.
    pub(super) fn hook(
        &mut self,
        now: Time,
        program: &Program,
        mode: AttachMode,
        journal: &mut Journal,
    ) -> Result<(), AttachError> {
        let Some(state) = &self.watched.newest else { return Ok(()) };
        let (name, state) = (self.port.name.clone(), state.clone());
        self.claim(state.ifindex)?;
        // Nothing of ours can be alive there: the claim is held.
        match remove_leftovers(state.ifindex) {
            Ok(0) => {}
            Ok(n) => journal.say(now, format!("{name}: removed {n} filters that a dead controller left")),
            Err(error) => journal.say(now, format!("{name}: leftovers could not be removed: {error}")),
        }
        self.attachment = Some(attach(program, &name, &state, mode)?);
        self.reattached += u64::from(self.was_hooked);
        (self.was_hooked, self.refused) = (true, None);
        Ok(())
    }

    /// Takes in the newest state, and sees to it that the interface is hooked while it is there.
    pub(super) fn keep_hooked(&mut self, now: Time, program: &Program, mode: AttachMode, journal: &mut Journal) {
        let Some(ifindex) = self.watched.newest.as_ref().map(|state| state.ifindex) else {
            return self.released();
        };
        if self.attachment.as_ref().is_some_and(|a| a.ifindex() == ifindex && a.is_intact()) {
            return;
        }
        self.attachment = None;
        let again = if self.was_hooked { " again" } else { "" };
        match self.hook(now, program, mode, journal) {
            Ok(()) => journal.say(now, format!("{}: hooked{again} by {}", self.port.name, self.mechanism())),
            // Tried again; said once.
            Err(error) => {
                let line = format!("{error}; trying on");
                if self.refused.as_ref() != Some(&line) {
                    journal.say(now, line.clone());
                    self.refused = Some(line);
                }
            }
        }
    }

    /// Why it is not hooked though it is there.
    pub(super) fn refused(&self) -> Option<&str> {
        self.refused.as_deref().filter(|_| self.attachment.is_none())
    }

    /// It is there, and hooked.
    pub(super) fn present(&self) -> Option<Present> {
        let state = self.watched.newest.as_ref().filter(|_| self.attachment.is_some())?;
        Some(Present { ifindex: state.ifindex, layer: layer(state), mtu: state.mtu })
    }

    fn mechanism(&self) -> &'static str {
        self.attachment.as_ref().map_or("nothing yet", |attachment| attachment.mechanism().name())
    }

    pub(super) fn describe(&self) -> String {
        match &self.attachment {
            Some(_) => format!("{} by {}", self.port.name, self.mechanism()),
            None => format!("{} as soon as it can be hooked", self.port.name),
        }
    }

    pub(super) fn status(&self) -> InterfaceStatus {
        InterfaceStatus {
            bridge: self.port.bridge.as_ref().map(ToString::to_string),
            attached: self.attachment.as_ref().map(Attachment::mechanism),
            reattached: self.reattached,
            ..self.watched.status(Role::Lan)
        }
    }
}

const fn layer(state: &LinkState) -> LinkLayer {
    if state.ethernet { LinkLayer::Ethernet } else { LinkLayer::Ip }
}

/// For ingress, and for egress.
fn programs<'a>(program: &'a Program, state: &LinkState) -> [BorrowedFd<'a>; 2] {
    [Direction::ToRemote, Direction::ToStation].map(|way| program.prog_fd(way, layer(state)))
}

fn attach(
    program: &Program,
    name: &InterfaceName,
    state: &LinkState,
    mode: AttachMode,
) -> Result<Attachment, AttachError> {
    let [ingress, egress] = programs(program, state);
    Attachment::new(name, state.ifindex, mode, ingress, egress)
}

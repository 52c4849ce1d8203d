//! Which interfaces are hooked: a pure function of the configuration and of what there is.
//!
//! - **Named**: the interface that has the name now, whatever it is. Of a bridge its ports are hooked and not the bridge, so
//!   that a packet is seen where it leaves towards its station; but none that leads to the provider.
//! - **Found** (`lan = "auto"`): radios of access points and meshes, the wired ports of their bridges, and ports of a switch
//!   (DSA). Never pairs (veth), tunnels (tun, WireGuard), or a bridge of containers.
//!
//! What leads to the provider is the interface named as `wan`, those that default routes leave by, and what these lie on. Where
//! a default route leaves by a bridge one of its wired ports leads there, and nobody says which: then its radios alone are
//! hooked. A wired port is taken for the stations' by itself only while the provider is known to be elsewhere.

mod found;

use std::collections::BTreeSet;

use crate::interface::InterfaceName;
use crate::medium::Medium;
use crate::stations::Radio;
use crate::topology::{Link, Machine};

/// An interface to hook, or to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its number; none while there is no interface of this name.
    pub ifindex: Option<u32>,
    /// Its name.
    pub name: InterfaceName,
    /// The bridge that it is a port of.
    pub bridge: Option<InterfaceName>,
    /// The medium behind it.
    pub medium: Medium,
    /// Somebody named it: it is followed by its name, the others by their number.
    pub is_named: bool,
}

/// What is hooked, and why other interfaces are not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// In the order of the configuration, those of one bridge by number; each interface at most once.
    pub ports: Vec<Port>,
    /// Whole sentences, for the log and the status.
    pub remarks: Vec<String>,
}

/// What cannot be hooked as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The loopback interface.
    #[error("{0} is the loopback interface, and no station is behind it; name the interface towards the stations")]
    Loopback(InterfaceName),
    /// One interface for both sides.
    #[error("{0} is named as LAN and as WAN; stations and the provider are behind different interfaces")]
    BothSides(InterfaceName),
    /// A bridge, whose ports are hooked, and one of them.
    #[error("{port} is a port of {bridge}, and the ports of a bridge are hooked with it; name one of the two")]
    BridgeAndPort {
        /// The bridge.
        bridge: InterfaceName,
        /// Its port.
        port: InterfaceName,
    },
    /// An interface, and one that its packets pass through.
    #[error("what passes {upper} passes {lower}, too, and would be counted twice; name one of the two")]
    Stacked {
        /// A bond, a team, a VLAN, a macvlan, or a bridge over one.
        upper: InterfaceName,
        /// Its port, or what it lies on, at any depth.
        lower: InterfaceName,
    },
}

/// Refuses names that no machine could make right.
///
/// # Errors
/// Says what is wrong, and what to do.
pub fn check_names(lan: &[InterfaceName], wan: Option<&InterfaceName>) -> Result<(), Refusal> {
    if let Some(name) = lan.iter().find(|name| name.as_str() == "lo") {
        return Err(Refusal::Loopback(name.clone()));
    }
    match lan.iter().find(|name| Some(*name) == wan) {
        Some(name) => Err(Refusal::BothSides(name.clone())),
        None => Ok(()),
    }
}

/// Refuses at the start what cannot be right on this machine. What comes about later is said, and made the best of.
///
/// # Errors
/// Says what is wrong, and what to do.
pub fn check(lan: &[InterfaceName], wan: Option<&InterfaceName>, machine: &Machine) -> Result<(), Refusal> {
    check_names(lan, wan)?;
    let wan = wan.and_then(|name| machine.named(name));
    let named: Vec<_> = lan.iter().filter_map(|name| Some((name, machine.named(name)?))).collect();
    for (name, link) in &named {
        if link.is_loopback {
            return Err(Refusal::Loopback((*name).clone()));
        }
        if wan.is_some_and(|wan| wan.ifindex == link.ifindex) {
            return Err(Refusal::BothSides((*name).clone()));
        }
        let bridge = machine.bridge_of(link).and_then(|of| named.iter().find(|(_, link)| link.ifindex == of.ifindex));
        if let Some((bridge, _)) = bridge {
            return Err(Refusal::BridgeAndPort { bridge: (*bridge).clone(), port: (*name).clone() });
        }
    }
    for (upper, top) in &named {
        let under = under(machine, top);
        if let Some((lower, _)) = named.iter().find(|(_, link)| under.contains(&link.ifindex)) {
            return Err(Refusal::Stacked { upper: (*upper).clone(), lower: (*lower).clone() });
        }
    }
    Ok(())
}

/// Numbers of all that what passes `top` passes through: its ports, what it lies on, and theirs.
fn under(machine: &Machine, top: &Link) -> BTreeSet<u32> {
    let (mut all, mut next) = (BTreeSet::new(), vec![top.ifindex]);
    while let Some(upper) = next.pop() {
        let lower = machine.link(upper).and_then(|link| link.lower);
        let ports = machine.links.iter().filter(|link| link.master == Some(upper)).map(|link| link.ifindex);
        // Whatever the kernel says lies on what: nothing is visited twice.
        next.extend(ports.chain(lower).filter(|ifindex| *ifindex != top.ifindex && all.insert(*ifindex)));
    }
    all
}

/// Chooses. Without names in `lan` it finds interfaces by itself.
#[must_use]
pub fn choose(lan: &[InterfaceName], wan: Option<&InterfaceName>, machine: &Machine) -> Choice {
    let mut choosing = Choosing::new(lan, wan, machine);
    if lan.is_empty() {
        choosing.find();
    } else {
        lan.iter().for_each(|name| choosing.named(name));
    }
    if let Some(wan) = wan.filter(|name| machine.named(name).is_none()) {
        choosing.remark(format!("{wan}, the interface towards the provider, is not there yet"));
    }
    choosing.say_what_is_counted_twice();
    choosing.choice
}

struct Choosing<'a> {
    lan: &'a [InterfaceName],
    machine: &'a Machine,
    wan: Option<&'a Link>,
    /// Numbers of all that the WAN interface lies on, and its own.
    by_wan: BTreeSet<u32>,
    /// Numbers of all that leads to the provider.
    provider: BTreeSet<u32>,
    choice: Choice,
}

impl<'a> Choosing<'a> {
    fn new(lan: &'a [InterfaceName], wan: Option<&InterfaceName>, machine: &'a Machine) -> Self {
        let wan = wan.and_then(|name| machine.named(name));
        let by_wan = below(machine, wan.map(|wan| wan.ifindex));
        let mut provider = below(machine, machine.default_routes.iter().copied());
        provider.extend(&by_wan);
        Self { lan, machine, wan, by_wan, provider, choice: Choice::default() }
    }

    fn remark(&mut self, line: String) {
        if !self.choice.remarks.contains(&line) {
            self.choice.remarks.push(line);
        }
    }

    fn is_hooked(&self, link: &Link) -> bool {
        self.choice.ports.iter().any(|port| port.ifindex == Some(link.ifindex))
    }

    fn hook(&mut self, link: &Link, bridge: Option<&Link>) {
        self.choice.ports.push(Port {
            ifindex: Some(link.ifindex),
            name: link.name.clone(),
            bridge: bridge.map(|bridge| bridge.name.clone()),
            medium: Medium::behind(self.machine, link),
            is_named: false,
        });
    }

    fn named(&mut self, name: &InterfaceName) {
        let link = match self.machine.named(name) {
            Some(link) if link.is_bridge() => return self.ports_of(link),
            Some(link) if link.is_loopback => {
                self.remark(format!("{name} is the loopback interface: not hooked"));
                None
            }
            Some(link) if self.wan.is_some_and(|wan| wan.ifindex == link.ifindex) => {
                self.remark(format!("{name} is named as WAN, too: not hooked"));
                None
            }
            Some(link) if self.is_hooked(link) => {
                self.remark(format!("{name} is another name of {}, which is hooked already", link.name));
                None
            }
            Some(link) => Some(link),
            None => {
                self.remark(format!("waiting for {name}: there is no such interface ({})", self.nearest(name)));
                None
            }
        };
        let ifindex = link.map(|link| link.ifindex);
        let bridge = link.and_then(|link| self.machine.bridge_of(link)).map(|bridge| bridge.name.clone());
        let medium = link.map(|link| Medium::behind(self.machine, link)).unwrap_or_default();
        self.choice.ports.push(Port { ifindex, name: name.clone(), bridge, medium, is_named: true });
    }

    /// Hooks the ports of a bridge that was named.
    fn ports_of(&mut self, bridge: &'a Link) {
        let machine = self.machine;
        let ports: Vec<_> = machine.ports(bridge).collect();
        if ports.is_empty() {
            self.remark(format!("waiting for {}: it is a bridge without ports", bridge.name));
        }
        for port in ports {
            if self.lan.iter().any(|name| port.is_called(name)) {
                let line = format!("{} is a port of {}, and both are named: hooked once", port.name, bridge.name);
                self.remark(line);
            } else if self.provider.contains(&port.ifindex) {
                self.leads_to_the_provider(port);
            } else if self.hides_the_provider(bridge) && !self.is_access_point(port) {
                self.one_of_the_wired_ports(bridge);
            } else if !self.is_hooked(port) {
                self.hook(port, Some(bridge));
            }
        }
    }

    fn is_access_point(&self, link: &Link) -> bool {
        self.machine.radio(link.ifindex) == Some(Radio::AccessPoint)
    }

    /// One of the bridge's ports leads to the provider, and nobody says which. Who names a WAN interface beside the bridge knows
    /// better than default routes.
    fn hides_the_provider(&self, bridge: &Link) -> bool {
        let is_known = self.wan.is_some() && !self.by_wan.contains(&bridge.ifindex);
        self.provider.contains(&bridge.ifindex) && !is_known
    }

    fn leads_to_the_provider(&mut self, link: &Link) {
        self.remark(format!("{} leads to the provider: not hooked", link.name));
    }

    fn one_of_the_wired_ports(&mut self, bridge: &Link) {
        self.remark(format!(
            "one of the wired ports of {} leads to the provider: only radios of access points are hooked there; --wan PORT \
             says which it is, and the others are hooked, too",
            bridge.name
        ));
    }

    /// Names that somebody may have meant.
    fn nearest(&self, name: &InterfaceName) -> String {
        const LIKE: f64 = 0.75;
        const MOST: usize = 4;
        let of = |link: &'a Link| (strsim::jaro_winkler(name.as_str(), link.name.as_str()), &link.name);
        let mut all: Vec<_> = self.machine.links.iter().filter(|link| !link.is_loopback).map(of).collect();
        all.retain(|(likeness, _)| *likeness > LIKE);
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        let names: Vec<_> = all.iter().take(MOST).map(|(_, name)| name.as_str()).collect();
        if names.is_empty() {
            "`ip link` lists those that are there".to_owned()
        } else {
            format!("like it: {}", names.join(", "))
        }
    }

    /// A VLAN and what it lies on, both hooked.
    fn say_what_is_counted_twice(&mut self) {
        let mut lines = Vec::new();
        for port in &self.choice.ports {
            let upper = port.ifindex.and_then(|ifindex| self.machine.link(ifindex));
            let lower = upper.and_then(|upper| self.machine.link(upper.lower?));
            if let (Some(upper), Some(lower)) = (upper, lower.filter(|lower| self.is_hooked(lower))) {
                lines.push(format!(
                    "{} lies on {}, and both are hooked: what passes both is counted twice; name one of them",
                    upper.name, lower.name
                ));
            }
        }
        lines.into_iter().for_each(|line| self.remark(line));
    }
}

/// These interfaces and what they lie on.
fn below(machine: &Machine, tops: impl IntoIterator<Item = u32>) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    for ifindex in tops {
        let mut next = Some(ifindex);
        // Whatever the kernel says lies on what: nothing is visited twice.
        while let Some(ifindex) = next.filter(|ifindex| all.insert(*ifindex)) {
            next = machine.link(ifindex).and_then(|link| link.lower);
        }
    }
    all
}

#[cfg(test)]
mod tests;

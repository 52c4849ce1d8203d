//! What there is of network on this machine: interfaces and how they hang together, default routes, forwarding, radios.
//!
//! One dump each of links, default routes and `netconf` by rtnetlink, and of interfaces by nl80211. Sysctls are read as
//! `netconf`, which belongs to the network namespace of the socket. Source: rtnetlink(7), `linux/if_link.h`,
//! `linux/netconf.h`; DSA: `Documentation/networking/dsa/dsa.rst`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::interface::InterfaceName;
use crate::netlink::{self, Attributes, NLM_F_DUMP, Socket};
use crate::stations::{Nl80211, Radio, Wireless};

const IFINFOMSG: usize = 16;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_PHYS_SWITCH_ID: u16 = 36;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_PHYS_PORT_NAME: u16 = 38;
const IFLA_PROP_LIST: u16 = 52;
const IFLA_ALT_IFNAME: u16 = 53;
const RTMSG: usize = 12;
const RTA_OIF: u16 = 4;
const RTA_MULTIPATH: u16 = 9;
const RTN_UNICAST: u8 = 1;
const NETCONFMSG: usize = 4;
const NETCONFA_IFINDEX: u16 = 1;
const NETCONFA_FORWARDING: u16 = 2;
/// In place of an interface: what holds for all, and what new ones begin with.
const NETCONFA_IFINDEX_ALL: i32 = -1;
const NETCONFA_IFINDEX_DEFAULT: i32 = -2;

/// One interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Kernel's number of it.
    pub ifindex: u32,
    /// Its name.
    pub name: InterfaceName,
    /// Other names that it answers to.
    pub alternatives: Vec<InterfaceName>,
    /// "bridge", "veth", "vlan", "dsa", ..; empty for hardware, Wi-Fi included.
    pub kind: String,
    /// Number of the bridge, bond or other interface that it is a port of.
    pub master: Option<u32>,
    /// Number of the interface of this namespace that it lies on (of a VLAN, of a switch port).
    pub lower: Option<u32>,
    /// The loopback interface.
    pub is_loopback: bool,
    /// A port of a switch that the kernel drives (DSA).
    pub is_switch_port: bool,
}

impl Link {
    /// Whether it can have ports whose frames it forwards.
    #[must_use]
    pub fn is_bridge(&self) -> bool {
        self.kind == "bridge"
    }

    /// Whether it answers to this name.
    #[must_use]
    pub fn is_called(&self, name: &InterfaceName) -> bool {
        self.name == *name || self.alternatives.contains(name)
    }

    fn read(body: &[u8]) -> Option<Self> {
        let header = body.get(..IFINFOMSG)?;
        let attributes = body.get(IFINFOMSG..)?;
        let word = |kind| Attributes::find(attributes, kind).and_then(u32_of).filter(|number| *number != 0);
        let about = Attributes::find(attributes, IFLA_LINKINFO);
        let kind = about.and_then(|about| Attributes::find(about, IFLA_INFO_KIND)).map(netlink::text);
        let kind = kind.unwrap_or_default();
        let has = |kind| Attributes::find(attributes, kind).is_some();
        // The other end of a pair is no interface below.
        let lower = word(IFLA_LINK).filter(|_| !has(IFLA_LINK_NETNSID) && !matches!(kind.as_str(), "veth" | "netkit"));
        // Before Linux 6.1 a switch port does not say its kind; virtual functions of a network card have no interface below.
        let is_old_port = kind.is_empty() && lower.is_some() && has(IFLA_PHYS_SWITCH_ID) && has(IFLA_PHYS_PORT_NAME);
        let properties = Attributes::new(Attributes::find(attributes, IFLA_PROP_LIST).unwrap_or_default());
        let alternatives = properties.filter(|(kind, _)| *kind == IFLA_ALT_IFNAME);
        Some(Self {
            ifindex: u32::from_ne_bytes(*header[4..].first_chunk()?),
            name: netlink::text(Attributes::find(attributes, IFLA_IFNAME)?).parse().ok()?,
            alternatives: alternatives.filter_map(|(_, name)| netlink::text(name).parse().ok()).collect(),
            master: word(IFLA_MASTER),
            lower,
            is_loopback: u16::from_ne_bytes([header[2], header[3]]) == libc::ARPHRD_LOOPBACK,
            is_switch_port: kind == "dsa" || is_old_port,
            kind,
        })
    }
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Every interface, by number, each once.
    pub links: Vec<Link>,
    /// Numbers of the interfaces that default routes leave by.
    pub default_routes: BTreeSet<u32>,
    /// Wi-Fi interfaces by number.
    pub radios: BTreeMap<u32, Wireless>,
    /// It forwards IP packets. True also where the kernel does not tell.
    pub forwards: bool,
}

impl Machine {
    /// What there is now.
    ///
    /// # Errors
    /// When the interfaces cannot be listed; what else cannot be asked counts as absent.
    pub fn read(route: &mut Socket, wifi: Option<&mut Nl80211>) -> io::Result<Self> {
        let mut links = Vec::new();
        route
            .request_each(libc::RTM_GETLINK, NLM_F_DUMP, &[0u8; IFINFOMSG], |_, body| links.extend(Link::read(body)))?;
        links.sort_by_key(|link| link.ifindex);
        // One that changed while they were listed may come twice.
        links.dedup_by_key(|link| link.ifindex);
        Ok(Self {
            links,
            default_routes: default_routes(route),
            radios: wifi.and_then(|wifi| wifi.interfaces().ok()).unwrap_or_default(),
            forwards: forwards(route),
        })
    }

    /// What this Wi-Fi interface is; none of others.
    #[must_use]
    pub fn radio(&self, ifindex: u32) -> Option<Radio> {
        self.radios.get(&ifindex).map(|wireless| wireless.radio)
    }

    /// The interface of this number.
    #[must_use]
    pub fn link(&self, ifindex: u32) -> Option<&Link> {
        self.links.iter().find(|link| link.ifindex == ifindex)
    }

    /// The interface of this name.
    #[must_use]
    pub fn named(&self, name: &InterfaceName) -> Option<&Link> {
        self.links.iter().find(|link| link.name == *name).or_else(|| self.links.iter().find(|l| l.is_called(name)))
    }

    /// The bridge that an interface is a port of.
    #[must_use]
    pub fn bridge_of(&self, link: &Link) -> Option<&Link> {
        link.master.and_then(|master| self.link(master)).filter(|master| master.is_bridge())
    }

    /// The ports of a bridge.
    pub fn ports<'a>(&'a self, bridge: &Link) -> impl Iterator<Item = &'a Link> {
        let bridge = bridge.ifindex;
        self.links.iter().filter(move |link| link.master == Some(bridge) && link.ifindex != bridge)
    }
}

fn u32_of(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_ne_bytes)
}

fn i32_of(value: &[u8]) -> Option<i32> {
    value.try_into().ok().map(i32::from_ne_bytes)
}

fn default_routes(route: &mut Socket) -> BTreeSet<u32> {
    let mut all = BTreeSet::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut body = [0u8; RTMSG];
        body[0] = family as u8;
        // Without this family there are no routes of it.
        let _ = route.request_each(libc::RTM_GETROUTE, NLM_F_DUMP, &body, |_, body| leaves_by(body, &mut all));
    }
    all
}

/// Adds the interfaces of a default route.
fn leaves_by(body: &[u8], all: &mut BTreeSet<u32>) {
    // struct rtmsg {family, dst_len, src_len, tos, table, protocol, scope, type, flags}
    let (Some(0), Some(&RTN_UNICAST), Some(attributes)) = (body.get(1), body.get(7), body.get(RTMSG..)) else { return };
    all.extend(Attributes::find(attributes, RTA_OIF).and_then(u32_of));
    let mut hops = Attributes::find(attributes, RTA_MULTIPATH).unwrap_or_default();
    // struct rtnexthop {length, flags, hops, ifindex} and attributes
    while let Some(hop) = hops.first_chunk::<8>() {
        let length = usize::from(u16::from_ne_bytes([hop[0], hop[1]]));
        all.extend(u32_of(&hop[4..]));
        hops = hops.get(length.max(8).next_multiple_of(4)..).unwrap_or_default();
    }
}

/// IPv4 may be forwarded from single interfaces; of IPv6 it is all or nothing.
fn forwards(route: &mut Socket) -> bool {
    let (mut forwards, mut told) = (false, false);
    for (family, single) in [(libc::AF_INET, true), (libc::AF_INET6, false)] {
        let body = [family as u8, 0, 0, 0];
        let asked = route.request_each(libc::RTM_GETNETCONF, NLM_F_DUMP, &body, |_, body| {
            forwards |= is_forwarding(body, single);
        });
        told |= asked.is_ok();
    }
    forwards || !told
}

fn is_forwarding(body: &[u8], single: bool) -> bool {
    let attributes = body.get(NETCONFMSG..).unwrap_or_default();
    let value = |kind| Attributes::find(attributes, kind).and_then(i32_of);
    let counts = match value(NETCONFA_IFINDEX) {
        Some(NETCONFA_IFINDEX_ALL) => true,
        Some(NETCONFA_IFINDEX_DEFAULT) | None => false,
        Some(_) => single,
    };
    counts && value(NETCONFA_FORWARDING).is_some_and(|value| value > 0)
}

#[cfg(test)]
mod tests;

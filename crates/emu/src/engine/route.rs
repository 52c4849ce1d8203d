//! In which direction a frame leaves the interface it was sent from.

use crate::address::{AddressPlan, Port};
use crate::arena::ETHERNET;
use lasthop_home::scenario::HostId;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The interface on which a frame sent from `port` comes out of the network.
/// `None`: nobody's.
#[must_use]
pub fn next_hop(plan: &AddressPlan, port: Port, frame: &[u8]) -> Option<Port> {
    let destination = plan.port_of(destination(frame)?);
    match plan.host(port) {
        HostId::Station(_) => Some(AddressPlan::WLAN),
        HostId::Server(_) => match destination {
            Some(to) if to != port && matches!(plan.host(to), HostId::Server(_)) => Some(to),
            _ => Some(AddressPlan::WAN),
        },
        HostId::AccessPoint => destination.filter(|to| match plan.host(*to) {
            HostId::Server(_) => port == AddressPlan::WAN,
            HostId::Station(_) => port == AddressPlan::WLAN,
            HostId::AccessPoint => false,
        }),
    }
}

/// The unicast IP destination of an Ethernet frame.
fn destination(frame: &[u8]) -> Option<IpAddr> {
    match frame.get(12..14)? {
        [8, 0] => {
            let to = Ipv4Addr::from(*frame.get(ETHERNET + 16..)?.first_chunk::<4>()?);
            (!to.is_multicast() && !to.is_broadcast()).then_some(to.into())
        }
        [0x86, 0xdd] => {
            let to = Ipv6Addr::from(*frame.get(ETHERNET + 24..)?.first_chunk::<16>()?);
            (!to.is_multicast()).then_some(to.into())
        }
        _ => None,
    }
}

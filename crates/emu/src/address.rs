//! The address plan: who has which name, MAC, IPv4 and IPv6 address.
//!
//! | host | interface | IPv4 | IPv6 | MAC |
//! |---|---|---|---|---|
//! | access point | `wan0` | 10.1.0.1 | fd00:1::1 | 02:4c:48:00:00:01 |
//! | access point | `wlan0` | 10.2.0.1 | fd00:2::1 | 02:4c:48:01:00:01 |
//! | n-th server | `eth0` | 10.1.1.n | fd00:1::1:n | 02:4c:48:02:xx:xx |
//! | n-th station | `eth0` | 10.2.1.n | fd00:2::1:n | 02:4c:48:03:xx:xx |
//!
//! n counts from 1 in the order of the file; beyond 200 the third byte goes up by one and n starts again.
//! Stations and servers reach everything through the access point: their only route is the default one.
//! Port n of the engine: 0 is `wan0`, 1 is `wlan0`, then servers, then stations.

use lasthop_home::address::{self, BLOCK};
use lasthop_home::scenario::HostId;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use lasthop_home::address::{Mac, near};

/// One interface of one host, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Port(pub u16);

/// How many servers and stations there are; everything else follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPlan {
    /// Servers, counted hosts expanded.
    pub servers: usize,
    /// Stations, counted hosts expanded.
    pub stations: usize,
}

impl AddressPlan {
    /// The access point's interface towards the servers.
    pub const WAN: Port = Port(0);
    /// The access point's interface towards the stations.
    pub const WLAN: Port = Port(1);
    /// Most hosts of one kind: the third byte goes from 1 to 254.
    pub const MOST: usize = 254 * BLOCK;

    /// Number of interfaces.
    #[must_use]
    pub const fn ports(&self) -> usize {
        2 + self.servers + self.stations
    }

    /// The interface of a host; the access point answers with `wlan0`.
    #[must_use]
    pub fn port(&self, host: HostId) -> Port {
        match host {
            HostId::AccessPoint => Self::WLAN,
            HostId::Server(i) => Port(2 + i as u16),
            HostId::Station(i) => Port((2 + self.servers + i) as u16),
        }
    }

    /// The host that an interface belongs to.
    #[must_use]
    pub fn host(&self, port: Port) -> HostId {
        match usize::from(port.0) {
            0 | 1 => HostId::AccessPoint,
            n if n < 2 + self.servers => HostId::Server(n - 2),
            n => HostId::Station(n - 2 - self.servers),
        }
    }

    /// The name of an interface inside its namespace.
    #[must_use]
    pub const fn interface(port: Port) -> &'static str {
        match port.0 {
            0 => "wan0",
            1 => "wlan0",
            _ => "eth0",
        }
    }

    /// The IPv4 address of a host; the access point's is that of `wlan0`.
    #[must_use]
    pub fn v4(host: HostId) -> Ipv4Addr {
        address::v4(host)
    }

    /// The IPv6 address of a host; the access point's is that of `wlan0`.
    #[must_use]
    pub fn v6(host: HostId) -> Ipv6Addr {
        let (net, i) = match host {
            HostId::AccessPoint => return Ipv6Addr::new(0xfd00, 2, 0, 0, 0, 0, 0, 1),
            HostId::Server(i) => (1, i),
            HostId::Station(i) => (2, i),
        };
        // Written so that the number reads as in the IPv4 address: 10.1.1.12 is fd00:1::1:12.
        Ipv6Addr::new(0xfd00, net, 0, 0, 0, 0, as_read((1 + i / BLOCK) as u16), as_read((1 + i % BLOCK) as u16))
    }

    /// The addresses of the access point on `wan0`.
    pub const WAN_V4: Ipv4Addr = address::WAN_V4;
    /// As [`Self::WAN_V4`].
    pub const WAN_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 1, 0, 0, 0, 0, 0, 1);

    /// The MAC address of an interface.
    #[must_use]
    pub fn mac(&self, port: Port) -> Mac {
        match port {
            Self::WAN => address::WAN_MAC,
            _ => address::mac(self.host(port)),
        }
    }

    /// The interface on which packets for `address` end, if it is one of the home's.
    #[must_use]
    pub fn port_of(&self, address: IpAddr) -> Option<Port> {
        let (net, block, n) = match address {
            IpAddr::V4(a) => {
                let [10, net, block, n] = a.octets() else { return None };
                (net, block, n)
            }
            IpAddr::V6(a) => {
                let [0xfd00, net, 0, 0, 0, 0, block, n] = a.segments() else { return None };
                (u8::try_from(net).ok()?, u8::try_from(from_read(block)?).ok()?, u8::try_from(from_read(n)?).ok()?)
            }
        };
        if (block, n) == (0, 1) {
            return match net {
                1 => Some(Self::WAN),
                2 => Some(Self::WLAN),
                _ => None,
            };
        }
        let n = usize::from(n).checked_sub(1).filter(|n| *n < BLOCK)?;
        let index = usize::from(block).checked_sub(1)? * BLOCK + n;
        match net {
            1 if index < self.servers => Some(self.port(HostId::Server(index))),
            2 if index < self.stations => Some(self.port(HostId::Station(index))),
            _ => None,
        }
    }
}

/// The number whose hexadecimal digits are the decimal digits of `n`.
fn as_read(n: u16) -> u16 {
    u16::from_str_radix(&n.to_string(), 16).unwrap_or(n)
}

/// The inverse of [`as_read`].
fn from_read(n: u16) -> Option<u16> {
    [1, 16, 256, 4096].iter().rev().try_fold(0, |sum, place| {
        let digit = n / place % 16;
        (digit < 10).then_some(sum * 10 + digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: AddressPlan = AddressPlan { servers: 201, stations: 3 };

    #[test]
    fn every_interface_is_found_by_both_of_its_addresses() {
        for port in (2..PLAN.ports() as u16).map(Port) {
            let host = PLAN.host(port);
            assert_eq!(PLAN.port(host), port);
            assert_eq!(PLAN.port_of(AddressPlan::v4(host).into()), Some(port), "{host:?}");
            assert_eq!(PLAN.port_of(AddressPlan::v6(host).into()), Some(port), "{host:?}");
        }
        assert_eq!(PLAN.port_of(AddressPlan::WAN_V4.into()), Some(AddressPlan::WAN));
        assert_eq!(PLAN.port_of(AddressPlan::WAN_V6.into()), Some(AddressPlan::WAN));
        assert_eq!(PLAN.port_of(AddressPlan::v6(HostId::AccessPoint).into()), Some(AddressPlan::WLAN));
    }

    #[test]
    fn addresses_read_alike_in_both_families() {
        assert_eq!(AddressPlan::v4(HostId::Server(2)).to_string(), "10.1.1.3");
        assert_eq!(AddressPlan::v6(HostId::Server(11)).to_string(), "fd00:1::1:12");
        assert_eq!(AddressPlan::v4(HostId::Server(200)).to_string(), "10.1.2.1");
    }

    #[test]
    fn strangers_have_no_port() {
        for stranger in
            ["10.1.0.2", "10.1.0.0", "10.3.1.1", "10.2.1.4", "10.2.1.255", "8.8.8.8", "fd00:1::1:a", "ff02::1"]
        {
            assert_eq!(PLAN.port_of(stranger.parse().unwrap()), None, "{stranger}");
        }
    }
}

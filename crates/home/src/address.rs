//! Which host has which MAC and IPv4 address, and which port a flow uses: the same in the emulator and in captures of the
//! simulator.
//!
//! | host | IPv4 | MAC |
//! |---|---|---|
//! | access point, towards the servers | 10.1.0.1 | 02:4c:48:00:00:01 |
//! | access point, towards the stations | 10.2.0.1 | 02:4c:48:01:00:01 |
//! | n-th server | 10.1.1.n | 02:4c:48:02:xx:xx |
//! | n-th station | 10.2.1.n | 02:4c:48:03:xx:xx |
//!
//! n counts from 1 in the order of the file; beyond 200 the third byte goes up by one and n starts again.

use std::net::Ipv4Addr;

use crate::scenario::HostId;

/// An Ethernet address.
pub type Mac = [u8; 6];

/// Hosts per value of the third address byte.
pub const BLOCK: usize = 200;

/// Flow i (every copy counts) uses this port + i at both ends.
pub const FIRST_PORT: u16 = 20_000;

/// The address of the access point towards the servers.
pub const WAN_V4: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);

/// The MAC address of the access point towards the servers.
pub const WAN_MAC: Mac = [0x02, 0x4c, 0x48, 0, 0, 1];

/// The IPv4 address of a host; the access point's is the one towards the stations.
#[must_use]
pub fn v4(host: HostId) -> Ipv4Addr {
    match host {
        HostId::AccessPoint => Ipv4Addr::new(10, 2, 0, 1),
        HostId::Server(i) => Ipv4Addr::new(10, 1, (1 + i / BLOCK) as u8, (1 + i % BLOCK) as u8),
        HostId::Station(i) => Ipv4Addr::new(10, 2, (1 + i / BLOCK) as u8, (1 + i % BLOCK) as u8),
    }
}

/// The IPv4 address under which `host` talks to `peer`: the access point's is the one on that side.
#[must_use]
pub fn near(host: HostId, peer: HostId) -> Ipv4Addr {
    match (host, peer) {
        (HostId::AccessPoint, HostId::Server(_)) => WAN_V4,
        _ => v4(host),
    }
}

/// The MAC address of a host; the access point's is the one towards the stations.
#[must_use]
pub fn mac(host: HostId) -> Mac {
    let (kind, n) = match host {
        HostId::AccessPoint => (1, 1),
        HostId::Server(i) => (2, i as u16 + 1),
        HostId::Station(i) => (3, i as u16 + 1),
    };
    let [high, low] = n.to_be_bytes();
    [0x02, 0x4c, 0x48, kind, high, low]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_in_the_addresses() {
        assert_eq!(v4(HostId::Server(2)).to_string(), "10.1.1.3");
        assert_eq!(v4(HostId::Station(200)).to_string(), "10.2.2.1");
        assert_eq!(near(HostId::AccessPoint, HostId::Server(0)).to_string(), "10.1.0.1");
        assert_eq!(mac(HostId::Station(258)), [2, 0x4c, 0x48, 3, 1, 3]);
    }
}

//! Network interfaces as the kernel's route netlink describes them.
//!
//! Netlink rather than sysfs: `/sys/class/net` shows the namespace of whoever mounted it, which is not ours when the
//! controller was started inside a network namespace only.
//!
//! Source: rtnetlink(7), `linux/if_link.h`; ethtool's `ETHTOOL_GSET` for the speed of a wire.

use std::fmt;
use std::io;
use std::str::FromStr;

use lasthop_core::units::BitRate;

use crate::netlink::{self, Attributes, Socket};

/// Name of a network interface: 1 to 15 bytes, no slash, no white space.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InterfaceName(String);

/// A text that cannot be the name of an interface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` cannot be an interface name (1 to 15 characters, no space, no `/`); `ip link` lists them")]
pub struct BadName(pub String);

impl InterfaceName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for InterfaceName {
    type Err = BadName;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let valid = (1..=15).contains(&s.len())
            && s != "."
            && s != ".."
            && !s.bytes().any(|b| b == b'/' || b == b':' || b == 0 || b.is_ascii_whitespace());
        if valid { Ok(Self(s.to_owned())) } else { Err(BadName(s.to_owned())) }
    }
}

impl TryFrom<String> for InterfaceName {
    type Error = BadName;
    fn try_from(s: String) -> Result<Self, Self::Error> {
        s.parse()
    }
}

impl From<InterfaceName> for String {
    fn from(name: InterfaceName) -> Self {
        name.0
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What the kernel says of one interface now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkState {
    /// Kernel's number of it; a new number means that the interface went away and came back.
    pub ifindex: u32,
    /// Administratively up and with carrier.
    pub up: bool,
    /// Bytes received, link headers included, cumulative.
    pub received_bytes: u64,
    /// Packets received, cumulative.
    pub received_packets: u64,
    /// Bytes sent, link headers included, cumulative.
    pub sent_bytes: u64,
    /// Packets sent, cumulative.
    pub sent_packets: u64,
    /// Packets that were to be sent and were lost in the device, cumulative.
    pub sent_dropped: u64,
    /// Longest packet that it carries, bytes, link header not counted.
    pub mtu: u32,
    /// Frames carry an Ethernet header; otherwise they start with the IP header (TUN, PPP, WireGuard).
    pub ethernet: bool,
    /// Root queue discipline, as `ip link` prints it.
    pub qdisc: String,
}

const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_QDISC: u16 = 6;
const IFLA_STATS64: u16 = 23;
const IFLA_EXT_MASK: u16 = 29;
/// Leave out per-VF statistics, which can be kilobytes.
const RTEXT_FILTER_SKIP_STATS_VF: u32 = 1 << 3;
const IFF_UP: u32 = 1;
const IFF_LOWER_UP: u32 = 1 << 16;

/// State of the interface `name`, or `None` when there is none of that name.
///
/// # Errors
/// When netlink itself fails.
pub fn state(route: &mut Socket, name: &InterfaceName) -> io::Result<Option<LinkState>> {
    let mut body = vec![0u8; 16]; // struct ifinfomsg
    netlink::put(&mut body, IFLA_IFNAME, &[name.as_str().as_bytes(), b"\0"].concat());
    ask(route, body)
}

/// State of the interface of number `ifindex`, or `None` when there is none of that number.
///
/// # Errors
/// When netlink itself fails.
pub fn state_of(route: &mut Socket, ifindex: u32) -> io::Result<Option<LinkState>> {
    let mut body = vec![0u8; 16]; // struct ifinfomsg
    body[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    ask(route, body)
}

fn ask(route: &mut Socket, mut body: Vec<u8>) -> io::Result<Option<LinkState>> {
    netlink::put(&mut body, IFLA_EXT_MASK, &RTEXT_FILTER_SKIP_STATS_VF.to_ne_bytes());
    let replies = match route.request(libc::RTM_GETLINK, 0, &body) {
        Ok(replies) => replies,
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(replies.iter().find(|r| r.kind == libc::RTM_NEWLINK).and_then(|r| read_link(&r.body)))
}

fn read_link(body: &[u8]) -> Option<LinkState> {
    let header = body.get(..16)?;
    let flags = u32::from_ne_bytes(header[8..12].try_into().ok()?);
    let mut link = LinkState {
        ifindex: u32::from_ne_bytes(header[4..8].try_into().ok()?),
        ethernet: matches!(u16::from_ne_bytes([header[2], header[3]]), libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK),
        up: flags & IFF_UP != 0 && flags & IFF_LOWER_UP != 0,
        ..LinkState::default()
    };
    for (kind, value) in Attributes::new(&body[16..]) {
        match kind {
            IFLA_MTU => link.mtu = value.first_chunk().map_or(0, |b| u32::from_ne_bytes(*b)),
            IFLA_QDISC => link.qdisc = netlink::text(value),
            IFLA_STATS64 => {
                let field = |i: usize| {
                    value.get(i * 8..i * 8 + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_ne_bytes)
                };
                link.received_packets = field(0);
                link.sent_packets = field(1);
                link.received_bytes = field(2);
                link.sent_bytes = field(3);
                link.sent_dropped = field(7);
            }
            _ => {}
        }
    }
    Some(link)
}

/// A socket to ask network devices by ioctl.
fn ioctl_socket() -> io::Result<rustix::fd::OwnedFd> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    Ok(socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}

/// Runs one ethtool command whose argument of `N` bytes starts with the command's number.
pub(crate) fn ethtool<const N: usize>(name: &InterfaceName, command: u32) -> io::Result<[u8; N]> {
    ethtool_with(name, &[command])
}

/// Runs one ethtool command whose argument of `N` bytes starts with `words`. `N` must hold all that the command
/// writes.
pub(crate) fn ethtool_with<const N: usize>(name: &InterfaceName, words: &[u32]) -> io::Result<[u8; N]> {
    use rustix::fd::AsRawFd;
    let socket = ioctl_socket()?;
    let mut argument = [0u8; N];
    for (to, word) in argument.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    // SAFETY: an all-zero ifreq is a valid value of that plain C struct.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.as_str().bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = argument.as_mut_ptr().cast();
    // SAFETY: the request is a valid ifreq whose data points at N writable bytes, as the command expects.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(argument) }
}

const ETHTOOL_GSET: u32 = 1;
const ETHTOOL_GDRVINFO: u32 = 3;

/// Name of the interface's driver, empty when it does not say.
#[must_use]
pub fn driver(name: &InterfaceName) -> String {
    ethtool::<196>(name, ETHTOOL_GDRVINFO).map(|d| netlink::text(&d[4..36])).unwrap_or_default()
}

/// Speed of the wire behind `name`; `None` for radio, for links that are down, and for drivers that make one up.
#[must_use]
pub fn speed(name: &InterfaceName) -> Option<BitRate> {
    if matches!(driver(name).as_str(), "tun" | "veth" | "dummy") {
        return None;
    }
    let settings = ethtool::<44>(name, ETHTOOL_GSET).ok()?;
    let low = u16::from_ne_bytes([settings[12], settings[13]]);
    let high = u16::from_ne_bytes([settings[28], settings[29]]);
    let mbps = u32::from(high) << 16 | u32::from(low);
    (mbps != 0 && mbps < 10_000_000).then(|| BitRate::mbps(u64::from(mbps)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_interface_can_have_is_refused() {
        for bad in ["", "a/b", "two words", "sixteen-letters-", ".."] {
            assert!(bad.parse::<InterfaceName>().is_err(), "{bad}");
        }
        assert_eq!("wlan0".parse::<InterfaceName>().unwrap().as_str(), "wlan0");
    }

    #[test]
    fn the_loopback_is_number_one_and_a_missing_interface_is_none() {
        let mut route = Socket::open(libc::NETLINK_ROUTE).unwrap();
        let loopback = state(&mut route, &"lo".parse().unwrap()).unwrap().unwrap();
        assert_eq!(loopback.ifindex, 1);
        assert_eq!(state_of(&mut route, 1).unwrap().unwrap().ethernet, loopback.ethernet);
        assert_eq!(state(&mut route, &"no-such-link".parse().unwrap()).unwrap(), None);
        assert_eq!(state_of(&mut route, 1 << 30).unwrap(), None);
    }

    #[test]
    fn the_loopback_has_no_wire_speed() {
        assert_eq!(speed(&"lo".parse().unwrap()), None);
    }
}

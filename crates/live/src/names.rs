//! Names of the home's devices, from the files that a router's DHCP server and administrator keep.
//!
//! | file | whose | line |
//! |---|---|---|
//! | `/tmp/dhcp.leases`, `/var/lib/misc/dnsmasq.leases` | dnsmasq (OpenWrt, Debian) | `expiry MAC address name client` |
//! | `/tmp/hosts/odhcpd` | odhcpd (OpenWrt, IPv6) | as in hosts(5) |
//! | `/etc/hosts` | the administrator | `address name ..` |
//!
//! Whom they do not name is asked by multicast DNS ([`mdns`](mod@crate::mdns)). A device chooses what it tells the DHCP server or answers: of its name only letters, digits, `-`, `_` and `.` are kept, 63 at most (RFC 1035
//! section 2.3.4), and of a file the first [`MOST`] lines.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;

use lasthop_files::Terms;

use crate::neighbours::Address;
use crate::stations::Mac;

/// Lines that are read of a file: more than a home has devices.
pub const MOST: usize = 4_096;
const LONGEST: usize = 63;
const LEASES: [&str; 2] = ["/tmp/dhcp.leases", "/var/lib/misc/dnsmasq.leases"];
const HOSTS: [&str; 2] = ["/tmp/hosts/odhcpd", "/etc/hosts"];

/// Who has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Who {
    /// Whoever has this Ethernet address.
    Mac(Mac),
    /// Whoever has this IP address.
    Ip(Address),
}

/// Names, and where each is from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(HashMap<Who, (String, &'static str)>);

impl Names {
    /// Who gave a name that its device gave itself.
    pub const OWN: &'static str = "mdns";

    /// All that the files of this machine say; what cannot be read says nothing.
    #[must_use]
    pub fn read() -> Self {
        let text = |path: &str| lasthop_files::read_text(Path::new(path), Terms::CONFIGURATION).unwrap_or_default();
        let mut names = Self::default();
        HOSTS.iter().for_each(|path| names.add_hosts(&text(path)));
        // The device's own name counts more than one of its addresses.
        LEASES.iter().for_each(|path| names.add_leases(&text(path)));
        names
    }

    /// Adds what dnsmasq keeps.
    pub fn add_leases(&mut self, text: &str) {
        for line in text.lines().take(MOST) {
            let mut fields = line.split_ascii_whitespace().skip(1);
            let (Some(who), Some(address), Some(name)) = (fields.next(), fields.next(), fields.next()) else {
                continue;
            };
            let Some(name) = clean(name) else { continue };
            let at = address.parse().ok().map(|ip| Who::Ip(octets(ip)));
            for who in mac(who).map(Who::Mac).into_iter().chain(at) {
                self.0.insert(who, (name.clone(), "dhcp"));
            }
        }
    }

    /// Adds the lines of hosts(5), but for those of this machine itself.
    pub fn add_hosts(&mut self, text: &str) {
        for line in text.lines().take(MOST) {
            let mut fields = line.split('#').next().unwrap_or_default().split_ascii_whitespace();
            let Some(address) = fields.next().and_then(|text| text.parse::<IpAddr>().ok()) else { continue };
            let is_other = !address.is_loopback() && !address.is_multicast() && !address.is_unspecified();
            if let Some(name) = fields.next().and_then(clean).filter(|_| is_other) {
                self.0.insert(Who::Ip(octets(address)), (name, "hosts"));
            }
        }
    }

    /// Adds what devices call themselves, where nobody else names them.
    pub fn add_own<'a>(&mut self, own: impl Iterator<Item = (Address, &'a str)>) {
        for (address, name) in own {
            if let Some(name) = clean(name) {
                self.0.entry(Who::Ip(address)).or_insert((name, Self::OWN));
            }
        }
    }

    /// Name of a device, and who gave it.
    #[must_use]
    pub fn of(&self, mac: Option<Mac>, address: &Address) -> Option<(String, &'static str)> {
        mac.and_then(|mac| self.0.get(&Who::Mac(mac))).or_else(|| self.0.get(&Who::Ip(*address))).cloned()
    }

    /// Everybody of this name.
    #[must_use]
    pub fn called(&self, name: &str) -> Vec<Who> {
        self.0.iter().filter(|(_, (known, _))| known.eq_ignore_ascii_case(name)).map(|(who, _)| *who).collect()
    }
}

/// An Ethernet address as people write it.
#[must_use]
pub fn mac(text: &str) -> Option<Mac> {
    let mut mac = Mac::default();
    let mut parts = text.split(':');
    for byte in &mut mac {
        let part = parts.next().filter(|part| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit()))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}

fn octets(address: IpAddr) -> Address {
    match address {
        IpAddr::V4(four) => four.to_ipv6_mapped().octets(),
        IpAddr::V6(six) => six.octets(),
    }
}

/// What of a name is kept; `None`: nothing, as of `*`.
fn clean(name: &str) -> Option<String> {
    let is_kept = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let kept: String = name.chars().filter(is_kept).take(LONGEST).collect();
    (!kept.is_empty()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LAPTOP: Mac = [0x02, 0, 0x5e, 0x10, 0, 1];

    /// As dnsmasq 2.89 writes them.
    const DNSMASQ: &str = "\
1732412345 02:00:5e:10:00:01 192.168.1.23 laptop 01:02:00:5e:10:00:01
1732412350 02:00:5e:10:00:02 192.168.1.24 * *
duid 00:01:00:01:2b:aa:bb:cc:02:00:5e:10:00:09
1732412360 123456 2001:db8::23 laptop 00:01:00:01:2b
";

    #[test]
    fn leases_name_a_device_by_both_addresses_and_who_tells_no_name_has_none() {
        let mut names = Names::default();
        names.add_leases(DNSMASQ);
        let four = octets("192.168.1.23".parse().unwrap());
        assert_eq!(names.of(Some(LAPTOP), &[0; 16]), Some(("laptop".to_owned(), "dhcp")));
        assert_eq!(names.of(None, &four), Some(("laptop".to_owned(), "dhcp")));
        assert_eq!(names.of(Some([2, 0, 0x5e, 0x10, 0, 2]), &[0; 16]), None);
        let mut called = names.called("LAPTOP");
        called.sort_unstable();
        assert_eq!(called.len(), 3);
        assert_eq!(called[0], Who::Mac(LAPTOP));
    }

    #[test]
    fn hosts_are_named_but_not_this_machine() {
        let mut names = Names::default();
        names.add_hosts("127.0.0.1 localhost\n::1 ip6-localhost\n192.0.2.9 nas nas.lan # disks\nff02::1 all\nbroken\n");
        assert_eq!(names.0.len(), 1);
        assert_eq!(names.of(None, &octets("192.0.2.9".parse().unwrap())), Some(("nas".to_owned(), "hosts")));
    }

    #[test]
    fn a_name_is_plain_and_short_whatever_the_device_says() {
        assert_eq!(clean("<b>\u{1b}[31mme</b>").as_deref(), Some("b31mmeb"));
        assert_eq!(clean(&"x".repeat(300)).map(|name| name.len()), Some(LONGEST));
        assert_eq!([clean("*"), clean("")], [None, None]);
    }

    proptest! {
        #[test]
        fn whatever_is_in_the_files_names_are_plain(text in "\\PC{0,400}") {
            let mut names = Names::default();
            names.add_leases(&text);
            names.add_hosts(&text);
            prop_assert!(names.0.values().all(|(name, _)| clean(name).as_deref() == Some(name)));
        }
    }
}

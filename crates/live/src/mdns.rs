//! What a device calls itself, asked of it alone by multicast DNS (RFC 6762 sections 5.5 and 6.7).
//!
//! A question goes to the device's own address, with a hop limit of 1, and counts as answered only from there, under the number
//! that it had: nobody else can name a device. Questions are few: one device every `AGAIN`, `MOST` devices.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use lasthop_core::units::{Span, Time};

use crate::neighbours::Address;

/// Devices that are remembered.
const MOST: usize = 256;
/// A device is asked so often.
const AGAIN: Span = Span::from_secs(300);
/// Answers that are read at once.
const MOST_ANSWERS: usize = 64;
const PORT: u16 = 5353;
const HEADER: usize = 12;
const PTR: u16 = 12;
const INTERNET: u16 = 1;
/// A unicast answer is wanted (RFC 6762 section 5.4).
const UNICAST: u16 = 1 << 15;
const IS_ANSWER: u16 = 1 << 15;
/// Kind of question and code of failure.
const OPCODE_AND_RCODE: u16 = 0x780f;
/// Longest name, as text (RFC 1035 section 2.3.4).
const LONGEST: usize = 255;

/// Asks devices for their names.
#[derive(Debug)]
pub struct Mdns {
    four: Option<UdpSocket>,
    six: Option<UdpSocket>,
    asked: HashMap<Address, Asked>,
    random: RandomState,
}

#[derive(Clone, Debug)]
struct Asked {
    at: Time,
    id: u16,
    name: Option<String>,
}

impl Mdns {
    /// With a socket of each family that this kernel has.
    #[must_use]
    pub fn new() -> Self {
        let open = |any: IpAddr| {
            let socket =
                UdpSocket::bind((any, 0)).and_then(|socket| socket.set_nonblocking(true).map(|()| socket)).ok()?;
            stays_on_the_link(&socket, any).ok().map(|()| socket)
        };
        Self {
            four: open(Ipv4Addr::UNSPECIFIED.into()),
            six: open(Ipv6Addr::UNSPECIFIED.into()),
            asked: HashMap::new(),
            random: RandomState::new(),
        }
    }

    /// Asks this device, unless it has just been asked.
    pub fn ask(&mut self, device: &Address, now: Time) {
        let last = self.asked.get(device).cloned();
        if last.as_ref().is_some_and(|asked| now.since(asked.at) < AGAIN) {
            return;
        }
        if last.is_none() && self.asked.len() == MOST {
            let oldest = self.asked.iter().min_by_key(|(_, asked)| asked.at).map(|(device, _)| *device);
            oldest.and_then(|device| self.asked.remove(&device));
        }
        let id = self.random.hash_one((device, now.as_nanos())) as u16;
        let name = last.and_then(|asked| asked.name);
        self.asked.insert(*device, Asked { at: now, id, name });
        let ip = IpAddr::from(*device).to_canonical();
        if let Some(socket) = if ip.is_ipv4() { &self.four } else { &self.six } {
            // Who cannot be asked has no name.
            let _ = socket.send_to(&question(device, id), SocketAddr::new(ip, PORT));
        }
    }

    /// Takes what came since.
    pub fn listen(&mut self) {
        let mut message = [0u8; 1500];
        for socket in [&self.four, &self.six].into_iter().flatten() {
            for _ in 0..MOST_ANSWERS {
                let Ok((length, from)) = socket.recv_from(&mut message) else { break };
                let device = address(from.ip());
                let asked = self.asked.get_mut(&device).filter(|_| from.port() == PORT);
                if let Some(asked) = asked {
                    let name = answer(&message[..length], &device, asked.id);
                    asked.name = name.or(asked.name.take());
                }
            }
        }
    }

    /// Who has said what.
    pub fn names(&self) -> impl Iterator<Item = (Address, &str)> {
        self.asked.iter().filter_map(|(device, asked)| Some((*device, asked.name.as_deref()?)))
    }
}

impl Default for Mdns {
    fn default() -> Self {
        Self::new()
    }
}

/// A question that a router would forward ends there.
fn stays_on_the_link(socket: &UdpSocket, any: IpAddr) -> io::Result<()> {
    match any {
        IpAddr::V4(_) => rustix::net::sockopt::set_ip_ttl(socket, 1)?,
        IpAddr::V6(_) => rustix::net::sockopt::set_ipv6_unicast_hops(socket, Some(1))?,
    }
    Ok(())
}

fn address(ip: IpAddr) -> Address {
    match ip {
        IpAddr::V4(four) => four.to_ipv6_mapped().octets(),
        IpAddr::V6(six) => six.octets(),
    }
}

/// The name that stands for an address: `23.1.168.192.in-addr.arpa`.
fn reverse(device: &Address) -> String {
    match IpAddr::from(*device).to_canonical() {
        IpAddr::V4(four) => {
            let [a, b, c, d] = four.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(six) => {
            let nibbles = six.octets().into_iter().rev().flat_map(|byte| [byte & 15, byte >> 4]);
            nibbles.map(|nibble| format!("{nibble:x}.")).collect::<String>() + "ip6.arpa"
        }
    }
}

/// Asks a device what it is called.
#[must_use]
pub fn question(device: &Address, id: u16) -> Vec<u8> {
    let mut message = [id, 0, 1, 0, 0, 0].map(u16::to_be_bytes).concat();
    for label in reverse(device).split('.') {
        message.push(label.len() as u8);
        message.extend(label.bytes());
    }
    message.push(0);
    message.extend([PTR, INTERNET | UNICAST].map(u16::to_be_bytes).concat());
    message
}

/// The first label of the name that `device` has by its answer to the question of that number.
#[must_use]
pub fn answer(message: &[u8], device: &Address, id: u16) -> Option<String> {
    let word = |at: usize| message.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]]));
    let flags = word(2)?;
    if word(0)? != id || flags & IS_ANSWER == 0 || flags & OPCODE_AND_RCODE != 0 {
        return None;
    }
    let (questions, answers) = (word(4)?, word(6)?);
    let mut at = HEADER;
    for _ in 0..questions {
        at = name(message, at)?.1 + 4;
    }
    for _ in 0..answers {
        let (of, behind) = name(message, at)?;
        let (kind, class, length) = (word(behind)?, word(behind + 2)?, word(behind + 8)?);
        if kind == PTR && class & !UNICAST == INTERNET && of.eq_ignore_ascii_case(&reverse(device)) {
            let (called, _) = name(message, behind + 10)?;
            return called.split('.').next().filter(|label| !label.is_empty()).map(str::to_owned);
        }
        at = behind + 10 + usize::from(length);
    }
    None
}

/// The name at `at`, and what is behind it. A pointer leads to what is before itself (RFC 1035 section 4.1.4), so that it ends.
fn name(message: &[u8], mut at: usize) -> Option<(String, usize)> {
    let (mut text, mut behind, mut before) = (String::new(), None, at);
    loop {
        let length = usize::from(*message.get(at)?);
        match length {
            0 => return Some((text, behind.unwrap_or(at + 1))),
            1..=63 => {
                let label = String::from_utf8_lossy(message.get(at + 1..=at + length)?);
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(&label);
                at += 1 + length;
            }
            192.. => {
                behind.get_or_insert(at + 2);
                at = (length & 63) << 8 | usize::from(*message.get(at + 1)?);
                if at >= before {
                    return None;
                }
                before = at;
            }
            _ => return None,
        }
        if text.len() > LONGEST {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LAPTOP: &str = "192.168.1.23";

    fn device(text: &str) -> Address {
        address(text.parse().unwrap())
    }

    /// What avahi 0.8 answers to a question from another port than 5353, by RFC 6762 section 6.7.
    fn answered(id: u16) -> Vec<u8> {
        let mut message = question(&device(LAPTOP), id);
        message[2..8].copy_from_slice(&[0x84, 0, 0, 1, 0, 1]);
        // The name by a pointer to the question's; PTR, IN, 10 s, 14 bytes: "laptop", "local".
        message.extend([0xc0, 12, 0, 12, 0, 1, 0, 0, 0, 10, 0, 14]);
        message.extend(*b"\x06laptop\x05local\0");
        message
    }

    #[test]
    fn a_question_is_of_the_reverse_name() {
        let asked = question(&device(LAPTOP), 7);
        assert_eq!(asked[..HEADER], [0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(name(&asked, HEADER).unwrap().0, "23.1.168.192.in-addr.arpa");
        assert_eq!(asked[asked.len() - 4..], [0, 12, 0x80, 1]);
        let six = reverse(&device("2001:db8::1"));
        assert!(six.starts_with("1.0.0.0.") && six.ends_with("8.b.d.0.1.0.0.2.ip6.arpa"), "{six}");
    }

    #[test]
    fn an_answer_names_the_device_that_was_asked_by_its_number() {
        let message = answered(7);
        assert_eq!(answer(&message, &device(LAPTOP), 7).as_deref(), Some("laptop"));
        assert_eq!(answer(&message, &device(LAPTOP), 8), None, "another number");
        assert_eq!(answer(&message, &device("192.168.1.24"), 7), None, "another device");
        assert_eq!(answer(&question(&device(LAPTOP), 7), &device(LAPTOP), 7), None, "a question");
        assert_eq!(answer(&message[..message.len() - 1], &device(LAPTOP), 7), None, "cut");
    }

    #[test]
    fn a_device_is_asked_once_and_names_itself_alone() {
        let mut mdns = Mdns { four: None, six: None, ..Mdns::new() };
        let at = Time::from_nanos(1);
        for host in 0..300u16 {
            let [high, low] = host.to_be_bytes();
            mdns.ask(&device(&format!("10.0.{high}.{low}")), at + Span::from_secs(u64::from(host)));
        }
        assert_eq!(mdns.asked.len(), MOST);
        let id = mdns.asked[&device("10.0.1.43")].id;
        mdns.ask(&device("10.0.1.43"), at + Span::from_secs(300));
        assert_eq!(mdns.asked[&device("10.0.1.43")].id, id, "not again so soon");
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_a_name_or_none(mut bytes in prop::collection::vec(any::<u8>(), 0..200), like: bool) {
            if like && bytes.len() > HEADER {
                let whole = answered(7);
                bytes[..HEADER].copy_from_slice(&whole[..HEADER]);
            }
            let called = answer(&bytes, &device(LAPTOP), 7);
            prop_assert!(called.is_none_or(|called| !called.is_empty() && called.len() <= 3 * LONGEST));
        }
    }
}

//! Window scales of connections that are older than the controller, asked from connection tracking.
//!
//! One `IPCTNL_MSG_CT_GET` per connection with its original tuple; the answer carries
//! `CTA_PROTOINFO_TCP_WSCALE_{ORIGINAL,REPLY}`, the scale that each side offered. Scaling is in force only when both
//! SYNs carried the option, which `CTA_PROTOINFO_TCP_FLAGS_*` bit `IP_CT_TCP_FLAG_WINDOW_SCALE` says.
//!
//! Source: `linux/netfilter/nfnetlink_conntrack.h`, `nf_conntrack_tcp.h`. Needs CAP_NET_ADMIN; where the kernel does
//! not track, every answer is `None`.

use std::io;

use lasthop_core::fastpath::layout::FlowKey;

use crate::netlink::{Attributes, Socket, put, put_nested};

const NFNL_SUBSYS_CTNETLINK: u16 = 1;
const IPCTNL_MSG_CT_GET: u16 = 1;
const CTA_TUPLE_ORIG: u16 = 1;
const CTA_PROTOINFO: u16 = 4;
const CTA_TUPLE_IP: u16 = 1;
const CTA_TUPLE_PROTO: u16 = 2;
const CTA_IP_V4_SRC: u16 = 1;
const CTA_IP_V4_DST: u16 = 2;
const CTA_IP_V6_SRC: u16 = 3;
const CTA_IP_V6_DST: u16 = 4;
const CTA_PROTO_NUM: u16 = 1;
const CTA_PROTO_SRC_PORT: u16 = 2;
const CTA_PROTO_DST_PORT: u16 = 3;
const CTA_PROTOINFO_TCP: u16 = 1;
const WSCALE_ORIGINAL: u16 = 2;
const WSCALE_REPLY: u16 = 3;
const FLAGS_ORIGINAL: u16 = 4;
const FLAGS_REPLY: u16 = 5;
const IP_CT_TCP_FLAG_WINDOW_SCALE: u8 = 1;
/// RFC 7323 2.3.
const LARGEST_SCALE: u8 = 14;

/// The two window scales of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scales {
    /// Shift of windows that the station sends.
    pub station: u8,
    /// Shift of windows that the remote end sends.
    pub remote: u8,
}

/// A socket to connection tracking.
#[derive(Debug)]
pub struct Conntrack {
    socket: Socket,
}

/// One end of a connection.
type End = ([u8; 16], u16);

impl Conntrack {
    /// Opens it.
    ///
    /// # Errors
    /// When the kernel has no nfnetlink.
    pub fn open() -> io::Result<Self> {
        Ok(Self { socket: Socket::open(libc::NETLINK_NETFILTER)? })
    }

    /// Scales of the connection `key`; `None` when it is not tracked, or its SYNs were not seen either.
    ///
    /// # Errors
    /// When asking itself fails (no ctnetlink, no privilege).
    pub fn scales(&mut self, key: &FlowKey) -> io::Result<Option<Scales>> {
        // What the station sends is before any NAT: it is the original tuple when the station opened the connection,
        // and the reply's when the remote end did (port forwarding included). The kernel finds either.
        let body = query_body((key.station, key.station_port), (key.remote, key.remote_port));
        let answer = match self.socket.request(NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET, 0, &body) {
            Ok(replies) => replies,
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(answer.first().and_then(|reply| read_scales(reply.body.get(4..)?, key)))
    }
}

/// Address without the `::ffff:` that IPv4 carries in a flow key.
fn v4(address: &[u8; 16]) -> Option<&[u8]> {
    address.starts_with(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]).then(|| &address[12..])
}

fn query_body(from: End, to: End) -> Vec<u8> {
    let ip4 = v4(&from.0).zip(v4(&to.0));
    let family = if ip4.is_some() { libc::AF_INET } else { libc::AF_INET6 };
    let mut body = vec![family as u8, 0, 0, 0]; // struct nfgenmsg
    put_nested(&mut body, CTA_TUPLE_ORIG, |tuple| {
        put_nested(tuple, CTA_TUPLE_IP, |ip| match ip4 {
            Some((source, destination)) => {
                put(ip, CTA_IP_V4_SRC, source);
                put(ip, CTA_IP_V4_DST, destination);
            }
            None => {
                put(ip, CTA_IP_V6_SRC, &from.0);
                put(ip, CTA_IP_V6_DST, &to.0);
            }
        });
        put_nested(tuple, CTA_TUPLE_PROTO, |proto| {
            put(proto, CTA_PROTO_NUM, &[libc::IPPROTO_TCP as u8]);
            put(proto, CTA_PROTO_SRC_PORT, &from.1.to_be_bytes());
            put(proto, CTA_PROTO_DST_PORT, &to.1.to_be_bytes());
        });
    });
    body
}

fn read_scales(attributes: &[u8], key: &FlowKey) -> Option<Scales> {
    let tcp = Attributes::find(Attributes::find(attributes, CTA_PROTOINFO)?, CTA_PROTOINFO_TCP)?;
    let byte = |kind| Attributes::find(tcp, kind).and_then(|v| v.first().copied());
    // A connection that conntrack itself picked up in its middle has unknown scales: its flag is not set, and taking
    // that for "scale 0" would shrink every window. Only what both SYNs said is believed.
    let scaled = |flags| byte(flags).is_some_and(|f| f & IP_CT_TCP_FLAG_WINDOW_SCALE != 0);
    if !scaled(FLAGS_ORIGINAL) || !scaled(FLAGS_REPLY) {
        return None;
    }
    let (original, reply) = (byte(WSCALE_ORIGINAL)?, byte(WSCALE_REPLY)?);
    if original > LARGEST_SCALE || reply > LARGEST_SCALE {
        return None;
    }
    let station_opened = opened_by(Attributes::find(attributes, CTA_TUPLE_ORIG)?, key)?;
    let (station, remote) = if station_opened { (original, reply) } else { (reply, original) };
    Some(Scales { station, remote })
}

/// Whether the original tuple starts at the station.
fn opened_by(tuple: &[u8], key: &FlowKey) -> Option<bool> {
    let ip = Attributes::find(tuple, CTA_TUPLE_IP)?;
    let source = Attributes::find(ip, CTA_IP_V4_SRC).or_else(|| Attributes::find(ip, CTA_IP_V6_SRC))?;
    let port = Attributes::find(Attributes::find(tuple, CTA_TUPLE_PROTO)?, CTA_PROTO_SRC_PORT)?;
    let station = v4(&key.station).unwrap_or(&key.station);
    Some(source == station && port == key.station_port.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> FlowKey {
        FlowKey { station: mapped([10, 0, 0, 1]), remote: mapped([192, 0, 2, 1]), station_port: 5000, remote_port: 80 }
    }

    fn mapped(address: [u8; 4]) -> [u8; 16] {
        let mut mapped = [0u8; 16];
        mapped[10..12].fill(0xff);
        mapped[12..].copy_from_slice(&address);
        mapped
    }

    fn answer(flags: u8, from: End, to: End) -> Vec<u8> {
        let mut body = query_body(from, to)[4..].to_vec();
        put_nested(&mut body, CTA_PROTOINFO, |info| {
            put_nested(info, CTA_PROTOINFO_TCP, |tcp| {
                put(tcp, WSCALE_ORIGINAL, &[7]);
                put(tcp, WSCALE_REPLY, &[10]);
                put(tcp, FLAGS_ORIGINAL, &[flags, 0]);
                put(tcp, FLAGS_REPLY, &[flags, 0]);
            });
        });
        body
    }

    #[test]
    fn scales_go_to_the_side_that_offered_them() {
        let (station, remote) = ((key().station, 5000), (key().remote, 80));
        let from_station = answer(IP_CT_TCP_FLAG_WINDOW_SCALE, station, remote);
        assert_eq!(read_scales(&from_station, &key()), Some(Scales { station: 7, remote: 10 }));
        let from_remote = answer(IP_CT_TCP_FLAG_WINDOW_SCALE, remote, station);
        assert_eq!(read_scales(&from_remote, &key()), Some(Scales { station: 10, remote: 7 }));
    }

    #[test]
    fn scales_are_believed_only_when_both_syns_carried_one() {
        let unseen = answer(0, (key().station, 5000), (key().remote, 80));
        assert_eq!(read_scales(&unseen, &key()), None);
        assert_eq!(read_scales(&[1, 2, 3], &key()), None);
    }

    #[test]
    fn a_mapped_address_is_asked_as_ipv4() {
        assert_eq!(query_body((mapped([10, 0, 0, 1]), 1), (mapped([10, 0, 0, 2]), 2))[0], libc::AF_INET as u8);
        assert_eq!(query_body(([0xfd; 16], 1), (mapped([10, 0, 0, 2]), 2))[0], libc::AF_INET6 as u8);
    }
}

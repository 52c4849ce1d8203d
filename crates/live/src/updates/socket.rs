//! Sends packets of receivers as if they had been forwarded.
//!
//! To servers: a raw socket for each version of IP, headers included. What it sends takes the way of the machine's own packets: routing
//! by destination, the firewall's `output`, then `postrouting`. Connection tracking knows it as a segment of the station's connection, so
//! that it is translated alike.
//!
//! To stations: a packet socket, on the interface and with the Ethernet header of an acknowledgment that has just passed. Connection
//! tracking would take a segment in a server's name for a connection of its own where addresses are translated. Past the queueing
//! discipline, so that it meets no hook of ours, and past a queue that it should not wait in.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use lasthop_core::fastpath::layout::FlowKey;
use lasthop_core::fastpath::window::Update;
use lasthop_core::packet::Direction;

use super::segment::{Packet, v4};
use crate::program::Ask;

/// All of them. A machine without IPv6 lacks one.
#[derive(Debug)]
pub struct Socket {
    four: OwnedFd,
    six: Option<OwnedFd>,
    link: OwnedFd,
}

impl Socket {
    /// In the network namespace of the calling thread.
    ///
    /// # Errors
    /// When raw sockets are refused (CAP_NET_RAW).
    pub fn open() -> io::Result<Self> {
        Ok(Self { four: raw(libc::AF_INET)?, six: raw(libc::AF_INET6).ok(), link: packets()? })
    }

    /// Connections of both versions of IP can be told.
    #[must_use]
    pub const fn has_both(&self) -> bool {
        self.six.is_some()
    }

    /// What was asked for. Never waits.
    ///
    /// # Errors
    /// When there is no route, the firewall refuses, or there is no room.
    pub fn send(&self, ask: &Ask, update: &Update) -> io::Result<()> {
        match ask.direction {
            Direction::ToStation => self.send_to_server(&ask.key, update),
            Direction::ToRemote => self.send_to_station(ask, update),
        }
    }

    fn send_to_station(&self, ask: &Ask, update: &Update) -> io::Result<()> {
        let packet = Packet::new(&ask.key, ask.direction, update);
        let protocol = if v4(&ask.key.station).is_some() { libc::ETH_P_IP } else { libc::ETH_P_IPV6 };
        let frame = [ask.link.bytes(), packet.bytes()].concat();
        // SAFETY: an all-zero sockaddr_ll is a valid value of that plain C struct.
        let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        to.sll_family = libc::AF_PACKET as libc::c_ushort;
        to.sll_ifindex = ask.port as i32;
        to.sll_protocol = (protocol as u16).to_be();
        send(&self.link, &frame, &to)
    }

    fn send_to_server(&self, key: &FlowKey, update: &Update) -> io::Result<()> {
        let packet = Packet::new(key, Direction::ToStation, update);
        match (v4(&key.remote), &self.six) {
            (Some(remote), _) => {
                // SAFETY: an all-zero sockaddr_in is a valid value of that plain C struct.
                let mut to: libc::sockaddr_in = unsafe { std::mem::zeroed() };
                to.sin_family = libc::AF_INET as libc::sa_family_t;
                to.sin_addr.s_addr = u32::from_ne_bytes(*remote);
                send(&self.four, packet.bytes(), &to)
            }
            (None, Some(six)) => {
                // SAFETY: likewise.
                let mut to: libc::sockaddr_in6 = unsafe { std::mem::zeroed() };
                to.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                to.sin6_addr.s6_addr = key.remote;
                send(six, packet.bytes(), &to)
            }
            (None, None) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

fn raw(family: i32) -> io::Result<OwnedFd> {
    open(family, libc::IPPROTO_RAW)
}

/// It receives nothing.
fn packets() -> io::Result<OwnedFd> {
    let socket = open(libc::AF_PACKET, 0)?;
    let on: libc::c_int = 1;
    // SAFETY: the value is as long as it is said to be.
    let set = unsafe {
        let (level, name) = (libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS);
        let value = std::ptr::from_ref(&on).cast();
        libc::setsockopt(socket.as_raw_fd(), level, name, value, size_of::<libc::c_int>() as libc::socklen_t)
    };
    if set < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
}

fn open(family: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: a plain call.
    let fd = unsafe { libc::socket(family, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn send<T>(socket: &OwnedFd, bytes: &[u8], to: &T) -> io::Result<()> {
    // SAFETY: both references are valid for the lengths beside them.
    let sent = unsafe {
        let (fd, flags) = (socket.as_raw_fd(), libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
        let (to, length) = (std::ptr::from_ref(to).cast(), size_of::<T>() as libc::socklen_t);
        libc::sendto(fd, bytes.as_ptr().cast(), bytes.len(), flags, to, length)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

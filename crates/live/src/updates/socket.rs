//! Sends packets of stations as if they had been forwarded: a raw socket for each version of IP, headers included.
//!
//! What it sends takes the way of the machine's own packets: routing by destination, the firewall's `output`, then
//! `postrouting`. Connection tracking knows it as a segment of the station's connection, so that it is translated alike.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use lasthop_core::fastpath::layout::FlowKey;
use lasthop_core::fastpath::window::Update;

use super::segment::{Packet, v4};

/// Both sockets. A machine without IPv6 has one.
#[derive(Debug)]
pub struct Socket {
    four: OwnedFd,
    six: Option<OwnedFd>,
}

impl Socket {
    /// In the network namespace of the calling thread.
    ///
    /// # Errors
    /// When raw sockets are refused (CAP_NET_RAW).
    pub fn open() -> io::Result<Self> {
        Ok(Self { four: raw(libc::AF_INET)?, six: raw(libc::AF_INET6).ok() })
    }

    /// Connections of both versions of IP can be told.
    #[must_use]
    pub const fn has_both(&self) -> bool {
        self.six.is_some()
    }

    /// Never waits.
    ///
    /// # Errors
    /// When there is no route, the firewall refuses, or there is no room.
    pub fn send(&self, key: &FlowKey, update: &Update) -> io::Result<()> {
        let packet = Packet::new(key, update);
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
    // SAFETY: a plain call.
    let fd = unsafe { libc::socket(family, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::IPPROTO_RAW) };
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

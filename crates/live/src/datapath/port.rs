//! Packet sockets on the interface itself: frames out, and a look at what stations send.
//!
//! What is sent passes the interface's tc hooks and its queue discipline like any other frame. The socket's buffer is kept
//! short: where what lies below holds frames back until they are sent (a driver that completes late, a shaper), it is full
//! after a few milliseconds, and the rest waits in our queue instead of there.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use lasthop_core::units::{BitRate, Span};

use super::engine::{BATCH, Engine, Frame};

/// Of what may lie below us, unless a driver has sent it already.
const BELOW: Span = Span::from_millis(8);
/// Never less: an aggregate of Wi-Fi, a driver that completes in batches. The kernel counts twice a frame's bytes or so.
const LEAST: u64 = 32 << 10;
const MOST: u64 = 4 << 20;

/// Where frames leave.
#[derive(Debug)]
pub struct Port {
    socket: OwnedFd,
    ifindex: u32,
    ethernet: bool,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Frames that are gone, from the first on: sent, or refused for good.
    pub gone: usize,
    /// Of those, refused: the interface is down, or its queue full.
    pub refused: usize,
    /// The socket takes no more now.
    pub is_blocked: bool,
}

fn packet_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // Protocol 0: it receives nothing until it is bound to one.
    // SAFETY: a plain socket call; the result is checked before it is owned.
    let raw = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `raw` is a descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

fn address(ifindex: u32, protocol: u16) -> libc::sockaddr_ll {
    // SAFETY: an all-zero sockaddr_ll is a valid value of that plain C struct.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = ifindex as i32;
    address
}

fn set(socket: &OwnedFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the value is an int and its size is given.
    let result = unsafe {
        let size = size_of::<libc::c_int>() as u32;
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), size)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl Port {
    /// On the interface with this number.
    ///
    /// # Errors
    /// The failed system call: without CAP_NET_RAW there are no packet sockets.
    pub fn new(ifindex: u32, ethernet: bool) -> io::Result<Self> {
        Ok(Self { socket: packet_socket()?, ifindex, ethernet })
    }

    /// By which tc hooks know what it has sent.
    ///
    /// # Errors
    /// Before Linux 4.12.
    pub fn cookie(&self) -> io::Result<u64> {
        let (mut cookie, mut size) = (0u64, size_of::<u64>() as libc::socklen_t);
        // SAFETY: the option's value is a u64 and its size is given.
        let result = unsafe {
            let value = (&raw mut cookie).cast();
            libc::getsockopt(self.socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_COOKIE, value, &raw mut size)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(cookie) }
    }

    /// Sets how much may lie below, for packets that leave at this rate.
    pub fn set_rate(&self, rate: BitRate) {
        let bytes = (2 * rate.bytes_in(BELOW)).clamp(LEAST, MOST);
        // The kernel doubles it. Refused: the system's default stays.
        let _ = set(&self.socket, libc::SOL_SOCKET, libc::SO_SNDBUF, (bytes / 2) as i32);
    }

    /// Sends frames, at most [`BATCH`], as far as the socket takes them.
    #[must_use]
    pub fn send(&self, engine: &Engine, frames: &[Frame]) -> Sent {
        let mut sent = Sent::default();
        while sent.gone < frames.len() && !sent.is_blocked {
            match self.send_some(engine, &frames[sent.gone..]) {
                Ok(count) => sent.gone += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => sent.is_blocked = true,
                // ENOBUFS: dropped below; ENETDOWN, ENXIO: no interface; EMSGSIZE: too long. The next may fare better.
                Err(_) => {
                    sent.gone += 1;
                    sent.refused += 1;
                }
            }
        }
        sent
    }

    fn send_some(&self, engine: &Engine, frames: &[Frame]) -> io::Result<usize> {
        let count = frames.len().min(BATCH);
        // SAFETY: all-zero values of these plain C structs are valid.
        let (mut addresses, mut pieces, mut messages): (
            [libc::sockaddr_ll; BATCH],
            [libc::iovec; BATCH],
            [libc::mmsghdr; BATCH],
        ) = unsafe { (zeroed(), zeroed(), zeroed()) };
        for (i, frame) in frames.iter().take(count).enumerate() {
            let bytes = engine.bytes(frame);
            addresses[i] = address(self.ifindex, self.protocol(bytes));
            pieces[i] = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
            let message = &mut messages[i].msg_hdr;
            message.msg_name = (&raw mut addresses[i]).cast();
            message.msg_namelen = size_of::<libc::sockaddr_ll>() as u32;
            message.msg_iov = &raw mut pieces[i];
            message.msg_iovlen = 1;
        }
        // SAFETY: `count` messages are filled; what they point to lives until the call returns, and is only read.
        let result = unsafe {
            // Flags are unsigned in musl.
            libc::sendmmsg(self.socket.as_raw_fd(), messages.as_mut_ptr(), count as u32, libc::MSG_DONTWAIT as _)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
    }

    fn protocol(&self, frame: &[u8]) -> u16 {
        if self.ethernet {
            return frame.get(12..14).map_or(0, |kind| u16::from_be_bytes([kind[0], kind[1]]));
        }
        let version = frame.first().map_or(0, |byte| byte >> 4);
        (if version == 6 { libc::ETH_P_IPV6 } else { libc::ETH_P_IP }) as u16
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Packets with this mark are not received (a filter in classic BPF).
fn leave_out(socket: &OwnedFd, mark: u32) -> io::Result<()> {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    /// `SKF_AD_OFF + SKF_AD_MARK` of linux/filter.h.
    const MARK: u32 = 0xffff_f000 + 20;
    let step = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    let mut steps =
        [step(LOAD_WORD, 0, MARK), step(JUMP_IF_EQUAL, 1, mark), step(RETURN, 0, u32::MAX), step(RETURN, 0, 0)];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the program and its steps live until the call returns, which copies them.
    let result = unsafe {
        let size = size_of::<libc::sock_fprog>() as u32;
        let value = (&raw const program).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, value, size)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What stations send, seen as it comes in.
#[derive(Debug)]
pub struct Ear {
    socket: OwnedFd,
    buffer: Box<[u8]>,
}

/// Larger than what GRO merges by default.
const LONGEST: usize = 72 << 10;
const SOL_PACKET: libc::c_int = 263;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

impl Ear {
    /// On the interface with this number; packets with the mark `but` are not heard.
    ///
    /// # Errors
    /// The failed system call; before Linux 4.20 it cannot leave out what we send ourselves.
    pub fn new(ifindex: u32, but: Option<u32>) -> io::Result<Self> {
        let socket = packet_socket()?;
        set(&socket, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)?;
        if let Some(mark) = but {
            leave_out(&socket, mark)?;
        }
        let to = address(ifindex, libc::ETH_P_ALL as u16);
        // SAFETY: the address is readable for the length given.
        let result = unsafe {
            let size = size_of::<libc::sockaddr_ll>() as u32;
            libc::bind(socket.as_raw_fd(), (&raw const to).cast(), size)
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { socket, buffer: vec![0; LONGEST].into_boxed_slice() })
    }

    /// The next frame; none when there is none now. What comes faster than it is read is lost here, and nowhere else.
    pub fn hear(&mut self) -> Option<&[u8]> {
        let flags = rustix::net::RecvFlags::DONTWAIT;
        let (length, _) = rustix::net::recv(&self.socket, &mut self.buffer[..], flags).ok()?;
        Some(&self.buffer[..length])
    }
}

impl AsFd for Ear {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

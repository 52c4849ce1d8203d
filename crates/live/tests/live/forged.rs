//! Segments that nobody's TCP made, and what of a connection passes an interface.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use lasthop_core::wire::build::{Frame, LinkHeaders, Segment, v4};
use lasthop_core::wire::{Endpoint, Link, Parsed, TcpFields, parse};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::namespace::Namespace;

/// As far as the router, which looks at it and carries it no further.
pub const TO_THE_ROUTER: u8 = 1;
/// By this a capture knows what was forged: nobody's TCP begins with it, and on the way it becomes less.
pub const ALL_THE_WAY: u8 = 33;

/// An IPv4 packet to be.
#[derive(Clone)]
pub struct Forged {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub segment: Segment,
    /// Whether the segment's checksum is right.
    pub intact: bool,
    pub ttl: u8,
}

fn endpoint(at: SocketAddr) -> Endpoint {
    let IpAddr::V4(address) = at.ip() else { panic!("{at} is not of IPv4") };
    Endpoint { address: v4(address.octets()), port: at.port() }
}

impl Forged {
    fn packet(&self) -> Vec<u8> {
        let frame = Frame::tcp(endpoint(self.from), endpoint(self.to), self.segment.clone(), 0);
        let mut packet = Frame { link: LinkHeaders::None, ..frame }.bytes();
        packet[8] = self.ttl;
        if !self.intact {
            packet[36] ^= 0xff;
        }
        packet
    }
}

pub fn socket(domain: i32, kind: i32, protocol: i32) -> OwnedFd {
    // SAFETY: a plain call; what it returns is looked at and owned by nobody else.
    unsafe {
        let raw = libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol);
        assert!(raw >= 0, "a raw socket: {}", std::io::Error::last_os_error());
        OwnedFd::from_raw_fd(raw)
    }
}

/// Sends them from inside `space`, one after the other; its kernel writes checksums of IP headers, and nothing else.
pub fn send(space: &Namespace, forged: Vec<Forged>) {
    space.inside(move || {
        let socket = socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_RAW);
        for one in &forged {
            let packet = one.packet();
            // SAFETY: an all-zero sockaddr_in is a valid value of that plain C struct.
            let mut to: libc::sockaddr_in = unsafe { std::mem::zeroed() };
            to.sin_family = libc::AF_INET as u16;
            to.sin_addr.s_addr = u32::from_ne_bytes(packet[16..20].try_into().expect("four bytes"));
            let length = size_of_val(&to) as u32;
            // SAFETY: packet and address are readable for the lengths given.
            let sent = unsafe {
                let to = (&raw const to).cast();
                libc::sendto(socket.as_raw_fd(), packet.as_ptr().cast(), packet.len(), 0, to, length)
            };
            assert!(sent == packet.len() as isize, "it is sent: {}", std::io::Error::last_os_error());
        }
    });
}

/// Segments of one connection one way that nobody forged, as they come in.
pub struct Capture {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<TcpFields>>,
}

/// All that comes into `space` `from` one end of a connection `to` the other, by an interface without link headers.
pub fn capture(space: &Namespace, from: SocketAddr, to: SocketAddr) -> Capture {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    // SOCK_DGRAM: packets come without link headers, also where there are some.
    let socket = space.inside(|| socket(libc::AF_PACKET, libc::SOCK_DGRAM, i32::from((libc::ETH_P_IP as u16).to_be())));
    let (from, to) = (endpoint(from), endpoint(to));
    let thread = std::thread::spawn(move || {
        let (mut seen, mut packet) = (Vec::new(), [0; 65_536]);
        while !flag.load(Ordering::Relaxed) {
            let wait = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            if poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&wait)) != Ok(1) {
                continue;
            }
            let Ok(length) = rustix::io::read(&socket, &mut packet) else { continue };
            if packet[8] < ALL_THE_WAY {
                continue;
            }
            match parse(&packet[..length], Link::Ip) {
                Parsed::Tcp(tcp) if tcp.source == from && tcp.destination == to => seen.push(tcp),
                _ => {}
            }
        }
        seen
    });
    Capture { stop, thread }
}

impl Capture {
    pub fn finish(self) -> Vec<TcpFields> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic")
    }
}

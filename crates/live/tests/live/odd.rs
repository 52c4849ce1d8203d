//! Odd packets on the wire beside a download: mutations of a neighbour's living connections, in both directions.
//!
//! All of them meet the program and go no further: what they change, they change by what is believed. The download arrives as it was
//! sent, as fast as before, and no right edge that its sender is told moves left (RFC 9293 section 3.8.6).
//!
//! `ODD_PACKETS=1000000 ODD_SEED=7 tools/test -p lasthop-live --test live -- odd` is a longer form, and another one.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lasthop_core::packet::Direction;
use lasthop_core::wire::{Merged, TcpFields, flag, seq};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::attacks::{Home, home};
use crate::forged::{ALL_THE_WAY, TO_THE_ROUTER, capture, socket};
use crate::headers::Found;
use crate::mutate::{Crossing, mutate};
use crate::random::Random;
use crate::traffic::{Download, echo, ping_from};
use crate::world::{RATE, World};

const PACKETS: u64 = 20_000;
const SEED: u64 = 11;
const PER_SECOND: f64 = 10_000.0;
/// Newest packets of the neighbour that are mutated.
const KNOWN: usize = 64;
const CONNECTIONS: usize = 4;
const NEIGHBOUR: [u8; 4] = [10, 9, 1, 3];
/// What is left of [`ALL_THE_WAY`] after the router.
const AFTER_THE_ROUTER: u8 = ALL_THE_WAY - 1;

/// A thread that ends when this is dropped.
struct Until {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Until {
    fn stopped(thread: impl FnOnce(Arc<AtomicBool>) -> JoinHandle<()>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        Self { stop: stop.clone(), thread: Some(thread(stop)) }
    }
}

impl Drop for Until {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("it is dropped once").join().expect("no panic");
    }
}

/// Connections of the neighbour over which a few bytes go back and forth; one that a stranger ends begins anew.
fn talk(home: &Home) -> Vec<Until> {
    let listener = home.world.server.inside(|| TcpListener::bind(World::server_at(World::SERVER, 0)).expect("a port"));
    let server = listener.local_addr().expect("an address");
    listener.set_nonblocking(true).expect("a flag");
    let answers = Until::stopped(|stop| {
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let Ok((end, _)) = listener.accept() else {
                    std::thread::park_timeout(Duration::from_millis(2));
                    continue;
                };
                // It ends with the connection.
                std::thread::spawn(move || answer(end));
            }
        })
    });
    let one = |_| {
        Until::stopped(|stop| {
            home.neighbour.spawn(move || {
                let mut end = None;
                while !stop.load(Ordering::Relaxed) {
                    let new = || TcpStream::connect_timeout(&server, Duration::from_millis(500)).ok();
                    let Some(open) = end.take().or_else(new) else { continue };
                    end = say(open);
                    std::thread::park_timeout(Duration::from_millis(2));
                }
            })
        })
    };
    std::iter::once(answers).chain((0..CONNECTIONS).map(one)).collect()
}

fn answer(mut end: TcpStream) {
    let _ = end.set_nonblocking(false).and_then(|()| end.set_read_timeout(Some(Duration::from_secs(2))));
    let mut word = [0; 100];
    while matches!(end.read(&mut word), Ok(1..)) && end.write_all(&word).is_ok() {}
}

fn say(mut end: TcpStream) -> Option<TcpStream> {
    end.set_read_timeout(Some(Duration::from_millis(500))).ok()?;
    end.write_all(&[7; 100]).ok()?;
    end.read(&mut [0; 100]).ok().filter(|length| *length > 0).map(|_| end)
}

/// The newest packets of the neighbour, as they pass the router.
fn watch(home: &Home, known: Arc<Mutex<VecDeque<Crossing>>>) -> Until {
    let all = i32::from((libc::ETH_P_ALL as u16).to_be());
    let socket = home.world.router.inside(move || bound(socket(libc::AF_PACKET, libc::SOCK_DGRAM, all), c"wan0"));
    Until::stopped(|stop| {
        std::thread::spawn(move || {
            let mut packet = [0; 65_536];
            while !stop.load(Ordering::Relaxed) {
                let wait = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
                if poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&wait)) != Ok(1) {
                    continue;
                }
                let Ok(length @ 40..) = rustix::io::read(&socket, &mut packet) else { continue };
                let packet = &packet[..length];
                let direction = match (&packet[12..16], &packet[16..20]) {
                    _ if packet[8] <= ALL_THE_WAY || packet[9] != libc::IPPROTO_TCP as u8 => continue,
                    (from, _) if from == NEIGHBOUR => Direction::ToRemote,
                    (_, to) if to == NEIGHBOUR => Direction::ToStation,
                    _ => continue,
                };
                if Found::of(packet, true, false).is_none() {
                    continue;
                }
                let merged = Merged { segments: 1, segment_bytes: 0 };
                let mut known = known.lock().expect("no panic");
                known.push_back(Crossing { direction, raw: true, merged, frame: packet.to_vec() });
                if known.len() > KNOWN {
                    known.pop_front();
                }
            }
        })
    })
}

/// An interface, for packets of IPv4 to everybody on it.
fn link(interface: &CStr) -> libc::sockaddr_ll {
    // SAFETY: an all-zero sockaddr_ll is a valid value of that plain C struct.
    let mut at: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    at.sll_family = libc::AF_PACKET as u16;
    at.sll_protocol = (libc::ETH_P_IP as u16).to_be();
    // SAFETY: a text with its final zero.
    at.sll_ifindex = unsafe { libc::if_nametoindex(interface.as_ptr()) } as i32;
    at.sll_halen = 6;
    at.sll_addr[..6].fill(0xff);
    at
}

/// A packet socket that sees one interface, all of its packets.
fn bound(socket: OwnedFd, interface: &CStr) -> OwnedFd {
    let at = libc::sockaddr_ll { sll_protocol: (libc::ETH_P_ALL as u16).to_be(), ..link(interface) };
    // SAFETY: the address is readable for its length.
    let result =
        unsafe { libc::bind(socket.as_raw_fd(), (&raw const at).cast(), size_of::<libc::sockaddr_ll>() as u32) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    socket
}

/// Where packets of strangers come in.
struct Door {
    socket: OwnedFd,
    to: libc::sockaddr_ll,
}

impl Door {
    fn new(socket: OwnedFd, interface: &CStr) -> Self {
        Self { socket, to: link(interface) }
    }

    fn send(&self, packet: &[u8]) -> bool {
        // SAFETY: packet and address are readable for the lengths given.
        let sent = unsafe {
            let length = size_of::<libc::sockaddr_ll>() as u32;
            let to = (&raw const self.to).cast();
            libc::sendto(self.socket.as_raw_fd(), packet.as_ptr().cast(), packet.len(), 0, to, length)
        };
        sent == packet.len() as isize
    }
}

/// What packets that are sent beside a download are.
#[derive(Clone, Copy)]
enum Kind {
    /// The mutated ones.
    Odd,
    /// As many of the same lengths that say nothing to anybody: of a protocol for experiments (RFC 3692).
    Meaningless,
}

/// With that time to live, and a right checksum of the IP header, as far as there is one.
fn with_ttl(packet: &mut [u8], ttl: u8) {
    let header = packet.first().map_or(0, |first| usize::from(first & 15) * 4);
    if packet.len() < 20.max(header) || header < 20 || packet[0] >> 4 != 4 {
        return;
    }
    packet[8] = ttl;
    packet[10..12].fill(0);
    let sum: u32 = packet[..header].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !(((folded & 0xffff) + (folded >> 16)) as u16);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Sends so many packets, each in at the side where its direction begins; how many were taken.
fn interfere(home: &Home, known: &Mutex<VecDeque<Crossing>>, kind: Kind, (packets, seed): (u64, u64)) -> u64 {
    let open = || socket(libc::AF_PACKET, libc::SOCK_DGRAM, 0);
    let near = home.neighbour.inside(move || Door::new(open(), c"c0"));
    let far = home.world.server.inside(move || Door::new(open(), c"s0"));
    let (mut random, begun, mut taken) = (Random::new(seed), Instant::now(), 0);
    for number in 0..packets {
        while number as f64 > begun.elapsed().as_secs_f64() * PER_SECOND {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        let of = {
            let known = known.lock().expect("no panic");
            let Some(of) = known.get(random.below(known.len().max(1) as u32) as usize) else { continue };
            of.clone()
        };
        let (mut odd, _) = mutate(&of, &mut random);
        let (door, ttl) = match odd.direction {
            Direction::ToRemote => (&near, TO_THE_ROUTER),
            Direction::ToStation => (&far, ALL_THE_WAY),
        };
        if let (Kind::Meaningless, Some(protocol)) = (kind, odd.frame.get_mut(9)) {
            *protocol = 253;
        }
        with_ttl(&mut odd.frame, ttl);
        taken += u64::from(!odd.frame.is_empty() && door.send(&odd.frame));
    }
    taken
}

/// The last hop, which carries nothing of what strangers sent.
fn keep_out(home: &Home) {
    let (rate, ttl) = (RATE.as_bps(), AFTER_THE_ROUTER);
    for words in [
        "qdisc replace dev lan0 root handle 1: htb default 1".to_owned(),
        format!("class add dev lan0 parent 1: classid 1:1 htb rate {rate}bit burst 5kb quantum 1514"),
        "class add dev lan0 parent 1: classid 1:2 htb rate 8bit quantum 1514".to_owned(),
        "qdisc add dev lan0 parent 1:1 pfifo limit 1000".to_owned(),
        "qdisc add dev lan0 parent 1:2 pfifo limit 1".to_owned(),
        format!("filter add dev lan0 parent 1: protocol ip prio 1 u32 match u8 {ttl} 0xff at 8 flowid 1:2"),
    ] {
        home.world.router.tool("tc", &words);
    }
}

/// How far the right edge that their sender has moved left at most, bytes.
///
/// A window update and an ACK may overtake each other, and a sender tells that by their numbers (RFC 9293 section 3.10.7.4): an older
/// acknowledgment changes no window, and one with the same numbers only enlarges it (4.4BSD, Linux's `tcp_may_update_window`).
fn moved_left(acks: &[TcpFields], scale: u8) -> i32 {
    let edge = |tcp: &TcpFields| tcp.ack.wrapping_add(u32::from(tcp.window) << scale);
    let Some(first) = acks.first() else { return 0 };
    let (mut ack, mut wl1, mut right, mut furthest, mut most) = (first.ack, first.seq, edge(first), edge(first), 0);
    for tcp in acks.iter().filter(|tcp| tcp.has(flag::ACK)) {
        let newer = seq::after(tcp.ack, ack) || seq::after(tcp.seq, wl1);
        let larger = tcp.seq == wl1 && seq::after(edge(tcp), right);
        if seq::after(ack, tcp.ack) || !(newer || larger) {
            continue;
        }
        (ack, wl1, right) = (tcp.ack, tcp.seq, edge(tcp));
        most = most.max(furthest.wrapping_sub(right) as i32);
        furthest = seq::later(furthest, right);
    }
    most
}

#[test]
fn what_is_older_moves_no_edge_and_what_is_newer_does() {
    let tcp = |ack, window| TcpFields { ack, window, seq: 7, flags: flag::ACK, ..TcpFields::default() };
    let overtaken = [tcp(100, 50), tcp(200, 50), tcp(100, 60), tcp(200, 40), tcp(300, 50)];
    assert_eq!(moved_left(&overtaken, 3), 0);
    assert_eq!(moved_left(&[tcp(100, 50), tcp(200, 20), tcp(220, 18)], 3), 140, "to 360 from 500");
}

fn median(round_trips: Vec<f64>) -> f64 {
    round_trips.get(round_trips.len() / 2).copied().unwrap_or(f64::MAX)
}

/// What a download has while something else goes on, Mbit/s.
fn fares<T>(download: &Download, meanwhile: impl FnOnce() -> T) -> (f64, T) {
    let (begun, before) = (Instant::now(), download.received());
    let what = meanwhile();
    ((download.received() - before) as f64 * 8e-6 / begun.elapsed().as_secs_f64(), what)
}

#[test]
fn odd_packets_of_a_neighbour_change_nothing_of_a_download() {
    let test = "odd_packets_of_a_neighbour_change_nothing_of_a_download";
    let number = |name: &str, default| std::env::var(name).map_or(default, |value| value.parse().expect("a number"));
    let (packets, seed) = (number("ODD_PACKETS", PACKETS), number("ODD_SEED", SEED));
    let Some(home) = home(test) else { return };
    keep_out(&home);
    let running = home.world.control(home.world.config()).expect("a controller");
    let (echo, stop) = echo(&home.world, World::SERVER);
    let known = Arc::new(Mutex::new(VecDeque::new()));
    let _watch = watch(&home, known.clone());
    let _talk = talk(&home);
    let download = Download::start(&home.world, World::SERVER);
    running.wait_for("it lowers windows", |s| s.control.rewritten > 1_000);
    let (station, server) = download.ends();
    for attempt in 1..=3 {
        let lasts = Duration::from_secs_f64(packets as f64 / PER_SECOND);
        let beside = |kind| {
            fares(&download, || {
                std::thread::scope(|scope| {
                    let pings = scope.spawn(|| median(ping_from(&home.neighbour, echo, lasts)));
                    let taken = interfere(&home, &known, kind, (packets, seed));
                    (pings.join().expect("no panic"), taken)
                })
            })
        };
        let (before, (usual, _)) = beside(Kind::Meaningless);
        let acks = capture(&home.world.server, station, server);
        let (during, (wait, taken)) = beside(Kind::Odd);
        let acks = acks.finish();
        assert!(acks.len() > 100, "only {} acknowledgments reached the server", acks.len());
        let left = moved_left(&acks, download.scale());
        let status = running.status();
        eprintln!(
            "{test}: {taken} of {packets} odd packets taken; {before:.2} -> {during:.2} Mbit/s, {usual:.1} -> {wait:.1} ms; \
             {} invalid, {} malformed; edges {left} bytes to the left at most",
            status.packets["invalid"], status.packets["malformed"],
        );
        assert!(taken > packets / 2, "{taken} of {packets} were sent");
        // Rounding down to the unit of the window may take back less than one (RFC 7323 section 2.4).
        let unit = 1 << download.scale();
        assert!(left < unit, "an edge moved left by {left} bytes where the unit of the window is {unit}");
        let unharmed = during >= 0.95 * before && wait <= usual + 2.0;
        assert!(unharmed || attempt < 3, "{before:.2} -> {during:.2} Mbit/s, {usual:.1} -> {wait:.1} ms");
        if unharmed {
            break;
        }
    }
    let lowered = running.status().control.rewritten;
    running.wait_for("its windows are still lowered", |s| s.control.rewritten > lowered + 50);
    stop.store(true, Ordering::Relaxed);
    download.finish().expect("whole, in order");
}

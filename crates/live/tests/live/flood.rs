//! Hundreds of thousands of half-open connections beside one that works, and more connections than have a place.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use lasthop_core::wire::build::{Frame, Segment, v4};
use lasthop_core::wire::{Endpoint, flag};
use lasthop_live::Config;
use lasthop_live::config::AttachMode;
use lasthop_status::{FlowStatus, Status};

use crate::child::Process;
use crate::traffic::Download;
use crate::world::{World, world};

const HALF_OPEN: u32 = 100_000;
/// A flood as a neighbour's machine makes it.
const SYNS_PER_SECOND: u32 = 60_000;

/// A SYN from a station to made-up addresses and ports, as an Ethernet frame to everybody.
fn syn(number: u32, station: u8) -> Vec<u8> {
    let [low, middle] = [number as u16, (number >> 16) as u16];
    let from = Endpoint { address: v4([10, 9, 1, station]), port: low };
    let to = Endpoint { address: v4([198, 51, 100, middle as u8]), port: 443 };
    let syn = Segment { seq: number, ack: 0, flags: flag::SYN, window: 0xff00, options: vec![] };
    let mut frame = Frame::tcp(from, to, syn, 0).bytes();
    frame[..6].fill(0xff);
    frame
}

/// A datagram from the station to made-up addresses and ports.
fn datagram(number: u32) -> Vec<u8> {
    let [low, middle] = [number as u16, (number >> 16) as u16];
    let from = Endpoint { address: v4([10, 9, 1, 2]), port: low };
    let mut frame = Frame::udp(from, Endpoint { address: v4([198, 51, 100, middle as u8]), port: 443 }, 30).bytes();
    frame[..6].fill(0xff);
    frame
}

/// So many frames, at most so many in a second.
fn flood(number: u32, per_second: u32, frame: impl Fn(u32) -> Vec<u8>) -> io::Result<()> {
    // SAFETY: a plain socket call; the result is checked before it is owned.
    let raw = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `raw` is a descriptor that nobody else owns.
    let socket = unsafe { OwnedFd::from_raw_fd(raw) };
    // SAFETY: an all-zero sockaddr_ll is a valid value of that plain C struct.
    let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    to.sll_family = libc::AF_PACKET as u16;
    // SAFETY: a text with its final zero.
    to.sll_ifindex = unsafe { libc::if_nametoindex(c"c0".as_ptr()) } as i32;
    to.sll_halen = 6;
    let begun = Instant::now();
    for number in 0..number {
        while f64::from(number) > begun.elapsed().as_secs_f64() * f64::from(per_second) {
            std::thread::park_timeout(Duration::from_millis(2));
        }
        let frame = frame(number);
        // SAFETY: frame and address are readable for the lengths given.
        let sent = unsafe {
            let length = size_of::<libc::sockaddr_ll>() as u32;
            libc::sendto(socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0, (&raw const to).cast(), length)
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Those that have passed, about: what some may promise is lowered, so that they do not begin all at once, and some find no place.
fn syns(status: &Status) -> u64 {
    status.packets["syn"] + status.packets["rewritten"] + status.packets["table-full"]
}

#[test]
fn a_hundred_thousand_half_open_connections_do_not_push_out_a_download() {
    let test = "a_hundred_thousand_half_open_connections_do_not_push_out_a_download";
    let Some(world) = world(test) else { return };
    let running = world.control(Config { flows: 8192, ..world.config() }).expect("a controller");
    let download = Download::start(&world, World::SERVER);
    let status = running.wait_for("it lowers windows", |s| s.control.rewritten > 100);
    let (name, lowered) = (status.flows[0].flow.clone(), status.flows[0].rewritten);

    let before = syns(&status);
    world.station.inside(|| flood(HALF_OPEN, u32::MAX, |number| syn(number, 2))).expect("frames are sent");
    let status = running.wait_for("all of them passed the hook", |s| syns(s) >= before + u64::from(HALF_OPEN));
    let intervals = status.controller.intervals;
    let status = running.wait_for("it has looked at them", |s| s.controller.intervals > intervals + 1);

    eprintln!("{test}: {:?}, longest decision {:.1} ms", status.table, status.controller.longest_ms);
    assert!(status.table.connections <= 8192, "{:?}", status.table);
    let flow = status.flows.iter().find(|f| f.flow == name).expect("the download is still known");
    assert!(flow.rewritten >= lowered, "and it is the same entry");
    running.wait_for("it is still lowered", |s| s.flows.iter().any(|f| f.flow == name && f.rewritten > lowered + 50));
    download.finish().expect("the connection lives");
}

fn of<'a>(status: &'a Status, name: &str) -> Option<&'a FlowStatus> {
    status.flows.iter().find(|flow| flow.flow == name)
}

/// What passed of a connection is counted at its place: one that had lost it would begin anew, with less than passed before.
#[test]
fn a_connection_that_pauses_while_another_station_floods_comes_back_to_its_place() {
    let test = "a_connection_that_pauses_while_another_station_floods_comes_back_to_its_place";
    let Some(world) = world(test) else { return };
    let running = world.control(Config { flows: 1024, ..world.config() }).expect("a controller");
    let download = Download::start(&world, World::SERVER);
    let status = running.wait_for("it lowers windows", |s| s.control.rewritten > 1_000);
    let name = status.flows[0].flow.clone();
    download.pause(true);
    let before = running.wait_for("nothing moves", |s| of(s, &name).is_some_and(|flow| flow.rate_bps < 1_000));
    let FlowStatus { bytes, rewritten, .. } = of(&before, &name).expect("it is known").clone();

    let number = 4 * SYNS_PER_SECOND;
    world.station.inside(move || flood(number, SYNS_PER_SECOND, |number| syn(number, 3))).expect("frames are sent");
    let status = running.wait_for("all of them passed", |s| syns(s) >= syns(&before) + u64::from(number));
    eprintln!("{test}: {:?}, longest decision {:.1} ms", status.table, status.controller.longest_ms);

    download.pause(false);
    let moves = running.wait_for("it moves again", |s| of(s, &name).is_some_and(|flow| flow.bytes != bytes));
    assert!(
        of(&moves, &name).is_some_and(|flow| flow.bytes > bytes),
        "it begins anew: {:?} after {bytes}",
        moves.flows
    );
    let after =
        running.wait_for("it is lowered again", |s| of(s, &name).is_some_and(|flow| flow.rewritten > rewritten + 50));
    assert_eq!(after.controller.failures, 0);
    download.finish().expect("the connection lives");
}

/// Connections of the station in each of which a byte went either way.
fn open(world: &World, listener: TcpListener, number: usize) -> Vec<(TcpStream, TcpStream)> {
    let server = listener.local_addr().expect("an address");
    let one = move |_| {
        let mut near = TcpStream::connect(server).expect("a connection");
        let (mut far, _) = listener.accept().expect("a connection");
        near.write_all(b"x").and_then(|()| far.read_exact(&mut [0])).expect("a byte");
        far.write_all(b"x").and_then(|()| near.read_exact(&mut [0])).expect("a byte");
        (near, far)
    };
    world.station.inside(move || (0..number).map(one).collect())
}

#[test]
fn at_the_bound_the_newest_connections_are_counted_and_the_others_keep_their_places() {
    let test = "at_the_bound_the_newest_connections_are_counted_and_the_others_keep_their_places";
    let Some(world) = world(test) else { return };
    let running = world.control(Config { flows: 256, ..world.config() }).expect("a controller");
    let download = Download::start(&world, World::SERVER);
    running.wait_for("it lowers windows", |s| s.control.rewritten > 100);
    let listener = world.server.inside(|| TcpListener::bind(World::server_at(World::SERVER, 0)).expect("a port"));
    let all = open(&world, listener, 300);
    let status = running.wait_for("it tells how many have no place", |s| s.table.full_s.is_some());
    eprintln!("{test}: {:?}", status.table);
    assert_eq!(status.table.connections, 256);
    assert!((40..=50).contains(&status.table.uncontrolled), "45 of 301: {:?}", status.table);
    let told = |s: &Status, words: &str| s.decisions.iter().any(|said| said.line.contains(words));
    assert!(told(&status, "`flows = 512` has room for them"), "{:?}", status.decisions);
    let lowered = status.control.rewritten;
    running.wait_for("the download is still lowered", |s| s.control.rewritten > lowered + 50);

    drop(all);
    // In a table that is nearly full, to 15/16, those that ended go after a second; the others have their time.
    running.wait_for("those that ended make room", |s| s.table.connections <= 240);
    let newcomer = Download::start(&world, World::SERVER);
    let name = newcomer.ends().0.to_string();
    running.wait_for("a newcomer is controlled", |s| {
        s.flows.iter().any(|flow| flow.flow.starts_with(&name) && flow.rewritten > 0)
    });
    running.wait_for("and it is told that there is room", |s| told(s, "room again") && s.table.full_s.is_none());
    newcomer.finish().expect("the connection lives");
    download.finish().expect("the connection lives");
}

/// A tenth of what a long form has: `FLOOD=10 tools/test -p lasthop-live --test live -- of_all_kinds`: 800,000 SYNs at 70,000 in a
/// second, 100,000 flows of UDP, 9,000 connections of data (a process has no descriptors for more).
#[test]
fn floods_of_all_kinds_leave_every_connection_its_place() {
    let test = "floods_of_all_kinds_leave_every_connection_its_place";
    let times: u32 = std::env::var("FLOOD").map_or(1, |value| value.parse().expect("a number"));
    let Some(world) = world(test) else { return };
    let process = Process::with(&world, AttachMode::Auto, "flows = 65536\ncapacity = \"19Mbit/s\"\n");
    process.wait_for("it is at work", |s| s.controller.intervals > 2);
    // First, for beside a download each of them waits for its bytes.
    let listener = world.server.inside(|| TcpListener::bind(World::server_at(World::SERVER, 0)).expect("a port"));
    let all = open(&world, listener, 900 * times as usize);
    let download = Download::start(&world, World::SERVER);
    let name = format!("{}", download.ends().0);
    let of = |status: &Status| status.flows.iter().find(|flow| flow.flow.starts_with(&name)).cloned();
    let lowers = |s: &Status| of(s).is_some_and(|flow| flow.rewritten > 100);
    let status = process.wait_for("it lowers windows", lowers);
    let lowered = of(&status).expect("it is known").rewritten;

    let (begun, (before, _)) = (Instant::now(), process.spent());
    let passed = syns(&status);
    let syns_sent = 80_000 * times;
    world.station.inside(move || {
        std::thread::scope(|scope| {
            let datagrams = scope.spawn(|| flood(10_000 * times, 9_000, datagram));
            flood(syns_sent, 70_000, |number| syn(number, 3))?;
            datagrams.join().expect("no panic")
        })
        .expect("frames are sent");
    });
    let (after, memory) = process.spent();
    let lasted = begun.elapsed().as_secs_f64();
    let share = (after - before).as_secs_f64() / lasted;
    let status = process.wait_for("all of them passed", |s| syns(s) >= passed + u64::from(syns_sent));
    eprintln!(
        "{test}: {syns_sent} SYNs and {} datagrams in {lasted:.1} s: {:?}, {:.0} % of a core and {} MB, longest decision {:.1} ms",
        10_000 * times,
        status.table,
        share * 100.0,
        memory / 1_000_000,
        status.controller.longest_ms
    );
    assert!(status.table.connections > all.len() as u64 && status.table.uncontrolled == 0, "{:?}", status.table);
    let flow = of(&status).expect("the download is still known");
    assert!(flow.rewritten >= lowered, "and it is the same entry");
    process.wait_for("it is still lowered", |s| of(s).is_some_and(|flow| flow.rewritten > lowered + 50));
    download.finish().expect("the connection lives");
    process.kill();
}

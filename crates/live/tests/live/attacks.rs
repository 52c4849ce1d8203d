//! What others send in the name of a connection, or one end of it out of turn: nobody feels it but who sent it.
//!
//! A server 40 ms away, a router, a switch behind its last hop, and there a station with a download and a neighbour. Strangers forge
//! segments in the station's name from the neighbour's place, and in the server's from beyond the router.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use lasthop_core::fastpath::layout::{FlowState, Half};
use lasthop_core::packet::Direction;
use lasthop_core::wire::build::{Segment, option};
use lasthop_core::wire::flag;
use lasthop_live::attach::Attachment;
use lasthop_live::program::Program;
use lasthop_live::updates::Updates;
use lasthop_status::Status;

use crate::child::Process;
use crate::forged::{ALL_THE_WAY, Forged, TO_THE_ROUTER, capture, send};
use crate::namespace::Namespace;
use crate::survival::hooks;
use crate::traffic::{Download, echo, ping_from};
use crate::updates::{complaints, paced};
use crate::world::{Running, World, address, far_world, routes, wait_for};

/// One way.
const FAR: Duration = Duration::from_millis(20);
/// How long a download is looked at before and after.
const LOOK: Duration = Duration::from_millis(700);
/// Far from every number of a connection, whichever way one counts.
const ASTRAY: [u32; 4] = [1 << 29, 1 << 30, 3 << 30, 7 << 29];

/// The world with a switch behind its last hop, and a second station there.
pub struct Home {
    pub world: World,
    switch: Namespace,
    pub neighbour: Namespace,
}

pub fn home(test: &str) -> Option<Home> {
    let world = far_world(test, FAR)?;
    let spaces = (Namespace::new(), Namespace::new());
    let (Ok(switch), Ok(neighbour)) = spaces else { unreachable!("there were three already") };
    world.router.ip("link del lan0");
    world.router.ip(&format!("link add lan0 type veth peer name up0 netns {}", switch.path()));
    switch.ip("link add br0 type bridge forward_delay 0");
    switch.ip("link set br0 up");
    for (station, port, host) in [(&world.station, "p0", 2), (&neighbour, "p1", 3)] {
        switch.ip(&format!("link add {port} type veth peer name c0 netns {}", station.path()));
        address(station, "c0", 1, host);
        routes(station, 1);
    }
    for port in ["up0", "p0", "p1"] {
        switch.ip(&format!("link set {port} master br0"));
        switch.ip(&format!("link set {port} up"));
    }
    world.set_up_lan();
    Some(Home { world, switch, neighbour })
}

/// A download whose windows are told between its acknowledgments.
struct Held<'a> {
    home: &'a Home,
    download: Download,
    updates: Updates,
    program: Program,
    _attachment: Attachment,
}

/// What of a connection no stranger may change: what its SYNs said, that it lives, and that it is the same.
#[derive(Debug, PartialEq, Eq)]
struct Lasting {
    scales: [(u8, u8, u8); 2],
    closing: [bool; 2],
    since_ns: u64,
}

/// How a download fares.
#[derive(Clone, Copy, Debug)]
struct Progress {
    goodput_bps: f64,
    updates: f64,
}

impl<'a> Held<'a> {
    fn start(home: &'a Home) -> Self {
        let (attachment, updates, program) = paced(&home.world);
        let download = Download::start(&home.world, World::SERVER);
        wait_for("window updates are sent", || (updates.status().sent > 100).then_some(()));
        Self { home, download, updates, program, _attachment: attachment }
    }

    fn state(&self) -> FlowState {
        let (station, server) = self.download.ends();
        let flows = self.program.flows().expect("flows");
        let found =
            flows.iter().find(|(key, _)| (key.station_port, key.remote_port) == (station.port(), server.port()));
        found.expect("the download is known").1
    }

    fn lasting(&self) -> Lasting {
        const OF_SYNS: u8 = Half::SCALE_KNOWN | Half::SCALE_OFFERED | Half::EDGE_KNOWN | Half::SYN_SEEN;
        let state = self.state();
        Lasting {
            scales: state.half.map(|half| (half.flags & OF_SYNS, half.scale, half.conntrack_scale)),
            closing: Direction::BOTH.map(|direction| state.closing(direction)),
            since_ns: state.first_seen_ns,
        }
    }

    fn progress(&self) -> Progress {
        let now = || (Instant::now(), self.download.received(), self.updates.status().sent);
        let begun = now();
        std::thread::park_timeout(LOOK);
        let end = now();
        let seconds = (end.0 - begun.0).as_secs_f64();
        Progress { goodput_bps: (end.1 - begun.1) as f64 * 8.0 / seconds, updates: (end.2 - begun.2) as f64 / seconds }
    }

    /// In the station's name, from the neighbour's place.
    fn as_station(&self, intact: bool, ttl: u8, segments: impl IntoIterator<Item = Segment>) {
        let (station, server) = self.download.ends();
        send(&self.home.neighbour, forged(station, server, intact, ttl, segments));
    }

    /// In the server's name, from beyond the router.
    fn as_server(&self, intact: bool, segments: impl IntoIterator<Item = Segment>) {
        let (station, server) = self.download.ends();
        send(&self.home.world.server, forged(server, station, intact, ALL_THE_WAY, segments));
    }
}

fn forged(
    from: SocketAddr,
    to: SocketAddr,
    intact: bool,
    ttl: u8,
    segments: impl IntoIterator<Item = Segment>,
) -> Vec<Forged> {
    segments.into_iter().map(|segment| Forged { from, to, segment, intact, ttl }).collect()
}

/// A SYN, or with `flags` its answer, which says that windows are to be taken as they are written.
fn unscaled(flags: u8, seq: u32, ack: u32) -> Segment {
    let options = [option::mss(1460), option::window_scale(0)].concat();
    Segment { seq, ack, flags: flags | flag::SYN, window: 500, options }
}

/// A download before and after `attack`, in one of three attempts, for the machine may stall: all goes on as it did.
fn goes_on(test: &str, attack: impl Fn(&Held), looks: impl Fn(&Held, &Lasting)) {
    let Some(home) = home(test) else { return };
    for attempt in 1..=3 {
        let held = Held::start(&home);
        let (before, lasting) = (held.progress(), held.lasting());
        attack(&held);
        let after = held.progress();
        looks(&held, &lasting);
        held.download.finish().expect("whole, in order");
        eprintln!("{test}: {before:.0?} -> {after:.0?}");
        let kept = after.goodput_bps >= 0.95 * before.goodput_bps && after.updates >= before.updates / 2.0;
        assert!(kept || attempt < 3, "{before:.0?} -> {after:.0?}");
        if kept {
            return;
        }
    }
}

fn unchanged(held: &Held, lasting: &Lasting) {
    assert_eq!(&held.lasting(), lasting);
}

#[test]
fn a_station_that_has_no_more_to_send_goes_on_receiving_as_before() {
    let test = "a_station_that_has_no_more_to_send_goes_on_receiving_as_before";
    let in_order = |held: &Held, _: &Lasting| assert_eq!(complaints(&held.home.world), [0; 5]);
    goes_on(test, |held| held.download.half_close(), in_order);
}

#[test]
fn syns_of_strangers_with_wrong_checksums_change_nothing() {
    let attack = |held: &Held| {
        let (down, up) = (held.state().half[0].snd_nxt, held.state().half[1].snd_nxt);
        let syn = ASTRAY.map(|far| unscaled(0, up.wrapping_add(far), 0));
        held.as_station(false, ALL_THE_WAY, syn);
        held.as_server(false, ASTRAY.map(|far| unscaled(flag::ACK, down.wrapping_add(far), up.wrapping_add(far))));
    };
    goes_on("syns_of_strangers_with_wrong_checksums_change_nothing", attack, unchanged);
}

#[test]
fn syns_of_strangers_with_wrong_numbers_change_nothing() {
    let attack = |held: &Held| {
        let (down, up) = (held.state().half[0].snd_nxt, held.state().half[1].snd_nxt);
        held.as_station(true, ALL_THE_WAY, ASTRAY.map(|far| unscaled(0, up.wrapping_add(far), 0)));
        held.as_server(true, ASTRAY.map(|far| unscaled(flag::ACK, down.wrapping_add(far), up.wrapping_add(far))));
    };
    goes_on("syns_of_strangers_with_wrong_numbers_change_nothing", attack, unchanged);
}

#[test]
fn syns_of_strangers_from_every_port_change_nothing() {
    let attack = |held: &Held| {
        let (station, server) = held.download.ends();
        // They end at the router: what both ends would answer fills the hop, and proves nothing.
        let from = |port| SocketAddr::new(station.ip(), port);
        let syn = |port| Forged {
            from: from(port),
            to: server,
            segment: unscaled(0, 77, 0),
            intact: true,
            ttl: TO_THE_ROUTER,
        };
        send(&held.home.neighbour, (1..=u16::MAX).map(syn).collect());
        let near = station.port().saturating_sub(100)..=station.port().saturating_add(100);
        let answer = |port| Forged { to: from(port), segment: unscaled(flag::ACK, 77, 78), ..between(server, station) };
        send(&held.home.world.server, near.map(answer).collect());
    };
    goes_on("syns_of_strangers_from_every_port_change_nothing", attack, unchanged);
}

fn between(from: SocketAddr, to: SocketAddr) -> Forged {
    Forged { from, to, segment: Segment::default(), intact: true, ttl: ALL_THE_WAY }
}

#[test]
fn resets_and_ends_of_strangers_end_no_window_updates() {
    let attack = |held: &Held| {
        let state = held.state();
        let (down, up) = (state.half[0].snd_nxt, state.half[1].snd_nxt);
        for flags in [flag::RST, flag::RST | flag::ACK, flag::FIN | flag::ACK] {
            let segment = |seq, ack| Segment { seq, ack, flags, window: 500, options: vec![] };
            held.as_station(false, ALL_THE_WAY, [segment(up, down)]);
            held.as_server(false, [segment(down, up)]);
            let astray = |from: u32, ack| ASTRAY.map(|far| segment(from.wrapping_add(far), ack));
            held.as_station(true, ALL_THE_WAY, astray(up, down));
            held.as_server(true, astray(down, up));
        }
        // Within the window and not the next number (RFC 5961): both ends answer, and live.
        let reset = |seq| Segment { seq, flags: flag::RST, ..Segment::default() };
        held.as_station(true, ALL_THE_WAY, [reset(up.wrapping_add(777))]);
        held.as_server(true, [reset(down.wrapping_add(777))]);
    };
    goes_on("resets_and_ends_of_strangers_end_no_window_updates", attack, unchanged);
}

/// Acknowledgments in the station's name that it did not send, and that its server does not take.
fn acknowledge_for_it(held: &Held) {
    let state = held.state();
    let (sent, had, up) = (state.half[0].snd_nxt, state.half[0].delivered, state.half[1].snd_nxt);
    let ack = |seq, ack| Segment { seq, ack, flags: flag::ACK, window: 500, options: vec![] };
    held.as_station(false, ALL_THE_WAY, [ack(up, sent), ack(up, sent.wrapping_add(100_000))]);
    held.as_station(true, ALL_THE_WAY, [ack(up, sent.wrapping_add(100_000)), ack(up, sent.wrapping_add(1 << 30))]);
    held.as_station(true, ALL_THE_WAY, ASTRAY.map(|far| ack(up.wrapping_add(far), sent)));
    held.as_station(true, ALL_THE_WAY, [ack(up, had.wrapping_sub(1 << 29)), ack(up, had.wrapping_sub(1 << 30))]);
}

#[test]
fn nothing_is_acknowledged_for_a_station_that_is_cut_off() {
    let Some(home) = home("nothing_is_acknowledged_for_a_station_that_is_cut_off") else { return };
    let held = Held::start(&home);
    let (station, server) = held.download.ends();
    let lasting = held.lasting();
    let before = capture(&home.world.server, station, server);
    home.switch.ip("link set p0 down");
    // What was in flight has arrived by then.
    std::thread::park_timeout(Duration::from_millis(400));
    let newest = before.finish().last().expect("it was a download").ack;
    let during = capture(&home.world.server, station, server);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1200) {
        acknowledge_for_it(&held);
        std::thread::park_timeout(Duration::from_millis(20));
        let (acknowledged, had) = held.download.acknowledged_and_had();
        assert!(acknowledged <= had, "the server takes {acknowledged} bytes for acknowledged, and {had} arrived");
    }
    let sent = during.finish();
    home.switch.ip("link set p0 up");
    eprintln!("{} window updates to the server while nothing came from the station", sent.len());
    let beyond = sent.iter().find(|tcp| (tcp.ack.wrapping_sub(newest) as i32) > 0);
    assert_eq!(beyond, None, "the station's newest acknowledgment was {newest}");
    let before = held.download.received();
    wait_for("the download goes on", || (held.download.received() > before + 2_000_000).then_some(()));
    unchanged(&held, &lasting);
    let (acknowledged, had) = held.download.acknowledged_and_had();
    assert!(acknowledged <= had, "{acknowledged} of {had} bytes");
    held.download.finish().expect("whole, in order");
}

/// What the neighbour has beside the station's download.
#[derive(Debug)]
struct Beside {
    goodput_bps: f64,
    median_ms: f64,
}

fn beside(home: &Home, neighbours: &Download, echo: SocketAddr) -> Beside {
    let (begun, before) = (Instant::now(), neighbours.received());
    let round_trips = ping_from(&home.neighbour, echo, Duration::from_millis(1500));
    let goodput_bps = (neighbours.received() - before) as f64 * 8.0 / begun.elapsed().as_secs_f64();
    assert!(round_trips.len() > 20, "only {} pings came back", round_trips.len());
    Beside { goodput_bps, median_ms: round_trips[round_trips.len() / 2] }
}

/// Two downloads, before and after the first one's station says, in SYNs that only the router sees, how its windows are to be taken
/// from now on: one with a wrong checksum, one that is whole.
fn free_itself(test: &str, home: &Home, running: &Running, echo: SocketAddr) -> (Beside, Beside) {
    let downloads = [&home.world.station, &home.neighbour].map(|it| Download::to(it, &home.world, World::SERVER));
    running.wait_for("it lowers windows of both", |s| s.flows.iter().filter(|f| f.rewritten > 100).count() >= 2);
    ping_from(&home.neighbour, echo, Duration::from_millis(800));
    let before = beside(home, &downloads[1], echo);
    let (station, server) = downloads[0].ends();
    for intact in [false, true] {
        send(&home.world.station, forged(station, server, intact, TO_THE_ROUTER, [unscaled(0, 77, 0)]));
    }
    let after = beside(home, &downloads[1], echo);
    eprintln!("{test}: {before:.1?} -> {after:.1?}");
    let flow = format!("{station} <- {server}");
    let lowered = |status: &Status| status.flows.iter().find(|f| f.flow == flow).map_or(0, |f| f.rewritten);
    let so_far = lowered(&running.status());
    running.wait_for("its windows are still lowered", |s| lowered(s) > so_far + 20);
    for download in downloads {
        download.finish().expect("whole, in order");
    }
    (before, after)
}

#[test]
fn a_station_does_not_free_itself_by_syns_of_its_own() {
    let test = "a_station_does_not_free_itself_by_syns_of_its_own";
    let Some(home) = home(test) else { return };
    let running = home.world.control(home.world.config()).expect("a controller");
    let (echo, stop) = echo(&home.world, World::SERVER);
    for attempt in 1..=3 {
        let (before, after) = free_itself(test, &home, &running, echo);
        let unharmed = after.goodput_bps >= 0.95 * before.goodput_bps && after.median_ms <= before.median_ms + 2.0;
        assert!(unharmed || attempt < 3, "{before:.1?} -> {after:.1?}");
        if unharmed {
            break;
        }
    }
    stop.store(true, Ordering::Relaxed);
}

#[test]
fn whoever_sends_window_updates_may_stand_still_for_a_while() {
    let test = "whoever_sends_window_updates_may_stand_still_for_a_while";
    let Some(world) = far_world(test, FAR) else { return };
    // Acknowledgments that come together may tell little of what is paced, each of them at the same time.
    let _hop = world.plug_bunching_station(Duration::from_millis(10)).expect("a TUN, as there was one already");
    let pacing = Process::pacing(&world);
    wait_for("it is hooked", || (hooks(&world) == (2, 0)).then_some(()));
    let download = Download::start(&world, World::SERVER);
    wait_for("the download runs", || (download.received() > 2_000_000).then_some(()));
    let goodput_mbps = || {
        let (begun, before) = (Instant::now(), download.received());
        std::thread::park_timeout(Duration::from_millis(1500));
        (download.received() - before) as f64 * 8e-6 / begun.elapsed().as_secs_f64()
    };
    for attempt in 1..=3 {
        let before = goodput_mbps();
        pacing.stop();
        let during = goodput_mbps();
        pacing.go_on();
        eprintln!("{test}: {before:.1} -> {during:.1} Mbit/s");
        let kept = during >= 0.8 * before;
        assert!(kept || attempt < 3, "{before:.1} -> {during:.1} Mbit/s");
        if kept {
            break;
        }
    }
    pacing.kill();
    download.finish().expect("whole, in order");
}

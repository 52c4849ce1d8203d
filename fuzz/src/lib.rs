//! The body of every fuzz target: what must hold for any input at all. A body panics when it does not.
//!
//! Two callers: libfuzzer (`fuzz_targets/`, nightly) and `crates/cli/tests/fuzz_short.rs`, which includes this file and
//! runs every body over seeds and mutations of them on stable, as a part of `make test`. A new parser gets a function
//! here, a line in [`ALL`], a file in `fuzz_targets/` and a `[[bin]]` in Cargo.toml.

use std::io;
use std::path::Path;

use lasthop_core::credit::key;
use lasthop_core::fastpath::layout::{Control, FlowState, Plan};
use lasthop_core::fastpath::{self as core_fastpath, Verdict};
use lasthop_core::packet::{Direction, FlowKind};
use lasthop_core::units::{BitRate, Bytes, Span, Time};
use lasthop_core::wire::{self, Link, Merged, Parsed, ecn};
use lasthop_home::scenario::{Flow, MOST, Scenario};
use lasthop_home::traffic::Source;
use lasthop_home::traffic::trace::Frames;

/// A part of the binary, which is no library.
#[allow(dead_code)]
#[path = "../../crates/cli/src/commands/sweep/vary.rs"]
mod values;

/// A target: its name and its body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const ALL: &[Target] = &[
    ("wire", wire),
    ("fastpath", fastpath),
    ("scenario", scenario),
    ("set", set),
    ("trace", trace),
    ("config", config),
    ("quantity", quantity),
    ("status_json", status_json),
    ("vary", vary),
];

/// A frame, alone or merged of several packets: understood or not, never beyond its end; and a window written in place
/// changes the window and the checksum, nothing else, and a right checksum stays right.
pub fn wire(input: &[u8]) {
    for link in [Link::Ethernet, Link::Ip] {
        let mut frame = input.to_vec();
        let understands = ecn::of(&frame, link) != ecn::NOT_ECT;
        let is_set = ecn::set_ce(&mut frame, link);
        assert!(!is_set || (understands && ecn::of(&frame, link) == ecn::CE));
        assert!(is_set || frame == input);
        for (direction, kind) in [(Direction::ToStation, FlowKind::Connection), (Direction::ToRemote, FlowKind::Hosts)]
        {
            let _ = key::of(&wire::parse(input, link), direction, kind, 7);
        }
    }
    let segment_bytes = input.first_chunk().map_or(0, |two| u32::from(u16::from_le_bytes(*two)));
    let merged = Merged { segments: 1 + input.len() as u32 % 4, segment_bytes };
    for (link, merged) in [(Link::Ethernet, Merged::NOT), (Link::Ip, Merged::NOT), (Link::Ethernet, merged)] {
        let Parsed::Tcp(tcp) = wire::parse_merged(input, link, merged) else { continue };
        let mut frame = input.to_vec();
        let window = tcp.window / 2;
        wire::patch_window(&mut frame, &tcp, window);
        assert_eq!(wire::checksum_is_valid(&frame, &tcp), wire::checksum_is_valid(input, &tcp));
        assert_eq!(wire::parse_merged(&frame, link, merged), Parsed::Tcp(wire::TcpFields { window, ..tcp }));
        let at = usize::from(tcp.window_at);
        assert_eq!((&frame[..at], &frame[at + 4..]), (&input[..at], &input[at + 4..]));
    }
}

/// Takes little-endian numbers and pieces off the front of an input.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    fn u8(&mut self) -> Option<u8> {
        Some(self.bytes(1)?[0])
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(*self.bytes(2)?.first_chunk()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(*self.bytes(4)?.first_chunk()?))
    }

    fn plan(&mut self) -> Option<Plan> {
        let (clamp_bytes, floor_bytes) = (self.u32()?, self.u32()?);
        Some(Plan { clamp_bytes, floor_bytes, growth_bytes: self.u32()?, pace_bytes: self.u32()? })
    }
}

/// Any run of packets of one flow under any plan: windows only ever fall and never to zero, and never in a dry run.
///
/// Input: window scale and dry run (a byte each), two plans, then packets: direction (a byte), microseconds since the
/// one before (u32), length (u16), Ethernet frame.
pub fn fastpath(input: &[u8]) {
    let mut rest = Cursor(input);
    let _ = packets_under_plans(&mut rest);
}

fn packets_under_plans(rest: &mut Cursor<'_>) -> Option<()> {
    let (scale, dry_run) = (rest.u8()?, rest.u8()? & 1);
    let default_plan = [rest.plan()?, rest.plan()?];
    let mut control = Control { dry_run: u32::from(dry_run), default_plan, ..Control::default() };
    let mut now = Time::from_nanos(1);
    let mut state = FlowState::new(&control, now);
    state.half[0].told_scale = scale;
    loop {
        let direction = if rest.u8()? & 1 == 0 { Direction::ToStation } else { Direction::ToRemote };
        now += Span::from_micros(u64::from(rest.u32()?));
        control.heartbeat_ns = now.as_nanos() / 2;
        let length = usize::from(rest.u16()?).min(rest.0.len());
        let frame = rest.bytes(length)?;
        let Parsed::Tcp(tcp) = wire::parse(frame, Link::Ethernet) else { continue };
        if let Verdict::Rewrite { window } = core_fastpath::on_packet(&mut state, &control, direction, &tcp, now) {
            assert!(dry_run == 0 && window > 0 && window < tcp.window, "{window} after {}", tcp.window);
        }
    }
}

/// Quantities: read or refused with an example, and what is displayed reads back as the same quantity.
pub fn quantity(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(span) = text.parse::<Span>() {
        assert_eq!(span.to_string().parse(), Ok(span), "{text:?}");
    }
    if let Ok(size) = text.parse::<Bytes>() {
        assert_eq!(size.to_string().parse(), Ok(size), "{text:?}");
    }
    if let Ok(rate) = text.parse::<BitRate>() {
        // Displayed in Mbit/s as a decimal fraction: exact up to 2^53 bit/s.
        if rate.as_bps() < 1 << 53 {
            assert_eq!(rate.to_string().parse(), Ok(rate), "{text:?}");
        }
    }
}

/// The controller's configuration: read, or refused with file and line.
pub fn config(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Err(error) = lasthop_live::config::Config::parse(text, "fuzz.toml") {
        assert!(error.to_string().starts_with("fuzz.toml:"), "{error}");
    }
}

/// What a controller says on its socket, as `lasthop status` reads and shows it: any other text is refused.
pub fn status_json(input: &[u8]) {
    if let Ok(status) = serde_json::from_slice::<lasthop_live::status::Status>(input) {
        let _ = lasthop_live::status::render(&status);
    }
}

/// A scenario: read, or refused with file and line. What is read has bounded counts, and its sources send packets
/// that can be sent, in order, between start and stop.
pub fn scenario(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match Scenario::parse_with(text, "fuzz.toml", &[], &small_trace) {
        Ok(home) => {
            bounded(&home);
            home.flows.iter().take(8).for_each(|flow| sends_in_order(flow, home.seed));
        }
        Err(error) => assert!(error.to_string().starts_with("fuzz.toml:"), "{error}"),
    }
}

fn bounded(home: &Scenario) {
    for count in [home.stations.len(), home.servers.len(), home.flows.len()] {
        assert!(count <= MOST as usize);
    }
    assert!(home.measure_from < home.duration);
    assert!(home.flows.iter().all(|flow| flow.start < flow.stop && flow.stop <= home.duration));
}

fn sends_in_order(flow: &Flow, seed: u64) {
    let packets: Vec<_> = Source::new(flow, seed).take(50).collect();
    assert!(packets.iter().all(|p| p.at >= flow.start && p.at < flow.stop && (28..=1500).contains(&p.bytes)));
    assert!(packets.windows(2).all(|w| w[0].at <= w[1].at));
}

/// `--set`, one a line, on the paper's home: in force, or refused with the `--set` or the line it spoils.
pub fn set(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let sets: Vec<String> = text.lines().take(20).map(str::to_owned).collect();
    match Scenario::parse_with(HOME, "fuzz.toml", &sets, &small_trace) {
        Ok(home) => bounded(&home),
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with("fuzz.toml:") || message.starts_with("--set "), "{message}");
        }
    }
}

/// The home that [`set`] changes.
const HOME: &str = include_str!("../../scenarios/papers/sap-law.toml");

/// No file of the machine is opened.
fn small_trace(_: &Path) -> io::Result<String> {
    Ok("1 I 0 900\n2 P 40 300\n".to_owned())
}

/// A frame trace: frames in order of time that last, or refused.
pub fn trace(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(frames) = Frames::parse(text) {
        assert!(frames.frames().windows(2).all(|w| w[0].at <= w[1].at));
        assert!(frames.length() > Span::ZERO);
    }
}

/// The values of a `--vary`: refused with a reason, or split so that what is joined again splits the same.
pub fn vary(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(vary) = values::vary(text) else { return };
    let again = format!("{}={}", vary.key, vary.values.join(","));
    assert_eq!(values::vary(&again), Ok(vary), "{text:?}");
}

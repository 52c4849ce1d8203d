//! The body of every fuzz target: what must hold for any input at all. A body panics when it does not.
//!
//! Two callers: libfuzzer (`fuzz_targets/`, nightly) and `crates/cli/tests/fuzz_short.rs`, which includes this file and
//! runs every body over seeds and mutations of them on stable, as a part of `make test`. A new parser gets a function
//! here, a line in [`ALL`], a file in `fuzz_targets/` and a `[[bin]]` in Cargo.toml.

use std::io;
use std::path::Path;

use lasthop_core::units::{BitRate, Bytes, Span};
use lasthop_core::wire::{self, Link, Parsed};
use lasthop_home::scenario::{Flow, MOST, Scenario};
use lasthop_home::traffic::Source;
use lasthop_home::traffic::trace::Frames;

/// A target: its name and its body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const ALL: &[Target] = &[
    ("wire", wire),
    ("scenario", scenario),
    ("set", set),
    ("trace", trace),
    ("config", config),
    ("quantity", quantity),
    ("status_json", status_json),
];

/// A frame: understood or not, never beyond its end; and a window lowered in place changes the window and the checksum,
/// nothing else, and keeps a right checksum right.
pub fn wire(input: &[u8]) {
    for link in [Link::Ethernet, Link::Ip] {
        let Parsed::Tcp(tcp) = wire::parse(input, link) else { continue };
        let mut frame = input.to_vec();
        let was_right = wire::checksum_is_valid(&frame, &tcp);
        let lower = tcp.window / 2;
        wire::patch_window(&mut frame, &tcp, lower);
        let changed = frame.iter().zip(input).filter(|(a, b)| a != b).count();
        assert!(frame.len() == input.len() && changed <= 4, "{changed} bytes changed");
        assert_eq!(wire::parse(&frame, link), Parsed::Tcp(wire::TcpFields { window: lower, ..tcp }));
        if was_right {
            assert!(wire::checksum_is_valid(&frame, &tcp), "the checksum was right before");
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

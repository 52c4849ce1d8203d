//! Reads hand-derived cases (`tests/vectors/window.txt`), for the tests of every implementation of the fast path.
//!
//! A line is a comment (`#`), `case NAME`, a wish of the controller, or a segment and what must become of it. A case is the story
//! of one connection, or of several that come one after the other and share what the hop carries:
//!
//! ```text
//! plan down clamp=100000 floor=2920 growth=3000     of the half whose data goes down; pace=BYTES in 2^30 ns
//! default down clamp=100000 floor=2920              of those that begin from here on, likewise
//! hop down rate=1000 depth=64000                    of all together whose data goes down, bytes in 2^30 ns and bytes
//! updates down                                      the host sends window updates to senders whose data goes down
//! another                                           from here on another connection, under the default plans
//! told down scale=7                                 as conntrack would tell it
//! wait us=5000                                      before what follows
//! stale | fresh | silent | dry-run                  heartbeat and mode from here on
//! up seq=1 ack=1001 window=502 -> rewrite 114       "up": to the remote side; also "-> REASON"
//! update down -> seq=1 ack=1001 window=200          the window update that the host sends now, also ts=VALUE,ECHO, or "-> none"
//! ```
//!
//! Words of a segment: `syn fin rst noack md5 ao`, `seq= ack= window= bytes= scale= ts=VALUE,ECHO sack=LEFT-RIGHT,..`.

use super::layout::{Plan, Reason};
use super::window::Update;
use super::{Verdict, layout::FlowKey};
use crate::packet::Direction;
use crate::units::Span;
use crate::wire::build::{Frame, Segment, option, v4};
use crate::wire::{Endpoint, flag};

/// A story of one connection, or of several in turn.
#[derive(Debug)]
pub struct Case {
    /// A sentence with underscores.
    pub name: String,
    /// In order.
    pub steps: Vec<Step>,
}

/// One line of a case.
#[derive(Debug)]
pub enum Step {
    /// The controller wants this.
    Plan(Direction, Plan),
    /// The controller wants this of new connections.
    Default(Direction, Plan),
    /// The controller wants this of all connections whose data goes this way together, bytes, and bytes in 2^30 ns.
    Hop {
        /// Of the data.
        direction: Direction,
        /// What edges may advance at once.
        depth_bytes: u32,
        /// What they may advance in 2^30 ns.
        rate_bytes: u32,
    },
    /// The host sends window updates for data that goes this way.
    Updates(Direction),
    /// The host asks for a window update.
    Update {
        /// Direction of the data whose window is updated.
        direction: Direction,
        /// The update that has to be sent; `None`: none is due.
        expected: Option<Update>,
        /// Line in the file.
        line: usize,
    },
    /// What follows belongs to a connection that has just begun.
    Another,
    /// Conntrack told this scale.
    ConntrackScale(Direction, u8),
    /// Time passes.
    Wait(Span),
    /// The heartbeat is too old from here on, or not.
    Stale(bool),
    /// It has missed two intervals.
    Silent,
    /// Decide only, from here on.
    DryRun,
    /// A segment crosses.
    Segment {
        /// Direction of the packet.
        direction: Direction,
        /// An Ethernet frame.
        frame: Vec<u8>,
        /// What must become of it.
        expected: Verdict,
        /// Line in the file.
        line: usize,
    },
}

/// All segments of all cases belong to this connection.
#[must_use]
pub const fn key() -> FlowKey {
    let (station, remote) = (STATION, REMOTE);
    FlowKey { station: station.address, remote: remote.address, station_port: station.port, remote_port: remote.port }
}

const STATION: Endpoint = Endpoint { address: v4([192, 168, 1, 20]), port: 50_000 };
const REMOTE: Endpoint = Endpoint { address: v4([203, 0, 113, 5]), port: 443 };

/// Reads a file of cases.
///
/// # Panics
/// When a line is not understood: the file is part of the tests.
#[must_use]
pub fn read(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(name) = line.strip_prefix("case ") {
            cases.push(Case { name: name.to_owned(), steps: Vec::new() });
        } else if !line.is_empty() {
            let case = cases.last_mut().expect("a case comes first");
            case.steps.push(step(line, number + 1).unwrap_or_else(|| panic!("line {}: `{line}`", number + 1)));
        }
    }
    cases
}

fn step(line: &str, number: usize) -> Option<Step> {
    let words: Vec<&str> = line.split_whitespace().collect();
    Some(match words[0] {
        "plan" => Step::Plan(direction(words[1])?, plan(&words[2..])),
        "default" => Step::Default(direction(words[1])?, plan(&words[2..])),
        "hop" => {
            let of = |name| value(&words, name);
            Step::Hop { direction: direction(words[1])?, depth_bytes: of("depth")?, rate_bytes: of("rate")? }
        }
        "another" => Step::Another,
        "updates" => Step::Updates(direction(words[1])?),
        "update" => Step::Update { direction: direction(words[1])?, expected: update(&words[3..])?, line: number },
        "told" => Step::ConntrackScale(direction(words[1])?, value(&words, "scale")? as u8),
        "wait" => Step::Wait(Span::from_micros(u64::from(value(&words, "us")?))),
        "stale" => Step::Stale(true),
        "fresh" => Step::Stale(false),
        "silent" => Step::Silent,
        "dry-run" => Step::DryRun,
        way => {
            let direction = direction(way)?;
            let (segment, expected) = line.split_once("->")?;
            let words: Vec<&str> = segment.split_whitespace().skip(1).collect();
            Step::Segment { direction, frame: frame(direction, &words)?, expected: verdict(expected)?, line: number }
        }
    })
}

fn direction(word: &str) -> Option<Direction> {
    match word {
        "down" => Some(Direction::ToStation),
        "up" => Some(Direction::ToRemote),
        _ => None,
    }
}

/// The inner `None`: no update.
#[allow(clippy::option_option)]
fn update(words: &[&str]) -> Option<Option<Update>> {
    if words == ["none"] {
        return Some(None);
    }
    let timestamps = match text(words, "ts") {
        Some(ts) => Some(pair(ts)?),
        None => None,
    };
    let of = |name| value(words, name);
    Some(Some(Update { seq: of("seq")?, ack: of("ack")?, window: of("window")? as u16, timestamps }))
}

fn pair(text: &str) -> Option<(u32, u32)> {
    let (value, echo) = text.split_once(',')?;
    Some((value.parse().ok()?, echo.parse().ok()?))
}

fn plan(words: &[&str]) -> Plan {
    let of = |name| value(words, name).unwrap_or(0);
    Plan { clamp_bytes: of("clamp"), floor_bytes: of("floor"), growth_bytes: of("growth"), pace_bytes: of("pace") }
}

fn text<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn value(words: &[&str], name: &str) -> Option<u32> {
    text(words, name)?.parse().ok()
}

fn frame(direction: Direction, words: &[&str]) -> Option<Vec<u8>> {
    let has = |word| words.contains(&word);
    let bit = |word, bit| if has(word) { bit } else { 0 };
    let mut options = Vec::new();
    if let Some(scale) = value(words, "scale") {
        options.extend(option::window_scale(scale as u8));
    }
    if let Some(ts) = text(words, "ts") {
        let (value, echo) = pair(ts)?;
        options.extend(option::timestamps(value, echo));
    }
    if let Some(blocks) = text(words, "sack") {
        let edges = |block: &str| block.split_once('-').and_then(|(l, r)| Some((l.parse().ok()?, r.parse().ok()?)));
        options.extend(option::sack(&blocks.split(',').map(edges).collect::<Option<Vec<_>>>()?));
    }
    if has("md5") {
        options.extend(option::md5());
    }
    if has("ao") {
        options.extend(option::ao());
    }
    let ack = value(words, "ack");
    let segment = Segment {
        seq: value(words, "seq")?,
        ack: ack.unwrap_or(0),
        flags: bit("syn", flag::SYN)
            | bit("fin", flag::FIN)
            | bit("rst", flag::RST)
            | if ack.is_some() { flag::ACK } else { 0 },
        window: value(words, "window")? as u16,
        options,
    };
    let (source, destination) = match direction {
        Direction::ToStation => (REMOTE, STATION),
        Direction::ToRemote => (STATION, REMOTE),
    };
    Some(Frame::tcp(source, destination, segment, value(words, "bytes").unwrap_or(0) as usize).bytes())
}

fn verdict(words: &str) -> Option<Verdict> {
    let words = words.trim();
    if let Some(window) = words.strip_prefix("rewrite ") {
        return Some(Verdict::Rewrite { window: window.parse().ok()? });
    }
    Some(Verdict::Pass(match words {
        "within-plan" => Reason::WithinPlan,
        "would-rewrite" => Reason::WouldRewrite,
        "syn" => Reason::Syn,
        "rst" => Reason::Rst,
        "zero-window" => Reason::ZeroWindow,
        "scale-unknown" => Reason::ScaleUnknown,
        "no-plan" => Reason::NoPlan,
        "stale" => Reason::Stale,
        "authenticated" => Reason::Authenticated,
        "no-ack" => Reason::NoAck,
        "invalid" => Reason::Invalid,
        _ => return None,
    }))
}

//! The wired part: `[line]` between the servers and the access point, and each `[[server]]` behind it.

use lasthop_core::units::{BitRate, Span};

use super::ScenarioError;
use super::read::Reader;

/// Largest buffer, in packets: room for 100 Mbit/s x 10 s, and a bound for what a file can ask of memory.
pub(crate) const MOST_PACKETS: u32 = 100_000;

/// Buffer where none is given, in packets (ns-2 home of the SAP-LAW paper).
const BUFFER_PACKETS: u32 = 140;

/// One direction of a wired link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// What it carries, IP bit/s; `None`: no limit.
    pub rate: Option<BitRate>,
    /// One way.
    pub delay: Span,
    /// Packets that may wait, FIFO, drop-tail.
    pub buffer: u32,
}

/// `[line]`: joins the servers (at W0) to the access point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// From W0 to the access point.
    pub down: Wire,
    /// From the access point to W0.
    pub up: Wire,
}

/// `[[server]]`: a wired host behind [`Line`], expanded from its count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// `W1`, or `W1.3` where counted.
    pub name: String,
    /// The name of its table.
    pub table: String,
    /// Its own link to W0, the same both ways.
    pub wire: Wire,
}

pub(crate) const LINE_KEYS: [&str; 5] = ["delay", "rate_down", "rate_up", "buffer_down", "buffer_up"];
pub(crate) const SERVER_KEYS: [&str; 5] = ["name", "count", "delay", "rate", "buffer"];

pub(crate) fn read_line(root: &Reader<'_>) -> Result<Option<Line>, ScenarioError> {
    let Some(line) = root.table("line", &LINE_KEYS)? else { return Ok(None) };
    let delay = line.quantity("delay")?.unwrap_or(Span::ZERO);
    let wire = |rate: &str, buffer: &str| -> Result<Wire, ScenarioError> {
        let buffer = line.count(buffer, 1..=MOST_PACKETS)?.unwrap_or(BUFFER_PACKETS);
        Ok(Wire { rate: line.positive(rate)?, delay, buffer })
    };
    Ok(Some(Line { down: wire("rate_down", "buffer_down")?, up: wire("rate_up", "buffer_up")? }))
}

pub(crate) fn read_server(server: &Reader<'_>) -> Result<Wire, ScenarioError> {
    Ok(Wire {
        rate: server.positive("rate")?,
        delay: server.quantity("delay")?.unwrap_or(Span::ZERO),
        buffer: server.count("buffer", 1..=MOST_PACKETS)?.unwrap_or(BUFFER_PACKETS),
    })
}

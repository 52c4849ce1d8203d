//! One line of a trace, as `schema/report.md` has it.

use super::Datagram;
use lasthop_core::units::Time;
use lasthop_home::course::Windows;
use lasthop_home::report::FORMAT;
use lasthop_home::scenario::Scenario;
use serde::Serialize;
use std::io::{self, Write};

/// A segment. What does not apply is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Line {
    /// When its sender's kernel handed it to the network, s since the start of the scenario.
    pub t_s: f64,
    /// Both ends, host and port, the station's first.
    pub connection: String,
    /// The scenario's flow, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// `down`: to the station named first; `up`: from it.
    pub direction: &'static str,
    /// SYN, FIN, RST.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flags: Option<String>,
    /// Number of its first byte; 0 is the SYN.
    pub seq: u64,
    /// Number of the next byte its sender expects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack: Option<u64>,
    /// Payload.
    pub bytes: u32,
    /// What its sender offers, bytes.
    pub offered_window: u64,
    /// What the other end reads, where the access point wrote something else, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clamped_window: Option<u64>,
    /// All of its payload was sent before.
    #[serde(skip_serializing_if = "is_false")]
    pub retransmitted: bool,
    /// It has no payload and acknowledges nothing new, only offers more than the one before.
    #[serde(skip_serializing_if = "is_false")]
    pub window_update: bool,
    /// Of data: from `t_s` until it reached the interface of the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_ms: Option<f64>,
    /// Of an acknowledgment of new data: from the arrival of the last segment among them until `t_s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_ms: Option<f64>,
    /// How many segments it is the first to acknowledge.
    #[serde(skip_serializing_if = "is_zero")]
    pub acked_segments: u32,
    /// Where a model dropped it: `medium`, `ap_queue`, `station_queue`, `wired`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<&'static str>,
}

/// What stands before the lines.
#[derive(Serialize)]
struct Header<'a> {
    format: u32,
    revision: &'a str,
    scenario: &'a str,
    seed: u64,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Line {
    /// What a receiver advertises by it and its sender reads, with the flow: segments that answer data and carry none.
    #[must_use]
    pub fn advertised(&self) -> Option<(&str, Windows)> {
        let answers = self.bytes == 0 && (self.acked_segments > 0 || self.window_update) && self.lost.is_none();
        let flow = self.flow.as_deref().filter(|_| answers)?;
        let allowed = Some(self.clamped_window.unwrap_or(self.offered_window) as f64);
        Some((flow, Windows { offered: Some(self.offered_window as f64), allowed, congestion: None }))
    }

    /// Writes it, with its newline.
    ///
    /// # Errors
    /// The failed write.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut *to, self)?;
        to.write_all(b"\n")
    }
}

/// A datagram, as the simulator's trace has it too.
#[derive(Serialize)]
struct DatagramLine<'a> {
    t_s: f64,
    flow: &'a str,
    bytes: u32,
    delay_ms: f64,
}

/// Writes the line of a datagram of `flow`.
///
/// # Errors
/// The failed write.
pub fn write_datagram(to: &mut impl Write, flow: &str, it: &Datagram) -> io::Result<()> {
    let (t_s, delay_ms) = (it.sent.since(Time::ZERO).as_secs_f64(), it.at.since(it.sent).as_millis_f64());
    serde_json::to_writer(&mut *to, &DatagramLine { t_s, flow, bytes: it.bytes, delay_ms })?;
    to.write_all(b"\n")
}

/// Writes the first line of a trace.
///
/// # Errors
/// The failed write.
pub fn write_header(to: &mut impl Write, scenario: &Scenario, revision: &str) -> io::Result<()> {
    let header = Header { format: FORMAT, revision, scenario: &scenario.name, seed: scenario.seed };
    serde_json::to_writer(&mut *to, &header)?;
    to.write_all(b"\n")
}

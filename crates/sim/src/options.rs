//! What a caller may want of a run besides its report.

use std::io::{self, Write};

use lasthop_core::units::Time;
use lasthop_home::course::Packets;
use lasthop_tcp::Law;

/// What takes the lines of a trace.
pub type TraceSink<'a> = &'a mut dyn FnMut(&TraceLine) -> io::Result<()>;

/// What may give a flow, by its name, a law of the caller's.
pub type Laws<'a> = &'a mut dyn FnMut(&str) -> Option<Box<dyn Law>>;

/// All off by default.
#[derive(Default)]
pub struct Options<'a> {
    /// One call per change of a sender or a queue, thinned to 1 ms; an error ends the run.
    pub trace: Option<TraceSink<'a>>,
    /// Every frame of the channel as a capture with radiotap headers.
    pub pcap: Option<&'a mut dyn Write>,
    /// Asked now and then, about a hundred times a second; false ends the run.
    pub progress: Option<&'a mut dyn FnMut(Progress) -> bool>,
    /// Filled at the end with what became of the packets of each flow over time; flows beyond
    /// [`MOST_FLOWS`](lasthop_home::course::MOST_FLOWS) have none.
    pub packets: Option<&'a mut Vec<Option<Packets>>>,
    /// Asked for every flow of the scenario over TCP or QUIC: the law of its congestion window, in place of the scenario's. What it
    /// does is the caller's to make a function of what it is told, or else one seed gives many reports.
    pub laws: Option<Laws<'a>>,
    /// What the report names as the program's revision.
    pub revision: &'a str,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Virtual time.
    pub now: Time,
    /// When it ends.
    pub end: Time,
    /// Events so far.
    pub events: u64,
}

/// One line of `--trace`: `schema/report.md`. Absent fields did not change or do not apply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceLine {
    /// Since the start of the run, s.
    pub t_s: f64,
    /// The flow, or else
    pub flow: Option<String>,
    /// the queue.
    pub queue: Option<String>,
    /// Congestion window, segments.
    pub cwnd: Option<f64>,
    /// Slow-start threshold, segments.
    pub ssthresh: Option<f64>,
    /// What the receiver offered, bytes.
    pub offered_window: Option<u64>,
    /// What the access point made of it, bytes.
    pub clamped_window: Option<u64>,
    /// Outstanding, bytes.
    pub inflight: Option<u64>,
    /// Packets that wait, and the one in service.
    pub queue_packets: Option<u64>,
    /// Payload bit/s that came to the receiver for the first time, from the last arrival before the flow's line before to the last
    /// before this one.
    pub rate_bps: Option<f64>,
    /// What the sender believes the path carries, payload bit/s, where it has an estimate (Westwood) or its law allows a rate
    /// (TFRC, SSVP).
    pub bandwidth_bps: Option<f64>,
    /// One way, ms: one line per delivered packet of a flow that is not TCP; `t_s` is when it was sent.
    pub delay_ms: Option<f64>,
}

//! `--trace`: what senders, windows and the queue in front of the channel do, one line per change, thinned to 1 ms.

use lasthop_core::units::{Span, Time};
use lasthop_home::scenario::Scenario;
use lasthop_tcp::SenderSnapshot;

use crate::SimError;
use crate::options::{TraceLine, TraceSink};
use crate::packet::SimPacket;

/// Two lines about one thing are at least so far apart.
const THINNED: Span = Span::from_millis(1);

/// Where lines go.
type Sink<'o> = Option<TraceSink<'o>>;

/// See the module. Off, it costs a branch.
pub struct Tracer {
    on: bool,
    names: Vec<String>,
    flows: Vec<Flow>,
    /// Of the access point.
    queue: Option<(Time, usize)>,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    offered: u64,
    clamped: u64,
    at: Option<Time>,
    /// Payload that the receiver has, bytes, and when the last of it came.
    arrived: (u64, Option<Time>),
    /// The same as of the line that last had a rate, or could have had one.
    rated: (u64, Option<Time>),
    newest: Option<TraceLine>,
}

impl Flow {
    /// Payload rate from arrival to arrival since it was asked for last, bit/s; `None` where nothing has come since.
    ///
    /// Each packet among them crossed the hop after the arrival that the time begins with, so the rate is never above what
    /// the hop carries. What is acknowledged comes in jumps: a cumulative acknowledgment after a recovery covers a whole window.
    fn rate(&mut self, now: Time) -> Option<f64> {
        // More may come at this very instant.
        let newest = self.arrived.1.filter(|at| *at < now && self.rated.1.is_none_or(|before| before < *at))?;
        let (before, since) = std::mem::replace(&mut self.rated, self.arrived);
        Some((self.arrived.0 - before) as f64 * 8.0 / newest.since(since?).as_secs_f64())
    }
}

impl Tracer {
    pub fn new(scenario: &Scenario, on: bool) -> Self {
        let names = if on { scenario.flows.iter().map(|f| f.name.clone()).collect() } else { Vec::new() };
        Self { on, flows: vec![Flow::default(); names.len()], names, queue: None }
    }

    pub const fn is_on(&self) -> bool {
        self.on
    }

    /// The receiver of `flow` offers so many bytes.
    pub fn on_offer(&mut self, flow: usize, bytes: u64) {
        if self.on {
            self.flows[flow].offered = bytes;
        }
    }

    /// So many bytes of payload have come to the receiver of `flow` for the first time.
    pub fn on_arrival(&mut self, now: Time, flow: usize, bytes: u32) {
        if self.on {
            let (before, _) = self.flows[flow].arrived;
            self.flows[flow].arrived = (before + u64::from(bytes), Some(now));
        }
    }

    /// The sender of `flow` reads so many bytes: what the access point left of an offer.
    pub fn on_window(&mut self, flow: usize, bytes: u64) {
        if self.on {
            self.flows[flow].clamped = bytes;
        }
    }

    /// After anything that may have moved the sender of `flow`.
    pub fn on_sender(
        &mut self,
        now: Time,
        flow: usize,
        sink: &mut Sink<'_>,
        snapshot: impl FnOnce() -> SenderSnapshot,
        failed: &mut Option<SimError>,
    ) {
        if !self.on {
            return;
        }
        let own = &mut self.flows[flow];
        if own.at.is_some_and(|at| now.since(at) < THINNED) {
            return;
        }
        let sender = snapshot();
        let mut line = TraceLine {
            flow: Some(self.names[flow].clone()),
            cwnd: Some(sender.cwnd),
            ssthresh: Some(sender.ssthresh).filter(|s| s.is_finite()),
            offered_window: Some(own.offered),
            clamped_window: Some(own.clamped),
            inflight: Some(sender.inflight),
            bandwidth_bps: sender.bandwidth.map(|rate| rate.as_bps() as f64),
            ..TraceLine::default()
        };
        if own.newest.as_ref() == Some(&line) {
            return;
        }
        own.newest = Some(line.clone());
        own.at = Some(now);
        line.rate_bps = own.rate(now);
        write(now, line, sink, failed);
    }

    /// The law of `flow` allows so many bytes/s of payload.
    pub fn on_rate(&mut self, now: Time, flow: usize, rate: f64, sink: &mut Sink<'_>, failed: &mut Option<SimError>) {
        let own = &mut self.flows[flow];
        if own.at.is_some_and(|at| now.since(at) < THINNED) {
            return;
        }
        let name = Some(self.names[flow].clone());
        let line = TraceLine { flow: name, bandwidth_bps: Some((rate * 8.0).round()), ..TraceLine::default() };
        if own.newest.as_ref() != Some(&line) {
            (own.at, own.newest) = (Some(now), Some(line.clone()));
            write(now, line, sink, failed);
        }
    }

    /// So many packets wait at the access point.
    pub fn on_queue(&mut self, now: Time, packets: usize, sink: &mut Sink<'_>, failed: &mut Option<SimError>) {
        if self.queue.is_some_and(|(at, before)| now.since(at) < THINNED || packets == before) {
            return;
        }
        self.queue = Some((now, packets));
        let name = Some("AP to stations".to_owned());
        let line = TraceLine { queue: name, queue_packets: Some(packets as u64), ..TraceLine::default() };
        write(now, line, sink, failed);
    }

    /// A packet of a flow that is not TCP has arrived.
    pub fn on_delivered(&mut self, now: Time, packet: &SimPacket, sink: &mut Sink<'_>, failed: &mut Option<SimError>) {
        let line = TraceLine {
            flow: Some(self.names[packet.flow as usize].clone()),
            delay_ms: Some(now.since(packet.sent).as_millis_f64()),
            ..TraceLine::default()
        };
        write(packet.sent, line, sink, failed);
    }
}

fn write(at: Time, line: TraceLine, sink: &mut Sink<'_>, failed: &mut Option<SimError>) {
    if let Some(sink) = sink
        && let Err(error) = sink(&TraceLine { t_s: at.since(Time::ZERO).as_secs_f64(), ..line })
    {
        *failed = Some(SimError::Write(error));
    }
}

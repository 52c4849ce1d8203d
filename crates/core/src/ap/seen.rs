//! What one interval showed of a way, of all its flows together.

use super::Params;
use super::divide::Prices;
use super::record::Record;
use crate::packet::{Direction, FlowId};
use crate::units::Span;

/// A part of an interval: who sends all the time pauses no longer.
const PAUSE: f64 = 0.25;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// IP bytes of TCP that arrived.
    pub(super) bytes: f64,
    /// The same, as bytes of the cheapest station; and what was sent.
    pub(super) arrived: f64,
    pub(super) sent: f64,
    /// IP bytes of UDP that passed.
    pub(super) udp_bytes: f64,
    /// The same, as bytes of the cheapest station, and as far as is known when they left.
    pub(super) udp: f64,
    /// What a byte of all this cost beside one of the cheapest station.
    pub(super) cost: Option<f64>,
    /// Bytes that could have passed in the time that its small packets take beyond their bytes.
    pub(super) small: f64,
    /// Of the trains of all flows that came, and of those that were delivered: IP bytes, and the time they took.
    pub(super) came: (f64, f64),
    pub(super) train: (f64, f64),
    /// For how long nothing has come, s.
    pub(super) pause: f64,
    /// Time in which more of a flow was under way, of all flows together, s.
    pub(super) served: f64,
    /// Longest pause of the flow that paused least, s.
    pub(super) gap: f64,
    /// What waits at the last hop, s: mean and least.
    pub(super) local: Option<(f64, f64)>,
    /// What waits in front of the home, s: mean and least.
    pub(super) remote: Option<(f64, f64)>,
    /// IP bytes per byte of payload in full segments.
    pub(super) to_ip: f64,
    /// Flows that fill the windows they were planned.
    pub(super) held: usize,
    /// Flows that their pace holds back.
    pub(super) paced: usize,
    /// Flows that fill windows which still grow.
    pub(super) growing: usize,
    /// Flows that move payload.
    pub(super) active: usize,
    /// Mean round trip of those without queueing, s.
    pub(super) rtt: f64,
}

impl Seen {
    /// IP bytes that went through. TCP is acknowledged; UDP counts when it comes to the queue, and the slow start of a QUIC
    /// download comes faster than it leaves: so with it no more than `limit` bytes are believed.
    pub(super) fn delivered(&self, limit: Option<f64>) -> f64 {
        let all = self.arrived + self.udp;
        limit.map_or(all, |limit| self.arrived.max(all.min(limit)))
    }

    pub(super) fn of<'a>(
        params: &Params,
        direction: Direction,
        (bound, dt): (Span, f64),
        prices: &Prices,
        records: impl Iterator<Item = (&'a (FlowId, Direction), &'a Record)> + Clone,
    ) -> Self {
        let mut seen = Self { gap: f64::MAX, ..Self::default() };
        let least = |old: Option<(f64, f64)>, new: Option<(f64, f64)>| match (old, new) {
            (Some(old), Some(new)) => Some((old.0.min(new.0), old.1.min(new.1))),
            (old, new) => old.or(new),
        };
        let records = records.filter(|((_, way), _)| *way == direction);
        let active = records.clone().filter(|(_, record)| record.is_active()).count();
        for (_, record) in records {
            seen.bytes += record.arrived();
            seen.arrived += record.arrived() * prices.of(record.station());
            seen.sent += record.sent() * prices.of(record.station());
            if !record.is_active() {
                continue;
            }
            seen.served += record.served().min(record.watched());
            seen.active += 1;
            seen.to_ip = record.to_ip();
            seen.held += usize::from(record.is_controlled() && record.is_held());
            seen.paced += usize::from(record.is_controlled() && record.is_paced());
            seen.growing += usize::from(record.is_controlled() && record.is_growing());
            seen.rtt += record.base_rtt(params, bound).map_or(0.1, Span::as_secs_f64);
            seen.local = least(seen.local, record.local_queue(bound));
            let gap = record.gap();
            seen.gap = seen.gap.min(gap);
            if record.fills_its_window() || gap <= pause(active, dt) {
                seen.remote = least(seen.remote, record.remote_queue());
            }
        }
        seen.rtt = if seen.active > 0 { seen.rtt / seen.active as f64 } else { 0.1 };
        seen
    }
}

/// Who sends all the time pauses no longer, s; of several flows each has to wait for the others.
pub(super) fn pause(active: usize, dt: f64) -> f64 {
    PAUSE * dt * active.max(1) as f64
}

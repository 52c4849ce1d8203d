//! The queue disciplines of the LAN interfaces: put there, told every interval, put back.
//!
//! What all traffic may use of the last hop is `capacity`, both directions together where they share it (radio). Only
//! what goes to the stations passes a queue here, so its pace is what is left of the capacity by the other direction:
//!
//! `pace = max(capacity - up, capacity / 5)`   [bit/s], up low-pass filtered; on a full-duplex wire `pace = capacity`

use lasthop_core::packet::Direction;
use lasthop_core::units::{BitRate, Span, Time};

use super::links::Present;
use super::{ControllerError, log};
use crate::config::{Config, Duplex, Queueing};
use crate::interface::{self, InterfaceName};
use crate::qdisc::layout::FLOWS;
use crate::qdisc::{Qdisc, QdiscError, Settings};
use crate::status::QueueStatus;

/// Weight of the newest sample of what goes up.
const WEIGHT: f64 = 0.2;
/// What the stations' side keeps whatever goes up: its queue must not stand still.
const LEAST: u64 = 5;

pub(super) struct Queues {
    /// None: the kernel's own disciplines stay.
    settings: Option<Settings>,
    capacity: BitRate,
    list: Vec<Queue>,
    up: Option<(Time, u64)>,
    up_bps: f64,
}

struct Queue {
    name: InterfaceName,
    shares_air: bool,
    qdisc: Option<Qdisc>,
    put_again: u64,
    refused: bool,
}

impl Queues {
    pub(super) fn new(config: &Config, capacity: BitRate) -> Self {
        let queue = |name: &InterfaceName| Queue {
            name: name.clone(),
            shares_air: match config.duplex {
                Duplex::Auto => interface::speed(name).is_none(),
                Duplex::Half => true,
                Duplex::Full => false,
            },
            qdisc: None,
            put_again: 0,
            refused: false,
        };
        let is_wanted = config.queueing == Queueing::Chap && !config.dry_run;
        Self {
            settings: is_wanted.then_some(config.chap),
            capacity,
            list: config.lan.iter().map(queue).collect(),
            up: None,
            up_bps: 0.0,
        }
    }

    /// Puts a discipline on every interface that is there.
    pub(super) fn put(&mut self, now: Time, present: &[Option<Present>]) -> Result<(), ControllerError> {
        let Some(settings) = self.settings else { return Ok(()) };
        let rates: Vec<_> = self.list.iter().map(|queue| self.pace(queue)).collect();
        for ((queue, rate), there) in self.list.iter_mut().zip(rates).zip(present) {
            let Some(there) = there else { continue };
            let qdisc = Qdisc::new(&queue.name, there.ifindex, there.layer, settings, now, rate)?;
            let instead = qdisc.before().map_or_else(String::new, |kind| format!(" instead of {kind}"));
            log(&format!("{}: queue discipline {}{instead}, at {rate}", queue.name, qdisc.kind()));
            queue.qdisc = Some(qdisc);
        }
        Ok(())
    }

    /// Every interval, with each interface that is there, in the order of the configuration.
    pub(super) fn on_interval(&mut self, now: Time, present: &[Option<Present>], up_bytes: u64) -> u64 {
        let Some(settings) = self.settings else { return 0 };
        if let Some((before, bytes)) = self.up.replace((now, up_bytes)) {
            let seconds = now.since(before).as_secs_f64().max(1e-3);
            self.up_bps += WEIGHT * (up_bytes.saturating_sub(bytes) as f64 * 8.0 / seconds - self.up_bps);
        }
        let rates: Vec<_> = self.list.iter().map(|queue| self.pace(queue)).collect();
        let mut failures = 0;
        for ((queue, rate), there) in self.list.iter_mut().zip(rates).zip(present) {
            queue.keep(settings, now, rate, *there);
            failures += u64::from(queue.qdisc.as_ref().is_some_and(|qdisc| qdisc.tell(now, rate).is_err()));
        }
        failures
    }

    fn pace(&self, queue: &Queue) -> BitRate {
        if !queue.shares_air {
            return self.capacity;
        }
        let capacity = self.capacity.as_bps();
        BitRate::bps(capacity.saturating_sub(self.up_bps as u64).max(capacity / LEAST))
    }

    pub(super) fn status(&self) -> Vec<QueueStatus> {
        self.list.iter().filter_map(|queue| queue.status(self.pace(queue))).collect()
    }
}

impl Queue {
    /// Puts it there again when the interface came back, or when somebody took it off.
    fn keep(&mut self, settings: Settings, now: Time, rate: BitRate, there: Option<Present>) {
        let Some(there) = there else {
            self.qdisc = None;
            return;
        };
        if self.qdisc.as_mut().is_some_and(|qdisc| qdisc.ifindex() == there.ifindex && qdisc.is_intact()) {
            return;
        }
        self.qdisc = None;
        match Qdisc::new(&self.name, there.ifindex, there.layer, settings, now, rate) {
            Ok(qdisc) => {
                log(&format!("{}: queue discipline {} put there again", self.name, qdisc.kind()));
                self.qdisc = Some(qdisc);
                self.put_again += 1;
                self.refused = false;
            }
            // Tried again every interval; said once.
            Err(error) if !self.refused => {
                log(&format!("{}; trying on", chain(&error)));
                self.refused = true;
            }
            Err(_) => {}
        }
    }

    fn status(&self, pace: BitRate) -> Option<QueueStatus> {
        let qdisc = self.qdisc.as_ref()?;
        let figures = qdisc.figures().unwrap_or_default();
        Some(QueueStatus {
            interface: self.name.to_string(),
            kind: qdisc.kind().to_owned(),
            instead_of: qdisc.before().map(str::to_owned),
            pace_bps: pace.as_bps(),
            sent_packets: figures.sent_packets,
            sent_bytes: figures.sent_bytes,
            airtime_s: Span::from_nanos(figures.sent_ns).as_secs_f64(),
            queued: figures.queued,
            most_queued: figures.most_queued,
            dropped: figures.dropped,
            lost: figures.lost,
            flows: figures.flows,
            flows_bound: u64::from(FLOWS),
            backlogged: figures.backlogged,
            boosts: figures.boosts,
            admitted: figures.admitted,
            shared: figures.shared,
            over_cap: figures.over_cap,
            no_room: figures.no_room,
            evicted: figures.evicted,
            merged: figures.merged,
            waits: figures.waits,
            unpaced: figures.unpaced,
            put_again: self.put_again,
        })
    }
}

fn chain(error: &QdiscError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// IP bytes that stations have sent.
pub(super) fn up_bytes(ip_bytes: &[u64; 2]) -> u64 {
    ip_bytes[Direction::ToRemote.index()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(duplex: Duplex) -> Queues {
        let config = Config { lan: vec!["lo".parse().unwrap()], queueing: Queueing::Chap, duplex, ..Config::default() };
        Queues::new(&config, BitRate::mbps(20))
    }

    #[test]
    fn what_goes_up_is_taken_from_the_pace_where_both_share_the_air() {
        for (duplex, expected) in [(Duplex::Auto, 15.0), (Duplex::Half, 15.0), (Duplex::Full, 20.0)] {
            let mut queues = queues(duplex);
            for second in 0..60 {
                // Nothing is there: only the pace is computed. 5 Mbit/s up.
                queues.on_interval(Time::ZERO + Span::from_secs(second), &[None], second * 625_000);
            }
            let pace = queues.pace(&queues.list[0]).as_mbps_f64();
            assert!((pace - expected).abs() < 0.01, "{duplex:?} {pace}");
        }
    }

    #[test]
    fn the_pace_never_falls_below_a_fifth_of_the_capacity() {
        let mut queues = queues(Duplex::Half);
        for second in 0..60 {
            queues.on_interval(Time::ZERO + Span::from_secs(second), &[None], second * 12_500_000);
        }
        assert_eq!(queues.pace(&queues.list[0]), BitRate::mbps(4));
    }

    #[test]
    fn a_dry_run_and_the_kernels_own_leave_the_queue_alone() {
        let mut config = Config { lan: vec!["lo".parse().unwrap()], ..Config::default() };
        assert!(Queues::new(&config, BitRate::mbps(20)).settings.is_none());
        config.queueing = Queueing::Chap;
        config.dry_run = true;
        assert!(Queues::new(&config, BitRate::mbps(20)).settings.is_none());
    }
}

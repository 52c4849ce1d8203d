//! Who keeps the queue of one interface: the kernel, or this process.

use lasthop_core::units::{BitRate, Span, Time};

use super::super::journal::Journal;
use super::super::links::Present;
use super::Wanted;
use super::queue::{Queue, chain};
use crate::config::{Datapath as Where, Queueing};
use crate::datapath::{Datapath, DatapathError, Egress, Kind, engine};
use crate::discipline::Discipline;
use crate::program::Program;
use crate::qdisc::layout::{FLOWS, PacketCost};
use crate::qdisc::{self, Qdisc, QdiscError};
use crate::stations::Mac;
use lasthop_status::QueueStatus;

/// Why an interface cannot have the queue.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// The kernel cannot keep it.
    #[error(transparent)]
    Kernel(#[from] QdiscError),
    /// This process cannot keep it.
    #[error(transparent)]
    User(#[from] DatapathError),
}

pub(super) enum Keeper {
    Kernel(Box<Qdisc>),
    User(Datapath, Queueing),
}

impl Keeper {
    pub(super) fn new(
        queue: &Queue,
        wanted: Wanted,
        there: Present,
        program: &Program,
        (now, rate): (Time, BitRate),
        journal: &mut Journal,
    ) -> Result<Self, QueueError> {
        let in_kernel = || Qdisc::new(&queue.port.name, there.ifindex, there.layer, wanted.settings, now, rate);
        let in_kernel = || in_kernel().map(|qdisc| Self::Kernel(Box::new(qdisc)));
        let kind = match wanted.queueing {
            Queueing::Kernel | Queueing::Chap => Kind::Chap,
            Queueing::Fifo => Kind::Fifo,
            Queueing::Codel => Kind::Codel,
            Queueing::FqCodel => Kind::FqCodel,
        };
        match wanted.datapath {
            Where::Kernel => return Ok(in_kernel()?),
            Where::Auto if kind == Kind::Chap && wanted.snoop.is_none() && qdisc::is_supported() => match in_kernel() {
                Ok(keeper) => return Ok(keeper),
                Err(error) => journal.say(now, format!("{}; so this process keeps the queue", chain(&error))),
            },
            Where::Auto | Where::User => {}
        }
        let (shares_channel, snoop) = (queue.shares_channel, wanted.snoop);
        let place = Egress { ifindex: there.ifindex, layer: there.layer, mtu: there.mtu, shares_channel, snoop };
        let datapath = Datapath::new(&queue.port.name, place, kind, &wanted.settings, program, now, rate)?;
        Ok(Self::User(datapath, wanted.queueing))
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Self::Kernel(qdisc) => {
                let instead = qdisc.before().map_or_else(String::new, |kind| format!(" instead of {kind}"));
                format!("queue discipline {}{instead}", qdisc.kind())
            }
            Self::User(datapath, queueing) => {
                let repairs = if datapath.repairs() { "; losses of the hop are repaired" } else { "" };
                format!("queue {} in this process, by {}{repairs}", name(*queueing), datapath.device())
            }
        }
    }

    /// Says that we are alive, how fast packets may leave, and what those to some stations cost; false when it could not be
    /// said.
    pub(super) fn set_pace(&self, now: Time, rate: BitRate, stations: impl Iterator<Item = (Mac, PacketCost)>) -> bool {
        match self {
            Self::Kernel(qdisc) => qdisc.set_pace(now, rate, stations).is_ok(),
            Self::User(datapath, _) => {
                datapath.set_pace(rate);
                true
            }
        }
    }

    /// Packets that wait in it now.
    pub(super) fn waiting_packets(&self) -> u64 {
        match self {
            Self::Kernel(qdisc) => qdisc.metrics().map_or(0, |metrics| metrics.queued),
            Self::User(datapath, _) => datapath.counted().engine.queue.packets as u64,
        }
    }

    pub(super) fn ifindex(&self) -> u32 {
        match self {
            Self::Kernel(qdisc) => qdisc.ifindex(),
            Self::User(datapath, _) => datapath.ifindex(),
        }
    }

    /// Whether it is at work, where this was the root of its interface; what was seen before it was put there says nothing of it.
    pub(super) fn is_intact(&self, root: Option<&Discipline>, seen_since: bool) -> bool {
        match self {
            Self::Kernel(qdisc) => !seen_since || root.is_some_and(|root| qdisc.is(root)),
            Self::User(datapath, _) => datapath.is_intact(),
        }
    }

    /// Whether it has room for the longest packets of its interface, whose MTU may have grown.
    pub(super) const fn carries(&self, mtu: u32) -> bool {
        match self {
            Self::Kernel(_) => true,
            Self::User(datapath, _) => datapath.carries(mtu),
        }
    }

    /// What it replaced on the interface, and by what; none where it replaced nothing.
    pub(super) fn replaced(&self) -> Option<(String, String)> {
        match self {
            Self::Kernel(qdisc) => Some((qdisc.before().unwrap_or("noqueue").to_owned(), qdisc.kind().to_owned())),
            Self::User(..) => None,
        }
    }

    /// All but what the queue's owner knows: interface, pace, how often it was put there again.
    pub(super) fn status(&self) -> QueueStatus {
        match self {
            Self::Kernel(qdisc) => in_kernel(qdisc),
            Self::User(datapath, queueing) => in_process(datapath, *queueing),
        }
    }
}

/// As configuration and status name it.
pub(super) fn name(queueing: Queueing) -> &'static str {
    match queueing {
        Queueing::Kernel => "kernel",
        Queueing::Chap => "chap",
        Queueing::Fifo => "fifo",
        Queueing::Codel => "codel",
        Queueing::FqCodel => "fq_codel",
    }
}

fn in_kernel(qdisc: &Qdisc) -> QueueStatus {
    let metrics = qdisc.metrics().unwrap_or_default();
    QueueStatus {
        kind: qdisc.kind().to_owned(),
        datapath: "kernel".to_owned(),
        instead_of: qdisc.before().map(str::to_owned),
        sent_packets: metrics.sent_packets,
        sent_bytes: metrics.sent_bytes,
        airtime_s: Span::from_nanos(metrics.sent_ns).as_secs_f64(),
        queued: metrics.queued,
        most_queued: metrics.most_queued,
        dropped: metrics.dropped,
        lost: metrics.lost,
        flows: metrics.flows,
        flows_bound: u64::from(FLOWS),
        backlogged: metrics.backlogged,
        boosts: metrics.boosts,
        admitted: metrics.admitted,
        shared: metrics.shared,
        over_cap: metrics.over_cap,
        no_room: metrics.no_room,
        evicted: metrics.evicted,
        merged: metrics.merged,
        waits: metrics.waits,
        unpaced: metrics.unpaced,
        ..QueueStatus::default()
    }
}

fn in_process(datapath: &Datapath, queueing: Queueing) -> QueueStatus {
    let counted = datapath.counted();
    let (engine, queue, credit) = (counted.engine, counted.engine.queue, counted.engine.credit);
    QueueStatus {
        kind: name(queueing).to_owned(),
        datapath: "user".to_owned(),
        device: Some(datapath.device().to_string()),
        sent_packets: engine.sent_packets,
        sent_bytes: engine.sent_bytes,
        airtime_s: engine.sent_time.as_secs_f64(),
        queued: queue.packets as u64,
        most_queued: queue.max_packets as u64,
        dropped: queue.dropped,
        lost: counted.refused + counted.answers_lost + engine.too_long + datapath.overrun(),
        flows: credit.flows as u64,
        flows_bound: if queueing == Queueing::Chap { u64::from(engine::FLOWS) } else { 0 },
        backlogged: credit.backlogged as u64,
        boosts: credit.boosts,
        admitted: credit.admitted,
        shared: credit.shared,
        over_cap: credit.over_cap,
        no_room: credit.no_room,
        evicted: credit.evicted,
        waits: counted.waits,
        blocked: counted.blocked,
        charged_up: engine.received_charged,
        snoop: engine.snoop,
        mean_sojourn_ms: Some(queue.mean_sojourn_ms),
        p99_sojourn_ms: Some(queue.p99_sojourn_ms),
        ..QueueStatus::default()
    }
}

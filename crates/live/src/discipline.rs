//! Queue disciplines that are in place, as the kernel tells them, and what follows from them for control.
//!
//! One `RTM_GETQDISC` dump tells those of all interfaces with what waits in each; the rate of an HTB stands in its classes
//! (`RTM_GETTCLASS`). What is found is never changed: a queue that is short already (SQM, CAKE, FQ-CoDel) is left to do its
//! work, and windows are held only where something waits all the same.
//! Source: rtnetlink(7), `linux/pkt_sched.h`, `linux/gen_stats.h`.

use std::io;

use lasthop_core::units::BitRate;

use crate::interface::InterfaceName;
use crate::netlink::{self, Attributes, NLM_F_DUMP, Socket};

const TCMSG: usize = 20;
const TC_H_ROOT: u32 = 0xffff_ffff;
const TC_H_INGRESS: u32 = 0xffff_fff1;
const TCA_KIND: u16 = 1;

/// What the names of our disciplines begin with, as `tc qdisc` lists them.
pub const CHAP: &str = "chap";
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_CAKE_BASE_RATE64: u16 = 2;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_CEIL64: u16 = 7;
/// Where `struct tc_ratespec` has its 32-bit rate, and how long it is.
const RATESPEC_RATE: usize = 8;
const RATESPEC: usize = 12;

/// One queue discipline of one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discipline {
    /// The interface's number.
    pub ifindex: u32,
    /// Its kind: "fq_codel", ...
    pub kind: String,
    /// Its number.
    pub handle: u32,
    /// Handle of its parent.
    pub parent: u32,
    /// What waits in it and below it, bytes.
    pub backlog: u64,
    /// What it lets out, where it says so itself.
    pub rate: Option<BitRate>,
    /// Everything waits in a class that has a rate, or nobody says otherwise: an HTB may let out at once what no class takes.
    pub takes_all: bool,
}

impl Discipline {
    /// The first that a packet to the interface meets.
    #[must_use]
    pub const fn is_root(&self) -> bool {
        self.parent == TC_H_ROOT
    }

    /// For packets that come in.
    #[must_use]
    pub const fn is_ingress(&self) -> bool {
        self.parent == TC_H_INGRESS
    }

    fn read(body: &[u8]) -> Option<Self> {
        let word = |at: usize| body.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let attributes = body.get(TCMSG..)?;
        let kind = netlink::text(Attributes::find(attributes, TCA_KIND)?);
        let rate = Attributes::find(attributes, TCA_OPTIONS).and_then(|options| rate_of(&kind, options));
        let waits = Attributes::find(attributes, TCA_STATS2).and_then(|stats| Attributes::find(stats, TCA_STATS_QUEUE));
        // struct gnet_stats_queue {qlen, backlog, ..}
        let backlog = waits.and_then(|queue| u32_at(queue, 4)).map_or(0, u64::from);
        let takes_all = kind != "htb" || Attributes::find(attributes, TCA_OPTIONS).is_some_and(has_default);
        Some(Self { ifindex: word(4)?, kind, handle: word(8)?, parent: word(12)?, backlog, rate, takes_all })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

fn u64_of(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_ne_bytes)
}

/// All tell bytes per second; 0 is no limit.
fn rate(bytes_per_second: u64) -> Option<BitRate> {
    (bytes_per_second > 0).then(|| BitRate::bps(bytes_per_second.saturating_mul(8)))
}

fn rate_of(kind: &str, options: &[u8]) -> Option<BitRate> {
    match kind {
        "cake" | "cake_mq" => Attributes::find(options, TCA_CAKE_BASE_RATE64).and_then(u64_of).and_then(rate),
        "tbf" => {
            let long = Attributes::find(options, TCA_TBF_RATE64).and_then(u64_of);
            let short = || u32_at(Attributes::find(options, TCA_TBF_PARMS)?, RATESPEC_RATE).map(u64::from);
            long.or_else(short).and_then(rate)
        }
        _ => None,
    }
}

/// What no filter takes goes to a class of this HTB.
fn has_default(options: &[u8]) -> bool {
    // struct tc_htb_glob {version, rate2quantum, defcls, ..}
    Attributes::find(options, TCA_HTB_INIT).and_then(|init| u32_at(init, 8)).is_some_and(|class| class != 0)
}

/// What a class of an HTB may use at most, when it is a root's.
fn ceiling(body: &[u8]) -> Option<BitRate> {
    let attributes = body.get(TCMSG..)?;
    if u32_at(body, 12)? != TC_H_ROOT || netlink::text(Attributes::find(attributes, TCA_KIND)?) != "htb" {
        return None;
    }
    let options = Attributes::find(attributes, TCA_OPTIONS)?;
    let long = Attributes::find(options, TCA_HTB_CEIL64).and_then(u64_of);
    // struct tc_htb_opt {rate, ceil, ..}
    let short = || u32_at(Attributes::find(options, TCA_HTB_PARMS)?, RATESPEC + RATESPEC_RATE).map(u64::from);
    long.or_else(short).and_then(rate)
}

/// Every discipline of every interface, without rates of classes.
///
/// # Errors
/// When netlink fails.
pub fn all(route: &mut Socket) -> io::Result<Vec<Discipline>> {
    let replies = route.request(libc::RTM_GETQDISC, NLM_F_DUMP, &[0u8; TCMSG])?;
    Ok(replies.iter().filter_map(|reply| Discipline::read(&reply.body)).collect())
}

/// What the root classes of an interface's HTB may use together at most.
///
/// # Errors
/// When netlink fails.
pub fn htb_rate(route: &mut Socket, ifindex: u32) -> io::Result<Option<BitRate>> {
    let mut body = [0u8; TCMSG];
    body[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    let classes = route.request(libc::RTM_GETTCLASS, NLM_F_DUMP, &body)?;
    let all = classes.iter().filter_map(|reply| ceiling(&reply.body)).map(BitRate::as_bps).reduce(u64::saturating_add);
    Ok(all.map(BitRate::bps))
}

/// Those of one interface, an HTB with what its root classes may use together.
///
/// # Errors
/// When netlink fails.
pub fn of(route: &mut Socket, ifindex: u32) -> io::Result<Vec<Discipline>> {
    let mut list = all(route)?;
    list.retain(|discipline| discipline.ifindex == ifindex);
    for htb in list.iter_mut().filter(|discipline| discipline.kind == "htb") {
        htb.rate = htb_rate(route, ifindex)?;
    }
    Ok(list)
}

/// What an interface is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Towards the stations.
    Lan,
    /// Towards the provider.
    Wan,
}

/// What was found at an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// "cake at 18 Mbit/s", "htb at 20 Mbit/s with fq_codel", ...
    pub what: String,
    /// It limits the rate, so that there is a standing queue in it and not below.
    pub shapes: bool,
    /// Flows wait beside each other, or the queue is kept short.
    pub is_short: bool,
    /// What follows for control.
    pub follows: &'static str,
}

/// Keeps flows apart.
fn is_fair(kind: &str) -> bool {
    matches!(kind, "cake" | "cake_mq" | "fq_codel" | "fq_pie" | "fq" | "sfq" | "drr" | "dualpi2")
}

/// Keeps the queue short.
fn is_managed(kind: &str) -> bool {
    is_fair(kind) || matches!(kind, "codel" | "pie" | "red")
}

/// Limits the rate by itself, when it is told one.
#[must_use]
pub fn shapes(kind: &str) -> bool {
    matches!(kind, "cake" | "cake_mq" | "htb" | "tbf" | "hfsc" | "cbq" | "netem" | "taprio" | "cbs")
}

/// What stands at an interface that is worth a word; none where there are plain queues only. Ours are none.
#[must_use]
pub fn found(side: Side, disciplines: &[Discipline]) -> Option<Found> {
    let theirs: Vec<_> = disciplines.iter().filter(|d| !is_passive(&d.kind)).collect();
    let shaper = theirs.iter().find(|d| match d.kind.as_str() {
        "cake" | "cake_mq" => d.rate.is_some(),
        kind => shapes(kind),
    });
    let inner = theirs.iter().filter(|d| is_managed(&d.kind)).find(|d| shaper.is_none_or(|s| s.handle != d.handle));
    let is_short = shaper.is_some_and(|shaper| is_managed(&shaper.kind)) || inner.is_some();
    let what = match (shaper, inner) {
        (None, None) => return None,
        (None, Some(inner)) => inner.kind.clone(),
        (Some(shaper), inner) => {
            let rate = shaper.rate.map_or_else(String::new, |rate| format!(" at {}", rate.rounded()));
            let inner = inner.map_or_else(String::new, |inner| format!(" with {}", inner.kind));
            format!("{}{rate}{inner}", shaper.kind)
        }
    };
    let follows = match (side, shaper.is_some(), is_short) {
        (Side::Lan, true, true) => {
            "it is the last hop for us: its rate is learned, its queue is fair already, and windows are held only \
             where packets wait in it all the same"
        }
        (Side::Lan, true, false) => {
            "it is the last hop for us: its rate is learned, and windows keep its queue short, which it does not do itself"
        }
        (Side::Lan, false, _) => {
            "a fair queue, where the queue stands there and not below in the driver; windows are held only where packets \
             wait all the same"
        }
        (Side::Wan, true, true) => {
            "uploads wait there in a short and fair queue already (SQM); their windows are held only where something \
             waits all the same"
        }
        (Side::Wan, true, false) => "uploads wait there, and windows keep that queue short",
        (Side::Wan, false, _) => "fair, where uploads wait there and not below, in the modem",
    };
    Some(Found { what, shapes: shaper.is_some(), is_short, follows })
}

/// Whether it is no queue, or one of ours.
fn is_passive(kind: &str) -> bool {
    matches!(kind, "clsact" | "ingress" | "noqueue" | "mq") || kind.starts_with(CHAP)
}

/// Name of the device that SQM scripts send what comes in by `wan` through, to queue it there.
#[must_use]
pub fn ifb_of(wan: &InterfaceName) -> Option<InterfaceName> {
    let name = format!("ifb4{wan}");
    name.get(..name.len().min(15))?.parse().ok()
}

#[cfg(test)]
mod tests;

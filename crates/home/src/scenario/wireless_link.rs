//! `[wireless_link]`: the Snoop paper's lossy point-to-point link in place of the channel ([`lasthop_medium::wireless_link`]).

use lasthop_core::units::{BitRate, Bytes, Span};
use lasthop_medium::wireless_link::{Handoff, Repair, WirelessLinkParams};

use super::ScenarioError;
use super::flow::{Flow, LARGEST_PACKET};
use super::queue::{Queue, read_queue};
use super::read::Reader;
use super::wired::{MOST_PACKETS, Server, WanLink};

/// `[wireless_link]`.
#[derive(Clone, Debug, PartialEq)]
pub struct WirelessLink {
    /// The link and the wires behind it.
    pub params: WirelessLinkParams,
    /// Whose habits rule: true, those of ns-2.35, also its TCP's.
    pub ns2: bool,
    /// Packets in each direction, where the queues name no limit; `None`: the bandwidth-delay product, [`WirelessLink::buffer_for`].
    pub buffer: Option<u32>,
    /// The base station's.
    pub queue: Queue,
    /// The router's towards the base station.
    pub station_queue: Queue,
    /// The base station runs Snoop.
    pub snoop: bool,
}

impl WirelessLink {
    /// Queues that name no limit hold the bandwidth-delay product of the longest way, in packets of the largest kind.
    pub(crate) fn set_limits(&mut self, servers: &[Server], wan: Option<&WanLink>, flows: &[Flow]) {
        let wired = servers.iter().map(|server| server.wire.delay).max().unwrap_or(Span::ZERO);
        let wan = wan.map_or(Span::ZERO, |wan| wan.down.delay);
        let one_way = wired + wan + self.params.delay + self.params.station_delay;
        let largest = flows.iter().filter_map(|flow| flow.transport()).map(|tcp| tcp.mss.0 + 40).max();
        let limit = self.buffer_for(one_way + one_way, Bytes(largest.unwrap_or(LARGEST_PACKET)));
        for queue in [&mut self.queue, &mut self.station_queue] {
            queue.limit = if queue.limit == UNNAMED { limit } else { queue.limit };
            // ns-2's DropTail refuses what would make its length the limit.
            queue.limit = if self.ns2 { queue.limit.max(2) - 1 } else { queue.limit };
        }
    }

    /// Packets in each direction: what is written, else `rate x round_trip / packet`, rounded up, at least one.
    #[must_use]
    pub fn buffer_for(&self, round_trip: Span, packet: Bytes) -> u32 {
        let product = self.params.rate.bytes_in(round_trip).div_ceil(packet.0.max(1));
        self.buffer.unwrap_or(product.clamp(1, u64::from(MOST_PACKETS)) as u32)
    }
}

const KEYS: [&str; 12] = [
    "rate",
    "delay",
    "error_rate",
    "buffer",
    "station_rate",
    "station_delay",
    "snoop",
    "timing",
    "queue",
    "station_queue",
    "repair",
    "handoff",
];

/// Limit of a queue that names none, until the whole file has been read.
const UNNAMED: u32 = 0;

/// Longest delay of the link and of what is behind it; bounds what a file can ask of a host.
const LONGEST_DELAY: Span = Span::from_secs(10);

pub(crate) fn read_wireless_link(root: &Reader<'_>) -> Result<WirelessLink, ScenarioError> {
    let Some(link) = root.table("wireless_link", &KEYS)? else {
        return Err(root.wrong("wireless_link", "is missing"));
    };
    let delay = |key: &str| match link.quantity(key)?.unwrap_or(Span::from_millis(1)) {
        long if long > LONGEST_DELAY => Err(link.wrong(key, format!("{long} is longer than {LONGEST_DELAY}"))),
        delay => Ok(delay),
    };
    let ns2 = link.choice("timing", &[("standard", false), ("ns2", true)])?.unwrap_or(false);
    let repair = read_repair(&link)?;
    if ns2 && repair != Repair::None {
        return Err(link.wrong("repair", "sees no loss with timing = \"ns2\", which loses packets before the link"));
    }
    Ok(WirelessLink {
        params: WirelessLinkParams {
            rate: link.positive("rate")?.unwrap_or(BitRate::mbps(5)),
            delay: delay("delay")?,
            error_rate: link.number("error_rate", 0.0..=1.0)?.unwrap_or(0.01),
            lost_before_queue: ns2,
            station_rate: link.positive("station_rate")?.unwrap_or(BitRate::mbps(10)),
            station_delay: delay("station_delay")?,
            repair,
            handoff: read_handoff(&link)?,
        },
        ns2,
        buffer: link.count("buffer", 1..=MOST_PACKETS)?,
        queue: read_queue(&link, "queue", UNNAMED)?,
        station_queue: read_queue(&link, "station_queue", UNNAMED)?,
        snoop: link.flag("snoop")?.unwrap_or(false),
    })
}

/// What the link does about its losses: a word, or a table of it and its keys.
fn read_repair(link: &Reader<'_>) -> Result<Repair, ScenarioError> {
    if !link.has("repair") {
        return Ok(Repair::None);
    }
    let Some(repair) = link.table("repair", &["kind", "attempts", "data", "parity"])? else { return Ok(Repair::None) };
    let kind = repair.choice("kind", &[("none", Repair::None), ("arq", ARQ), ("fec", FEC)])?;
    Ok(match kind.unwrap_or(Repair::None) {
        Repair::None => Repair::None,
        Repair::Arq { attempts } => Repair::Arq { attempts: repair.count("attempts", 1..=255)?.unwrap_or(attempts) },
        Repair::Fec { data, parity } => Repair::Fec {
            data: repair.count("data", 1..=255)?.unwrap_or(data),
            parity: repair.count("parity", 1..=255)?.unwrap_or(parity),
        },
    })
}

/// As many attempts as 802.11 makes of long frames.
const ARQ: Repair = Repair::Arq { attempts: 4 };
/// A tenth of parity.
const FEC: Repair = Repair::Fec { data: 10, parity: 1 };

fn read_handoff(link: &Reader<'_>) -> Result<Option<Handoff>, ScenarioError> {
    let Some(handoff) = link.table("handoff", &["every", "outage", "forward"])? else { return Ok(None) };
    let every: Option<Span> = handoff.positive("every")?;
    let every = handoff.required("every", every, "\"10s\"")?;
    let outage = handoff.quantity("outage")?.unwrap_or(Span::from_millis(100));
    if outage >= every {
        return Err(handoff.wrong("outage", format!("{outage} is not shorter than `every` = {every}")));
    }
    Ok(Some(Handoff { every, outage, forward: handoff.flag("forward")?.unwrap_or(false) }))
}

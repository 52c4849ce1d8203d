//! The last hop: `[wifi]`, or in its place `[wireless_link]` or `[bridge]`.

use lasthop_core::units::{BitRate, Span};
use lasthop_medium::rate_control::RateLaw;
use lasthop_medium::{
    ACCESS_POINT_EDCA, AfterCollision, Band, BridgeParams, Edca, MissedBlockAck, Preamble, Rate, STATION_EDCA,
    Standard, Timing,
};

use super::ScenarioError;
use super::channel::{SNR_KEYS, SnrLoss, read_law, read_snr};
use super::edca::read_edca;
use super::queue::{Queue, limit_packets, read_queue};
use super::radio::{self, Sending};
use super::read::Reader;
use super::wired::MOST_PACKETS;
use super::wireless_link::{WirelessLink, read_wireless_link};
use crate::quantity::{Decibel, Hertz, Watts};

/// What the channel does to a frame that did not collide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Every frame arrives.
    None,
    /// Each frame is lost with one probability.
    Fixed {
        /// 0..=1, per frame.
        rate: f64,
    },
    /// ns-2's shadowing: `P_r(d) = P_r(1 m) - 10 exponent log10(d) + N(0, deviation)`, drawn per frame.
    Shadowing {
        /// Path loss exponent.
        exponent: f64,
        /// Standard deviation.
        deviation: Decibel,
    },
    /// Errors by signal-to-noise ratio, of 802.11n, ac and ax.
    Snr(SnrLoss),
}

/// ns-2's carrier-sense threshold, which the papers used.
pub const CARRIER_SENSE_DEFAULT: Watts = Watts(1.559e-11);

/// `[wifi]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Wifi {
    /// Of the access point and of every station that names none.
    pub standard: Standard,
    /// Where in the spectrum.
    pub band: Band,
    /// Timing preset.
    pub timing: Timing,
    /// Data rate and aggregates of every station that sets none, and of the access point towards it.
    pub sending: Sending,
    /// Rate of ACK and CTS; `None`: the highest basic rate not above the data rate.
    pub control_rate: Option<Rate>,
    /// DSSS preamble, of 802.11b frames.
    pub preamble: Preamble,
    /// CTS-to-self before OFDM frames; in force already for a b station in a g home.
    pub protection: bool,
    /// Transmissions of one frame above `rts_threshold`, in all.
    pub long_attempts: u8,
    /// Transmissions of one frame up to `rts_threshold`, in all.
    pub short_attempts: u8,
    /// Frames above it use RTS/CTS, bytes.
    pub rts_threshold: u32,
    /// Frames of more than one MPDU use RTS/CTS, too.
    pub rts_for_aggregates: bool,
    /// What a sender does when no block ack came.
    pub missed_block_ack: MissedBlockAck,
    /// How the access point's classes contend.
    pub edca: Edca,
    /// How those of stations contend that say nothing else.
    pub station_edca: Edca,
    /// The access point's queue.
    pub queue: Queue,
    /// Each station's queue.
    pub station_queue: Queue,
    /// Packets that the access point's firmware takes from its queue before their turn.
    pub firmware_queue: u32,
    /// Transmit power of the access point and of every station that sets none.
    pub power: Watts,
    /// For the Friis reference; `None`: ns-2's, and with [`Loss::Snr`] the middle of the band.
    pub frequency: Option<Hertz>,
    /// A frame below it is not received.
    pub receive_threshold: Watts,
    /// A signal below it is not heard.
    pub carrier_sense_threshold: Watts,
    /// How much stronger a frame must be to survive a collision.
    pub capture: Decibel,
    /// Frame loss without collision.
    pub loss: Loss,
    /// What chooses rates where a station says nothing else.
    pub rate_control: RateLaw,
    /// How the senders of a collision resume.
    pub after_collision: AfterCollision,
    /// Who hears whom follows from distance; false: one collision domain.
    pub hidden: bool,
}

/// `[bridge]`: the test bed of the CHAP paper, the channel as a time per packet ([`lasthop_medium::bridge`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bridge {
    /// What a packet costs.
    pub costs: BridgeParams,
    /// Towards the stations; of both directions where they share it.
    pub queue: Queue,
    /// From all stations.
    pub station_queue: Queue,
}

/// The last hop of the home: exactly one of them.
#[derive(Clone, Debug, PartialEq)]
pub enum LastHop {
    /// 802.11.
    Wifi(Box<Wifi>),
    /// A lossy link.
    WirelessLink(WirelessLink),
    /// A time per packet.
    Bridge(Bridge),
}

impl LastHop {
    /// Whether it has classes of traffic and aggregates: 802.11n, ac and ax.
    #[must_use]
    pub fn has_classes(&self) -> bool {
        matches!(self, Self::Wifi(wifi) if wifi.standard.has_classes())
    }

    /// Both directions share what it carries; else each has it to itself.
    #[must_use]
    pub const fn is_half_duplex(&self) -> bool {
        match self {
            Self::Wifi(_) => true,
            Self::Bridge(bridge) => bridge.costs.half_duplex,
            Self::WirelessLink(_) => false,
        }
    }

    /// The access point's queue and the stations', each with the key of its table.
    #[must_use]
    pub fn queues(&self) -> Vec<(&'static str, &Queue)> {
        match self {
            Self::Wifi(wifi) => vec![("wifi.queue", &wifi.queue), ("wifi.station_queue", &wifi.station_queue)],
            Self::WirelessLink(link) => {
                vec![("wireless_link.queue", &link.queue), ("wireless_link.station_queue", &link.station_queue)]
            }
            Self::Bridge(bridge) => {
                vec![("bridge.queue", &bridge.queue), ("bridge.station_queue", &bridge.station_queue)]
            }
        }
    }
}

/// Words of the file.
pub(crate) const STANDARDS: [(&str, Standard); 5] = [
    ("802.11b", Standard::B),
    ("802.11g", Standard::G),
    ("802.11n", Standard::N),
    ("802.11ac", Standard::Ac),
    ("802.11ax", Standard::Ax),
];

/// The word of the file.
pub(crate) fn word(standard: Standard) -> &'static str {
    STANDARDS.iter().find(|(_, s)| *s == standard).map_or("", |(word, _)| word)
}

/// The highest data rate of those in bit/s.
pub(crate) fn top_rate(standard: Standard) -> Rate {
    match standard {
        Standard::B => Rate::DSSS_11,
        Standard::G | Standard::N | Standard::Ac | Standard::Ax => Rate::OFDM_54,
    }
}

/// A data or control rate that `standard` has.
pub(crate) fn read_rate(reader: &Reader<'_>, key: &str, standard: Standard) -> Result<Option<Rate>, ScenarioError> {
    let Some(rate) = reader.quantity::<BitRate>(key)? else { return Ok(None) };
    if let Some(rate) = Rate::of(standard, rate) {
        return Ok(Some(rate));
    }
    let rates: Vec<String> = Rate::all(standard).map(|r| r.bit_rate().to_string()).collect();
    Err(reader.wrong(key, format!("{rate} is no rate of {}; it has {}", word(standard), rates.join(", "))))
}

const WIFI_KEYS: [&str; 32] = [
    "standard",
    "band",
    "width",
    "streams",
    "mcs",
    "guard_interval",
    "ampdu",
    "amsdu",
    "missed_block_ack",
    "rts_for_aggregates",
    "edca",
    "station_edca",
    "timing",
    "rate",
    "control_rate",
    "preamble",
    "protection",
    "attempts",
    "short_attempts",
    "rts_threshold",
    "queue",
    "station_queue",
    "firmware_queue",
    "power",
    "frequency",
    "receive_threshold",
    "carrier_sense_threshold",
    "capture",
    "loss",
    "rate_control",
    "after_collision",
    "hidden",
];

/// Attempts of frames above and up to the RTS threshold where the file gives none: the standard's retry limits.
const STANDARD_ATTEMPTS: (u32, u32) = (4, 7);

/// The same of MPDUs of 802.11n, ac and ax: what ath9k allows (`ATH_MAX_SW_RETRIES`).
const ATTEMPTS_WITH_CLASSES: (u32, u32) = (30, 30);

/// Reads the last hop. `any_b`: whether a station speaks 802.11b.
pub(crate) fn read_last_hop(root: &Reader<'_>, any_b: impl Fn(Standard) -> bool) -> Result<LastHop, ScenarioError> {
    let mut present = Vec::new();
    for key in ["wifi", "wireless_link", "bridge"] {
        if root.inner(key)?.is_some() {
            present.push(key);
        }
    }
    match present[..] {
        ["wifi"] => read_wifi(root, any_b).map(|wifi| LastHop::Wifi(Box::new(wifi))),
        ["bridge"] => read_bridge(root).map(LastHop::Bridge),
        [first, second, ..] => Err(root.wrong(second, format!("stands beside [{first}]; keep exactly one of them"))),
        [] => Err(root.wrong("wifi", "is missing; a scenario has exactly one of [wifi], [wireless_link] and [bridge]")),
        _ => read_wireless_link(root).map(LastHop::WirelessLink),
    }
}

fn read_wifi(root: &Reader<'_>, any_b: impl Fn(Standard) -> bool) -> Result<Wifi, ScenarioError> {
    let Some(wifi) = root.table("wifi", &WIFI_KEYS)? else {
        return Err(root.wrong("wifi", "is missing"));
    };
    let standard = wifi.choice("standard", &STANDARDS)?.unwrap_or(Standard::G);
    let band = radio::read_band(&wifi, standard)?;
    let timing = read_timing(&wifi, standard)?;
    let hidden = wifi.flag("hidden")?.unwrap_or(false);
    if standard.has_classes() {
        refuse_what_classes_lack(&wifi, hidden)?;
    } else if let Some(key) = KEYS_WITH_CLASSES.into_iter().find(|key| wifi.has(key)) {
        let why = format!("{} has no such thing; it is of 802.11n, ac and ax", word(standard));
        return Err(wifi.wrong(key, why));
    }
    let control_rate = read_rate(&wifi, "control_rate", standard)?;
    if band == Band::Ghz5 && control_rate.is_some_and(|rate| !rate.is_ofdm()) {
        return Err(wifi.wrong("control_rate", "is a rate of 2.4 GHz; at 5 GHz write 6Mbit/s, 12Mbit/s or 24Mbit/s"));
    }
    let (limit, station_limit) = limit_packets(standard);
    let missed = [("repeat", MissedBlockAck::Repeat), ("bar", MissedBlockAck::Bar)];
    let attempts = wifi.count("attempts", 1..=255)?;
    let usual = if standard.has_classes() { ATTEMPTS_WITH_CLASSES } else { STANDARD_ATTEMPTS };
    let (long, short) = attempts.map_or(usual, |n| (n, n));
    let loss = read_loss(&wifi, standard)?;
    let eifs = [("standard", AfterCollision::Standard), ("eifs", AfterCollision::Eifs)];
    Ok(Wifi {
        standard,
        band,
        timing,
        sending: radio::read_cell(&wifi, standard, band)?,
        control_rate,
        preamble: wifi
            .choice("preamble", &[("long", Preamble::Long), ("short", Preamble::Short)])?
            .unwrap_or(Preamble::Long),
        protection: wifi.flag("protection")?.unwrap_or(false) || any_b(standard),
        long_attempts: long as u8,
        short_attempts: wifi.count("short_attempts", 1..=255)?.unwrap_or(short) as u8,
        rts_threshold: wifi.count("rts_threshold", 0..=65_535)?.unwrap_or(65_535),
        rts_for_aggregates: wifi.flag("rts_for_aggregates")?.unwrap_or(false),
        missed_block_ack: wifi.choice("missed_block_ack", &missed)?.unwrap_or_default(),
        edca: read_edca(&wifi, "edca", ACCESS_POINT_EDCA)?,
        station_edca: read_edca(&wifi, "station_edca", STATION_EDCA)?,
        queue: read_queue(&wifi, "queue", limit)?,
        station_queue: read_queue(&wifi, "station_queue", station_limit)?,
        firmware_queue: wifi.count("firmware_queue", 0..=MOST_PACKETS)?.unwrap_or(0),
        power: wifi.positive("power")?.unwrap_or(Watts(if standard.has_classes() { 0.1 } else { 0.281_838_15 })),
        frequency: wifi.positive("frequency")?,
        receive_threshold: wifi.positive("receive_threshold")?.unwrap_or(Watts(3.652e-10)),
        carrier_sense_threshold: wifi.positive("carrier_sense_threshold")?.unwrap_or(CARRIER_SENSE_DEFAULT),
        capture: wifi.quantity("capture")?.unwrap_or(Decibel(10.0)),
        rate_control: read_law(&wifi, standard, matches!(loss, Loss::Snr(_)))?.unwrap_or_default(),
        loss,
        after_collision: wifi.choice("after_collision", &eifs)?.unwrap_or(AfterCollision::Standard),
        hidden,
    })
}

fn read_timing(wifi: &Reader<'_>, standard: Standard) -> Result<Timing, ScenarioError> {
    let timings =
        [("standard", Timing::Standard), ("ns2-g", Timing::Ns2G), ("ns2-b", Timing::Ns2B), ("ns3", Timing::Ns3)];
    // Today's air stands beside ns-3's unless somebody asks for the standard's.
    let usual = if standard.has_classes() { Timing::Ns3 } else { Timing::Standard };
    let timing = wifi.choice("timing", &timings)?.unwrap_or(usual);
    let why = match (timing, standard) {
        (Timing::Ns2G, standard) if standard != Standard::G => {
            "ns2-g is a timing of 802.11g; write standard = \"802.11g\", or another timing"
        }
        (Timing::Ns2B, standard) if standard != Standard::B => {
            "ns2-b is a timing of 802.11b; write standard = \"802.11b\", or another timing"
        }
        (Timing::Ns3, Standard::B | Standard::G) => {
            "ns3 is a timing of 802.11n, ac and ax; with b and g leave the key out, or write ns2-b or ns2-g"
        }
        _ => return Ok(timing),
    };
    Err(wifi.wrong("timing", why))
}

/// Keys that b and g do not have, beside those of [`radio::KEYS`].
const KEYS_WITH_CLASSES: [&str; 4] = ["missed_block_ack", "rts_for_aggregates", "edca", "station_edca"];

/// What the air with classes does not carry.
fn refuse_what_classes_lack(wifi: &Reader<'_>, hidden: bool) -> Result<(), ScenarioError> {
    if hidden {
        return Err(wifi.wrong("hidden", "hidden stations are carried with 802.11b and g only"));
    }
    if wifi.text("after_collision")? == Some("eifs") {
        return Err(wifi.wrong("after_collision", "eifs is Bianchi's convention for 802.11b and g; leave the key out"));
    }
    Ok(())
}

fn read_loss(wifi: &Reader<'_>, standard: Standard) -> Result<Loss, ScenarioError> {
    let Some((at, table)) = wifi.inner("loss")? else { return Ok(Loss::None) };
    let kind = table.text("kind").unwrap_or("shadowing");
    let own: &[&str] = match kind {
        "none" => &["kind"],
        "fixed" => &["kind", "rate"],
        "snr" => &SNR_KEYS,
        _ => &["kind", "exponent", "deviation"],
    };
    let all = ["rate", "deviation", "exponent", "reference", "wall", "noise_figure", "fading", "correlation"];
    let loss = Reader::of_kind(wifi.source(), &wifi.path_of("loss"), at, table, own, &all)?;
    match loss.choice("kind", &[("none", 0), ("fixed", 1), ("shadowing", 2), ("snr", 3)])? {
        Some(0) => Ok(Loss::None),
        Some(1) => {
            let rate = loss.number("rate", 0.0..=1.0)?;
            Ok(Loss::Fixed { rate: loss.required("rate", rate, "0.01")? })
        }
        Some(3) if !standard.has_classes() => {
            let why = "\"snr\" needs an access point of 802.11n, 802.11ac or 802.11ax; write \"shadowing\", or another standard";
            Err(loss.wrong("kind", why))
        }
        Some(3) => read_snr(&loss).map(Loss::Snr),
        _ => Ok(Loss::Shadowing {
            exponent: loss.number("exponent", 0.0..=10.0)?.unwrap_or(4.0),
            deviation: loss.quantity("deviation")?.unwrap_or(Decibel(9.0)),
        }),
    }
}

const BRIDGE_KEYS: [&str; 7] =
    ["rate", "control_rate", "extra", "queue", "station_queue", "half_duplex", "delivery_interval"];

/// Packets that the bridge's queues hold where the file says nothing: the paper's.
const BRIDGE_PACKETS: u32 = 350;

/// Longest time added to a packet, and between deliveries; bounds what a file can ask of a host.
const LONGEST_EXTRA: Span = Span::from_secs(1);

fn read_bridge(root: &Reader<'_>) -> Result<Bridge, ScenarioError> {
    let Some(bridge) = root.table("bridge", &BRIDGE_KEYS)? else {
        return Err(root.wrong("bridge", "is missing"));
    };
    let extra = bridge.quantity("extra")?.unwrap_or(Span::ZERO);
    if extra > LONGEST_EXTRA {
        return Err(bridge.wrong("extra", format!("{extra} is longer than {LONGEST_EXTRA}")));
    }
    let delivery_interval = bridge.quantity("delivery_interval")?.unwrap_or(Span::ZERO);
    if delivery_interval > LONGEST_EXTRA {
        return Err(bridge.wrong("delivery_interval", format!("{delivery_interval} is longer than {LONGEST_EXTRA}")));
    }
    Ok(Bridge {
        costs: BridgeParams {
            rate: bridge.positive("rate")?.unwrap_or(BitRate::mbps(54)),
            control_rate: bridge.positive("control_rate")?.unwrap_or(BitRate::mbps(1)),
            extra,
            half_duplex: bridge.flag("half_duplex")?.unwrap_or(false),
            delivery_interval,
        },
        queue: read_queue(&bridge, "queue", BRIDGE_PACKETS)?,
        station_queue: read_queue(&bridge, "station_queue", BRIDGE_PACKETS)?,
    })
}

//! `[[flow]]`: who sends what to whom, and when.

use std::path::PathBuf;
use std::sync::Arc;

use lasthop_core::dscp::Dscp;
use lasthop_core::packet::AccessCategory;
use lasthop_core::units::{BitRate, Bytes, Span};
use lasthop_medium::random::Stream;

use super::congestion::CongestionControl;
use super::edca::CLASSES;
use super::read::Reader;
use super::tree::{Origin, SourceMap, Table};
use super::{HostId, ScenarioError};
use crate::trace::Frames;

/// One flow, expanded from its count and from the counts of its hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// `ftp`, or `ftp.3` where there are several.
    pub name: String,
    /// The name of its table; its keys stand at `flow.<table>.<key>`.
    pub table: String,
    /// Which copy it is, from 0, and of how many.
    pub copy: (u32, u32),
    /// Where its data starts.
    pub from: HostId,
    /// Where its data ends.
    pub to: HostId,
    /// What it sends.
    pub kind: Kind,
    /// What carries a stream that has a schedule; `None`: UDP, packet by packet.
    pub carrier: Option<Tcp>,
    /// Class of all its packets, in both directions, where the air has classes.
    pub class: AccessCategory,
    /// Code point of its packets, where they are real: the one that it names, or one of its class.
    pub dscp: Dscp,
    /// Since the start of the run: drawn within [`Flow::starts`].
    pub start: Span,
    /// When it starts at the earliest, and how much later it may.
    pub starts: (Span, Span),
    /// Since the start of the run; at most the duration.
    pub stop: Span,
}

impl Flow {
    /// Draws the start anew: the same for the same seed, whatever else the file holds.
    pub(crate) fn draw_start(&mut self, seed: u64) {
        let (earliest, within) = self.starts;
        let mut random = Stream::numbered(seed, &format!("start.{}", self.table), self.copy.0 as u16);
        self.start = earliest + Span::from_nanos(random.below(within.as_nanos()));
    }

    /// The transport with congestion control that its data go over: its kind's own, or the carrier of a stream.
    #[must_use]
    pub fn transport(&self) -> Option<&Tcp> {
        match &self.kind {
            Kind::Ftp(ftp) => Some(&ftp.tcp),
            Kind::Web(web) => Some(&web.tcp),
            Kind::RequestResponse(exchange) => Some(&exchange.tcp),
            _ => self.carrier.as_ref(),
        }
    }

    /// The same where it is TCP.
    #[must_use]
    pub fn tcp(&self) -> Option<&Tcp> {
        self.transport().filter(|transport| !transport.cc.is_rate_based())
    }
}

/// What a flow sends. Sizes and rates count IP bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// State updates of a game, server to client.
    GameServer(Periodic),
    /// Commands of a player, client to server.
    GameClient(Periodic),
    /// The audio flow of the ARQ paper.
    Audio(Periodic),
    /// A call: one way of it.
    Voip(Periodic),
    /// Constant bit rate.
    Cbr(Rated),
    /// Packets of one size at exponential gaps.
    Poisson(Rated),
    /// An MPEG-4 stream.
    Video(Video),
    /// An H.263-like variable rate, one way of a video chat.
    VideoChat(Video),
    /// Greedy TCP.
    Ftp(Ftp),
    /// A web page over parallel TCP connections.
    Web(Web),
    /// A download over QUIC.
    Quic(Quic),
    /// One TCP connection with a request in the other direction, a response, and a pause, again and again.
    RequestResponse(RequestResponse),
}

/// One packet of one size at one gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Periodic {
    /// IP bytes of a packet.
    pub size: Bytes,
    /// From one packet to the next.
    pub every: Span,
}

/// Packets of one size at one mean rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rated {
    /// IP bit/s.
    pub rate: BitRate,
    /// IP bytes of a packet.
    pub size: Bytes,
}

/// Frames of variable size.
#[derive(Clone, Debug, PartialEq)]
pub struct Video {
    /// Where the frames come from.
    pub frames: FrameSource,
}

/// Where the frames of a video come from.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameSource {
    /// A frame trace, read as it is and begun again at its end.
    Trace {
        /// The file.
        path: PathBuf,
        /// Its frames.
        frames: Arc<Frames>,
    },
    /// The TES generator at a mean rate of IP bits.
    Generator {
        /// Mean, IP bit/s.
        rate: BitRate,
    },
}

/// What a sender and its receiver are set to; of `tfrc` and `ssvp` only `cc`, `ecn` and `mss` mean something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tcp {
    /// Congestion control.
    pub cc: CongestionControl,
    /// Selective acknowledgements offered.
    pub sack: bool,
    /// Packets are marked where queues would drop them (RFC 3168).
    pub ecn: bool,
    /// The receiver acknowledges every second segment.
    pub delayed_ack: bool,
    /// Segments.
    pub initial_window: u32,
    /// The receiver's own offer in segments; `None`: autotuned.
    pub window: Option<u32>,
    /// Payload of a segment before options.
    pub mss: Bytes,
    /// What `aimd` adds per round trip, segments, and the share of its window that it keeps at a loss.
    pub aimd: (f64, f64),
    /// The receiver has closed its own direction of the connection (FIN) before data came, and goes on reading.
    pub half_close: bool,
    /// The receiver tells losses of the link from others; `None`: every loss is congestion.
    pub loss_discrimination: Option<LossDiscrimination>,
}

/// How a receiver tells losses of the link from those of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDiscrimination {
    /// By the gap between the arrivals around them (Biaz and Vaidya).
    BiazVaidya,
}

/// Kind `ftp`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ftp {
    /// Ends after so many bytes; `None`: at `stop`.
    pub bytes: Option<Bytes>,
    /// Its TCP.
    pub tcp: Tcp,
}

/// Kind `web`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Web {
    /// Which page (the CHAP paper's table 1).
    pub page: Page,
    /// Parallel connections.
    pub connections: u32,
    /// Its TCP.
    pub tcp: Tcp,
}

/// Kind `quic`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quic {
    /// Ends after so many bytes; `None`: at `stop`.
    pub bytes: Option<Bytes>,
    /// Congestion control.
    pub cc: CongestionControl,
    /// Datagrams.
    pub initial_window: u32,
    /// Its datagrams are marked where queues would drop them (RFC 9000 section 13.4).
    pub ecn: bool,
}

/// Kind `request-response`: polling, an interactive session, a database, an API. The client is where the flow ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestResponse {
    /// Payload of a request, one segment.
    pub request: Bytes,
    /// Payload of a response.
    pub response: Bytes,
    /// From a request's arrival to the first byte of its response.
    pub think: Span,
    /// From one request to the next, or longer where the response takes longer.
    pub every: Span,
    /// Its TCP.
    pub tcp: Tcp,
}

/// The pages of the CHAP paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// 6 objects, 155 KB.
    GoogleNews,
    /// 48 objects, 322 KB.
    Yahoo,
    /// 151 objects, 750 KB.
    Wsj,
    /// 136 objects, 1142 KB.
    Cnn,
}

impl Kind {
    /// The word of the file.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::GameServer(_) => "game-server",
            Self::GameClient(_) => "game-client",
            Self::Audio(_) => "audio",
            Self::Voip(_) => "voip",
            Self::Cbr(_) => "cbr",
            Self::Poisson(_) => "poisson",
            Self::Video(_) => "video",
            Self::VideoChat(_) => "video-chat",
            Self::Ftp(_) => "ftp",
            Self::Web(_) => "web",
            Self::Quic(_) => "quic",
            Self::RequestResponse(_) => "request-response",
        }
    }

    /// Takes what the path gives, instead of following a schedule of its own.
    #[must_use]
    pub fn is_elastic(&self) -> bool {
        matches!(self, Self::Ftp(_) | Self::Web(_) | Self::Quic(_))
    }

    /// Late is as bad as lost: what a setting by class of traffic counts as real time.
    #[must_use]
    pub fn is_realtime(&self) -> bool {
        !self.is_elastic() && !matches!(self, Self::Cbr(_) | Self::Poisson(_) | Self::RequestResponse(_))
    }
}

const COMMON: [&str; 10] = ["name", "from", "to", "kind", "start", "start_within", "stop", "count", "dscp", "class"];

/// Every key that some kind of flow has beyond the common ones.
const OF_KINDS: [&str; 21] = [
    "trace",
    "rate",
    "size",
    "every",
    "bytes",
    "cc",
    "increase",
    "decrease",
    "loss_discrimination",
    "sack",
    "ecn",
    "delayed_ack",
    "initial_window",
    "window",
    "mss",
    "half_close",
    "page",
    "connections",
    "request",
    "response",
    "think",
];

/// The keys of a transport.
const TRANSPORT: [&str; 11] = [
    "cc",
    "increase",
    "decrease",
    "loss_discrimination",
    "sack",
    "ecn",
    "delayed_ack",
    "initial_window",
    "window",
    "mss",
    "half_close",
];

const KINDS: [&str; 12] = [
    "game-server",
    "game-client",
    "audio",
    "voip",
    "video",
    "video-chat",
    "ftp",
    "cbr",
    "web",
    "quic",
    "poisson",
    "request-response",
];

/// The keys that a flow of `kind` may have; `None` for a kind that does not exist.
pub(crate) fn keys_of_kind(kind: &str) -> Option<Vec<&'static str>> {
    let (own, transport): (&[&'static str], &[&'static str]) = match kind {
        "game-server" | "game-client" | "audio" | "voip" => (&["size", "every"], &[]),
        "cbr" => (&["rate", "size"], &TRANSPORT),
        "poisson" => (&["rate", "size"], &[]),
        "video" | "video-chat" => (&["trace", "rate"], &TRANSPORT),
        "ftp" => (&["bytes"], &TRANSPORT),
        "web" => (&["page", "connections"], &TRANSPORT),
        "quic" => (&["bytes", "cc", "initial_window", "ecn"], &[]),
        "request-response" => (&["request", "response", "think", "every"], &TRANSPORT),
        _ => return None,
    };
    Some(COMMON.iter().chain(own).chain(transport).copied().collect())
}

/// Whether the flow in `table` may be given `key` by a wildcard: a key that its kind has; of a transport, only where it has
/// one already, lest `flow.*.cc` take a stream off UDP.
pub(crate) fn carries(table: &Table, key: &str) -> bool {
    let Some(kind) = table.text("kind") else { return true };
    let of_a_carrier = TRANSPORT.contains(&key) && matches!(kind, "cbr" | "video" | "video-chat");
    let has = keys_of_kind(kind).is_none_or(|keys| keys.contains(&key));
    has && (!of_a_carrier || table.get("cc").is_some())
}

/// Smallest IP packet over UDP: 20 bytes of IPv4, 8 of UDP.
pub const SMALLEST_UDP: u64 = 28;

/// Largest IP packet: the MTU of Ethernet and of the papers.
pub const LARGEST_PACKET: u64 = 1500;

/// Shortest gap between packets of one source; bounds what a file can ask of a host.
const SHORTEST_GAP: Span = Span::from_micros(1);

/// Opens the table of a flow: its kind decides its keys.
pub(crate) fn open<'a>(
    source: &'a SourceMap,
    path: &str,
    at: &'a Origin,
    table: &'a Table,
) -> Result<Reader<'a>, ScenarioError> {
    let kind = table.text("kind").unwrap_or_default();
    let known = keys_of_kind(kind).unwrap_or_else(|| COMMON.iter().chain(&OF_KINDS).copied().collect());
    let reader = Reader::of_kind(source, path, at, table, &known, &OF_KINDS)?;
    if keys_of_kind(kind).is_none() {
        let why = match reader.has("kind") {
            true => format!("`{kind}` is no kind of flow; {}", super::read::nearest(kind, &KINDS)),
            false => "is missing; write for example kind = \"ftp\"".to_owned(),
        };
        return Err(reader.wrong("kind", why));
    }
    Ok(reader)
}

/// Loads a frame trace by the path as written.
pub(crate) type LoadTrace<'a> = dyn FnMut(&str) -> Result<(PathBuf, Arc<Frames>), String> + 'a;

/// Reads what the flow sends.
pub(crate) fn read_kind(flow: &Reader<'_>, load: &mut LoadTrace<'_>) -> Result<Kind, ScenarioError> {
    let ms = Span::from_millis;
    Ok(match flow.text("kind")?.unwrap_or_default() {
        "game-server" => Kind::GameServer(periodic(flow, 200, ms(50))?),
        "game-client" => Kind::GameClient(periodic(flow, 42, ms(60))?),
        "audio" => Kind::Audio(periodic(flow, 100, ms(20))?),
        // G.711 in 20 ms packets: 160 B of voice, 12 RTP, 8 UDP, 20 IP.
        "voip" => Kind::Voip(periodic(flow, 200, ms(20))?),
        "cbr" => Kind::Cbr(rated(flow)?),
        "poisson" => Kind::Poisson(rated(flow)?),
        "video" => Kind::Video(video(flow, BitRate::bps(280_000), load)?),
        "video-chat" => Kind::VideoChat(video(flow, BitRate::bps(62_000), load)?),
        "web" => Kind::Web(Web {
            page: flow.choice("page", &PAGES)?.unwrap_or(Page::Cnn),
            connections: flow.count("connections", 1..=64)?.unwrap_or(6),
            tcp: tcp(flow)?,
        }),
        "quic" => Kind::Quic(Quic {
            bytes: flow.positive("bytes")?,
            cc: CongestionControl::read(flow)?,
            initial_window: flow.count("initial_window", 1..=1000)?.unwrap_or(10),
            ecn: flow.flag("ecn")?.unwrap_or(false),
        }),
        "request-response" => Kind::RequestResponse(request_response(flow)?),
        _ => Kind::Ftp(Ftp { bytes: flow.positive("bytes")?, tcp: tcp(flow)? }),
    })
}

/// Reads what carries a stream: named by `cc`, also where that was the download's which `--set` made a stream of; else UDP.
pub(crate) fn read_carrier(flow: &Reader<'_>, kind: &Kind) -> Result<Option<Tcp>, ScenarioError> {
    if !matches!(kind, Kind::Cbr(_) | Kind::Video(_) | Kind::VideoChat(_)) {
        return Ok(None);
    }
    if flow.has("cc") {
        return tcp(flow).map(Some);
    }
    match TRANSPORT.iter().find(|key| flow.has(key) && !flow.is_stale(key)) {
        Some(key) => Err(flow.wrong(key, "is a key of a transport, and this stream goes over UDP; name one with cc")),
        None => Ok(None),
    }
}

/// Reads the class of a flow's packets and their code point: one of them is named, the other follows from it (RFC 8325).
pub(crate) fn read_class(flow: &Reader<'_>) -> Result<(AccessCategory, Dscp), ScenarioError> {
    if flow.has("class") && flow.has("dscp") {
        return Err(flow.wrong("class", "stands beside dscp, which says the class, too; keep one of them"));
    }
    if let Some(class) = flow.choice("class", &CLASSES)? {
        return Ok((class, Dscp::of(class)));
    }
    let number = |text: &str| text.parse().ok().and_then(Dscp::new);
    let dscp = match flow.quantity::<String>("dscp")? {
        None => Dscp::default(),
        Some(text) => Dscp::named(&text).or_else(|| number(&text)).ok_or_else(|| {
            let names: Vec<&str> = Dscp::names().collect();
            flow.wrong("dscp", format!("{text} is no code point; write 0 to 63 or one of {}", names.join(", ")))
        })?,
    };
    Ok((dscp.access_category(), dscp))
}

const PAGES: [(&str, Page); 4] =
    [("google-news", Page::GoogleNews), ("yahoo", Page::Yahoo), ("wsj", Page::Wsj), ("cnn", Page::Cnn)];

fn size(flow: &Reader<'_>, usual: u64) -> Result<Bytes, ScenarioError> {
    let size = flow.quantity::<Bytes>("size")?.unwrap_or(Bytes(usual));
    if !(SMALLEST_UDP..=LARGEST_PACKET).contains(&size.0) {
        let why = format!("{size} is no IP packet over UDP; write {SMALLEST_UDP}B (its headers) to {LARGEST_PACKET}B");
        return Err(flow.wrong("size", why));
    }
    Ok(size)
}

fn periodic(flow: &Reader<'_>, usual_size: u64, usual_gap: Span) -> Result<Periodic, ScenarioError> {
    let every = flow.quantity("every")?.unwrap_or(usual_gap);
    if every < SHORTEST_GAP {
        return Err(flow.wrong("every", format!("is shorter than {SHORTEST_GAP}")));
    }
    Ok(Periodic { size: size(flow, usual_size)?, every })
}

/// Longest that a server thinks or a client waits: a day.
const LONGEST_PAUSE: Span = Span::from_secs(86_400);
/// Largest response: a file of a gibibyte.
const LARGEST_RESPONSE: Bytes = Bytes(1 << 30);
/// Shortest time between requests where there is no round trip to keep them apart.
const SHORTEST_PAUSE: Span = Span::from_millis(1);

fn request_response(flow: &Reader<'_>) -> Result<RequestResponse, ScenarioError> {
    let tcp = tcp(flow)?;
    if tcp.cc.is_rate_based() {
        return Err(flow.wrong("cc", "asks over TCP; name a sender with a congestion window"));
    }
    let request: Bytes = flow.positive("request")?.unwrap_or(Bytes(200));
    if request > tcp.mss {
        return Err(flow.wrong("request", format!("{request} is more than one segment of {}", tcp.mss)));
    }
    let pause = |key: &str, usual: Span| match flow.quantity(key)?.unwrap_or(usual) {
        long if long > LONGEST_PAUSE => Err(flow.wrong(key, format!("{long} is longer than a day, {LONGEST_PAUSE}"))),
        pause => Ok(pause),
    };
    let every = pause("every", Span::from_secs(1))?;
    if every < SHORTEST_PAUSE {
        return Err(flow.wrong("every", format!("is shorter than {SHORTEST_PAUSE}")));
    }
    if tcp.half_close {
        return Err(flow.wrong("half_close", "leaves nobody who could ask"));
    }
    let response = flow.positive("response")?.unwrap_or(Bytes(10_000));
    if response > LARGEST_RESPONSE {
        return Err(flow.wrong("response", format!("{response} is more than {LARGEST_RESPONSE}")));
    }
    Ok(RequestResponse { request, response, think: pause("think", Span::ZERO)?, every, tcp })
}

fn rated(flow: &Reader<'_>) -> Result<Rated, ScenarioError> {
    let rate: Option<BitRate> = flow.positive("rate")?;
    let rate = flow.required("rate", rate, "\"1Mbit/s\"")?;
    let size = size(flow, LARGEST_PACKET)?;
    if rate.time_for(size.0) < SHORTEST_GAP {
        return Err(flow.wrong("rate", format!("sends {size} packets more often than every {SHORTEST_GAP}")));
    }
    Ok(Rated { rate, size })
}

fn video(flow: &Reader<'_>, usual: BitRate, load: &mut LoadTrace<'_>) -> Result<Video, ScenarioError> {
    let rate = flow.positive("rate")?.unwrap_or(usual);
    if !(BitRate::bps(20_000)..=BitRate::mbps(1_000)).contains(&rate) {
        return Err(flow.wrong("rate", format!("{rate} is no mean rate of a video; write 20kbit/s to 1000Mbit/s")));
    }
    let Some(written) = flow.text("trace")? else {
        return Ok(Video { frames: FrameSource::Generator { rate } });
    };
    let (path, frames) = load(written).map_err(|why| flow.wrong("trace", why))?;
    Ok(Video { frames: FrameSource::Trace { path, frames } })
}

fn tcp(flow: &Reader<'_>) -> Result<Tcp, ScenarioError> {
    let mss = flow.quantity::<Bytes>("mss")?.unwrap_or(Bytes(1460));
    if !(88..=LARGEST_PACKET - 40).contains(&mss.0) {
        return Err(flow.wrong("mss", format!("{mss} is no segment of a {LARGEST_PACKET}B packet; write 88B to 1460B")));
    }
    let cc = CongestionControl::read(flow)?;
    let has_pair = matches!(cc, CongestionControl::Aimd | CongestionControl::Ssvp);
    if let Some(key) = ["increase", "decrease"].into_iter().find(|key| !has_pair && flow.has(key)) {
        return Err(flow.wrong(key, "is a number of cc = \"aimd\" and of \"ssvp\""));
    }
    // The friendly pair of the general AIMD.
    let aimd = (
        flow.number("increase", 0.01..=100.0)?.unwrap_or(0.31),
        flow.number("decrease", 0.01..=0.99)?.unwrap_or(0.875),
    );
    Ok(Tcp {
        cc,
        aimd,
        loss_discrimination: flow.choice("loss_discrimination", &[("biaz-vaidya", LossDiscrimination::BiazVaidya)])?,
        sack: flow.flag("sack")?.unwrap_or(true),
        ecn: flow.flag("ecn")?.unwrap_or(false),
        delayed_ack: flow.flag("delayed_ack")?.unwrap_or(true),
        initial_window: flow.count("initial_window", 1..=1000)?.unwrap_or(10),
        window: flow.count("window", 1..=700_000)?,
        half_close: flow.flag("half_close")?.unwrap_or(false),
        mss,
    })
}

//! The body of every fuzz target: what must hold for any input at all. A body panics when it does not.
//!
//! Two callers: libfuzzer (`fuzz_targets/`, nightly) and `crates/cli/tests/fuzz_short.rs`, which includes this file and
//! runs every body over seeds and mutations of them on stable, as a part of `make test`. A new parser gets a function
//! here, a line in [`ALL`], a file in `fuzz_targets/` and a `[[bin]]` in Cargo.toml.

use std::io;
use std::path::Path;

use lasthop_core::credit::key;
use lasthop_core::fastpath::layout::{Control, FlowState, HOPS, Hop, Plan};
use lasthop_core::fastpath::{self as core_fastpath, Verdict};
use lasthop_core::packet::{Direction, FlowKind};
use lasthop_core::snoop::{self as core_snoop, Ack, Conduct, Data, Params, Snoop};
use lasthop_core::units::{BitRate, Bytes, Span, Time};
use lasthop_core::wire::offload::{Offload, Run, Segments};
use lasthop_core::wire::{self, Link, Merged, Parsed, ecn};
use lasthop_home::scenario::{Flow, MOST, Scenario};
use lasthop_home::trace::Frames;
use lasthop_home::traffic::Source;
use lasthop_hwsim::frame::{Addba, Header};
use lasthop_hwsim::{message as hwsim_message, rates as hwsim_rates};
use lasthop_live::handover::Offer;
use lasthop_live::levers::debugfs::{self, Limit};
use lasthop_live::levers::guard::read_record;
use lasthop_live::levers::hostapd;
use lasthop_live::levers::wiphy::Wiphy;
use lasthop_live::stations::Station;
use lasthop_messenger::account::Account;
use lasthop_messenger::protocol::{self, Decoded, LONGEST, Reply, Request};
use lasthop_messenger::server::Startups;
use lasthop_messenger::tuning::Profile;
use lasthop_responsiveness::config::Configuration;
use lasthop_web::follow::Lines;
use lasthop_web::guard::{Names, Scheme, cookie, is_own_page};

/// A part of the binary, which is no library.
#[allow(dead_code)]
#[path = "../../crates/cli/src/commands/sweep/vary.rs"]
mod values;

/// A target: its name and its body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const ALL: &[Target] = &[
    ("wire", wire),
    ("fastpath", fastpath),
    ("scenario", scenario),
    ("set", set),
    ("trace", trace),
    ("config", config),
    ("quantity", quantity),
    ("status_json", status_json),
    ("measure_json", measure_json),
    ("handover", handover),
    ("radio", radio),
    ("mdns", mdns),
    ("vary", vary),
    ("snoop", snoop),
    ("frames", frames),
    ("account_file", account_file),
    ("profile", profile),
    ("startups", startups),
    ("web_head", web_head),
    ("web_log", web_log),
    ("web_measurement", web_measurement),
    ("nq_config", nq_config),
    ("hwsim", hwsim),
];

/// What a kernel hands over behind its header: cut and joined again, every byte of payload is there once, and nothing is beyond its end.
fn offload(input: &[u8]) {
    let Some((header, frame)) = input.split_first_chunk() else { return };
    let offload = Offload::read(header);
    let mut whole = frame.to_vec();
    assert!(offload.fill_in(&mut whole) || whole == frame);
    let Some(mut segments) = Segments::of(frame, &offload) else { return };
    let (left, mut out, mut pieces) = (segments.left(), vec![0; frame.len()], Vec::new());
    while let Some(length) = segments.write_next(&mut out) {
        pieces.push(out[..length].to_vec());
    }
    assert_eq!((pieces.len(), segments.left()), (left, 0));
    let headers = pieces.iter().map(Vec::len).sum::<usize>() - frame.len();
    assert_eq!(headers % (pieces.len() - 1).max(1), 0);
    let mut run = Run::of(&pieces[0]);
    for piece in &pieces[1..] {
        let Some(run) = &mut run else { return };
        if !run.join(&pieces[0], piece) {
            return;
        }
        let joined = run.joined(&pieces[0], piece);
        assert!(joined.headers().len() == run.payload_at() && Offload::read(&joined.header).segment_bytes > 0);
    }
}

/// A frame, alone or merged of several packets: understood or not, never beyond its end; and a window written in place
/// changes the window and the checksum, nothing else, and a right checksum stays right.
pub fn wire(input: &[u8]) {
    offload(input);
    for link in [Link::Ethernet, Link::Ip] {
        let mut frame = input.to_vec();
        let understands = ecn::of(&frame, link) != ecn::NOT_ECT;
        let is_set = ecn::set_ce(&mut frame, link);
        assert!(!is_set || (understands && ecn::of(&frame, link) == ecn::CE));
        assert!(is_set || frame == input);
        for (direction, kind) in [(Direction::ToStation, FlowKind::Connection), (Direction::ToRemote, FlowKind::Hosts)]
        {
            let _ = key::of(&wire::parse(input, link), direction, kind, 7);
        }
    }
    let segment_bytes = input.first_chunk().map_or(0, |two| u32::from(u16::from_le_bytes(*two)));
    let merged = Merged { segments: 1 + input.len() as u32 % 4, segment_bytes };
    for (link, merged) in [(Link::Ethernet, Merged::NOT), (Link::Ip, Merged::NOT), (Link::Ethernet, merged)] {
        let Parsed::Tcp(tcp) = wire::parse_merged(input, link, merged) else { continue };
        let mut frame = input.to_vec();
        wire::strip_sack(&mut frame, &tcp);
        assert_eq!(wire::checksum_is_valid(&frame, &tcp), wire::checksum_is_valid(input, &tcp));
        assert_eq!(wire::sack_blocks(&frame, &tcp).as_slice(), []);
        let mut frame = input.to_vec();
        let window = tcp.window / 2;
        wire::patch_window(&mut frame, &tcp, window);
        assert_eq!(wire::checksum_is_valid(&frame, &tcp), wire::checksum_is_valid(input, &tcp));
        assert_eq!(wire::parse_merged(&frame, link, merged), Parsed::Tcp(wire::TcpFields { window, ..tcp }));
        let at = usize::from(tcp.window_at);
        assert_eq!((&frame[..at], &frame[at + 4..]), (&input[..at], &input[at + 4..]));
    }
}

/// Takes little-endian numbers and pieces off the front of an input.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    fn u8(&mut self) -> Option<u8> {
        Some(self.bytes(1)?[0])
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(*self.bytes(2)?.first_chunk()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(*self.bytes(4)?.first_chunk()?))
    }

    fn plan(&mut self) -> Option<Plan> {
        let (clamp_bytes, floor_bytes) = (self.u32()?, self.u32()?);
        Some(Plan { clamp_bytes, floor_bytes, growth_bytes: self.u32()?, pace_bytes: self.u32()? })
    }
}

/// Any run of packets of one flow under any plan: windows only ever fall and never to zero, and never in a dry run.
///
/// Input: window scale and dry run (a byte each), two plans (growth and pace are the depth and rate of the hop too), then packets: direction (a byte), microseconds since the
/// one before (u32), length (u16), Ethernet frame.
pub fn fastpath(input: &[u8]) {
    let mut rest = Cursor(input);
    let _ = packets_under_plans(&mut rest);
}

fn packets_under_plans(rest: &mut Cursor<'_>) -> Option<()> {
    let (scale, dry_run) = (rest.u8()?, rest.u8()? & 1);
    let default_plan = [rest.plan()?, rest.plan()?];
    let hop =
        default_plan.map(|plan| Hop { depth_bytes: plan.growth_bytes, rate_bytes: plan.pace_bytes, ..Hop::default() });
    let mut control = Control { dry_run: u32::from(dry_run), default_plan, hops: [hop; HOPS], ..Control::default() };
    let mut now = Time::from_nanos(1);
    let mut state = FlowState::new(&control, now);
    state.half[0].conntrack_scale = scale;
    loop {
        let direction = if rest.u8()? & 1 == 0 { Direction::ToStation } else { Direction::ToRemote };
        now += Span::from_micros(u64::from(rest.u32()?));
        control.heartbeat_ns = now.as_nanos() / 2;
        let length = usize::from(rest.u16()?).min(rest.0.len());
        let frame = rest.bytes(length)?;
        let Parsed::Tcp(tcp) = wire::parse(frame, Link::Ethernet) else { continue };
        let passage = core_fastpath::Passage { direction, port: 1, hop: u32::from(scale) };
        if let Verdict::Rewrite { window } = core_fastpath::on_packet(&mut state, &mut control, passage, &tcp, now) {
            assert!(dry_run == 0 && window > 0 && window < tcp.window, "{window} after {}", tcp.window);
        }
    }
}

/// Any run of segments and acknowledgments of a few connections: what is sent from the cache is what came for that
/// connection since it was opened, as often as allowed; memory stays bounded, and nothing is held back that carries more
/// than an acknowledgment.
///
/// Input: conduct, connections, segments, bytes (in units of 64), retries, duplicates (a byte each), then events: kind and
/// connection (a byte), milliseconds since the one before (a byte), sequence number or acknowledgment (u32), length (u16) or
/// number of blocks (a byte) and blocks (two u32 each).
pub fn snoop(input: &[u8]) {
    let mut rest = Cursor(input);
    let _ = segments_and_acknowledgments(&mut rest);
}

/// A segment as it came: how often its connection had been opened, how many segments had come by then, where it starts.
type Came = (u8, u32, u32, u32);

fn segments_and_acknowledgments(rest: &mut Cursor<'_>) -> Option<()> {
    let conduct = if rest.u8()? & 1 == 0 { Conduct::Standard } else { Conduct::Ns2 };
    let (connections, segments) = (usize::from(rest.u8()?) + 1, usize::from(rest.u8()?) + 1);
    let bytes = u64::from(rest.u8()?) * 64;
    let (retries, duplicates) = (u32::from(rest.u8()?), u32::from(rest.u8()?));
    let connection_bytes = bytes / 2;
    let params =
        Params { connections, segments, connection_bytes, bytes, retries, duplicates, conduct, ..Params::default() };
    let mut snoop: Snoop<Came> = Snoop::new(params);
    let mut opened = [0u32; 4];
    let mut came = 0;
    let mut sent: std::collections::HashMap<(u32, u32), u32> = std::collections::HashMap::new();
    let mut now = Time::ZERO;
    loop {
        let kind = rest.u8()?;
        let name = kind & 3;
        let connection = u64::from(name);
        now += Span::from_millis(u64::from(rest.u8()?));
        let number = rest.u32()?;
        match kind >> 2 & 7 {
            0..=2 => {
                let (bytes, fin) = (u32::from(rest.u16()?), kind & 0x20 != 0);
                let data =
                    Data { connection, seq: number, bytes, fin, queue_full: kind & 0x40 != 0, ..Data::default() };
                came += 1;
                snoop.on_data(now, &data, (name, opened[usize::from(name)], came, number));
            }
            3 => {
                opened[usize::from(name)] += 1;
                snoop.on_data(
                    now,
                    &Data { connection, syn: kind & 0x20 != 0, rst: true, ..Data::default() },
                    (0, 0, 0, 0),
                );
            }
            _ => {
                let mut blocks = [(0, 0); 4];
                let count = usize::from(rest.u8()?) % 5;
                for block in &mut blocks[..count] {
                    *block = (rest.u32()?, rest.u32()?);
                }
                let carries_more = kind & 0x20 != 0;
                let sack = &blocks[..count];
                let window = u32::from(kind >> 6);
                let ack = Ack { connection, ack: number, window, sack, carries_more, ..Ack::default() };
                let verdict = snoop.on_ack(now, &ack);
                assert!(!carries_more || verdict == core_snoop::SnoopVerdict::Forward);
                assert!(count > 0 || verdict != core_snoop::SnoopVerdict::Strip);
            }
        }
        // A segment may be sent again by its sender, each time as often as allowed.
        while let Some(again) = snoop.poll(now) {
            let (name, life, number, _) = again.packet;
            assert_eq!(u64::from(name), again.connection);
            assert_eq!(life, opened[usize::from(name)], "of a connection that is over");
            let times = sent.entry((life, number)).or_default();
            *times += 1;
            assert!(*times <= retries || conduct == Conduct::Ns2, "{times} times");
        }
        assert!(snoop.next_deadline().is_none_or(|at| at > now));
        let seen = snoop.snapshot();
        assert!(seen.connections <= connections && seen.segments <= segments * connections, "{seen:?}");
        assert!(seen.bytes <= bytes, "{seen:?}");
    }
}

/// Quantities: read or refused with an example, and what is displayed reads back as the same quantity.
pub fn quantity(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(span) = text.parse::<Span>() {
        assert_eq!(span.to_string().parse(), Ok(span), "{text:?}");
    }
    if let Ok(size) = text.parse::<Bytes>() {
        assert_eq!(size.to_string().parse(), Ok(size), "{text:?}");
    }
    if let Ok(rate) = text.parse::<BitRate>() {
        // Displayed in Mbit/s as a decimal fraction: exact up to 2^53 bit/s.
        if rate.as_bps() < 1 << 53 {
            assert_eq!(rate.to_string().parse(), Ok(rate), "{text:?}");
        }
    }
}

/// The controller's configuration: read, or refused with file and line.
pub fn config(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Err(error) = lasthop_live::config::Config::parse(text, "fuzz.toml") {
        assert!(error.to_string().starts_with("fuzz.toml:"), "{error}");
    }
}

/// What a controller says on its socket, as `lasthop status` reads and shows it: any other text is refused.
pub fn status_json(input: &[u8]) {
    if let Ok(status) = serde_json::from_slice::<lasthop_status::Status>(input) {
        let _ = lasthop_status::render(&status);
    }
}

/// What `measure` wrote, as `--from` reads it: refused, or something can be said of it in words, and what is written again is read again.
pub fn measure_json(input: &[u8]) {
    let Ok(report) = lasthop_measure::Report::read(input) else { return };
    let found = report.found();
    assert!(
        found.counted <= report.blocks.len() / 2
            && found.waiting.is_none_or(|of| of.low <= of.ratio && of.ratio <= of.high)
    );
    assert!(!found.sentence(report.plan.direction).is_empty());
    assert!(lasthop_measure::Report::read(report.to_json().as_bytes()).is_ok());
}

/// What a controller offers to its successor: whatever is read is written as it was meant.
pub fn handover(input: &[u8]) {
    if let Ok(offer) = Offer::read(input) {
        let said = serde_json::to_vec(&offer).expect("plain numbers");
        assert_eq!(Offer::read(&said).expect("our own words"), offer);
    }
}

/// What a radio says of itself and of a station by nl80211, debugfs and hostapd's file, and what a guard has left: something, or nothing; a table of limits that is
/// understood is understood again.
pub fn radio(input: &[u8]) {
    let wiphy = Wiphy::read([input]);
    assert!(wiphy.name.len() <= 3 * input.len());
    if let Some(waits) = Station::read(input).and_then(|station| station.waits) {
        // A number of 32 bits of each queue, and each queue takes room.
        assert!(waits <= 1_500 * u64::from(u32::MAX) * input.len() as u64);
    }
    if let Ok(held) = read_record(input) {
        let said = serde_json::to_vec(&held).expect("plain numbers");
        assert_eq!(read_record(&said).expect("our own words"), held);
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    let _ = (debugfs::threshold(text), debugfs::enabled(text));
    if let Some(limits) = debugfs::limits(text) {
        let row = |(class, limit): (&&str, &Limit)| format!("{class}\t{}\t\t{}\n", limit.low_us, limit.high_us);
        let rows: String = debugfs::CLASSES.iter().zip(&limits).map(row).collect();
        assert_eq!(debugfs::limits(&format!("AC\n{rows}")), Some(limits));
    }
    if hostapd::read(text, "wlan0").is_some() {
        assert!(text.contains("wlan0"));
    }
}

/// What a device answers about its name: a name that is not empty, or none; and only under the number of the question.
pub fn mdns(input: &[u8]) {
    let Some((device, message)) = input.split_first_chunk::<16>() else { return };
    let id = message.first_chunk().map_or(0, |two| u16::from_be_bytes(*two));
    if let Some(name) = lasthop_live::mdns::answer(message, device, id) {
        assert!(!name.is_empty());
        assert_eq!(lasthop_live::mdns::answer(message, device, !id), None);
    }
    assert_eq!(lasthop_live::mdns::answer(&lasthop_live::mdns::question(device, id), device, id), None);
}

/// A scenario: read, or refused with file and line. What is read has bounded counts, and its sources send packets
/// that can be sent, in order, between start and stop.
pub fn scenario(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match Scenario::parse_with(text, "fuzz.toml", &[], &small_trace) {
        Ok(home) => {
            bounded(&home);
            home.flows.iter().take(8).for_each(|flow| sends_in_order(flow, home.seed));
        }
        Err(error) => assert!(error.to_string().starts_with("fuzz.toml:"), "{error}"),
    }
}

fn bounded(home: &Scenario) {
    for count in [home.stations.len(), home.servers.len(), home.flows.len()] {
        assert!(count <= MOST as usize);
    }
    assert!(home.measure_from < home.duration);
    assert!(home.flows.iter().all(|flow| flow.start < flow.stop && flow.stop <= home.duration));
}

fn sends_in_order(flow: &Flow, seed: u64) {
    let packets: Vec<_> = Source::new(flow, seed).take(50).collect();
    assert!(packets.iter().all(|p| p.at >= flow.start && p.at < flow.stop && (28..=1500).contains(&p.bytes)));
    assert!(packets.windows(2).all(|w| w[0].at <= w[1].at));
}

/// `--set`, one a line, on the paper's home: in force, or refused with the `--set` or the line it spoils.
pub fn set(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let sets: Vec<String> = text.lines().take(20).map(str::to_owned).collect();
    match Scenario::parse_with(HOME, "fuzz.toml", &sets, &small_trace) {
        Ok(home) => bounded(&home),
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with("fuzz.toml:") || message.starts_with("--set "), "{message}");
        }
    }
}

/// The home that [`set`] changes.
const HOME: &str = include_str!("../../scenarios/papers/sap-law.toml");

/// No file of the machine is opened.
fn small_trace(_: &Path) -> io::Result<String> {
    Ok("1 I 0 900\n2 P 40 300\n".to_owned())
}

/// A frame trace: frames in order of time that last, or refused.
pub fn trace(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(frames) = Frames::parse(text) {
        assert!(frames.frames().windows(2).all(|w| w[0].at <= w[1].at));
        assert!(frames.length() > Span::ZERO);
    }
}

/// The values of a `--vary`: refused with a reason, or split so that what is joined again splits the same.
pub fn vary(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(vary) = values::vary(text) else { return };
    let again = format!("{}={}", vary.key, vary.values.join(","));
    assert_eq!(values::vary(&again), Ok(vary), "{text:?}");
}

/// What is said between a client and a server of messages, as either of them hears it: frame after frame, never beyond the
/// end of what came, never waiting for more than the longest frame has; what is understood reads back as the same.
pub fn frames(input: &[u8]) {
    heard::<Request>(input);
    heard::<Reply>(input);
}

fn heard<T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug>(input: &[u8]) {
    let mut rest = input;
    loop {
        match protocol::decode::<T>(rest) {
            Err(_) => return,
            Ok(Decoded::Needs(bytes)) => {
                assert!(bytes > rest.len() && bytes <= LONGEST, "{bytes} bytes after {}", rest.len());
                return;
            }
            Ok(Decoded::Control(frame, took)) => {
                let again = protocol::control(&frame);
                assert_eq!(protocol::decode(&again), Ok(Decoded::Control(frame, again.len())));
                rest = &rest[took..];
            }
            Ok(Decoded::Packet { offset, bytes, took }) => {
                assert!(!bytes.is_empty());
                let again = [&protocol::packet_header(offset, bytes.len())[..], bytes].concat();
                assert_eq!(again, rest[..took]);
                rest = &rest[took..];
            }
        }
    }
}

/// An account file: read, or refused; what is read can be written and reads back as the same.
pub fn account_file(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(account) = text.parse::<Account>() {
        let written = toml::to_string(&account).expect("an account can be written");
        assert_eq!(written.parse::<Account>().expect("and read"), account);
    }
}

/// A device's profile and the changes that `--set` makes to one, one a line: the same.
pub fn profile(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let same = |profile: &Profile| {
        let written = toml::to_string(profile).expect("a profile can be written");
        assert_eq!(toml::from_str::<Profile>(&written).as_ref(), Ok(profile), "{written}");
    };
    if let Ok(profile) = toml::from_str::<Profile>(text) {
        same(&profile);
    }
    let mut profile = Profile::default();
    for set in text.lines().take(20) {
        if profile.set(set).is_ok() {
            same(&profile);
        }
    }
}

/// How many strangers a server of messages takes: refused, or read, and then what is displayed reads back as the same, nobody is
/// turned away below the start nor let in at the end, and more of them are never turned away less often.
pub fn startups(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(startups) = text.parse::<Startups>() else { return };
    assert_eq!(startups.to_string().parse(), Ok(startups), "{text:?}");
    let percent = |unknown| (0..100).filter(|draw| startups.is_one_too_many(unknown, *draw)).count();
    assert_eq!((percent(0), percent(startups.full())), (0, 100));
    let steps: Vec<_> = (0..=8).map(|eighth| percent(startups.full() * eighth / 8)).collect();
    assert!(steps.is_sorted(), "{steps:?}");
}

/// Host, Origin and Cookie of a request: no name that goes on is ours, an origin is ours as a whole, and a cookie is a part of its header.
pub fn web_head(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let names = Names::new(&["router.lan".to_owned()]);
    let local = [192, 0, 2, 1].into();
    let _ = names.allow(&text, local);
    assert!(!names.allow(&format!("{text}.evil.example"), local), "{text}");
    for scheme in [Scheme::Http, Scheme::Https, Scheme::Either] {
        assert!(!is_own_page(&text, "router.lan", scheme) || text.to_ascii_lowercase().ends_with("://router.lan"));
    }
    if let Some(value) = cookie(&text, "lasthop") {
        assert!(text.contains(&format!("lasthop={value}")) && !value.contains(';'));
    }
}

/// The log of an emulation: wherever it is cut while it is written, the same is read.
pub fn web_log(input: &[u8]) {
    let (mut whole, mut parts) = (Lines::default(), Lines::default());
    whole.take(input);
    let length = 1 + usize::from(input.first().copied().unwrap_or_default()) % 17;
    input.chunks(length).for_each(|part| parts.take(part));
    let of = |lines: &Lines| {
        (lines.status.as_ref().map(|status| status.get().to_owned()), lines.unknown, lines.said.clone())
    };
    assert_eq!(of(&whole), of(&parts));
}

/// A file of before and after: shown as far as it is understood, and what is shown has a bound.
pub fn web_measurement(input: &[u8]) {
    if let Ok(shown) = lasthop_web::measurement::shown(input) {
        assert!(shown.sentence.is_none_or(|text| text.chars().count() <= 1_000) && shown.rows.len() <= 3);
    }
}

/// What a server of the responsiveness test says of itself: refused in a short sentence, or all at one host, over TLS.
pub fn nq_config(input: &[u8]) {
    match Configuration::parse(input) {
        Ok(read) => {
            assert!(!read.authority.host().is_empty() && !read.authority.as_str().contains('@'));
            let said = Configuration::said_by_server(&read.authority, true);
            assert_eq!(Configuration::parse(said.as_bytes()).expect("our own words").authority, read.authority);
        }
        Err(error) => assert!(error.to_string().len() < 600, "{error}"),
    }
}

/// A message of `mac80211_hwsim`: read or refused, a table of rates is a plan of as many tries or none, and a frame names both ends.
pub fn hwsim(input: &[u8]) {
    let Ok(Some(sent)) = hwsim_message::read(input) else { return };
    if let Some(header) = Header::read(sent.frame) {
        let _ = (header.class(), header.is_to_group());
        assert!(sent.frame.len() >= 16);
        let addba = Addba::read(sent.frame, &header);
        assert!(addba.is_none_or(|addba| addba.tid < 16 && addba.buffer < 1024));
    }
    if let Some(plan) = hwsim_rates::plan(&sent.rates, sent.frequency_mhz) {
        let used = hwsim_rates::used(&sent.rates, plan.tries());
        assert_eq!(used.iter().map(|rate| u16::from(rate.count)).sum::<u16>(), plan.tries());
        assert!(plan.stages().iter().all(|stage| !hwsim_rates::name(stage.rate).is_empty()));
    }
}

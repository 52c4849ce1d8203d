use std::fs;
use std::path::{Path, PathBuf};

use lasthop_core::ap::ShareRule;
use lasthop_core::aqm::mac80211;
use lasthop_core::packet::FlowKind;
use lasthop_core::units::{BitRate, Bytes, Span};
use lasthop_medium::{Rate, Standard};
use proptest::prelude::*;

use super::*;
use crate::quantity::{Decibel, Degrees, Metres, StorageRate, StorageSize};

mod channel;
mod classes;
mod levers;

/// The normative schema file, as it is.
const SCHEMA: &str = include_str!("../../../../schema/scenario.toml");

fn read_sample(_: &Path) -> io::Result<String> {
    Ok("1 I 0 1000\n2 P 40 500\n".to_owned())
}

fn parse(text: &str, set: &[&str]) -> Result<Scenario, ScenarioError> {
    let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
    Scenario::parse_with(text, "home.toml", &set, &read_sample)
}

fn schema(set: &[&str]) -> Scenario {
    parse(SCHEMA, set).unwrap_or_else(|error| panic!("{set:?}: {error}"))
}

fn refusal(text: &str, set: &[&str]) -> String {
    match parse(text, set) {
        Ok(_) => panic!("was taken: {set:?}"),
        Err(error) => error.to_string(),
    }
}

/// A small home, `extra` below it.
fn small(extra: &str) -> String {
    format!(
        "format = 1\nname = \"small\"\nduration = \"20s\"\n[[server]]\nname = \"W\"\n\
         [[station]]\nname = \"S\"\n{extra}\n"
    )
}

fn small_wifi(extra: &str) -> String {
    small(&format!("[wifi]\n{extra}"))
}

fn wifi(scenario: &Scenario) -> &Wifi {
    match &scenario.hop {
        LastHop::Wifi(wifi) => wifi,
        _ => panic!("there is no air"),
    }
}

fn ftp<'a>(scenario: &'a Scenario, name: &str) -> &'a Ftp {
    match &scenario.flows.iter().find(|f| f.name == name).unwrap().kind {
        Kind::Ftp(ftp) => ftp,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_schema_file_is_read_to_the_last_key() {
    let home = schema(&[]);
    assert_eq!((home.name.as_str(), home.seed), ("sap-law", 1));
    assert_eq!((home.duration, home.measure_from), (Span::from_secs(180), Span::from_secs(135)));
    let wan = home.wan.unwrap();
    assert_eq!(wan.down, Wire { rate: Some(BitRate::mbps(100)), delay: Span::from_millis(10), buffer: 140, burst: 0 });
    let bursts = schema(&["wan.burst_down=3000", "wan.rate_up=20Mbit/s"]).wan.unwrap();
    assert_eq!((bursts.down.burst, bursts.up.burst), (3000, 0));
    assert_eq!(bursts.up.rate, Some(BitRate::mbps(20)), "each way has its own");
    assert_eq!(home.servers[2].wire.delay, Span::from_millis(30));
    let air = wifi(&home);
    assert_eq!((air.standard, air.sending.rate, air.control_rate), (Standard::G, Rate::OFDM_54, Some(Rate::OFDM_24)));
    assert_eq!((air.long_attempts, air.short_attempts, air.rts_threshold), (4, 4, 65_535));
    assert_eq!(air.queue, Queue { discipline: Discipline::Fifo, limit: 50 });
    assert_eq!(air.loss, Loss::Shadowing { exponent: 4.0, deviation: Decibel(7.0) });
    assert_eq!(home.stations.len(), 4);
    let ftp = ftp(&home, "ftp");
    assert_eq!(ftp.tcp.cc, CongestionControl::NewReno);
    assert_eq!((ftp.tcp.sack, ftp.tcp.delayed_ack, ftp.tcp.initial_window), (false, false, 2));
    assert_eq!((ftp.tcp.window, ftp.tcp.mss, ftp.bytes), (Some(1000), Bytes(1460), None));
    let window = home.control.window.as_ref().unwrap();
    assert_eq!(window.capacity, Capacity::Rate(BitRate::mbps(18)));
    assert_eq!((window.share, window.udp_weight, window.rtt), (ShareRule::MaxMin, 0.2, WindowRtt::Measured));
    assert_eq!(window.law, lasthop_core::ap::Law::default());
    assert!(home.control.snoop.is_some() && home.control.mac == Some(MacControl::default()));
    let change = &home.changes[0];
    assert_eq!((change.at, change.keys.as_slice()), (Span::from_secs(150), &["station.N3.rate".to_owned()][..]));
    assert_eq!((home.stations[3].sending.rate, change.after.stations[3].sending.rate), (Rate::OFDM_54, Rate::OFDM_6));
}

#[test]
fn flows_of_the_schema_file_keep_their_names_hosts_and_times() {
    let home = schema(&[]);
    let names: Vec<&str> = home.flows.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["video", "game-down", "game-up", "chat-down", "chat-up", "ftp"]);
    let game = &home.flows[1];
    assert_eq!((game.from, game.to), (HostId::Server(0), HostId::Station(0)));
    assert_eq!((game.start, game.stop), (Span::from_secs(45), Span::from_secs(180)));
    assert_eq!(game.kind, Kind::GameServer(Periodic { size: Bytes(200), every: Span::from_millis(50) }));
    assert_eq!(home.flows[0].from, HostId::AccessPoint);
    assert_eq!(home.youngest_start(), Span::from_secs(135));
}

#[test]
fn what_a_file_leaves_out_has_the_default_of_the_schema() {
    let home = parse(&small_wifi(""), &[]).unwrap();
    assert_eq!((home.seed, home.measure_from, home.wan), (1, Span::ZERO, None));
    assert_eq!(home.servers[0].wire, Wire { rate: None, delay: Span::ZERO, buffer: 140, burst: 0 });
    let air = wifi(&home);
    assert_eq!((air.long_attempts, air.short_attempts), (4, 7), "the standard's retry limits");
    assert_eq!((air.protection, air.hidden, air.loss), (false, false, Loss::None));
    let station = &home.stations[0];
    assert_eq!((station.distance, station.angle, station.sending.rate), (Metres(10.0), Degrees(0.0), Rate::OFDM_54));
    let unlimited = StorageRate(None);
    let everything = StorageSize(None);
    assert_eq!(station.storage, Storage { write: unlimited, read: unlimited, operation: Span::ZERO, size: everything });
    assert_eq!(home.control, Control::default());
}

#[test]
fn a_slow_storage_is_read_with_the_rest_of_its_keys_at_their_defaults() {
    let storage = |set: &[&str]| parse(&small_wifi(""), set).unwrap().stations[0].storage;
    let rate = |bytes: u64| StorageRate(Some(BitRate::bps(bytes * 8)));
    let slow = storage(&["station.S.storage.write=400kB/s"]);
    assert_eq!(slow, Storage { write: rate(400_000), ..Storage::default() });
    let all = storage(&["station.S.storage={ write = \"400kB/s\", read = \"800kB/s\", operation = \"2ms\" }"]);
    let operation = Span::from_millis(2);
    assert_eq!(all, Storage { write: rate(400_000), read: rate(800_000), operation, size: StorageSize(None) });
    let small = storage(&["station.S.storage.size=1MiB"]);
    assert!(slow.is_slow() && all.is_slow() && !small.is_slow());
    assert_eq!(small, Storage { size: StorageSize(Some(Bytes(1 << 20))), ..Storage::default() });
    let wrong = refusal(&small_wifi(""), &["station.S.storage.operations=2ms"]);
    assert!(wrong.contains("station.S.storage.operations") && wrong.contains("`operation`"), "{wrong}");
}

#[test]
fn every_kind_of_flow_is_read_with_its_own_keys() {
    let flow = |kind: &str, keys: &str| {
        let text = format!("[[flow]]\nname = \"f\"\nfrom = \"W\"\nto = \"S\"\nkind = \"{kind}\"\n{keys}\n[wifi]");
        parse(&small(&text), &[]).unwrap_or_else(|error| panic!("{kind}: {error}")).flows[0].kind.clone()
    };
    let periodic = |size, ms| Periodic { size: Bytes(size), every: Span::from_millis(ms) };
    assert_eq!(flow("game-client", ""), Kind::GameClient(periodic(42, 60)));
    assert_eq!(flow("game-server", "size = \"300B\"\nevery = \"30ms\""), Kind::GameServer(periodic(300, 30)));
    assert_eq!(flow("audio", ""), Kind::Audio(periodic(100, 20)));
    assert_eq!(flow("voip", ""), Kind::Voip(periodic(200, 20)));
    let rated = Rated { rate: BitRate::mbps(3), size: Bytes(1500) };
    assert_eq!(flow("cbr", "rate = \"3Mbit/s\""), Kind::Cbr(rated));
    assert_eq!(flow("poisson", "rate = \"3Mbit/s\""), Kind::Poisson(rated));
    let Kind::Ftp(ftp) = flow("ftp", "bytes = \"10MiB\"\ncc = \"westwood+\"") else { panic!("no ftp") };
    assert_eq!((ftp.bytes, ftp.tcp.cc, ftp.tcp.window), (Some(Bytes(10 << 20)), CongestionControl::WestwoodPlus, None));
    let Kind::VideoChat(chat) = flow("video-chat", "") else { panic!("no chat") };
    assert_eq!(chat.frames, FrameSource::Generator { rate: BitRate::bps(62_000) });
    let Kind::Video(video) = flow("video", "trace = \"x.txt\"") else { panic!("no video") };
    assert!(matches!(video.frames, FrameSource::Trace { path, .. } if path == Path::new("x.txt")));
    assert!(matches!(flow("web", "page = \"wsj\""), Kind::Web(Web { page: Page::Wsj, connections: 6, .. })));
    let Kind::RequestResponse(asks) = flow("request-response", "think = \"50ms\"") else { panic!("no requests") };
    assert_eq!((asks.request, asks.response, asks.think), (Bytes(200), Bytes(10_000), Span::from_millis(50)));
    assert_eq!((asks.every, asks.tcp.half_close), (Span::from_secs(1), false));
    assert!(matches!(flow("quic", ""), Kind::Quic(Quic { bytes: None, initial_window: 10, .. })));
}

#[test]
fn a_controller_may_come_later() {
    let start = |set: &str| parse(&small_wifi(""), &[set]).map(|home| home.control.window.unwrap().start);
    assert_eq!(start("control.window.start=5s").unwrap(), Span::from_secs(5));
    assert_eq!(start("control.window.capacity=learn").unwrap(), Span::ZERO);
    assert!(start("control.window.start=9d").unwrap_err().to_string().contains("control.window.start"));
}

#[test]
fn requests_that_cannot_be_made_are_refused() {
    let wrong = |keys: &str| {
        let flow =
            format!("[[flow]]\nname = \"f\"\nfrom = \"W\"\nto = \"S\"\nkind = \"request-response\"\n{keys}\n[wifi]");
        refusal(&small(&flow), &[])
    };
    for (keys, why) in [
        ("request = \"2kB\"", "flow.f.request: 2000B is more than one segment of 1460B"),
        ("every = \"0s\"", "flow.f.every: is shorter than 1ms"),
        ("think = \"2d\"", "flow.f.think: "),
        ("response = \"2GiB\"", "flow.f.response: "),
        ("half_close = true", "flow.f.half_close: leaves nobody who could ask"),
        ("cc = \"tfrc\"", "flow.f.cc: asks over TCP"),
        ("bytes = \"2kB\"", "flow.f.bytes: "),
    ] {
        let found = wrong(keys);
        assert!(found.contains(why), "{found}");
    }
}

#[test]
fn a_wireless_link_stands_in_place_of_the_air() {
    let home = parse(&small("[wireless_link]\nrate = \"5Mbit/s\"\nerror_rate = 0.01"), &[]).unwrap();
    let LastHop::WirelessLink(link) = &home.hop else { panic!("there is air") };
    assert_eq!(
        (link.params.rate, link.params.error_rate, link.buffer, link.snoop),
        (BitRate::mbps(5), 0.01, None, false)
    );
    // 44 ms of round trip at 5 Mbit/s are 27.5 packets of 1000 B: the 28 of the ns-2 run.
    assert_eq!(link.buffer_for(Span::from_millis(44), Bytes(1000)), 28);
    let (params, stations) = home.medium();
    // 1500 B of each of 5 Mbit/s and the delays of the file.
    assert_eq!(
        (params.wireless_link.unwrap().station_rate, params.queue_limit),
        (BitRate::mbps(10), stations[0].queue_limit)
    );
    assert_eq!(home.queue_names(), ["AP to stations", "stations to AP"]);
    let blind = refusal(&small("[wireless_link]\ntiming = \"ns2\"\nrepair = { kind = \"arq\" }"), &[]);
    assert!(blind.contains("wireless_link.repair: sees no loss with timing = \"ns2\""), "{blind}");
}

#[test]
fn the_bridge_of_the_chap_paper_stands_in_place_of_the_air() {
    let home = parse(&small("[bridge]\nextra = \"2ms\"\nqueue = { limit = 100 }"), &[]).unwrap();
    let LastHop::Bridge(bridge) = &home.hop else { panic!("there is no bridge") };
    assert_eq!((bridge.queue.limit, bridge.station_queue.limit), (100, 350));
    let (params, stations) = home.medium();
    let costs = params.bridge.unwrap();
    assert_eq!((costs.time(1500).as_nanos() / 1000, costs.half_duplex), (2399, false));
    assert_eq!((params.queue_limit, stations[0].queue_limit), (100, 350));
    assert_eq!(home.queue_names(), ["AP to stations", "stations to AP"]);
    let beside = refusal(&small_wifi("[bridge]"), &[]);
    assert!(beside.contains("bridge: stands beside [wifi]; keep exactly one of them"), "{beside}");
    let radio = refusal(&small("[bridge]"), &["station.S.distance=5m"]);
    assert!(radio.contains("station.S.distance: means something only with [wifi]"), "{radio}");
}

#[test]
fn counted_hosts_are_numbered_from_one_also_when_there_is_one() {
    let text = small_wifi("") + "[[flow]]\nname = \"f\"\nfrom = \"W\"\nto = \"S\"\nkind = \"ftp\"\n";
    let one = parse(&text, &["station.S.count=1"]).unwrap();
    assert_eq!((one.stations[0].name.as_str(), one.flows[0].name.as_str()), ("S.1", "f"));
    assert_eq!((one.host("S"), one.host("S.1")), (Some(HostId::Station(0)), Some(HostId::Station(0))));
    let three = parse(&text, &["station.S.count=3"]).unwrap();
    let names: Vec<&str> = three.flows.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["f.1", "f.2", "f.3"]);
    assert_eq!((three.host("S"), three.host("S.3")), (None, Some(HostId::Station(2))));
    assert_eq!(three.stations[1].angle, Degrees(120.0), "spread evenly over the circle");
    assert_eq!(three.flows[2].to, HostId::Station(2));
}

#[test]
fn flows_between_counted_hosts_are_pairs_and_between_plain_hosts_copies() {
    let flow = |count: &str| format!("[[flow]]\nname = \"f\"\nfrom = \"W\"\nto = \"S\"\nkind = \"ftp\"\n{count}\n");
    let pairs = parse(&(small_wifi("") + &flow("")), &["station.S.count=2", "server.W.count=2"]).unwrap();
    assert_eq!((pairs.flows[1].from, pairs.flows[1].to), (HostId::Server(1), HostId::Station(1)));
    let copies = parse(&(small_wifi("") + &flow("count = 4")), &[]).unwrap();
    assert_eq!(copies.flows.iter().map(|f| f.copy).collect::<Vec<_>>(), [(0, 4), (1, 4), (2, 4), (3, 4)]);
    let unequal = refusal(&(small_wifi("") + &flow("")), &["station.S.count=2", "server.W.count=3"]);
    assert!(unequal.contains("flow.f.to: 3 hosts send to 2; counted hosts need equal counts"), "{unequal}");
}

#[test]
fn a_set_reaches_any_key_and_the_later_one_wins() {
    let home = schema(&["wifi.queue.limit=100", "flow.ftp.cc=reno", "wifi.queue.limit=200", "name=other", "seed=7"]);
    assert_eq!((wifi(&home).queue.limit, home.name.as_str(), home.seed), (200, "other", 7));
    assert_eq!(ftp(&home, "ftp").tcp.cc, CongestionControl::Reno);
    let home = schema(&["flow.*.start=0s", "flow.ftp.start=5s", "duration=50s", "measure_from=10s", "change.1.at=20s"]);
    assert_eq!(home.flows.iter().map(|f| f.start).max(), Some(Span::from_secs(5)));
    assert_eq!(home.flows[0].stop, Span::from_secs(50), "a stop beyond the run is the end of the run");
    assert_eq!(
        schema(&["change.1.set.station.N3.rate=12Mbit/s"]).changes[0].after.stations[3].sending.rate.bit_rate(),
        BitRate::mbps(12)
    );
}

#[test]
fn a_wildcard_reaches_every_station_and_only_the_flows_that_have_the_key() {
    let home = schema(&["station.*.distance=5m", "flow.*.cc=cubic", "flow.game-*.every=30ms"]);
    assert!(home.stations.iter().all(|s| s.distance == Metres(5.0)));
    assert_eq!(ftp(&home, "ftp").tcp.cc, CongestionControl::Cubic);
    assert!(matches!(home.flows[2].kind, Kind::GameClient(Periodic { every, .. }) if every == Span::from_millis(30)));
    assert!(refusal(SCHEMA, &["flow.*.colour=red"]).contains("no flow that matches `*` has a key `colour`"));
}

#[test]
fn one_of_a_counted_host_can_differ() {
    let home = parse(&small_wifi(""), &["station.S.count=3", "station.S.3.distance=25m", "station.S.2.rate=6Mbit/s"]);
    let stations = home.unwrap().stations;
    assert_eq!(stations.iter().map(|s| s.distance.0).collect::<Vec<_>>(), [10.0, 10.0, 25.0]);
    assert_eq!((stations[1].sending.rate, stations[2].sending.rate), (Rate::OFDM_6, Rate::OFDM_54));
    let all = parse(&small_wifi(""), &["station.S.count=2", "station.S.2.distance=25m", "station.S.distance=7m"]);
    assert!(all.unwrap().stations.iter().all(|s| s.distance == Metres(7.0)), "the later --set wins");
    let stray = refusal(&small_wifi(""), &["station.S.count=2", "station.S.3.distance=25m"]);
    assert!(stray.contains("there is no S.3; they are numbered 1 to 2"), "{stray}");
    let wrong = refusal(&small_wifi(""), &["station.S.count=2", "station.S.2.distance=25"]);
    assert!(wrong.contains("station.S.2.distance: `25` is not a length"), "{wrong}");
}

#[test]
fn none_removes_a_table_and_a_missing_one_is_made_with_its_defaults() {
    assert_eq!(schema(&["control.window=none"]).control.window, None);
    assert_eq!(schema(&["wan=none"]).wan, None);
    assert_eq!(wifi(&schema(&["wifi.loss=none"])).loss, Loss::None);
    assert_eq!(wifi(&schema(&["wifi.loss.kind=none"])).loss, Loss::None);
    assert_eq!(schema(&["flow.video=none"]).flows.len(), 5);
    assert_eq!(ftp(&schema(&["flow.ftp.window=none"]), "ftp").tcp.window, None);
    let made = parse(&small_wifi(""), &["control.window.capacity=20Mbit/s", "wan.delay=5ms"]).unwrap();
    let window = made.control.window.unwrap();
    assert_eq!((window.capacity, window.interval), (Capacity::Rate(BitRate::mbps(20)), Span::from_millis(50)));
    assert_eq!(made.wan.unwrap().up, Wire { rate: None, delay: Span::from_millis(5), buffer: 140, burst: 0 });
    let loss = parse(&small_wifi(""), &["wifi.loss.kind=fixed", "wifi.loss.rate=0.02"]).unwrap();
    assert_eq!(wifi(&loss).loss, Loss::Fixed { rate: 0.02 });
    let back = schema(&["control.window=none", "control.window.share=equal"]).control.window.unwrap();
    assert_eq!((back.share, back.capacity), (ShareRule::Equal, Capacity::Share(0.98)), "made anew, with defaults");
    assert_eq!(back.interval, Span::from_millis(200), "the paper's");
    let learns = |more| parse(&small_wifi(""), &["control.window.capacity=learn", more]);
    assert!(learns("control.window.rtt=80ms").is_ok() && learns("control.window.share=equal").is_err());
}

#[test]
fn every_parameter_of_the_law_can_be_set_and_stands_in_the_schema() {
    use lasthop_core::ap::Law;
    let law = |set: &[&str]| parse(&small_wifi(""), set).map(|home| home.control.window.unwrap().law);
    for parameter in Law::PARAMETERS {
        let (name, (least, most)) = (parameter.name, parameter.range);
        assert!(SCHEMA.contains(&format!("\n{name} = ")), "{name}");
        for value in [least, most, parameter.without] {
            let set = law(&["control.window.capacity=learn", &format!("control.law.{name}={value}")]).unwrap();
            let mut expected = Law::default();
            expected.set(name, value).unwrap();
            assert_eq!(set, expected);
        }
    }
    let file = parse(&small_wifi("[control.window]\n[control.law]\ngain = 1\nprobe = 0.5"), &["control.law.gain=0.4"]);
    let law = file.unwrap().control.window.unwrap().law;
    assert_eq!((law.gain, law.probe), (0.4, 0.5));
}

#[test]
fn a_law_that_cannot_be_is_refused_whether_or_not_anything_is_held() {
    let refused = |set: &str| refusal(&small_wifi(""), &[set]);
    let unknown = refused("control.law.gian=0.4");
    assert!(unknown.contains("control.law.gian: unknown key; did you mean `gain`?"), "{unknown}");
    let far = refused("control.law.gain=9");
    assert!(far.contains("control.law.gain: gain is 9; it must be from 0 to 3"), "{far}");
    let span = refused("control.law.queue_target=2ms");
    assert!(span.contains("control.law.queue_target: is not a plain number; write for example 0.002"), "{span}");
    let line = refusal(&small_wifi("[control.window]\n[control.law]\ngain = \"fast\""), &[]);
    assert!(line.contains("control.law.gain: is not a plain number"), "{line}");
    let stated = refusal(&small_wifi("[control.law]\ngain = nan"), &[]);
    assert!(stated.contains("control.law.gain"), "{stated}");
}

#[test]
fn a_kind_changed_by_set_leaves_the_old_kinds_keys_behind() {
    assert_eq!(wifi(&schema(&["wifi.loss.kind=fixed", "wifi.loss.rate=0.1"])).loss, Loss::Fixed { rate: 0.1 });
    let home = schema(&["flow.ftp.kind=cbr", "flow.ftp.rate=5Mbit/s"]);
    assert_eq!(home.flows[5].kind, Kind::Cbr(Rated { rate: BitRate::mbps(5), size: Bytes(1500) }));
    assert_eq!(home.flows[5].transport().map(|tcp| tcp.cc), Some(CongestionControl::NewReno), "the download's");
    let udp = schema(&["flow.ftp.kind=cbr", "flow.ftp.rate=5Mbit/s", "flow.ftp.cc=none"]);
    assert_eq!(udp.flows[5].transport(), None);
    let foreign = refusal(SCHEMA, &["flow.ftp.kind=cbr", "flow.ftp.rate=5Mbit/s", "flow.ftp.every=5ms"]);
    assert!(foreign.contains("flow.ftp.every: a cbr has no such key"), "{foreign}");
}

#[test]
fn a_b_station_in_a_g_home_turns_protection_on() {
    let home = schema(&["station.N0.standard=802.11b", "station.N0.rate=none"]);
    assert!(wifi(&home).protection);
    assert!(schema(&["wifi.protection=true"]).medium().0.protection);
    let station = parse(&small_wifi(""), &["station.S.count=2", "station.S.2.standard=802.11b"]).unwrap();
    assert!(wifi(&station).protection);
    assert_eq!((station.stations[0].sending.rate, station.stations[1].sending.rate), (Rate::OFDM_54, Rate::DSSS_11));
}

#[test]
fn clamp_has_a_capacity_and_stands_alone() {
    let clamp = |set: &[&str]| parse(&small_wifi(""), set).unwrap().control.clamp;
    let capacity = |capacity| Some(ClampControl { capacity });
    assert_eq!(clamp(&[]), None);
    assert_eq!(clamp(&["control.clamp.capacity=18Mbit/s"]), capacity(Capacity::Rate(BitRate::mbps(18))));
    assert_eq!(clamp(&["control.clamp={}"]), capacity(Capacity::Share(0.98)));
    let both = refusal(&small_wifi("[control.window]\n[control.clamp]"), &[]);
    assert!(both.contains("control.clamp: stands beside [control.window]"), "{both}");
    let learns = refusal(&small_wifi("[control.clamp]\ncapacity = \"learn\""), &[]);
    assert!(learns.contains("control.clamp.capacity: CLAMP learns nothing"), "{learns}");
    let unknown = refusal(&small_wifi(""), &["control.clamp.capcity=18Mbit/s"]);
    assert!(unknown.contains("did you mean `capacity`?"), "{unknown}");
    let wrong = refusal(&small_wifi(""), &["control.clamp.capacity=fast"]);
    assert!(wrong.contains("control.clamp.capacity: `fast` is no capacity"), "{wrong}");
}

#[test]
fn mac_settings_of_the_controller_override_those_of_the_air() {
    let home = schema(&["control.mac.attempts=2", "control.mac.limit=9"]);
    let (params, stations) = home.medium();
    assert_eq!((params.attempts, params.short_attempts, params.queue_limit), (2, Some(2), 9));
    assert_eq!((params.realtime_attempts, stations[0].queue_limit), (None, 50));
    let home = schema(&["control.mac.realtime_attempts=2"]);
    let (params, _) = home.medium();
    assert_eq!((params.attempts, params.short_attempts, params.realtime_attempts), (4, Some(4), Some(2)));
    let realtime: Vec<bool> = home.flows.iter().map(|flow| flow.kind.is_realtime()).collect();
    assert_eq!(realtime, [true, true, true, true, true, false], "all but the download");
}

#[test]
fn an_unknown_key_is_refused_with_file_line_and_the_nearest_known_one() {
    assert_eq!(
        refusal(&small_wifi("contrl_rate = \"24Mbit/s\""), &[]),
        "home.toml:9: wifi.contrl_rate: unknown key; did you mean `control_rate`?"
    );
    let at_root = refusal(&("durations = \"3s\"\n".to_owned() + &small_wifi("")), &[]);
    assert_eq!(at_root, "home.toml:1: durations: unknown key; did you mean `duration`?");
    let by_set = refusal(SCHEMA, &["wifi.queue.limits=3"]);
    assert_eq!(by_set, "--set 'wifi.queue.limits=3': wifi.queue.limits: unknown key; did you mean `limit`?");
    let station = refusal(SCHEMA, &["station.N9.distance=3m"]);
    assert!(station.contains("there is no station `N9`; did you mean `N"), "{station}");
    let foreign = refusal(SCHEMA, &["flow.game-up.cc=reno"]);
    assert!(
        foreign.contains("flow.game-up.cc: a game-client has no such key; its keys are name, from, to"),
        "{foreign}"
    );
}

#[test]
fn every_kind_of_queue_stands_in_the_schema_with_its_keys_and_their_defaults() {
    let lines = SCHEMA.lines().filter_map(|line| line.strip_prefix("#   { kind = "));
    let mut documented = 0;
    for line in lines {
        // Up to the brace that closes the one before `kind`; a key may be a table, too.
        let depth = |at: &usize| line[..*at].matches('{').count() + 1 == line[..=*at].matches('}').count();
        let inside = &line[..(0..line.len()).find(depth).unwrap()];
        let (word, keys) = inside.split_once(", ").unwrap();
        let queue = |text: &str| wifi(&parse(&small_wifi(&format!("queue = {{ {text} }}")), &[]).unwrap()).queue;
        assert_eq!(queue(&format!("kind = {inside}")), queue(&format!("kind = {word}")), "{line}");
        let flat = match (keys.find('{'), keys.find('}')) {
            (Some(open), Some(close)) => format!("{}{}", &keys[..open], &keys[close + 1..]),
            _ => keys.to_owned(),
        };
        let named: Vec<&str> = flat.split(", ").map(|key| key.split(' ').next().unwrap()).collect();
        let (_, own) = super::queue::kinds().find(|(kind, _)| *kind == word.trim_matches('"')).unwrap();
        assert_eq!(own[..2], ["kind", "limit"]);
        assert_eq!(named, own[2..], "{line}");
        documented += 1;
    }
    // fifo has no keys of its own.
    assert_eq!(documented, super::queue::kinds().count() - 1);
}

#[test]
fn keys_of_a_queue_reach_the_medium() {
    let chap = "queue = { kind = \"chap\", increment = \"2ms\", flow = \"hosts\" }\nstation_queue = { kind = \"drr\" }";
    let (params, stations) = parse(&small_wifi(chap), &[]).unwrap().medium();
    let Discipline::Chap(credit, flow) = params.queue else { panic!("{:?}", params.queue) };
    assert_eq!((credit.increment, credit.burst, flow), (Span::from_millis(2), 16, FlowKind::Hosts));
    assert_eq!(stations[0].queue.name(), "drr");
}

#[test]
fn a_linux_access_point_s_queue_has_its_own_limit_and_may_be_without_aql() {
    let queue = |set: &[&str]| {
        let home = parse(&small_wifi("queue = { kind = \"mac80211\" }"), set).unwrap();
        let Queue { discipline: Discipline::Mac80211(params, _), limit } = wifi(&home).queue else { panic!("{set:?}") };
        (params.aql, limit)
    };
    let usual = mac80211::Aql::default();
    assert_eq!(queue(&[]), (Some(usual), 8192));
    assert_eq!(queue(&["wifi.queue.aql=off", "wifi.queue.limit=300"]), (None, 300));
    let high = mac80211::Aql { high: Span::from_millis(30), ..usual };
    assert_eq!(queue(&["wifi.queue.aql.high=30ms"]), (Some(high), 8192));
    assert_eq!(queue(&["wifi.queue.aql=off", "wifi.queue.aql.high=30ms"]), (Some(high), 8192));
}

#[test]
fn a_wrong_value_says_what_would_be_right() {
    let cases = [
        ("queue = { limit = 0 }", "wifi.queue.limit: `0` stands here; write an integer from 1 to 100000"),
        ("queue = { kind = \"sfq\" }", "wifi.queue.kind: `sfq` stands here; write one of fifo, codel, fq_codel, red"),
        (
            "queue = { kind = \"red\", min = 20 }",
            "wifi.queue.max: 15 packets are not above `min` = 20; write min < max",
        ),
        ("queue = { kind = \"codel\", quantum = \"9B\" }", "a codel has no such key; its keys are kind, limit, target"),
        (
            "queue = { kind = \"mac80211\", aql = \"on\" }",
            "wifi.queue.aql: `on` stands here; write a table, or \"off\"",
        ),
        (
            "queue = { kind = \"mac80211\", aql = { low = \"20ms\" } }",
            "wifi.queue.aql.high: 12ms is below `low` = 20ms; write low <= high",
        ),
        ("queue = { kind = \"mac80211\", memory = \"1B\" }", "1B is no memory of a queue; write 64KiB to 1024MiB"),
        ("queue = { kind = \"chap\", flow = \"port\" }", "`port` stands here; write one of connection, hosts"),
        ("rate = \"50Mbit/s\"", "wifi.rate: 50Mbit/s is no rate of 802.11g; it has 1Mbit/s"),
        (
            "rate = 54",
            "wifi.rate: `54` is not a rate; write a number and a unit (Gbit/s, Mbit/s, kbit/s, bit/s), for example `18Mbit/s`",
        ),
        ("hidden = \"no\"", "wifi.hidden: `no` stands here; write true or false"),
        ("loss = { kind = \"fixed\", rate = 1.5 }", "wifi.loss.rate: `1.5` stands here; write a number from 0 to 1"),
        ("standard = \"802.11be\"", "wifi.standard: `802.11be` stands here; write one of 802.11b, 802.11g"),
        ("seed = 3", "wifi.seed: unknown key"),
    ];
    for (line, right) in cases {
        let error = refusal(&small_wifi(line), &[]);
        assert!(error.starts_with("home.toml:9: ") && error.contains(right), "{line}: {error}");
    }
    let capacity = refusal(SCHEMA, &["control.window.capacity=fast"]);
    let learned = refusal(SCHEMA, &["control.window.capacity=learn", "control.window.share=equal"]);
    assert!(learned.contains("control.window.capacity: is learned from what windows do"), "{learned}");
    assert!(capacity.contains("`fast` is no capacity; write a rate \"18Mbit/s\", a share \"98%\""), "{capacity}");
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let cases: [(&[&str], &str); 12] = [
        (&["wifi=none"], "wifi: is missing; a scenario has exactly one of [wifi], [wireless_link] and [bridge]"),
        (&["wireless_link.rate=5Mbit/s"], "wireless_link: stands beside [wifi]"),
        (&["measure_from=180s"], "measure_from: 180s is not before the end of the run at 180s"),
        (&["flow.ftp.start=200s"], "flow.ftp.start: 200s is not before the end of the run"),
        (&["flow.ftp.stop=100s"], "flow.ftp.stop: 100s is not after the start at 135s"),
        (&["flow.ftp.to=N7"], "flow.ftp.to: there is no host `N7`; did you mean `N"),
        (&["flow.ftp.to=W3"], "flow.ftp.to: is the host it comes from"),
        (&["station.N0.name=N1"], "station.N1.name: there is already a host `N1`"),
        (&["server.W1.name=AP"], "server.AP.name: AP is the access point"),
        (&["flow.ftp.name=video"], "flow.video.name: there is already a flow `video`"),
        (&["station.N0.name=a.b"], "a name is 1 to 64 letters, digits, `-` and `_`; it holds no dot"),
        (&["station.N0.count=20000"], "station.N0.count: `20000` stands here; write an integer from 1 to 10000"),
    ];
    for (set, right) in cases {
        let error = refusal(SCHEMA, set);
        assert!(error.contains(right), "{set:?}: {error}");
    }
}

#[test]
fn a_change_is_checked_as_the_file_is_and_moves_no_host_or_flow() {
    let change = |set: &str| small_wifi("") + &format!("[[change]]\nat = \"5s\"\nset = {{ {set} }}\n");
    let home = parse(&change("\"station.S.distance\" = \"30m\", \"wifi.loss.kind\" = \"none\""), &[]).unwrap();
    assert_eq!(home.changes[0].after.stations[0].distance, Metres(30.0));
    let wrong = refusal(&change("\"station.S.rate\" = \"7Mbit/s\""), &[]);
    assert!(wrong.starts_with("home.toml:12: station.S.rate: 7Mbit/s is no rate of 802.11g"), "{wrong}");
    let shape = refusal(&change("\"station.S.count\" = 2"), &[]);
    assert!(shape.contains("change.1.set.station.S.count: changes which hosts or flows there are"), "{shape}");
    let root = refusal(&change("\"duration\" = \"2s\""), &[]);
    assert!(root.contains("cannot change while it runs"), "{root}");
}

#[test]
fn a_host_refuses_what_it_does_not_carry_at_the_place_where_it_stands() {
    let home = schema(&["wifi.hidden=true"]);
    let line = SCHEMA.lines().position(|l| l.starts_with("trace =")).unwrap() + 1;
    let error = home.refuse("flow.video.trace", "the emulator generates its own frames");
    assert_eq!(
        error.to_string(),
        format!("home.toml:{line}: flow.video.trace: not yet: the emulator generates its own frames")
    );
    assert!(
        home.refuse("wifi.hidden", "x").to_string().starts_with("--set 'wifi.hidden=true': wifi.hidden: not yet: x")
    );
    let of_table = SCHEMA.lines().position(|l| l.starts_with("[wifi]")).unwrap() + 1;
    assert!(home.refuse("wifi.absent", "x").to_string().starts_with(&format!("home.toml:{of_table}: ")));
}

#[test]
fn broken_toml_names_file_and_line() {
    let error = refusal("format = 1\nname = \"x\n", &[]);
    assert!(error.starts_with("home.toml:2: "), "{error}");
    let date = refusal("format = 1\nname = 1979-05-27\n", &[]);
    assert_eq!(date, "home.toml:2: a scenario holds no dates; `1979-05-27` stands here");
    assert!(refusal(&small_wifi(""), &["seed"]).contains("there is no `=`; write --set key=value"));
    let missing = refusal("format = 1\nname = \"x\"\n", &[]);
    assert_eq!(missing, "home.toml:1: duration: is missing; write for example duration = \"180s\"");
}

#[test]
fn every_shipped_scenario_is_read() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios"));
    let mut open = vec![folder];
    let mut read = 0;
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.extension() {
                None => open.push(entry),
                Some(kind) if kind == "toml" => {
                    Scenario::load(&entry, &[]).unwrap_or_else(|error| panic!("{error}"));
                    read += 1;
                }
                Some(_) => {}
            }
        }
    }
    assert!(read >= 3);
}

fn shipped(name: &str, set: &[&str]) -> Scenario {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios")).join(name);
    let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
    Scenario::load(&path, &set).unwrap()
}

/// The shipped one is the paper's law exactly, and leaves the control rate to the timing.
#[test]
fn the_shipped_sap_law_home_is_the_schema_s_but_for_its_trace_change_and_law() {
    let ours = ["share=max-min", "rtt=measured", "interval=50ms"].map(|set| format!("control.window.{set}"));
    let ours: Vec<_> = ours.iter().map(String::as_str).chain(["wifi.control_rate=24Mbit/s"]).collect();
    let shipped = shipped("papers/sap-law.toml", &ours);
    let schema = schema(&["flow.video.trace=none", "change=none", "control.snoop=none", "control.mac=none"]);
    assert_eq!((&shipped.hop, &shipped.servers.len(), &shipped.wan), (&schema.hop, &schema.servers.len(), &schema.wan));
    assert_eq!(shipped.control, schema.control);
    let kinds =
        |s: &Scenario| s.flows.iter().map(|f| (f.name.clone(), f.kind.clone(), f.start, f.stop)).collect::<Vec<_>>();
    assert_eq!(kinds(&shipped), kinds(&schema));
}

#[test]
fn the_trace_beside_the_scenarios_folder_is_found() {
    let home = shipped("papers/sap-law.toml", &["flow.video.trace=traces/sample.txt"]);
    let Kind::Video(Video { frames: FrameSource::Trace { frames, .. } }) = &home.flows[0].kind else {
        panic!("no trace")
    };
    assert_eq!(frames.frames().len(), 300);
}

#[test]
fn the_benchmark_cell_grows_by_its_count() {
    for n in [1_usize, 4, 64] {
        let cell = shipped("bench/cell.toml", &[&format!("station.S.count={n}")]);
        assert_eq!((cell.stations.len(), cell.flows.len()), (n, 3 * n));
        assert_eq!(cell.stations[0].name, "S.1");
    }
    let load = shipped("theory/saturation.toml", &["station.S.count=5", "wifi.after_collision=eifs"]);
    assert_eq!((load.flows.len(), load.flows[4].to), (5, HostId::AccessPoint));
}

/// Pieces that scenarios and `--set` are made of, for random ones.
const PIECES: [&str; 44] = [
    "wifi",
    "station",
    "flow",
    "server",
    "wan",
    "control",
    "window",
    "queue",
    "loss",
    "kind",
    "limit",
    "count",
    "name",
    "S",
    "ftp",
    "*",
    ".",
    "=",
    "none",
    "5m",
    "18Mbit/s",
    "98%",
    "-1",
    "1e300",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\n",
    "[[flow]]",
    "3",
    "999999999999",
    "true",
    "shadowing",
    "rate",
    "start",
    "20s",
    "change",
    "set",
    "storage",
    "'",
    "\u{e9}",
    "format",
];

fn pieces() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&PIECES[..]), 0..14).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in pieces(), more in ".{0,60}") {
        let _ = parse(&text, &[]);
        let _ = parse(&small_wifi(&format!("{text}\n{more}")), &[]);
    }

    #[test]
    fn no_set_makes_the_parser_panic(keys in prop::collection::vec(pieces(), 1..4), value in ".{0,20}") {
        let sets: Vec<String> = keys.iter().map(|key| format!("{key}={value}")).chain(keys.clone()).collect();
        for set in &sets {
            let _ = parse(SCHEMA, &[set]);
        }
        let _ = parse(SCHEMA, &sets.iter().map(String::as_str).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_taken_has_bounded_counts(key in pieces(), count in 0_u64..30_000) {
        let sets = [format!("station.S.count={count}"), format!("{key}={count}")];
        for n in 1..=2 {
            let sets: Vec<&str> = sets[..n].iter().map(String::as_str).collect();
            if let Ok(home) = parse(&small_wifi(""), &sets) {
                prop_assert!(home.stations.len() <= MOST as usize && home.flows.len() <= MOST as usize);
            }
        }
    }

    #[test]
    fn the_packets_of_any_flow_are_in_order_in_time_and_of_lawful_size(
        flow in 0_usize..6, kbits in 20_u64..50_000, size in 28_u64..=1500, start_ms in 0_u64..170_000, seed in 0_u64..1000,
    ) {
        let sets = [
            format!("seed={seed}"),
            format!("flow.*.rate={kbits}kbit/s"),
            format!("flow.*.size={size}B"),
            format!("flow.*.start={start_ms}ms"),
            "flow.ftp.kind=poisson".to_owned(),
            format!("flow.ftp.rate={kbits}kbit/s"),
        ];
        let home = schema(&sets.each_ref().map(String::as_str));
        let flow = &home.flows[flow];
        let packets: Vec<_> = crate::traffic::Source::new(flow, home.seed).take(300).collect();
        prop_assert!(packets.windows(2).all(|w| w[0].at <= w[1].at));
        prop_assert!(packets.iter().all(|p| p.at >= flow.start && p.at < flow.stop));
        prop_assert!(packets.iter().all(|p| (28..=1500).contains(&p.bytes)));
    }
}

#[test]
fn a_stream_goes_over_udp_unless_it_names_a_transport() {
    let stream = |keys: &str| {
        small(&format!("[[flow]]\nname = \"f\"\nfrom = \"W\"\nto = \"S\"\nkind = \"video\"\n{keys}\n[wifi]"))
    };
    assert_eq!(parse(&stream(""), &[]).unwrap().flows[0].transport(), None);
    let home = parse(&stream("cc = \"reno\"\nmss = \"960B\""), &[]).unwrap();
    let tcp = home.flows[0].transport().unwrap();
    assert_eq!((tcp.cc, tcp.mss, tcp.sack), (CongestionControl::Reno, Bytes(960), true));
    let lost = refusal(&stream("sack = false"), &[]);
    assert!(lost.contains("flow.f.sack: is a key of a transport, and this stream goes over UDP"), "{lost}");
    let foreign = refusal(&stream("bytes = \"1MiB\""), &[]);
    assert!(foreign.contains("a video has no such key"), "{foreign}");
}

#[test]
fn a_wildcard_takes_no_stream_off_udp() {
    let stream = |keys: &str| {
        small(&format!("[[flow]]\nname = \"f\"\nfrom = \"W\"\nto = \"S\"\nkind = \"video\"\n{keys}\n[wifi]"))
    };
    let cc = |text: &str, set: &str| parse(text, &[set]).unwrap().flows[0].transport().map(|tcp| tcp.cc);
    assert_eq!(cc(&stream("cc = \"reno\""), "flow.*.cc=cubic"), Some(CongestionControl::Cubic));
    let none = refusal(&stream(""), &["flow.*.cc=cubic"]);
    assert!(none.contains("no flow that matches `*` has a key `cc`"), "{none}");
    assert_eq!(cc(&stream(""), "flow.f.cc=cubic"), Some(CongestionControl::Cubic));
    assert_eq!(cc(&stream("cc = \"reno\""), "flow.f.cc=none"), None);
}

#[test]
fn a_split_connection_has_a_buffer_and_no_snoop_beside_it() {
    let split = |set: &[&str]| parse(&small_wifi(""), set).unwrap().control.split.map(|split| split.buffer);
    assert_eq!((split(&[]), split(&["control.split={}"])), (None, Some(Bytes(64 << 10))));
    assert_eq!(split(&["control.split.buffer=16KiB"]), Some(Bytes(16 << 10)));
    let both = refusal(&small_wifi("[control.split]\n[control.snoop]"), &[]);
    assert!(both.contains("control.split: stands beside [control.snoop]"), "{both}");
    let none = refusal(&small_wifi(""), &["control.split.buffer=1KiB"]);
    assert!(none.contains("control.split.buffer: is less than"), "{none}");
}

//! Keys of 802.11n, ac and ax, and classes of flows.

use lasthop_core::packet::AccessCategory;
use lasthop_medium::{Ampdu, MissedBlockAck};

use super::*;

/// The lines of the schema's keys of 802.11n, ac and ax.
fn keys_with_classes() -> Vec<&'static str> {
    let (_, after) = SCHEMA.split_once("# Keys of 802.11n, ac and ax.").unwrap();
    let lines = after.split("\n\n").next().unwrap().lines().filter_map(|line| line.strip_prefix("#   "));
    lines.filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase())).collect()
}

#[test]
fn every_key_of_new_radios_stands_in_the_schema_with_its_default() {
    let named: Vec<&str> = keys_with_classes().iter().map(|line| line.split(' ').next().unwrap()).collect();
    let of_air = ["band", "missed_block_ack", "rts_for_aggregates", "edca", "station_edca"];
    assert_eq!(named, radio::KEYS.into_iter().chain(of_air).collect::<Vec<_>>());
    // As shown they are those of two streams of 802.11ac; all but these and the MCS are its defaults.
    let ac = "standard = \"802.11ac\"\n";
    let shown = small_wifi(&format!("{ac}{}", keys_with_classes().join("\n")));
    let bare = small_wifi(&format!("{ac}streams = 2\nmcs = 9"));
    assert_eq!(wifi(&parse(&shown, &[]).unwrap()), wifi(&parse(&bare, &[]).unwrap()));
    let station = keys_with_classes()[..6].join("\n");
    let station = format!("{}\n[wifi]\n{ac}", small(&station));
    let home = parse(&station, &[]).unwrap();
    assert_eq!(home.stations[0].sending.rate.bit_rate().as_mbps_f64().round(), 780.0);
}

#[test]
fn a_mode_follows_from_its_keys_and_stations_take_over_what_they_know() {
    let rates = |air: &str, set: &[&str]| {
        let text = small_wifi(&format!("{air}\n[[station]]\nname = \"T\""));
        let home = parse(&text, set).unwrap_or_else(|error| panic!("{air} {set:?}: {error}"));
        home.stations.iter().map(|s| s.sending.rate.bit_rate().as_mbps_f64()).collect::<Vec<f64>>()
    };
    let near = |found: Vec<f64>, right: [f64; 2]| {
        assert!(found.iter().zip(right).all(|(found, right)| (found - right).abs() < 0.06), "{found:?} for {right:?}");
    };
    near(rates("standard = \"802.11n\"", &[]), [65.0, 65.0]);
    near(rates("standard = \"802.11n\"", &["wifi.mcs=3", "station.T.mcs=0"]), [26.0, 6.5]);
    let ac = "standard = \"802.11ac\"\nstreams = 2\nguard_interval = \"400ns\"";
    near(rates(ac, &[]), [866.7, 866.7]);
    near(rates(ac, &["station.T.standard=802.11n"]), [866.7, 300.0]);
    near(rates(ac, &["station.T.width=20MHz", "station.T.mcs=8"]), [866.7, 173.3]);
    // There is no MCS 9 at 20 MHz with one stream; the highest is taken.
    near(rates("standard = \"802.11ac\"\nwidth = \"20MHz\"", &[]), [78.0, 78.0]);
    let ax = "standard = \"802.11ax\"\nband = \"2.4GHz\"\nguard_interval = \"3200ns\"";
    near(rates(ax, &["station.T.standard=802.11n"]), [121.9, 65.0]);
    near(rates(ax, &["station.T.standard=802.11g", "station.T.rate=6Mbit/s"]), [121.9, 6.0]);
    let home = parse(&small_wifi(ax), &["station.S.standard=802.11b"]).unwrap();
    assert!(wifi(&home).protection && home.stations[0].sending.ampdu.is_none());
}

#[test]
fn aggregates_and_classes_reach_the_medium() {
    let medium = |air: &str, set: &[&str]| parse(&small_wifi(air), set).unwrap().medium();
    let ampdu = |air: &str, set: &[&str]| medium(air, set).1[0].ampdu;
    let n = "standard = \"802.11n\"";
    let usual = Ampdu { bytes: 65_535, packets: 64, time: Ampdu::LONGEST, window: 64 };
    assert_eq!(ampdu(n, &[]), Some(usual));
    assert_eq!(ampdu(n, &["wifi.ampdu.packets=32"]), Some(Ampdu { packets: 32, ..usual }));
    assert_eq!((ampdu(n, &["wifi.ampdu=off"]), ampdu(n, &["station.S.ampdu=off"])), (None, None));
    assert_eq!(ampdu(n, &["wifi.ampdu=off", "wifi.ampdu.packets=32"]), Some(Ampdu { packets: 32, ..usual }));
    let ax = "standard = \"802.11ax\"";
    let wide = Ampdu { packets: 256, window: 256, ..usual };
    assert_eq!((ampdu(ax, &[]), ampdu(ax, &["station.S.standard=802.11n"])), (Some(wide), Some(usual)));
    assert_eq!(ampdu(ax, &["wifi.ampdu.window=64"]), Some(usual));
    let long = ["wifi.ampdu.bytes=1048575", "wifi.ampdu.time=2ms", "wifi.amsdu=11406B"];
    let (params, stations) = medium("standard = \"802.11ac\"\nmissed_block_ack = \"bar\"", &long);
    assert_eq!(stations[0].ampdu, Some(Ampdu { bytes: 1_048_575, time: Span::from_millis(2), ..usual }));
    assert_eq!((stations[0].amsdu_bytes, params.missed_block_ack), (11_406, MissedBlockAck::Bar));

    let set = ["wifi.edca.BE.cw_max=1023", "wifi.station_edca.VO.aifsn=5", "station.S.edca.VI.lifetime=40ms"];
    let (params, stations) = medium(n, &set);
    assert_eq!((params.edca[2].cw_max, params.edca[1].cw_min), (1023, 7));
    assert_eq!((stations[0].edca[0].aifsn, stations[0].edca[1].lifetime), (5, Some(Span::from_millis(40))));
    assert_eq!((params.queue_limit, stations[0].queue_limit, params.attempts), (1000, 128, 30));
    assert_eq!(medium(ax, &[]).1[0].queue_limit, 512);
}

#[test]
fn what_a_standard_lacks_is_refused_and_said() {
    let ax = |keys: &str| format!("standard = \"802.11ax\"\n{keys}");
    let n = |keys: &str| format!("standard = \"802.11n\"\n{keys}");
    let ac = |keys: &str| format!("standard = \"802.11ac\"\n{keys}");
    let cases = [
        (
            n("mcs = 9"),
            "802.11n has no MCS 9 at 20MHz with 1 streams; it has 0 to 7; for HT MCS 9 write mcs = 1 and streams = 2",
        ),
        (ac("width = \"20MHz\"\nmcs = 9"), "802.11ac has no MCS 9 at 20MHz with 1 streams; it has 0 to 8"),
        (ac("streams = 3\nmcs = 6"), "802.11ac has no MCS 6 at 80MHz with 3 streams; it has 0 to 9 but 6"),
        (n("width = \"80MHz\""), "wifi.width: 802.11n is at most 40MHz wide"),
        (ax("band = \"2.4GHz\"\nwidth = \"160MHz\""), "wifi.width: 802.11ax is at most 40MHz wide at 2.4 GHz"),
        (ac("band = \"2.4GHz\""), "wifi.band: 802.11ac is of 5 GHz"),
        (ax("guard_interval = \"400ns\""), "no guard interval of 400ns; it has 800ns, 1600ns, 3200ns"),
        (n("rate = \"65Mbit/s\""), "the rate of 802.11n follows from mcs, streams, width and guard_interval"),
        (n("ampdu = { bytes = 100000 }"), "wifi.ampdu.bytes: `100000` stands here; write an integer from 1 to 65535"),
        (n("ampdu = { window = 256 }"), "wifi.ampdu.window: 802.11n has windows of 64 MPDUs"),
        (ax("ampdu = { window = 64, packets = 65 }"), "wifi.ampdu.packets: 65 MPDUs do not fit"),
        (n("ampdu = { time = \"6ms\" }"), "wifi.ampdu.time: 6ms is longer than a frame may be"),
        (n("amsdu = \"11406B\""), "wifi.amsdu: 802.11n has A-MSDUs of at most 7935B"),
        (n("edca = { VO = { cw_min = 4 } }"), "wifi.edca.VO.cw_min: 4 is no contention window"),
        (n("edca = { BE = { cw_max = 7 } }"), "wifi.edca.BE.cw_max: 7 is below cw_min = 15"),
        (n("hidden = true"), "wifi.hidden: hidden stations are carried with 802.11b and g only"),
        (n("timing = \"ns2-g\""), "wifi.timing: ns2-g is a timing of 802.11g"),
        ("timing = \"ns3\"".to_owned(), "wifi.timing: ns3 is a timing of 802.11n, ac and ax"),
        (n("control_rate = \"1Mbit/s\""), "wifi.control_rate: is a rate of 2.4 GHz"),
        ("mcs = 3".to_owned(), "wifi.mcs: 802.11g has no such thing"),
        ("missed_block_ack = \"bar\"".to_owned(), "wifi.missed_block_ack: 802.11g has no such thing"),
        ("band = \"5GHz\"".to_owned(), "wifi.band: 802.11g is of 2.4 GHz"),
    ];
    for (keys, right) in cases {
        let error = refusal(&small_wifi(&keys), &[]);
        assert!(error.contains(right), "{keys}: {error}");
    }
    let station = |air: &str, set: &str| refusal(&small_wifi(air), &[set]);
    assert!(station("standard = \"802.11n\"", "station.S.standard=802.11ax").contains("make [wifi] 802.11ax"));
    assert!(station("standard = \"802.11n\"", "station.S.standard=802.11g").contains("band = \"2.4GHz\""));
    assert!(station("standard = \"802.11n\"", "station.S.width=40MHz").contains("the cell is 20MHz wide"));
    assert!(station("", "station.S.edca.VO.aifsn=3").contains("802.11g has no such thing"));
    assert!(station("standard = \"802.11ax\"", "station.S.rate=54Mbit/s").contains("follows from mcs"));
}

#[test]
fn a_flow_has_the_class_of_its_code_point() {
    let flow = "[[flow]]\nname = \"f\"\nfrom = \"W\"\nto = \"S\"\nkind = \"voip\"\n";
    let class = |set: &[&str]| parse(&small_wifi(flow), set).unwrap().flows[0].class;
    assert_eq!(class(&[]), AccessCategory::Be);
    for (set, right) in [
        ("flow.f.dscp=46", AccessCategory::Vo),
        ("flow.f.dscp=EF", AccessCategory::Vo),
        ("flow.f.dscp=af41", AccessCategory::Vi),
        ("flow.f.dscp=CS1", AccessCategory::Bk),
        ("flow.f.dscp=0", AccessCategory::Be),
        ("flow.f.class=VO", AccessCategory::Vo),
        ("flow.*.class=BK", AccessCategory::Bk),
    ] {
        assert_eq!(class(&[set]), right, "{set}");
    }
    let refused = |set: &[&str]| refusal(&small_wifi(flow), set);
    assert!(refused(&["flow.f.dscp=64"]).contains("flow.f.dscp: 64 is no code point; write 0 to 63 or one of CS0"));
    assert!(refused(&["flow.f.class=V"]).contains("write one of VO, VI, BE, BK"));
    assert!(refused(&["flow.f.class=VO", "flow.f.dscp=46"]).contains("stands beside dscp"));
}

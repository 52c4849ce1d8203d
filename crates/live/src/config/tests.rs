use super::*;

fn error(text: &str) -> String {
    Config::parse(text, "lasthop.toml").unwrap_err().to_string()
}

#[test]
fn the_sample_parses_to_the_defaults_and_shows_every_key() {
    assert_eq!(Config::parse(Config::sample(), "sample").unwrap(), Config::default());
    for key in super::read::KEYS {
        let shows = |l: &str| l == format!("[{key}]") || l.trim_start_matches("# ").starts_with(&format!("{key} = "));
        assert!(Config::sample().lines().any(shows), "the sample lacks {key}");
    }
    let (_, table) = Config::sample().split_once("\n[law]\n").unwrap();
    for parameter in Law::PARAMETERS {
        assert!(table.contains(&format!("\n{} = ", parameter.name)), "the sample lacks law.{}", parameter.name);
    }
}

/// Every key, none at its default.
pub(super) const EVERY_KEY: &str = r#"
        lan = ["wlan0", "lan1"]
        wan = "eth0"
        capacity = "23Mbit/s"
        link = "24Mbit/s"
        interval = "100ms"
        share = "equal"
        udp_weight = 1
        rtt = "80ms"
        queue = "4ms"
        growth = "2ms"
        flows = 0x1000
        idle = "60s"
        attach = "clsact"
        windows = false
        window_updates = false
        queueing = "chap"
        datapath = "user"
        snoop = true
        snoop_timer = "60ms"
        snoop_retries = 2
        snoop_duplicates = 2
        snoop_connections = 100
        snoop_connection_bytes = "64KiB"
        snoop_bytes = "1MiB"
        packet_time = "177us"
        increment = "2ms"
        flow_key = "hosts"
        limit = 350
        duplex = "full"
        levers = ["txop", "class"]
        mac = "auto"
        mac_queue = 1000
        dry_run = true
        socket = "/tmp/x.sock"
        socket_group = "lasthop"
        log_format = "json"
        [law]
        gain = 1
        queue_target = 0.003
    "#;

#[test]
fn every_key_takes_effect() {
    let expected = Config {
        lan: vec!["wlan0".parse().unwrap(), "lan1".parse().unwrap()],
        wan: Some("eth0".parse().unwrap()),
        capacity: Capacity::Rate(BitRate::mbps(23)),
        link: Some(BitRate::mbps(24)),
        interval: Some(Span::from_millis(100)),
        share: ShareRule::Equal,
        udp_weight: 1.0,
        rtt: RttSource::Constant(Span::from_millis(80)),
        law: Law { gain: 1.0, queue_target: 0.003, growth_time: 0.002, ..Law::default() },
        flows: 4096,
        idle: Span::from_secs(60),
        attach: AttachMode::Clsact,
        windows: false,
        window_updates: false,
        queueing: Queueing::Chap,
        datapath: Datapath::User,
        snoop: true,
        snoop_params: lasthop_core::snoop::Params {
            least_timer: Span::from_millis(60),
            retries: 2,
            duplicates: 2,
            connections: 100,
            connection_bytes: 64 << 10,
            bytes: 1 << 20,
            ..lasthop_core::snoop::Params::default()
        },
        chap: qdisc::Settings {
            increment: Span::from_millis(2),
            flow_kind: qdisc::FlowKind::Hosts,
            limit: 350,
            packet_time: Span::from_micros(177),
        },
        duplex: Duplex::Full,
        levers: vec![Lever::Class, Lever::Txop],
        mac: true,
        mac_queue: Some(1_000),
        dry_run: true,
        socket: "/tmp/x.sock".into(),
        socket_group: "lasthop".to_owned(),
        log_format: log::Format::Json,
        warnings: Vec::new(),
    };
    assert_eq!(Config::parse(EVERY_KEY, "x").unwrap(), expected);
}

#[test]
fn an_unknown_key_is_refused_with_line_and_nearest_key() {
    assert_eq!(
        error("lan = [\"wlan0\"]\n\ncapacty = \"1Mbit/s\"\n"),
        "lasthop.toml:3: capacty: there is no such key; did you mean `capacity`?"
    );
    assert!(error("zzz = 1").contains("--print-config"));
}

#[test]
fn a_wrong_value_says_what_would_be_right() {
    assert_eq!(
        error("capacity = \"fast\""),
        "lasthop.toml:1: capacity: `fast` is not a rate; \
         write \"learn\", a rate (\"23Mbit/s\"), or a share of the link (\"98%\")"
    );
    assert_eq!(error("interval = \"5s\""), "lasthop.toml:1: interval: 5s is out of range; write 20ms to 1s");
    assert_eq!(
        error("udp_weight = 2"),
        "lasthop.toml:1: udp_weight: the number 2 is not right here; write a number above 0 and up to 1"
    );
    for (text, right) in [
        ("share = \"fair\"", "\"max-min\" or \"equal\""),
        ("capacity = \"120%\"", "98%"),
        ("capacity = 23", "23Mbit/s"),
        ("flows = 7", "1024 to 1048576"),
        ("socket = \"here\"", "absolute path"),
        ("dry_run = \"yes\"", "true or false"),
        ("lan = [1]", "[\"wlan0\"]"),
        ("lan = [\"auto\", \"wlan0\"]", "\"auto\", or a list"),
        ("lan = \"a/b\"", "ip link"),
        ("rtt = \"soon\"", "\"measured\""),
        ("interval = 200", "\"200ms\""),
    ] {
        assert!(error(text).contains(right), "{text}: {}", error(text));
    }
}

#[test]
fn the_law_is_set_in_plain_numbers_and_reaches_who_decides() {
    for parameter in Law::PARAMETERS {
        let text = format!("[law]\n{} = {}\n", parameter.name, parameter.without);
        let mut expected = Law::default();
        expected.set(parameter.name, parameter.without).unwrap();
        let config = Config::parse(&text, "x").unwrap();
        assert_eq!(config.law, expected);
        assert_eq!(config.params(None).law, expected);
    }
    let config = Config::parse("queue = \"4ms\"\ngrowth = \"2ms\"\nlaw.growth_part = 0\n", "x").unwrap();
    assert_eq!((config.law.queue_target, config.law.growth_time), (0.004, 0.002));
    for capacity in [None, Some(BitRate::mbps(20))] {
        assert_eq!(config.params(capacity).law, config.law);
    }
}

#[test]
fn a_parameter_of_the_law_is_read_by_the_name_that_it_had_before() {
    let old = Config::parse("[law]\nstanding = 0.25\nstands = 0.5\n", "x").unwrap();
    let new = Config::parse("[law]\nstanding_weight = 0.25\nstanding_threshold = 0.5\n", "x").unwrap();
    assert_eq!((old.law, old.law.standing_weight), (new.law, 0.25));
    assert_eq!((old.warnings.len(), new.warnings), (2, vec![]));
}

#[test]
fn a_key_that_was_renamed_is_read_with_a_warning_that_says_what_to_write() {
    let renamed = [
        super::read::Renamed { old: "rate", new: "capacity", until: "0.3" },
        super::read::Renamed { old: "law.strength", new: "law.gain", until: "0.3" },
    ];
    let read = |text| super::read::parse_with(&renamed, text, "lasthop.toml");
    let config = read("\nrate = \"20Mbit/s\"\n[law]\nstrength = 0.4\n").unwrap();
    assert_eq!((config.capacity, config.law.gain), (Capacity::Rate(BitRate::mbps(20)), 0.4));
    assert_eq!(
        config.warnings,
        [
            "lasthop.toml:2: rate: this key is called `capacity` now; write that, for versions after 0.3 refuse the old name",
            "lasthop.toml:4: law.strength: this key is called `law.gain` now; write that, for versions after 0.3 refuse the old name"
        ]
    );
    let refused = read("rate = \"fast\"\n").unwrap_err().to_string();
    assert!(refused.starts_with("lasthop.toml:1: rate: "), "by the name that is written: {refused}");
    assert!(error("rate = \"20Mbit/s\"").contains("there is no such key"));
}

#[test]
fn old_names_go_with_the_version_that_was_promised_and_lead_to_keys_that_are_there() {
    let mut names = super::read::KEYS.map(str::to_owned).to_vec();
    names.extend(Law::PARAMETERS.iter().map(|parameter| format!("law.{}", parameter.name)));
    for renamed in super::read::RENAMED {
        let super::read::Renamed { old, new, until } = renamed;
        assert!(names.iter().any(|name| name == new) && !names.iter().any(|name| name == old), "{old} {new}");
        assert!(env!("CARGO_PKG_VERSION").starts_with(&format!("{until}.")), "{old} is over: take its row out");
    }
}

#[test]
fn a_wrong_parameter_of_the_law_says_what_would_be_right() {
    assert_eq!(error("[law]\n\ngian = 1\n"), "lasthop.toml:3: law.gian: there is no such key; did you mean `gain`?");
    assert_eq!(error("[law]\ngain = 9\n"), "lasthop.toml:2: law.gain: gain is 9; it must be from 0 to 3");
    assert_eq!(
        error("[law]\nqueue_target = \"2ms\"\n"),
        "lasthop.toml:2: law.queue_target: `2ms` is not right here; write a plain number, such as 0.5"
    );
    assert!(error("law = 3").contains("[law]"));
    assert!(error("[law]\ngain = nan\n").contains("law.gain: gain is NaN"));
}

#[test]
fn what_is_not_toml_names_its_line() {
    assert!(error("lan = []\ncapacity = \n").starts_with("lasthop.toml:2: "));
}

#[test]
fn a_share_needs_a_link_and_says_what_to_type() {
    let capacity = Capacity::Share(0.98);
    let mut config = Config { lan: vec!["wlan0".parse().unwrap()], capacity, ..Config::default() };
    let message = config.capacity_of(|| None).unwrap_err().to_string();
    assert!(message.contains("wlan0") && message.contains("capacity = \"learn\""), "{message}");
    assert_eq!(config.capacity_of(|| Some(BitRate::mbps(100))).unwrap(), Some(BitRate::mbps(98)));
    config.link = Some(BitRate::mbps(50));
    assert_eq!(config.capacity_of(|| Some(BitRate::mbps(100))).unwrap(), Some(BitRate::mbps(49)));
}

#[test]
fn without_any_number_the_capacity_is_learned_and_one_that_is_given_is_decided_about_as_often() {
    let mut config = Config { lan: vec!["no-such-radio".parse().unwrap()], ..Config::default() };
    assert_eq!((config.capacity().unwrap(), config.interval()), (None, Span::from_millis(50)));
    assert_eq!(Config::parse("capacity = \"learn\"", "x").unwrap(), Config::default());
    let params = config.params(None);
    assert_eq!((params.capacity, params.interval), (None, Span::from_millis(50)));
    assert_eq!(params.duplex, lasthop_core::ap::Duplex::Half, "what is not there yet may be a radio");
    config.duplex = Duplex::Full;
    assert_eq!(config.params(None).duplex, lasthop_core::ap::Duplex::Full);
    config.capacity = Capacity::Rate(BitRate::mbps(20));
    assert_eq!(config.interval(), Span::from_millis(50));
    config.share = ShareRule::Equal;
    assert_eq!(config.interval(), Span::from_millis(200), "the paper's");
    config.interval = Some(Span::from_millis(100));
    assert_eq!(config.params(Some(BitRate::mbps(20))).interval, Span::from_millis(100));
}

#[test]
fn without_a_name_the_interfaces_are_found() {
    for text in ["", "lan = \"auto\"", "lan = []"] {
        assert!(Config::parse(text, "x").unwrap().lan.is_empty(), "{text}");
    }
    assert_eq!(
        Config::default().params(None).duplex,
        lasthop_core::ap::Duplex::Half,
        "until they are, it is as on radio"
    );
    let message =
        Config { capacity: Capacity::Share(0.5), ..Config::default() }.capacity_of(|| None).unwrap_err().to_string();
    assert!(message.contains("yet to be found"), "{message}");
}

#[test]
fn one_radio_makes_the_last_hop_shared_by_both_directions() {
    use lasthop_core::ap::Duplex::{Full, Half};
    assert_eq!((Duplex::Auto.of([false, true]), Duplex::Auto.of([false]), Duplex::Auto.of([])), (Half, Full, Half));
    assert_eq!((Duplex::Half.of([false]), Duplex::Full.of([true])), (Half, Full));
}

#[test]
fn interfaces_that_cannot_be_what_they_are_named_as_are_refused() {
    let refused = |text| Config::parse(text, "x").unwrap().check_interfaces().unwrap_err().to_string();
    assert!(refused("lan = [\"wlan0\", \"lo\"]").contains("loopback"));
    assert!(refused("lan = \"eth0\"\nwan = \"eth0\"").contains("as LAN and as WAN"));
}

#[test]
fn equal_shares_are_of_something_that_was_given() {
    let config = Config { share: ShareRule::Equal, ..Config::default() };
    assert!(config.check_capacity().unwrap_err().to_string().contains("capacity = \"20Mbit/s\""));
    let config = Config { capacity: Capacity::Rate(BitRate::mbps(20)), ..config };
    assert!(config.check_capacity().is_ok());
}

#[test]
fn any_text_is_read_or_refused_but_never_breaks_the_reader() {
    use proptest::prelude::*;
    proptest!(|(text in "(lan|capacity|link|x)? ?=? ?[\\[\\]\"0-9a-zA-Z%./ \n]{0,40}")| {
        let _ = Config::parse(&text, "x");
    });
}

#[test]
fn repair_of_losses_needs_a_queue_in_this_process() {
    let config = Config { snoop: true, ..Config::default() };
    assert_eq!(config.queue_in_force(), Queueing::FqCodel);
    assert!(config.check_queue().is_ok());
    let config = Config { queueing: Queueing::Chap, ..config };
    assert_eq!(config.queue_in_force(), Queueing::Chap);
    let refused = Config { datapath: Datapath::Kernel, ..config }.check_queue().unwrap_err();
    assert!(refused.to_string().contains("datapath = \"user\""), "{refused}");
}

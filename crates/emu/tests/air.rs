//! Homes on 802.11n, ac and ax with real packets: what kernels are handed together, classes, queues, changes, programs.

mod common;

use common::{open_to_all, scenario, turn, valid_run, with_cause};
use lasthop_emu::{Options, Outcome, run};
use lasthop_home::report::{FlowReport, Report};
use std::process::{Command, Stdio};

/// A home whose air is `wifi`, with a line of 200 Mbit/s.
fn home(wifi: &str, flows: &str) -> String {
    format!(
        "format = 1\nname = \"test\"\nduration = \"2.5s\"\nmeasure_from = \"1s\"\n[wan]\ndelay = \"4ms\"\nrate_down = \"200Mbit/s\"\n\
         rate_up = \"200Mbit/s\"\nbuffer_down = 1000\nbuffer_up = 1000\n[[server]]\nname = \"W\"\ndelay = \"6ms\"\n[wifi]\n{wifi}\n\
         [[station]]\nname = \"N\"\n[[station]]\nname = \"G\"\n{flows}"
    )
}

fn flow(name: &str, (from, to): (&str, &str), kind: &str, more: &str) -> String {
    format!("[[flow]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\nkind = \"{kind}\"\n{more}\n")
}

const DOWN: (&str, &str) = ("W", "N");
const UP: (&str, &str) = ("N", "W");

const AIRS: [&str; 3] = [
    "standard = \"802.11n\"\nband = \"2.4GHz\"\nstreams = 2",
    "standard = \"802.11ac\"\nstreams = 1",
    "standard = \"802.11ax\"\nwidth = \"40MHz\"\nstreams = 1\nmcs = 9\nqueue = { kind = \"mac80211\" }",
];

fn of<'a>(report: &'a Report, name: &str) -> &'a FlowReport {
    report.flow(name).unwrap_or_else(|| panic!("no flow {name}"))
}

/// MPDUs and PPDUs of a class of a node.
fn sent(report: &Report, node: &str, class: &str) -> (u64, u64) {
    let of_class = |node: &lasthop_home::report::StationReport| {
        node.classes.iter().find(|it| it.class == class).map_or((0, 0), |it| (it.mpdus, it.ppdus))
    };
    report.stations.iter().find(|it| it.name == node).map_or((0, 0), of_class)
}

#[test]
fn an_aggregate_is_handed_over_with_few_calls_and_nothing_is_lost_on_the_way() {
    let Some(_turn) = turn("aggregates") else { return };
    for air in AIRS {
        let flows = flow("down", DOWN, "ftp", "") + &flow("game", ("W", "G"), "game-server", "");
        // A line that takes no time for a packet brings what a sender gives it at once, too.
        let text = home(air, &flows).replace("rate_down = \"200Mbit/s\"\nrate_up = \"200Mbit/s\"\n", "");
        let Some(Outcome { report, calls, .. }) = valid_run("aggregates", &scenario(&text)) else { return };
        let (mpdus, ppdus) = sent(&report, "AP", "BE");
        assert!(mpdus > 10 * ppdus, "{air}: {mpdus} MPDUs in {ppdus} frames");
        // One by one each is a call, and those that find nothing more to read come on top.
        let events = report.run.events;
        assert!(2 * calls < events, "{air}: {calls} calls for {events} frames");
        let down = &of(&report, "down").metrics;
        assert!(down.goodput_bps > 60e6 && down.duplicates < 50, "{air}: {down:?}");
        let lost = down.lost.total();
        assert!(down.sent - down.delivered - lost < 3000, "{air}: {down:?}");
        let game = &of(&report, "game").metrics;
        assert!(game.sent - game.delivered <= 2 && game.delay.is_some_and(|delay| delay.min > 10.0), "{air}: {game:?}");
    }
}

#[test]
fn every_datagram_on_an_air_with_classes_is_delivered_or_lost_at_a_place() {
    let Some(_turn) = turn("conservation with classes") else { return };
    // 60 + 30 Mbit/s into an air that carries some 20.
    let air = "standard = \"802.11n\"\nmcs = 2\nloss = { kind = \"fixed\", rate = 0.1 }\nattempts = 4\n\
               queue = { kind = \"fifo\", limit = 50 }\nstation_queue = { kind = \"fifo\", limit = 50 }";
    let flows = flow("down", DOWN, "cbr", "rate = \"60Mbit/s\"\nstop = \"2s\"")
        + &flow("up", UP, "cbr", "rate = \"30Mbit/s\"\nstop = \"2s\"\nclass = \"BK\"");
    let Some(Outcome { report, .. }) = valid_run("conservation with classes", &scenario(&home(air, &flows))) else {
        return;
    };
    for name in ["down", "up"] {
        let it = &of(&report, name).metrics;
        assert_eq!(it.sent, it.delivered + it.lost.total(), "{name}: {it:?}");
    }
    assert!(of(&report, "down").metrics.lost.ap_queue > 100 && of(&report, "up").metrics.lost.station_queue > 100);
}

#[test]
fn the_class_is_that_of_the_code_point_in_both_directions() {
    let Some(_turn) = turn("classes by code point") else { return };
    let flows = flow("call", DOWN, "voip", "dscp = \"EF\"")
        + &flow("film", ("W", "G"), "cbr", "rate = \"2Mbit/s\"\nclass = \"VI\"")
        + &flow("backup", UP, "ftp", "class = \"BK\"");
    let Some(Outcome { report, .. }) = valid_run("classes by code point", &scenario(&home(AIRS[1], &flows))) else {
        return;
    };
    let call = of(&report, "call").metrics.delivered;
    assert!(sent(&report, "AP", "VO").0 >= call && call > 50, "{:?}", report.stations);
    assert!(sent(&report, "AP", "VI").0 >= of(&report, "film").metrics.delivered);
    // The kernel's answers have the class of what they answer.
    assert!(sent(&report, "N", "BK").0 > 1000 && sent(&report, "AP", "BK").0 > 100, "{:?}", report.stations);
    assert_eq!(sent(&report, "N", "VO").0, 0);
}

#[test]
fn the_priority_that_a_host_gives_goes_before_the_code_point() {
    let Some(_turn) = turn("priorities") else { return };
    if Command::new("socat").arg("-V").stdout(Stdio::null()).status().is_err() {
        eprintln!("SKIPPED: priorities: the program socat is not installed");
        return;
    }
    // A datagram of each user priority that names a class, one without, and one whose number is no user priority.
    let send = |priority: u32, times: usize| {
        format!("for i in $(seq {times}); do echo x | socat -u - UDP:$LASTHOP_W:9,tos=0xb8,priority={priority}; done; ")
    };
    let words =
        [(262, 3), (261, 5), (256, 7), (258, 9), (0, 11), (300, 2)].map(|(priority, n)| send(priority, n)).concat();
    let text = home(AIRS[1], "").replace("\"2.5s\"", "\"60s\"").replace("measure_from = \"1s\"\n", "");
    let options = Options { exec_as_root: vec![("N".into(), words)], end_with: Some("N".into()), ..Options::default() };
    let outcome = run(&scenario(&text), options).unwrap_or_else(|e| panic!("{}", with_cause(&e)));
    assert_eq!(outcome.programs[0].code, Some(0));
    let of = |class| sent(&outcome.report, "N", class).0;
    // Without a user priority EF is VO.
    assert_eq!((of("VO"), of("VI"), of("BE"), of("BK")), (3 + 11 + 2, 5, 7, 9), "{:?}", outcome.report.stations);
}

#[test]
fn what_changes_in_the_air_changes_the_download() {
    let Some(_turn) = turn("change of a mode") else { return };
    let change = "[[change]]\nat = \"1s\"\nset = { \"station.N.mcs\" = 0 }\n";
    let text = home(AIRS[1], &(flow("down", DOWN, "cbr", "rate = \"100Mbit/s\"") + change));
    let Some(Outcome { report, .. }) = valid_run("change of a mode", &scenario(&text)) else { return };
    let down = of(&report, "down");
    // 29.3 Mbit/s are left of 390.
    assert!(down.start_up.rate_bps > 95e6, "{down:?}");
    assert!((15e6..30e6).contains(&down.metrics.rate_bps), "{down:?}");
}

#[test]
fn a_rate_control_finds_its_rate_over_a_channel_with_errors() {
    let Some(_turn) = turn("rate control") else { return };
    let air = "standard = \"802.11n\"\nrate_control = \"minstrel_ht\"\nloss = { kind = \"snr\" }";
    let near = "\nsnr = \"16dB\"\n[[station]]\nname = \"G\"";
    // Longer than others here: a slow start and a first look at the rates are no measure of what they find.
    let text = home(air, &flow("down", DOWN, "ftp", "")).replace("\n[[station]]\nname = \"G\"", near);
    let text = text.replace("\"2.5s\"", "\"6s\"").replace("\"1s\"", "\"3s\"");
    let Some(Outcome { report, .. }) = valid_run("rate control", &scenario(&text)) else { return };
    // ns-3's, saturated uploads at 16 dB: 35 Mbit/s (the book's chapter on rates and losses).
    let down = &of(&report, "down").metrics;
    assert!((20e6..40e6).contains(&down.goodput_bps), "{down:?}");
}

#[test]
fn bytes_of_a_program_arrive_as_they_were_sent() {
    let Some(_turn) = turn("bytes of a program") else { return };
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("SKIPPED: bytes of a program: the program curl is not installed");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    open_to_all(folder.path());
    let there = folder.path().display();
    let made = format!("head -c 20000000 /dev/urandom >{there}/file");
    assert!(Command::new("sh").args(["-c", &made]).status().expect("a shell").success());
    // Losses of MPDUs, so that segments come in pieces; marks, so that headers differ.
    let air = format!("{}\nloss = {{ kind = \"fixed\", rate = 0.05 }}\nattempts = 3", AIRS[2]);
    let exec = vec![
        ("W".to_owned(), format!("cd {there} && PATH=/usr/bin:/bin exec python3 -m http.server 8000")),
        (
            "N".to_owned(),
            format!(
                "curl -s --retry-connrefused --retry 20 --retry-delay 1 -o {there}/down http://$LASTHOP_W:8000/file && cmp {there}/file {there}/down"
            ),
        ),
    ];
    let text = home(&air, "").replace("\"2.5s\"", "\"60s\"").replace("measure_from = \"1s\"\n", "");
    let pcap = folder.path().join("home.pcapng");
    let options = Options { exec, pcap: Some(pcap.clone()), end_with: Some("N".into()), ..Options::default() };
    let outcome = run(&scenario(&text), options).unwrap_or_else(|e| panic!("{}", with_cause(&e)));
    assert_eq!(
        outcome.programs.iter().find(|it| it.host == "N").and_then(|it| it.code),
        Some(0),
        "{:?}",
        outcome.programs
    );
    let Ok(read) = Command::new("tcpdump").args(["-vv", "-n", "-r"]).arg(&pcap).output() else {
        eprintln!("SKIPPED: part of bytes of a program: tcpdump is not installed");
        return;
    };
    let said = String::from_utf8_lossy(&read.stdout);
    assert!(said.contains("cksum") && !said.contains("incorrect") && !said.contains("bad cksum"), "a wrong checksum");
    let longest =
        said.lines().filter_map(|line| line.split_once(", length ")?.1.split(')').next()?.parse::<u32>().ok());
    assert!(longest.max() <= Some(1500), "a capture has packets, as the air does");
}

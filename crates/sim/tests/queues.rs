//! Every queue discipline in a home: who gets what, who waits, what is marked.

mod common;

use common::{flow, home, run};
use lasthop_home::report::Report;

/// A download over 40 ms of wires, deep enough buffers, and a window that does not stop it.
const DOWN: &str = "down W A ftp cc = \"newreno\"; window = 1000";
const GAME: &str = "game W B game-server size = \"200B\"; every = \"50ms\"";
const KINDS: [&str; 7] = ["fifo", "codel", "fq_codel", "red", "drr", "mac80211", "chap"];
/// The access point's queue is never the shortest part of the way, and start-up is over.
const USUAL: [&str; 3] = ["duration=20s", "measure_from=5s", "wifi.queue.limit=350"];

fn with_queue(flows: &[&str], kind: &str, more: &[&str]) -> Report {
    let kind = format!("wifi.queue.kind={kind}");
    let set: Vec<&str> = USUAL.iter().copied().chain([kind.as_str()]).chain(more.iter().copied()).collect();
    run(&home(flows, &set))
}

fn goodput(report: &Report, name: &str) -> f64 {
    flow(report, name).metrics.goodput_bps
}

fn p99(report: &Report, name: &str) -> f64 {
    flow(report, name).metrics.added_delay.as_ref().map_or(f64::NAN, |delay| delay.p99)
}

fn loss(report: &Report, name: &str) -> f64 {
    flow(report, name).metrics.loss_rate.unwrap_or(f64::NAN)
}

/// Sum of the goodput of all flows whose name begins so.
fn total(report: &Report, start: &str) -> f64 {
    report.flows.iter().filter(|flow| flow.name.starts_with(start)).map(|flow| flow.metrics.goodput_bps).sum()
}

#[test]
fn a_download_keeps_95_percent_of_what_it_gets_with_fifo_beside_a_game_and_all_of_it_alone() {
    let plain = with_queue(&[DOWN, GAME], "fifo", &[]);
    let credit = with_queue(&[DOWN, GAME], "chap", &[]);
    let (plain_rate, credit_rate) = (goodput(&plain, "down"), goodput(&credit, "down"));
    assert!(plain_rate > 20e6, "{plain_rate}");
    assert!(credit_rate >= 0.95 * plain_rate, "{credit_rate} of {plain_rate}");
    assert!(p99(&credit, "game") < 0.1 * p99(&plain, "game"), "{} of {}", p99(&credit, "game"), p99(&plain, "game"));

    let plain = goodput(&with_queue(&[DOWN], "fifo", &[]), "down");
    let credit = goodput(&with_queue(&[DOWN], "chap", &[]), "down");
    assert!(credit >= 0.99 * plain, "{credit} of {plain}");
}

#[test]
fn every_kind_carries_a_download_beside_a_game_and_those_that_look_after_flows_keep_the_game_quick() {
    for kind in KINDS {
        let report = with_queue(&[DOWN, GAME], kind, &["seed=3"]);
        let (rate, late) = (goodput(&report, "down"), p99(&report, "game"));
        assert!(rate > 10e6, "{kind}: {rate}");
        if matches!(kind, "fq_codel" | "drr" | "mac80211" | "chap") {
            assert!(late < 6.0, "{kind}: {late} ms");
        }
        assert!(loss(&report, "game") < 0.02, "{kind}");
    }
}

#[test]
fn stations_have_disciplines_of_their_own() {
    let up = ["up A W ftp cc = \"newreno\"; window = 1000", "voice A W game-client"];
    let deep = "wifi.station_queue.limit=350";
    let plain = with_queue(&up, "fifo", &[deep]);
    // CoDel at 5 ms takes a little from a single NewReno flow over 40 ms.
    for (kind, keeps) in [("fq_codel", 0.75), ("drr", 0.75), ("chap", 0.97)] {
        let report = with_queue(&up, "fifo", &[deep, &format!("wifi.station_queue.kind={kind}")]);
        let (rate, usual) = (goodput(&report, "up"), goodput(&plain, "up"));
        assert!(rate > keeps * usual, "{kind}: {rate} of {usual}");
        assert!(p99(&report, "voice") < 0.2 * p99(&plain, "voice"), "{kind}: {}", p99(&report, "voice"));
    }
}

#[test]
fn the_general_path_queues_alike() {
    for kind in KINDS {
        let quick = with_queue(&[DOWN, GAME], kind, &[]);
        let hidden = with_queue(&[DOWN, GAME], kind, &["wifi.hidden=true"]);
        let (a, b) = (goodput(&quick, "down"), goodput(&hidden, "down"));
        assert!((a / b - 1.0).abs() < 0.02, "{kind}: {a} and {b}");
    }
}

#[test]
fn the_same_seed_gives_the_same_report_with_every_kind() {
    for kind in KINDS {
        let [mut a, mut b] = [0, 1].map(|_| with_queue(&[DOWN, GAME], kind, &["duration=6s"]));
        (a.run.wall_s, b.run.wall_s) = (0.0, 0.0);
        assert_eq!(a, b, "{kind}");
    }
}

/// One station has 6 Mbit/s and loses 30 % of its frames; the other one is well.
#[test]
fn a_bad_link_takes_no_more_than_its_share_of_the_air() {
    let heavy = |name: &str, to: &str| format!("{name} V {to} cbr rate = \"30Mbit/s\"; size = \"1500B\"");
    let (good, bad) = (heavy("good", "A"), heavy("bad", "B"));
    let channel = [
        "duration=10s",
        "measure_from=2s",
        "wifi.control_rate=6Mbit/s",
        "wifi.loss={ kind = \"shadowing\", exponent = 4, deviation = \"4dB\" }",
        "station.A.distance=3m",
        "station.B.rate=6Mbit/s",
        "station.B.distance=21.5m",
    ];
    let lossy = with_queue(&[&bad], "fifo", &channel);
    let lost = 1.0 - lossy.stations[0].frames as f64 / lossy.stations[0].attempts as f64;
    assert!((0.25..0.37).contains(&lost), "{lost}");
    let share = |flows: [&str; 2], kind: &str, more: &str| {
        let set: Vec<&str> = channel.iter().copied().chain([more]).collect();
        let alone = goodput(&with_queue(&flows[..1], "fifo", &channel), "good");
        goodput(&with_queue(&flows, kind, &set), "good") / alone
    };
    // Two heavy stations: a fair share is half. With a plain queue the good one gets as many packets as the bad one. A frame
    // of the bad one that takes all its attempts costs several increments, and every boost forgives half of what is owed
    // beyond: with the usual increment the good one misses half by a little, with twice that it does not.
    let (plain, twice) = ("seed=1", "wifi.queue.increment=8ms");
    let greedy = |name: &str, to: &str| format!("{name} V {to} ftp cc = \"newreno\"; window = 1000");
    let (download, poor) = (greedy("good", "A"), greedy("bad", "B"));
    for (flows, least) in [([&good[..], &bad], 0.47), ([&download, &poor], 0.485)] {
        assert!(share(flows, "fifo", plain) < 0.3, "{}", share(flows, "fifo", plain));
        assert!(share(flows, "drr", plain) > 0.5, "{}", share(flows, "drr", plain));
        assert!(share(flows, "chap", plain) > least, "{}", share(flows, "chap", plain));
        assert!(share(flows, "chap", twice) > 0.5, "{}", share(flows, "chap", twice));
    }
}

#[test]
fn equal_heavy_stations_have_equal_air_time() {
    let text = format!("{}[[station]]\nname = \"S\"\ncount = 4\n", common::HOME);
    let flows =
        "[[flow]]\nname = \"f\"\nfrom = \"V\"\nto = \"S\"\nkind = \"cbr\"\nrate = \"20Mbit/s\"\nsize = \"1500B\"\n";
    for rate in ["54Mbit/s", "6Mbit/s"] {
        let set =
            ["wifi.queue.kind=chap".to_owned(), "wifi.queue.limit=350".to_owned(), format!("station.S.1.rate={rate}")];
        let scenario = lasthop_home::scenario::Scenario::parse(&format!("{text}{flows}"), "t.toml", &set).unwrap();
        let report = run(&scenario);
        // Air time of a downlink is the access point's: what a flow got, by what a packet of it takes.
        // The frame, SIFS, the ACK: 254 + 10 + 34 us; at 6 Mbit/s 2078 and 50 us.
        let cost = |name: &str| if name == "f.1" && rate == "6Mbit/s" { 2.138 } else { 0.298 };
        let times: Vec<f64> =
            report.flows.iter().map(|flow| flow.metrics.delivered as f64 * cost(&flow.name)).collect();
        let (sum, squares) = times.iter().fold((0.0, 0.0), |(s, q), t| (s + t, q + t * t));
        let jain = sum * sum / (times.len() as f64 * squares);
        assert!(jain >= 0.98, "{rate}: {jain} of {times:?}");
    }
}

#[test]
fn marks_take_the_place_of_drops() {
    let marked = "down W A ftp cc = \"newreno\"; window = 1000; ecn = true";
    for kind in ["codel", "fq_codel", "red", "drr"] {
        // Beyond twice its maximum RED drops whatever comes, as in slow start; without the gentle rise beyond once.
        let gentle = if kind == "red" { &["wifi.queue.gentle=true"][..] } else { &[] };
        let dropping = with_queue(&[DOWN], kind, gentle);
        let marking = with_queue(&[marked], kind, gentle);
        let (drops, marks) = (&dropping.queues[0], &marking.queues[0]);
        assert!(drops.dropped > 0 && drops.marked == 0, "{kind}: {drops:?}");
        assert!(
            marks.marked > 0 && marks.dropped <= if kind == "red" { drops.dropped } else { drops.dropped / 4 },
            "{kind}: {marks:?} for {drops:?}"
        );
        let (drops, marks) = (goodput(&dropping, "down"), goodput(&marking, "down"));
        assert!(marks > 0.9 * drops, "{kind}: {marks} for {drops}");
        let tcp = flow(&marking, "down").metrics.tcp.unwrap();
        assert!(tcp.cwnd_max < 900.0, "{kind}: {tcp:?}");
    }
}

#[test]
fn credit_and_the_window_control_work_together() {
    let set = ["wifi.queue.kind=chap", "control.window.capacity=20Mbit/s", "duration=15s", "measure_from=5s"];
    let both = run(&home(&[DOWN, GAME], &set));
    let control = both.control.as_ref().unwrap();
    assert!(control.rewritten > 100, "{control:?}");
    assert!(both.queues[0].dropped == 0 && goodput(&both, "down") > 15e6, "{:?}", both.queues[0]);
    assert!(p99(&both, "game") < 6.0, "{}", p99(&both, "game"));
}

#[test]
fn six_connections_are_one_flow_or_six() {
    // Against one other flow, six get six sevenths as connections and half as a pair of hosts.
    let share = |flow: &str| {
        let six = "six V A cbr rate = \"10Mbit/s\"; size = \"1500B\"; count = 6";
        let one = "one V B cbr rate = \"30Mbit/s\"; size = \"1500B\"";
        let report = with_queue(&[six, one], "chap", &[&format!("wifi.queue.flow={flow}"), "duration=10s"]);
        total(&report, "six") / (total(&report, "six") + goodput(&report, "one"))
    };
    let (connections, hosts) = (share("connection"), share("hosts"));
    assert!((connections - 6.0 / 7.0).abs() < 0.02 && (hosts - 0.5).abs() < 0.02, "{connections} and {hosts}");
}

#[test]
fn a_flood_of_small_flows_does_not_starve_a_game() {
    // Thousands of flows of a packet a second each: as peer-to-peer programs have them.
    let flood = "flood V A poisson rate = \"12kbit/s\"; size = \"1500B\"; count = 3000";
    let set = ["duration=8s", "measure_from=2s"];
    let fifo = with_queue(&[flood, GAME], "fifo", &set);
    let chap = with_queue(&[flood, GAME], "chap", &set);
    assert!(loss(&fifo, "game") > 0.1, "{}", loss(&fifo, "game"));
    let (lost, late) = (loss(&chap, "game"), p99(&chap, "game"));
    assert!(lost < 0.01 && late < 10.0, "{lost} and {late} ms");
    assert!(total(&chap, "flood") > 0.9 * total(&fifo, "flood"));
}

/// 1,000 packets of the firmware are 450 ms that no discipline above it has a say in; unless TCP's loss keeps it shorter.
#[test]
fn what_waits_in_firmware_is_beyond_every_discipline() {
    let firmware = ["wifi.firmware_queue=1000"];
    for kind in ["fq_codel", "drr", "chap"] {
        let (bare, behind) = (with_queue(&[DOWN, GAME], kind, &[]), with_queue(&[DOWN, GAME], kind, &firmware));
        let (short, long) = (p99(&bare, "game"), p99(&behind, "game"));
        assert!(short < 6.0 && long > 100.0, "{kind}: {short} and {long} ms");
        let queue = &behind.queues[0];
        assert!(queue.max_packets > 300 && queue.p99_sojourn > 100.0, "{kind}: {queue:?}");
    }
    // A short one costs about what it holds, and leaves the rest to the discipline.
    let short = p99(&with_queue(&[DOWN, GAME], "fq_codel", &["wifi.firmware_queue=20"]), "game");
    assert!((4.0..20.0).contains(&short), "{short} ms");
}

#[test]
fn firmware_behind_a_plain_queue_is_a_longer_plain_queue() {
    let limit = |limit: &str, firmware: &str| {
        let set = ["duration=20s", "seed=5", limit, firmware];
        run(&home(&[DOWN, GAME], &set))
    };
    let (two, one) =
        (limit("wifi.queue.limit=30", "wifi.firmware_queue=50"), limit("wifi.queue.limit=80", "wifi.firmware_queue=0"));
    assert_eq!(two, one);
    assert!(one.queues[0].dropped > 0);
}

#[test]
fn whatever_carries_it_a_seed_of_its_own_gives_red_drops_of_its_own() {
    const RED: &str = "{ kind = \"red\", limit = 60, min = 5, max = 30, packet_time = \"1ms\" }";
    for (air, more) in
        [("wifi", ""), ("bridge", "bridge.rate=12Mbit/s"), ("wireless_link", "wireless_link.rate=12Mbit/s")]
    {
        let queue = format!("{air}.queue={RED}");
        let dropped = |seed: u64| {
            let seed = format!("seed={seed}");
            let mut set = vec!["duration=20s", &queue, &seed];
            set.extend((air != "wifi").then_some("wifi=none"));
            set.extend(Some(more).filter(|more| !more.is_empty()));
            run(&home(&[DOWN], &set)).queues.iter().map(|queue| queue.dropped).collect::<Vec<_>>()
        };
        let seeds: std::collections::BTreeSet<_> = (1..=6).map(dropped).collect();
        assert!(seeds.len() > 1, "{air}: {seeds:?}");
    }
}

//! Flows that follow a schedule, through wires and air.

mod common;

use common::{flow, home, load, run};
use lasthop_core::units::Time;
use lasthop_sim::{Options, SimError, TraceLine};

const GAME: &str = "game W A game-server";

#[test]
fn an_idle_path_takes_exactly_its_wires_and_its_frame() {
    let report = run(&home(&[GAME], &[]));
    // 200 B at 100 Mbit/s twice: 32 us; 10 ms twice; the frame: 20 + 4 x ceil((16 + 8 x 236 + 6) / 216) + 6 = 62 us.
    let delay = flow(&report, "game").metrics.delay.unwrap();
    assert!((delay.min - 20.094).abs() < 1e-9 && (delay.max - 20.094).abs() < 1e-9, "{delay:?}");
    let game = &flow(&report, "game").metrics;
    assert_eq!((game.sent, game.delivered, game.lost.total()), (200, 200, 0));
}

#[test]
fn a_flow_may_begin_and_end_anywhere() {
    let flows = [
        "a W A game-server",
        "b A W game-server",
        "c AP A game-server",
        "d A AP game-server",
        "e A B game-server",
        "f W V game-server start = \"10ms\"",
        "g W AP game-server start = \"20ms\"",
        "h AP W game-server",
    ];
    let report = run(&home(&flows, &[]));
    let min = |name| flow(&report, name).metrics.delay.unwrap().min;
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        let metrics = &flow(&report, name).metrics;
        assert_eq!((metrics.sent, metrics.delivered), (200, 200), "{name}");
    }
    assert!((min("f") - 10.016).abs() < 1e-9, "W's own link; V's has neither rate nor delay: {}", min("f"));
    assert!((min("g") - 20.032).abs() < 1e-9, "{}", min("g"));
    assert!((0.062..0.2).contains(&min("c")) && (0.062..0.2).contains(&min("d")));
    assert!(min("e") > 2.0 * 0.062, "through the access point, twice over the air");
}

#[test]
fn one_seed_gives_one_report_and_another_seed_another() {
    let lossy = |seed: &str| {
        let set = ["wifi.loss.kind=fixed", "wifi.loss.rate=0.3", seed];
        run(&home(&[GAME, "noise B W poisson rate = \"10Mbit/s\""], &set)).to_json()
    };
    assert_eq!(lossy("seed=1"), lossy("seed=1"));
    assert_ne!(lossy("seed=1"), lossy("seed=2"));
}

#[test]
fn a_change_of_the_line_and_of_the_air_is_in_force_from_its_time_on() {
    let mut scenario = home(&[GAME], &["measure_from=5s"]);
    let changed = home(&[GAME], &["wan.delay=30ms", "station.A.rate=6Mbit/s"]);
    scenario.changes = vec![lasthop_home::scenario::Change {
        at: "5s".parse().unwrap(),
        keys: vec!["wan.delay".to_owned(), "station.A.rate".to_owned()],
        after: std::sync::Arc::new(changed),
    }];
    let report = run(&scenario);
    let game = flow(&report, "game");
    assert!((game.start_up.delay.unwrap().max - 20.094).abs() < 1e-9);
    // 20 ms more; at 6 Mbit/s 20 + 4 x ceil(1910 / 24) + 6 = 346 us.
    assert!((game.metrics.delay.unwrap().min - 40.378).abs() < 1e-9, "{:?}", game.metrics.delay);
}

#[test]
fn two_wires_in_a_row_give_what_each_of_them_gives_alone() {
    // A flow between the servers forbids to reckon both at once; it ends before the others begin.
    let flows =
        ["up A W cbr rate = \"12Mbit/s\"; start = \"1s\"", "down W A poisson rate = \"9Mbit/s\"; start = \"1s\""];
    let among = "among W V game-server stop = \"60ms\"";
    let set = ["wan.rate_up=5Mbit/s", "wan.buffer_up=7", "wan.rate_down=8Mbit/s", "wan.buffer_down=3"];
    let at_once = run(&home(&flows, &set));
    let apart = run(&home(&[flows[0], flows[1], among], &set));
    for name in ["up", "down"] {
        assert!(flow(&at_once, name).metrics.lost.wired > 100, "{name}: {:?}", flow(&at_once, name).metrics.lost);
        assert_eq!(flow(&at_once, name).metrics, flow(&apart, name).metrics, "{name}");
    }
}

#[test]
fn losses_are_counted_where_they_happen() {
    let set = ["wifi.loss.kind=fixed", "wifi.loss.rate=0.5", "wifi.attempts=2", "server.W.rate=5Mbit/s"];
    let flows = ["a W A cbr rate = \"20Mbit/s\"", "b B W cbr rate = \"40Mbit/s\"", "c AP A cbr rate = \"40Mbit/s\""];
    let report = run(&home(&flows, &set));
    let lost = |name| flow(&report, name).metrics.lost;
    assert!(lost("a").wired > 1000 && lost("a").channel > 10, "{:?}", lost("a"));
    assert!(lost("b").station_queue > 1000 && lost("b").channel > 100, "{:?}", lost("b"));
    assert!(lost("c").ap_queue > 1000 && lost("c").channel > 100, "{:?}", lost("c"));
    for name in ["a", "b", "c"] {
        let metrics = &flow(&report, name).metrics;
        let in_flight = metrics.sent - metrics.delivered - metrics.lost.total();
        assert!(in_flight < 500, "{name}: {in_flight} packets vanished");
    }
}

#[test]
fn saturation_is_what_the_medium_alone_gives() {
    let report = run(&load("theory/saturation.toml", &["station.S.count=1", "wifi.after_collision=eifs"]));
    let rate = flow(&report, "load").metrics.rate_bps / 1e6;
    assert!((rate / 30.496 - 1.0).abs() < 0.001, "{rate}");
}

#[test]
fn a_run_that_is_told_to_stop_stops() {
    let scenario = load("theory/saturation.toml", &[]);
    let mut asked = 0;
    let mut go_on = |progress: lasthop_sim::Progress| {
        asked += 1;
        progress.now < Time::from_nanos(5_000_000_000)
    };
    let mut options = Options { progress: Some(&mut go_on), ..Options::default() };
    assert!(matches!(lasthop_sim::run(&scenario, &mut options), Err(SimError::Stopped)));
    assert!(asked > 2, "{asked}");
}

#[test]
fn every_delivered_packet_of_a_schedule_has_a_line_of_the_trace() {
    let mut lines: Vec<TraceLine> = Vec::new();
    let mut sink = |line: &TraceLine| {
        lines.push(line.clone());
        Ok(())
    };
    let report = lasthop_sim::run(&home(&[GAME], &[]), &mut Options { trace: Some(&mut sink), ..Options::default() });
    let delivered = flow(&report.unwrap(), "game").metrics.delivered;
    let game: Vec<_> = lines.iter().filter(|line| line.flow.as_deref() == Some("game")).collect();
    assert_eq!(game.len() as u64, delivered);
    assert!(game.iter().all(|line| line.delay_ms.is_some_and(|ms| (ms - 20.094).abs() < 1e-9)));
}

#[test]
fn a_sink_that_fails_ends_the_run() {
    let mut sink = |_: &TraceLine| Err(std::io::Error::other("full"));
    let scenario = home(&[GAME], &[]);
    let result = lasthop_sim::run(&scenario, &mut Options { trace: Some(&mut sink), ..Options::default() });
    assert!(matches!(result, Err(SimError::Write(_))));
}

#[test]
fn what_the_simulator_does_not_carry_is_refused_at_its_line() {
    let refusal = |flows: &[&str], set: &[&str]| {
        let scenario = home(flows, set);
        lasthop_sim::run(&scenario, &mut Options::default()).unwrap_err().to_string()
    };
    assert!(refusal(&["f W A web cc = \"ssvp\""], &[]).contains("flow.f.cc: not yet: a page is loaded over TCP"));
    assert!(
        refusal(&["f W A quic cc = \"tfrc\""], &[]).contains("flow.f.cc: not yet: QUIC sends with a congestion window")
    );
    assert!(refusal(&["f A W web"], &[]).contains("flow.f.from: not yet: a page goes from a server to a station"));
}

/// The small packet from W is to be at W0 after 10 ms, and is foretold for 10 ms + 0.3 us + line. The large one from V sets out
/// later, comes there 5 us before it, and takes 12 us: at the time foretold nothing has arrived.
#[test]
fn a_packet_that_another_one_holds_up_after_it_was_foretold_arrives_later() {
    let small = "small W A cbr rate = \"10kbit/s\"; size = \"28B\"; stop = \"20ms\"";
    let large = "large V A cbr rate = \"10kbit/s\"; size = \"1500B\"; start = \"9980us\"; stop = \"20ms\"";
    let set = ["wan.rate_down=1000Mbit/s", "server.W.rate=1000Mbit/s", "server.V.rate=1000Mbit/s"];
    let report = run(&home(&[small, large], &set));
    assert_eq!((flow(&report, "small").metrics.delivered, flow(&report, "large").metrics.delivered), (1, 1));
}

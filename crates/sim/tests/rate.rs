//! Flows over TFRC and SSVP in whole homes.

mod common;

use common::{flow, home, run};
use lasthop_home::report::{Metrics, Report};
use lasthop_sim::{Options, TraceLine};
use lasthop_tcp::tfrc_throughput;

const LAWS: [&str; 2] = ["tfrc", "ssvp"];

fn metrics(report: &Report) -> Metrics {
    flow(report, "f").metrics.clone()
}

/// A link of 100 Mbit/s in place of the channel, which loses at random.
fn lossy(keys: &str, rate: f64, seconds: u32) -> Report {
    let (loss, duration) = (format!("wireless_link.error_rate={rate}"), format!("duration={seconds}s"));
    let rates = ["wireless_link.rate=100Mbit/s", "wireless_link.station_rate=100Mbit/s"];
    let set = ["wifi=none", rates[0], rates[1], "measure_from=20s", &duration, &loss];
    run(&home(&[&format!("f W A {keys}")], &set))
}

/// By the loss events and the round trip that the run shows, at loss event rates of 0.001 to 0.1.
#[test]
fn tfrc_in_a_home_is_within_a_tenth_of_its_equation() {
    for (rate, seconds) in [(0.001, 400), (0.003, 400), (0.01, 600), (0.03, 900), (0.12, 1500)] {
        let metrics = metrics(&lossy("ftp cc = \"tfrc\"", rate, seconds));
        let seen = metrics.rate_control.unwrap();
        let p = seen.loss_events as f64 / metrics.sent as f64;
        let sent = metrics.sent as f64 * 1460.0 / f64::from(seconds - 20);
        let share = sent / tfrc_throughput(1460.0, seen.srtt_ms / 1000.0, p);
        println!("losses {rate}: p = {p:.5}, R = {:.2} ms, {share:.3} of the equation", seen.srtt_ms);
        assert!((0.9..1.1).contains(&share), "p = {p}: {share}");
        assert!(
            (seen.allowed_bps / (sent * 8.0) - 1.0).abs() < 0.02,
            "{} allowed, {} sent",
            seen.allowed_bps,
            sent * 8.0
        );
    }
}

#[test]
fn a_stream_that_fits_is_carried_whole() {
    for stream in ["cbr rate = \"1Mbit/s\"", "video rate = \"1Mbit/s\""] {
        let over = |keys: &str| metrics(&run(&home(&[&format!("f W A {stream}{keys}")], &["measure_from=4s"])));
        let udp = over("");
        for law in LAWS {
            let rated = over(&format!("; cc = \"{law}\""));
            let share = rated.goodput_bps / udp.goodput_bps;
            assert!((0.97..1.03).contains(&share), "{stream} over {law}: {share}");
            assert_eq!((rated.lost.total(), rated.tcp), (0, None));
            assert!(rated.rate_control.unwrap().srtt_ms > 40.0);
        }
        assert_eq!(udp.rate_control, None);
    }
}

/// A frame's packets leave one after the other at the rate's gap instead of at once: the queue is shorter, and the frame later.
#[test]
fn a_frame_is_spread_over_the_gap_that_the_rate_leaves() {
    let most = |keys: &str| {
        let flows = format!("f W A video rate = \"4Mbit/s\"{keys}");
        let report = run(&home(&[&flows], &["measure_from=5s", "duration=20s", "wan.rate_down=20Mbit/s"]));
        report.queues.iter().find(|queue| queue.name.contains("WAN down")).unwrap().max_packets
    };
    let (udp, tfrc) = (most(""), most("; cc = \"tfrc\""));
    assert!(udp > 10 && tfrc < udp / 2, "{udp} over UDP, {tfrc} over TFRC");
}

#[test]
fn losses_are_told_in_the_report() {
    for law in LAWS {
        let metrics = metrics(&lossy(&format!("ftp cc = \"{law}\""), 0.02, 60));
        let seen = metrics.rate_control.unwrap();
        assert!(metrics.lost.total() > 50 && metrics.duplicates == 0);
        assert!(seen.loss_events > 50 && seen.loss_events <= metrics.lost.total(), "{seen:?}");
        assert!((0.005..0.05).contains(&seen.loss_event_rate), "{seen:?}");
        let share = metrics.goodput_bps / seen.allowed_bps;
        assert!((0.95..1.0).contains(&share), "{law}: {share} of what was allowed is not lost");
    }
}

#[test]
fn a_length_is_sent_once_and_its_time_is_its_own() {
    for law in LAWS {
        let of = |duration: &str| {
            metrics(&run(&home(
                &[&format!("f W A ftp cc = \"{law}\"; bytes = \"1MiB\"")],
                &[duration, "wifi.queue.limit=1000"],
            )))
        };
        let (short, long) = (of("duration=10s"), of("duration=40s"));
        assert_eq!((short.sent, short.delivered), (719, 719), "{law}");
        assert_eq!(short.goodput_bps, long.goodput_bps, "{law}");
    }
}

#[test]
fn marks_stand_for_losses() {
    let flows = ["f W A ftp cc = \"tfrc\"; ecn = true"];
    let red = "bridge.queue={ kind = \"red\", limit = 100, min = 5, max = 60, gentle = true }";
    let report = run(&home(&flows, &["wifi=none", "duration=30s", "measure_from=10s", "bridge.extra=1ms", red]));
    let (metrics, marked) = (metrics(&report), report.queues[0].marked);
    let events = metrics.rate_control.unwrap().loss_events;
    assert!(marked > 20 && events > 10, "{marked} marked, {events} loss events");
    assert_eq!(metrics.lost.total(), 0);
}

/// The link is the slowest and TFRC alone on it, as the rule asks for: losses leave their places among arrivals 2.4 ms apart.
#[test]
fn told_apart_losses_of_the_link_leave_the_rate_alone_and_those_of_the_queue_do_not() {
    let over = |lost: &str, keys: &str| {
        let set = [
            "wifi=none",
            "wireless_link.rate=5Mbit/s",
            "wireless_link.buffer=25",
            "duration=120s",
            "measure_from=20s",
            lost,
        ];
        metrics(&run(&home(&[&format!("f W A ftp cc = \"tfrc\"{keys}")], &set)))
    };
    let rule = "; loss_discrimination = \"biaz-vaidya\"";
    let each = ["0.0", "0.01", "0.03"].map(|rate| {
        let lost = format!("wireless_link.error_rate={rate}");
        let (plain, judged) = (over(&lost, ""), over(&lost, rule));
        let events = |metrics: &Metrics| metrics.rate_control.unwrap().loss_events;
        let (mbps, judged_mbps) = (plain.goodput_bps / 1e6, judged.goodput_bps / 1e6);
        println!("{rate}: {mbps:.2} and {judged_mbps:.2} Mbit/s, {} and {} events", events(&plain), events(&judged));
        (mbps, judged_mbps, judged.lost.ap_queue)
    });
    let [(clean, also_clean, dropped), (plain, judged, dropped_too), (far, also_far, _)] = each;
    assert_eq!(clean, also_clean, "without losses of the link there is nothing to judge");
    assert!(dropped > 20 && dropped_too > 20, "the queue's drops hold the rate: {dropped}, {dropped_too}");
    assert!(judged > 0.97 * clean && plain < 0.7 * clean, "{judged} and {plain} of {clean}");
    // A sender that never fills the link leaves other gaps than the link's: everything counts as a queue's.
    assert!((also_far / far - 1.0).abs() < 0.05 && far < 0.4 * clean, "{also_far} and {far}");
}

#[test]
fn a_trace_shows_the_rate_and_every_arrival_and_a_capture_the_packets() {
    let mut lines = Vec::new();
    let mut sink = |line: &TraceLine| {
        lines.push(line.clone());
        Ok(())
    };
    let mut capture: Vec<u8> = Vec::new();
    let mut options = Options { trace: Some(&mut sink), pcap: Some(&mut capture), ..Options::default() };
    let report = lasthop_sim::run(&home(&["f W A ftp cc = \"tfrc\""], &["duration=3s"]), &mut options).unwrap();
    let metrics = metrics(&report);
    assert_eq!(lines.iter().filter(|line| line.delay_ms.is_some()).count() as u64, metrics.delivered);
    let rates: Vec<f64> = lines.iter().filter_map(|line| line.bandwidth_bps).collect();
    // One segment per second at first, and then as many as the channel carries.
    assert!(rates[0] == 1460.0 * 8.0 && rates.iter().copied().fold(0.0, f64::max) > 5e6, "{rates:?}");
    assert!(rates.windows(2).all(|pair| pair[0] != pair[1]), "a line says what is new");
    // A pcap header and a record of each datagram's frame, which carries no payload but its length.
    assert!(capture.len() as u64 > 24 + 40 * metrics.delivered);
}

#[test]
fn one_seed_gives_one_run() {
    for law in LAWS {
        let again = || metrics(&lossy(&format!("video rate = \"3Mbit/s\"; cc = \"{law}\""), 0.02, 40));
        assert_eq!(again(), again());
    }
}

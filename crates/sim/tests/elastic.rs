//! Elastic UDP gets a share beside TCP; real-time UDP is never touched.

mod common;

use common::{flow, home, load, run, uniform};
use lasthop_home::report::Report;

const DEEP: &str = "wifi.queue.limit=1000";
const LEARN: &str = "control.window.capacity=learn";
const GIVEN: &str = "control.window.capacity=22Mbit/s";
const HOMES: usize = 36;

fn goodput(report: &Report, name: &str) -> f64 {
    flow(report, name).metrics.goodput_bps / 1e6
}

#[test]
fn quic_beside_tcp_has_its_fair_share_and_a_game_beside_them_its_delay() {
    for cc in ["cubic", "newreno", "bbr"] {
        for capacity in [LEARN, GIVEN] {
            let quic = format!("quic W A quic cc = \"{cc}\"");
            let flows = [&quic[..], "tcp W B ftp", "game W A game-server"];
            let report = run(&home(&flows, &[DEEP, capacity, "measure_from=10s", "duration=40s"]));
            let (quic, tcp) = (goodput(&report, "quic"), goodput(&report, "tcp"));
            let added = flow(&report, "game").metrics.added_delay.as_ref().unwrap().p50;
            println!("{cc} {capacity}: QUIC {quic:.2}, TCP {tcp:.2} Mbit/s, game {added:.1} ms");
            // A QUIC packet carries 1,164 bytes where a segment carries 1,460 and costs nearly as much air.
            let ratio = quic / tcp;
            assert!((0.85..1.25).contains(&ratio), "{cc} {capacity}: {quic} {tcp}");
            assert!(quic + tcp > 17.5, "{cc} {capacity}: {quic} {tcp}");
            assert!(added < 8.0, "{cc} {capacity}: {added} ms");
        }
    }
}

/// The mean of what it has is its share, over short paths and long ones, whichever part of it its saw leaves, before the access point and behind it.
#[test]
fn quic_has_its_share_over_any_path() {
    let mut uniform = uniform(7, "quic");
    let (mut fair, mut waits) = (0, Vec::new());
    for case in 0..HOMES {
        let (rate, rtt) = (uniform(10.0, 60.0), uniform(10.0, 100.0));
        let cc = if case % 3 == 2 { "newreno" } else { "cubic" };
        // A port carries less than its rate, by what a packet costs besides.
        let (port, line) = if case % 2 == 0 { (rate * 1.1, 1000.0) } else { (900.0, rate) };
        let report = run(&load(
            "everyday/quic.toml",
            &[
                &format!("bridge.rate={port:.1}Mbit/s"),
                &format!("wan.rate_down={line:.1}Mbit/s"),
                &format!("server.W.delay={:.1}ms", rtt / 2.0),
                &format!("flow.quic.cc=\"{cc}\""),
            ],
        ));
        let ratio = goodput(&report, "quic") / goodput(&report, "tcp");
        let added = flow(&report, "game-down").metrics.added_delay.as_ref().unwrap().p99;
        println!("{case}: {cc}, {rate:.0} Mbit/s, {rtt:.0} ms: QUIC over TCP {ratio:.2}, a game waits {added:.1} ms");
        fair += usize::from((0.8..1.25).contains(&ratio));
        waits.push(added);
    }
    waits.sort_by(f64::total_cmp);
    let [mean, most] = [waits.iter().sum::<f64>() / HOMES as f64, waits[HOMES * 9 / 10]];
    println!("{fair} of {HOMES} within 0.8 to 1.25; a game waits {mean:.1} ms in the mean, nine of ten {most:.1}");
    assert!(fair * 6 >= HOMES * 5, "{fair} of {HOMES}");
    assert!(mean < 8.0 && most < 12.0, "{mean} ms in the mean, nine of ten {most}");
}

/// Nothing that fills a window is there but datagrams, and a connection that sends now and then shows what waits.
#[test]
fn quic_alone_is_held_where_a_small_connection_shows_its_queue() {
    for (place, port, line) in [("a port", 22.0, 1000.0), ("a WAN link", 900.0, 20.0)] {
        let home = |control: &str| {
            let sets = [
                &format!("bridge.rate={port}Mbit/s"),
                &format!("wan.rate_down={line}Mbit/s"),
                "flow.tcp.kind=cbr",
                "flow.tcp.cc=cubic",
                "flow.tcp.size=500B",
                "flow.tcp.rate=20kbit/s",
                control,
            ];
            let report = run(&load("everyday/quic.toml", &sets));
            let added = flow(&report, "game-down").metrics.added_delay.as_ref().unwrap().p99;
            (goodput(&report, "quic"), added)
        };
        let (free, held) = (home("control.window=none"), home(LEARN));
        println!("{place}: {:.1} -> {:.1} Mbit/s, a game waits {:.1} -> {:.1} ms", free.0, held.0, free.1, held.1);
        assert!(held.0 >= 0.97 * free.0, "{place}: {held:?} instead of {free:?}");
        assert!(held.1 < 0.5 * free.1, "{place}: {held:?} instead of {free:?}");
    }
}

/// Where the queue itself is fair, nothing is dropped for the plan's sake.
#[test]
fn chap_divides_by_itself() {
    let flows = ["quic W A quic", "tcp W B ftp"];
    let report = run(&home(&flows, &[LEARN, "wifi.queue.kind=chap", "measure_from=5s", "duration=20s"]));
    let ratio = goodput(&report, "quic") / goodput(&report, "tcp");
    assert!((0.7..1.25).contains(&ratio), "{ratio}");
    assert!(flow(&report, "quic").metrics.loss_rate.is_some_and(|rate| rate < 0.005));
}

/// Its share would be 5 Mbit/s; it has 8 and is live.
#[test]
fn live_video_above_its_fair_share_loses_nothing() {
    for (capacity, kind) in [(LEARN, "video rate = \"8Mbit/s\""), (GIVEN, "video rate = \"8Mbit/s\"")] {
        let video = format!("video W A {kind}");
        let flows = [&video[..], "a W B ftp", "b W B ftp", "c W B ftp", "game W A game-server"];
        let report = run(&home(&flows, &[DEEP, capacity, "duration=30s"]));
        for name in ["video", "game"] {
            let lost = flow(&report, name).metrics.lost;
            assert_eq!(lost.ap_queue, 0, "{capacity} {name}");
        }
        assert!(goodput(&report, "video") > 7.0, "{capacity}: {}", goodput(&report, "video"));
    }
}

/// Both begin together: the first packet tells that one of them gives way, so that its slow start is none of a stream.
#[test]
fn quic_that_begins_beside_tcp_queues_no_more_than_what_begins_together_may() {
    for seed in 1..=5 {
        let seed = format!("seed={seed}");
        let report = run(&load("everyday/quic.toml", &["measure_from=1s", "duration=6s", &seed]));
        let added = flow(&report, "game-down").metrics.added_delay.as_ref().unwrap().p99;
        println!("{seed}: {added:.1} ms in the first five seconds");
        assert!(added < 20.0, "{seed}: {added} ms");
    }
}

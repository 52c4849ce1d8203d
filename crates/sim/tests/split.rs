//! Split connections: TCP ends at the access point, and begins anew there.

mod common;

use common::{flow, home, run};
use lasthop_home::report::{Metrics, Report};

const DOWN: &str = "f W A ftp cc = \"reno\"";
const SPLIT: &str = "control.split={}";

/// 20 ms of wires, and a wireless link of so many Mbit/s that loses so many packets of 1000.
fn over(flows: &[&str], mbps: u32, lost: u32, more: &[&str]) -> Report {
    let (rate, loss) = (format!("wireless_link.rate={mbps}Mbit/s"), format!("wireless_link.error_rate=0.{lost:03}"));
    let link = ["wifi=none", "wireless_link.buffer=50", "wireless_link.station_rate=100Mbit/s", &rate, &loss];
    let rest = ["duration=30s", "measure_from=2s"];
    run(&home(flows, &link.into_iter().chain(rest).chain(more.iter().copied()).collect::<Vec<_>>()))
}

fn metrics(report: &Report) -> Metrics {
    flow(report, "f").metrics.clone()
}

#[test]
fn losses_of_the_link_are_repaired_from_the_access_point_and_unknown_to_the_server() {
    for f in [DOWN, "f A W ftp cc = \"reno\""] {
        let (whole, split) = (metrics(&over(&[f], 5, 10, &[])), metrics(&over(&[f], 5, 10, &[SPLIT])));
        let (first, second) = (split.first_half.unwrap(), split.tcp.unwrap());
        assert!(split.goodput_bps > 1.5 * whole.goodput_bps, "{f}: {} and {}", split.goodput_bps, whole.goodput_bps);
        assert!(whole.first_half.is_none());
        let (clean, lossy) = if f == DOWN { (first, second) } else { (second, first) };
        assert_eq!(clean.retransmitted, 0, "{f}");
        assert!(lossy.retransmitted > 20, "{f}: {first:?} {second:?}");
    }
}

#[test]
fn a_length_arrives_whole() {
    let report = over(&[&format!("{DOWN}; bytes = \"1MiB\"; start = \"3s\"")], 5, 20, &[SPLIT]);
    let split = metrics(&report);
    let segments = (1_u64 << 20).div_ceil(1460);
    assert!((segments..segments + 3).contains(&split.tcp.unwrap().acked_packets), "{split:?}");
    assert_eq!(split.first_half.unwrap().acked_packets, segments);
    // Over the flow's own time.
    let seconds = f64::from(1 << 20) * 8.0 / split.goodput_bps;
    assert!((1.5..6.0).contains(&seconds), "{seconds}");
}

/// 100 Mbit/s to the access point, 2 Mbit/s from there: the server's window closes and opens with what the link takes.
#[test]
fn the_access_point_holds_no_more_than_its_buffer() {
    for (kib, least) in [(16, 1.4e6), (64, 1.9e6), (256, 1.9e6)] {
        let buffer = format!("control.split.buffer={kib}KiB");
        let split = metrics(&over(&[DOWN], 2, 0, &["measure_from=0s", &buffer]));
        let (first, second) = (split.first_half.unwrap(), split.tcp.unwrap());
        // What the server knows of is a round trip old, in which the link carries 10 KiB.
        let held = (first.acked_packets as f64 - second.acked_packets as f64) * 1460.0 / 1024.0;
        println!("{kib} KiB: {held:.1} held, {:.2} Mbit/s", split.goodput_bps / 1e6);
        assert!(held <= f64::from(kib) + 6.0, "{kib} KiB: {held} held");
        assert!(kib == 16 || held > f64::from(kib) / 2.0, "{kib} KiB: {held} held");
        assert_eq!((first.timeouts, first.fast_retransmits, first.retransmitted), (0, 0, 0), "{kib} KiB");
        // A buffer below two round trips of the link's rate runs empty while the server hears of its room.
        assert!((least..1.95e6).contains(&split.goodput_bps), "{kib} KiB: {}", split.goodput_bps);
    }
}

#[test]
fn a_stream_goes_on_over_both_halves() {
    let stream = "f W A video rate = \"1Mbit/s\"";
    let whole = metrics(&over(&[stream], 5, 0, &[SPLIT]));
    let split = metrics(&over(&[&format!("{stream}; cc = \"reno\"")], 5, 10, &[SPLIT]));
    assert!(whole.first_half.is_none() && whole.tcp.is_none(), "UDP is not split");
    let share = split.goodput_bps / whole.goodput_bps;
    assert!((0.98..1.02).contains(&share), "{share} of what UDP carries without losses");
}

#[test]
fn what_cannot_be_split_is_left_whole_or_refused() {
    let across = metrics(&run(&home(&["f A B ftp"], &[SPLIT])));
    assert!(across.first_half.is_none() && across.goodput_bps > 5e6, "{across:?}");
    for other in ["control.clamp={}", "wireless_link.snoop=true"] {
        let both = home(&[DOWN], &["wifi=none", "wireless_link.rate=5Mbit/s", SPLIT, other]);
        let refused = lasthop_sim::check(&both).unwrap_err().to_string();
        assert!(refused.contains("has neither Snoop nor CLAMP beside it"), "{refused}");
    }
    let page = home(&["page W A web"], &[SPLIT]);
    let refused = lasthop_sim::check(&page).unwrap_err().to_string();
    assert!(refused.contains("connections of pages are not split"), "{refused}");
}

#[test]
fn forty_at_once_and_one_seed_gives_one_run() {
    let again = || over(&[&format!("{DOWN}; count = 40; start_within = \"1s\"")], 5, 10, &[SPLIT, "duration=10s"]);
    let report = again();
    assert_eq!(report, again());
    assert_eq!(report.flows.len(), 40);
    let total: f64 = report.flows.iter().map(|f| f.metrics.goodput_bps).sum();
    assert!(total > 4.3e6, "{total}");
}

//! Streams that a transport carries instead of UDP.

mod common;

use common::{flow, home, run};
use lasthop_home::report::Report;

/// A stream of 2 Mbit/s from a server 20 ms away.
const CBR: &str = "media W A cbr rate = \"2Mbit/s\"";

fn goodput(report: &Report) -> f64 {
    flow(report, "media").metrics.goodput_bps
}

#[test]
fn a_stream_over_tcp_carries_the_payload_that_it_carries_over_udp() {
    for stream in [CBR, "media W A video rate = \"1Mbit/s\"", "media W A video-chat rate = \"0.2Mbit/s\""] {
        let over = |keys: &str| run(&home(&[&format!("{stream}{keys}")], &["measure_from=1s"]));
        let (udp, tcp) = (over(""), over("; cc = \"reno\"; sack = false"));
        let share = goodput(&tcp) / goodput(&udp);
        assert!((0.98..1.02).contains(&share), "{share}: {stream}");
        assert!(flow(&udp, "media").metrics.tcp.is_none());
        assert_eq!(flow(&tcp, "media").metrics.tcp.unwrap().retransmitted, 0);
        assert_eq!(flow(&tcp, "media").kind, flow(&udp, "media").kind);
    }
}

#[test]
fn tcp_repairs_what_udp_loses() {
    let lossy = ["measure_from=1s", "wifi.loss.kind=fixed", "wifi.loss.rate=0.005", "wifi.attempts=1"];
    let over = |keys: &str| run(&home(&[&format!("media W A cbr rate = \"1Mbit/s\"{keys}")], &lossy));
    let (udp, tcp) = (over(""), over("; cc = \"newreno\""));
    let offered = 1e6 * 1472.0 / 1500.0;
    let (lost, repaired) = (goodput(&udp) / offered, goodput(&tcp) / offered);
    assert!((0.985..0.998).contains(&lost), "{lost} over UDP");
    assert!((0.99..1.01).contains(&repaired), "{repaired} over TCP");
    assert!(flow(&tcp, "media").metrics.tcp.unwrap().retransmitted > 10);
}

#[test]
fn a_stream_that_the_path_cannot_carry_takes_what_a_greedy_download_takes() {
    let set = ["measure_from=2s", "duration=20s", "wifi.queue.limit=200"];
    let wide = "; cc = \"cubic\"";
    let stream = run(&home(&[&format!("media W A cbr rate = \"60Mbit/s\"{wide}")], &set));
    let greedy = run(&home(&["media W A ftp cc = \"cubic\""], &set));
    let share = goodput(&stream) / goodput(&greedy);
    assert!((0.97..1.03).contains(&share), "{share}");
}

#[test]
fn ns2_sends_whole_packets_for_every_frame() {
    let mean = |timing: &str| {
        let frames =
            "media W A cbr rate = \"1Mbit/s\"; size = \"500B\"; cc = \"reno\"; mss = \"960B\"; delayed_ack = false";
        let metrics = flow(&run(&home(&[frames], &["measure_from=1s", timing])), "media").metrics.clone();
        metrics.rate_bps / metrics.goodput_bps * 960.0 - 960.0
    };
    // 472 bytes a frame: each in a packet of its own with 40 bytes of headers, or rounded up to 960.
    let (own, whole) = (mean("wifi.timing=standard"), mean("wifi.timing=ns2-g"));
    assert!((own - 40.0 * 960.0 / 472.0).abs() < 2.0, "{own}");
    assert!((whole - 40.0).abs() < 0.5, "{whole}");
}

#[test]
fn streams_with_congestion_control_have_a_share_of_the_fairness_and_others_have_not() {
    let copies = |keys: &str| run(&home(&[&format!("{CBR}; count = 3{keys}")], &[])).fairness.goodput;
    assert_eq!(copies(""), None);
    assert!(copies("; cc = \"reno\"").unwrap() > 0.99);
}

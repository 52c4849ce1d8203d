//! QUIC through the simulator: a congestion-controlled download that looks like UDP from the outside.

mod common;

use common::{flow, home, run};

const DEEP: &str = "wifi.queue.limit=1000";
const CONTROL: &str = "control.window.capacity=18Mbit/s";

#[test]
fn a_quic_download_fills_the_air_and_shares_it_with_tcp() {
    for cc in ["cubic", "newreno", "reno", "bbr"] {
        let quic = format!("quic W A quic cc = \"{cc}\"");
        let alone = run(&home(&[&quic], &[DEEP, "measure_from=2s"]));
        let goodput = flow(&alone, "quic").metrics.goodput_bps / 1e6;
        // 1,164 of 1,228 bytes where TCP has 1,460 of 1,500, and a fifth more frames for them.
        assert!((17.0..23.0).contains(&goodput), "{goodput} with {cc}");
        assert_eq!(flow(&alone, "quic").kind, "quic");

        let tcp = format!("tcp W B ftp cc = \"{cc}\"");
        let both = run(&home(&[&quic, &tcp], &["wifi.queue.limit=100", "measure_from=10s", "duration=60s"]));
        let share = |name: &str| flow(&both, name).metrics.goodput_bps;
        let ratio = share("quic") / share("tcp");
        assert!((0.5..2.0).contains(&ratio), "{ratio} with {cc}");
    }
}

#[test]
fn every_packet_of_it_is_udp_to_the_access_point() {
    // Over a queue that is fair, which leaves it without a plan: what has one is counted apart.
    let set = [CONTROL, "wifi.queue.kind=chap"];
    let report = run(&home(&["quic W A quic bytes = \"1MB\"; start = \"1s\""], &set));
    let control = report.control.as_ref().unwrap();
    let udp = control.not_controlled["udp"];
    let metrics = &flow(&report, "quic").metrics;
    // Data, and an ACK for at least every second of them.
    assert!(udp > metrics.sent + metrics.sent / 2, "{udp} of {}", metrics.sent);
    let others = control.not_controlled.iter().filter(|(reason, _)| *reason != "udp");
    assert_eq!(others.map(|(_, packets)| packets).sum::<u64>(), 0, "{:?}", control.not_controlled);
    assert_eq!((control.controllable_share, control.rewritten, control.passed), (0.0, 0, 0));
    assert_eq!(metrics.tcp.unwrap().acked_packets, 1_000_000_u64.div_ceil(1164));
    // The last datagram is shorter.
    let mean = metrics.rate_bps / metrics.goodput_bps;
    assert!((mean - 1228.0 / 1164.0).abs() < 0.01, "{mean}");
}

#[test]
fn snoop_and_split_leave_it_alone() {
    let quic = "quic W A quic bytes = \"1MB\"";
    let lossy = ["wifi.loss.kind=fixed", "wifi.loss.rate=0.3", "wifi.attempts=2"];
    let with = |more: &[&str]| run(&home(&[quic], &[&lossy[..], more].concat()));
    let plain = with(&[]);
    let goodput = |report: &lasthop_home::report::Report| flow(report, "quic").metrics.goodput_bps;
    assert_eq!(goodput(&with(&["control.snoop.retries=4"])), goodput(&plain));
    assert_eq!(goodput(&with(&["control.split.buffer=64KiB"])), goodput(&plain));
    assert!(flow(&plain, "quic").metrics.tcp.unwrap().retransmitted > 0);
}

#[test]
fn a_queue_marks_datagrams_that_understand_it() {
    let with = |ecn: &str| {
        let quic = format!("quic W A quic ecn = {ecn}");
        run(&home(&[&quic], &["wifi.queue.kind=codel", "wifi.queue.limit=1000"]))
    };
    let queue = |report: &lasthop_home::report::Report| {
        let queue = report.queues.iter().find(|queue| queue.name == "AP to stations").unwrap();
        (queue.marked, queue.dropped)
    };
    let ((marked, lost), (none, dropped)) = (queue(&with("true")), queue(&with("false")));
    assert!(marked > 0 && none == 0 && dropped > 0 && lost < dropped, "{marked} {lost} {none} {dropped}");
}

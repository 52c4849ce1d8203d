//! Requests and responses on one connection, receivers that have closed their own direction, controllers that come later.

mod common;

use common::{flow, home, run};

const LEARN: &str = "control.window.capacity=learn";

/// 20 ms each direction on the wires; a response begins half a round trip after its request.
#[test]
fn requests_are_answered_one_by_one_at_their_pace() {
    let polls = "poll W A request-response request = \"1kB\"; response = \"1kB\"; every = \"300ms\"; think = \"50ms\"";
    let report = run(&home(&[polls], &["duration=9s"]));
    let metrics = &flow(&report, "poll").metrics;
    // SYN, and of each of 30 an acknowledgment (thinking takes longer than 40 ms) and a response.
    assert_eq!((metrics.sent, metrics.lost.ap_queue), (61, 0));
    assert!((metrics.goodput_bps - 30.0 * 8000.0 / 9.0).abs() < 1.0, "{}", metrics.goodput_bps);
    let slow = run(&home(&["slow W A request-response response = \"2MB\"; every = \"1ms\""], &["duration=9s"]));
    assert!(flow(&slow, "slow").metrics.goodput_bps > 10e6, "the next as soon as the response is there");
}

#[test]
fn either_end_may_ask_and_lost_requests_are_said_again() {
    let both = ["down W A request-response every = \"100ms\"", "up B W request-response every = \"100ms\""];
    let report = run(&home(&both, &["duration=9s", "wifi.loss={ kind = \"fixed\", rate = 0.7 }"]));
    for name in ["down", "up"] {
        let metrics = &flow(&report, name).metrics;
        assert!(metrics.goodput_bps > 1e5, "{name}: {}", metrics.goodput_bps);
    }
}

/// The window control reads both directions of such a connection, and holds it as others.
#[test]
fn the_access_point_sees_requests_as_data_of_the_same_connection() {
    let polls = "poll W A request-response response = \"300kB\"; every = \"100ms\"";
    let set = ["duration=9s", "wifi.queue.limit=1000"];
    let (off, on) = (run(&home(&[polls], &set)), run(&home(&[polls], &[&set[..], &[LEARN]].concat())));
    let [off, on] = [off, on].map(|report| flow(&report, "poll").metrics.goodput_bps / 1e6);
    println!("{off:.2} -> {on:.2} Mbit/s");
    assert!(on > 0.7 * off, "{off} -> {on}");
}

#[test]
fn a_half_closed_connection_goes_on_one_direction() {
    let report = run(&home(&["half W A ftp half_close = true; bytes = \"3MB\""], &["duration=9s", LEARN]));
    let metrics = &flow(&report, "half").metrics;
    assert_eq!(metrics.tcp.as_ref().unwrap().acked_packets, 3_000_000_u64.div_ceil(1460));
}

#[test]
fn a_controller_that_comes_later_does_nothing_before_and_has_not_seen_the_handshake() {
    let early = ["old W A ftp", "young W B ftp start = \"4s\""];
    let report = run(&home(&early, &["duration=9s", LEARN, "control.window.start=3s"]));
    let control = report.control.as_ref().unwrap();
    assert!(control.not_controlled.values().sum::<u64>() > 0, "{:?}", control.not_controlled);
    assert!(control.rewritten > 0);
    let without = run(&home(&early, &["duration=9s"]));
    let late = run(&home(&early, &["duration=9s", LEARN, "control.window.start=20s"]));
    assert_eq!(flow(&late, "old").metrics, flow(&without, "old").metrics);
}

/// Numbers of requests go on where the controller finds them, also beyond what a packet's bits can say.
#[test]
fn a_session_is_played_alike_by_a_controller_that_comes_later() {
    let session = "poll W A request-response response = \"3kB\"; every = \"50ms\"; think = \"5ms\"";
    let set = ["duration=9s", LEARN, "control.window.start=2s"];
    let (off, on) = (run(&home(&[session], &set[..1])), run(&home(&[session], &set)));
    let [off, on] = [off, on].map(|report| flow(&report, "poll").metrics.goodput_bps);
    assert!(on > 0.99 * off && on < 1.01 * off, "{off} -> {on}");
}

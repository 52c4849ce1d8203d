//! Web pages in the simulator: how long they take, and that nothing of them is left out.

mod common;

use common::run;
use lasthop_home::report::Report;
use lasthop_home::scenario::Scenario;

fn load(set: &[&str]) -> Report {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/papers/chap-web.toml");
    let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
    run(&Scenario::load(path.as_ref(), &set).unwrap())
}

fn load_ms(report: &Report) -> f64 {
    report.flow("page").unwrap().metrics.page.as_ref().unwrap().load_ms[0]
}

#[test]
fn a_page_takes_its_bytes_and_its_round_trips() {
    let idle = ["flow.download=none", "flow.page.page=google-news", "flow.page.start=1s", "duration=9s"];
    let report = load(&idle);
    // 155 KiB and headers in segments of 1460 bytes, 2.4 ms each over the bridge: 0.27 s. Before it the document's
    // connection and request, 4 one-way trips of 22 ms and more; then the images' likewise; at last the one named late.
    let ms = load_ms(&report);
    assert!((270.0 + 6.0 * 22.0..600.0).contains(&ms), "{ms} ms");
    // SYN and full segments of 6 responses of 250 bytes of headers each.
    let page = &report.flow("page").unwrap().metrics;
    assert_eq!((page.sent, page.delivered), (118, 118));
    assert!(report.flows.len() == 1, "a page is one flow of the report");
}

#[test]
fn more_connections_make_a_page_of_many_objects_faster() {
    let with = |n: &str| {
        let connections = format!("flow.page.connections={n}");
        load_ms(&load(&[
            "flow.download=none",
            "flow.page.page=wsj",
            &connections,
            "flow.page.start=1s",
            "duration=30s",
        ]))
    };
    let (one, six) = (with("1"), with("6"));
    assert!(one > 3.0 * six, "{one} and {six} ms");
}

#[test]
fn questions_that_get_lost_are_asked_again() {
    // A line that loses most of what comes at once: six connections open together.
    let report = load(&[
        "flow.download=none",
        "flow.page.page=yahoo",
        "wan.buffer_up=1",
        "wan.rate_up=64kbit/s",
        "duration=110s",
    ]);
    assert!(report.queues.iter().any(|queue| queue.name == "WAN up" && queue.dropped > 5), "{:?}", report.queues);
    assert!(load_ms(&report) > 1000.0);
}

#[test]
fn a_download_in_a_fifo_makes_a_page_many_times_slower() {
    let (idle, beside) = (load(&["flow.download=none"]), load(&[]));
    assert!(load_ms(&beside) > 5.0 * load_ms(&idle));
}

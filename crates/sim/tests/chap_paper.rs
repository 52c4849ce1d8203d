//! What the chapter "CHAP" says of what the paper does not name: the window of its downloader, the distance of its pages.

mod common;

use common::{flow, load, run};

/// Median over the paths of a query's and an answer's median delays, ms.
fn median_ping(window: &str) -> f64 {
    let report = run(&load("papers/chap-game.toml", &[window]));
    let p50 = |name: String| flow(&report, &name).metrics.delay.as_ref().unwrap().p50;
    let mut pings: Vec<f64> = (1..=100).map(|i| p50(format!("query.{i}")) + p50(format!("answer.{i}"))).collect();
    pings.sort_by(f64::total_cmp);
    pings[50]
}

#[test]
fn a_window_of_194_segments_makes_the_papers_fifo_ping_and_256_kib_or_a_full_queue_another() {
    let (small, fitted, full) = (
        median_ping("flow.download.window=180"),
        median_ping("flow.download.window=194"),
        median_ping("flow.download.window=1000"),
    );
    // The paper has 562 ms.
    assert!((small - 529.0).abs() < 15.0 && (fitted - 562.0).abs() < 15.0, "{small} and {fitted}");
    // Fourteen segments more wait fourteen times as long as the bridge takes for one: 399 us and 2 ms.
    assert!((fitted - small - 14.0 * 2.399).abs() < 5.0, "{small} and {fitted}");
    assert!(full > 1.3 * 562.0, "{full}");
}

/// How many times its idle time WSJ's page takes beside a download, with CHAP and the paper's key.
fn times_idle(web: &str) -> f64 {
    let queue = "{ kind = \"chap\", flow = \"hosts\", increment = \"4ms\", limit = 350 }";
    let sets = [format!("bridge.queue={queue}"), format!("bridge.station_queue={queue}")];
    let load_ms = |more: &str| {
        let home = load("papers/chap-web.toml", &[&sets[0], &sets[1], "flow.page.page=wsj", web, more]);
        flow(&run(&home), "page").metrics.page.as_ref().unwrap().load_ms[0]
    };
    load_ms("flow.download.window=194") / load_ms("flow.download=none")
}

#[test]
fn pages_from_farther_away_lose_as_little_to_a_download_with_credit_as_the_papers() {
    let (near, far) = (times_idle("server.web.delay=10ms"), times_idle("server.web.delay=30ms"));
    // The paper has 1.13.
    assert!((far - 1.13).abs() < 0.08 && near > far + 0.3, "{near} and {far}");
}

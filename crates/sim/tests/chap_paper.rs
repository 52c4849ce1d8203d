//! What the chapter "CHAP" says of the paper's FIFO: its pings are those of a download whose receiver offers 256 KiB.

mod common;

use common::{flow, load, run};

/// Median over the paths of a query's and an answer's median delays, ms.
fn median_ping(window: &str) -> f64 {
    let report = run(&load("papers/chap-game.toml", &[window]));
    let p50 = |name: String| flow(&report, &name).figures.delay.as_ref().unwrap().p50;
    let mut pings: Vec<f64> = (1..=100).map(|i| p50(format!("query.{i}")) + p50(format!("answer.{i}"))).collect();
    pings.sort_by(f64::total_cmp);
    pings[50]
}

#[test]
fn a_window_of_256_kib_makes_the_papers_fifo_pings_and_one_that_fills_the_queue_makes_others() {
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

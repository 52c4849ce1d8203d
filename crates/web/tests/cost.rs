//! What the page costs, measured and printed as a table: `tools/bench-web` runs it over the program of a release. It asserts nothing.

mod common;

use std::time::{Duration, Instant};

use common::{Controller, Server, status};
use lasthop_testing::browser::{Browser, Window};
use serde_json::json;

/// How long a viewer watches, ten updates a second.
const SECONDS: u64 = 60;
const LIVE: &str = "document.querySelector('#state.live') && !document.getElementById('figures').hidden";

/// Processor time of a process so far, s. Source: proc_pid_schedstat(5), ns on a processor.
fn processor_s(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).expect("a process");
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("a number") / 1e9
}

#[test]
#[ignore = "two minutes, and only worth something in a release: tools/bench-web"]
fn what_the_page_costs() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("x.sock");
    let controller = Controller::start(&socket, status(7));
    let Some(mut browser) = Browser::start_for(SECONDS as u32 + 120) else { return };
    let mut first = Vec::new();
    for _ in 0..5 {
        let begun = Instant::now();
        let server = Server::start(&["--socket", socket.to_str().unwrap(), "--every", "100ms"]);
        browser.open(&server.address, Window { width: 1280, is_dark: false });
        browser.wait_for(LIVE);
        first.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    first.sort_by(f64::total_cmp);
    println!(
        "| from `lasthop web` to the first figure in a browser that runs, ms: median of 5, most | {:.0}, {:.0} |",
        first[2], first[4]
    );

    let server = Server::start(&["--socket", socket.to_str().unwrap(), "--every", "100ms"]);
    let wire = |gzip: &str| -> usize {
        let of = |path: &str| server.get(path, &[gzip]).header("content-length").and_then(|n| n.parse::<usize>().ok());
        ["/", "/web.js", "/web.css", "/icon.svg"].iter().filter_map(|path| of(path)).sum()
    };
    println!("| page, bytes: on the wire (gzip), as it is | {}, {} |", wire("Accept-Encoding: gzip"), wire("X: y"));
    println!("| resident while nobody watches, kB | {} |", server.resident_kb());
    browser.open(&server.address, Window { width: 1280, is_dark: false });
    browser.wait_for(LIVE);
    let (begun, before) = (Instant::now(), processor_s(server.pid()));
    let mut most = 0;
    while begun.elapsed() < Duration::from_secs(SECONDS) {
        std::thread::sleep(Duration::from_millis(100));
        controller.set(|status| status["running_s"] = json!(begun.elapsed().as_secs_f64()));
        most = most.max(server.resident_kb());
    }
    let part = (processor_s(server.pid()) - before) / begun.elapsed().as_secs_f64();
    let events = browser.evaluate("Number(document.documentElement.dataset.events)");
    println!("| one viewer for {SECONDS} s, ten updates a second, events that came | {events} |");
    println!("| resident then, kB: most | {most} |");
    println!("| of a core, % | {:.2} |", 100.0 * part);
}

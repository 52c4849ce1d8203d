//! Any `--set`s, one a line, on the SAP-LAW home: never a panic, and what is taken has bounded counts.
#![no_main]

use std::io;

use lasthop_home::scenario::{MOST, Scenario};
use libfuzzer_sys::fuzz_target;

const HOME: &str = include_str!("../../scenarios/papers/sap-law.toml");

fuzz_target!(|text: &str| {
    let read = |_: &std::path::Path| -> io::Result<String> { Ok("1 I 0 900\n2 P 40 300\n".to_owned()) };
    let set: Vec<String> = text.lines().take(20).map(str::to_owned).collect();
    if let Ok(home) = Scenario::parse_with(HOME, "fuzz.toml", &set, &read) {
        assert!(home.stations.len() <= MOST as usize && home.flows.len() <= MOST as usize);
        assert!(home.flows.iter().all(|flow| flow.start < flow.stop && flow.stop <= home.duration));
    }
});

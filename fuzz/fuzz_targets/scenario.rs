//! A scenario file of any text: never a panic, and what is taken has bounded counts.
#![no_main]

use std::io;

use lasthop_home::scenario::{MOST, Scenario};
use lasthop_home::traffic::Source;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // No file of the machine is opened.
    let read = |_: &std::path::Path| -> io::Result<String> { Ok("1 I 0 900\n2 P 40 300\n".to_owned()) };
    let Ok(home) = Scenario::parse_with(text, "fuzz.toml", &[], &read) else { return };
    assert!(home.stations.len() <= MOST as usize);
    assert!(home.servers.len() <= MOST as usize);
    assert!(home.flows.len() <= MOST as usize);
    assert!(home.measure_from < home.duration);
    for flow in home.flows.iter().take(8) {
        let packets: Vec<_> = Source::new(flow, home.seed).take(50).collect();
        assert!(packets.iter().all(|p| p.at >= flow.start && p.at < flow.stop && (28..=1500).contains(&p.bytes)));
        assert!(packets.windows(2).all(|w| w[0].at <= w[1].at));
    }
});

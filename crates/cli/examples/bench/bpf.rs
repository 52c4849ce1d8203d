//! What the BPF programs cost per packet: runs the bench of `live` and writes its figures beside the aims.

use std::process::Command;

use serde_json::Value;

use crate::summary::Summary;
use crate::{Settings, output_of};

/// Case of the bench, what it is, aim in ns.
const AIMS: [(&str, &str, f64); 3] = [
    ("data_measured_and_passed", "a data packet of a known flow, measured and passed", 100.0),
    ("ack_rewritten", "an ACK, rewritten on every run", 150.0),
    ("ack_with_sack_rewritten", "an ACK with SACK blocks, rewritten on every run", 150.0),
];

/// The bench prints one JSON line per case. `tools/bench` builds it and says where it is.
pub fn cost(_: &Settings, summary: &mut Summary) {
    let Some(bench) = std::env::var_os("LASTHOP_BPF_BENCH") else {
        return summary.failed("bpf", "cost per packet", "LASTHOP_BPF_BENCH is not set; run `make bench`");
    };
    let text = match output_of(&mut Command::new(bench)) {
        Ok(text) => text,
        Err(why) => return summary.failed("bpf", "cost per packet", &why),
    };
    let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    for (case, what, aim) in AIMS {
        let Some(line) = lines.iter().find(|line| line["case"] == case) else {
            summary.failed("bpf", what, "the bench has no such case");
            continue;
        };
        summary.keep("bpf", case, line.clone());
        let ns = line["ns"].as_f64().unwrap_or(f64::NAN);
        let measured = format!("{ns:.0} ns, {} x an empty program ({} ns)", line["ratio"], line["empty_ns"]);
        summary.line("bpf", what, &measured, &format!("{aim:.0} ns"), Some(ns <= aim));
    }
}

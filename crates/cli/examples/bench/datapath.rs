//! What CHAP costs in user space: runs the benches of `core` and `live` and writes their figures beside the aims.

use std::process::Command;

use serde_json::Value;

use crate::summary::Summary;
use crate::{Settings, output_of};

const PART: &str = "datapath";
/// Of credit alone, with 1,000 flows that have packets all the time.
const AIM_NS: f64 = 150.0;

/// Each bench prints one JSON line per case. `tools/bench` builds them and says where they are.
pub fn cost(_: &Settings, summary: &mut Summary) {
    for line in lines("LASTHOP_CREDIT_BENCH", "cost of credit", summary) {
        if line["flows"] != 1_000 {
            continue;
        }
        let load = line["load"].as_str().unwrap_or("?");
        let ns = line["ns_per_packet"].as_f64().unwrap_or(f64::NAN);
        let what = format!("credit alone at 1,000 flows, {load}: in, out and charged");
        let aim = load == "backlogged";
        let aims = if aim { format!("{AIM_NS:.0} ns") } else { String::new() };
        summary.line(PART, &what, &format!("{ns:.0} ns"), &aims, aim.then_some(ns <= AIM_NS));
        summary.keep(PART, &format!("credit-{load}"), line.clone());
    }
    for line in lines("LASTHOP_DATAPATH_BENCH", "the way through the TAP", summary) {
        let (case, bytes) = (line["case"].as_str().unwrap_or("?"), &line["bytes"]);
        if case == "queue" {
            let what = format!("queue with frames of {bytes} B: copied, read, in, out and charged");
            summary.line(PART, &what, &format!("{} ns", line["ns"]), "", None);
        } else {
            let measured = format!(
                "{} packets/s, {} by the kernel alone; {} ns of the thread each; lost {}",
                line["packets_per_s"], line["kernel_packets_per_s"], line["queue_ns"], line["lost"]
            );
            summary.line(
                PART,
                &format!("frames of {bytes} B through TAP, queue and packet socket"),
                &measured,
                "",
                None,
            );
        }
        summary.keep(PART, &format!("{case}-{bytes}"), line.clone());
    }
}

fn lines(variable: &str, what: &str, summary: &mut Summary) -> Vec<Value> {
    let text = match std::env::var_os(variable) {
        None => Err(format!("{variable} is not set; run `make bench`")),
        Some(bench) => output_of(&mut Command::new(bench)),
    };
    match text {
        Ok(text) => text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
        Err(why) => {
            summary.failed(PART, what, &why);
            Vec::new()
        }
    }
}

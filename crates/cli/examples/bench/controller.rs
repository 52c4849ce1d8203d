//! What the control loop costs: runs the bench of `live` and writes its figures beside the aims.

use std::process::Command;

use serde_json::Value;

use crate::summary::Summary;
use crate::{Settings, output_of};

const PART: &str = "controller";
/// Connections, and most of a core that deciding about them may take, %.
const AIMS: [(u64, f64); 4] = [(5, 0.2), (10, 1.0), (100, 2.0), (10_000, 5.0)];

/// The bench prints one JSON line per case. `tools/bench` builds it and says where it is.
pub fn cost(_: &Settings, summary: &mut Summary) {
    let Some(bench) = std::env::var_os("LASTHOP_CONTROLLER_BENCH") else {
        return summary.failed(PART, "the control loop", "LASTHOP_CONTROLLER_BENCH is not set; run `make bench`");
    };
    let text = match output_of(&mut Command::new(bench)) {
        Ok(text) => text,
        Err(why) => return summary.failed(PART, "the control loop", &why),
    };
    for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let (connections, load) = (&line["connections"], line["load"].as_str().unwrap_or("?"));
        let percent = line["core_percent"].as_f64().unwrap_or(f64::NAN);
        let aim = AIMS.iter().find(|(count, _)| *connections == *count).map(|(_, aim)| *aim);
        let measured = format!(
            "{percent:.2} % of a core; {} us per decision, one every {} ms",
            line["us_per_decision"], line["interval_ms"]
        );
        let aims = aim.map_or_else(String::new, |aim| format!("{aim} %"));
        let what = format!("the control loop beside {connections} connections, {load}");
        summary.line(PART, &what, &measured, &aims, aim.map(|aim| percent <= aim));
        summary.keep(PART, &format!("{connections}-{load}"), line.clone());
    }
}

//! Every scenario of the repository, twice with one seed: nothing but the time it took may differ, and that is the caller's.

mod common;

use std::path::{Path, PathBuf};

use common::{load, run};
use lasthop_sim::Options;

fn scenarios(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            scenarios(&path, found);
        } else if path.extension().is_some_and(|e| e == "toml") {
            found.push(path);
        }
    }
}

/// Homes for programs that move bytes to slow storage: the emulator's alone.
const FOR_PROGRAMS: [&str; 2] = ["papers/messages.toml", "papers/messages-delays.toml"];

#[test]
fn what_is_made_for_programs_is_refused_for_its_storage_and_has_nothing_else_to_play() {
    for name in FOR_PROGRAMS {
        let refused = lasthop_sim::run(&load(name, &[]), &mut Options::default()).map(drop).unwrap_err().to_string();
        assert!(refused.contains("station.PDA.storage: not yet: "), "{refused}");
        let report = run(&load(name, &["station.PDA.storage=none", "duration=1s"]));
        assert!(report.flows.is_empty(), "{name}");
    }
}

#[test]
fn every_shipped_scenario_gives_one_report_per_seed() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/");
    let mut found = Vec::new();
    scenarios(Path::new(root), &mut found);
    assert!(found.len() >= 9, "{found:?}");
    for path in found {
        let name = path.strip_prefix(root).unwrap().display().to_string();
        if FOR_PROGRAMS.contains(&&*name) {
            continue;
        }
        // Those whose flows begin late are short enough in whole.
        let late = ["sap-law", "sap-law-clamp", "arq", "arq-pair", "arq-classes", "chap-web", "chap-phases"];
        let late = late.map(|name| format!("papers/{name}.toml")).contains(&name)
            || ["homes/garden.toml", "everyday/change.toml", "everyday/existing.toml", "everyday/longer-path.toml"]
                .contains(&&*name)
            || name.starts_with("homes/worst/");
        let set = |seed| if late { vec![seed] } else { vec![seed, "duration=3s", "measure_from=1s"] };
        let report = |seed| run(&load(&name, &set(seed)));
        let (first, second) = (report("seed=5"), report("seed=5"));
        assert_eq!(first.to_json(), second.to_json(), "{name}");
        assert_eq!(first.run.wall_s, 0.0, "{name}: there is no clock in the simulator");
        assert!(first.flows.iter().any(|flow| flow.metrics.delivered > 0), "{name}");
    }
}

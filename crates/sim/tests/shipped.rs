//! Every scenario of the repository, twice with one seed: nothing but the time it took may differ, and that is the caller's.

mod common;

use common::{FOR_PROGRAMS, load, run, shipped};
use lasthop_sim::Options;

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
    for (name, set) in shipped() {
        let report = |seed| run(&load(&name, &[&set[..], &[seed]].concat()));
        let (first, second) = (report("seed=5"), report("seed=5"));
        assert_eq!(first.to_json(), second.to_json(), "{name}");
        assert_eq!(first.run.wall_s, 0.0, "{name}: there is no clock in the simulator");
        assert!(first.flows.iter().any(|flow| flow.metrics.delivered > 0), "{name}");
    }
}

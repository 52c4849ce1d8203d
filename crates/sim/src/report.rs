//! What was seen, as `schema/report.md` has it.

use lasthop_core::units::Time;
use lasthop_home::report::{
    FORMAT, Fairness, Host, QueueReport, Report, Run, airtime_fairness, goodput_fairness, queue, stations,
};
use lasthop_home::scenario::Scenario;

use crate::engine::Engine;

/// The report of a run that has ended. It has no wall time: there is no clock here, the caller has one.
pub fn assemble(scenario: &Scenario, mut engine: Engine<'_, '_>, revision: &str) -> Report {
    let end = Time::ZERO + scenario.duration;
    let flows = engine.flow_reports(end);
    let air = engine.medium.snapshot(end);
    let names = scenario.queue_names().into_iter();
    let mut queues: Vec<QueueReport> = names.zip(&air.queues).map(|(name, metrics)| queue(&name, metrics)).collect();
    queues.extend(engine.wires.report(scenario, end));
    Report {
        format: FORMAT,
        scenario: scenario.name.clone(),
        seed: scenario.seed,
        duration_s: scenario.duration.as_secs_f64(),
        measure_from_s: scenario.measure_from.as_secs_f64(),
        run: Run {
            host: Host::Sim,
            revision: revision.to_owned(),
            wall_s: 0.0,
            events: engine.events(),
            valid: true,
            lag_ms: None,
            drops: None,
        },
        fairness: Fairness { goodput: goodput_fairness(scenario, &flows), airtime: airtime_fairness(&air.nodes) },
        flows,
        stations: stations(scenario, &air.nodes, scenario.duration),
        queues,
        snoop: engine.snoop.as_ref().map(|snoop| snoop.snapshot()),
        control: engine.control.as_ref().map(|control| control.report(scenario)),
    }
}

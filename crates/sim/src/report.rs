//! What was seen, as `schema/report.md` has it.

use lasthop_core::units::Time;
use lasthop_home::report::{
    FORMAT, Fairness, FlowReport, Host, PageReport, QueueReport, Report, Run, airtime_fairness, goodput_fairness,
    queue, stations,
};
use lasthop_home::scenario::Scenario;

use crate::engine::Engine;
use crate::flows::{Play, Running};

/// The report of a run that has ended. It has no wall time: there is no clock here, the caller has one.
pub fn assemble(scenario: &Scenario, mut engine: Engine<'_, '_>, revision: &str) -> Report {
    let end = Time::ZERO + scenario.duration;
    engine.access_point.finish(&mut engine.flows);
    engine.give_packets(scenario.flows.len());
    let flows: Vec<_> = (0..scenario.flows.len()).map(|flow| flow_report(scenario, &mut engine, flow, end)).collect();
    let medium = engine.medium.snapshot(end);
    let names = scenario.queue_names().into_iter();
    let mut queues: Vec<QueueReport> = names.zip(&medium.queues).map(|(name, metrics)| queue(&name, metrics)).collect();
    queues.extend(engine.wires.report(scenario, end));
    let mut report = Report {
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
        fairness: Fairness { goodput: goodput_fairness(scenario, &flows), airtime: airtime_fairness(&medium.nodes) },
        flows,
        stations: stations(scenario, &medium, scenario.duration),
        queues,
        snoop: None,
        control: None,
    };
    engine.access_point.report(scenario, &mut report);
    report
}

/// Of a flow of the scenario; those of the run's own have none.
fn flow_report(scenario: &Scenario, engine: &mut Engine<'_, '_>, i: usize, end: Time) -> FlowReport {
    let flow = &scenario.flows[i];
    let (from, to) = (scenario.host_name(flow.from), scenario.host_name(flow.to));
    let Running { play, meter, .. } = &mut engine.flows[i];
    let mut report = meter.finish(&flow.name, from, to, flow.kind.name());
    match play {
        Play::Tcp(connection) => {
            let (start_up, metrics) = connection.reports(end);
            (report.start_up.tcp, report.metrics.tcp) = (start_up, Some(metrics));
        }
        Play::Rate(rate) => {
            let (start_up, metrics) = rate.reports(end);
            (report.start_up.rate_control, report.metrics.rate_control) = (start_up, Some(metrics));
        }
        Play::Page(loader) => {
            report.metrics.page = Some(PageReport { load_ms: loader.load_ms().into_iter().collect() });
        }
        Play::Schedule(_) => {}
    }
    engine.access_point.report_flow(i, end, &mut engine.flows, &mut report);
    report
}

//! A report to test with, the same for the same scenario and seed.

use std::collections::BTreeMap;

use lasthop_home::report::{
    CapacityReport, ControlReport, Fairness, FlowReport, Host, LearnedReport, Metrics, QueueReport, Report, Run,
    StationReport,
};

/// `figure` shows in the flow's figures.
pub fn report(scenario: &str, seed: u64, figure: u64) -> Report {
    let metrics = Metrics { sent: figure, goodput_bps: figure as f64 / 3.0, ..Metrics::default() };
    Report {
        format: 1,
        scenario: scenario.to_owned(),
        seed,
        duration_s: 10.0,
        measure_from_s: 0.0,
        run: Run {
            host: Host::Sim,
            revision: lasthop_command::REVISION.to_owned(),
            wall_s: std::time::SystemTime::now().elapsed().unwrap_or_default().as_secs_f64(),
            events: seed.saturating_add(1000),
            valid: true,
            lag_ms: None,
            drops: None,
        },
        flows: vec![FlowReport {
            name: "ftp".into(),
            from: "W".into(),
            to: "N".into(),
            kind: "ftp".into(),
            metrics: metrics.clone(),
            start_up: metrics,
        }],
        stations: vec![StationReport {
            name: "AP".into(),
            airtime_share: 0.5,
            frames: 1,
            attempts: 1,
            retries: 0,
            given_up: 0,
            collisions: 0,
            classes: Vec::new(),
            rates: Vec::new(),
        }],
        queues: vec![QueueReport {
            name: "AP".into(),
            mean_packets: 0.0,
            max_packets: 0,
            mean_sojourn: 0.0,
            p99_sojourn: 0.0,
            dropped: 0,
            marked: 0,
        }],
        fairness: Fairness::default(),
        snoop: None,
        control: Some(ControlReport {
            capacity_bps: CapacityReport { mean: 2e7, last: 2e7 },
            udp_bps: 0.0,
            controllable_share: 1.0,
            rewritten: 0,
            passed: 0,
            not_controlled: BTreeMap::new(),
            clamps: BTreeMap::from([("ftp".to_owned(), 9000)]),
            learned: LearnedReport::default(),
            levers: None,
        }),
    }
}

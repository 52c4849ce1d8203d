use std::collections::BTreeSet;

use lasthop_core::units::{Span, Time};
use serde_json::Value;

use super::*;

/// Ten packets, every figure below derived by hand. Times in ms since the start of the run; payload = IP - 28.
/// The run: youngest flow starts at 100, figures from 200, end 600.
///
/// | packet | sent | received | delay | population |
/// |---|---|---|---|---|
/// | a | 50 | 62 | 12 | neither: before the youngest flow's start |
/// | b | 100 | 110 | 10 | start-up; the minimum of the whole run |
/// | c | 150 | 164 | 14 | start-up |
/// | d | 199 | air | | start-up |
/// | e | 200 | 220 | 20 | figures |
/// | f | 250 | 262 | 12 | figures |
/// | g | 300 | ap queue | | figures |
/// | h | 350 | 366 | 16 | figures; 104 after f: late |
/// | i | 400 | 412, again 415 | 12 | figures, with a duplicate |
/// | j | 590 | in flight | | sent, counts nowhere else |
fn measured() -> FlowReport {
    let window = Window {
        youngest_start: Span::from_millis(100),
        measure_from: Span::from_millis(200),
        start: Span::from_millis(50),
        end: Span::from_millis(600),
    };
    // The clock does not start at zero.
    let ms = |n: u64| Time::from_nanos((7_000 + n) * 1_000_000);
    let mut meter = FlowMeter::new(ms(0), window);
    for sent in [50, 100, 150, 199, 200, 250, 300, 350, 400, 590] {
        meter.on_sent(ms(sent));
    }
    for (sent, received) in [(50, 62), (100, 110), (150, 164), (200, 220), (250, 262), (350, 366), (400, 412)] {
        meter.on_delivered(ms(sent), ms(received), 200, 172);
    }
    meter.on_lost(ms(199), LossPlace::Channel);
    meter.on_lost(ms(300), LossPlace::ApQueue);
    meter.on_duplicate(ms(400));
    meter.finish("game", "W1", "N1", "game-server")
}

fn near(found: f64, right: f64) {
    assert!((found - right).abs() <= right.abs() / 1000.0 + 1e-9, "{found} for {right}");
}

#[test]
fn counts_follow_the_time_a_packet_was_sent() {
    let FlowReport { metrics, start_up, .. } = measured();
    assert_eq!((metrics.sent, metrics.delivered, metrics.duplicates), (6, 4, 1));
    assert_eq!(metrics.lost, Lost { ap_queue: 1, ..Lost::default() });
    assert_eq!((start_up.sent, start_up.delivered, start_up.duplicates), (3, 2, 0));
    assert_eq!(start_up.lost, Lost { channel: 1, ..Lost::default() });
    assert_eq!(metrics.lost.total() + metrics.delivered + 1, metrics.sent, "one is in flight");
}

#[test]
fn delays_are_of_the_population_and_added_delay_is_above_the_minimum_of_the_whole_run() {
    let FlowReport { metrics, start_up, .. } = measured();
    // 12, 12, 16, 20: ranks 2, 4, 4 of 4 are the quantiles.
    let delay = metrics.delay.unwrap();
    for (found, right) in [
        (delay.min, 12.0),
        (delay.mean, 15.0),
        (delay.p50, 12.0),
        (delay.p95, 20.0),
        (delay.p99, 20.0),
        (delay.max, 20.0),
    ] {
        near(found, right);
    }
    let added = metrics.added_delay.unwrap();
    near(added.mean, 5.0);
    assert!((added.p50 - 2.0).abs() < 0.02, "{added:?}: a quantile is within 1/1024 of the delay, 12 ms");
    near(added.max, 10.0);
    near(start_up.added_delay.unwrap().max, 4.0);
    near(start_up.delay.unwrap().mean, 12.0);
}

#[test]
fn jitter_and_lateness_follow_the_arrivals() {
    let FlowReport { metrics, start_up, .. } = measured();
    // e->f -8, f->h 4, h->i -4: |D| 8, 4, 4; c->e is no pair, they are of two populations.
    let jitter = metrics.jitter.unwrap();
    near(jitter.mean, 16.0 / 3.0);
    near(jitter.var, (64.0 + 16.0 + 16.0) / 3.0 - (16.0_f64 / 3.0).powi(2));
    near(jitter.max, 8.0);
    // 8/16, then + (4 - 0.5)/16, then + (4 - 0.71875)/16.
    near(metrics.rfc3550.unwrap(), 0.923_828);
    near(start_up.jitter.unwrap().mean, 4.0);
    // Arrivals 220 (56 after c), 262, 366 (late), 412.
    near(metrics.timely_index.unwrap(), 3.0 / 6.0);
    near(metrics.delayed_rate.unwrap(), 1.0 / 4.0);
    near(metrics.loss_rate.unwrap(), 1.0 / 6.0);
    // b 48 after a, c 54 after b.
    near(start_up.timely_index.unwrap(), 2.0 / 3.0);
}

#[test]
fn rates_are_reckoned_over_the_time_of_the_population() {
    let FlowReport { metrics, start_up, .. } = measured();
    near(metrics.goodput_bps, 4.0 * 172.0 * 8.0 / 0.4);
    near(metrics.rate_bps, 4.0 * 200.0 * 8.0 / 0.4);
    near(start_up.rate_bps, 2.0 * 200.0 * 8.0 / 0.1);
}

#[test]
fn a_flow_that_completes_is_reckoned_to_its_completion() {
    let window = Window {
        youngest_start: Span::ZERO,
        measure_from: Span::ZERO,
        start: Span::from_secs(2),
        end: Span::from_secs(60),
    };
    let mut meter = FlowMeter::new(Time::ZERO, window);
    let at = |s: u64| Time::ZERO + Span::from_secs(s);
    meter.on_sent(at(2));
    meter.on_delivered(at(2), at(3), 1500, 1448);
    meter.on_completed(at(4));
    let report = meter.finish("ftp", "W3", "N3", "ftp");
    near(report.metrics.goodput_bps, 1448.0 * 8.0 / 2.0);
    assert_eq!(report.start_up, Metrics::default(), "nothing was sent before second 0");
}

fn full() -> Report {
    let mut flow = measured();
    flow.metrics.tcp = Some(TcpReport {
        acked_packets: 1,
        retransmitted: 0,
        timeouts: 0,
        fast_retransmits: 0,
        cwnd_max: 10.0,
        cwnd_mean: 10.0,
        srtt_ms: 81.5,
        local_retransmitted: Some(2),
    });
    flow.metrics.first_half = flow.metrics.tcp;
    flow.metrics.rate_control =
        Some(RateReport { allowed_bps: 1e6, loss_events: 3, loss_event_rate: 0.01, silences: 0, srtt_ms: 44.0 });
    flow.metrics.page = Some(PageReport { load_ms: vec![514.0] });
    Report {
        format: FORMAT,
        scenario: "sap-law".to_owned(),
        seed: 1,
        duration_s: 180.0,
        measure_from_s: 135.0,
        run: Run {
            host: Host::Emu,
            revision: "0".to_owned(),
            wall_s: 180.0,
            events: 1,
            valid: true,
            lag_ms: Some(Lag { p50: 0.01, p99: 0.1, p999: 0.5, max: 3.0 }),
            drops: Some(0),
        },
        flows: vec![flow],
        stations: vec![StationReport {
            name: "AP".to_owned(),
            airtime_share: 0.5,
            frames: 1,
            attempts: 2,
            retries: 1,
            given_up: 0,
            collisions: 0,
            classes: vec![ClassReport {
                class: "BE".to_owned(),
                ppdus: 2,
                mpdus: 7,
                mpdus_per_ppdu: Some(3.5),
                collision_probability: Some(0.5),
                internal_collisions: 1,
                retries: 1,
                given_up: 0,
                block_ack_requests: 1,
                airtime_share: 0.5,
            }],
            rates: vec![AirRateReport {
                to: "N".to_owned(),
                rate_bps: 39_000_000,
                mcs: Some(4),
                streams: 1,
                width_mhz: 20,
                guard_interval_ns: Some(800),
                mpdus: 7,
                acked: 6,
            }],
        }],
        queues: vec![QueueReport {
            name: "AP".to_owned(),
            mean_packets: 0.1,
            max_packets: 3,
            mean_sojourn: 0.4,
            p99_sojourn: 2.0,
            dropped: 0,
            marked: 4,
        }],
        fairness: Fairness { goodput: Some(1.0), airtime: None },
        snoop: Some(lasthop_core::snoop::Snapshot::default()),
        control: Some(ControlReport {
            capacity_bps: CapacityReport { mean: 18e6, last: 18e6 },
            udp_bps: 4e5,
            controllable_share: 0.99,
            rewritten: 5,
            passed: 9,
            not_controlled: BTreeMap::from([("scale-unknown".to_owned(), 2)]),
            clamps: BTreeMap::from([("ftp".to_owned(), 178_000)]),
            learned: LearnedReport {
                capacity_down_bps: Some(CapacityReport { mean: 22e6, last: 23e6 }),
                capacity_up_bps: Some(CapacityReport { mean: 21e6, last: 22e6 }),
                queue_place: Some(QueuePlaces { down: Some("firmware".to_owned()), up: None }),
                elastic_udp_bps: Some(1e6),
                decisions: Some(7),
            },
            levers: Some(LeversReport {
                each: BTreeMap::from([(
                    "class".to_owned(),
                    LeverReport {
                        stage: "kept".to_owned(),
                        found: "off".to_owned(),
                        in_force: "on".to_owned(),
                        pairs: Some(6),
                        added_ms: Some(-3.0),
                        carried: Some(1.0),
                    },
                )]),
                classes: BTreeMap::from([("game-down".to_owned(), "VO".to_owned())]),
                trials: 1,
                empty_trials: 0,
            }),
        }),
    }
}

/// Every path of an object's fields; items of arrays share one path.
fn paths(prefix: &str, value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                paths(&path, inner, into);
                into.insert(path);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| paths(&format!("{prefix}[]"), item, into)),
        _ => {}
    }
}

#[test]
fn the_json_has_exactly_the_fields_of_the_schema() {
    let json: Value = serde_json::from_str(&full().to_json()).unwrap();
    let mut found = BTreeSet::new();
    paths("", &json, &mut found);
    let golden = include_str!("../../../../tests/golden/report-fields.txt");
    let right: BTreeSet<String> = golden.lines().filter(|l| !l.starts_with('#')).map(str::to_owned).collect();
    let missing: Vec<_> = right.difference(&found).collect();
    let extra: Vec<_> = found.difference(&right).collect();
    assert!(missing.is_empty() && extra.is_empty(), "missing {missing:?}, extra {extra:?}");
}

#[test]
fn what_the_schema_calls_absent_is_absent_and_a_figure_of_nothing_is_null() {
    let mut report = full();
    report.control = None;
    report.run = Run { host: Host::Sim, lag_ms: None, drops: None, ..report.run };
    let json: Value = serde_json::from_str(&report.to_json()).unwrap();
    assert!(json.get("control").is_none());
    assert_eq!(json["run"]["host"], "sim");
    assert!(json["run"].get("lag_ms").is_none() && json["run"].get("drops").is_none());
    let start_up = &json["flows"][0]["start_up"];
    assert!(start_up.get("tcp").is_none() && start_up.get("page").is_none());
    let silent: Value = serde_json::to_value(Metrics::default()).unwrap();
    assert!(silent["delay"].is_null() && silent["jitter"].is_null() && silent["timely_index"].is_null());
}

#[test]
fn a_report_of_the_version_before_is_read_by_its_names() {
    let report = full();
    let old = report.to_json().replace("\"channel\":", "\"air\":");
    assert_ne!(old, report.to_json());
    assert_eq!(serde_json::from_str::<Report>(&old).unwrap(), report);
}

#[test]
fn a_report_is_read_back_as_it_was_written() {
    let report = full();
    assert_eq!(serde_json::from_str::<Report>(&report.to_json()).unwrap(), report);
}

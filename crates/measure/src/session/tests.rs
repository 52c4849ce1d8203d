//! A session with a controller of a few lines, in virtual time.

use lasthop_status::{Basis, PauseStatus, WaitingStatus};

use super::*;
use crate::findings::{Cause, Verdict};
use crate::plan::Direction;

/// A controller whose direction carries 20 Mbit/s, and whose packets wait 4 ms while it controls and 200 ms while it does not.
struct Home {
    now: Time,
    status: Status,
    /// (what, until).
    paused: Vec<(What, Time)>,
    buckets: [u64; 2],
    told: Vec<Request>,
    answers: bool,
    obeys: bool,
}

const WAITS_MS: [f64; 2] = [4.0, 200.0];

fn status() -> Status {
    let text = r#"{"format": 2, "version": "0.2.0", "pid": 7, "running_s": 100.0, "dry_run": false, "interfaces": [],
        "capacity_bps": 20000000, "available_bps": 0, "udp_bps": {"to_station": 0, "to_remote": 0}, "flows": [],
        "table": {"connections": 0, "bound": 0, "forgotten": 0}, "packets": {},
        "conntrack": {"asked": 0, "learned": 0, "unknown": 0}, "bypass": {"bytes": 0, "share": 0, "bypasses_control": false},
        "controller": {"interval_ms": 50, "intervals": 0, "missed": 0, "longest_ms": 0, "plans": 0, "failures": 0},
        "directions": {"down": {"capacity_bps": 20000000, "capacity_basis": "measured", "queue_ms": 0, "limits": true,
        "queue_place": null}, "up": {"capacity_bps": null, "queue_ms": 0, "limits": false, "queue_place": null}},
        "devices": [{"id": "02:00:5e:10:00:01", "name": "annes-laptop", "down_bps": 18000000, "up_bps": 90000, "flows": 2,
        "down_waiting_ms": null, "up_waiting_ms": null}],
        "control": {"capacity_bps": {"mean": 0, "last": 0}, "udp_bps": 0, "controllable_share": 1, "rewritten": 0, "passed": 0,
        "not_controlled": {}, "clamps": {}}}"#;
    serde_json::from_str(text).unwrap()
}

impl Home {
    fn new() -> Self {
        let (paused, told) = (Vec::new(), Vec::new());
        Self { now: Time::from_nanos(5), status: status(), paused, buckets: [0; 2], told, answers: true, obeys: true }
    }

    /// Time passes, 50 ms after 50 ms.
    fn pass(&mut self, to: Time) {
        while self.now < to {
            let step = Span::from_millis(50).min(to.since(self.now));
            self.now += step;
            self.paused.retain(|(_, until)| *until > self.now);
            let is_off = self.paused.iter().any(|(what, _)| *what == What::Windows);
            self.buckets[usize::from(is_off)] += 1;
            self.status.running_s += step.as_secs_f64();
            let down = &mut self.status.directions.down;
            down.carried_bytes += (step.as_secs_f64() * 2.5e6) as u64;
            let sum_ms = self.buckets.iter().zip(WAITS_MS).map(|(n, ms)| *n as f64 * ms).sum();
            let buckets = self.buckets.iter().zip(WAITS_MS).map(|(n, ms)| (Some(ms), *n)).collect();
            down.waiting =
                vec![WaitingStatus { place: "all".into(), count: self.buckets.iter().sum(), sum_ms, buckets }];
        }
        let left = |until: &Time| Some(until.since(self.now).as_secs_f64());
        self.status.paused = self
            .paused
            .iter()
            .map(|(what, until)| PauseStatus { what: *what, device: None, left_s: left(until) })
            .collect();
    }

    fn obey(&mut self, request: &Request) {
        self.told.push(request.clone());
        match request {
            Request::Pause { what, for_s, .. } => {
                self.paused.retain(|(other, _)| other != what);
                self.paused.push((*what, self.now + Span::from_secs_f64(for_s.unwrap())));
            }
            Request::Resume { what, .. } => self.paused.retain(|(other, _)| other != what),
        }
        self.pass(self.now);
    }

    /// Plays until it is over or `until` stops it; `each` may meddle before every step.
    fn play(&mut self, session: &mut Session, mut each: impl FnMut(&mut Self, &mut Session)) {
        for _ in 0..100_000 {
            each(self, session);
            while let Some(action) = session.poll(self.now) {
                match action {
                    Action::Ask if self.answers => session.on_status(self.now, &self.status),
                    Action::Ask => session.on_no_status(self.now, "nobody there"),
                    Action::Tell(request) if self.obeys => self.obey(&request),
                    Action::Tell(_) => session.on_refused("the controller refused: not now"),
                }
            }
            if session.is_over() {
                return;
            }
            let next = session.next_deadline().expect("it waits for a time");
            // Hosts are a little late.
            self.pass(next + Span::from_millis(3));
        }
        panic!("it never ended");
    }
}

fn session(pairs: usize, names: bool) -> Session {
    let plan = Plan { pairs, block_s: 20, discard_s: 5, seed: 3, direction: Direction::Down };
    Session::new(Params { plan, names, started_unix_s: 1_795_600_000 })
}

fn measured(pairs: usize, each: impl FnMut(&mut Home, &mut Session)) -> (Home, Report) {
    let (mut home, mut session) = (Home::new(), session(pairs, false));
    home.play(&mut session, each);
    assert_eq!(session.refusal(), None);
    (home, session.report())
}

#[test]
fn a_home_is_measured_as_planned_and_nothing_stays_paused() {
    let (home, report) = measured(8, |_, _| {});
    assert!(home.paused.is_empty(), "{:?}", home.paused);
    assert_eq!((report.blocks.len(), report.ended), (16, Ended::Complete));
    for (i, block) in report.blocks.iter().enumerate() {
        assert_eq!((block.arm, block.spoilt), (report.plan.arm(i), None));
        assert!((block.counted_s - 15.0).abs() < 0.1 && block.at_s.len() == 20, "{block:?}");
        assert_eq!(block.p95_ms().map(f64::round), Some(if block.arm == Arm::On { 4.0 } else { 199.0 }));
    }
    let found = report.found();
    assert_eq!((found.verdict, found.counted, found.dropped.len()), (Verdict::Shorter, 8, 0));
    assert!((found.throughput.unwrap().on / 20e6 - 1.0).abs() < 0.01);
}

#[test]
fn a_block_without_control_pauses_everything_for_a_little_longer_than_it_lasts_and_no_block_has_trials() {
    let (home, report) = measured(6, |_, _| {});
    let pauses: Vec<_> = home.told.iter().filter(|request| matches!(request, Request::Pause { .. })).collect();
    let of_block = |arm| if arm == Arm::Off { What::ALL.to_vec() } else { vec![What::Trials] };
    let expected: Vec<_> = report.blocks.iter().flat_map(|block| of_block(block.arm)).collect();
    assert_eq!((pauses.len(), expected.len()), (5 * 6 + 6, 36));
    for (request, what) in pauses.iter().zip(expected) {
        assert_eq!(**request, Request::Pause { what, device: None, for_s: Some(25.0) });
    }
    assert_eq!(home.paused, [], "all goes on in the end");
    assert!(matches!(home.told[0], Request::Resume { .. }), "it tries first whether it may");
    assert_eq!(report.blocks.iter().filter(|block| block.arm == Arm::Off).count(), 6);
}

#[test]
fn a_measurement_that_is_killed_leaves_nothing_paused() {
    let (mut home, mut session) = (Home::new(), session(6, false));
    // Somewhere within a block without control.
    let mut steps = 0;
    while home.paused.is_empty() || steps < 40 {
        steps += 1;
        while let Some(action) = session.poll(home.now) {
            match action {
                Action::Ask => session.on_status(home.now, &home.status),
                Action::Tell(request) => home.obey(&request),
            }
        }
        home.pass(session.next_deadline().unwrap());
    }
    home.pass(home.now + Span::from_secs(25));
    assert!(home.paused.is_empty());
}

#[test]
fn a_controller_that_is_started_anew_spoils_the_block_and_no_other() {
    let mut is_done = false;
    let (_, report) = measured(6, |home, session| {
        if session.done.len() == 3 && session.block.at_s.len() == 10 && !is_done {
            is_done = true;
            home.status.pid = 8;
            (home.status.running_s, home.status.directions.down.carried_bytes) = (0.0, 0);
            home.buckets = [0; 2];
            home.paused.clear();
            home.pass(home.now);
        }
    });
    let spoilt: Vec<_> = report.blocks.iter().map(|block| block.spoilt).collect();
    assert_eq!(spoilt[3], Some(Spoilt::Restarted));
    assert_eq!(spoilt.iter().flatten().count(), 1, "{spoilt:?}");
    assert_eq!(report.found().counted, 5);
}

#[test]
fn a_controller_that_is_silent_for_a_while_spoils_the_block() {
    let (_, report) = measured(6, |home, session| {
        home.answers =
            !(session.done.len() == 4 && (8..13).contains(&(home.now.since(session.block_began).as_secs_f64() as u32)));
    });
    let spoilt: Vec<_> = report.blocks.iter().map(|block| block.spoilt).collect();
    assert_eq!(spoilt[4], Some(Spoilt::Silent));
    assert_eq!(spoilt.iter().flatten().count(), 1, "{spoilt:?}");
}

#[test]
fn a_single_answer_that_is_missing_spoils_nothing() {
    let (_, report) = measured(6, |home, session| {
        let s = home.now.since(session.block_began).as_secs_f64();
        home.answers = !(session.done.len() == 4 && (8.5..9.5).contains(&s));
    });
    assert!(report.blocks.iter().all(|block| block.spoilt.is_none()));
    assert_eq!(report.blocks[4].at_s.len(), 19);
}

#[test]
fn a_controller_that_is_gone_ends_the_measurement() {
    let (_, report) = measured(12, |home, session| home.answers = session.done.len() < 4);
    assert_eq!(report.ended, Ended::Silent);
    assert_eq!(report.blocks.len(), 8);
    assert_eq!(report.found().counted, 2);
}

#[test]
fn who_resumes_in_a_block_without_control_spoils_it() {
    let (_, report) = measured(6, |home, session| {
        if session.done.len() == 2 && session.block.at_s.len() > 8 {
            home.paused.retain(|(what, _)| *what != What::Udp);
            home.pass(home.now);
        }
    });
    let expected = (report.blocks[2].arm == Arm::Off).then_some(Spoilt::Interfered);
    assert_eq!(report.blocks[2].spoilt, expected);
    let pausing = |block: usize| {
        let (_, report) = measured(6, |home, session| {
            if session.done.len() == block && session.block.arm == Arm::On && session.block.at_s.len() == 9 {
                home.obey(&Request::Pause { what: What::Windows, device: None, for_s: Some(2.0) });
            }
        });
        (report.blocks[block].arm, report.blocks[block].spoilt)
    };
    for block in 0..4 {
        let (arm, spoilt) = pausing(block);
        assert_eq!(spoilt, (arm == Arm::On).then_some(Spoilt::Interfered));
    }
}

#[test]
fn a_refusal_in_the_middle_spoils_its_block() {
    let (_, report) = measured(6, |home, session| home.obeys = session.done.len() != 5);
    let refused = report.blocks.iter().filter(|block| block.spoilt == Some(Spoilt::Refused)).count();
    assert!(refused <= 1, "{refused}");
    assert!(report.found().counted >= 5);
}

#[test]
fn what_cannot_be_measured_is_refused_at_the_start_with_what_to_do() {
    let refused = |change: fn(&mut Home)| {
        let (mut home, mut session) = (Home::new(), session(6, false));
        change(&mut home);
        home.play(&mut session, |_, _| {});
        assert!(home.told.is_empty(), "nothing was told to it");
        session.refusal().expect("refused").to_string()
    };
    assert!(refused(|home| home.status.dry_run = true).contains("start it without"));
    assert!(refused(|home| home.status.windows = false).contains("windows = false"));
    assert!(refused(|home| home.answers = false).contains("nobody there"));
    assert!(refused(|home| home.obeys = false).contains("refused"));
    let paused = refused(|home| {
        home.status.paused = vec![PauseStatus { what: What::Udp, device: None, left_s: None }];
    });
    assert!(paused.contains("UDP marking is paused already"), "{paused}");
}

#[test]
fn a_device_that_is_left_alone_is_no_obstacle_and_is_said() {
    let (mut home, mut session) = (Home::new(), session(6, false));
    home.play(&mut session, |home, _| {
        home.status.paused.retain(|pause| pause.device.is_none());
        home.status.paused.push(PauseStatus {
            what: What::Windows,
            device: Some("02:00:5e:10:00:01".into()),
            left_s: None,
        });
    });
    let report = session.report();
    assert!(report.devices_paused && report.found().counted == 6, "{:?}", session.refusal());
}

#[test]
fn who_stops_has_what_was_finished_and_control_goes_on() {
    let (home, report) = measured(20, |_, session| {
        if session.done.len() == 13 && session.block.at_s.len() == 7 {
            session.stop();
        }
    });
    assert!(home.paused.is_empty());
    assert_eq!((report.ended, report.blocks.len()), (Ended::Stopped, 14));
    let found = report.found();
    assert_eq!((found.verdict, found.counted), (Verdict::Shorter, 6));
    assert!(found.dropped.iter().any(|dropped| dropped.cause == Cause::Unfinished));
}

#[test]
fn names_of_devices_are_in_the_report_only_where_they_were_asked_for() {
    for (names, expected) in [(false, "device 1"), (true, "annes-laptop")] {
        let (mut home, mut session) = (Home::new(), session(1, names));
        home.play(&mut session, |_, _| {});
        let report = session.report();
        assert_eq!(report.devices[0].name, expected);
        assert_eq!(report.devices[0].down_bps, 18_000_000);
        assert!(!report.to_json().contains("02:00") && report.to_json().contains("annes") == names);
    }
}

#[test]
fn where_nothing_ever_waited_nothing_was_loaded() {
    let (_, report) = measured(6, |home, _| home.status.directions.down.capacity_basis = Some(Basis::Estimate));
    assert_eq!((report.capacity_bps, report.found().verdict), (None, Verdict::NotEnoughLoad));
}

#[test]
fn progress_counts_blocks_and_time_down() {
    let (mut home, mut session) = (Home::new(), session(6, false));
    assert_eq!(session.snapshot(home.now).left_s, 240.0);
    let mut last = 240.0;
    home.play(&mut session, |home, session| {
        let at = session.snapshot(home.now);
        if session.phase == Phase::Measuring {
            assert!(at.left_s <= last && at.blocks < at.of, "{at:?}");
            assert_eq!(at.counted_pairs, at.pairs);
            last = at.left_s;
        }
    });
    assert!(last < 2.0);
}

use lasthop_core::units::{Span, Time};

use super::*;

/// A path whose goodput and delay are given per interval, and an algorithm on it; time moves in steps of 10 ms.
struct Path {
    algorithm: Algorithm,
    now: Time,
    connects: [usize; 2],
    probes: [usize; 2],
    finished: bool,
}

impl Path {
    fn new(params: Params, directions: Directions) -> Self {
        let algorithm = Algorithm::new(params, directions, Time::ZERO);
        Self { algorithm, now: Time::ZERO, connects: [0; 2], probes: [0; 2], finished: false }
    }

    /// One second in which each loaded direction carries `rate` byte/s and every round trip takes `ms`.
    fn second(&mut self, rate: u64, ms: f64) {
        for _ in 0..100 {
            self.now += Span::from_millis(10);
            for direction in self.algorithm.directions.each() {
                self.algorithm.on_bytes(self.now, *direction, rate / 100);
            }
            self.drain(ms);
        }
    }

    fn drain(&mut self, ms: f64) {
        while let Some(action) = self.algorithm.poll(self.now) {
            match action {
                Action::Connect(direction) => self.connects[direction.index()] += 1,
                Action::ProbeForeign => {
                    self.probes[0] += 1;
                    self.algorithm.on_foreign(self.now, Foreign { tcp_ms: ms, tls_ms: ms, http_ms: ms });
                }
                Action::ProbeSelf => {
                    self.probes[1] += 1;
                    self.algorithm.on_self(self.now, ms);
                }
                Action::Finish => self.finished = true,
            }
        }
    }
}

const RATE: u64 = 2_500_000;

#[test]
fn one_connection_starts_each_direction_and_every_interval_adds_one() {
    let mut path = Path::new(Params::default(), Directions::Both);
    path.drain(1.0);
    assert_eq!(path.connects, [1, 1]);
    path.second(RATE, 50.0);
    path.second(RATE, 50.0);
    assert_eq!(path.connects, [3, 3]);
}

#[test]
fn connections_stop_at_their_most() {
    let params = Params { most_connections: 3, ..Params::default() }.without_end();
    let mut path = Path::new(params, Directions::Down);
    (0..6).for_each(|n| path.second(RATE << (n % 2), 50.0));
    assert_eq!(path.connects, [3, 0]);
}

#[test]
fn a_constant_path_is_stable_after_two_times_four_intervals() {
    let mut path = Path::new(Params::default(), Directions::Down);
    for _ in 0..7 {
        path.second(RATE, 300.0);
        assert!(!path.finished);
    }
    path.second(RATE, 300.0);
    assert!(path.finished);
    let report = path.algorithm.report().expect("probes of both kinds");
    // 300 ms for each of the four times: 60000 / 300.
    assert!((report.score.rpm - 200.0).abs() < 1e-9, "{report:?}");
    assert_eq!(
        (report.stable, report.confidence, report.goodput_confidence),
        (true, Confidence::High, Confidence::High)
    );
    assert_eq!((report.goodput_down_bps, report.goodput_up_bps), (Some(2e7), None));
    assert_eq!((report.intervals, path.algorithm.next_deadline()), (8, None));
}

#[test]
fn a_rising_goodput_is_waited_for() {
    let mut path = Path::new(Params { limit: None, ..Params::default() }, Directions::Down);
    // 1, 2, 4, 8 MB/s: moving averages 1, 1.5, 2.33, 3.75, and they do not agree.
    for n in 0..4 {
        path.second(1_000_000 << n, 50.0);
    }
    assert_eq!(path.algorithm.snapshot().stage, Stage::Goodput);
    let average = path.algorithm.snapshot().goodput_bps[0];
    assert!((average - 3.75e6 * 8.0).abs() < 1.0, "{average}");
    (0..7).for_each(|_| path.second(8_000_000, 50.0));
    assert_eq!(path.algorithm.snapshot().stage, Stage::Responsiveness);
}

#[test]
fn a_test_that_is_not_stable_ends_at_its_limit_and_says_so() {
    let mut path = Path::new(Params::default(), Directions::Down);
    for n in 0..20 {
        assert!(!path.finished);
        path.second(RATE, if n % 8 < 4 { 50.0 } else { 500.0 });
    }
    assert!(path.finished);
    let report = path.algorithm.report().expect("probes of both kinds");
    assert_eq!(
        (report.stable, report.confidence, report.goodput_confidence),
        (false, Confidence::Medium, Confidence::High)
    );
}

#[test]
fn a_goodput_that_is_not_stable_is_left_after_half_of_the_limit() {
    let mut path = Path::new(Params::default(), Directions::Down);
    for n in 0..14 {
        path.second(if (n + 2) % 8 < 4 { RATE } else { RATE / 4 }, 50.0);
    }
    assert!(path.finished, "responsiveness is stable at 50 ms");
    let report = path.algorithm.report().expect("probes of both kinds");
    assert_eq!(
        (report.stable, report.confidence, report.goodput_confidence),
        (false, Confidence::High, Confidence::Medium)
    );
}

#[test]
fn a_test_that_ends_before_four_intervals_has_low_confidence() {
    let params = Params { limit: Some(Span::from_secs(3)), ..Params::default() };
    let mut path = Path::new(params, Directions::Down);
    (0..3).for_each(|_| path.second(RATE, 50.0));
    let report = path.algorithm.report().expect("probes of both kinds");
    assert_eq!(
        (report.confidence, report.goodput_confidence, report.stable),
        (Confidence::Low, Confidence::Low, false)
    );
}

#[test]
fn probes_wait_for_the_first_goodput_take_turns_and_keep_to_their_part_of_it() {
    let mut path = Path::new(Params::default().without_end(), Directions::Down);
    path.second(RATE, 50.0);
    assert_eq!(path.probes, [1, 0], "the first probe goes when the first interval is over");
    (0..10).for_each(|_| path.second(RATE, 50.0));
    // A pair every 48 ms, which wake-ups every 10 ms make no faster: at most 209 in 10 s.
    assert!((190..=210).contains(&path.probes[0]) && path.probes[0].abs_diff(path.probes[1]) <= 1, "{:?}", path.probes);
}

#[test]
fn a_path_that_carries_nothing_is_not_probed() {
    let mut path = Path::new(Params::default(), Directions::Down);
    (0..20).for_each(|_| path.second(0, 50.0));
    assert_eq!((path.probes, path.finished), ([0, 0], true));
    assert_eq!(path.algorithm.report(), None);
}

#[test]
fn the_slower_direction_holds_probes_back() {
    let mut algorithm = Algorithm::new(Params::default(), Directions::Both, Time::ZERO);
    algorithm.on_bytes(Time::ZERO, Direction::Down, RATE);
    algorithm.on_bytes(Time::ZERO, Direction::Up, RATE / 10);
    assert_eq!(std::iter::from_fn(|| algorithm.poll(Time::from_nanos(1_000_000_000))).count(), 5);
    assert_eq!(algorithm.probe_gap, Some(Span::from_millis(480)));
}

#[test]
fn too_many_probes_under_way_are_skipped_and_counted() {
    let params = Params { most_outstanding: 3, ..Params::default() };
    let mut algorithm = Algorithm::new(params, Directions::Down, Time::ZERO);
    algorithm.on_bytes(Time::ZERO, Direction::Down, RATE);
    for ms in 0..2000 {
        while algorithm.poll(Time::from_nanos(ms * 1_000_000)).is_some() {}
    }
    let seen = algorithm.snapshot();
    assert_eq!(seen.outstanding, 3);
    assert!(seen.skipped > 10, "{seen:?}");
    algorithm.on_lost_probe(Time::from_nanos(2_000_000_000));
    assert_eq!(algorithm.snapshot().outstanding, 2);
}

#[test]
fn a_wake_up_that_is_late_counts_the_time_that_went_by_and_sends_no_burst() {
    let mut algorithm = Algorithm::new(Params::default(), Directions::Down, Time::ZERO);
    algorithm.on_bytes(Time::from_nanos(10), Direction::Down, 5_000_000);
    // Two and a half seconds pass in one step: 2 MB/s, one interval, one probe.
    let late = Time::from_nanos(2_500_000_000);
    let actions: Vec<Action> = std::iter::from_fn(|| algorithm.poll(late)).collect();
    assert_eq!(actions.iter().filter(|action| **action == Action::ProbeForeign).count(), 1, "{actions:?}");
    assert_eq!(algorithm.snapshot().goodput_bps[0], 16e6);
    assert!(algorithm.next_deadline().is_some_and(|at| at > late));
}

#[test]
fn a_load_without_end_holds_its_connections_once_it_is_stable() {
    let mut path = Path::new(Params::default().without_end(), Directions::Down);
    (0..8).for_each(|_| path.second(RATE, 50.0));
    assert_eq!(path.algorithm.snapshot().stage, Stage::Holding);
    let connects = path.connects;
    (0..20).for_each(|_| path.second(RATE, 50.0));
    assert_eq!((path.connects, path.finished), (connects, false));
}

#[test]
fn a_block_has_the_probes_of_its_own_time_only() {
    let mut path = Path::new(Params::default().without_end(), Directions::Both);
    (0..20).for_each(|_| path.second(RATE, 400.0));
    (0..20).for_each(|_| path.second(RATE * 2, 100.0));
    let at = |seconds| Time::ZERO + Span::from_secs(seconds);
    let (before, after) = (path.algorithm.between(at(5), at(20)), path.algorithm.between(at(25), at(40)));
    let (before, after) = (before.expect("probes"), after.expect("probes"));
    assert!((before.score.rpm - 150.0).abs() < 1e-9 && (after.score.rpm - 600.0).abs() < 1e-9);
    assert_eq!((before.intervals, before.seconds, before.stable), (15, 15.0, true));
    assert_eq!((before.goodput_down_bps, after.goodput_up_bps), (Some(2e7), Some(4e7)));
    let across = path.algorithm.between(at(17), at(24)).expect("probes");
    assert!(!across.stable && across.score.rpm > 150.0, "{across:?}");
    assert_eq!(path.algorithm.between(at(50), at(60)), None);
}

#[test]
fn memory_of_a_long_load_is_bounded() {
    let params = Params { kept_intervals: 10, ..Params::default() }.without_end();
    let mut path = Path::new(params, Directions::Down);
    (0..50).for_each(|_| path.second(RATE, 50.0));
    assert_eq!(path.algorithm.past.len(), 10);
}

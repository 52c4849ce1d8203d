use std::collections::BTreeMap;

use lasthop_testing::random::Random;
use proptest::prelude::*;

use super::*;
use crate::aqm::mac80211::Aql;

const INTERVAL: Span = Span::from_millis(50);
/// What one lever's step does: times the wait, times the bytes.
type Effect = (f64, f64);

/// A cell in which each lever that is moved from where it was found has an effect.
struct Cell {
    levers: Levers,
    now: Time,
    random: Random,
    effects: BTreeMap<Lever, Effect>,
    in_force: BTreeMap<Lever, Setting>,
    found: BTreeMap<Lever, Setting>,
    bytes: u64,
    /// Of both, in parts.
    noise: f64,
    /// Sparse packets an interval, in every so manieth.
    packets: u32,
    every: u32,
    said: Vec<Decision>,
    /// Settings that were put in force.
    sets: u32,
}

fn found_settings() -> [Setting; 7] {
    let own = Contention { aifsn: 3, cw_min: 15, cw_max: 63, txop: Span::ZERO };
    [
        Setting::Class(false),
        Setting::Aql(Aql::default()),
        Setting::Txop(own),
        Setting::StationTxop(Contention { cw_max: 1023, ..own }),
        Setting::Aggregate(65_535),
        Setting::Weights(false),
        Setting::Attempts(false),
    ]
}

impl Cell {
    fn new(seed: u64, effects: &[(Lever, Effect)]) -> Self {
        let mut cell = Self {
            levers: Levers::new(Params::default()),
            now: Time::ZERO,
            random: Random(seed),
            effects: effects.iter().copied().collect(),
            in_force: BTreeMap::new(),
            found: BTreeMap::new(),
            bytes: 0,
            noise: 0.02,
            packets: 4,
            every: 1,
            said: Vec::new(),
            sets: 0,
        };
        for setting in found_settings() {
            cell.found.insert(setting.lever(), setting);
            cell.in_force.insert(setting.lever(), setting);
            cell.levers.on_found(setting);
        }
        cell.drain();
        cell
    }

    fn drain(&mut self) {
        while let Some(action) = self.levers.poll(self.now) {
            match action {
                Action::Set(setting) => {
                    self.sets += 1;
                    self.in_force.insert(setting.lever(), setting);
                }
                Action::Say(decision) => self.said.push(decision),
                Action::SetClass { .. } | Action::SetWeight { .. } | Action::SetAttempts { .. } => {}
            }
        }
    }

    fn noisy(&mut self, mean: f64) -> f64 {
        mean * (1.0 + 2.0 * self.noise * (self.random.share() - 0.5))
    }

    fn moved(&self) -> Vec<Lever> {
        self.in_force
            .iter()
            .filter(|(lever, setting)| self.found[*lever] != **setting)
            .map(|(lever, _)| *lever)
            .collect()
    }

    fn pass(&mut self, seconds: u32) {
        for interval in 0..seconds * 20 {
            self.now += INTERVAL;
            let own = |lever: &Lever| self.effects.get(lever).copied().unwrap_or((1.0, 1.0));
            let (wait, bytes) =
                self.moved().iter().map(own).fold((20.0, 1e6), |(wait, bytes), by| (wait * by.0, bytes * by.1));
            for _ in 0..if interval % self.every == 0 { self.packets } else { 0 } {
                let wait = self.noisy(wait);
                self.levers.on_wait(self.now, Span::from_secs_f64(wait / 1e3));
            }
            self.bytes += self.noisy(bytes) as u64;
            self.levers.on_link(self.now, &LinkSample { bytes: [self.bytes, 0], airtime: None });
            self.drain();
        }
    }

    fn stage(&self, lever: Lever) -> Stage {
        self.levers.snapshot().levers[lever.index()].stage
    }
}

/// All levers are tried within this: eleven steps, each of twelve pairs of 1.35 s.
const PASS: u32 = 11 * 34;

#[test]
fn what_pays_is_kept_and_what_hurts_is_taken_back() {
    let effects = [
        (Lever::Class, (0.5, 1.0)),
        (Lever::Aql, (0.7, 1.0)),
        (Lever::Txop, (1.5, 1.0)),
        (Lever::StationTxop, (0.95, 0.9)),
        (Lever::Aggregate, (1.0, 1.0)),
        (Lever::Weights, (1.0, 1.05)),
        (Lever::Attempts, (1.3, 0.8)),
    ];
    let mut cell = Cell::new(1, &effects);
    assert_eq!(cell.moved(), [Lever::Class], "it is presumed");
    cell.pass(PASS);
    assert_eq!(cell.moved(), [Lever::Class, Lever::Aql, Lever::Weights]);
    for lever in [Lever::Txop, Lever::StationTxop, Lever::Aggregate, Lever::Attempts] {
        assert_eq!(cell.stage(lever), Stage::TakenBack, "{lever:?}");
    }
    // Further steps of AQL have no further effect in this cell, and are not taken.
    assert!(matches!(cell.in_force[&Lever::Aql], Setting::Aql(Aql { low, .. }) if low == Span::from_micros(2_500)));
    let sets = cell.sets;
    cell.pass(300);
    assert_eq!(cell.sets, sets, "it rests");
    // Everything turns: what was kept is found to hurt when it is tried anew.
    cell.effects = [Lever::Class, Lever::Aql, Lever::Weights].map(|lever| (lever, (1.4, 0.9))).into();
    cell.pass(600 + PASS);
    assert_eq!(cell.moved(), [] as [Lever; 0]);
}

#[test]
fn nothing_is_tried_where_nothing_tells_of_waits() {
    let mut cell = Cell::new(2, &[]);
    cell.packets = 0;
    cell.pass(300);
    assert_eq!((cell.moved(), cell.said.len()), (vec![Lever::Class], 0));
    let snapshot = cell.levers.snapshot();
    assert_eq!((snapshot.trials, snapshot.empty_trials), (0, 0));
}

/// A busy controller decides every 200 ms, and one connection may tell of one round trip each time, or of one a second.
#[test]
fn where_packets_are_seldom_heard_trials_end_with_a_verdict_all_the_same() {
    for every in [4, 20] {
        let mut cell = Cell::new(8, &[(Lever::Class, (0.7, 1.0)), (Lever::Aql, (1.5, 1.0))]);
        (cell.packets, cell.every) = (1, every);
        cell.pass(PASS * every / 2);
        let snapshot = cell.levers.snapshot();
        assert_eq!(snapshot.empty_trials, 0, "every {every}");
        assert!(snapshot.trials >= 7, "every {every}: {}", snapshot.trials);
        assert_eq!(
            (cell.stage(Lever::Class), cell.stage(Lever::Aql)),
            (Stage::Kept, Stage::TakenBack),
            "every {every}"
        );
    }
    // One in two seconds is too few for a block.
    let mut cell = Cell::new(8, &[]);
    (cell.packets, cell.every) = (1, 40);
    cell.pass(300);
    let snapshot = cell.levers.snapshot();
    assert!(snapshot.trials == 0 && snapshot.empty_trials > 0, "{snapshot:?}");
}

/// Blocks of a pair may differ in length: what is carried is told by the second.
#[test]
fn a_block_that_waits_for_packets_carries_no_more_by_that() {
    let mut cell = Cell::new(9, &[]);
    (cell.packets, cell.every, cell.noise) = (1, 7, 0.001);
    cell.pass(PASS * 4);
    for own in cell.levers.snapshot().levers {
        let carried = own.compared.expect("a trial").carried;
        assert!((0.99..1.01).contains(&carried), "{own:?}");
    }
}

#[test]
fn means_count_as_often_as_packets_waited_so() {
    let blocks = |say: &dyn Fn(&mut trial::Trial, Time, u32)| {
        let params = Params::default();
        let mut trial = trial::Trial::new(Time::ZERO, &params);
        let mut now = Time::ZERO;
        for step in 1..=1_000u32 {
            now += INTERVAL;
            say(&mut trial, now, step);
            let bytes = [u64::from(step) * 1_000, 0];
            if let trial::Step::Over(_, compared) = trial.on_link(now, &LinkSample { bytes, airtime: None }, &params) {
                return Some(compared);
            }
        }
        None
    };
    // Together or one by one they come to the same: a long wait of few packets is behind the percentile, of many it is the percentile.
    let wait = |step: u32| (Span::from_millis(u64::from(step * 7 % 23)), step % 5);
    let together = blocks(&|trial, now, step| trial.on_waits(now, wait(step).0, wait(step).1));
    let apart = blocks(&|trial, now, step| (0..wait(step).1).for_each(|_| trial.on_waits(now, wait(step).0, 1)));
    assert!(together.is_some_and(|compared| compared.pairs >= 6 && compared.added_ms != 0.0), "{together:?}");
    assert_eq!(together, apart);
}

#[test]
fn paused_all_is_as_it_was_found_and_what_was_decided_comes_back() {
    for seconds in 0..60 {
        let mut cell = Cell::new(3, &[(Lever::Class, (0.5, 1.0)), (Lever::Aql, (0.5, 1.0))]);
        cell.pass(seconds);
        let stands = cell.stage(Lever::Class) == Stage::Kept;
        cell.levers.set_paused(cell.now, true);
        cell.drain();
        assert_eq!(cell.moved(), [] as [Lever; 0], "after {seconds} s");
        let (sets, said) = (cell.sets, cell.said.len());
        cell.levers.on_found(Setting::Txop(Contention { aifsn: 2, cw_min: 7, cw_max: 31, txop: Span::ZERO }));
        cell.pass(30);
        assert_eq!((cell.sets, cell.said.len()), (sets, said), "nothing is tried after {seconds} s");
        cell.levers.set_paused(cell.now, false);
        cell.drain();
        assert!(!stands || cell.moved().contains(&Lever::Class), "after {seconds} s");
    }
}

#[test]
fn held_what_was_decided_stays_and_nothing_is_tried() {
    for seconds in 0..60 {
        let mut cell = Cell::new(3, &[(Lever::Class, (0.5, 1.0)), (Lever::Aql, (0.5, 1.0))]);
        cell.pass(seconds);
        cell.levers.set_held(cell.now, true);
        cell.drain();
        let kept: Vec<_> = Lever::ALL.into_iter().filter(|lever| cell.stage(*lever) == Stage::Kept).collect();
        assert!(cell.moved().iter().all(|lever| kept.contains(lever) || *lever == Lever::Class), "after {seconds} s");
        let sets = cell.sets;
        cell.pass(30);
        assert_eq!(cell.sets, sets, "after {seconds} s");
        // Both at once: as found while paused, as decided while held.
        let moved = cell.moved();
        for (paused, expected) in [(true, vec![]), (false, moved)] {
            cell.levers.set_paused(cell.now, paused);
            cell.drain();
            assert_eq!(cell.moved(), expected);
        }
        cell.levers.set_held(cell.now, false);
        cell.pass(PASS);
        assert_eq!(cell.stage(Lever::Aql), Stage::Kept, "after {seconds} s it goes on");
    }
}

#[test]
fn what_was_found_is_in_force_again_at_any_time() {
    for seconds in 0..60 {
        let mut cell = Cell::new(3, &[(Lever::Class, (0.5, 1.0)), (Lever::Aql, (0.5, 1.0))]);
        cell.pass(seconds);
        cell.levers.release();
        cell.drain();
        assert_eq!(cell.moved(), [] as [Lever; 0], "after {seconds} s");
        cell.pass(60);
        assert_eq!(cell.moved(), [] as [Lever; 0], "and stays so");
    }
}

#[test]
fn what_the_driver_refuses_is_not_tried_again() {
    let mut cell = Cell::new(4, &[(Lever::Aql, (0.5, 1.0))]);
    cell.levers.on_refused(Lever::Aql);
    cell.levers.on_refused(Lever::Aql);
    cell.in_force.insert(Lever::Aql, cell.found[&Lever::Aql]);
    cell.pass(PASS);
    assert_eq!((cell.stage(Lever::Aql), cell.moved()), (Stage::Refused, vec![Lever::Class]));
}

#[test]
fn one_that_ruins_everything_is_taken_back_after_one_pair() {
    let mut cell = Cell::new(5, &[(Lever::Class, (4.0, 1.0))]);
    // Found again while it is tried, as when somebody restarts the radio.
    cell.pass(1);
    cell.levers.on_found(Setting::Class(false));
    cell.in_force.insert(Lever::Class, Setting::Class(false));
    cell.drain();
    cell.pass(6);
    assert_eq!(cell.stage(Lever::Class), Stage::TakenBack);
    let compared = cell.levers.snapshot().levers[0].compared.unwrap();
    assert_eq!(compared.pairs, 1);
    assert!((compared.added_ms - 60.0).abs() < 5.0, "{compared:?}");
}

/// With two attempts a download loses packets, is slow, and a slow one is content with two.
#[test]
fn attempts_of_a_download_do_not_fall_with_its_rate() {
    let mut levers = Levers::new(Params::default());
    let mut asked = Vec::new();
    for mbps in [1, 100, 1] {
        let bulk = Some((BitRate::mbps(mbps), Span::from_millis(40)));
        let station = StationId(1);
        let sample = StationSample { station, rate: BitRate::mbps(300), loss: Some(0.1), bulk };
        levers.on_station(Time::ZERO, &sample);
        while let Some(action) = levers.poll(Time::ZERO) {
            if let Action::SetAttempts { class: AccessCategory::Be, attempts, .. } = action {
                asked.push(attempts);
            }
        }
    }
    assert_eq!(asked, [2, 6]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever levers do, those that hurt are back where they were found after a pass, those that pay are in force, and no more than
    /// one is moved that was not kept.
    #[test]
    fn every_lever_ends_where_it_belongs(seed in 0u64..1 << 40, kinds in proptest::collection::vec(0u8..3, 7)) {
        let effect = |kind: u8| [(1.0, 1.0), (0.8, 1.0), (1.25, 0.93)][usize::from(kind)];
        let effects: Vec<_> = Lever::ALL.into_iter().zip(kinds.iter().map(|kind| effect(*kind))).collect();
        let mut cell = Cell::new(seed, &effects);
        for _ in 0..PASS {
            cell.pass(1);
            let kept = cell.levers.snapshot().levers.iter().filter(|own| own.stage == Stage::Kept).count();
            prop_assert!(cell.moved().len() <= kept + 2, "{:?}", cell.levers.snapshot());
        }
        for (lever, kind) in Lever::ALL.into_iter().zip(&kinds) {
            let is_moved = cell.moved().contains(&lever);
            match kind {
                1 => prop_assert!(is_moved, "{lever:?} pays: {:?}", cell.levers.snapshot().levers[lever.index()]),
                2 => prop_assert!(!is_moved, "{lever:?} hurts: {:?}", cell.levers.snapshot().levers[lever.index()]),
                _ => prop_assert!(lever.is_presumed() || !is_moved || cell.noise > 0.0),
            }
        }
    }

    /// What a network may send, or a driver may say, moves nothing but what was tried: no panic, no setting beyond the ladder, and
    /// everything is as it was found in the end.
    #[test]
    fn odd_inputs_do_no_harm(inputs in proptest::collection::vec((0u8..11, any::<u64>(), any::<u64>()), 1..400)) {
        let mut cell = Cell::new(7, &[]);
        for (what, a, b) in inputs {
            let levers = &mut cell.levers;
            let at = Time::from_nanos(a % 100_000_000_000);
            match what {
                0 => levers.on_wait(at, Span::from_nanos(b)),
                1 => levers.on_link(at, &LinkSample { bytes: [b, a], airtime: Some(Span::from_nanos(b)) }),
                2 => levers.on_flow(at, &FlowSample {
                    flow: FlowId(b as u32 % 5), station: StationId(a as u32), packets: b, bytes: a, full_bytes: b,
                    behaviour: Behaviour::Unknown,
                }),
                3 => levers.on_station(at, &StationSample {
                    station: StationId(b as u32), rate: BitRate::bps(a), loss: Some(f64::from_bits(b)),
                    bulk: Some((BitRate::bps(b), Span::from_nanos(a))),
                }),
                4 => levers.on_gone(FlowId(a as u32 % 5)),
                5 => levers.on_refused(Lever::ALL[(a % 7) as usize]),
                6 => levers.on_found(found_settings()[(a % 7) as usize]),
                7 => levers.on_waits(at, Span::from_nanos(b), a as u32),
                8 => levers.set_paused(at, b % 2 == 0),
                9 => levers.set_held(at, b % 2 == 0),
                _ => cell.pass(1),
            }
            cell.drain();
            for own in cell.levers.snapshot().levers {
                let ladder: Vec<_> = std::iter::successors(own.found, Setting::further).collect();
                prop_assert!(own.in_force.is_none_or(|setting| ladder.contains(&setting)), "{own:?}");
            }
        }
        cell.levers.release();
        cell.drain();
        for own in cell.levers.snapshot().levers {
            prop_assert_eq!(own.in_force, own.found);
        }
    }
}

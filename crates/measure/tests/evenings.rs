//! A thousand evenings of which the truth is known: how often is an effect found that is none, how often one that is there, and how often
//! does the interval hold the truth? `make study-evenings` plays them by the ten thousand.

mod evening;

use evening::{CAPACITY_BPS, Evening, naive_z, plan};
use lasthop_measure::findings::{Findings, findings};

const EVENINGS: u64 = 1_000;

fn measured(evening: &Evening, pairs: usize, seed: u64) -> Findings {
    // The order of the blocks has nothing to do with what happens.
    let plan = plan(pairs, seed.wrapping_mul(0x5851_f42d_4c95_7f2d) ^ 0xabcd);
    findings(&evening.play(&plan, seed), pairs, plan.discard_s, Some(CAPACITY_BPS as u64))
}

fn share(evening: &Evening, is_so: impl Fn(&Findings) -> bool) -> f64 {
    let all: Vec<Findings> =
        (0..EVENINGS).map(|seed| measured(evening, 12, seed)).filter(|f| f.waiting.is_some()).collect();
    assert!(all.len() > 900, "{} evenings had load enough", all.len());
    all.iter().filter(|found| is_so(found)).count() as f64 / all.len() as f64
}

/// Three standard deviations of a share of a thousand.
const CHANCE: f64 = 0.021;

#[test]
fn where_control_does_nothing_nothing_is_found_in_95_of_100_evenings_and_the_interval_holds_that() {
    let waiting = |found: &Findings| found.waiting.expect("compared");
    let found = share(&Evening::USUAL, |f| waiting(f).is_found());
    assert!(found <= 0.05 + CHANCE, "a difference was found in {found}");
    let holds = share(&Evening::USUAL, |f| waiting(f).low <= 1.0 && 1.0 <= waiting(f).high);
    assert!((0.93..=0.97 + CHANCE).contains(&holds), "the interval holds 1 in {holds}");
    let carried = share(&Evening::USUAL, |f| f.throughput.expect("compared").is_found());
    assert!(carried <= 0.05 + CHANCE, "a difference of rates was found in {carried}");
}

#[test]
fn a_halved_wait_is_found_and_the_interval_holds_one_half() {
    let evening = Evening { effect: 0.5, ..Evening::USUAL };
    let found = share(&evening, |f| f.waiting.is_some_and(|w| w.is_found() && w.ratio < 1.0));
    assert!(found > 0.9, "it was found in {found}");
    let holds = share(&evening, |f| f.waiting.is_some_and(|w| w.low <= 0.5 && 0.5 <= w.high));
    assert!((0.93..=0.97 + CHANCE).contains(&holds), "the interval holds it in {holds}");
}

#[test]
fn before_and_after_finds_effects_where_there_are_none() {
    let plan = plan(12, 1);
    let evening = Evening::USUAL;
    let is_found = |seed: &u64| naive_z(&evening.play_before_and_after(&plan, *seed), plan.discard_s) > 1.96;
    let found = (0..200).filter(is_found).count() as f64 / 200.0;
    assert!(found > 0.7, "the naive comparison found an effect in {found} of the evenings");
}

#[test]
fn an_evening_without_load_has_no_verdict() {
    let evening = Evening { load: 0.1, ..Evening::USUAL };
    let without = (0..100).filter(|seed| measured(&evening, 12, *seed).waiting.is_none()).count();
    assert!(without > 90, "{without} of 100");
}

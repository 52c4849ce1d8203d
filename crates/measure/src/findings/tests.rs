use super::*;

const DISCARD_S: u32 = 1;

/// A block of ten seconds in which packets waited `wait_ms` most of the time and that carried `mbps`.
fn block(arm: Arm, wait_ms: f64, mbps: u64) -> Block {
    let mut block = Block::new(arm, 0.0);
    block.at_s = (1..=10).map(f64::from).collect();
    block.rate_bps = vec![mbps * 1_000_000; 10];
    block.wait_ms = vec![Some(wait_ms); 10];
    block.waiting.buckets = vec![(Some(wait_ms), 100)];
    block.waiting.count = 100;
    (block.counted_s, block.bytes) = (9.0, mbps * 1_000_000 / 8 * 9);
    block
}

fn evening(pairs: usize, on_ms: f64, off_ms: f64) -> Vec<Block> {
    let pair = |i: usize| {
        // No two pairs are alike.
        let drift = 1.0 + i as f64 / 50.0;
        let (on, off) = (block(Arm::On, on_ms * drift * drift, 20), block(Arm::Off, off_ms * drift, 20));
        if i.is_multiple_of(3) { [on, off] } else { [off, on] }
    };
    (0..pairs).flat_map(pair).collect()
}

fn judged(blocks: &[Block]) -> Findings {
    findings(blocks, blocks.len().div_ceil(2), DISCARD_S, Some(20_000_000))
}

#[test]
fn a_clear_effect_is_found_with_its_size_and_grades() {
    let found = judged(&evening(12, 8.0, 160.0));
    assert_eq!((found.verdict, found.counted), (Verdict::Shorter, 12));
    let waiting = found.waiting.unwrap();
    assert!((0.05..0.06).contains(&waiting.ratio) && waiting.low < waiting.ratio && waiting.ratio < waiting.high);
    assert_eq!(waiting.p, 2.0 / 4096.0);
    assert_eq!(found.grades, Some(Grades { on: Grade::A, off: Grade::C }));
    let carried = found.throughput.unwrap();
    assert_eq!((carried.ratio, carried.p, carried.on), (1.0, 1.0, 20e6), "they carried the same");
    assert_eq!(judged(&evening(12, 160.0, 8.0)).verdict, Verdict::Longer);
}

#[test]
fn of_fewer_than_six_loaded_pairs_nothing_is_said() {
    let found = judged(&evening(5, 8.0, 160.0));
    assert_eq!((found.verdict, found.counted, found.waiting, found.grades), (Verdict::NotEnoughLoad, 5, None, None));
    assert_eq!(judged(&[]).verdict, Verdict::NotEnoughLoad);
    assert_eq!(judged(&evening(6, 8.0, 160.0)).verdict, Verdict::Shorter);
}

#[test]
fn a_pair_counts_only_if_both_halves_do_and_it_is_said_which_did_not_and_why() {
    let mut blocks = evening(10, 8.0, 160.0);
    blocks[0].rate_bps = vec![1_000_000; 10];
    blocks[3].spoilt = Some(Spoilt::Restarted);
    blocks[6].waiting.count = 3;
    let found = judged(&blocks);
    assert_eq!(found.counted, 7);
    let expected =
        [(blocks[0].arm, Cause::NoLoad), (blocks[3].arm, Cause::Restarted), (blocks[6].arm, Cause::NothingTold)];
    for (arm, cause) in expected {
        assert!(found.dropped.contains(&Dropped { arm, cause, blocks: 1 }), "{:?}", found.dropped);
    }
    assert_eq!(found.dropped.len(), 3);
    blocks.pop();
    assert_eq!(judged(&blocks).counted, 6, "half a pair is none");
}

#[test]
fn load_that_keeps_away_from_one_arm_is_said() {
    let mut blocks = evening(16, 8.0, 160.0);
    assert!(!judged(&blocks).load_differs);
    blocks.iter_mut().filter(|block| block.arm == Arm::On).take(8).for_each(|block| block.rate_bps = vec![1; 10]);
    assert!(judged(&blocks).load_differs);
}

#[test]
fn exchanging_the_halves_of_pairs_changes_neither_which_count_nor_how_likely_it_was() {
    let mut blocks = evening(12, 8.0, 160.0);
    blocks[5].rate_bps = vec![1_000_000; 10];
    let before = judged(&blocks);
    for block in &mut blocks {
        block.arm = if block.arm == Arm::On { Arm::Off } else { Arm::On };
    }
    let after = judged(&blocks);
    assert_eq!((after.counted, after.loaded_from_bps), (before.counted, before.loaded_from_bps));
    let (before, after) = (before.waiting.unwrap(), after.waiting.unwrap());
    assert!((before.p - after.p).abs() < 1e-12 && (before.ratio * after.ratio - 1.0).abs() < 1e-9);
}

#[test]
fn round_trips_per_minute_are_compared_where_a_probe_ran_in_enough_pairs() {
    let mut blocks = evening(12, 8.0, 160.0);
    assert_eq!(judged(&blocks).rpm, None, "without a probe there is none");
    for block in &mut blocks[..12] {
        block.rpm = Some(if block.arm == Arm::On { 1_000.0 } else { 100.0 });
    }
    let rpm = judged(&blocks).rpm.unwrap();
    assert_eq!(rpm.pairs, 6);
    assert!((rpm.ratio - 10.0).abs() < 1e-9);
}

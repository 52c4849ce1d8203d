//! Which blocks were loaded: control can only shorten a queue that there is.
//!
//! A second is loaded when the direction carried at least half of what it carries at most; a block when four fifths of the seconds that
//! count were. What it carries at most is the larger of the tenth fastest second of the whole measurement and of the capacity that
//! the controller knew, where that was given or measured while packets waited; where it knew none, nobody ever waited, and nothing was
//! loaded. Below [`LEAST_BPS`] nothing counts as load.
//!
//! Why so: the rule must not select on the outcome. It looks at rates and not at waits; it has one bound for both halves of a pair,
//! which does not depend on which half was which; and a pair is dropped as a whole. If control does nothing at all, exchanging the
//! halves of a pair changes neither whether it counts nor the other's, so the test stays exact on the pairs that are left. The tenth
//! fastest second in place of the fastest, so that a burst of a moment says nothing; half, so that a control which costs a tenth of the
//! rate does not make its own blocks count less often.
//!
//! What it does not see: a radio whose rate falls to a third is full at a third of what it carried before, and its blocks are dropped.

use crate::block::Block;

/// Part of the most that a loaded second carries.
const PART: f64 = 0.5;
/// Part of a block's seconds that have to be loaded.
const SECONDS: f64 = 0.8;
/// Seconds that have to be at least as fast as the most.
const AT_MOST: usize = 10;
/// No link of today is full with less, bit/s.
pub const LEAST_BPS: f64 = 100_000.0;

/// From which rate on a second of these blocks is loaded, bit/s. `capacity_bps`: what the controller knew, where it was given or measured.
#[must_use]
pub fn bound<'a>(blocks: impl Iterator<Item = &'a Block>, discard_s: u32, capacity_bps: Option<u64>) -> Option<f64> {
    let capacity = capacity_bps?;
    let unspoilt = blocks.filter(|block| block.spoilt.is_none());
    let mut rates: Vec<u64> = unspoilt.flat_map(|block| block.counted_rates(discard_s)).collect();
    rates.sort_unstable_by(|a, b| b.cmp(a));
    let most = rates.get(AT_MOST.min(rates.len()).checked_sub(1)?)?;
    Some((PART * capacity.max(*most) as f64).max(LEAST_BPS))
}

/// Part of the counted seconds of `block` that reached `bound`, 0..=1.
#[must_use]
pub fn part(block: &Block, discard_s: u32, bound: f64) -> f64 {
    let (mut loaded, mut all) = (0_u32, 0_u32);
    for rate in block.counted_rates(discard_s) {
        all += 1;
        loaded += u32::from(rate as f64 >= bound);
    }
    if all == 0 { 0.0 } else { f64::from(loaded) / f64::from(all) }
}

/// Whether `block` was loaded.
#[must_use]
pub fn is_loaded(block: &Block, discard_s: u32, bound: Option<f64>) -> bool {
    bound.is_some_and(|bound| part(block, discard_s, bound) >= SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Arm;

    fn block(rates: &[u64]) -> Block {
        let at_s = (1..=rates.len()).map(|s| s as f64).collect();
        Block { at_s, rate_bps: rates.to_vec(), ..Block::new(Arm::On, 0.0) }
    }

    #[test]
    fn a_block_is_loaded_when_four_fifths_of_its_seconds_reach_half_of_the_most() {
        let blocks = [block(&[20_000_000; 10]), block(&[11, 11, 11, 11, 11, 11, 11, 11, 2, 2].map(|m| m * 1_000_000))];
        let bound = bound(blocks.iter(), 0, Some(18_000_000));
        assert_eq!(bound, Some(10e6));
        assert!(blocks.iter().all(|block| is_loaded(block, 0, bound)));
        let less = block(&[11, 11, 11, 11, 11, 11, 11, 2, 2, 2].map(|m| m * 1_000_000));
        assert!(!is_loaded(&less, 0, bound));
    }

    #[test]
    fn a_burst_of_a_moment_is_not_what_the_direction_carries() {
        let blocks = [block(&[20_000_000; 40]), block(&[90_000_000; 9])];
        assert_eq!(bound(blocks.iter(), 0, Some(20_000_000)), Some(10e6));
    }

    #[test]
    fn a_video_all_evening_is_no_load_where_the_hop_is_known_to_carry_more() {
        let blocks = [block(&[4_000_000; 40])];
        let bound = bound(blocks.iter(), 0, Some(50_000_000));
        assert!(!is_loaded(&blocks[0], 0, bound));
    }

    #[test]
    fn where_nobody_ever_waited_and_where_nothing_was_seen_nothing_is_loaded() {
        let blocks = [block(&[4_000_000; 40])];
        assert_eq!(bound(blocks.iter(), 0, None), None);
        assert_eq!(bound([].iter(), 0, Some(1)), None);
        assert!(!is_loaded(&blocks[0], 0, None));
        assert_eq!(bound([block(&[9; 40])].iter(), 0, Some(9)), Some(LEAST_BPS));
    }
}

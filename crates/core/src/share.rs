//! Who gets how much of the last hop.
//!
//! Equal, SAP-LAW eq. (1): `share = (C - UDP) / n`   [bit/s], C the capacity, UDP its filtered UDP rate, n the number
//! of concurrent TCP flows.
//! Max-min (default): nobody gets more than it can use, and what is left over is divided among the others until
//! everybody is content or all is given. Source: D. Bertsekas, R. Gallager, Data Networks, section 6.5.2.
//! Differs: what is left when everybody is content is handed out in equal parts on top, so that no flow is held to
//! the rate it happened to have while the air idles.

use crate::units::BitRate;

/// SAP-LAW eq. (1), to the letter; nothing for no flows.
#[must_use]
pub fn equal(capacity: BitRate, udp: BitRate, flows: u64) -> BitRate {
    BitRate::bps(capacity.saturating_sub(udp).as_bps().checked_div(flows).unwrap_or(0))
}

/// Max-min shares of `available`, `shares[i]` for `demands[i]`; a demand of `None` takes all it can get.
#[must_use]
pub fn max_min(available: BitRate, demands: &[Option<BitRate>]) -> Vec<BitRate> {
    let mut order: Vec<usize> = (0..demands.len()).collect();
    let wish = |i: usize| demands[i].map_or(u64::MAX, BitRate::as_bps);
    order.sort_by_key(|i| wish(*i));

    let mut left = available.as_bps();
    let mut shares = vec![BitRate::ZERO; demands.len()];
    for (served, &i) in order.iter().enumerate() {
        let level = left / (demands.len() - served) as u64;
        let given = wish(i).min(level);
        shares[i] = BitRate::bps(given);
        left -= given;
    }
    let extra = left.checked_div(demands.len() as u64).unwrap_or(0);
    shares.iter_mut().for_each(|s| *s = BitRate::bps(s.as_bps() + extra));
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mbps(list: &[u64]) -> Vec<BitRate> {
        list.iter().map(|n| BitRate::mbps(*n)).collect()
    }

    #[test]
    fn equal_is_equation_one() {
        assert_eq!(equal(BitRate::mbps(18), BitRate::mbps(2), 4), BitRate::mbps(4));
        assert_eq!(equal(BitRate::mbps(2), BitRate::mbps(18), 4), BitRate::ZERO);
        assert_eq!(equal(BitRate::mbps(18), BitRate::ZERO, 0), BitRate::ZERO);
    }

    #[test]
    fn a_modest_flow_leaves_its_rest_to_the_greedy_ones() {
        let demands = [None, Some(BitRate::mbps(2)), None];
        assert_eq!(max_min(BitRate::mbps(20), &demands), mbps(&[9, 2, 9]));
    }

    #[test]
    fn when_all_are_content_the_rest_is_handed_out_in_equal_parts() {
        let demands = [Some(BitRate::mbps(1)), Some(BitRate::mbps(3))];
        assert_eq!(max_min(BitRate::mbps(20), &demands), mbps(&[9, 11]));
    }

    proptest! {
        #[test]
        fn no_one_can_gain_but_from_someone_with_less(
            available in 0u64..100_000_000,
            demands in prop::collection::vec(prop::option::of(0u64..50_000_000), 1..12),
        ) {
            let wishes: Vec<_> = demands.iter().map(|d| d.map(BitRate::bps)).collect();
            let shares = max_min(BitRate::bps(available), &wishes);
            let total: u64 = shares.iter().map(|s| s.as_bps()).sum();
            prop_assert!(total <= available && available - total < 2 * shares.len() as u64);
            let largest = shares.iter().max().unwrap().as_bps();
            for (share, wish) in shares.iter().zip(&wishes) {
                let held_below_its_wish = wish.is_none_or(|w| *share < w);
                prop_assert!(!held_below_its_wish || share.as_bps() + shares.len() as u64 >= largest);
            }
        }
    }
}

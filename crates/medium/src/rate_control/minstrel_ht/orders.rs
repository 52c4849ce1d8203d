//! Random orders in which the rates of a group are tried out.

use super::groups::RATES;
use crate::random::Stream;

/// Orders before the first comes again.
const COLUMNS: usize = 10;

/// Ten orders, and where each group is in them.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    orders: [[u8; RATES]; COLUMNS],
    /// Column, place.
    at: Vec<(usize, usize)>,
}

impl Orders {
    pub(super) fn new(groups: usize, stream: &mut Stream) -> Self {
        let order = |_| {
            let mut order: [u8; RATES] = std::array::from_fn(|i| i as u8);
            (1..RATES).rev().for_each(|i| order.swap(i, stream.below(i as u64 + 1) as usize));
            order
        };
        Self { orders: std::array::from_fn(order), at: vec![(0, 0); groups] }
    }

    /// The next place of this group; it need not have such a rate.
    pub(super) fn next(&mut self, group: usize) -> usize {
        let (column, place) = &mut self.at[group];
        let rate = usize::from(self.orders[*column][*place]);
        *place += 1;
        if *place == RATES {
            (*column, *place) = ((*column + 1) % COLUMNS, 0);
        }
        rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_holds_every_rate_once_and_groups_go_their_own_way() {
        let mut orders = Orders::new(2, &mut Stream::named(1, "orders"));
        for _ in 0..2 * COLUMNS {
            let mut round: Vec<usize> = (0..RATES).map(|_| orders.next(0)).collect();
            round.sort_unstable();
            assert!(round.into_iter().eq(0..RATES));
        }
        let first = Orders::new(2, &mut Stream::named(1, "orders")).next(1);
        assert_eq!(orders.next(1), first);
    }
}

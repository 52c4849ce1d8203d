//! The pace of trains as the data path sums it up, made fit for taking differences.

use lasthop_core::fastpath::layout::Hop;

/// Sums of both directions, of which none goes back.
///
/// CPUs add to them without a lock. One that is stopped between reading and writing (a virtual machine's may be, for
/// milliseconds) writes an old sum over newer ones; a difference would then be next to 2^64. So a pair of sums that went back
/// counts as it was until it has caught up: what was lost in between is not counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums([Hop; 2]);

impl Sums {
    /// The hops as they are `now`, with sums that can be compared with those of the call before.
    pub(super) fn newest(&mut self, now: [Hop; 2]) -> [Hop; 2] {
        for (mine, now) in self.0.iter_mut().zip(now) {
            let (came, served) = ((mine.came_bytes, mine.came_ns), (mine.served_bytes, mine.served_ns));
            *mine = now;
            if now.came_bytes < came.0 || now.came_ns < came.1 {
                (mine.came_bytes, mine.came_ns) = came;
            }
            if now.served_bytes < served.0 || now.served_ns < served.1 {
                (mine.served_bytes, mine.served_ns) = served;
            }
        }
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_that_goes_back_stays_with_its_time_until_it_has_caught_up() {
        let hop = |came_bytes, came_ns, served_bytes| Hop { came_bytes, came_ns, served_bytes, ..Hop::default() };
        let mut sums = Sums::default();
        let mut newest = |now| sums.newest([now, Hop::default()])[0];
        assert_eq!(newest(hop(1_000, 10, 5)), hop(1_000, 10, 5));
        assert_eq!(newest(hop(900, 20, 6)), hop(1_000, 10, 6), "the bytes went back");
        assert_eq!(newest(hop(1_100, 9, 6)), hop(1_000, 10, 6), "the time did");
        assert_eq!(newest(hop(1_100, 21, 4)), hop(1_100, 21, 6), "the other pair did");
        let left = Hop { left_bytes: 7, ..hop(1_100, 21, 6) };
        assert_eq!(newest(left), left, "what is no sum is as it is");
    }
}

//! The arithmetic of credit: plain integers, restated in C (`bpf/credit.h`), held equal by `tests/vectors/credit.txt`.
//!
//! `alpha' = alpha / 2 + I   [ns] of channel time` (the boost; CHAP, Algorithm 1) has the fixed point 2I, so an account
//! keeps how far it is from there, its *debt*:
//!
//! ```text
//! u      = 2I - alpha          [ns], at least 1
//! new      u = I               (alpha = I)
//! boost    u = ceil(u / 2)     k boosts: ceil(u / 2^k), since ceil(ceil(u/2)/2) = ceil(u/4)
//! charge   u = u + cost        after the boosts in force
//! exhausted: u >= 2I           (alpha <= 0)
//! ```
//!
//! One number k counts the boosts of all accounts. Each account remembers k as it was when it was last changed, and
//! catches up when it is charged or looked at: late, but exactly, and without a walk over all of them.
//!
//! A boost changes no order, and neither does the passing of k if accounts are compared by `v = u 2^k` of their last
//! charge: with `e = k + floor(log2 u)` and `m = u` shifted until its top bit is bit 63, `v_1 < v_2` just when
//! `(e_1, m_1) < (e_2, m_2)`, and then `ceil(v_1 / 2^k) <= ceil(v_2 / 2^k)` for every later k. That pair is the key.
//!
//! Source: Lee, Claypool, Kinicki, CHAP (MM 2010), Algorithm 1. Ours: the debt, the late boost, the key, the cap on
//! new flows.

/// Where an account stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Account {
    /// Debt u as of `boosts`, ns of channel time; 1..
    pub debt_ns: u64,
    /// Boosts of all time that `debt_ns` contains.
    pub boosts: u64,
}

/// What accounts are ordered by: the least first has the most credit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub struct Key {
    /// `boosts + floor(log2 debt)`.
    pub exponent: u64,
    /// The debt, its top bit at bit 63.
    pub mantissa: u64,
}

impl Account {
    /// Of a flow that was not there: it has I.
    #[inline]
    #[must_use]
    pub const fn new(increment_ns: u64, boosts: u64) -> Self {
        Self { debt_ns: if increment_ns == 0 { 1 } else { increment_ns }, boosts }
    }

    /// The debt after all boosts so far, ns; `boosts` is never less than the account's own.
    #[inline]
    #[must_use]
    pub const fn debt_at(&self, boosts: u64) -> u64 {
        let missed = boosts.wrapping_sub(self.boosts);
        if missed < 64 { ((self.debt_ns - 1) >> missed) + 1 } else { 1 }
    }

    /// The credit alpha after all boosts so far, ns.
    #[must_use]
    pub const fn credit_at(&self, boosts: u64, increment_ns: u64) -> i64 {
        (2 * increment_ns).wrapping_sub(self.debt_at(boosts)) as i64
    }

    /// Takes `cost_ns` of channel time out of the account.
    #[inline]
    pub const fn charge(&mut self, boosts: u64, cost_ns: u64) {
        // Half a u64 is 292 years: nobody owes more, and doubling stays in range.
        let debt = self.debt_at(boosts).saturating_add(cost_ns);
        self.debt_ns = if debt > i64::MAX as u64 { i64::MAX as u64 } else { debt };
        self.boosts = boosts;
    }

    /// Its place in the order, until it is charged again.
    #[inline]
    #[must_use]
    pub const fn key(&self) -> Key {
        let zeros = self.debt_ns.leading_zeros();
        Key { exponent: self.boosts + (63 - zeros) as u64, mantissa: self.debt_ns << zeros }
    }
}

/// Whether an account of this debt has no credit left (`alpha <= 0`).
#[inline]
#[must_use]
pub const fn is_exhausted(debt_ns: u64, increment_ns: u64) -> bool {
    debt_ns >= 2 * increment_ns
}

/// What the new flows of one station may bring in: a bucket of credit, `burst` when full, filled at a steady rate.
///
/// It is kept as the time when it is full again: with one I coming in every `interval`, the bucket holds
/// `(burst - (full_at - now)) / interval` times I, and a new flow takes one (the virtual scheduling form of a token
/// bucket, ITU-T I.371). Zero is a full one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Bucket {
    /// When it is full if nothing more is taken, ns.
    pub full_at_ns: u64,
}

impl Bucket {
    /// Takes the credit of one new flow, if there is as much. `interval_ns`: in which the credit of one flow comes in;
    /// `burst_ns`: in which an empty bucket becomes full.
    #[inline]
    pub const fn take(&mut self, now_ns: u64, interval_ns: u64, burst_ns: u64) -> bool {
        let from = if self.full_at_ns > now_ns { self.full_at_ns } else { now_ns };
        let full_at = from.saturating_add(interval_ns);
        let is_there = full_at - now_ns <= burst_ns;
        if is_there {
            self.full_at_ns = full_at;
        }
        is_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const I: u64 = 4_000_000;

    #[test]
    fn boosts_come_to_rest_at_twice_the_increment() {
        let mut account = Account::new(I, 0);
        assert_eq!(account.credit_at(0, I), I as i64);
        account.charge(0, 10 * I);
        assert_eq!(account.credit_at(0, I), -9 * I as i64);
        // alpha' = alpha / 2 + I
        assert_eq!(account.credit_at(1, I), -9 * I as i64 / 2 + I as i64);
        assert_eq!(account.credit_at(90, I), 2 * I as i64 - 1);
    }

    #[test]
    fn nobody_can_owe_so_much_that_it_wraps() {
        let mut account = Account::new(I, 0);
        account.charge(0, u64::MAX);
        account.charge(0, u64::MAX);
        assert_eq!(account.debt_ns, i64::MAX as u64);
        assert_eq!(account.key(), Key { exponent: 62, mantissa: !1 });
    }

    proptest! {
        #[test]
        fn late_boosts_are_the_same_as_boosts_one_by_one(debt in 1u64..1 << 40, boosts in 0u64..80) {
            let account = Account { debt_ns: debt, boosts: 7 };
            let one_by_one = (0..boosts).fold(debt, |u, _| u.div_ceil(2));
            prop_assert_eq!(account.debt_at(7 + boosts), one_by_one);
        }

        #[test]
        fn the_order_of_keys_is_the_order_of_debts_at_any_later_time(
            debts in (1u64..1 << 30, 1u64..1 << 30), boosts in (0u64..30, 0u64..30), later in 0u64..40,
        ) {
            let a = Account { debt_ns: debts.0, boosts: boosts.0 };
            let b = Account { debt_ns: debts.1, boosts: boosts.1 };
            let now = boosts.0.max(boosts.1) + later;
            // v = u 2^k fits into 60 bits here.
            prop_assert_eq!(a.key().cmp(&b.key()), (debts.0 << boosts.0).cmp(&(debts.1 << boosts.1)));
            if a.key() <= b.key() {
                prop_assert!(a.debt_at(now) <= b.debt_at(now));
            }
        }

        #[test]
        fn a_bucket_is_filled_at_its_rate_up_to_its_burst(gaps in prop::collection::vec(0u64..200, 1..200)) {
            let (interval, burst) = (80, 400);
            let (mut bucket, mut now, mut held) = (Bucket::default(), 0, burst);
            for gap in gaps {
                now += gap;
                held = burst.min(held + gap);
                let is_there = held >= interval;
                prop_assert_eq!(bucket.take(now, interval, burst), is_there);
                held -= if is_there { interval } else { 0 };
            }
        }
    }
}

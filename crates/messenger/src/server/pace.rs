//! How many messages an account may offer: a bucket of a minute's worth, filled as time goes by.

use super::limit::{Bucket, Rate};
use crate::store::AccountId;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// See above.
pub struct Pace {
    rate: Rate,
    /// By account, of which there is a bounded number.
    left: Mutex<HashMap<AccountId, Bucket>>,
}

impl Pace {
    pub fn new(per_minute: u32) -> Self {
        let most = f64::from(per_minute);
        Self { rate: Rate { most, per_second: most / 60.0 }, left: Mutex::default() }
    }

    /// Takes one; or how many seconds until there is one again.
    pub fn take(&self, account: AccountId, now: Instant) -> Result<(), u32> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = left.entry(account).or_insert(Bucket::new(self.rate, now));
        bucket.take(self.rate, now).map_err(|seconds| seconds.ceil().clamp(1.0, 3600.0) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_minutes_worth_at_once_then_one_at_a_time_and_nobody_elses() {
        let (pace, now) = (Pace::new(30), Instant::now());
        assert!((0..30).all(|_| pace.take(AccountId(1), now).is_ok()));
        assert_eq!(pace.take(AccountId(1), now), Err(2));
        assert_eq!(pace.take(AccountId(2), now), Ok(()));
        let later = now + Duration::from_secs(2);
        assert_eq!(pace.take(AccountId(1), later), Ok(()));
        assert_eq!(pace.take(AccountId(1), later), Err(2));
    }
}

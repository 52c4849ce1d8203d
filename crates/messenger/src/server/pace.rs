//! How many messages an account may offer: a bucket of a minute's worth, filled as time goes by.

use crate::store::AccountId;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// See above.
pub struct Pace {
    per_minute: u32,
    /// By account, of which there is a bounded number: messages left, and when that was counted.
    left: Mutex<HashMap<AccountId, (f64, Instant)>>,
}

impl Pace {
    pub fn new(per_minute: u32) -> Self {
        Self { per_minute, left: Mutex::default() }
    }

    /// Takes one; or how many seconds until there is one again.
    pub fn take(&self, account: AccountId, now: Instant) -> Result<(), u32> {
        let most = f64::from(self.per_minute);
        let per_second = most / 60.0;
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, since) = left.entry(account).or_insert((most, now));
        *count = (*count + now.saturating_duration_since(*since).as_secs_f64() * per_second).min(most);
        *since = now;
        if *count < 1.0 {
            return Err(((1.0 - *count) / per_second).ceil().clamp(1.0, 3600.0) as u32);
        }
        *count -= 1.0;
        Ok(())
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

//! Who writes which upload: one connection at a time, and the newest of them.

use super::gate::Gate;
use crate::protocol::TransferId;
use crate::store::AccountId;
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

type Key = (AccountId, TransferId);

/// See above.
#[derive(Default)]
pub struct Claims {
    by: Mutex<HashMap<Key, u64>>,
    given_back: Condvar,
}

/// The right to write an upload, given back when dropped.
pub struct Claim<'a> {
    claims: &'a Claims,
    key: Key,
}

impl Claims {
    fn by(&self) -> MutexGuard<'_, HashMap<Key, u64>> {
        self.by.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an upload for connection `number`. Another connection that has it is cut: it is one that its client has
    /// given up, and of which the server does not know yet. `None` when it does not go within `longest`.
    pub fn take(&self, key: Key, number: u64, gate: &Gate, longest: Duration) -> Option<Claim<'_>> {
        let until = Instant::now() + longest;
        let mut by = self.by();
        while let Some(other) = by.get(&key) {
            gate.cut(*other);
            let left = until.checked_duration_since(Instant::now())?;
            by = self.given_back.wait_timeout(by, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        by.insert(key, number);
        Some(Claim { claims: self, key })
    }

    /// Whether somebody has it.
    pub fn has(&self, account: AccountId, transfer: TransferId) -> bool {
        self.by().contains_key(&(account, transfer))
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.claims.by().remove(&self.key);
        self.claims.given_back.notify_all();
    }
}

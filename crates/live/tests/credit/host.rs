//! The C headers compiled for the host.

use std::sync::{Mutex, MutexGuard, PoisonError};

use lasthop_core::credit::account::{Account, Bucket, Key};
use lasthop_live::qdisc::layout::{Control, Metrics};

const NONE: u32 = u32::MAX;

#[link(name = "lasthop_fastpath_host", kind = "static")]
unsafe extern "C" {
    fn lasthop_host_account_new(increment_ns: u64, boosts: u64) -> Account;
    fn lasthop_host_debt_at(account: *const Account, boosts: u64) -> u64;
    fn lasthop_host_credit_at(account: *const Account, boosts: u64, increment_ns: u64) -> i64;
    fn lasthop_host_charge(account: *mut Account, boosts: u64, cost_ns: u64);
    fn lasthop_host_key(account: *const Account) -> Key;
    safe fn lasthop_host_is_exhausted(debt_ns: u64, increment_ns: u64) -> i32;
    fn lasthop_host_bucket_take(bucket: *mut Bucket, now_ns: u64, interval_ns: u64, burst_ns: u64) -> i32;
    safe fn lasthop_host_mix(x: u64) -> u64;
    fn lasthop_host_chap_reset(control: *const Control);
    fn lasthop_host_chap_enqueue(now: u64, key: u64, station: u32, bytes: u32, dropped: *mut u32) -> u32;
    fn lasthop_host_chap_dequeue(now: u64, cost_ns: *mut u64) -> u32;
    fn lasthop_host_chap_stats(metrics: *mut Metrics);
}

pub fn account_new(increment_ns: u64, boosts: u64) -> Account {
    // SAFETY: plain numbers in, a repr(C) struct of two out.
    unsafe { lasthop_host_account_new(increment_ns, boosts) }
}

pub fn debt_at(account: &Account, boosts: u64) -> u64 {
    // SAFETY: a valid reference.
    unsafe { lasthop_host_debt_at(account, boosts) }
}

pub fn credit_at(account: &Account, boosts: u64, increment_ns: u64) -> i64 {
    // SAFETY: a valid reference.
    unsafe { lasthop_host_credit_at(account, boosts, increment_ns) }
}

pub fn charge(account: &mut Account, boosts: u64, cost_ns: u64) {
    // SAFETY: a valid reference.
    unsafe { lasthop_host_charge(account, boosts, cost_ns) }
}

pub fn key(account: &Account) -> Key {
    // SAFETY: a valid reference.
    unsafe { lasthop_host_key(account) }
}

pub fn is_exhausted(debt_ns: u64, increment_ns: u64) -> bool {
    lasthop_host_is_exhausted(debt_ns, increment_ns) != 0
}

pub fn bucket_take(bucket: &mut Bucket, now_ns: u64, interval_ns: u64, burst_ns: u64) -> bool {
    // SAFETY: a valid reference.
    unsafe { lasthop_host_bucket_take(bucket, now_ns, interval_ns, burst_ns) != 0 }
}

pub fn mix(x: u64) -> u64 {
    lasthop_host_mix(x)
}

/// The order of C, of which there is one in the program: whoever has it has it alone.
pub struct Order {
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Order {
    pub fn new(control: Control) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a valid reference, and nobody else is inside.
        unsafe { lasthop_host_chap_reset(&raw const control) };
        Self { _alone: alone }
    }

    /// Numbers of the packet that came, and of the one that had to go for it.
    pub fn enqueue(&mut self, now: u64, key: u64, station: u16, bytes: u32) -> (u32, Option<u32>) {
        let mut dropped = NONE;
        // SAFETY: a valid reference, and nobody else is inside.
        let number = unsafe { lasthop_host_chap_enqueue(now, key, u32::from(station), bytes, &raw mut dropped) };
        (number, (dropped != NONE).then_some(dropped))
    }

    /// Number and cost of the packet that is sent.
    pub fn dequeue(&mut self, now: u64) -> Option<(u32, u64)> {
        let mut cost = 0;
        // SAFETY: a valid reference, and nobody else is inside.
        let number = unsafe { lasthop_host_chap_dequeue(now, &raw mut cost) };
        (number != NONE).then_some((number, cost))
    }

    pub fn metrics(&self) -> Metrics {
        let mut metrics = Metrics::default();
        // SAFETY: a valid reference, and nobody else is inside.
        unsafe { lasthop_host_chap_stats(&raw mut metrics) };
        metrics
    }
}

//! Wrong secrets: who has to wait after too many, and who must not.
//!
//! | counted by | bound, per minute | then |
//! |---|---|---|
//! | account and address | `n` | this account waits there: no other account, and nowhere else |
//! | address | `10 n` | accounts wait there that were never let in from there |
//! | account | 4 secrets compared at once | one more is told to come again; not from where it was let in before |
//!
//! Nobody's account is locked elsewhere by whoever tries it from many addresses: a lock would be the attack itself. What that
//! costs is hashing, which is bounded, and guessing 256 random bits gains nothing. That an account was let in from an address
//! before stands for OWASP's device cookie ("Slow Down Online Guessing Attacks with Device Cookies").
//!
//! All tables are bounded; of one that is full the oldest entry is forgotten, and counted.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Entries per table: the addresses of an IPv4 /20, or as many IPv6 networks; some 600 kB.
const MOST_ENTRIES: usize = 4096;
/// Addresses per account from which it was let in that are remembered: home, work, and what a mobile network gives.
const MOST_KNOWN: usize = 8;
/// An address may have so many times the wrong secrets of one account there: a house with ten devices that were all set up
/// anew.
const PER_ADDRESS: u32 = 10;
/// Secrets of one account that are compared at once, or wait for that: hashing goes one by one, so this is what others wait
/// behind.
const COMPARED: u32 = 4;
/// How long wrong secrets count.
const MINUTE: Duration = Duration::from_secs(60);

/// See above.
pub struct Attempts {
    per_minute: u32,
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    pairs: Table<(String, IpAddr)>,
    addresses: Table<IpAddr>,
    /// Where an account was let in, the latest last.
    known: HashMap<String, VecDeque<IpAddr>>,
    /// How many secrets of an account are compared now; as many entries as connections at most.
    compared: HashMap<String, u32>,
    forgotten: u64,
}

/// Why a secret is not even compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Too many wrong ones; for so many seconds.
    Wrong(u32),
    /// Too many at once.
    Crowd,
}

/// A secret that is being compared, until it is dropped.
pub struct Attempt<'a> {
    attempts: &'a Attempts,
    account: String,
    from: IpAddr,
}

impl Attempts {
    pub fn new(per_minute: u32) -> Self {
        Self { per_minute, tables: Mutex::default() }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many entries were forgotten to make place.
    pub fn forgotten(&self) -> u64 {
        self.tables().forgotten
    }

    /// The account is gone: another one of that name is at home elsewhere.
    pub fn forget(&self, account: &str) {
        self.tables().known.remove(account);
    }

    /// Begins to compare a secret of `account`, a name that need not be anybody's. `from`: what counts as one address.
    ///
    /// # Errors
    /// [`Wait`].
    pub fn begin(&self, account: &str, from: IpAddr, now: Instant) -> Result<Attempt<'_>, Wait> {
        let mut tables = self.tables();
        let pair = (account.to_owned(), from);
        let is_known = tables.known.get(account).is_some_and(|known| known.contains(&from));
        if let Some(seconds) = tables.pairs.waits(&pair, self.per_minute, now) {
            return Err(Wait::Wrong(seconds));
        }
        let most = self.per_minute.saturating_mul(PER_ADDRESS);
        if let Some(seconds) = tables.addresses.waits(&from, most, now).filter(|_| !is_known) {
            return Err(Wait::Wrong(seconds));
        }
        let compared = tables.compared.entry(account.to_owned()).or_default();
        if *compared >= COMPARED && !is_known {
            return Err(Wait::Crowd);
        }
        *compared += 1;
        Ok(Attempt { attempts: self, account: pair.0, from })
    }
}

impl Attempt<'_> {
    /// It was wrong.
    pub fn failed(self, now: Instant) {
        let mut tables = self.attempts.tables();
        let forgotten = u64::from(tables.pairs.count((self.account.clone(), self.from), now))
            + u64::from(tables.addresses.count(self.from, now));
        tables.forgotten += forgotten;
    }

    /// It was right: what was wrong before from there is forgiven to this account, and to no other.
    pub fn succeeded(self) {
        let mut tables = self.attempts.tables();
        tables.pairs.counts.remove(&(self.account.clone(), self.from));
        if tables.known.len() >= MOST_ENTRIES && !tables.known.contains_key(&self.account) {
            let any = tables.known.keys().next().cloned();
            any.and_then(|any| tables.known.remove(&any));
            tables.forgotten += 1;
        }
        let known = tables.known.entry(self.account.clone()).or_default();
        known.retain(|address| *address != self.from);
        known.push_back(self.from);
        if known.len() > MOST_KNOWN {
            known.pop_front();
        }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let mut tables = self.attempts.tables();
        if let Some(compared) = tables.compared.get_mut(&self.account) {
            *compared -= 1;
            if *compared == 0 {
                tables.compared.remove(&self.account);
            }
        }
    }
}

/// Wrong secrets since the first of a minute.
struct Count {
    wrong: u32,
    since: Instant,
}

struct Table<K> {
    counts: HashMap<K, Count>,
}

impl<K> Default for Table<K> {
    fn default() -> Self {
        Self { counts: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash> Table<K> {
    /// Seconds until one with `most` wrong ones may try again.
    fn waits(&self, key: &K, most: u32, now: Instant) -> Option<u32> {
        let count = self.counts.get(key).filter(|count| count.wrong >= most)?;
        let left = MINUTE.checked_sub(now.saturating_duration_since(count.since))?;
        Some(left.as_secs() as u32 + 1)
    }

    /// One more; whether another one was forgotten for it.
    fn count(&mut self, key: K, now: Instant) -> bool {
        let is_full = self.counts.len() >= MOST_ENTRIES && !self.counts.contains_key(&key);
        let is_forgetting = is_full && self.make_place(now);
        let count = self.counts.entry(key).or_insert(Count { wrong: 0, since: now });
        if now.saturating_duration_since(count.since) >= MINUTE {
            *count = Count { wrong: 0, since: now };
        }
        count.wrong += 1;
        is_forgetting
    }

    /// What is over goes, else the oldest; whether that counted still.
    fn make_place(&mut self, now: Instant) -> bool {
        self.counts.retain(|_, count| now.saturating_duration_since(count.since) < MINUTE);
        if self.counts.len() < MOST_ENTRIES {
            return false;
        }
        let oldest = self.counts.iter().min_by_key(|(_, count)| count.since).map(|(key, _)| key.clone());
        oldest.is_some_and(|oldest| self.counts.remove(&oldest).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn wrong(attempts: &Attempts, account: &str, from: IpAddr, now: Instant) -> Result<(), Wait> {
        attempts.begin(account, from, now).map(|attempt| attempt.failed(now))
    }

    fn right(attempts: &Attempts, account: &str, from: IpAddr, now: Instant) -> Result<(), Wait> {
        attempts.begin(account, from, now).map(Attempt::succeeded)
    }

    #[test]
    fn wrong_secrets_lock_one_account_at_one_address_for_the_rest_of_a_minute() {
        let (attempts, now, x, y) = (Attempts::new(5), Instant::now(), at("10.0.0.1"), at("10.0.0.2"));
        for _ in 0..5 {
            assert_eq!(wrong(&attempts, "anna", x, now), Ok(()));
        }
        assert_eq!(right(&attempts, "anna", x, now + Duration::from_secs(20)), Err(Wait::Wrong(41)));
        assert_eq!(right(&attempts, "ben", x, now), Ok(()), "not another account");
        assert_eq!(right(&attempts, "anna", y, now), Ok(()), "nor the owner elsewhere");
        assert_eq!(right(&attempts, "anna", x, now + Duration::from_secs(61)), Ok(()));
    }

    #[test]
    fn who_tries_all_accounts_from_one_address_waits_and_those_at_home_there_do_not() {
        let (attempts, now, x, y) = (Attempts::new(5), Instant::now(), at("10.0.0.1"), at("10.0.0.2"));
        right(&attempts, "anna", x, now).unwrap();
        let tried = (0..1000).filter(|i| wrong(&attempts, &format!("a{i}"), x, now).is_ok()).count();
        assert_eq!(tried, 50);
        assert_eq!(right(&attempts, "anna", x, now), Ok(()));
        assert!(matches!(right(&attempts, "ben", x, now), Err(Wait::Wrong(_))));
        assert_eq!(right(&attempts, "ben", y, now), Ok(()));
        attempts.forget("anna");
        assert!(matches!(right(&attempts, "anna", x, now), Err(Wait::Wrong(_))), "another anna is not at home there");
    }

    #[test]
    fn a_right_secret_forgives_its_own_account_alone() {
        let (attempts, now, x) = (Attempts::new(2), Instant::now(), at("10.0.0.1"));
        for _ in 0..30 {
            let _ = wrong(&attempts, "anna", x, now);
            let _ = right(&attempts, "mallory", x, now);
        }
        assert!(matches!(wrong(&attempts, "anna", x, now), Err(Wait::Wrong(_))));
    }

    #[test]
    fn many_addresses_that_try_one_account_lock_its_owner_out_nowhere() {
        let (attempts, now, home, new) = (Attempts::new(5), Instant::now(), at("10.9.0.1"), at("10.9.0.2"));
        right(&attempts, "anna", home, now).unwrap();
        for i in 0..20_000u32 {
            wrong(&attempts, "anna", IpAddr::from((0x0a00_0000 + i).to_be_bytes()), now).unwrap();
        }
        assert_eq!(right(&attempts, "anna", new, now), Ok(()));
        let crowd = |i: u8| attempts.begin("anna", IpAddr::from([10, 8, 0, i]), now);
        let mut compared: Vec<_> = (0..4).map(|i| crowd(i).ok().unwrap()).collect();
        assert_eq!(crowd(4).err(), Some(Wait::Crowd));
        assert_eq!(right(&attempts, "anna", home, now), Ok(()), "not where it is at home");
        assert_eq!(right(&attempts, "ben", at("10.8.0.4"), now), Ok(()), "nor another account");
        compared.pop();
        assert!(crowd(4).is_ok());
    }

    #[test]
    fn any_number_of_addresses_and_names_takes_bounded_memory_and_what_is_forgotten_is_counted() {
        let (attempts, now) = (Attempts::new(1), Instant::now());
        for i in 0..2 * MOST_ENTRIES as u32 {
            let (name, from) = (format!("a{i}"), IpAddr::from(i.to_be_bytes()));
            wrong(&attempts, &name, from, now + Duration::from_micros(i.into())).unwrap();
            right(&attempts, &name, IpAddr::from([1, 1, 1, 1]), now).unwrap();
        }
        (0..100).for_each(|i| right(&attempts, "anna", IpAddr::from([2, 0, 0, i]), now).unwrap());
        let tables = attempts.tables();
        assert_eq!((tables.pairs.counts.len(), tables.addresses.counts.len()), (MOST_ENTRIES, MOST_ENTRIES));
        assert_eq!((tables.known.len(), tables.known["anna"].len()), (MOST_ENTRIES, MOST_KNOWN));
        assert!(tables.compared.is_empty());
        assert_eq!(tables.forgotten, 3 * MOST_ENTRIES as u64 + 1);
    }
}

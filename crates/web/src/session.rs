//! Who has logged in, and how often somebody may try.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::token::{Right, hash, random};

/// Most sessions at once; of more the oldest ends.
const MOST: usize = 64;
/// A session ends after so long.
pub const LASTS: Duration = Duration::from_secs(7 * 86_400);
/// Wrong tokens that may come from one address at once.
const TRIES: f64 = 5.0;
/// One more is allowed after so long.
const TRY_AFTER: Duration = Duration::from_secs(10);
/// Addresses that are told apart; all others share what is left.
const MOST_ADDRESSES: usize = 64;

#[derive(Clone, Debug)]
struct Session {
    /// Of its number: what is compared here says nothing about the number itself.
    hash: [u8; 32],
    right: Right,
    until: Instant,
}

/// Sessions, the oldest first. They end with the process.
#[derive(Debug, Default)]
pub struct Sessions(Vec<Session>);

impl Sessions {
    /// A new one; its number in hexadecimal digits.
    pub fn open(&mut self, right: Right, now: Instant) -> String {
        self.0.retain(|session| session.until > now);
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        let number: String = random().iter().map(|byte| format!("{byte:02x}")).collect();
        self.0.push(Session { hash: hash(number.as_bytes()), right, until: now + LASTS });
        number
    }

    /// What the session of this number allows.
    #[must_use]
    pub fn right_of(&self, number: &str, now: Instant) -> Right {
        let hash = hash(number.as_bytes());
        let found = self.0.iter().find(|session| session.hash == hash && session.until > now);
        found.map_or(Right::Nothing, |session| session.right)
    }

    /// Ends it.
    pub fn close(&mut self, number: &str) {
        let hash = hash(number.as_bytes());
        self.0.retain(|session| session.hash != hash);
    }
}

/// Wrong tokens by address, as leaking buckets: an address may be wrong `TRIES` times, and once more every `TRY_AFTER`.
#[derive(Debug, Default)]
pub struct Tries {
    seen: Vec<(IpAddr, f64, Instant)>,
}

impl Tries {
    /// Whether a token from there is looked at.
    pub fn may_try(&mut self, from: IpAddr, now: Instant) -> bool {
        self.seen.retain_mut(|(_, wrong, at)| {
            *wrong -= now.saturating_duration_since(*at).as_secs_f64() / TRY_AFTER.as_secs_f64();
            *at = now;
            *wrong > 0.0
        });
        let from = of_one_home(from);
        match self.seen.iter().find(|(seen, ..)| *seen == from) {
            Some((_, wrong, _)) => *wrong <= TRIES - 1.0,
            None => self.seen.len() < MOST_ADDRESSES,
        }
    }

    /// A wrong one came from there.
    pub fn was_wrong(&mut self, from: IpAddr, now: Instant) {
        let from = of_one_home(from);
        if let Some((_, wrong, _)) = self.seen.iter_mut().find(|(seen, ..)| *seen == from) {
            *wrong += 1.0;
        } else if self.seen.len() < MOST_ADDRESSES {
            self.seen.push((from, 1.0, now));
        }
    }
}

/// Whoever has one IPv6 address has the other 2^64 of its network as well.
fn of_one_home(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => IpAddr::V6((u128::from(six) >> 64 << 64).into()),
        four @ IpAddr::V4(_) => four,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_known_by_its_number_until_it_ends() {
        let (mut sessions, now) = (Sessions::default(), Instant::now());
        let number = sessions.open(Right::Read, now);
        assert_eq!(number.len(), 64);
        assert_eq!(sessions.right_of(&number, now), Right::Read);
        assert_eq!(sessions.right_of(&number[1..], now), Right::Nothing);
        assert_eq!(sessions.right_of(&number, now + LASTS), Right::Nothing);
        sessions.close(&number);
        assert_eq!(sessions.right_of(&number, now), Right::Nothing);
    }

    #[test]
    fn of_too_many_sessions_the_oldest_ends() {
        let (mut sessions, now) = (Sessions::default(), Instant::now());
        let numbers: Vec<_> = (0..=MOST).map(|_| sessions.open(Right::Control, now)).collect();
        assert_eq!(sessions.right_of(&numbers[0], now), Right::Nothing);
        assert_eq!(sessions.right_of(&numbers[1], now), Right::Control);
    }

    #[test]
    fn who_is_wrong_too_often_waits_and_others_do_not() {
        let (mut tries, now) = (Tries::default(), Instant::now());
        let [one, beside, other] = ["2001:db8::1", "2001:db8::2", "192.0.2.1"].map(|text| text.parse().unwrap());
        for _ in 0..5 {
            assert!(tries.may_try(one, now));
            tries.was_wrong(one, now);
        }
        assert!(!tries.may_try(one, now) && !tries.may_try(beside, now) && tries.may_try(other, now));
        assert!(tries.may_try(one, now + TRY_AFTER));
    }

    #[test]
    fn more_addresses_than_are_told_apart_wait_for_each_other() {
        let (mut tries, now) = (Tries::default(), Instant::now());
        (0..200u32).for_each(|n| tries.was_wrong(IpAddr::V4(n.into()), now));
        assert_eq!(tries.seen.len(), MOST_ADDRESSES);
        assert!(!tries.may_try(IpAddr::V4(1_000.into()), now));
        assert!(tries.may_try(IpAddr::V4(1_000.into()), now + TRY_AFTER));
    }
}

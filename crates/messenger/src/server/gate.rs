//! Who may come in: connections and failed attempts, counted; all tables bounded.

use crate::store::AccountId;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections beyond the limit that are told so; further ones are closed without a word.
const TOLD: usize = 8;
/// Addresses whose failed attempts are remembered: an IPv4 /20, or as many IPv6 networks.
const MOST_ADDRESSES: usize = 4096;
/// How long they are.
const MINUTE: Duration = Duration::from_secs(60);

/// See above.
pub struct Gate {
    connections: usize,
    per_address: usize,
    attempts: u32,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    next: u64,
    open: HashMap<u64, Connection>,
    failed: HashMap<IpAddr, Failed>,
}

struct Connection {
    from: IpAddr,
    socket: TcpStream,
    /// When it came; `None` once it has said who it is.
    unknown_since: Option<Instant>,
    account: Option<AccountId>,
}

struct Failed {
    attempts: u32,
    since: Instant,
}

/// A place at the gate, given back when dropped.
pub struct Ticket<'a> {
    gate: &'a Gate,
    /// Of the connection.
    pub number: u64,
    /// More than there is place for: to be told so and closed.
    pub is_too_many: bool,
    /// One that had not said who it is was cut to make place for it.
    pub cut_another: bool,
    from: IpAddr,
}

impl Gate {
    pub fn new(connections: usize, per_address: usize, attempts: u32) -> Self {
        Self { connections, per_address, attempts, inner: Mutex::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new connection; `None`: not even told.
    pub fn admit(&self, socket: &TcpStream, from: SocketAddr, now: Instant) -> io::Result<Option<Ticket<'_>>> {
        let from = network(from.ip());
        let socket = socket.try_clone()?;
        let mut inner = self.inner();
        let its = inner.open.values().filter(|connection| connection.from == from).count();
        if inner.open.len() >= self.connections + TOLD || its >= self.per_address + TOLD / 2 {
            return Ok(None);
        }
        let is_full = inner.open.len() >= self.connections;
        let is_of_many = its >= self.per_address;
        let cut_another = is_full && !is_of_many && inner.cut_oldest_unknown();
        let is_too_many = is_of_many || (is_full && !cut_another);
        let number = inner.next;
        inner.next += 1;
        inner.open.insert(number, Connection { from, socket, unknown_since: Some(now), account: None });
        Ok(Some(Ticket { gate: self, number, is_too_many, cut_another, from }))
    }

    /// Cuts connections that have not said who they are for `longest`. Returns how many.
    pub fn cut_unknown(&self, now: Instant, longest: Duration) -> u64 {
        let is_late = |since: Instant| now.saturating_duration_since(since) >= longest;
        let mut cut = 0;
        for connection in self.inner().open.values_mut().filter(|c| c.unknown_since.is_some_and(is_late)) {
            connection.unknown_since = None;
            let _ = connection.socket.shutdown(Shutdown::Both);
            cut += 1;
        }
        cut
    }

    /// Cuts one connection.
    pub fn cut(&self, number: u64) {
        if let Some(connection) = self.inner().open.get(&number) {
            let _ = connection.socket.shutdown(Shutdown::Both);
        }
    }

    /// Cuts every connection of an account.
    pub fn cut_account(&self, account: AccountId) {
        for connection in self.inner().open.values().filter(|connection| connection.account == Some(account)) {
            let _ = connection.socket.shutdown(Shutdown::Both);
        }
    }

    /// Whether nobody is there.
    pub fn is_empty(&self) -> bool {
        self.inner().open.is_empty()
    }

    /// Ends what all connections read, or all of them.
    pub fn cut_all(&self, how: Shutdown) {
        self.inner().open.values().for_each(|connection| drop(connection.socket.shutdown(how)));
    }
}

impl Inner {
    /// Cuts the connection that has not said who it is for the longest time, so that silence keeps nobody out. False: all
    /// have said it.
    fn cut_oldest_unknown(&mut self) -> bool {
        let unknown = self.open.values_mut().filter(|connection| connection.unknown_since.is_some());
        let Some(oldest) = unknown.min_by_key(|connection| connection.unknown_since) else { return false };
        oldest.unknown_since = None;
        let _ = oldest.socket.shutdown(Shutdown::Both);
        true
    }
}

impl Ticket<'_> {
    /// It has said who it is.
    pub fn is_known(&self, account: AccountId) {
        let mut inner = self.gate.inner();
        if let Some(connection) = inner.open.get_mut(&self.number) {
            (connection.unknown_since, connection.account) = (None, Some(account));
        }
        inner.failed.remove(&self.from);
    }

    /// Seconds until this address may try again, if it failed too often.
    pub fn waits(&self, now: Instant) -> Option<u32> {
        let inner = self.gate.inner();
        let failed = inner.failed.get(&self.from).filter(|failed| failed.attempts >= self.gate.attempts)?;
        let left = MINUTE.checked_sub(now.saturating_duration_since(failed.since))?;
        Some(left.as_secs() as u32 + 1)
    }

    /// A wrong secret.
    pub fn has_failed(&self, now: Instant) {
        let mut inner = self.gate.inner();
        let failed = &mut inner.failed;
        if failed.len() >= MOST_ADDRESSES && !failed.contains_key(&self.from) {
            failed.retain(|_, failed| now.saturating_duration_since(failed.since) < MINUTE);
            let oldest = failed.iter().min_by_key(|(_, failed)| failed.since).map(|(address, _)| *address);
            if let Some(oldest) = oldest.filter(|_| failed.len() >= MOST_ADDRESSES) {
                failed.remove(&oldest);
            }
        }
        let entry = failed.entry(self.from).or_insert(Failed { attempts: 0, since: now });
        if now.saturating_duration_since(entry.since) >= MINUTE {
            *entry = Failed { attempts: 0, since: now };
        }
        entry.attempts += 1;
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.gate.inner().open.remove(&self.number);
    }
}

/// What counts as one address: of IPv6 the network that one house is given.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if !v6.is_unicast_link_local() => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        single => single,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A socket, which the gate only holds.
    fn socket() -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        TcpStream::connect(listener.local_addr().unwrap()).unwrap()
    }

    fn address(text: &str) -> SocketAddr {
        SocketAddr::new(text.parse().unwrap(), 1)
    }

    #[test]
    fn what_is_too_much_is_told_and_what_is_far_too_much_is_not() {
        let (gate, socket, now) = (Gate::new(3, 2, 5), socket(), Instant::now());
        let admit = |from: &str| gate.admit(&socket, address(from), now).unwrap();
        let mut inside: Vec<_> = (0..2).map(|_| admit("10.0.0.1").unwrap()).collect();
        assert!(inside.iter().all(|ticket| !ticket.is_too_many));
        assert!(admit("10.0.0.1").unwrap().is_too_many, "the third from one address");
        inside.push(admit("10.0.0.2").unwrap());
        (0..).zip(&inside).for_each(|(account, ticket)| ticket.is_known(AccountId(account)));
        assert!(admit("10.0.0.3").unwrap().is_too_many, "the fourth in all");
        inside.extend((0..4).map(|_| admit("10.0.0.1").unwrap()));
        assert!(admit("10.0.0.1").is_none());
        inside.clear();
        assert!(!admit("10.0.0.1").unwrap().is_too_many, "places are given back");
    }

    #[test]
    fn silence_keeps_nobody_out_when_all_places_are_taken() {
        let (gate, socket, now) = (Gate::new(2, 2, 5), socket(), Instant::now());
        let admit = |from: &str, at| gate.admit(&socket, address(from), at).unwrap().unwrap();
        let (silent, known) = (admit("10.0.0.1", now), admit("10.0.0.2", now));
        known.is_known(AccountId(1));
        let next = admit("10.0.0.3", now + Duration::from_secs(1));
        assert!(
            next.cut_another && !next.is_too_many && gate.inner().open[&silent.number].unknown_since.is_none(),
            "the silent one is cut"
        );
        next.is_known(AccountId(2));
        assert!(admit("10.0.0.4", now).is_too_many, "all others have said who they are");
    }

    #[test]
    fn neighbours_on_one_link_are_not_one_address() {
        let part = |text: &str| network(text.parse().unwrap());
        assert_ne!(part("fe80::1"), part("fe80::2"));
        assert_eq!(part("2001:db8::1"), part("2001:db8::2"));
        assert_eq!(part("::ffff:10.0.0.1"), part("10.0.0.1"));
    }

    #[test]
    fn a_fifth_wrong_secret_within_a_minute_waits_for_the_rest_of_it() {
        let (gate, socket, now) = (Gate::new(3, 3, 5), socket(), Instant::now());
        let ticket = gate.admit(&socket, address("2001:db8:1:2::3"), now).unwrap().unwrap();
        for _ in 0..5 {
            assert_eq!(ticket.waits(now), None);
            ticket.has_failed(now);
        }
        let neighbour = gate.admit(&socket, address("2001:db8:1:2:ffff::1"), now).unwrap().unwrap();
        let stranger = gate.admit(&socket, address("2001:db8:1:3::1"), now).unwrap().unwrap();
        assert_eq!(neighbour.waits(now + Duration::from_secs(20)), Some(41));
        assert_eq!(stranger.waits(now), None);
        assert_eq!(ticket.waits(now + Duration::from_secs(61)), None);
    }

    #[test]
    fn failed_attempts_of_any_number_of_addresses_take_bounded_memory() {
        let (gate, socket, now) = (Gate::new(3, 3, 1), socket(), Instant::now());
        for i in 0..2 * MOST_ADDRESSES as u32 {
            let from = SocketAddr::new(IpAddr::from(i.to_be_bytes()), 1);
            gate.admit(&socket, from, now).unwrap().unwrap().has_failed(now + Duration::from_micros(i.into()));
        }
        assert_eq!(gate.inner().failed.len(), MOST_ADDRESSES);
    }
}

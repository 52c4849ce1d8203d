//! Who may come in: connections, counted by who they are and where they come from; all tables bounded.
//!
//! Those that have not said who they are have places of their own, so that they take none from those that have. For one too
//! many (`startups`), or of one address more than that may have, one goes: drawn from all of them, or from those of that
//! address, the one that comes among them. So nobody is kept out by silence, and of any number of strangers each has the same
//! chance.

use super::secret::random;
use super::startups::Startups;
use crate::store::AccountId;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections that were cut and whose thread has not ended yet; beyond that nobody is let in.
const ENDING: usize = 64;

/// How many there may be.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// That have not said who they are.
    pub startups: Startups,
    /// That have.
    pub connections: usize,
    /// Of either kind from one address, and of one account.
    pub per_address: usize,
}

/// See above.
pub struct Gate {
    places: Places,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    next: u64,
    open: HashMap<u64, Connection>,
}

struct Connection {
    from: IpAddr,
    socket: TcpStream,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Has not said who it is since it came.
    Unknown(Instant),
    Known(AccountId),
    /// Its thread will end.
    Cut,
}

/// What becomes of one that comes.
pub enum Admission<'a> {
    /// It is let in.
    In(Ticket<'a>),
    /// So is this one, and another one was cut for it.
    InPlaceOfAnother(Ticket<'a>),
    /// It is turned away.
    Away,
}

/// A place at the gate, given back when dropped.
pub struct Ticket<'a> {
    gate: &'a Gate,
    /// Of the connection.
    pub number: u64,
    /// What counts as its address.
    pub from: IpAddr,
}

impl Gate {
    pub fn new(places: Places) -> Self {
        Self { places, inner: Mutex::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new connection.
    pub fn admit(&self, socket: &TcpStream, from: SocketAddr, now: Instant) -> io::Result<Admission<'_>> {
        let from = network(from.ip());
        let socket = socket.try_clone()?;
        let mut inner = self.inner();
        if inner.open.len() >= self.places.connections + self.places.startups.full() + ENDING {
            return Ok(Admission::Away);
        }
        let candidates = inner.candidates(&self.places, from);
        // The last draw is the one that comes.
        let goes = candidates.map(|candidates| candidates.get(below(candidates.len() + 1)).copied());
        match goes {
            Some(None) => return Ok(Admission::Away),
            Some(Some(other)) => inner.cut(other),
            None => {}
        }
        let number = inner.next;
        inner.next += 1;
        inner.open.insert(number, Connection { from, socket, state: State::Unknown(now) });
        let ticket = Ticket { gate: self, number, from };
        Ok(if goes.is_some() { Admission::InPlaceOfAnother(ticket) } else { Admission::In(ticket) })
    }

    /// Cuts connections that have not said who they are for `longest`. Returns how many.
    pub fn cut_unknown(&self, now: Instant, longest: Duration) -> u64 {
        let mut inner = self.inner();
        let is_late =
            |state: State| matches!(state, State::Unknown(since) if now.saturating_duration_since(since) >= longest);
        let late: Vec<_> = inner.open.iter().filter(|(_, c)| is_late(c.state)).map(|(number, _)| *number).collect();
        late.iter().for_each(|number| inner.cut(*number));
        late.len() as u64
    }

    /// Cuts one connection.
    pub fn cut(&self, number: u64) {
        if let Some(connection) = self.inner().open.get(&number) {
            let _ = connection.socket.shutdown(Shutdown::Both);
        }
    }

    /// Cuts every connection of an account.
    pub fn cut_account(&self, account: AccountId) {
        for connection in self.inner().open.values().filter(|connection| connection.state == State::Known(account)) {
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
    fn cut(&mut self, number: u64) {
        if let Some(connection) = self.open.get_mut(&number) {
            connection.state = State::Cut;
            let _ = connection.socket.shutdown(Shutdown::Both);
        }
    }

    /// When one has to go for one more: those of which it may be, besides the one that comes.
    fn candidates(&self, places: &Places, from: IpAddr) -> Option<Vec<u64>> {
        let unknown = || self.open.iter().filter(|(_, connection)| matches!(connection.state, State::Unknown(_)));
        let numbers = |is_one: &dyn Fn(&Connection) -> bool| {
            unknown().filter(|(_, connection)| is_one(connection)).map(|(number, _)| *number).collect::<Vec<_>>()
        };
        let its = numbers(&|connection| connection.from == from);
        if its.len() >= places.per_address {
            return Some(its);
        }
        let all = numbers(&|_| true);
        places.startups.is_one_too_many(all.len(), below(100) as u32).then_some(all)
    }
}

/// A number below `bound`, each as likely but for one part in 2^64; 0 where the system has no randomness.
fn below(bound: usize) -> usize {
    let drawn = random::<8>().map_or(0, u64::from_ne_bytes);
    ((u128::from(drawn) * bound as u128) >> 64) as usize
}

impl Ticket<'_> {
    /// It has said who it is; whether there is a place for it.
    #[must_use]
    pub fn is_known(&self, account: AccountId) -> bool {
        let mut inner = self.gate.inner();
        let places = &self.gate.places;
        let count = |is_one: &dyn Fn(&Connection, AccountId) -> bool| {
            let known =
                |connection: &&Connection| matches!(connection.state, State::Known(who) if is_one(connection, who));
            inner.open.values().filter(known).count()
        };
        let is_full = count(&|_, _| true) >= places.connections
            || count(&|connection, _| connection.from == self.from) >= places.per_address
            || count(&|_, who| who == account) >= places.per_address;
        if is_full {
            return false;
        }
        if let Some(connection) = inner.open.get_mut(&self.number).filter(|connection| connection.state != State::Cut) {
            connection.state = State::Known(account);
        }
        true
    }

    /// Whether it was cut: nothing that it asked for is worth anything any more.
    pub fn is_cut(&self) -> bool {
        self.gate.inner().open.get(&self.number).is_none_or(|connection| connection.state == State::Cut)
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

    fn gate(startups: &str, connections: usize, per_address: usize) -> Gate {
        Gate::new(Places { startups: startups.parse().unwrap(), connections, per_address })
    }

    fn unknown(gate: &Gate) -> usize {
        gate.inner().open.values().filter(|connection| matches!(connection.state, State::Unknown(_))).count()
    }

    impl<'a> Admission<'a> {
        fn ticket(self) -> Option<Ticket<'a>> {
            match self {
                Self::In(ticket) | Self::InPlaceOfAnother(ticket) => Some(ticket),
                Self::Away => None,
            }
        }
    }

    #[test]
    fn those_that_are_known_have_places_in_all_by_address_and_by_account() {
        let (gate, socket, now) = (gate("100", 3, 2), socket(), Instant::now());
        let known = |from: &str, account| {
            let ticket = gate.admit(&socket, address(from), now).unwrap().ticket().unwrap();
            let has_place = ticket.is_known(AccountId(account));
            (ticket, has_place)
        };
        let mut inside = vec![known("10.0.0.1", 1), known("10.0.0.1", 2)];
        assert!(!known("10.0.0.1", 3).1, "the third from one address");
        inside.push(known("10.0.0.2", 1));
        assert!(!known("10.0.0.3", 1).1, "the third of one account");
        assert!(inside.iter().all(|(_, has_place)| *has_place));
        assert!(!known("10.0.0.3", 4).1, "the fourth in all");
        inside.clear();
        assert!(known("10.0.0.1", 3).1, "places are given back");
    }

    #[test]
    fn strangers_never_have_more_than_their_places_and_take_none_of_those_that_are_known() {
        let (gate, socket, now) = (gate("4:30:8", 2, 100), socket(), Instant::now());
        let admit = |i: u32| gate.admit(&socket, SocketAddr::new(IpAddr::from(i.to_be_bytes()), 1), now).unwrap();
        let known = admit(0).ticket().unwrap();
        assert!(known.is_known(AccountId(1)));
        let mut inside = Vec::new();
        for i in 1..=60 {
            inside.extend(admit(i).ticket());
            assert!(unknown(&gate) <= 8);
        }
        assert!(unknown(&gate) >= 4);
        assert_eq!(gate.inner().open[&known.number].state, State::Known(AccountId(1)));
        let next = inside.iter().find(|ticket| !ticket.is_cut()).unwrap();
        assert!(next.is_known(AccountId(2)), "they have their places");
    }

    #[test]
    fn a_stranger_among_many_silent_ones_has_the_chance_of_any_other() {
        let (gate, socket, now) = (gate("10:30:100", 2, 100), socket(), Instant::now());
        let (mut next, mut inside) = (1u32, Vec::new());
        let mut admit = |inside: &mut Vec<Ticket<'_>>| {
            next += 1;
            inside.retain(|ticket| !ticket.is_cut());
            gate.admit(&socket, SocketAddr::new(IpAddr::from(next.to_be_bytes()), 1), now).unwrap().ticket()
        };
        (0..400).for_each(|_| {
            let ticket = admit(&mut inside);
            inside.extend(ticket);
        });
        assert!(unknown(&gate) > 50, "silent ones hold most places");
        // It needs as long as 150 others take to come. Were the oldest cut for each, or all that come turned away, none would
        // last; so it is e^-1.5 of them.
        let served = (0..200).filter(|_| {
            let Some(ours) = admit(&mut inside) else { return false };
            (0..150).for_each(|_| {
                let ticket = admit(&mut inside);
                inside.extend(ticket);
            });
            !ours.is_cut()
        });
        assert!((15..90).contains(&served.count()));
    }

    #[test]
    fn one_address_has_its_own_places_for_strangers_and_takes_no_others() {
        let (gate, socket, now) = (gate("100", 2, 3), socket(), Instant::now());
        let admit = |from: &str| gate.admit(&socket, address(from), now).unwrap().ticket();
        let other = admit("10.0.0.2").unwrap();
        let inside: Vec<_> = (0..50).filter_map(|_| admit("10.0.0.1")).collect();
        assert_eq!(unknown(&gate), 4);
        assert!(!other.is_cut() && inside.len() > 3);
    }

    #[test]
    fn who_was_cut_becomes_known_no_more_and_threads_that_do_not_end_are_bounded() {
        let (gate, socket, now) = (gate("1", 1, 1000), socket(), Instant::now());
        let admit = |i: u32| gate.admit(&socket, SocketAddr::new(IpAddr::from(i.to_be_bytes()), 1), now).unwrap();
        let inside: Vec<_> = (0..2000).filter_map(|i| admit(i).ticket()).collect();
        assert!(inside.len() <= 1 + 1 + ENDING);
        let cut = inside.iter().find(|ticket| ticket.is_cut()).unwrap();
        let _ = cut.is_known(AccountId(1));
        assert!(cut.is_cut());
    }

    #[test]
    fn neighbours_on_one_link_are_not_one_address() {
        let part = |text: &str| network(text.parse().unwrap());
        assert_ne!(part("fe80::1"), part("fe80::2"));
        assert_eq!(part("2001:db8::1"), part("2001:db8::2"));
        assert_eq!(part("::ffff:10.0.0.1"), part("10.0.0.1"));
    }
}

//! Those who have no account, or not the secret: what they cannot do to those who have.

use super::house::{House, open, refusal, settings};
use lasthop_messenger::account::Account;
use lasthop_messenger::client::Session;
use lasthop_messenger::protocol::{Refusal, Secret};
use lasthop_messenger::server::Event;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn house() -> (tempfile::TempDir, House, Account, Account) {
    let folder = tempfile::tempdir().unwrap();
    let house = House::open(folder.path(), settings());
    let (anna, bert) = (house.account("anna"), house.account("bert"));
    (folder, house, anna, bert)
}

fn mistaken(account: &Account) -> Account {
    Account { secret: Secret("0".repeat(64)), ..account.clone() }
}

/// What an attempt to come in is told.
fn told(account: &Account) -> Refusal {
    refusal(Session::open(account, None, super::house::IDLE).map(drop))
}

/// A connection from an address of its own.
fn from(number: u32, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    let [_, a, b, c] = number.to_be_bytes();
    bind(&socket, &SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(127, a + 1, b, c), 0)))?;
    connect(&socket, &to)?;
    Ok(socket.into())
}

/// Of ten connections that say nothing, from addresses of their own, how many are not cut for so long.
fn last(first: u32, server: SocketAddr, long: Duration) -> usize {
    let all: Vec<_> = (first..first + 10).map(|number| from(number, server).unwrap()).collect();
    std::thread::park_timeout(long);
    let is_open = |socket: &&TcpStream| {
        socket.set_nonblocking(true).unwrap();
        socket.peek(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    all.iter().filter(is_open).count()
}

#[test]
fn wrong_secrets_of_one_account_lock_no_other_account_of_that_address() {
    let (_folder, house, anna, bert) = house();
    for _ in 0..5 {
        assert_eq!(told(&mistaken(&anna)), Refusal::WrongSecret);
    }
    assert!(matches!(told(&mistaken(&anna)), Refusal::TooManyAttempts { .. }));
    assert!(matches!(told(&anna), Refusal::TooManyAttempts { .. }), "not even the right one, there");
    open(&bert).close();
    let counters = house.stop();
    assert_eq!((counters.wrong_secrets, counters.too_many_attempts, counters.forgotten_attempts), (5, 2, 0));
}

#[test]
fn accounts_come_in_among_a_thousand_silent_connections_a_second_from_as_many_addresses() {
    const PER_SECOND: u32 = 1000;
    const HELD: usize = 300;
    let (_folder, house, anna, _) = house();
    let (server, stop) = (house.address.parse().unwrap(), Arc::new(AtomicBool::new(false)));
    let flood = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let (since, mut held) = (Instant::now(), VecDeque::new());
            for number in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return number;
                }
                held.extend(from(number, server));
                if held.len() > HELD {
                    held.pop_front();
                }
                let due = Duration::from_secs(1) * number / PER_SECOND;
                std::thread::park_timeout(due.saturating_sub(since.elapsed()));
            }
            unreachable!()
        }
    });
    // As many tries as a client makes in its patience.
    let comes_in = |_: &u32| {
        let tries = (0..12).map(|_| Session::open(&anna, None, super::house::IDLE));
        tries.inspect(|_| std::thread::park_timeout(Duration::from_millis(100))).any(|session| session.is_ok())
    };
    let came_in = (0..5).filter(comes_in).count();
    let lasting: usize = (0..10).map(|round| last(1_000_000 + 10 * round, server, Duration::from_millis(150))).sum();
    stop.store(true, Ordering::Relaxed);
    let made = flood.join().unwrap();
    let events = Arc::clone(&house.events);
    let counters = house.stop();
    println!("{made} connections, {counters:?}");
    assert_eq!(came_in, 5);
    // Of 100, by e^(-1000/s x 0.15 s / 100), 22; were the oldest cut for each that comes, or all that come turned away: none.
    assert!(lasting >= 5, "{lasting}");
    assert!(counters.turned_away > 0 && counters.not_told > 0, "{counters:?}");
    let events = events.lock().unwrap();
    let told = events.iter().filter(|event| matches!(event, Event::TurnedAway { .. })).count();
    let left_out: u64 = events.iter().map(|e| if let Event::NotTold { events } = e { *events } else { 0 }).sum();
    assert!(told < 40, "{told}");
    assert_eq!(left_out, counters.not_told, "what was not told is counted");
}

//! A server with a store of its own, and what clients say to it.

use lasthop_messenger::account::Account;
use lasthop_messenger::channel::{ChannelError, Incoming};
use lasthop_messenger::client::{ClientError, Session};
use lasthop_messenger::protocol::{Listed, MessageId, Refusal, Reply, Request, Sha256, TransferId};
use lasthop_messenger::server::{Cost, Counters, Event, Server, Settings};
use lasthop_messenger::tuning::End;
use ring::digest;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longer than anything here takes.
pub const IDLE: Duration = Duration::from_secs(30);

/// Settings for tests: secrets hashed fast, no room of the disk left to others.
pub fn settings() -> Settings {
    let mut settings = Settings { hashing: Cost { memory_kib: 64, passes: 1 }, ..Settings::default() };
    settings.bounds.free_bytes = 0;
    settings.messages_per_minute = 100_000;
    settings
}

/// A server that runs.
pub struct House {
    pub server: Arc<Server>,
    pub address: String,
    pub events: Arc<Mutex<Vec<Event>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Counters>>,
}

impl House {
    pub fn open(folder: &Path, settings: Settings) -> Self {
        Self::listening(folder, settings, TcpListener::bind("127.0.0.1:0").unwrap())
    }

    pub fn listening(folder: &Path, settings: Settings, listener: TcpListener) -> Self {
        let events = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&events);
        let server = Server::open(folder, settings).unwrap();
        let server = Arc::new(server.on_event(move |event| heard.lock().unwrap().push(event.clone())));
        let address = listener.local_addr().unwrap().to_string();
        let stop = Arc::new(AtomicBool::new(false));
        let (serving, stopped) = (Arc::clone(&server), Arc::clone(&stop));
        let thread = std::thread::spawn(move || serving.serve(listener, &stopped).unwrap());
        Self { server, address, events, stop, thread: Some(thread) }
    }

    pub fn account(&self, name: &str) -> Account {
        self.server.add_account(name, &self.address).unwrap()
    }

    /// Stops it, and returns what it counted.
    pub fn stop(mut self) -> Counters {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub fn open(account: &Account) -> Session {
    Session::open(account, None, IDLE).unwrap()
}

pub fn sha256(bytes: &[u8]) -> Sha256 {
    digest::digest(&digest::SHA256, bytes).as_ref().try_into().unwrap()
}

/// Bytes that no disk holds by chance.
pub fn body(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..bytes).map(next).collect()
}

pub fn offer(transfer: u128, to: &str, name: &str, bytes: u64) -> Request {
    let (to, name, transfer) = (to.to_owned(), name.to_owned(), TransferId(transfer.to_be_bytes()));
    Request::Offer { transfer, to, name, bytes, receiver: End::default() }
}

/// Why it was refused.
pub fn refusal<T: std::fmt::Debug>(outcome: Result<T, ClientError>) -> Refusal {
    match outcome {
        Err(ClientError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

/// Sends the bytes from `offset` on as packets of 10,000 bytes.
pub fn packets(session: &mut Session, offset: u64, bytes: &[u8]) -> Result<(), ChannelError> {
    let mut at = offset;
    for packet in bytes.chunks(10_000) {
        let fill = |buffer: &mut [u8]| {
            buffer[..packet.len()].copy_from_slice(packet);
            Ok::<_, ()>(packet.len())
        };
        session.channel().send_packet(at, packet.len(), fill).unwrap().map(drop)?;
        at += packet.len() as u64;
    }
    Ok(())
}

/// Sends a message whole, wherever the server wants to go on.
pub fn send(session: &mut Session, transfer: u128, to: &str, bytes: &[u8]) -> Result<MessageId, ClientError> {
    match session.ask(&offer(transfer, to, "voice.wav", bytes.len() as u64))? {
        Reply::Kept { message } => return Ok(message),
        Reply::Continue { offset } => {
            packets(session, offset, &bytes[offset as usize..]).map_err(|error| session.lost(error))?;
        }
        other => panic!("{other:?}"),
    }
    match session.ask(&Request::Finish { sha256: sha256(bytes) })? {
        Reply::Kept { message } => Ok(message),
        other => panic!("{other:?}"),
    }
}

pub fn list(session: &mut Session) -> Vec<Listed> {
    match session.ask(&Request::List { after: None }).unwrap() {
        Reply::Listing { messages, more: false } => messages,
        other => panic!("{other:?}"),
    }
}

/// A message from `offset` on, and what the server says of the whole.
pub fn fetch(session: &mut Session, message: MessageId, offset: u64) -> Result<(Vec<u8>, Sha256), ClientError> {
    let length = match session.ask(&Request::Fetch { message, offset, sender: End::default() })? {
        Reply::Start { bytes } => bytes,
        other => panic!("{other:?}"),
    };
    let mut got = Vec::new();
    loop {
        match session.channel().receive::<Reply>() {
            Ok(Incoming::Packet { offset: at, bytes }) => {
                assert_eq!(at, offset + got.len() as u64);
                got.extend_from_slice(bytes);
            }
            Ok(Incoming::Control(Reply::End { sha256, .. })) => {
                assert_eq!(offset + got.len() as u64, length);
                return Ok((got, sha256));
            }
            Ok(Incoming::Control(Reply::Refused(refusal))) => return Err(ClientError::Refused(refusal)),
            Ok(Incoming::Control(other)) => panic!("{other:?}"),
            Err(error) => return Err(session.failed(error)),
        }
    }
}

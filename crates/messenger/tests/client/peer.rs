//! A server as small as can be, which keeps everything in memory and does on request what a good one never does.

use lasthop_messenger::account::Account;
use lasthop_messenger::channel::{Channel, Incoming};
use lasthop_messenger::protocol::{Listed, MessageId, Refusal, Reply, Request, Secret, TransferId};
use lasthop_messenger::tls::Identity;
use lasthop_messenger::transfer::{self, Hash, Progress, Receiver};
use lasthop_messenger::tuning::End;
use std::collections::{BTreeMap, HashMap};
use std::io::Cursor;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// See above. Ends with the test.
pub struct Peer {
    pub address: SocketAddr,
    identity: Arc<Identity>,
    mailbox: Arc<Mutex<Mailbox>>,
}

/// What it has, and what it shall do.
#[derive(Default)]
pub struct Mailbox {
    pub kept: BTreeMap<u64, Message>,
    pub transfers: HashMap<TransferId, u64>,
    pub partial: HashMap<TransferId, Vec<u8>>,
    /// Messages that were acknowledged as received, in order.
    pub received: Vec<u64>,
    /// Tunings that the client asked for.
    pub ends: Vec<End>,
    /// Send so many downloads damaged.
    pub damage: u32,
    /// Refuse uploads once so many bytes have come.
    pub refuse: Option<(usize, Refusal)>,
    /// Hang up so many times instead of saying `Kept` or `Done`.
    pub swallow: u32,
}

#[derive(Clone)]
pub struct Message {
    pub name: String,
    pub bytes: Vec<u8>,
}

impl Peer {
    pub fn start() -> Self {
        let identity = Arc::new(Identity::from_pem(Identity::generate().unwrap().as_bytes()).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mailbox = Arc::new(Mutex::new(Mailbox::default()));
        let (config, all) = (identity.server_config().unwrap(), Arc::clone(&mailbox));
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (config, mailbox) = (Arc::clone(&config), Arc::clone(&all));
                thread::spawn(move || {
                    let channel = Channel::server(socket, config, Duration::from_secs(20)).unwrap();
                    Connection { channel, mailbox }.serve()
                });
            }
        });
        Self { address, identity, mailbox }
    }

    pub fn account(&self, at: SocketAddr) -> Account {
        let (server, pin) = (at.to_string(), self.identity.pin());
        Account { server, pin, account: "anna".into(), secret: Secret("k3".into()) }
    }

    pub fn mailbox(&self) -> MutexGuard<'_, Mailbox> {
        self.mailbox.lock().unwrap()
    }

    /// Puts a message there.
    pub fn put(&self, name: &str, bytes: &[u8]) -> MessageId {
        self.mailbox().put(Message { name: name.into(), bytes: bytes.to_vec() })
    }
}

impl Mailbox {
    fn put(&mut self, message: Message) -> MessageId {
        let id = 1 + self.kept.keys().copied().chain(self.received.iter().copied()).max().unwrap_or(0);
        self.kept.insert(id, message);
        MessageId(id)
    }

    fn swallows(&mut self) -> bool {
        let swallows = self.swallow > 0;
        self.swallow -= u32::from(swallows);
        swallows
    }
}

struct Connection {
    channel: Channel,
    mailbox: Arc<Mutex<Mailbox>>,
}

impl Connection {
    /// `None`: the connection is over.
    fn serve(&mut self) -> Option<()> {
        loop {
            let Incoming::Control(request) = self.channel.receive::<Request>().ok()? else { return None };
            let reply = match request {
                Request::Hello { secret, .. } if secret == Secret("k3".into()) => {
                    Reply::Welcome { longest_message: u64::MAX }
                }
                Request::Hello { .. } => Reply::Refused(Refusal::WrongSecret),
                Request::Offer { transfer, to, name, bytes, receiver } => {
                    self.upload(transfer, &to, name, bytes, receiver)?
                }
                Request::List { .. } => self.list(),
                Request::Fetch { message, offset, sender } => self.download(message, offset, sender)?,
                Request::Received { message } => {
                    let mut mailbox = self.mailbox.lock().unwrap();
                    let was_there = mailbox.kept.remove(&message.0).is_some();
                    if was_there {
                        mailbox.received.push(message.0);
                    }
                    if mailbox.swallows() {
                        return None;
                    }
                    if was_there { Reply::Done } else { Reply::Refused(Refusal::NoSuchMessage) }
                }
                other => panic!("{other:?}"),
            };
            self.channel.send(&reply).ok()?;
        }
    }

    fn upload(&mut self, transfer: TransferId, to: &str, name: String, length: u64, end: End) -> Option<Reply> {
        let mut bytes = {
            let mut mailbox = self.mailbox.lock().unwrap();
            mailbox.ends.push(end);
            if to != "ben" {
                return Some(Reply::Refused(Refusal::NoSuchRecipient { name: to.into() }));
            }
            if let Some(message) = mailbox.transfers.get(&transfer) {
                return Some(Reply::Kept { message: MessageId(*message) });
            }
            mailbox.partial.remove(&transfer).unwrap_or_default()
        };
        let offset = bytes.len() as u64;
        let hash = Hash::of_prefix(&mut &bytes[..], offset).unwrap();
        self.channel.send(&Reply::Continue { offset }).ok()?;
        let mut receiver = Receiver::new(&mut bytes, &end, offset, length, hash);
        let refuse = self.mailbox.lock().unwrap().refuse.clone();
        let mut look = |progress: &Progress| match &refuse {
            Some((most, _)) if progress.bytes >= *most as u64 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        let ended = transfer::receive::<Request, _>(&mut self.channel, &mut receiver, &mut look);
        let (_, sum, progress) = receiver.finish().unwrap();
        let mut mailbox = self.mailbox.lock().unwrap();
        match ended {
            Ok(Request::Finish { sha256 }) if progress.bytes == length => {
                if sha256 != sum {
                    return Some(Reply::Refused(Refusal::Mismatch));
                }
                let message = mailbox.put(Message { name, bytes });
                mailbox.transfers.insert(transfer, message.0);
                (!mailbox.swallows()).then_some(Reply::Kept { message })
            }
            Err(transfer::ReceiveError::Stopped) => {
                let why = mailbox.refuse.take()?.1;
                mailbox.partial.insert(transfer, bytes);
                drop(mailbox);
                self.channel.send(&Reply::Refused(why)).ok()?;
                None
            }
            _ => {
                mailbox.partial.insert(transfer, bytes);
                None
            }
        }
    }

    fn list(&self) -> Reply {
        let mailbox = self.mailbox.lock().unwrap();
        let listed = |(id, message): (&u64, &Message)| Listed {
            message: MessageId(*id),
            from: "ben".into(),
            name: message.name.clone(),
            bytes: message.bytes.len() as u64,
            kept_at: 0,
        };
        Reply::Listing { messages: mailbox.kept.iter().map(listed).collect(), more: false }
    }

    fn download(&mut self, message: MessageId, offset: u64, end: End) -> Option<Reply> {
        let (mut bytes, damaged) = {
            let mut mailbox = self.mailbox.lock().unwrap();
            mailbox.ends.push(end);
            let Some(message) = mailbox.kept.get(&message.0).cloned() else {
                return Some(Reply::Refused(Refusal::NoSuchMessage));
            };
            let damaged = mailbox.damage > 0;
            mailbox.damage -= u32::from(damaged);
            (message.bytes, damaged)
        };
        let (length, sum) = (bytes.len() as u64, Hash::of_prefix(&mut &bytes[..], bytes.len() as u64).unwrap());
        if damaged {
            *bytes.last_mut().unwrap() ^= 1;
        }
        self.channel.send(&Reply::Start { bytes: length }).ok()?;
        let mut source = Cursor::new(bytes);
        source.set_position(offset);
        let mut go_on = |_: &Progress| ControlFlow::Continue(());
        transfer::send(&mut self.channel, &mut source, offset..length, &end, None, &mut go_on).ok()?;
        Some(Reply::End { sha256: sum.finish(), tcp: self.channel.metrics().ok()? })
    }
}

/// Passes connections on to `to`, and cuts each after as many bytes (of both directions) as `cuts` says; those beyond are
/// never cut.
pub fn cutting_proxy(to: SocketAddr, cuts: Vec<usize>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let mut cuts = cuts.into_iter();
        for near in listener.incoming().flatten() {
            let far = TcpStream::connect(to).unwrap();
            let left = Arc::new(Mutex::new(cuts.next().unwrap_or(usize::MAX)));
            for (from, to) in [(&near, &far), (&far, &near)] {
                let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                let left = Arc::clone(&left);
                thread::spawn(move || pass(from, to, &left));
            }
        }
    });
    address
}

fn pass(mut from: TcpStream, mut to: TcpStream, left: &Mutex<usize>) {
    use std::io::{Read as _, Write as _};
    let mut buffer = [0; 1024];
    while let Ok(bytes @ 1..) = from.read(&mut buffer) {
        let mut left = left.lock().unwrap();
        let passed = bytes.min(*left);
        *left -= passed;
        let ends = *left == 0;
        drop(left);
        if to.write_all(&buffer[..passed]).is_err() || ends {
            break;
        }
    }
    let _ = (from.shutdown(std::net::Shutdown::Both), to.shutdown(std::net::Shutdown::Both));
}

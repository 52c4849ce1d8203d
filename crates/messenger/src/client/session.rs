//! A connection to a server on which the account has been accepted.

use super::ClientError;
use crate::account::Account;
use crate::channel::{Channel, ChannelError, Incoming};
use crate::protocol::{PORT, Reply, Request, VERSION};
use crate::tls::client_config;
use crate::tuning::{quantity::Size, socket};
use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How long one address of the server may take to answer.
const CONNECT: Duration = Duration::from_secs(10);
/// How often it is looked whether to stop.
const LOOK: Duration = Duration::from_millis(100);

/// See above.
pub struct Session {
    channel: Channel,
    server: String,
    longest_message: u64,
    connecting: Duration,
    stop: Option<Arc<AtomicBool>>,
    /// Dropped with the session, and the thread that holds its other end sees that.
    _watched: Option<mpsc::Sender<()>>,
}

impl Session {
    /// Connects, makes sure that it is the account's server, and says who is there. `receive_buffer` must be known here,
    /// as the window's scale is fixed by the first packet. `idle`: how long nothing may happen.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn open(account: &Account, receive_buffer: Option<Size>, idle: Duration) -> Result<Self, ClientError> {
        Self::open_watched(account, receive_buffer, idle, None)
    }

    /// As [`Session::open`]; once `stop` is set, whatever this session waits for ends with [`ClientError::Stopped`].
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn open_until(
        account: &Account,
        receive_buffer: Option<Size>,
        idle: Duration,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, ClientError> {
        let session = Self::open_watched(account, receive_buffer, idle, Some(Arc::clone(stop)));
        if stop.load(Ordering::Relaxed) { Err(ClientError::Stopped) } else { session }
    }

    fn open_watched(
        account: &Account,
        receive_buffer: Option<Size>,
        idle: Duration,
        stop: Option<Arc<AtomicBool>>,
    ) -> Result<Self, ClientError> {
        let since = Instant::now();
        let server = account.server.clone();
        let socket = connect(&server, receive_buffer)?;
        let watched = stop.as_ref().map(|stop| watch(&socket, stop)).transpose();
        let watched = watched.map_err(|source| ClientError::Lost(ChannelError::Io(source)))?;
        let (config, name) = client_config(account.pin);
        let channel = Channel::client(socket, config, name, idle).map_err(ClientError::Lost)?;
        let mut session =
            Self { channel, server, longest_message: 0, connecting: Duration::ZERO, stop, _watched: watched };
        let hello =
            Request::Hello { version: VERSION, account: account.account.clone(), secret: account.secret.clone() };
        match session.ask(&hello)? {
            Reply::Welcome { longest_message } => session.longest_message = longest_message,
            other => return Err(unexpected(&other)),
        }
        session.connecting = since.elapsed();
        Ok(session)
    }

    /// Longest message that the server takes, in bytes.
    #[must_use]
    pub fn longest_message(&self) -> u64 {
        self.longest_message
    }

    /// What it took to connect: name, TCP, TLS, account.
    #[must_use]
    pub fn connecting(&self) -> Duration {
        self.connecting
    }

    /// The connection itself, for packets.
    pub fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    /// Says something.
    ///
    /// # Errors
    /// [`ClientError`]; `Refused` when the server had said why it does not listen any more.
    pub fn say(&mut self, request: &Request) -> Result<(), ClientError> {
        self.channel.send(request).map_err(|error| self.lost(error))
    }

    /// Waits for an answer.
    ///
    /// # Errors
    /// [`ClientError`]; a refusal is one.
    pub fn answer(&mut self) -> Result<Reply, ClientError> {
        match self.channel.receive::<Reply>() {
            Ok(Incoming::Control(Reply::Refused(refusal))) => Err(ClientError::Refused(refusal)),
            Ok(Incoming::Control(reply)) => Ok(reply),
            Ok(Incoming::Packet { .. }) => Err(ClientError::Unexpected("a packet")),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Says something and waits for the answer.
    ///
    /// # Errors
    /// [`ClientError`]; a refusal is one.
    pub fn ask(&mut self, request: &Request) -> Result<Reply, ClientError> {
        self.say(request)?;
        self.answer()
    }

    /// What it means that something could not be sent: the server may have said why before it hung up.
    pub fn lost(&mut self, error: ChannelError) -> ClientError {
        if matches!(error, ChannelError::Closed)
            && self.stop_is_not_set()
            && let Ok(Incoming::Control(Reply::Refused(refusal))) = self.channel.receive::<Reply>()
        {
            return ClientError::Refused(refusal);
        }
        self.failed(error)
    }

    /// What it means that something could not be received.
    pub fn failed(&self, error: ChannelError) -> ClientError {
        if self.stop_is_not_set() { ClientError::of_channel(error, &self.server) } else { ClientError::Stopped }
    }

    fn stop_is_not_set(&self) -> bool {
        !self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Says goodbye.
    pub fn close(self) {
        self.channel.close();
    }
}

/// What the server answered where something else was expected.
pub(super) fn unexpected(reply: &Reply) -> ClientError {
    ClientError::Unexpected(match reply {
        Reply::Welcome { .. } => "`Welcome`",
        Reply::Refused(_) => "`Refused`",
        Reply::Continue { .. } => "`Continue`",
        Reply::Kept { .. } => "`Kept`",
        Reply::Listing { .. } => "`Listing`",
        Reply::Start { .. } => "`Start`",
        Reply::End { .. } => "`End`",
        Reply::Done => "`Done`",
        Reply::Pong(_) => "`Pong`",
        Reply::Sent { .. } => "`Sent`",
        Reply::Taken { .. } => "`Taken`",
    })
}

/// Connects to the first address of `server` that answers; without a port, to that of the protocol.
fn connect(server: &str, receive_buffer: Option<Size>) -> Result<TcpStream, ClientError> {
    let unknown = |source| ClientError::Unknown { server: server.to_owned(), source };
    let addresses = addresses(server).map_err(unknown)?;
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match socket::connect(address, receive_buffer, CONNECT) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(ClientError::Unreachable { server: server.to_owned(), source: last })
}

fn addresses(server: &str) -> io::Result<Vec<SocketAddr>> {
    let has_port = server.rsplit_once(':').is_some_and(|(host, _)| !host.contains(':') || host.ends_with(']'));
    let addresses = match has_port {
        true => server.to_socket_addrs()?,
        false => (server.trim_start_matches('[').trim_end_matches(']'), PORT).to_socket_addrs()?,
    };
    Ok(addresses.collect())
}

/// Shuts `socket` down once `stop` is set, unless what is returned is dropped before.
fn watch(socket: &TcpStream, stop: &Arc<AtomicBool>) -> io::Result<mpsc::Sender<()>> {
    let (socket, stop) = (socket.try_clone()?, Arc::clone(stop));
    let (alive, gone) = mpsc::channel();
    thread::Builder::new().name("stop".into()).stack_size(64 << 10).spawn(move || {
        while gone.recv_timeout(LOOK) == Err(mpsc::RecvTimeoutError::Timeout) {
            if stop.load(Ordering::Relaxed) {
                let _ = socket.shutdown(Shutdown::Both);
                return;
            }
        }
    })?;
    Ok(alive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Refusal, Secret};
    use crate::tls::Identity;
    use std::net::TcpListener;

    const IDLE: Duration = Duration::from_secs(20);

    /// A server that answers the first frame with `reply` and then waits for the client to go.
    fn server(reply: Reply) -> (Account, thread::JoinHandle<Request>) {
        let identity = Identity::from_pem(Identity::generate().unwrap().as_bytes()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let account = Account {
            server: listener.local_addr().unwrap().to_string(),
            pin: identity.pin(),
            account: "anna".into(),
            secret: Secret("k3".into()),
        };
        let config = identity.server_config().unwrap();
        let serve = move || {
            let mut channel = Channel::server(listener.accept().unwrap().0, config, IDLE).unwrap();
            let Ok(Incoming::Control(first)) = channel.receive::<Request>() else { panic!("no frame") };
            channel.send(&reply).unwrap();
            while channel.receive::<Request>().is_ok() {}
            first
        };
        (account, thread::spawn(serve))
    }

    #[test]
    fn a_session_says_who_it_is_and_is_welcome() {
        let (account, server) = server(Reply::Welcome { longest_message: 7 });
        let session = Session::open(&account, Size::new(8192), IDLE).unwrap();
        assert_eq!(session.longest_message(), 7);
        session.close();
        let hello = Request::Hello { version: VERSION, account: "anna".into(), secret: Secret("k3".into()) };
        assert_eq!(server.join().unwrap(), hello);
    }

    #[test]
    fn a_refusal_is_an_error_in_the_servers_words() {
        let (account, server) = server(Reply::Refused(Refusal::WrongSecret));
        let error = Session::open(&account, None, IDLE).err().unwrap();
        assert!(matches!(error, ClientError::Refused(Refusal::WrongSecret)));
        assert_eq!(error.passes(), None);
        server.join().unwrap();
    }

    #[test]
    fn another_server_is_told_nothing() {
        let (account, server) = server(Reply::Welcome { longest_message: 7 });
        let wrong = Account { pin: "00".repeat(32).parse().unwrap(), ..account };
        let error = Session::open(&wrong, None, IDLE).err().unwrap();
        assert!(matches!(error, ClientError::NotTheServer { .. }), "{error}");
        assert_eq!(error.passes(), None);
        assert!(server.join().is_err(), "it got no frame");
    }

    #[test]
    fn nobody_there_is_worth_another_try() {
        let account = server(Reply::Done).0;
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let error = Session::open(&Account { server: free, ..account }, None, IDLE).err().unwrap();
        assert!(matches!(error, ClientError::Unreachable { .. }) && error.passes().is_some(), "{error}");
    }

    #[test]
    fn a_stop_ends_what_a_session_waits_for() {
        let (account, server) = server(Reply::Welcome { longest_message: 7 });
        let stop = Arc::new(AtomicBool::new(false));
        let mut session = Session::open_until(&account, None, IDLE, &stop).unwrap();
        let stopper = thread::spawn(move || stop.store(true, Ordering::Relaxed));
        assert!(matches!(session.ask(&Request::Ping(1)), Err(ClientError::Stopped)));
        stopper.join().unwrap();
        drop(session);
        server.join().unwrap();
    }

    #[test]
    fn a_server_without_a_port_has_the_protocols() {
        for (server, address) in [
            ("127.0.0.1", "127.0.0.1:4774"),
            ("127.0.0.1:9", "127.0.0.1:9"),
            ("::1", "[::1]:4774"),
            ("[::1]", "[::1]:4774"),
            ("[::1]:9", "[::1]:9"),
        ] {
            assert_eq!(addresses(server).unwrap(), [address.parse().unwrap()], "{server}");
        }
    }
}

//! A connection between client and server: frames over TLS over TCP, with a limit to how long nothing may happen.

use crate::protocol::{self, Decoded, FrameError, HEADER, LONGEST, TcpMetrics};
use crate::tuning::{End, socket};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ConnectionCommon, ServerConfig, ServerConnection, StreamOwned};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::DerefMut;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A connection that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The other end has gone, in order or not.
    #[error("the other end closed the connection")]
    Closed,
    /// Nothing could be read or written for the time allowed.
    #[error("nothing was heard for too long")]
    Idle,
    /// Not who it should be, or no TLS.
    #[error("no secure connection: {0}")]
    Tls(#[source] rustls::Error),
    /// Not what the protocol says.
    #[error("the other end sent {0}")]
    Frame(#[from] FrameError),
    /// The socket failed.
    #[error("the connection failed: {0}")]
    Io(#[source] io::Error),
}

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming<'a, T> {
    /// A control frame.
    Control(T),
    /// A packet.
    Packet {
        /// Where its bytes belong in the message.
        offset: u64,
        /// 1 to 1 MiB of them.
        bytes: &'a [u8],
    },
}

/// One end of a connection.
pub struct Channel {
    stream: Box<dyn Stream>,
    /// Decrypted bytes that are not used up: `inbox[used..filled]`.
    inbox: Vec<u8>,
    used: usize,
    filled: usize,
    /// A frame on its way out.
    outbox: Vec<u8>,
    /// Longest frame that is taken, header included.
    longest: usize,
    /// Nothing can be written any more; what the other end said before may still be there.
    is_mute: bool,
}

impl Channel {
    /// The client's end. `idle`: how long nothing may happen.
    ///
    /// # Errors
    /// [`ChannelError`]; nothing has been sent yet: the handshake happens with the first frame.
    pub fn client(
        socket: TcpStream,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        idle: Duration,
    ) -> Result<Self, ChannelError> {
        let tls = ClientConnection::new(config, name).map_err(ChannelError::Tls)?;
        Self::new(StreamOwned::new(tls, socket), idle)
    }

    /// The server's end.
    ///
    /// # Errors
    /// As [`Channel::client`].
    pub fn server(socket: TcpStream, config: Arc<ServerConfig>, idle: Duration) -> Result<Self, ChannelError> {
        let tls = ServerConnection::new(config).map_err(ChannelError::Tls)?;
        Self::new(StreamOwned::new(tls, socket), idle)
    }

    fn new(stream: impl Stream + 'static, idle: Duration) -> Result<Self, ChannelError> {
        let channel = Self {
            stream: Box::new(stream),
            inbox: vec![0; 4096],
            used: 0,
            filled: 0,
            outbox: Vec::new(),
            longest: LONGEST,
            is_mute: false,
        };
        channel.set_idle(idle)?;
        channel.socket().set_nodelay(true).map_err(ChannelError::Io)?;
        Ok(channel)
    }

    /// How long nothing may happen from now on.
    ///
    /// # Errors
    /// [`ChannelError::Io`].
    pub fn set_idle(&self, idle: Duration) -> Result<(), ChannelError> {
        self.socket().set_read_timeout(Some(idle)).map_err(ChannelError::Io)?;
        self.socket().set_write_timeout(Some(idle)).map_err(ChannelError::Io)
    }

    /// The longest frame taken from now on, in bytes, header included: memory is taken for no longer one.
    pub fn set_longest(&mut self, bytes: usize) {
        self.longest = bytes;
    }

    /// This end sends packets from now on, as `end` says.
    ///
    /// # Errors
    /// [`ChannelError::Io`].
    pub fn prepare_sender(&self, end: &End) -> Result<(), ChannelError> {
        socket::prepare_sender(self.socket(), end).map_err(ChannelError::Io)
    }

    /// This end receives packets from now on, as `end` says.
    ///
    /// # Errors
    /// [`ChannelError::Io`].
    pub fn prepare_receiver(&self, end: &End) -> Result<(), ChannelError> {
        socket::prepare_receiver(self.socket(), end).map_err(ChannelError::Io)
    }

    /// What the kernel says of this end.
    ///
    /// # Errors
    /// [`ChannelError::Io`].
    pub fn metrics(&self) -> Result<TcpMetrics, ChannelError> {
        socket::metrics(self.socket()).map_err(ChannelError::Io)
    }

    /// What the kernel says of this end once all that waits in its send buffer has been sent, at most `longest` later:
    /// before, a long wait of a slow receiver's is not in it yet.
    ///
    /// # Errors
    /// [`ChannelError::Io`].
    pub fn figures_when_sent(&self, longest: Duration) -> Result<TcpMetrics, ChannelError> {
        let since = Instant::now();
        while since.elapsed() < longest && socket::unsent(self.socket()).map_err(ChannelError::Io)? > 0 {
            thread::sleep(Duration::from_millis(1));
        }
        self.metrics()
    }

    /// The socket below, to be shut down by another thread.
    #[must_use]
    pub fn socket(&self) -> &TcpStream {
        self.stream.socket()
    }

    /// Sends a control frame and waits until the kernel has it.
    ///
    /// # Errors
    /// [`ChannelError`].
    pub fn send<T: Serialize>(&mut self, frame: &T) -> Result<(), ChannelError> {
        let bytes = protocol::control(frame);
        self.write(&bytes)
    }

    /// Sends a packet, 1 to 1 MiB bytes that `fill` writes into the buffer it is given (as long as `most`, at most
    /// 1 MiB), and waits until the kernel has it. Returns its bytes: none when `fill` had none, and nothing was sent.
    ///
    /// # Errors
    /// [`ChannelError`] inside, what `fill` failed with outside.
    pub fn send_packet<E>(
        &mut self,
        offset: u64,
        most: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Result<&[u8], ChannelError>, E> {
        let head = protocol::packet_header(offset, 1).len();
        let mut frame = std::mem::take(&mut self.outbox);
        if frame.len() < head + most {
            frame.resize(head + most, 0);
        }
        let filled = fill(&mut frame[head..head + most]);
        let sent = filled.map(|bytes| {
            if bytes > 0 {
                frame[..head].copy_from_slice(&protocol::packet_header(offset, bytes));
                self.write(&frame[..head + bytes])?;
            }
            Ok(bytes)
        });
        self.outbox = frame;
        Ok(sent?.map(|bytes| &self.outbox[head..head + bytes]))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        // Behind half a frame, the next one would pass for the rest of it.
        if self.is_mute {
            return Err(ChannelError::Closed);
        }
        let written = self.stream.write_all(bytes).and_then(|()| flush(&mut *self.stream));
        self.is_mute |= written.is_err();
        written.map_err(failed)
    }

    /// Waits for the next frame.
    ///
    /// # Errors
    /// [`ChannelError`].
    pub fn receive<T: DeserializeOwned>(&mut self) -> Result<Incoming<'_, T>, ChannelError> {
        let mut needs = HEADER;
        loop {
            self.fill(needs)?;
            match protocol::decode::<T>(&self.inbox[self.used..self.filled])? {
                Decoded::Needs(bytes) | Decoded::Control(_, bytes) | Decoded::Packet { took: bytes, .. }
                    if bytes > self.longest =>
                {
                    return Err(FrameError::Length((bytes - HEADER) as u32 + 1).into());
                }
                Decoded::Needs(bytes) => needs = bytes,
                Decoded::Control(frame, took) => {
                    self.used += took;
                    return Ok(Incoming::Control(frame));
                }
                Decoded::Packet { offset, bytes, took } => {
                    let start = self.used + took - bytes.len();
                    self.used += took;
                    return Ok(Incoming::Packet { offset, bytes: &self.inbox[start..self.used] });
                }
            }
        }
    }

    /// Whether the other end has said something that is not yet received, or has gone; does not wait for it.
    ///
    /// # Errors
    /// [`ChannelError`].
    pub fn has_incoming(&mut self) -> Result<bool, ChannelError> {
        if self.used < self.filled {
            return Ok(true);
        }
        let readable = {
            use rustix::event::{PollFd, PollFlags, Timespec, poll};
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut [PollFd::new(self.socket(), PollFlags::IN)], Some(&now))
                .map_err(|e| ChannelError::Io(e.into()))?
        };
        self.stream.has_plaintext(readable > 0).map_err(failed)
    }

    /// Makes the inbox hold `needs` unused bytes, at most a frame.
    fn fill(&mut self, needs: usize) -> Result<(), ChannelError> {
        if self.used == self.filled {
            (self.used, self.filled) = (0, 0);
        }
        if self.used + needs > self.inbox.len() {
            self.inbox.copy_within(self.used..self.filled, 0);
            (self.used, self.filled) = (0, self.filled - self.used);
            self.inbox.resize(self.inbox.len().max(needs), 0);
        }
        while self.filled - self.used < needs {
            let free = &mut self.inbox[self.filled..];
            let read = if self.is_mute { self.stream.read_only(free) } else { self.stream.read(free) };
            match read.map_err(failed)? {
                0 => return Err(ChannelError::Closed),
                bytes => self.filled += bytes,
            }
        }
        Ok(())
    }

    /// Says goodbye; what cannot be said any more is not said.
    pub fn close(mut self) {
        self.stream.say_goodbye();
    }
}

/// TLS over TCP, of either end.
trait Stream: Read + Write + Send {
    fn socket(&self) -> &TcpStream;
    /// Whether something can be read without waiting; looks at what the socket has first if that is `readable`.
    fn has_plaintext(&mut self, readable: bool) -> io::Result<bool>;
    /// Reads without writing what waits to be written, as `read` does.
    fn read_only(&mut self, buffer: &mut [u8]) -> io::Result<usize>;
    fn say_goodbye(&mut self);
}

impl<C, S> Stream for StreamOwned<C, TcpStream>
where
    C: DerefMut<Target = ConnectionCommon<S>> + Send,
    S: rustls::SideData,
{
    fn socket(&self) -> &TcpStream {
        &self.sock
    }

    fn has_plaintext(&mut self, readable: bool) -> io::Result<bool> {
        let ended = readable && self.conn.wants_read() && self.conn.read_tls(&mut self.sock)? == 0;
        let state = self.conn.process_new_packets().map_err(io::Error::other)?;
        Ok(ended || state.peer_has_closed() || state.plaintext_bytes_to_read() > 0)
    }

    fn read_only(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.conn.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return outcome,
            }
            if self.conn.read_tls(&mut self.sock)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.conn.process_new_packets().map_err(io::Error::other)?;
        }
    }

    fn say_goodbye(&mut self) {
        self.conn.send_close_notify();
        while self.conn.wants_write() && self.conn.write_tls(&mut self.sock).is_ok_and(|bytes| bytes > 0) {}
    }
}

/// Flushes, and goes on after a stop signal and its end, which interrupt what has a time limit.
fn flush(stream: &mut dyn Stream) -> io::Result<()> {
    loop {
        match stream.flush() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

/// What a failed read or write of TLS means.
fn failed(error: io::Error) -> ChannelError {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof, WouldBlock};
    match error.kind() {
        WouldBlock | TimedOut => ChannelError::Idle,
        UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe => ChannelError::Closed,
        _ => match error.downcast::<rustls::Error>() {
            Ok(tls) => ChannelError::Tls(tls),
            Err(error) => ChannelError::Io(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{MessageId, Reply, Request};
    use crate::tls::{Identity, Pin, client_config};
    use std::net::TcpListener;
    use std::thread;

    const IDLE: Duration = Duration::from_secs(20);

    /// A server that answers a `Ping`, then sends back the packet that follows.
    fn echo(identity: &Identity) -> (std::net::SocketAddr, thread::JoinHandle<Result<(), ChannelError>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, config) = (listener.local_addr().unwrap(), identity.server_config().unwrap());
        let serve = move || {
            let mut channel = Channel::server(listener.accept().unwrap().0, config, IDLE)?;
            let Incoming::Control(Request::Ping(n)) = channel.receive()? else { panic!("no ping") };
            channel.send(&Reply::Pong(n))?;
            let Incoming::Packet { offset, bytes } = channel.receive::<Request>()? else { panic!("no packet") };
            let copy = bytes.to_vec();
            let fill = |buffer: &mut [u8]| {
                buffer.copy_from_slice(&copy);
                Ok::<_, ()>(copy.len())
            };
            channel.send_packet(offset, copy.len(), fill).unwrap().map(drop)
        };
        (address, thread::spawn(serve))
    }

    fn connect(address: std::net::SocketAddr, pin: Pin) -> Channel {
        let (config, name) = client_config(pin);
        Channel::client(TcpStream::connect(address).unwrap(), config, name, IDLE).unwrap()
    }

    fn identity() -> Identity {
        Identity::from_pem(Identity::generate().unwrap().as_bytes()).unwrap()
    }

    #[test]
    fn frames_and_the_longest_packet_go_both_directions() {
        let identity = identity();
        let (address, server) = echo(&identity);
        let mut client = connect(address, identity.pin());
        client.send(&Request::Ping(7)).unwrap();
        assert_eq!(client.receive::<Reply>().unwrap(), Incoming::Control(Reply::Pong(7)));
        let body: Vec<u8> = (0..1_u32 << 20).map(|i| (i % 251) as u8).collect();
        let fill = |buffer: &mut [u8]| {
            buffer.copy_from_slice(&body);
            Ok::<_, ()>(body.len())
        };
        assert_eq!(client.send_packet(99, body.len(), fill).unwrap().unwrap(), body);
        let echoed = client.receive::<Reply>().unwrap();
        assert_eq!(echoed, Incoming::Packet { offset: 99, bytes: &body });
        server.join().unwrap().unwrap();
        assert!(matches!(client.receive::<Reply>(), Err(ChannelError::Closed)));
    }

    #[test]
    fn a_server_with_another_certificate_is_not_talked_to() {
        let (address, server) = echo(&identity());
        let mut client = connect(address, identity().pin());
        assert!(matches!(client.send(&Request::Received { message: MessageId(1) }), Err(ChannelError::Tls(_))));
        drop(client);
        assert!(server.join().unwrap().is_err());
    }
}

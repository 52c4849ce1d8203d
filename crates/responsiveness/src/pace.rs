//! A connection whose unsent data wait for 5 ms at most: in the kernel, in TLS, and as one piece of a body.
//!
//! `most unsent = rate x 5 ms`   [bytes] = [byte/s] x [s], the rate measured anew every 100 ms
//!
//! What an application has handed to its kernel and the network has not taken yet is a queue, too, and one that no router can shorten:
//! a probe on a connection that carries a load would stand in it. Source: draft-ietf-ippm-responsiveness-09, "Client-Side Influence"
//! (`TCP_NOTSENT_LOWAT`). Differs: the same bound holds for what TLS has encrypted and for pieces of bodies, which cannot be overtaken
//! either; and it is never less than two segments (a piece: one), so that a slow connection still has something to send.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::{client, server};

/// How long data may wait unsent.
const WAIT: Duration = Duration::from_millis(5);
/// How often the rate is measured.
const OFTEN: Duration = Duration::from_millis(100);
/// Two segments of Ethernet, in bytes.
const LEAST: usize = 2 * 1460;
/// 5 ms at 1.6 Gbit/s, in bytes.
const MOST: usize = 1_000_000;
/// What TLS holds at most of encrypted data, in bytes: one record, but at a high rate, where it is not felt.
const MOST_IN_TLS: usize = 16 * 1024;
/// Before a rate is known: the first flight of a connection, in bytes.
const AT_FIRST: usize = 16 * 1024;

/// A rate, and what may wait at it.
#[derive(Debug)]
pub struct Rate {
    bytes: usize,
    since: Instant,
}

impl Rate {
    /// Of what begins now.
    pub fn new() -> Self {
        Self { bytes: 0, since: Instant::now() }
    }

    /// So many bytes more; every 100 ms what may wait unsent, in bytes.
    pub fn took(&mut self, bytes: usize) -> Option<usize> {
        self.bytes += bytes;
        let took = self.since.elapsed();
        (took >= OFTEN).then(|| {
            let most = most_unsent(self.bytes, took);
            *self = Self::new();
            most
        })
    }
}

/// Of what took so many bytes in this time.
fn most_unsent(bytes: usize, took: Duration) -> usize {
    (bytes as f64 / took.as_secs_f64() * WAIT.as_secs_f64()) as usize
}

/// TLS over TCP, client's or server's.
pub trait Secured: AsyncRead + AsyncWrite + Unpin {
    /// Bounds what waits unsent, in bytes: in the kernel and in TLS.
    fn bound(&mut self, most: usize);
}

fn bound_tcp(stream: &TcpStream, most: usize) {
    // The option is a help: where it fails the connection goes on without it.
    let _ = SockRef::from(stream).set_tcp_notsent_lowat(most as u32);
}

/// A TCP connection each write to which is a packet of the kernel's own. Linux looks at `TCP_NOTSENT_LOWAT` only where a write begins a
/// new one, and otherwise adds to the last one until that has 64 KiB: at 1 Mbit/s a wait of half a second.
pub struct Tcp(TcpStream);

/// Ends a packet of the kernel's (`MSG_EOR`); Linux has this number on every processor.
const END_OF_RECORD: i32 = 0x80;

impl Tcp {
    /// Takes a connection over; data are not held back for fuller segments.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }
}

impl AsyncRead for Tcp {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Tcp {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let stream = &self.get_mut().0;
        loop {
            ready!(stream.poll_write_ready(cx))?;
            let send = || SockRef::from(stream).send_with_flags(bytes, END_OF_RECORD);
            match stream.try_io(Interest::WRITABLE, send) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return Poll::Ready(sent),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(cx)
    }
}

impl Secured for client::TlsStream<Tcp> {
    fn bound(&mut self, most: usize) {
        let (stream, session) = self.get_mut();
        bound_tcp(&stream.0, most);
        session.set_buffer_limit(Some(most.min(MOST_IN_TLS)));
    }
}

impl Secured for server::TlsStream<Tcp> {
    fn bound(&mut self, most: usize) {
        let (stream, session) = self.get_mut();
        bound_tcp(&stream.0, most);
        session.set_buffer_limit(Some(most.min(MOST_IN_TLS)));
    }
}

/// The connection.
pub struct Paced<S> {
    stream: S,
    rate: Rate,
}

impl<S: Secured> Paced<S> {
    /// Takes a connection over.
    pub fn new(mut stream: S) -> Self {
        stream.bound(AT_FIRST);
        Self { stream, rate: Rate::new() }
    }

    fn wrote(&mut self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = written
            && let Some(most) = self.rate.took(*bytes)
        {
            self.stream.bound(most.clamp(LEAST, MOST));
        }
    }
}

impl<S: Secured> AsyncRead for Paced<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl<S: Secured> AsyncWrite for Paced<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.wrote(&written);
        written
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, parts);
        this.wrote(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_five_milliseconds_of_the_rate() {
        // The draft's examples: at 100 Mbit/s 62,500 bytes, at 1 Mbit/s 625.
        assert_eq!(most_unsent(12_500_000, Duration::from_secs(1)), 62_500);
        assert_eq!(most_unsent(125_000, Duration::from_secs(1)), 625);
    }

    #[test]
    fn a_rate_is_not_measured_over_a_moment() {
        assert_eq!(Rate::new().took(1 << 20), None);
        let mut earlier = Rate { bytes: 0, since: Instant::now() - Duration::from_secs(1) };
        assert!(earlier.took(1_000_000).is_some_and(|most| most <= 5000));
    }
}

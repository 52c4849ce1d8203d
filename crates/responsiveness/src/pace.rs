//! A TCP connection whose unsent data wait for 5 ms at most.
//!
//! `TCP_NOTSENT_LOWAT = rate x 5 ms`   [bytes] = [byte/s] x [s], the rate measured anew every 100 ms
//!
//! What an application has handed to its kernel and the network has not taken yet is a queue, too, and one that no router can shorten:
//! a probe on a connection that carries a load would stand in it. Source: draft-ietf-ippm-responsiveness-09, "Client-Side Influence".
//! Differs: never less than two segments, so that a slow connection still has something to send.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// How long data may wait unsent.
const WAIT: Duration = Duration::from_millis(5);
/// How often the rate is measured.
const OFTEN: Duration = Duration::from_millis(100);
/// Two segments of Ethernet, in bytes.
const LEAST: f64 = 2.0 * 1460.0;
/// 5 ms at 1.6 Gbit/s, in bytes.
const MOST: f64 = 1e6;
/// Before a rate is known: the first flight and some more, in bytes.
const AT_FIRST: u32 = 64 * 1024;
/// What TLS may hold of encrypted data beside that, in bytes: one record.
pub const TLS_BUFFER: usize = 16 * 1024;

/// The connection.
pub struct Paced {
    stream: TcpStream,
    written: usize,
    since: Instant,
}

impl Paced {
    /// Takes a connection over; data are not held back for fuller segments.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        SockRef::from(&stream).set_tcp_notsent_lowat(AT_FIRST)?;
        Ok(Self { stream, written: 0, since: Instant::now() })
    }

    fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
        let took = self.since.elapsed();
        if took < OFTEN {
            return;
        }
        let limit = low_water_mark(self.written, took);
        // The option is a help: where it fails the connection goes on without it.
        let _ = SockRef::from(&self.stream).set_tcp_notsent_lowat(limit);
        (self.written, self.since) = (0, Instant::now());
    }
}

/// For a connection that wrote so many bytes in this time.
fn low_water_mark(bytes: usize, took: Duration) -> u32 {
    let rate = bytes as f64 / took.as_secs_f64();
    (rate * WAIT.as_secs_f64()).clamp(LEAST, MOST) as u32
}

impl AsyncRead for Paced {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Paced {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(bytes)) = written {
            this.wrote(bytes);
        }
        written
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
    fn the_mark_is_five_milliseconds_of_the_rate() {
        // The draft's example: at 100 Mbit/s 62,500 bytes.
        assert_eq!(low_water_mark(12_500_000, Duration::from_secs(1)), 62_500);
        assert_eq!(low_water_mark(1, Duration::from_secs(1)), 2920);
        assert_eq!(low_water_mark(1 << 40, Duration::from_secs(1)), 1_000_000);
    }
}

//! A tuning applied to a socket.

use super::End;
use super::quantity::{Rate, Size};
use crate::protocol::TcpMetrics;
use rustix::net::sockopt;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// Connects with the receive buffer set before the first packet, as the window's scale is fixed by then.
///
/// # Errors
/// Of the system calls; `TimedOut` after `timeout`.
pub fn connect(address: SocketAddr, receive_buffer: Option<Size>, timeout: Duration) -> io::Result<TcpStream> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with};
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    if let Some(size) = receive_buffer {
        sockopt::set_socket_recv_buffer_size(&socket, size.bytes() as usize)?;
    }
    match connect(&socket, &address) {
        Ok(()) => {}
        Err(rustix::io::Errno::INPROGRESS) => {
            let limit = Timespec::try_from(timeout).map_err(io::Error::other)?;
            if poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&limit))? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            sockopt::socket_error(&socket)??;
        }
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Makes a socket ready to send as `end` says: send buffer and pacing. Nagle's algorithm is off: a packet goes out whole.
///
/// # Errors
/// Of the system calls.
pub fn prepare_sender(socket: &TcpStream, end: &End) -> io::Result<()> {
    socket.set_nodelay(true)?;
    if let Some(size) = end.buffer {
        sockopt::set_socket_send_buffer_size(socket, size.bytes() as usize)?;
    }
    pace(socket, end.pacing)
}

/// Makes a socket ready to receive as `end` says: the receive buffer.
///
/// # Errors
/// Of the system calls.
pub fn prepare_receiver(socket: &TcpStream, end: &End) -> io::Result<()> {
    end.buffer.map_or(Ok(()), |size| Ok(sockopt::set_socket_recv_buffer_size(socket, size.bytes() as usize)?))
}

/// SO_MAX_PACING_RATE; the kernel paces inside TCP where no `fq` queue does. `None` takes a limit away again.
fn pace(socket: &TcpStream, rate: Option<Rate>) -> io::Result<()> {
    let rate: u64 = rate.map_or(u64::MAX, Rate::bytes_per_second);
    let length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the pointer is to eight bytes that live until the call returns.
    let status = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const rate).cast(),
            length,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What the kernel says of a connection (TCP_INFO); figures that it does not have are 0.
///
/// # Errors
/// Of the system call.
pub fn metrics(socket: &TcpStream) -> io::Result<TcpMetrics> {
    let info = info(socket)?;
    Ok(TcpMetrics {
        busy_us: info.tcpi_busy_time,
        window_limited_us: info.tcpi_rwnd_limited,
        send_buffer_limited_us: info.tcpi_sndbuf_limited,
        least_rtt_us: info.tcpi_min_rtt,
        srtt_us: info.tcpi_rtt,
        retransmitted: info.tcpi_total_retrans,
        cwnd: info.tcpi_snd_cwnd,
    })
}

/// Bytes that wait in the send buffer and have never been sent; none of a connection that has ended.
///
/// # Errors
/// Of the system call.
pub fn unsent(socket: &TcpStream) -> io::Result<u32> {
    /// TCP_ESTABLISHED and TCP_CLOSE_WAIT of the kernel's states: it can still send.
    const SENDS: [u8; 2] = [1, 8];
    let info = info(socket)?;
    Ok(if SENDS.contains(&info.tcpi_state) { info.tcpi_notsent_bytes } else { 0 })
}

/// Bytes that the other end has acknowledged since the connection began, TLS included.
///
/// # Errors
/// Of the system call.
pub fn acknowledged(socket: &TcpStream) -> io::Result<u64> {
    Ok(info(socket)?.tcpi_bytes_acked)
}

fn info(socket: &TcpStream) -> io::Result<libc::tcp_info> {
    // SAFETY: all-zero bytes are a value of this struct of integers.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the descriptor is open; the kernel writes at most `length` bytes into `info`, and how many into `length`.
    let status = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    if status == 0 { Ok(info) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn buffers_are_what_was_asked_for_before_the_first_packet() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let socket = connect(address, Size::new(8192), Duration::from_secs(5)).unwrap();
        // The kernel books twice what is asked for.
        assert_eq!(sockopt::socket_recv_buffer_size(&socket).unwrap(), 16_384);
        let end = End { buffer: Size::new(16_384), pacing: Rate::new(400_000), ..End::default() };
        prepare_sender(&socket, &end).unwrap();
        assert_eq!(sockopt::socket_send_buffer_size(&socket).unwrap(), 32_768);
        assert!(socket.nodelay().unwrap());
    }

    #[test]
    fn nobody_listening_is_an_error() {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = connect(address, None, Duration::from_secs(5)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}

//! TCP socket options and TCP_INFO, by the kernel's own layout.

use super::{check, set_option};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// What TCP_INFO tells of a sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpDetail {
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Smoothed round trip time, microseconds.
    pub srtt_us: u32,
    /// Segments sent again, since the connection began.
    pub retransmitted: u32,
    /// Bytes of payload acknowledged, since the connection began.
    pub bytes_acked: u64,
    /// Segment size in use, bytes of payload.
    pub mss: u32,
    /// Retransmission timeouts; absent below Linux 6.7.
    pub timeouts: Option<u32>,
    /// What the sender is doing about loss.
    pub state: CaState,
}

/// `enum tcp_ca_state`, as far as it matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaState {
    /// Nothing is lost or marked.
    #[default]
    Open,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// Offsets in `struct tcp_info` (`linux/tcp.h`), which only ever grows at its end.
mod at {
    pub const CA_STATE: usize = 1;
    pub const SND_MSS: usize = 16;
    pub const RTT: usize = 68;
    pub const SND_CWND: usize = 80;
    pub const TOTAL_RETRANS: usize = 100;
    pub const BYTES_ACKED: usize = 120;
    pub const TOTAL_RTO: usize = 240;
}

/// Reads TCP_INFO of a connected socket.
pub fn tcp_detail(socket: &impl AsFd) -> io::Result<TcpDetail> {
    let mut raw = [0_u8; 512];
    let mut len = raw.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into `raw` and the written length into `len`.
    check(unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            raw.as_mut_ptr().cast(),
            &raw mut len,
        )
    })?;
    Ok(read(&raw[..len as usize]))
}

fn read(raw: &[u8]) -> TcpDetail {
    let word = |at: usize| raw.get(at..at + 4).map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
    let bytes_acked = raw
        .get(at::BYTES_ACKED..at::BYTES_ACKED + 8)
        .map_or(0, |b| u64::from_ne_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]));
    TcpDetail {
        cwnd: word(at::SND_CWND),
        srtt_us: word(at::RTT),
        retransmitted: word(at::TOTAL_RETRANS),
        bytes_acked,
        mss: word(at::SND_MSS),
        timeouts: raw.get(at::TOTAL_RTO..at::TOTAL_RTO + 2).map(|b| u32::from(u16::from_ne_bytes([b[0], b[1]]))),
        state: match raw.get(at::CA_STATE) {
            Some(3) => CaState::Recovery,
            Some(4) => CaState::Loss,
            _ => CaState::Open,
        },
    }
}

/// Largest segment this socket sends and asks for, bytes of payload without options.
pub fn set_max_segment(socket: &impl AsFd, bytes: u16) -> io::Result<()> {
    set_option(socket.as_fd().as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_MAXSEG, i32::from(bytes))
}

/// Bounds the window this socket advertises, bytes.
pub fn set_window_clamp(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    set_option(socket.as_fd().as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, bytes)
}

/// Bytes that may wait unsent before the socket counts as not writable.
pub fn set_unsent_limit(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    set_option(socket.as_fd().as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes)
}

//! What a sender is told, and what it tells.

use lasthop_core::units::{BitRate, Span};

use crate::cc::{self, Aimd, Algorithm};
use crate::conduct::Conduct;

/// How a sender behaves. The defaults are those of the RFCs, with Linux's minimum timeout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderParams {
    /// Law of the congestion window.
    pub cc: Algorithm,
    /// Payload of a full segment, bytes, at least 1.
    pub mss: u32,
    /// Recover by RFC 6675 once the receiver reports blocks.
    pub sack: bool,
    /// Congestion window after the handshake, segments, at least 1: 10 today (RFC 6928), 1 or 2 in ns-2's time. A lost
    /// SYN makes it 1 (RFC 5681 section 3.1).
    pub initial_window: u32,
    /// Slow-start threshold at first, segments. None: infinite (RFC 5681). ns-2 starts at the
    /// receiver's window.
    pub initial_ssthresh: Option<f64>,
    /// Length of the stream, bytes. None: there is always more.
    pub bytes: Option<u64>,
    /// The application gives the stream piece by piece ([`super::Sender::extend`]): it begins with `bytes`, 0 for none, opens
    /// nevertheless, and has no end that the receiver is told.
    pub fed: bool,
    /// Least retransmission timeout: 200 ms as Linux and ns-2; RFC 6298 says 1 s.
    pub min_rto: Span,
    /// The first two duplicate ACKs release a segment each (RFC 3042; ns-2 `singledup_`).
    pub limited_transmit: bool,
    /// What [`Algorithm::Aimd`] adds per round trip and keeps at a loss.
    pub aimd: Aimd,
    /// Whose word counts where the RFCs and ns-2 differ.
    pub conduct: Conduct,
    /// Spreads its window over a round trip, whatever the law (RFC 9002 section 7.7).
    pub paced: bool,
}

impl Default for SenderParams {
    fn default() -> Self {
        Self {
            cc: Algorithm::NewReno,
            mss: 1460,
            sack: false,
            initial_window: 10,
            initial_ssthresh: None,
            bytes: None,
            fed: false,
            min_rto: Span::from_millis(200),
            limited_transmit: true,
            aimd: Aimd::default(),
            conduct: Conduct::Rfc,
            paced: false,
        }
    }
}

impl SenderParams {
    /// As ns-2.35's agents by default: its conduct and an initial window of 2. Its minimum timeout and its limited
    /// transmit are the defaults here already.
    #[must_use]
    pub fn ns2(cc: Algorithm) -> Self {
        Self { cc, initial_window: 2, conduct: Conduct::Ns2, ..Self::default() }
    }

    /// What the law of the window is made from.
    pub(super) fn law(&self) -> cc::Params {
        let Self { conduct, mss, initial_ssthresh, aimd, .. } = *self;
        cc::Params { conduct, mss, initial_ssthresh, aimd }
    }
}

/// Where a sender stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SenderSnapshot {
    /// Congestion window, segments, without the inflation of fast recovery.
    pub cwnd: f64,
    /// Slow-start threshold, segments; infinite before the first loss.
    pub ssthresh: f64,
    /// What the receiver offers beyond what it acknowledged, bytes.
    pub offered_window: u64,
    /// Thought to be in the network, bytes (RFC 6675's pipe).
    pub inflight: u64,
    /// Sent and not acknowledged in order, bytes.
    pub outstanding: u64,
    /// Smoothed round trip; none before the first sample.
    pub srtt: Option<Span>,
    /// Timeout in force, with its backoff.
    pub rto: Span,
    /// Acknowledged in order, bytes.
    pub acked_bytes: u64,
    /// What the law believes the path carries, payload bit/s; none without an estimate (Westwood has one).
    pub bandwidth: Option<BitRate>,
    /// Segments sent for the first time.
    pub sent: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Retransmission timer, not the SYN's.
    pub timeouts: u64,
    /// Times a loss was told by duplicate ACKs or blocks.
    pub fast_retransmits: u64,
    /// In fast recovery.
    pub recovering: bool,
}

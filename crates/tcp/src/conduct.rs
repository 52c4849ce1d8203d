//! Whose word counts where the RFCs of TCP, ns-2, and those of QUIC differ.

/// How a sender counts, times and repairs. Where ns-2.35's `Agent/TCP` family departs from the RFCs was seen by running it beside this sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Conduct {
    /// The window does not grow while it is not what holds the sender back (RFC 7661, Linux); a repeated timeout of one
    /// segment leaves the threshold (RFC 5681 section 3.1); the acknowledgment that ends fast recovery sets
    /// `cwnd = ssthresh` (RFC 6582 section 3.2 step 3).
    #[default]
    Rfc,
    /// The window always grows, and a loss halves it, not what of it is in use (the receiver's bounds it); a repeated timeout
    /// makes the threshold 2; thresholds are whole segments, rounded down, while the window keeps its fraction, and the
    /// floor of 2 is theirs alone (halving leaves a window of down to 1/2); the timeout is counted in ticks of 10 ms;
    /// the acknowledgment that ends fast recovery grows the window like any other; a partial one that takes away more
    /// than duplicates have added lowers the window itself; Reno halves once per window; the first timeout is 3 s, a lost
    /// SYN doubles it and makes the threshold 2, too, and after four timeouts in a row the round trip is measured from the start; when a
    /// timer and something else fall on one instant, their order is as good as random.
    Ns2,
    /// QUIC's loss recovery (RFC 9002): lost is what three packets have been delivered beyond; the timer sends a probe and cuts nothing, until
    /// it has expired so often that congestion is persistent; it waits for acknowledgments that a receiver delays, and has no minimum.
    Quic,
}

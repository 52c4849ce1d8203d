//! Who sends and receives: threads that entered a host, with ordinary sockets.
//!
//! Open-loop flows follow the schedule of `home::traffic` on CLOCK_MONOTONIC; all of one host share a thread. Flows over TCP,
//! greedy ones and streams, are a kernel connection with a thread at each end. What a scenario's TCP keys mean here:
//!
//! | key | means |
//! |---|---|
//! | `cc` | TCP_CONGESTION, by the kernel's name: `reno` and `newreno` are its `reno` (RFC 6582 with SACK where on) |
//! | `sack` | `net.ipv4.tcp_sack` of the host that sends |
//! | `delayed_ack = false` | a route with `quickack 1` in the receiving host: one ACK per segment |
//! | `initial_window` | a route with `initcwnd` in the sending host |
//! | `ecn` | routes with `features ecn` in both hosts |
//! | `window` | the receiver's buffer is large and TCP_WINDOW_CLAMP bounds what it offers to window x mss |
//! | `dscp`, `class` | IP_TOS at both ends: the code point, or one of the class (EF, AF41, CS1) |
//! | `mss` | TCP_MAXSEG at both ends; timestamps take 12 bytes of it, as they do everywhere |
//!
//! A download over QUIC is a connection of the `quinn` library, again with a thread at each end (`quic`).
//!
//! UDP sinks are sockets that nobody reads: they exist so that no ICMP goes back; arrival is judged at the interface.
//! Datagrams shorter than their mark (42 IP bytes) are padded to it.

pub mod quic;
pub mod tcp;
pub mod udp;

/// Of the threads that keep to a schedule (SCHED_FIFO): below the engine (50).
pub const PRIORITY: i32 = 10;

use lasthop_core::dscp::Dscp;
use lasthop_core::units::Time;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Packets of `socket` carry this code point.
fn mark(socket: impl AsFd, dscp: Dscp) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_ip_tos(socket, dscp.value() << 2)?)
}

/// Holds the players until the scenario starts, and tells them when to go home.
#[derive(Debug, Default)]
pub struct Gate {
    zero: Mutex<Option<Time>>,
    opened: Condvar,
    closed: AtomicBool,
}

impl Gate {
    /// A gate that is shut.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The scenario starts at `zero` (CLOCK_MONOTONIC).
    pub fn open(&self, zero: Time) {
        *self.zero.lock().unwrap_or_else(PoisonError::into_inner) = Some(zero);
        self.opened.notify_all();
    }

    /// Everybody stops soon.
    pub fn close(&self) {
        // Under the lock, so that nobody misses it between looking and waiting.
        let _guard = self.zero.lock().unwrap_or_else(PoisonError::into_inner);
        self.closed.store(true, Ordering::Release);
        self.opened.notify_all();
    }

    /// Whether to stop.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Waits for the start; `None` when the gate closed instead.
    #[must_use]
    pub fn wait(&self) -> Option<Time> {
        let mut zero = self.zero.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if self.is_closed() {
                return None;
            }
            if zero.is_some() {
                return *zero;
            }
            zero = self.opened.wait(zero).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Sleeps until `at`; false when the gate closed before.
    #[must_use]
    pub fn sleep_until(&self, at: Time) -> bool {
        loop {
            if self.is_closed() {
                return false;
            }
            let now = crate::clock::now();
            if now >= at {
                return true;
            }
            crate::clock::sleep_until(at.min(now + lasthop_core::units::Span::from_millis(50)));
        }
    }
}

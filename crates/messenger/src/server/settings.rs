//! What a server allows; every default with its reason.

use super::secret::Cost;
use super::startups::Startups;
use crate::store::Bounds;
use crate::tuning::End;
use crate::tuning::quantity::{Delay, PacketSize, Size};
use std::time::{Duration, SystemTime};

/// What a server allows.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How much may wait.
    pub bounds: Bounds,
    /// Messages that one account may offer per minute, as many at once.
    pub messages_per_minute: u32,
    /// Connections that have not said who they are.
    pub startups: Startups,
    /// Connections whose account is known.
    pub connections: usize,
    /// Of either from one address (of IPv6: one /64), and of one account.
    pub connections_per_address: usize,
    /// How long a connection may take until it has said who it is.
    pub greeting: Duration,
    /// How long nothing may happen.
    pub idle: Duration,
    /// Wrong secrets per minute of one account from one address.
    pub attempts: u32,
    /// How long a `Source` or a `Sink` may last.
    pub measurement: Duration,
    /// Bytes of one of them.
    pub measured_bytes: u64,
    /// Largest application packet of the server's end.
    pub largest_packet: PacketSize,
    /// Longest inter-packet delay of the server's end.
    pub longest_delay: Delay,
    /// Largest socket buffer of the server's end.
    pub largest_buffer: Size,
    /// How long an upload that nobody goes on with is kept, of the time that the server runs.
    pub upload_kept: Duration,
    /// What hashing a secret costs.
    pub hashing: Cost,
    /// The wall clock; only `kept_at` comes from it.
    pub wall_clock: fn() -> SystemTime,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            bounds: Bounds::default(),
            // A folder of voice messages at once, and no mailbox filled by a program gone wild within a minute.
            messages_per_minute: 120,
            startups: Startups::default(),
            // Memory: each takes up to 2 MiB (TLS, a frame coming in, a packet going out, a packet being collected).
            connections: 24,
            // A family behind one address, every device with two transfers.
            connections_per_address: 12,
            // A dial-up line manages a handshake in it.
            greeting: Duration::from_secs(10),
            // Longer than Wi-Fi is lost for on the way through a house.
            idle: Duration::from_secs(60),
            // Nobody mistypes a file; a secret of 256 bits is not guessed with any number.
            attempts: 5,
            // What `tune` needs for one metric.
            measurement: Duration::from_secs(10),
            // Ten seconds of 2.5 Gbit/s.
            measured_bytes: 3 << 30,
            // Larger packets gain nothing on any disk, and memory is bounded by it.
            largest_packet: PacketSize::new(256 << 10).unwrap_or_default(),
            // Ten times the paper's; 512-byte packets still move at 5 kB/s.
            longest_delay: Delay::micros(100_000).unwrap_or_default(),
            // 1 Gbit/s over 128 ms.
            largest_buffer: Size::new(16 << 20).expect("in range"),
            // A device that was away for a holiday.
            upload_kept: Duration::from_secs(14 * 24 * 3600),
            hashing: Cost::default(),
            wall_clock: wall_clock(),
        }
    }
}

/// The machine's.
fn wall_clock() -> fn() -> SystemTime {
    SystemTime::now
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            // A film of two hours.
            longest_message: 8 << 30,
            // Ten listings; a mailbox of a year of three voice messages a day.
            mailbox_messages: 1_000,
            // Four of the longest.
            mailbox_bytes: 32 << 30,
            // Half a mailbox: no sender fills one alone.
            sender_messages: 500,
            sender_bytes: 16 << 30,
            // The index stays below 10 MB.
            store_messages: 20_000,
            // A disk of today, less than half of it; `free_bytes` holds below that.
            store_bytes: 256 << 30,
            // More than a device has in flight at once.
            uploads: 8,
            // What a system needs to go on working; and deleting needs room, too.
            free_bytes: 256 << 20,
        }
    }
}

impl Settings {
    /// What the server does of what a client wishes it to do.
    #[must_use]
    pub fn within(&self, wish: &End) -> End {
        End {
            packet: wish.packet.min(self.largest_packet),
            delay: wish.delay.min(self.longest_delay),
            buffer: wish.buffer.map(|size| size.min(self.largest_buffer)),
            pacing: wish.pacing,
        }
    }

    /// By the wall clock, in seconds since 1970; 0 before.
    pub(super) fn seconds_since_1970(&self) -> u64 {
        (self.wall_clock)().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_what_it_wishes_within_the_limits() {
        let settings = Settings::default();
        let modest = End {
            packet: PacketSize::new(4096).unwrap(),
            delay: Delay::micros(10_000).unwrap(),
            buffer: Size::new(16_384),
            pacing: None,
        };
        assert_eq!(settings.within(&modest), modest);
        let greedy = End {
            packet: PacketSize::new(1 << 20).unwrap(),
            delay: Delay::micros(Delay::MOST_MICROS).unwrap(),
            buffer: Size::new(1 << 30),
            pacing: None,
        };
        let granted = settings.within(&greedy);
        assert_eq!(granted.packet, settings.largest_packet);
        assert_eq!(granted.delay, settings.longest_delay);
        assert_eq!(granted.buffer, Some(settings.largest_buffer));
    }
}

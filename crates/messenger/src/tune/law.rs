//! How fast a message travels with a tuning, and what holds it back.
//!
//! `path = min(air, window / rtt, pacing) / wire`   [bytes/s]: the paper's eq. (1), and what else the path allows
//!
//! where `wire` is what frames and TLS make of each byte, 1.03 for packets of 1 KiB, 1.002 for 64 KiB.
//!
//! An end works on one packet for `busy = operation + packet / rate + delay` and does not look at its socket meanwhile.
//! The kernel goes on as far as the socket's buffer reaches; what it could not carry in that time has to be waited for:
//!
//! `time = busy + (packet - min(packet, buffer, path x busy)) / path`   [s per packet]
//!
//! The message is as fast as the slower end, and never faster than the path: `min(packet / time, path)`.
//!
//! Nothing can be written before the first packet has come, nor sent before it is read, so that a message takes
//!
//! `seconds = bytes / rate + min(packet / path, busy)`
//!
//! Source: Hong, Hur (JIPS 2006), eq. (1); that an end's work and the kernel's overlap is ours, and so is how far.
//! Leaves out: slow start, the handshake, windows that open late, arithmetic.

use crate::tuning::quantity::{PacketSize, Rate, Size};
use crate::tuning::{End, Profile, Tuning};
use serde::Serialize;
use std::fmt;

/// Receive buffer that Linux begins with, in bytes of data: it grows only while the application reads as fast as data
/// comes, which a slow one does not.
const KERNEL_BUFFER: f64 = 65_535.0;
/// Bytes that a frame adds, that each of TLS's records adds, and what a record carries.
const FRAME_BYTES: f64 = 13.0;
const RECORD_BYTES: f64 = 22.0;
const RECORD_CARRIES: f64 = 16_384.0;

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// To the device, which writes it.
    Fetch,
    /// From the device, which reads it.
    Send,
}

impl Direction {
    /// The part of a profile that is for this direction.
    #[must_use]
    pub fn of(self, profile: &Profile) -> Tuning {
        match self {
            Self::Fetch => profile.fetch,
            Self::Send => profile.send,
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fetch => "fetch",
            Self::Send => "send",
        })
    }
}

/// What one read or write of `n` bytes takes: `operation + n / rate`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Whatever its size, in seconds; not negative.
    pub operation_s: f64,
    /// Of the bytes, per second; positive.
    pub rate: f64,
}

impl Cost {
    /// Of `bytes` in one go, in seconds.
    #[must_use]
    pub fn seconds(&self, bytes: f64) -> f64 {
        self.operation_s + bytes / self.rate
    }

    /// Bytes per second in packets of this size.
    #[must_use]
    pub fn rate_with(&self, packet: PacketSize) -> f64 {
        packet.bytes() as f64 / self.seconds(packet.bytes() as f64)
    }
}

/// The path between device and server in one direction, storage left out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Path {
    /// Round trip with nothing in flight, in seconds; positive.
    pub rtt_s: f64,
    /// Bytes per second with buffers that the kernel sizes; positive.
    pub air: f64,
    /// How far the kernel let the buffer of the device grow then, in bytes; positive.
    pub kernel_window: f64,
}

/// What can hold a message back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The window: `window / rtt`.
    Window,
    /// The device's storage: `packet / (operation + packet / rate)`.
    Storage,
    /// The sender's inter-packet delay: `packet / delay`.
    SenderDelay,
    /// The receiver's inter-packet delay.
    ReceiverDelay,
    /// The pacing rate.
    Pacing,
    /// The path with none of these.
    Air,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Window => "window",
            Self::Storage => "storage",
            Self::SenderDelay => "sender's delay",
            Self::ReceiverDelay => "receiver's delay",
            Self::Pacing => "pacing",
            Self::Air => "air",
        })
    }
}

/// What each part of a tuning would allow if it were alone, in bytes per second; `None`: it does not limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limits {
    /// See [`Limit`].
    pub window: f64,
    /// See [`Limit`].
    pub storage: f64,
    /// See [`Limit`].
    pub sender_delay: Option<f64>,
    /// See [`Limit`].
    pub receiver_delay: Option<f64>,
    /// See [`Limit`].
    pub pacing: Option<f64>,
    /// See [`Limit`].
    pub air: f64,
    /// What they give together.
    pub together: f64,
    /// What the first packet costs besides, in seconds.
    pub first_packet_s: f64,
    /// The lowest of them.
    pub binds: Limit,
}

impl Limits {
    /// How long a message takes, in seconds.
    #[must_use]
    pub fn seconds(&self, bytes: f64) -> f64 {
        bytes / self.together + self.first_packet_s
    }
}

/// What `tuning` gives over `path` for a device whose storage costs `storage` in this direction.
#[must_use]
pub fn limits(direction: Direction, tuning: &Tuning, storage: &Cost, path: &Path) -> Limits {
    let delay = |end: &End| (end.delay.duration().as_secs_f64(), end.packet.bytes() as f64);
    let by_delay = |end: &End| Some(delay(end)).filter(|(delay, _)| *delay > 0.0).map(|(delay, packet)| packet / delay);
    let device = match direction {
        Direction::Fetch => &tuning.receiver,
        Direction::Send => &tuning.sender,
    };
    let single = [
        (Limit::Window, Some(window(tuning, path) / path.rtt_s)),
        (Limit::Storage, Some(storage.rate_with(device.packet))),
        (Limit::SenderDelay, by_delay(&tuning.sender)),
        (Limit::ReceiverDelay, by_delay(&tuning.receiver)),
        (Limit::Pacing, tuning.sender.pacing.map(|rate| rate.bytes_per_second() as f64)),
        (Limit::Air, Some(path.air)),
    ];
    let of = |which: Limit| single.iter().find(|(limit, _)| *limit == which).and_then(|(_, rate)| *rate);
    let lowest = single.iter().filter_map(|(limit, rate)| Some((*limit, (*rate)?))).min_by(|a, b| a.1.total_cmp(&b.1));
    let along = [Limit::Window, Limit::Pacing, Limit::Air].into_iter().filter_map(of).fold(path.air, f64::min);
    let along = along / on_the_wire(tuning.sender.packet);
    let (at_sender, at_receiver) = match direction {
        Direction::Fetch => (None, Some(storage)),
        Direction::Send => (Some(storage), None),
    };
    let sender = stage(&tuning.sender, at_sender, along);
    let receiver = stage(&tuning.receiver, at_receiver, along);
    let packet = device.packet.bytes() as f64;
    Limits {
        window: of(Limit::Window).unwrap_or(path.air),
        storage: of(Limit::Storage).unwrap_or(path.air),
        sender_delay: of(Limit::SenderDelay),
        receiver_delay: of(Limit::ReceiverDelay),
        pacing: of(Limit::Pacing),
        air: path.air,
        together: sender.min(receiver).min(along),
        first_packet_s: (packet / along).min(storage.seconds(packet)),
        binds: lowest.map_or(Limit::Air, |(limit, _)| limit),
    }
}

/// What may be in flight: what the receiver's buffer takes and the sender's keeps, in bytes.
fn window(tuning: &Tuning, path: &Path) -> f64 {
    let bytes = |buffer: Option<Size>| buffer.map(|size| f64::from(size.bytes()));
    let receiver = bytes(tuning.receiver.buffer).unwrap_or(path.kernel_window);
    receiver.min(bytes(tuning.sender.buffer).unwrap_or(f64::INFINITY))
}

/// Bytes that TCP carries for each byte of a message.
#[must_use]
pub fn on_the_wire(packet: PacketSize) -> f64 {
    let frame = packet.bytes() as f64 + FRAME_BYTES;
    (frame + (frame / RECORD_CARRIES).ceil() * RECORD_BYTES) / packet.bytes() as f64
}

/// Bytes per second of one end over a path that carries `path`.
fn stage(end: &End, storage: Option<&Cost>, path: f64) -> f64 {
    let packet = end.packet.bytes() as f64;
    let busy = end.delay.duration().as_secs_f64() + storage.map_or(0.0, |cost| cost.seconds(packet));
    let buffer = end.buffer.map_or(KERNEL_BUFFER, |size| f64::from(size.bytes()));
    let meanwhile = packet.min(buffer).min(path * busy);
    packet / (busy + (packet - meanwhile) / path)
}

/// Sizes that a packet can have: doubling, 512 B to 1 MiB.
pub fn packet_sizes() -> impl Iterator<Item = PacketSize> {
    (9..=20).filter_map(|power| PacketSize::new(1 << power))
}

/// A rate as a setting, within what a setting can be.
#[must_use]
pub fn as_rate(bytes_per_second: f64) -> Option<Rate> {
    let whole = bytes_per_second as u64; // saturates, and is 0 for no number
    Rate::new(whole.clamp(*Rate::RANGE.start(), *Rate::RANGE.end()))
}

/// Bytes as the size of a buffer, within what one can be.
#[must_use]
pub fn as_size(bytes: f64) -> Option<Size> {
    Size::new((bytes as u32).clamp(*Size::RANGE.start(), *Size::RANGE.end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::quantity::Delay;
    use proptest::prelude::*;

    const AIR: Path = Path { rtt_s: 0.003, air: 600e3, kernel_window: 1e6 };
    const FLASH: Cost = Cost { operation_s: 0.0013, rate: 400e3 };

    fn end(packet: u32, delay_us: u32, buffer: u32) -> End {
        let delay = Delay::micros(delay_us).unwrap();
        End { packet: PacketSize::new(packet).unwrap(), delay, buffer: Size::new(buffer), pacing: None }
    }

    fn printed() -> Tuning {
        Tuning { sender: end(4096, 1000, 16_384), receiver: end(4096, 10_000, 8192) }
    }

    #[test]
    fn a_delay_and_the_storage_add_up_where_one_end_has_both() {
        let all = limits(Direction::Fetch, &printed(), &FLASH, &AIR);
        assert_eq!(all.binds, Limit::Storage);
        // 10 ms + 1.3 ms + 4,096 B / 400 kB/s, all of it while the kernel goes on.
        assert!((4096.0 / all.together - 0.021_54).abs() < 1e-9, "{}", 4096.0 / all.together);
        assert_eq!(all.receiver_delay, Some(409_600.0));
    }

    #[test]
    fn the_storage_of_the_device_is_at_its_own_end() {
        let all = limits(Direction::Send, &printed(), &FLASH, &AIR);
        // The device sleeps 1 ms and reads; the server sleeps 10 ms and has no storage here.
        assert!((all.together - 4096.0 / 0.012_54).abs() < 1.0);
    }

    #[test]
    fn a_window_that_holds_less_than_a_packet_is_waited_for() {
        let small = Tuning { receiver: end(65_536, 0, 8192), ..Tuning::default() };
        let large = Tuning { receiver: End { buffer: None, ..small.receiver }, ..small };
        let rate = |tuning| limits(Direction::Fetch, &tuning, &FLASH, &AIR).together;
        let path = 600e3 / on_the_wire(small.sender.packet);
        let expected = 65_536.0 / (FLASH.seconds(65_536.0) + (65_536.0 - 8192.0) / path);
        assert!((rate(small) - expected).abs() < 1e-6);
        assert!(rate(large) > 1.5 * rate(small));
    }

    #[test]
    fn eq_1_of_the_paper_binds_a_small_window_on_a_long_path() {
        let long = Path { rtt_s: 0.1, ..AIR };
        let all = limits(Direction::Fetch, &printed(), &Cost { operation_s: 0.0, rate: 1e9 }, &long);
        assert_eq!((all.binds, all.window), (Limit::Window, 81_920.0));
        assert!(all.together <= 81_920.0);
    }

    fn any_end() -> impl Strategy<Value = End> {
        let buffer = proptest::option::of(1024_u32..1 << 24);
        let pacing = proptest::option::of(1_000_u64..1_000_000_000);
        (512_u32..=1 << 20, 0_u32..=1_000_000, buffer, pacing).prop_map(|(packet, delay, buffer, pacing)| End {
            pacing: pacing.and_then(Rate::new),
            ..end(packet, delay, buffer.unwrap_or(0))
        })
    }

    proptest! {
        #[test]
        fn nothing_is_faster_than_any_of_its_limits_and_more_of_anything_is_not_slower(
            (sender, receiver) in (any_end(), any_end()),
            (operation_s, rate) in (0.0..0.1_f64, 1e3..1e9_f64),
            (rtt_s, air, kernel_window) in (1e-5..1.0_f64, 1e3..1e9_f64, 1e4..1e8_f64),
            more in 1.0..10.0_f64,
            fetch in any::<bool>(),
        ) {
            let direction = if fetch { Direction::Fetch } else { Direction::Send };
            let (tuning, storage, path) =
                (Tuning { sender, receiver }, Cost { operation_s, rate }, Path { rtt_s, air, kernel_window });
            let now = limits(direction, &tuning, &storage, &path);
            let lowest = [Some(now.window), Some(now.storage), now.sender_delay, now.receiver_delay, now.pacing, Some(now.air)]
                .into_iter().flatten().fold(f64::INFINITY, f64::min);
            prop_assert!(now.together > 0.0 && now.together <= lowest * (1.0 + 1e-9));
            let wider = receiver.buffer.map(|size| as_size(f64::from(size.bytes()) * more).unwrap());
            let better = [
                limits(direction, &tuning, &Cost { rate: rate * more, ..storage }, &path),
                limits(direction, &tuning, &Cost { operation_s: operation_s / more, ..storage }, &path),
                limits(direction, &tuning, &storage, &Path { air: air * more, ..path }),
                limits(direction, &tuning, &storage, &Path { rtt_s: rtt_s / more, ..path }),
                limits(direction, &Tuning { receiver: End { delay: Delay::default(), ..receiver }, sender }, &storage, &path),
                limits(direction, &Tuning { receiver: End { buffer: wider, ..receiver }, sender }, &storage, &path),
            ];
            for (i, then) in better.iter().enumerate() {
                prop_assert!(then.together >= now.together * (1.0 - 1e-9), "{}: {:?}", i, then);
            }
        }
    }
}

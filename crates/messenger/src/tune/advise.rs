//! Measurements in, settings worth a try out; what they were seen to give in, the choice out.
//!
//! The simplest among the fastest is chosen: what the kernel does by itself before anything that is set, since a setting
//! that is right today is wrong on tomorrow's path. Where the storage is slower than the air, a queue is nobody's need: of
//! the fastest, those are left out that fill the access point's queue more than others, before everybody else's packets, or
//! shut the receiver's window and go on in bursts. So pacing at the storage's rate, which wins no time, is taken when it is
//! what keeps the queue short and the window open.

use super::law::{Cost, Direction, Limits, Path, as_rate, as_size, limits, on_the_wire, packet_sizes};
use super::storage::{Probed, median};
use crate::tuning::quantity::{PacketSize, Size};
use crate::tuning::{End, Tuning};
use serde::Serialize;
use std::fmt;

/// Bytes of the message that settings are compared for.
pub const MESSAGE_BYTES: f64 = 1e6;
/// What counts as equally fast, of the time: at least this, and at most that, as far as tries differ among themselves.
const EQUAL: std::ops::RangeInclusive<f64> = 0.01..=0.03;
/// A packet of another size is worth a try when this share of the time is expected of it.
const WORTH: f64 = 0.005;
/// Share of the time in which buffers of the kernel's held the sender back, for larger ones to be worth a try.
const HELD_BACK: f64 = 0.1;
/// Buffers for what is in flight when the path is full: one part travels, one waits for its acknowledgment.
const BUFFERS: f64 = 2.0;
/// How far above the storage's rate a sender is paced, so that it is the storage that waits for nothing.
const ABOVE_STORAGE: f64 = 1.02;
/// The storage's rate must be below this share of the air's, for pacing to be told apart from the air.
const SLOWER: f64 = 0.95;
/// How much longer a segment may be in flight than with the shortest queue.
const SHORT_QUEUE: f64 = 1.5;
/// By how much more of the time the receiver's window may hold the sender back than with the most open one.
const OPEN_WINDOW: f64 = 0.1;
/// How much slower the storage is taken to be where a packet is matched to it: what two stages of about the same speed wait
/// for each other.
const JITTER: f64 = 1.1;

/// One direction of the path.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PathLoad {
    /// What the law needs.
    pub path: Path,
    /// Smoothed round trip of the sender while the path was full, in seconds: what is above the path's own is queue.
    pub loaded_rtt_s: f64,
    /// Share of the time, 0..=1, in which the receiver's window or the send buffer held the sender back.
    pub held_back: f64,
}

/// All that is measured before anything is tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The device's storage.
    pub storage: Probed,
    /// To the device.
    pub down: PathLoad,
    /// From the device.
    pub up: PathLoad,
}

impl Measured {
    /// What concerns one direction: the device's storage and the way.
    #[must_use]
    pub fn of(&self, direction: Direction) -> (&Cost, &PathLoad) {
        match direction {
            Direction::Fetch => (&self.storage.write, &self.down),
            Direction::Send => (&self.storage.read, &self.up),
        }
    }

    /// What a tuning is expected to give.
    #[must_use]
    pub fn limits(&self, direction: Direction, tuning: &Tuning) -> Limits {
        let (storage, path_load) = self.of(direction);
        limits(direction, tuning, storage, &path_load.path)
    }
}

/// Why settings are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Idea {
    /// They are what there is.
    Present,
    /// Nothing is set.
    Kernel,
    /// Packets matched to the storage.
    Packet,
    /// Buffers sized to the path.
    Buffers,
    /// The server paced to the storage's rate.
    Pacing,
}

impl fmt::Display for Idea {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Present => "present settings",
            Self::Kernel => "nothing set",
            Self::Packet => "packet matched to the storage",
            Self::Buffers => "buffers sized to the path",
            Self::Pacing => "server paced to the storage",
        })
    }
}

/// Settings worth a try.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// Why.
    pub idea: Idea,
    /// What.
    pub tuning: Tuning,
    /// What the law says of them.
    pub limits: Limits,
}

/// What is worth a try, at most five: the present settings first, and each only once.
#[must_use]
pub fn candidates(direction: Direction, present: &Tuning, measured: &Measured) -> Vec<Candidate> {
    let mut all = vec![(Idea::Present, *present), (Idea::Kernel, Tuning::default())];
    let matched = matched_packet(direction, measured);
    if let Some(packet) = matched {
        all.push((Idea::Packet, with_packet(Tuning::default(), packet)));
    }
    let plain = with_packet(Tuning::default(), matched.unwrap_or_default());
    let (storage, path_load) = measured.of(direction);
    let needs = BUFFERS * path_load.path.air * path_load.loaded_rtt_s.max(path_load.path.rtt_s);
    if path_load.held_back > HELD_BACK && needs > path_load.path.kernel_window {
        all.push((Idea::Buffers, with_buffers(plain, as_size(needs))));
    }
    let storage_rate = storage.rate_with(plain.receiver.packet);
    let paced = storage_rate * ABOVE_STORAGE * on_the_wire(plain.sender.packet);
    if direction == Direction::Fetch && paced < path_load.path.air * SLOWER {
        let pacing = as_rate(paced);
        all.push((Idea::Pacing, Tuning { sender: End { pacing, ..plain.sender }, ..plain }));
    }
    let mut unique: Vec<Candidate> = Vec::new();
    for (idea, tuning) in all {
        if unique.iter().all(|one| one.tuning != tuning) {
            unique.push(Candidate { idea, tuning, limits: measured.limits(direction, &tuning) });
        }
    }
    unique
}

/// The smallest packet with which a message takes about the least, when that is worth a change.
fn matched_packet(direction: Direction, measured: &Measured) -> Option<PacketSize> {
    let (storage, path_load) = measured.of(direction);
    let storage = Cost { operation_s: storage.operation_s * JITTER, rate: storage.rate / JITTER };
    let seconds = |packet| {
        limits(direction, &with_packet(Tuning::default(), packet), &storage, &path_load.path).seconds(MESSAGE_BYTES)
    };
    let least = packet_sizes().map(seconds).fold(f64::INFINITY, f64::min);
    let worth = least < seconds(PacketSize::default()) * (1.0 - WORTH);
    packet_sizes().find(|packet| worth && seconds(*packet) <= least * (1.0 + WORTH))
}

fn with_packet(tuning: Tuning, packet: PacketSize) -> Tuning {
    let end = |end: End| End { packet, ..end };
    Tuning { sender: end(tuning.sender), receiver: end(tuning.receiver) }
}

fn with_buffers(tuning: Tuning, buffer: Option<Size>) -> Tuning {
    let end = |end: End| End { buffer, ..end };
    Tuning { sender: end(tuning.sender), receiver: end(tuning.receiver) }
}

/// Settings that have been tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    /// What was tried.
    #[serde(flatten)]
    pub candidate: Candidate,
    /// Of each transfer that was measured, in bytes.
    pub bytes: u64,
    /// What each would have taken for a message of 1 MB, in seconds.
    pub seconds: Vec<f64>,
    /// Median of the sender's smoothed round trip at the end, in seconds; 0: not known.
    pub loaded_rtt_s: f64,
    /// Median share of the time, 0..=1, in which the receiver's window held the sender back.
    pub window_limited: f64,
}

impl Tried {
    /// The median; infinite when it was not measured.
    #[must_use]
    pub fn median_s(&self) -> f64 {
        if self.seconds.is_empty() { f64::INFINITY } else { median(&mut self.seconds.clone()) }
    }

    /// How far the measurements differ among themselves, of the median.
    fn spread(&self) -> f64 {
        let (least, most) = self.seconds.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), &s| (a.min(s), b.max(s)));
        if self.seconds.is_empty() { 0.0 } else { (most - least) / self.median_s() }
    }
}

/// Which of the settings tried is best: the fastest, and the simplest of those that are as fast. There is at least one.
#[must_use]
pub fn choose(tried: &[Tried]) -> usize {
    let fastest = (0..tried.len()).min_by(|&a, &b| tried[a].median_s().total_cmp(&tried[b].median_s())).unwrap_or(0);
    let equal = |i: usize| {
        let noise = tried[i].spread().max(tried[fastest].spread()) / 2.0;
        tried[i].median_s() <= tried[fastest].median_s() * (1.0 + noise.clamp(*EQUAL.start(), *EQUAL.end()))
    };
    let fast: Vec<usize> = (0..tried.len()).filter(|&i| equal(i)).collect();
    let rtt = |i: usize| Some(tried[i].loaded_rtt_s).filter(|rtt| *rtt > 0.0);
    let shortest = fast.iter().filter_map(|&i| rtt(i)).fold(f64::INFINITY, f64::min);
    let slow_storage = tried.iter().any(|one| one.candidate.idea == Idea::Pacing);
    let most_open = fast.iter().filter(|&&i| rtt(i).is_some()).map(|&i| tried[i].window_limited);
    let most_open = most_open.fold(f64::INFINITY, f64::min);
    let is_kind = |i: usize| {
        let is_open = tried[i].window_limited <= most_open + OPEN_WINDOW;
        !slow_storage || rtt(i).is_none_or(|rtt| rtt <= shortest * SHORT_QUEUE && is_open)
    };
    let simplest = fast.into_iter().filter(|&i| is_kind(i)).min_by(|&a, &b| {
        let by_time = tried[a].median_s().total_cmp(&tried[b].median_s());
        settings(&tried[a].candidate.tuning).cmp(&settings(&tried[b].candidate.tuning)).then(by_time)
    });
    simplest.unwrap_or(fastest)
}

/// How many values differ from what is there when nothing is set.
fn settings(tuning: &Tuning) -> usize {
    let plain = End::default();
    let of =
        |end: &End| [end.packet != plain.packet, end.delay != plain.delay, end.buffer.is_some(), end.pacing.is_some()];
    [of(&tuning.sender), of(&tuning.receiver)].as_flattened().iter().filter(|&&differs| differs).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::quantity::{Delay, Rate};
    use proptest::prelude::*;

    fn measured(write: Cost, air: f64, held_back: f64) -> Measured {
        let read = Cost { operation_s: write.operation_s / 2.0, rate: 2.0 * write.rate };
        let storage = Probed { writes: vec![], write, reads: vec![], read, settle_s_per_byte: 0.0, full: false };
        let path = Path { rtt_s: 0.003, air, kernel_window: 1e6 };
        let path_load = PathLoad { path, loaded_rtt_s: 0.05, held_back };
        Measured { storage, down: path_load, up: path_load }
    }

    fn printed() -> Tuning {
        let end = |delay, buffer| End {
            packet: PacketSize::new(4096).unwrap(),
            delay: Delay::micros(delay).unwrap(),
            buffer: Size::new(buffer),
            pacing: None,
        };
        Tuning { sender: end(1000, 16_384), receiver: end(10_000, 8192) }
    }

    fn ideas(all: &[Candidate]) -> Vec<Idea> {
        all.iter().map(|candidate| candidate.idea).collect()
    }

    fn tried(idea: Idea, tuning: Tuning, seconds: [f64; 3], loaded_rtt_s: f64) -> Tried {
        let limits = measured(Cost { operation_s: 0.0, rate: 1e6 }, 1e6, 0.0).limits(Direction::Fetch, &tuning);
        let candidate = Candidate { idea, tuning, limits };
        Tried { candidate, bytes: 1 << 20, seconds: seconds.to_vec(), loaded_rtt_s, window_limited: 0.0 }
    }

    #[test]
    fn a_slow_storage_has_smaller_packets_and_pacing_tried_on_the_way_down() {
        let slow = measured(Cost { operation_s: 0.001, rate: 400e3 }, 600e3, 0.0);
        let all = candidates(Direction::Fetch, &printed(), &slow);
        assert_eq!(ideas(&all), [Idea::Present, Idea::Kernel, Idea::Packet, Idea::Pacing]);
        assert_eq!(all[2].tuning.receiver.packet.bytes(), 16 << 10);
        let pacing = all[3].tuning.sender.pacing.unwrap().bytes_per_second() as f64;
        let storage = slow.storage.write.rate_with(all[3].tuning.receiver.packet);
        assert!(pacing > storage && pacing < 1.05 * storage, "{pacing} {storage}");
        assert!(all[1..].iter().all(|one| one.limits.seconds(1e6) < all[0].limits.seconds(1e6) / 1.5));
    }

    #[test]
    fn a_fast_device_has_nothing_tried_beside_the_kernels_own() {
        let fast = measured(Cost { operation_s: 1e-6, rate: 2e9 }, 60e6, 0.0);
        assert_eq!(ideas(&candidates(Direction::Fetch, &Tuning::default(), &fast)), [Idea::Present]);
        assert_eq!(ideas(&candidates(Direction::Send, &printed(), &fast)), [Idea::Present, Idea::Kernel]);
    }

    #[test]
    fn buffers_are_tried_where_those_of_the_kernel_hold_back() {
        let held = measured(Cost { operation_s: 1e-6, rate: 2e9 }, 60e6, 0.3);
        let all = candidates(Direction::Fetch, &Tuning::default(), &held);
        assert_eq!(ideas(&all), [Idea::Present, Idea::Buffers]);
        assert_eq!(all[1].tuning.receiver.buffer, Size::new(6_000_000));
        // The kernel gave more than that: it is the application that is slow.
        let held = measured(Cost { operation_s: 1e-6, rate: 2e9 }, 6e6, 0.9);
        assert_eq!(ideas(&candidates(Direction::Fetch, &Tuning::default(), &held)), [Idea::Present]);
    }

    #[test]
    fn the_simplest_of_the_fastest_is_chosen() {
        let packet = with_packet(Tuning::default(), PacketSize::new(8192).unwrap());
        let all = |packet_s: f64| {
            [
                tried(Idea::Present, printed(), [4.0, 4.1, 4.0], 0.02),
                tried(Idea::Kernel, Tuning::default(), [1.50, 1.51, 1.50], 0.1),
                tried(Idea::Packet, packet, [packet_s; 3], 0.1),
            ]
        };
        assert_eq!(choose(&all(1.49)), 1, "less than a hundredth is not worth a setting");
        assert_eq!(choose(&all(1.40)), 2);
        assert_eq!(choose(&all(1.60)), 1);
    }

    #[test]
    fn pacing_is_chosen_when_it_costs_nothing_and_shortens_the_queue() {
        let paced = |seconds, rtt| {
            let sender = End { pacing: Rate::new(400_000), ..End::default() };
            let plain = tried(Idea::Kernel, Tuning::default(), [2.0; 3], 0.1);
            choose(&[plain, tried(Idea::Pacing, Tuning { sender, ..Tuning::default() }, seconds, rtt)])
        };
        assert_eq!(paced([2.01; 3], 0.01), 1);
        assert_eq!(paced([2.01; 3], 0.09), 0, "the queue is as long");
        assert_eq!(paced([2.2; 3], 0.01), 0, "it costs time");
    }

    #[test]
    fn a_window_that_stays_open_is_preferred_where_the_storage_limits() {
        let plain = Tried { window_limited: 0.6, ..tried(Idea::Kernel, Tuning::default(), [2.50; 3], 0.02) };
        let sender = End { pacing: Rate::new(400_000), ..End::default() };
        let paced = tried(Idea::Pacing, Tuning { sender, ..Tuning::default() }, [2.51; 3], 0.02);
        assert_eq!(choose(&[plain.clone(), paced.clone()]), 1);
        assert_eq!(choose(&[plain, Tried { window_limited: 0.55, ..paced }]), 0);
    }

    #[test]
    fn smaller_packets_that_keep_the_queue_short_need_no_pacing() {
        let packet = with_packet(Tuning::default(), PacketSize::new(16 << 10).unwrap());
        let paced = Tuning { sender: End { pacing: Rate::new(400_000), ..packet.sender }, ..packet };
        let all = [
            tried(Idea::Kernel, Tuning::default(), [2.51; 3], 0.058),
            tried(Idea::Packet, packet, [2.50; 3], 0.016),
            tried(Idea::Pacing, paced, [2.49; 3], 0.021),
        ];
        assert_eq!(choose(&all), 1);
    }

    proptest! {
        #[test]
        fn all_that_is_proposed_can_be_set_and_the_present_settings_are_among_it(
            (operation_s, rate) in (0.0..1.0_f64, 1.0..1e12_f64),
            (air, held_back) in (1.0..1e12_f64, 0.0..1.0_f64),
            fetch in any::<bool>(),
        ) {
            let direction = if fetch { Direction::Fetch } else { Direction::Send };
            let all = candidates(direction, &printed(), &measured(Cost { operation_s, rate }, air, held_back));
            prop_assert!(all[0].tuning == printed() && all.len() <= 5);
            for one in all {
                // What can be set reads back from a profile.
                let text = toml::to_string(&one.tuning).unwrap();
                prop_assert_eq!(toml::from_str::<Tuning>(&text).unwrap(), one.tuning);
                prop_assert!(one.limits.seconds(1e6).is_finite());
            }
        }

        #[test]
        fn what_is_chosen_is_no_slower_than_anything_that_was_tried_but_for_noise(
            times in proptest::collection::vec(proptest::collection::vec(0.1..100.0_f64, 1..4), 1..6),
        ) {
            let ideas = [Idea::Present, Idea::Kernel, Idea::Packet, Idea::Buffers, Idea::Pacing];
            let all: Vec<Tried> = times.iter().zip(ideas).map(|(seconds, idea)| {
                Tried { seconds: seconds.clone(), ..tried(idea, Tuning::default(), [0.0; 3], 0.01) }
            }).collect();
            let chosen = all[choose(&all)].median_s();
            prop_assert!(all.iter().all(|one| chosen <= one.median_s() * (1.0 + EQUAL.end())));
        }
    }
}

//! Stories with hand-made measurements.

use super::advise::{Idea, MESSAGE_BYTES, Measured, PathLoad, Tried, candidates, choose};
use super::explain::{of_storage, words};
use super::law::{Cost, Direction, Limit, Path};
use super::storage::Probed;
use super::{Found, Report, Settings};
use crate::tuning::quantity::{Delay, PacketSize, Size};
use crate::tuning::{End, Tuning};

/// A handheld on 802.11b that reads its storage twice as fast as it writes it.
fn handheld() -> Measured {
    let write = Cost { operation_s: 0.00104, rate: 500e3 };
    let read = Cost { operation_s: 0.00052, rate: 1e6 };
    let storage = Probed { writes: vec![], write, reads: vec![], read, settle_s_per_byte: 0.0, full: false };
    let path = Path { rtt_s: 0.003, air: 640e3, kernel_window: 400e3 };
    let path_load = PathLoad { path, loaded_rtt_s: 0.08, held_back: 0.0 };
    Measured { storage, down: path_load, up: path_load }
}

fn end(packet: u32, delay: u32, buffer: u32) -> End {
    let (packet, delay) = (PacketSize::new(packet).unwrap(), Delay::micros(delay).unwrap());
    End { packet, delay, buffer: Size::new(buffer), pacing: None }
}

/// As if everything took what the law says.
fn found(direction: Direction, present: Tuning, measured: &Measured) -> Found {
    let tried: Vec<Tried> = candidates(direction, &present, measured)
        .into_iter()
        .map(|candidate| Tried {
            candidate,
            bytes: 1 << 18,
            seconds: vec![candidate.limits.seconds(MESSAGE_BYTES); 3],
            loaded_rtt_s: if candidate.idea == Idea::Pacing { 0.004 } else { 0.08 },
            window_limited: 0.0,
        })
        .collect();
    let settings = |one: &Tried| Settings {
        tuning: one.candidate.tuning,
        limits: one.candidate.limits,
        expected_s: one.candidate.limits.seconds(MESSAGE_BYTES),
        measured_s: Some(one.median_s()),
    };
    let chosen = choose(&tried);
    Found { before: settings(&tried[0]), after: settings(&tried[chosen]), chosen, tried }
}

fn report(present: Tuning) -> Report {
    let measured = handheld();
    let [fetch, send] = [Direction::Fetch, Direction::Send].map(|direction| found(direction, present, &measured));
    Report { measured, median_rtt_s: 0.004, fetch, send, took_s: 18.0 }
}

#[test]
fn the_settings_of_the_printed_table_are_left_behind_for_the_storage() {
    let report = report(Tuning { sender: end(4096, 1000, 16_384), receiver: end(4096, 10_000, 8192) });
    let (before, after) = (&report.fetch.before, &report.fetch.after);
    assert_eq!(before.limits.binds, Limit::ReceiverDelay);
    assert!(after.expected_s < 0.5 * before.expected_s, "{} {}", after.expected_s, before.expected_s);
    assert!(report.send.after.expected_s < report.send.before.expected_s);
    let said = words(Direction::Fetch, &report);
    assert!(said.delay.contains("1ms and 10ms") && said.delay.contains("3.28 Mbit/s"), "{}", said.delay);
    assert!(said.buffers.contains("16KiB and 8KiB") && said.buffers.contains("1920 B"), "{}", said.buffers);
    assert!(said.limit.contains("receiver's delay") && said.limit.contains("-5"), "{}", said.limit);
    assert!(said.left.contains("500 kB/s") && said.left.contains("2.00 s"), "{}", said.left);
}

#[test]
fn small_packets_before_a_slow_storage_are_made_larger_and_the_server_is_paced() {
    let small = end(3072, 0, 0);
    let report = report(Tuning { sender: small, receiver: small });
    let said = words(Direction::Fetch, &report);
    assert!(said.packet.starts_with("16KiB instead of 3KiB: a write costs 1.04 ms"), "{}", said.packet);
    assert!(said.packet.contains("14.5 %") && said.packet.contains("3.1 %"), "{}", said.packet);
    assert!(
        said.pacing.contains("wins no time") && said.pacing.contains("for 4.00 ms instead of 80.0 ms"),
        "{}",
        said.pacing
    );
    let up = words(Direction::Send, &report);
    assert!(up.left.contains("the path carries 5.12 Mbit/s"), "{}", up.left);
    assert!(up.pacing.starts_with("none"), "{}", up.pacing);
}

#[test]
fn a_storage_behind_a_page_cache_is_told_apart() {
    let mut measured = handheld();
    assert!(!of_storage(&measured).contains("wait in memory"));
    measured.storage.write.rate = 1e9;
    measured.storage.settle_s_per_byte = 1e-6;
    assert!(of_storage(&measured).contains("wait in memory, and the storage takes 1.00 s more"));
}

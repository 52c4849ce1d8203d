//! What was found, in words: a sentence for what limits, for each of the three remedies, and for what cannot be won.

use super::advise::{Idea, Measured, Tried};
use super::law::{Direction, Limit, Limits};
use super::{Found, Report};
use crate::tuning::quantity::{Delay, PacketSize, Size};
use serde::Serialize;

/// Of one direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Words {
    /// What limits, before and after, and what is won.
    pub limit: String,
    /// Of the socket buffers.
    pub buffers: String,
    /// Of the application buffer.
    pub packet: String,
    /// Of the sleep after each packet.
    pub delay: String,
    /// Of its form in the kernel.
    pub pacing: String,
    /// What no setting can win.
    pub left: String,
}

/// What was found for one direction.
#[must_use]
pub fn words(direction: Direction, report: &Report) -> Words {
    let found = match direction {
        Direction::Fetch => &report.fetch,
        Direction::Send => &report.send,
    };
    Words {
        limit: limit(found),
        buffers: buffers(direction, found, &report.measured),
        packet: packet(direction, found, &report.measured),
        delay: delay(found),
        pacing: pacing(direction, found),
        left: left(direction, &report.measured),
    }
}

/// Of the storage, in both directions.
#[must_use]
pub fn of_storage(measured: &Measured) -> String {
    let storage = &measured.storage;
    let mut text = format!(
        "a write takes {} and what {} take, a read {} and what {} take",
        time(storage.write.operation_s),
        speed(storage.write.rate),
        time(storage.read.operation_s),
        speed(storage.read.rate),
    );
    let settles = storage.settle_s_per_byte * 1e6;
    if storage.is_cached() {
        text += &format!(
            "; written bytes wait in memory, and the storage takes {} more for each MB, whatever is set here",
            time(settles)
        );
    }
    if storage.full {
        text += "; there was no room for all that would have been tried";
    }
    text
}

fn limit(found: &Found) -> String {
    let (before, after) = (&found.before, &found.after);
    let holds = |limits: &Limits| format!("{} ({})", limits.binds, bits(of(limits)));
    let mut text = match before.tuning == after.tuning {
        true => format!("the limit is {}; nothing is changed", holds(&after.limits)),
        false => format!("the limit was {}, now it is {}", holds(&before.limits), holds(&after.limits)),
    };
    if let (Some(was), Some(is)) = (before.measured_s, after.measured_s)
        && before.tuning != after.tuning
    {
        text += &format!(": 1 MB takes {} instead of {} ({:+.0} %)", time(is), time(was), 100.0 * (is / was - 1.0));
    }
    text
}

/// The rate of the limit that binds.
fn of(limits: &Limits) -> f64 {
    match limits.binds {
        Limit::Window => limits.window,
        Limit::Storage => limits.storage,
        Limit::SenderDelay => limits.sender_delay.unwrap_or(limits.air),
        Limit::ReceiverDelay => limits.receiver_delay.unwrap_or(limits.air),
        Limit::Pacing => limits.pacing.unwrap_or(limits.air),
        Limit::Air => limits.air,
    }
}

fn buffers(direction: Direction, found: &Found, measured: &Measured) -> String {
    let path_load = measured.of(direction).1;
    let now = &found.after.tuning;
    let needs = format!("this path needs {} under way", size(path_load.path.air * path_load.path.rtt_s));
    if now.sender.buffer.is_some() || now.receiver.buffer.is_some() {
        let [sender, receiver] = [now.sender.buffer, now.receiver.buffer].map(buffer);
        let held = 100.0 * path_load.held_back;
        return format!(
            "{sender} at the sender, {receiver} at the receiver; {needs}, and left to the kernel they held the sender back \
             for {held:.0} % of the time"
        );
    }
    let was = found.before.tuning;
    let kernel = match direction {
        Direction::Fetch => format!("the kernel let the device's grow to {}", size(path_load.path.kernel_window)),
        Direction::Send => format!("they held the sender back for {:.0} % of the time", 100.0 * path_load.held_back),
    };
    let before = match (was.sender.buffer, was.receiver.buffer) {
        (None, None) => "left to the kernel".to_owned(),
        (sender, receiver) => {
            format!("left to the kernel, where {} and {} were set (sender, receiver)", buffer(sender), buffer(receiver))
        }
    };
    let tried = found.tried.iter().find(|one| one.candidate.idea == Idea::Buffers);
    let tried = tried.map_or(String::new(), |one| format!("; larger ones were tried and took {}", against(one, found)));
    format!("{before}: {needs}, and {kernel}{tried}")
}

fn packet(direction: Direction, found: &Found, measured: &Measured) -> String {
    let cost = measured.of(direction).0;
    let device = |settings: &super::Settings| match direction {
        Direction::Fetch => settings.tuning.receiver.packet,
        Direction::Send => settings.tuning.sender.packet,
    };
    let (was, is) = (device(&found.before), device(&found.after));
    let share = |packet: PacketSize| 100.0 * cost.operation_s / cost.seconds(packet.bytes() as f64);
    let verb = if direction == Direction::Fetch { "write" } else { "read" };
    let costs = format!("a {verb} costs {} whatever its size", time(cost.operation_s));
    if was == is {
        return format!("{is}, as before: {costs}, {:.1} % of its time", share(is));
    }
    let plain = found.tried.iter().find(|one| one.candidate.idea == Idea::Kernel && one.median_s().is_finite());
    let plain = plain.filter(|one| one.candidate.tuning != found.after.tuning).map_or(String::new(), |one| {
        format!(
            "; in packets of {} 1 MB took {}, and {}",
            PacketSize::default(),
            against(one, found),
            queue(one, found)
        )
    });
    format!(
        "{is} instead of {was}: {costs}, which was {:.1} % of its time and is {:.1} %{plain}",
        share(was),
        share(is)
    )
}

fn delay(found: &Found) -> String {
    let was = found.before.tuning;
    let before = [was.sender.delay, was.receiver.delay];
    if before.iter().all(|delay| *delay == Delay::default()) {
        return "none, as before: a sleep is time in which nothing is read or written".to_owned();
    }
    let [sender, receiver] = before;
    let limits = &found.before.limits;
    let alone = [limits.sender_delay, limits.receiver_delay].into_iter().flatten().fold(f64::INFINITY, f64::min);
    let is = if found.after.tuning == was { "kept" } else { "none" };
    format!("{is}, where {sender} and {receiver} were slept (sender, receiver): that alone allowed {}", bits(alone))
}

fn pacing(direction: Direction, found: &Found) -> String {
    let tried = found.tried.iter().find(|one| one.candidate.idea == Idea::Pacing);
    if let Some(rate) = found.after.tuning.sender.pacing {
        let plain = found.tried.iter().filter(|one| one.candidate.tuning.sender.pacing.is_none());
        let plain = plain.min_by(|a, b| a.median_s().total_cmp(&b.median_s()));
        let effect = tried.zip(plain).map_or(String::new(), |(paced, plain)| {
            let [paced_s, plain_s] = [paced.median_s(), plain.median_s()];
            let wins = if paced_s < 0.99 * plain_s { "wins a little" } else { "wins no time" };
            format!(
                ": {wins} ({} against {}), but the receiver's window holds the sender back for {:.0} % of the time \
                 instead of {:.0} %, and a segment is under way for {} instead of {}: no bursts in the access point's queue",
                time(paced_s),
                time(plain_s),
                100.0 * paced.window_limited,
                100.0 * plain.window_limited,
                time(paced.loaded_rtt_s),
                time(plain.loaded_rtt_s)
            )
        });
        let rate = speed(rate.bytes_per_second() as f64);
        return format!("the sender at {rate}{effect}");
    }
    match (direction, tried) {
        (_, Some(one)) => {
            format!("none: at the storage's rate 1 MB took {}, and {}", against(one, found), queue(one, found))
        }
        (Direction::Fetch, None) => "none: the storage is about as fast as the path, or faster".to_owned(),
        (Direction::Send, None) => "none: a device that reads slowly paces itself".to_owned(),
    }
}

/// What one of the things tried took, beside what was chosen.
fn against(one: &Tried, found: &Found) -> String {
    let chosen = found.after.measured_s.unwrap_or(f64::INFINITY);
    format!("{} against {}", time(one.median_s()), time(chosen))
}

fn queue(one: &Tried, found: &Found) -> String {
    let chosen = found.tried.get(found.chosen).map_or(0.0, |tried| tried.loaded_rtt_s);
    format!("a segment was under way for {} against {}", time(one.loaded_rtt_s), time(chosen))
}

fn left(direction: Direction, measured: &Measured) -> String {
    let (cost, path_load) = measured.of(direction);
    let (what, verb) = if direction == Direction::Fetch { ("written", "writes") } else { ("read", "reads") };
    if cost.rate < path_load.path.air {
        return format!(
            "the storage {verb} no more than {}, whatever is set: 1 MB cannot be {what} in less than {}",
            speed(cost.rate),
            time(1e6 / cost.rate)
        );
    }
    let least = time(1e6 / path_load.path.air);
    format!(
        "the path carries {} with nothing in the way: 1 MB cannot travel in less than about {least}",
        bits(path_load.path.air)
    )
}

/// A rate of a path.
#[must_use]
pub fn bits(bytes_per_second: f64) -> String {
    format!("{} Mbit/s", digits(bytes_per_second * 8e-6))
}

fn speed(bytes_per_second: f64) -> String {
    match bytes_per_second {
        rate if rate < 1e6 => format!("{} kB/s", digits(rate / 1e3)),
        rate => format!("{} MB/s", digits(rate / 1e6)),
    }
}

/// A time, in the unit that suits it.
#[must_use]
pub fn time(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() => "unknown time".to_owned(),
        s if s < 1e-3 => format!("{} us", digits(s * 1e6)),
        s if s < 1.0 => format!("{} ms", digits(s * 1e3)),
        s => format!("{} s", digits(s)),
    }
}

fn size(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 10_240.0 => format!("{bytes:.0} B"),
        bytes => format!("{:.0} KiB", bytes / 1024.0),
    }
}

fn buffer(buffer: Option<Size>) -> String {
    buffer.map_or("what the kernel gives".to_owned(), |size| size.to_string())
}

/// Three digits that matter.
fn digits(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

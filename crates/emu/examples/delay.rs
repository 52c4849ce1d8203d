//! A long wire: carries Ethernet frames between two TAPs, each after a fixed time. For `tools/outside`, on kernels without netem.
//!
//! ```text
//! ip netns exec A delay TAP_HERE /run/netns/B TAP_THERE MICROSECONDS
//! ```
//!
//! Makes both TAPs, writes the line `ready`, and carries until standard input ends. A line there begins the figures anew; one with a
//! number is another delay from then on, microseconds, and no frame overtakes another. Then
//! it writes one line of JSON: frames carried in each direction, how late they left (CLOCK_MONOTONIC at the write minus the time that was
//! due), and its share of a processor. A wire has no rate and no queue: what shapes stands elsewhere.

use std::collections::VecDeque;
use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, IoSlice, Write};
use std::os::fd::AsFd;

use lasthop_core::units::{Span, Time};
use lasthop_core::wire::offload::HEADER;
use lasthop_emu::{Tap, clock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Longest frame, behind its header: an IPv4 packet of the largest size, an Ethernet header, a VLAN tag.
const FRAME: usize = HEADER + 65_536 + 18;
/// Frames taken from one TAP before the others are looked at.
const BATCH: usize = 64;
/// Width of a bin of lateness, and how many there are; the last one holds all that is later.
const BIN: Span = Span::from_micros(5);
const BINS: usize = 20_000;

/// One direction: frames on the wire, in the order in which they leave.
#[derive(Default)]
struct Wire {
    flying: VecDeque<(Time, Vec<u8>)>,
    /// Buffers to be used again.
    spare: Vec<Vec<u8>>,
}

/// What is said at the end.
struct Metrics {
    carried: [u64; 2],
    refused: u64,
    late: Vec<u64>,
    worst: Span,
    began: Time,
    busy: Span,
}

impl Metrics {
    fn new() -> Self {
        Self {
            carried: [0; 2],
            refused: 0,
            late: vec![0; BINS],
            worst: Span::ZERO,
            began: clock::now(),
            busy: clock::thread_time(),
        }
    }

    fn left(&mut self, direction: usize, late: Span) {
        self.carried[direction] += 1;
        self.late[((late.as_nanos() / BIN.as_nanos()) as usize).min(BINS - 1)] += 1;
        self.worst = self.worst.max(late);
    }

    /// Upper edge of the bin below which `share` of all frames were late, ms.
    fn quantile_ms(&self, share: f64) -> f64 {
        let wanted = share * self.carried.iter().sum::<u64>() as f64;
        let mut seen = 0;
        let bin = self.late.iter().position(|&count| {
            seen += count;
            seen as f64 >= wanted
        });
        (bin.unwrap_or(0) + 1) as f64 * BIN.as_nanos() as f64 / 1e6
    }

    fn json(&self) -> String {
        let busy = clock::thread_time().as_nanos() - self.busy.as_nanos();
        let share = busy as f64 / (clock::now().as_nanos() - self.began.as_nanos()).max(1) as f64;
        format!(
            r#"{{"carried":[{},{}],"refused":{},"late_p50_ms":{:.3},"late_p99_ms":{:.3},"late_max_ms":{:.3},"cpu":{share:.4}}}"#,
            self.carried[0],
            self.carried[1],
            self.refused,
            self.quantile_ms(0.5),
            self.quantile_ms(0.99),
            self.worst.as_nanos() as f64 / 1e6,
        )
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [here, namespace, there, micros] = words.as_slice() else {
        return Err("wanted: TAP_HERE NAMESPACE_FILE TAP_THERE MICROSECONDS".into());
    };
    let delay = Span::from_micros(micros.parse()?);
    let first = Tap::create(here, false)?;
    move_into_link_name_space(File::open(namespace)?.as_fd(), Some(LinkNameSpaceType::Network))?;
    let second = Tap::create(there, false)?;
    println!("ready");
    io::stdout().flush()?;
    println!("{}", carry([&first, &second], delay)?.json());
    Ok(())
}

/// Until standard input ends.
fn carry(taps: [&Tap; 2], mut delay: Span) -> Result<Metrics, Box<dyn Error>> {
    let stdin = io::stdin();
    let mut wires = [Wire::default(), Wire::default()];
    let mut metrics = Metrics::new();
    let mut buffer = vec![0; FRAME];
    loop {
        let timeout = next_due(&wires).map(|due| timespec(due.as_nanos().saturating_sub(clock::now().as_nanos())));
        let mut polled = [
            PollFd::from_borrowed_fd(taps[0].queue(0), PollFlags::IN),
            PollFd::from_borrowed_fd(taps[1].queue(0), PollFlags::IN),
            PollFd::new(&stdin, PollFlags::IN),
        ];
        poll(&mut polled, timeout.as_ref())?;
        let is_ready = [0, 1, 2].map(|i| !polled[i].revents().is_empty());
        for from in 0..2 {
            if is_ready[from] {
                wires[from].take(taps[from], delay, &mut buffer)?;
            }
        }
        for from in 0..2 {
            wires[from].deliver(taps[1 - from], from, &mut metrics);
        }
        if is_ready[2] {
            let mut line = String::new();
            if stdin.lock().read_line(&mut line)? == 0 {
                return Ok(metrics);
            }
            match line.trim() {
                "" => metrics = Metrics::new(),
                micros => delay = Span::from_micros(micros.parse()?),
            }
        }
    }
}

fn next_due(wires: &[Wire; 2]) -> Option<Time> {
    wires.iter().filter_map(|wire| wire.flying.front().map(|(due, _)| *due)).min()
}

impl Wire {
    /// Takes what waits at `tap`, each frame with the time at which it leaves.
    fn take(&mut self, tap: &Tap, delay: Span, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..BATCH {
            let Some(len) = tap.read(0, buffer)? else { return Ok(()) };
            let mut frame = self.spare.pop().unwrap_or_default();
            frame.clear();
            frame.extend_from_slice(&buffer[..len]);
            let due = (clock::now() + delay).max(self.flying.back().map_or(Time::ZERO, |(due, _)| *due));
            self.flying.push_back((due, frame));
        }
        Ok(())
    }

    /// Writes what is due.
    fn deliver(&mut self, tap: &Tap, direction: usize, metrics: &mut Metrics) {
        while let Some(&(due, _)) = self.flying.front() {
            let now = clock::now();
            if due > now {
                return;
            }
            let Some((_, frame)) = self.flying.pop_front() else { return };
            // An interface that is down takes nothing; a wire whose end is unplugged loses it likewise.
            match tap.write(&[IoSlice::new(&frame)]) {
                Ok(()) => metrics.left(direction, Span::from_nanos(now.as_nanos() - due.as_nanos())),
                Err(_) => metrics.refused += 1,
            }
            self.spare.push(frame);
        }
    }
}

fn timespec(nanos: u64) -> Timespec {
    Timespec { tv_sec: (nanos / 1_000_000_000).cast_signed(), tv_nsec: (nanos % 1_000_000_000).cast_signed() as _ }
}

//! Traces of a sender as text, in the manner of packetdrill.
//!
//! ```text
//! # a comment describes the steps below it and stands in the message when one of them fails
//! 0 ms: poll -> syn
//! 100 ms: syn-ack window 64 -> cwnd 2; sends 0..1
//! 200 ms: ack 1 -> cwnd 3; sends 2..3
//! ```
//!
//! Numbers are segments of 1000 bytes. `ack 5` acknowledges 0..4, and may add `window 10` and `sack 7..9 12`. Behind
//! the arrow stand, separated by `;`, what the sender sends, in order (`sends`, `resends`, `syn`, `probe`; nothing is
//! sent when none of them stands there; `anything` accepts whatever it is), and where it then is (`cwnd`, `ssthresh`, `pipe`, `deadline`, `timeouts`,
//! `recovering`, `open`).

#![allow(dead_code, reason = "each test file uses a part")]

pub mod path;

use std::fmt::Write;

use lasthop_core::units::Time;
use lasthop_tcp::{Ack, SackBlocks, Segment, Sender, SenderParams};

pub const MSS: u64 = 1000;

pub fn ms(milliseconds: f64) -> Time {
    Time::from_nanos((milliseconds * 1e6).round() as u64)
}

/// Parameters whose numbers are easy to follow: MSS 1000, initial window 2, no limited transmit.
pub fn plain(cc: lasthop_tcp::Algorithm) -> SenderParams {
    SenderParams { cc, mss: MSS as u32, initial_window: 2, limited_transmit: false, ..SenderParams::default() }
}

/// Runs a script against a fresh sender, which is returned for more questions.
pub fn play(params: SenderParams, script: &str) -> Sender {
    let mut player = Player { sender: Sender::new(params), window: u64::MAX, now: Time::ZERO };
    let mut description = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.strip_prefix('#') {
            Some(comment) => description = comment.trim().to_owned(),
            None => player.step(line, &description),
        }
    }
    player.sender
}

struct Player {
    sender: Sender,
    /// Bytes that every following acknowledgment offers.
    window: u64,
    now: Time,
}

impl Player {
    fn step(&mut self, line: &str, description: &str) {
        let (time, rest) = line.split_once(" ms:").unwrap_or_else(|| panic!("no time in `{line}`"));
        self.now = ms(time.trim().parse().expect("a time in ms"));
        let (event, expected) = rest.split_once("->").unwrap_or((rest, ""));
        self.happen(event.trim());
        let mut sent = String::new();
        while let Some(segment) = self.sender.poll(self.now) {
            write!(sent, "{} ", name(&segment)).expect("a string");
            assert!(sent.len() < 10_000, "the sender does not stop: {sent}");
        }
        let mut expected_sent = String::new();
        for part in expected.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (word, value) = part.split_once(' ').unwrap_or((part, ""));
            match word {
                "sends" | "resends" => {
                    for number in numbers(value) {
                        let mark = if word == "sends" { "" } else { "*" };
                        write!(expected_sent, "{number}{mark} ").expect("a string");
                    }
                }
                "anything" => {}
                "syn" | "probe" => expected_sent.push_str(&format!("{word} ")),
                _ => self.look(word, value, line, description),
            }
        }
        if expected.contains("anything") {
            return;
        }
        assert_eq!(sent, expected_sent, "sent at `{line}` ({description}); * is sent again");
    }

    fn happen(&mut self, event: &str) {
        let mut words = event.split_whitespace().peekable();
        let mut ack = Ack::default();
        match words.next() {
            Some("poll") => return,
            Some("stop") => return self.sender.stop(),
            Some("syn-ack") => ack.syn = true,
            Some("ack") => ack.offset = words.next().expect("a segment").parse::<f64>().expect("a number").mul(),
            other => panic!("unknown event {other:?}"),
        }
        while let Some(word) = words.next() {
            match word {
                "window" => self.window = words.next().expect("a window").parse::<f64>().expect("a number").mul(),
                "sack" => {
                    let mut blocks = SackBlocks::default();
                    for block in words.by_ref() {
                        let numbers: Vec<u64> = numbers(block).collect();
                        blocks.push(numbers[0] * MSS, (numbers[numbers.len() - 1] + 1) * MSS);
                    }
                    ack.sack = blocks;
                }
                other => panic!("unknown word {other}"),
            }
        }
        ack.window_bytes = self.window.min(1 << 40);
        self.sender.on_ack(self.now, &ack);
    }

    fn look(&self, word: &str, value: &str, line: &str, description: &str) {
        let snapshot = self.sender.snapshot();
        let found = match word {
            "cwnd" => snapshot.cwnd,
            "ssthresh" => snapshot.ssthresh,
            "pipe" => snapshot.inflight as f64 / MSS as f64,
            "timeouts" => snapshot.timeouts as f64,
            "deadline" => self.sender.next_deadline().map_or(f64::NAN, |time| time.as_nanos() as f64 / 1e6),
            "recovering" => return assert!(snapshot.recovering, "not in recovery after `{line}` ({description})"),
            "open" => return assert!(!snapshot.recovering, "in recovery after `{line}` ({description})"),
            other => panic!("unknown word {other}"),
        };
        let expected: f64 = value.trim().parse().unwrap_or_else(|_| panic!("no number in `{line}`"));
        let close = found == expected || (found - expected).abs() < 1e-3 * expected.abs().max(1.0);
        assert!(close, "{word} is {found} and not {expected} after `{line}` ({description}): {snapshot:?}");
    }
}

trait InSegments {
    fn mul(self) -> u64;
}

impl InSegments for f64 {
    fn mul(self) -> u64 {
        (self * MSS as f64).round() as u64
    }
}

fn name(segment: &Segment) -> String {
    let mark = if segment.again { "*" } else { "" };
    match segment.bytes {
        _ if segment.syn => "syn".to_owned(),
        0 => "probe".to_owned(),
        _ => format!("{}{mark}", segment.offset as f64 / MSS as f64),
    }
}

/// `8..10 12`: 8, 9, 10 and 12.
fn numbers(text: &str) -> impl Iterator<Item = u64> {
    let ranges: Vec<(u64, u64)> = text
        .split_whitespace()
        .map(|range| {
            let (first, last) = range.split_once("..").unwrap_or((range, range));
            (first.parse().expect("a segment"), last.parse().expect("a segment"))
        })
        .collect();
    ranges.into_iter().flat_map(|(first, last)| first..=last)
}

//! Work is conserved: one greedy flow, and any set of others that never need much, get together what they get without control,
//! wherever the bottleneck is and whichever way the greedy flow goes.
//!
//! `wanted = 0.97 (greedy_off - max(0, small_on - small_off))   [bit/s]`
//! counted from 2 s after the greedy flow's start on. What the small ones carry more when the queue is short is no loss; on the
//! air a packet costs as much as 800 bytes besides its own. With another seed and no control the same ratio is above 0.98.
//!
//! A case that fails is printed as a scenario, to be played with `lasthop sim`, and with `--set control.window=none` beside it.
//! `tools/study/conserve.py` asks the same of homes that it draws itself.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use lasthop_home::report::Report;
use lasthop_home::scenario::Scenario;
use lasthop_medium::random::Stream;
use lasthop_sim::Options;

const WANTED: f64 = 0.97;
/// Failed cases that are printed whole.
const SHOWN: usize = 3;
/// What a packet costs on the channel besides its own bytes: contention, preamble, ACK.
const CHANNEL_BYTES: f64 = 800.0;

const LASTS_S: f64 = 8.0;
const STARTUP_S: f64 = 2.0;

/// Places of the bottleneck, with the way of the greedy flow.
const PLACES: [(&str, Option<bool>, u64); 4] =
    [("air", None, 25), ("port", None, 35), ("WAN down", Some(true), 20), ("WAN up", Some(false), 20)];
/// Rate of an 802.11g station, and about what it gets alone, Mbit/s.
const AIR: [(u64, f64); 4] = [(6, 5.0), (12, 9.0), (24, 15.0), (54, 25.0)];

struct Case {
    /// Place, way, rate, round trip, sender.
    what: String,
    place: &'static str,
    down: bool,
    text: String,
}

struct Draw(Stream);

impl Draw {
    fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.below(1 << 32) as f64 / (1_u64 << 32) as f64
    }

    fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        self.uniform(low.ln(), high.ln()).exp()
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.below(of.len() as u64) as usize]
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.0.below(100) < percent
    }
}

/// What another case of the same number has that the first has not.
#[derive(Clone, Copy, PartialEq)]
enum Variant {
    Tcp,
    /// The greedy flow is QUIC.
    Quic,
    /// The bottleneck is a port that delivers in bunches, at the multiples of 1 to 20 ms.
    Bunches,
}

fn case(number: u64, variant: Variant) -> Case {
    let draw = &mut Draw(Stream::named(number, "work conservation"));
    let mut left = draw.0.below(100);
    let (place, way, _) = *PLACES
        .iter()
        .find(|(.., share)| {
            let found = left < *share;
            left = left.saturating_sub(*share);
            found
        })
        .expect("the shares are 100 %");
    let (place, way) = if variant == Variant::Bunches { ("port", None) } else { (place, way) };
    let down = way.unwrap_or_else(|| draw.chance(50));
    let (station, channel) = draw.one(&AIR);
    let rate = if place == "air" { channel } else { draw.log_uniform(5.0, 50.0) };
    let rtt = draw.log_uniform(5.0, 120.0);
    let buffer = (rate * rtt / 12.0 * draw.log_uniform(1.0, 4.0)).max(60.0) as u64;
    let times = draw.one(&[1.0, 2.0, 5.0, 10.0]);
    let start = draw.one(&[0.0, 0.5, 1.5]);
    let late = if draw.chance(10) { draw.one(&["500ms", "1s", "2s"]) } else { "0s" };
    let cc = draw.one(&["cubic", "cubic", "cubic", "cubic", "newreno", "bbr"]);
    let mut text = format!(
        "format = 1\nname = \"conservation-{number}\"\nseed = {number}\nduration = \"{LASTS_S}s\"\nmeasure_from = \"{}s\"\n",
        start + STARTUP_S
    );
    let (line_down, line_up) = match place {
        "WAN down" => (rate, rate / times),
        "WAN up" => (rate * times, rate),
        _ => (1000.0, 1000.0),
    };
    let _ = write!(
        text,
        "[wan]\ndelay = \"1ms\"\nrate_down = \"{line_down:.2}Mbit/s\"\nrate_up = \"{line_up:.2}Mbit/s\"\n\
         buffer_down = {buffer}\nbuffer_up = {buffer}\n"
    );
    let queues = format!("queue = {{ limit = {buffer} }}\nstation_queue = {{ limit = {buffer} }}\n");
    let hop = match place {
        "air" => format!("[wifi]\nrate = \"{station}Mbit/s\"\n"),
        // 60 us of a packet's time are the bridge's.
        "port" => format!(
            "[bridge]\nrate = \"{:.3}Mbit/s\"\ncontrol_rate = \"100Gbit/s\"\n",
            12_272.0 / (12_000.0 / rate - 60.0)
        ),
        _ => "[bridge]\nrate = \"4Gbit/s\"\ncontrol_rate = \"100Gbit/s\"\n".to_owned(),
    };
    text += &(hop + &queues);
    let near = draw.log_uniform(1.0, 60.0);
    let _ = write!(
        text,
        "[[server]]\nname = \"W1\"\ndelay = \"{:.1}ms\"\n[[server]]\nname = \"W2\"\ndelay = \"{near:.1}ms\"\n\
         [[station]]\nname = \"S1\"\n[[station]]\nname = \"S2\"\n[control.window]\ncapacity = \"learn\"\nstart = \"{late}\"\n",
        (rtt / 2.0 - 1.0).max(0.5)
    );
    let ends = |down: bool, server: &str, station: &str| match down {
        true => format!("from = \"{server}\"\nto = \"{station}\"\n"),
        false => format!("from = \"{station}\"\nto = \"{server}\"\n"),
    };
    let kind = if variant == Variant::Quic { "quic" } else { "ftp" };
    let _ = write!(
        text,
        "[[flow]]\nname = \"greedy\"\nkind = \"{kind}\"\ncc = \"{cc}\"\nstart = \"{start}s\"\n{}",
        ends(down, "W1", "S1")
    );
    let count = draw.one(&[0_u32, 1, 1, 2, 3, 5, 10, 30]);
    for i in 1..=count {
        let (kind, keys) = small(draw);
        let ends = ends(draw.chance(60), draw.one(&["W1", "W2"]), draw.one(&["S1", "S2"]));
        let begins = draw.uniform(0.0, 1.5);
        let _ = write!(text, "[[flow]]\nname = \"{kind}-{i}\"\nstart = \"{begins:.2}s\"\n{ends}{keys}\n");
    }
    let interval = draw.log_uniform(1.0, 20.0);
    if variant == Variant::Bunches {
        text = text.replace("[bridge]\n", &format!("[bridge]\ndelivery_interval = \"{interval:.1}ms\"\n"));
    }
    let late = if late == "0s" { String::new() } else { format!(", control from {late}") };
    let way = if down { "down" } else { "up" };
    let what = format!("{place}, {way}, {rate:.1} Mbit/s, {rtt:.0} ms, {kind} {cc}, {count} small{late}");
    Case { what, place, down, text }
}

/// A flow that never needs much: what it is called, its keys.
fn small(draw: &mut Draw) -> (&'static str, String) {
    let stream = |size: f64, every: f64| {
        let size = size.min(1472.0).round() + 28.0;
        format!(
            "kind = \"cbr\"\ncc = \"cubic\"\nsize = \"{size}B\"\nrate = \"{:.0}bit/s\"",
            (size * 8.0 / every).max(8.0)
        )
    };
    let (kind, mut keys) = match draw.0.below(100) {
        0..30 => ("idle", stream(draw.one(&[50.0, 100.0, 500.0]), draw.one(&[0.05, 0.1, 0.5, 1.0]))),
        30..50 => ("poll", stream(draw.log_uniform(100.0, 1400.0), draw.log_uniform(0.1, 1.0))),
        50..65 => ("push", stream(draw.log_uniform(50.0, 1400.0), draw.log_uniform(1.5, 10.0))),
        65..85 => {
            let (request, response) = (draw.log_uniform(50.0, 1400.0), draw.log_uniform(100.0, 30_000.0));
            let (think, every) = (draw.log_uniform(0.5, 500.0), draw.log_uniform(200.0, 3000.0));
            let keys = format!(
                "kind = \"request-response\"\nrequest = \"{request:.0}B\"\nresponse = \"{response:.0}B\"\n\
                 think = \"{think:.1}ms\"\nevery = \"{every:.0}ms\""
            );
            return ("ask", keys);
        }
        85..90 => {
            let (window, mss) = (2 + draw.0.below(3), draw.one(&[200, 536]));
            return ("tiny", format!("kind = \"ftp\"\nwindow = {window}\nmss = \"{mss}B\""));
        }
        _ => return ("call", format!("kind = \"{}\"", draw.one(&["voip", "audio", "game-server"]))),
    };
    if draw.chance(15) {
        keys += "\nhalf_close = true";
    }
    (kind, keys)
}

/// What the greedy flow gets, and what others take of its bottleneck, bit/s.
fn carried(report: &Report, case: &Case) -> (f64, f64) {
    let on_channel = case.place == "air";
    let seconds = report.duration_s - report.measure_from_s;
    let mut taken = (0.0, 0.0);
    for flow in &report.flows {
        let is_down = flow.to.starts_with('S');
        let metrics = &flow.metrics;
        if flow.name == "greedy" {
            taken.0 = metrics.goodput_bps;
        } else if on_channel || is_down == case.down {
            let besides = if on_channel { CHANNEL_BYTES * 8.0 * metrics.delivered as f64 / seconds } else { 0.0 };
            taken.1 += metrics.rate_bps + besides;
        }
    }
    taken
}

fn play(case: &Case, set: &[&str]) -> (f64, f64) {
    let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
    let home = Scenario::parse(&case.text, "case.toml", &set).unwrap_or_else(|e| panic!("{e}\n{}", case.text));
    let report = lasthop_sim::run(&home, &mut Options::default()).unwrap_or_else(|e| panic!("{e}\n{}", case.text));
    carried(&report, case)
}

/// Share of what the greedy flow should get, and a line of words.
fn judge(case: &Case) -> (f64, String) {
    let (off, small_off) = play(case, &["control.window=none"]);
    let (on, small_on) = play(case, &[]);
    let share = on / (off - (small_on - small_off).max(0.0)).max(1.0);
    let words = format!(
        "{share:.3}: {:.2} -> {:.2} Mbit/s, small {:.2} -> {:.2}; {}",
        off / 1e6,
        on / 1e6,
        small_off / 1e6,
        small_on / 1e6,
        case.what
    );
    (share, words)
}

/// So many of the `cases` are known to get less than is wanted: most are over long paths, of senders that left slow start early, or of QUIC,
/// which is told by drops (`book/src/law.md`). None is wanted; a law that fails in more is worse than this one.
fn is_conserved(cases: u64, variant: Variant, known: usize) {
    let next = AtomicU64::new(1);
    let work = || {
        let mut failed = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number > cases {
                return failed;
            }
            let case = case(number, variant);
            let (share, words) = judge(&case);
            if share < WANTED {
                failed.push((share, words, case));
            }
        }
    };
    let mut failed: Vec<(f64, String, Case)> = thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, |n| n.get());
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no case panics")).collect()
    });
    failed.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (_, words, case) in failed.iter().take(SHOWN) {
        println!("# {words}\n{}", case.text);
    }
    for (_, words, _) in failed.iter().take(20) {
        println!("{words}");
    }
    for (place, ..) in PLACES {
        println!("{place}: {} failed", failed.iter().filter(|(.., case)| case.place == place).count());
    }
    let count = failed.len();
    assert!(count <= known, "{count} of {cases} cases get less than {WANTED} of what small flows leave");
}

#[test]
fn a_greedy_flow_gets_what_small_ones_leave_wherever_the_bottleneck_is() {
    is_conserved(1000, Variant::Tcp, 24);
}

#[test]
fn a_greedy_flow_of_quic_gets_what_small_ones_leave() {
    // 68 while it was told more often than once in the time of an answer, and R took what it was cut to for all there is.
    is_conserved(300, Variant::Quic, 60);
}

#[test]
fn over_a_port_that_delivers_in_bunches_a_greedy_flow_gets_what_small_ones_leave() {
    is_conserved(300, Variant::Bunches, 18);
}

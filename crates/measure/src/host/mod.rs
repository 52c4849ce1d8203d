//! What `lasthopd` and `lasthop` share to measure a home: options, the loop with clock and sockets, and the report as text.

mod text;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use clap::{Args, ValueEnum};
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::progress::Line;
use lasthop_command::root;
use lasthop_command::signals::Stop;
use lasthop_core::units::{BitRate, Span, Time};
use lasthop_status::{DEFAULT_SOCKET, command, query};

use crate::plan::{Direction, LEAST_PAIRS, Plan, SETTLING_S, USUAL_PAIRS, in_minutes};
use crate::report::Report;
use crate::session::{Action, Params, Progress, Refusal, Session};
pub use text::{notes, render};

/// What is typed to measure a home.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// How long in all; as many pairs of blocks as fit. 12 pairs and more are advised, 6 are the least
    #[arg(long = "for", value_name = "TIME", default_value = "1h")]
    time: Span,
    /// How many pairs of blocks, in place of a time
    #[arg(long, value_name = "N", conflicts_with = "time")]
    pairs: Option<usize>,
    /// Length of a block, in whole seconds
    #[arg(long, value_name = "TIME", default_value = "60s")]
    block: Span,
    /// What does not count at the beginning of each block: a queue needs about 12 s to fill
    #[arg(long, value_name = "TIME", default_value = "15s")]
    discard: Span,
    /// Seed of the order of the blocks [default: another one each time; the report holds it]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Which data is compared
    #[arg(long, value_enum, default_value_t = Way::Down)]
    direction: Way,
    /// Put the names of devices into the report; without it they are "device 1" and so on
    #[arg(long)]
    names: bool,
    /// The controller's status socket; its command socket is beside it
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    socket: PathBuf,
}

/// [`Direction`], on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Way {
    /// Downloads
    Down,
    /// Uploads
    Up,
}

/// A measurement that ended by itself, or by a signal.
#[derive(Clone, Debug)]
pub struct Measured {
    /// What was measured.
    pub report: Report,
    /// What ended it early.
    pub signal: Option<i32>,
}

impl Measured {
    /// How a program ends after it: a signal is said, with what became of the measurement.
    ///
    /// # Errors
    /// The signal.
    pub fn end(&self) -> Outcome {
        match self.signal {
            None => Ok(()),
            Some(signal) => {
                let pairs = self.report.found().counted;
                let kept =
                    if pairs < LEAST_PAIRS { "too few pairs to say anything" } else { "what was measured is above" };
                Err(Failure::Paused(signal, format!("control goes on; {kept}")))
            }
        }
    }
}

impl Options {
    /// The plan that they ask for.
    ///
    /// # Errors
    /// When there is none such.
    pub fn plan(&self) -> Outcome<Plan> {
        let (block_s, discard_s) = (whole_seconds(self.block, "--block")?, whole_seconds(self.discard, "--discard")?);
        let pairs = match self.pairs {
            Some(pairs) => pairs,
            None => Plan::pairs_in(self.time, block_s).map_err(Failure::request)?,
        };
        let direction = match self.direction {
            Way::Down => Direction::Down,
            Way::Up => Direction::Up,
        };
        let seed = self.seed.unwrap_or_else(any_seed);
        Plan { pairs, block_s, discard_s, seed, direction }.new().map_err(Failure::request)
    }
}

fn whole_seconds(time: Span, flag: &str) -> Outcome<u32> {
    let seconds = time.as_nanos() / 1_000_000_000;
    match u32::try_from(seconds) {
        Ok(whole) if Span::from_secs(seconds) == time => Ok(whole),
        _ => Err(Failure::request(format!("{flag} is {time}; write whole seconds, such as 60s"))),
    }
}

/// A seed that nobody chose: the nanoseconds of the clock, stirred.
#[expect(clippy::disallowed_methods, reason = "the report holds it, so that the order can be had again")]
fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // Short enough to be typed, and exact in every reader of JSON.
    crate::plan::bits(now.as_nanos() as u64, u64::from(std::process::id())) >> 32
}

/// What a plan lacks, in sentences for stderr.
fn cautions(plan: &Plan) -> Vec<String> {
    let mut cautions = Vec::new();
    if plan.pairs < LEAST_PAIRS {
        cautions.push(format!("nothing can be said of {} pairs; this only tries whether measuring works", plan.pairs));
    } else if plan.pairs < USUAL_PAIRS {
        cautions.push(format!(
            "{} pairs show large effects only, and some may have no load; {USUAL_PAIRS} and more are better",
            plan.pairs
        ));
    }
    if plan.discard_s < SETTLING_S {
        cautions.push(format!(
            "a queue takes up to {SETTLING_S} s to fill; with {} s discarded, waits without control may look shorter than they are",
            plan.discard_s
        ));
    }
    cautions
}

/// What an active probe saw between two instants, round trips per minute; `None` of too little.
pub type Probe<'a> = dyn FnMut(Instant, Instant) -> Option<f64> + 'a;

/// Asks the probe for what counts of each block, when the block is over.
struct Probed<'a> {
    probe: &'a mut Probe<'a>,
    block: usize,
    counts_from: Option<Instant>,
    /// Number of a block, and what was seen in it.
    seen: Vec<(usize, f64)>,
}

impl Probed<'_> {
    /// Where the measurement stands; `None`: it is over.
    fn on_progress(&mut self, now: Instant, at: Option<&Progress>) {
        let is_over = at.is_none_or(|at| at.blocks != self.block);
        if let Some(from) = self.counts_from.filter(|_| is_over) {
            self.seen.extend((self.probe)(from, now).map(|rpm| (self.block, rpm)));
            self.counts_from = None;
        }
        if let Some(at) = at {
            self.block = at.blocks;
            self.counts_from = self.counts_from.or(at.is_counting.then_some(now));
        }
    }
}

/// Measures, and says on stderr where it stands. `probe` is asked once for each block.
///
/// # Errors
/// When the request is wrong, or the controller cannot be measured.
#[expect(clippy::disallowed_methods, reason = "this is the host, which has the clock")]
pub fn measure<'a>(options: &Options, stop: &Stop, probe: &'a mut Probe<'a>) -> Outcome<Measured> {
    let plan = options.plan()?;
    let started_unix_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let mut session = Session::new(Params { plan, names: options.names, started_unix_s });
    let mut line = Line::new("measuring");
    cautions(&plan).iter().for_each(|caution| line.note(caution));
    let begun = Instant::now();
    let now = || Time::from_nanos(begun.elapsed().as_nanos() as u64);
    let mut probed = Probed { probe, block: 0, counts_from: None, seen: Vec::new() };
    loop {
        if stop.has_come() {
            session.stop();
        }
        while let Some(action) = session.poll(now()) {
            carry_out(&mut session, &action, &options.socket, &now);
        }
        if session.is_over() {
            probed.on_progress(Instant::now(), None);
            break;
        }
        let at = session.snapshot(now());
        probed.on_progress(Instant::now(), Some(&at));
        show(&mut line, &at);
        while !stop.has_come() {
            let left = session.next_deadline().map_or(Span::ZERO, |at| at.since(now()));
            if left == Span::ZERO {
                break;
            }
            std::thread::sleep(Duration::from_nanos(left.as_nanos()).min(Duration::from_millis(50)));
        }
    }
    line.end();
    if let Some(refusal) = session.refusal() {
        if matches!(refusal, Refusal::NotAllowed(_)) {
            root::require("pausing control for half of the time")?;
        }
        return Err(Failure::work(refusal.clone()));
    }
    let mut report = session.report();
    probed.seen.into_iter().for_each(|(block, rpm)| report.set_rpm(block, rpm));
    Ok(Measured { report, signal: stop.take() })
}

fn carry_out(session: &mut Session, action: &Action, socket: &Path, now: &impl Fn() -> Time) {
    match action {
        Action::Ask => match query(socket) {
            Ok(status) => session.on_status(now(), &status),
            Err(error) => session.on_no_status(now(), &error.to_string()),
        },
        Action::Tell(request) => {
            if let Err(error) = command::ask(socket, request) {
                session.on_refused(&error.to_string());
            }
        }
    }
}

fn show(line: &mut Line, at: &Progress) {
    let done = 1.0 - at.left_s / (at.left_s + at.elapsed_s).max(1e-9);
    line.step(at.elapsed_s, done, &in_words(at));
}

fn in_words(at: &Progress) -> String {
    let load = if at.is_loaded { "loaded" } else { "not loaded" };
    format!(
        "block {} of {}, {} left; {}, {load}; {} of {} pairs count",
        (at.blocks + 1).min(at.of),
        at.of,
        in_minutes(Span::from_secs_f64(at.left_s.ceil())),
        BitRate::bps(at.rate_bps).rounded(),
        at.counted_pairs,
        at.pairs
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        options: Options,
    }

    fn plan(typed: &[&str]) -> Outcome<Plan> {
        Typed::try_parse_from(["measure"].iter().chain(typed)).expect("options").options.plan()
    }

    #[test]
    fn an_hour_holds_thirty_pairs_and_each_measurement_has_a_seed() {
        let usual = plan(&[]).unwrap();
        assert_eq!((usual.pairs, usual.block_s, usual.discard_s), (30, 60, 15));
        assert_eq!(plan(&["--seed", "7", "--pairs", "2", "--direction", "up"]).unwrap().direction, Direction::Up);
        let short = plan(&["--for", "5min"]).unwrap_err();
        assert!(matches!(short, Failure::Request(_)), "{short:?}");
        assert!(plan(&["--block", "1500ms"]).is_err() && plan(&["--discard", "60s"]).is_err());
        assert!(Typed::try_parse_from(["measure", "--for", "2h", "--pairs", "3"]).is_err());
    }

    #[test]
    fn few_pairs_and_short_settling_are_said_beforehand() {
        let cautions = |typed: &[&str]| cautions(&plan(typed).unwrap()).len();
        assert_eq!(
            (cautions(&[]), cautions(&["--pairs", "8"]), cautions(&["--pairs", "3", "--discard", "3s"])),
            (0, 1, 2)
        );
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the probe is asked by the host's clock")]
    fn the_probe_is_asked_for_what_counts_of_each_block() {
        let zero = Instant::now();
        let second = |s| zero + Duration::from_secs(s);
        let mut asked = Vec::new();
        let mut probe = |from: Instant, until: Instant| {
            asked.push((from.duration_since(zero).as_secs(), until.duration_since(zero).as_secs()));
            // Of the second block there was too little.
            (asked.len() != 2).then_some(asked.len() as f64)
        };
        let mut probed = Probed { probe: &mut probe, block: 0, counts_from: None, seen: Vec::new() };
        for s in 0..30 {
            // Blocks of ten seconds, of which three do not count.
            let at = Progress { blocks: s as usize / 10, is_counting: s % 10 >= 3, ..Progress::default() };
            probed.on_progress(second(s), Some(&at));
        }
        probed.on_progress(second(30), None);
        assert_eq!(probed.seen, [(0, 1.0), (2, 3.0)]);
        assert_eq!(asked, [(3, 10), (13, 20), (23, 30)]);
    }

    #[test]
    fn progress_tells_where_it_stands_and_not_what_comes_out() {
        let at = Progress {
            blocks: 6,
            of: 60,
            left_s: 3_180.0,
            rate_bps: 18_200_000,
            is_loaded: true,
            counted_pairs: 3,
            pairs: 3,
            ..Progress::default()
        };
        assert_eq!(in_words(&at), "block 7 of 60, 53 min left; 18.2 Mbit/s, loaded; 3 of 3 pairs count");
    }
}

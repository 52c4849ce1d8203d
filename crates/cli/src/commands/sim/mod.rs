//! `lasthop sim`: any scenario in virtual time, packet by packet.

mod follow;
mod trace;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use clap::Args;
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::output::{Draft, Sink};
use lasthop_command::signals::Stop;
use lasthop_command::terminal::Look;
use lasthop_command::{REVISION, output, progress};
use lasthop_home::course::Course;
use lasthop_home::report::Report;
use lasthop_home::scenario::Scenario;
use lasthop_sim::{Options, Progress, SimError, TraceLine};

use crate::{account, html};

const AFTER_HELP: &str = "\
Examples:
  lasthop sim scenarios/papers/sap-law.toml
  lasthop sim scenarios/papers/sap-law.toml --set control.window=none --seed 7
  lasthop sim home.toml --set station.N3.distance=20m --set flow.ftp.cc=cubic --json result.json
  lasthop sim home.toml --pcap air.pcap --trace windows.jsonl
  lasthop sim home.toml --html run.html && xdg-open run.html

Needs no root. The same scenario and seed give the same report on every machine, but for how long
it took. --set reaches any key of the file: `*` stands for part of a name (station.*.distance=5m),
`none` takes a table or a key away (control.window=none), the later --set wins.

The table shows packets sent and lost, goodput, one-way delay, the delay above the flow's own
minimum (added) and jitter, of what was sent from measure_from on. The JSON report holds every
figure; schema/report.md says what each means.

--pcap holds every frame of the air with radiotap, 802.11, IP and UDP or TCP headers, and no
payload. --trace holds a JSON object per line: t_s, flow or queue, and of cwnd, ssthresh (segments),
offered_window, clamped_window, inflight (bytes), queue_packets, rate_bps, bandwidth_bps what is
known, at most one line per TCP flow or queue and ms; delay_ms of every packet that is not TCP.";

/// Simulate a scenario, packet by packet in virtual time
///
/// Plays the scenario's home as fast as this machine can, and reports what became of every packet. The access point
/// decides with the code of the real controller.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// The scenario file
    scenario: PathBuf,
    /// Seed of everything random [default: the scenario's]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Change a key of the scenario: wifi.queue.limit=100, control.window=none; may be given more than once
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Write the report as JSON; "-" is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the run as a page for a browser: tables, and delays, windows and the queue over time; "-" is stdout
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write every frame of the air for Wireshark; "-" is stdout
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write windows and queues over time as JSON lines; "-" is stdout
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// A progress line appears when a run lasts longer than this, and at most so many a second.
const PATIENCE: Duration = Duration::from_secs(1);
const REDRAW: Duration = Duration::from_millis(100);

/// Simulates once and shows the report.
pub fn run(arguments: &Arguments) -> Outcome {
    let open = |path: &Option<PathBuf>| path.as_deref().map(Sink::open).transpose();
    let (json, pcap, trace) = (open(&arguments.json)?, open(&arguments.pcap)?, open(&arguments.trace)?);
    let page = html::open(arguments.html.as_deref())?;
    let to_stdout = [&json, &pcap, &trace, &page].into_iter().flatten().filter(|sink| sink.is_stdout()).count();
    if to_stdout > 1 {
        return Err(Failure::request(anyhow!("only one of --json, --html, --pcap and --trace can go to stdout")));
    }
    let mut sets = arguments.set.clone();
    sets.extend(arguments.seed.map(|seed| format!("seed={seed}")));
    let scenario = Scenario::load(&arguments.scenario, &sets).map_err(Failure::request)?;
    let stop = Stop::on_signals()?;
    let draft = |sink: &Option<Sink>| sink.as_ref().map(Sink::draft).transpose();
    let (mut capture, mut lines) = (draft(&pcap)?, draft(&trace)?);
    let mut course = page.as_ref().map(|_| Course::new(&scenario));
    let report = match simulate(&scenario, &stop, (capture.as_mut(), lines.as_mut(), course.as_mut())) {
        // Who reads "-" has seen enough, as `head` does.
        Err(SimError::Write(error)) if to_stdout > 0 && error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
        outcome => outcome.map_err(|error| failure(error, &stop))?,
    };
    stop.check()?;
    [capture, lines].into_iter().flatten().try_for_each(Draft::keep)?;
    if let Some(json) = &json {
        json.write_json(&report)?;
    }
    if let (Some(page), Some(course)) = (&page, &course) {
        page.write_text(&html::of_run(&scenario, &report, course))?;
    }
    let look = if to_stdout > 0 { Look::stderr() } else { Look::stdout() };
    let text = account::of_run(&report, look);
    if to_stdout > 0 {
        eprint!("{text}");
        return Ok(());
    }
    output::print_out(&text)?;
    arguments.html.as_deref().into_iter().for_each(html::tell);
    Ok(())
}

fn simulate(
    scenario: &Scenario,
    stop: &Stop,
    (capture, lines, mut course): (Option<&mut Draft>, Option<&mut Draft>, Option<&mut Course>),
) -> Result<Report, SimError> {
    let mut show = Show::new(&scenario.name);
    let mut goes_on = |progress: Progress| {
        show.show(&progress);
        !stop.has_come()
    };
    let mut write = lines.map(trace::writer);
    let mut options = Options { progress: Some(&mut goes_on), revision: REVISION, ..Options::default() };
    let is_wanted = write.is_some() || course.is_some();
    let mut packets = Vec::new();
    options.packets = course.is_some().then_some(&mut packets);
    let sizes = follow::segment_sizes(scenario);
    let mut trace = |line: &TraceLine| {
        course.iter_mut().for_each(|course| follow::line(course, &sizes, line));
        write.as_mut().map_or(Ok(()), |write| write(line))
    };
    if is_wanted {
        options.trace = Some(&mut trace);
    }
    if let Some(capture) = capture {
        options.pcap = Some(capture);
    }
    let report = timed(scenario, &mut options);
    show.end();
    course.iter_mut().for_each(|course| course.set_packets(std::mem::take(&mut packets)));
    report
}

/// Runs the simulator and fills in how long it took.
pub fn timed(scenario: &Scenario, options: &mut Options<'_>) -> Result<Report, SimError> {
    let since = Instant::now();
    let mut report = lasthop_sim::run(scenario, options)?;
    report.run.wall_s = since.elapsed().as_secs_f64();
    Ok(report)
}

/// What the command says of an error of the simulator.
pub fn failure(error: SimError, stop: &Stop) -> Failure {
    match error {
        SimError::Stopped => stop.check().err().unwrap_or_else(|| Failure::work(error)),
        SimError::Scenario(error) => Failure::request(error),
        error => Failure::work(error),
    }
}

/// The progress of a run that lasts, on a terminal.
struct Show {
    line: progress::Line,
    since: Instant,
    next: Duration,
}

impl Show {
    fn new(label: &str) -> Self {
        Self { line: progress::Line::new(label), since: Instant::now(), next: PATIENCE }
    }

    fn show(&mut self, progress: &Progress) {
        let elapsed = self.since.elapsed();
        if elapsed < self.next || !self.line.is_terminal() {
            return;
        }
        self.next = elapsed + REDRAW;
        let (now, end) = (progress.now.as_nanos() as f64 / 1e9, progress.end.as_nanos() as f64 / 1e9);
        let left = elapsed.as_secs_f64() * (end - now) / now.max(1e-9);
        let text =
            format!("{now:>3.0}/{end:.0} s  {:.1} million events, {left:.0} s left", progress.events as f64 / 1e6);
        self.line.step(elapsed.as_secs_f64(), now / end.max(1e-9), &text);
    }

    fn end(&self) {
        if self.next > PATIENCE {
            self.line.end();
        }
    }
}

//! `lasthop demo`: the SAP-LAW home twice with the same seed, control off and on, side by side.

mod air;
mod pair;
mod tables;
mod verdict;

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::output::{self, Sink};
use lasthop_command::signals::Stop;
use lasthop_command::table::wrap;
use lasthop_command::terminal::Look;
use lasthop_command::{REVISION, root};
use lasthop_home::report::Report;
use lasthop_home::scenario::Scenario;
use serde::Serialize;

use self::air::Air;
use self::pair::{Pair, Period};
use self::verdict::Verdict;
use crate::account;
use crate::html::{self, Shown};
use crate::play::{self, Play};
use crate::web::Page;

const SCENARIO: &str = include_str!("../../../../../scenarios/papers/sap-law.toml");
/// The download starts here: by then games, calls and video run smoothly. Seconds.
const DOWNLOAD_AT: u64 = 5;
/// The first seconds of the download, which have a table of their own.
const START_UP: u64 = 5;
/// Capacity the controller divides, as a share of what TCP alone gets over this air.
const CAPACITY: &str = "98%";
/// What the two runs are called.
const OFF: &str = "control off";
const ON: &str = "control on";

/// What the live page says between and before the runs.
const MEANWHILE: &str = "The next run of the demo is being prepared. In the first, control is off: a controller looks on and changes \
    nothing. In the second it is on.";

const AFTER_HELP: &str = "\
The home is that of the SAP-LAW paper: a video stream, a game and a video call and, from second 5,
one download by this machine's own kernel TCP. Its Wi-Fi is 802.11ac, which most homes have, behind
a line of 1 Gbit/s, or another one (--air); with --air g it is the paper's, and the line 100 Mbit/s.
Everything above the network cards is real; the wires and the air are models that run in real time,
so close what keeps the machine busy. Runs do not repeat packet by packet.

Examples:
  sudo lasthop demo --seconds 15          a short one
  sudo lasthop demo --air g --queue 1000  802.11g, behind the deep queue that many have
  sudo lasthop demo --html demo.html      both runs as a page for a browser
  sudo lasthop demo --web                 the runs live in a browser, while they play
  sudo lasthop demo --json result.json    every figure of both runs";

/// Show a home with control off, then on, side by side
///
/// Makes a home out of network namespaces, plays a game, a video call and a video stream in it, lets a download come,
/// and does that twice: without control and with it. Takes about two minutes; nothing is left behind.
#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// How long the download runs
    #[arg(long, value_name = "N", default_value_t = 45, value_parser = clap::value_parser!(u64).range(6..=3600))]
    seconds: u64,
    /// Wi-Fi of the home
    #[arg(long, default_value = "ac")]
    air: Air,
    /// Congestion control of the download's sender
    #[arg(long, default_value = "cubic")]
    cc: CongestionControl,
    /// Limit of the access point's queue, in packets [default: 1000; with --air g the paper's 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    queue: Option<u32>,
    /// Seed of the air's losses and backoffs, and of the traffic
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Losses on the air: the paper's shadowing, or none
    #[arg(long, default_value = "shadowing")]
    loss: Loss,
    /// Also write both reports and the verdict as JSON; "-" is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also write both runs, side by side, as a page for a browser; "-" is stdout
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Show the runs live in a browser while they play, on this machine alone. Without control a controller looks on in a
    /// dry run, which changes nothing
    #[arg(long)]
    web: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum CongestionControl {
    Cubic,
    Reno,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum Loss {
    Shadowing,
    None,
}

/// What `--json` writes.
#[derive(Debug, Serialize)]
struct Written<'a> {
    format: u32,
    revision: &'a str,
    settings: Settings,
    off: &'a Report,
    on: &'a Report,
    verdict: &'a str,
}

#[derive(Debug, Serialize)]
struct Settings {
    seconds: u64,
    air: Air,
    cc: CongestionControl,
    queue: u32,
    seed: u64,
    loss: Loss,
    capacity: &'static str,
}

/// Plays the home twice and shows both.
pub fn run(arguments: &Arguments) -> Outcome {
    let sink = arguments.json.as_deref().map(Sink::open).transpose()?;
    let page = html::open(arguments.html.as_deref())?;
    if [&sink, &page].into_iter().flatten().filter(|sink| sink.is_stdout()).count() > 1 {
        return Err(Failure::request(anyhow!("only one of --json and --html can go to stdout")));
    }
    let scenarios = (arguments.scenario(false)?, arguments.scenario(true)?);
    root::require("making network namespaces and TAP devices, and loading BPF programs,")?;
    let stop = Stop::on_signals()?;
    eprint!("{}", arguments.announcement(Look::stderr().width));

    let live = arguments.web.then(|| Page::start(MEANWHILE)).transpose()?;
    live.iter().for_each(|live| eprintln!("Live, in a browser on this machine: {}", live.address));

    let play = |scenario: &Scenario, label| {
        let mut play = Play::new(scenario, label);
        play.course = page.is_some();
        play.socket = live.as_ref().map(Page::socket);
        play.looked_at_as = live.is_some().then_some(&scenarios.1);
        play::run(&play, &stop).map(|it| (it.report, it.course))
    };
    let (off, course_off) = play(&scenarios.0, OFF)?;
    let (on, course_on) = play(&scenarios.1, ON)?;
    drop(live);

    let to_stdout = [&sink, &page].into_iter().flatten().any(Sink::is_stdout);
    let look = if to_stdout { Look::stderr() } else { Look::stdout() };
    let (text, verdict) = show(arguments, &off, &on, look);
    if to_stdout {
        eprint!("{text}");
    } else {
        output::print_out(&text)?;
    }
    if let (Some(page), Some(off_course), Some(on_course)) = (&page, &course_off, &course_on) {
        let off = Shown { label: OFF, scenario: &scenarios.0, report: &off, course: off_course };
        let on = Shown { label: ON, scenario: &scenarios.1, report: &on, course: on_course };
        page.write_text(&shown(arguments, &verdict, off, on))?;
        arguments.html.as_deref().filter(|_| !page.is_stdout()).into_iter().for_each(html::tell);
    }
    let Some(sink) = sink else { return Ok(()) };
    let settings = arguments.settings();
    sink.write_json(&Written { format: 1, revision: REVISION, settings, off: &off, on: &on, verdict: &verdict.text })
}

impl Arguments {
    /// The paper's home with the demo's times and this command line.
    fn scenario(&self, control: bool) -> Outcome<Scenario> {
        Scenario::parse(SCENARIO, "sap-law.toml", &self.overrides(control)).map_err(Failure::request)
    }

    fn overrides(&self, control: bool) -> Vec<String> {
        let end = DOWNLOAD_AT + self.seconds;
        let mut sets = vec![
            format!("duration={end}s"),
            format!("measure_from={}s", DOWNLOAD_AT + START_UP),
            format!("seed={}", self.seed),
            format!("flow.video.stop={end}s"),
        ];
        sets.extend(["video", "game-down", "game-up", "chat-down", "chat-up"].map(|f| format!("flow.{f}.start=0s")));
        // The download is a connection of today's kernels in place of the paper's NewReno.
        let cc = if self.cc == CongestionControl::Cubic { "cubic" } else { "reno" };
        sets.extend([format!("flow.ftp.start={DOWNLOAD_AT}s"), format!("flow.ftp.cc={cc}")]);
        sets.extend(["sack=true", "delayed_ack=true", "initial_window=10"].map(|key| format!("flow.ftp.{key}")));
        sets.extend(["window", "mss"].map(|key| format!("flow.ftp.{key}=none")));
        sets.extend(self.air.overrides());
        sets.push(format!("wifi.queue.limit={}", self.queue()));
        sets.push(match self.loss {
            Loss::None => "wifi.loss.kind=none".into(),
            // The lossier of the paper's two radios: what the demo shows was measured with it.
            Loss::Shadowing => "wifi.loss.deviation=9dB".into(),
        });
        sets.push("control.window=none".into());
        if control {
            sets.push(format!("control.window.capacity={CAPACITY}"));
        }
        sets
    }

    /// Packets in the access point's queue.
    fn queue(&self) -> u32 {
        self.queue.unwrap_or(self.air.queue())
    }

    fn settings(&self) -> Settings {
        Settings {
            seconds: self.seconds,
            air: self.air,
            cc: self.cc,
            queue: self.queue(),
            seed: self.seed,
            loss: self.loss,
            capacity: CAPACITY,
        }
    }

    /// Whose figures these are.
    fn about(&self) -> String {
        format!("On {}, {} packets of queue in the access point.", self.air.name(), self.queue())
    }

    fn announcement(&self, width: usize) -> String {
        let seconds = 2 * (DOWNLOAD_AT + self.seconds) + 4;
        let cc = if self.cc == CongestionControl::Cubic { "CUBIC" } else { "Reno" };
        let mut text = String::new();
        let what = format!(
            "A home on this machine: video, game and video call on {}, and a {cc} download of {} s from second \
             {DOWNLOAD_AT}.",
            self.air.name(),
            self.seconds
        );
        wrap(&mut text, &what, "", width);
        let how = format!("Twice, without control and with it: about {seconds} s in all. Ctrl-C stops and cleans up.");
        wrap(&mut text, &how, "", width);
        text
    }
}

/// Both runs as a page.
fn shown(arguments: &Arguments, verdict: &Verdict, off: Shown<'_>, on: Shown<'_>) -> String {
    let pair = Pair { off: off.report, on: on.report };
    let of = |period: Period| (period.title(START_UP, arguments.seconds), tables::figures(pair, period));
    let title = format!("A home without Lasthop and with it, on {}", arguments.air.name());
    html::of_pair(&title, &verdict.text, &[Period::Rest, Period::StartUp].map(of), [off, on])
}

/// The whole of what the demo prints, the verdict first, and that.
fn show(arguments: &Arguments, off: &Report, on: &Report, look: Look) -> (String, Verdict) {
    let pair = Pair { off, on };
    let runs = [(OFF, off), (ON, on)];
    let verdict = Verdict::of(pair, account::invalid(&runs).as_deref());
    let mut sentence = String::new();
    wrap(&mut sentence, &verdict.text, "", look.width);
    let mut text = format!("\n{}\n", look.paint(verdict.tone(), &sentence));
    wrap(&mut text, &arguments.about(), "", look.width);
    text.push('\n');
    for period in [Period::StartUp, Period::Rest] {
        text.push_str(&tables::table(pair, period, &period.title(START_UP, arguments.seconds), look));
        text.push('\n');
    }
    text.push_str(tables::LEGEND);
    text.push_str("\nWhat the controller did\n");
    text.push_str(&account::of_control(on.control.as_ref(), look));
    text.push_str(&account::of_time(&runs, look));
    (text, verdict)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        arguments: Arguments,
    }

    /// The demo's home in the simulator, which has more to tell than the emulator.
    #[test]
    fn the_verdict_comes_first_and_no_line_is_wider_than_eighty_columns() {
        let typed = ["demo", "--air", "g", "--seconds", "10", "--queue", "1000"];
        let arguments = Typed::parse_from(typed).arguments;
        let play = |control| {
            let scenario = arguments.scenario(control).unwrap();
            lasthop_sim::run(&scenario, &mut lasthop_sim::Options::default()).unwrap()
        };
        let (text, verdict) = show(&arguments, &play(false), &play(true), Look::plain());
        assert!(text.replace('\n', " ").trim_start().starts_with(&verdict.text), "{text}");
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80) && text.contains("game-down") && text.contains("p99, ms"), "{text}");
        assert!(arguments.announcement(80).lines().all(|line| line.chars().count() <= 80));
    }

    /// The emulator takes each of them, and the tables say which it was.
    #[test]
    fn every_air_is_a_home_that_the_emulator_carries() {
        for (air, name) in [("ax", "802.11ax"), ("ac", "802.11ac"), ("n", "802.11n"), ("g", "802.11g")] {
            let arguments = Typed::parse_from(["demo", "--air", air]).arguments;
            for control in [false, true] {
                let scenario = arguments.scenario(control).unwrap();
                assert!(lasthop_emu::check(&scenario).is_ok(), "{air}");
            }
            assert!(arguments.about().contains(name) && arguments.announcement(80).contains(name), "{air}");
            assert!(arguments.announcement(80).lines().all(|line| line.chars().count() <= 80));
        }
        assert_eq!(Typed::parse_from(["demo"]).arguments.air, Air::Ac);
    }
}

//! `lasthop message tune`: measures the device, says what limits it, and keeps the settings that suit it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use lasthop_command::REVISION;
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::output::{self, Sink};
use lasthop_command::progress::Line;
use lasthop_command::signals::Stop;
use lasthop_command::table::{Align, Table, figure, figure_or_dash, wrap};
use lasthop_messenger::account::Account;
use lasthop_messenger::tune::explain::{self, Words, bits, time};
use lasthop_messenger::tune::law::{Direction, Limit, Limits};
use lasthop_messenger::tune::{self, Found, LONGEST, Report, Request, SHORTEST, Settings, TuneError};
use lasthop_messenger::tuning::Profile;
use serde::Serialize;

use crate::common::Device;

const AFTER_HELP: &str = "\
Examples:
  lasthop message tune --account ben.toml                      measures, explains, keeps a profile
  lasthop message tune --account ben.toml --storage /mnt/card  messages go to the card: measure it
  lasthop message tune --account ben.toml --dry-run            measures, explains, keeps nothing
  lasthop message tune --account ben.toml --dry-run --profile none --set fetch.receiver.delay=10ms

A message is as fast as the slowest of these: the window (what may be under way in a round trip),
the storage that writes or reads each packet, the sleep after each packet, the pacing of the
sender, and the air. `tune` measures each, says which one binds, and tries what speaks for itself
against the present settings, with transfers that go through this device's storage. The simplest
settings that are as fast as the fastest are kept in the profile (--profile FILE, else beside the
account file), where `send` and `fetch` find them.

It writes at most 4 MiB to measure the storage and 16 MiB to try settings, in one file without a
name that is gone whatever happens, and asks the server for packets of no message; the mailbox is
not touched. How it measures and chooses: the book, messages-tuning.md.";

/// Characters of a line of text.
const WIDTH: usize = 100;

/// Measure this device for at most 20 s, explain what limits it, and keep the settings that suit it
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    #[command(flatten)]
    device: Device,
    /// Folder where messages go and come from: the storage that is measured
    #[arg(long, value_name = "DIR", default_value = ".")]
    storage: PathBuf,
    /// How long to measure, 2 to 20 s: longer is more exact
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..=20))]
    seconds: u64,
    /// Write what was found as JSON; "-" is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Keep nothing: only measure and explain
    #[arg(long)]
    dry_run: bool,
}

/// What `--json` writes: schema/messages.md says what each field means.
#[derive(Debug, Serialize)]
struct Written<'a> {
    format: u32,
    revision: &'static str,
    #[serde(flatten)]
    report: &'a Report,
    profile: Profile,
    kept: Option<String>,
    words: DecisionStatus,
}

#[derive(Debug, Serialize)]
struct DecisionStatus {
    storage: String,
    fetch: Words,
    send: Words,
}

/// Measures, explains and keeps.
pub fn run(arguments: &Arguments) -> Outcome {
    let sink = arguments.json.as_deref().map(Sink::open).transpose()?;
    if !arguments.storage.is_dir() {
        return Err(Failure::request(anyhow!("--storage {} is no folder", arguments.storage.display())));
    }
    let (account, present, file) = settings(&arguments.device)?;
    let stop = Stop::on_signals()?;
    let limit = Duration::from_secs(arguments.seconds).clamp(SHORTEST, LONGEST);
    let report = measure(&Request { account: &account, storage: &arguments.storage, present, limit }, &stop)?;
    let kept = (!arguments.dry_run).then_some(file);
    if let Some(path) = &kept {
        report.profile().save(path, &remark(&report)).map_err(Failure::work)?;
        output::give_to_sudo_user(path);
    }
    let text = text(&report, kept.as_deref());
    match &sink {
        Some(Sink::Stdout) => eprint!("{text}"),
        _ => output::print_out(&text)?,
    }
    let words = DecisionStatus {
        storage: explain::of_storage(&report.measured),
        fetch: explain::words(Direction::Fetch, &report),
        send: explain::words(Direction::Send, &report),
    };
    let kept = kept.map(|path| path.display().to_string());
    let written = Written { format: 1, revision: REVISION, report: &report, profile: report.profile(), kept, words };
    sink.map_or(Ok(()), |sink| sink.write_json(&written))
}

fn measure(request: &Request<'_>, stop: &Stop) -> Outcome<Report> {
    let mut line = Line::new("tune");
    let mut shown: Option<(String, u64)> = None;
    let total = request.limit;
    let report = tune::tune(request, &stop.flag(), &mut |what, left| {
        let now = (what.to_owned(), left.as_millis() as u64 / 200);
        if shown.as_ref() != Some(&now) {
            let done = total.saturating_sub(left).as_secs_f64();
            line.step(done, done / total.as_secs_f64(), &format!("{what}, {:.0} s left", left.as_secs_f64().ceil()));
            shown = Some(now);
        }
    });
    line.end();
    stop.check()?;
    report.map_err(|error| match error {
        TuneError::Storage(_) => {
            Failure::work(anyhow::Error::new(error).context(request.storage.display().to_string()))
        }
        error => Failure::work(error),
    })
}

/// Account, what there is, and where the profile goes.
fn settings(device: &Device) -> Outcome<(Account, Profile, PathBuf)> {
    let (account, file) = device.account()?;
    let present = device.profile(&file, true)?;
    let path = device.profile_file(&file).unwrap_or_else(|| Profile::path(&file));
    Ok((account, present, path))
}

/// A few lines at the head of the profile.
fn remark(report: &Report) -> String {
    let line = |name: &str, found: &Found| {
        let [was, is] = [&found.before, &found.after].map(|settings| time(settings.measured_s.unwrap_or(f64::NAN)));
        format!("{name}: 1 MB in {is} (before: {was}); {} limits\n", found.after.limits.binds)
    };
    let head = "Found by `lasthop message tune`, which writes it anew.\n".to_owned();
    head + &line("fetch", &report.fetch) + &line("send", &report.send)
}

fn text(report: &Report, kept: Option<&Path>) -> String {
    let mut text = String::new();
    let measured = &report.measured;
    let (down, up) = (&measured.down, &measured.up);
    wrap(&mut text, &format!("storage: {}", explain::of_storage(measured)), "", WIDTH);
    let path = format!(
        "path: round trip {} ({} and {} when full); {} down, {} up with nothing in the way",
        time(down.path.rtt_s),
        loaded(down.loaded_rtt_s),
        loaded(up.loaded_rtt_s),
        bits(down.path.air),
        bits(up.path.air)
    );
    wrap(&mut text, &path, "", WIDTH);
    text += "\n";
    text += &limits(report).render(0);
    for (name, direction) in [("fetch", Direction::Fetch), ("send", Direction::Send)] {
        let Words { limit, buffers, packet, delay, pacing, left } = explain::words(direction, report);
        let _ = write!(text, "\n{name}: ");
        let mut first = String::new();
        wrap(&mut first, &limit, "", WIDTH - name.len() - 2);
        text += &first.replace('\n', "\n  ");
        text.truncate(text.trim_end().len());
        text += "\n";
        for (word, sentence) in
            [("buffers", buffers), ("packet", packet), ("delay", delay), ("pacing", pacing), ("what is left", left)]
        {
            wrap(&mut text, &format!("{word}: {sentence}"), "  ", WIDTH);
        }
    }
    let _ = match kept {
        Some(path) => writeln!(text, "\nkept in {}, where send and fetch find it", path.display()),
        None => writeln!(text, "\nnothing was kept"),
    };
    text
}

/// A round trip of the kernel's, which says 0 when it does not know.
fn loaded(rtt_s: f64) -> String {
    if rtt_s > 0.0 { time(rtt_s) } else { "unknown".to_owned() }
}

/// What limits what, the one that binds with a star.
fn limits(report: &Report) -> Table {
    let columns = [&report.fetch.before, &report.fetch.after, &report.send.before, &report.send.after];
    let mut table = Table::new(
        &[Align::Left, Align::Right, Align::Right, Align::Right, Align::Right],
        &[&["Mbit/s", "fetch", "", "send", ""], &["", "before", "after", "before", "after"]],
    );
    type Of = fn(&Limits) -> Option<f64>;
    let rows: [(&str, Limit, Of); 6] = [
        ("window / round trip", Limit::Window, |limits| Some(limits.window)),
        ("storage", Limit::Storage, |limits| Some(limits.storage)),
        ("sender's delay", Limit::SenderDelay, |limits| limits.sender_delay),
        ("receiver's delay", Limit::ReceiverDelay, |limits| limits.receiver_delay),
        ("pacing", Limit::Pacing, |limits| limits.pacing),
        ("air", Limit::Air, |limits| Some(limits.air)),
    ];
    for (name, limit, of) in rows {
        let cell = |settings: &Settings| {
            let star = if settings.limits.binds == limit { "*" } else { "" };
            format!("{star}{}", figure_or_dash(of(&settings.limits).map(|rate| rate * 8e-6)))
        };
        table.row(std::iter::once(name.to_owned()).chain(columns.map(cell)));
    }
    table.rule();
    let expected = columns.map(|settings| figure(settings.expected_s));
    table.row(std::iter::once("1 MB by these, s".to_owned()).chain(expected));
    let seen = columns.map(|settings| figure_or_dash(settings.measured_s));
    table.row(std::iter::once("1 MB measured, s".to_owned()).chain(seen));
    table
}

//! `lasthop message send`: a file, what stdin gives, or a recording.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, anyhow};
use clap::{ArgGroup, Args};
use lasthop_command::exit::{Failure, Outcome, chain};
use lasthop_command::output::{self, Sink};
use lasthop_command::signals::Stop;
use lasthop_messenger::client::{Client, Event, Outgoing, Sent, printable, sound};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::common::{self, Who};
use crate::record;
use crate::show::{Show, size, time};
use crate::written::Written;

const AFTER_HELP: &str = "\
Examples:
  lasthop message send --account anna.toml --to ben hello.wav
  lasthop message send --account anna.toml --to ben --record            speak, then press Enter
  lasthop message send --account anna.toml --to ben --record --seconds 10
  tar c photos | lasthop message send --account anna.toml --to ben - --name photos.tar

The command ends when the server has the message safely on disk. After a cut, Ctrl-C or a dead
battery the same command goes on where it ended; once it has succeeded, the same command sends a new
message. A recording (and what came from stdin) is kept in a file until it is sent, and the command
says where if it could not be. --record needs arecord, of the package alsa-utils, and a microphone.

--set reaches the keys of a profile: send.sender (this device) and send.receiver (the server), each
with packet, delay, buffer (or none), the sender with pacing (or none), too; the later --set wins.
--json says where the time went; schema/messages.md lists the fields.";

/// Send a file or a recording to somebody's mailbox
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, group(ArgGroup::new("what").required(true).args(["file", "record"])))]
pub struct Arguments {
    /// The file; "-" is stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    who: Who,
    /// Name of the recipient's account
    #[arg(long, value_name = "NAME")]
    to: String,
    /// What the message is called [default: the file's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Record from the microphone and send that
    #[arg(long)]
    record: bool,
    /// How long to record [default: until Enter or Ctrl-C, at most an hour]
    #[arg(long, value_name = "N", requires = "record", conflicts_with = "file", value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: Option<u32>,
    /// What to record from, as `arecord -L` lists it [default: ALSA's default]
    #[arg(long, value_name = "DEVICE", requires = "record", conflicts_with = "file")]
    device: Option<String>,
    /// Write what happened as JSON; "-" is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What is sent.
struct Source {
    path: PathBuf,
    name: String,
    /// Made here, to be removed when it is sent and kept when it is not.
    is_ours: bool,
}

/// Records if that is asked for, and sends.
pub fn run(arguments: &Arguments) -> Outcome {
    let sink = arguments.json.as_deref().map(Sink::open).transpose()?;
    let stop = Stop::on_signals()?;
    let client = arguments.who.client(&stop)?;
    let source = source(arguments, &client, &stop)?;
    let mut written = Written::new("send", &client, client.profile.send);
    let tell = |text: &str| match &sink {
        Some(Sink::Stdout) => eprint!("{text}"),
        _ => drop(output::print_out(text)),
    };
    let outcome = send(arguments, &client, &source, &stop, &mut written, &tell);
    match (&outcome, source.is_ours) {
        (Ok(()), true) => drop(fs::remove_file(&source.path)),
        (Err(_), true) => eprintln!("lasthop: not sent yet, and kept: {}", source.path.display()),
        _ => {}
    }
    sink.as_ref().map_or(Ok(()), |sink| sink.write_json(&written))?;
    outcome
}

fn send(
    arguments: &Arguments,
    client: &Client,
    source: &Source,
    stop: &Stop,
    written: &mut Written,
    tell: &dyn Fn(&str),
) -> Outcome {
    let (to, name) = (arguments.to.as_str(), source.name.as_str());
    let length = sound::length(&source.path);
    let mut show = Show::new(name);
    let sent = client.send(&Outgoing { file: &source.path, name, to }, &mut |event| {
        show.event(&event);
        if let Event::Sent(sent) = event {
            tell(&told(name, to, length, sent));
        }
    });
    show.end();
    match sent {
        Ok(sent) => {
            written.sent(to, name, length, &sent);
            Ok(())
        }
        Err(failure) => {
            written.failed(chain(&failure));
            let goes_on = match source.is_ours {
                false => "the same command goes on where this one ended".to_owned(),
                true => format!("it goes on with {}", again(arguments, source)?),
            };
            Err(common::failure(failure, stop, &goes_on))
        }
    }
}

/// The command that sends what is kept.
fn again(arguments: &Arguments, source: &Source) -> Outcome<String> {
    let account = arguments.who.account_file()?.display().to_string();
    let words =
        ["--account", &account, "--to", &arguments.to, "--name", &source.name, &source.path.display().to_string()]
            .map(quoted)
            .join(" ");
    Ok(format!("`lasthop message send {words}`"))
}

/// As a shell reads it back.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// A line about a sent message.
fn told(name: &str, to: &str, length: Option<Duration>, sent: &Sent) -> String {
    let sound = length.map(|length| format!("{:.1} s of sound, ", length.as_secs_f64())).unwrap_or_default();
    let (name, to) = (printable(name, 60), printable(to, 60));
    let what = format!("{name} ({sound}{}) is in {to}'s mailbox: message {}", size(sent.bytes), sent.message);
    let carried = sent.bytes.saturating_sub(sent.resumed);
    let speed = carried as f64 / sent.metrics.connected().as_secs_f64().max(1e-6);
    match carried {
        0 if sent.bytes > 0 => format!("{what}; the server had it already\n"),
        _ => format!("{what}; {}, {}/s\n", time(sent.metrics.took), size(speed as u64)),
    }
}

fn source(arguments: &Arguments, client: &Client, stop: &Stop) -> Outcome<Source> {
    let of_user = arguments.name.clone();
    match arguments.file.as_deref() {
        Some(path) if path == Path::new("-") => {
            let path = own_file(client, "stdin", "")?;
            let mut file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
            let spooled = spool(&mut file, stop).and_then(|()| file.sync_all());
            let spooled = spooled.with_context(|| format!("cannot keep stdin in {}", path.display()));
            if let Err(failure) = spooled.map_err(Failure::work).and_then(|()| stop.check()) {
                let _ = fs::remove_file(&path);
                return Err(failure);
            }
            Ok(Source { path, name: of_user.unwrap_or_else(|| "stdin".to_owned()), is_ours: true })
        }
        Some(path) => {
            if !path.exists() {
                return Err(Failure::request(anyhow!("there is no file {}", path.display())));
            }
            let own = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok(Source { path: path.to_owned(), name: of_user.unwrap_or(own), is_ours: false })
        }
        None => {
            tell_of_unsent(client);
            let path = own_file(client, "recording", ".wav")?;
            let recorded = record::record(&path, arguments.seconds, arguments.device.as_deref(), stop);
            if recorded.is_err() && fs::metadata(&path).is_ok_and(|file| file.len() == 0) {
                let _ = fs::remove_file(&path);
            }
            recorded?;
            let own = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok(Source { path, name: of_user.unwrap_or(own), is_ours: true })
        }
    }
}

/// A name for a new file beside the client's state: `recording-20061121-121005.wav`, in UTC; one that is there stays.
fn own_file(client: &Client, what: &str, extension: &str) -> Outcome<PathBuf> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let (year, month, day) = date(now / 86_400);
    let (hour, minute, second) = (now / 3600 % 24, now / 60 % 60, now % 60);
    let name = format!("{what}-{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}");
    let folder = client.state.folder().join("unsent");
    // Nobody else's to hear, whatever the umask is.
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let create = |path: &PathBuf| OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let numbered = (2..).map(|number| format!("{name}-{number}{extension}"));
    let mut paths = std::iter::once(format!("{name}{extension}")).chain(numbered).map(|name| folder.join(name));
    let new = paths.find(|path| create(path).map_or_else(|e| e.kind() != io::ErrorKind::AlreadyExists, |_| true));
    new.context("no name is free").map_err(Failure::work)
}

/// All that stdin gives, until a signal comes: half of it is no message.
fn spool(file: &mut File, stop: &Stop) -> io::Result<()> {
    let (mut stdin, mut bytes) = (io::stdin().lock(), vec![0; 64 << 10]);
    let look = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    while !stop.has_come() {
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&look)) {
            Ok(0) | Err(Errno::INTR) => continue,
            other => other?,
        };
        match stdin.read(&mut bytes)? {
            0 => break,
            read => file.write_all(&bytes[..read])?,
        }
    }
    Ok(())
}

/// Recordings that an earlier command could not send, or did not live to.
fn tell_of_unsent(client: &Client) {
    let folder = client.state.folder().join("unsent");
    let unsent = fs::read_dir(&folder).map_or(0, Iterator::count);
    if unsent > 0 {
        eprintln!("lasthop: {unsent} not sent yet in {}", folder.display());
    }
}

/// Year, month and day of a day since 1970, in the Gregorian calendar: 400 years have 146,097 days, and a year that begins in
/// March has its leap day last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day_of_year - (153 * from_march + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_reads_back_as_one() {
        for (word, written) in [("a.wav", "a.wav"), ("my voice", "'my voice'"), ("it's", r"'it'\''s'"), ("", "''")] {
            assert_eq!(quoted(word), written);
        }
    }

    #[test]
    fn days_have_dates() {
        for (day, expected) in
            [(0, (1970, 1, 1)), (58, (1970, 2, 28)), (11_016, (2000, 2, 29)), (20_778, (2026, 11, 21))]
        {
            assert_eq!(date(day), expected);
        }
    }
}

//! `lasthop message fetch`: lists and receives.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use clap::Args;
use lasthop_command::exit::{Failure, Outcome, chain};
use lasthop_command::output::{self, Sink};
use lasthop_command::signals::Stop;
use lasthop_command::table::{Align, Table};
use lasthop_messenger::client::{Client, ClientError, Event, Failure as Mishap, Fetched, Wanted, printable};
use lasthop_messenger::protocol::{Listed, MessageId, Refusal};

use crate::common::{self, Who};
use crate::show::{Show, size, time};
use crate::written::Written;

const AFTER_HELP: &str = "\
Examples:
  lasthop message fetch --account ben.toml --list       what is there, and how long
  lasthop message fetch --account ben.toml              everything, oldest first, into this folder
  lasthop message fetch --account ben.toml 7 9 --into voice --keep
  lasthop message fetch --account ben.toml --discard 8  deletes it unread
  lasthop message fetch --account ben.toml --set fetch.receiver.packet=8KiB --json how.json

Each message becomes a file under its own name (with \" (2)\" behind it if there is one already), and
is deleted at the server once that file is whole, checked and safely in storage. What is under way
stands in NAME.*.part; the same command goes on there after a cut, Ctrl-C or a dead battery.

--set reaches the keys of a profile: fetch.sender (the server) and fetch.receiver (this device),
each with packet, delay and buffer (or none), the sender with pacing (or none), too; the later --set
wins. --json says where the time went: storage, sleeping, waiting for data, and what the server's
kernel waited for; schema/messages.md lists the fields.";

const GOES_ON: &str = "what came of the messages is kept, and the same command goes on there";
/// Of what is not carried in parts.
const AGAIN: &str = "give the same command again later";

/// List the messages of your mailbox, or receive them
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// Numbers of the messages, as --list shows them [default: all]
    #[arg(value_name = "MESSAGE")]
    messages: Vec<u64>,
    #[command(flatten)]
    who: Who,
    /// Only say what is there
    #[arg(long, conflicts_with_all = ["into", "keep", "messages", "discard"])]
    list: bool,
    /// Delete these messages without receiving them
    #[arg(long, conflicts_with_all = ["into", "keep"], requires = "messages")]
    discard: bool,
    /// Folder to receive into
    #[arg(long, value_name = "DIR", default_value = ".")]
    into: PathBuf,
    /// Leave the messages at the server, too
    #[arg(long)]
    keep: bool,
    /// Write what happened as JSON; "-" is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Lists or fetches.
pub fn run(arguments: &Arguments) -> Outcome {
    let sink = arguments.json.as_deref().map(Sink::open).transpose()?;
    let stop = Stop::on_signals()?;
    let client = arguments.who.client(&stop)?;
    let mut written = Written::new("fetch", &client, client.profile.fetch);
    let outcome = if arguments.list {
        list(&client, &stop, &mut written)
    } else if arguments.discard {
        discard(arguments, &client, &stop, &mut written)
    } else {
        fetch(arguments, &client, &stop, &mut written)
    };
    let (text, outcome) = match outcome {
        Ok((text, outcome)) => (text, outcome),
        Err(failure) => (String::new(), Err(failure)),
    };
    match &sink {
        Some(Sink::Stdout) => eprint!("{text}"),
        _ => output::print_out(&text)?,
    }
    sink.map_or(Ok(()), |sink| sink.write_json(&written))?;
    outcome
}

/// What is said, and how it ended.
type DecisionStatus = (String, Outcome);

fn list(client: &Client, stop: &Stop, written: &mut Written) -> Outcome<DecisionStatus> {
    let mut show = Show::new("messages");
    let listed = client.list(&mut |event| show.event(&event));
    let listed = listed.map_err(|error| fail(error, stop, written, AGAIN))?;
    listed.iter().for_each(|listed| written.listed(listed));
    if listed.is_empty() {
        return Ok((format!("no messages for {}\n", client.account.account), Ok(())));
    }
    let mut table = Table::new(
        &[Align::Right, Align::Left, Align::Left, Align::Right, Align::Right],
        &[&["message", "from", "name", "size", "waits"]],
    );
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    for Listed { message, from, name, bytes, kept_at } in &listed {
        let waits = time(Duration::from_secs(now.saturating_sub(*kept_at)));
        table.row([message.to_string(), printable(from, 24), printable(name, 40), size(*bytes), waits]);
    }
    Ok((table.render(0), Ok(())))
}

fn discard(arguments: &Arguments, client: &Client, stop: &Stop, written: &mut Written) -> Outcome<DecisionStatus> {
    let mut messages: Vec<MessageId> = arguments.messages.iter().copied().map(MessageId).collect();
    messages.sort_unstable();
    messages.dedup();
    let mut show = Show::new("messages");
    let done = client.discard(&messages, &mut |event| show.event(&event));
    done.map_err(|error| fail(error, stop, written, AGAIN))?;
    let numbers: Vec<String> = messages.iter().map(ToString::to_string).collect();
    Ok((format!("deleted unread: {}\n", numbers.join(", ")), Ok(())))
}

fn fetch(arguments: &Arguments, client: &Client, stop: &Stop, written: &mut Written) -> Outcome<DecisionStatus> {
    if !arguments.into.is_dir() {
        return Err(Failure::request(anyhow!("--into {} is no folder", arguments.into.display())));
    }
    let messages = arguments.messages.iter().copied().map(MessageId).collect();
    let wanted = Wanted { messages, into: arguments.into.clone(), keep: arguments.keep };
    let (mut show, mut text) = (Show::new("messages"), String::new());
    let outcome = client.fetch(&wanted, &mut |event| {
        show.event(&event);
        match event {
            Event::Fetched(fetched) => {
                text += &told(fetched);
                written.fetched(fetched);
            }
            Event::Missed(listed, why) => {
                let (id, name) = (listed.message, printable(&listed.name, 40));
                let is_lost = matches!(why, Mishap::Client(ClientError::Refused(Refusal::Damaged)));
                let hint = if is_lost { format!(" (`fetch --discard {id}` deletes it)") } else { String::new() };
                let why = chain(why);
                eprintln!("lasthop: message {id} ({name}): {why}{hint}");
                written.missed(listed, why);
            }
            _ => {}
        }
    });
    show.end();
    match outcome {
        Ok(0) if text.is_empty() => Ok((format!("no messages for {}\n", client.account.account), Ok(()))),
        Ok(0) => Ok((text, Ok(()))),
        Ok(missed) => Ok((text, Err(Failure::work(anyhow!("{missed} of the messages could not be fetched"))))),
        Err(failure) => Ok((text, Err(fail(failure, stop, written, GOES_ON)))),
    }
}

fn fail(failure: Mishap, stop: &Stop, written: &mut Written, goes_on: &str) -> Failure {
    written.failed(chain(&failure));
    common::failure(failure, stop, goes_on)
}

/// A line about a fetched message.
fn told(fetched: &Fetched) -> String {
    let Fetched { listed, file, resumed, metrics } = fetched;
    let mut text = String::new();
    let carried = listed.bytes.saturating_sub(*resumed);
    let speed = carried as f64 / metrics.connected().as_secs_f64().max(1e-6);
    let _ = write!(text, "{}  {} from {}", file.display(), size(listed.bytes), printable(&listed.from, 24));
    match carried {
        0 if listed.bytes > 0 => text += ", was there already",
        _ => {
            let _ = write!(text, ", {}, {}/s", time(metrics.took), size(speed as u64));
        }
    }
    text + "\n"
}

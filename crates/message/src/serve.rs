//! `lasthop message serve`: the server, and what its owner does with accounts.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::{ArgGroup, Args};
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::output::{self, Sink};
use lasthop_command::signals::Stop;
use lasthop_core::units::{Bytes, Span};
use lasthop_messenger::account::Account;
use lasthop_messenger::client::printable;
use lasthop_messenger::protocol::PORT;
use lasthop_messenger::server::{Event, Order, Ordered, Server, Settings, Startups, order};
use lasthop_messenger::store::{Bounds, is_account_name};

use crate::show::size;

const AFTER_HELP: &str = "\
Examples:
  lasthop message serve --store box --add anna --address 192.168.1.1:4774
                                        makes an account and its file, anna.toml: give it to anna
  lasthop message serve --store box     serves everybody who has an account, until Ctrl-C
  lasthop message serve --store box --accounts                  who has how much waiting?
  lasthop message serve --store box --remove anna               and all that waits for her

Accounts can be made, removed and listed while the server runs. An account file holds the account's
secret, which is kept nowhere else: who loses it gets a new account.

What the server has acknowledged it keeps, kill -9 and power failures included, until its recipient
has it. The store is one folder: copy it whole, while no server runs, for a backup. A transfer that
is cut (Ctrl-C here, too) goes on where it ended once both are back.

One line on stderr says what happens; the book, messages.md, says what each limit is for.";

/// Keep messages for those they are addressed to
///
/// Makes the store and the server's certificate at the first start. Clients know the server by that certificate (it is
/// named in their account files), so no authority and no host name is needed.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, group(ArgGroup::new("order").multiple(true).args(["add", "remove", "accounts"])))]
pub struct Arguments {
    /// Folder of the store; made if it is not there
    #[arg(long, value_name = "DIR")]
    store: PathBuf,
    /// Make an account and write its file; may be given more than once
    #[arg(long, value_name = "NAME", value_parser = account_name)]
    add: Vec<String>,
    /// Where devices reach the server, for the account file [default: 127.0.0.1:4774, this machine alone]
    #[arg(long, value_name = "HOST:PORT", requires = "add", value_parser = address)]
    address: Option<String>,
    /// Where to write the account file [default: NAME.toml]
    #[arg(long, value_name = "FILE", requires = "add")]
    output: Option<PathBuf>,
    /// Remove an account and all that waits for it; may be given more than once
    #[arg(long, value_name = "NAME")]
    remove: Vec<String>,
    /// List the accounts, and what waits for each
    #[arg(long)]
    accounts: bool,
    /// Where to listen [default: port 4774 of every address of this machine]
    #[arg(long, value_name = "IP:PORT", conflicts_with = "order")]
    listen: Option<SocketAddr>,
    /// At the end, write what happened how often as JSON; "-" is stdout
    #[arg(long, value_name = "FILE", conflicts_with = "order")]
    json: Option<PathBuf>,
    #[command(flatten)]
    limits: Limits,
}

/// What the server allows.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
#[group(conflicts_with = "order")]
struct Limits {
    /// Longest message
    #[arg(long, value_name = "SIZE", default_value = "8GiB")]
    longest_message: Bytes,
    /// Messages that may wait for one account
    #[arg(long, value_name = "N", default_value = "1000")]
    mailbox_messages: u64,
    /// Bytes that may wait for one account
    #[arg(long, value_name = "SIZE", default_value = "32GiB")]
    mailbox_bytes: Bytes,
    /// Messages of one account that may wait for others
    #[arg(long, value_name = "N", default_value = "500")]
    sender_messages: u64,
    /// Bytes of one account that may wait for others
    #[arg(long, value_name = "SIZE", default_value = "16GiB")]
    sender_bytes: Bytes,
    /// Messages in the whole store
    #[arg(long, value_name = "N", default_value = "20000")]
    store_messages: u64,
    /// Bytes in the whole store
    #[arg(long, value_name = "SIZE", default_value = "256GiB")]
    store_bytes: Bytes,
    /// Room on the disk that is left to others
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    keep_free: Bytes,
    /// Messages that one account may send per minute
    #[arg(long, value_name = "N", default_value = "120", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    per_minute: u32,
    /// Uploads that one account may have begun and not ended; for one more, the oldest goes
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(1..=1000))]
    uploads: u32,
    /// How long an upload that nobody goes on with is kept
    #[arg(long, value_name = "TIME", default_value = "14d")]
    upload_kept: Span,
    /// Connections that have not said who they are, as sshd's MaxStartups: beyond START one is cut with RATE percent
    /// probability for one that comes, at FULL with all
    #[arg(long, value_name = "START:RATE:FULL", default_value = "10:30:100")]
    max_startups: Startups,
    /// Connections of accounts at once; each takes up to 2 MiB of memory
    #[arg(long, value_name = "N", default_value = "24", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Connections at once from one address, and of one account
    #[arg(long, value_name = "N", default_value = "12", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections_per_address: u32,
    /// Wrong secrets per minute of one account from one address
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    attempts: u32,
    /// A connection on which nothing moves for so long is closed
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = span_of_some_length)]
    idle: Span,
}

impl Limits {
    fn settings(&self) -> Settings {
        let seconds = |span: Span| Duration::from_nanos(span.as_nanos());
        Settings {
            bounds: Bounds {
                longest_message: self.longest_message.0,
                mailbox_messages: self.mailbox_messages,
                mailbox_bytes: self.mailbox_bytes.0,
                sender_messages: self.sender_messages,
                sender_bytes: self.sender_bytes.0,
                store_messages: self.store_messages,
                store_bytes: self.store_bytes.0,
                uploads: self.uploads as usize,
                free_bytes: self.keep_free.0,
            },
            messages_per_minute: self.per_minute,
            upload_kept: seconds(self.upload_kept),
            startups: self.max_startups,
            connections: self.connections as usize,
            connections_per_address: self.connections_per_address as usize,
            attempts: self.attempts,
            idle: seconds(self.idle),
            ..Settings::default()
        }
    }
}

fn account_name(text: &str) -> Result<String, String> {
    let why = "an account's name has 1 to 64 letters, digits, `.`, `_` or `-`, and begins with a letter or a digit";
    if is_account_name(text) { Ok(text.to_owned()) } else { Err(why.to_owned()) }
}

fn address(text: &str) -> Result<String, String> {
    let port =
        text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).and_then(|(_, port)| port.parse::<u16>().ok());
    match port {
        Some(port) if port > 0 && !text.contains(|c: char| c.is_whitespace() || c.is_control()) => Ok(text.to_owned()),
        _ => Err("give host and port, like 192.168.1.1:4774 or box.example:4774".to_owned()),
    }
}

fn span_of_some_length(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    if span >= Span::from_secs(1) { Ok(span) } else { Err("at least 1 s".to_owned()) }
}

/// Carries orders out, or serves until a signal comes.
pub fn run(arguments: &Arguments) -> Outcome {
    if arguments.output.is_some() && arguments.add.len() > 1 {
        return Err(Failure::request(anyhow!("--output is for one --add")));
    }
    arguments.remove.iter().try_for_each(|name| remove(&arguments.store, name))?;
    arguments.add.iter().try_for_each(|name| add(arguments, name))?;
    if arguments.accounts {
        accounts(&arguments.store)?;
    }
    let is_ordered = arguments.accounts || !arguments.add.is_empty() || !arguments.remove.is_empty();
    if is_ordered { Ok(()) } else { serve(arguments) }
}

/// Has it done by the server that runs, or here.
fn ask(store: &Path, what: &Order) -> Outcome<Ordered> {
    match order(store, what).context("the store cannot be used").map_err(Failure::work)? {
        Ordered::Failed(why) => Err(Failure::request(anyhow!("{why}"))),
        done => Ok(done),
    }
}

fn unexpected() -> Failure {
    Failure::work(anyhow!("the running server answered something else: is it of another release?"))
}

fn add(arguments: &Arguments, name: &str) -> Outcome {
    let file = arguments.output.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.toml")));
    if file.exists() {
        let why = "is there already: move it away, or name another one with --output";
        return Err(Failure::request(anyhow!("{} {why}", file.display())));
    }
    let local = format!("{}:{PORT}", Ipv4Addr::LOCALHOST);
    let address = arguments.address.clone().unwrap_or(local);
    let what = Order::Add { name: name.to_owned(), address: address.clone() };
    let Ordered::Added(account) = ask(&arguments.store, &what)? else { return Err(unexpected()) };
    save(&account, &file, &arguments.store)?;
    eprintln!(
        "lasthop: {name} has an account; its file is {}: copy it to the device, nobody else may have it",
        file.display()
    );
    if arguments.address.is_none() {
        eprintln!("lasthop: it names {address}, which is this machine alone; for others give --address HOST:{PORT}");
    }
    let store = arguments.store.display();
    eprintln!("lasthop: next: lasthop message serve --store {store}, unless it is running, and");
    eprintln!("lasthop:       lasthop message fetch --account {} --list", file.display());
    Ok(())
}

/// Writes the account file; an account whose secret nobody has is removed again.
fn save(account: &Account, file: &Path, store: &Path) -> Outcome {
    let Err(error) = account.save_new(file) else { return Ok(()) };
    let _ = ask(store, &Order::Remove { name: account.account.clone() });
    Err(Failure::work(
        anyhow::Error::from(error).context(format!("cannot write {}; no account was made", file.display())),
    ))
}

/// A mistyped folder is not made a store.
fn is_there(store: &Path) -> Outcome {
    let missing = || Failure::request(anyhow!("there is no store {}", store.display()));
    if store.join("index.redb").exists() { Ok(()) } else { Err(missing()) }
}

fn remove(store: &Path, name: &str) -> Outcome {
    is_there(store)?;
    let Ordered::Removed(gone) = ask(store, &Order::Remove { name: name.to_owned() })? else {
        return Err(unexpected());
    };
    eprintln!("lasthop: {name} has no account any more; messages and uploads that went with it: {gone}");
    Ok(())
}

fn accounts(store: &Path) -> Outcome {
    is_there(store)?;
    let Ordered::Accounts(accounts) = ask(store, &Order::Accounts)? else { return Err(unexpected()) };
    let line = |account: &lasthop_messenger::store::AccountSummary| {
        format!("{:<24} {:>6} waiting  {:>9}\n", account.name, account.messages, size(account.bytes))
    };
    output::print_out(&accounts.iter().map(line).collect::<String>())
}

fn serve(arguments: &Arguments) -> Outcome {
    let sink = arguments.json.as_deref().map(Sink::open).transpose()?;
    let stop = Stop::on_signals()?;
    let is_new = !arguments.store.join("index.redb").exists();
    let server = Server::open(&arguments.store, arguments.limits.settings()).context("cannot serve")?;
    let server = server.on_event(|event| eprintln!("lasthop: {}", printable(&event.to_string(), 500)));
    let listener = listen(arguments.listen)?;
    announce(arguments, &server, &listener, is_new)?;
    let counters = server.serve(listener, &stop.flag()).context("cannot serve")?;
    eprintln!("lasthop: stopped; messages kept: {}, received: {}", counters.kept, counters.received);
    match sink {
        Some(sink) => sink.write_json(&counters),
        None => Ok(()),
    }
}

/// On every address; of IPv4 alone where there is no IPv6.
fn listen(asked: Option<SocketAddr>) -> Outcome<TcpListener> {
    let bound = match asked {
        Some(address) => TcpListener::bind(address),
        None => TcpListener::bind((Ipv6Addr::UNSPECIFIED, PORT)).or_else(|error| match error.kind() {
            std::io::ErrorKind::AddrInUse => Err(error),
            _ => TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)),
        }),
    };
    let place = asked.map_or_else(|| format!("port {PORT}"), |address| address.to_string());
    Ok(bound.with_context(|| format!("cannot listen on {place}; --listen names another one"))?)
}

/// Says what is there and what to do next.
fn announce(arguments: &Arguments, server: &Server, listener: &TcpListener, is_new: bool) -> Outcome {
    let (store, swept) = (arguments.store.display(), server.swept());
    if is_new {
        eprintln!("lasthop: made the store {store} and a certificate; keep that folder to yourself");
    } else {
        let removed = match swept.removed {
            0 => String::new(),
            bodies => format!("; bodies that belonged to nothing, removed: {bodies}"),
        };
        let (messages, uploads) = (swept.messages, swept.uploads);
        eprintln!("lasthop: messages that wait: {messages}; uploads that can go on: {uploads}{removed}");
    }
    for what in &swept.damaged {
        eprintln!("lasthop: {}", Event::Damaged { what: what.clone() });
    }
    let address = listener.local_addr().context("cannot listen")?;
    eprintln!("lasthop: serving on {address}, known by the pin {}", server.pin());
    if server.accounts().is_ok_and(|accounts| accounts.is_empty()) {
        eprintln!("lasthop: nobody has an account yet; in another terminal:");
        eprintln!("lasthop:   lasthop message serve --store {store} --add NAME --address HOST:{}", address.port());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn the_defaults_that_the_help_shows_are_those_of_the_server() {
        let cli = Cli::try_parse_from(["serve", "--store", "x"]).unwrap();
        let (shown, default) = (cli.arguments.limits.settings(), Settings::default());
        assert_eq!(format!("{shown:?}"), format!("{default:?}"));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_what_would_be_right() {
        for (arguments, says) in [
            (&["--add", "../anna"][..], "letters, digits"),
            (&["--address", "box:4774"], "--add"),
            (&["--add", "anna", "--address", "box"], "host and port"),
            (&["--add", "anna", "--listen", "[::]:1"], "cannot be used with"),
            (&["--idle", "0s"], "at least 1 s"),
            (&["--upload-kept", "14"], "s, min, h, d"),
            (&["--connections", "0"], "1..=10"),
            (&["--max-startups", "10:30"], "start:rate:full"),
        ] {
            let error = Cli::try_parse_from(["serve", "--store", "x"].iter().chain(arguments)).err().unwrap();
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}

//! `lasthop run`: the controller on this machine.

use std::path::PathBuf;

use clap::Args;
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::output;
use lasthop_command::signals::Stop;
use lasthop_core::ap::{Law, Parameter};
use lasthop_core::levers::Lever;
use lasthop_core::units::BitRate;
use lasthop_live::config::{AUTO, Capacity, Config, Datapath, Queueing};
use lasthop_live::controller::{ControllerError, Reload};
use lasthop_live::interface::InterfaceName;
use lasthop_live::{Controller, Service, log};
use serde::Serialize;

use crate::rights;

const AFTER_HELP: &str = "\
Examples:
  sudo lasthop run --dry-run                          say what it would do, change nothing
  sudo lasthop run                                    for real, until Ctrl-C
  sudo lasthop run --lan br-lan                       on the ports of this bridge
  sudo lasthop run --lan wlan0 --queue chap           and serve who used the air least first
  sudo lasthop run --lan wlan0 --capacity 40Mbit/s    begin with this much instead of learning it
  lasthop run --print-config > lasthop.toml           every key with its meaning

Without --lan it finds the interfaces: radios of access points, the wired ports of their bridges, and
switch ports, but nothing that leads to the provider (--wan, or where default routes go). Interfaces
come and go, are renamed, join bridges: it follows, and waits for those that are named and not there.

SIGHUP reads --config again: what a running controller can take is in force at once, a line says what
waits for a restart, and where the file is wrong everything stays as it is.

What the last hop carries is learned from what passes, for downloads and uploads apart, while
packets are seen waiting; it follows a link that changes. Every decision is one line here and in
`lasthop status`. On exit, also by kill -9, connections go on and nothing is rewritten any more.";

/// Control this machine's last hop: the access point's Wi-Fi and LAN interfaces
///
/// Watches the interfaces towards stations, and lowers the window that TCP receivers offer so that downloads (and uploads) share
/// what the last hop can carry and keep its queue short. UDP flows that behave like downloads (QUIC, tunnels, bulk) are held to
/// their share by marks (ECN), or by drops where they take no marks; real-time UDP (games, calls, streams) is measured and left
/// alone.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// Interface towards the home's stations, or a bridge, whose ports are taken; may be given more than once. "auto" finds
    /// them [default: auto]
    #[arg(long, value_name = "DEV|auto")]
    lan: Vec<InterfaceName>,
    /// Interface towards the provider, also a port of the bridge; its counters are shown, nothing is attached there
    /// [default: where default routes go]
    #[arg(long, value_name = "DEV")]
    wan: Option<InterfaceName>,
    /// TOML file with any of the keys that --print-config shows; flags win over it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What the last hop carries: a rate to begin with, a share of --link ("98%"), or "learn" [default: learn]
    #[arg(long, value_name = "RATE|SHARE|learn", value_parser = capacity)]
    capacity: Option<Capacity>,
    /// What TCP alone reaches over the last hop, where --capacity is a share [default: the speed of the slowest wired
    /// --lan interface]
    #[arg(long, value_name = "RATE")]
    link: Option<BitRate>,
    /// Queue of the LAN interfaces: the one that is there, credit-based scheduling, or what to compare it with [default: kernel]
    #[arg(long, value_name = "KIND", value_enum)]
    queue: Option<Queue>,
    /// Who keeps that queue: the kernel (Linux 6.16), or this process [default: auto]
    #[arg(long, value_name = "WHERE", value_enum)]
    datapath: Option<Where>,
    /// Repair losses of the last hop from copies kept here: for links that lose TCP's packets (0.1 % is enough) tens
    /// of milliseconds from the sender; Wi-Fi with its usual retries has none to repair
    #[arg(long)]
    snoop: bool,
    /// Levers of radios that may be moved, each only where it pays: "class", "aql", "txop", "weights", or several with commas
    /// between them; "auto": all; "off": none [default: class]
    #[arg(long, value_name = "LEVERS|auto|off", value_parser = levers)]
    levers: Option<Levers>,
    /// Whether attempts follow losses and round trips, where the driver can: the MAC setting [default: off]
    #[arg(long, value_name = "HOW", value_enum)]
    mac: Option<Mac>,
    /// Decide and say what it would do; change nothing, no queue either
    #[arg(long)]
    dry_run: bool,
    /// Form of the log on stderr; "auto": the fields of systemd's journal where that reads it, else text [default: auto]
    #[arg(long, value_name = "FORMAT", value_enum)]
    log_format: Option<LogFormat>,
    /// Unix socket that serves the status [default: /run/lasthop/lasthop.sock]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Take over from the controller that runs here, if one does: its connections and hooks go on, and it ends. For upgrades
    #[arg(long)]
    take_over: bool,
    /// Read --config and the other arguments, say what is wrong, and end
    #[arg(long)]
    check: bool,
    /// Print a configuration file with every key, its meaning and its default, and end
    #[arg(long)]
    print_config: bool,
    /// Print the parameters of the control law as JSON, and end: name, unit, default, range, value without its part, reason
    #[arg(long, conflicts_with = "print_config")]
    print_law: bool,
}

/// What `queueing` takes in the configuration file.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Queue {
    /// The one that is there
    Kernel,
    /// Credit-based scheduling: who used the last hop least goes first
    Chap,
    /// First in, first out, at the same pace; like the others below it is kept by this process
    Fifo,
    /// Controlled delay (RFC 8289)
    Codel,
    /// Flow queues with CoDel each (RFC 8290)
    #[value(name = "fq_codel")]
    FqCodel,
}

/// What `datapath` takes in the configuration file.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Where {
    /// The kernel where it can, else this process
    Auto,
    /// A queue discipline in BPF: Linux 6.16 with CONFIG_NET_SCH_BPF
    Kernel,
    /// A TAP and a packet socket: any kernel, more processor time
    User,
}

/// What `mac` takes in the configuration file.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Mac {
    /// They do
    Auto,
    /// They are as they are
    Off,
}

/// What `levers` takes in the configuration file.
#[derive(Clone, Debug)]
struct Levers(Vec<Lever>);

/// Reads them as the configuration file has them, or with commas between them.
fn levers(text: &str) -> Result<Levers, String> {
    let value = match text {
        AUTO | "off" => toml_string(text),
        names => format!("[{}]", names.split(',').map(toml_string).collect::<Vec<_>>().join(", ")),
    };
    Config::parse(&format!("levers = {value}\n"), "--levers").map(|config| Levers(config.levers)).map_err(|error| {
        let message = error.to_string();
        message.split_once(": levers: ").map_or(message.clone(), |(_, reason)| reason.to_owned())
    })
}

/// What `log_format` takes in the configuration file.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum LogFormat {
    /// The journal where stderr leads there, else text
    Auto,
    /// Lines
    Text,
    /// A JSON object a line
    Json,
    /// Fields, to systemd's journal
    Journal,
}

/// Reads what `capacity` takes in the configuration file.
fn capacity(text: &str) -> Result<Capacity, String> {
    let quoted = toml_string(text);
    Config::parse(&format!("capacity = {quoted}\n"), "--capacity").map(|c| c.capacity).map_err(|error| {
        let message = error.to_string();
        message.split_once(": capacity: ").map_or(message.clone(), |(_, reason)| reason.to_owned())
    })
}

/// A TOML basic string; JSON's escapes are a subset of TOML's.
fn toml_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Controls until a signal comes.
pub fn run(arguments: &Arguments) -> Outcome {
    if arguments.print_config {
        return output::print_out(Config::sample());
    }
    if arguments.print_law {
        return output::print_out(&parameters_of_the_law()?);
    }
    let config = arguments.config()?;
    if arguments.check {
        config.warnings.iter().for_each(|line| eprintln!("{line}"));
        return Ok(());
    }
    rights::require()?;
    let stop = Stop::on_signals()?;
    let hangup = Stop::on_hangup()?;
    log::set_format(config.log_format);
    let service = Service::from_environment()?;
    let start = if arguments.take_over { Controller::take_over } else { Controller::new };
    let mut controller = start(config).map_err(|error| match error {
        ControllerError::Config(error) => Failure::request(error),
        error => Failure::work(error),
    })?;
    controller.set_service(service);
    let read = || match &arguments.config {
        Some(_) => arguments.config().map_err(|failure| failure.why()),
        None => Err("it is in no file that could be read again; start with --config FILE".to_owned()),
    };
    controller.run_and_reload(&stop.flag(), &Reload { asked: &hangup, read: &read });
    Ok(())
}

/// One parameter of the law, as --print-law says it.
#[derive(Serialize)]
struct Printed {
    name: &'static str,
    unit: &'static str,
    default: Option<f64>,
    range: (f64, f64),
    without: f64,
    reason: &'static str,
}

/// For tools: `tools/study/ablate.py` plays homes without each.
fn parameters_of_the_law() -> Outcome<String> {
    let usual = Law::default();
    let each = |&Parameter { name, unit, range, without, reason }: &Parameter| Printed {
        name,
        unit,
        default: usual.get(name),
        range,
        without,
        reason,
    };
    let all: Vec<_> = Law::PARAMETERS.iter().map(each).collect();
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

impl Arguments {
    /// The file, then the flags.
    fn config(&self) -> Outcome<Config> {
        let mut config = match &self.config {
            Some(path) => Config::load(path).map_err(Failure::request)?,
            None => Config::default(),
        };
        match self.lan.as_slice() {
            [name] if name.as_str() == AUTO => config.lan.clear(),
            names if names.iter().any(|name| name.as_str() == AUTO) => {
                return Err(Failure::request("--lan auto stands for all; leave it or the other --lan out"));
            }
            names => {
                for name in names {
                    if !config.lan.contains(name) {
                        config.lan.push(name.clone());
                    }
                }
            }
        }
        config.wan = self.wan.clone().or(config.wan);
        config.capacity = self.capacity.unwrap_or(config.capacity);
        config.link = self.link.or(config.link);
        config.queueing = match self.queue {
            Some(Queue::Kernel) => Queueing::Kernel,
            Some(Queue::Chap) => Queueing::Chap,
            Some(Queue::Fifo) => Queueing::Fifo,
            Some(Queue::Codel) => Queueing::Codel,
            Some(Queue::FqCodel) => Queueing::FqCodel,
            None => config.queueing,
        };
        config.datapath = match self.datapath {
            Some(Where::Auto) => Datapath::Auto,
            Some(Where::Kernel) => Datapath::Kernel,
            Some(Where::User) => Datapath::User,
            None => config.datapath,
        };
        config.snoop |= self.snoop;
        if let Some(Levers(levers)) = &self.levers {
            config.levers.clone_from(levers);
        }
        config.mac = self.mac.map_or(config.mac, |mac| matches!(mac, Mac::Auto));
        config.check_queue().map_err(Failure::request)?;
        config.dry_run |= self.dry_run;
        config.log_format = match self.log_format {
            Some(LogFormat::Auto) => log::Format::Auto,
            Some(LogFormat::Text) => log::Format::Text,
            Some(LogFormat::Json) => log::Format::Json,
            Some(LogFormat::Journal) => log::Format::Journal,
            None => config.log_format,
        };
        config.socket = self.socket.clone().unwrap_or(config.socket);
        config.check_interfaces().map_err(Failure::request)?;
        config.check_capacity().map_err(Failure::request)?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levers_on_the_command_line_read_like_the_key() {
        let read = |text| levers(text).map(|Levers(levers)| levers.into_iter().map(Lever::name).collect::<Vec<_>>());
        assert_eq!(read("auto").unwrap(), ["class", "aql", "txop", "weights"]);
        assert_eq!(read("weights,class").unwrap(), ["class", "weights"]);
        assert!(read("off").unwrap().is_empty());
        for wrong in ["", "class,", "attempts", "station-txop", "qos"] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains("\"weights\"") && !error.contains("levers:"), "{error}");
        }
    }

    #[test]
    fn capacity_on_the_command_line_reads_like_the_key() {
        assert_eq!(capacity("23Mbit/s"), Ok(Capacity::Rate(BitRate::mbps(23))));
        assert_eq!(capacity("98%"), Ok(Capacity::Share(0.98)));
        assert_eq!(capacity("learn"), Ok(Capacity::Learn));
        let error = capacity("fast\"\n").unwrap_err();
        assert!(error.contains("98%") && !error.contains("capacity:"), "{error}");
    }
}

//! Configuration of the controller: a TOML file and what the command line adds to it.
//!
//! Parsed, not validated: what comes out holds no wrong value. Every key stands in [`Config::sample`], which a test
//! keeps equal to the defaults. A quantity is a string with its unit.

mod changes;
mod error;
mod read;

use std::path::{Path, PathBuf};

use lasthop_core::ap::{self, Law, Params, RttSource, ShareRule};
use lasthop_core::levers::Lever;
use lasthop_core::snoop;
use lasthop_core::units::{BitRate, Span};

pub use changes::Change;
pub use error::ConfigError;
pub use read::{AUTO, LEVERS};

use crate::interface::{self, InterfaceName};
use crate::log;
use crate::ports;
use crate::program::LoadOptions;
use crate::qdisc;

/// Everything that can be configured.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Interfaces towards the home's stations; the controller hooks both directions of each. None: it finds them
    /// (`live::ports`).
    pub lan: Vec<InterfaceName>,
    /// Interface towards the provider: its counters are shown, nothing is hooked there.
    pub wan: Option<InterfaceName>,
    /// What each hop carries, IP bytes; or that it is to be learned.
    pub capacity: Capacity,
    /// What the last hop can carry when nothing else uses it; `None`: the wire's speed, where there is a wire.
    pub link: Option<BitRate>,
    /// Time between two decisions; `None`: see [`Config::interval`].
    pub interval: Option<Span>,
    /// How capacity is divided.
    pub share: ShareRule,
    /// Weight of the newest sample in the low-pass filter of UDP's rate, above 0 and up to 1.
    pub udp_weight: f64,
    /// Where the base RTT of a flow comes from.
    pub rtt: RttSource,
    /// Parameters of the law, `queue` and `growth` among them; the others are for experts.
    pub law: Law,
    /// Bound of the flow table, connections.
    pub flows: u32,
    /// A connection that was silent for so long is forgotten.
    pub idle: Span,
    /// How programs get onto an interface.
    pub attach: AttachMode,
    /// Whether windows are lowered.
    pub windows: bool,
    /// Whether windows are told between acknowledgments too (`live::updates`), under the law.
    pub window_updates: bool,
    /// Which queue discipline the LAN interfaces have.
    pub queueing: Queueing,
    /// Who keeps that queue.
    pub datapath: Datapath,
    /// Whether losses of the last hop are repaired here (`core::snoop`); then this process keeps the queue.
    pub snoop: bool,
    /// How it is to behave.
    pub snoop_params: snoop::Params,
    /// How CHAP is to behave.
    pub chap: qdisc::Settings,
    /// Whether both directions share the last hop.
    pub duplex: Duplex,
    /// Levers of radios that may be moved (`core::levers`), but for attempts.
    pub levers: Vec<Lever>,
    /// Attempts may be, too: the MAC setting.
    pub mac: bool,
    /// Packets that a radio's own queues may hold; `None`: as they are.
    pub mac_queue: Option<u32>,
    /// Decide and show, rewrite nothing.
    pub dry_run: bool,
    /// Unix socket that serves the status.
    pub socket: PathBuf,
    /// Group whose members may read the status: name or number; empty: root alone.
    pub socket_group: String,
    /// In which form the log is written.
    pub log_format: log::Format,
    /// What should be written otherwise and was read all the same: keys by names of an earlier version.
    pub warnings: Vec<String>,
}

/// The capacity as written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// Nobody says: it is learned from what passes.
    Learn,
    /// A rate.
    Rate(BitRate),
    /// A share of `link`, above 0 and up to 1.
    Share(f64),
}

/// How programs get onto an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachMode {
    /// tcx where the kernel has it (Linux 6.6), else clsact.
    Auto,
    /// tcx or nothing.
    Tcx,
    /// clsact filters.
    Clsact,
}

/// Which queue discipline the LAN interfaces have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// The one that is there.
    Kernel,
    /// Credit-based scheduling (`live::qdisc`, `live::datapath`).
    Chap,
    /// First in, first out, drop-tail; to compare with, as all that follow (`live::datapath`).
    Fifo,
    /// Controlled delay (RFC 8289).
    Codel,
    /// Flow queues with CoDel each (RFC 8290).
    FqCodel,
}

/// Who keeps the queue of the LAN interfaces, where it is not the one that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datapath {
    /// The kernel where it can, else this process.
    Auto,
    /// The kernel: a queue discipline in BPF (`live::qdisc`).
    Kernel,
    /// This process (`live::datapath`).
    User,
}

/// Whether both directions share what the last hop carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplex {
    /// They do over a radio, and over a TAP, behind which one may be.
    Auto,
    /// They do: radio.
    Half,
    /// Each has the capacity to itself.
    Full,
}

impl Duplex {
    /// Whether both directions share what an interface carries.
    #[must_use]
    pub const fn shares_channel(self, is_radio: bool) -> bool {
        match self {
            Self::Auto => is_radio,
            Self::Half => true,
            Self::Full => false,
        }
    }

    /// What holds for a last hop of interfaces of which some are radios: radio where one of them is, or where none is there yet.
    #[must_use]
    pub fn of(self, radios: impl IntoIterator<Item = bool>) -> ap::Duplex {
        let is_radio = radios.into_iter().reduce(|a, b| a || b).unwrap_or(true);
        if self.shares_channel(is_radio) { ap::Duplex::Half } else { ap::Duplex::Full }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            lan: Vec::new(),
            wan: None,
            capacity: Capacity::Learn,
            link: None,
            interval: None,
            share: ShareRule::MaxMin,
            udp_weight: 0.2,
            rtt: RttSource::Measured,
            law: Law::default(),
            // A busy home holds some thousands. About 8 MB, taken at the start: an eighth of a small router's 64 MB.
            flows: 16_384,
            // RFC 5382 REQ-5: an open connection may be silent for 2 h 4 min.
            idle: Span::from_secs(7440),
            attach: AttachMode::Auto,
            windows: true,
            window_updates: true,
            queueing: Queueing::Kernel,
            datapath: Datapath::Auto,
            snoop: false,
            snoop_params: snoop::Params::default(),
            chap: qdisc::Settings::default(),
            duplex: Duplex::Auto,
            // It changes nothing of the machine, and takes a tenth of the air at most.
            levers: vec![Lever::Class],
            mac: false,
            mac_queue: None,
            dry_run: false,
            socket: PathBuf::from(lasthop_status::DEFAULT_SOCKET),
            socket_group: String::new(),
            log_format: log::Format::Auto,
            warnings: Vec::new(),
        }
    }
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// Names file, line, key and what would be right.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = lasthop_files::read_text(path, lasthop_files::Terms::CONFIGURATION)
            .map_err(|source| ConfigError::Unreadable { file: path.display().to_string(), source })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Reads a text; `file` is only named in errors.
    ///
    /// # Errors
    /// Names file, line, key and what would be right.
    pub fn parse(text: &str, file: &str) -> Result<Self, ConfigError> {
        read::parse(text, file)
    }

    /// A commented file that holds every key with its default.
    #[must_use]
    pub const fn sample() -> &'static str {
        include_str!("../lasthop.toml")
    }

    /// The capacity as a rate; none where it is to be learned.
    ///
    /// # Errors
    /// When it is a share of a link whose speed is neither written nor known: says what to type.
    pub fn capacity(&self) -> Result<Option<BitRate>, ConfigError> {
        self.capacity_of(|| self.wire())
    }

    /// Speed of the slowest wire among the LAN interfaces.
    #[must_use]
    pub fn wire(&self) -> Option<BitRate> {
        self.lan.iter().filter_map(interface::speed).min()
    }

    /// Time between two decisions: what is written, else what the rule of sharing wants.
    #[must_use]
    pub fn interval(&self) -> Span {
        self.interval.unwrap_or(self.share.interval())
    }

    /// What the deciding half is told, at this capacity; none: it is to be learned.
    #[must_use]
    pub fn params(&self, capacity: Option<BitRate>) -> Params {
        Params {
            capacity,
            duplex: self.duplex.of([]),
            share: self.share,
            udp_weight: self.udp_weight,
            interval: self.interval(),
            rtt: self.rtt,
            law: self.law,
            max_flows: self.flows as usize,
            queue_is_fair: !self.dry_run && matches!(self.queue_in_force(), Queueing::Chap | Queueing::FqCodel),
            ..Params::learning()
        }
    }

    /// Whether the interfaces can be what they are named as.
    ///
    /// # Errors
    /// Says what to type.
    pub fn check_interfaces(&self) -> Result<(), ConfigError> {
        Ok(ports::check_names(&self.lan, self.wan.as_ref())?)
    }

    /// Whether a capacity can be done without.
    ///
    /// # Errors
    /// Says what to type.
    pub fn check_capacity(&self) -> Result<(), ConfigError> {
        if self.capacity == Capacity::Learn && self.share == ShareRule::Equal {
            return Err(ConfigError::EqualNeedsCapacity);
        }
        self.capacity().map(drop)
    }

    /// Whether the queue that is wanted can be kept in the way that is wanted.
    ///
    /// # Errors
    /// Says what to type.
    pub fn check_queue(&self) -> Result<(), ConfigError> {
        let is_comparator = matches!(self.queueing, Queueing::Fifo | Queueing::Codel | Queueing::FqCodel);
        match self.datapath {
            Datapath::Kernel if self.snoop => Err(ConfigError::KernelSnoop),
            Datapath::Kernel if is_comparator => Err(ConfigError::KernelQueue),
            _ => Ok(()),
        }
    }

    /// The queue of the LAN interfaces: repair needs one that this process keeps.
    #[must_use]
    pub const fn queue_in_force(&self) -> Queueing {
        match self.queueing {
            Queueing::Kernel if self.snoop => Queueing::FqCodel,
            queueing => queueing,
        }
    }

    /// Every lever that may be moved, in the order in which they are tried.
    #[must_use]
    pub fn levers_in_force(&self) -> Vec<Lever> {
        let attempts = self.mac.then_some(Lever::Attempts);
        Lever::ALL.into_iter().filter(|lever| self.levers.contains(lever) || attempts == Some(*lever)).collect()
    }

    /// The programs that are loaded: what is handed to this process is what a queue of its own needs.
    #[must_use]
    pub fn programs(&self) -> LoadOptions {
        let is_kept = self.queue_in_force() != Queueing::Kernel && !self.dry_run;
        let diverts = is_kept && self.datapath != Datapath::Kernel;
        LoadOptions { flows: self.flows, diverts, catches: is_kept && self.snoop }
    }

    fn capacity_of(&self, wire: impl FnOnce() -> Option<BitRate>) -> Result<Option<BitRate>, ConfigError> {
        match self.capacity {
            Capacity::Learn => Ok(None),
            Capacity::Rate(rate) => Ok(Some(rate)),
            Capacity::Share(share) => {
                let link = self.link.or_else(wire).ok_or_else(|| ConfigError::UnknownCapacity {
                    lan: match self.lan.as_slice() {
                        [] => "interfaces that are yet to be found".to_owned(),
                        names => names.iter().map(InterfaceName::as_str).collect::<Vec<_>>().join(", "),
                    },
                })?;
                Ok(Some(link.mul_f64(share)))
            }
        }
    }
}

#[cfg(test)]
mod tests;

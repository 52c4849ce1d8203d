//! The air between simulated radios, in a virtual machine: `tools/vm/cases/air` starts it in the first network namespace.
//!
//! ```text
//! air --standard n --width 20 --streams 2 --guard 400 [--seed 1] [--shadows 5] --snr 30 [--snr 20 ..]
//! ```
//!
//! Makes the radios `air0` (the access point) and `air1` .. (a station for each `--snr`), which go when it ends: at the end of standard
//! input or killed. Writes a line of JSON when they are there, then one for every frame of data and every ADDBA between access point and
//! station, and one for each line of standard input:
//!
//! | line | answer |
//! |---|---|
//! | `snr STATION DB` | moves it |
//! | `rates STATION` | what each shadow ([`lasthop_hwsim::shadow`]) would send with, and the chains of those of the newer scheme |
//! | `worth STATION BYTES` | every mode's worth at its true error probability, best first |
//! | `classes` | `core::dscp`'s class of each code point, those that have a name, what block acks cover, and which classes aggregate |
//! | `counters` | of the air, and of what the driver refused |

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use clap::{Parser, ValueEnum};
use lasthop_core::dscp::Dscp;
use lasthop_core::packet::AccessCategory;
use lasthop_core::units::Time;
use lasthop_hwsim::air::{Action, Air, Outcome, Params};
use lasthop_hwsim::frame::Kind;
use lasthop_hwsim::message::{self, FAMILY};
use lasthop_hwsim::shadow::{Shadow, worth};
use lasthop_hwsim::{Mac, rates};
use lasthop_live::clock;
use lasthop_live::netlink::{NLMSG_ERROR, Socket};
use lasthop_medium::rate_control::{Capability, RatePlan, Scheme};
use lasthop_medium::{ACCESS_POINT_EDCA, Ampdu, Guard, Rate, Standard, Width};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::pipe;
use serde_json::{Value, json};

/// The kernel's queue of frames for us, bytes: two radios' 200 frames of 4 kB, several times over.
const QUEUE_BYTES: usize = 8 << 20;

#[derive(Parser)]
struct Arguments {
    #[arg(long)]
    standard: Generation,
    /// MHz
    #[arg(long)]
    width: u32,
    #[arg(long)]
    streams: u8,
    /// ns
    #[arg(long)]
    guard: u32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Of each scheme
    #[arg(long, default_value_t = 5)]
    shadows: u64,
    /// Of a station, dB over the whole width
    #[arg(long, required = true, allow_negative_numbers = true)]
    snr: Vec<f64>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Generation {
    N,
    Ac,
}

impl Arguments {
    fn capability(&self) -> Result<Capability, String> {
        let standard = match self.standard {
            Generation::N => Standard::N,
            Generation::Ac => Standard::Ac,
        };
        let width = Width::ALL.into_iter().find(|width| width.mhz() == self.width);
        let guard = Guard::ALL.into_iter().find(|guard| guard.nanos() == self.guard);
        let (Some(width), Some(guard)) = (width, guard) else {
            return Err("--width is 20, 40, 80 or 160, --guard 400 or 800".to_owned());
        };
        let capability = Capability { standard, width, streams: self.streams, guard };
        if capability.rates().is_empty() {
            return Err(format!("no mode has {} MHz, {} streams and {} ns", self.width, self.streams, self.guard));
        }
        Ok(capability)
    }
}

/// Everything that runs.
struct Host {
    socket: Socket,
    family: u16,
    air: Air,
    /// By station from 1 on.
    shadows: Vec<Vec<Shadow>>,
    capability: Capability,
    started: Time,
    /// Messages that could not be read; refusals by the driver, and messages that it could not hand over.
    malformed: u64,
    refused: u64,
    overruns: u64,
}

impl Host {
    fn new(arguments: &Arguments) -> Result<Self, Box<dyn Error>> {
        let capability = arguments.capability()?;
        let mut socket = Socket::open(libc::NETLINK_GENERIC)?;
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, QUEUE_BYTES)?;
        let family = socket.family(FAMILY).map_err(|e| format!("there is no mac80211_hwsim; load the module: {e}"))?.id;
        socket.request(family, 0, &message::register())?;
        let addresses: Vec<Mac> = (0..=arguments.snr.len() as u8).map(|n| [2, 0, 0, 0, n, 0]).collect();
        for (n, address) in addresses.iter().enumerate() {
            socket.request(family, 0, &message::new_radio(&format!("air{n}"), *address))?;
        }
        let stations: Vec<(Mac, f64)> = addresses[1..].iter().copied().zip(arguments.snr.iter().copied()).collect();
        let seeds = arguments.seed..arguments.seed + arguments.shadows;
        let both = |seed| [Scheme::Share, Scheme::Kinds].map(|scheme| Shadow::new(scheme, capability, seed));
        Ok(Self {
            socket,
            family,
            air: Air::new(Params { capability, seed: arguments.seed }, addresses[0], &stations),
            shadows: stations.iter().map(|_| seeds.clone().flat_map(both).collect()).collect(),
            capability,
            started: clock::now(),
            malformed: 0,
            refused: 0,
            overruns: 0,
        })
    }

    fn now(&self) -> Time {
        Time::ZERO + clock::now().since(self.started)
    }

    /// Takes what the kernel has to say.
    fn hear(&mut self) -> io::Result<()> {
        let now = self.now();
        let (air, malformed, refused) = (&mut self.air, &mut self.malformed, &mut self.refused);
        let heard = self.socket.listen(|kind, body| match kind {
            NLMSG_ERROR => *refused += 1,
            _ => match message::read(body) {
                Ok(Some(sent)) => air.on_frame(now, &sent),
                Ok(None) => {}
                Err(_) => *malformed += 1,
            },
        });
        match heard {
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => self.overruns += 1,
            other => other?,
        }
        Ok(())
    }

    /// Does what is due.
    fn act(&mut self, out: &mut impl Write) -> io::Result<()> {
        let now = self.now();
        while let Some(action) = self.air.poll(now) {
            let body = match action {
                Action::Arrive { radio, frame, rate, signal_dbm, frequency_mhz } => {
                    message::arrival(radio, &frame, rate, signal_dbm, frequency_mhz)
                }
                Action::Settle(outcome) => {
                    self.shade(&outcome);
                    if let Some(line) = line_of(&outcome) {
                        writeln!(out, "{line}")?;
                    }
                    let made = rates::used(&outcome.rates, outcome.tried.len() as u16);
                    message::outcome(outcome.radio, outcome.cookie, outcome.flags, outcome.signal_dbm, &made)
                }
            };
            self.socket.tell(self.family, &body)?;
        }
        out.flush()
    }

    /// Shadows take part where minstrel_ht does: data to a station outside of block ack agreements, which voice never has.
    fn shade(&mut self, outcome: &Outcome) {
        let (0, Some(station)) = outcome.between else { return };
        let is_data = matches!(outcome.header.kind, Kind::Data(Some(_)));
        if !is_data || outcome.header.class() != AccessCategory::Vo {
            return;
        }
        let Some(path) = self.air.path(station) else { return };
        for shadow in &mut self.shadows[station - 1] {
            shadow.on_frame(outcome.at, path, outcome.bytes);
        }
    }

    fn answer(&mut self, line: &str) -> Result<Value, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let stations = self.shadows.len();
        let station = |word: &str| {
            let number = word.parse().ok().filter(|n| (1..=stations).contains(n));
            number.ok_or_else(|| format!("{word} is no station; there are 1 to {stations}"))
        };
        match words[..] {
            ["snr", number, db] => {
                let db: f64 = db.parse().map_err(|_| format!("{db} is no number of decibels"))?;
                self.air.set_snr(station(number)?, db);
                Ok(json!({ "snr": db }))
            }
            ["rates", number] => {
                let own = &self.shadows[station(number)? - 1];
                let of = |scheme: Scheme| -> Vec<String> {
                    own.iter().filter(|s| s.scheme() == scheme).map(|s| rates::name(s.rate())).collect()
                };
                let chains: Vec<_> =
                    own.iter().filter(|s| s.scheme() == Scheme::Kinds).map(|s| stages(s.chain())).collect();
                Ok(json!({ "share": of(Scheme::Share), "kinds": of(Scheme::Kinds), "chains": chains }))
            }
            ["worth", number, bytes] => {
                let bytes: u32 = bytes.parse().map_err(|_| format!("{bytes} is no number of bytes"))?;
                let path = self.air.path(station(number)?).ok_or("no path")?;
                let mut all: Vec<(String, f64)> = worth(self.capability, path, bytes)
                    .filter_map(|(mode, worth)| Some((rates::name(Rate::of_mode(mode)?), worth)))
                    .collect();
                all.sort_by(|a, b| b.1.total_cmp(&a.1));
                Ok(json!({ "worth": all }))
            }
            ["classes"] => {
                let class = |value| Dscp::new(value).map(|dscp| format!("{:?}", dscp.access_category()));
                let aggregates: Vec<_> = AccessCategory::ALL
                    .into_iter()
                    .filter(|class| ACCESS_POINT_EDCA[class.index()].aggregates)
                    .map(|class| format!("{class:?}"))
                    .collect();
                Ok(json!({
                    "classes": (0..64).filter_map(class).collect::<Vec<_>>(), "aggregates": aggregates,
                    "named": Dscp::names().filter_map(Dscp::named).map(Dscp::value).collect::<Vec<_>>(),
                    "window": Ampdu::of(self.capability.standard).map(|ampdu| ampdu.window),
                }))
            }
            ["counters"] => {
                let s = self.air.snapshot();
                Ok(json!({
                    "carried": s.carried, "acked": s.acked, "uncontended": s.uncontended, "strange": s.strange,
                    "malformed": s.malformed + self.malformed, "overflowed": s.overflowed, "refused": self.refused,
                    "overruns": self.overruns,
                }))
            }
            _ => Err(format!(
                "`{line}` is none of: snr STATION DB, rates STATION, worth STATION BYTES, classes, counters"
            )),
        }
    }
}

/// What is told of a frame between access point and station.
fn line_of(outcome: &Outcome) -> Option<Value> {
    let (from, Some(to)) = outcome.between else { return None };
    if let Some(addba) = outcome.addba {
        return Some(json!({
            "addba": if addba.status.is_some() { "response" } else { "request" }, "from": from, "to": to,
            "status": addba.status, "tid": addba.tid, "buffer": addba.buffer, "immediate": addba.is_immediate,
            "amsdu": addba.takes_amsdu, "acked": outcome.is_acked(),
        }));
    }
    let (Kind::Data(tid), true) = (outcome.header.kind, outcome.header.has_msdu) else { return None };
    let table = rates::plan(&outcome.rates, outcome.frequency_mhz)?;
    Some(json!({
        "at_us": outcome.at.as_nanos() / 1_000, "from": from, "to": to, "tid": tid, "bytes": outcome.bytes,
        "acked": outcome.is_acked(), "protected": outcome.header.is_protected,
        "table": stages(&table), "tried": outcome.tried.iter().map(|rate| rates::name(*rate)).collect::<Vec<_>>(),
    }))
}

/// Rate, tries, and whether RTS goes before.
fn stages(plan: &RatePlan) -> Vec<(String, u8, bool)> {
    plan.stages().iter().map(|stage| (rates::name(stage.rate), stage.tries, stage.rts)).collect()
}

/// Lines of standard input, and a pipe that ends or has something to read when one came.
fn lines() -> io::Result<(Receiver<String>, rustix::fd::OwnedFd)> {
    let (wake, woken) = pipe()?;
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() || rustix::io::write(&woken, &[0]).is_err() {
                return;
            }
        }
    });
    Ok((receiver, wake))
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut host = Host::new(&Arguments::parse())?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    writeln!(out, "{}", json!({ "radios": host.shadows.len() + 1 }))?;
    out.flush()?;
    let (lines, wake) = lines()?;
    loop {
        host.hear()?;
        host.act(&mut out)?;
        loop {
            match lines.try_recv() {
                Ok(line) => {
                    let answer = host.answer(&line).unwrap_or_else(|error| json!({ "error": error }));
                    writeln!(out, "{}", json!({ "answer": answer }))?;
                    out.flush()?;
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
        }
        let wait = host.air.next_deadline().map(|at| Time::since(at, host.now().min(at)));
        let timeout = wait.map(|wait| Timespec {
            tv_sec: (wait.as_nanos() / 1_000_000_000) as i64,
            tv_nsec: (wait.as_nanos() % 1_000_000_000) as _,
        });
        let ready = PollFlags::IN;
        let mut fds = [PollFd::new(&host.socket, ready), PollFd::new(&wake, ready)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !fds[1].revents().is_empty() {
            let mut byte = [0; 16];
            let _ = rustix::io::read(&wake, &mut byte);
        }
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("air: {error}");
            ExitCode::FAILURE
        }
    }
}

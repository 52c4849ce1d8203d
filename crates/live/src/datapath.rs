//! The queue of an interface in this process: for kernels that have no queue disciplines in BPF (`qdisc`).
//!
//! ```text
//! kernel -> lan0, tc egress -- program: not from our socket --> TAP -> queue of core, pace -> packet socket
//!                  ^                                                                               |
//!                  '---------- program: from our socket, go on --> qdisc, driver <-----------------'
//! ```
//!
//! The program on the interface's egress (`lasthop_divert`) measures each packet as ever and redirects it into a
//! non-persistent TAP. A thread reads it there, queues it (`core::aqm`), and sends it at the pace that is left of the
//! capacity through a packet socket on the same interface. The program knows the socket by its cookie, and lets pass.
//!
//! # Why not a route
//! A route of lower metric into the TAP does the same on paper. It cannot be had: connected IPv4 routes have metric 0, the
//! least there is; strict reverse path filtering would drop all that stations send, since the return path to them is not the
//! interface that they came by; firewalls that name the interface would not know the TAP; neighbours would have to be
//! resolved by us; what a bridge forwards takes no route at all. Behind the tc hook a frame has its Ethernet header
//! already, NAT and firewall are done with it, and neither routes, rules nor marks are touched: nothing can be left behind.
//!
//! # When it dies
//! The kernel deletes the TAP with the process. tcx programs go at the same moment; a clsact filter stays, and lets all
//! packets pass as soon as the TAP is gone, or 0.5 s after the last sign of life of a process that hangs. What was held is
//! lost then, like packets of a queue that overflows. At an orderly end everything held is sent first.
//!
//! # Losses of the hop
//! With Snoop (`hop`), frames are copied as they leave the queue, and bare acknowledgments of stations take the way through
//! here as well (`answers`): those that tell of nothing but a hole that is being repaired go no further.
//!
//! # What is not done
//! Air time is charged by the cost of bytes and packets (as in `qdisc`), since no driver is asked. Upstream, the flow that
//! a station's frame belongs to pays the same cost, retries unseen. Marks of the firewall (`skb->mark`) and the kernel's
//! time stamps do not pass the TAP. CoDel drops and does not mark (ECN).

pub mod answers;
pub mod arena;
pub mod divert;
pub mod engine;
pub mod pace;
mod port;
pub mod snoop_relay;
mod tap;
mod worker;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use lasthop_core::snoop;
use lasthop_core::units::{BitRate, Time};

use crate::attach::AttachError;
use crate::interface::{self, InterfaceName};
use crate::log::log;
use crate::netlink::Socket;
use crate::program::{LinkLayer, LoadError, Program};
use crate::qdisc::{Settings, cost, secret};

pub use engine::Kind;
pub use worker::Counted;

use answers::Answers;
use divert::Diversion;
use engine::{BATCH, Engine};
use port::{Ear, Port};
use tap::Tap;
use worker::{Shared, Worker};

/// Why an interface cannot have it.
#[derive(Debug, thiserror::Error)]
pub enum DatapathError {
    /// No TUN.
    #[error("{name}: no TAP could be made for its queue; load the module (modprobe tun), or leave --queue out")]
    Tap {
        /// The interface.
        name: InterfaceName,
        /// Why.
        source: io::Error,
    },
    /// No packet socket.
    #[error("{name}: no packet socket could be opened; CHAP in user space needs CAP_NET_RAW and CONFIG_PACKET")]
    Port {
        /// The interface.
        name: InterfaceName,
        /// Why.
        source: io::Error,
    },
    /// Acknowledgments would not find back.
    #[error("{name}: no program could be put where acknowledgments go back into the kernel; leave --snoop out")]
    Return {
        /// The interface.
        name: InterfaceName,
        /// Why.
        source: AttachError,
    },
    /// The program cannot be told where packets are to go.
    #[error(transparent)]
    Maps(#[from] LoadError),
    /// The interface is not there, or its kernel does not answer.
    #[error("{name} could not be asked about")]
    Interface {
        /// The interface.
        name: InterfaceName,
        /// Why.
        source: io::Error,
    },
    /// The thread could not be started.
    #[error("no thread could be started for the queue")]
    Thread(#[source] io::Error),
}

/// Makes what a queue needs on the loopback interface, and takes it away again; nothing is diverted.
///
/// # Errors
/// The failed system call.
pub fn try_out() -> io::Result<()> {
    const LOOPBACK: u32 = 1;
    let mut route = Socket::open(libc::NETLINK_ROUTE)?;
    let tap = Tap::new(&mut route, LinkLayer::Ethernet, 1_500)?;
    let port = Port::new(LOOPBACK, true)?;
    port.cookie()?;
    drop((tap, port));
    Ear::new(LOOPBACK, None).map(drop)
}

/// For the link header of an acknowledgment, tags included.
const ROOM: usize = 64;

/// Where, and how.
#[derive(Clone, Copy, Debug)]
pub struct Egress {
    /// Number of the interface.
    pub ifindex: u32,
    /// What its frames begin with.
    pub layer: LinkLayer,
    /// Longest packet that it carries, bytes, link header not counted.
    pub mtu: u32,
    /// Whether stations send over the same channel: then their flows pay for it.
    pub shares_channel: bool,
    /// How losses of the hop are repaired here; none: they are not.
    pub snoop: Option<snoop::Params>,
}

/// The queue of one interface; when it is dropped, packets go their own way again.
#[derive(Debug)]
pub struct Datapath {
    egress: Egress,
    device: InterfaceName,
    route: Mutex<Socket>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Datapath {
    /// Keeps the queue of the interface `name`. There `program` has to be attached, and to be one that diverts; where losses are
    /// to be repaired, one that catches too.
    ///
    /// # Errors
    /// Says what is missing; nothing is left behind.
    pub fn new(
        name: &InterfaceName,
        egress: Egress,
        kind: Kind,
        settings: &Settings,
        program: &Program,
        now: Time,
        rate: BitRate,
    ) -> Result<Self, DatapathError> {
        let refused = |source| DatapathError::Interface { name: name.clone(), source };
        let mut route = Socket::open(libc::NETLINK_ROUTE).map_err(refused)?;
        let mtu = egress.mtu;
        let tap = Tap::new(&mut route, egress.layer, mtu)
            .map_err(|source| DatapathError::Tap { name: name.clone(), source })?;
        let no_port = |source| DatapathError::Port { name: name.clone(), source };
        let port = Port::new(egress.ifindex, egress.layer == LinkLayer::Ethernet).map_err(no_port)?;
        port.set_rate(rate);
        let at = (egress.ifindex, egress.layer);
        let answers = egress.snoop.map(|_| Answers::new(&mut route, name, at, mtu, program)).transpose()?;
        // Without it the pace alone knows of what goes up, and Snoop of acknowledgments that carry data later than it could.
        let listens = egress.snoop.is_some() || (egress.shares_channel && kind == Kind::Chap);
        let ear = listens.then(|| Ear::new(egress.ifindex, answers.as_ref().map(Answers::mark)).ok()).flatten();
        let cookie = port.cookie().map_err(no_port)?;
        let device = tap.name().clone();
        let cost = cost(rate, settings.packet_time);
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            rate_bps: AtomicU64::new(rate.as_bps()),
            metrics: Mutex::new(Counted::default()),
        });
        let mut engine = Engine::new(kind, settings, egress.layer, mtu, cost, secret(), now);
        if let Some(params) = egress.snoop {
            engine = engine.with_snoop(params);
        }
        let worker = Worker {
            diversion: Diversion::new(program.diverts()?, egress.ifindex, tap.ifindex(), cookie),
            engine,
            tap,
            port,
            ear,
            answers: answers.map(|answers| (answers, vec![0; mtu as usize + ROOM])),
            packet_time: settings.packet_time,
            shared: shared.clone(),
            counted: Counted::default(),
            rate,
            outgoing: Vec::with_capacity(BATCH),
            is_blocked: false,
        };
        let what = name.clone();
        let work = move || {
            if let Err(error) = worker.run() {
                log(&format!("{what}: its queue in this process ended: {error}"));
            }
        };
        let thread = std::thread::Builder::new().name("lasthop-queue".to_owned()).spawn(work);
        let thread = Some(thread.map_err(DatapathError::Thread)?);
        Ok(Self { egress, device, route: Mutex::new(route), shared, thread })
    }

    /// How fast packets may leave from now on; heard within a tenth of a second.
    pub fn set_pace(&self, rate: BitRate) {
        self.shared.rate_bps.store(rate.as_bps(), Ordering::Relaxed);
    }

    /// What has been counted, up to a tenth of a second ago.
    #[must_use]
    pub fn counted(&self) -> Counted {
        *self.shared.metrics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frames that the kernel lost on their way to us, because we did not read them in time.
    #[must_use]
    pub fn overrun(&self) -> u64 {
        let mut route = self.route.lock().unwrap_or_else(PoisonError::into_inner);
        interface::state(&mut route, &self.device).ok().flatten().map_or(0, |state| state.sent_dropped)
    }

    /// The device that packets are handed to.
    #[must_use]
    pub const fn device(&self) -> &InterfaceName {
        &self.device
    }

    /// The interface's number when it began.
    #[must_use]
    pub const fn ifindex(&self) -> u32 {
        self.egress.ifindex
    }

    /// Whether there is room for the longest packets of an interface with this MTU.
    #[must_use]
    pub const fn carries(&self, mtu: u32) -> bool {
        mtu <= self.egress.mtu
    }

    /// Whether losses of the hop are repaired here.
    #[must_use]
    pub const fn repairs(&self) -> bool {
        self.egress.snoop.is_some()
    }

    /// Whether it is at work.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl Drop for Datapath {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

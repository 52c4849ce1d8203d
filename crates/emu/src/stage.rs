//! The players of a scenario on their threads.

use crate::address::near;
use crate::engine::Offers;
use crate::error::Error;
use crate::home::Home;
use crate::players::quic::{self, Arrivals, Download, Identity};
use crate::players::tcp::{self, Connection, Supply, Totals};
use crate::players::{Gate, udp};
use crate::refuse::kernel_name;
use lasthop_home::course::MOST_FLOWS;
use lasthop_home::scenario::{Flow, HostId, Kind, Quic, Scenario, Tcp};
use lasthop_home::traffic::Source;
use lasthop_home::traffic::feed::Feed;
use std::collections::BTreeMap;
use std::io;
use std::net::UdpSocket;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

/// Stack of a player, bytes: they hold little.
const STACK: usize = 256 << 10;
/// Of one with TLS and a runtime.
const LARGE_STACK: usize = 2 << 20;

/// What became of the greedy flows, by index.
#[derive(Debug, Default)]
pub struct Played {
    /// What their senders counted.
    pub senders: BTreeMap<usize, Totals>,
    /// What their receivers got, where packets do not show it.
    pub receivers: BTreeMap<usize, Arrivals>,
}

/// Every player, waiting at the gate or playing. Dropping it sends them home.
pub struct Stage {
    /// Opens when the scenario starts.
    pub gate: Arc<Gate>,
    threads: Vec<JoinHandle<()>>,
    /// Senders of greedy flows, with the index of their flow.
    senders: Vec<(usize, JoinHandle<Option<Totals>>)>,
    /// Receivers of downloads over QUIC, likewise.
    receivers: Vec<(usize, JoinHandle<Option<Arrivals>>)>,
    /// Of all ends of QUIC, once there is one.
    identity: Option<Arc<Identity>>,
    complaints: mpsc::Receiver<Error>,
    complain: mpsc::Sender<Error>,
    /// Sockets that only have to exist.
    _sinks: Vec<UdpSocket>,
}

impl Stage {
    /// Opens every socket in its host and starts the threads, which wait at the gate.
    ///
    /// # Errors
    /// [`Error::Flow`] with the flow whose socket failed.
    pub fn prepare(scenario: &Scenario, home: &Home, offers: &Offers, with_course: bool) -> Result<Self, Error> {
        let (complain, complaints) = mpsc::channel();
        let (threads, senders, sinks) = (Vec::new(), Vec::new(), Vec::new());
        let (receivers, identity) = (Vec::new(), None);
        let mut stage =
            Self { gate: Gate::new(), threads, senders, receivers, identity, complaints, complain, _sinks: sinks };
        let mut open: BTreeMap<HostId, Vec<udp::Open>> = BTreeMap::new();
        for (index, flow) in scenario.flows.iter().enumerate() {
            let number = index as u16;
            if let Some(tcp) = flow.tcp() {
                let course_of = (with_course && index < MOST_FLOWS).then_some(scenario.duration);
                let connection = Connection { course_of, ..connection(scenario, number, flow, tcp) };
                stage.add_connection(home, (index, offers), flow, (connection, scenario.seed))?;
                continue;
            }
            if let Kind::Quic(quic) = &flow.kind {
                stage.add_download(home, index, flow, download(scenario, number, flow, quic))?;
                continue;
            }
            let (source, destination) = (near(flow.from, flow.to), near(flow.to, flow.from));
            let bind = || udp::sink(number, destination).map_err(fail(flow, "cannot open the receiver's socket"));
            stage._sinks.push(home.namespace(flow.to).run(bind)?);
            let schedule = Source::new(flow, scenario.seed);
            open.entry(flow.from).or_default().push(udp::Open {
                flow: number,
                source,
                destination,
                schedule,
                dscp: flow.dscp,
            });
        }
        for (host, flows) in open {
            stage.add_open(scenario, home, host, flows)?;
        }
        Ok(stage)
    }

    fn add_open(&mut self, scenario: &Scenario, home: &Home, host: HostId, flows: Vec<udp::Open>) -> Result<(), Error> {
        let Some(first) = flows.first().map(|open| &scenario.flows[usize::from(open.flow)]) else { return Ok(()) };
        let open = || udp::Sender::open(flows).map_err(fail(first, "cannot open the sender's socket"));
        let sender = home.namespace(host).run(open)?;
        let gate = Arc::clone(&self.gate);
        self.threads.push(start(STACK, move || sender.play(&gate))?);
        Ok(())
    }

    fn add_connection(
        &mut self,
        home: &Home,
        (index, offers): (usize, &Offers),
        flow: &Flow,
        (connection, seed): (Connection, u64),
    ) -> Result<(), Error> {
        let listen = || tcp::listen(&connection).map_err(fail(flow, "cannot open the receiver's socket"));
        let listener = home.namespace(flow.to).run(listen)?;
        let connect = || tcp::sender(&connection).map_err(fail(flow, &cannot_send(&connection)));
        let socket = home.namespace(flow.from).run(connect)?;
        let (gate, sink, failure) =
            (Arc::clone(&self.gate), connection.clone(), self.failure(flow, "the receiver failed"));
        let offers = Arc::clone(offers);
        let receive = move || tcp::receive(&sink, &listener, &offers[index], &gate).unwrap_or_else(failure);
        self.threads.push(start(STACK, receive)?);
        let supply = match &flow.kind {
            Kind::Ftp(ftp) => ftp.bytes.map_or(Supply::Endless, |bytes| Supply::Bytes(bytes.0)),
            _ => Supply::Stream(Box::new(Feed::new(Source::new(flow, seed), None))),
        };
        let (gate, failure) = (Arc::clone(&self.gate), self.failure(flow, "the sender failed"));
        let send = move || tcp::send(&connection, socket, supply, &gate).map_err(failure).ok();
        self.senders.push((index, start(STACK, send)?));
        Ok(())
    }

    fn add_download(&mut self, home: &Home, index: usize, flow: &Flow, it: Download) -> Result<(), Error> {
        if self.identity.is_none() {
            self.identity = Some(Arc::new(Identity::generate().map_err(fail(flow, "cannot make a certificate"))?));
        }
        let Some(identity) = self.identity.clone() else { return Ok(()) };
        let open = |own| move || quic::socket(it.flow, own).map_err(fail(flow, "cannot open a socket"));
        let sender = home.namespace(flow.from).run(open(it.source))?;
        let receiver = home.namespace(flow.to).run(open(it.destination))?;
        let player =
            |what: &'static str| (it.clone(), Arc::clone(&identity), Arc::clone(&self.gate), self.failure(flow, what));
        let (own, identity_, gate, failure) = player("the receiver failed");
        let receive = move || quic::receive(&own, &identity_, receiver, &gate).map_err(failure).ok();
        let (own, identity_, gate, failure) = player("the sender failed");
        let send = move || quic::send(&own, &identity_, sender, &gate).map_err(failure).ok();
        self.receivers.push((index, start(LARGE_STACK, receive)?));
        self.senders.push((index, start(LARGE_STACK, send)?));
        Ok(())
    }

    /// Complains about a player of `flow`.
    fn failure(&self, flow: &Flow, what: &'static str) -> impl FnOnce(io::Error) + Send + use<> {
        let (complain, flow) = (self.complain.clone(), flow.name.clone());
        move |source| drop(complain.send(Error::Flow { flow, what: what.into(), source }))
    }

    /// Whether all is well.
    ///
    /// # Errors
    /// The first player that failed.
    pub fn check(&self) -> Result<(), Error> {
        self.complaints.try_recv().map_or(Ok(()), Err)
    }

    /// Sends everybody home; what became of the greedy flows.
    #[must_use]
    pub fn finish(mut self) -> Played {
        self.gate.close();
        Played { senders: results(&mut self.senders), receivers: results(&mut self.receivers) }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.gate.close();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        results(&mut self.senders);
        results(&mut self.receivers);
    }
}

/// What the threads of `players` returned.
fn results<T>(players: &mut Vec<(usize, JoinHandle<Option<T>>)>) -> BTreeMap<usize, T> {
    players.drain(..).filter_map(|(index, thread)| Some((index, thread.join().ok()??))).collect()
}

fn download(scenario: &Scenario, number: u16, flow: &Flow, quic: &Quic) -> Download {
    Download {
        flow: number,
        source: near(flow.from, flow.to),
        destination: near(flow.to, flow.from),
        receiver_connects: !matches!(flow.to, HostId::Server(_)),
        start: flow.start,
        stop: flow.stop,
        measure_from: scenario.measure_from,
        bytes: quic.bytes.map(|b| b.0),
        congestion_control: quic.cc,
        initial_window: quic.initial_window,
    }
}

fn connection(scenario: &Scenario, number: u16, flow: &Flow, tcp: &Tcp) -> Connection {
    let mss = tcp.mss.0 as u16;
    let is_split = scenario.is_split(flow);
    Connection {
        flow: number,
        source: near(flow.from, flow.to),
        destination: near(flow.to, flow.from),
        ends_at: near(if is_split { HostId::AccessPoint } else { flow.to }, flow.from),
        start: flow.start,
        stop: flow.stop,
        measure_from: scenario.measure_from,
        congestion_control: kernel_name(tcp.cc),
        mss,
        dscp: flow.dscp,
        window: tcp.window.map(|segments| segments.saturating_mul(u32::from(mss))),
        course_of: None,
    }
}

fn cannot_send(connection: &Connection) -> String {
    let Some(cc) = connection.congestion_control else { return "cannot open the sender's socket".to_owned() };
    let has = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    let has = has.split_whitespace().collect::<Vec<_>>().join(", ");
    format!(
        "cannot open the sender's socket with {cc} (the kernel has {has}); for its module, type: sudo modprobe tcp_{cc}"
    )
}

fn fail(flow: &Flow, what: &str) -> impl FnOnce(io::Error) -> Error + use<> {
    let (flow, what) = (flow.name.clone(), what.to_owned());
    move |source| Error::Flow { flow, what, source }
}

fn start<T: Send + 'static>(stack: usize, work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>, Error> {
    thread::Builder::new()
        .name("player".into())
        .stack_size(stack)
        .spawn(work)
        .map_err(Error::system("cannot start a thread"))
}

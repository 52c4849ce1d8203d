//! The players of a scenario on their threads.

use crate::address::near;
use crate::error::Error;
use crate::home::Home;
use crate::players::tcp::{self, Greedy, Totals};
use crate::players::{Gate, udp};
use crate::refuse::kernel_name;
use lasthop_home::scenario::{Flow, Ftp, HostId, Kind, Scenario};
use lasthop_home::traffic::Source;
use std::collections::BTreeMap;
use std::io;
use std::net::UdpSocket;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

/// Stack of a player, bytes: they hold little.
const STACK: usize = 256 << 10;

/// Every player, waiting at the gate or playing. Dropping it sends them home.
pub struct Stage {
    /// Opens when the scenario starts.
    pub gate: Arc<Gate>,
    threads: Vec<JoinHandle<()>>,
    /// Senders of greedy flows, with the index of their flow.
    senders: Vec<(usize, JoinHandle<Option<Totals>>)>,
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
    pub fn prepare(scenario: &Scenario, home: &Home) -> Result<Self, Error> {
        let (complain, complaints) = mpsc::channel();
        let (threads, senders, sinks) = (Vec::new(), Vec::new(), Vec::new());
        let mut stage = Self { gate: Gate::new(), threads, senders, complaints, complain, _sinks: sinks };
        let mut open: BTreeMap<HostId, Vec<udp::Open>> = BTreeMap::new();
        for (index, flow) in scenario.flows.iter().enumerate() {
            let number = index as u16;
            if let Kind::Ftp(ftp) = &flow.kind {
                stage.add_greedy(home, index, flow, greedy(scenario, number, flow, ftp))?;
                continue;
            }
            let (source, destination) = (near(flow.from, flow.to), near(flow.to, flow.from));
            let bind = || udp::sink(number, destination).map_err(fail(flow, "cannot open the receiver's socket"));
            stage._sinks.push(home.namespace(flow.to).run(bind)?);
            let schedule = Source::new(flow, scenario.seed);
            open.entry(flow.from).or_default().push(udp::Open { flow: number, source, destination, schedule });
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
        self.threads.push(start(move || sender.play(&gate))?);
        Ok(())
    }

    fn add_greedy(&mut self, home: &Home, index: usize, flow: &Flow, greedy: Greedy) -> Result<(), Error> {
        let listen = || tcp::listen(&greedy).map_err(fail(flow, "cannot open the receiver's socket"));
        let listener = home.namespace(flow.to).run(listen)?;
        let connect = || tcp::sender(&greedy).map_err(fail(flow, &cannot_send(&greedy)));
        let socket = home.namespace(flow.from).run(connect)?;
        let (gate, complain, sink, name) =
            (Arc::clone(&self.gate), self.complain.clone(), greedy.clone(), flow.name.clone());
        self.threads.push(start(move || {
            if let Err(source) = tcp::receive(&sink, &listener, &gate) {
                let _ = complain.send(Error::Flow { flow: name, what: "the receiver failed".into(), source });
            }
        })?);
        let (gate, complain, name) = (Arc::clone(&self.gate), self.complain.clone(), flow.name.clone());
        let send = move || match tcp::send(&greedy, socket, &gate) {
            Ok(totals) => Some(totals),
            Err(source) => {
                let _ = complain.send(Error::Flow { flow: name, what: "the sender failed".into(), source });
                None
            }
        };
        self.senders.push((index, start(send)?));
        Ok(())
    }

    /// Whether all is well.
    ///
    /// # Errors
    /// The first player that failed.
    pub fn check(&self) -> Result<(), Error> {
        self.complaints.try_recv().map_or(Ok(()), Err)
    }

    /// Sends everybody home; what became of the greedy flows, by index.
    #[must_use]
    pub fn finish(mut self) -> BTreeMap<usize, Totals> {
        self.gate.close();
        let senders = std::mem::take(&mut self.senders);
        senders.into_iter().filter_map(|(index, thread)| Some((index, thread.join().ok()??))).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.gate.close();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        for (_, thread) in self.senders.drain(..) {
            let _ = thread.join();
        }
    }
}

fn greedy(scenario: &Scenario, number: u16, flow: &Flow, ftp: &Ftp) -> Greedy {
    let mss = ftp.tcp.mss.0 as u16;
    Greedy {
        flow: number,
        source: near(flow.from, flow.to),
        destination: near(flow.to, flow.from),
        start: flow.start,
        stop: flow.stop,
        measure_from: scenario.measure_from,
        bytes: ftp.bytes.map(|b| b.0),
        congestion_control: kernel_name(ftp.tcp.cc).unwrap_or("cubic"),
        mss,
        window: ftp.tcp.window.map(|segments| segments.saturating_mul(u32::from(mss))),
    }
}

fn cannot_send(greedy: &Greedy) -> String {
    let cc = greedy.congestion_control;
    format!("cannot open the sender's socket with {cc}; if the kernel lacks it, type: sudo modprobe tcp_{cc}")
}

fn fail(flow: &Flow, what: &str) -> impl FnOnce(io::Error) -> Error + use<> {
    let (flow, what) = (flow.name.clone(), what.to_owned());
    move |source| Error::Flow { flow, what, source }
}

fn start<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>, Error> {
    thread::Builder::new()
        .name("player".into())
        .stack_size(STACK)
        .spawn(work)
        .map_err(Error::system("cannot start a thread"))
}

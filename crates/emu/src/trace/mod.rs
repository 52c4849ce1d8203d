//! `--trace`: every TCP segment between a station and somebody else, and every datagram of the flows, as JSON lines.
//!
//! The engine reads a segment's header where a host's kernel hands it to the network, where it reaches the other end's
//! interface, and where a model loses it, and passes that on through a `spool`; a thread of its own makes lines of it.
//! The same lines tell the [`Course`] of a run what receivers advertised and what senders read of it. Times are the model's. Everything is bounded: what finds no room is left out and counted.

mod line;
mod segments;

pub use line::Line;
pub use segments::{Counters, Segments};

use crate::address::{AddressPlan, Port};
use crate::error::Error;
use crate::network::LostAt;
use crate::observe::identify::Data;
use crate::spool::{self, Spool, Writer};
use lasthop_core::units::{Span, Time};
use lasthop_core::wire::{self, Endpoint, Link, Parsed, TcpFields};
use lasthop_home::course::Course;
use lasthop_home::scenario::{HostId, Scenario};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

/// Events handed to the writer at a time.
const BUFFER: usize = 4096;
/// Buffers in circulation: a second of 50,000 segments, each of which makes two events.
const BUFFERS: usize = 24;

/// What happened to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Its sender's kernel handed it to the network.
    Sent,
    /// It reached the interface of its receiver.
    Delivered,
    /// A model dropped it.
    Lost(LostAt),
}

/// A datagram of a flow of the scenario that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// When it was sent, since the start of the scenario.
    pub sent: Time,
    /// When it arrived.
    pub at: Time,
    /// Index of its flow.
    pub flow: u16,
    /// IP bytes.
    pub bytes: u32,
}

/// What becomes lines.
#[derive(Clone, Copy, Debug)]
enum Item {
    Segment(Event),
    Datagram(Datagram),
}

/// Something that happened to a segment.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// When, since the start of the scenario.
    pub at: Time,
    /// What happened to it.
    pub what: What,
    /// The segment, as it was then.
    pub tcp: TcpFields,
}

/// The engine's end of a trace.
#[derive(Debug)]
pub struct Trace {
    plan: AddressPlan,
    spool: Spool<Item>,
    missed: u64,
}

/// What a trace leaves: what it lacks, and the course it told of.
pub type Told = (Counters, Option<Course>);

/// The writer's end of a trace.
pub type TraceWriter = Writer<Told>;

/// What the writer knows.
struct Teller {
    segments: Segments,
    file: Option<BufWriter<File>>,
    course: Option<Course>,
}

impl Teller {
    fn tell(&mut self, item: &Item) -> io::Result<()> {
        match item {
            Item::Segment(event) => {
                let Some(line) = self.segments.on_event(event) else { return Ok(()) };
                if let (Some(course), Some((flow, windows))) = (&mut self.course, line.advertised()) {
                    course.on_windows(Span::from_secs_f64(line.t_s), flow, windows);
                }
                self.file.as_mut().map_or(Ok(()), |file| line.write(file))
            }
            Item::Datagram(datagram) => {
                let flow = self.segments.flow(datagram.flow);
                self.file.as_mut().map_or(Ok(()), |file| line::write_datagram(file, flow, datagram))
            }
        }
    }

    fn finish(mut self) -> io::Result<Told> {
        self.file.as_mut().map_or(Ok(()), Write::flush)?;
        Ok((self.segments.counters(), self.course))
    }
}

/// Opens `path` and writes the header, where lines are wanted, and starts the writer, which tells `course`, too.
///
/// # Errors
/// [`Error::Capture`] when the file cannot be written.
pub fn start(
    path: Option<&Path>,
    course: Option<Course>,
    scenario: &Scenario,
    revision: &str,
    plan: AddressPlan,
) -> Result<(Trace, TraceWriter), Error> {
    let refuse = |source| Error::Capture { path: path.unwrap_or(Path::new("")).to_owned(), source };
    let open = |path: &Path| {
        let mut file = BufWriter::new(File::create(path)?);
        line::write_header(&mut file, scenario, revision)?;
        Ok(file)
    };
    let file = path.map(open).transpose().map_err(refuse)?;
    let teller = Teller { segments: Segments::new(scenario, plan), file, course };
    let write = |teller: &mut Teller, items: &[Item]| items.iter().try_for_each(|item| teller.tell(item));
    let (spool, writer) = spool::start("trace", (BUFFERS, BUFFER), teller, write, Teller::finish).map_err(refuse)?;
    Ok((Trace { plan, spool, missed: 0 }, writer))
}

impl Trace {
    /// The host behind `port` sent `frame`.
    pub fn on_sent(&mut self, at: Time, port: Port, frame: &[u8]) {
        self.record(at, What::Sent, Some(port), frame);
    }

    /// `frame` reached the host behind `port`.
    pub fn on_delivered(&mut self, at: Time, port: Port, frame: &[u8]) {
        self.record(at, What::Delivered, Some(port), frame);
    }

    /// `frame` was lost.
    pub fn on_lost(&mut self, at: Time, place: LostAt, frame: &[u8]) {
        self.record(at, What::Lost(place), None, frame);
    }

    /// A datagram of a flow arrived.
    pub fn on_datagram(&mut self, sent: Time, at: Time, data: &Data) {
        let Data { flow, bytes, .. } = *data;
        self.keep(Item::Datagram(Datagram { sent, at, flow, bytes }));
    }

    /// Forwarding at the access point is no end of a segment's way: only what concerns its own host counts.
    fn record(&mut self, at: Time, what: What, port: Option<Port>, frame: &[u8]) {
        let Parsed::Tcp(tcp) = wire::parse(frame, Link::Ethernet) else { return };
        let (Some(from), Some(to)) = (host(&self.plan, &tcp.source), host(&self.plan, &tcp.destination)) else {
            return;
        };
        let crosses_last_hop = [from, to].iter().any(|host| matches!(host, HostId::Station(_)));
        let end = if what == What::Sent { from } else { to };
        if !crosses_last_hop || port.is_some_and(|port| self.plan.host(port) != end) {
            return;
        }
        self.keep(Item::Segment(Event { at, what, tcp }));
    }

    fn keep(&mut self, item: Item) {
        match self.spool.room_for(1) {
            Some(items) => items.push(item),
            None => self.missed += 1,
        }
    }

    /// Writes out what is left and waits for it.
    ///
    /// # Errors
    /// The failed write.
    pub fn finish(self, writer: TraceWriter) -> io::Result<Told> {
        self.spool.finish(writer).map(|(counters, course)| (Counters { missed: self.missed, ..counters }, course))
    }
}

/// Whose address it is.
fn host(plan: &AddressPlan, end: &Endpoint) -> Option<HostId> {
    plan.port_of(address(end)).map(|port| plan.host(port))
}

/// The address of an end, IPv4 as such.
fn address(end: &Endpoint) -> IpAddr {
    Ipv6Addr::from(end.address).to_canonical()
}

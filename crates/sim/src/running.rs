//! The flows of a run: where each begins and ends, what it plays, and its figures.

use std::collections::BTreeMap;

use lasthop_core::units::Time;
use lasthop_home::report::FlowMeter;
use lasthop_home::scenario::{Flow, HostId, Kind, LastHop, Scenario, ScenarioError};
use lasthop_home::traffic::feed::Feed;
use lasthop_home::traffic::{Emission, Source};
use lasthop_medium::Timing;

use crate::connection::{Connection, Dress, Stream};
use crate::exchange::Exchange;
use crate::packet::{SimPacket, flag};
use crate::rate_flow::RateFlow;
use crate::sources::SourceId;
use crate::web::Loader;
use crate::{SimError, refuse};

/// A flow as it runs.
pub struct Running {
    /// Its own source of events: schedule or sender; a receiver's follows, and then a feed's.
    pub source: SourceId,
    /// From here on its sender takes nothing new.
    pub stop: Time,
    pub play: Play,
    /// The stream that its transport carries; it has none of its own.
    pub feed: Option<Box<Feed>>,
    /// What its ends ask and answer, in place of a feed.
    pub exchange: Option<Box<Exchange>>,
    pub meter: FlowMeter,
}

/// Where a flow begins and ends. Every hop of a packet asks for it, so it stands apart from what is asked less often.
pub struct Route {
    pub from: HostId,
    pub to: HostId,
    /// The flow in whose figures its packets are counted: another one for the connections of a page.
    pub counted_by: u32,
}

impl Route {
    /// Where a packet goes.
    #[inline]
    pub fn destination(&self, packet: &SimPacket) -> HostId {
        if packet.has(flag::BACK) { self.from } else { self.to }
    }

    /// Where it comes from.
    #[inline]
    pub fn origin(&self, packet: &SimPacket) -> HostId {
        if packet.has(flag::BACK) { self.to } else { self.from }
    }
}

/// Connections, QUIC's among them, come first: what asks for one, of either kind, asks most often.
pub enum Play {
    Tcp(Box<Connection>),
    /// A half of a split connection ([`crate::split`]).
    Half(Box<Connection>),
    Schedule(Box<Schedule>),
    Rate(Box<RateFlow>),
    /// A page; its connections are flows of their own ([`crate::web::expand`]).
    Page(Box<Loader>),
}

pub struct Schedule {
    pub source: Source,
    pub next: Option<Emission>,
    pub flags: u32,
}

impl Play {
    /// What a flow plays. `fed`: what it sends is given piece by piece by something else; `hosts`: see [`flag::HOSTS`].
    ///
    /// # Errors
    /// A sender that the simulator does not have.
    pub fn new(scenario: &Scenario, flow: &Flow, fed: bool, hosts: u16) -> Result<Self, SimError> {
        if let Kind::Web(web) = &flow.kind {
            return Ok(Self::Page(Box::new(Loader::new(web))));
        }
        let flags = if flow.kind.is_realtime() { flag::REALTIME } else { 0 };
        let flags = flags | u32::from(hosts) << flag::HOSTS;
        let start = Time::ZERO + flow.start;
        if let Kind::Quic(quic) = &flow.kind {
            let cc = refuse::algorithm(quic.cc).ok_or_else(|| no_sender(scenario, flow))?;
            let stream = quic.bytes.map_or(Stream::Endless, |bytes| Stream::Bytes(bytes.0));
            let tcp = Dress::beneath_quic(quic);
            let connection = Connection::new(&tcp, cc, false, stream, flags, start);
            return Ok(Self::Tcp(Box::new(connection.dressed(Dress::QUIC))));
        }
        if let Some(tcp) = flow.transport() {
            let stream = match &flow.kind {
                _ if fed => Stream::Fed,
                Kind::Ftp(ftp) => ftp.bytes.map_or(Stream::Endless, |bytes| Stream::Bytes(bytes.0)),
                _ => Stream::Fed,
            };
            if let Some(law) = refuse::rate_law(tcp.cc) {
                return Ok(Self::Rate(Box::new(RateFlow::new(tcp, law, stream, flags, start))));
            }
            let cc = refuse::algorithm(tcp.cc).ok_or_else(|| no_sender(scenario, flow))?;
            let connection = Connection::new(tcp, cc, is_ns2(scenario), stream, flags, start);
            return Ok(Self::Tcp(Box::new(match &flow.kind {
                Kind::RequestResponse(exchange) => connection.asking(exchange.request.0 as u16),
                _ => connection,
            })));
        }
        let mut source = Source::new(flow, scenario.seed);
        let next = source.next();
        Ok(Self::Schedule(Box::new(Schedule { source, next, flags })))
    }
}

fn no_sender(scenario: &Scenario, flow: &Flow) -> ScenarioError {
    scenario.refuse(&format!("flow.{}.cc", flow.table), "the simulator has not this sender")
}

/// The stream that the transport of `flow` carries.
pub fn feed(scenario: &Scenario, flow: &Flow) -> Option<Box<Feed>> {
    let tcp = flow.carrier.as_ref()?;
    let whole = is_ns2(scenario).then_some(tcp.mss.0);
    Some(Box::new(Feed::new(Source::new(flow, scenario.seed), whole)))
}

/// Numbers of the pairs of hosts and protocol that the flows belong to, whichever way they go.
pub fn pairs(scenario: &Scenario) -> Vec<u16> {
    let mut known = BTreeMap::new();
    let pair = |flow: &Flow| (flow.from.min(flow.to), flow.from.max(flow.to), flow.tcp().is_some());
    let mut number = |flow: &Flow| {
        let next = known.len() as u16;
        *known.entry(pair(flow)).or_insert(next)
    };
    scenario.flows.iter().map(&mut number).collect()
}

/// Whether hosts behave as ns-2's, too.
fn is_ns2(scenario: &Scenario) -> bool {
    match &scenario.hop {
        LastHop::Wifi(cell) => cell.timing != Timing::Standard,
        LastHop::WirelessLink(link) => link.ns2,
        LastHop::Bridge(_) => false,
    }
}

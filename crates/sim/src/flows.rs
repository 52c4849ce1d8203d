//! The flows of a run: where each begins and ends, what it plays, and its figures.

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};

use lasthop_core::units::Time;
use lasthop_home::report::{FlowMeter, flow_meter};
use lasthop_home::scenario::{Flow, HostId, Kind, LastHop, Scenario, ScenarioError};
use lasthop_home::traffic::feed::Feed;
use lasthop_home::traffic::{Emission, Source as Traffic};
use lasthop_medium::{NodeId, Timing};
use lasthop_tcp::Conduct;

use crate::connection::{Connection, Dress, Stream};
use crate::exchange::Exchange;
use crate::expansion::Expansion;
use crate::packet::{self, SimPacket, flag};
use crate::rate_flow::RateFlow;
use crate::sources::{FlowSource, Source};
use crate::web::Loader;
use crate::{SimError, refuse};

/// A flow as it runs.
pub struct Running {
    /// When it begins by itself; `None`: something else begins it.
    pub start: Option<Time>,
    /// From here on its sender takes nothing new.
    pub stop: Time,
    pub play: Play,
    /// The stream that its transport carries; it has none of its own.
    pub feed: Option<Box<Feed>>,
    /// What its ends ask and answer, in place of a feed.
    pub exchange: Option<Box<Exchange>>,
    pub meter: FlowMeter,
}

impl Running {
    /// Of flow `i`.
    fn new(expansion: &Expansion<'_>, i: usize, hosts: u16) -> Result<Self, SimError> {
        let (scenario, halves) = (&*expansion.home, &expansion.halves);
        let flow = &scenario.flows[i];
        let of_page = expansion.pages.slot(i).is_some();
        let is_second = halves.first(i).is_some();
        // The stream of a split connection is its first half's.
        let whole = &scenario.flows[halves.second(i).unwrap_or(i)];
        let exchange = match flow.kind {
            Kind::RequestResponse(kind) => Some(Box::new(Exchange::new(kind, flow))),
            _ => None,
        };
        Ok(Self {
            start: (!of_page && !is_second).then(|| Time::ZERO + flow.start),
            // What the access point holds when the flow stops is still delivered.
            stop: if is_second { Time::MAX } else { Time::ZERO + flow.stop },
            play: Play::new(scenario, flow, of_page || is_second, hosts)?,
            feed: if is_second { None } else { feed(scenario, whole) },
            exchange,
            meter: flow_meter(scenario, flow, Time::ZERO),
        })
    }

    /// Whoever has events in it: its sender, its receiver, and what makes them speak.
    pub fn sources(&self) -> impl Iterator<Item = FlowSource> + use<> {
        let ends: &'static [FlowSource] = match self.play {
            Play::Tcp(_) => &[Source::Sender, Source::Receiver],
            Play::Rate(_) => &[Source::Pacer, Source::Reporter],
            Play::Schedule(_) => &[Source::Schedule],
            Play::Page(_) => &[Source::Browser],
        };
        let feed = self.feed.as_ref().map(|_| Source::Feed as FlowSource);
        let exchange = self.exchange.as_ref().map(|_| Source::Exchange as FlowSource);
        ends.iter().copied().chain(feed).chain(exchange)
    }
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

/// All of them, by their number in the scenario as it runs.
pub struct Flows {
    running: Vec<Running>,
    routes: Vec<Route>,
}

impl Flows {
    /// None has begun.
    ///
    /// # Errors
    /// A sender that the simulator does not have.
    pub fn new(expansion: &Expansion<'_>) -> Result<Self, SimError> {
        let pairs = pairs(&expansion.home).into_iter().enumerate();
        let running = pairs.map(|(i, pair)| Running::new(expansion, i, pair)).collect::<Result<_, _>>()?;
        Ok(Self { running, routes: routes(expansion) })
    }

    pub fn iter(&self) -> impl Iterator<Item = &Running> {
        self.running.iter()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Running> {
        self.running.iter_mut()
    }

    /// Where the flow of a packet begins and ends.
    #[inline]
    pub fn route(&self, packet: &SimPacket) -> &Route {
        &self.routes[packet.flow as usize]
    }

    /// The figures in which a packet is counted.
    #[inline]
    pub fn meter(&mut self, packet: &SimPacket) -> &mut FlowMeter {
        self.meter_of(packet.flow)
    }

    /// The figures in which the packets of a flow are counted.
    #[inline]
    pub fn meter_of(&mut self, flow: u32) -> &mut FlowMeter {
        &mut self.running[self.routes[flow as usize].counted_by as usize].meter
    }

    /// The flow's connection, where it has one.
    #[inline]
    pub fn connection(&mut self, flow: usize) -> Option<&mut Connection> {
        match &mut self.running[flow].play {
            Play::Tcp(connection) => Some(connection),
            Play::Rate(_) | Play::Schedule(_) | Play::Page(_) => None,
        }
    }
}

impl Index<usize> for Flows {
    type Output = Running;
    #[inline]
    fn index(&self, flow: usize) -> &Running {
        &self.running[flow]
    }
}

impl IndexMut<usize> for Flows {
    #[inline]
    fn index_mut(&mut self, flow: usize) -> &mut Running {
        &mut self.running[flow]
    }
}

/// Where each flow's packets go, and whose they count as. Second halves begin at the access point.
fn routes(expansion: &Expansion<'_>) -> Vec<Route> {
    let route = |(i, flow): (usize, &Flow)| Route {
        from: if expansion.halves.first(i).is_some() { HostId::AccessPoint } else { flow.from },
        to: flow.to,
        counted_by: expansion.pages.slot(i).map_or(i, |slot| slot.page) as u32,
    };
    expansion.home.flows.iter().enumerate().map(route).collect()
}

/// The node of a station, which is numbered behind the access point.
#[inline]
pub const fn node(station: usize) -> NodeId {
    NodeId(station as u16 + 1)
}

/// Connections, QUIC's among them, come first: what asks for one, of either kind, asks most often.
pub enum Play {
    Tcp(Box<Connection>),
    Schedule(Box<Schedule>),
    Rate(Box<RateFlow>),
    /// A page; its connections are flows of their own ([`crate::web::Slots::expand`]).
    Page(Box<Loader>),
}

pub struct Schedule {
    pub traffic: Traffic,
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
        let flags = flags | u32::from(hosts) << flag::HOSTS | packet::class(flow.class);
        let start = Time::ZERO + flow.start;
        if let Kind::Quic(quic) = &flow.kind {
            let cc = refuse::algorithm(quic.cc).ok_or_else(|| no_sender(scenario, flow))?;
            let stream = quic.bytes.map_or(Stream::Endless, |bytes| Stream::Bytes(bytes.0));
            let tcp = Dress::beneath_quic(quic);
            let connection = Connection::new(&tcp, cc, Conduct::Quic, stream, flags, start);
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
            let conduct = if is_ns2(scenario) { Conduct::Ns2 } else { Conduct::Rfc };
            let connection = Connection::new(tcp, cc, conduct, stream, flags, start);
            return Ok(Self::Tcp(Box::new(match &flow.kind {
                Kind::RequestResponse(exchange) => connection.asking(exchange.request.0 as u16),
                _ => connection,
            })));
        }
        let mut traffic = Traffic::new(flow, scenario.seed);
        let next = traffic.next();
        Ok(Self::Schedule(Box::new(Schedule { traffic, next, flags })))
    }
}

fn no_sender(scenario: &Scenario, flow: &Flow) -> ScenarioError {
    scenario.refuse(&format!("flow.{}.cc", flow.table), "the simulator has not this sender")
}

/// The stream that the transport of `flow` carries.
fn feed(scenario: &Scenario, flow: &Flow) -> Option<Box<Feed>> {
    let tcp = flow.carrier.as_ref()?;
    let whole = is_ns2(scenario).then_some(tcp.mss.0);
    Some(Box::new(Feed::new(Traffic::new(flow, scenario.seed), whole)))
}

/// Numbers of the pairs of hosts and protocol that the flows belong to, whichever way they go.
fn pairs(scenario: &Scenario) -> Vec<u16> {
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
        LastHop::Wifi(cell) => matches!(cell.timing, Timing::Ns2G | Timing::Ns2B),
        LastHop::WirelessLink(link) => link.ns2,
        LastHop::Bridge(_) => false,
    }
}

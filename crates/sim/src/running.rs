//! The flows of a run: where each begins and ends, what it plays, and its figures.

use std::collections::BTreeMap;

use lasthop_core::units::Time;
use lasthop_home::report::FlowMeter;
use lasthop_home::scenario::{Flow, HostId, Kind, LastHop, Scenario};
use lasthop_home::traffic::{Emission, Source};
use lasthop_wifi::Timing;

use crate::connection::Connection;
use crate::packet::{SimPacket, flag};
use crate::sources::SourceId;
use crate::web::Loader;
use crate::{SimError, refuse};

/// A flow as it runs.
pub struct Running {
    /// Its own source of events: schedule or sender; a receiver's follows.
    pub source: SourceId,
    /// From here on its sender takes nothing new.
    pub stop: Time,
    pub play: Play,
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

pub enum Play {
    Schedule(Box<Schedule>),
    Tcp(Box<Connection>),
    /// A page; its connections are flows of their own ([`crate::web::expand`]).
    Page(Box<Loader>),
}

pub struct Schedule {
    pub source: Source,
    pub next: Option<Emission>,
    pub flags: u32,
}

impl Play {
    /// What a flow plays. `fed`: as a connection of a page; `hosts`: see [`flag::HOSTS`].
    ///
    /// # Errors
    /// A sender that the simulator does not have.
    pub fn new(scenario: &Scenario, flow: &Flow, fed: bool, hosts: u16) -> Result<Self, SimError> {
        if let Kind::Web(web) = &flow.kind {
            return Ok(Self::Page(Box::new(Loader::new(web))));
        }
        if let Kind::Ftp(ftp) = &flow.kind {
            let cc = refuse::algorithm(ftp.tcp.cc).ok_or_else(|| {
                scenario.refuse(&format!("flow.{}.cc", flow.table), "the simulator has not this sender")
            })?;
            let connection = Connection::new(ftp, cc, is_ns2(scenario), fed, hosts, Time::ZERO + flow.start);
            return Ok(Self::Tcp(Box::new(connection)));
        }
        let mut source = Source::new(flow, scenario.seed);
        let next = source.next();
        let flags = if flow.kind.is_realtime() { flag::REALTIME } else { 0 };
        let flags = flags | u32::from(hosts) << flag::HOSTS;
        Ok(Self::Schedule(Box::new(Schedule { source, next, flags })))
    }
}

/// Numbers of the pairs of hosts and protocol that the flows belong to, whichever way they go.
pub fn pairs(scenario: &Scenario) -> Vec<u16> {
    let mut known = BTreeMap::new();
    let pair = |flow: &Flow| (flow.from.min(flow.to), flow.from.max(flow.to), flow.kind.tcp().is_some());
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

//! The wired part of a home: each server's own link to W0, and the WAN link from there to the access point.

use lasthop_core::packet::Packet as _;
use lasthop_core::units::Time;
use lasthop_home::link::Link;
use lasthop_home::report::QueueReport;
use lasthop_home::report::queue;
use lasthop_home::scenario::{HostId, Scenario, Wire};

use crate::packet::SimPacket;

/// One direction of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireId {
    /// From a server to W0.
    FromServer(u32),
    /// From W0 to a server.
    ToServer(u32),
    /// From W0 to the access point.
    WanDown,
    /// From the access point to W0.
    WanUp,
}

/// The places of a home's wires: to the servers, the WAN link down and up, from the servers.
#[derive(Clone, Copy, Debug)]
pub struct WireOrder {
    servers: u32,
    /// Place of the first from a server.
    from_servers: u32,
}

impl WireOrder {
    /// Of so many servers; without a line they are at the access point.
    pub const fn new(servers: u32, has_wan: bool) -> Self {
        Self { servers, from_servers: servers + if has_wan { 2 } else { 0 } }
    }

    /// Place of a wire.
    #[inline]
    pub const fn index(self, wire: WireId) -> usize {
        let index = match wire {
            WireId::ToServer(i) => i,
            WireId::WanDown => self.servers,
            WireId::WanUp => self.servers + 1,
            WireId::FromServer(i) => self.from_servers + i,
        };
        index as usize
    }

    /// Every wire, by its place.
    pub fn all(self) -> impl Iterator<Item = WireId> {
        let wan = [WireId::WanDown, WireId::WanUp].into_iter().filter(move |_| self.has_wan());
        let servers = 0..self.servers;
        servers.clone().map(WireId::ToServer).chain(wan).chain(servers.map(WireId::FromServer))
    }

    const fn has_wan(self) -> bool {
        self.from_servers > self.servers
    }
}

/// How packets that come down from the servers get past W0, where the WAN link begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Crossing {
    /// Each by an event of its own: something else may happen to it there.
    Event,
    /// One server alone sends: what becomes of a packet on both wires is reckoned when it is sent.
    AtOnce,
    /// A few servers send: reckoned when the first of those in flight could be at the access point.
    Merged,
}

/// Most servers whose packets are gathered: each time all of them are looked at.
const MOST_MERGED: usize = 8;

/// Every wire.
pub struct Wires {
    links: Vec<Link<SimPacket>>,
    order: WireOrder,
    /// Whether a packet to a server meets nobody at W0 who could be before it on the server's own wire.
    straight_up: bool,
    down: Crossing,
}

impl Wires {
    /// Idle ones.
    pub fn new(scenario: &Scenario) -> Self {
        let order = WireOrder::new(scenario.servers.len() as u32, scenario.wan.is_some());
        let link = |id: WireId| wire(scenario, id).map(|wire| Link::new(wire, Time::ZERO));
        let (straight_up, down) = crossings(scenario);
        Self { links: order.all().filter_map(link).collect(), order, straight_up, down }
    }

    /// The wire that follows `first` on the way to `destination`, where both can be reckoned at once.
    #[inline]
    pub const fn straight_on(&self, first: WireId, destination: HostId) -> Option<WireId> {
        match (first, destination) {
            (WireId::WanUp, HostId::Server(i)) if self.straight_up => Some(WireId::ToServer(i as u32)),
            (WireId::FromServer(_), HostId::Station(_) | HostId::AccessPoint)
                if matches!(self.down, Crossing::AtOnce) =>
            {
                Some(WireId::WanDown)
            }
            _ => None,
        }
    }

    /// Whether what comes from the servers is gathered, by [`Self::next_at_w0`], whenever the WAN link's far end is looked at.
    #[inline]
    pub fn gathers(&self) -> bool {
        self.down == Crossing::Merged
    }

    /// The next packet from a server that has come to W0 by `now`, and when.
    #[inline]
    pub fn next_at_w0(&mut self, now: Time) -> Option<(Time, SimPacket)> {
        let first = self.first_to_w0()?;
        self.links[first].poll(now)
    }

    /// When the first of the packets on their way to W0 will be at the access point.
    #[inline]
    pub fn look_ahead_wan(&mut self) -> Option<Time> {
        let first = self.first_to_w0()?;
        let (at, bytes) = (self.links[first].next_deadline()?, self.links[first].front()?.bytes());
        let wan = self.order.index(WireId::WanDown);
        Some(self.links[wan].look_ahead(at, bytes))
    }

    /// The wire whose next packet is at W0 first.
    #[inline]
    fn first_to_w0(&self) -> Option<usize> {
        let from = self.order.index(WireId::FromServer(0));
        let at = |index: usize| self.links[index].next_deadline().unwrap_or(Time::MAX);
        (from..self.links.len()).min_by_key(|index| at(*index))
    }

    /// Their places.
    pub const fn order(&self) -> WireOrder {
        self.order
    }

    /// How many of them, the first ones, have events of their own all the time.
    pub fn busy(&self) -> usize {
        match self.down {
            Crossing::Event => self.links.len(),
            _ => self.order.index(WireId::FromServer(0)),
        }
    }

    /// Whether packets between W0 and the access point take any time.
    pub const fn has_wan(&self) -> bool {
        self.order.has_wan()
    }

    /// One of them.
    #[inline]
    pub fn link(&mut self, wire: WireId) -> &mut Link<SimPacket> {
        &mut self.links[self.order.index(wire)]
    }

    /// Rates and delays as `scenario` has them, from the next packet on.
    pub fn retune(&mut self, now: Time, scenario: &Scenario) {
        for id in self.order.all() {
            if let Some(wire) = wire(scenario, id) {
                self.link(id).set_wire(now, wire);
            }
        }
    }

    /// Each buffer's figures, named and ordered as the emulator has them.
    pub fn report(&self, scenario: &Scenario, end: Time) -> Vec<QueueReport> {
        let server = |i: u32| &scenario.servers[i as usize].name;
        let one = |wire: WireId| {
            let name = match wire {
                WireId::FromServer(i) => format!("{} to W0", server(i)),
                WireId::ToServer(i) => format!("W0 to {}", server(i)),
                WireId::WanDown => "WAN down".to_owned(),
                WireId::WanUp => "WAN up".to_owned(),
            };
            queue(&name, &self.links[self.order.index(wire)].snapshot(end))
        };
        let wan = [WireId::WanDown, WireId::WanUp].into_iter().filter(|_| self.has_wan());
        let servers = || 0..self.order.servers;
        servers().map(WireId::FromServer).chain(servers().map(WireId::ToServer)).chain(wan).map(one).collect()
    }
}

/// What a wire is like.
fn wire(scenario: &Scenario, id: WireId) -> Option<Wire> {
    match id {
        WireId::FromServer(i) | WireId::ToServer(i) => Some(scenario.servers[i as usize].wire),
        WireId::WanDown => scenario.wan.as_ref().map(|wan| wan.down),
        WireId::WanUp => scenario.wan.as_ref().map(|wan| wan.up),
    }
}

/// Towards the servers nobody comes between unless servers talk to each other; so it is towards the access point for the
/// line's packets in their order. Wires that change while packets are on them are asked packet by packet.
fn crossings(scenario: &Scenario) -> (bool, Crossing) {
    let is_server = |host: HostId| matches!(host, HostId::Server(_));
    let among_servers = scenario.flows.iter().any(|flow| is_server(flow.from) && is_server(flow.to));
    let wired = |key: &String| key.starts_with("wan.") || key.starts_with("server.");
    let change = scenario.changes.iter().any(|change| change.keys.iter().any(wired));
    if scenario.wan.is_none() || among_servers || change {
        return (false, Crossing::Event);
    }
    let ends = scenario.flows.iter().flat_map(|flow| [flow.from, flow.to]);
    let mut servers: Vec<HostId> = ends.filter(|host| is_server(*host)).collect();
    servers.sort_unstable();
    servers.dedup();
    match servers.len() {
        1 => (true, Crossing::AtOnce),
        _ if scenario.servers.len() <= MOST_MERGED => (true, Crossing::Merged),
        _ => (true, Crossing::Event),
    }
}

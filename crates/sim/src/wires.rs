//! The wired part of a home: each server's own link to W0, and the line from there to the access point.

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
    LineDown,
    /// From the access point to W0.
    LineUp,
}

/// Every wire; see [`Wires::index`] for their order.
pub struct Wires {
    links: Vec<Link<SimPacket>>,
    servers: u32,
    has_line: bool,
    /// Whether a packet that came down the first of two wires meets nobody at W0 who could be before it on the second:
    /// towards the servers, towards the access point.
    straight: [bool; 2],
}

impl Wires {
    /// Idle ones.
    pub fn new(scenario: &Scenario) -> Self {
        let link = |wire: &Wire| Link::new(*wire, Time::ZERO);
        let servers = || scenario.servers.iter().map(|s| link(&s.wire));
        let line = scenario.line.iter().flat_map(|line| [link(&line.down), link(&line.up)]);
        Self {
            links: servers().chain(servers()).chain(line).collect(),
            servers: scenario.servers.len() as u32,
            has_line: scenario.line.is_some(),
            straight: straight(scenario),
        }
    }

    /// The wire that follows `first` on the way to `destination`, where both can be reckoned at once.
    #[inline]
    pub const fn straight_on(&self, first: WireId, destination: HostId) -> Option<usize> {
        match (first, destination) {
            (WireId::LineUp, HostId::Server(i)) if self.straight[0] => Some(self.index(WireId::ToServer(i as u32))),
            (WireId::FromServer(_), HostId::Station(_) | HostId::AccessPoint) if self.straight[1] => {
                Some(self.index(WireId::LineDown))
            }
            _ => None,
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.links.len()
    }

    /// Whether packets between W0 and the access point take any time.
    pub const fn has_line(&self) -> bool {
        self.has_line
    }

    /// Place of a wire, below [`Self::count`].
    #[inline]
    pub const fn index(&self, wire: WireId) -> usize {
        let n = self.servers as usize;
        match wire {
            WireId::FromServer(i) => i as usize,
            WireId::ToServer(i) => n + i as usize,
            WireId::LineDown => 2 * n,
            WireId::LineUp => 2 * n + 1,
        }
    }

    /// The wire at a place.
    pub const fn id(&self, index: usize) -> WireId {
        let n = self.servers as usize;
        match index {
            i if i < n => WireId::FromServer(i as u32),
            i if i < 2 * n => WireId::ToServer((i - n) as u32),
            i if i == 2 * n => WireId::LineDown,
            _ => WireId::LineUp,
        }
    }

    /// The wire at a place.
    pub fn link(&mut self, index: usize) -> &mut Link<SimPacket> {
        &mut self.links[index]
    }

    /// Rates and delays as `scenario` has them, from the next packet on.
    pub fn retune(&mut self, now: Time, scenario: &Scenario) {
        let n = self.servers as usize;
        for (i, server) in scenario.servers.iter().enumerate() {
            self.links[i].set_wire(now, server.wire);
            self.links[n + i].set_wire(now, server.wire);
        }
        if let Some(line) = scenario.line.as_ref().filter(|_| self.has_line) {
            self.links[2 * n].set_wire(now, line.down);
            self.links[2 * n + 1].set_wire(now, line.up);
        }
    }

    /// Each buffer's figures, named as the emulator names them.
    pub fn report(&self, scenario: &Scenario, end: Time) -> Vec<QueueReport> {
        let name = |index| {
            let server = |i: u32| &scenario.servers[i as usize].name;
            match self.id(index) {
                WireId::FromServer(i) => format!("{} to W0", server(i)),
                WireId::ToServer(i) => format!("W0 to {}", server(i)),
                WireId::LineDown => "line down".to_owned(),
                WireId::LineUp => "line up".to_owned(),
            }
        };
        self.links.iter().enumerate().map(|(i, link)| queue(&name(i), &link.snapshot(end))).collect()
    }
}

/// Towards the servers nobody comes between unless servers talk to each other; towards the access point it takes a lone
/// server. Wires that change while packets are on them are asked packet by packet.
fn straight(scenario: &Scenario) -> [bool; 2] {
    let is_server = |host: HostId| matches!(host, HostId::Server(_));
    let among_servers = scenario.flows.iter().any(|flow| is_server(flow.from) && is_server(flow.to));
    let wired = |key: &String| key.starts_with("line.") || key.starts_with("server.");
    let change = scenario.changes.iter().any(|change| change.keys.iter().any(wired));
    let up = scenario.line.is_some() && !among_servers && !change;
    let ends = scenario.flows.iter().flat_map(|flow| [flow.from, flow.to]);
    let mut servers: Vec<HostId> = ends.filter(|host| is_server(*host)).collect();
    servers.sort_unstable();
    servers.dedup();
    [up, up && servers.len() == 1]
}

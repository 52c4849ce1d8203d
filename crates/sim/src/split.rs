//! Split connections (I-TCP): the access point ends a TCP connection and begins another one.
//!
//! ```text
//! from == first half ==> access point == second half ==> to
//!          a flow of its own, behind those of the scenario    the flow itself: its figures are those of this half
//! ```
//!
//! The access point acknowledges what it has, before the receiver has it. It holds at most `buffer` bytes: what the second half
//! has not had acknowledged comes off the window that the first is offered. The second half opens when the SYN of the first
//! arrives, and has the flow's sender, too.
//!
//! Source: Bakre and Badrinath, "I-TCP: Indirect TCP for mobile hosts", ICDCS 1995. Does not: move the connection's state
//! with a hand-off.

use std::borrow::Cow;

use lasthop_home::scenario::{Flow, HostId, Scenario};

use crate::running::Route;

/// The scenario with the first half of each connection that is split behind its own flows, and whose half each is.
pub fn expand(scenario: &Scenario) -> (Cow<'_, Scenario>, Vec<usize>) {
    let mut home = Cow::Borrowed(scenario);
    let whole: Vec<usize> = (0..scenario.flows.len()).filter(|i| scenario.is_split(&scenario.flows[*i])).collect();
    for i in &whole {
        let flow = &scenario.flows[*i];
        let name = format!("{}/first", flow.name);
        home.to_mut().flows.push(Flow { name, to: HostId::AccessPoint, ..flow.clone() });
    }
    (home, whole)
}

/// The halves of a run.
#[derive(Debug, Default)]
pub struct Halves {
    /// Whose first half the flows from `behind` on are.
    whole: Vec<usize>,
    behind: usize,
    /// What the access point holds of one connection, bytes.
    buffer: u64,
}

impl Halves {
    /// `own`: flows of the scenario as written; `whole`: as [`expand`] has it.
    pub fn new(scenario: &Scenario, own: usize, whole: Vec<usize>) -> Self {
        Self { whole, behind: own, buffer: scenario.control.split.map_or(0, |split| split.buffer.0) }
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.whole.len()
    }

    /// The second half of first half `flow`.
    pub fn second(&self, flow: usize) -> Option<usize> {
        self.whole.get(flow.checked_sub(self.behind)?).copied()
    }

    /// The first half of second half `flow`.
    pub fn first(&self, flow: usize) -> Option<usize> {
        self.whole.iter().position(|second| *second == flow).map(|at| self.behind + at)
    }

    /// Bytes that the access point may take of a connection of which it holds so many.
    pub fn room(&self, held: u64) -> u64 {
        self.buffer.saturating_sub(held)
    }

    /// How much room there must be before the server is told of it by itself, bytes.
    pub fn step(&self) -> u64 {
        self.buffer / 2
    }

    /// Second halves begin at the access point.
    pub fn reroute(&self, routes: &mut [Route]) {
        for second in &self.whole {
            routes[*second].from = HostId::AccessPoint;
        }
    }
}

//! The two halves of a connection that the access point splits, as flows.

use std::borrow::Cow;

use lasthop_home::scenario::{Flow, HostId, Scenario};

/// Which flows are halves of split connections.
#[derive(Clone, Debug, Default)]
pub struct Halves {
    /// Whose first half the flows from `behind` on are.
    whole: Vec<usize>,
    behind: usize,
}

impl Halves {
    /// Puts the first half of each connection that is split behind the flows of `home`.
    pub fn expand(home: &mut Cow<'_, Scenario>) -> Self {
        let behind = home.flows.len();
        let whole: Vec<usize> = (0..behind).filter(|i| home.is_split(&home.flows[*i])).collect();
        for i in &whole {
            let flow = home.flows[*i].clone();
            let name = format!("{}/first", flow.name);
            home.to_mut().flows.push(Flow { name, to: HostId::AccessPoint, ..flow });
        }
        Self { whole, behind }
    }

    /// The second half of first half `flow`.
    pub fn second(&self, flow: usize) -> Option<usize> {
        self.whole.get(flow.checked_sub(self.behind)?).copied()
    }

    /// The first half of second half `flow`.
    pub fn first(&self, flow: usize) -> Option<usize> {
        self.whole.iter().position(|second| *second == flow).map(|at| self.behind + at)
    }
}

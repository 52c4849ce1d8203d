//! What somebody wants left alone for a while: everybody's, or that of some stations.
//!
//! Whoever is left alone counts as one whose windows cannot be lowered: what he takes is measured, and the others share what he
//! leaves.

use std::collections::BTreeSet;

use super::StationId;

/// Whose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whose {
    /// Everybody's.
    pub all: bool,
    /// That of these stations.
    pub stations: BTreeSet<StationId>,
}

impl Whose {
    /// Also of this station.
    #[must_use]
    pub fn has(&self, station: StationId) -> bool {
        self.all || self.stations.contains(&station)
    }
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftAlone {
    /// TCP connections whose windows pass as receivers offer them.
    pub windows: Whose,
    /// UDP flows that are neither marked nor dropped.
    pub datagrams: Whose,
}

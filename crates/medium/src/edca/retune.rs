//! What a host may set while the cell runs: how classes contend, how long aggregates are, how much air time waits below a Linux queue.
//!
//! All of it counts from the next frame on. AIFSN stays: who counts with which of them is settled when the cell is made.

use lasthop_core::aqm::mac80211::Aql;
use lasthop_core::packet::{AccessCategory, Packet};
use lasthop_core::units::Span;

use super::Edca;
use super::access::contender;
use crate::edca_params::EdcaClass;
use crate::medium::NodeId;

impl<P: Packet + Copy> Edca<P> {
    /// How a class of a node contends; `None`: the node has no classes.
    pub fn class(&self, node: NodeId, class: AccessCategory) -> Option<EdcaClass> {
        let has_classes = self.radios[usize::from(node.0)].qos;
        has_classes.then(|| self.accesses[usize::from(contender(node.0, class))].class)
    }

    /// Contention windows, TXOP limit and attempts of a class; nodes without classes stay as they are.
    pub fn set_class(&mut self, node: NodeId, class: AccessCategory, wanted: &EdcaClass) {
        if !self.radios[usize::from(node.0)].qos {
            return;
        }
        let access = &mut self.accesses[usize::from(contender(node.0, class))];
        let EdcaClass { cw_min, cw_max, txop_limit, attempts, .. } = *wanted;
        access.class = EdcaClass { cw_min, cw_max, txop_limit, attempts, ..access.class };
        access.cw = access.cw.clamp(u32::from(cw_min), u32::from(cw_max.max(cw_min)));
    }

    /// The access point makes no longer A-MPDUs, whatever it agreed on with a station.
    pub fn set_ampdu_limit(&mut self, bytes: u32) {
        for station in 1..self.radios.len() {
            let at = 2 * station + 1;
            self.links[at].ampdu_limit = bytes;
            let link = self.links[at];
            let times = &self.times;
            if let Some(adapt) = &mut self.adapts[at] {
                adapt.known.iter_mut().for_each(|known| known.room = link.room(&times[usize::from(known.times)]));
            }
            (self.links[at].most_bytes, self.links[at].longest_bytes) = link.room(&times[usize::from(link.times)]);
        }
    }

    /// Air time that may wait below the access point's queue, where that is a Linux one and has such a limit.
    pub fn set_aql(&mut self, aql: Aql) {
        if let Some(linux) = &mut self.linux {
            linux.set_aql(aql);
        }
    }

    /// Air time that was used so far.
    pub fn airtime(&self) -> Span {
        self.radios.iter().fold(Span::ZERO, |sum, radio| sum + radio.stats.airtime)
    }
}

//! Datagrams to stations behind a radio, per packet: what each flow sends is counted, and it has the class that it was given.
//!
//! Unlike in [`super::udp`], every flow is kept, also one that never sent a full packet: games and calls are those whose class matters.
//! Who has which class is [`crate::levers`]; here it is a number. A packet that its sender marked for another class than best
//! effort (DSCP) keeps what it asked for.
//!
//! Source: `cfg80211_classify8021d` of Linux (`net/wireless/util.c`) takes `skb->priority` 256 + UP for user priority UP before it looks
//! at the packet, so nothing in the packet is changed. Not done: TCP.

use super::udp::Datagram;
use crate::packet::AccessCategory;
use crate::units::Time;

/// A UDP flow's packets to its station. Written by them, but for the class, which the controller writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct LightFlow {
    /// Packets, cumulative (a GRO-merged one counts its segments).
    pub packets: u64,
    /// IP bytes, likewise.
    pub bytes: u64,
    /// IP bytes of those that were full.
    pub full_bytes: u64,
    /// When the newest one passed.
    pub last_seen_ns: u64,
    /// The port that it crossed last, as in [`super::layout::FlowState::port`].
    pub port: u32,
    /// User priority (IEEE 802.1D) of its packets, 1 to 7; 0: they have none but their own.
    pub user_priority: u32,
}

const _: () = assert!(size_of::<LightFlow>() == 4 * 8 + 2 * 4);

impl LightFlow {
    /// A datagram passes: the user priority that it is given, if any. `dscp` are the upper six bits of its type of service or
    /// traffic class.
    pub fn on_datagram(&mut self, datagram: &Datagram, dscp: u8, port: u32, now: Time) -> Option<u8> {
        self.packets = self.packets.wrapping_add(u64::from(datagram.segments));
        self.bytes = self.bytes.wrapping_add(u64::from(datagram.ip_bytes));
        if datagram.is_full() {
            self.full_bytes = self.full_bytes.wrapping_add(u64::from(datagram.ip_bytes));
        }
        (self.last_seen_ns, self.port) = (now.as_nanos(), port);
        self.given(dscp)
    }

    /// The user priority that a datagram with this mark is given.
    #[must_use]
    pub const fn given(&self, dscp: u8) -> Option<u8> {
        let priority = (self.user_priority & 7) as u8;
        if priority == 0 || dscp != 0 { None } else { Some(priority) }
    }
}

/// The user priority of a class (IEEE 802.11-2020, table 10-1: the first of its two); 0 of best effort, which needs none.
#[must_use]
pub const fn user_priority(class: AccessCategory) -> u32 {
    match class {
        AccessCategory::Vo => 6,
        AccessCategory::Vi => 5,
        AccessCategory::Be => 0,
        AccessCategory::Bk => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Datagram = Datagram { ip_bytes: 200, segments: 1, understands_marks: false, quic: false };

    #[test]
    fn every_packet_counts_and_only_full_ones_as_full() {
        let mut flow = LightFlow::default();
        let now = Time::from_nanos(7);
        assert_eq!(flow.on_datagram(&SMALL, 0, 3, now), None);
        let merged = Datagram { ip_bytes: 2_600, segments: 2, ..SMALL };
        assert_eq!(flow.on_datagram(&merged, 0, 3, now), None);
        let counted =
            LightFlow { packets: 3, bytes: 2_800, full_bytes: 2_600, last_seen_ns: 7, port: 3, user_priority: 0 };
        assert_eq!(flow, counted);
    }

    #[test]
    fn a_class_is_given_to_packets_that_ask_for_none() {
        let mut flow = LightFlow { user_priority: user_priority(AccessCategory::Vo), ..LightFlow::default() };
        assert_eq!(flow.on_datagram(&SMALL, 0, 3, Time::ZERO), Some(6));
        assert_eq!(flow.on_datagram(&SMALL, 8, 3, Time::ZERO), None, "CS1 asks for background");
        // What the controller wrote is taken modulo eight: no packet gets a priority that is none.
        flow.user_priority = 8;
        assert_eq!(flow.given(0), None);
    }
}

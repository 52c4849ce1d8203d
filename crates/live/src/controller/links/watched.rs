//! What an interface's own counters and state tell.

use lasthop_core::packet::Direction;

use crate::interface::{InterfaceName, LinkState};
use lasthop_status::{InterfaceStatus, Presence, Role};

/// Bytes of an Ethernet header, which interface counters include.
const ETHERNET_HEADER: u64 = 14;

pub(super) struct Watched {
    pub(super) name: InterfaceName,
    pub(super) newest: Option<LinkState>,
    went_down: u64,
    received: u64,
    sent: u64,
    /// Without link headers, by direction as a LAN interface sees it.
    pub(super) ip_bytes: [u64; 2],
}

impl Watched {
    pub(super) fn new(name: &InterfaceName) -> Self {
        Self { name: name.clone(), newest: None, went_down: 0, received: 0, sent: 0, ip_bytes: [0; 2] }
    }

    /// Takes in the newest state; says what changed, if a person should know.
    pub(super) fn on_state(&mut self, newest: Option<LinkState>) -> Option<&'static str> {
        let before = std::mem::replace(&mut self.newest, newest);
        if let (Some(before), Some(newest)) = (&before, &self.newest)
            && before.ifindex == newest.ifindex
        {
            let received = newest.received_bytes.saturating_sub(before.received_bytes);
            let sent = newest.sent_bytes.saturating_sub(before.sent_bytes);
            let ip_bytes = |bytes: u64, packets: u64| {
                bytes.saturating_sub(if newest.ethernet { packets * ETHERNET_HEADER } else { 0 })
            };
            self.received += received;
            self.sent += sent;
            self.ip_bytes[Direction::ToRemote.index()] +=
                ip_bytes(received, newest.received_packets.saturating_sub(before.received_packets));
            self.ip_bytes[Direction::ToStation.index()] +=
                ip_bytes(sent, newest.sent_packets.saturating_sub(before.sent_packets));
        }
        let change = match (before.as_ref(), self.newest.as_ref()) {
            (Some(_), None) => "went away",
            (Some(b), Some(n)) if b.up && !n.up => "went down",
            (Some(b), Some(n)) if !b.up && n.up => "came up",
            _ => return None,
        };
        self.went_down += u64::from(change != "came up");
        Some(change)
    }

    pub(super) fn status(&self, role: Role) -> InterfaceStatus {
        InterfaceStatus {
            name: self.name.to_string(),
            role,
            state: match &self.newest {
                None => Presence::Away,
                Some(state) if state.up => Presence::Up,
                Some(_) => Presence::Down,
            },
            bridge: None,
            attached: None,
            reattached: 0,
            went_down: self.went_down,
            received_bytes: self.received,
            sent_bytes: self.sent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_by_direction_without_link_headers_and_not_across_two_interfaces_of_one_name() {
        let state = |ifindex, bytes: u64| LinkState {
            ifindex,
            ethernet: true,
            received_bytes: 114 * bytes,
            received_packets: bytes,
            sent_bytes: 1_014 * bytes,
            sent_packets: bytes,
            ..LinkState::default()
        };
        let mut watched = Watched::new(&"lan0".parse().unwrap());
        watched.on_state(Some(state(5, 1)));
        watched.on_state(Some(state(5, 3)));
        watched.on_state(Some(state(6, 9)));
        assert_eq!(watched.ip_bytes[Direction::ToStation.index()], 2_000);
        assert_eq!(watched.ip_bytes[Direction::ToRemote.index()], 200);
        assert_eq!(watched.on_state(None), Some("went away"));
    }
}

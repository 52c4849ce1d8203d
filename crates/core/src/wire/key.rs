//! Who talks to whom, the station's end first.

use super::{TcpFields, UdpFields};
use crate::layout::FlowKey;
use crate::packet::Direction;

/// An address and a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// IPv6, or IPv4 as `::ffff:a.b.c.d`.
    pub address: [u8; 16],
    /// Host order.
    pub port: u16,
}

/// Names the connection of a segment that crosses the access point in `direction`.
#[must_use]
pub const fn flow_key(tcp: &TcpFields, direction: Direction) -> FlowKey {
    between(&tcp.source, &tcp.destination, direction)
}

/// Names the flow of a datagram likewise. A TCP connection may have the same name.
#[must_use]
pub const fn udp_flow_key(udp: &UdpFields, direction: Direction) -> FlowKey {
    between(&udp.source, &udp.destination, direction)
}

const fn between(source: &Endpoint, destination: &Endpoint, direction: Direction) -> FlowKey {
    let (station, remote) = match direction {
        Direction::ToStation => (destination, source),
        Direction::ToRemote => (source, destination),
    };
    FlowKey { station: station.address, remote: remote.address, station_port: station.port, remote_port: remote.port }
}

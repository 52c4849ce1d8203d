//! What the tests of the medium share.
#![allow(dead_code)]

pub mod edca_oracle;
pub mod oracle;

use lasthop_core::packet::{AccessCategory, FlowId, Packet};
use lasthop_core::units::{Span, Time};
use lasthop_medium::{Event, Medium, NodeId, Rate, StationParams};

/// A numbered packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Numbered {
    pub number: u32,
    pub bytes: u32,
}

impl Packet for Numbered {
    fn flow(&self) -> FlowId {
        FlowId(0)
    }
    fn bytes(&self) -> u32 {
        self.bytes
    }
    /// What is numbered from a million on.
    fn is_realtime(&self) -> bool {
        self.number >= 1_000_000
    }
}

/// The same with a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Classed {
    pub number: u32,
    pub bytes: u32,
    pub class: AccessCategory,
}

impl Packet for Classed {
    fn flow(&self) -> FlowId {
        FlowId(0)
    }
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn access_category(&self) -> AccessCategory {
        self.class
    }
}

pub const AP: NodeId = NodeId::ACCESS_POINT;

pub fn us(n: u64) -> Time {
    Time::ZERO + Span::from_micros(n)
}

pub fn secs(n: u64) -> Time {
    Time::ZERO + Span::from_secs(n)
}

/// n stations of 802.11g at 54 Mbit/s.
pub fn g_stations(n: usize) -> Vec<StationParams> {
    (0..n).map(|i| StationParams { angle_deg: 360.0 / n as f64 * i as f64, ..StationParams::default() }).collect()
}

/// n stations of 802.11b at 11 Mbit/s.
pub fn b_stations(n: usize) -> Vec<StationParams> {
    let b = StationParams { standard: lasthop_medium::Standard::B, rate: Rate::DSSS_11, ..StationParams::default() };
    g_stations(n).into_iter().map(|s| StationParams { angle_deg: s.angle_deg, ..b }).collect()
}

/// Keeps every station's queue full with packets to the access point; delivered packets per station.
pub fn saturate_up(medium: &mut Medium<Numbered>, stations: u16, bytes: u32, until: Time) -> Vec<u64> {
    let mut delivered = vec![0; usize::from(stations) + 1];
    for station in 1..=stations {
        for number in 0..4 {
            medium.on_packet(Time::ZERO, NodeId(station), AP, Numbered { number, bytes });
        }
    }
    while let Some(event) = medium.poll(until) {
        let (at, from) = match event {
            Event::Delivered { at, from, .. } => {
                delivered[usize::from(from.0)] += 1;
                (at, from)
            }
            Event::Dropped { at, node, .. } => (at, node),
        };
        medium.on_packet(at, from, AP, Numbered { number: 0, bytes });
    }
    delivered
}

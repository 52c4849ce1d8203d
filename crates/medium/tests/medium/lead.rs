//! What meters of delay are told of packets that are handed out together.

use crate::common::{AP, Numbered};
use lasthop_core::units::Time;
use lasthop_medium::{Ampdu, Band, Guard, Medium, MediumParams, Mode, NodeId, Rate, Standard, StationParams, Width};

#[test]
fn a_packet_of_an_aggregate_arrived_when_its_mpdu_ended() {
    let standard = Standard::N;
    let mode = Mode { standard, width: Width::Mhz20, streams: 1, mcs: 7, guard: Guard::Ns800 };
    let params = MediumParams { standard, band: Band::Ghz5, queue_limit: 100, ..MediumParams::default() };
    let rate = Rate::of_mode(mode).unwrap();
    let station = StationParams { standard, rate, ampdu: Ampdu::of(standard), ..StationParams::default() };
    let mut medium = Medium::new(params, vec![station], 1);
    (0..21).for_each(|number| medium.on_packet(Time::ZERO, AP, NodeId(1), Numbered { number, bytes: 1500 }));
    let mut leads = Vec::new();
    while let Some(at) = medium.next_deadline() {
        while medium.poll(at).is_some() {
            leads.push(medium.lead().as_nanos() as f64 / 1000.0);
        }
    }
    // Delimiter, header and FCS, LLC/SNAP: 4 + 30 + 8 bytes, padded to 1544; at 65 Mbit/s.
    let mpdu = 1544.0 * 8.0 / 65.0;
    let all: Vec<f64> = (0..21).rev().map(|behind| f64::from(behind) * mpdu).collect();
    assert_eq!(leads.len(), 21);
    assert!(leads.iter().zip(&all).all(|(lead, right)| (lead - right).abs() < 0.01), "{leads:?}");
}

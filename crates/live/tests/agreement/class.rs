//! Datagrams of all lengths and gaps, at an interface where some go ahead and at one where none does.

use lasthop_core::fastpath::class::{Ahead, Level, PLACES, Sparse, goes_ahead, place};
use lasthop_core::fastpath::layout::FlowKey;
use lasthop_core::units::Time;

use crate::host;
use crate::random::Random;

#[test]
fn the_header_for_classes_compiled_for_the_host_agrees_with_rust() {
    let mut random = Random::new(26);
    let (mut rust, mut c) = (Ahead::USUAL, Ahead::USUAL);
    let mut flows = [[Level::default(); 8]; 2];
    let (mut now_ns, mut ahead, mut stayed) = (9_000_000_000, 0, 0);
    for n in 0..100_000 {
        if n % 2_000 == 0 {
            let told = Ahead {
                user_priority: random.pick(&[0, 6, 6, 7]),
                flow_rate_bytes: random.pick(&[0, 1 << 17, 1 << 17, u32::MAX]),
                flow_depth_bytes: random.pick(&[0, 1 << 14, 1 << 14, u32::MAX]),
                all_rate_bytes: random.pick(&[0, 1 << 18, 1 << 18, u32::MAX]),
                all_depth_bytes: random.pick(&[0, 1 << 15, 1 << 15, u32::MAX]),
                ..rust
            };
            (rust, c) = (told, told);
        }
        // Clocks of two processors differ: now and then one is behind.
        now_ns = (now_ns + random.pick(&[0, 20_000, 400_000, 2_000_000, 40_000_000])).max(1);
        let late_ns = if random.percent(2) { random.pick(&[1, 5_000_000, 3_000_000_000]) } else { 0 };
        let now = Time::from_nanos(now_ns - late_ns);
        let packet = Sparse {
            ip_bytes: random.pick(&[0, 40, 120, 400, 1_199, 1_200, 65_535, u32::MAX]),
            segments: random.pick(&[1, 1, 1, 1, 40]),
            dscp: random.pick(&[0, 0, 0, 8, 46]),
        };
        let flow = random.below(8) as usize;
        let told = goes_ahead(&mut rust, &mut flows[0][flow], packet, now);
        assert_eq!(host::goes_ahead(&mut c, &mut flows[1][flow], packet, now), told, "{n}: {packet:?}");
        assert_eq!((rust, flows[0]), (c, flows[1]), "{n}: {packet:?}");
        if told { ahead += 1 } else { stayed += 1 }
    }
    assert!(ahead > 5_000 && stayed > 5_000, "{ahead} went ahead, {stayed} stayed");
}

#[test]
fn rust_and_c_give_a_flow_the_same_place() {
    let mut random = Random::new(27);
    for _ in 0..2_000 {
        let mut key = FlowKey {
            station_port: random.below(65_536) as u16,
            remote_port: random.below(65_536) as u16,
            ..FlowKey::default()
        };
        key.station.iter_mut().chain(&mut key.remote).for_each(|byte| *byte = random.below(256) as u8);
        assert_eq!(host::place(&key), place(&key));
        assert!(place(&key) < PLACES);
    }
}

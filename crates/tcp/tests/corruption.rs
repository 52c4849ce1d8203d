//! Losses that are nobody's congestion: one segment in a hundred, on a path whose queue never fills.

mod common;

use common::path::{Link, Path};
use lasthop_core::units::{BitRate, Span, Time};
use lasthop_tcp::{Algorithm, SenderParams};

/// Mbit/s of payload in a minute over 10 Mbit/s and 80 ms, with blocks.
fn carried(cc: Algorithm) -> f64 {
    let link = Link::new(BitRate::mbps(10), Span::from_millis(40), 1000);
    let mut path = Path::new(SenderParams { cc, sack: true, ..SenderParams::default() }, 60 * 1460, link);
    path.lose_every = 101;
    path.run(Time::from_nanos(60_000_000_000));
    path.sender.snapshot().acked_bytes as f64 * 8.0 / 60e6
}

/// sqrt(3/2) x 1460 B / (80 ms sqrt(1/101)) = 1.8 Mbit/s for a sender that halves.
#[test]
fn what_tells_corruption_from_congestion_is_rewarded() {
    let found = Algorithm::ALL.map(|cc| (cc, carried(cc)));
    println!("{found:?}");
    let of = |cc| found.iter().find(|(other, _)| *other == cc).map_or(0.0, |(_, rate)| *rate);
    let newreno = of(Algorithm::NewReno);
    assert!((1.4..2.0).contains(&newreno), "{newreno}");
    assert!(of(Algorithm::Bbr) > 5.0, "{} of the 6 Mbit/s that the window allows", of(Algorithm::Bbr));
    for cc in [Algorithm::Real, Algorithm::Wtcp, Algorithm::Westwood, Algorithm::WestwoodPlus] {
        assert!(of(cc) > 1.5 * newreno, "{cc:?}: {} and {newreno} Mbit/s", of(cc));
    }
}

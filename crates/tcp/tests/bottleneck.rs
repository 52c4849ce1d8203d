//! What each law makes of a bottleneck: 20 Mbit/s, 80 ms, a queue of 50, a minute.

mod common;

use common::path::{Link, Path};
use lasthop_core::units::{BitRate, Span, Time};
use lasthop_tcp::{Algorithm, SenderParams};

/// Of the link, headers counted.
fn share(cc: Algorithm, sack: bool) -> f64 {
    let link = Link::new(BitRate::mbps(20), Span::from_millis(40), 50);
    let mut path = Path::new(SenderParams { cc, sack, ..SenderParams::default() }, 1000 * 1460, link);
    path.run(Time::from_nanos(60_000_000_000));
    let acked = path.sender.snapshot().acked_bytes as f64 * 1500.0 / 1460.0;
    acked * 8.0 / 60.0 / 20e6
}

/// The pipe is 133 segments and the queue 50: after a loss at 183 half is 92, so that Reno's saw leaves some of the link.
/// Westwood falls back to the pipe and CUBIC to 128.
#[test]
fn with_blocks_every_law_fills_the_link_as_far_as_its_cut_lets_it() {
    for cc in Algorithm::ALL {
        let (with, without) = (share(cc, true), share(cc, false));
        println!("{cc:?}: {with:.3} of the link with blocks, {without:.3} without");
        let expected = match cc {
            Algorithm::Tahoe => 0.6..0.9,
            Algorithm::Reno | Algorithm::NewReno => 0.85..0.97,
            // Its estimate is a mean of the last ten round trips or so, which slow start keeps low.
            Algorithm::WestwoodPlus => 0.85..1.0,
            // A pair shows the link, and it begins at half of that.
            Algorithm::Wtcp => 0.85..0.97,
            // What it lost to a full queue it finds an empty one after, and fills it again as far.
            Algorithm::Probing => 0.4..0.97,
            // A fortieth of its time it measures round trips with four segments.
            Algorithm::Bbr => 0.92..1.0,
            // A window under the pipe comes in clumps, and a wave that ends within one looks fast.
            Algorithm::Real => 0.8..0.97,
            _ => 0.93..1.0,
        };
        assert!(expected.contains(&with), "{cc:?}: {with}");
        assert!(without <= with + 0.01, "{cc:?}: blocks help, {without} {with}");
    }
}

/// A queue of 1000 packets is 600 ms. NewReno fills it, BBR leaves about a pipe in it at most, Vegas three segments.
#[test]
fn a_deep_queue_stays_short_where_losses_are_not_waited_for() {
    let rtt = |cc| {
        let link = Link::new(BitRate::mbps(20), Span::from_millis(40), 1000);
        let mut path = Path::new(SenderParams { cc, sack: true, ..SenderParams::default() }, 4000 * 1460, link);
        path.run(Time::from_nanos(25_000_000_000));
        let snapshot = path.sender.snapshot();
        assert!(snapshot.acked_bytes > 50_000_000, "{cc:?}: {snapshot:?}");
        snapshot.srtt.map_or(0.0, Span::as_millis_f64)
    };
    let (newreno, bbr, vegas) = (rtt(Algorithm::NewReno), rtt(Algorithm::Bbr), rtt(Algorithm::Vegas));
    assert!(newreno > 200.0 && bbr < 120.0 && vegas < 90.0, "{newreno} {bbr} {vegas} ms");
}

//! What `--trace` says of rates, against what the hop can carry.

mod common;

use std::collections::BTreeMap;

use common::{home, load, shipped, trace};
use lasthop_core::units::Span;
use lasthop_home::scenario::{LastHop, Scenario};

/// Payload of the largest segment, and the IP packet around it, bytes.
const SEGMENT: (f64, u32) = (1460.0, 1500);

/// The highest payload rate at which full packets can come out of the hop one after the other, bit/s: as if nobody backed off,
/// answered or lost anything. With shorter packets it is lower.
fn most(scenario: &Scenario) -> f64 {
    let homes = || std::iter::once(scenario).chain(scenario.changes.iter().map(|change| &*change.after));
    let per_packet = |home: &Scenario| {
        let (params, stations) = home.medium();
        match &home.hop {
            LastHop::Wifi(_) => {
                let phy = params.phy(&stations);
                // Packets of one aggregate share its preamble and its answer.
                let air = |rate: lasthop_medium::Rate| match rate.mode() {
                    Some(_) => rate.bit_rate().time_for(u64::from(SEGMENT.1)).as_secs_f64(),
                    None => (phy.data(rate, SEGMENT.1) + phy.sifs()).as_secs_f64(),
                };
                stations.iter().map(|station| air(station.rate)).fold(f64::INFINITY, f64::min)
            }
            // The wire behind the link holds a short packet up behind a long one, and then both come at its rate.
            LastHop::WirelessLink(link) => {
                link.params.rate.max(link.params.station_rate).time_for(u64::from(SEGMENT.1)).as_secs_f64()
            }
            // A bunch holds what was sent when it comes, all but the last bit of one packet of it before the bunch before.
            LastHop::Bridge(bridge) => {
                let (own, every) = (bridge.costs.time(SEGMENT.1), bridge.costs.delivery_interval);
                let share = every.as_secs_f64() / (every + own).as_secs_f64();
                own.as_secs_f64() * if every > Span::ZERO { share } else { 1.0 }
            }
        }
    };
    SEGMENT.0 * 8.0 / homes().map(per_packet).fold(f64::INFINITY, f64::min)
}

/// Rates in a trace, and how many of them are above `most`.
fn rates(scenario: &Scenario) -> (usize, usize) {
    let most = most(scenario);
    let rates: Vec<f64> = trace(scenario).iter().filter_map(|line| line.rate_bps).collect();
    (rates.len(), rates.iter().filter(|rate| **rate > most).count())
}

#[test]
fn no_rate_exceeds_what_the_hop_carries_in_any_shipped_scenario() {
    let mut found = BTreeMap::new();
    for (name, set) in shipped() {
        let scenario = load(&name, &set);
        let (all, above) = rates(&scenario);
        // A frame of aggregates hands over at once what took milliseconds to come, and with it what a receiver held back behind a packet that was
        // sent again: where lines lie closer together than frames, now and then one counts what came in longer than it spans.
        let at_once = scenario.medium().1.iter().any(|station| station.rate.mode().is_some());
        found.insert(name, (all, above.saturating_sub(if at_once { all / 20 } else { 0 })));
    }
    let above: Vec<_> = found.iter().filter(|(_, (_, above))| *above > 0).collect();
    assert!(above.is_empty(), "{above:?}");
    assert!(found.values().map(|(all, _)| all).sum::<usize>() > 10_000, "{found:?}");
}

/// Recoveries with and without blocks: the acknowledgment at their end covers what came behind the hole.
#[test]
fn no_rate_exceeds_what_the_hop_carries_after_a_recovery() {
    for cc in ["newreno", "cubic", "bbr"] {
        for sack in [true, false] {
            // Three in a hundred packets are lost for good.
            let down = format!("down W A ftp cc = \"{cc}\"; sack = {sack}");
            let set = ["wifi.loss.kind=fixed", "wifi.loss.rate=0.03", "wifi.attempts=1", "wifi.queue.limit=20"];
            let (all, above) = rates(&home(&[&down, "up B W ftp"], &set));
            assert!(all > 300 && above == 0, "{cc}, sack {sack}: {above} of {all}");
        }
    }
}

/// Rates times the time they stand for are the bytes that arrived.
#[test]
fn rates_add_up_to_what_arrived() {
    // Nothing is lost: what comes behind a hole has no rate.
    let scenario = home(&["down W A ftp bytes = \"2MB\""], &["wifi.queue.limit=200"]);
    let lines = trace(&scenario);
    assert!(lines.is_sorted_by(|a, b| a.t_s <= b.t_s));
    let down: Vec<_> = lines.iter().filter(|line| line.flow.is_some()).collect();
    assert!(down.iter().all(|line| line.rate_bps.is_none_or(|rate| rate > 0.0 && rate.is_finite())));
    // Arrivals stand half a round trip before lines; over the whole run the difference is small.
    let mut bits = 0.0;
    let mut before = None;
    for line in down {
        if let (Some(rate), Some(before)) = (line.rate_bps, before) {
            bits += rate * (line.t_s - before);
        }
        before = Some(line.t_s);
    }
    assert!((bits / 16e6 - 1.0).abs() < 0.05, "{} bytes", bits / 8.0);
}

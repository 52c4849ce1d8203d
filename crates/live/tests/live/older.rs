//! Connections that are older than the controller.

use std::net::IpAddr;

use lasthop_core::fastpath::layout::FlowKey;
use lasthop_live::conntrack::Conntrack;

use crate::traffic::Download;
use crate::world::{World, world};

#[test]
fn an_older_connection_is_held_where_nobody_knows_its_scale() {
    let test = "an_older_connection_is_held_where_nobody_knows_its_scale";
    let Some(world) = world(test) else { return };
    let download = Download::start(&world, World::SERVER);
    let before = download.received();
    crate::world::wait_for("the download runs", || (download.received() > before + 1_000_000).then_some(()));
    let running = world.control(world.config()).expect("a controller");
    let status = running.wait_for("it gives up asking", |s| s.conntrack.asked > 0 && s.packets["scale-unknown"] > 100);
    assert_eq!(status.conntrack.learned, 0);
    let status = running.wait_for("it is lowered", |s| s.control.rewritten > 100);
    assert_eq!(status.conntrack.learned, 0);
    let clamp = status.flows[0].clamp_bytes.expect("a plan");
    // What is found is the least scale that what it has in flight shows: at most the next one is missing.
    running.wait_for("the sender obeys", |_| download.offered_window() <= 2 * clamp + 65_536);
    let received = download.received();
    crate::world::wait_for("it goes on", || (download.received() > received + 1_000_000).then_some(()));
    download.finish().expect("the connection lives");
}

#[test]
fn an_older_connection_is_controlled_where_conntrack_knows_its_scale() {
    let test = "an_older_connection_is_controlled_where_conntrack_knows_its_scale";
    let Some(world) = world(test) else { return };
    if !world.tracks_connections(test) {
        return;
    }
    let download = Download::start(&world, World::SERVER);
    let before = download.received();
    crate::world::wait_for("the download runs", || (download.received() > before + 1_000_000).then_some(()));
    let running = world.control(world.config()).expect("a controller");
    let status = running.wait_for("conntrack tells", |s| s.conntrack.learned > 0);
    assert_eq!(status.conntrack.unavailable, None);
    let status = running.wait_for("it is lowered", |s| s.control.rewritten > 100);
    let clamp = status.flows[0].clamp_bytes.expect("a plan");
    running.wait_for("the sender obeys", |_| download.offered_window() <= clamp + 65_536);
    download.finish().expect("the connection lives");
}

#[test]
fn conntrack_tells_the_scales_of_a_connection_whose_syns_it_saw() {
    let test = "conntrack_tells_the_scales_of_a_connection_whose_syns_it_saw";
    let Some(world) = world(test) else { return };
    if !world.tracks_connections(test) {
        return;
    }
    for address in [World::SERVER, World::SERVER6] {
        let download = Download::start(&world, address);
        let (station, remote) = download.ends();
        let key = FlowKey {
            station: mapped(station.ip()),
            remote: mapped(remote.ip()),
            station_port: station.port(),
            remote_port: remote.port(),
        };
        let known = world.router.inside(move || Conntrack::open().and_then(|mut c| c.scales(&key))).expect("an answer");
        assert!(known.is_some_and(|s| (1..=14).contains(&s.station) && (1..=14).contains(&s.remote)), "{known:?}");
        // The same question from the other side finds the scales the other way round.
        let swapped = FlowKey {
            station: key.remote,
            remote: key.station,
            station_port: key.remote_port,
            remote_port: key.station_port,
        };
        let other = world.router.inside(move || Conntrack::open().and_then(|mut c| c.scales(&swapped)));
        assert_eq!(other.expect("an answer").map(|s| (s.remote, s.station)), known.map(|s| (s.station, s.remote)));
        download.finish().expect("the connection lives");
    }
}

fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

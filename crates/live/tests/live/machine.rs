//! What of the machine is seen, said, and left as it is.

use std::net::UdpSocket;
use std::time::Duration;

use lasthop_core::units::Span;
use lasthop_live::config::{AttachMode, Capacity, Config, Datapath, Queueing};
use lasthop_live::netlink::Socket;
use lasthop_live::{discipline, interface, neighbours};

use crate::child::Process;
use crate::traffic::Download;
use crate::world::{World, far_world, world};

fn disciplines(world: &World, device: &'static str) -> Vec<discipline::Discipline> {
    world.router.inside(move || {
        let mut route = Socket::open(libc::NETLINK_ROUTE).expect("netlink");
        let name = device.parse().expect("a name");
        let there = interface::state(&mut route, &name).expect("netlink").expect("the device");
        let mut list = discipline::of(&mut route, there.ifindex).expect("netlink");
        list.iter_mut().for_each(|discipline| discipline.backlog = 0);
        // Ours on the way in and out, while a controller is there by clsact.
        list.retain(|discipline| discipline.kind != "clsact");
        list
    })
}

fn learning(world: &World) -> Config {
    Config { capacity: Capacity::Learn, ..world.config() }
}

#[test]
fn queues_of_others_are_found_said_and_left_as_they_are() {
    let Some(world) = world("queues_of_others_are_found_said_and_left_as_they_are") else { return };
    world.router.tool("tc", "qdisc add dev wan0 root handle 1: htb default 1");
    world.router.tool("tc", "class add dev wan0 parent 1: classid 1:1 htb rate 4mbit ceil 5mbit");
    let before = ["lan0", "wan0"].map(|device| disciplines(&world, device));
    let running = world.control(learning(&world)).expect("a controller");
    let status = running.wait_for("both are found", |s| s.found.len() == 2);
    let what: Vec<_> =
        status.found.iter().map(|f| (f.interface.as_str(), f.what.as_str(), f.shapes, f.short)).collect();
    assert_eq!(what, [("lan0", "tbf at 20 Mbit/s", true, false), ("wan0", "htb at 5 Mbit/s", true, false)]);
    assert!(status.decisions.iter().any(|said| said.line.contains("lan0: found tbf at 20 Mbit/s")), "{status:#?}");
    drop(running);
    assert_eq!(["lan0", "wan0"].map(|device| disciplines(&world, device)), before);
}

#[test]
fn a_queue_that_stands_in_the_access_point_is_known_to_stand_there() {
    let test = "a_queue_that_stands_in_the_access_point_is_known_to_stand_there";
    let Some(world) = far_world(test, Duration::from_millis(15)) else { return };
    // It looks and does nothing, so that the queue of the token bucket fills.
    let running = world.control(Config { dry_run: true, ..learning(&world) }).expect("a controller");
    let download = Download::start(&world, World::SERVER);
    // The first packets wait nowhere yet.
    let status = running.wait_for("the place is known", |s| {
        s.directions.down.queue_ms > 20.0 && s.directions.down.queue_place.is_some()
    });
    assert_eq!(status.directions.down.queue_place.as_deref(), Some("access-point"), "{status:#?}");
    assert_eq!(status.packets["rewritten"], 0);
    download.finish().expect("the connection lives");
}

#[test]
fn a_dry_run_says_which_queue_it_would_put_there_and_puts_none() {
    let Some(world) = world("a_dry_run_says_which_queue_it_would_put_there_and_puts_none") else { return };
    let before = disciplines(&world, "lan0");
    let config = Config { dry_run: true, queueing: Queueing::Chap, datapath: Datapath::Auto, ..learning(&world) };
    let running = world.control(config).expect("a controller");
    let status = running.status();
    assert!(status.dry_run && status.queues.is_empty() && status.knobs.is_empty(), "{status:#?}");
    assert!(status.decisions.iter().any(|said| said.line.contains("lan0 would get chap")), "{:?}", status.decisions);
    assert_eq!(disciplines(&world, "lan0"), before);
}

#[test]
fn with_nobody_there_is_nothing_to_do() {
    let Some(world) = world("with_nobody_there_is_nothing_to_do") else { return };
    let running = world.control(learning(&world)).expect("a controller");
    let status = running.wait_for("some decisions", |s| s.controller.intervals > 3);
    assert!(status.nothing_to_do && status.learns && status.capacity_bps == 0, "{status:#?}");
    assert_eq!((status.controller.plans, status.control.rewritten), (0, 0));
}

#[test]
fn a_calm_home_is_decided_about_seldom_until_somebody_moves_bulk_data() {
    let test = "a_calm_home_is_decided_about_seldom_until_somebody_moves_bulk_data";
    let Some(world) = far_world(test, Duration::from_millis(15)) else { return };
    let running = world.control(learning(&world)).expect("a controller");
    let within = |seconds| {
        let before = running.status().controller.intervals;
        std::thread::sleep(Duration::from_secs(seconds));
        running.status().controller.intervals - before
    };
    assert!((2..=4).contains(&within(3)), "one a second");
    let download = Download::start(&world, World::SERVER);
    running.wait_for("it is there", |s| !s.flows.is_empty());
    assert!(within(1) >= 10, "one every 50 ms");
    download.finish().expect("the connection lives");
}

/// It decides once a second, and looks at its interfaces.
#[test]
fn in_a_calm_home_nothing_wakes_it_between_its_decisions() {
    let Some(world) = world("in_a_calm_home_nothing_wakes_it_between_its_decisions") else { return };
    let running = Process::with(&world, AttachMode::Auto, "");
    running.wait_for("it is at work", |s| s.controller.intervals > 2);
    std::thread::sleep(Duration::from_millis(300));
    let before = running.waits();
    std::thread::sleep(Duration::from_secs(2));
    let waits = running.waits() - before;
    assert!((1..=6).contains(&waits), "{waits}");
}

/// It would rest for a second, which by chance could be nearly over in one of these rounds.
#[test]
fn a_large_packet_wakes_it_from_its_rest() {
    let Some(world) = world("a_large_packet_wakes_it_from_its_rest") else { return };
    let config = Config { interval: Some(Span::from_millis(10)), ..learning(&world) };
    let running = world.control(config).expect("a controller");
    let rounds = [0; 5].map(|_| {
        std::thread::sleep(Duration::from_millis(1_250));
        let before = running.status().controller.intervals;
        world.server.inside(|| {
            let socket = UdpSocket::bind("0.0.0.0:0").expect("a port");
            socket.send_to(&[0; 1_000], "10.9.1.2:9").expect("it leaves");
        });
        std::thread::sleep(Duration::from_millis(70));
        running.status().controller.intervals - before
    });
    assert!(rounds.iter().all(|decisions| *decisions >= 2), "{rounds:?}");
}

#[test]
fn the_kernel_tells_which_addresses_a_station_has() {
    let Some(world) = world("the_kernel_tells_which_addresses_a_station_has") else { return };
    world.router.ip("neigh add 10.9.1.77 lladdr 02:00:00:00:00:4d dev lan0");
    world.router.ip("neigh add fd09:1::77 lladdr 02:00:00:00:00:4d dev lan0");
    let known = world
        .router
        .inside(|| neighbours::all(&mut Socket::open(libc::NETLINK_ROUTE).expect("netlink")).expect("the table"));
    let mac = [2, 0, 0, 0, 0, 0x4d];
    assert_eq!(known.values().filter(|address| **address == mac).count(), 2, "{known:?}");
}

//! Nothing that happens to the controller or its interface ends a connection.

use std::time::Instant;

use lasthop_live::attach::{Side, attached, filters};
use lasthop_live::config::AttachMode;
use lasthop_live::netlink::Socket;

use crate::child::Process;
use crate::namespace::Namespace;
use crate::traffic::Download;
use crate::world::{World, wait_for, world};

/// Programs on the router's lan0 by tcx, and filters by clsact.
pub fn hooks(world: &World) -> (usize, usize) {
    hooks_in(&world.router)
}

/// Those on the lan0 that is in `space`.
pub fn hooks_in(space: &Namespace) -> (usize, usize) {
    space.inside(|| {
        let mut route = Socket::open(libc::NETLINK_ROUTE).expect("netlink");
        let name = "lan0".parse().expect("a name");
        let link = lasthop_live::interface::state(&mut route, &name).expect("netlink").expect("lan0");
        let sides = [Side::Ingress, Side::Egress];
        let programs = sides.iter().map(|s| attached(link.ifindex, *s).expect("a list").len()).sum();
        let filters = sides.iter().map(|s| filters(&mut route, link.ifindex, *s).expect("a list").len()).sum();
        (programs, filters)
    })
}

pub fn moves_on(download: &Download) {
    let before = download.received();
    wait_for("the download moves on", || (download.received() > before + 100_000).then_some(()));
}

#[test]
fn twenty_kills_in_the_middle_of_a_download_end_nothing() {
    let test = "twenty_kills_in_the_middle_of_a_download_end_nothing";
    let Some(world) = world(test) else { return };
    // Every controller but the first meets a connection that is older than itself.
    if !world.tracks_connections(test) {
        return;
    }
    let download = Download::start(&world, World::SERVER);
    for round in 0..20 {
        let controller = Process::start(&world, AttachMode::Auto);
        let status = controller.wait_for("it lowers windows", |s| s.control.rewritten > 10);
        assert!(status.interfaces[0].attached.is_some(), "round {round}");
        moves_on(&download);
        controller.kill();
        assert_eq!(hooks(&world), (0, 0), "round {round}: the kernel took everything off");
    }
    let clamped = 65_536;
    wait_for("the sender is told the receiver's own window", || (download.offered_window() > clamped).then_some(()));
    download.finish().expect("the connection outlived twenty controllers");
}

#[test]
fn a_killed_controller_of_clsact_is_off_by_its_heartbeat_and_swept_up_by_the_next() {
    let test = "a_killed_controller_of_clsact_is_off_by_its_heartbeat_and_swept_up_by_the_next";
    let Some(world) = world(test) else { return };
    let controller = Process::start(&world, AttachMode::Clsact);
    controller.wait_for("it is at work", |s| s.controller.intervals > 0);
    let download = Download::start(&world, World::SERVER);
    controller.wait_for("it lowers windows", |s| s.control.rewritten > 100);
    let held = download.offered_window();
    controller.kill();
    let killed = Instant::now();
    assert_eq!(hooks(&world), (0, 2), "its filters stay behind");
    wait_for("control is off", || (download.offered_window() > 4 * held).then_some(()));
    eprintln!("control was off {:.1} s after the kill", killed.elapsed().as_secs_f64());
    assert_eq!(hooks(&world), (0, 2));

    let next = world.control(world.with(AttachMode::Tcx)).expect("a controller");
    assert_eq!(hooks(&world), (2, 0), "the next start removed the filters");
    next.wait_for("it looks after older connections", |s| s.controller.intervals > 2);
    drop(next);
    assert_eq!(hooks(&world), (0, 0));
    download.finish().expect("the connection lives");
}

#[test]
fn an_interface_that_goes_down_or_away_is_controlled_again_when_it_is_back() {
    let Some(world) = world("an_interface_that_goes_down_or_away_is_controlled_again_when_it_is_back") else { return };
    let running = world.control(world.config()).expect("a controller");
    let download = Download::start(&world, World::SERVER);
    running.wait_for("it lowers windows", |s| s.control.rewritten > 100);

    world.router.ip("link set lan0 down");
    running.wait_for("it sees lan0 go down", |s| s.interfaces[0].went_down == 1);
    world.router.ip("link set lan0 up");
    moves_on(&download);
    let status = running.status();
    assert_eq!(status.interfaces[0].reattached, 0, "down and up does not unhook");

    world.router.ip("link del lan0");
    running.wait_for("it sees lan0 go away", |s| s.interfaces[0].attached.is_none());
    world.plug_station();
    let status = running.wait_for("it hooks lan0 again", |s| s.interfaces[0].reattached == 1);
    let before = status.control.rewritten;
    moves_on(&download);
    running.wait_for("it lowers windows again", |s| s.control.rewritten > before + 10);
    download.finish().expect("the connection lives");
}

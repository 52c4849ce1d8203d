//! Getting on and off an interface without touching what belongs to others.

use lasthop_live::attach::{AttachError, Side, filters};
use lasthop_live::config::AttachMode;
use lasthop_live::controller::ControllerError;
use lasthop_live::netlink::Socket;
use lasthop_live::status::ServerError;
use lasthop_status::{Mechanism, Status};

use crate::traffic::Download;
use crate::world::{World, world};

fn filters_of(world: &World, side: Side) -> Vec<String> {
    world.router.inside(move || {
        let mut route = Socket::open(libc::NETLINK_ROUTE).expect("netlink");
        let name = "lan0".parse().expect("a name");
        let link = lasthop_live::interface::state(&mut route, &name).expect("netlink").expect("lan0");
        filters(&mut route, link.ifindex, side).expect("a list").into_iter().map(|f| f.kind).collect()
    })
}

fn has_clsact(world: &World) -> bool {
    let output = world.router.command("tc").args(["qdisc", "show", "dev", "lan0"]).output().expect("tc");
    String::from_utf8_lossy(&output.stdout).contains("clsact")
}

#[test]
fn clsact_comes_and_goes_with_the_controller() {
    let Some(world) = world("clsact_comes_and_goes_with_the_controller") else { return };
    let running = world.control(world.with(AttachMode::Clsact)).expect("a controller");
    assert_eq!(running.status().interfaces[0].attached, Some(Mechanism::Clsact));
    assert_eq!(filters_of(&world, Side::Ingress), ["bpf"]);
    assert_eq!(filters_of(&world, Side::Egress), ["bpf"]);
    drop(running);
    assert!(!has_clsact(&world), "the qdisc that it made is gone");
}

#[test]
fn clsact_is_taken_off_a_port_that_leaves_its_bridge() {
    let Some(world) = world("clsact_is_taken_off_a_port_that_leaves_its_bridge") else { return };
    world.router.ip("link add br0 type bridge");
    world.router.ip("link set lan0 master br0");
    let mut config = world.with(AttachMode::Clsact);
    config.lan = vec!["br0".parse().expect("a name")];
    let running = world.control(config).expect("a controller");
    assert_eq!(filters_of(&world, Side::Egress), ["bpf"]);
    world.router.ip("link set lan0 nomaster");
    running.wait_for("it is let go", |s| s.interfaces.iter().all(|i| i.attached.is_none()));
    assert!(!has_clsact(&world), "nothing of ours is left there");
}

#[test]
fn the_qdisc_and_filters_of_others_stay() {
    let Some(world) = world("the_qdisc_and_filters_of_others_stay") else { return };
    world.router.tool("tc", "qdisc add dev lan0 clsact");
    let pass_all = ["bytecode", "1,6 0 0 4294967295"]; // one classic instruction: return
    let filter = ["filter", "add", "dev", "lan0", "ingress", "prio", "1", "bpf"];
    assert!(world.router.command("tc").args(filter).args(pass_all).status().expect("tc").success());
    let theirs = filters_of(&world, Side::Ingress);
    let running = world.control(world.with(AttachMode::Clsact)).expect("a controller");
    assert_eq!((theirs.len(), filters_of(&world, Side::Ingress).len()), (1, 2));
    drop(running);
    assert_eq!(filters_of(&world, Side::Ingress), theirs);
    assert!(has_clsact(&world));
}

#[test]
fn hooks_that_someone_takes_off_are_put_back() {
    let Some(world) = world("hooks_that_someone_takes_off_are_put_back") else { return };
    let running = world.control(world.with(AttachMode::Clsact)).expect("a controller");
    world.router.tool("tc", "qdisc del dev lan0 clsact");
    running.wait_for("it hooks lan0 again", |s| s.interfaces[0].reattached == 1);
    assert_eq!(filters_of(&world, Side::Egress), ["bpf"]);
}

#[test]
fn a_second_controller_is_refused_and_says_why() {
    let Some(world) = world("a_second_controller_is_refused_and_says_why") else { return };
    let _first = world.control(world.config()).expect("a controller");
    let mut config = world.config();
    config.socket.set_extension("other");
    let same_interface = world.control(config).err().expect("a refusal");
    assert!(matches!(same_interface, ControllerError::Attach(AttachError::Taken { .. })), "{same_interface}");
    let mut config = world.config();
    (config.lan, config.wan) = (vec!["wan0".parse().expect("a name")], None);
    let same_socket = world.control(config).err().expect("a refusal");
    assert!(matches!(same_socket, ControllerError::Server(ServerError::InUse(_))), "{same_socket}");
}

#[test]
fn several_interfaces_are_controlled_together() {
    let Some(world) = world("several_interfaces_are_controlled_together") else { return };
    let mut config = world.config();
    config.lan.push("wan0".parse().expect("a name"));
    config.wan = None;
    let running = world.control(config).expect("a controller");
    let download = Download::start(&world, World::SERVER);
    // Seen from wan0 the server is the station, and the same bytes are an upload. Who sees an ACK first lowers it.
    let held = |s: &Status| s.flows.iter().filter(|f| f.clamp_bytes.is_some()).count();
    let status = running.wait_for("both see the download", |s| held(s) == 2 && s.control.rewritten > 0);
    assert!(status.interfaces[..2].iter().all(|i| i.attached == Some(Mechanism::Tcx)));
    download.finish().expect("the connection lives");
}

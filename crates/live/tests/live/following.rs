//! Interfaces that are not there yet, go, come back, are renamed, join bridges and leave them.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use lasthop_live::attach::AttachError;
use lasthop_live::config::{AttachMode, Config, ConfigError, Datapath, Queueing};
use lasthop_live::controller::ControllerError;
use lasthop_live::ports::Refusal;
use lasthop_status::{Presence, Status};

use crate::survival::{hooks_in, moves_on};
use crate::traffic::Download;
use crate::world::{Running, World, wait_for, world};

/// The promise is one second; a busy machine gets more. Less than all is read anew after, also when nobody tells.
const GENEROUS: Duration = Duration::from_secs(4);

/// Waits until the status says so, and says how long that took.
fn soon(running: &Running, what: &str, condition: impl Fn(&Status) -> bool) -> Status {
    let begun = Instant::now();
    loop {
        let status = running.status();
        if condition(&status) {
            eprintln!("{what}: after {} ms", begun.elapsed().as_millis());
            return status;
        }
        assert!(begun.elapsed() < GENEROUS, "never came true: {what}\n{status:#?}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// Names of the LAN interfaces that are hooked.
fn hooked(status: &Status) -> Vec<&str> {
    status.interfaces.iter().filter(|i| i.attached.is_some()).map(|i| i.name.as_str()).collect()
}

fn said(status: &Status, part: &str) -> bool {
    status.decisions.iter().any(|said| said.line.contains(part))
}

fn lan(world: &World, names: &[&str]) -> Config {
    Config { lan: names.iter().map(|name| name.parse().expect("a name")).collect(), ..world.config() }
}

/// Puts lan0 below a bridge br0, which has its addresses from then on.
fn bridge(world: &World) {
    world.router.ip("link add br0 type bridge forward_delay 0");
    world.router.ip("link set br0 up");
    world.router.ip("addr flush dev lan0");
    // Those that the world made do not go with the addresses.
    world.router.ip("route flush dev lan0");
    world.router.ip("-6 route flush dev lan0");
    world.router.ip("link set lan0 master br0");
    world.router.ip("addr add 10.9.1.1/24 dev br0");
    world.router.ip("addr add fd09:1::1/64 dev br0 nodad");
}

fn is_lowered(running: &Running) {
    let before = running.status().control.rewritten;
    running.wait_for("it lowers windows", |s| s.control.rewritten > before + 50);
}

#[test]
fn an_interface_that_is_not_there_is_waited_for_and_hooked_when_it_comes() {
    let Some(world) = world("an_interface_that_is_not_there_is_waited_for_and_hooked_when_it_comes") else { return };
    let running = world.control(lan(&world, &["lan9", "lan0"])).expect("a controller");
    let status = running.status();
    assert_eq!(hooked(&status), ["lan0"]);
    assert_eq!((status.interfaces[0].name.as_str(), status.interfaces[0].state), ("lan9", Presence::Away));
    assert_eq!(status.waits, ["waiting for lan9: there is no such interface (like it: lan0)"]);
    world.router.ip("link add lan9 type veth peer name far9");
    let status = soon(&running, "lan9 is hooked", |s| hooked(s) == ["lan9", "lan0"]);
    assert!(status.waits.is_empty() && status.interfaces[0].reattached == 0, "{status:#?}");
    world.router.ip("link del lan9");
    soon(&running, "lan9 is let go", |s| hooked(s) == ["lan0"] && !s.waits.is_empty());
    world.router.ip("link add lan9 type veth peer name far9");
    soon(&running, "lan9 is hooked again", |s| hooked(s).len() == 2 && s.interfaces[0].reattached == 1);
}

#[test]
fn an_interface_is_followed_by_its_name() {
    let Some(world) = world("an_interface_is_followed_by_its_name") else { return };
    let running = world.control(world.config()).expect("a controller");
    world.router.ip("link set lan0 name lan7");
    soon(&running, "the renamed one is let go", |s| hooked(s).is_empty() && s.waits[0].contains("like it: lan7"));
    // Free for another controller, and the name free for another interface.
    let mut other = lan(&world, &["lan7"]);
    other.socket.set_extension("other");
    drop(world.control(other).expect("a controller of its own"));
    world.router.ip("link add lan0 type veth peer name far0");
    soon(&running, "another of this name is hooked", |s| hooked(s) == ["lan0"]);
    world.router.ip("link del lan0");
    world.router.ip("link set lan7 name lan0");
    soon(&running, "the first one is hooked again", |s| hooked(s) == ["lan0"]);
    let download = Download::start(&world, World::SERVER);
    is_lowered(&running);
    download.finish().expect("the connection lives");
}

#[test]
fn an_interface_that_moves_to_another_namespace_takes_no_hooks_along_and_gets_them_again_when_it_is_back() {
    let test = "an_interface_that_moves_to_another_namespace_takes_no_hooks_along_and_gets_them_again_when_it_is_back";
    for attach in [AttachMode::Auto, AttachMode::Clsact] {
        let Some(world) = world(test) else { return };
        let running = world.control(world.with(attach)).expect("a controller");
        let download = Download::start(&world, World::SERVER);
        is_lowered(&running);
        world.router.ip(&format!("link set lan0 netns {}", world.server.path()));
        soon(&running, "it is let go", |s| hooked(s).is_empty() && s.waits[0].contains("waiting for lan0"));
        assert_eq!(hooks_in(&world.server), (0, 0), "{attach:?}: there it is free for others");
        world.server.ip(&format!("link set lan0 netns {}", world.router.path()));
        world.set_up_lan();
        soon(&running, "it is hooked again", |s| hooked(s) == ["lan0"] && s.interfaces[0].reattached == 1);
        moves_on(&download);
        is_lowered(&running);
        download.finish().expect("the connection lives");
    }
}

#[test]
fn packets_that_grow_and_shrink_with_the_mtu_pass() {
    for queueing in [Queueing::Kernel, Queueing::Chap] {
        let Some(world) = world("packets_that_grow_and_shrink_with_the_mtu_pass") else { return };
        let set_mtu = |mtu: u32| {
            world.router.ip(&format!("link set lan0 mtu {mtu}"));
            world.station.ip(&format!("link set c0 mtu {mtu}"));
        };
        set_mtu(1_300);
        let config = Config { queueing, datapath: Datapath::User, ..world.config() };
        let running = world.control(config).expect("a controller");
        let small = Download::start(&world, World::SERVER);
        is_lowered(&running);
        set_mtu(1_500);
        let large = Download::start(&world, World::SERVER);
        wait_for("larger packets pass", || (large.received() > 500_000).then_some(()));
        moves_on(&small);
        set_mtu(1_300);
        [&small, &large].into_iter().for_each(moves_on);
        is_lowered(&running);
        for download in [small, large] {
            download.finish().expect("the connection lives");
        }
    }
}

#[test]
fn the_ports_of_a_bridge_are_hooked_and_a_download_through_it_is_controlled() {
    let Some(world) = world("the_ports_of_a_bridge_are_hooked_and_a_download_through_it_is_controlled") else { return };
    bridge(&world);
    let running = world.control(lan(&world, &["br0"])).expect("a controller");
    let status = running.status();
    assert_eq!(hooked(&status), ["lan0"]);
    assert_eq!(status.interfaces[0].bridge.as_deref(), Some("br0"));
    let download = Download::start(&world, World::SERVER);
    is_lowered(&running);
    // Another port joins and leaves beside it.
    world.router.ip("link add p1 type veth peer name far1");
    world.router.ip("link set p1 master br0");
    soon(&running, "the new port is hooked", |s| hooked(s) == ["lan0", "p1"]);
    world.router.ip("link set p1 name p2");
    soon(&running, "a port is followed when it is renamed", |s| hooked(s) == ["lan0", "p2"]);
    world.router.ip("link set p2 nomaster");
    let status = soon(&running, "it is let go", |s| hooked(s) == ["lan0"]);
    assert!(said(&status, "p1 is called p2 now") && said(&status, "p2: let go"), "{:#?}", status.decisions);
    assert_eq!(status.interfaces[0].reattached, 0, "the other port was left alone");
    is_lowered(&running);
    // And the one with the traffic.
    world.router.ip("link set lan0 nomaster");
    soon(&running, "it waits for ports", |s| hooked(s).is_empty() && s.waits[0].contains("bridge without ports"));
    world.router.ip("link set lan0 master br0");
    soon(&running, "it is hooked again", |s| hooked(s) == ["lan0"]);
    is_lowered(&running);
    soon(&running, "its counters go on", |s| s.interfaces[0].sent_bytes > 100_000);
    download.finish().expect("the connection lives");
}

#[test]
fn a_bridge_that_comes_later_is_hooked_by_its_ports() {
    let Some(world) = world("a_bridge_that_comes_later_is_hooked_by_its_ports") else { return };
    let running = world.control(lan(&world, &["br0"])).expect("a controller");
    assert_eq!(running.status().interfaces[0].state, Presence::Away);
    bridge(&world);
    soon(&running, "its port is hooked", |s| hooked(s) == ["lan0"]);
    world.router.ip("link del br0");
    soon(&running, "it waits for the bridge", |s| hooked(s).is_empty() && s.waits[0].contains("waiting for br0"));
}

#[test]
fn a_port_that_leads_to_the_provider_is_not_hooked_with_its_bridge() {
    let Some(world) = world("a_port_that_leads_to_the_provider_is_not_hooked_with_its_bridge") else { return };
    bridge(&world);
    world.router.ip("link add p1 type veth peer name far1");
    world.router.ip("link set p1 master br0");
    let nobody_says = Config { wan: None, ..lan(&world, &["br0"]) };
    let running = world.control(nobody_says).expect("a controller");
    assert_eq!(hooked(&running.status()), ["lan0", "p1"]);
    world.router.ip("route add default via 10.9.1.2");
    soon(&running, "one of the two leads there", |s| hooked(s).is_empty() && s.waits[0].contains("--wan PORT"));
    world.router.ip("route replace default via 10.9.2.2");
    soon(&running, "the provider is elsewhere", |s| hooked(s) == ["lan0", "p1"]);
    drop(running);
    world.router.ip("route replace default via 10.9.1.2");
    let config = Config { wan: Some("p1".parse().expect("a name")), ..lan(&world, &["br0"]) };
    assert_eq!(hooked(&world.control(config).expect("a controller").status()), ["lan0"]);
}

#[test]
fn what_cannot_be_right_is_refused_and_said_when_it_comes_about_later() {
    let Some(world) = world("what_cannot_be_right_is_refused_and_said_when_it_comes_about_later") else { return };
    let refused = |names: &[&str]| match world.control(lan(&world, names)).err() {
        Some(ControllerError::Config(ConfigError::Ports(refusal))) => refusal,
        other => panic!("{names:?}: {other:?}"),
    };
    assert!(matches!(refused(&["lo"]), Refusal::Loopback(_)));
    assert!(matches!(refused(&["wan0"]), Refusal::BothSides(_)));
    bridge(&world);
    assert!(matches!(refused(&["br0", "lan0"]), Refusal::BridgeAndPort { .. }));
    world.router.ip("link set lan0 nomaster");
    let running = world.control(lan(&world, &["br0", "lan0"])).expect("a controller");
    assert_eq!(hooked(&running.status()), ["lan0"]);
    world.router.ip("link set lan0 master br0");
    let status = soon(&running, "it is said", |s| said(s, "both are named: hooked once"));
    assert_eq!((hooked(&status), status.interfaces[0].reattached), (vec!["lan0"], 0));
}

#[test]
fn an_interface_beside_one_that_its_packets_pass_through_is_refused_at_the_start() {
    let test = "an_interface_beside_one_that_its_packets_pass_through_is_refused_at_the_start";
    let Some(world) = world(test) else { return };
    let kinds: [(&str, &[&str], &str, &str); 4] = [
        ("bond", &["add bond0 type bond", "set low down", "set low master bond0"], "bond0", "low"),
        ("team", &["add team0 type team", "set low down", "set low master team0"], "team0", "low"),
        ("VLAN", &["add link low name low.5 type vlan id 5"], "low.5", "low"),
        ("macvlan", &["add link low name mac0 type macvlan"], "mac0", "low"),
    ];
    for (kind, steps, upper, lower) in kinds {
        world.router.ip("link add low type veth peer name far");
        let made = steps.iter().all(|step| {
            let words = format!("link {step}");
            world.router.command("ip").args(words.split(' ')).output().expect("ip").status.success()
        });
        if made {
            match world.control(lan(&world, &[lower, upper])).err() {
                Some(ControllerError::Config(ConfigError::Ports(refusal))) => {
                    let (upper, lower) = (upper.parse().expect("a name"), lower.parse().expect("a name"));
                    assert_eq!(refusal, Refusal::Stacked { upper, lower }, "{kind}");
                }
                other => panic!("{kind}: {other:?}"),
            }
            world.router.ip(&format!("link del {upper}"));
        } else {
            eprintln!("SKIPPED: this kernel has no {kind}");
        }
        world.router.ip("link del low");
    }
}

#[test]
fn a_port_that_another_controller_has_is_left_to_it_and_tried_again() {
    let Some(world) = world("a_port_that_another_controller_has_is_left_to_it_and_tried_again") else { return };
    bridge(&world);
    let mut other = lan(&world, &["lan0"]);
    other.socket.set_extension("other");
    let first = world.control(other).expect("a controller");
    let running = world.control(lan(&world, &["br0"])).expect("a controller");
    let status = running.status();
    assert!(hooked(&status).is_empty() && status.waits[0].contains("already has a controller"), "{status:#?}");
    assert!(matches!(
        world.control(Config { socket: world.socket().with_extension("third"), ..lan(&world, &["lan0"]) }).err(),
        Some(ControllerError::Attach(AttachError::Taken { .. }))
    ));
    drop(first);
    soon(&running, "it is hooked", |s| hooked(s) == ["lan0"] && s.waits.is_empty());
}

#[test]
fn nothing_is_found_among_pairs_and_a_machine_that_forwards_nothing_says_so() {
    let test = "nothing_is_found_among_pairs_and_a_machine_that_forwards_nothing_says_so";
    let Some(world) = world(test) else { return };
    bridge(&world);
    world.router.ip("link add p1 type veth peer name far1");
    world.router.ip("link set p1 master br0");
    world.router.ip("link add out0 type veth peer name far2");
    world.router.ip("link set out0 up");
    world.router.ip("link set far2 up");
    world.router.ip("route add default dev out0");
    let config = Config { lan: Vec::new(), wan: None, ..world.config() };
    let running = world.control(config).expect("a controller that idles");
    let status = running.wait_for("some decisions", |s| s.controller.intervals > 5);
    assert!(status.interfaces.is_empty() && status.nothing_to_do, "{status:#?}");
    assert!(status.waits[0].contains("found no interface towards stations"), "{:?}", status.waits);
    world.router.write("net/ipv4/ip_forward", "0");
    world.router.write("net/ipv6/conf/all/forwarding", "0");
    world.router.ip("link del p1");
    soon(&running, "it forwards nothing", |s| s.waits.len() == 1 && s.waits[0].contains("forwards nothing"));
    world.router.write("net/ipv4/ip_forward", "1");
    soon(&running, "it forwards again", |s| s.waits[0].contains("found no interface"));
}

#[test]
fn a_queue_follows_its_interface_into_a_bridge_and_out_of_it() {
    let Some(world) = world("a_queue_follows_its_interface_into_a_bridge_and_out_of_it") else { return };
    world.router.ip("link add br0 type bridge forward_delay 0");
    world.router.ip("link set br0 up");
    let config = Config { queueing: Queueing::Chap, datapath: Datapath::User, ..lan(&world, &["br0"]) };
    let running = world.control(config).expect("a controller");
    assert!(running.status().queues.is_empty());
    bridge_again(&world);
    soon(&running, "the queue is there", |s| s.queues.len() == 1 && s.queues[0].interface == "lan0");
    let download = Download::start(&world, World::SERVER);
    running.wait_for("packets pass it", |s| s.queues[0].sent_packets > 500 && s.queues[0].lost == 0);
    let before = download.received();
    world.router.ip("link set lan0 nomaster");
    soon(&running, "the queue is gone", |s| s.queues.is_empty());
    world.router.ip("link set lan0 master br0");
    soon(&running, "the queue is there", |s| s.queues.len() == 1);
    running.wait_for("packets pass it again", |s| s.queues[0].sent_packets > 500);
    assert!(download.received() > before);
    download.finish().expect("the connection lives");
}

/// As [`bridge`], where the bridge is there already.
fn bridge_again(world: &World) {
    world.router.ip("addr flush dev lan0");
    // Those that the world made do not go with the addresses.
    world.router.ip("route flush dev lan0");
    world.router.ip("-6 route flush dev lan0");
    world.router.ip("link set lan0 master br0");
    world.router.ip("addr add 10.9.1.1/24 dev br0");
}

#[test]
fn interfaces_that_come_and_go_by_the_hundred_end_with_the_right_ones_hooked() {
    let Some(world) = world("interfaces_that_come_and_go_by_the_hundred_end_with_the_right_ones_hooked") else {
        return;
    };
    bridge(&world);
    let running = world.control(lan(&world, &["br0"])).expect("a controller");
    let mut batch = String::new();
    for n in 0..300 {
        batch += &format!("link add x{n} type veth peer name y{n}\nlink set x{n} master br0\n");
        if n % 10 != 0 {
            batch += &format!("link del x{n}\n");
        }
    }
    let file = world.socket().with_extension("batch");
    std::fs::write(&file, batch).expect("a file");
    world.router.ip(&format!("-batch {}", file.display()));
    let status = soon(&running, "those that stayed are hooked", |s| hooked(s).len() == 31);
    assert!(status.interfaces.iter().filter(|i| i.role == lasthop_status::Role::Lan).all(|i| i.attached.is_some()));
}

#[test]
fn stations_behind_ports_are_known_as_soon_as_they_send() {
    let Some(world) = world("stations_behind_ports_are_known_as_soon_as_they_send") else { return };
    bridge(&world);
    let mac = world.station.inside(|| {
        let socket = UdpSocket::bind("10.9.1.2:0").expect("a port");
        socket.send_to(b"here", "10.9.1.1:9").expect("sent");
        let text = std::process::Command::new("ip").args(["-br", "link", "show", "c0"]).output().expect("ip").stdout;
        String::from_utf8_lossy(&text).split_whitespace().nth(2).expect("an address").to_owned()
    });
    let known = world.router.inside(|| {
        let mut known = Vec::new();
        let mut route = lasthop_live::netlink::Socket::open(libc::NETLINK_ROUTE).expect("netlink");
        lasthop_live::fdb::learned(&mut route, |mac, ifindex| known.push((mac, ifindex))).expect("a table");
        let link = lasthop_live::interface::state(&mut route, &"lan0".parse().expect("a name")).expect("netlink");
        (known, link.expect("lan0").ifindex)
    });
    let text = |mac: [u8; 6]| mac.map(|byte| format!("{byte:02x}")).join(":");
    let (entries, ifindex) = known;
    assert!(entries.iter().any(|(m, port)| text(*m) == mac && *port == ifindex), "{mac} {entries:?}");
}

#[test]
fn two_ports_of_one_bridge_may_be_named_and_what_passes_between_them_is_no_traffic_around_the_hooks() {
    let test = "two_ports_of_one_bridge_may_be_named_and_what_passes_between_them_is_no_traffic_around_the_hooks";
    let Some(world) = world(test) else { return };
    bridge(&world);
    world.router.ip(&format!("link add p1 type veth peer name s1 netns {}", world.server.path()));
    world.router.ip("link set p1 master br0");
    world.router.ip("link set p1 up");
    world.server.ip("addr add 10.9.1.9/24 dev s1");
    world.server.ip("link set s1 up");
    let running = world.control(lan(&world, &["lan0", "p1"])).expect("a controller");
    let status = running.wait_for("it has settled", |s| s.running_s > 5.5);
    assert!(status.interfaces[..2].iter().all(|i| i.bridge.as_ref().is_some_and(|b| b.as_str() == "br0")));
    let download = Download::start(&world, "10.9.1.9");
    let status = running.wait_for("it carries enough to be judged", |s| s.interfaces[0].sent_bytes > 12_000_000);
    assert!(!status.bypass.bypasses_control, "{:?}", status.bypass);
    download.finish().expect("the connection lives");
}

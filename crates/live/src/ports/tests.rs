use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::stations::Wireless;

const fn air(radio: Radio, wiphy: u32) -> Wireless {
    Wireless { radio, wiphy }
}

/// An interface of a made-up machine.
fn link(ifindex: u32, name: &str, kind: &str) -> Link {
    Link {
        ifindex,
        name: name.parse().unwrap(),
        alternatives: Vec::new(),
        kind: kind.to_owned(),
        master: None,
        lower: None,
        is_loopback: name == "lo",
        is_switch_port: kind == "dsa",
    }
}

fn port(ifindex: u32, name: &str, kind: &str, master: u32) -> Link {
    Link { master: Some(master), ..link(ifindex, name, kind) }
}

/// That forwards, and whose default route leaves by `default_route`.
fn machine(links: Vec<Link>, default_route: Option<u32>, access_points: &[u32]) -> Machine {
    let radios = access_points.iter().map(|ifindex| (*ifindex, air(Radio::AccessPoint, *ifindex))).collect();
    Machine { links, default_routes: default_route.into_iter().collect(), radios, forwards: true }
}

fn names(list: &[&str]) -> Vec<InterfaceName> {
    list.iter().map(|name| name.parse().unwrap()).collect()
}

/// What is hooked, and what is said.
fn chosen(lan: &[&str], wan: Option<&str>, machine: &Machine) -> (Vec<String>, String) {
    let wan = wan.map(|wan| wan.parse().unwrap());
    let choice = choose(&names(lan), wan.as_ref(), machine);
    let hooked = choice.ports.iter().filter(|port| port.ifindex.is_some()).map(|port| port.name.to_string());
    (hooked.collect(), choice.remarks.join("\n"))
}

/// A router as one is sold: a switch, two radios, a bridge over both, and the provider at a port of the switch.
fn router() -> Machine {
    let dsa = |ifindex, name| Link { lower: Some(2), ..port(ifindex, name, "dsa", 8) };
    let links = vec![
        link(1, "lo", ""),
        link(2, "eth0", ""),
        Link { master: None, ..dsa(3, "wan") },
        dsa(4, "lan1"),
        dsa(5, "lan2"),
        port(6, "phy0-ap0", "", 8),
        port(7, "phy1-ap0", "", 8),
        link(8, "br-lan", "bridge"),
    ];
    machine(links, Some(3), &[6, 7])
}

#[test]
fn a_router_finds_its_radios_and_switch_ports_and_leaves_out_what_leads_to_the_provider() {
    let (hooked, said) = chosen(&[], None, &router());
    assert_eq!(hooked, ["lan1", "lan2", "phy0-ap0", "phy1-ap0"]);
    assert_eq!(said, "wan leads to the provider: not hooked");
}

#[test]
fn what_might_lead_to_the_provider_is_not_taken_before_the_provider_is_known() {
    let mut machine = router();
    machine.default_routes.clear();
    let (hooked, said) = chosen(&[], None, &machine);
    assert_eq!(hooked, ["phy0-ap0", "phy1-ap0"]);
    assert!(said.contains("lan1 is not hooked before there is a default route"), "{said}");
    assert_eq!(chosen(&[], Some("wan"), &machine).0.len(), 4, "somebody says where it is");
    // By PPP, which lies on a port that nobody tells.
    machine.links.push(link(9, "pppoe-wan", "ppp"));
    machine.default_routes = [9].into();
    assert_eq!(chosen(&[], None, &machine).0, ["lan1", "lan2", "phy0-ap0", "phy1-ap0"]);
}

#[test]
fn an_access_point_that_only_bridges_hooks_its_radios_alone_unless_it_is_told_the_way_to_the_provider() {
    let links = vec![link(2, "br0", "bridge"), port(3, "eth0", "", 2), port(4, "eth1", "", 2), port(5, "wlan0", "", 2)];
    for (forwards, default_route) in [(false, Some(2)), (false, None), (true, Some(2))] {
        let machine = Machine { forwards, ..machine(links.clone(), default_route, &[5]) };
        let (hooked, said) = chosen(&[], None, &machine);
        assert_eq!(hooked, ["wlan0"], "{said}");
        assert!(said.contains("--wan PORT"), "{said}");
        assert_eq!(chosen(&[], Some("eth0"), &machine).0, ["eth1", "wlan0"]);
    }
    // The same where somebody names the bridge.
    let machine = machine(links, Some(2), &[5]);
    assert_eq!(chosen(&["br0"], None, &machine).0, ["wlan0"]);
    assert_eq!(chosen(&["br0"], Some("eth0"), &machine).0, ["eth1", "wlan0"]);
}

#[test]
fn a_bridge_that_carries_the_provider_as_a_vlan_hides_it_too() {
    let mut machine = router();
    machine.links.push(Link { lower: Some(8), ..link(9, "br-lan.2", "vlan") });
    machine.default_routes = [9].into();
    assert_eq!(chosen(&[], None, &machine).0, ["phy0-ap0", "phy1-ap0"]);
}

#[test]
fn a_second_default_route_into_the_home_hides_nothing_from_who_names_the_way_to_the_provider() {
    let mut machine = router();
    machine.default_routes.insert(8);
    assert_eq!(chosen(&[], None, &machine).0, ["phy0-ap0", "phy1-ap0"]);
    assert_eq!(chosen(&[], Some("wan"), &machine).0.len(), 4);
    assert_eq!(chosen(&["br-lan"], Some("wan"), &machine).0.len(), 4);
    assert_eq!(chosen(&[], Some("br-lan"), &machine).0, ["phy0-ap0", "phy1-ap0"], "the bridge itself is no answer");
}

#[test]
fn containers_tunnels_and_pairs_are_never_found() {
    let links = vec![
        link(2, "eth0", ""),
        link(3, "docker0", "bridge"),
        port(4, "veth1a2b", "veth", 3),
        port(5, "veth3c4d", "veth", 3),
        link(6, "wg0", "wireguard"),
        link(7, "tun0", "tun"),
        port(8, "veth5e6f", "veth", 10),
        port(9, "wlan0", "", 10),
        link(10, "br0", "bridge"),
    ];
    assert_eq!(chosen(&[], None, &machine(links.clone(), Some(2), &[9])).0, ["wlan0"]);
    let (hooked, said) = chosen(&[], None, &machine(links, Some(2), &[]));
    assert!(hooked.is_empty() && said.contains("found no interface towards stations"), "{said}");
}

#[test]
fn a_client_of_another_access_point_is_said_and_not_hooked() {
    let mut machine = machine(vec![link(2, "wlan0", ""), link(3, "wlan1", "")], Some(2), &[]);
    machine.radios = BTreeMap::from([(2, air(Radio::Other, 0)), (3, air(Radio::Other, 0))]);
    let (hooked, said) = chosen(&[], None, &machine);
    assert!(hooked.is_empty());
    assert!(
        said.contains("wlan0 leads to the provider") && said.contains("wlan1 is Wi-Fi, and no access point"),
        "{said}"
    );
    // Until it becomes one.
    machine.radios.insert(3, air(Radio::AccessPoint, 0));
    assert_eq!(chosen(&[], None, &machine).0, ["wlan1"]);
}

#[test]
fn a_machine_that_forwards_nothing_says_so_and_hooks_nothing_by_itself() {
    let machine = Machine { forwards: false, ..machine(vec![link(2, "wlan0", "")], None, &[2]) };
    let (hooked, said) = chosen(&[], None, &machine);
    assert!(hooked.is_empty() && said.contains("forwards nothing"), "{said}");
    assert_eq!(chosen(&["wlan0"], None, &machine).0, ["wlan0"], "unless it is named");
}

#[test]
fn of_a_bridge_the_ports_are_hooked_whatever_they_are_but_not_the_way_to_the_provider() {
    let links = vec![
        link(2, "br0", "bridge"),
        port(3, "p1", "veth", 2),
        port(4, "p2", "veth", 2),
        port(5, "p3", "", 2),
        Link { lower: Some(5), ..link(6, "p3.7", "vlan") },
        link(7, "br1", "bridge"),
    ];
    let machine = machine(links, Some(6), &[]);
    let (hooked, said) = chosen(&["br0", "br1"], Some("p2"), &machine);
    assert_eq!(hooked, ["p1"]);
    for part in
        ["p2 leads to the provider", "p3 leads to the provider", "waiting for br1: it is a bridge without ports"]
    {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_name_that_nobody_has_is_waited_for_and_those_like_it_are_said() {
    let machine = machine(vec![link(1, "lo", ""), link(2, "wlan0", ""), link(3, "eth0", "")], None, &[]);
    let choice = choose(&names(&["wlan9", "eth0"]), None, &machine);
    let waiting =
        Port { ifindex: None, name: "wlan9".parse().unwrap(), bridge: None, medium: Medium::default(), is_named: true };
    assert_eq!(choice.ports[0], waiting);
    assert_eq!(choice.ports[1].ifindex, Some(3));
    assert_eq!(choice.remarks, ["waiting for wlan9: there is no such interface (like it: wlan0)"]);
}

#[test]
fn what_cannot_be_right_is_refused_at_the_start_and_made_the_best_of_later() {
    let links = vec![link(1, "lo", ""), link(2, "br0", "bridge"), port(3, "p1", "", 2), port(4, "p2", "", 2)];
    let machine = machine(links, None, &[]);
    let refused = |lan: &[&str], wan: Option<&str>| {
        let wan = wan.map(|wan| wan.parse().unwrap());
        check(&names(lan), wan.as_ref(), &machine).map_err(|refusal| refusal.to_string())
    };
    assert!(refused(&["lo"], None).unwrap_err().contains("loopback"));
    assert!(refused(&["p1"], Some("p1")).unwrap_err().contains("as LAN and as WAN"));
    assert!(refused(&["p1", "br0"], None).unwrap_err().starts_with("p1 is a port of br0"));
    assert_eq!(refused(&["br0", "wlan9"], Some("p2")), Ok(()));
    let (hooked, said) = chosen(&["br0", "p1"], None, &machine);
    assert_eq!(hooked, ["p2", "p1"], "each once");
    assert!(said.contains("both are named: hooked once"), "{said}");
    let two = choose(&names(&["p1", "p2"]), None, &machine);
    assert!(
        two.ports.iter().all(|port| port.bridge == Some("br0".parse().unwrap())),
        "whose they are is known all the same"
    );
}

#[test]
fn a_second_name_of_one_interface_hooks_it_once() {
    let links = vec![Link { alternatives: names(&["attic"]), ..link(2, "wlan0", "") }];
    let (hooked, said) = chosen(&["wlan0", "attic"], None, &machine(links, None, &[]));
    assert_eq!(hooked, ["wlan0"]);
    assert!(said.contains("attic is another name of wlan0"), "{said}");
}

#[test]
fn a_vlan_beside_what_it_lies_on_is_said_to_be_counted_twice() {
    let links = vec![link(2, "eth1", ""), Link { lower: Some(2), ..link(3, "eth1.5", "vlan") }];
    let (hooked, said) = chosen(&["eth1.5", "eth1"], None, &machine(links, None, &[]));
    assert_eq!(hooked, ["eth1.5", "eth1"]);
    assert!(said.contains("eth1.5 lies on eth1"), "{said}");
}

#[test]
fn an_interface_beside_one_that_its_packets_pass_through_is_refused_at_the_start() {
    let over = |ifindex, name, kind, lower| Link { lower: Some(lower), ..link(ifindex, name, kind) };
    let machine = machine(
        vec![
            link(2, "eth1", ""),
            over(3, "eth1.5", "vlan", 2),
            over(4, "mac0", "macvlan", 3),
            port(5, "p5", "", 7),
            port(6, "p6", "", 7),
            link(7, "bond0", "bond"),
            Link { lower: Some(7), ..port(8, "bond0.9", "vlan", 9) },
            link(9, "br9", "bridge"),
            port(10, "p10", "", 11),
            link(11, "team0", "team"),
        ],
        None,
        &[],
    );
    let refused = |lan: &[&str]| check(&names(lan), None, &machine).map_err(|refusal| refusal.to_string());
    for [upper, lower] in [
        ["eth1.5", "eth1"],
        ["mac0", "eth1.5"],
        ["mac0", "eth1"],
        ["bond0", "p5"],
        ["team0", "p10"],
        ["bond0.9", "p6"],
        ["br9", "bond0"],
        ["br9", "p5"],
    ] {
        let expected =
            format!("what passes {upper} passes {lower}, too, and would be counted twice; name one of the two");
        for lan in [[upper, lower], [lower, upper]] {
            assert_eq!(refused(&lan), Err(expected.clone()), "{lan:?}");
        }
    }
    assert!(refused(&["bond0.9", "br9"]).unwrap_err().starts_with("bond0.9 is a port of br9"));
    assert_eq!(refused(&["eth1", "bond0", "p10"]), Ok(()));
    assert_eq!(refused(&["p5", "p6"]), Ok(()), "two ports of one bond");
}

/// Machines that hang together in any way at all: numbers that nobody has, circles, names twice.
fn any_machine() -> impl Strategy<Value = Machine> {
    let number = 0u32..9;
    let kind = prop::sample::select(vec!["", "bridge", "veth", "vlan", "dsa", "ppp", "wireguard"]);
    let parts =
        (1u32..9, "(lo|br0|p[1-4]|wan)", kind, prop::option::of(number.clone()), prop::option::of(number.clone()));
    let links =
        parts.prop_map(|(ifindex, name, kind, master, lower)| Link { master, lower, ..link(ifindex, &name, kind) });
    let radio = prop::sample::select(vec![Radio::AccessPoint, Radio::Mesh, Radio::Other]);
    let radio = (radio, 0u32..3).prop_map(|(radio, wiphy)| air(radio, wiphy));
    let routes = prop::collection::btree_set(number.clone(), 0..3);
    (prop::collection::vec(links, 0..10), routes, prop::collection::btree_map(number, radio, 0..4), any::<bool>())
        .prop_map(|(links, default_routes, radios, forwards)| Machine { links, default_routes, radios, forwards })
}

proptest! {
    #[test]
    fn whatever_the_machine_is_no_interface_is_hooked_twice_nor_the_way_to_the_provider_by_itself(
        machine in any_machine(),
        lan in prop::collection::vec("(lo|br0|p[1-4]|wan|x)", 0..4),
        wan in prop::option::of("(br0|p[1-4]|wan)"),
    ) {
        let (mut lan, wan) = (names(&lan.iter().map(String::as_str).collect::<Vec<_>>()), wan.map(|w| w.parse().unwrap()));
        let mut seen = BTreeSet::new();
        lan.retain(|name| seen.insert(name.clone()));
        let _ = check(&lan, wan.as_ref(), &machine);
        let choice = choose(&lan, wan.as_ref(), &machine);
        let mut hooked = BTreeSet::new();
        for port in &choice.ports {
            prop_assert!(port.is_named || port.ifindex.is_some());
            let Some(ifindex) = port.ifindex else { continue };
            prop_assert!(hooked.insert(ifindex), "{port:?}");
            prop_assert!(!port.is_named || lan.contains(&port.name));
            prop_assert!(port.is_named || !machine.default_routes.contains(&ifindex), "{port:?}");
            let is_right = |link: &Link| !matches!(link.kind.as_str(), "veth" | "wireguard");
            let mut links = machine.links.iter().filter(|link| link.ifindex == ifindex);
            prop_assert!(!lan.is_empty() || machine.radios.contains_key(&ifindex) || links.any(is_right));
        }
        // Each name is hooked, waited for, or a bridge.
        for name in &lan {
            let is_bridge = machine.named(name).is_some_and(Link::is_bridge);
            prop_assert!(is_bridge || choice.ports.iter().any(|port| port.is_named && port.name == *name));
        }
    }
}

use proptest::prelude::*;

use super::*;
use crate::netlink::{put, put_nested};

fn link(fill: impl FnOnce(&mut Vec<u8>)) -> Link {
    let mut body = vec![0u8; IFINFOMSG];
    body[2..4].copy_from_slice(&libc::ARPHRD_ETHER.to_ne_bytes());
    body[4..8].copy_from_slice(&7u32.to_ne_bytes());
    put(&mut body, IFLA_IFNAME, b"lan1\0");
    fill(&mut body);
    Link::read(&body).unwrap()
}

fn of_kind(body: &mut Vec<u8>, kind: &str) {
    put_nested(body, IFLA_LINKINFO, |about| put(about, IFLA_INFO_KIND, kind.as_bytes()));
}

#[test]
fn an_interface_is_read_with_its_kind_its_bridge_and_what_it_lies_on() {
    let read = link(|body| {
        of_kind(body, "vlan");
        put(body, IFLA_MASTER, &3u32.to_ne_bytes());
        put(body, IFLA_LINK, &2u32.to_ne_bytes());
        put_nested(body, IFLA_PROP_LIST, |list| put(list, IFLA_ALT_IFNAME, b"attic\0"));
    });
    assert_eq!((read.ifindex, read.name.as_str(), read.kind.as_str()), (7, "lan1", "vlan"));
    assert_eq!((read.master, read.lower, read.is_switch_port), (Some(3), Some(2), false));
    assert!(read.is_called(&"attic".parse().unwrap()) && !read.is_called(&"lan2".parse().unwrap()));
}

#[test]
fn the_other_end_of_a_pair_is_not_what_it_lies_on() {
    let pair = link(|body| {
        of_kind(body, "veth");
        put(body, IFLA_LINK, &2u32.to_ne_bytes());
    });
    let elsewhere = link(|body| {
        of_kind(body, "macvlan");
        put(body, IFLA_LINK, &2u32.to_ne_bytes());
        put(body, IFLA_LINK_NETNSID, &0u32.to_ne_bytes());
    });
    assert_eq!((pair.lower, elsewhere.lower), (None, None));
}

#[test]
fn a_switch_port_is_known_by_its_kind_and_on_older_kernels_by_what_it_has() {
    assert!(link(|body| of_kind(body, "dsa")).is_switch_port);
    let older = |lies_on: bool| {
        link(|body| {
            put(body, IFLA_PHYS_SWITCH_ID, &[1]);
            put(body, IFLA_PHYS_PORT_NAME, b"p1\0");
            if lies_on {
                put(body, IFLA_LINK, &2u32.to_ne_bytes());
            }
        })
    };
    assert!(older(true).is_switch_port);
    assert!(!older(false).is_switch_port, "a virtual function of a network card");
}

#[test]
fn a_default_route_tells_all_interfaces_that_it_leaves_by() {
    let route = |length: u8, kind: u8| {
        let mut body = vec![libc::AF_INET as u8, length, 0, 0, 254, 0, 0, kind, 0, 0, 0, 0];
        put(&mut body, RTA_OIF, &4u32.to_ne_bytes());
        let hop = |ifindex: u32| [&[8, 0, 0, 0], ifindex.to_ne_bytes().as_slice()].concat();
        put(&mut body, RTA_MULTIPATH, &[hop(5), hop(6)].concat());
        let mut all = BTreeSet::new();
        leaves_by(&body, &mut all);
        all.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(route(0, RTN_UNICAST), [4, 5, 6]);
    assert_eq!(route(24, RTN_UNICAST), [0; 0]);
    assert_eq!(route(0, 7), [0; 0], "an unreachable one leads nowhere");
}

#[test]
fn forwarding_of_all_counts_and_of_single_interfaces_where_there_is_such_a_thing() {
    let told = |ifindex: i32, single| {
        let mut body = vec![0u8; NETCONFMSG];
        put(&mut body, NETCONFA_IFINDEX, &ifindex.to_ne_bytes());
        put(&mut body, NETCONFA_FORWARDING, &1i32.to_ne_bytes());
        is_forwarding(&body, single)
    };
    assert!(told(NETCONFA_IFINDEX_ALL, false) && told(3, true));
    assert!(!told(3, false) && !told(NETCONFA_IFINDEX_DEFAULT, true));
}

#[test]
fn this_machine_has_a_loopback() {
    let machine = Machine::read(&mut Socket::open(libc::NETLINK_ROUTE).unwrap(), None).unwrap();
    assert!(machine.links.iter().any(|link| link.is_loopback && link.ifindex == 1));
    assert_eq!(machine.named(&"lo".parse().unwrap()).map(|link| link.ifindex), Some(1));
}

proptest! {
    #[test]
    fn hostile_bytes_are_read_as_something_or_nothing(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = (Link::read(&bytes), is_forwarding(&bytes, true));
        leaves_by(&bytes, &mut BTreeSet::new());
    }
}

use super::*;
use crate::netlink::{put, put_nested};
use proptest::prelude::*;

fn message(kind: &str, parent: u32, options: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut body = vec![0u8; 4];
    for word in [7, 0x8001_0000, parent, 0] {
        body.extend(u32::to_ne_bytes(word));
    }
    put(&mut body, TCA_KIND, &[kind.as_bytes(), b"\0"].concat());
    put_nested(&mut body, TCA_OPTIONS, options);
    put_nested(&mut body, TCA_STATS2, |stats| {
        let queue: Vec<u8> = [3u32, 4_500, 0, 0, 0].into_iter().flat_map(u32::to_ne_bytes).collect();
        put(stats, TCA_STATS_QUEUE, &queue);
    });
    body
}

fn discipline(kind: &str, handle: u32, parent: u32, rate: Option<u64>) -> Discipline {
    let rate = rate.map(BitRate::mbps);
    Discipline { ifindex: 7, kind: kind.to_owned(), handle, parent, backlog: 0, rate, takes_all: true }
}

#[test]
fn a_cake_tells_its_bandwidth_and_what_waits() {
    let body = message("cake", TC_H_ROOT, |o| put(o, TCA_CAKE_BASE_RATE64, &2_250_000u64.to_ne_bytes()));
    let cake = Discipline::read(&body).unwrap();
    assert_eq!((cake.rate, cake.backlog, cake.is_root(), cake.ifindex), (Some(BitRate::mbps(18)), 4_500, true, 7));
    let unlimited = message("cake", TC_H_ROOT, |o| put(o, TCA_CAKE_BASE_RATE64, &0u64.to_ne_bytes()));
    assert_eq!(Discipline::read(&unlimited).unwrap().rate, None);
}

#[test]
fn a_token_bucket_tells_its_rate_short_or_long() {
    let ratespec: Vec<u8> = [0u32, 0, 2_500_000].into_iter().flat_map(u32::to_ne_bytes).collect();
    let short = message("tbf", TC_H_ROOT, |o| put(o, TCA_TBF_PARMS, &ratespec));
    assert_eq!(Discipline::read(&short).unwrap().rate, Some(BitRate::mbps(20)));
    let long = message("tbf", TC_H_ROOT, |o| {
        put(o, TCA_TBF_PARMS, &ratespec);
        put(o, TCA_TBF_RATE64, &10_000_000_000u64.to_ne_bytes());
    });
    assert_eq!(Discipline::read(&long).unwrap().rate, Some(BitRate::mbps(80_000)));
}

#[test]
fn an_htb_has_the_ceiling_of_its_root_class() {
    let options: Vec<u8> = [0u32, 0, 1_000_000, 0, 0, 2_500_000].into_iter().flat_map(u32::to_ne_bytes).collect();
    let root = message("htb", TC_H_ROOT, |o| put(o, TCA_HTB_PARMS, &options));
    assert_eq!(ceiling(&root), Some(BitRate::mbps(20)));
    let child = message("htb", 0x1_0001, |o| put(o, TCA_HTB_PARMS, &options));
    assert_eq!(ceiling(&child), None);
}

#[test]
fn an_htb_without_a_default_class_may_let_packets_out_at_once() {
    let takes_all = |class: u32| {
        let init: Vec<u8> = [3u32, 10, class, 0, 0].into_iter().flat_map(u32::to_ne_bytes).collect();
        Discipline::read(&message("htb", TC_H_ROOT, |o| put(o, TCA_HTB_INIT, &init))).unwrap().takes_all
    };
    assert_eq!([0, 1].map(takes_all), [false, true]);
    assert!(Discipline::read(&message("tbf", TC_H_ROOT, |_| ())).unwrap().takes_all);
}

#[test]
fn sqm_in_place_is_named_with_what_follows() {
    let cake =
        [discipline("cake", 0x1_0000, TC_H_ROOT, Some(18)), discipline("ingress", 0xffff_0000, TC_H_INGRESS, None)];
    let wan = found(Side::Wan, &cake).unwrap();
    assert_eq!((wan.what.as_str(), wan.shapes, wan.is_short), ("cake at 18 Mbit/s", true, true));
    assert!(wan.follows.contains("SQM"), "{}", wan.follows);
    let simple = [discipline("htb", 0x1_0000, TC_H_ROOT, Some(20)), discipline("fq_codel", 0x2_0000, 0x1_0001, None)];
    let lan = found(Side::Lan, &simple).unwrap();
    assert_eq!((lan.what.as_str(), lan.shapes, lan.is_short), ("htb at 20 Mbit/s with fq_codel", true, true));
    let bucket = found(Side::Lan, &[discipline("tbf", 0x1_0000, TC_H_ROOT, Some(20))]).unwrap();
    assert!(bucket.shapes && !bucket.is_short && bucket.follows.contains("windows keep its queue short"));
}

#[test]
fn a_fair_queue_that_does_not_shape_is_one_and_plain_queues_are_not_worth_a_word() {
    let under_mq = [discipline("mq", 0, TC_H_ROOT, None), discipline("fq_codel", 0, 1, None)];
    let fair = found(Side::Lan, &under_mq).unwrap();
    assert_eq!((fair.what.as_str(), fair.shapes, fair.is_short), ("fq_codel", false, true));
    // A cake without bandwidth does not shape.
    assert!(!found(Side::Wan, &[discipline("cake", 0x1_0000, TC_H_ROOT, None)]).unwrap().shapes);
    for plain in ["pfifo_fast", "noqueue", "pfifo", "chap", "chap2"] {
        assert_eq!(found(Side::Lan, &[discipline(plain, 0, TC_H_ROOT, None)]), None, "{plain}");
    }
}

#[test]
fn the_ingress_device_of_a_long_name_is_cut_as_scripts_cut_it() {
    assert_eq!(ifb_of(&"eth1".parse().unwrap()).unwrap().as_str(), "ifb4eth1");
    assert_eq!(ifb_of(&"enp0s31f6.vlan7".parse().unwrap()).unwrap().as_str(), "ifb4enp0s31f6.v");
}

#[test]
fn the_loopback_has_no_shaper() {
    let mut route = Socket::open(libc::NETLINK_ROUTE).unwrap();
    assert_eq!(found(Side::Lan, &of(&mut route, 1).unwrap()).filter(|found| found.shapes), None);
}

proptest! {
    #[test]
    fn hostile_bytes_are_no_discipline_or_one(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Discipline::read(&bytes);
        let _ = ceiling(&bytes);
    }
}

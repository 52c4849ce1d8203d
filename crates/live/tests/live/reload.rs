//! The configuration is read again while a download runs: nothing is lost, and decisions go on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use lasthop_core::units::{BitRate, Span};
use lasthop_live::config::{Capacity, Config};
use lasthop_live::controller::Reload;
use lasthop_live::{Controller, config::Queueing};
use lasthop_status::{Status, query};

use crate::survival::{hooks, moves_on};
use crate::traffic::Download;
use crate::world::{RATE, World, wait_for, world};

/// A controller that reads what is put there.
struct Reloading {
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicBool>,
    next: Arc<Mutex<Result<Config, String>>>,
    thread: Option<JoinHandle<()>>,
    socket: std::path::PathBuf,
}

impl Reloading {
    fn start(world: &World, config: Config) -> Self {
        let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (next, socket) = (Arc::new(Mutex::new(Ok(config.clone()))), config.socket.clone());
        let (ends, hears, reads) = (stop.clone(), asked.clone(), next.clone());
        let thread = world.router.spawn(move || {
            let mut controller = Controller::new(config).expect("a controller");
            let read = || reads.lock().expect("no panic").clone();
            controller.run_and_reload(&ends, &Reload { asked: &hears, read: &read });
        });
        let controller = Self { stop, asked, next, thread: Some(thread), socket };
        controller.wait_for("it is at work", |s| s.controller.intervals > 0);
        controller
    }

    fn wait_for(&self, what: &str, condition: impl Fn(&Status) -> bool) -> Status {
        wait_for(what, || query(&self.socket).ok().filter(&condition))
    }

    fn ask(&self, next: Result<Config, String>) {
        *self.next.lock().expect("no panic") = next;
        self.asked.store(true, Ordering::Relaxed);
    }

    /// What it is like once it has taken `next`.
    fn reload(&self, next: Config) -> Status {
        let before = self.wait_for("it answers", |_| true).configuration.reloads;
        self.ask(Ok(next));
        self.wait_for("it has taken it", |s| s.configuration.reloads > before && s.configuration.refused.is_none())
    }

    /// The same, where it is refused.
    fn reload_refused(&self, next: Result<Config, String>) -> Status {
        let before = self.wait_for("it answers", |_| true).configuration.refused;
        self.ask(next);
        self.wait_for("it has refused it", |s| s.configuration.refused.is_some() && s.configuration.refused != before)
    }
}

impl Drop for Reloading {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn has(status: &Status, part: &str) -> bool {
    status.decisions.iter().any(|said| said.line.contains(part))
}

#[test]
fn a_capacity_that_changes_is_in_force_and_connections_hooks_and_decisions_go_on() {
    let Some(world) = world("a_capacity_that_changes_is_in_force_and_connections_hooks_and_decisions_go_on") else {
        return;
    };
    let given = |rate: BitRate| Config {
        capacity: Capacity::Rate(rate),
        share: lasthop_core::ap::ShareRule::Equal,
        interval: Some(Span::from_millis(50)),
        ..world.config()
    };
    let controller = Reloading::start(&world, given(BitRate::mbps(2)));
    let download = Download::start(&world, World::SERVER);
    let before = controller.wait_for("it lowers windows", |s| s.control.rewritten > 100);
    let held = download.offered_window();
    let after = controller.reload(given(BitRate::mbps(1_000)));
    assert!(has(&after, "configuration: capacity: \"2Mbit/s\" -> \"1000Mbit/s\""), "{:?}", after.decisions);
    assert_eq!(after.capacity_bps, 1_000_000_000);
    wait_for("the window grows", || (download.offered_window() > 4 * held).then_some(()));
    for n in 1..=10 {
        controller.reload(given(BitRate::mbps(10 + n)));
    }
    let last = controller.wait_for("it decides", |s| s.controller.intervals > after.controller.intervals + 10);
    assert_eq!((last.pid, last.table.connections), (before.pid, before.table.connections));
    assert_eq!(last.interfaces[0].reattached, 0, "its hooks were never off");
    // Of eleven readings no more than one interval each.
    let missed = last.controller.missed - before.controller.missed;
    println!("missed {missed} of {} intervals", last.controller.intervals - before.controller.intervals);
    assert!(missed <= 11, "{:?}", last.controller);
    assert_eq!(last.packets["stale-heartbeat"], 0);
    moves_on(&download);
    drop(controller);
    download.finish().expect("the connection lives");
}

#[test]
fn what_was_learned_stays_when_the_law_or_the_rule_changes() {
    let Some(world) = world("what_was_learned_stays_when_the_law_or_the_rule_changes") else { return };
    let learns = Config { capacity: Capacity::Learn, ..world.config() };
    let controller = Reloading::start(&world, learns.clone());
    let download = Download::start(&world, World::SERVER);
    let learned = |s: &Status| s.directions.down.capacity_bps;
    let before = controller.wait_for("it has learned and holds", |s| learned(s).is_some() && s.control.rewritten > 300);
    let mut other = learns.clone();
    other.law.gain = 0.4;
    other.interval = Some(Span::from_millis(100));
    let after = controller.reload(other);
    assert!(has(&after, "configuration: law.gain: 0.5 -> 0.4"), "{:?}", after.decisions);
    assert!(after.controller.interval_ms >= 100.0 && learned(&after).is_some());
    let other = Config { capacity: Capacity::Rate(RATE.mul_f64(0.5)), ..learns.clone() };
    controller.reload(other);
    controller.wait_for("it holds to what is given", |s| !s.learns && s.control.rewritten > after.control.rewritten);
    let again = controller.reload(learns);
    let estimates = |s: &Status| s.decisions.iter().filter(|said| said.line.contains("seems to carry")).count();
    let known = controller.wait_for("it goes on from what it had", |s| s.learns && learned(s).is_some());
    assert!(known.controller.intervals - again.controller.intervals < 10 && estimates(&known) == estimates(&again));
    let (old, new) = (learned(&before).unwrap_or_default() as f64, RATE.as_bps() as f64);
    assert!((old / new - 1.0).abs() < 0.3, "{old} of {new}");
    controller.wait_for("and learns on", |s| learned(s).is_some_and(|bps| (bps as f64 / old - 1.0).abs() < 0.3));
    moves_on(&download);
    drop(controller);
    download.finish().expect("the connection lives");
}

#[test]
fn interfaces_are_let_go_and_hooked_by_other_names_and_what_cannot_be_changes_nothing() {
    let Some(world) = world("interfaces_are_let_go_and_hooked_by_other_names_and_what_cannot_be_changes_nothing")
    else {
        return;
    };
    let named = |names: &[&str]| Config {
        lan: names.iter().map(|name| name.parse().expect("a name")).collect(),
        wan: None,
        ..world.config()
    };
    let controller = Reloading::start(&world, named(&["lan0"]));
    let download = Download::start(&world, World::SERVER);
    controller.wait_for("it lowers windows", |s| s.control.rewritten > 100);
    world.router.ip("link add more0 type veth peer name more1");
    controller.reload(named(&["lan0", "more0"]));
    let both =
        controller.wait_for("both are hooked", |s| s.interfaces.iter().filter(|i| i.attached.is_some()).count() == 2);
    assert_eq!(both.interfaces[0].reattached, 0);
    let refused = controller.reload_refused(Ok(named(&["lan0", "lo"])));
    assert!(refused.configuration.refused.is_some_and(|why| why.contains("lo is the loopback interface")));
    let refused = controller
        .reload_refused(Err("lasthop.toml:7: capacty: there is no such key; did you mean `capacity`?".to_owned()));
    let why = refused.configuration.refused.clone().expect("why");
    assert!(why.starts_with("lasthop.toml:7: capacty") && has(&refused, &why), "{why}");
    let waits = Config { flows: 2_048, queueing: Queueing::Chap, ..named(&["lan0"]) };
    let after = controller.reload(waits);
    assert_eq!(after.configuration.waits_for_restart, ["flows", "queueing"]);
    assert_eq!(after.table.bound, 16_384);
    controller.wait_for("one is let go", |s| s.interfaces.len() == 1);
    assert_eq!(hooks(&world), (2, 0), "of lan0");
    moves_on(&download);
    drop(controller);
    download.finish().expect("the connection lives");
}

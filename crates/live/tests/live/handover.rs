//! One controller takes over from another while a download runs: an upgrade.

use std::sync::atomic::{AtomicBool, Ordering};

use lasthop_core::packet::Direction;
use lasthop_live::config::AttachMode;
use lasthop_live::handover::Heir;
use lasthop_status::{Status, query};

use crate::child::Process;
use crate::survival::{hooks, moves_on};
use crate::traffic::Download;
use crate::world::{RATE, World, wait_for, world};

const LEARNS: &str = "capacity = \"learn\"\n";

fn learned(status: &Status) -> Option<u64> {
    status.directions.down.capacity_bps
}

/// Whether something is always hooked while `work` goes on: programs and filters together never fall below two.
fn always_hooked<T>(world: &World, work: impl FnOnce() -> T) -> (T, bool) {
    let (ended, gap) = (AtomicBool::new(false), AtomicBool::new(false));
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                let (programs, filters) = hooks(world);
                gap.fetch_or(programs + filters < 2, Ordering::Relaxed);
            }
        });
        let result = work();
        ended.store(true, Ordering::Relaxed);
        result
    });
    (result, !gap.into_inner())
}

fn an_upgrade(test: &str, attach: AttachMode, expected: (usize, usize)) {
    let Some(world) = world(test) else { return };
    let mut before = Process::with(&world, attach, LEARNS);
    before.wait_for("it is at work", |s| s.controller.intervals > 0);
    let download = Download::start(&world, World::SERVER);
    let old = before.wait_for("it has learned and holds", |s| learned(s).is_some() && s.control.rewritten > 300);
    let (after, gapless) = always_hooked(&world, || {
        let after = Process::taking_over(&world, attach, LEARNS);
        assert!(before.ends(), "the one before ends, and is content");
        after.wait_for("the next one is at work", |s| s.controller.intervals > 0);
        after
    });
    assert!(gapless, "there was a moment without hooks");
    assert_eq!(hooks(&world), expected, "and none is left over");
    let new = after.wait_for("it holds, with what was learned", |s| learned(s).is_some() && s.control.rewritten > 0);
    let (old, new) = (learned(&old).unwrap() as f64, learned(&new).unwrap() as f64);
    assert!((new / old - 1.0).abs() < 0.3, "{old} then {new} of {RATE}");
    moves_on(&download);
    after.kill();
    download.finish().expect("the connection lives");
}

#[test]
fn an_upgrade_keeps_hooks_connections_and_what_was_learned() {
    an_upgrade("an_upgrade_keeps_hooks_connections_and_what_was_learned", AttachMode::Auto, (2, 0));
}

#[test]
fn an_upgrade_of_clsact_filters_replaces_them_where_they_are() {
    an_upgrade("an_upgrade_of_clsact_filters_replaces_them_where_they_are", AttachMode::Clsact, (0, 2));
}

#[test]
fn a_window_that_nobody_keeps_small_is_let_go_after_an_upgrade() {
    let Some(world) = world("a_window_that_nobody_keeps_small_is_let_go_after_an_upgrade") else { return };
    let mut before = Process::with(&world, AttachMode::Auto, "capacity = \"2Mbit/s\"\nshare = \"equal\"\n");
    before.wait_for("it is at work", |s| s.controller.intervals > 0);
    let download = Download::start(&world, World::SERVER);
    before.wait_for("it lowers windows", |s| s.control.rewritten > 100);
    let held = download.offered_window();
    // The next one has nothing against large windows: it only watches.
    let after = Process::taking_over(&world, AttachMode::Auto, "capacity = \"1000Mbit/s\"\nshare = \"equal\"\n");
    assert!(before.ends());
    wait_for("the window grows", || (download.offered_window() > 4 * held).then_some(()));
    after.kill();
    download.finish().expect("the connection lives");
}

#[test]
fn a_successor_that_dies_half_way_changes_nothing() {
    let Some(world) = world("a_successor_that_dies_half_way_changes_nothing") else { return };
    let before = Process::start(&world, AttachMode::Auto);
    before.wait_for("it is at work", |s| s.controller.intervals > 0);
    let download = Download::start(&world, World::SERVER);
    before.wait_for("it lowers windows", |s| s.control.rewritten > 100);
    let heir = Heir::find(&world.socket()).expect("it answers").expect("it is there");
    assert!(heir.offer.learned[Direction::ToStation.index()].is_none(), "a capacity that was given is not handed over");
    let mut inheritance = heir.go().expect("it hands over");
    wait_for("it has let the socket go", || query(&world.socket()).is_err().then_some(()));
    assert_eq!(hooks(&world), (2, 0), "its programs are at work meanwhile");
    assert!(inheritance.hook(u32::MAX).is_none());
    drop(inheritance);
    let status = before.wait_for("it goes on", |s| s.control.rewritten > 0);
    moves_on(&download);
    before.wait_for("it lowers windows again", |s| s.control.rewritten > status.control.rewritten + 10);
    assert!(status.decisions.iter().any(|said| said.line.contains("going on")), "{:?}", status.decisions);
    before.kill();
    download.finish().expect("the connection lives");
}

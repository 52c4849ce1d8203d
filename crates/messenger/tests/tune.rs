//! A device tuned against a server on this machine: whatever it measures here, what it says must hold together.

#[path = "server/house.rs"]
#[allow(dead_code)]
mod house;

use house::{House, settings};
use lasthop_messenger::tune::law::{Direction, Limit};
use lasthop_messenger::tune::{Report, Request, SHORTEST, TuneError, explain, tune};
use lasthop_messenger::tuning::Profile;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Settings that cost more than any noise.
fn slow() -> Profile {
    let mut profile = Profile::default();
    for set in
        ["fetch.receiver.packet=4KiB", "fetch.receiver.delay=20ms", "send.sender.packet=4KiB", "send.sender.delay=20ms"]
    {
        profile.set(set).unwrap();
    }
    profile
}

fn tuned(storage: &Path, present: Profile, stop: &Arc<AtomicBool>) -> (Result<Report, TuneError>, Vec<String>) {
    let store = tempfile::tempdir().unwrap();
    let house = House::open(store.path(), settings());
    let account = house.account("anna");
    let mut shown = Vec::new();
    let request = Request { account: &account, storage, present, limit: SHORTEST };
    let outcome = tune(&request, stop, &mut |what: &str, left: Duration| {
        assert!(left <= SHORTEST);
        if shown.last().is_none_or(|last| last != what) {
            shown.push(what.to_owned());
        }
    });
    (outcome, shown)
}

#[test]
fn delays_are_found_and_taken_away_in_both_directions_and_nothing_is_left_behind() {
    let storage = tempfile::tempdir().unwrap();
    let (outcome, shown) = tuned(storage.path(), slow(), &Arc::default());
    let report = outcome.unwrap();
    assert_eq!(report.fetch.before.limits.binds, Limit::ReceiverDelay);
    assert_eq!(report.send.before.limits.binds, Limit::SenderDelay);
    let profile = report.profile();
    assert!(profile.fetch.receiver.delay.duration().is_zero() && profile.send.sender.delay.duration().is_zero());
    for found in [&report.fetch, &report.send] {
        assert!(found.after.measured_s.unwrap() < found.before.measured_s.unwrap() / 2.0, "{found:?}");
    }
    assert_eq!(std::fs::read_dir(storage.path()).unwrap().count(), 0);
    assert!(
        shown.iter().any(|what| what == "storage") && shown.iter().any(|what| what.starts_with("send: ")),
        "{shown:?}"
    );
    let text = toml::to_string(&profile).unwrap();
    assert_eq!(text.parse::<Profile>().unwrap(), profile);
    for direction in [Direction::Fetch, Direction::Send] {
        let said = explain::words(direction, &report).delay;
        assert!(said.contains("20ms") && said.contains("1.64 Mbit/s"), "{said}");
    }
}

#[test]
fn a_signal_ends_it_at_once_and_nothing_is_left_behind() {
    let storage = tempfile::tempdir().unwrap();
    let stop = Arc::new(AtomicBool::new(true));
    let (outcome, _) = tuned(storage.path(), Profile::default(), &stop);
    assert!(matches!(outcome, Err(TuneError::Stopped | TuneError::Client(_))), "{outcome:?}");
    assert_eq!(std::fs::read_dir(storage.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error() {
    let storage = tempfile::tempdir().unwrap();
    let gone = storage.path().join("gone");
    let (outcome, _) = tuned(&gone, Profile::default(), &Arc::default());
    let said = outcome.as_ref().err().and_then(std::error::Error::source).map(ToString::to_string);
    assert!(matches!(outcome, Err(TuneError::Storage(_))), "{outcome:?}");
    assert_eq!(said.as_deref(), Some("cannot write and read there"));
}

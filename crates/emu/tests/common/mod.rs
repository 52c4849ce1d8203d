//! What the tests of the emulator share: whether this machine can run them, and repetition of runs that are not valid.

use lasthop_emu::{Error, Options, Outcome, run};
use lasthop_home::scenario::Scenario;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Two homes at a time would make each other late.
static TURN: Mutex<()> = Mutex::new(());

/// Holds the machine for one test; `None`, said loudly, when it cannot run homes.
pub fn turn(test: &str) -> Option<MutexGuard<'static, ()>> {
    let root = rustix::process::geteuid().is_root();
    let tun = std::path::Path::new("/dev/net/tun").exists();
    if root && tun {
        return Some(TURN.lock().unwrap_or_else(PoisonError::into_inner));
    }
    eprintln!("SKIPPED: {test}: needs root ({root}) and /dev/net/tun ({tun})");
    None
}

/// Programs of `exec` have no rights of root's, and write there all the same.
#[allow(dead_code, reason = "not every test file has programs that write")]
pub fn open_to_all(folder: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).expect("it is ours");
}

/// Reads a scenario that the test wrote.
pub fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "test.toml", &[]).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs until a run is valid, three times at most; `None`, said loudly, when none was.
#[allow(dead_code, reason = "not every test file repeats")]
pub fn valid_run(test: &str, scenario: &Scenario) -> Option<Outcome> {
    for _ in 0..3 {
        let outcome = run(scenario, Options::default()).unwrap_or_else(|e| panic!("{}", with_cause(&e)));
        if outcome.report.run.valid {
            return Some(outcome);
        }
        eprintln!("{test}: {:?}", outcome.notes);
    }
    eprintln!("SKIPPED: {test}: three runs in a row were not valid, this machine is too busy");
    None
}

/// An error with everything below it.
#[allow(dead_code, reason = "not every test file shows errors")]
pub fn with_cause(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

//! SIGINT and SIGTERM become a flag that the running work looks at, so that it ends in order.
//!
//! A second signal of the same kind ends the process at once; the kernel then removes namespaces, TAPs and BPF links,
//! since all of them are held by descriptors.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::exit::{Failure, Outcome};

/// What the first signal sets.
#[derive(Clone, Debug)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Stop {
    /// Catches SIGINT and SIGTERM from here on.
    pub fn on_signals() -> Outcome<Self> {
        let stop = Self { flag: Arc::default(), signal: Arc::default() };
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop.flag))
                .and_then(|_| signal_hook::flag::register_usize(signal, Arc::clone(&stop.signal), signal as usize))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop.flag)))
                .map_err(|error| format!("cannot catch signals: {error}"))?;
        }
        Ok(stop)
    }

    /// A flag that SIGHUP sets from here on, for programs that read their configuration again. Where a terminal is at stdin the signal means
    /// that it is gone, and ends the program as ever.
    pub fn on_hangup() -> Outcome<Arc<AtomicBool>> {
        let flag = Arc::<AtomicBool>::default();
        if !std::io::stdin().is_terminal() {
            signal_hook::flag::register(SIGHUP, Arc::clone(&flag))
                .map_err(|error| format!("cannot catch signals: {error}"))?;
        }
        Ok(flag)
    }

    /// One that no signal sets, for tests.
    #[must_use]
    pub fn never() -> Self {
        Self { flag: Arc::default(), signal: Arc::default() }
    }

    /// The flag itself, for work that takes one.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// Whether a signal has come.
    pub fn has_come(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// The signal that has come, which is then forgotten: it ended a step, and the work goes on.
    pub fn take(&self) -> Option<i32> {
        self.flag.store(false, Ordering::Relaxed);
        match self.signal.swap(0, Ordering::Relaxed) {
            0 => None,
            signal => Some(signal as i32),
        }
    }

    /// An error if a signal has come.
    pub fn check(&self) -> Outcome {
        match self.signal.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(Failure::Signal(signal as i32)),
        }
    }
}

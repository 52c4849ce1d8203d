//! Runs on all cores: whoever is free takes the next, and results come out in the order of the runs.
//!
//! A counter hands out the work; there is no queue to wait for. A worker that is far ahead of the slowest run waits, so
//! that no more than [`AHEAD`] results are held. A panic of one run is its result.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Most results that wait for a slower run before them.
const AHEAD: usize = 4096;
/// How often the caller gets to say how it goes when no result comes.
const TICK: Duration = Duration::from_millis(100);

/// What a run came to: a result, or the message of its panic.
pub type Outcome<T> = Result<T, String>;

/// What the caller is told.
pub enum DecisionStatus<T> {
    /// The next results in order, from this run on.
    Results(usize, Vec<Outcome<T>>),
    /// Nothing for a while; this many are done.
    Nothing,
}

/// Calls `work` for 0 .. `count` on `threads` threads, and `tell` on this one, until all is done or `quit` is set. What
/// was done then is told all the same, a run that is missing left out.
pub fn run<T: Send>(
    count: usize,
    threads: usize,
    quit: &AtomicBool,
    work: impl Fn(usize) -> T + Sync,
    mut tell: impl FnMut(DecisionStatus<T>),
) {
    let (next, gate) = (AtomicUsize::new(0), Gate::default());
    let (sender, receiver) = mpsc::channel();
    let mut waiting = BTreeMap::new();
    let mut told = 0;
    std::thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            let sender = sender.clone();
            let (next, gate, work) = (&next, &gate, &work);
            scope.spawn(move || {
                loop {
                    let run = next.fetch_add(1, Ordering::Relaxed);
                    if run >= count || !gate.wait(run, quit) {
                        return;
                    }
                    let outcome = catch_unwind(AssertUnwindSafe(|| work(run))).map_err(message);
                    if sender.send((run, outcome)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(TICK) {
                Ok((run, outcome)) => drop(waiting.insert(run, outcome)),
                Err(RecvTimeoutError::Timeout) => tell(DecisionStatus::Nothing),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            waiting.extend(receiver.try_iter());
            let mut ready = Vec::new();
            while let Some(outcome) = waiting.remove(&(told + ready.len())) {
                ready.push(outcome);
            }
            if !ready.is_empty() {
                let from = told;
                told += ready.len();
                gate.open(told);
                tell(DecisionStatus::Results(from, ready));
            }
        }
    });
    // Behind a run that never came.
    for (run, outcome) in waiting {
        tell(DecisionStatus::Results(run, vec![outcome]));
    }
}

/// Keeps the fast from running away from the slow.
#[derive(Default)]
struct Gate {
    told: Mutex<usize>,
    opened: Condvar,
}

impl Gate {
    /// Waits until `run` may start; false when it need not any more.
    fn wait(&self, run: usize, quit: &AtomicBool) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        while !quit.load(Ordering::Relaxed) {
            if run < told.saturating_add(AHEAD) {
                return true;
            }
            told = self.opened.wait_timeout(told, TICK).unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }

    fn open(&self, told: usize) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = told;
        self.opened.notify_all();
    }
}

fn message(panic: Box<dyn Any + Send>) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "for an unknown reason".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(
        count: usize,
        threads: usize,
        quit: &AtomicBool,
        work: impl Fn(usize) -> usize + Sync,
    ) -> Vec<Outcome<usize>> {
        let mut list = Vec::new();
        run(count, threads, quit, work, |said| {
            if let DecisionStatus::Results(_, results) = said {
                list.extend(results);
            }
        });
        list
    }

    #[test]
    fn results_come_in_order_whoever_is_fast() {
        let begun = AtomicUsize::new(0);
        let overtaken = |run: usize| {
            begun.fetch_max(run, Ordering::Relaxed);
            while run.is_multiple_of(7) && run < 199 && begun.load(Ordering::Relaxed) == run {
                std::thread::yield_now();
            }
            run
        };
        let results = all(200, 4, &AtomicBool::new(false), overtaken);
        assert_eq!(results, (0..200).map(Ok).collect::<Vec<_>>());
        assert!(all(0, 4, &AtomicBool::new(false), |run| run).is_empty());
    }

    #[test]
    fn a_panic_is_the_result_of_its_run_alone() {
        let results = all(5, 2, &AtomicBool::new(false), |run| if run == 2 { panic!("no {run}") } else { run });
        assert_eq!(results, [Ok(0), Ok(1), Err("no 2".to_owned()), Ok(3), Ok(4)]);
    }

    #[test]
    fn after_quit_nothing_new_begins_and_what_is_done_is_told() {
        let quit = AtomicBool::new(false);
        let results = all(100_000, 2, &quit, |run| {
            quit.store(run >= 10, Ordering::Relaxed);
            run
        });
        assert!((10..20).contains(&results.len()), "{}", results.len());
    }

    #[test]
    fn nobody_runs_far_ahead_of_the_slowest() {
        let (furthest, slow_is_done) = (AtomicUsize::new(0), AtomicBool::new(false));
        let results = all(3 * AHEAD, 2, &AtomicBool::new(false), |run| {
            furthest.fetch_max(run, Ordering::Relaxed);
            while run == 0 && furthest.load(Ordering::Relaxed) < AHEAD - 1 {
                std::thread::yield_now();
            }
            let slow = run == 0 || slow_is_done.load(Ordering::Relaxed);
            assert!(slow || run < AHEAD, "run {run} began before the first ended");
            slow_is_done.fetch_or(run == 0, Ordering::Relaxed);
            run
        });
        assert!(results.iter().all(Result::is_ok));
    }
}

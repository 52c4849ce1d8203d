//! What was decided, each in one line with its cause: for the log, and the newest for the status.

use std::collections::VecDeque;

use lasthop_core::ap::Value;
use lasthop_core::units::Time;

use crate::log::{self, Entry, Level, log};
use lasthop_status::DecisionStatus;

/// So many are kept for the status; the log has them all.
const KEPT: usize = 64;

pub(super) struct Journal {
    started: Time,
    newest: VecDeque<DecisionStatus>,
    count: u64,
}

impl Journal {
    pub(super) const fn new(started: Time) -> Self {
        Self { started, newest: VecDeque::new(), count: 0 }
    }

    /// What a person should know of the machine.
    pub(super) fn say(&mut self, now: Time, line: String) {
        log(&line);
        self.keep(now, line);
    }

    /// What somebody has to mend.
    pub(super) fn warn(&mut self, now: Time, line: String) {
        log::say(&Entry::plain(Level::Warning, &line));
        self.keep(now, line);
    }

    /// A decision in this sentence, and what programs are told of it.
    pub(super) fn decided(&mut self, now: Time, line: String, name: &'static str, values: &[(&'static str, Value)]) {
        log::say(&Entry { level: Level::Info, message: &line, decision: Some(name), values });
        self.keep(now, line);
    }

    fn keep(&mut self, now: Time, line: String) {
        if self.newest.len() == KEPT {
            self.newest.pop_front();
        }
        self.newest.push_back(DecisionStatus { at_s: now.since(self.started).as_secs_f64(), line });
        self.count += 1;
    }

    /// Number of decisions that were logged.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// The newest ones, the oldest of them first.
    pub(super) fn newest(&self) -> Vec<DecisionStatus> {
        self.newest.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_core::units::Span;

    #[test]
    fn the_newest_lines_are_kept_with_their_time_and_all_are_counted() {
        let mut journal = Journal::new(Time::from_nanos(1_000));
        for n in 0..100u64 {
            journal.say(Time::from_nanos(1_000) + Span::from_secs(n), format!("decision {n}"));
        }
        let newest = journal.newest();
        assert_eq!((journal.count(), newest.len()), (100, KEPT));
        assert_eq!(newest[0], DecisionStatus { at_s: 36.0, line: "decision 36".to_owned() });
        assert_eq!(newest[KEPT - 1].line, "decision 99");
    }
}

//! A measurement as it goes: asks for the status once a second, pauses control for the blocks without it, and keeps what it saw.
//!
//! It uses what the command socket gives and nothing else. What is paused (windows, window updates, UDP, levers) goes on by itself
//! [`MARGIN_S`] after its block, so that a measurement that is killed leaves nothing behind. What else could spoil a block is seen in
//! the status and said: a controller that was started anew, one that does not answer, somebody else who pauses or resumes.
//!
//! The shape is that of everything that keeps state: `on_*`, then [`Session::poll`] until it is `None`, then
//! [`Session::next_deadline`].

mod recorder;

use std::collections::VecDeque;

use lasthop_core::units::{Span, Time};
use lasthop_status::Status;
use lasthop_status::command::{Request, What};

use crate::block::{Arm, Block, Spoilt};
use crate::load;
use crate::plan::Plan;
use crate::report::{Ended, Report};
use recorder::{Reading, Recorder};

/// A pause lasts so much longer than its block, s.
pub const MARGIN_S: u32 = 5;
/// A controller that does not answer for longer than this is silent.
const SILENCE: Span = Span::from_secs(3);
/// The status is asked for so often.
const EVERY: Span = Span::from_secs(1);
/// After so many blocks without any answer there is no controller any more.
const MOST_SILENT_BLOCKS: usize = 4;

/// What a measurement is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// What is done, in which order.
    pub plan: Plan,
    /// Names and addresses of devices go into the report.
    pub names: bool,
    /// When it begins, s since 1970, for the report.
    pub started_unix_s: u64,
}

/// What a host is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Ask for the status: [`Session::on_status`], or [`Session::on_no_status`].
    Ask,
    /// Ask the command socket: [`Session::on_refused`] where it is not done.
    Tell(Request),
}

/// Why nothing is measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It controls nothing.
    #[error("the controller runs with --dry-run and controls nothing; start it without")]
    DryRun,
    /// It lowers no windows.
    #[error("the controller lowers no windows (windows = false in its configuration); there is nothing to compare")]
    NoWindows,
    /// Somebody has paused it.
    #[error("{0} is paused already; `lasthop resume` it, or wait until it goes on, and measure then")]
    Paused(&'static str),
    /// It takes no commands from us.
    #[error("{0}")]
    NotAllowed(String),
    /// It does not answer.
    #[error("{0}")]
    Silent(String),
}

/// Where a measurement stands. It tells neither which half is on nor how long packets wait: who sees that behaves otherwise, or stops
/// when he likes it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Blocks that are over.
    pub blocks: usize,
    /// Of so many.
    pub of: usize,
    /// The block that runs is past what is discarded of it: what happens now counts.
    pub is_counting: bool,
    /// Time since the first block began, s.
    pub elapsed_s: f64,
    /// Time that is left, s.
    pub left_s: f64,
    /// Rate in the last second, bit/s.
    pub rate_bps: u64,
    /// Whether the last second was loaded, by what is known now.
    pub is_loaded: bool,
    /// Pairs that count, by what is known now.
    pub counted_pairs: usize,
    /// Pairs that are over.
    pub pairs: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum Phase {
    /// The first status has not come.
    Beginning,
    /// Whether the controller obeys is being tried.
    Trying,
    Measuring,
    Over,
    Refused(Refusal),
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Session {
    params: Params,
    phase: Phase,
    actions: VecDeque<Action>,
    /// When the status is to be asked for next.
    next: Option<Time>,
    began: Time,
    block_began: Time,
    block: Block,
    /// Where what counts of the block began.
    counting: Option<Reading>,
    last: Option<Reading>,
    /// Rate of the last second, bit/s.
    rate_bps: u64,
    answers_in_block: usize,
    silent_blocks: usize,
    /// Of ours may be paused.
    paused: &'static [What],
    done: Vec<Block>,
    recorder: Recorder,
    ended: Ended,
    counted_pairs: usize,
}

impl Session {
    /// A measurement that begins with the first status.
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            phase: Phase::Beginning,
            actions: VecDeque::from([Action::Ask]),
            next: None,
            began: Time::ZERO,
            block_began: Time::ZERO,
            block: Block::new(params.plan.arm(0), 0.0),
            counting: None,
            last: None,
            rate_bps: 0,
            answers_in_block: 0,
            silent_blocks: 0,
            paused: &[],
            done: Vec::new(),
            recorder: Recorder::new(params.names),
            ended: Ended::Complete,
            counted_pairs: 0,
        }
    }

    /// What is to be done now, until there is nothing.
    pub fn poll(&mut self, now: Time) -> Option<Action> {
        if self.phase == Phase::Trying && self.actions.is_empty() {
            // The trial was not refused.
            self.phase = Phase::Measuring;
            self.began = now;
            self.begin_block(now);
        }
        if self.next.is_some_and(|at| now >= at) {
            self.next = None;
            self.actions.push_back(Action::Ask);
        }
        self.actions.pop_front()
    }

    /// When [`Session::poll`] has something next; `None` when all is over, or an answer is waited for.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        if self.actions.is_empty() { self.next } else { Some(Time::ZERO) }
    }

    /// A status that was asked for.
    pub fn on_status(&mut self, now: Time, status: &Status) {
        let reading = Reading::of(now, status, self.params.plan.direction);
        match self.phase {
            Phase::Beginning => match refusal(status) {
                Some(refusal) => self.phase = Phase::Refused(refusal),
                None => {
                    // Nothing is paused, so this changes nothing: it says whether we may.
                    self.actions.push_back(Action::Tell(Request::Resume { what: What::Updates, device: None }));
                    self.phase = Phase::Trying;
                }
            },
            Phase::Measuring => {
                self.answers_in_block += 1;
                self.recorder.on_status(status, self.params.plan.direction);
                self.take(now, &reading, status);
            }
            Phase::Trying | Phase::Over | Phase::Refused(_) => return,
        }
        self.last = Some(reading);
        self.go_on(now);
    }

    /// The status that was asked for did not come.
    pub fn on_no_status(&mut self, now: Time, why: &str) {
        match self.phase {
            Phase::Beginning => self.phase = Phase::Refused(Refusal::Silent(why.to_owned())),
            Phase::Measuring => self.go_on(now),
            Phase::Trying | Phase::Over | Phase::Refused(_) => {}
        }
    }

    /// What was told was not done.
    pub fn on_refused(&mut self, why: &str) {
        match self.phase {
            Phase::Trying => {
                self.actions.clear();
                self.phase = Phase::Refused(Refusal::NotAllowed(why.to_owned()));
            }
            Phase::Measuring => self.spoil(Spoilt::Refused),
            Phase::Beginning | Phase::Over | Phase::Refused(_) => {}
        }
    }

    /// Ends it early: control goes on, and the block that runs does not count.
    pub fn stop(&mut self) {
        if matches!(self.phase, Phase::Over | Phase::Refused(_)) {
            return;
        }
        if self.phase == Phase::Measuring {
            self.spoil(Spoilt::Unfinished);
            self.done.push(self.block.clone());
        }
        self.ended = Ended::Stopped;
        self.end();
    }

    /// Whether nothing is left to be done.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over | Phase::Refused(_)) && self.actions.is_empty()
    }

    /// Why nothing was measured, if that is so.
    #[must_use]
    pub const fn refusal(&self) -> Option<&Refusal> {
        match &self.phase {
            Phase::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Where it stands.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> Progress {
        let plan = &self.params.plan;
        if self.phase != Phase::Measuring {
            return Progress { of: plan.blocks(), left_s: plan.length().as_secs_f64(), ..Progress::default() };
        }
        let in_block = now.since(self.block_began).as_secs_f64().min(f64::from(plan.block_s));
        let blocks = self.done.len();
        let left = (plan.blocks() - blocks) as f64 * f64::from(plan.block_s) - in_block;
        Progress {
            blocks,
            of: plan.blocks(),
            is_counting: in_block >= f64::from(plan.discard_s),
            elapsed_s: now.since(self.began).as_secs_f64(),
            left_s: left.max(0.0),
            rate_bps: self.rate_bps,
            is_loaded: self.bound().is_some_and(|bound| self.rate_bps as f64 >= bound),
            counted_pairs: self.counted_pairs,
            pairs: blocks / 2,
        }
    }

    /// What was measured.
    #[must_use]
    pub fn report(&self) -> Report {
        let Params { plan, started_unix_s, .. } = self.params;
        self.recorder.report(plan, started_unix_s, self.ended, self.done.clone())
    }

    fn bound(&self) -> Option<f64> {
        let blocks = self.done.iter().chain([&self.block]);
        load::bound(blocks, self.params.plan.discard_s, self.recorder.capacity())
    }

    /// One second of a block.
    fn take(&mut self, now: Time, reading: &Reading, status: &Status) {
        let Plan { discard_s, .. } = self.params.plan;
        let counts = now >= self.block_began + Span::from_secs(u64::from(discard_s));
        if let Some(last) = self.last.take() {
            if reading.is_of_another(&last) {
                self.spoil(Spoilt::Restarted);
            } else if let Some(second) = reading.since(&last) {
                self.block.at_s.push(milli(now.since(self.block_began).as_secs_f64()));
                self.block.rate_bps.push(second.rate_bps);
                self.rate_bps = second.rate_bps;
                self.block.wait_ms.push(second.wait_ms.map(milli));
            }
            if counts && self.counting.is_some() && now.since(last.at) > SILENCE {
                self.spoil(Spoilt::Silent);
            }
        }
        if !counts {
            return;
        }
        if [What::Windows, What::Udp, What::Levers]
            .iter()
            .any(|what| is_paused(status, *what) != (self.block.arm == Arm::Off))
        {
            self.spoil(Spoilt::Interfered);
        }
        match &self.counting {
            None => {
                if now.since(self.block_began + Span::from_secs(u64::from(discard_s))) > SILENCE {
                    self.spoil(Spoilt::Silent);
                }
                self.counting = Some(reading.clone());
            }
            Some(from) if !reading.is_of_another(from) => {
                self.block.waiting = reading.waiting.since(&from.waiting);
                self.block.counted_s = milli(now.since(from.at).as_secs_f64());
                self.block.bytes = reading.carried_bytes.saturating_sub(from.carried_bytes);
            }
            Some(_) => {}
        }
    }

    /// The next second, or the next block.
    fn go_on(&mut self, now: Time) {
        if self.phase != Phase::Measuring {
            return;
        }
        let plan = self.params.plan;
        let end = self.block_began + Span::from_secs(u64::from(plan.block_s));
        if now < end {
            let whole = now.since(self.block_began).as_nanos() / EVERY.as_nanos() + 1;
            self.next = Some((self.block_began + EVERY * whole).min(end));
            return;
        }
        let is_whole = self.last.as_ref().is_some_and(|last| last.at >= end) && self.counting.is_some();
        if !is_whole {
            self.spoil(Spoilt::Silent);
        }
        self.silent_blocks = if self.answers_in_block == 0 { self.silent_blocks + 1 } else { 0 };
        self.done.push(self.block.clone());
        if self.done.len().is_multiple_of(2) {
            self.counted_pairs = crate::findings::counted(&self.done, plan.discard_s, self.bound()).len();
        }
        if self.silent_blocks >= MOST_SILENT_BLOCKS {
            self.ended = Ended::Silent;
            self.end();
        } else if self.done.len() == plan.blocks() {
            self.end();
        } else {
            self.begin_block(now);
        }
    }

    fn begin_block(&mut self, now: Time) {
        let plan = self.params.plan;
        let arm = plan.arm(self.done.len());
        self.block = Block::new(arm, milli(now.since(self.began).as_secs_f64()));
        (self.block_began, self.counting, self.answers_in_block) = (now, None, 0);
        let for_s = Some(f64::from(plan.block_s + MARGIN_S));
        let pause = |what| Action::Tell(Request::Pause { what, device: None, for_s });
        match arm {
            Arm::Off => {
                self.actions.extend(What::CONTROL.map(pause));
                self.paused = &What::ALL;
            }
            Arm::On => {
                if self.paused == What::ALL {
                    self.resume(&What::CONTROL);
                }
                self.paused = &[What::Trials];
            }
        }
        // A block is of one setting: nothing is tried in either half.
        self.actions.push_back(pause(What::Trials));
        self.next = Some(now + EVERY);
    }

    fn end(&mut self) {
        let paused = std::mem::take(&mut self.paused);
        self.resume(paused);
        self.next = None;
        self.phase = Phase::Over;
    }

    fn resume(&mut self, all: &[What]) {
        if !all.is_empty() {
            let resume = |what: &What| Action::Tell(Request::Resume { what: *what, device: None });
            // A pause that was not told yet must not come behind it.
            self.actions.clear();
            self.actions.extend(all.iter().map(resume));
        }
    }

    /// The first cause counts.
    fn spoil(&mut self, why: Spoilt) {
        self.block.spoilt = self.block.spoilt.or(Some(why));
    }
}

/// Why this controller cannot be measured now.
fn refusal(status: &Status) -> Option<Refusal> {
    if status.dry_run {
        return Some(Refusal::DryRun);
    }
    if !status.windows {
        return Some(Refusal::NoWindows);
    }
    // What is paused for one device stays so in both halves.
    status.paused.iter().find(|pause| pause.device.is_none()).map(|pause| Refusal::Paused(pause.what.name()))
}

fn is_paused(status: &Status, what: What) -> bool {
    status.paused.iter().any(|pause| pause.device.is_none() && pause.what == what)
}

/// Three decimals.
fn milli(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests;

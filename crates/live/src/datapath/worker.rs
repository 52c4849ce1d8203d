//! The thread that carries frames: reads all there is, lets out what is due, sleeps until the next is.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lasthop_core::units::{BitRate, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::answers::Answers;
use super::divert::{BEAT, Diversion};
use super::engine::{BATCH, Engine, Frame, Metrics};
use super::port::{Ear, Port};
use super::tap::Tap;
use crate::clock::now;
use crate::qdisc::cost;
use crate::rights::{self, Right};

/// Frames of stations that are looked at per turn: what they send must not hold up what they are sent.
const HEARD: usize = 16;

/// What the owner and the thread tell each other.
#[derive(Debug)]
pub struct Shared {
    /// The thread is to end.
    pub stop: AtomicBool,
    /// How fast packets may leave, bit/s.
    pub rate_bps: AtomicU64,
    /// What has been counted, renewed with each beat.
    pub metrics: Mutex<Counted>,
}

/// What has been counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    /// By the engine.
    pub engine: Metrics,
    /// Frames that the interface refused.
    pub refused: u64,
    /// How often packets had to wait for their turn.
    pub waits: u64,
    /// How often the interface took no more.
    pub blocked: u64,
    /// Acknowledgments that could not be given back to the kernel.
    pub answers_lost: u64,
    /// Whether the thread runs ahead of others.
    pub is_real_time: bool,
}

/// Everything the thread has.
pub struct Worker {
    pub tap: Tap,
    pub port: Port,
    pub ear: Option<Ear>,
    /// Where acknowledgments come by, and room for one.
    pub answers: Option<(Answers, Vec<u8>)>,
    pub diversion: Diversion,
    pub engine: Engine,
    pub packet_time: lasthop_core::units::Span,
    pub shared: Arc<Shared>,
    pub counted: Counted,
    pub rate: BitRate,
    pub outgoing: Vec<Frame>,
    pub is_blocked: bool,
}

impl Worker {
    /// Carries until it is told to stop; then everything that is held leaves at once.
    ///
    /// # Errors
    /// When the device is gone.
    pub fn run(mut self) -> io::Result<()> {
        self.counted.is_real_time = run_ahead_of_others();
        // Its device and sockets are open; what is left to do with rights is to write maps.
        rights::keep_only(&[Right::Bpf])?;
        let mut beat = Time::ZERO;
        while !self.shared.stop.load(Ordering::Relaxed) {
            let woken = now();
            if woken >= beat {
                self.diversion.beat(woken).map_err(io::Error::other)?;
                if let Some((answers, _)) = &self.answers {
                    answers.beat(woken).map_err(io::Error::other)?;
                }
                self.report(woken);
                beat = woken + BEAT;
            }
            let is_more = self.take_in(woken)? | self.answer()?;
            self.listen(woken);
            self.let_out();
            if !is_more {
                self.wait(beat)?;
            }
        }
        self.finish()
    }

    /// Reads a batch; true when there may be more.
    fn take_in(&mut self, now: Time) -> io::Result<bool> {
        for _each in 0..BATCH {
            let Some(slot) = self.engine.slot() else { return Ok(false) };
            match self.tap.read(self.engine.bytes_mut(slot)) {
                Ok(Some(length)) if self.tap.is_its_own(&self.engine.bytes_mut(slot)[..length]) => {
                    self.engine.give_back(slot);
                }
                Ok(Some(length)) => self.engine.on_frame(now, slot, length),
                Ok(None) => {
                    self.engine.give_back(slot);
                    return Ok(false);
                }
                Err(error) => {
                    self.engine.give_back(slot);
                    return Err(error);
                }
            }
        }
        Ok(true)
    }

    /// Acknowledgments of stations; true when there may be more.
    fn answer(&mut self) -> io::Result<bool> {
        let Some((answers, room)) = &mut self.answers else { return Ok(false) };
        for _each in 0..BATCH {
            let Some(length) = answers.read(room)? else { return Ok(false) };
            let frame = &mut room[..length];
            if self.engine.on_answer(now(), frame) && !answers.release(frame) {
                self.counted.answers_lost += 1;
            }
        }
        Ok(true)
    }

    fn listen(&mut self, now: Time) {
        let Some(ear) = &mut self.ear else { return };
        for _each in 0..HEARD {
            let Some(frame) = ear.hear() else { return };
            self.engine.on_received(now, frame);
        }
    }

    /// Everything that is due.
    fn let_out(&mut self) {
        self.send();
        while !self.is_blocked {
            let now = now();
            while self.outgoing.len() < BATCH
                && let Some(frame) = self.engine.poll(now)
            {
                self.outgoing.push(frame);
            }
            if self.outgoing.is_empty() {
                return;
            }
            self.send();
        }
    }

    fn send(&mut self) {
        self.is_blocked = false;
        if self.outgoing.is_empty() {
            return;
        }
        let sent = self.port.send(&self.engine, &self.outgoing);
        self.counted.refused += sent.refused as u64;
        self.counted.blocked += u64::from(sent.is_blocked);
        self.is_blocked = sent.is_blocked;
        for frame in self.outgoing.drain(..sent.gone) {
            self.engine.give_back(frame.slot());
        }
    }

    fn wait(&mut self, beat: Time) -> io::Result<()> {
        let due = if self.is_blocked { None } else { self.engine.next_deadline() };
        self.counted.waits += u64::from(due.is_some());
        let left = due.map_or(beat, |due| due.min(beat)).since(now()).as_nanos();
        let timeout = Timespec { tv_sec: (left / 1_000_000_000) as _, tv_nsec: (left % 1_000_000_000) as _ };
        let mut fds = vec![PollFd::from_borrowed_fd(self.tap.as_fd(), PollFlags::IN)];
        fds.extend(self.answers.iter().map(|(answers, _)| PollFd::from_borrowed_fd(answers.as_fd(), PollFlags::IN)));
        fds.extend(self.ear.iter().map(|ear| PollFd::from_borrowed_fd(ear.as_fd(), PollFlags::IN)));
        if self.is_blocked {
            fds.push(PollFd::from_borrowed_fd(self.port.as_fd(), PollFlags::OUT));
        }
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn report(&mut self, now: Time) {
        let rate = BitRate::bps(self.shared.rate_bps.load(Ordering::Relaxed));
        if rate != self.rate {
            self.rate = rate;
            self.engine.set_cost(cost(rate, self.packet_time));
            self.port.set_rate(rate);
        }
        self.counted.engine = self.engine.snapshot(now);
        *self.shared.metrics.lock().unwrap_or_else(PoisonError::into_inner) = self.counted;
    }

    /// New packets go their own way; those that are held follow as fast as the interface takes them.
    fn finish(&mut self) -> io::Result<()> {
        self.diversion.end();
        if let Some((answers, _)) = &self.answers {
            answers.end();
        }
        while self.take_in(now())? | self.answer()? {}
        while !self.is_blocked {
            while self.outgoing.len() < BATCH
                && let Some(frame) = self.engine.let_out(now())
            {
                self.outgoing.push(frame);
            }
            if self.outgoing.is_empty() {
                break;
            }
            self.send();
        }
        self.report(now());
        Ok(())
    }
}

/// A timer that is late is a queue that stands; below the emulator's priority. Whether it was permitted.
fn run_ahead_of_others() -> bool {
    // SAFETY: an all-zero sched_param is valid; both calls change only the calling thread.
    unsafe {
        let mut parameter: libc::sched_param = std::mem::zeroed();
        parameter.sched_priority = rights::REAL_TIME as i32;
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) == 0
    }
}

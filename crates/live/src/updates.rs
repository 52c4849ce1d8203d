//! Window updates: what an acknowledgment may not tell at once is told between two of them (`core::fastpath::window`).
//!
//! A thread of its own reads which flows the data path asks for, keeps when the next update of each is due, asks at that time
//! what to send, and sends it. What it decides is nothing: the law is in the data path. When a flow owes nothing any more it is
//! let go, and asked for again by an acknowledgment.
//!
//! It wakes at most once in `GRID`, for all that is due by then, and rests after a batch for as long as that took: it never
//! takes more than half a processor. Nothing is sent in a dry run, and nothing under `share = "equal"`: the paper's law knows
//! no window updates. When `ENOUGH` in a row could not be sent it gives up, and the fast path does without.

mod segment;
mod socket;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use lasthop_core::ap::ShareRule;
use lasthop_core::fastpath::layout::FlowKey;
use lasthop_core::fastpath::window;
use lasthop_core::packet::Direction;
use lasthop_core::units::{BitRate, Span, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::clock::now;
use crate::config::Config;
use crate::maps::ControlPage;
use crate::program::{Answer, Ask, Asks, LoadError, Program, ProgramError};
use crate::rights::{self, Right};
use lasthop_status::WindowUpdates;
pub(crate) use socket::Socket;

/// Updates are sent at multiples of this, all that are due by then together, for each wake-up costs as much as an update. The credit of a
/// flow goes on for so long after its update is due (`fastpath::window`), so that nothing of its pace is lost. As GRACE_NS of
/// `lasthop.bpf.c`.
const GRID: Span = Span::from_millis(1);
/// Where nothing is due it looks so often all the same, for so long after the last ask: one that was put there unseen, while it fell
/// asleep, is found then.
const LINGER: Span = Span::from_millis(100);
const LINGERS: u32 = 10;
/// Flows that are seen to at a time. The others are let go, and do as well as without.
const MOST: usize = 4096;
/// So many failures in a row are not the weather.
const ENOUGH: u32 = 16;
/// The call itself was refused: try again so much later.
const AGAIN: Span = Span::from_millis(10);

/// The thread, seen from the controller. Dropping it ends the thread.
pub struct Updates {
    running: Option<Running>,
    shared: Arc<Shared>,
    /// The reason why none are sent, where none are.
    off: Option<String>,
    /// Whether it has still to be said that they cannot be sent though they are wanted.
    unsaid: bool,
}

struct Running {
    /// The thread ends when this end of a pipe closes, which cannot fail.
    stop: OwnedFd,
    thread: JoinHandle<()>,
}

/// What the thread counts.
#[derive(Debug, Default)]
struct Shared {
    sent: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
    stop: AtomicBool,
    /// Why it gave up.
    gave_up: OnceLock<String>,
}

impl Updates {
    /// Starts the thread where window updates are wanted; the data path is told so.
    ///
    /// Nothing of it is needed: where it cannot be had, `status` says why.
    #[must_use]
    pub fn start(config: &Config, program: &Program) -> Self {
        let shared = Arc::new(Shared::default());
        if let Some(why) = unwanted(config) {
            return Self { running: None, shared, off: Some(why.to_owned()), unsaid: false };
        }
        match run(program, &shared) {
            Ok(running) => {
                program.control().set_updates_of_both([1; 2]);
                Self { running: Some(running), shared, off: None, unsaid: false }
            }
            Err(error) => Self { running: None, shared, off: Some(error.to_string()), unsaid: true },
        }
    }

    /// Looks after the thread; when it has given up, the data path does without. What a person should know is said once.
    pub fn check(&mut self, program: &Program) -> Option<String> {
        if self.running.as_ref().is_some_and(|running| running.thread.is_finished()) {
            self.stop(program);
            let why = self.shared.gave_up.get().map_or("their thread failed", String::as_str);
            (self.off, self.unsaid) = (Some(why.to_owned()), true);
        }
        let why = self.off.as_ref().filter(|_| std::mem::take(&mut self.unsaid))?;
        Some(format!("window updates are off: {why}"))
    }

    /// Ends it.
    pub fn stop(&mut self, program: &Program) {
        program.control().set_updates_of_both([0; 2]);
        self.end();
    }

    /// Ends it until it is started again, because somebody has asked for that.
    pub fn pause(&mut self, program: &Program) {
        self.stop(program);
        self.off = Some(PAUSED.to_owned());
    }

    /// It was ended by [`Self::pause`].
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.off.as_deref() == Some(PAUSED)
    }

    /// The hops carry so much together in each direction, as far as is known: how much each update tells follows.
    pub fn on_capacities(&self, program: &Program, capacities: [Option<BitRate>; 2]) {
        if self.running.is_some() {
            program.control().set_updates_of_both(capacities.map(window::quantum));
        }
    }

    /// What was sent, and what not.
    #[must_use]
    pub fn status(&self) -> WindowUpdates {
        WindowUpdates {
            on: self.running.is_some(),
            sent: self.shared.sent.load(Ordering::Relaxed),
            failed: self.shared.failed.load(Ordering::Relaxed),
            dropped: self.shared.dropped.load(Ordering::Relaxed),
            off: self.off.clone(),
        }
    }

    fn end(&mut self) {
        if let Some(Running { stop, thread }) = self.running.take() {
            self.shared.stop.store(true, Ordering::Release);
            drop(stop);
            let _ = thread.join();
        }
    }
}

impl Drop for Updates {
    fn drop(&mut self) {
        self.end();
    }
}

/// Why none are sent while they are paused.
const PAUSED: &str = "somebody has paused them";

fn unwanted(config: &Config) -> Option<&'static str> {
    match () {
        () if config.dry_run => Some("a dry run sends nothing"),
        () if !config.window_updates => Some("window_updates = false"),
        () if !config.windows => Some("windows = false"),
        () if config.share == ShareRule::Equal => Some("share = \"equal\""),
        () => None,
    }
}

/// Why the thread could not be started.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("raw sockets are refused: {0}")]
    Socket(#[source] io::Error),
    #[error("no pipe: {0}")]
    Pipe(#[from] rustix::io::Errno),
    #[error("no thread: {0}")]
    Thread(#[source] io::Error),
}

fn run(program: &Program, shared: &Arc<Shared>) -> Result<Running, StartError> {
    let asks = program.asks()?;
    let control = program.another_control()?;
    let socket = Socket::open().map_err(StartError::Socket)?;
    let (its_stop, stop) = pipe_with(PipeFlags::CLOEXEC)?;
    let shared = shared.clone();
    let work = move || {
        run_ahead_of_others();
        let sender = Sender { asks: &asks, control: &control, socket, shared: &shared, in_a_row: 0 };
        let outcome = rights::keep_only(&[Right::Bpf]).map_err(RunError::Rights).and_then(|()| sender.run(&its_stop));
        if let Err(error) = outcome {
            let _ = shared.gave_up.set(error.to_string());
        }
    };
    let builder = std::thread::Builder::new().name("window updates".to_owned());
    Ok(Running { stop, thread: builder.spawn(work).map_err(StartError::Thread)? })
}

/// Why the thread ended by itself.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error("{ENOUGH} in a row could not be sent: {0}")]
    Refused(io::Error),
    #[error("the ring of the data path cannot be read: {0}")]
    Ring(#[from] ProgramError),
    #[error("waiting failed: {0}")]
    Wait(rustix::io::Errno),
    #[error("rights that it does not need cannot be given up: {0}")]
    Rights(io::Error),
}

struct Sender<'a> {
    asks: &'a Asks,
    control: &'a ControlPage,
    socket: Socket,
    shared: &'a Shared,
    /// Failures since something was sent.
    in_a_row: u32,
}

impl Sender<'_> {
    fn run(mut self, stop: &OwnedFd) -> Result<(), RunError> {
        let asked = std::cell::RefCell::new(Vec::new());
        let ring = self.asks.reader(|ask| asked.borrow_mut().push(ask))?;
        // SAFETY: the ring owns this descriptor and outlives the loop.
        let ring_fd = unsafe { BorrowedFd::borrow_raw(ring.epoll_fd()) };
        let mut list = List::default();
        let (mut rest, mut lingers) = (Time::ZERO, 0);
        let take = |list: &mut List| {
            ring.consume().map_err(ProgramError::from)?;
            let mut asked = asked.borrow_mut();
            let any = !asked.is_empty();
            for ask in asked.drain(..) {
                if !list.push(ask) {
                    self.shared.dropped.fetch_add(1, Ordering::Relaxed);
                    let _ = self.asks.released(&ask.key, ask.direction);
                }
            }
            Ok::<_, RunError>(any)
        };
        while !self.shared.stop.load(Ordering::Acquire) {
            let mut until = list.next().map(|due| on_grid(due).max(rest));
            self.control.set_looks(until.unwrap_or_default());
            // What was put there before that was told woke nobody.
            if take(&mut list)? {
                lingers = LINGERS;
                until = list.next().map(|due| on_grid(due).max(rest));
                self.control.set_looks(until.unwrap_or_default());
            }
            if until.is_none() && lingers > 0 {
                lingers -= 1;
                until = Some(now() + LINGER);
            }
            wait(ring_fd, stop.as_fd(), until).map_err(RunError::Wait)?;
            let woken = now();
            self.control.set_looks(woken + GRID);
            if take(&mut list)? {
                lingers = LINGERS;
            }
            if woken < rest {
                continue;
            }
            while let Some(ask) = list.pop(woken) {
                if let Some(due) = self.see_to(&ask)? {
                    list.push(Ask { due, ..ask });
                }
            }
            let ended = now();
            rest = ended + ended.since(woken);
        }
        Ok(())
    }

    /// Sends what is due of a flow; when to look again.
    fn see_to(&mut self, ask: &Ask) -> Result<Option<Time>, RunError> {
        match self.asks.answer(&ask.key, ask.direction) {
            Ok(Answer { update, next }) => {
                match update.map(|update| self.socket.send(ask, &update)) {
                    None => {}
                    Some(Ok(())) => {
                        self.in_a_row = 0;
                        self.shared.sent.fetch_add(1, Ordering::Relaxed);
                    }
                    // Its interface is down or gone, which is nobody else's: the next ACK to it asks again, and says by which.
                    Some(Err(_)) if ask.direction == Direction::ToRemote => {
                        self.shared.failed.fetch_add(1, Ordering::Relaxed);
                        let _ = self.asks.released(&ask.key, ask.direction);
                        return Ok(None);
                    }
                    Some(Err(error)) => {
                        self.in_a_row += 1;
                        self.shared.failed.fetch_add(1, Ordering::Relaxed);
                        if self.in_a_row >= ENOUGH {
                            return Err(RunError::Refused(error));
                        }
                    }
                }
                Ok(next)
            }
            Err(ProgramError::NoSuchFlow) => Ok(None),
            // Not let go: nobody else would ask for it.
            Err(_) => Ok(Some(now() + AGAIN)),
        }
    }
}

/// Until something is asked for, it is time, or the end.
fn wait(ring: BorrowedFd<'_>, stop: BorrowedFd<'_>, until: Option<Time>) -> rustix::io::Result<()> {
    let left = until.map(|until| until.since(now()).as_nanos());
    let timeout =
        left.map(|left| Timespec { tv_sec: (left / 1_000_000_000) as _, tv_nsec: (left % 1_000_000_000) as _ });
    let mut fds = [ring, stop].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The next multiple of [`GRID`].
fn on_grid(due: Time) -> Time {
    Time::from_nanos(due.as_nanos().div_ceil(GRID.as_nanos()) * GRID.as_nanos())
}

/// Directions of flows that are seen to, each once, the next one due first.
#[derive(Debug, Default)]
struct List {
    due: BinaryHeap<Reverse<(Time, FlowKey, usize)>>,
    asks: [HashMap<FlowKey, Ask>; 2],
}

impl List {
    /// False when there is no room. One that is in the list keeps its time.
    fn push(&mut self, ask: Ask) -> bool {
        let direction = ask.direction.index();
        if self.asks[direction].contains_key(&ask.key) {
            return true;
        }
        if self.due.len() >= MOST {
            return false;
        }
        self.asks[direction].insert(ask.key, ask);
        self.due.push(Reverse((ask.due, ask.key, direction)));
        true
    }

    fn next(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((due, ..))| *due)
    }

    /// Takes out one that is due.
    fn pop(&mut self, now: Time) -> Option<Ask> {
        self.next().filter(|due| *due <= now)?;
        let Reverse((_, key, direction)) = self.due.pop()?;
        self.asks[direction].remove(&key)
    }
}

/// An update that is late is a pause; below the emulator's priority. It does as well without the permission.
fn run_ahead_of_others() {
    // SAFETY: an all-zero sched_param is valid; both calls change only the calling thread.
    unsafe {
        let mut parameter: libc::sched_param = std::mem::zeroed();
        parameter.sched_priority = rights::REAL_TIME as i32;
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::LinkHeader;

    fn ask(port: u16, due: u64) -> Ask {
        let key = FlowKey { station_port: port, ..FlowKey::default() };
        Ask { key, direction: Direction::ToStation, due: Time::from_nanos(due), port: 1, link: LinkHeader::default() }
    }

    #[test]
    fn the_list_gives_what_is_due_in_order_and_each_flow_once() {
        let mut list = List::default();
        for (port, due) in [(1, 30), (2, 10), (3, 20), (1, 5)] {
            assert!(list.push(ask(port, due)));
        }
        assert_eq!(list.next(), Some(Time::from_nanos(10)));
        let mut popped = || std::iter::from_fn(|| list.pop(Time::from_nanos(20))).collect::<Vec<_>>();
        assert_eq!(popped(), [ask(2, 10), ask(3, 20)]);
        assert_eq!(list.next(), Some(Time::from_nanos(30)));
        assert!(list.push(ask(2, 1)), "let go, and asked for again");
    }

    #[test]
    fn the_list_is_bounded() {
        let mut list = List::default();
        assert!((0..MOST as u16).all(|port| list.push(ask(port, 1))));
        assert!(!list.push(ask(u16::MAX, 1)));
        assert!(list.push(ask(7, 1)), "is in it");
        list.pop(Time::from_nanos(1));
        assert!(list.push(ask(u16::MAX, 1)));
    }

    #[test]
    fn the_grid_is_never_early() {
        for ns in [1, 999_999, 1_000_000, 1_000_001] {
            let at = on_grid(Time::from_nanos(ns)).as_nanos();
            assert!(at >= ns && at < ns + 1_000_000 && at.is_multiple_of(1_000_000), "{ns}: {at}");
        }
    }
}

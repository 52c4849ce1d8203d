//! A process beside the controller that sets what is to be set, and puts it back: when it is told to, and when the controller is gone.
//!
//! ```text
//! controller                          guard
//!   set PLACE to VALUES  -------->    reads PLACE, writes down what stands there, sets it, reads it again
//!                        <--------    what stood there, or why not
//!   (ends, is killed, hangs up)       puts everything back, the newest first; ends
//! ```
//!
//! It is forked at the start, while the controller still has its rights, keeps CAP_NET_ADMIN and CAP_DAC_OVERRIDE, and writes to debugfs's radios and its
//! own record alone. The end of a connection is the same to it whatever ended the controller, SIGKILL included. It heeds no
//! signal but that one; where both are killed at once, the next controller's guard finds the record, which is locked while its guard lives,
//! and puts back what is in it. What somebody else changed meanwhile is theirs, and stays.
//!
//! A place that nobody tells (contention, attempts of a station) is put back as the order said that it was. What a driver refuses to put back stays
//! held, and in the record: it is tried again at the end, and by the guard of the next controller. Only what is gone is forgotten.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use serde::{Deserialize, Serialize};

use super::place::{Machine, Place, Values};
use crate::{confine, rights};

/// Longest message, bytes.
const LONGEST: usize = 4_096;
/// Most places that are held at once: more than an access point has stations.
const MOST: usize = 4_096;
/// Longest record, bytes: that many places.
const LONGEST_RECORD: u64 = 1 << 20;
/// How long a controller that ends waits for everything to be put back.
const PATIENCE_S: i64 = 5;
/// What is refused at the end is tried so often, and so long after each other: a driver may be busy with a scan.
const TRIES: u32 = 4;
const BETWEEN_TRIES: Duration = Duration::from_millis(500);
/// Its records, in the folder of the locks.
const RECORD: &str = "levers-";

/// What the controller wants.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Order {
    /// Set this.
    Set {
        /// Where.
        place: Place,
        /// To what.
        values: Values,
        /// What stands there, where nobody else tells.
        before: Option<Values>,
    },
    /// As it was.
    PutBack {
        /// Where.
        place: Place,
    },
}

/// What came of an order.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// Where.
    pub place: Place,
    /// What came of it.
    pub outcome: Outcome,
}

/// See [`Answer`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Outcome {
    /// It is set.
    Set {
        /// What stood there before anything was set.
        before: Values,
        /// What stands there now.
        now: Values,
    },
    /// It is as it was.
    PutBack,
    /// Somebody else has set it: it is theirs now.
    Theirs {
        /// What stands there.
        now: Values,
    },
    /// It cannot be set.
    Refused {
        /// Number of the error; 0: what was set does not stand there afterwards.
        errno: i32,
    },
}

/// A place that was set.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Held {
    /// Where.
    pub place: Place,
    /// What stood there.
    pub before: Values,
    /// What was set.
    pub ours: Values,
}

/// Reads a record.
///
/// # Errors
/// When it is none.
pub fn read_record(text: &[u8]) -> serde_json::Result<Vec<Held>> {
    serde_json::from_slice::<Vec<Held>>(text)
}

/// The controller's end. Dropping it has everything put back, and waits for that.
#[derive(Debug)]
pub struct Guard {
    socket: OwnedFd,
    process: libc::pid_t,
    /// Orders without an answer yet.
    waits: usize,
}

impl Guard {
    /// Starts one for this machine. It is forked from the calling thread, which has to have the rights still that the guard keeps, and to be
    /// the only one that holds locks of this process.
    ///
    /// # Errors
    /// When the kernel has no process or descriptor left.
    pub fn start() -> io::Result<Self> {
        Self::start_with(Machine::default(), PathBuf::from(crate::attach::LOCKS))
    }

    pub(crate) fn start_with(machine: Machine, records: PathBuf) -> io::Result<Self> {
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        // SAFETY: the child goes on in `guard` alone, which ends in `_exit`: no destructor of this process runs there.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let ended =
                    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| guard(&theirs, machine, &records)));
                // SAFETY: a plain call that does not return.
                unsafe { libc::_exit(i32::from(ended.is_err())) }
            }
            process => Ok(Self { socket: ours, process, waits: 0 }),
        }
    }

    /// Gives an order, and does not wait for what comes of it.
    ///
    /// # Errors
    /// `EAGAIN` when it has too much to do, else it is gone.
    pub fn give(&mut self, order: &Order) -> io::Result<()> {
        let text = serde_json::to_vec(order)?;
        send(&self.socket, &text, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
        self.waits += 1;
        Ok(())
    }

    /// Orders that nothing is known of yet.
    #[must_use]
    pub const fn waits(&self) -> usize {
        self.waits
    }

    /// What came of orders, as far as it has come. Never waits.
    ///
    /// # Errors
    /// When the guard is gone: what it has set stays, and nothing more is set.
    pub fn answers(&mut self) -> io::Result<Vec<Answer>> {
        let mut all = Vec::new();
        let mut text = [0u8; LONGEST];
        while self.waits > 0 {
            match recv(&self.socket, text.as_mut_slice(), RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((length, _)) => {
                    self.waits -= 1;
                    all.push(serde_json::from_slice(&text[..length])?);
                }
                Err(rustix::io::Errno::AGAIN) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(all)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write);
        // It has ended when its end of the connection has; a driver that does not answer keeps nobody from ending.
        let timeout = Timespec { tv_sec: PATIENCE_S as _, tv_nsec: 0 };
        let mut text = [0u8; LONGEST];
        while poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timeout)).is_ok_and(|ready| ready > 0) {
            if recv(&self.socket, text.as_mut_slice(), RecvFlags::DONTWAIT).map_or(0, |(length, _)| length) == 0 {
                // SAFETY: a child of this process, which has ended or is about to.
                unsafe { libc::waitpid(self.process, std::ptr::null_mut(), 0) };
                return;
            }
        }
    }
}

/// The process itself.
fn guard(socket: &OwnedFd, mut machine: Machine, records: &Path) {
    leave_all_but(socket);
    let _ = rustix::thread::set_name(c"lasthop-guard");
    // Without these it has more rights than it needs, and does the same.
    let _ = confine::confine_guard(machine.debugfs(), records);
    let _ = rights::settle_guard();
    let (held, taken_over) = recover(&mut machine, records);
    let mut work = Work { machine, held, record: Record::make(records) };
    work.write_down();
    // Now that they are in this one's record.
    let own = work.record.as_ref().map(|record| record.path.clone());
    taken_over.iter().filter(|path| own.as_ref() != Some(path)).for_each(|path| drop(fs::remove_file(path)));
    let mut text = [0u8; LONGEST];
    loop {
        let length = match recv(socket, text.as_mut_slice(), RecvFlags::empty()) {
            Ok((length, _)) if length > 0 => length,
            Err(rustix::io::Errno::INTR) => continue,
            _ => break,
        };
        let Ok(order) = serde_json::from_slice(&text[..length]) else { break };
        let answer = serde_json::to_vec(&work.carry_out(order)).unwrap_or_default();
        if send(socket, &answer, SendFlags::NOSIGNAL).is_err() {
            break;
        }
    }
    work.put_all_back();
}

/// Of the controller it keeps nothing: neither its signals nor its files, whose locks would outlive it.
fn leave_all_but(socket: &OwnedFd) {
    // SAFETY: plain calls of this process, which has one thread and uses no descriptor but `socket` from here on.
    unsafe {
        for signal in
            [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE, libc::SIGUSR1, libc::SIGUSR2]
        {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::setsid();
        let nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        for standard in 0..3 {
            libc::dup2(nothing, standard);
        }
        let kept = socket.as_raw_fd();
        let close = |first: libc::c_int, last: libc::c_int| {
            if first <= last && libc::syscall(libc::SYS_close_range, first, last, 0) != 0 {
                // Before Linux 5.9.
                (first..=last.min(libc::sysconf(libc::_SC_OPEN_MAX) as libc::c_int)).for_each(|fd| {
                    libc::close(fd);
                });
            }
        };
        close(3, kept - 1);
        close(kept.max(2) + 1, libc::c_int::MAX);
    }
}

struct Work {
    machine: Machine,
    held: Vec<Held>,
    record: Option<Record>,
}

impl Work {
    fn carry_out(&mut self, order: Order) -> Answer {
        let (place, outcome) = match order {
            Order::Set { place, values, before } => (place.clone(), self.set(place, values, before)),
            Order::PutBack { place } => (place.clone(), self.put_back(&place)),
        };
        let outcome = outcome
            .unwrap_or_else(|error: io::Error| Outcome::Refused { errno: error.raw_os_error().unwrap_or(libc::EIO) });
        Answer { place, outcome }
    }

    fn set(&mut self, place: Place, values: Values, before: Option<Values>) -> io::Result<Outcome> {
        let stands = self.machine.read(&place)?;
        let at = self.held.iter().position(|held| held.place == place);
        if let (Some(at), Some(now)) = (at, &stands)
            && *now != self.held[at].ours
        {
            self.held.remove(at);
            self.write_down();
            return Ok(Outcome::Theirs { now: now.clone() });
        }
        let before = match at {
            Some(at) => self.held[at].before.clone(),
            None => stands.or(before).or_else(|| place.own_way()).ok_or(io::Error::from_raw_os_error(libc::ENODATA))?,
        };
        if at.is_none() && self.held.len() >= MOST {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        // Before it is set: whoever finds the record puts back what stands there anyway.
        self.held.retain(|held| held.place != place);
        self.held.push(Held { place: place.clone(), before: before.clone(), ours: values.clone() });
        self.write_down();
        let set = self.machine.write(&place, &values);
        let now = self.machine.read(&place).ok().flatten().unwrap_or_else(|| values.clone());
        if set.is_err() || now != values {
            // What it took instead of what it was told is not ours to keep.
            let _ = self.machine.write(&place, &before);
            self.held.pop();
            self.write_down();
            set?;
            return Ok(Outcome::Refused { errno: 0 });
        }
        Ok(Outcome::Set { before, now })
    }

    fn put_back(&mut self, place: &Place) -> io::Result<Outcome> {
        let Some(at) = self.held.iter().position(|held| held.place == *place) else { return Ok(Outcome::PutBack) };
        let outcome = restore(&mut self.machine, &self.held[at]);
        if is_over(&outcome) {
            self.held.remove(at);
            self.write_down();
        }
        outcome
    }

    fn put_all_back(&mut self) {
        for tries in 1..=TRIES {
            self.held = put_back(&mut self.machine, std::mem::take(&mut self.held));
            if self.held.is_empty() || tries == TRIES {
                break;
            }
            std::thread::sleep(BETWEEN_TRIES);
        }
        self.write_down();
        if let Some(record) = self.record.take().filter(|_| !self.held.is_empty()) {
            record.leave();
        }
    }

    fn write_down(&mut self) {
        if let Some(record) = &mut self.record {
            let _ = record.write(&self.held);
        }
    }
}

/// Puts back what stood there, where what was set still does.
fn restore(machine: &mut Machine, held: &Held) -> io::Result<Outcome> {
    match machine.read(&held.place)? {
        Some(now) if now != held.ours => Ok(Outcome::Theirs { now }),
        _ => machine.write(&held.place, &held.before).map(|()| Outcome::PutBack),
    }
}

/// It is as it was, or somebody else's, or gone.
fn is_over(outcome: &io::Result<Outcome>) -> bool {
    let gone = |error: &io::Error| matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV));
    outcome.as_ref().map_or_else(gone, |_| true)
}

/// Puts all back, the newest first. What is left, the newest last.
fn put_back(machine: &mut Machine, mut held: Vec<Held>) -> Vec<Held> {
    held.reverse();
    held.retain(|held| !is_over(&restore(machine, held)));
    held.reverse();
    held
}

/// A file that says what is held, locked as long as its guard lives.
#[derive(Debug)]
struct Record {
    file: File,
    path: PathBuf,
}

impl Record {
    /// None where it cannot be made: then nothing is put back when both processes are killed.
    fn make(folder: &Path) -> Option<Self> {
        let path = folder.join(format!("{RECORD}{}", std::process::id()));
        let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&path).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Self { file, path })
    }

    fn write(&mut self, held: &[Held]) -> io::Result<()> {
        let text = serde_json::to_vec(held)?;
        self.file.rewind()?;
        self.file.write_all(&text)?;
        self.file.set_len(text.len() as u64)
    }

    /// It stays, for the next guard; the lock ends with this process.
    fn leave(self) {
        let _ = std::mem::ManuallyDrop::new(self);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Puts back what guards have left that are gone. What could not be put back, and the records that name it.
fn recover(machine: &mut Machine, folder: &Path) -> (Vec<Held>, Vec<PathBuf>) {
    let (mut all, mut records) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(RECORD) {
            continue;
        }
        let Ok(file) = File::options().read(true).open(entry.path()) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        let is_short = file.metadata().is_ok_and(|about| about.len() <= LONGEST_RECORD);
        let held = fs::read(entry.path()).ok().filter(|_| is_short).and_then(|text| read_record(&text).ok());
        let left = put_back(machine, held.unwrap_or_default());
        if left.is_empty() {
            let _ = fs::remove_file(entry.path());
            continue;
        }
        all.extend(left);
        records.push(entry.path());
    }
    all.truncate(MOST);
    (all, records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::FromRawFd;
    use std::time::Instant;

    /// Files as a radio's debugfs has them; a guard sets one of them for real.
    struct Radio {
        folder: tempfile::TempDir,
    }

    impl Radio {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir(folder.path().join("phy0")).unwrap();
            fs::create_dir(folder.path().join("records")).unwrap();
            let radio = Self { folder };
            radio.set(24_000);
            radio
        }

        fn file(&self) -> PathBuf {
            self.folder.path().join("phy0/aql_threshold")
        }

        /// As whoever else may set it.
        fn set(&self, us: u32) {
            fs::write(self.file(), format!("{us}\n")).unwrap();
        }

        fn stands(&self) -> u32 {
            super::super::debugfs::threshold(&fs::read_to_string(self.file()).unwrap()).unwrap()
        }

        fn guard(&self) -> Guard {
            let machine = Machine::new(self.folder.path().to_owned());
            Guard::start_with(machine, self.folder.path().join("records")).unwrap()
        }

        fn records(&self) -> usize {
            fs::read_dir(self.folder.path().join("records")).unwrap().count()
        }
    }

    fn threshold() -> Place {
        Place::AqlThreshold { phy: "phy0".to_owned() }
    }

    fn set(us: u32) -> Order {
        Order::Set { place: threshold(), values: vec![us], before: None }
    }

    fn answer(guard: &mut Guard) -> Outcome {
        let begun = Instant::now();
        loop {
            if let Some(answer) = guard.answers().unwrap().pop() {
                return answer.outcome;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "it does not answer");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn until(what: impl Fn() -> bool) {
        let begun = Instant::now();
        while !what() {
            assert!(begun.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn what_was_set_is_put_back_at_the_end() {
        let radio = Radio::new();
        let mut guard = radio.guard();
        for us in [12_000, 60_000] {
            guard.give(&set(us)).unwrap();
            assert_eq!(answer(&mut guard), Outcome::Set { before: vec![24_000], now: vec![us] });
            assert_eq!((radio.stands(), radio.records()), (us, 1));
        }
        drop(guard);
        assert_eq!((radio.stands(), radio.records()), (24_000, 0));
    }

    #[test]
    fn what_was_set_is_put_back_by_itself_when_its_turn_is_over() {
        let radio = Radio::new();
        let mut guard = radio.guard();
        guard.give(&set(12_000)).unwrap();
        answer(&mut guard);
        guard.give(&Order::PutBack { place: threshold() }).unwrap();
        assert_eq!(answer(&mut guard), Outcome::PutBack);
        assert_eq!(radio.stands(), 24_000);
    }

    #[test]
    fn what_somebody_else_has_changed_is_theirs() {
        let radio = Radio::new();
        let mut guard = radio.guard();
        guard.give(&set(12_000)).unwrap();
        answer(&mut guard);
        radio.set(48_000);
        guard.give(&set(10_000)).unwrap();
        assert_eq!(answer(&mut guard), Outcome::Theirs { now: vec![48_000] });
        drop(guard);
        assert_eq!(radio.stands(), 48_000);
    }

    #[test]
    fn what_cannot_be_set_is_refused_with_its_number() {
        let radio = Radio::new();
        let mut guard = radio.guard();
        let place = Place::Aql { phy: "phy0".to_owned(), class: 2 };
        guard.give(&Order::Set { place, values: vec![1, 2], before: None }).unwrap();
        assert_eq!(answer(&mut guard), Outcome::Refused { errno: libc::ENOENT });
        guard.give(&Order::Set { place: threshold(), values: vec![1, 2], before: None }).unwrap();
        assert_eq!(answer(&mut guard), Outcome::Refused { errno: libc::EINVAL });
        assert_eq!(radio.stands(), 24_000);
    }

    /// A controller that is killed closes its end, as the kernel does for it.
    #[test]
    fn a_controller_that_is_killed_leaves_everything_as_it_was() {
        let radio = Radio::new();
        let mut guard = radio.guard();
        guard.give(&set(12_000)).unwrap();
        answer(&mut guard);
        let process = guard.process;
        // Its signals do not reach the guard.
        // SAFETY: a process that this test started.
        unsafe { libc::kill(process, libc::SIGTERM) };
        let guard = std::mem::ManuallyDrop::new(guard);
        // SAFETY: its owner is never dropped.
        drop(unsafe { OwnedFd::from_raw_fd(guard.socket.as_raw_fd()) });
        until(|| radio.stands() == 24_000 && radio.records() == 0);
        // SAFETY: a child of this process.
        unsafe { libc::waitpid(process, std::ptr::null_mut(), 0) };
    }

    #[test]
    fn where_both_were_killed_the_next_one_puts_it_back() {
        let radio = Radio::new();
        let mut guard = radio.guard();
        guard.give(&set(12_000)).unwrap();
        answer(&mut guard);
        // SAFETY: a child that this test started.
        unsafe { libc::kill(guard.process, libc::SIGKILL) };
        drop(guard);
        assert_eq!((radio.stands(), radio.records()), (12_000, 1));
        let mut next = radio.guard();
        next.give(&Order::PutBack { place: threshold() }).unwrap();
        answer(&mut next);
        assert_eq!((radio.stands(), radio.records()), (24_000, 1));
        drop(next);
        assert_eq!(radio.records(), 0);
    }

    /// A folder in its place can be neither read nor written.
    #[test]
    fn what_cannot_be_put_back_is_tried_again_and_left_to_the_next_one() {
        let radio = Radio::new();
        let refuse = |on: bool| {
            if on {
                fs::remove_file(radio.file()).unwrap();
                fs::create_dir(radio.file()).unwrap();
            } else {
                fs::remove_dir(radio.file()).unwrap();
                radio.set(12_000);
            }
        };
        let mut guard = radio.guard();
        guard.give(&set(12_000)).unwrap();
        answer(&mut guard);
        refuse(true);
        guard.give(&Order::PutBack { place: threshold() }).unwrap();
        assert_eq!(answer(&mut guard), Outcome::Refused { errno: libc::EISDIR });
        drop(guard);
        assert_eq!(radio.records(), 1, "the next one has to know");
        let mut next = radio.guard();
        next.give(&Order::PutBack { place: threshold() }).unwrap();
        assert_eq!(answer(&mut next), Outcome::Refused { errno: libc::EISDIR });
        assert_eq!(radio.records(), 1);
        refuse(false);
        drop(next);
        assert_eq!((radio.stands(), radio.records()), (24_000, 0));
    }

    /// A radio that was unplugged has nothing to put back.
    #[test]
    fn what_is_gone_is_forgotten() {
        let radio = Radio::new();
        let mut guard = radio.guard();
        guard.give(&set(12_000)).unwrap();
        answer(&mut guard);
        fs::remove_dir_all(radio.folder.path().join("phy0")).unwrap();
        drop(guard);
        assert_eq!(radio.records(), 0);
    }

    #[test]
    fn a_record_that_is_none_is_forgotten() {
        let radio = Radio::new();
        fs::write(radio.folder.path().join("records/levers-1"), "[{\"place\": 7}]").unwrap();
        drop(radio.guard());
        assert_eq!((radio.stands(), radio.records()), (24_000, 0));
    }
}

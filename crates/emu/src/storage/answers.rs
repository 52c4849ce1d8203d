//! Answers that are ready before they are due: whoever asked waits as long as the storage takes.

use super::device::{Access, Device};
use crate::clock;
use crate::error::Error;
use fuser::{Errno, ReplyData, ReplyWrite};
use lasthop_core::units::{Span, Time};
use lasthop_home::scenario::Storage;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Longest sleep, so that [`Hurry`] is noticed.
const NAP: Span = Span::from_millis(20);

/// While it is raised everything is answered at once. A program that is killed in the middle of a read or write does
/// not end before it is answered.
#[derive(Clone, Debug, Default)]
pub struct Hurry(Arc<AtomicBool>);

impl Hurry {
    /// Raises or lowers it.
    pub fn set(&self, raised: bool) {
        self.0.store(raised, Ordering::Relaxed);
    }

    fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What is said to whoever asked.
#[derive(Debug)]
pub enum Answer {
    /// So many bytes were written.
    Written(ReplyWrite, Result<u32, Errno>),
    /// This was read.
    Data(ReplyData, Result<Vec<u8>, Errno>),
}

impl Answer {
    /// Bytes that the storage moved.
    fn bytes(&self) -> u64 {
        match self {
            Self::Written(_, Ok(bytes)) => u64::from(*bytes),
            Self::Data(_, Ok(data)) => data.len() as u64,
            Self::Written(_, Err(_)) | Self::Data(_, Err(_)) => 0,
        }
    }

    fn give(self) {
        match self {
            Self::Written(reply, Ok(bytes)) => reply.written(bytes),
            Self::Data(reply, Ok(data)) => reply.data(&data),
            Self::Written(reply, Err(why)) => reply.error(why),
            Self::Data(reply, Err(why)) => reply.error(why),
        }
    }
}

/// The storage's schedule and the thread that keeps to it. The thread ends when this is dropped.
#[derive(Debug)]
pub struct Answers {
    device: Arc<Mutex<Device>>,
    waiting: Sender<(Time, Answer)>,
}

impl Answers {
    /// For a storage of `rates`.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn new(rates: Storage, hurry: Hurry) -> Result<Self, Error> {
        let device = Arc::new(Mutex::new(Device::new(rates)));
        let (waiting, inbox) = mpsc::channel();
        let shared = Arc::clone(&device);
        super::start("storage-clock", move || keep_to_schedule(&inbox, &shared, &hurry))?;
        Ok(Self { device, waiting })
    }

    /// Gives `answer` when the storage is done. `begins`: see [`Device::on_request`].
    pub fn schedule(&self, access: Access, begins: bool, answer: Answer) {
        let now = clock::now();
        let mut device = lock(&self.device);
        let due = device.on_request(now, access, answer.bytes(), begins);
        if due <= now {
            device.on_answered(due, now);
            drop(device);
            return answer.give();
        }
        drop(device);
        // Without the thread the answer is dropped, which tells the caller EIO.
        let _ = self.waiting.send((due, answer));
    }
}

fn keep_to_schedule(inbox: &Receiver<(Time, Answer)>, device: &Mutex<Device>, hurry: &Hurry) {
    for (due, answer) in inbox {
        let mut now = clock::now();
        while now < due && !hurry.is_raised() {
            clock::sleep_until(due.min(now + NAP));
            now = clock::now();
        }
        let mut device = lock(device);
        if now < due {
            device.on_hurried(now);
        } else {
            device.on_answered(due, now);
        }
        drop(device);
        answer.give();
    }
}

fn lock(device: &Mutex<Device>) -> MutexGuard<'_, Device> {
    device.lock().unwrap_or_else(PoisonError::into_inner)
}

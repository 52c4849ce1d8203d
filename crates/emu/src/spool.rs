//! From the engine to a thread that writes: buffers that go round, so that the engine never waits for the disk.
//!
//! The engine fills a buffer and swaps it for an empty one. When there is none, what it has is left out; whoever records
//! counts that.

use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};

/// The engine's end.
#[derive(Debug)]
pub struct Spool<T> {
    current: Vec<T>,
    size: usize,
    full: SyncSender<Vec<T>>,
    empty: Receiver<Vec<T>>,
}

/// The writer's end; `R` is what it knows when it is done.
#[derive(Debug)]
pub struct Writer<R = ()>(JoinHandle<io::Result<R>>);

/// A spool of `buffers` buffers of `size` items, and the thread `name` that hands each full one to `write`; `done` ends it.
///
/// # Errors
/// If no thread can be started.
pub fn start<T: Send + 'static, S: Send + 'static, R: Send + 'static>(
    name: &str,
    (buffers, size): (usize, usize),
    mut state: S,
    write: impl Fn(&mut S, &[T]) -> io::Result<()> + Send + 'static,
    done: impl FnOnce(S) -> io::Result<R> + Send + 'static,
) -> io::Result<(Spool<T>, Writer<R>)> {
    let (full, inbox) = mpsc::sync_channel::<Vec<T>>(buffers);
    let (outbox, empty) = mpsc::sync_channel(buffers);
    for _ in 0..buffers {
        let _ = outbox.try_send(Vec::with_capacity(size));
    }
    let work = move || {
        for mut buffer in inbox {
            write(&mut state, &buffer)?;
            buffer.clear();
            let _ = outbox.try_send(buffer);
        }
        done(state)
    };
    let writer = thread::Builder::new().name(name.to_owned()).spawn(work)?;
    Ok((Spool { current: Vec::with_capacity(size), size, full, empty }, Writer(writer)))
}

impl<T> Spool<T> {
    /// The buffer to add `items` to; `None` when there is no room for them.
    pub fn room_for(&mut self, items: usize) -> Option<&mut Vec<T>> {
        (self.current.len() + items <= self.size || self.hand_over()).then_some(&mut self.current)
    }

    /// Gives the current buffer to the writer and takes an empty one.
    fn hand_over(&mut self) -> bool {
        let Ok(empty) = self.empty.try_recv() else { return false };
        match self.full.try_send(std::mem::replace(&mut self.current, empty)) {
            Ok(()) => true,
            // The writer is gone (disk full): `finish` reports why.
            Err(TrySendError::Full(mut buffer) | TrySendError::Disconnected(mut buffer)) => {
                buffer.clear();
                self.current = buffer;
                false
            }
        }
    }

    /// Writes out what is left and waits for it.
    ///
    /// # Errors
    /// The failed write.
    pub fn finish<R>(self, writer: Writer<R>) -> io::Result<R> {
        // Blocking is fine here: the run is over.
        let _ = self.full.send(self.current);
        drop(self.full);
        match writer.0.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_room_is_written_in_order() {
        let write = |seen: &mut Vec<u32>, items: &[u32]| {
            seen.extend(items);
            Ok(())
        };
        let (mut spool, writer) = start("test", (2, 3), Vec::new(), write, Ok).unwrap();
        let mut kept = Vec::new();
        for n in 0..100 {
            if let Some(buffer) = spool.room_for(1) {
                buffer.push(n);
                kept.push(n);
            }
        }
        assert!(kept.len() >= 3);
        assert_eq!(spool.finish(writer).unwrap(), kept);
    }
}

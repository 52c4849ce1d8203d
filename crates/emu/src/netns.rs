//! Anonymous network namespaces: held by a descriptor, never by a name, so that nothing survives the process.

use crate::error::Error;
use crate::sys;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::thread;

/// A network namespace that lives as long as somebody holds it.
#[derive(Clone, Debug)]
pub struct Namespace(Arc<OwnedFd>);

impl Namespace {
    /// Makes a namespace, runs `inside` on a thread that is in it, and returns both.
    ///
    /// # Errors
    /// [`Error::NeedsRoot`] without the right to make one; else what `inside` returned.
    pub fn create<T: Send>(inside: impl FnOnce() -> Result<T, Error> + Send) -> Result<(Self, T), Error> {
        on_new_thread(|| {
            let descriptor = sys::new_network_namespace().map_err(|source| match source.kind() {
                io::ErrorKind::PermissionDenied => Error::NeedsRoot(source),
                _ => Error::system("cannot make a network namespace")(source),
            })?;
            Ok((Self(Arc::new(descriptor)), inside()?))
        })
    }

    /// Moves the calling thread into the namespace, for good: meant for threads that end there.
    ///
    /// # Errors
    /// The failed system call.
    pub fn enter(&self) -> io::Result<()> {
        sys::enter_network_namespace(self.0.as_fd())
    }

    /// Runs `inside` on a fresh thread that is in the namespace.
    ///
    /// # Errors
    /// When the namespace cannot be entered; else what `inside` returned.
    pub fn run<T: Send>(&self, inside: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
        on_new_thread(|| {
            self.enter().map_err(Error::system("cannot enter a host's network namespace"))?;
            inside()
        })
    }

    /// For a child that enters on its own.
    #[must_use]
    pub fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Threads, because a namespace belongs to a thread and a thread that has left its first one should not come back.
fn on_new_thread<T: Send>(work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

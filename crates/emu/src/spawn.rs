//! Programs in hosts: started in the host's network, ended with their parent.
//!
//! All programs are started by one thread, the nursery, because the kernel's death signal follows the thread that
//! forked, and because starting a program must not stop the engine. See `sys::enclose` for the box they live in.

use crate::error::Error;
use crate::netns::Namespace;
use crate::storage::{self, Hurry, Store};
use crate::sys::{self, Enclosure};
use crate::user::User;
use lasthop_home::scenario::Storage;
use std::ffi::CString;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A program in a host. Dropping it ends the program and everything it started.
#[derive(Debug)]
pub struct Child {
    guard: std::process::Child,
    /// Pid of the box's init, which leads the group of everything in it that did not leave the group.
    init: i32,
    reaped: bool,
    /// Of its host's storage, where that is slow.
    hurry: Option<Hurry>,
}

impl Child {
    /// The exit status if the program has ended. A program killed by signal n exits with 128 + n.
    ///
    /// # Errors
    /// The failed system call.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.guard.try_wait()?;
        self.reaped |= status.is_some();
        Ok(status)
    }

    /// Waits for the program's end.
    ///
    /// # Errors
    /// The failed system call.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.guard.wait()?;
        self.reaped = true;
        Ok(status)
    }

    /// The read end of the program's standard output, if it was piped.
    pub fn take_stdout(&mut self) -> Option<std::process::ChildStdout> {
        self.guard.stdout.take()
    }

    /// The read end of the program's standard error, if it was piped.
    pub fn take_stderr(&mut self) -> Option<std::process::ChildStderr> {
        self.guard.stderr.take()
    }

    /// Asks politely (SIGTERM), and after `grace` no more.
    pub fn stop(&mut self, grace: Duration) {
        if self.reaped {
            return;
        }
        sys::signal_group(self.init, libc::SIGTERM);
        let patience = Instant::now() + grace;
        while Instant::now() < patience {
            if !matches!(self.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.kill();
    }

    fn kill(&mut self) {
        if self.reaped {
            return;
        }
        // Init dies, the kernel kills the rest of its PID namespace, then the guard sees the end and is reaped here.
        sys::signal_group(self.init, libc::SIGKILL);
        let Some(hurry) = self.hurry.clone() else { return drop(self.wait()) };
        // Whoever reads or writes ends when the storage has answered.
        hurry.set(true);
        let _ = self.wait();
        hurry.set(false);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A program, whom it runs as, its host by number and network, and who waits for it.
type Order = (Command, Option<User>, usize, Namespace, mpsc::Sender<io::Result<Child>>);

/// The thread that starts programs. They end at the latest when it does.
#[derive(Debug)]
pub struct Nursery {
    orders: Option<mpsc::Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

impl Nursery {
    /// Starts the thread. `hosts`: name and storage of each.
    ///
    /// # Errors
    /// When no thread can be had, or not the storage.
    pub fn new(hosts: Vec<(String, Storage)>) -> Result<Self, Error> {
        let (orders, inbox) = mpsc::channel::<Order>();
        let (tell, ready) = mpsc::channel();
        let work = move || {
            let stores = match storage::set_up(&hosts) {
                Ok(stores) => stores,
                Err(error) => return drop(tell.send(Err(error))),
            };
            let _ = tell.send(Ok(()));
            for (command, user, host, namespace, answer) in inbox {
                // A caller that went away drops the child with the message, which ends it.
                let _ = answer.send(start(command, user, &stores[host], &namespace));
            }
        };
        let thread = thread::Builder::new()
            .name("nursery".into())
            .spawn(work)
            .map_err(Error::system("cannot start a thread"))?;
        let nursery = Self { orders: Some(orders), thread: Some(thread) };
        match ready.recv() {
            Ok(outcome) => outcome.map(|()| nursery),
            Err(_) => Err(Error::system("the thread that starts programs is gone")(io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// Starts `command` as `user`, or as root, in `namespace`, the network of host number `host`.
    ///
    /// # Errors
    /// Those of `Command::spawn`.
    pub fn spawn(&self, command: Command, user: Option<User>, host: usize, namespace: &Namespace) -> io::Result<Child> {
        let (answer, child) = mpsc::channel();
        let gone = || io::Error::other("the thread that starts programs is gone");
        let order = (command, user, host, namespace.clone(), answer);
        self.orders.as_ref().ok_or_else(gone)?.send(order).map_err(|_| gone())?;
        child.recv().map_err(|_| gone())?
    }
}

impl Drop for Nursery {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn start(mut command: Command, user: Option<User>, store: &Store, namespace: &Namespace) -> io::Result<Child> {
    let (mut pid_read, pid_write) = io::pipe()?;
    let enclosure = Enclosure {
        network: namespace.raw(),
        pid_pipe: pid_write.as_raw_fd(),
        parent: std::process::id().cast_signed(),
        storage: (store.source.clone(), CString::new(storage::FOLDER)?),
        user,
    };
    // The guard leads a group of its own, so that Ctrl-C in the terminal reaches us and not the programs.
    command.process_group(0);
    sys::before_exec(&mut command, enclosure);
    let guard = command.spawn()?;
    drop(pid_write);
    let mut pid = [0; 4];
    let mut child = Child { guard, init: 0, reaped: false, hurry: store.hurry.clone() };
    match pid_read.read_exact(&mut pid) {
        Ok(()) => child.init = i32::from_ne_bytes(pid),
        Err(error) => {
            let _ = child.guard.kill();
            let _ = child.wait();
            return Err(error);
        }
    }
    Ok(child)
}

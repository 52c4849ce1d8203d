//! What programs of a host store files in: `$LASTHOP_STORAGE`, in the memory of this machine, at the pace of `storage`.
//!
//! ```text
//! program --write--> kernel (FUSE, direct I/O) --> session thread --> tmpfs of the host
//!            ^                                          | due: busy_until + operation + bytes / rate
//!            +------------- answer, when it is due -- storage-clock thread
//! ```
//!
//! All of it hangs in the mount namespace of the nursery's thread, at [`FOLDER`]: a tmpfs of files per host, and in front
//! of it, for a station with `storage`, a FUSE file system that we serve. Every program's box is a copy of that
//! namespace in which its own host's file system lies on top. Nothing of it is visible outside, and all of it goes with
//! the namespaces, so `kill -9` leaves only the empty folder.

mod answers;
mod calls;
mod device;
mod files;
mod nodes;

pub use answers::Hurry;

use crate::error::Error;
use crate::players;
use crate::sys;
use answers::Answers;
use files::Files;
use fuser::{Config, Session, SessionACL};
use lasthop_core::units::Bytes;
use lasthop_home::quantity::StorageSize;
use lasthop_home::scenario::Storage;
use rustix::fs::{self, Mode, OFlags};
use std::ffi::CString;
use std::fs::Permissions;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

/// Where every program finds the storage of its host.
pub const FOLDER: &str = "/run/lasthop/storage";
/// The device through which file systems are served.
const FUSE: &str = "/dev/fuse";

/// The storage of a host, as the nursery's thread sees it, which must also drop it: a slow one ends with its last mount.
#[derive(Debug)]
pub struct Store {
    /// What to mount at [`FOLDER`] for a program of the host.
    pub source: CString,
    /// For a slow one.
    pub hurry: Option<Hurry>,
}

impl Drop for Store {
    fn drop(&mut self) {
        if self.hurry.is_some() {
            // Those who serve it live in the namespace that holds the mount: it does not go by itself before they do.
            let _ = rustix::mount::unmount(&self.source, rustix::mount::UnmountFlags::DETACH);
        }
    }
}

/// Whether slow storage can be had.
///
/// # Errors
/// [`Error::NoFuse`] with `host`, whose storage it would be.
pub fn check(host: &str) -> Result<(), Error> {
    open_fuse(host).map(drop)
}

/// Gives the calling thread a mount namespace of its own and makes a storage for each of `hosts` (name, rates) in it.
///
/// # Errors
/// [`Error::NoFuse`], or what could not be made.
pub fn set_up(hosts: &[(String, Storage)]) -> Result<Vec<Store>, Error> {
    let fail = |what: &'static str| Error::system(format!("cannot {what} {FOLDER} for the files of programs"));
    make_folder().map_err(fail("make the folder"))?;
    sys::new_mount_namespace().map_err(fail("keep to ourselves what is mounted at"))?;
    mount_files(Path::new(FOLDER), "0755", StorageSize::default()).map_err(fail("mount a tmpfs at"))?;
    let make = |(i, (host, rates)): (usize, &(String, Storage))| {
        let place = Path::new(FOLDER).join(i.to_string());
        fs::mkdir(&place, Mode::RWXU).map_err(into).map_err(fail("make a folder in"))?;
        let source = CString::new(place.as_os_str().as_encoded_bytes()).map_err(|e| fail("name")(e.into()))?;
        if !rates.is_slow() {
            mount_files(&place, "1777", rates.size).map_err(fail("mount a tmpfs in"))?;
            return Ok(Store { source, hurry: None });
        }
        let hurry = Hurry::default();
        slow(host, *rates, &place, hurry.clone())?;
        Ok(Store { source, hurry: Some(hurry) })
    };
    hosts.iter().enumerate().map(make).collect()
}

/// Programs of any user may go in, whatever our umask is.
fn make_folder() -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o755).create(FOLDER)?;
    let folders = Path::new(FOLDER).ancestors().take(2);
    folders.into_iter().try_for_each(|folder| std::fs::set_permissions(folder, Permissions::from_mode(0o755)))
}

fn into(error: rustix::io::Errno) -> std::io::Error {
    error.into()
}

fn open_fuse(host: &str) -> Result<OwnedFd, Error> {
    fs::open(FUSE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|why| Error::NoFuse { host: host.to_owned(), source: why.into() })
}

fn mount_files(place: &Path, mode: &str, size: StorageSize) -> std::io::Result<()> {
    let size = size.0.map(|Bytes(bytes)| format!(",size={bytes}")).unwrap_or_default();
    sys::mount("tmpfs", place, &format!("mode={mode}{size}"))
}

/// Mounts a file system that we serve at `place`, in front of a tmpfs beside it.
fn slow(host: &str, rates: Storage, place: &Path, hurry: Hurry) -> Result<(), Error> {
    let fail = |what: &str| Error::system(format!("cannot {what} the storage of {host}"));
    let files: PathBuf = place.with_extension("files");
    fs::mkdir(&files, Mode::RWXU).map_err(into).map_err(fail("make a folder for"))?;
    mount_files(&files, "1777", rates.size).map_err(fail("mount a tmpfs for"))?;
    let folder = fs::open(&files, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let folder = folder.map_err(into).map_err(fail("open the tmpfs of"))?;
    sys::map_large_blocks();
    let fuse = open_fuse(host)?;
    let options = "rootmode=40000,user_id=0,group_id=0,default_permissions,allow_other";
    sys::mount("fuse", place, &format!("fd={},{options}", fuse.as_raw_fd())).map_err(fail("mount"))?;
    let files = Files::new(folder, Answers::new(rates, hurry)?).map_err(fail("open"))?;
    let (tell, served) = mpsc::channel();
    start("storage", move || {
        let _ = sys::own_umask();
        let session = Session::from_fd(files, fuse, SessionACL::All, Config::default());
        let session = session.map(|session| tell.send(Ok(())).map(|()| session));
        match session {
            // It ends with its last mount, which is that of the nursery or of a program's box.
            Ok(Ok(session)) => drop(session.run()),
            Ok(Err(_)) => {}
            Err(why) => drop(tell.send(Err(why))),
        }
    })?;
    served.recv().unwrap_or_else(|_| Err(std::io::ErrorKind::BrokenPipe.into())).map_err(fail("serve"))
}

/// A thread of ours, as urgent as those of players: a storage that wakes late would be slower than it says.
fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let work = move || {
        // Without the right to it, the storage is late more often; the engine says so.
        let _ = sys::set_realtime(players::PRIORITY);
        work();
    };
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop).map_err(Error::system("cannot start a thread"))
}

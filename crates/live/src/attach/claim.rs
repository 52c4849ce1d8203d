//! One controller per interface.
//!
//! A file per interface in a folder of root's, locked by flock(2) while the interface is controlled: the kernel frees it with the
//! process, however that ends. Its name is the number of the network namespace (of nsfs, unique while it lives) and that of the
//! interface, which stays when it is renamed. What is in it, the number of the process, is for people.
//!
//! Why not an abstract Unix address: everybody may bind those. Why the file is its owner's alone: flock(2) asks for nothing but
//! an open descriptor, so that whoever may read it could hold it. A controller in a container that shares the host's network but
//! not its `/run` is not seen.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, fstat, mkdir, open, openat, statat, unlinkat};
use rustix::io::Errno;

use super::AttachError;
use crate::interface::InterfaceName;

/// Where the locks are: a folder of root's, gone with the boot, as the interfaces are. It stays, empty.
pub const LOCKS: &str = "/run/lasthop";
/// A file that somebody removes while it is opened is opened anew so often; each time somebody else was faster.
const TRIES: usize = 100;

/// Held while an interface is controlled.
#[derive(Debug)]
pub struct Claim {
    file: File,
    /// Held, so that it can be removed also when no descriptor is to be had.
    folder: OwnedFd,
    name: String,
}

impl Claim {
    /// Claims the interface of number `ifindex` in the namespace of the calling thread; its `name` is only named in errors.
    ///
    /// # Errors
    /// [`AttachError::Taken`] when another controller holds it, [`AttachError::Lock`] when that cannot be found out.
    pub fn new(name: &InterfaceName, ifindex: u32) -> Result<Self, AttachError> {
        Self::in_folder(Path::new(LOCKS), name, ifindex)
    }

    fn in_folder(folder: &Path, interface: &InterfaceName, ifindex: u32) -> Result<Self, AttachError> {
        let refused = |source| AttachError::Lock { name: interface.clone(), folder: folder.to_owned(), source };
        let namespace = std::fs::metadata("/proc/thread-self/ns/net").map_err(refused)?.ino();
        let name = format!("{namespace}-{ifindex}.lock");
        for _try in 0..TRIES {
            match lock(folder, &name) {
                Ok(Lock::Held(claim)) => return Ok(claim),
                Ok(Lock::Taken(by)) => return Err(AttachError::Taken { name: interface.clone(), by }),
                Ok(Lock::Removed) => {}
                Err(error) => return Err(refused(error)),
            }
        }
        Err(refused(io::ErrorKind::ResourceBusy.into()))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // While it is held nobody else makes one of this name; only one that was removed by hand may be another's.
        if is_in(&self.folder, &self.name, &self.file) {
            let _ = unlinkat(&self.folder, &self.name, AtFlags::empty());
        }
    }
}

/// What came of one attempt.
enum Lock {
    Held(Claim),
    /// By the process of this number, if it says so.
    Taken(Option<u32>),
    /// Folder or file went away meanwhile.
    Removed,
}

const FOLDER_FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Makes the folder of the locks where there is none: a confined controller cannot.
///
/// # Errors
/// The failed system call.
pub fn make_folder() -> io::Result<()> {
    make(Path::new(LOCKS))
}

fn make(folder: &Path) -> io::Result<()> {
    match mkdir(folder, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn lock(path: &Path, name: &str) -> io::Result<Lock> {
    // Only where it is not there: a confined thread is refused also what is.
    if !path.exists() {
        make(path)?;
    }
    let folder = match open(path, FOLDER_FLAGS, Mode::empty()) {
        Ok(folder) => folder,
        Err(Errno::NOENT) => return Ok(Lock::Removed),
        Err(error) => return Err(error.into()),
    };
    check(&folder)?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = match openat(&folder, name, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(Lock::Removed),
        Err(error) => return Err(error.into()),
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            let mut said = String::new();
            let _ = file.read_to_string(&mut said);
            return Ok(Lock::Taken(said.trim().parse().ok()));
        }
        Err(error) => return Err(error.into()),
    }
    if !is_in(&folder, name, &file) {
        return Ok(Lock::Removed);
    }
    // From here on it goes when something fails.
    let mut claim = Claim { file, folder, name: name.to_owned() };
    // A dead controller's number may stand there.
    claim.file.set_len(0)?;
    writeln!(claim.file, "{}", std::process::id())?;
    Ok(Lock::Held(claim))
}

/// Nobody but root and this user may put files there.
fn check(folder: &impl std::os::fd::AsFd) -> io::Result<()> {
    let found = fstat(folder)?;
    let refused = |why| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if found.st_uid != 0 && found.st_uid != rustix::process::geteuid().as_raw() {
        return refused(format!("it is user {}'s", found.st_uid));
    }
    if found.st_mode & 0o022 != 0 {
        return refused(format!("its mode is {:o}", found.st_mode & 0o777));
    }
    Ok(())
}

/// Whether `file` is what has this name in `folder`.
fn is_in(folder: &impl std::os::fd::AsFd, name: &str, file: &File) -> bool {
    let (Ok(own), Ok(found)) = (fstat(file), statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)) else { return false };
    (own.st_dev, own.st_ino) == (found.st_dev, found.st_ino)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    use super::*;

    /// No interface has such a number.
    const IFINDEX: u32 = 1 << 31;

    fn claim(folder: &Path) -> Result<Claim, AttachError> {
        Claim::in_folder(folder, &"t0".parse().unwrap(), IFINDEX)
    }

    fn names(folder: &Path) -> Vec<PathBuf> {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn a_second_controller_on_the_same_interface_is_refused_and_told_who_has_it() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("lasthop");
        let first = claim(&folder).unwrap();
        let error = Claim::in_folder(&folder, &"t1".parse().unwrap(), IFINDEX).unwrap_err();
        assert!(matches!(error, AttachError::Taken { by: Some(pid), .. } if pid == std::process::id()), "{error}");
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
        let [file] = names(&folder).try_into().expect("one file");
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600, "whoever may open it could hold it");
        drop(first);
        assert!(names(&folder).is_empty(), "no file is left");
        assert!(claim(&folder).is_ok());
    }

    #[test]
    fn a_dead_controllers_file_is_no_claim() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("lasthop");
        let file = std::mem::ManuallyDrop::new(claim(&folder).unwrap()).file.try_clone().unwrap();
        let path = names(&folder).remove(0);
        // As kill -9 leaves it: the file, and no lock.
        rustix::fs::flock(&file, FlockOperation::Unlock).unwrap();
        std::fs::write(&path, "4294967295\n and more than one number\n").unwrap();
        let held = claim(&folder).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        drop(held);
    }

    #[test]
    fn a_folder_or_a_file_that_others_could_have_put_there_is_refused() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("lasthop");
        std::fs::create_dir(&folder).unwrap();
        let open_to = |mode| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
        open_to(0o777);
        assert!(matches!(claim(&folder), Err(AttachError::Lock { .. })), "everybody may write there");
        open_to(0o755);
        let name = names(&{
            let _held = std::mem::ManuallyDrop::new(claim(&folder).unwrap());
            folder.clone()
        })
        .remove(0);
        std::fs::remove_file(&name).unwrap();
        let elsewhere = above.path().join("elsewhere");
        std::fs::write(&elsewhere, "as it was").unwrap();
        symlink(&elsewhere, &name).unwrap();
        assert!(matches!(claim(&folder), Err(AttachError::Lock { .. })), "a link leads elsewhere");
        assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "as it was");
        std::fs::rename(&folder, above.path().join("moved")).unwrap();
        symlink(above.path().join("moved"), &folder).unwrap();
        assert!(matches!(claim(&folder), Err(AttachError::Lock { .. })), "so does a link in the folder's place");
    }
}

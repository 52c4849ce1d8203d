//! The files that the kernel knows of: by its numbers for them, each held by a descriptor.

use fuser::{Errno, FileAttr, FileType, INodeNo};
use rustix::fs::{self, AtFlags, Mode, OFlags, Stat};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file the kernel holds a reference to.
#[derive(Debug)]
struct Node {
    /// Opened with `O_PATH`: names the file, whatever becomes of its path.
    file: OwnedFd,
    /// How often the kernel was told of it.
    lookups: u64,
}

/// All of them.
#[derive(Debug)]
pub struct Nodes {
    root: OwnedFd,
    root_inode: u64,
    known: HashMap<u64, Node>,
}

impl Nodes {
    /// Below `root`, a directory.
    ///
    /// # Errors
    /// The failed system call.
    pub fn new(root: OwnedFd) -> io::Result<Self> {
        let root_inode = fs::fstat(&root)?.st_ino;
        Ok(Self { root, root_inode, known: HashMap::new() })
    }

    /// The descriptor of a file the kernel knows.
    ///
    /// # Errors
    /// `ESTALE`, when it does not.
    pub fn get(&self, number: INodeNo) -> Result<BorrowedFd<'_>, Errno> {
        if number == INodeNo::ROOT {
            return Ok(self.root.as_fd());
        }
        self.known.get(&number.0).map(|node| node.file.as_fd()).ok_or(Errno::ESTALE)
    }

    /// Tells the kernel of what is called `name` in `parent`: its number, and what it is.
    ///
    /// # Errors
    /// Those of `openat`.
    pub fn enter(&mut self, parent: INodeNo, name: &OsStr) -> Result<FileAttr, Errno> {
        let file =
            fs::openat(self.get(parent)?, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
                .map_err(io::Error::from)?;
        let attributes = self.attributes(file.as_fd())?;
        self.known.entry(attributes.ino.0).or_insert(Node { file, lookups: 0 }).lookups += 1;
        Ok(attributes)
    }

    /// The kernel forgot `lookups` of what it was told of a file.
    pub fn forget(&mut self, number: INodeNo, lookups: u64) {
        if let Some(node) = self.known.get_mut(&number.0) {
            node.lookups = node.lookups.saturating_sub(lookups);
            if node.lookups == 0 {
                self.known.remove(&number.0);
            }
        }
    }

    /// What a file is, of any descriptor of it.
    ///
    /// # Errors
    /// Those of `fstat`.
    pub fn attributes(&self, file: BorrowedFd<'_>) -> Result<FileAttr, Errno> {
        let stat = fs::statat(file, "", AtFlags::EMPTY_PATH).map_err(io::Error::from)?;
        Ok(attributes(self.number(stat.st_ino), &stat))
    }

    /// The kernel's number of an inode of ours. 1 is the root, whatever we call it.
    #[must_use]
    pub fn number(&self, inode: u64) -> INodeNo {
        if inode == self.root_inode { INodeNo::ROOT } else { INodeNo(inode.wrapping_add(1)) }
    }
}

/// A path to the very file behind a descriptor, also one opened with `O_PATH`.
#[must_use]
pub fn path(file: BorrowedFd<'_>) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Opens the very file behind a descriptor.
///
/// # Errors
/// As `open`.
pub fn reopen(file: BorrowedFd<'_>, flags: OFlags) -> io::Result<File> {
    Ok(fs::open(path(file), flags | OFlags::CLOEXEC, Mode::empty())?.into())
}

fn attributes(ino: INodeNo, stat: &Stat) -> FileAttr {
    FileAttr {
        ino,
        size: stat.st_size as u64,
        blocks: stat.st_blocks as u64,
        atime: time(stat.st_atime, stat.st_atime_nsec as u32),
        mtime: time(stat.st_mtime, stat.st_mtime_nsec as u32),
        ctime: time(stat.st_ctime, stat.st_ctime_nsec as u32),
        crtime: UNIX_EPOCH,
        kind: kind(fs::FileType::from_raw_mode(stat.st_mode)),
        perm: (stat.st_mode & 0o7777) as u16,
        nlink: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: stat.st_rdev as u32,
        blksize: stat.st_blksize as u32,
        flags: 0,
    }
}

/// Our file type in the words of `fuser`.
#[must_use]
pub fn kind(of: fs::FileType) -> FileType {
    match of {
        fs::FileType::Directory => FileType::Directory,
        fs::FileType::Symlink => FileType::Symlink,
        fs::FileType::Fifo => FileType::NamedPipe,
        fs::FileType::Socket => FileType::Socket,
        fs::FileType::CharacterDevice => FileType::CharDevice,
        fs::FileType::BlockDevice => FileType::BlockDevice,
        _ => FileType::RegularFile,
    }
}

fn time(seconds: i64, nanos: u32) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let at = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    at.unwrap_or(UNIX_EPOCH) + Duration::from_nanos(u64::from(nanos))
}

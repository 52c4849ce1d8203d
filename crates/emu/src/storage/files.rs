//! The file system that programs see: every request is passed to a folder of ours, reads and writes at the storage's pace.
//!
//! Files are opened for direct I/O: the kernel keeps no copy of them, and asks once for each read or write of a
//! program, of at most [`LARGEST`]. Locks, and everything else that is left out here, the kernel does by itself.

use super::answers::{Answer, Answers};
use super::calls::{self, Calls, LARGEST};
use super::device::Access;
use super::nodes::{self, Nodes};
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{self, AtFlags, Dir, FallocateFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long the kernel may keep what it was told of a file. Nothing changes files but the kernel itself.
const KEEP: Duration = Duration::from_secs(1);
/// What opening for reading and writing takes from a program; the kernel has done the rest.
const OPEN: OFlags = OFlags::RDONLY.union(OFlags::WRONLY).union(OFlags::RDWR).union(OFlags::TRUNC);

/// The file system of one host.
#[derive(Debug)]
pub struct Files {
    answers: Answers,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    nodes: Nodes,
    open: HashMap<u64, Open>,
    last_handle: u64,
    calls: Calls,
}

#[derive(Debug)]
enum Open {
    File(File),
    Folder(Vec<Entry>),
}

#[derive(Debug)]
struct Entry {
    number: INodeNo,
    kind: FileType,
    name: OsString,
}

impl Files {
    /// Keeps its files in `folder`.
    ///
    /// # Errors
    /// The failed system call.
    pub fn new(folder: OwnedFd, answers: Answers) -> io::Result<Self> {
        let state = State { nodes: Nodes::new(folder)?, open: HashMap::new(), last_handle: 0, calls: Calls::default() };
        Ok(Self { answers, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn file(&self, handle: FileHandle) -> Result<&File, Errno> {
        match self.open.get(&handle.0) {
            Some(Open::File(file)) => Ok(file),
            _ => Err(Errno::EBADF),
        }
    }

    fn add(&mut self, open: Open) -> FileHandle {
        self.last_handle += 1;
        self.open.insert(self.last_handle, open);
        FileHandle(self.last_handle)
    }

    fn begins(&mut self, request: &Request, handle: FileHandle, offset: u64, bytes: u32) -> bool {
        self.calls.begins(calls::Request { thread: request.pid(), handle: handle.0, offset }, bytes)
    }

    fn entries(&self, folder: INodeNo) -> Result<Vec<Entry>, Errno> {
        let folder = nodes::reopen(self.nodes.get(folder)?, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&folder).map_err(io::Error::from)? {
            let entry = entry.map_err(io::Error::from)?;
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            entries.push(Entry { number: self.nodes.number(entry.ino()), kind: nodes::kind(entry.file_type()), name });
        }
        Ok(entries)
    }

    /// Makes `name` in `parent` by `make`, gives it to whoever asked, and tells the kernel of it.
    fn make(
        &mut self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        make: impl FnOnce(BorrowedFd<'_>) -> rustix::io::Result<()>,
    ) -> Result<FileAttr, Errno> {
        let folder = self.nodes.get(parent)?;
        make(folder).map_err(io::Error::from)?;
        let (owner, group) = (Uid::from_raw(request.uid()), Gid::from_raw(request.gid()));
        fs::chownat(folder, name, Some(owner), Some(group), AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from)?;
        self.nodes.enter(parent, name)
    }

    fn create(
        &mut self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        flags: i32,
    ) -> Result<(FileAttr, FileHandle), Errno> {
        let wanted = OFlags::from_bits_retain(flags.cast_unsigned());
        let flags = wanted & (OPEN | OFlags::EXCL) | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut made = None;
        let attributes = self.make(request, parent, name, |folder| {
            made = Some(fs::openat(folder, name, flags, permissions(mode))?);
            Ok(())
        })?;
        let file = File::from(made.ok_or(Errno::EIO)?);
        Ok((attributes, self.add(Open::File(file))))
    }

    fn change(&self, number: INodeNo, change: &Change) -> Result<FileAttr, Errno> {
        let node = self.nodes.get(number)?;
        let path = nodes::path(node);
        if change.owner.is_some() || change.group.is_some() {
            fs::chownat(node, "", change.owner, change.group, AtFlags::EMPTY_PATH).map_err(io::Error::from)?;
        }
        if let Some(mode) = change.mode {
            fs::chmod(&path, permissions(mode)).map_err(io::Error::from)?;
        }
        match (change.size, change.handle) {
            (Some(size), Some(handle)) => self.file(handle)?.set_len(size)?,
            (Some(size), None) => nodes::reopen(node, OFlags::WRONLY)?.set_len(size)?,
            (None, _) => {}
        }
        if let Some(times) = &change.times {
            fs::utimensat(fs::CWD, &path, times, AtFlags::empty()).map_err(io::Error::from)?;
        }
        self.nodes.attributes(node)
    }
}

/// What is to become of a file.
struct Change {
    mode: Option<u32>,
    owner: Option<Uid>,
    group: Option<Gid>,
    size: Option<u64>,
    handle: Option<FileHandle>,
    times: Option<Timestamps>,
}

fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o7777)
}

fn times(access: Option<TimeOrNow>, change: Option<TimeOrNow>) -> Option<Timestamps> {
    let time = |time: Option<TimeOrNow>| match time {
        None => Timespec { tv_sec: 0, tv_nsec: fs::UTIME_OMIT },
        Some(TimeOrNow::Now) => Timespec { tv_sec: 0, tv_nsec: fs::UTIME_NOW },
        Some(TimeOrNow::SpecificTime(at)) => {
            let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
            Timespec { tv_sec: since.as_secs().cast_signed(), tv_nsec: since.subsec_nanos().into() }
        }
    };
    let any = access.is_some() || change.is_some();
    any.then(|| Timestamps { last_access: time(access), last_modification: time(change) })
}

fn answer_empty(reply: ReplyEmpty, outcome: rustix::io::Result<()>) {
    match outcome {
        Ok(()) => reply.ok(),
        Err(why) => reply.error(io::Error::from(why).into()),
    }
}

fn answer_entry(reply: ReplyEntry, outcome: Result<FileAttr, Errno>) {
    match outcome {
        Ok(attributes) => reply.entry(&KEEP, &attributes, Generation(0)),
        Err(why) => reply.error(why),
    }
}

fn answer_attributes(reply: ReplyAttr, outcome: Result<FileAttr, Errno>) {
    match outcome {
        Ok(attributes) => reply.attr(&KEEP, &attributes),
        Err(why) => reply.error(why),
    }
}

fn answer_open(reply: ReplyOpen, outcome: Result<FileHandle, Errno>) {
    match outcome {
        Ok(handle) => reply.opened(handle, FopenFlags::FOPEN_DIRECT_IO),
        Err(why) => reply.error(why),
    }
}

impl Filesystem for Files {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let _ = config.set_max_write(LARGEST);
        let _ = config.set_max_readahead(LARGEST);
        // Programs may map files, where the kernel (6.6) allows it beside direct I/O.
        let _ = config.add_capabilities(InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        answer_entry(reply, self.state().nodes.enter(parent, name));
    }

    fn forget(&self, _request: &Request, number: INodeNo, lookups: u64) {
        self.state().nodes.forget(number, lookups);
    }

    fn getattr(&self, _request: &Request, number: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        let state = self.state();
        answer_attributes(reply, state.nodes.get(number).and_then(|node| state.nodes.attributes(node)));
    }

    fn setattr(
        &self,
        _request: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let (owner, group) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
        let change = Change { mode, owner, group, size, handle, times: times(atime, mtime) };
        answer_attributes(reply, self.state().change(number, &change));
    }

    fn readlink(&self, _request: &Request, number: INodeNo, reply: ReplyData) {
        let state = self.state();
        let target = state
            .nodes
            .get(number)
            .and_then(|node| fs::readlinkat(node, "", Vec::new()).map_err(|why| io::Error::from(why).into()));
        match target {
            Ok(target) => reply.data(target.to_bytes()),
            Err(why) => reply.error(why),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        device: u32,
        reply: ReplyEntry,
    ) {
        let kind = fs::FileType::from_raw_mode(mode);
        let make = |folder: BorrowedFd<'_>| fs::mknodat(folder, name, kind, permissions(mode), device.into());
        answer_entry(reply, self.state().make(request, parent, name, make));
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _umask: u32, reply: ReplyEntry) {
        let make = |folder: BorrowedFd<'_>| fs::mkdirat(folder, name, permissions(mode));
        answer_entry(reply, self.state().make(request, parent, name, make));
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let make = |folder: BorrowedFd<'_>| fs::symlinkat(target, folder, name);
        answer_entry(reply, self.state().make(request, parent, name, make));
    }

    fn link(&self, _request: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut state = self.state();
        let made = state.nodes.get(number).and_then(|node| {
            let (folder, path) = (state.nodes.get(parent)?, nodes::path(node));
            fs::linkat(fs::CWD, path, folder, name, AtFlags::SYMLINK_FOLLOW).map_err(|e| io::Error::from(e).into())
        });
        answer_entry(reply, made.and_then(|()| state.nodes.enter(parent, name)));
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        match self.state().nodes.get(parent) {
            Ok(folder) => answer_empty(reply, fs::unlinkat(folder, name, AtFlags::empty())),
            Err(why) => reply.error(why),
        }
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        match self.state().nodes.get(parent) {
            Ok(folder) => answer_empty(reply, fs::unlinkat(folder, name, AtFlags::REMOVEDIR)),
            Err(why) => reply.error(why),
        }
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let state = self.state();
        let flags = fs::RenameFlags::from_bits_retain(flags.bits());
        match (state.nodes.get(parent), state.nodes.get(new_parent)) {
            (Ok(from), Ok(to)) => answer_empty(reply, fs::renameat_with(from, name, to, new_name, flags)),
            (Err(why), _) | (_, Err(why)) => reply.error(why),
        }
    }

    fn open(&self, _request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let mut state = self.state();
        let flags = OFlags::from_bits_retain(flags.0.cast_unsigned()) & OPEN;
        let file = state.nodes.get(number).and_then(|node| Ok(nodes::reopen(node, flags)?));
        answer_open(reply, file.map(|file| state.add(Open::File(file))));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        match self.state().create(request, parent, name, mode, flags) {
            Ok((attributes, handle)) => {
                reply.created(&KEEP, &attributes, Generation(0), handle, FopenFlags::FOPEN_DIRECT_IO);
            }
            Err(why) => reply.error(why),
        }
    }

    fn read(
        &self,
        request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut state = self.state();
        let begins = state.begins(request, handle, offset, size);
        let data = state.file(handle).and_then(|file| Ok(read_all(file, offset, size as usize)?));
        drop(state);
        self.answers.schedule(Access::Read, begins, Answer::Data(reply, data));
    }

    fn write(
        &self,
        request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut state = self.state();
        let begins = state.begins(request, handle, offset, data.len() as u32);
        let written = state.file(handle).and_then(|file| Ok(file.write_at(data, offset)? as u32));
        drop(state);
        self.answers.schedule(Access::Write, begins, Answer::Written(reply, written));
    }

    fn release(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.state().open.remove(&handle.0);
        reply.ok();
    }

    /// What was written is in the storage already.
    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn opendir(&self, _request: &Request, number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let mut state = self.state();
        match state.entries(number) {
            Ok(entries) => reply.opened(state.add(Open::Folder(entries)), FopenFlags::empty()),
            Err(why) => reply.error(why),
        }
    }

    fn readdir(&self, _request: &Request, number: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let mut state = self.state();
        // From the beginning is also what rewinddir asks for: the folder as it is now.
        if offset == 0 {
            match state.entries(number) {
                Ok(entries) => drop(state.open.insert(handle.0, Open::Folder(entries))),
                Err(why) => return reply.error(why),
            }
        }
        let Some(Open::Folder(entries)) = state.open.get(&handle.0) else { return reply.error(Errno::EBADF) };
        for (entry, next) in entries.iter().zip(1..).skip(offset as usize) {
            if reply.add(entry.number, next, entry.kind, &entry.name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.state().open.remove(&handle.0);
        reply.ok();
    }

    fn statfs(&self, _request: &Request, _number: INodeNo, reply: ReplyStatfs) {
        let state = self.state();
        match state.nodes.get(INodeNo::ROOT).and_then(|root| Ok(fs::fstatvfs(root).map_err(io::Error::from)?)) {
            Ok(it) => reply.statfs(
                it.f_blocks,
                it.f_bfree,
                it.f_bavail,
                it.f_files,
                it.f_ffree,
                it.f_bsize as u32,
                it.f_namemax as u32,
                it.f_frsize as u32,
            ),
            Err(why) => reply.error(why),
        }
    }

    fn fallocate(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let flags = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        match self.state().file(handle) {
            Ok(file) => answer_empty(reply, fs::fallocate(file.as_fd(), flags, offset, length)),
            Err(why) => reply.error(why),
        }
    }
}

fn read_all(file: &File, offset: u64, size: usize) -> io::Result<Vec<u8>> {
    let mut data = vec![0; size];
    let mut filled = 0;
    while filled < size {
        match file.read_at(&mut data[filled..], offset + filled as u64)? {
            0 => break,
            more => filled += more,
        }
    }
    data.truncate(filled);
    Ok(data)
}

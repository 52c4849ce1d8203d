//! The folder of a store: made, locked, and swept at every start.

use super::index::{Index, told};
use super::record::{self, COUNTERS, MESSAGES, NEXT_BODY, UPLOADS};
use super::upload::Left;
use super::{Failure, StoreError};
use redb::{ReadableTable, ReadableTableMetadata};
use rustix::fs::{FlockOperation, flock};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Messages on disk; used by many threads at once, by one process.
pub struct Store {
    folder: PathBuf,
    pub(super) index: Index,
    /// Uploads that nobody has gone on with since, by body.
    pub(super) left: Mutex<HashMap<u64, Left>>,
    _lock: File,
}

/// What a start found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Messages that wait.
    pub messages: u64,
    /// Uploads that can be taken up again.
    pub uploads: u64,
    /// Bodies that belonged to nothing any more, removed.
    pub removed: u64,
    /// Messages whose body is gone or has another length: never sent, and not deleted.
    pub damaged: Vec<String>,
}

impl Store {
    /// Makes a store in `folder`, which is empty or not there; one that is there stays.
    ///
    /// # Errors
    /// [`StoreError::NoStore`], [`StoreError::NoIndex`], or of the system calls.
    pub fn create(folder: &Path) -> Result<(), StoreError> {
        let io = |cause| StoreError::io(folder, cause);
        if folder.join("index.redb").exists() {
            return Ok(());
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io)?;
        let is_strange = |name: &std::ffi::OsStr| !["lock", "bodies", "index.new"].iter().any(|ours| name == *ours);
        for entry in fs::read_dir(folder).map_err(io)? {
            if is_strange(&entry.map_err(io)?.file_name()) {
                let was_one = folder.join("bodies").exists() && folder.join("lock").exists();
                let folder = folder.to_owned();
                return Err(if was_one { StoreError::NoIndex(folder) } else { StoreError::NoStore(folder) });
            }
        }
        // Names and hashed secrets are nobody else's, whoever made the folder.
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).map_err(io)?;
        let _lock = lock(folder)?;
        let bodies = folder.join("bodies");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&bodies).map_err(io)?;
        if fs::read_dir(&bodies).map_err(io)?.next().is_some() {
            return Err(StoreError::NoIndex(folder.to_owned()));
        }
        Index::create(folder)
    }

    /// Opens a store, alone, and removes what a kill left behind.
    ///
    /// # Errors
    /// [`StoreError`]; nothing was deleted then.
    pub fn open(folder: &Path) -> Result<(Self, Swept), StoreError> {
        let lock = lock(folder)?;
        if !folder.join("index.redb").exists() {
            return Err(StoreError::NoIndex(folder.to_owned()));
        }
        let index = Index::open(folder)?;
        let store = Self { folder: folder.to_owned(), index, left: Mutex::default(), _lock: lock };
        let swept = store.sweep()?;
        match store.index.write(super::sender::count).map_err(|failure| told(folder, failure)) {
            // What was counted before stands; messages can be fetched, which makes room.
            Err(StoreError::DiskFull) => {}
            counted => counted?,
        }
        Ok((store, swept))
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn body(&self, number: u64) -> PathBuf {
        self.folder.join("bodies").join(number.to_string())
    }

    /// Bytes that the disk has left for us.
    ///
    /// # Errors
    /// Of the system call.
    pub fn free_bytes(&self) -> Result<u64, StoreError> {
        let free = rustix::fs::statvfs(&self.folder).map_err(|error| StoreError::io(&self.folder, error.into()))?;
        Ok(free.f_bavail.saturating_mul(free.f_frsize))
    }

    /// Bodies that the index does not name go; messages without their body are told.
    fn sweep(&self) -> Result<Swept, StoreError> {
        let mut swept = Swept::default();
        let named = self.index.read(|transaction| {
            let mut named = HashMap::new();
            let messages = transaction.open_table(MESSAGES)?;
            swept.messages = messages.len()?;
            for entry in messages.iter()? {
                let (key, value) = entry?;
                let message: record::Message = record::decode(value.value())?;
                named.insert(message.body, Some((key.value().1, message.bytes)));
            }
            let uploads = transaction.open_table(UPLOADS)?;
            swept.uploads = uploads.len()?;
            for entry in uploads.iter()? {
                named.insert(record::decode::<record::Upload>(entry?.1.value())?.body, None);
            }
            let next = super::index::counter(&transaction.open_table(COUNTERS)?, NEXT_BODY)?;
            Ok::<_, Failure>((named, next))
        });
        let (mut named, next) = named.map_err(|failure| told(&self.folder, failure))?;
        let orphans = self.compare(&mut named, next, &mut swept)?;
        swept
            .damaged
            .extend(named.into_values().flatten().map(|(number, _)| format!("message {number}: body is gone")));
        swept.damaged.sort();
        for path in orphans {
            fs::remove_file(&path).map_err(|cause| StoreError::io(&path, cause))?;
            swept.removed += 1;
        }
        Ok(swept)
    }

    /// Takes every body that is there off `named` (by body: number of the message and its length, or an upload);
    /// what is not named is returned.
    fn compare(
        &self,
        named: &mut HashMap<u64, Option<(u64, u64)>>,
        next: u64,
        swept: &mut Swept,
    ) -> Result<Vec<PathBuf>, StoreError> {
        let bodies = self.folder.join("bodies");
        let io = |cause| StoreError::io(&bodies, cause);
        let mut orphans = Vec::new();
        for entry in fs::read_dir(&bodies).map_err(io)? {
            let entry = entry.map_err(io)?;
            let Some(body) = entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok()) else { continue };
            if body >= next {
                return Err(StoreError::OlderIndex { folder: self.folder.clone(), body });
            }
            match named.remove(&body) {
                None => orphans.push(entry.path()),
                Some(None) => {}
                Some(Some((number, bytes))) => {
                    let found = entry.metadata().map_err(io)?.len();
                    if found != bytes {
                        swept.damaged.push(format!("message {number}: body has {found} bytes in place of {bytes}"));
                    }
                }
            }
        }
        Ok(orphans)
    }
}

/// The lock of a store, held as long as the file lives.
fn lock(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join("lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = file.map_err(|cause| StoreError::io(&path, cause))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(StoreError::InUse(folder.to_owned())),
        Err(error) => Err(StoreError::io(&path, error.into())),
    }
}

//! The index: transactions of redb that are on disk when they return, opened anew after its file failed.

use super::record::{
    ACCOUNTS, BYTES_IN_ALL, COUNTERS, FORMAT, KEPT, KEPT_ORDER, MESSAGES, MESSAGES_IN_ALL, NEXT_ACCOUNT, NEXT_BODY,
    NEXT_MESSAGE, UPLOADS, VERSION,
};
use super::{Failure, StoreError};
use redb::{Database, DatabaseError, ReadTransaction, ReadableDatabase, ReadableTable, WriteTransaction};
use std::cell::Cell;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Once, PoisonError, RwLock};

/// Pages kept in memory, in bytes: the index of ten thousand messages fits.
const CACHE: usize = 4 << 20;

/// See above.
pub struct Index {
    path: PathBuf,
    /// `None` after it failed: redb does not go on with a file that failed once.
    database: RwLock<Option<Database>>,
}

impl Index {
    /// A new one; appears whole or not at all.
    pub fn create(folder: &Path) -> Result<(), StoreError> {
        let (path, new) = (folder.join("index.redb"), folder.join("index.new"));
        let _ = fs::remove_file(&new);
        let file = OpenOptions::new().create_new(true).read(true).write(true).mode(0o600).open(&new);
        let file = file.map_err(|cause| StoreError::io(&new, cause))?;
        let database = Database::builder().create_file(file).map_err(|error| of(folder, error.into()))?;
        let write = || -> Result<(), Failure> {
            let transaction = database.begin_write()?;
            {
                let mut counters = transaction.open_table(COUNTERS)?;
                for (name, value) in [
                    (VERSION, FORMAT),
                    (NEXT_ACCOUNT, 1),
                    (NEXT_MESSAGE, 1),
                    (NEXT_BODY, 1),
                    (MESSAGES_IN_ALL, 0),
                    (BYTES_IN_ALL, 0),
                ] {
                    counters.insert(name, value)?;
                }
                transaction.open_table(ACCOUNTS)?;
                transaction.open_table(MESSAGES)?;
                transaction.open_table(UPLOADS)?;
                transaction.open_table(KEPT)?;
                transaction.open_table(KEPT_ORDER)?;
            }
            Ok(transaction.commit()?)
        };
        write().map_err(|failure| told(folder, failure))?;
        drop(database);
        let sync = || {
            File::open(&new)?.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(folder)?.sync_all()
        };
        sync().map_err(|cause| StoreError::io(&path, cause))
    }

    /// One that is there, with every page of it looked at.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join("index.redb");
        take_room(&path);
        let database = RwLock::new(Some(open(&path, true)?));
        let index = Self { path, database };
        let version = index.read(|transaction| counter(&transaction.open_table(COUNTERS)?, VERSION));
        match version {
            Ok(FORMAT) => Ok(index),
            Ok(other) => Err(StoreError::Damaged {
                folder: folder.to_owned(),
                why: format!("format {other}, of another release of lasthop"),
            }),
            Err(failure) => Err(told(folder, failure)),
        }
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Looks something up.
    pub fn read<T>(&self, look_up: impl FnOnce(&ReadTransaction) -> Result<T, Failure>) -> Result<T, Failure> {
        self.with(|database| look_up(&database.begin_read()?))
    }

    /// Changes something: all of it is on disk when this returns, or nothing of it is there.
    pub fn write<T>(&self, change: impl FnOnce(&WriteTransaction) -> Result<T, Failure>) -> Result<T, Failure> {
        self.with(|database| {
            let transaction = database.begin_write()?;
            let outcome = change(&transaction)?;
            transaction.commit()?;
            Ok(outcome)
        })
    }

    fn with<T>(&self, work: impl FnOnce(&Database) -> Result<T, Failure>) -> Result<T, Failure> {
        if self.database.read().unwrap_or_else(PoisonError::into_inner).is_none() {
            self.open_again()?;
        }
        let outcome = {
            let database = self.database.read().unwrap_or_else(PoisonError::into_inner);
            let Some(database) = database.as_ref() else { return Err(StoreError::DiskFull.into()) };
            work(database)
        };
        let Err(Failure::Index(error)) = outcome else { return outcome };
        if matches!(*error, redb::Error::Io(_) | redb::Error::PreviousIo) {
            *self.database.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
        Err(of(self.folder(), *error).into())
    }

    fn open_again(&self) -> Result<(), StoreError> {
        let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
        if database.is_none() {
            *database = Some(open(&self.path, false)?);
        }
        Ok(())
    }
}

/// Has the disk give the file the room that its length says: deleting needs some, on a full disk, too. Not every file
/// system can.
fn take_room(path: &Path) {
    use rustix::fs::{FallocateFlags, fallocate};
    if let Ok(file) = OpenOptions::new().write(true).open(path) {
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        let _ = fallocate(&file, FallocateFlags::empty(), 0, length);
    }
}

/// Opens the file. What is badly damaged makes redb panic: that is an error here.
fn open(path: &Path, thoroughly: bool) -> Result<Database, StoreError> {
    let folder = path.parent().unwrap_or(path);
    let attempt = || {
        let mut database = Database::builder().set_cache_size(CACHE).open(path)?;
        if thoroughly {
            database.check_integrity()?;
        }
        Ok::<_, DatabaseError>(database)
    };
    match without_panic(attempt) {
        Some(Ok(database)) => Ok(database),
        Some(Err(error)) => Err(of(folder, error.into())),
        None => Err(damaged(folder, "its length or its pages contradict its header".into())),
    }
}

/// What `attempt` returns; `None` when it panics, which is then not shown: the error that follows says what to do.
fn without_panic<T>(attempt: impl FnOnce() -> T) -> Option<T> {
    thread_local!(static ATTEMPTS: Cell<bool> = const { Cell::new(false) });
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !ATTEMPTS.get() {
                before(panic);
            }
        }));
    });
    ATTEMPTS.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(attempt));
    ATTEMPTS.set(false);
    outcome.ok()
}

/// What an error of redb means for somebody who has a store.
fn of(folder: &Path, error: redb::Error) -> StoreError {
    use std::io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    match error {
        // Less of the file than its header says, or something else than a header.
        redb::Error::Io(cause) if matches!(cause.kind(), InvalidData | InvalidInput | UnexpectedEof) => {
            damaged(folder, cause.to_string())
        }
        redb::Error::Io(cause) => StoreError::io(&folder.join("index.redb"), cause),
        redb::Error::PreviousIo => {
            StoreError::io(&folder.join("index.redb"), std::io::Error::other("it failed a moment ago"))
        }
        redb::Error::UpgradeRequired(_) => StoreError::OlderRelease(folder.to_owned()),
        redb::Error::DatabaseAlreadyOpen => StoreError::InUse(folder.to_owned()),
        other => damaged(folder, other.to_string()),
    }
}

fn damaged(folder: &Path, why: String) -> StoreError {
    StoreError::Damaged { folder: folder.to_owned(), why }
}

/// A failure outside of a transaction.
pub fn told(folder: &Path, failure: Failure) -> StoreError {
    match failure {
        Failure::Store(error) => error,
        Failure::Index(error) => of(folder, *error),
        Failure::Refused(refusal) => damaged(folder, refusal.to_string()),
    }
}

/// A counter's value.
pub fn counter(counters: &impl ReadableTable<&'static str, u64>, name: &str) -> Result<u64, Failure> {
    let found = counters.get(name)?.map(|value| value.value());
    found.ok_or_else(|| Failure::Index(Box::new(redb::Error::Corrupted(format!("no counter `{name}`")))))
}

/// Counts on by one and returns the number before.
pub fn take_number(transaction: &WriteTransaction, name: &str) -> Result<u64, Failure> {
    let mut counters = transaction.open_table(COUNTERS)?;
    let number = counter(&counters, name)?;
    counters.insert(name, number + 1)?;
    Ok(number)
}

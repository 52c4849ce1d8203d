//! What a client remembers between two runs, in a folder of its own:
//!
//! ```text
//! upload-<key>            transfer id of a message whose server has not acknowledged it; locked while it is sent.
//!                         key: of server, account, recipient, name, file, its length and time of change
//! received-<account>-<id> which file a fetched message became, until the server has deleted it
//! ```

use super::Failure;
use crate::account::Account;
use crate::durable;
use crate::protocol::{MessageId, TransferId};
use lasthop_files::Terms;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// An upload that nobody took up again for so long is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(30 * 24 * 3600);

/// The folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {}, where lasthop remembers what it was doing (--state names another folder)", path.display())]
pub struct StateError {
    path: PathBuf,
    source: io::Error,
}

/// See above.
#[derive(Clone, Debug)]
pub struct State {
    folder: PathBuf,
}

/// What tells one upload from another.
#[derive(Debug, Serialize)]
pub(super) struct UploadKey<'a> {
    pub to: &'a str,
    pub name: &'a str,
    pub file: &'a [u8],
    pub bytes: u64,
    /// Seconds and nanoseconds.
    pub changed: (i64, i64),
}

/// An upload that is not acknowledged; nobody else can have it at the same time.
#[derive(Debug)]
pub(super) struct Upload {
    pub transfer: TransferId,
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

/// A message that has become a file here while the server may still have it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    file: Vec<u8>,
    part: Vec<u8>,
    bytes: u64,
}

impl State {
    /// In `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn open(folder: &Path) -> Result<Self, StateError> {
        let failed = |source| StateError { path: folder.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        let state = Self { folder: folder.to_owned() };
        state.forget_old_uploads().map_err(failed)?;
        Ok(state)
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn forget_old_uploads(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let is_upload = entry.file_name().as_bytes().starts_with(b"upload-");
            let changed = entry.metadata().and_then(|metadata| metadata.modified());
            let age = changed.ok().and_then(|changed| SystemTime::now().duration_since(changed).ok());
            if is_upload && age.is_some_and(|age| age > FORGOTTEN) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    /// The upload of this key: the one that was not acknowledged, else a new one, on disk before it is offered.
    pub(super) fn upload(&self, account: &Account, key: &UploadKey<'_>) -> Result<Upload, Failure> {
        let key = sum(account, key);
        let path = self.folder.join(format!("upload-{}", hex(&key[..16])));
        let failed = |source| StateError { path: path.clone(), source };
        let mut file = lock(&path).map_err(failed)?.ok_or_else(|| Failure::InUse { path: path.clone() })?;
        let transfer = match read_transfer(&mut file).map_err(failed)? {
            Some(transfer) => transfer,
            None => {
                let transfer = new_transfer().map_err(failed)?;
                write_transfer(&mut file, transfer).and_then(|()| durable::sync_folder(&path)).map_err(failed)?;
                transfer
            }
        };
        Ok(Upload { transfer, path, _file: file })
    }

    fn mark_path(&self, account: &Account, message: MessageId) -> PathBuf {
        self.folder.join(format!("received-{}-{message}", account_key(account)))
    }

    /// Remembers that `part` becomes `file`.
    pub(super) fn mark(&self, account: &Account, message: MessageId, mark: &Mark) -> Result<(), Failure> {
        let path = self.mark_path(account, message);
        let bytes = postcard::to_allocvec(mark).expect("a mark can be encoded");
        durable::replace(&path, &bytes, 0o600).map_err(|source| StateError { path, source }.into())
    }

    /// What is remembered of a message.
    pub(super) fn marked(&self, account: &Account, message: MessageId) -> Result<Option<Mark>, Failure> {
        let path = self.mark_path(account, message);
        match lasthop_files::read(&path, Terms::CONFIGURATION) {
            Ok(bytes) => Ok(postcard::from_bytes(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StateError { path, source }.into()),
        }
    }

    /// Messages of which something is remembered.
    pub(super) fn all_marked(&self, account: &Account) -> Result<Vec<MessageId>, Failure> {
        let failed = |source| StateError { path: self.folder.clone(), source };
        let prefix = format!("received-{}-", account_key(account));
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name().into_string().unwrap_or_default();
            // A mark that was being written when everything ended is called `.. .new`.
            let id = name.strip_prefix(&prefix).and_then(|rest| rest.split('.').next()?.parse().ok());
            all.extend(id.map(MessageId));
        }
        Ok(all)
    }

    /// The server has deleted the message, or will: nothing of it need be remembered, nor a mark that a killed process had half
    /// written.
    pub(super) fn forget(&self, account: &Account, message: MessageId) -> Result<(), Failure> {
        let failed = |source| StateError { path: self.folder.clone(), source };
        let mark = self.mark_path(account, message);
        let name = mark.file_name().unwrap_or_default().as_bytes();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let found = entry.file_name();
            let rest = found.as_bytes().strip_prefix(name);
            if rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with(b".") && rest.ends_with(b".new"))) {
                remove(&entry.path()).map_err(failed)?;
            }
        }
        Ok(())
    }
}

impl Upload {
    /// It is acknowledged, or will never be: the same file sent again is a new message.
    pub fn forget(self) -> Result<(), Failure> {
        remove(&self.path).map_err(|source| StateError { path: self.path.clone(), source }.into())
    }
}

impl Mark {
    /// `part` becomes `file`; both absolute.
    pub fn new(file: &Path, part: &Path, bytes: u64) -> Self {
        let text = |path: &Path| path.as_os_str().as_bytes().to_vec();
        Self { file: text(file), part: text(part), bytes }
    }

    /// The file, if the message became it before everything ended.
    pub fn file_in_place(self) -> Option<PathBuf> {
        let path = |bytes| PathBuf::from(OsString::from_vec(bytes));
        let (file, part) = (path(self.file), path(self.part));
        let is_whole = fs::symlink_metadata(&file).is_ok_and(|m| m.is_file() && m.len() == self.bytes);
        (is_whole && fs::symlink_metadata(part).is_err()).then_some(file)
    }
}

/// What tells an account's files from another's, in names of files.
pub(super) fn account_key(account: &Account) -> String {
    hex(&sum(account, &())[..4])
}

fn sum(account: &Account, key: &impl Serialize) -> Vec<u8> {
    let bytes = postcard::to_allocvec(&(account.pin.to_string(), &account.account, key)).expect("a key can be encoded");
    digest(&SHA256, &bytes).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Removes a file so that it does not come back after a crash.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome.and_then(|()| durable::sync_folder(path)),
    }
}

/// Opens or makes a file that nobody else can open so until it is closed; `None` when somebody has.
pub(super) fn lock(path: &Path) -> io::Result<Option<File>> {
    loop {
        let nofollow = libc::O_NOFOLLOW;
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
        let file = options.clone().mode(0o600).custom_flags(nofollow).open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            // A file system that knows no locks: better than not to work there.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
        // Whoever had it before may have removed it meanwhile.
        let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        if fs::symlink_metadata(path).is_ok_and(|there| file.metadata().is_ok_and(|here| id(here) == id(there))) {
            return Ok(Some(file));
        }
    }
}

/// `None`: nothing, or half of it, which was never offered.
fn read_transfer(file: &mut File) -> io::Result<Option<TransferId>> {
    let mut bytes = Vec::new();
    file.take(64).read_to_end(&mut bytes)?;
    let digits = bytes.strip_suffix(b"\n").filter(|digits| digits.len() == 32);
    let text = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    Ok(text.and_then(|text| u128::from_str_radix(text, 16).ok()).map(|bits| TransferId(bits.to_be_bytes())))
}

fn write_transfer(file: &mut File, transfer: TransferId) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.set_len(0)?;
    writeln!(file, "{}", hex(&transfer.0))?;
    file.sync_all()
}

fn new_transfer() -> io::Result<TransferId> {
    let mut bits = [0; 16];
    SystemRandom::new().fill(&mut bits).map_err(|_| io::Error::other("no random numbers"))?;
    Ok(TransferId(bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Secret;

    fn account(name: &str) -> Account {
        let pin = "ab".repeat(32).parse().unwrap();
        Account { server: "a:1".into(), pin, account: name.into(), secret: Secret("k".into()) }
    }

    fn key(bytes: u64) -> UploadKey<'static> {
        UploadKey { to: "ben", name: "a.wav", file: b"/a.wav", bytes, changed: (1, 2) }
    }

    #[test]
    fn an_upload_keeps_its_id_until_it_is_acknowledged_and_nobody_else_has_it_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::open(&folder.path().join("new/state")).unwrap();
        let first = state.upload(&account("anna"), &key(7)).unwrap();
        assert!(matches!(state.upload(&account("anna"), &key(7)), Err(Failure::InUse { .. })));
        let id = first.transfer;
        drop(first);
        let again = state.upload(&account("anna"), &key(7)).unwrap();
        assert_eq!(again.transfer, id);
        assert_ne!(state.upload(&account("anna"), &key(8)).unwrap().transfer, id, "the file has changed");
        assert_ne!(state.upload(&account("carla"), &key(7)).unwrap().transfer, id, "somebody else sends it");
        again.forget().unwrap();
        assert_ne!(state.upload(&account("anna"), &key(7)).unwrap().transfer, id, "sent twice on purpose");
    }

    #[test]
    fn half_a_state_file_counts_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::open(folder.path()).unwrap();
        let id = state.upload(&account("anna"), &key(7)).unwrap().transfer;
        let path = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for torn in ["", &text[..20], "not even hexadecimal digits here\n"] {
            fs::write(&path, torn).unwrap();
            assert_ne!(state.upload(&account("anna"), &key(7)).unwrap().transfer, id);
        }
        fs::write(&path, &text).unwrap();
        assert_eq!(state.upload(&account("anna"), &key(7)).unwrap().transfer, id);
    }

    #[test]
    fn an_upload_that_nobody_took_up_is_forgotten_after_a_month() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::open(folder.path()).unwrap();
        drop((state.upload(&account("anna"), &key(7)), state.upload(&account("anna"), &key(8))));
        let old = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let month = SystemTime::now() - FORGOTTEN - Duration::from_secs(60);
        File::options().write(true).open(&old).unwrap().set_modified(month).unwrap();
        State::open(folder.path()).unwrap();
        assert!(!old.exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_mark_says_whether_the_message_became_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let state = State::open(&folder.path().join("state")).unwrap();
        let (file, part) = (folder.path().join("a"), folder.path().join("a.part"));
        let (anna, id) = (account("anna"), MessageId(3));
        state.mark(&anna, id, &Mark::new(&file, &part, 2)).unwrap();
        let in_place = || state.marked(&anna, id).unwrap().and_then(Mark::file_in_place);
        fs::write(&part, "ab").unwrap();
        assert_eq!(in_place(), None, "not renamed yet");
        fs::write(&file, "").unwrap();
        assert_eq!(in_place(), None, "the name alone is taken");
        fs::rename(&part, &file).unwrap();
        assert_eq!(in_place(), Some(file.clone()));
        assert_eq!(state.marked(&anna, MessageId(4)).unwrap(), None);
        fs::write(folder.path().join("state").join(format!("received-{}-3.77.new", account_key(&anna))), "").unwrap();
        assert_eq!(state.all_marked(&anna).unwrap(), [id, id]);
        state.mark(&anna, MessageId(33), &Mark::new(&file, &part, 2)).unwrap();
        state.forget(&anna, id).unwrap();
        assert_eq!(state.all_marked(&anna).unwrap(), [MessageId(33)]);
        state.forget(&anna, MessageId(33)).unwrap();
        assert!(state.all_marked(&anna).unwrap().is_empty());
        state.forget(&anna, id).unwrap();
        assert_eq!(state.marked(&anna, id).unwrap(), None);
    }
}

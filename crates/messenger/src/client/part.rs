//! A message that is being fetched: the file that holds what there is of it, and how it takes its place.

use super::state::{self, Mark};
use super::{Client, Failure, name};
use crate::durable;
use crate::protocol::{Listed, MessageId};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// `NAME.<account>-<message>.part` in the folder where NAME shall be; nobody else has it at the same time.
pub(super) struct Part {
    pub file: File,
    pub path: PathBuf,
    /// The message's name, cleaned.
    pub name: String,
    folder: PathBuf,
}

impl Part {
    /// What there is of the message in `folder`: at first nothing.
    pub fn open(client: &Client, folder: &Path, listed: &Listed) -> Result<Self, Failure> {
        let folder = folder.canonicalize().map_err(Failure::file("write into", folder))?;
        let name = name::clean(&listed.name, listed.message);
        let path = folder.join(format!("{name}.{}-{}.part", state::account_key(&client.account), listed.message));
        let locked = state::lock(&path).map_err(Failure::file("write", &path))?;
        let file = locked.ok_or_else(|| Failure::InUse { path: path.clone() })?;
        let part = Self { file, path, name, folder };
        if part.length()? > listed.bytes {
            part.cut()?;
        }
        Ok(part)
    }

    /// Part files of the account in `folder`, and of which messages they are.
    pub fn all(client: &Client, folder: &Path) -> Result<Vec<(MessageId, PathBuf)>, Failure> {
        let key = state::account_key(&client.account);
        let of = |path: &Path| {
            let name = path.file_name()?.to_str()?.strip_suffix(".part")?;
            let (_, last) = name.rsplit_once('.')?;
            let id = last.strip_prefix(&key)?.strip_prefix('-')?;
            id.parse().ok().map(MessageId)
        };
        let mut all = Vec::new();
        for entry in fs::read_dir(folder).map_err(Failure::file("read", folder))? {
            let path = entry.map_err(Failure::file("read", folder))?.path();
            all.extend(of(&path).map(|id| (id, path)));
        }
        Ok(all)
    }

    /// Removes a part whose message is nowhere any more, unless somebody is at it.
    pub fn discard(path: &Path) -> Result<(), Failure> {
        match state::lock(path).map_err(Failure::file("remove", path))? {
            Some(_lock) => fs::remove_file(path).map_err(Failure::file("remove", path)),
            None => Ok(()),
        }
    }

    /// Bytes that there are.
    pub fn length(&self) -> Result<u64, Failure> {
        Ok(self.file.metadata().map_err(Failure::file("read", &self.path))?.len())
    }

    /// Begins anew.
    pub fn cut(&self) -> Result<(), Failure> {
        self.file.set_len(0).map_err(Failure::file("write", &self.path))
    }

    /// Removes it.
    pub fn remove(self) -> Result<(), Failure> {
        fs::remove_file(&self.path).map_err(Failure::file("remove", &self.path))
    }

    /// What it means that storage did not take something.
    pub fn unwritten(&self, source: io::Error) -> Failure {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Failure::Full { name: self.name.clone(), bytes: self.length().unwrap_or(0), part: self.path.clone() }
            }
            _ => Failure::file("write", &self.path)(source),
        }
    }

    /// The whole message becomes a file of its own name, or with a number behind it if there is one: safe in storage when
    /// this returns. Marked before, so that after a crash it is known.
    pub fn take_place(self, client: &Client, listed: &Listed) -> Result<PathBuf, Failure> {
        self.file.sync_all().map_err(|error| self.unwritten(error))?;
        for number in 1..=u32::MAX {
            let name = if number == 1 { self.name.clone() } else { name::numbered(&self.name, number) };
            let path = self.folder.join(name);
            if fs::symlink_metadata(&path).is_ok() {
                continue;
            }
            let mark = Mark::new(&path, &self.path, listed.bytes);
            client.state.mark(&client.account, listed.message, &mark)?;
            match rename_new(&self.path, &path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                outcome => {
                    let placed = outcome.and_then(|()| durable::sync_folder(&path));
                    placed.map_err(Failure::file("write", &path))?;
                    return Ok(path);
                }
            }
        }
        Err(Failure::file("write", &self.path)(io::ErrorKind::AlreadyExists.into()))
    }
}

/// Renames, unless there is something at `to`.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // A file system or kernel that cannot: the name is taken first, and then replaced.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            OpenOptions::new().write(true).create_new(true).open(to)?;
            fs::rename(from, to).inspect_err(|_| drop(fs::remove_file(to)))
        }
        outcome => Ok(outcome?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_renamed_over() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&from, "new").unwrap();
        fs::write(&to, "old").unwrap();
        assert_eq!(rename_new(&from, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        fs::remove_file(&to).unwrap();
        rename_new(&from, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"new");
    }
}

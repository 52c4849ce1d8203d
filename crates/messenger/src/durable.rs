//! Files that survive a crash whole: the old or the new, nothing in between.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Puts `bytes` in the place of `path`; on disk when it returns. `mode` is that of a new file, less the umask's bits.
///
/// # Errors
/// Of the system calls; the file is then as it was, or new and not surely on disk if only its folder could not be synced.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut beside = path.file_name().unwrap_or_default().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(beside);
    let written = write(&beside, bytes, mode).and_then(|()| fs::rename(&beside, path));
    if let Err(error) = written {
        let _ = fs::remove_file(&beside);
        return Err(error);
    }
    sync_folder(path)
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    // One that is there was left by a process that was killed, or put there for us to write into.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes sure that the folder of `path` has on disk what was made, renamed or removed there.
///
/// # Errors
/// Of the system calls; a file system that cannot sync folders is none.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    match File::open(folder_of(path)).and_then(|folder| folder.sync_all()) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
        outcome => outcome,
    }
}

/// The folder that `path` is in.
#[must_use]
pub fn folder_of(path: &Path) -> PathBuf {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new(".")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_lies_in_the_way_is_neither_written_to_nor_taken_for_ours() {
        let folder = tempfile::tempdir().unwrap();
        let (path, elsewhere) = (folder.path().join("a.toml"), folder.path().join("elsewhere"));
        fs::write(&elsewhere, "mine").unwrap();
        symlink(&elsewhere, folder.path().join(format!("a.toml.{}.new", std::process::id()))).unwrap();
        replace(&path, b"secret", 0o600).unwrap();
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mine");
        assert_eq!(fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_is_replaced_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.toml");
        for text in ["one", "two"] {
            replace(&path, text.as_bytes(), 0o600).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert!(replace(folder.path(), b"a folder is no file", 0o600).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

//! Reads a file as a whole: one whose kind and length are known, and a secret only where nobody else can read it.
//!
//! Configuration, scenarios, accounts, profiles and keys are named by whoever starts a command, often as root. A device or a
//! FIFO has no length and may have no end (`/dev/zero` fills the memory), opening one may wait for ever or do something (a
//! watchdog is started by it), and a folder gives a cause that nobody understands. So the kind is looked at before the file is
//! opened and again of what was opened, and never more is read than may be there.
//!
//! Source: open(2), `O_NONBLOCK` (a FIFO opens without a writer), inode(7).

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Longest file of configuration, scenario, account or key, in bytes: 1 MiB. The longest of this repository, a scenario of a
/// hundred stations, has 20 kB.
pub const LONGEST: u64 = 1 << 20;

/// What may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// At most so many bytes.
    pub most_bytes: u64,
    /// A pipe is taken, too, as a shell's `<(COMMAND)` is one: for what its user reads for its user, not for root's daemon,
    /// which would wait for whoever has the other end.
    pub may_be_a_pipe: bool,
    /// Group and others must not be able to read it.
    pub is_secret: bool,
}

impl Terms {
    /// Configuration of a daemon: a regular file.
    pub const CONFIGURATION: Self = Self { most_bytes: LONGEST, may_be_a_pipe: false, is_secret: false };
    /// What a user's command reads for that user: a regular file or a pipe.
    pub const FOR_ITS_USER: Self = Self { may_be_a_pipe: true, ..Self::CONFIGURATION };
    /// A secret of a user: as before, and readable by its owner alone.
    pub const SECRET: Self = Self { is_secret: true, ..Self::FOR_ITS_USER };
    /// A secret of a daemon.
    pub const SECRET_OF_A_DAEMON: Self = Self { is_secret: true, ..Self::CONFIGURATION };
}

/// Reads the text in `path`.
///
/// # Errors
/// Of the system calls; what is not as in `terms`, or no UTF-8, is [`io::ErrorKind::InvalidInput`] and says why, and what to do.
pub fn read_text(path: &Path, terms: Terms) -> io::Result<String> {
    String::from_utf8(read(path, terms)?).map_err(|_| refusal("it is not text (UTF-8)".to_owned()))
}

/// Reads the bytes in `path`.
///
/// # Errors
/// As [`read_text`].
pub fn read(path: &Path, terms: Terms) -> io::Result<Vec<u8>> {
    check(path, &fs::metadata(path)?, terms)?;
    // Not to wait for a writer if it became a FIFO meanwhile; of a pipe that is wanted it would make reading fail.
    let at_once = if terms.may_be_a_pipe { 0 } else { libc::O_NONBLOCK };
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOCTTY | at_once).open(path)?;
    check(path, &file.metadata()?, terms)?;
    whole(file, terms.most_bytes)
}

/// All of it, unless there is more than `most_bytes`: what has no length is told by what comes.
fn whole(file: File, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes { Err(too_long(most_bytes)) } else { Ok(bytes) }
}

fn check(path: &Path, about: &Metadata, terms: Terms) -> io::Result<()> {
    let kind = about.file_type();
    if !(kind.is_file() || terms.may_be_a_pipe && kind.is_fifo()) {
        let or = if terms.may_be_a_pipe { " or a pipe" } else { "" };
        return Err(refusal(format!("it is {}, and only a regular file{or} is read, which has an end", called(kind))));
    }
    if kind.is_file() && about.len() > terms.most_bytes {
        return Err(too_long(terms.most_bytes));
    }
    let mode = about.permissions().mode() & 0o7777;
    if terms.is_secret && kind.is_file() && mode & 0o077 != 0 {
        let path = path.display();
        return Err(refusal(format!(
            "it holds a secret, and others than its owner can use it (mode {mode:04o}): chmod 600 {path}"
        )));
    }
    Ok(())
}

fn called(kind: fs::FileType) -> &'static str {
    match kind {
        kind if kind.is_dir() => "a directory",
        kind if kind.is_fifo() => "a pipe (FIFO)",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_char_device() => "a character device",
        _ => "a block device",
    }
}

fn too_long(most_bytes: u64) -> io::Error {
    refusal(format!("it is larger than {} KiB, the most that is read of such a file", most_bytes >> 10))
}

fn refusal(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::process::{Command, Stdio};

    fn said(path: &Path, terms: Terms) -> String {
        let error = read_text(path, terms).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
        error.to_string()
    }

    fn mkfifo(path: &Path) {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    #[test]
    fn what_has_no_end_is_refused_without_being_opened_and_what_it_is_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let (fifo, socket) = (folder.path().join("fifo"), folder.path().join("socket"));
        mkfifo(&fifo);
        let _listener = UnixListener::bind(&socket).unwrap();
        let cases: [(&Path, &str); 4] = [
            (Path::new("/dev/zero"), "a character device"),
            (folder.path(), "a directory"),
            (&fifo, "a pipe"),
            (&socket, "a socket"),
        ];
        for (path, says) in cases {
            assert!(said(path, Terms::CONFIGURATION).contains(says), "{}", path.display());
        }
        let missing = read(&folder.path().join("none"), Terms::CONFIGURATION).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_is_read_up_to_its_bound_and_not_beyond() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long.toml");
        for (bytes, is_read) in [(0, true), (LONGEST, true), (LONGEST + 1, false)] {
            fs::write(&path, vec![b' '; bytes as usize]).unwrap();
            assert_eq!(
                read(&path, Terms::CONFIGURATION).is_ok_and(|read| read.len() as u64 == bytes),
                is_read,
                "{bytes}"
            );
        }
        assert!(said(&path, Terms::CONFIGURATION).contains("1024 KiB"));
        fs::write(&path, [0xff]).unwrap();
        assert!(said(&path, Terms::CONFIGURATION).contains("not text"));
        // Of these the kernel says that they have no bytes.
        assert!(read_text(Path::new("/proc/self/status"), Terms::CONFIGURATION).unwrap().contains("VmRSS"));
    }

    #[test]
    fn a_pipe_is_read_where_it_may_be_one_and_up_to_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        mkfifo(&fifo);
        let read_from = |command: &str| {
            let writer = format!("{command} > {}", fifo.display());
            let mut writer = Command::new("sh").args(["-c", &writer]).stderr(Stdio::null()).spawn().unwrap();
            let read = read(&fifo, Terms::FOR_ITS_USER);
            writer.wait().unwrap();
            read
        };
        assert_eq!(read_from("echo a").unwrap(), b"a\n");
        assert!(read_from("cat /dev/zero").unwrap_err().to_string().contains("1024 KiB"), "and it ends");
    }

    #[test]
    fn a_secret_that_others_can_read_is_refused_with_what_to_type() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anna.toml");
        fs::write(&path, "secret").unwrap();
        for (mode, is_read) in [(0o600, true), (0o400, true), (0o644, false), (0o640, false), (0o602, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read(&path, Terms::SECRET).is_ok(), is_read, "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let said = said(&path, Terms::SECRET);
        assert!(said.contains("mode 0644") && said.ends_with(&format!("chmod 600 {}", path.display())), "{said}");
        assert!(read(&path, Terms::FOR_ITS_USER).is_ok());
    }
}

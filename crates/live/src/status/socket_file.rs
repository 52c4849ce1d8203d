//! The file of a Unix socket, and the folder that is made for it. Each goes with its value, so that neither is left behind where
//! something fails that comes after it.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::net::{self, SocketAddrUnix};

/// Mode of the sockets: their owner's alone, who connects may learn what runs here, and take over.
pub(super) const SOCKET_MODE: u32 = 0o600;
/// Mode of a folder that is made for them: others may see that they are there, and put nothing beside them.
pub(super) const FOLDER_MODE: u32 = 0o755;

/// A socket's file. Dropping it removes it, unless somebody else has put another one in its place.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// None as long as it is not known: it was made a moment ago.
    inode: Option<u64>,
}

impl SocketFile {
    /// Binds a Unix socket to `path`, with the mode of our sockets whatever the umask is: bind(2) takes it from the socket, of which
    /// the umask can take away but add nothing. Set afterwards alone, there would be a moment at which anybody can connect.
    ///
    /// Source: unix(7); `unix_bind_bsd` in `net/unix/af_unix.c`.
    ///
    /// # Errors
    /// Of the system calls; no file is left then.
    pub fn bind(socket: &impl AsFd, path: &Path) -> io::Result<Self> {
        rustix::fs::fchmod(socket, rustix::fs::Mode::from_raw_mode(SOCKET_MODE))?;
        net::bind(socket, &SocketAddrUnix::new(path)?)?;
        let mut file = Self { path: path.to_owned(), inode: None };
        // What the umask took.
        std::fs::set_permissions(path, Permissions::from_mode(SOCKET_MODE))?;
        file.inode = Some(std::fs::symlink_metadata(path)?.ino());
        Ok(file)
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours =
            |inode| std::fs::symlink_metadata(&self.path).is_ok_and(|found: std::fs::Metadata| found.ino() == inode);
        if self.inode.is_none_or(is_ours) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A folder that was made here. Dropping it removes it, unless somebody else has put something there.
#[derive(Debug)]
pub(super) struct MadeFolder(PathBuf);

impl MadeFolder {
    /// Makes the folder, with its mode whatever the umask is; none where it is there already, or cannot be made.
    pub(super) fn new(folder: &Path) -> Option<Self> {
        DirBuilder::new().mode(FOLDER_MODE).create(folder).ok()?;
        // What the umask took; without it fewer may look.
        let _ = std::fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE));
        Some(Self(folder.to_owned()))
    }
}

impl Drop for MadeFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketType, socket};

    #[test]
    fn a_file_that_somebody_else_put_there_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sock");
        let bind = || {
            let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
            SocketFile::bind(&socket, &path).unwrap()
        };
        let first = bind();
        // Beside it for a moment, so that its number is another one.
        std::fs::rename(&path, folder.path().join("aside")).unwrap();
        let second = bind();
        drop(first);
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
    }
}

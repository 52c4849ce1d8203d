//! Serves the status without ever making the control loop wait: few clients, no blocking, a deadline for each.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use lasthop_core::units::{Span, Time};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

use super::socket_file::{MadeFolder, SocketFile};

/// More clients at once than anybody needs; further ones wait in the kernel's queue.
const MOST_CLIENTS: usize = 8;
/// Clients that wait in the kernel's queue: std's number for listeners.
const BACKLOG: i32 = 128;
/// A client that reads nothing for so long is dropped.
const PATIENCE: Span = Span::from_secs(2);
/// Nobody is let in for so long after the kernel refused that, for want of descriptors or memory: it says again and again that
/// somebody waits.
const REST: Span = Span::from_millis(100);

/// Why the status cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Another controller answers there.
    #[error(
        "a controller is already running and answers at {0}; stop it, let this one take over (--take-over), or choose another path with --socket"
    )]
    InUse(PathBuf),
    /// The path is something else.
    #[error("{0} exists and is not a socket; choose another path with --socket")]
    NotASocket(PathBuf),
    /// The socket cannot be made.
    #[error("the status socket {path} cannot be made; choose a writable path with --socket")]
    Refused {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A client that has not got everything yet.
#[derive(Debug)]
struct Client {
    stream: UnixStream,
    text: Vec<u8>,
    sent: usize,
    until: Time,
}

/// The socket and its clients. Dropping it removes the socket.
#[derive(Debug)]
pub struct Server {
    // The file goes before its folder.
    _file: SocketFile,
    folder: Option<MadeFolder>,
    listener: UnixListener,
    clients: Vec<Client>,
    /// Until when nobody is let in.
    rests_until: Time,
}

impl Server {
    /// Serves at `path`. A socket that nobody answers at is a dead controller's and is replaced.
    ///
    /// # Errors
    /// When somebody answers there, or the path cannot be used.
    pub fn new(path: &Path) -> Result<Self, ServerError> {
        let refused = |source| ServerError::Refused { path: path.to_owned(), source };
        remove_dead(path)?;
        let folder = path.parent().and_then(MadeFolder::new);
        let (listener, file) = listen(path).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => ServerError::InUse(path.to_owned()),
            _ => refused(source),
        })?;
        listener.set_nonblocking(true).map_err(refused)?;
        Ok(Self { _file: file, folder, listener, clients: Vec::new(), rests_until: Time::ZERO })
    }

    /// The folder of the socket was made for it, and goes with it.
    #[must_use]
    pub const fn made_folder(&self) -> bool {
        self.folder.is_some()
    }

    /// Descriptors to wait for at `now`: readable first, then writable ones.
    pub fn waits_for(&self, now: Time) -> (Option<BorrowedFd<'_>>, impl Iterator<Item = BorrowedFd<'_>>) {
        let room = self.clients.len() < MOST_CLIENTS && now >= self.rests_until;
        (room.then(|| self.listener.as_fd()), self.clients.iter().map(|c| c.stream.as_fd()))
    }

    /// Somebody has not got everything yet.
    #[must_use]
    pub const fn has_clients(&self) -> bool {
        !self.clients.is_empty()
    }

    /// Answers new clients with what `status` makes and goes on with the others; never waits.
    pub fn serve(&mut self, now: Time, mut status: impl FnMut() -> Vec<u8>) {
        while self.clients.len() < MOST_CLIENTS {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) => {
                    if error.kind() != io::ErrorKind::WouldBlock {
                        self.rests_until = now + REST;
                    }
                    break;
                }
            };
            if stream.set_nonblocking(true).is_ok() {
                self.clients.push(Client { stream, text: status(), sent: 0, until: now + PATIENCE });
            }
            self.clients.retain_mut(|client| client.is_waiting(now));
        }
        self.clients.retain_mut(|client| client.is_waiting(now));
    }
}

impl Client {
    /// Sends what fits; false when everything is sent or the client is lost.
    fn is_waiting(&mut self, now: Time) -> bool {
        while self.sent < self.text.len() {
            match self.stream.write(&self.text[self.sent..]) {
                Ok(0) => return false,
                Ok(n) => {
                    self.sent += n;
                    self.until = now + PATIENCE;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock && now < self.until,
            }
        }
        false
    }
}

/// A listening socket at `path`, with its mode from its first moment.
fn listen(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let file = SocketFile::bind(&socket, path)?;
    net::listen(&socket, BACKLOG)?;
    Ok((socket.into(), file))
}

fn remove_dead(path: &Path) -> Result<(), ServerError> {
    use std::os::unix::fs::FileTypeExt;
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(ServerError::NotASocket(path.to_owned()));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|source| ServerError::Refused { path: path.to_owned(), source })
        }
        _ => Err(ServerError::InUse(path.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;

    use super::super::socket_file::{FOLDER_MODE, SOCKET_MODE};

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_client_gets_everything_and_then_the_end() {
        let folder = folder();
        let path = folder.path().join("new/x.sock");
        let mut server = Server::new(&path).unwrap();
        let mut client = UnixStream::connect(&path).unwrap();
        server.serve(Time::ZERO, || b"{}".to_vec());
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        assert_eq!(text, "{}");
        drop(server);
        assert!(!path.parent().unwrap().exists(), "the socket and the folder made for it are gone");
    }

    #[test]
    fn a_client_that_does_not_read_stalls_nobody_and_is_dropped() {
        let folder = folder();
        let path = folder.path().join("x.sock");
        let mut server = Server::new(&path).unwrap();
        let lazy: Vec<_> = (0..20).map(|_| UnixStream::connect(&path).unwrap()).collect();
        server.serve(Time::ZERO, || vec![b'x'; 4 << 20]);
        assert_eq!(server.clients.len(), MOST_CLIENTS);
        server.serve(Time::ZERO + PATIENCE, || vec![b'x'; 4 << 20]);
        assert!(server.clients.iter().all(|c| c.until > Time::ZERO + PATIENCE), "the first ones were dropped");
        drop(lazy);
    }

    /// Without memory or descriptors accept(2) fails, and the client still waits; here because the socket does not listen.
    #[test]
    fn a_client_that_cannot_be_let_in_is_waited_for_a_moment_later() {
        let folder = folder();
        let mut server = Server::new(&folder.path().join("x.sock")).unwrap();
        let waits = |server: &Server, after: Span| server.waits_for(Time::ZERO + after).0.is_some();
        server.serve(Time::ZERO, Vec::new);
        assert!(waits(&server, Span::ZERO), "nobody there is no failure");
        let deaf = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).unwrap();
        server.listener = deaf.into();
        server.serve(Time::ZERO, Vec::new);
        assert!(!waits(&server, Span::ZERO) && waits(&server, REST));
    }

    #[test]
    fn a_dead_controllers_socket_is_replaced_and_a_living_ones_is_not() {
        let folder = folder();
        let path = folder.path().join("x.sock");
        drop(UnixListener::bind(&path).unwrap()); // leaves the file behind, as a killed process does
        let living = Server::new(&path).unwrap();
        assert!(matches!(Server::new(&path), Err(ServerError::InUse(_))));
        drop(living);
        std::fs::write(&path, "a file").unwrap();
        assert!(matches!(Server::new(&path), Err(ServerError::NotASocket(_))));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a file");
    }

    #[test]
    fn folder_and_sockets_have_their_modes_whatever_the_umask_is() {
        // The umask is the process's: every one is tried in a process of its own.
        if let Some(umask) = std::env::var_os("LASTHOP_TEST_UMASK") {
            let umask = u32::from_str_radix(umask.to_str().unwrap(), 8).unwrap();
            return modes_under(umask);
        }
        for umask in ["0", "22", "77", "277"] {
            let name = "status::server::tests::folder_and_sockets_have_their_modes_whatever_the_umask_is";
            let test = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", name])
                .env("LASTHOP_TEST_UMASK", umask)
                .output();
            let output = test.unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("1 passed"), "umask {umask}: {said}");
        }
    }

    fn modes_under(umask: u32) {
        let folder = folder();
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask));
        let path = folder.path().join("new/x.sock");
        let server = Server::new(&path).unwrap();
        let host = crate::handover::Host::new(&path).unwrap();
        let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(path.parent().unwrap()), FOLDER_MODE);
        assert_eq!([mode(&path), mode(&crate::handover::path(&path))], [SOCKET_MODE; 2]);
        drop((host, server));
        assert!(!path.parent().unwrap().exists());
    }
}

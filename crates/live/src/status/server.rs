//! Serves status and commands without ever making the control loop wait: few clients, no blocking, a deadline for each.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use lasthop_core::units::{Span, Time};
use lasthop_files::Terms;
use lasthop_status::command::LONGEST_REQUEST;
use rustix::event::PollFlags;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

use super::socket_file::{MadeFolder, SOCKET_MODE, SocketFile};

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
    /// The group that may read it is not there.
    #[error("{GROUPS} has no group `{0}` that could read the status (socket_group); `groupadd --system {0}` makes one")]
    NoGroup(String),
    /// The path is something else.
    #[error("{0} exists and is not a socket; choose another path with --socket")]
    NotASocket(PathBuf),
    /// The socket cannot be made.
    #[error("the socket {path} cannot be made; choose a writable path with --socket")]
    Refused {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Who may connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The socket's owner alone.
    Owner,
    /// And this group, to read: whoever connects is told, and asks nothing.
    Group(u32),
}

/// Groups by name; the C library is not asked, so that nothing is loaded for it.
const GROUPS: &str = "/etc/group";

impl Access {
    /// Of the group of this name or number; of the owner alone where that is empty.
    ///
    /// # Errors
    /// There is no such group.
    pub fn of(group: &str) -> Result<Self, ServerError> {
        if group.is_empty() {
            return Ok(Self::Owner);
        }
        let groups = || lasthop_files::read_text(Path::new(GROUPS), Terms::CONFIGURATION).unwrap_or_default();
        let found = group.parse().ok().or_else(|| number_of(&groups(), group));
        found.map(Self::Group).ok_or_else(|| ServerError::NoGroup(group.to_owned()))
    }
}

/// Source: group(5), `name:password:number:members`.
fn number_of(groups: &str, name: &str) -> Option<u32> {
    let mut lines = groups.lines().map(|line| line.split(':'));
    lines.find_map(|mut fields| (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok()).flatten())
}

/// A client that has not got everything yet.
#[derive(Debug)]
struct Client {
    stream: UnixStream,
    /// What it has asked so far; none where that is all.
    request: Option<Vec<u8>>,
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
    /// A client writes a line before it is answered.
    is_asked: bool,
    clients: Vec<Client>,
    /// Until when nobody is let in.
    rests_until: Time,
}

impl Server {
    /// Serves the status at `path`, to whoever connects. A socket that nobody answers at is a dead controller's and is replaced.
    ///
    /// # Errors
    /// When somebody answers there, or the path cannot be used.
    pub fn new(path: &Path, access: Access) -> Result<Self, ServerError> {
        Self::start(path, access, false)
    }

    /// Serves commands at `path`, a line of each client.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_commands(path: &Path) -> Result<Self, ServerError> {
        Self::start(path, Access::Owner, true)
    }

    fn start(path: &Path, access: Access, is_asked: bool) -> Result<Self, ServerError> {
        let refused = |source| ServerError::Refused { path: path.to_owned(), source };
        remove_dead(path)?;
        let folder = path.parent().and_then(MadeFolder::new);
        let (listener, file) = listen(path, access).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => ServerError::InUse(path.to_owned()),
            _ => refused(source),
        })?;
        listener.set_nonblocking(true).map_err(refused)?;
        Ok(Self { _file: file, folder, listener, is_asked, clients: Vec::new(), rests_until: Time::ZERO })
    }

    /// The folder of the socket was made for it, and goes with it.
    #[must_use]
    pub const fn made_folder(&self) -> bool {
        self.folder.is_some()
    }

    /// Descriptors to wait for at `now`, and what for.
    pub fn waits_for(&self, now: Time) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let room = self.clients.len() < MOST_CLIENTS && now >= self.rests_until;
        let listener = room.then(|| (self.listener.as_fd(), PollFlags::IN));
        let direction = |client: &Client| if client.request.is_some() { PollFlags::IN } else { PollFlags::OUT };
        listener.into_iter().chain(self.clients.iter().map(move |client| (client.stream.as_fd(), direction(client))))
    }

    /// Somebody has not got everything yet.
    #[must_use]
    pub const fn has_clients(&self) -> bool {
        !self.clients.is_empty()
    }

    /// Answers clients with what `answer` makes of what they asked, and goes on with the others; never waits.
    pub fn serve(&mut self, now: Time, mut answer: impl FnMut(&[u8]) -> Vec<u8>) {
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
                let request = self.is_asked.then(Vec::new);
                let text = if self.is_asked { Vec::new() } else { answer(&[]) };
                self.clients.push(Client { stream, request, text, sent: 0, until: now + PATIENCE });
            }
            self.clients.retain_mut(|client| client.is_waiting(now, &mut answer));
        }
        self.clients.retain_mut(|client| client.is_waiting(now, &mut answer));
    }
}

impl Client {
    /// Reads and sends what there is; false when everything is sent or the client is lost.
    fn is_waiting(&mut self, now: Time, answer: &mut impl FnMut(&[u8]) -> Vec<u8>) -> bool {
        while let Some(request) = &mut self.request {
            let mut piece = [0u8; LONGEST_REQUEST];
            let ended = match self.stream.read(&mut piece) {
                Ok(0) => true,
                Ok(n) => {
                    request.extend_from_slice(&piece[..n]);
                    request.contains(&b'\n') || request.len() > LONGEST_REQUEST
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => false,
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock && now < self.until,
            };
            if ended {
                let line = request.split(|byte| *byte == b'\n').next().unwrap_or_default();
                self.text = answer(line);
                (self.request, self.until) = (None, now + PATIENCE);
            }
        }
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
fn listen(path: &Path, access: Access) -> io::Result<(UnixListener, SocketFile)> {
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let file = SocketFile::bind(&socket, path)?;
    if let Access::Group(group) = access {
        std::os::unix::fs::chown(path, None, Some(group))?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(SOCKET_MODE | 0o060))?;
    }
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

    use super::super::socket_file::FOLDER_MODE;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_client_gets_everything_and_then_the_end() {
        let folder = folder();
        let path = folder.path().join("new/x.sock");
        let mut server = Server::new(&path, Access::Owner).unwrap();
        let mut client = UnixStream::connect(&path).unwrap();
        server.serve(Time::ZERO, |_| b"{}".to_vec());
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        assert_eq!(text, "{}");
        drop(server);
        assert!(!path.parent().unwrap().exists(), "the socket and the folder made for it are gone");
    }

    #[test]
    fn a_command_is_a_line_or_what_was_written_before_the_end_and_never_longer_than_its_bound() {
        let folder = folder();
        let path = folder.path().join("x.sock");
        let mut server = Server::of_commands(&path).unwrap();
        let mut ask = |pieces: &[&[u8]], ends: bool| {
            let mut client = UnixStream::connect(&path).unwrap();
            for piece in pieces {
                server.serve(Time::ZERO, |line| panic!("not yet whole: {line:?}"));
                client.write_all(piece).unwrap();
            }
            if ends {
                client.shutdown(std::net::Shutdown::Write).unwrap();
            }
            let mut asked = Vec::new();
            server.serve(Time::ZERO, |line| {
                asked = line.to_vec();
                b"done".to_vec()
            });
            let mut text = String::new();
            client.read_to_string(&mut text).unwrap();
            assert_eq!((text.as_str(), server.clients.len()), ("done", 0));
            asked
        };
        assert_eq!(ask(&[b"{\"pa", b"use\"}\nrest"], false), b"{\"pause\"}");
        assert_eq!(ask(&[b"{}"], true), b"{}");
        assert!(ask(&[&[b'x'; LONGEST_REQUEST], b"y"], false).len() <= LONGEST_REQUEST + 1);
        let silent = UnixStream::connect(&path).unwrap();
        server.serve(Time::ZERO, |_| panic!("it asked nothing"));
        assert_eq!(server.clients.len(), 1);
        server.serve(Time::ZERO + PATIENCE, |_| panic!("it asked nothing"));
        assert!(!server.has_clients(), "who asks nothing is dropped");
        drop(silent);
    }

    #[test]
    fn a_group_is_found_by_name_or_number() {
        let groups = "root:x:0:\nlasthop-web:x:998:me,you\nlasthop:x:997:\nbroken\n";
        assert_eq!(
            [number_of(groups, "lasthop"), number_of(groups, "broken"), number_of(groups, "x")],
            [Some(997), None, None]
        );
        assert_eq!([Access::of("").unwrap(), Access::of("12").unwrap()], [Access::Owner, Access::Group(12)]);
        assert!(matches!(Access::of("no such group"), Err(ServerError::NoGroup(_))));
    }

    #[test]
    fn a_group_may_read_the_status_where_it_is_named() {
        if !rustix::process::geteuid().is_root() {
            return println!("SKIPPED: giving a file to another group needs root");
        }
        let folder = folder();
        let path = folder.path().join("x.sock");
        let _server = Server::new(&path, Access::Group(4_242)).unwrap();
        let found = std::fs::metadata(&path).unwrap();
        assert_eq!((found.permissions().mode() & 0o777, std::os::unix::fs::MetadataExt::gid(&found)), (0o660, 4_242));
    }

    #[test]
    fn a_client_that_does_not_read_stalls_nobody_and_is_dropped() {
        let folder = folder();
        let path = folder.path().join("x.sock");
        let mut server = Server::new(&path, Access::Owner).unwrap();
        let lazy: Vec<_> = (0..20).map(|_| UnixStream::connect(&path).unwrap()).collect();
        server.serve(Time::ZERO, |_| vec![b'x'; 4 << 20]);
        assert_eq!(server.clients.len(), MOST_CLIENTS);
        server.serve(Time::ZERO + PATIENCE, |_| vec![b'x'; 4 << 20]);
        assert!(server.clients.iter().all(|c| c.until > Time::ZERO + PATIENCE), "the first ones were dropped");
        drop(lazy);
    }

    /// Without memory or descriptors accept(2) fails, and the client still waits; here because the socket does not listen.
    #[test]
    fn a_client_that_cannot_be_let_in_is_waited_for_a_moment_later() {
        let folder = folder();
        let mut server = Server::new(&folder.path().join("x.sock"), Access::Owner).unwrap();
        let waits = |server: &Server, after: Span| server.waits_for(Time::ZERO + after).next().is_some();
        server.serve(Time::ZERO, |_| Vec::new());
        assert!(waits(&server, Span::ZERO), "nobody there is no failure");
        let deaf = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).unwrap();
        server.listener = deaf.into();
        server.serve(Time::ZERO, |_| Vec::new());
        assert!(!waits(&server, Span::ZERO) && waits(&server, REST));
    }

    #[test]
    fn a_dead_controllers_socket_is_replaced_and_a_living_ones_is_not() {
        let folder = folder();
        let path = folder.path().join("x.sock");
        drop(UnixListener::bind(&path).unwrap()); // leaves the file behind, as a killed process does
        let living = Server::new(&path, Access::Owner).unwrap();
        assert!(matches!(Server::new(&path, Access::Owner), Err(ServerError::InUse(_))));
        drop(living);
        std::fs::write(&path, "a file").unwrap();
        assert!(matches!(Server::new(&path, Access::Owner), Err(ServerError::NotASocket(_))));
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
        let server = Server::new(&path, Access::Owner).unwrap();
        let host = crate::handover::Host::new(&path).unwrap();
        let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(path.parent().unwrap()), FOLDER_MODE);
        assert_eq!([mode(&path), mode(&crate::handover::path(&path))], [SOCKET_MODE; 2]);
        drop((host, server));
        assert!(!path.parent().unwrap().exists());
    }
}

//! One controller takes over from another: an upgrade, or a change of the configuration, while connections run.
//!
//! ```text
//! running                               taking over
//!           <-- connects --
//!  offer: layout, size, what was learned, maps -->
//!                                       loads its programs around the maps
//!           <-- "go" --
//!  frees queue, socket, claims
//!  one message for each hook, "end" -->
//!                                       puts its programs in the place of the others, hook by hook
//!           <-- "taken" --
//!  ends, and leaves everything as it is
//! ```
//!
//! So there is no moment without programs, and the table of connections goes on. Until "go" nothing has changed: whatever fails,
//! the running one runs on. After "go" it waits `PATIENCE` for "taken", with its programs still at work; if the other one is gone by
//! then, it takes everything back. The socket is its owner's alone, and who connects must be that user or root.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lasthop_core::fastpath::layout::VERSION;
use lasthop_core::units::{Span, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, connect, listen, recvmsg, sendmsg, socket_with,
};
use serde::{Deserialize, Serialize};

use crate::clock::now;
use crate::status::SocketFile;

/// How long each waits for the other's next word.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two signs of life to the data path meanwhile.
const BEAT: Duration = Duration::from_millis(100);
/// Nobody is let in for so long after the kernel refused that, as at the status socket.
const REST: Span = Span::from_millis(100);
/// Longest message, bytes.
const LONGEST: usize = 4096;
/// Most descriptors in a message.
const MOST_FDS: usize = 2;
const GO: &[u8] = b"go";
const END: &[u8] = b"end";
const TAKEN: &[u8] = b"taken";

/// What the running controller hands over besides its maps.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// Of the records in the maps: [`VERSION`].
    pub layout: u64,
    /// Size of the table of connections.
    pub flows: u32,
    /// What was learned of each direction.
    pub learned: [Option<Learned>; 2],
}

/// What was learned of one direction.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Learned {
    /// What the narrowest hop carries, bit/s.
    pub bps: u64,
    /// Whether the narrowest hop is in front of the home.
    pub is_wan: bool,
}

impl Offer {
    /// Reads what was said.
    ///
    /// # Errors
    /// When it is no offer.
    pub fn read(said: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(said)
    }

    /// The maps hold what this version of the program keeps there.
    #[must_use]
    pub const fn fits(&self, flows: u32) -> bool {
        self.layout == VERSION && self.flows == flows
    }
}

#[derive(Deserialize, Serialize)]
struct Hook {
    ifindex: u32,
}

/// Where a controller that serves its status at `status` hands over.
#[must_use]
pub fn path(status: &Path) -> PathBuf {
    let mut name = status.file_name().unwrap_or_default().to_owned();
    name.push(".handover");
    status.with_file_name(name)
}

/// The running controller's side. Dropping it removes the socket.
#[derive(Debug)]
pub struct Host {
    _file: SocketFile,
    listener: OwnedFd,
    /// Until when nobody is let in.
    rests_until: Time,
    heir: Option<OwnedFd>,
}

impl Host {
    /// Listens beside the status socket at `status`, which its owner has made and no other living controller holds.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn new(status: &Path) -> io::Result<Self> {
        let path = path(status);
        let _ = std::fs::remove_file(&path);
        let listener = seqpacket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        let file = SocketFile::bind(&listener, &path)?;
        listen(&listener, 1)?;
        Ok(Self { _file: file, listener, rests_until: Time::ZERO, heir: None })
    }

    /// Descriptors that become readable when there is something to do, asked at `now`.
    pub fn waits_for(&self, now: Time) -> impl Iterator<Item = BorrowedFd<'_>> {
        let listener = (now >= self.rests_until).then_some(&self.listener);
        // One at a time: the next one waits in the kernel's queue.
        self.heir.as_ref().or(listener).map(AsFd::as_fd).into_iter()
    }

    /// Makes whoever came the offer, once; true when it has said that it is ready. Never waits, and asks for no offer before.
    pub fn serve(&mut self, offer: impl FnOnce() -> io::Result<(Offer, [OwnedFd; 2])>) -> bool {
        if let Some(heir) = &self.heir {
            return match receive(heir, RecvFlags::DONTWAIT) {
                Ok((word, _)) if word == GO => true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
                _ => {
                    self.heir = None;
                    false
                }
            };
        }
        let heir = match accept_with(&self.listener, SocketFlags::CLOEXEC) {
            Ok(heir) => heir,
            Err(rustix::io::Errno::AGAIN) => return false,
            Err(_) => {
                self.rests_until = now() + REST;
                return false;
            }
        };
        if !is_trusted(&heir) {
            return false;
        }
        let Ok((offer, maps)) = offer() else { return false };
        let said = serde_json::to_vec(&offer).unwrap_or_default();
        if send(&heir, &said, &maps.each_ref().map(AsFd::as_fd)).is_ok() {
            self.heir = Some(heir);
        }
        false
    }

    /// Hands over the hooks, interface number and links of each, and waits until they are taken, calling `beat` meanwhile; false
    /// when they are not.
    pub fn hand_over(&mut self, hooks: &[(u32, Vec<BorrowedFd<'_>>)], mut beat: impl FnMut()) -> bool {
        let Some(heir) = self.heir.take() else { return false };
        let given = hooks.iter().try_for_each(|(ifindex, links)| {
            send(&heir, &serde_json::to_vec(&Hook { ifindex: *ifindex }).unwrap_or_default(), links)
        });
        if given.and_then(|()| send(&heir, END, &[])).is_err() {
            return false;
        }
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            beat();
            if is_readable(&heir, BEAT) {
                return receive(&heir, RecvFlags::DONTWAIT).is_ok_and(|(word, _)| word == TAKEN);
            }
        }
        false
    }
}

/// The side that takes over, before anything has changed.
#[derive(Debug)]
pub struct Heir {
    stream: OwnedFd,
    /// What is offered.
    pub offer: Offer,
    /// The tables of connections and of UDP flows.
    pub maps: [OwnedFd; 2],
}

impl Heir {
    /// Asks the controller that serves its status at `status`; `None` when none runs there.
    ///
    /// # Errors
    /// When one runs and does not hand over.
    pub fn find(status: &Path) -> io::Result<Option<Self>> {
        let stream = seqpacket(SocketFlags::CLOEXEC)?;
        match connect(&stream, &SocketAddrUnix::new(path(status))?) {
            Ok(()) => {}
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::CONNREFUSED | rustix::io::Errno::NOTDIR) => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        }
        let (said, fds) = answer(&stream)?;
        let offer = Offer::read(&said)?;
        let maps = <[OwnedFd; 2]>::try_from(fds).map_err(|_| io::Error::other("it did not offer its maps"))?;
        Ok(Some(Self { stream, offer, maps }))
    }

    /// Says that everything is ready, and gets the hooks.
    ///
    /// # Errors
    /// When the other one is gone or does not answer.
    pub fn go(self) -> io::Result<Inheritance> {
        send(&self.stream, GO, &[])?;
        let mut hooks = Vec::new();
        loop {
            let (said, links) = answer(&self.stream)?;
            if said == END {
                return Ok(Inheritance { stream: self.stream, hooks, offer: self.offer });
            }
            hooks.push((serde_json::from_slice::<Hook>(&said)?.ifindex, links));
        }
    }
}

/// What was handed over; until [`Inheritance::taken`] is called, the other side may take it back.
#[derive(Debug)]
pub struct Inheritance {
    stream: OwnedFd,
    hooks: Vec<(u32, Vec<OwnedFd>)>,
    /// What was offered.
    pub offer: Offer,
}

impl Inheritance {
    /// The links of an interface, ingress before egress; none of filters, which are found by their handle.
    pub fn hook(&mut self, ifindex: u32) -> Option<Vec<OwnedFd>> {
        let at = self.hooks.iter().position(|(number, _)| *number == ifindex)?;
        Some(self.hooks.swap_remove(at).1)
    }

    /// Everything is in its new hands.
    ///
    /// # Errors
    /// When the other side has taken it back.
    pub fn taken(self) -> io::Result<()> {
        send(&self.stream, TAKEN, &[])
    }
}

fn seqpacket(flags: SocketFlags) -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
}

fn is_trusted(peer: &OwnedFd) -> bool {
    let own = rustix::process::geteuid();
    rustix::net::sockopt::socket_peercred(peer).is_ok_and(|peer| peer.uid.is_root() || peer.uid == own)
}

fn is_readable(stream: &OwnedFd, within: Duration) -> bool {
    let timeout = Timespec { tv_sec: within.as_secs() as _, tv_nsec: within.subsec_nanos() as _ };
    poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&timeout)).is_ok_and(|ready| ready > 0)
}

/// The next message, waited for.
fn answer(stream: &OwnedFd) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    if !is_readable(stream, PATIENCE) {
        return Err(io::ErrorKind::TimedOut.into());
    }
    receive(stream, RecvFlags::DONTWAIT)
}

fn send(stream: &OwnedFd, text: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut room);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::other("too many descriptors"));
    }
    sendmsg(stream, &[IoSlice::new(text)], &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
    Ok(())
}

fn receive(stream: &OwnedFd, flags: RecvFlags) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut text = vec![0; LONGEST];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let message = recvmsg(stream, &mut [IoSliceMut::new(&mut text)], &mut control, flags | RecvFlags::CMSG_CLOEXEC)?;
    let fds = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let fds = fds.flatten().collect();
    if message.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    text.truncate(message.bytes);
    Ok((text, fds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    const OFFER: Offer =
        Offer { layout: VERSION, flows: 64, learned: [Some(Learned { bps: 20_000_000, is_wan: true }), None] };

    fn descriptor() -> OwnedFd {
        std::fs::File::open("/dev/null").unwrap().into()
    }

    fn offer() -> io::Result<(Offer, [OwnedFd; 2])> {
        Ok((OFFER, [descriptor(), descriptor()]))
    }

    /// A host that has said its offer, and whoever asked for it.
    fn met(status: &Path) -> (Host, Heir) {
        let mut host = Host::new(status).unwrap();
        let heir = std::thread::scope(|scope| {
            let heir = scope.spawn(|| Heir::find(status).unwrap().expect("somebody is there"));
            while !heir.is_finished() {
                assert!(!host.serve(offer));
                std::thread::yield_now();
            }
            heir.join().unwrap()
        });
        (host, heir)
    }

    #[test]
    fn hooks_change_hands_once_both_are_ready() {
        let folder = tempfile::tempdir().unwrap();
        let status = folder.path().join("x.sock");
        let (mut host, heir) = met(&status);
        assert_eq!(heir.offer, OFFER);
        assert!(heir.offer.fits(64) && !heir.offer.fits(65));
        let (link, mut beats) = (descriptor(), 0);
        std::thread::scope(|scope| {
            let taker = scope.spawn(|| {
                let mut all = heir.go().unwrap();
                assert_eq!(all.hook(7).unwrap().len(), 2);
                assert!(all.hook(7).is_none() && all.hook(8).is_some_and(|links| links.is_empty()));
                all.taken().unwrap();
            });
            while !host.serve(offer) {
                std::thread::yield_now();
            }
            let hooks = [(7, vec![link.as_fd(), link.as_fd()]), (8, vec![])];
            assert!(host.hand_over(&hooks, || beats += 1));
            taker.join().unwrap();
        });
        assert!(beats > 0);
        drop(host);
        assert!(Heir::find(&status).unwrap().is_none(), "the socket is gone");
    }

    #[test]
    fn an_heir_that_dies_leaves_everything_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let status = folder.path().join("x.sock");
        let (mut host, heir) = met(&status);
        drop(heir);
        assert!(!host.serve(offer), "before it was ready");
        let (mut host, heir) = {
            drop(host);
            met(&status)
        };
        std::thread::scope(|scope| {
            scope.spawn(|| drop(heir.go()));
            while !host.serve(offer) {
                std::thread::yield_now();
            }
            assert!(!host.hand_over(&[], || {}), "nobody said that it was taken");
        });
        assert!(host.waits_for(now()).next().is_some_and(|fd| fd.as_raw_fd() == host.listener.as_raw_fd()));
    }

    #[test]
    fn nonsense_is_no_word() {
        let folder = tempfile::tempdir().unwrap();
        let status = folder.path().join("x.sock");
        let (mut host, heir) = met(&status);
        send(&heir.stream, b"{\"ifindex\":1}", &[]).unwrap();
        assert!(!host.serve(offer));
        assert!(host.heir.is_none(), "whoever says that is not listened to any more");
    }
}

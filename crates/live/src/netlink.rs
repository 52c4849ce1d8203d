//! The little of netlink that the controller needs: one request, its replies, attributes in and out.
//!
//! Message: `nlmsghdr` (16 bytes), a family header, attributes of `{u16 length, u16 kind, value}` padded to 4 bytes,
//! all in host order. A dump ends with `NLMSG_DONE`, an error carries a negative errno.
//! A socket that has joined groups is told of changes unasked. A generic family is found by its name.
//! Source: netlink(7), RFC 3549, `linux/genetlink.h`. No extended acknowledgements.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const HEADER: usize = 16;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
/// Ask for all objects, not one.
pub const NLM_F_DUMP: u16 = 0x300;
/// A request failed, or was acknowledged: an errno, negative, and what it answers.
pub const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// Bytes of a generic family's header: command, version, two of nothing.
pub const GENL_HEADER: usize = 4;
/// Marks an attribute that holds attributes.
pub const NESTED: u16 = 1 << 15;
/// Bits of an attribute's kind that name it.
const KIND_MASK: u16 = 0x3fff;
/// Messages taken in at once by one that listens: more are left for the next time.
const AT_ONCE: usize = 256;
/// The kernel answers at once; a longer silence means that it will not.
const PATIENCE_US: i32 = 500_000;

/// One netlink socket of one protocol.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

/// One message of an answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Message type (`RTM_NEWLINK`, ...).
    pub kind: u16,
    /// What follows the netlink header.
    pub body: Vec<u8>,
}

/// A family of generic netlink.
#[derive(Clone, Debug)]
pub struct Family {
    /// The type of its messages.
    pub id: u16,
    /// What the kernel says of it, multicast groups among it (`CTRL_ATTR_*`).
    pub attributes: Vec<u8>,
}

impl Socket {
    /// Opens a socket of `protocol` (`NETLINK_ROUTE`, `NETLINK_NETFILTER`) in the namespace of the calling thread.
    ///
    /// # Errors
    /// When the kernel lacks the protocol.
    pub fn open(protocol: libc::c_int) -> io::Result<Self> {
        // SAFETY: a plain socket call; the result is checked before it is owned.
        let raw = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `raw` is a descriptor that nobody else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        let patience = libc::timeval { tv_sec: 0, tv_usec: PATIENCE_US.into() };
        // SAFETY: the option's value is a timeval and its size is given.
        let set = unsafe {
            libc::setsockopt(
                fd.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVTIMEO,
                (&raw const patience).cast(),
                size_of::<libc::timeval>() as u32,
            )
        };
        if set < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { fd, sequence: 0, buffer: vec![0; 64 * 1024] })
    }

    /// Sends one request and collects everything that answers it. `flags` is [`NLM_F_DUMP`], or what the request says of
    /// its object (create, replace).
    ///
    /// # Errors
    /// The kernel's errno (`ENOENT`, `EPERM`, ...) or a failure of the socket.
    pub fn request(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<Reply>> {
        let mut replies = Vec::new();
        self.request_each(kind, flags, body, |kind, body| replies.push(Reply { kind, body: body.to_vec() }))?;
        Ok(replies)
    }

    /// As [`Self::request`], with each message of the answer shown as it comes: for answers that may be long.
    ///
    /// # Errors
    /// As there; some may have been shown by then.
    pub fn request_each(&mut self, kind: u16, flags: u16, body: &[u8], show: impl FnMut(u16, &[u8])) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let flags = NLM_F_REQUEST | flags | if flags == NLM_F_DUMP { 0 } else { NLM_F_ACK };
        let mut message = Vec::with_capacity(HEADER + body.len());
        put_message(&mut message, kind, flags, self.sequence, body);
        rustix::net::send(&self.fd, &message, rustix::net::SendFlags::empty())?;
        self.collect(self.sequence, show)
    }

    /// Sends a message that nobody waits for. [`Self::listen`] shows a refusal, of the kind [`NLMSG_ERROR`].
    ///
    /// # Errors
    /// When the socket fails.
    pub fn tell(&mut self, kind: u16, body: &[u8]) -> io::Result<()> {
        let mut message = Vec::with_capacity(HEADER + body.len());
        put_message(&mut message, kind, NLM_F_REQUEST, 0, body);
        rustix::net::send(&self.fd, &message, rustix::net::SendFlags::empty())?;
        Ok(())
    }

    /// Finds a family of generic netlink; the socket is one of `NETLINK_GENERIC`.
    ///
    /// # Errors
    /// `ENOENT` where the kernel does not have it.
    pub fn family(&mut self, name: &str) -> io::Result<Family> {
        let mut body = vec![CTRL_CMD_GETFAMILY, 1, 0, 0];
        put(&mut body, CTRL_ATTR_FAMILY_NAME, format!("{name}\0").as_bytes());
        let replies = self.request(GENL_ID_CTRL, 0, &body)?;
        let found = replies.into_iter().find_map(|reply| {
            let attributes = reply.body.get(GENL_HEADER..)?.to_vec();
            let id = Attributes::find(&attributes, CTRL_ATTR_FAMILY_ID)?.first_chunk()?;
            Some(Family { id: u16::from_ne_bytes(*id), attributes })
        });
        found.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
    }

    /// Opens a socket that is told what the kernel tells these multicast groups.
    ///
    /// # Errors
    /// When the kernel lacks the protocol or a group.
    pub fn listening(protocol: libc::c_int, groups: &[u32]) -> io::Result<Self> {
        let socket = Self::open(protocol)?;
        // Nothing is told to one without an address, which others get with their first request.
        // SAFETY: an all-zero sockaddr_nl is a valid value of that plain C struct.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        let length = size_of::<libc::sockaddr_nl>() as u32;
        // SAFETY: the address is a valid sockaddr_nl and its size is given.
        if unsafe { libc::bind(socket.fd.as_raw_fd(), (&raw const address).cast(), length) } < 0 {
            return Err(io::Error::last_os_error());
        }
        groups.iter().try_for_each(|group| socket.join(*group))?;
        Ok(socket)
    }

    fn join(&self, group: u32) -> io::Result<()> {
        // SAFETY: the option's value is a u32 and its size is given.
        let joined = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_NETLINK,
                libc::NETLINK_ADD_MEMBERSHIP,
                (&raw const group).cast(),
                size_of::<u32>() as u32,
            )
        };
        if joined < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Shows what has been told to the groups since the last time, and never waits. A socket that listens is not asked.
    ///
    /// # Errors
    /// `ENOBUFS` when more was told than the kernel kept: then everything has to be read anew.
    pub fn listen(&mut self, mut show: impl FnMut(u16, &[u8])) -> io::Result<()> {
        for _ in 0..AT_ONCE {
            let (fd, buffer) = (&self.fd, self.buffer.as_mut_slice());
            match rustix::net::recv(fd, buffer, rustix::net::RecvFlags::DONTWAIT) {
                Ok((length, _)) => walk(&self.buffer[..length], |_, kind, body| show(kind, body)),
                Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Socket {
    /// Sends messages that were put together elsewhere and waits for the acknowledgement of `sequence`.
    ///
    /// # Errors
    /// The kernel's errno or a failure of the socket.
    pub fn send_batch(&mut self, messages: &[u8], sequence: u32) -> io::Result<()> {
        rustix::net::send(&self.fd, messages, rustix::net::SendFlags::empty())?;
        self.collect(sequence, |_, _| {})
    }

    /// Everything that answers `sequence`.
    fn collect(&mut self, sequence: u32, mut show: impl FnMut(u16, &[u8])) -> io::Result<()> {
        loop {
            let (length, _) = rustix::io::retry_on_intr(|| {
                rustix::net::recv(&self.fd, self.buffer.as_mut_slice(), rustix::net::RecvFlags::empty())
            })?;
            if take(&self.buffer[..length], sequence, &mut show)? {
                return Ok(());
            }
        }
    }
}

/// Reads one datagram; true when it ends the answer to `sequence`.
fn take(datagram: &[u8], sequence: u32, show: &mut impl FnMut(u16, &[u8])) -> io::Result<bool> {
    let mut end = None;
    walk(datagram, |number, kind, body| match kind {
        _ if number != sequence || end.is_some() => {}
        NLMSG_DONE => end = Some(0),
        NLMSG_ERROR => end = Some(body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code))),
        _ => show(kind, body),
    });
    match end {
        None => Ok(false),
        // Above zero it is no errno: some families answer with a number of what was made.
        Some(0..) => Ok(true),
        Some(code) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
    }
}

/// Shows each message of a datagram: its sequence number, its kind, what follows its header.
fn walk(mut rest: &[u8], mut show: impl FnMut(u32, u16, &[u8])) {
    while let Some(header) = rest.get(..HEADER) {
        let word = |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let length = word(0) as usize;
        let Some(body) = rest.get(HEADER..length) else { break };
        show(word(8), u16::from_ne_bytes([header[4], header[5]]), body);
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
}

fn put_message(message: &mut Vec<u8>, kind: u16, flags: u16, sequence: u32, body: &[u8]) {
    message.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend(0u32.to_ne_bytes());
    message.extend(body);
}

/// Appends one attribute and its padding.
pub fn put(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    body.extend(((4 + value.len()) as u16).to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// Appends an attribute that holds what `fill` appends.
pub fn put_nested(body: &mut Vec<u8>, kind: u16, fill: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    fill(&mut inner);
    put(body, kind | NESTED, &inner);
}

/// Text of an attribute, up to its first zero byte.
#[must_use]
pub fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.split(|b| *b == 0).next().unwrap_or_default()).into_owned()
}

/// Walks attributes as (kind, value); stops at the first that contradicts itself.
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// Over the bytes after the family header, or over a nested attribute's value.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Value of the first attribute of `kind`.
    #[must_use]
    pub fn find(bytes: &'a [u8], kind: u16) -> Option<&'a [u8]> {
        Self::new(bytes).find(|(k, _)| *k == kind).map(|(_, value)| value)
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);
    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::from(u16::from_ne_bytes([*self.rest.first()?, *self.rest.get(1)?]));
        let kind = u16::from_ne_bytes([*self.rest.get(2)?, *self.rest.get(3)?]) & KIND_MASK;
        let value = self.rest.get(4..length)?;
        self.rest = self.rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn attributes_are_read_back_as_they_were_put() {
        let mut body = Vec::new();
        put(&mut body, 3, b"eth0\0");
        put_nested(&mut body, 4, |inner| put(inner, 7, &[9]));
        let all: Vec<_> = Attributes::new(&body).collect();
        assert_eq!(all[0], (3, b"eth0\0".as_slice()));
        assert_eq!(Attributes::find(all[1].1, 7), Some([9].as_slice()));
    }

    proptest! {
        #[test]
        fn hostile_bytes_end_the_walk(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Attributes::new(&bytes).count() <= bytes.len());
            let mut shown = 0;
            let _ = take(&bytes, 1, &mut |_, _| shown += 1);
            prop_assert!(shown <= bytes.len());
        }
    }
}

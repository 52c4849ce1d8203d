//! The root queue discipline of an interface: what is there, put another, put back what was there.
//!
//! Source: rtnetlink(7), `RTM_*QDISC`. A discipline that the kernel made by itself has handle 0: taking ours off brings it
//! back. One that somebody made is made again with the options that the kernel told; classes and filters below it cannot
//! be told, so only disciplines without them are ever replaced.

use std::io;

use crate::netlink::{self, Attributes, NLM_F_DUMP, Socket};

const TC_H_ROOT: u32 = 0xffff_ffff;
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_CREATE: u16 = 0x400;
const TCMSG: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
/// Handle of ours: "la:".
pub(super) const HANDLE: u32 = 0x6c61_0000;
/// What can be made again from the options that the kernel tells.
const RESTORABLE: [&str; 11] =
    ["pfifo", "bfifo", "pfifo_fast", "fq_codel", "fq", "codel", "cake", "sfq", "pie", "fq_pie", "noqueue"];

/// A root queue discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Its kind: "fq_codel", ...
    pub kind: String,
    handle: u32,
    options: Option<Vec<u8>>,
}

impl Root {
    /// Whether we, or a predecessor, put it there.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.handle == HANDLE && self.kind.starts_with(crate::discipline::CHAP)
    }

    /// Whether it can be put back after it was replaced.
    #[must_use]
    pub fn is_restorable(&self) -> bool {
        self.handle == 0 || RESTORABLE.contains(&self.kind.as_str())
    }

    /// Whether the kernel made it by itself.
    #[must_use]
    pub const fn is_default(&self) -> bool {
        self.handle == 0
    }
}

/// The root queue discipline of an interface; none for the built-in `noqueue`, which the kernel does not tell of.
///
/// # Errors
/// When netlink fails.
pub fn root(route: &mut Socket, ifindex: u32) -> io::Result<Option<Root>> {
    let replies = route.request(libc::RTM_GETQDISC, NLM_F_DUMP, &[0u8; TCMSG])?;
    Ok(replies.iter().find_map(|reply| read(&reply.body, ifindex)))
}

fn read(body: &[u8], ifindex: u32) -> Option<Root> {
    let word = |at: usize| body.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    if (word(4)?, word(12)?) != (ifindex, TC_H_ROOT) {
        return None;
    }
    let attributes = body.get(TCMSG..)?;
    Some(Root {
        kind: netlink::text(Attributes::find(attributes, TCA_KIND)?),
        handle: word(8)?,
        options: Attributes::find(attributes, TCA_OPTIONS).map(<[u8]>::to_vec),
    })
}

/// Makes the discipline of `kind` the root, ours from then on.
///
/// # Errors
/// The kernel's errno: `ENOENT` for an unknown kind, `EBUSY` while an earlier one of the same object is still going.
pub fn put(route: &mut Socket, ifindex: u32, kind: &str) -> io::Result<()> {
    create(route, ifindex, &Root { kind: kind.to_owned(), handle: HANDLE, options: None })
}

/// Takes the root off and puts `before` there, if the root is ours; otherwise somebody has changed it, and it stays.
///
/// # Errors
/// The kernel's errno.
pub fn restore(route: &mut Socket, ifindex: u32, before: Option<&Root>) -> io::Result<()> {
    if !root(route, ifindex)?.is_some_and(|root| root.is_ours()) {
        return Ok(());
    }
    match before.filter(|before| !before.is_default()) {
        Some(before) => create(route, ifindex, before),
        None => route.request(libc::RTM_DELQDISC, 0, &header(ifindex, HANDLE)).map(drop),
    }
}

fn header(ifindex: u32, handle: u32) -> Vec<u8> {
    let mut body = vec![0u8; 4];
    for word in [ifindex, handle, TC_H_ROOT, 0] {
        body.extend(word.to_ne_bytes());
    }
    body
}

fn create(route: &mut Socket, ifindex: u32, root: &Root) -> io::Result<()> {
    let mut body = header(ifindex, root.handle);
    netlink::put(&mut body, TCA_KIND, &[root.kind.as_bytes(), b"\0"].concat());
    if let Some(options) = &root.options {
        // Told without the mark of a nest by some disciplines; read back without it by all.
        netlink::put(&mut body, TCA_OPTIONS, options);
    }
    route.request(libc::RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, &body).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_told_discipline_is_read_and_only_the_root_of_this_interface() {
        let mut body = header(3, 0x8001_0000);
        netlink::put(&mut body, TCA_KIND, b"fq_codel\0");
        netlink::put(&mut body, TCA_OPTIONS, &[1, 2, 3, 4]);
        let read_back = read(&body, 3).unwrap();
        assert_eq!(
            read_back,
            Root { kind: "fq_codel".to_owned(), handle: 0x8001_0000, options: Some(vec![1, 2, 3, 4]) }
        );
        assert!(read_back.is_restorable() && !read_back.is_ours() && !read_back.is_default());
        assert_eq!(read(&body, 4), None);
        body[12..16].copy_from_slice(&0x8001_0001u32.to_ne_bytes());
        assert_eq!(read(&body, 3), None);
        assert_eq!(read(&body[..10], 3), None);
    }

    #[test]
    fn a_shaper_with_classes_is_not_restorable_unless_the_kernel_made_it() {
        let root = |kind: &str, handle| Root { kind: kind.to_owned(), handle, options: None };
        assert!(!root("htb", 0x1_0000).is_restorable());
        assert!(!root("mq", 0x1_0000).is_restorable());
        assert!(root("mq", 0).is_restorable());
        assert!(root("chap2", HANDLE).is_ours() && !root("chap", 1).is_ours());
    }
}

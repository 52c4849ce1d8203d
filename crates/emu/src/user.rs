//! Whom programs of `--exec` run as: the user who typed `sudo`, or `nobody` where root typed it.
//!
//! Making a home takes root, playing in it does not: a browser or a downloaded test program gets no more than whoever asked for it.
//! The user's groups come along, as with a login. What it takes to go back is taken away in `sys::enclose`.

use std::ffi::CString;
use std::path::{Path, PathBuf};

use nix::unistd::{Gid, Uid, getgrouplist};

/// What the kernel shows for users that it cannot name (`kernel.overflowuid`), and nearly every system calls `nobody`.
const NOBODY: u32 = 65_534;

/// A user without any rights of root's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: String,
    home: Option<PathBuf>,
    /// Never root's.
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// All groups, `gid` among them.
    pub(crate) groups: Vec<u32>,
}

impl User {
    /// Who typed `sudo`, as it says in `SUDO_UID` and `SUDO_GID`; `nobody` where nobody else than root did.
    #[must_use]
    pub fn who_typed() -> Self {
        let id = |name: &str| std::env::var(name).ok()?.parse().ok();
        Self::of(id("SUDO_UID"), id("SUDO_GID"))
    }

    fn of(uid: Option<u32>, gid: Option<u32>) -> Self {
        let (Some(uid @ 1..), Some(gid)) = (uid, gid) else { return Self::nobody() };
        // Without a name there are no groups to look up, and no home.
        let Some(known) = nix::unistd::User::from_uid(Uid::from_raw(uid)).ok().flatten() else {
            return Self { name: uid.to_string(), home: None, uid, gid, groups: vec![gid] };
        };
        let groups =
            CString::new(known.name.as_str()).ok().and_then(|name| getgrouplist(&name, Gid::from_raw(gid)).ok());
        let groups = groups.map_or_else(|| vec![gid], |all| all.into_iter().map(Gid::as_raw).collect());
        Self { name: known.name, home: Some(known.dir), uid, gid, groups }
    }

    fn nobody() -> Self {
        let known = nix::unistd::User::from_name("nobody").ok().flatten().filter(|known| !known.uid.is_root());
        let (uid, gid) = known.map_or((NOBODY, NOBODY), |known| (known.uid.as_raw(), known.gid.as_raw()));
        Self { name: "nobody".to_owned(), home: None, uid, gid, groups: vec![gid] }
    }

    /// What a login would set; one without a home has `otherwise`.
    pub(crate) fn environment<'a>(&'a self, otherwise: &'a Path) -> [(&'static str, &'a std::ffi::OsStr); 3] {
        let home = self.home.as_deref().filter(|home| home.is_dir()).unwrap_or(otherwise);
        [("HOME", home.as_os_str()), ("USER", self.name.as_ref()), ("LOGNAME", self.name.as_ref())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_stands_in_for_root_and_for_whoever_cannot_be_told() {
        for (uid, gid) in [(None, None), (Some(0), Some(0)), (None, Some(7)), (Some(7), None)] {
            let user = User::of(uid, gid);
            assert_eq!((user.name.as_str(), user.uid == 0, user.groups.contains(&0)), ("nobody", false, false));
            assert_eq!(user.environment(Path::new("/x"))[0], ("HOME", "/x".as_ref()));
        }
    }

    #[test]
    fn a_user_whom_the_machine_does_not_know_has_a_number() {
        let user = User::of(Some(3_999_999_999), Some(3_999_999_998));
        assert_eq!((user.uid, user.groups.as_slice()), (3_999_999_999, &[3_999_999_998][..]));
        assert_eq!(user.environment(Path::new("/x"))[1], ("USER", "3999999999".as_ref()));
    }

    #[test]
    fn a_known_user_comes_with_name_and_groups() {
        let Some(daemon) = nix::unistd::User::from_name("daemon").ok().flatten() else {
            return println!("SKIPPED: no user `daemon` here");
        };
        let user = User::of(Some(daemon.uid.as_raw()), Some(daemon.gid.as_raw()));
        assert_eq!(user.name, "daemon");
        assert!(user.groups.contains(&daemon.gid.as_raw()), "{user:?}");
    }
}

//! Gives up what this process may do, once its address is bound and its files are read.
//!
//! Root becomes who typed sudo, else `nobody`, if that one can read the status; the group of the socket is taken along where it may
//! read it (`socket_group` of the controller's configuration). Otherwise root stays in name, without a single right
//! (capabilities(7)): it can still connect to sockets of its own. In any case Landlock takes away all files but the log and the
//! measurement, new listeners and connections by TCP, and signals to others. Where the kernel has no Landlock, that part is left out.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, Scope,
};
use rustix::process::{Gid, Uid, geteuid, getuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capability_is_in_bounding_set, remove_capability_from_bounding_set,
    set_capabilities, set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

/// `nobody` and its group on Debian, OpenWrt and most others.
const NOBODY: u32 = 65_534;
/// From here on the kernel knows no more rights.
const RIGHTS: u32 = 64;

/// What is still needed afterwards.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs<'a> {
    /// The status socket.
    pub socket: Option<&'a Path>,
    /// The command socket beside it, which is root's alone.
    pub commands: bool,
    /// Files that are read again, with what is put in their places.
    pub files: [Option<&'a Path>; 2],
}

/// Who this process is then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Became {
    /// As before: it was not root.
    Same,
    /// This user.
    User(u32),
    /// Root without rights, because only root can read what is shown.
    RootInName,
}

/// Why rights cannot be given up.
#[derive(Debug, thiserror::Error)]
pub enum RightsError {
    /// The kernel refuses.
    #[error("cannot give up rights")]
    Refused(#[from] rustix::io::Errno),
    /// So does Landlock.
    #[error("cannot give up access to files")]
    Files(#[from] RulesetError),
}

/// Gives up everything but `needs`, for the calling thread, which must be the only one.
///
/// # Errors
/// When the kernel refuses; something may have been given up then.
pub fn give_up(needs: Needs<'_>) -> Result<Became, RightsError> {
    let became = change_user(needs)?;
    set_no_new_privs(true)?;
    empty_bounding_set();
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    confine(needs)?;
    Ok(became)
}

fn change_user(needs: Needs<'_>) -> Result<Became, RightsError> {
    if !geteuid().is_root() || !getuid().is_root() {
        return Ok(Became::Same);
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok()).filter(|number| *number > 0);
    let (uid, gid) = match (number("SUDO_UID"), number("SUDO_GID")) {
        (Some(uid), Some(gid)) => (uid, gid),
        _ => (NOBODY, NOBODY),
    };
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    let of_socket = needs.socket.and_then(|socket| std::fs::metadata(socket).ok());
    let group = of_socket.filter(|about| about.mode() & 0o060 == 0o060 && about.gid() > 0);
    let groups: Vec<Gid> = group.iter().map(|about| Gid::from_raw(about.gid())).collect();
    set_thread_groups(&groups)?;
    if needs.commands || !can_read(needs, uid, gid)? {
        return Ok(Became::RootInName);
    }
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    Ok(Became::User(uid.as_raw()))
}

/// Whether that user can: it is tried in its name.
fn can_read(needs: Needs<'_>, uid: Uid, gid: Gid) -> rustix::io::Result<bool> {
    let root = (Uid::ROOT, Gid::ROOT);
    set_thread_res_gid(None, gid, None)?;
    set_thread_res_uid(None, uid, None)?;
    let reads_socket = needs.socket.is_none_or(|socket| UnixStream::connect(socket).is_ok());
    let reads_files = needs.files.iter().flatten().all(|file| File::open(file).is_ok());
    set_thread_res_uid(None, root.0, None)?;
    set_thread_res_gid(None, root.1, None)?;
    Ok(reads_socket && reads_files)
}

/// Refused to who is not root; there nothing that is executed gains rights, by `set_no_new_privs`.
fn empty_bounding_set() {
    for right in (0..RIGHTS).map(|number| CapabilitySet::from_bits_retain(1 << number)) {
        match capability_is_in_bounding_set(right) {
            Ok(true) => drop(remove_capability_from_bounding_set(right)),
            Ok(false) => {}
            Err(_) => return,
        }
    }
}

/// Reading below the folders of the files, since another file may be put in the place of one; nothing else.
fn confine(needs: Needs<'_>) -> Result<(), RulesetError> {
    let folder =
        |file: &Path| file.parent().filter(|folder| *folder != Path::new("")).map_or(".".into(), Path::to_owned);
    let folders = needs.files.into_iter().flatten().map(folder);
    let rules = folders.filter_map(|folder| Some(PathBeneath::new(PathFd::new(folder).ok()?, AccessFs::ReadFile)));
    let handled = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V5))?
        .handle_access(AccessNet::from_all(ABI::V4))?
        .scope(Scope::from_all(ABI::V6))?;
    handled.create()?.add_rules(rules.map(Ok::<_, RulesetError>))?.restrict_self()?;
    Ok(())
}

/// In words.
#[must_use]
pub fn told(became: Became) -> String {
    match became {
        Became::Same => "it keeps no right that it does not need".to_owned(),
        Became::User(NOBODY) => "it runs as nobody".to_owned(),
        Became::User(uid) => format!("it runs as user {uid}"),
        Became::RootInName => {
            "it stays root in name, without any right of root's, since only root may read the socket, or nobody is there yet".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_thread_that_gave_up_its_rights_reads_nothing_and_connects_to_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let (secret, kept) = (folder.path().join("secret"), folder.path().join("kept/log"));
        std::fs::create_dir(folder.path().join("kept")).unwrap();
        std::fs::write(&secret, "secret").unwrap();
        std::fs::write(&kept, "log").unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Of a thread: the others stay who they are.
                give_up(Needs { files: [Some(&kept), None], ..Needs::default() }).unwrap();
                assert!(rustix::thread::capabilities(None).unwrap().effective.is_empty());
                let has_landlock = File::open(&secret).is_err();
                if !has_landlock {
                    return println!("SKIPPED: this kernel has no Landlock");
                }
                assert_eq!(std::fs::read_to_string(&kept).unwrap(), "log");
                let refused = std::net::TcpStream::connect(listener.local_addr().unwrap());
                let known = refused.map_or_else(|error| error.kind(), |_| io::ErrorKind::Other);
                // Linux 6.7; before it connecting is allowed.
                assert!(matches!(known, io::ErrorKind::PermissionDenied | io::ErrorKind::Other), "{known}");
                assert!(std::fs::write(folder.path().join("new"), "").is_err());
            });
        });
    }
}

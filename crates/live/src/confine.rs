//! Which files a running controller may still write to: none but its own.
//!
//! Root needs no capability to write to root's files, and who can write to those is root again (cron, systemd, sudo). Landlock
//! (Linux 5.13, CONFIG_SECURITY_LANDLOCK) takes that away from the calling thread and those that it starts:
//!
//! | where | what |
//! |---|---|
//! | folder of the status socket | making and removing sockets; the folder itself where the controller made it |
//! | `/run/lasthop` | locks of interfaces |
//! | `/dev/net/tun` | TAPs of queues in this process |
//! | `/proc/sys/net/ipv6/conf` | their settings |
//!
//! The process that sets the levers (`levers::guard`) writes to `/sys/kernel/debug/ieee80211` and `/run/lasthop` alone.
//!
//! Reading is left as it is. Folders are known by what they are, not by their names: one that is removed and made again is
//! another. Where the kernel has no Landlock, or an older one, it does what that can.

use std::path::Path;

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus,
};

use crate::attach;

/// The first that knows of truncating (Linux 6.2): what comes later has to do with more than writing.
const NEWEST: ABI = ABI::V3;

/// What became of the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confinement {
    /// The files above are all that can be written to.
    Whole,
    /// An older Landlock: files that are there can also be cut short.
    Partial,
    /// The kernel has no Landlock, or it is turned off.
    None,
}

/// Confines the calling thread, and those that it starts from now on, to what a controller writes that serves its status at `socket`;
/// `made_folder`: the folder of the socket goes with it.
///
/// # Errors
/// When the kernel has Landlock and refuses.
pub fn confine(socket: &Path, made_folder: bool) -> Result<Confinement, RulesetError> {
    let writes = AccessFs::WriteFile | AccessFs::Truncate;
    let folder = socket.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let mut places: Vec<(&Path, BitFlags<AccessFs>)> = vec![
        (folder, AccessFs::MakeSock | AccessFs::RemoveFile),
        (Path::new(attach::LOCKS), writes | AccessFs::MakeReg | AccessFs::RemoveFile),
        (Path::new("/dev/net/tun"), writes),
        (Path::new("/proc/sys/net/ipv6/conf"), writes),
    ];
    places.extend(folder.parent().filter(|_| made_folder).map(|above| (above, AccessFs::RemoveDir.into())));
    restrict(places)
}

fn restrict(places: Vec<(&Path, BitFlags<AccessFs>)>) -> Result<Confinement, RulesetError> {
    // What is not there now, a kernel without TUN or IPv6 say, will not be written to.
    let rules = places.into_iter().filter_map(|(path, access)| Some(PathBeneath::new(PathFd::new(path).ok()?, access)));
    let ruleset =
        Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::from_write(NEWEST))?;
    let status = ruleset.create()?.add_rules(rules.map(Ok::<_, RulesetError>))?.restrict_self()?;
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => Confinement::Whole,
        RulesetStatus::PartiallyEnforced => Confinement::Partial,
        RulesetStatus::NotEnforced => Confinement::None,
    })
}

/// Confines the process that sets the levers to debugfs's radios (`debugfs`), and its records in `records`.
///
/// # Errors
/// As for [`confine`].
pub fn confine_guard(debugfs: &Path, records: &Path) -> Result<Confinement, RulesetError> {
    let writes = AccessFs::WriteFile | AccessFs::Truncate;
    restrict(vec![(debugfs, AccessFs::WriteFile.into()), (records, writes | AccessFs::MakeReg | AccessFs::RemoveFile)])
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::{ErrorKind, Read};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_confined_thread_writes_its_own_files_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("own")).unwrap();
        fs::write(at("theirs"), "as it was").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if confine(&at("own/lasthop.sock"), true).unwrap() != Confinement::Whole {
                    return println!("SKIPPED: this kernel has no Landlock of Linux 6.2");
                }
                let refused = |result: std::io::Result<()>| result.unwrap_err().kind() == ErrorKind::PermissionDenied;
                assert!(refused(fs::write(at("theirs"), "changed")));
                assert!(refused(File::options().write(true).open(at("theirs")).map(drop)));
                assert!(refused(fs::write(at("new"), "")));
                assert!(refused(fs::write(at("own/new"), "")), "sockets alone are made there");
                assert!(refused(fs::remove_file(at("theirs"))));
                assert!(refused(fs::rename(at("theirs"), at("own/theirs"))));
                assert!(refused(fs::create_dir(at("folder"))));
                let mut text = String::new();
                File::open(at("theirs")).unwrap().read_to_string(&mut text).unwrap();
                assert_eq!(text, "as it was");
                drop(UnixListener::bind(at("own/lasthop.sock")).unwrap());
                fs::remove_file(at("own/lasthop.sock")).unwrap();
                fs::remove_dir(at("own")).unwrap();
            });
        });
        fs::write(at("theirs"), "by another thread").unwrap();
    }
}

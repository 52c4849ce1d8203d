//! What control needs of root's rights.

use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::root::with_sudo;
use lasthop_live::rights;

/// An error naming the rights that control needs and this process lacks.
pub fn require() -> Outcome {
    let missing = rights::missing();
    if missing.is_empty() {
        return Ok(());
    }
    let lacks = rights::names(&missing);
    Err(Failure::work(if rustix::process::geteuid().is_root() {
        format!(
            "this process lacks {lacks}, although it is root's: a container or a service took them; give them back (--cap-add, AmbientCapabilities=)"
        )
    } else {
        format!(
            "attaching programs to network interfaces needs root, or {lacks}; type:\n    {}",
            with_sudo(std::env::args_os())
        )
    }))
}

//! What needs root says so, and says what to type.

use crate::exit::{Failure, Outcome};

/// An error naming what cannot be done (`why`) and the command with sudo before it, unless the process is root.
pub fn require(why: &str) -> Outcome {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err(Failure::work(format!("{why} needs root; type:\n    {}", with_sudo(std::env::args_os()))))
}

/// The command as it was typed, with sudo before it and quotes where a shell needs them.
pub fn with_sudo(arguments: impl Iterator<Item = std::ffi::OsString>) -> String {
    let quoted = arguments.map(|a| {
        let text = a.to_string_lossy().into_owned();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:%,@+".contains(c);
        if !text.is_empty() && text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
    });
    std::iter::once("sudo".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_to_type_survives_a_shell() {
        let typed = ["lasthop", "emulate", "a.toml", "--exec", "N1: ping -c 1 it's"].map(std::ffi::OsString::from);
        assert_eq!(with_sudo(typed.into_iter()), r"sudo lasthop emulate a.toml --exec 'N1: ping -c 1 it'\''s'");
    }
}

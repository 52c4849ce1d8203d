//! Commands that are programs of their own: `lasthop run` becomes `lasthopd run`, `lasthop message` becomes `lasthop-message`.
//!
//! The process stays the same one, with its arguments, environment and open files; so the exit code and signals are those of
//! the other program, and its help and its errors name what was typed.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use lasthop_command::exit::{Failure, Outcome};

/// The controller.
pub const DAEMON: &str = "lasthopd";
const MESSENGER: &str = "lasthop-message";
/// The page.
pub const WEB: &str = "lasthop-web";

/// A command that another program carries out.
#[derive(Debug)]
pub struct Elsewhere {
    name: &'static str,
    /// The first line of its help.
    about: &'static str,
    program: &'static str,
    /// The program has commands and this is one of them; otherwise the program is the command.
    is_one_of_many: bool,
}

const COMMANDS: [Elsewhere; 7] = [
    Elsewhere {
        name: "run",
        about: "Control this machine's last hop: the access point's Wi-Fi and LAN interfaces",
        program: DAEMON,
        is_one_of_many: true,
    },
    Elsewhere {
        name: "status",
        about: "Ask a running controller what it sees, what it does, and why",
        program: DAEMON,
        is_one_of_many: true,
    },
    Elsewhere {
        name: "pause",
        about: "Leave something alone for a while: window control, window updates or UDP marking, for all or for one device",
        program: DAEMON,
        is_one_of_many: true,
    },
    Elsewhere { name: "resume", about: "Go on with what was paused", program: DAEMON, is_one_of_many: true },
    Elsewhere {
        name: "doctor",
        about: "Say what this machine can do, what is missing, and what to type",
        program: DAEMON,
        is_one_of_many: true,
    },
    Elsewhere {
        name: "message",
        about: "Leave messages for slow devices, fetch them, and tune both ends to the device",
        program: MESSENGER,
        is_one_of_many: false,
    },
    Elsewhere {
        name: "web",
        about: "Show live in a browser what a running controller sees, does, and why",
        program: WEB,
        is_one_of_many: false,
    },
];

/// `command` with those of other programs in its list.
pub fn listed(command: clap::Command) -> clap::Command {
    COMMANDS.iter().fold(command, |command, each| command.subcommand(clap::Command::new(each.name).about(each.about)))
}

/// What was typed, where another program carries it out: `lasthop run ..`, `lasthop help run ..`.
pub fn wanted(typed: &[OsString]) -> Option<Call> {
    let (own, rest) = typed.split_first()?;
    let (help, rest) = match rest.split_first() {
        Some((word, rest)) if word == "help" => (Some(word.clone()), rest),
        _ => (None, rest),
    };
    let (word, rest) = rest.split_first()?;
    let command = COMMANDS.iter().find(|command| word == command.name)?;
    let mut called = own.clone();
    if !command.is_one_of_many {
        called.push(" ");
        called.push(word);
    }
    // A program without commands has no command `help`.
    let help = help.map(|word| if command.program == WEB { OsString::from("--help") } else { word });
    let word = command.is_one_of_many.then_some(word);
    let arguments = help.into_iter().chain(word.into_iter().chain(rest).cloned()).collect();
    Some(Call { program: command.program, called, arguments })
}

/// A call of another program.
#[derive(Debug, PartialEq, Eq)]
pub struct Call {
    program: &'static str,
    /// What the program is to take for its own name.
    called: OsString,
    arguments: Vec<OsString>,
}

impl Call {
    /// Becomes that program; returns only when that cannot be done.
    pub fn carry_out(&self) -> Failure {
        let path = match find(self.program) {
            Ok(path) => path,
            Err(failure) => return failure,
        };
        let error = Command::new(&path).arg0(&self.called).args(&self.arguments).exec();
        Failure::work(format!("cannot start {}: {error}", path.display()))
    }
}

/// Where `program` is: beside this one, else in PATH, else in the `sbin` beside this one's `bin`, which Debian's users have not in PATH.
pub fn find(program: &str) -> Outcome<PathBuf> {
    let own = std::env::current_exe().map_err(|error| format!("cannot find this program's own file: {error}"))?;
    let beside = own.with_file_name(program);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let sbin = own.with_file_name("../sbin").join(program);
    let mut places = std::iter::once(beside.clone()).chain(in_path(&path, program)).chain([sbin]);
    if let Some(found) = places.find(|path| is_program(path)) {
        return Ok(found);
    }
    Err(Failure::work(format!(
        "this is done by the program {program}, which is neither {} nor in PATH; `make build` builds it: install it beside lasthop",
        beside.display()
    )))
}

/// Relative folders are left out: root must not run what lies in the folder that it happens to be in.
fn in_path<'a>(path: &'a OsStr, program: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
    std::env::split_paths(path).filter(|folder| folder.is_absolute()).map(move |folder| folder.join(program))
}

fn is_program(path: &Path) -> bool {
    use rustix::fs::{Access, access};
    path.is_file() && access(path, Access::EXEC_OK).map_err(io::Error::from).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(typed: &[&str]) -> Option<(&'static str, String, Vec<String>)> {
        let text = |word: OsString| word.into_string().expect("utf-8");
        let typed: Vec<OsString> = typed.iter().map(OsString::from).collect();
        wanted(&typed).map(|call| (call.program, text(call.called), call.arguments.into_iter().map(text).collect()))
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn what_another_program_does_is_handed_over_as_it_was_typed() {
        let run = call(&["./lasthop", "run", "--lan", "--", "-h"]);
        assert_eq!(run, Some((DAEMON, "./lasthop".into(), words(&["run", "--lan", "--", "-h"]))));
        let send = call(&["lasthop", "message", "send", "--help"]);
        assert_eq!(send, Some((MESSENGER, "lasthop message".into(), words(&["send", "--help"]))));
        let web = call(&["lasthop", "web", "--every", "1s"]);
        assert_eq!(web, Some((WEB, "lasthop web".into(), words(&["--every", "1s"]))));
        let help = call(&["lasthop", "help", "web"]);
        assert_eq!(help, Some((WEB, "lasthop web".into(), words(&["--help"]))));
        let help = call(&["lasthop", "help", "status"]);
        assert_eq!(help, Some((DAEMON, "lasthop".into(), words(&["help", "status"]))));
        let help = call(&["lasthop", "help", "message", "tune"]);
        assert_eq!(help, Some((MESSENGER, "lasthop message".into(), words(&["help", "tune"]))));
    }

    #[test]
    fn everything_else_stays_here() {
        for typed in [&["lasthop"][..], &["lasthop", "help"], &["lasthop", "sim", "run"], &["lasthop", "--help", "run"]]
        {
            assert_eq!(call(typed), None, "{typed:?}");
        }
    }

    #[test]
    fn folders_of_path_that_are_relative_are_not_looked_into() {
        let found: Vec<_> = in_path(OsStr::new("/a::b:/c"), "lasthopd").collect();
        assert_eq!(found, [Path::new("/a/lasthopd"), Path::new("/c/lasthopd")]);
    }
}

//! What `make man` writes: a page for every command with every option, and completions that shells can read.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use lasthop_manual::{SHELLS, programs, write};

/// Commands with everything below them, by the names of their pages.
fn all(command: &clap::Command, name: &str, found: &mut Vec<(String, clap::Command)>) {
    for below in command.get_subcommands() {
        all(below, &format!("{name}-{}", below.get_name()), found);
    }
    found.push((name.to_owned(), command.clone()));
}

#[test]
fn every_command_has_a_page_with_every_option() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(folder.path().join("man1")).expect("made");
    fs::write(folder.path().join("man1/lasthop-gone.1"), "of a command that is gone").expect("written");
    let files = write(folder.path()).expect("written");
    let mut commands = Vec::new();
    programs().iter().for_each(|program| all(program, program.get_name(), &mut commands));
    let names = |name: &str| commands.iter().any(|(own, _)| own == name);
    for name in [
        "lasthop",
        "lasthop-demo",
        "lasthop-run",
        "lasthop-message-tune",
        "lasthopd-run",
        "lasthop-message",
        "lasthop-web",
    ] {
        assert!(names(name), "{name}");
    }
    for (name, command) in &commands {
        let page =
            fs::read_to_string(folder.path().join(format!("man1/{name}.1"))).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(page.contains(&format!(".TH {name} 1")), "{page}");
        for option in command.get_arguments().filter(|option| !option.is_hide_set()).filter_map(|o| o.get_long()) {
            assert!(page.contains(&format!("\\-\\-{}", option.replace('-', "\\-"))), "{name} lacks --{option}: {page}");
        }
    }
    let mut pages: Vec<_> = commands.iter().map(|(name, _)| name).collect();
    pages.sort();
    pages.dedup();
    assert_eq!(files.len(), pages.len() + programs().len() * SHELLS.len(), "nothing else is there: {files:?}");
}

/// Whether `program` finds nothing wrong with `file`; true, said, where it is not installed.
fn is_read_by(program: &str, options: &[&str], file: &Path) -> bool {
    let done = Command::new(program).args(options).arg(file).stdin(Stdio::null()).status();
    match done {
        Ok(status) => status.success(),
        Err(error) => {
            println!("SKIPPED: {program} cannot be started: {error}");
            true
        }
    }
}

#[test]
fn shells_and_readers_of_pages_take_what_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    for file in write(folder.path()).expect("written") {
        let name = file.file_name().and_then(|name| name.to_str()).expect("utf-8").to_owned();
        let (program, options): (&str, &[&str]) = match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("bash") => ("bash", &["-n"]),
            Some("fish") => ("fish", &["--no-execute"]),
            Some("1") => ("mandoc", &["-T", "lint", "-W", "error"]),
            _ => ("zsh", &["-n"]),
        };
        assert!(is_read_by(program, options, &file), "{program} refuses {name}");
    }
    let bash = fs::read_to_string(folder.path().join("completions/lasthop.bash")).expect("there");
    assert!(["--capacity", "--figures", "--profile", "--exec-as-root"].iter().all(|option| bash.contains(option)));
}

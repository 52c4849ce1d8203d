//! Manual pages (roff) and completions (bash, zsh, fish) of `lasthop`, `lasthopd`, `lasthop-message` and `lasthop-web`.
//!
//! They come from the same definitions that read the command line, so they cannot tell anything else. `lasthop` is shown as it is met:
//! with the commands that other programs carry out, and all that is typed behind them. `make man` writes the files (the example
//! `write`); no program links this crate.

use std::io;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use lasthop_command::VERSION;

/// Shells that the programs are completed in.
pub const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// The programs, by name.
#[must_use]
pub fn programs() -> [Command; 4] {
    let (daemon, message) = (lasthop_daemon::command_line(), lasthop_message::command_line());
    let (own, web) = (lasthop_cli::command_line(), lasthop_web::command_line());
    // What both do, `lasthop` does itself, with more: pages and plots.
    let is_elsewhere = |command: &&Command| own.find_subcommand(command.get_name()).is_none();
    let elsewhere: Vec<Command> = daemon.get_subcommands().filter(is_elsewhere).cloned().collect();
    let named = [message.clone().name("message"), web.clone().name("web")];
    let lasthop = own.clone().subcommands(elsewhere).subcommands(named);
    [lasthop, daemon, message, web]
}

/// Writes `man1/*.1` and `completions/*` into `folder`, which it makes; returns the files.
///
/// # Errors
/// What could not be written.
pub fn write(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (man, completions) = (folder.join("man1"), folder.join("completions"));
    // A command that is gone must not leave its page behind.
    for folder in [&man, &completions] {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => std::fs::create_dir_all(folder)?,
        }
    }
    let mut files = Vec::new();
    for program in programs() {
        let mut shown = program.clone().disable_help_subcommand(true);
        shown.build();
        pages(&shown, &man)?;
        let name = program.get_name().to_owned();
        for shell in SHELLS {
            files.push(clap_complete::generate_to(shell, &mut program.clone(), &name, &completions)?);
        }
    }
    for page in std::fs::read_dir(&man)? {
        files.push(page?.path());
    }
    files.sort();
    Ok(files)
}

/// A page for the command and for each below it, `lasthop-sim.1` and so on.
fn pages(command: &Command, folder: &Path) -> io::Result<()> {
    command.get_subcommands().filter(|below| !below.is_hide_set()).try_for_each(|below| pages(below, folder))?;
    let (release, day) = built();
    let page = Man::new(command.clone()).date(day).source(format!("Lasthop {release}")).manual("Lasthop");
    page.generate_to(folder).map(drop)
}

/// The release, and the day of what was built: "0.2.0 (5cdfa4ead7ae, 2026-11-24)".
fn built() -> (&'static str, &'static str) {
    let release = VERSION.split(' ').next().unwrap_or_default();
    let day = VERSION.rsplit(", ").next().map_or("", |rest| rest.trim_end_matches(')'));
    let is_day = day.len() == 10 && day.chars().all(|c| c.is_ascii_digit() || c == '-');
    (release, if is_day { day } else { "" })
}

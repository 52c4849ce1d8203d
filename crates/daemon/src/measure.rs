//! `lasthop measure` on a router: whether control helps in this home, as text and as JSON.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::output;
use lasthop_command::signals::Stop;
use lasthop_command::terminal::Look;
use lasthop_measure::Report;
use lasthop_measure::host::{self, Options};

const AFTER_HELP: &str = "\
Examples:
  sudo lasthopd measure                                  an hour of this home: 30 pairs of blocks
  sudo lasthopd measure --for 2h --json evening.json     and what was measured, second by second
  lasthop measure --from evening.json --html evening.html --flent evening.flent.gz
                                                         elsewhere: a page with plots, and files for flent

For half of the blocks control is paused, in random order; it goes on by itself if this is killed. Somebody has to
download meanwhile: pairs of blocks without load do not count. Ctrl-C ends it early and shows what was finished.";

/// Measure whether control helps in this home: blocks with and without it, in random order
///
/// Needs a running controller, root (it pauses control), and a home that downloads. Tells how much shorter packets wait, what
/// that costs, and how sure that is; names of devices stay here unless --names puts them into the report.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    #[command(flatten)]
    options: Options,
    /// Write what was measured as JSON; "-" is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Measures and prints.
pub fn run(arguments: &Arguments) -> Outcome {
    let file = arguments.json.as_deref().filter(|path| *path != Path::new("-")).map(Draft::begin).transpose()?;
    let stop = Stop::on_signals()?;
    let measured = host::measure(&arguments.options, &stop, &mut |_, _| None)?;
    match (&arguments.json, file) {
        (Some(_), None) => output::print_out(&measured.report.to_json())?,
        (_, file) => {
            output::print_out(&host::render(&measured.report, Look::stdout()))?;
            file.map_or(Ok(()), |file| file.keep(&measured.report))?;
        }
    }
    measured.end()
}

/// A file that takes its place when it is whole, tried before an hour is spent.
#[derive(Debug)]
struct Draft {
    path: PathBuf,
    part: PathBuf,
    file: File,
}

impl Draft {
    fn begin(path: &Path) -> Outcome<Self> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        // Root follows no link that somebody put there, and overwrites nothing.
        let file = File::create_new(&part);
        let file = file.map_err(|error| Failure::request(format!("cannot write {}: {error}", part.display())))?;
        Ok(Self { path: path.to_owned(), part, file })
    }

    fn keep(mut self, report: &Report) -> Outcome {
        let done =
            self.file.write_all(report.to_json().as_bytes()).and_then(|()| std::fs::rename(&self.part, &self.path));
        done.map_err(|error| format!("cannot write {}: {error}", self.path.display()))?;
        output::give_to_sudo_user(&self.path);
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Gone already where it was kept.
        let _ = std::fs::remove_file(&self.part);
    }
}

//! `lasthop emulate`: any scenario in real time, with real packets and your own programs in it.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::output::Sink;
use lasthop_command::signals::Stop;
use lasthop_command::terminal::Look;
use lasthop_command::{output, root};
use lasthop_emu::ProgramEnd;
use lasthop_home::scenario::Scenario;

use crate::account;
use crate::controller;
use crate::html;
use crate::play::{self, Play, Played};

const AFTER_HELP: &str = "\
Examples:
  sudo lasthop emulate scenarios/papers/sap-law.toml --set flow.ftp.cc=cubic
  sudo lasthop emulate scenarios/papers/sap-law.toml --exec 'N1: ping -c 20 $LASTHOP_W1'
  sudo lasthop emulate home.toml --exec 'N1: wget -O /dev/null http://$LASTHOP_W1/' --end-with N1
  sudo lasthop emulate home.toml --exec-as-root 'AP: tcpdump -i wlan0 -w wlan0.pcap'
  sudo lasthop emulate home.toml --set wifi.queue.limit=1000 --json result.json
  sudo lasthop emulate home.toml --html run.html         opens in a browser
  sudo lasthop emulate home.toml --pcap air.pcapng       opens in Wireshark
  sudo lasthop emulate home.toml --trace segments.jsonl
  sudo lasthop emulate home.toml --socket home.sock      and in another terminal:
  sudo lasthop status --watch --socket home.sock

Hosts are called as in the scenario; `AP` is the access point. A command runs in a shell, where
$LASTHOP_W1 is the address of W1, $LASTHOP_W1_V6 its IPv6 address, and $LASTHOP_STORAGE a folder for
files that is as slow as the station's `storage` says. It runs as you who typed sudo, with your groups and
home, or as nobody where root typed the command; it has no rights of root's (capabilities) and gains none,
by set-uid programs either. ping works all the same. What needs root: --exec-as-root.

Programs start when packets can move between the hosts, and those that still run at the end are stopped.
If one of them failed, the exit code is that of the first that did, in the order of the command line with
--exec-as-root before --exec; 128 + n stands for signal n. What was asked for is written all the same.

A run that --end-with ends before measure_from has nothing to measure there: its figures are then of
everything from second 0 on, and the report says so (measure_from_s is 0).";

/// Play a scenario in real time with real packets, and your own programs in it
///
/// Makes the scenario's home out of network namespaces, plays its traffic over ordinary sockets, and reports what
/// became of every packet. Nothing is left behind.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// The scenario file
    scenario: PathBuf,
    /// Run a program in a host while the scenario plays; may be given more than once. It runs as you who typed sudo, or as
    /// nobody where root did
    #[arg(long, value_name = "HOST: COMMAND", value_parser = host_and_command)]
    exec: Vec<(String, String)>,
    /// The same as root, for programs that need it: tcpdump, ports below 1024, `lasthop run` in the access point
    #[arg(long, value_name = "HOST: COMMAND", value_parser = host_and_command)]
    exec_as_root: Vec<(String, String)>,
    /// End the run when the programs of this host have ended, not only when the scenario's duration is over
    #[arg(long, value_name = "HOST")]
    end_with: Option<String>,
    /// Change a key of the scenario: wifi.queue.limit=100, control.window=none; the later wins
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed of the air's losses and backoffs, and of the traffic [default: the scenario's]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write the report as JSON; "-" is stdout
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the run as a page for a browser: tables, and delays, windows and the queue over time
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write every packet that crosses the access point
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write a JSON line per TCP segment of the last hop: windows, and how long data and acknowledgments took
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write what the controller says, and its status ten times a second, as JSON lines
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Where the controller serves its status and takes commands while the scenario plays: `lasthop status --socket PATH`
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

fn host_and_command(text: &str) -> Result<(String, String), String> {
    match text.split_once(':').map(|(host, command)| (host.trim(), command.trim())) {
        Some((host, command)) if !host.is_empty() && !command.is_empty() => Ok((host.to_owned(), command.to_owned())),
        _ => Err("write a host of the scenario, a colon and a command: 'N1: ping -c 5 $LASTHOP_W1'".to_owned()),
    }
}

/// Plays the scenario once and shows the report.
pub fn run(arguments: &Arguments) -> Outcome {
    let sink = arguments.json.as_deref().map(Sink::open).transpose()?;
    let page = html::open(arguments.html.as_deref())?;
    if [&sink, &page].into_iter().flatten().filter(|sink| sink.is_stdout()).count() > 1 {
        return Err(Failure::request(anyhow!("only one of --json and --html can go to stdout")));
    }
    let mut sets = arguments.set.clone();
    sets.extend(arguments.seed.map(|seed| format!("seed={seed}")));
    let scenario = Scenario::load(&arguments.scenario, &sets).map_err(Failure::request)?;
    root::require("making network namespaces and TAP devices")?;
    if arguments.socket.is_some() && !controller::is_wanted(&scenario) {
        return Err(Failure::request(
            "--socket is the controller's, and the scenario asks for none; set control.window, or leave --socket out",
        ));
    }
    let stop = Stop::on_signals()?;
    let mut play = Play::new(&scenario, &scenario.name);
    play.exec.clone_from(&arguments.exec);
    play.exec_as_root.clone_from(&arguments.exec_as_root);
    play.end_with.clone_from(&arguments.end_with);
    play.pcap.clone_from(&arguments.pcap);
    play.trace.clone_from(&arguments.trace);
    play.log.clone_from(&arguments.log);
    play.socket.clone_from(&arguments.socket);
    play.course = page.is_some();
    let Played { report, course, programs } = play::run(&play, &stop)?;
    for path in [&arguments.pcap, &arguments.trace, &arguments.log].into_iter().flatten() {
        output::give_to_sudo_user(path);
    }
    let to_stdout = [&sink, &page].into_iter().flatten().any(Sink::is_stdout);
    let look = if to_stdout { Look::stderr() } else { Look::stdout() };
    let text = account::of_run(&report, look) + &account::of_programs(&programs, look);
    if to_stdout {
        eprint!("{text}");
    } else {
        output::print_out(&text)?;
    }
    if let (Some(page), Some(course)) = (&page, &course) {
        page.write_text(&html::of_run(&scenario, &report, course))?;
        arguments.html.as_deref().filter(|_| !page.is_stdout()).into_iter().for_each(html::tell);
    }
    sink.map_or(Ok(()), |sink| sink.write_json(&report))?;
    first_failure(&programs).map_or(Ok(()), Err)
}

/// Of the programs that ended by themselves.
fn first_failure(programs: &[ProgramEnd]) -> Option<Failure> {
    programs.iter().find_map(|program| {
        let code = program.code.filter(|code| *code != 0)?;
        let ProgramEnd { host, command, .. } = program;
        let how = account::of_exit_code(code);
        // A code that is none of a process cannot be handed on as it is.
        Some(Failure::Program(u8::try_from(code).unwrap_or(1), format!("in {host} `{command}` ended with {how}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: Option<i32>) -> ProgramEnd {
        ProgramEnd { host: "N1".into(), command: "ping".into(), code }
    }

    #[test]
    fn the_first_program_that_failed_gives_the_exit_code() {
        assert!(first_failure(&[ended(Some(0)), ended(None)]).is_none(), "what we stopped did not fail");
        let failure = first_failure(&[ended(None), ended(Some(137)), ended(Some(1))]);
        let Some(Failure::Program(137, text)) = failure else { panic!("{failure:?}") };
        assert_eq!(text, "in N1 `ping` ended with exit code 137 (signal 9)");
    }

    #[test]
    fn a_command_names_its_host_and_may_hold_colons() {
        assert_eq!(host_and_command("N1: curl http://W1:80/"), Ok(("N1".into(), "curl http://W1:80/".into())));
        for bad in ["ping W1", ": ping", "N1:", ""] {
            assert!(host_and_command(bad).unwrap_err().contains("N1: ping"), "{bad}");
        }
    }
}

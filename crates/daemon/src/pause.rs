//! `lasthop pause` and `lasthop resume`: a running controller leaves something alone for a while.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::output;
use lasthop_core::units::Span;
use lasthop_status::command::{self, LONGEST_PAUSE, Request, What};
use lasthop_status::{DEFAULT_SOCKET, PauseStatus};

const PAUSE_EXAMPLES: &str = "\
Examples:
  sudo lasthop pause --for 10min                    act on nothing for ten minutes
  sudo lasthop pause --device work-laptop --for 8h  leave this device's connections alone
  sudo lasthop pause udp                            mark no UDP flow for an hour
  sudo lasthop pause trials --for until-resumed     leave levers of radios where they are

Names are those of DHCP leases and /etc/hosts; Ethernet and IP addresses work, too. `lasthop status` lists both. A device's new
connection is left alone from its first 50 ms on. Everything goes on by itself when the time is over, or the controller ends.";

/// Act on nothing for a while, or leave a part of control alone, for all or for one device
#[derive(Debug, Args)]
#[command(after_help = PAUSE_EXAMPLES)]
pub struct PauseArguments {
    #[command(flatten)]
    of: Of,
    /// How long, at most a week; "until-resumed": until `lasthop resume`, or the controller ends
    #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = time)]
    time: For,
}

/// Go on with what was paused
///
/// What is not paused is no error.
#[derive(Debug, Args)]
pub struct ResumeArguments {
    #[command(flatten)]
    of: Of,
}

#[derive(Debug, Args)]
struct Of {
    /// What
    #[arg(value_name = "WHAT", value_enum, default_value = "all")]
    what: Part,
    /// For this device alone: its name, Ethernet or IP address [default: for all]
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// The controller's status socket; its command socket is beside it
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    socket: PathBuf,
}

/// [`What`], on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Part {
    /// All of the below; for a device windows and udp, which can be paused for one
    All,
    /// Window control: the windows that TCP receivers offer are lowered
    Windows,
    /// Window updates: windows are advertised between acknowledgments
    Updates,
    /// UDP marking: UDP flows that behave like downloads are marked, or dropped where they take no marks
    Udp,
    /// Levers and MAC settings of radios: all are put back as they were found
    Levers,
    /// Trials of levers: what was decided stays in force, and nothing else is tried
    Trials,
}

impl Of {
    fn what(&self) -> Vec<What> {
        let is_possible = |what: &What| self.device.is_none() || what.is_of_devices();
        match self.what {
            Part::All => What::ALL.into_iter().filter(is_possible).collect(),
            Part::Windows => vec![What::Windows],
            Part::Updates => vec![What::Updates],
            Part::Udp => vec![What::Udp],
            Part::Levers => vec![What::Levers],
            Part::Trials => vec![What::Trials],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum For {
    Time(Span),
    UntilResumed,
}

fn time(text: &str) -> Result<For, String> {
    if text == "until-resumed" {
        return Ok(For::UntilResumed);
    }
    let span: Span = text.parse().map_err(|error| format!("{error}; or \"until-resumed\""))?;
    let longest = Span::from_secs_f64(LONGEST_PAUSE);
    if span == Span::ZERO || span > longest {
        return Err(format!(
            "a pause lasts more than nothing and at most {} h; or \"until-resumed\"",
            LONGEST_PAUSE / 3600.0
        ));
    }
    Ok(For::Time(span))
}

/// Asks the controller to pause.
pub fn pause(arguments: &PauseArguments) -> Outcome {
    let for_s = match arguments.time {
        For::Time(span) => Some(span.as_secs_f64()),
        For::UntilResumed => None,
    };
    tell(&arguments.of, |what, device| Request::Pause { what, device, for_s })
}

/// Asks the controller to resume.
pub fn resume(arguments: &ResumeArguments) -> Outcome {
    tell(&arguments.of, |what, device| Request::Resume { what, device })
}

fn tell(of: &Of, request: impl Fn(What, Option<String>) -> Request) -> Outcome {
    let mut paused = Vec::new();
    for what in of.what() {
        paused = command::ask(&of.socket, &request(what, of.device.clone())).map_err(Failure::work)?;
    }
    output::print_out(&render(&paused))
}

fn render(paused: &[PauseStatus]) -> String {
    if paused.is_empty() {
        return "nothing is paused\n".to_owned();
    }
    let line = |pause: &PauseStatus| {
        let whose = pause.device.as_ref().map_or_else(|| "all".to_owned(), ToOwned::to_owned);
        let left = pause.left_s.map_or_else(
            || "until it is resumed, or the controller ends".to_owned(),
            |s| format!("for {} more", Span::from_secs_f64(s).rounded()),
        );
        format!("{} is paused for {whose}, {left}\n", pause.what.name())
    };
    paused.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_bounded_and_said() {
        assert_eq!(time("10min"), Ok(For::Time(Span::from_secs(600))));
        assert_eq!(time("until-resumed"), Ok(For::UntilResumed));
        for text in ["0s", "1000000s", "soon"] {
            assert!(time(text).unwrap_err().contains("until-resumed"), "{text}");
        }
    }

    #[test]
    fn what_is_paused_is_said_for_whom_and_for_how_long() {
        let of =
            |device: Option<&str>, left_s| PauseStatus { what: What::Udp, device: device.map(str::to_owned), left_s };
        let text = render(&[of(None, Some(90.0)), of(Some("02:00:5e:10:00:01"), None)]);
        assert_eq!(
            text,
            "UDP marking is paused for all, for 90 s more\n\
             UDP marking is paused for 02:00:5e:10:00:01, until it is resumed, or the controller ends\n"
        );
        assert_eq!(render(&[]), "nothing is paused\n");
    }
}

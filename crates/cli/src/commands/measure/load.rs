//! `lasthop measure --load`: the load is made here, and its probes say what each block was like for them.

use clap::Args;
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::signals::Stop;
use lasthop_measure::host::{self, Measured, Options};
use lasthop_measure::plan::Direction;
use lasthop_responsiveness::{self as responsiveness, Directions, Load, Params, Target};

use super::responsiveness::TrustArguments;

/// Where the load comes from.
#[derive(Debug, Args)]
pub struct LoadArguments {
    /// Load the path to this server all the time, and probe it: https://ADDRESS:PORT, or the URL of its configuration
    #[arg(long, value_name = "URL")]
    load: Option<String>,
    #[command(flatten)]
    trust: TrustArguments,
}

/// Measures, with a load where one is asked for.
pub fn measure(arguments: &LoadArguments, options: &Options, stop: &Stop) -> Outcome<Measured> {
    let Some(url) = &arguments.load else {
        if arguments.trust.is_given() {
            return Err(Failure::request(
                "--fingerprint, --ca and --insecure say whom --load believes; give --load, too",
            ));
        }
        return host::measure(options, stop, &mut |_, _| None);
    };
    // What is wrong with the request is said before anything is loaded.
    let plan = options.plan()?;
    let directions = match plan.direction {
        Direction::Down => Directions::Down,
        Direction::Up => Directions::Up,
    };
    let target = Target::new(url, arguments.trust.read()?).map_err(Failure::request)?;
    // A block is looked at when it is over.
    let params = Params::default();
    let params = Params { kept_intervals: params.kept_intervals.max(plan.block_s as usize + 60), ..params };
    let asked = responsiveness::Options { params, directions };
    let load = Load::start(&target, asked).map_err(Failure::work)?;
    let seen = |from, until| load.responsiveness_between(from, until).map(|report| report.score.rpm);
    let measured = host::measure(options, stop, &mut { seen })?;
    if let Some(error) = load.take_error() {
        eprintln!("the load ended before the measurement did: {error}");
    }
    load.stop();
    Ok(measured)
}

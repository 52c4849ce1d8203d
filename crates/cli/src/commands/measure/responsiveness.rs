//! `lasthop measure responsiveness`: the IETF's responsiveness test by itself.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use lasthop_command::exit::{Failure, Outcome};
use lasthop_command::output::print_out;
use lasthop_command::progress::Line;
use lasthop_command::signals::Stop;
use lasthop_command::table::{Align, Table};
use lasthop_core::units::Span;
use lasthop_responsiveness::{
    Confidence, Directions, Error, Fingerprint, Found, Options, Params, Snapshot, Stage, Target, Trust, measure,
};
use serde::Serialize;

const AFTER_HELP: &str = "\
Examples:
  lasthop measure responsiveness https://192.168.1.2:4043 --fingerprint 9f3c..
  lasthop measure responsiveness https://nq.example.com/config --sequential --json

Loads the path to the server in both directions and asks it for a byte over and over: on
connections of their own, and on those that carry the load. The result is in round trips per minute
(RPM): 60,000 divided by milliseconds. Below 300 is poor, below 1000 fair, below 6000 good. It ends
when goodput and responsiveness are stable, or after --for, and then says that they are not.

The server is `lasthop measure serve`, or any other of draft-ietf-ippm-responsiveness with HTTP/2.
Without a path in the URL its configuration is taken from /.well-known/nq.";

/// The responsiveness under load, in round trips per minute, against a server of yours
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Arguments {
    /// The server: https://ADDRESS:PORT, or the URL of its configuration
    url: String,
    #[command(flatten)]
    trust: TrustArguments,
    /// Which way data go while it is measured
    #[arg(long, value_name = "WAY", value_enum, default_value_t = Way::Both)]
    direction: Way,
    /// First download alone, then upload alone, with a result of each
    #[arg(long, conflicts_with = "direction")]
    sequential: bool,
    /// When it ends although nothing is stable [default: 20 intervals]
    #[arg(long = "for", value_name = "TIME")]
    limit: Option<Span>,
    /// How often a connection is added and stability is looked at; the draft's revision 09 has 5s
    #[arg(long, value_name = "TIME", default_value = "1s")]
    interval: Span,
    /// The most connections that carry load, in each direction
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=64))]
    connections: u32,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Whose certificate is believed.
#[derive(Debug, Args)]
pub struct TrustArguments {
    /// The server's certificate has this SHA-256, as the server says it
    #[arg(long, value_name = "SHA256", group = "whom")]
    fingerprint: Option<Fingerprint>,
    /// Authorities that sign the server's certificate, as PEM [default: the system's]
    #[arg(long, value_name = "FILE", group = "whom")]
    ca: Option<PathBuf>,
    /// Believe every certificate: whoever stands between may be the server
    #[arg(long, group = "whom")]
    insecure: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Way {
    Both,
    Down,
    Up,
}

impl TrustArguments {
    /// Whether any of them was typed.
    pub fn is_given(&self) -> bool {
        self.fingerprint.is_some() || self.ca.is_some() || self.insecure
    }

    /// Whose it is.
    pub fn read(&self) -> Outcome<Trust> {
        Ok(match (self.fingerprint, &self.ca) {
            (Some(fingerprint), _) => Trust::Fingerprint(fingerprint),
            (None, Some(path)) => Trust::Authorities(read(path)?),
            (None, None) if self.insecure => Trust::Anything,
            (None, None) => Trust::System,
        })
    }
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display())).map_err(Failure::request)
}

/// The directions that are loaded one after the other.
fn rounds(arguments: &Arguments) -> &'static [Directions] {
    match arguments.direction {
        _ if arguments.sequential => &[Directions::Down, Directions::Up],
        Way::Both => &[Directions::Both],
        Way::Down => &[Directions::Down],
        Way::Up => &[Directions::Up],
    }
}

fn params(arguments: &Arguments) -> Outcome<Params> {
    let (interval, least) = (arguments.interval, Span::from_millis(100));
    let limit = arguments.limit.unwrap_or(interval.mul_f64(20.0));
    if interval < least || interval > Span::from_secs(60) {
        return Err(Failure::request("--interval has to be between 100ms and 60s"));
    }
    if limit < interval || limit > Span::from_secs(3600) {
        return Err(Failure::request("--for has to be at least one --interval, and at most 1h"));
    }
    let most_connections = arguments.connections as usize;
    Ok(Params { interval, limit: Some(limit), most_connections, ..Params::default() })
}

/// One round's result, in JSON.
#[derive(Debug, Serialize)]
struct Round {
    direction: Directions,
    category: &'static str,
    #[serde(flatten)]
    found: Found,
}

/// Measures, and says what was found.
pub fn run(arguments: &Arguments) -> Outcome {
    let params = params(arguments)?;
    let target = Target::new(&arguments.url, arguments.trust.read()?).map_err(Failure::request)?;
    let stop = Stop::on_signals()?;
    let mut rows = Vec::new();
    for &directions in rounds(arguments) {
        let mut line = Line::new("responsiveness");
        let limit_s = params.limit.map_or(20.0, Span::as_secs_f64);
        let interval_s = params.interval.as_secs_f64();
        let progress = |seen: &Snapshot| {
            let clock_s = seen.intervals as f64 * interval_s;
            line.step(clock_s, clock_s / limit_s, &told(seen));
        };
        let found = measure(&target, Options { params, directions }, progress, || stop.has_come());
        line.end();
        let found = found.map_err(|error| match stop.check() {
            Err(stopped) if matches!(error, Error::Stopped) => stopped,
            _ => Failure::work(error),
        })?;
        rows.push(Round { direction: directions, category: found.report.score.category().name(), found });
    }
    if arguments.json {
        let text = serde_json::to_string_pretty(
            &serde_json::json!({ "draft": "draft-ietf-ippm-responsiveness-09", "results": rows }),
        )?;
        return print_out(&(text + "\n"));
    }
    let texts: Vec<String> = rows.iter().map(text).collect();
    print_out(&texts.join("\n"))
}

fn told(seen: &Snapshot) -> String {
    let waits = match seen.stage {
        Stage::Goodput => "goodput rises",
        Stage::Responsiveness | Stage::Holding => "probing",
        Stage::Finished => "done",
    };
    let rpm = seen.rpm.map_or_else(String::new, |rpm| format!(", {rpm:.0} RPM"));
    format!("{waits}: {:.1} down, {:.1} up Mbit/s{rpm}", seen.goodput_bps[0] / 1e6, seen.goodput_bps[1] / 1e6)
}

/// What a person reads; 80 columns at most.
fn text(round: &Round) -> String {
    let (report, score) = (&round.found.report, &round.found.report.score);
    let load = match round.direction {
        Directions::Both => "with downloads and uploads",
        Directions::Down => "with downloads",
        Directions::Up => "with uploads",
    };
    let mut text = format!("{:.0} RPM {load}: {} responsiveness\n", score.rpm, round.category);
    text += &format!("{}\n\n", trusted(round));
    let mut table =
        Table::new(&[Align::Left, Align::Left, Align::Right, Align::Right], &[&["probes", "", "mean, ms", "count"]]);
    let mut row = |who: &str, what: &str, ms: f64, count: usize| {
        table.row([who.to_owned(), what.to_owned(), format!("{ms:.1}"), count.to_string()]);
    };
    row("on their own", "TCP handshake", score.tcp_ms, score.foreign_probes);
    row("", "TLS handshake", score.tls_ms, score.foreign_probes);
    row("", "GET of one byte", score.http_ms, score.foreign_probes);
    row("within the load", "GET of one byte", score.self_ms, score.self_probes);
    row("before the load", "TCP handshake", round.found.idle_ms, 1);
    text += &table.fit(0, 80).text;
    text.push('\n');
    let sides = [("down", report.goodput_down_bps, 0), ("up", report.goodput_up_bps, 1)];
    for (way, bps, index) in sides {
        if let Some(bps) = bps {
            let connections = report.connections[index];
            text += &format!("goodput {way:<5} {:.1} Mbit/s over {connections} connections\n", bps / 1e6);
        }
    }
    if report.lost_probes > 0 {
        text += &format!("{} probes did not come back\n", report.lost_probes);
    }
    text
}

/// How far it is to be trusted, and why.
fn trusted(round: &Round) -> String {
    let report = &round.found.report;
    let after = format!("after {:.0} s", report.seconds);
    let confidence = report.confidence.name();
    match (report.confidence, report.goodput_confidence) {
        (Confidence::High, Confidence::High) => {
            format!("confidence high: goodput and responsiveness were stable {after}")
        }
        (Confidence::High, _) => format!("confidence high, but goodput was not stable {after}"),
        (_, Confidence::High) => format!("confidence {confidence}: not stable {after}"),
        _ => format!("confidence {confidence}: neither goodput nor responsiveness was stable {after}"),
    }
}

#[cfg(test)]
mod tests {
    use lasthop_responsiveness::{Report, Score};

    use super::*;

    fn round(confidence: Confidence) -> Round {
        let score = Score {
            rpm: 198.4,
            foreign_rpm: 200.0,
            self_rpm: 196.8,
            tcp_ms: 301.25,
            tls_ms: 302.0,
            http_ms: 300.0,
            self_ms: 12_345.678,
            foreign_probes: 1234,
            self_probes: 1233,
        };
        let report = Report {
            score,
            goodput_down_bps: Some(18.94e6),
            goodput_up_bps: Some(1.9e6),
            connections: [9, 9],
            stable: confidence == Confidence::High,
            confidence,
            goodput_confidence: Confidence::High,
            lost_probes: 2,
            intervals: 9,
            seconds: 9.04,
        };
        Round { direction: Directions::Both, category: "poor", found: Found { report, idle_ms: 0.21 } }
    }

    #[test]
    fn what_a_person_reads_fits_into_80_columns_and_says_how_far_to_trust_it() {
        for confidence in [Confidence::Low, Confidence::Medium, Confidence::High] {
            let text = text(&round(confidence));
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            assert!(text.starts_with("198 RPM with downloads and uploads: poor responsiveness\n"), "{text}");
            assert!(text.contains(&format!("confidence {}", confidence.name())), "{text}");
            assert_eq!(text.contains("not stable"), confidence != Confidence::High, "{text}");
        }
    }

    #[test]
    fn json_has_every_figure_by_name_with_its_unit() {
        let json = serde_json::to_value(round(Confidence::High)).expect("JSON");
        for (name, value) in [("rpm", 198.4), ("tcp_ms", 301.25), ("goodput_down_bps", 18.94e6), ("idle_ms", 0.21)] {
            assert_eq!(json[name], value, "{name}");
        }
        assert_eq!((&json["direction"], &json["confidence"]), (&"both".into(), &"high".into()));
    }
}

//! A measurement as flent's data files, version 4 of its form: gzipped JSON with series over one list of times, raw values and metadata.
//!
//! The tests are flent's own `tcp_download` and `tcp_upload`, so that its plots are there: "TCP download" is what was carried, and
//! "Ping (ms) ICMP" the round trip without a queue with the second's median wait added: round trips, as a ping's, though none was sent.
//! The metadata say so. Source of the form: flent 2.1.1, `resultset.py`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use lasthop_command::exit::Outcome;
use lasthop_command::output::Sink;
use lasthop_measure::{Arm, Block, Direction, Report, findings};
use serde_json::{Map, Value, json};

/// How flent's files end.
pub const SUFFIX: &str = ".flent.gz";
/// Of flent's form.
const VERSION: u32 = 4;
/// As its tests call them.
const PING: &str = "Ping (ms) ICMP";

/// The three files, tried before an hour is spent.
#[derive(Debug)]
pub struct Files {
    /// With what each holds: everything, or the blocks of one arm that count.
    sinks: [(Option<Arm>, PathBuf, Sink); 3],
}

/// A second of the evening.
struct Second {
    at_s: f64,
    rate_bps: u64,
    wait_ms: Option<f64>,
}

impl Files {
    /// `path` and, before its end, `-without` and `-with`.
    pub fn open(path: &Path) -> Outcome<Self> {
        let text = path.to_string_lossy();
        let stem = text.strip_suffix(SUFFIX).unwrap_or(&text);
        let open = |arm: Option<Arm>, more: &str| -> Outcome<_> {
            let path = PathBuf::from(format!("{stem}{more}{SUFFIX}"));
            let sink = Sink::open(&path)?;
            Ok((arm, path, sink))
        };
        Ok(Self { sinks: [open(None, "")?, open(Some(Arm::Off), "-without")?, open(Some(Arm::On), "-with")?] })
    }

    /// Writes them; one without a second of anything is left out.
    pub fn write(&self, report: &Report) -> Outcome {
        let mut written = Vec::new();
        for (arm, path, sink) in &self.sinks {
            let seconds = arm.map_or_else(|| evening(report), |arm| counted(report, arm));
            if seconds.is_empty() {
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let text = data(report, *arm, &seconds, &name).to_string();
            let mut gzip = GzEncoder::new(sink.draft()?, Compression::default());
            gzip.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
            gzip.finish().with_context(|| format!("cannot write {}", path.display()))?.keep()?;
            written.push(path.display().to_string());
        }
        eprintln!("For flent: {}", if written.is_empty() { "nothing was seen".to_owned() } else { written.join(", ") });
        Ok(())
    }
}

/// Everything, in the time of the evening.
fn evening(report: &Report) -> Vec<Second> {
    report
        .blocks
        .iter()
        .flat_map(|block| of_block(block).map(|s| Second { at_s: block.start_s + s.at_s, ..s }))
        .collect()
}

/// What counts of one arm, second after second.
fn counted(report: &Report, arm: Arm) -> Vec<Second> {
    let plan = &report.plan;
    let pairs = findings::counted(&report.blocks, plan.discard_s, report.found().loaded_from_bps);
    let blocks = pairs.iter().map(|(on, off)| if arm == Arm::On { *on } else { *off });
    let seconds = blocks.flat_map(of_block).filter(|second| second.at_s > f64::from(plan.discard_s) + 0.5);
    seconds.enumerate().map(|(i, second)| Second { at_s: (i + 1) as f64, ..second }).collect()
}

fn of_block(block: &Block) -> impl Iterator<Item = Second> {
    let seconds = block.at_s.iter().zip(&block.rate_bps).zip(&block.wait_ms);
    seconds.map(|((at_s, rate_bps), wait_ms)| Second { at_s: *at_s, rate_bps: *rate_bps, wait_ms: *wait_ms })
}

fn data(report: &Report, arm: Option<Arm>, seconds: &[Second], name: &str) -> Value {
    let (test, carried) = match report.plan.direction {
        Direction::Down => ("tcp_download", "TCP download"),
        Direction::Up => ("tcp_upload", "TCP upload"),
    };
    let base = report.base_rtt_ms.unwrap_or(0.0);
    let pings: Vec<Option<f64>> = seconds.iter().map(|s| s.wait_ms.map(|wait| micro(base + wait))).collect();
    let rates: Vec<f64> = seconds.iter().map(|s| micro(s.rate_bps as f64 / 1e6)).collect();
    let times: Vec<f64> = seconds.iter().map(|s| micro(s.at_s)).collect();
    let raw = |values: &[Option<f64>]| {
        let point = |(at, value): (&f64, &Option<f64>)| {
            Some(json!({ "t": report.started_unix_s as f64 + at, "val": (*value)? }))
        };
        Value::Array(times.iter().zip(values).filter_map(point).collect())
    };
    let some_rates: Vec<Option<f64>> = rates.iter().copied().map(Some).collect();
    let raw_values: Map<String, Value> =
        [(PING.to_owned(), raw(&pings)), (carried.to_owned(), raw(&some_rates))].into_iter().collect();
    let results: Map<String, Value> =
        [(PING.to_owned(), json!(pings)), (carried.to_owned(), json!(rates))].into_iter().collect();
    json!({
        "version": VERSION,
        "x_values": times,
        "results": results,
        "raw_values": raw_values,
        "metadata": metadata(report, arm, test, (carried, &rates), &times, name),
    })
}

fn metadata(
    report: &Report,
    arm: Option<Arm>,
    test: &str,
    carried: (&str, &[f64]),
    times: &[f64],
    name: &str,
) -> Value {
    let began = date(report.started_unix_s);
    let length = times.last().copied().unwrap_or(0.0);
    let title = arm.map_or("control on and off in turns", Arm::name);
    let what = match report.base_rtt_ms {
        Some(_) => "the median round trip without a queue (LASTHOP_BASE_RTT_MS) and",
        None => "nothing for the round trip, which was not known, and",
    };
    let note = format!(
        "Made by `lasthop measure`. No ping was sent: \"{PING}\" is {what} the median wait that the access point saw added to it in each \
         second. \"{}\" is all IP traffic of that direction.",
        carried.0
    );
    let mean = carried.1.iter().sum::<f64>() / carried.1.len().max(1) as f64;
    json!({
        "NAME": test,
        "TITLE": title,
        "NOTE": note,
        "TIME": began,
        "T0": began,
        "HOST": "lasthop",
        "HOSTS": ["lasthop"],
        "LOCAL_HOST": "access-point",
        "LENGTH": length,
        "TOTAL_LENGTH": length,
        "STEP_SIZE": 1.0,
        "TEST_PARAMETERS": {},
        "DATA_FILENAME": name,
        "FLENT_VERSION": null,
        "IP_VERSION": null,
        "BATCH_NAME": null,
        "BATCH_TIME": null,
        "BATCH_TITLE": null,
        "BATCH_UUID": null,
        "SERIES_META": { carried.0: { "MEAN_VALUE": micro(mean), "UNITS": "Mbits/s" }, PING: { "UNITS": "ms" } },
        "LASTHOP_VERSION": report.version,
        "LASTHOP_BASE_RTT_MS": report.base_rtt_ms,
        "LASTHOP_SEED": report.plan.seed,
    })
}

fn micro(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// "2026-11-25T13:21:33.000000Z".
fn date(unix_s: u64) -> String {
    let (mut days, s) = (unix_s / 86_400, unix_s % 86_400);
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (s / 3_600, s / 60 % 60, s % 60);
    format!("{year:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}.000000Z", month + 1, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix_s, expected) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_400, "2000-02-29T00:00:00"),
            (951_868_799, "2000-02-29T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"),
            (1_795_612_893, "2026-11-25T13:21:33"),
        ] {
            assert_eq!(date(unix_s), format!("{expected}.000000Z"));
        }
    }
}

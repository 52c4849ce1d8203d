//! A measurement as a page for a browser: what it comes to, its figures, and plots of what was measured.

use lasthop_command::VERSION;
use lasthop_measure::findings;
use lasthop_measure::host;
use lasthop_measure::{Arm, Block, Comparison, Report};
use lasthop_page::{Axis, Chart, Column, Document, Kind, Series, Table};

/// Colours of the two arms, the same in every plot.
const COLOURS: [usize; 2] = [0, 1];
const ARMS: [Arm; 2] = [Arm::Off, Arm::On];

/// The page.
pub fn render(report: &Report) -> String {
    let found = report.found();
    let mut page = Document::new("Does control help in this home?");
    page.summary(&found.sentence(report.plan.direction));
    page.table(figures(report));
    host::notes(report, &found).iter().for_each(|note| page.prose(note));
    page.heading("Pairs of blocks");
    page.prose(
        "Each dot is a block, or a pair of them: one with control and one without, in random order, a few minutes apart. What \
         an evening does to both cannot be taken for what control does.",
    );
    let counted = findings::counted(&report.blocks, report.plan.discard_s, found.loaded_from_bps);
    if !counted.is_empty() {
        page.charts([pairs(&counted), histogram(&counted)]);
    }
    page.charts([by_block(
        report,
        "95 % of the time packets waited at most",
        "ms",
        Block::p95_ms,
        found.loaded_from_bps,
        true,
    )]);
    let rate = |block: &Block| block.throughput_bps().map(|bps| bps / 1e6);
    page.charts([by_block(report, "Carried by each block", "Mbit/s", rate, found.loaded_from_bps, false)]);
    page.heading("Second by second");
    page.prose("Everything that was seen, also what is discarded at the beginning of blocks and what does not count.");
    page.charts([seconds(report, "Waits, median of each second", "ms", true, |block, i| block.wait_ms[i])]);
    let rate = |block: &Block, i: usize| Some(block.rate_bps[i] as f64 / 1e6);
    page.charts([seconds(report, "Rate of each second", "Mbit/s", false, rate)]);
    if !report.devices.is_empty() {
        page.heading("Who was there");
        page.table(devices(report));
    }
    page.heading("How to read it");
    page.prose(
        "Waits are what the controller saw added to the paths of those who send all the time; games, calls and pages wait behind \
         them unless a queue keeps flows apart. The p-value says how often orders drawn by coins alone would show so much or more, if \
         control did nothing: the sign-flip test over the pairs, its statistic the sum of signed ranks. The ratio is the \
         Hodges-Lehmann estimate over the same pairs, its interval exact and of the level that stands beside it.",
    );
    page.footer(&format!(
        "Measured by lasthop {}, drawn by lasthop {VERSION}. The page is whole in itself and asks no other machine.",
        report.version
    ));
    page.render()
}

fn figures(report: &Report) -> Table {
    let found = report.found();
    let columns = ["without control", "with control", "ratio", "interval", "level", "p"].map(Column::number);
    let mut table =
        Table::new("Medians over the pairs that count", [Column::text("figure")].into_iter().chain(columns));
    let mut row = |name: &str, of: Option<Comparison>, unit: f64| {
        let Some(of) = of else { return };
        let [off, on] = [of.off, of.on].map(|value| figure(value / unit));
        let interval = format!("{} to {}", figure(of.low), figure(of.high));
        let (ratio, level, p) = (figure(of.ratio), format!("{:.1} %", of.level * 100.0), format!("{:.4}", of.p));
        table.row([name.to_owned(), off, on, ratio, interval, level, p]);
    };
    row("95 % of the time waited at most, ms", found.waiting, 1.0);
    row("carried, Mbit/s", found.throughput, 1e6);
    row("round trips per minute", found.rpm, 1.0);
    if let Some(grades) = found.grades {
        table.row(["grade", grades.off.name(), grades.on.name()]);
    }
    table
}

fn figure(value: f64) -> String {
    lasthop_command::table::figure(value)
}

/// Each pair's 95th percentiles against each other.
fn pairs(counted: &[(&Block, &Block)]) -> Chart {
    let mut points: Vec<(f64, f64)> =
        counted.iter().filter_map(|(on, off)| Some((off.p95_ms()?, on.p95_ms()?))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut chart = Chart::new(
        "95 % wait of each pair; on the diagonal control changes nothing",
        Kind::Points,
        spanning(Axis::new("without control, ms"), points.iter().map(|(off, _)| *off)),
        spanning(Axis::new("with control, ms"), points.iter().flat_map(|(off, on)| [*off, *on])),
    );
    chart.at = points.iter().map(|(off, _)| *off).collect();
    let on = points.iter().map(|(_, on)| Some(*on)).collect();
    let same = points.iter().map(|(off, _)| Some(*off)).collect();
    chart.series = vec![
        Series { colour: Some(COLOURS[1]), ..Series::new("with control", on) },
        Series { colour: Some(COLOURS[0]), ..Series::new("no change", same) },
    ];
    chart
}

/// A logarithmic axis that holds these values.
fn spanning(axis: Axis, values: impl Iterator<Item = f64>) -> Axis {
    let positive = values.filter(|value| *value > 0.0);
    let (least, most) = positive.fold((f64::MAX, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if most == 0.0 {
        return axis;
    }
    Axis { log: true, min: Some(least / 1.1), max: Some(most * 1.1), ..axis }
}

/// Buckets of the waiting times are so many times as wide as the one before.
const RATIO: f64 = 1.090_507_732_665_257_7;

/// Part of the intervals by their wait, over all that counts.
fn histogram(counted: &[(&Block, &Block)]) -> Chart {
    let of = |arm: Arm| counted.iter().map(move |(on, off)| if arm == Arm::On { *on } else { *off });
    let mut bounds: Vec<f64> = ARMS
        .iter()
        .flat_map(|arm| of(*arm))
        .flat_map(|block| &block.waiting.buckets)
        .filter_map(|(upper, _)| *upper)
        .collect();
    bounds.sort_by(f64::total_cmp);
    bounds.dedup();
    let all_between = |low: f64, high: f64| {
        let buckets = (1..=256).map(move |n| low * RATIO.powi(n)).take_while(move |bound| *bound <= high * 1.01);
        [low].into_iter().chain(buckets).collect::<Vec<_>>()
    };
    let uppers = match (bounds.first(), bounds.last()) {
        (Some(low), Some(high)) => all_between(*low, *high),
        _ => Vec::new(),
    };
    let axis = spanning(Axis::new("wait, ms"), uppers.iter().map(|upper| upper / RATIO).chain(uppers.last().copied()));
    let mut chart = Chart::new("How long packets waited", Kind::Steps, axis, Axis::new("% of the time"));
    // A step holds from the lower bound of its bucket on; the last one ends at nothing.
    chart.at = uppers.iter().map(|upper| upper / RATIO).chain(uppers.last().copied()).collect();
    chart.series = ARMS
        .iter()
        .zip(COLOURS)
        .map(|(arm, colour)| {
            let all: u64 = of(*arm).map(|block| block.waiting.buckets.iter().map(|(_, n)| n).sum::<u64>()).sum();
            let share = |upper: &f64| {
                let is_it = |bound: &Option<f64>| bound.is_some_and(|bound| (bound / upper - 1.0).abs() < 0.01);
                let n: u64 = of(*arm).flat_map(|b| &b.waiting.buckets).filter(|(b, _)| is_it(b)).map(|(_, n)| n).sum();
                Some(n as f64 * 100.0 / all.max(1) as f64)
            };
            let y = uppers.iter().map(share).chain([Some(0.0)]).collect();
            Series { colour: Some(colour), ..Series::new(arm.name(), y) }
        })
        .collect();
    chart
}

/// A dot for each block, over the time of the evening.
fn by_block(
    report: &Report,
    what: &str,
    unit: &str,
    of: impl Fn(&Block) -> Option<f64>,
    bound: Option<f64>,
    log: bool,
) -> Chart {
    let values: Vec<Option<f64>> = report.blocks.iter().map(of).collect();
    let y = Axis::new(unit);
    let y = if log { spanning(y, values.iter().flatten().copied()) } else { y };
    let mut chart = Chart::new(what, Kind::Points, Axis::new("time, min"), y);
    chart.at =
        report.blocks.iter().map(|block| (block.start_s + f64::from(report.plan.block_s) / 2.0) / 60.0).collect();
    let cause = |block: &Block| findings::cause(block, report.plan.discard_s, bound);
    let curve = |name: &str, colour: usize, is_meant: &dyn Fn(&Block) -> bool| {
        let y = report.blocks.iter().zip(&values).map(|(block, value)| value.filter(|_| is_meant(block))).collect();
        Series { colour: Some(colour), ..Series::new(name, y) }
    };
    chart.series = ARMS
        .iter()
        .zip(COLOURS)
        .map(|(arm, colour)| curve(arm.name(), colour, &|block| block.arm == *arm && cause(block).is_none()))
        .collect();
    let is_dropped = |block: &Block| cause(block).is_some();
    if report.blocks.iter().any(is_dropped) {
        chart.series.push(curve("does not count", 6, &is_dropped));
    }
    chart.sync = Some("time".to_owned());
    chart
}

/// A dot for each second.
fn seconds(report: &Report, what: &str, unit: &str, log: bool, of: impl Fn(&Block, usize) -> Option<f64>) -> Chart {
    let mut places: Vec<(f64, Arm, Option<f64>)> = Vec::new();
    for block in &report.blocks {
        places.extend((0..block.at_s.len()).map(|i| ((block.start_s + block.at_s[i]) / 60.0, block.arm, of(block, i))));
    }
    places.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Nothing has no place on an axis of powers of ten.
    let value = |value: Option<f64>| value.map(|v| if log { v.max(0.1) } else { v });
    let y = Axis::new(unit);
    let y = if log { spanning(y, places.iter().filter_map(|(_, _, v)| value(*v))) } else { y };
    let mut chart = Chart::new(what, Kind::Points, Axis::new("time, min"), y);
    chart.at = places.iter().map(|(at, ..)| *at).collect();
    let curve = |(arm, colour): (&Arm, usize)| {
        let y = places.iter().map(|(_, of, v)| value(*v).filter(|_| of == arm)).collect();
        Series { colour: Some(colour), ..Series::new(arm.name(), y) }
    };
    chart.series = ARMS.iter().zip(COLOURS).map(curve).collect();
    chart.sync = Some("time".to_owned());
    chart
}

fn devices(report: &Report) -> Table {
    let columns = [Column::text("device"), Column::number("down, Mbit/s"), Column::number("up, Mbit/s")];
    let mut table = Table::new("Mean rates over the measurement", columns);
    for device in &report.devices {
        table.row([device.name.clone(), figure(device.down_bps as f64 / 1e6), figure(device.up_bps as f64 / 1e6)]);
    }
    table
}

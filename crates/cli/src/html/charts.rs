//! The curves of a page. Charts of the same thing in two runs have the same axes: what is higher is more.

use lasthop_core::units::Span;
use lasthop_home::course::{FlowCourse, Packets, Stretches};
use lasthop_page::{Axis, Chart, Kind, Series};

use super::Shown;

/// Places on the axis of delays.
const DELAYS: usize = 160;
/// Rates are of so much time: shorter, they show single packets.
const RATE_OVER: Span = Span::from_millis(500);
/// TCP flows whose windows are drawn.
const MOST_SENDERS: usize = 6;

/// One-way delay of games, calls and video.
pub fn delays(runs: &[Shown<'_>]) -> Vec<Chart> {
    delays_of(runs, "Delay of games, calls and video", true)
}

/// One-way delay of everything else.
pub fn other_delays(runs: &[Shown<'_>]) -> Vec<Chart> {
    delays_of(runs, "Delay of everything else", false)
}

fn delays_of(runs: &[Shown<'_>], what: &str, is_realtime: bool) -> Vec<Chart> {
    let curve = |_: &FlowCourse, packets: &Packets| packets.delay.most().collect();
    let is_meant = |run: &Shown<'_>, i: usize| run.scenario.flows[i].kind.is_realtime() == is_realtime;
    let charts = of_each(runs, what, "delay, ms", |run| flows(run, |i| is_meant(run, i), curve));
    same_height(charts)
}

/// Packets at the access point.
pub fn queues(runs: &[Shown<'_>]) -> Vec<Chart> {
    let one = |run: &Shown<'_>| vec![Series::new("packets", held(run.course.queue.most()))];
    let mut charts = same_height(of_each(runs, "Queue of the access point, as each packet found it", "packets", one));
    charts.iter_mut().for_each(|chart| chart.kind = Kind::Steps);
    charts
}

/// Payload of every flow.
pub fn rates(runs: &[Shown<'_>]) -> Vec<Chart> {
    let step = runs.first().map_or(RATE_OVER, |run| run.course.queue.step());
    let together = RATE_OVER.as_nanos().div_ceil(step.as_nanos()).max(1) as usize;
    let rate = |_: &FlowCourse, packets: &Packets| {
        let bytes: Vec<f64> = packets.arrived.per_second().collect();
        let mean = |some: &[f64]| Some(some.iter().sum::<f64>() * 8.0 / 1e6 / some.len() as f64);
        bytes.chunks(together).map(mean).collect()
    };
    let mut charts = of_each(runs, "Rate of each flow", "Mbit/s", |run| flows(run, |_| true, rate));
    charts.iter_mut().for_each(|chart| chart.at = chart.at.iter().copied().step_by(together).collect());
    same_height(charts)
}

/// What limits each TCP sender: the charts of a flow side by side.
pub fn windows(runs: &[Shown<'_>]) -> Vec<Vec<Chart>> {
    let Some(first) = runs.first() else { return Vec::new() };
    let is_seen = |flow: &&FlowCourse| !(flow.offered.is_empty() && flow.congestion.is_empty());
    let names = first.course.flows.iter().filter(is_seen).map(|flow| flow.name.as_str()).take(MOST_SENDERS);
    names.map(|name| windows_of(name, runs)).collect()
}

fn windows_of(name: &str, runs: &[Shown<'_>]) -> Vec<Chart> {
    let mut charts = of_each(runs, &format!("Windows of {name}"), "kB", |run| {
        let Some(flow) = run.course.flows.iter().find(|flow| flow.name == name) else { return Vec::new() };
        let kinds = [
            ("congestion window", &flow.congestion),
            ("advertised by its receiver", &flow.offered),
            ("read by its sender", &flow.allowed),
        ];
        let kinds = kinds.into_iter().filter(|(_, seen)| !seen.is_empty());
        kinds.map(|(kind, seen)| Series::new(kind, kilobytes(seen))).collect()
    });
    let all = || charts.iter().flat_map(values).filter(|value| *value > 0.0);
    let (least, most) = all().fold((f64::MAX, 1.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    for chart in &mut charts {
        chart.kind = Kind::Steps;
        (chart.y.log, chart.y.min, chart.y.max) = (true, Some(least.min(most)), Some(most * 1.1));
    }
    charts
}

fn kilobytes(bytes: &Stretches) -> Vec<Option<f64>> {
    // A closed window has no place on an axis of powers of ten.
    held(bytes.mean().map(|value| value.map(|bytes| (bytes / 1e3).max(0.1))))
}

/// Which share of a flow's packets took at most so long.
pub fn shares(runs: &[Shown<'_>]) -> Vec<Chart> {
    let packets = || runs.iter().flat_map(|run| &run.course.flows).filter_map(|flow| flow.packets.as_ref());
    let least = packets().filter_map(|packets| packets.delays.min()).min();
    let most = packets().filter_map(|packets| packets.delays.max()).max();
    let (Some(least), Some(most)) = (least, most) else { return Vec::new() };
    // Not down to nothing: what is below a tenth of a millisecond is no waiting.
    let (low, high) = (least.as_millis_f64().max(0.1), most.as_millis_f64().max(0.2));
    let at: Vec<f64> = (0..=DELAYS).map(|i| low * (high / low).powf(i as f64 / DELAYS as f64)).collect();
    let share = |_: &FlowCourse, packets: &Packets| -> Vec<Option<f64>> {
        let share = |ms: &f64| packets.delays.share_within(Span::from_secs_f64(ms / 1e3)).map(|share| share * 100.0);
        at.iter().map(share).collect()
    };
    let mut charts = of_each(runs, "Share of packets by delay", "% of packets", |run| flows(run, |_| true, share));
    for chart in &mut charts {
        chart.at.clone_from(&at);
        chart.x = Axis { log: true, min: Some(low), max: Some(high), ..Axis::new("delay of at most, ms") };
        chart.y.max = Some(100.0);
        chart.sync = Some("delay".to_owned());
    }
    charts
}

/// A chart over time for each run, with the curves that `series` gives it.
fn of_each(runs: &[Shown<'_>], what: &str, unit: &str, series: impl Fn(&Shown<'_>) -> Vec<Series>) -> Vec<Chart> {
    let chart = |run: &Shown<'_>| {
        let caption = if run.label.is_empty() { what.to_owned() } else { format!("{what}, {}", run.label) };
        let mut chart = Chart::new(&caption, Kind::Lines, Axis::new("time, s"), Axis::new(unit));
        let (step, places) = (run.course.queue.step().as_secs_f64(), run.course.queue.most().count());
        chart.at = (0..places).map(|i| i as f64 * step).collect();
        chart.series = series(run);
        chart.sync = Some("time".to_owned());
        chart
    };
    let charts: Vec<Chart> = runs.iter().map(chart).collect();
    if charts.iter().all(|chart| chart.series.is_empty()) { Vec::new() } else { charts }
}

/// A curve for each flow that is meant and of which packets arrived; its colour is that of its place in the scenario.
fn flows(
    run: &Shown<'_>,
    is_meant: impl Fn(usize) -> bool,
    curve: impl Fn(&FlowCourse, &Packets) -> Vec<Option<f64>>,
) -> Vec<Series> {
    let flow = |(i, flow): (usize, &FlowCourse)| {
        let packets =
            flow.packets.as_ref().filter(|packets| !packets.delay.is_empty() || !packets.arrived.is_empty())?;
        Some(Series { colour: Some(i), ..Series::new(&flow.name, curve(flow, packets)) })
    };
    run.course.flows.iter().enumerate().filter(|(i, _)| is_meant(*i)).filter_map(flow).collect()
}

/// Between two values the earlier one holds.
fn held(values: impl Iterator<Item = Option<f64>>) -> Vec<Option<f64>> {
    let mut values: Vec<Option<f64>> = values.collect();
    let last = values.iter().rposition(Option::is_some).unwrap_or(0);
    for i in 1..=last.min(values.len().saturating_sub(1)) {
        values[i] = values[i].or(values[i - 1]);
    }
    values
}

fn values(chart: &Chart) -> impl Iterator<Item = f64> {
    chart.series.iter().flat_map(|one| one.y.iter().flatten().copied())
}

fn same_height(mut charts: Vec<Chart>) -> Vec<Chart> {
    let most = charts.iter().flat_map(values).fold(0.0, f64::max);
    charts.iter_mut().for_each(|chart| chart.y.max = (most > 0.0).then_some(most * 1.05));
    charts
}

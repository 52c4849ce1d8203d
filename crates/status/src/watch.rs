//! A status that is drawn again and again in a terminal: what waits, what is carried, by whom, and what was decided last.

use std::collections::VecDeque;
use std::fmt::Write as _;

use super::render::{duration, ms, rate};
use super::{DirectionStatus, Status, WaitingStatus};

/// Devices, UDP flows and decisions shown.
const DEVICES: usize = 6;
const DATAGRAMS: usize = 4;
const DECISIONS: usize = 4;
/// Columns beside a sparkline.
const BESIDE: usize = 44;
/// From empty to full.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What one direction did lately, the newest last.
#[derive(Debug, Default)]
struct Lately {
    rates: VecDeque<Option<f64>>,
    waits: VecDeque<Option<f64>>,
    before: Option<WaitingStatus>,
}

/// Statuses so far.
#[derive(Debug)]
pub struct Watch {
    columns: usize,
    pid: Option<u32>,
    lately: [Lately; 2],
}

impl Watch {
    /// For a terminal of so many columns.
    #[must_use]
    pub fn new(columns: usize) -> Self {
        Self { columns: columns.clamp(BESIDE + 8, 200), pid: None, lately: Default::default() }
    }

    /// A newer status; what to draw.
    pub fn on_status(&mut self, status: &Status) -> String {
        if self.pid.replace(status.pid) != Some(status.pid) {
            self.lately = Default::default();
        }
        let kept = self.columns - BESIDE;
        for (lately, of) in self.lately.iter_mut().zip([&status.directions.down, &status.directions.up]) {
            let waited = of.waiting.iter().find(|waiting| waiting.place == "all").cloned().unwrap_or_default();
            let before = lately.before.replace(waited.clone());
            let since = waited.since(before.as_ref().unwrap_or(&waited));
            push(&mut lately.rates, Some(of.rate_bps as f64), kept);
            push(&mut lately.waits, since.quantile(0.95), kept);
        }
        self.draw(status)
    }

    /// Nobody answers now; what to draw.
    #[must_use]
    pub fn on_nobody(&self, why: &str) -> String {
        format!("{why}\n\nwaiting for a controller; Ctrl-C ends this\n")
    }

    fn draw(&self, status: &Status) -> String {
        let mut out = String::new();
        let mode = if status.dry_run { ", dry run" } else { "" };
        line(&mut out, &format!("lasthop {}, running for {}{mode}", status.version, duration(status.running_s)));
        for pause in &status.paused {
            let whose = pause.device.as_ref().map_or("all", |device| label(status, device));
            let left = pause.left_s.map_or_else(|| "until resumed".to_owned(), |s| format!("{} left", duration(s)));
            line(&mut out, &format!("PAUSED: {} for {whose}, {left}", pause.what.name()));
        }
        for ((name, of), lately) in
            [("downloads", &status.directions.down), ("uploads", &status.directions.up)].into_iter().zip(&self.lately)
        {
            line(&mut out, "");
            direction(&mut out, name, of, lately);
        }
        devices(&mut out, status);
        datagrams(&mut out, status);
        line(&mut out, "");
        for decision in status.decisions.iter().rev().take(DECISIONS).rev() {
            line(&mut out, &format!("{:>8.1} s  {}", decision.at_s, decision.line));
        }
        out.lines().flat_map(|text| [cut(text, self.columns), "\n".to_owned()]).collect()
    }
}

fn push(values: &mut VecDeque<Option<f64>>, value: Option<f64>, most: usize) {
    values.push_back(value);
    while values.len() > most {
        values.pop_front();
    }
}

fn line(out: &mut String, text: &str) {
    let _ = writeln!(out, "{text}");
}

/// At most so many characters, the last of them a sign that there was more.
fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns - 1).chain(['…']).collect()
}

/// Bars from nothing to the largest, blanks where nothing is known. In the logarithm where `is_log`: from a 256th of it.
fn sparkline(values: &VecDeque<Option<f64>>, full: f64, is_log: bool) -> String {
    let bar = |value: f64| {
        let part = if is_log { 1.0 + (value / full).max(1e-9).log2() / 8.0 } else { value / full };
        BARS[(part.clamp(0.0, 1.0) * (BARS.len() - 1) as f64).round() as usize]
    };
    values.iter().map(|value| value.filter(|_| full > 0.0).map_or(' ', bar)).collect()
}

fn direction(out: &mut String, name: &str, of: &DirectionStatus, lately: &Lately) {
    let newest = |values: &VecDeque<Option<f64>>| values.iter().rev().copied().find_map(|value| value);
    let largest = |values: &VecDeque<Option<f64>>| values.iter().flatten().copied().fold(0.0, f64::max);
    let carried = match of.capacity_bps {
        Some(capacity) => format!("{} of {}", rate(of.rate_bps as f64), rate(capacity as f64)),
        None => rate(of.rate_bps as f64),
    };
    let full = of.capacity_bps.map_or(0.0, |capacity| capacity as f64).max(largest(&lately.rates));
    let bars = sparkline(&lately.rates, full, false);
    line(out, &format!("{name:<10}{carried:<32}  {bars}"));
    let waits =
        newest(&lately.waits).map_or_else(|| "nothing waits".to_owned(), |wait| format!("95 % wait {}", ms(wait)));
    let place = match of.queue_place.as_deref() {
        Some(place) if newest(&lately.waits).is_some() => format!(" ({place})"),
        _ => String::new(),
    };
    // On one scale for both: from 1 ms to 256 ms.
    let bars = sparkline(&lately.waits, 256.0, true);
    line(out, &format!("{:<10}{:<32}  {bars}", "", format!("{waits}{place}")));
}

fn label<'a>(status: &'a Status, id: &'a str) -> &'a str {
    status.devices.iter().find(|device| device.id == id).and_then(|device| device.name.as_deref()).unwrap_or(id)
}

fn devices(out: &mut String, status: &Status) {
    if status.devices.is_empty() {
        return;
    }
    line(out, &format!("\n{:<26}{:>14}{:>14}{:>13}{:>13}", "device", "down", "up", "waits down", "up"));
    let wait = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), super::render::ms);
    for device in status.devices.iter().take(DEVICES) {
        let (down, up) = (rate(device.down_bps as f64), rate(device.up_bps as f64));
        let waits = [device.down_waiting_ms, device.up_waiting_ms].map(wait);
        line(out, &format!("{:<26}{down:>14}{up:>14}{:>13}{:>13}", cut(&device.label(), 25), waits[0], waits[1]));
    }
    if status.devices.len() > DEVICES {
        line(out, &format!("and {} more", status.devices.len() - DEVICES));
    }
}

fn datagrams(out: &mut String, status: &Status) {
    if status.udp.is_empty() {
        return;
    }
    line(out, "");
    for flow in status.udp.iter().take(DATAGRAMS) {
        line(out, &format!("UDP {} {}: {}, {}", flow.flow, rate(flow.rate_bps as f64), flow.taken_for, flow.why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::sample;

    #[test]
    fn no_line_is_wider_than_the_terminal_and_the_newest_is_on_the_right() {
        let mut watch = Watch::new(80);
        let mut status = sample();
        let mut drawn = String::new();
        for n in 0..100u64 {
            status.directions.down.rate_bps = 180_000 * n;
            let waiting = &mut status.directions.down.waiting[0];
            (waiting.count, waiting.buckets) = (n, vec![(Some(16.0), n)]);
            drawn = watch.on_status(&status);
            assert!(drawn.lines().all(|line| line.chars().count() <= 80), "{drawn}");
        }
        let bars = drawn.lines().find(|line| line.starts_with("downloads")).unwrap();
        assert!(bars.ends_with('█') && bars.chars().count() == 80, "{bars}");
        for part in
            ["17.8 Mbit/s of 18 Mbit/s", "95 % wait 15.9 ms (firmware)", "laptop", "PAUSED: window control for laptop"]
        {
            assert!(drawn.contains(part), "`{part}` is not in\n{drawn}");
        }
    }

    #[test]
    fn another_controller_begins_anew() {
        let mut watch = Watch::new(80);
        watch.on_status(&sample());
        watch.on_status(&sample());
        assert_eq!(watch.lately[0].rates.len(), 2);
        watch.on_status(&Status { pid: 8, ..sample() });
        assert_eq!(watch.lately[0].rates.len(), 1);
    }

    #[test]
    fn waits_are_drawn_in_their_logarithm_and_what_nobody_told_is_blank() {
        let values = VecDeque::from([None, Some(1.0), Some(16.0), Some(256.0), Some(4_000.0)]);
        assert_eq!(sparkline(&values, 256.0, true), " ▁▅██");
        assert_eq!(sparkline(&VecDeque::from([Some(0.0), Some(5.0), Some(10.0)]), 10.0, false), "▁▅█");
    }
}

//! The demo's table: one per period, each flow's figures without control above those with it.

use lasthop_command::table::{Align, Table, figure, figure_or_dash, thousands};
use lasthop_command::terminal::Look;
use lasthop_home::report::{Delay, Metrics};

use super::pair::{Pair, Period};
use crate::account;

const HEADINGS: [&[&str]; 2] = [
    &["", "", "", "", "", "delay, ms", "", "", "", "added", "jitter"],
    &["flow", "control", "sent", "lost", "Mbit/s", "p50", "p95", "p99", "max", "p99, ms", "ms"],
];

/// What the columns mean, for somebody who reads such a table for the first time.
pub const LEGEND: &str = "  sent, lost  packets handed to the network, and those that never arrived
  Mbit/s      what arrived, without headers
  delay       from network card to network card; p99: 99 of 100 took no longer
  added       delay beyond the flow's fastest packet: time spent waiting
  jitter      how much the delay changes from packet to packet, on average
";

/// Columns that are missed least, first those that are missed least of all: p95, max, jitter, the median, what was lost.
const LEAST: [usize; 5] = [6, 8, 10, 5, 3];

/// The table of one period, with its title, as lines.
pub fn table(pair: Pair<'_>, period: Period, title: &str, look: Look) -> String {
    format!("{title}\n{}", account::fitted(&figures(pair, period), look))
}

/// The table of one period.
pub fn figures(pair: Pair<'_>, period: Period) -> Table {
    let left = [Align::Left, Align::Left];
    let aligns: Vec<Align> = left.into_iter().chain([Align::Right; 9]).collect();
    let mut table = Table::new(&aligns, &HEADINGS).dispensable(&LEAST);
    for (i, off) in pair.off.flows.iter().enumerate() {
        if i > 0 {
            table.rule();
        }
        table.row(cells(&off.name, "off", period.of(off)));
        if let Some(on) = pair.on.flow(&off.name) {
            table.row(cells("", "on", period.of(on)));
        }
    }
    table
}

fn cells(name: &str, control: &str, f: &Metrics) -> [String; 11] {
    let delay = |pick: fn(&Delay) -> f64| figure_or_dash(f.delay.as_ref().map(pick));
    [
        name.to_owned(),
        control.to_owned(),
        thousands(f.sent),
        thousands(f.lost.total()),
        figure(f.goodput_bps / 1e6),
        delay(|d| d.p50),
        delay(|d| d.p95),
        delay(|d| d.p99),
        delay(|d| d.max),
        figure_or_dash(f.added_delay.map(|d| d.p99)),
        figure_or_dash(f.jitter.map(|j| j.mean)),
    ]
}

#[cfg(test)]
mod tests {
    use lasthop_home::report::{JitterReport, Lost};

    use super::super::pair::tests::{added, flow, report};
    use super::*;

    fn wide() -> Metrics {
        Metrics {
            sent: 1_234_567,
            lost: Lost { channel: 12_345, ..Lost::default() },
            goodput_bps: 22.84e6,
            delay: Some(Delay { min: 1.0, mean: 2.0, p50: 123.4, p95: 1234.5, p99: 1234.5, max: 1234.5 }),
            added_delay: added(1234.5),
            jitter: Some(JitterReport { mean: 123.45, var: 1.0, max: 2.0 }),
            ..Metrics::default()
        }
    }

    #[test]
    fn off_stands_above_on_and_the_widest_row_fits_eighty_columns() {
        let off = report(vec![flow("game-down", "game-server", wide()), flow("ftp", "ftp", wide())]);
        let on = report(vec![flow("game-down", "game-server", wide())]);
        let text = table(Pair { off: &off, on: &on }, Period::Rest, &Period::Rest.title(5, 45), Look::plain());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "The rest of it (40 s)");
        assert!(lines[4].starts_with("  game-down  off"), "{text}");
        assert!(lines[5].starts_with("             on "), "{text}");
        assert!(text.lines().chain(LEGEND.lines()).all(|l| l.chars().count() <= 80), "{text}");
        assert_eq!(lines.len(), 9, "a flow that is missing with control keeps its one row: {text}");
    }
}

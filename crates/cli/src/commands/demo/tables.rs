//! The demo's table: one per period, each flow's figures without control above those with it.

use std::fmt::Write as _;

use super::figures::{Figures, Period};
use super::verdict::Pair;
use crate::table::{Align, Table, figure, figure_or_dash, thousands};

const HEADINGS: [&[&str]; 2] = [
    &["", "", "", "", "", "delay, ms", "", "", "", "added", "jitter"],
    &["flow", "control", "sent", "lost", "Mbit/s", "p50", "p95", "p99", "max", "p99, ms", "ms"],
];

/// What the columns mean, for somebody who reads such a table for the first time.
pub const LEGEND: &str = "\
  sent, lost  packets handed to the network, and those of them that never arrived
  Mbit/s      what arrived, without headers
  delay       from network card to network card; p95: 95 of 100 packets were at least this fast
  added       delay beyond the flow's fastest packet: time spent waiting; 99 of 100 waited less
  jitter      how much the delay changes from one packet to the next, on average
";

/// The table of one period, with its title.
pub fn period(pair: Pair<'_>, title: &str) -> String {
    let left = [Align::Left, Align::Left];
    let aligns: Vec<Align> = left.into_iter().chain([Align::Right; 9]).collect();
    let mut table = Table::new(&aligns, &HEADINGS);
    for (i, off) in pair.off.iter().enumerate() {
        if i > 0 {
            table.rule();
        }
        table.row(cells(&off.name, "off", off));
        if let Some(on) = pair.on.iter().find(|f| f.name == off.name) {
            table.row(cells("", "on", on));
        }
    }
    let mut text = String::new();
    let _ = writeln!(text, "{title}");
    text.push_str(&table.render(2));
    text
}

fn cells(name: &str, control: &str, f: &Figures) -> [String; 11] {
    let [p50, p95, p99, max] = f.delay.map(figure_or_dash);
    [
        name.to_owned(),
        control.to_owned(),
        thousands(f.sent),
        thousands(f.lost),
        figure(f.goodput_bps / 1e6),
        p50,
        p95,
        p99,
        max,
        figure_or_dash(f.added_p99),
        figure_or_dash(f.jitter),
    ]
}

impl Period {
    /// The title of the period's table; lengths in seconds.
    pub fn title(self, start_up_s: f64, download_s: f64) -> String {
        match self {
            Self::StartUp => format!("The first {start_up_s:.0} s of the download"),
            Self::Rest => format!("The rest of it ({:.0} s)", download_s - start_up_s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(name: &str) -> Figures {
        Figures {
            name: name.into(),
            kind: "ftp".into(),
            sent: 1_234_567,
            lost: 12_345,
            goodput_bps: 22.84e6,
            delay: [Some(123.4), Some(1234.5), Some(1234.5), Some(1234.5)],
            added_p99: Some(1234.5),
            jitter: Some(123.45),
        }
    }

    #[test]
    fn off_stands_above_on_and_the_widest_row_fits_a_hundred_columns() {
        let (off, on) = (vec![flow("game-down"), flow("ftp")], vec![flow("game-down")]);
        let text = period(Pair { period: Period::Rest, off: &off, on: &on }, &Period::Rest.title(5.0, 45.0));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "The rest of it (40 s)");
        assert!(lines[4].starts_with("  game-down  off"), "{text}");
        assert!(lines[5].starts_with("             on "), "{text}");
        assert!(text.lines().chain(LEGEND.lines()).all(|l| l.chars().count() <= 100), "{text}");
        assert_eq!(lines.len(), 8, "a flow that is missing with control keeps its one row: {text}");
    }
}

//! A report for people: a sentence, a table, grades, and what does not count.

use lasthop_command::table::{Align, Table, wrap};
use lasthop_command::terminal::{Look, Tone};

use crate::block::Arm;
use crate::findings::{Comparison, Findings, Verdict};
use crate::grade;
use crate::report::{Ended, Report};
use crate::words::{digits, p};

/// Lines of at most `look.width` columns.
#[must_use]
pub fn render(report: &Report, look: Look) -> String {
    let found = report.found();
    let mut text = String::new();
    let mut sentence = String::new();
    wrap(&mut sentence, &found.sentence(report.plan.direction), "", look.width);
    let tone = match found.verdict {
        Verdict::Shorter => Tone::Good,
        Verdict::NoDifference | Verdict::NotEnoughLoad => Tone::Caution,
        Verdict::Longer => Tone::Bad,
    };
    text.push_str(&look.paint(tone, sentence.trim_end()));
    text.push('\n');
    if found.waiting.is_some() {
        text.push('\n');
        text.push_str(&table(&found).fit(2, look.width).text);
    }
    text.push('\n');
    for sentence in notes(report, &found) {
        wrap(&mut text, &sentence, "", look.width);
    }
    text
}

/// The figures, with control and without.
#[must_use]
fn table(found: &Findings) -> Table {
    let aligns: Vec<Align> = [Align::Left].into_iter().chain([Align::Right; 6]).collect();
    let mut table = Table::new(&aligns, &[&["median of pairs", "without", "with", "ratio", "interval", "level", "p"]]);
    let mut row = |name: &str, compared: Option<&Comparison>, unit: f64| {
        let Some(of) = compared else { return };
        let interval = format!("{} to {}", digits(of.low), digits(of.high));
        let level = format!("{:.1} %", of.level * 100.0);
        let values = [of.off, of.on].map(|value| digits(value / unit));
        let [off, on] = values;
        table.row([
            name.to_owned(),
            off,
            on,
            digits(of.ratio),
            interval,
            level,
            p(of.p).trim_start_matches("= ").to_owned(),
        ]);
    };
    row("95 % wait, ms", found.waiting.as_ref(), 1.0);
    row("carried, Mbit/s", found.throughput.as_ref(), 1e6);
    row("round trips per min", found.rpm.as_ref(), 1.0);
    if let Some(grades) = found.grades {
        table.row(["grade", grades.off.name(), grades.on.name()]);
    }
    table
}

/// What has to be known to read it, in sentences.
#[must_use]
pub fn notes(report: &Report, found: &Findings) -> Vec<String> {
    let plan = &report.plan;
    let mut notes = vec![format!(
        "{} of {} pairs count: blocks of {} s, of which the first {} s are discarded, in an order drawn from seed {}.",
        found.counted, plan.pairs, plan.block_s, plan.discard_s, plan.seed
    )];
    match report.ended {
        Ended::Complete => {}
        Ended::Stopped => notes.push("It was stopped before its end.".to_owned()),
        Ended::Silent => notes.push("It ended because the controller answered no longer.".to_owned()),
    }
    for arm in [Arm::On, Arm::Off] {
        let of_arm: Vec<_> = found.dropped.iter().filter(|dropped| dropped.arm == arm).collect();
        if of_arm.is_empty() {
            continue;
        }
        let causes: Vec<String> =
            of_arm.iter().map(|dropped| format!("{} because {}", dropped.blocks, dropped.cause.words())).collect();
        notes.push(format!("Blocks {} that did not count: {}.", arm.name(), causes.join(", ")));
    }
    match found.loaded_from_bps {
        Some(bps) => notes.push(format!(
            "Loaded is a block that carried {} Mbit/s in four fifths of its seconds: half of what it carries at most.",
            digits(bps / 1e6)
        )),
        None => {
            notes.push("The controller never saw packets wait in this direction, so nothing was loaded.".to_owned())
        }
    }
    if found.load_differs {
        notes.push(
            "Load was missing in one kind of block much more than in the other: what people did may have depended on control."
                .to_owned(),
        );
    }
    if report.devices_paused {
        notes.push("Some devices were left alone all the time, in both kinds of blocks.".to_owned());
    }
    if found.grades.is_some() {
        notes.push(format!("Grades: {}, of the 95th percentile that waits add to a round trip.", grade::SOURCE));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Block, Spoilt};
    use crate::plan::{Direction, Plan};
    use crate::report::FORMAT;

    fn report(pairs: usize) -> Report {
        let plan = Plan { pairs, block_s: 60, discard_s: 15, seed: 4_294_967_295, direction: Direction::Down };
        let block = |i: usize| {
            let mut block = Block::new(plan.arm(i), 60.0 * i as f64);
            let wait = if block.arm == Arm::On { 4.1 } else { 187.3 } * (1.0 + i as f64 / 100.0);
            (block.at_s, block.rate_bps) = ((1..=60).map(f64::from).collect(), vec![19_000_000; 60]);
            block.wait_ms = vec![Some(wait); 60];
            (block.waiting.buckets, block.waiting.count) = (vec![(Some(wait), 900)], 900);
            (block.counted_s, block.bytes) = (45.0, 19_000_000 / 8 * 45 + i as u64);
            block
        };
        let mut blocks: Vec<Block> = (0..plan.blocks()).map(block).collect();
        if pairs > 8 {
            blocks[3].spoilt = Some(Spoilt::Restarted);
            blocks[6].rate_bps = vec![7; 60];
        }
        Report {
            format: FORMAT,
            version: "0.2.0".into(),
            started_unix_s: 1_795_600_000,
            ended: Ended::Complete,
            plan,
            capacity_bps: Some(20_000_000),
            base_rtt_ms: Some(21.0),
            devices: Vec::new(),
            devices_paused: false,
            blocks,
            findings: None,
        }
    }

    #[test]
    fn a_report_fits_into_eighty_columns_and_says_what_was_dropped() {
        for pairs in [2, 12] {
            let text = render(&report(pairs), Look::plain());
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            assert!(text.contains(&format!("of {pairs} pairs count")), "{text}");
        }
        let text = render(&report(12), Look::plain());
        for expected in [
            "With control downloads waited 0.0",
            "10 of 12 pairs",
            "the controller was started anew",
            "1 because too little was carried",
            "DSLReports",
        ] {
            assert!(text.contains(expected) || text.replace('\n', " ").contains(expected), "{expected}: {text}");
        }
        assert!(render(&report(2), Look::plain()).starts_with("Not enough load: 2 of 2"));
    }
}

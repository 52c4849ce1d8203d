//! A report in words and tables for people: what the controller did, how late the emulator was, one run's figures.

use std::fmt::Write as _;

use lasthop_command::table::{Align, Fitted, Table, figure, figure_or_dash, thousands, wrap};
use lasthop_command::terminal::{Look, Tone};
use lasthop_emu::ProgramEnd;
use lasthop_home::report::{ControlReport, FlowReport, Report};

/// Before the lines of a table.
const INDENT: &str = "  ";

// Writing to a String cannot fail.
macro_rules! line {
    ($text:expr, $($arg:tt)*) => { { let _ = writeln!($text, $($arg)*); } };
}

/// What a controller did.
pub fn of_control(control: Option<&ControlReport>, look: Look) -> String {
    let Some(c) = control else { return "  there was none\n".into() };
    let mut text = String::new();
    let mut say = |sentence: &str| wrap(&mut text, sentence, "  ", look.width);
    say(&format!(
        "lowered the window in {} acknowledgements and let {} pass as they were",
        thousands(c.rewritten),
        thousands(c.passed)
    ));
    say(&format!(
        "divided {} Mbit/s, of which {} Mbit/s went to UDP (games, calls, video)",
        figure(c.capacity_bps.mean / 1e6),
        figure(c.udp_bps / 1e6)
    ));
    for (flow, bytes) in &c.clamps {
        say(&format!("let `{flow}` have at most {} kB on its way", figure(*bytes as f64 / 1e3)));
    }
    let mut reasons: Vec<(&String, &u64)> = c.not_controlled.iter().filter(|(_, n)| **n > 0).collect();
    reasons.sort_by(|a, b| b.1.cmp(a.1));
    let listed: Vec<String> = reasons.iter().map(|(why, n)| format!("{why} {}", thousands(**n))).collect();
    let listed = if listed.is_empty() { "nothing".to_owned() } else { listed.join(", ") };
    say(&format!("did not control, packets by reason: {listed}"));
    text
}

/// How well the emulator kept time.
pub fn of_time(runs: &[(&str, &Report)], look: Look) -> String {
    let mut text = String::new();
    for (label, report) in runs {
        let Some(lag) = &report.run.lag_ms else { continue };
        let sentence = format!(
            "{label}: 99 % of the emulator's events were at most {} ms late, the latest {} ms",
            figure(lag.p99),
            figure(lag.max)
        );
        wrap(&mut text, &sentence, "  ", look.width);
    }
    if text.is_empty() { text } else { format!("\nHow well the emulator kept time\n{text}") }
}

/// A table in lines that fit, and what they had no room for.
pub fn fitted(table: &Table, look: Look) -> String {
    let Fitted { mut text, left_out } = table.fit(INDENT.len(), look.width);
    if !left_out.is_empty() {
        let sentence = format!("left out: {} (a wider terminal or --json has them)", left_out.join(", "));
        wrap(&mut text, &sentence, INDENT, look.width);
    }
    text
}

/// Why runs do not count, if they do not.
pub fn invalid(runs: &[(&str, &Report)]) -> Option<String> {
    let (label, report) = runs.iter().find(|(_, report)| !report.run.valid)?;
    let run = &report.run;
    Some(match (&run.lag_ms, run.drops) {
        (_, Some(drops)) if drops > 0 => {
            format!("in the run \"{label}\" the emulator itself dropped {} packets", thousands(drops))
        }
        (Some(lag), _) => format!(
            "the machine was too busy to play the run \"{label}\" in real time, 1 % of its events were more than {} ms \
             late and 1 ms is allowed; close what keeps it busy and try again",
            figure(lag.p99)
        ),
        _ => format!("the run \"{label}\" is not valid"),
    })
}

/// What became of the programs that were started in hosts.
pub fn of_programs(programs: &[ProgramEnd], look: Look) -> String {
    let mut text = String::new();
    for ProgramEnd { host, command, code } in programs {
        let how = code.map_or_else(|| "ran until the end and was stopped".to_owned(), of_exit_code);
        wrap(&mut text, &format!("{host}, {how}: {command}"), "  ", look.width);
    }
    if text.is_empty() { text } else { format!("\nPrograms in hosts\n{text}") }
}

/// An exit code in words, as the shell has it.
pub fn of_exit_code(code: i32) -> String {
    match code {
        129..=192 => format!("exit code {code} (signal {})", code - 128),
        _ => format!("exit code {code}"),
    }
}

/// What was run, and over which time its figures are.
pub fn title(report: &Report) -> String {
    let measured = report.duration_s - report.measure_from_s;
    let over = if measured < 10.0 { figure(measured) } else { format!("{measured:.0}") };
    let Report { scenario, seed, measure_from_s, .. } = report;
    format!("{scenario}, seed {seed}: {over} s from second {measure_from_s:.0}")
}

/// One run: flows, air, queues, and what controlled it.
pub fn of_run(report: &Report, look: Look) -> String {
    let mut text = String::new();
    text.push('\n');
    wrap(&mut text, &title(report), "", look.width);
    text.push_str(&fitted(&flows(&report.flows), look));
    for table in [senders(&report.flows), air(report), queues(report)].into_iter().flatten() {
        text.push('\n');
        text.push_str(&fitted(&table, look));
    }
    if report.control.is_some() {
        line!(text, "\nWhat the controller did");
        text.push_str(&of_control(report.control.as_ref(), look));
    }
    let runs = [(report.scenario.as_str(), report)];
    text.push_str(&of_time(&runs, look));
    if let Some(why) = invalid(&runs) {
        let mut sentence = String::new();
        wrap(&mut sentence, &format!("These figures do not count: {why}."), "", look.width);
        line!(text, "\n{}", look.paint(Tone::Bad, sentence.trim_end()));
    }
    text
}

/// Places of a flow's columns that are missed least, first those that are missed least of all: p95, max, jitter; then both ends, the
/// median, and what was lost.
const FLOW_LEAST: [usize; 7] = [7, 9, 11, 1, 2, 6, 4];

/// Every flow and its figures.
pub fn flows(flows: &[FlowReport]) -> Table {
    let headings: [&[&str]; 2] = [
        &["", "", "", "", "", "", "delay, ms", "", "", "", "added", "jitter"],
        &["flow", "from", "to", "sent", "lost", "Mbit/s", "p50", "p95", "p99", "max", "p99, ms", "ms"],
    ];
    let aligns: Vec<Align> = [Align::Left; 3].into_iter().chain([Align::Right; 9]).collect();
    let mut table = Table::new(&aligns, &headings).dispensable(&FLOW_LEAST);
    for flow in flows {
        let f = &flow.metrics;
        table.row([
            flow.name.clone(),
            flow.from.clone(),
            flow.to.clone(),
            thousands(f.sent),
            thousands(f.lost.total()),
            figure(f.goodput_bps / 1e6),
            figure_or_dash(f.delay.map(|d| d.p50)),
            figure_or_dash(f.delay.map(|d| d.p95)),
            figure_or_dash(f.delay.map(|d| d.p99)),
            figure_or_dash(f.delay.map(|d| d.max)),
            figure_or_dash(f.added_delay.map(|d| d.p99)),
            figure_or_dash(f.jitter.map(|j| j.mean)),
        ]);
    }
    table
}

/// What the TCP senders went through, where the host can see them.
pub fn senders(flows: &[FlowReport]) -> Option<Table> {
    let seen: Vec<_> = flows.iter().filter_map(|flow| Some((&flow.name, flow.metrics.tcp?))).collect();
    if seen.is_empty() {
        return None;
    }
    let headings: [&[&str]; 1] = [&["TCP", "acked", "sent again", "timeouts", "window, mean", "max", "RTT, ms"]];
    let aligns: Vec<Align> = [Align::Left].into_iter().chain([Align::Right; 6]).collect();
    let mut table = Table::new(&aligns, &headings).dispensable(&[1, 5, 4]);
    for (name, tcp) in seen {
        table.row([
            name.clone(),
            thousands(tcp.acked_packets),
            thousands(tcp.retransmitted),
            thousands(tcp.timeouts),
            figure(tcp.cwnd_mean),
            figure(tcp.cwnd_max),
            figure(tcp.srtt_ms),
        ]);
    }
    Some(table)
}

/// Who took the air, where there is one.
pub fn air(report: &Report) -> Option<Table> {
    let headings: [&[&str]; 1] = [&["on the air", "air time", "frames", "retries", "given up", "collisions"]];
    let aligns: Vec<Align> = [Align::Left].into_iter().chain([Align::Right; 5]).collect();
    let mut table = Table::new(&aligns, &headings).dispensable(&[4, 5, 2]);
    for s in &report.stations {
        let share = format!("{} %", figure(s.airtime_share * 100.0));
        table.row([
            s.name.clone(),
            share,
            thousands(s.frames),
            thousands(s.retries),
            thousands(s.given_up),
            thousands(s.collisions),
        ]);
    }
    (!report.stations.is_empty()).then_some(table)
}

/// The queues that anything waited in.
pub fn queues(report: &Report) -> Option<Table> {
    let used: Vec<_> = report.queues.iter().filter(|q| q.max_packets > 0).collect();
    let headings: [&[&str]; 1] = [&["queue", "mean packets", "max", "mean wait, ms", "p99 wait, ms", "dropped"]];
    let aligns: Vec<Align> = [Align::Left].into_iter().chain([Align::Right; 5]).collect();
    let mut table = Table::new(&aligns, &headings).dispensable(&[2, 1]);
    for q in &used {
        table.row([
            q.name.clone(),
            figure(q.mean_packets),
            thousands(q.max_packets),
            figure(q.mean_sojourn),
            figure(q.p99_sojourn),
            thousands(q.dropped),
        ]);
    }
    (!used.is_empty()).then_some(table)
}

#[cfg(test)]
pub mod tests {
    use std::path::{Path, PathBuf};

    use lasthop_core::units::Span;
    use lasthop_home::report::Delay;
    use lasthop_home::scenario::Scenario;

    use super::*;

    /// The files of every shipped scenario.
    pub fn scenarios() -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
                match entry.path() {
                    path if path.is_dir() => folders.push(path),
                    path if path.extension().is_some_and(|e| e == "toml") => found.push(path),
                    _ => {}
                }
            }
        }
        assert!(found.len() > 40, "{found:?}");
        found
    }

    /// A moment of each, and then some of their time: what is counted grows, and names are all there.
    #[test]
    fn no_line_about_any_shipped_scenario_is_wider_than_eighty_columns() {
        for path in scenarios() {
            let scenario = Scenario::load(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
            let duration = scenario.duration.min(Span::from_secs(20));
            let scenario = Scenario { duration, measure_from: scenario.measure_from.min(duration), ..scenario };
            let Ok(report) = lasthop_sim::run(&scenario, &mut lasthop_sim::Options::default()) else {
                assert!(scenario.stations.iter().any(|station| station.storage.is_slow()), "{}", path.display());
                continue;
            };
            for width in [60, 80, 100] {
                let text = of_run(&report, Look { width, colour: false });
                let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap_or_default();
                assert!(widest.chars().count() <= width, "{}: {widest}", path.display());
            }
        }
    }

    #[test]
    fn large_figures_of_everything_fit_into_eighty_columns() {
        let mut report = crate::commands::sweep::fake::report("a scenario with a long name", u64::MAX, 12_345_678)
            .with_every_field();
        report.measure_from_s = 0.0;
        for flow in &mut report.flows {
            (flow.name, flow.from) =
                ("a download with a name that does not end".into(), "a server of a long name".into());
            flow.metrics.delay =
                Some(Delay { min: 1.0, mean: 1.0, p50: 12345.6, p95: 12345.6, p99: 12345.6, max: 12345.6 });
            let tcp = flow.metrics.tcp.as_mut().expect("every field");
            (tcp.acked_packets, tcp.cwnd_mean, tcp.cwnd_max, tcp.srtt_ms) = (123_456_789, 12345.6, 12345.6, 12345.6);
        }
        let text = of_run(&report, Look::plain());
        let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap_or_default();
        assert!(widest.chars().count() <= 80, "{text}");
        assert!(text.contains("a download with a name that") && text.contains("left out: "), "{text}");
    }
}

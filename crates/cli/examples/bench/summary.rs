//! The result: every run's figures as JSON, and one table of medians beside their aims as Markdown.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value, json};

/// What was measured so far.
pub struct Summary {
    command: String,
    revision: String,
    machine: Value,
    parts: Map<String, Value>,
    lines: Vec<Line>,
}

struct Line {
    part: String,
    what: String,
    measured: String,
    aim: String,
    met: Option<bool>,
}

impl Summary {
    /// Nothing yet; `command` is what measures it.
    pub fn new(command: &str, revision: &str, machine: Value) -> Self {
        let (command, revision) = (command.to_owned(), revision.to_owned());
        Self { command, revision, machine, parts: Map::new(), lines: Vec::new() }
    }

    /// Keeps the raw figures of a case.
    pub fn keep(&mut self, part: &str, case: &str, metrics: Value) {
        let entry = self.parts.entry(part).or_insert_with(|| json!({}));
        entry[case] = metrics;
    }

    /// A line of the table; `met` is absent where there is no aim or no figure.
    pub fn line(&mut self, part: &str, what: &str, measured: &str, aim: &str, met: Option<bool>) {
        let mark = met.map_or("", |m| if m { "met" } else { "NOT met" });
        eprintln!("   {what}: {measured}   ({aim}) {mark}");
        let (part, what) = (part.to_owned(), what.to_owned());
        self.lines.push(Line { part, what, measured: measured.to_owned(), aim: aim.to_owned(), met });
    }

    /// A case that could not be measured.
    pub fn failed(&mut self, part: &str, what: &str, why: &str) {
        self.keep(part, what, json!({ "not measured": why }));
        self.line(part, what, &format!("not measured: {why}"), "", None);
    }

    /// Writes `path.json` and `path.md`.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let whole = json!({
            "format": 1, "revision": self.revision, "machine": self.machine, "parts": self.parts,
        });
        let name = |ending: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            name
        };
        std::fs::write(name(".json"), format!("{whole:#}\n"))?;
        std::fs::write(name(".md"), self.markdown())
    }

    fn markdown(&self) -> String {
        let m = &self.machine;
        let text = |key: &str| m[key].as_str().map_or_else(|| m[key].to_string(), str::to_owned);
        let mut out = format!("# Measured at revision {}\n\n", self.revision);
        let virt = if m["virtual"] == json!(true) { ", a virtual machine" } else { "" };
        let _ = writeln!(
            out,
            "By `{}`, on {}, {} cores, {}, Linux {}{virt}; load average before: {}.\n",
            self.command,
            text("cpu"),
            text("cores"),
            text("memory"),
            text("kernel"),
            text("load")
        );
        out.push_str("| part | what | measured | aim | |\n|---|---|---|---|---|\n");
        for l in &self.lines {
            let met = l.met.map_or("", |m| if m { "met" } else { "**not met**" });
            let _ = writeln!(out, "| {} | {} | {} | {} | {met} |", l.part, l.what, l.measured, l.aim);
        }
        out
    }
}

/// The median, `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// `median (least..most)`.
pub fn spread(values: &[f64], unit: &str) -> String {
    let Some(middle) = median(values) else { return "-".to_owned() };
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{middle:.2} {unit} ({least:.2}..{most:.2}, n = {})", values.len())
}

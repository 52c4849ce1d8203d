//! Where a run stands: one line that overwrites itself on a terminal, a line every ten seconds elsewhere.

use std::io::{IsTerminal as _, Write as _};

use crate::terminal::Look;

/// Seconds of the run between two lines where the output is not a terminal.
const SPARSE_S: f64 = 10.0;
/// Characters of the bar.
const BAR: usize = 12;

/// Writes to stderr.
#[derive(Debug)]
pub struct Line {
    label: String,
    terminal: bool,
    /// How far the run was when a sparse line was written last, s.
    written_s: Option<f64>,
}

impl Line {
    /// The line of a run called `label`.
    pub fn new(label: &str) -> Self {
        Self { label: label.to_owned(), terminal: std::io::stderr().is_terminal(), written_s: None }
    }

    /// Goes on as the line of `label`.
    pub fn rename(&mut self, label: &str) {
        label.clone_into(&mut self.label);
    }

    /// What is done before the run starts.
    pub fn preparing(&self, what: &str) {
        if self.terminal {
            self.overwrite(&format!("{:<12} {what}", self.label));
        }
    }

    /// Shows how much is done, 0..=1, with `text` behind it. `clock_s` says when: elsewhere than on a terminal a line
    /// comes every ten seconds of it.
    pub fn step(&mut self, clock_s: f64, done: f64, text: &str) {
        let line = self.line(done, text);
        if self.terminal {
            self.overwrite(&line);
        } else if self.written_s.is_none_or(|s| clock_s >= s + SPARSE_S) {
            eprintln!("{line}");
            self.written_s = Some(clock_s);
        }
    }

    /// Whether what is shown overwrites itself.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Something that must not be overwritten.
    pub fn note(&self, note: &str) {
        self.end();
        eprintln!("{}: {note}", self.label);
    }

    /// Clears the line, so that what follows starts on its own.
    pub fn end(&self) {
        if self.terminal {
            self.overwrite("");
        }
    }

    fn overwrite(&self, line: &str) {
        // What reaches the next line cannot be overwritten.
        let line: String = line.chars().take(Look::stderr().width - 1).collect();
        let mut stderr = std::io::stderr().lock();
        let _ = write!(stderr, "\r{line}\x1b[K");
        let _ = stderr.flush();
    }

    fn line(&self, done: f64, text: &str) -> String {
        let full = (done.clamp(0.0, 1.0) * BAR as f64).floor() as usize;
        let bar = format!("{}{}", "#".repeat(full), ".".repeat(BAR - full));
        format!("{:<12} [{bar}] {text}", self.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_what_runs_and_how_far_it_is() {
        let line = Line { label: "control on".into(), terminal: true, written_s: None };
        assert_eq!(line.line(0.504, " 25/50 s"), "control on   [######......]  25/50 s");
    }
}

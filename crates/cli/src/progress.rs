//! Where a run stands: one line that overwrites itself on a terminal, a line every ten seconds elsewhere.

use std::io::{IsTerminal as _, Write as _};

/// Seconds between two lines where the output is not a terminal.
const SPARSE_S: f64 = 10.0;

/// Writes to stderr.
#[derive(Debug)]
pub struct Progress {
    label: String,
    terminal: bool,
    /// When the last sparse line was written, s into the run.
    written_s: Option<f64>,
}

/// One reading.
#[derive(Clone, Debug)]
pub struct Reading<'a> {
    /// Into the run, s.
    pub elapsed_s: f64,
    /// Length of the run, s.
    pub total_s: f64,
    /// What happens now.
    pub phase: &'a str,
    /// How late the emulator is, p99 so far, ms.
    pub lag_ms: Option<f64>,
}

impl Progress {
    /// Progress of a run called `label`.
    pub fn new(label: &str) -> Self {
        Self { label: label.to_owned(), terminal: std::io::stderr().is_terminal(), written_s: None }
    }

    /// Shows a reading, or not, if one was shown just now and the output is no terminal.
    pub fn show(&mut self, reading: &Reading<'_>) {
        let line = self.line(reading);
        let mut stderr = std::io::stderr().lock();
        if self.terminal {
            let _ = write!(stderr, "\r{line}\x1b[K");
            let _ = stderr.flush();
        } else if self.written_s.is_none_or(|s| reading.elapsed_s >= s + SPARSE_S) {
            let _ = writeln!(stderr, "{line}");
            self.written_s = Some(reading.elapsed_s);
        }
    }

    /// Ends the line, so that what follows starts on its own.
    pub fn end(&self) {
        if self.terminal {
            eprint!("\r\x1b[K");
        }
    }

    fn line(&self, r: &Reading<'_>) -> String {
        let width = 24;
        let done = (r.elapsed_s / r.total_s.max(1e-9)).clamp(0.0, 1.0);
        let full = (done * f64::from(width)).floor() as usize;
        let bar = format!("{}{}", "#".repeat(full), ".".repeat(width as usize - full));
        let late = r.lag_ms.map_or(String::new(), |ms| format!("  at most {ms:.2} ms late"));
        format!("{:<12} [{bar}] {:>3.0}/{:.0} s  {}{late}", self.label, r.elapsed_s, r.total_s, r.phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_what_runs_how_far_it_is_and_how_late() {
        let progress = Progress { label: "control on".into(), terminal: true, written_s: None };
        let reading = Reading { elapsed_s: 25.2, total_s: 50.0, phase: "download", lag_ms: Some(0.0431) };
        assert_eq!(
            progress.line(&reading),
            "control on   [############............]  25/50 s  download  at most 0.04 ms late"
        );
    }
}

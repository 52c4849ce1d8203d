//! How a transfer is shown: one line that overwrites itself on a terminal, a line every ten seconds elsewhere.

use std::time::{Duration, Instant};

use lasthop_command::exit::chain;
use lasthop_command::progress::Line;
use lasthop_messenger::client::{Event, printable};

/// A transfer is shown when it takes longer than this, and at most so often.
const PATIENCE: Duration = Duration::from_secs(1);
const REDRAW: Duration = Duration::from_millis(100);

/// One message after another.
pub struct Show {
    line: Line,
    since: Instant,
    /// When the message began, and at how many bytes.
    began: (Instant, u64),
    next: Duration,
}

impl Show {
    /// Of what is called `label`.
    pub fn new(label: &str) -> Self {
        let since = Instant::now();
        Self { line: Line::new(&printable(label, 24)), since, began: (since, 0), next: PATIENCE }
    }

    /// Shows what happens.
    pub fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Begins(listed) => {
                self.line.end();
                self.line.rename(&printable(&listed.name, 24));
                self.began = (Instant::now(), 0);
            }
            Event::GoesOn(bytes) => {
                self.line.note(&format!("goes on after {}", size(*bytes)));
                self.began = (Instant::now(), *bytes);
            }
            Event::Moves { bytes, of } => self.moves(*bytes, *of),
            Event::Settles => self.settles(),
            Event::Waits { why, pause } => {
                let why = chain(why);
                self.line.note(&format!("{why}; trying again in {:.1} s", pause.as_secs_f64()));
            }
            Event::Sent(_) | Event::Fetched(_) | Event::Missed(..) => self.line.end(),
        }
    }

    fn moves(&mut self, bytes: u64, of: u64) {
        let elapsed = self.since.elapsed();
        if elapsed < self.next {
            return;
        }
        self.next = elapsed + REDRAW;
        let (began, at) = self.began;
        let speed = bytes.saturating_sub(at) as f64 / began.elapsed().as_secs_f64().max(1e-9);
        let mut text = format!("{} of {}  {}/s", size(bytes), size(of), size(speed as u64));
        if speed >= 1.0 && bytes < of {
            text += &format!("  {} left", time(Duration::from_secs_f64((of - bytes) as f64 / speed)));
        }
        self.line.step(elapsed.as_secs_f64(), bytes as f64 / of.max(1) as f64, &text);
    }

    fn settles(&mut self) {
        if self.since.elapsed() >= PATIENCE {
            self.line.preparing("all is there; making it safe");
        }
    }

    /// Clears the line.
    pub fn end(&self) {
        self.line.end();
    }
}

/// Bytes for people: three digits and a unit.
pub fn size(bytes: u64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    match units.iter().find(|(unit, _)| bytes as f64 >= *unit) {
        Some((unit, name)) => {
            let value = bytes as f64 / unit;
            let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
            format!("{value:.digits$} {name}")
        }
        None => format!("{bytes} B"),
    }
}

/// A time for people.
pub fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 48.0 * 3600.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} days", s / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_short() {
        for (bytes, text) in [(999, "999 B"), (1_234, "1.23 kB"), (45_600_000, "45.6 MB"), (4_294_967_296, "4.29 GB")] {
            assert_eq!(size(bytes), text);
        }
        for (seconds, text) in [(3, "3.0 s"), (90, "90 s"), (150, "2 min"), (7_200, "2 h"), (400_000, "5 days")] {
            assert_eq!(time(Duration::from_secs(seconds)), text);
        }
    }
}

//! Where an emulated run stands, and how late the emulator is.

use lasthop_command::progress::Line;

/// One reading.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Into the run, s.
    pub elapsed_s: f64,
    /// Length of the run, s.
    pub total_s: f64,
    /// What happens now.
    pub phase: &'static str,
    /// How late the emulator is, p99 so far, ms.
    pub lag_ms: f64,
}

impl Reading {
    /// Shows it on the run's line.
    pub fn show(&self, line: &mut Line) {
        line.step(self.elapsed_s, self.elapsed_s / self.total_s.max(1e-9), &self.to_string());
    }
}

impl std::fmt::Display for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { elapsed_s, total_s, phase, lag_ms } = self;
        write!(f, "{elapsed_s:>3.0}/{total_s:.0} s  {phase}, {lag_ms:.2} ms late (p99)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_tells_what_runs_how_far_it_is_and_how_late() {
        let reading = Reading { elapsed_s: 25.2, total_s: 50.0, phase: "with the download", lag_ms: 0.0431 };
        assert_eq!(reading.to_string(), " 25/50 s  with the download, 0.04 ms late (p99)");
    }
}

//! A measurement in a sentence.

use crate::findings::{Comparison, Findings, Verdict};
use crate::plan::{Direction, LEAST_PAIRS};

impl Findings {
    /// What it comes to, in a sentence or two; `direction` names what was compared.
    #[must_use]
    pub fn sentence(&self, direction: Direction) -> String {
        let who = capital(direction.name());
        let Some(waiting) = self.waiting else {
            return format!(
                "Not enough load: {} of {} pairs of blocks carried enough in both halves, and nothing can be said of fewer than \
                 {LEAST_PAIRS}. Measure when somebody downloads, or for longer.",
                self.counted, self.planned
            );
        };
        let (who_small, Comparison { on, off, ratio, .. }) = (direction.name(), waiting);
        let found = match self.verdict {
            Verdict::NoDifference | Verdict::NotEnoughLoad => "No difference was found: with control",
            Verdict::Shorter | Verdict::Longer => "With control",
        };
        let sure = interval(&waiting);
        format!(
            "{found} {who_small} waited {} times as long ({sure}): 95 % of the time at most {}, and {} without.{}",
            digits(ratio),
            ms(on),
            ms(off),
            self.carried(&who)
        )
    }

    fn carried(&self, who: &str) -> String {
        let Some(carried) = self.throughput else { return String::new() };
        let sure = interval(&carried);
        match carried.is_found() {
            true => format!(" {who} carried {} times as much ({sure}).", digits(carried.ratio)),
            false => {
                format!(" {who} carried as much, as far as can be told: {} times ({sure}).", digits(carried.ratio))
            }
        }
    }
}

fn interval(of: &Comparison) -> String {
    format!("{:.0} % interval {} to {}, p {}", of.level * 100.0, digits(of.low), digits(of.high), p(of.p))
}

fn ms(value: f64) -> String {
    format!("{} ms", digits(value))
}

/// A p-value behind its sign.
pub(crate) fn p(value: f64) -> String {
    if value < 0.000_1 { "< 0.0001".to_owned() } else { format!("= {}", digits(value)) }
}

/// Two or three digits that matter.
pub(crate) fn digits(value: f64) -> String {
    match value {
        v if v < 0.001 => format!("{v:.4}"),
        v if v < 0.1 => format!("{v:.3}"),
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 100.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

//! The text format: a family at a time, its help and kind before its series.

use std::fmt::Write as _;

/// What a family's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Goes up and down.
    Gauge,
    /// Only grows, and begins anew with the controller.
    Counter,
    /// Counts by upper bound.
    Histogram,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::Histogram => "histogram",
        }
    }
}

/// A text in the making.
#[derive(Debug, Default)]
pub struct Text {
    out: String,
}

impl Text {
    /// Begins a family. Names and help are this crate's own words, which need no escape.
    pub fn family<'a>(&'a mut self, name: &'a str, kind: Kind, help: &str) -> Family<'a> {
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
        Family { out: &mut self.out, name }
    }

    /// What was written.
    pub fn into_string(self) -> String {
        self.out
    }
}

/// Series of one name.
#[derive(Debug)]
pub struct Family<'a> {
    out: &'a mut String,
    name: &'a str,
}

impl Family<'_> {
    /// A series.
    pub fn one(&mut self, labels: &[(&str, &str)], value: f64) {
        self.line("", labels, value);
    }

    /// The series of a histogram: `up_to` has upper bounds, ascending, and the number of values up to each.
    pub fn histogram(&mut self, labels: &[(&str, &str)], up_to: &[(f64, u64)], count: u64, sum: f64) {
        for (bound, n) in up_to {
            self.bucket(labels, &bound.to_string(), *n);
        }
        self.bucket(labels, "+Inf", count);
        self.line("_sum", labels, sum);
        self.line("_count", labels, count as f64);
    }

    fn bucket(&mut self, labels: &[(&str, &str)], bound: &str, count: u64) {
        let labels: Vec<_> = labels.iter().copied().chain([("le", bound)]).collect();
        self.line("_bucket", &labels, count as f64);
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], value: f64) {
        let _ = write!(self.out, "{}{suffix}", self.name);
        for (i, (name, word)) in labels.iter().enumerate() {
            let before = if i == 0 { '{' } else { ',' };
            let _ = write!(self.out, "{before}{name}=\"{}\"", escaped(word));
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.out, "{close} {value}");
    }
}

/// A label's value inside double quotes.
fn escaped(word: &str) -> String {
    word.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_does_not_end_where_its_value_has_a_quote() {
        let mut text = Text::default();
        text.family("x", Kind::Gauge, "Help.").one(&[("a", "b\"\\\nc"), ("d", "e")], 0.5);
        assert_eq!(text.into_string(), "# HELP x Help.\n# TYPE x gauge\nx{a=\"b\\\"\\\\\\nc\",d=\"e\"} 0.5\n");
    }

    #[test]
    fn a_histogram_ends_with_all_of_it() {
        let mut text = Text::default();
        text.family("x", Kind::Histogram, "Help.").histogram(&[], &[(0.5, 1), (1.0, 3)], 4, 2.25);
        let lines = "x_bucket{le=\"0.5\"} 1\nx_bucket{le=\"1\"} 3\nx_bucket{le=\"+Inf\"} 4\nx_sum 2.25\nx_count 4\n";
        assert!(text.into_string().ends_with(lines));
    }
}

//! Trimmed means, standard deviations, and whether the last values of a series agree.

use std::collections::VecDeque;

/// The mean of `values` without the highest `floor((1 - kept) n)`; `None` of none.
pub fn trimmed_mean(mut values: Vec<f64>, kept: f64) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    values.sort_by(f64::total_cmp);
    // A hair more than exact, since 1 - 0.95 is a hair less than 0.05.
    let dropped = ((1.0 - kept) * values.len() as f64 + 1e-9) as usize;
    values.truncate((values.len() - dropped.min(values.len())).max(1));
    Some(mean(&values))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The standard deviation of a population: divided by n.
fn standard_deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}

/// The last values of a series, and whether they agree.
#[derive(Clone, Debug)]
pub struct Stability {
    distance: usize,
    tolerance: f64,
    last: VecDeque<f64>,
    /// How many values there were in all.
    pub seen: usize,
}

impl Stability {
    /// Of series that agree when the standard deviation of `distance` values is less than `tolerance` of the last of them.
    pub fn new(distance: usize, tolerance: f64) -> Self {
        Self { distance: distance.max(1), tolerance, last: VecDeque::new(), seen: 0 }
    }

    /// A further value; whether the last ones agree now.
    pub fn push(&mut self, value: f64) -> bool {
        self.last.push_back(value);
        self.seen += 1;
        if self.last.len() > self.distance {
            self.last.pop_front();
        }
        self.is_reached()
    }

    /// Whether the last values agree.
    pub fn is_reached(&self) -> bool {
        self.last.len() == self.distance
            && self.last.back().is_some_and(|&current| {
                let values: Vec<f64> = self.last.iter().copied().collect();
                current > 0.0 && standard_deviation(&values) < self.tolerance * current
            })
    }

    /// Whether there were as many values as have to agree.
    pub fn is_full(&self) -> bool {
        self.last.len() == self.distance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, right: f64) {
        assert!((found - right).abs() < 1e-9, "{found} is not {right}");
    }

    #[test]
    fn a_trimmed_mean_leaves_out_the_highest_twentieth() {
        // 1 to 20: the 20 goes, and 190 / 19 are left.
        let values: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        close(trimmed_mean(values, 0.95).expect("values"), 10.0);
        // 1 to 40: 39 and 40 go; 741 / 38 are left.
        close(trimmed_mean((1..=40).map(f64::from).collect(), 0.95).expect("values"), 19.5);
    }

    #[test]
    fn fewer_than_twenty_values_are_all_kept_and_none_has_no_mean() {
        close(trimmed_mean(vec![1.0, 2.0, 600.0], 0.95).expect("values"), 201.0);
        assert_eq!(trimmed_mean(vec![], 0.95), None);
    }

    #[test]
    fn a_standard_deviation_is_that_of_a_population() {
        // The textbook's: mean 5, deviation 2.
        close(standard_deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), 2.0);
    }

    #[test]
    fn four_values_within_five_percent_of_the_last_agree() {
        let mut stability = Stability::new(4, 0.05);
        assert!(![100.0, 104.0, 96.0].into_iter().any(|value| stability.push(value)), "three are too few");
        assert!(!stability.is_full());
        // 100, 104, 96, 100: deviation sqrt(8) = 2.83, less than 5.
        assert!(stability.push(100.0));
        // 104, 96, 100, 120: mean 105, deviation sqrt((1 + 81 + 25 + 225) / 4) = 9.1, more than 6.
        assert!(!stability.push(120.0));
        assert_eq!((stability.is_full(), stability.seen), (true, 5));
    }

    #[test]
    fn nothing_at_all_does_not_agree() {
        let mut stability = Stability::new(2, 0.05);
        assert!(![0.0, 0.0, 0.0].into_iter().any(|value| stability.push(value)));
    }
}

//! Jain's index: `(sum x)^2 / (n sum x^2)`, 1/n (one has all) to 1 (all have the same).
//!
//! Source: R. Jain, D. Chiu, W. Hawe, DEC-TR-301, 1984.

/// Jain's index of `shares`; `None` when there is none or all are zero.
#[must_use]
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_give_one_and_a_single_owner_gives_one_nth() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!((jain(&[]), jain(&[0.0])), (None, None));
    }
}

//! The normal distribution, where quantiles stand in place of draws.

/// The z below which `share` of a normal distribution lies, 0 < share < 1: bisection of erfc, exact to 1e-12.
#[must_use]
pub fn quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-9.0, 9.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        let below = 0.5 * libm::erfc(-middle / core::f64::consts::SQRT_2);
        if below < share { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_any_table() {
        for (share, z) in [(0.5, 0.0), (0.975, 1.959_964), (0.005, -2.575_829)] {
            assert!((quantile(share) - z).abs() < 1e-6, "{share}");
        }
    }
}

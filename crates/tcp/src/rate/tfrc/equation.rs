//! What TCP would get: the throughput equation.
//!
//! ```text
//! X = s / (R sqrt(2 b p / 3) + RTO 3 sqrt(3 b p / 8) p (1 + 32 p^2)),   b = 1, RTO = 4 R      [bytes/s]
//! ```
//!
//! s: segment size, bytes. R: round trip, s. p: loss events per packet, 0 < p <= 1. b: packets per acknowledgment.
//! Source: RFC 5348 section 3.1 (Padhye et al., SIGCOMM 1998).

/// X, bytes/s.
#[must_use]
pub fn throughput(size: f64, rtt: f64, p: f64) -> f64 {
    size / (rtt * shape(p))
}

/// The denominator over R; grows with p.
fn shape(p: f64) -> f64 {
    (2.0 * p / 3.0).sqrt() + 4.0 * 3.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p)
}

/// The p at which the equation gives `rate`, within one part in 10^9; 1 where even that gives more.
pub(super) fn loss_event_rate(size: f64, rtt: f64, rate: f64) -> f64 {
    let wanted = size / (rtt * rate);
    let (mut low, mut high) = (1e-16_f64, 1.0_f64);
    if wanted >= shape(high) {
        return high;
    }
    while high / low > 1.0 + 1e-9 {
        let middle = (low * high).sqrt();
        if shape(middle) < wanted { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_equation_by_hand() {
        // sqrt(0.02 / 3) = 0.081650; 12 sqrt(0.00375) x 0.01 x 1.0032 = 0.007372: 1000 B / (0.1 s x 0.089022).
        assert!((throughput(1000.0, 0.1, 0.01) / 112_331.0 - 1.0).abs() < 1e-4, "{}", throughput(1000.0, 0.1, 0.01));
        // For small p it is sqrt(3/2) s / (R sqrt(p)).
        let simple = 1.5_f64.sqrt() * 1000.0 / (0.1 * 1e-6_f64.sqrt());
        assert!((throughput(1000.0, 0.1, 1e-6) / simple - 1.0).abs() < 1e-4);
    }

    #[test]
    fn the_inverse_finds_the_loss_event_rate_back() {
        for p in [1e-9, 1e-4, 0.01, 0.3, 1.0] {
            let back = loss_event_rate(1460.0, 0.05, throughput(1460.0, 0.05, p));
            assert!((back / p - 1.0).abs() < 1e-6, "{back} for {p}");
        }
        assert_eq!(loss_event_rate(1460.0, 0.05, 1e-3), 1.0);
    }
}

//! How often an MPDU is sent at most: which attempts for which loss, class and round trip.
//!
//! ```text
//! left        = p^k                                           of packets, after k attempts of which each is lost with probability p
//! of bulk     left <= 3/4 (MSS / (rate x RTT))^2              what NewReno with delayed ACKs bears, eq. (3) of paper 001; 2 <= k <= 7
//! of streams  left <= 1 %                                     what audio bears unnoticed; 2 <= k <= 4
//! ```
//!
//! One attempt is never enough: data and acknowledgments collide where the channel takes nothing. More than four make a stream's
//! packets late, which is as bad; more than seven hold up everybody behind. Source: the book's chapters `recovery.md` (the borders, over 802.11b
//! and for all three kinds of traffic) and `arq.md`; Palazzi, "802.11 ARQ Scheme Analysis". What a station's packets of a class get is what
//! the most demanding of its flows asks for.

use crate::units::{BitRate, Span};

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Traffic {
    /// Late is as bad as lost.
    Stream,
    /// TCP that is to have `rate` over a round trip.
    Bulk {
        /// Its share.
        rate: BitRate,
        /// From end to end.
        rtt: Span,
    },
}

/// Losses that a stream over UDP bears (`recovery.md`: nobody repairs up to about 1 %).
const STREAM: f64 = 0.01;
/// A full segment, bits.
const SEGMENT: f64 = 1460.0 * 8.0;
const LEAST: u8 = 2;
const MOST_STREAM: u8 = 4;
const MOST_BULK: u8 = 7;

/// Transmissions of one MPDU in all, where each is lost with probability `loss`; `None` where that is no probability.
#[must_use]
pub fn attempts(loss: f64, traffic: Traffic) -> Option<u8> {
    if !(0.0..1.0).contains(&loss) {
        return None;
    }
    let (bears, most) = match traffic {
        Traffic::Stream => (STREAM, MOST_STREAM),
        Traffic::Bulk { rate, rtt } => {
            let packets = rate.as_bps() as f64 * rtt.as_secs_f64() / SEGMENT;
            let bears = if packets > 0.0 { 0.75 / (packets * packets) } else { 1.0 };
            (bears, MOST_BULK)
        }
    };
    let mut left = 1.0;
    for k in 1..=most {
        left *= loss;
        if left <= bears {
            return Some(k.max(LEAST));
        }
    }
    Some(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(mbps: u64, rtt_ms: u64) -> Traffic {
        Traffic::Bulk { rate: BitRate::mbps(mbps), rtt: Span::from_millis(rtt_ms) }
    }

    /// The borders of `recovery.md` for a download over 802.11b, where 1, 2, 4 and 7 were tried, at 2, 5, 10, 15 and 20 m. Data is lost
    /// there with 0, 0.6, 4.5, 11 and 18.6 %, and its acknowledgment as well.
    #[test]
    fn a_download_gets_what_the_book_found_to_suffice() {
        let found = |rtt_ms| {
            [0.0, 0.006, 0.045, 0.11, 0.186].map(|p: f64| {
                let k = attempts(1.0 - (1.0 - p) * (1.0 - p), bulk(3, rtt_ms)).unwrap();
                if k <= 2 {
                    2
                } else if k <= 4 {
                    4
                } else {
                    7
                }
            })
        };
        assert_eq!(found(14), [2, 2, 2, 2, 4]);
        // Four suffice at 20 m, where the channel carries less than the 3 Mbit/s that are asked of it here.
        assert_eq!(found(44), [2, 2, 4, 4, 7]);
        // The book has four at 5 m, for 1 % of a long path.
        assert_eq!(found(204), [2, 2, 4, 7, 7]);
    }

    #[test]
    fn a_stream_has_two_to_four() {
        assert_eq!(
            [0.0, 0.05, 0.11, 0.186, 0.336, 0.9].map(|p| attempts(p, Traffic::Stream)),
            [2, 2, 3, 3, 4, 4].map(Some)
        );
    }

    #[test]
    fn what_is_no_probability_says_nothing() {
        for loss in [-0.1, 1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(attempts(loss, Traffic::Stream), None);
        }
        assert_eq!(attempts(0.5, bulk(0, 0)), Some(2), "nothing is known of it");
    }
}

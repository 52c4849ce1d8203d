//! The wired part: `[wan]` between the servers and the access point, and each `[[server]]` behind it.

use lasthop_core::units::{BitRate, Span};

use super::ScenarioError;
use super::read::Reader;
use crate::normal;

/// Largest buffer, in packets: room for 100 Mbit/s x 10 s, and a bound for what a file can ask of memory.
pub(crate) const MOST_PACKETS: u32 = 100_000;

/// Largest depth of a token bucket, bytes: a second of 8 Gbit/s.
const MOST_BURST: u32 = 1_000_000_000;

/// Buffer where none is given, in packets (ns-2 home of the SAP-LAW paper).
const BUFFER_PACKETS: u32 = 140;

/// One direction of a wired link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// What it carries, IP bit/s; `None`: no limit.
    pub rate: Option<BitRate>,
    /// One way.
    pub delay: Span,
    /// Packets that may wait, FIFO, drop-tail.
    pub buffer: u32,
    /// IP bytes that may leave at once after a silence: the depth of a token bucket that fills at the rate (`tbf`, `htb`). 0: a wire, on
    /// which each packet takes its time.
    pub burst: u32,
}

/// `[wan]`: joins the servers (at W0) to the access point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WanLink {
    /// From W0 to the access point.
    pub down: Wire,
    /// From the access point to W0.
    pub up: Wire,
}

/// `[[server]]`: a wired host behind [`WanLink`], expanded from its count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// `W1`, or `W1.3` where counted.
    pub name: String,
    /// The name of its table.
    pub table: String,
    /// Its own link to W0, the same in both directions.
    pub wire: Wire,
}

pub(crate) const WAN_KEYS: [&str; 7] =
    ["delay", "rate_down", "rate_up", "buffer_down", "buffer_up", "burst_down", "burst_up"];
pub(crate) const SERVER_KEYS: [&str; 6] = ["name", "count", "delay", "rate", "buffer", "spread"];

pub(crate) fn read_wan(root: &Reader<'_>) -> Result<Option<WanLink>, ScenarioError> {
    let Some(wan) = root.table("wan", &WAN_KEYS)? else { return Ok(None) };
    let delay = wan.quantity("delay")?.unwrap_or(Span::ZERO);
    let wire = |way: &str| -> Result<Wire, ScenarioError> {
        let buffer = wan.count(&format!("buffer_{way}"), 1..=MOST_PACKETS)?.unwrap_or(BUFFER_PACKETS);
        let burst = wan.count(&format!("burst_{way}"), 0..=MOST_BURST)?.unwrap_or(0);
        Ok(Wire { rate: wan.positive(&format!("rate_{way}"))?, delay, buffer, burst })
    };
    Ok(Some(WanLink { down: wire("down")?, up: wire("up")? }))
}

pub(crate) fn read_server(server: &Reader<'_>) -> Result<Wire, ScenarioError> {
    Ok(Wire {
        rate: server.positive("rate")?,
        delay: server.quantity("delay")?.unwrap_or(Span::ZERO),
        buffer: server.count("buffer", 1..=MOST_PACKETS)?.unwrap_or(BUFFER_PACKETS),
        burst: 0,
    })
}

/// Where the members of a counted server stand: `delay_i = delay exp(sigma z_i) [times]`, z_i the quantile `(i - 1/2) / n`
/// of the normal distribution. Quantiles and not draws, so that the median and every share are what they should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    sigma: f64,
    /// Share of the members, the farthest, that are `times` as far.
    far: f64,
    times: f64,
}

impl Spread {
    pub(crate) fn read(server: &Reader<'_>) -> Result<Option<Self>, ScenarioError> {
        let Some(spread) = server.table("spread", &["sigma", "far", "times"])? else { return Ok(None) };
        Ok(Some(Self {
            sigma: spread.number("sigma", 0.0..=3.0)?.unwrap_or(0.0),
            far: spread.number("far", 0.0..=1.0)?.unwrap_or(0.0),
            times: spread.number("times", 1.0..=100.0)?.unwrap_or(1.0),
        }))
    }

    /// What the delay of member `i`, from 0, of `n` is multiplied by.
    pub(crate) fn factor(&self, i: usize, n: usize) -> f64 {
        let share = (i as f64 + 0.5) / n as f64;
        let far = if share > 1.0 - self.far { self.times } else { 1.0 };
        far * libm::exp(self.sigma * normal::quantile(share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_median_and_the_shares_of_its_distribution() {
        // The game servers of the CHAP paper: a median ping of 133 ms, 70 % of them below 150 ms.
        let spread = Spread { sigma: 0.23, far: 0.05, times: 2.0 };
        let pings: Vec<f64> = (0..100).map(|i| 133.0 * spread.factor(i, 100)).collect();
        assert!(pings.is_sorted());
        assert!((f64::midpoint(pings[49], pings[50]) - 133.0).abs() < 0.01);
        assert_eq!(pings.iter().filter(|ping| **ping < 150.0).count(), 70);
        assert!(pings[94] < 200.0 && pings[95] > 380.0, "five are far away: {:?}", &pings[94..]);
    }

    #[test]
    fn without_spread_all_are_as_far() {
        let spread = Spread { sigma: 0.0, far: 0.0, times: 1.0 };
        assert!((0..7).all(|i| spread.factor(i, 7) == 1.0));
    }
}

//! Our rate control beside the kernel's: what Minstrel-HT would have chosen for the same frames, at the same moments and over the same
//! channel, with losses of its own.
//!
//! mac80211_hwsim reports frames one by one, so the shadow, too, sends one MPDU each time.

use lasthop_core::units::Time;
use lasthop_medium::channel::{Direction, Path};
use lasthop_medium::random::Stream;
use lasthop_medium::rate_control::{Capability, MinstrelHt, RatePlan, Scheme, TxResult};
use lasthop_medium::{Mode, Rate};

/// One of them.
#[derive(Clone, Debug)]
pub struct Shadow {
    scheme: Scheme,
    control: MinstrelHt,
    losses: Stream,
}

impl Shadow {
    /// Knows nothing yet.
    #[must_use]
    pub fn new(scheme: Scheme, capability: Capability, seed: u64) -> Self {
        let control = MinstrelHt::new(scheme, capability, Stream::named(seed, "hwsim.shadow.samples"));
        Self { scheme, control, losses: Stream::named(seed, "hwsim.shadow.losses") }
    }

    /// A frame of so many bytes, FCS included, goes down this path.
    pub fn on_frame(&mut self, now: Time, path: &Path, bytes: u32) {
        let plan = self.control.plan(now);
        let (mut tries, mut arrived) = (0, false);
        while let (false, Some(stage)) = (arrived, plan.after(tries)) {
            tries += 1;
            arrived = !self.losses.chance(path.per(Direction::Down, stage.rate, bytes));
        }
        self.control.on_result(now, &TxResult { plan: &plan, tries, mpdus: 1, acked: u16::from(arrived) });
    }

    /// Whose scheme it follows.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// What it sends a frame with that tries nothing out.
    #[must_use]
    pub const fn chain(&self) -> &RatePlan {
        self.control.chain()
    }

    /// What it thinks carries most.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.control.rate()
    }
}

/// What Minstrel-HT would put first if it knew every probability: packets of 1,200 bytes a second, one MPDU a frame, for each mode.
/// `min(p, 0.9) / (108 us + t)`, none below p = 0.1; see [`lasthop_medium::rate_control::minstrel_ht`].
pub fn worth(capability: Capability, path: &Path, bytes: u32) -> impl Iterator<Item = (Mode, f64)> {
    capability.modes().filter_map(move |mode| {
        let p = 1.0 - path.per(Direction::Down, Rate::of_mode(mode)?, bytes);
        let symbols = (16 * 1200 * 8_u64).div_ceil(u64::from(mode.bits_per_symbol()));
        let seconds = 108e-6 + symbols as f64 * mode.symbol().as_secs_f64() / 16.0;
        Some((mode, if p < 0.1 { 0.0 } else { p.min(0.9) / seconds }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_medium::channel::{ChannelParams, Place};
    use lasthop_medium::{Guard, Standard, Width};

    const HT20: Capability = Capability { standard: Standard::N, width: Width::Mhz20, streams: 1, guard: Guard::Ns800 };

    fn path(snr_db: f64) -> Path {
        let place = Place { distance_m: 1.0, walls: 0, snr_db: Some(snr_db) };
        Path::new(ChannelParams::default(), place, [0.1; 2], Width::Mhz20, 1, 1)
    }

    #[test]
    fn a_shadow_finds_the_rate_of_most_worth() {
        for (snr, mcs) in [(7.0, 2), (16.0, 4), (30.0, 7)] {
            let path = path(snr);
            let best = worth(HT20, &path, 1500).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0;
            assert_eq!(best.mcs, mcs);
            for scheme in [Scheme::Share, Scheme::Kinds] {
                let mut shadow = Shadow::new(scheme, HT20, 3);
                (0..4_000).for_each(|n| shadow.on_frame(Time::from_nanos(n * 5_000_000), &path, 1500));
                assert_eq!(shadow.rate().mode().map(|mode| mode.mcs), Some(mcs), "{scheme:?} at {snr} dB");
            }
        }
    }

    #[test]
    fn what_never_arrives_is_worth_nothing() {
        let all: Vec<_> = worth(HT20, &path(5.0), 1500).collect();
        assert_eq!(all.len(), 8);
        assert!(all[1].1 > 0.0 && all[7].1 == 0.0);
    }
}

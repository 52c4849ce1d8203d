//! What rate a frame is sent with: one law per file.
//!
//! There is one object per sender and receiver. It is asked for a plan before a frame is sent for the first time
//! ([`RateControl::plan`]): up to four stages, each a rate and how often it is tried, which the sender goes through while no
//! answer comes. Once the frame is settled (a block ack or ACK came, or the plan is used up) it is told what was tried and how many
//! MPDUs arrived ([`RateControl::on_result`]); what did not arrive goes into another frame, with a plan of its own.
//!
//! | law | decides by |
//! |---|---|
//! | [`RateControl::Fixed`] | nothing |
//! | [`ideal`] | the true SNR: the fastest rate that loses few enough MPDUs |
//! | [`minstrel_ht`] | what arrived, as Linux does |

pub mod ideal;
pub mod minstrel_ht;

use lasthop_core::units::Time;

use crate::mode::{Guard, Mode, Width};
use crate::phy::{Rate, Standard};
pub use ideal::Ideal;
pub use minstrel_ht::{MinstrelHt, Scheme};

/// The laws there are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum RateLaw {
    /// Always the station's rate.
    #[default]
    Fixed,
    /// The true SNR decides.
    Ideal {
        /// Most MPDUs of 1,538 bytes that may be lost, 0..=1.
        per: f64,
    },
    /// Linux's.
    MinstrelHt(Scheme),
}

/// A rate, and how often it is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// With this.
    pub rate: Rate,
    /// At most so often, at least once.
    pub tries: u8,
    /// RTS and CTS go before it, however long it is.
    pub rts: bool,
}

/// How a frame is sent until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RatePlan {
    stages: [Stage; 4],
    len: u8,
    /// It only tries out a rate.
    pub is_sample: bool,
    /// The frame is one MPDU, not an aggregate.
    pub is_single: bool,
}

impl RatePlan {
    /// One rate for all tries.
    #[must_use]
    #[inline]
    pub fn of(rate: Rate) -> Self {
        Self { stages: [Stage { rate, tries: u8::MAX, rts: false }; 4], len: 1, is_sample: false, is_single: false }
    }

    /// These stages, each tried at least once; `None`: there is none, or one is never tried. Those behind the fourth are left out.
    #[must_use]
    pub fn of_stages(stages: &[Stage]) -> Option<Self> {
        (!stages.is_empty() && stages.iter().all(|stage| stage.tries > 0)).then(|| Self::chain(stages))
    }

    /// These stages, at most four and at least one.
    fn chain(stages: &[Stage]) -> Self {
        let mut all = [stages[0]; 4];
        let len = stages.len().min(4);
        all[..len].copy_from_slice(&stages[..len]);
        Self { stages: all, len: len as u8, is_sample: false, is_single: false }
    }

    /// One try of a rate.
    fn sample(rate: Rate, is_single: bool) -> Self {
        Self { stages: [Stage { rate, tries: 1, rts: false }; 4], len: 1, is_sample: true, is_single }
    }

    /// The first stage.
    #[must_use]
    #[inline]
    pub fn first(&self) -> Stage {
        self.stages[0]
    }

    /// The stages in order.
    #[must_use]
    pub fn stages(&self) -> &[Stage] {
        &self.stages[..usize::from(self.len)]
    }

    /// Tries of all stages.
    #[must_use]
    pub fn tries(&self) -> u16 {
        self.stages().iter().map(|stage| u16::from(stage.tries)).sum()
    }

    /// What the try after `tried` others is sent with; `None`: the plan is used up.
    #[must_use]
    #[inline]
    pub fn after(&self, tried: u16) -> Option<Stage> {
        let mut left = tried;
        for stage in self.stages() {
            if left < u16::from(stage.tries) {
                return Some(*stage);
            }
            left -= u16::from(stage.tries);
        }
        None
    }

    /// Rates that `tried` tries used, each with how many of them.
    pub fn used(&self, tried: u16) -> impl Iterator<Item = (Rate, u16)> {
        let mut left = tried;
        self.stages().iter().map_while(move |stage| {
            let here = left.min(u16::from(stage.tries));
            left -= here;
            (here > 0).then_some((stage.rate, here))
        })
    }
}

/// What became of a frame.
#[derive(Clone, Copy, Debug)]
pub struct TxResult<'a> {
    /// What it was sent with.
    pub plan: &'a RatePlan,
    /// Transmissions, the last one included; at least 1.
    pub tries: u16,
    /// MPDUs in it.
    pub mpdus: u16,
    /// Of these, arrived at the last try: as the answer says, 0 without one.
    pub acked: u16,
}

/// One sender's choice of rates towards one receiver.
#[derive(Clone, Debug)]
pub enum RateControl {
    /// This one.
    Fixed(Rate),
    /// See [`ideal`].
    Ideal(Ideal),
    /// See [`minstrel_ht`].
    MinstrelHt(Box<MinstrelHt>),
}

impl RateControl {
    /// What the next frame is sent with.
    #[inline]
    pub fn plan(&mut self, now: Time) -> RatePlan {
        match self {
            Self::Fixed(rate) => RatePlan::of(*rate),
            Self::Ideal(ideal) => RatePlan::of(ideal.rate()),
            Self::MinstrelHt(minstrel) => minstrel.plan(now),
        }
    }

    /// A frame is settled.
    #[inline]
    pub fn on_result(&mut self, now: Time, result: &TxResult<'_>) {
        if let Self::MinstrelHt(minstrel) = self {
            minstrel.on_result(now, result);
        }
    }

    /// What most frames are sent with at the moment.
    #[must_use]
    pub fn rate(&self) -> Rate {
        match self {
            Self::Fixed(rate) => *rate,
            Self::Ideal(ideal) => ideal.rate(),
            Self::MinstrelHt(minstrel) => minstrel.rate(),
        }
    }
}

/// What two radios can send to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Of the older one.
    pub standard: Standard,
    /// Of the narrower one.
    pub width: Width,
    /// Of the one with fewer.
    pub streams: u8,
    /// The shortest that both know; n and ac then have the long one, too, ax no other.
    pub guard: Guard,
}

impl Capability {
    /// The modes, slowest group first: by width, then guard interval (longest first), then streams, then MCS. As in Linux,
    /// radios of ac use no mode of n.
    pub fn modes(self) -> impl Iterator<Item = Mode> {
        let Self { standard, width, streams, guard } = self;
        let guards = [Guard::Ns3200, Guard::Ns1600, Guard::Ns800, Guard::Ns400].into_iter();
        let guards = guards.filter(move |g| *g == guard || (*g == Guard::Ns800 && standard != Standard::Ax));
        Width::ALL.into_iter().filter(move |w| *w <= width).flat_map(move |width| {
            guards.clone().flat_map(move |guard| {
                (1..=streams.clamp(1, 4)).flat_map(move |streams| {
                    (0..12).map(move |mcs| Mode { standard, width, streams, mcs, guard }).filter(Mode::exists)
                })
            })
        })
    }

    /// Every rate: of n, ac and ax the modes; of b and g, what they have in bit/s.
    #[must_use]
    pub fn rates(self) -> Vec<Rate> {
        if self.standard.has_classes() {
            return self.modes().filter_map(Rate::of_mode).collect();
        }
        Rate::all(self.standard).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(rate: Rate, tries: u8) -> Stage {
        Stage { rate, tries, rts: false }
    }

    #[test]
    fn tries_go_through_the_stages() {
        let plan = RatePlan::chain(&[stage(Rate::OFDM_54, 2), stage(Rate::OFDM_24, 1), stage(Rate::OFDM_6, 3)]);
        let rates: Vec<_> = (0..7).map(|tried| plan.after(tried).map(|s| s.rate)).collect();
        let [a, b, c] = [Rate::OFDM_54, Rate::OFDM_24, Rate::OFDM_6].map(Some);
        assert_eq!(rates, [a, a, b, c, c, c, None]);
        assert_eq!(plan.used(4).collect::<Vec<_>>(), [(Rate::OFDM_54, 2), (Rate::OFDM_24, 1), (Rate::OFDM_6, 1)]);
        assert_eq!(plan.used(1).collect::<Vec<_>>(), [(Rate::OFDM_54, 1)]);
    }

    #[test]
    fn a_plan_has_at_least_one_stage_and_no_empty_one() {
        let plan = RatePlan::of_stages(&[stage(Rate::OFDM_54, 2), stage(Rate::OFDM_6, 3)]);
        assert_eq!(plan.map(|plan| plan.tries()), Some(5));
        assert_eq!(RatePlan::of_stages(&[]), None);
        assert_eq!(RatePlan::of_stages(&[stage(Rate::OFDM_54, 2), stage(Rate::OFDM_6, 0)]), None);
    }

    #[test]
    fn a_fixed_rate_is_never_used_up() {
        let mut fixed = RateControl::Fixed(Rate::OFDM_24);
        let plan = fixed.plan(Time::ZERO);
        assert_eq!(plan.after(200).map(|s| s.rate), Some(Rate::OFDM_24));
        fixed.on_result(Time::ZERO, &TxResult { plan: &plan, tries: 1, mpdus: 1, acked: 0 });
        assert_eq!(fixed.rate(), Rate::OFDM_24);
    }

    #[test]
    fn a_capability_has_the_modes_of_its_groups() {
        let of = |standard, width, streams, guard| Capability { standard, width, streams, guard };
        let count = |c: Capability| c.rates().len();
        assert_eq!(count(of(Standard::N, Width::Mhz20, 1, Guard::Ns800)), 8);
        assert_eq!(count(of(Standard::N, Width::Mhz40, 2, Guard::Ns400)), 64);
        // MCS 9 is no mode of ac at 20 MHz with one stream or two.
        assert_eq!(count(of(Standard::Ac, Width::Mhz80, 2, Guard::Ns400)), 120 - 4);
        assert_eq!(count(of(Standard::Ax, Width::Mhz80, 2, Guard::Ns1600)), 72);
        assert_eq!(count(of(Standard::G, Width::Mhz20, 1, Guard::Ns800)), 12);
    }
}

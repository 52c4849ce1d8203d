//! What a receiver measures for a law that wants to hear of it ([`Reports`]).

mod echo;
mod gaps;
mod losses;
mod waves;

use lasthop_core::units::Time;

use crate::note::{Note, Reports};
use crate::segment::Segment;

/// One of them.
#[derive(Debug)]
#[expect(private_interfaces, reason = "its parts stay in their files")]
pub(super) enum Meter {
    Waves(waves::Waves),
    Echo(echo::Echo),
    Losses(losses::Losses),
    Gaps(gaps::Gaps),
}

impl Meter {
    pub(super) fn new(reports: Reports, mss: u32) -> Option<Self> {
        match reports {
            Reports::Nothing => None,
            Reports::Waves => Some(Self::Waves(waves::Waves::default())),
            Reports::Probes => Some(Self::Echo(echo::Echo::default())),
            Reports::Gaps => Some(Self::Gaps(gaps::Gaps::new(mss))),
            Reports::Losses => Some(Self::Losses(losses::Losses::new(mss))),
        }
    }

    /// What the sender has marked the segment with that comes next.
    pub(super) fn on_mark(&mut self, mark: u32) {
        match self {
            Self::Waves(waves) => waves.on_mark(mark),
            Self::Echo(echo) => echo.on_mark(mark),
            Self::Gaps(gaps) => gaps.on_mark(mark),
            Self::Losses(_) => {}
        }
    }

    /// A segment arrived, other than a SYN.
    pub(super) fn on_segment(&mut self, now: Time, segment: &Segment) {
        match self {
            Self::Waves(waves) => waves.on_segment(now, segment.bytes),
            Self::Echo(echo) => echo.on_segment(segment.bytes),
            Self::Losses(losses) => losses.on_segment(now, segment),
            Self::Gaps(gaps) => gaps.on_segment(now, segment),
        }
    }

    /// Everything below `next` is here.
    pub(super) fn on_progress(&mut self, next: u64) {
        if let Self::Losses(losses) = self {
            losses.forget(next);
        }
    }

    /// What the acknowledgment polled last says, which acknowledges everything below `next`.
    pub(super) fn note(&self, next: u64) -> Option<Note> {
        match self {
            Self::Waves(waves) => waves.note(),
            Self::Echo(echo) => echo.note(),
            Self::Losses(losses) => losses.note(next),
            Self::Gaps(gaps) => gaps.note(),
        }
    }
}

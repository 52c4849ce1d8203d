//! What a receiver measures for a law that wants to hear of it ([`Reports`]).

mod waves;

use lasthop_core::units::Time;

use crate::note::{Note, Reports};
use crate::segment::Segment;

/// One of them.
#[derive(Debug)]
#[expect(private_interfaces, reason = "its parts stay in their files")]
pub(super) enum Meter {
    Waves(waves::Waves),
}

impl Meter {
    pub(super) fn new(reports: Reports) -> Option<Self> {
        match reports {
            Reports::Nothing => None,
            Reports::Waves => Some(Self::Waves(waves::Waves::default())),
        }
    }

    /// What the sender has marked the segment with that comes next.
    pub(super) fn on_mark(&mut self, mark: u32) {
        match self {
            Self::Waves(waves) => waves.on_mark(mark),
        }
    }

    /// A segment with payload arrived.
    pub(super) fn on_segment(&mut self, now: Time, segment: &Segment) {
        match self {
            Self::Waves(waves) => waves.on_segment(now, segment.bytes),
        }
    }

    /// What the acknowledgment polled last says.
    pub(super) fn note(&self) -> Option<Note> {
        match self {
            Self::Waves(waves) => waves.note(),
        }
    }
}

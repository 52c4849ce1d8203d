//! Who has an event next: the sources of events, each by its name.
//!
//! Sources, not packets, stand in the queue: a wire is one source, of which only the head is pending; so is a traffic
//! schedule, a timer, a stage of the access point. A source has one pending time at most. Of those that are pending the
//! earliest is next, of those at one time the one that was set first ([`crate::tournament`]).

use lasthop_core::units::Time;

use crate::tournament::Tournament;
use crate::wires::{WireId, WireOrder, Wires};

/// Who has events. Flows are numbered as those of the run, stages as those of the access point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The far end of a wire.
    Wire(WireId),
    /// The schedule of a flow.
    Schedule(usize),
    /// The browser that loads a page.
    Browser(usize),
    /// The sender of a flow.
    Sender(usize),
    /// The receiver of a flow.
    Receiver(usize),
    /// The sender of a flow over a rate-controlled transport.
    Pacer(usize),
    /// The receiver of such a flow.
    Reporter(usize),
    /// The stream that the transport of a flow carries.
    Feed(usize),
    /// What the ends of a connection ask and answer.
    Exchange(usize),
    /// A stage of the access point: what it is to do by itself.
    Stage(usize),
    /// The same: the end of its interval.
    Interval(usize),
    /// The next of the changes.
    Change,
    /// The start-up, then the figures proper begin.
    Mark,
}

/// See the module.
pub struct Sources {
    tournament: Tournament,
    places: Places,
}

impl Sources {
    /// Nothing is pending.
    pub fn new(wires: &Wires, stages: usize, flows: impl Iterator<Item = impl Iterator<Item = FlowSource>>) -> Self {
        let places = Places::new(wires.order(), stages, flows);
        // Wires are set for nearly every packet.
        Self { tournament: Tournament::new(wires.busy(), places.all.len()), places }
    }

    /// The next event of a source is at `at`, whatever it was before.
    #[inline]
    pub fn set(&mut self, source: Source, at: Time) {
        self.tournament.set(self.places.of(source), at);
    }

    /// A source has nothing pending any more.
    #[inline]
    pub fn clear(&mut self, source: Source) {
        self.tournament.clear(self.places.of(source));
    }

    /// The next event of a source is at `at`, if at all.
    #[inline]
    pub fn renew(&mut self, source: Source, at: Option<Time>) {
        match at {
            Some(at) => self.set(source, at),
            None => self.clear(source),
        }
    }

    /// The same; where that is so already, its turn among those of the same time stays.
    #[inline]
    pub fn keep(&mut self, source: Source, at: Option<Time>) {
        if self.pending(source) != at {
            self.renew(source, at);
        }
    }

    /// When the next event of a source is.
    #[inline]
    pub fn pending(&self, source: Source) -> Option<Time> {
        self.tournament.pending(self.places.of(source))
    }

    /// When the next event of all is; [`Time::MAX`]: nothing is pending.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        self.tournament.first().0
    }

    /// Whose the next event of all is, where something is pending.
    #[inline]
    pub fn next(&self) -> Source {
        self.places.all[self.tournament.first().1]
    }
}

/// Sources beside the flows' own: before those of the stages.
const HOME: [Source; 2] = [Source::Change, Source::Mark];

/// Where each source stands in the tournament: the wires, the home's own, two of each stage, up to three of each flow.
struct Places {
    /// In their order.
    all: Vec<Source>,
    wires: WireOrder,
    /// Place of the first behind the wires.
    home: usize,
    /// Place of the first of each flow.
    flows: Vec<usize>,
}

impl Places {
    fn new(wires: WireOrder, stages: usize, flows: impl Iterator<Item = impl Iterator<Item = FlowSource>>) -> Self {
        let mut all: Vec<Source> = wires.all().map(Source::Wire).collect();
        let home = all.len();
        all.extend(HOME);
        all.extend((0..stages).flat_map(|stage| [Source::Stage(stage), Source::Interval(stage)]));
        let mut first = Vec::new();
        for (flow, sources) in flows.enumerate() {
            first.push(all.len());
            all.extend(sources.map(|source| source(flow)));
        }
        Self { all, wires, home, flows: first }
    }

    #[inline(always)]
    fn of(&self, source: Source) -> usize {
        match source {
            Source::Wire(wire) => self.wires.index(wire),
            Source::Change => self.home,
            Source::Mark => self.home + 1,
            Source::Stage(stage) => self.home + HOME.len() + 2 * stage,
            Source::Interval(stage) => self.home + HOME.len() + 2 * stage + 1,
            Source::Schedule(flow) | Source::Browser(flow) | Source::Sender(flow) | Source::Pacer(flow) => {
                self.flows[flow]
            }
            Source::Receiver(flow) | Source::Reporter(flow) => self.flows[flow] + 1,
            Source::Feed(flow) | Source::Exchange(flow) => self.flows[flow] + 2,
        }
    }
}

/// A source of a flow, of whichever one.
pub type FlowSource = fn(usize) -> Source;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_stands_at_its_own_place() {
        let flows: [&[FlowSource]; 5] = [
            &[Source::Sender, Source::Receiver, Source::Feed],
            &[Source::Schedule],
            &[Source::Browser],
            &[Source::Pacer, Source::Reporter, Source::Feed],
            &[Source::Sender, Source::Receiver, Source::Exchange],
        ];
        for wires in [WireOrder::new(3, true), WireOrder::new(2, false), WireOrder::new(0, false)] {
            for stages in 0..3 {
                let places = Places::new(wires, stages, flows.iter().map(|sources| sources.iter().copied()));
                assert_eq!(places.all.len(), wires.all().count() + 2 + 2 * stages + 11);
                for (place, source) in places.all.iter().enumerate() {
                    assert_eq!(places.of(*source), place, "{source:?}");
                }
            }
        }
    }
}

//! What found no place in the table of connections: for the status, and a line for whoever watches.
//!
//! The data path counts packets (`table-full`) and marks slots by connection ([`Refused`](crate::maps::Refused)).

use lasthop_core::units::{Span, Time, count};

/// Connections are counted over so long: a connection that is in use sends something.
const COUNTED: Span = Span::from_secs(10);
/// The first count comes sooner, so that somebody is told while it matters.
const FIRST: Span = Span::from_secs(1);
/// Between two lines while it lasts.
const SAID: Span = Span::from_secs(600);

#[derive(Default)]
pub(super) struct Full {
    /// Packets so far.
    packets: u64,
    /// From when, and to when, such packets passed; none while there is place for all.
    since: Option<Time>,
    last: Time,
    counted: Time,
    connections: u64,
    said: Option<Time>,
}

impl Full {
    /// `packets` found no place so far, of the connections of `flows` places; `take`: how many connections those are of since that was
    /// last asked. What to say, if anything.
    pub(super) fn on_interval(
        &mut self,
        now: Time,
        packets: u64,
        flows: u32,
        take: impl FnOnce() -> u64,
    ) -> Option<String> {
        if packets != self.packets {
            if self.since.is_none() {
                (self.since, self.counted) = (Some(now), now);
            }
            (self.packets, self.last) = (packets, now);
        }
        let since = self.since?;
        let is_first = self.counted == since;
        if now.since(self.counted) < if is_first { FIRST } else { COUNTED } {
            return None;
        }
        (self.connections, self.counted) = (take(), now);
        if now.since(self.last) >= COUNTED {
            self.since = None;
            return self
                .said
                .take()
                .map(|_| "the table of connections has room again: newcomers are controlled".to_owned());
        }
        // Datagrams have a table of their own.
        let is_due = self.connections > 0 && self.said.is_none_or(|said| now.since(said) >= SAID);
        is_due.then(|| {
            self.said = Some(now);
            self.line(now.since(since), flows)
        })
    }

    fn line(&self, lasts: Span, flows: u32) -> String {
        let (n, s) = (count(self.connections), if self.connections == 1 { "" } else { "s" });
        format!(
            "the table of connections is full since {}: about {n} newer connection{s} pass uncontrolled; `flows = {}` has room for them",
            lasts.rounded(),
            roomy(flows, self.connections)
        )
    }

    /// Connections that had no place of late, about.
    pub(super) fn connections(&self) -> u64 {
        self.since.map_or(0, |_| self.connections)
    }

    /// For how long there has been none.
    pub(super) fn lasts(&self, now: Time) -> Option<Span> {
        self.since.filter(|_| self.connections > 0).map(|since| now.since(since))
    }
}

/// The next power of two with room for so many more, and what the configuration allows.
pub(super) fn roomy(flows: u32, more: u64) -> u64 {
    (u64::from(flows) + more).next_power_of_two().min(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_is_told_of_with_how_many_and_what_to_do_and_again_only_after_a_while() {
        let (mut full, begun) = (Full::default(), Time::ZERO + Span::from_secs(1000));
        let (mut said, mut packets) = (Vec::new(), 0);
        for ms in (0..1_300_000u64).step_by(50) {
            // For twenty-one minutes somebody finds no place.
            packets += u64::from(ms < 1_260_000);
            let now = begun + Span::from_millis(ms);
            said.extend(full.on_interval(now, packets, 16_384, || 340).map(|line| (ms / 1000, line)));
            if ms == 60_000 {
                assert_eq!((full.connections(), full.lasts(now)), (340, Some(Span::from_secs(60))));
            }
        }
        let times: Vec<_> = said.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [1, 601, 1201, 1271]);
        assert_eq!(
            said[0].1,
            "the table of connections is full since 1 s: about 340 newer connections pass uncontrolled; `flows = 32768` has room for them"
        );
        assert!(said[3].1.contains("room again"));
        assert_eq!(full.connections(), 0);
    }

    #[test]
    fn datagrams_without_a_place_say_nothing_of_connections() {
        let mut full = Full::default();
        let said = (1..100u64).filter_map(|s| full.on_interval(Time::ZERO + Span::from_secs(s), s, 1024, || 0)).count();
        assert_eq!((said, full.lasts(Time::ZERO + Span::from_secs(100))), (0, None));
    }
}

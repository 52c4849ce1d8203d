//! TCP-Real's receiver: how fast each wave of data arrived.
//!
//! ```text
//! rate = payload that arrived after the first segment / (last arrival - first arrival),   both without pauses   [bytes/s]
//! ```
//!
//! A wave is what its sender has marked with one number, about a window of data; it is whole when the first segment of another one
//! arrives. A wave of one segment, or one whose segments came at one instant, tells nothing.
//!
//! Ours: pauses. A window smaller than the path comes in a clump, and the end of a wave may lie within one: then the
//! sender's silence would pass for slow arrival. A gap of more than half of the last wave's period, which is a round trip,
//! does not count, nor does the segment behind it.

use lasthop_core::units::{Span, Time};

use crate::note::Note;

#[derive(Debug, Default)]
pub(super) struct Waves {
    /// Number of the wave in flight.
    wave: u32,
    /// First and last arrival of it; none before a segment.
    span: Option<(Time, Time)>,
    /// Time in which it arrived, without pauses.
    time: Span,
    /// Payload that arrived in that, bytes.
    bytes: u64,
    /// From the first arrival of the last wave to that of this one.
    period: Option<Span>,
    /// What the segment that comes next is marked with.
    mark: u32,
    newest: Option<Note>,
}

impl Waves {
    pub(super) fn on_mark(&mut self, mark: u32) {
        self.mark = mark;
    }

    pub(super) fn on_segment(&mut self, now: Time, bytes: u32) {
        if bytes == 0 {
            return;
        }
        match &mut self.span {
            Some((_, last)) if self.mark == self.wave => {
                let gap = now.since(*last);
                *last = now;
                if self.period.is_none_or(|period| gap <= period / 2) {
                    self.time += gap;
                    self.bytes += u64::from(bytes);
                }
            }
            _ => {
                self.finish();
                self.period = self.span.map(|(first, _)| now.since(first));
                (self.wave, self.span) = (self.mark, Some((now, now)));
                (self.time, self.bytes) = (Span::ZERO, 0);
            }
        }
    }

    fn finish(&mut self) {
        if self.time > Span::ZERO {
            let rate = self.bytes as f64 / self.time.as_secs_f64();
            self.newest = Some(Note::Wave { wave: self.wave, rate: rate as u64 });
        }
    }

    pub(super) fn note(&self) -> Option<Note> {
        self.newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(waves: &mut Waves, mark: u32, milliseconds: u64) {
        waves.on_mark(mark);
        waves.on_segment(Time::from_nanos(milliseconds * 1_000_000), 1000);
    }

    /// Four segments of 1000 B in 30 ms: three after the first, 100 kB/s, told once the next wave begins.
    #[test]
    fn a_wave_is_measured_from_its_first_arrival_to_its_last() {
        let mut waves = Waves::default();
        [0, 10, 20, 30].iter().for_each(|at| arrive(&mut waves, 1, *at));
        assert_eq!(waves.note(), None);
        arrive(&mut waves, 2, 100);
        assert_eq!(waves.note(), Some(Note::Wave { wave: 1, rate: 100_000 }));
        // One segment is no measure, and what was told stays so.
        arrive(&mut waves, 3, 110);
        assert_eq!(waves.note(), Some(Note::Wave { wave: 1, rate: 100_000 }));
    }

    /// The same clump each 100 ms, and a wave that ends within one: 70 ms are the sender's silence.
    #[test]
    fn the_senders_pauses_are_not_slowness() {
        let mut waves = Waves::default();
        arrive(&mut waves, 1, 0);
        [100, 110, 180, 190, 200].iter().for_each(|at| arrive(&mut waves, 2, *at));
        arrive(&mut waves, 3, 210);
        assert_eq!(waves.note(), Some(Note::Wave { wave: 2, rate: 100_000 }));
    }
}

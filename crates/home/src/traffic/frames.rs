//! Frames on their way to becoming IP packets.
//!
//! A frame of a *trace* is coded bytes: it is cut into `ceil(bytes / 1472)` packets of nearly equal size, each with 28
//! bytes of IP and UDP headers on top. A frame of the *generator* counts IP bytes, so that `rate` is what the network
//! carries: `ceil(bytes / 1500)` packets, none smaller than its headers and one byte. A trace begins again at its end.

use std::collections::VecDeque;
use std::sync::Arc;

use lasthop_core::units::{BitRate, Span};
use lasthop_medium::random::Stream;

use super::Emission;
use super::video::{FRAMES_PER_SECOND, Generator};
use crate::scenario::{FrameSource, LARGEST_PACKET, SMALLEST_UDP, Video as Wanted};
use crate::trace::Frames;

/// The frames of one flow.
#[derive(Debug)]
pub(crate) struct Video {
    start: Span,
    frames: Origin,
}

#[derive(Debug)]
enum Origin {
    Trace { frames: Arc<Frames>, next: usize, pass: Span },
    Generator { generator: Generator, tick: u64 },
}

impl Video {
    pub(crate) fn stream(wanted: &Wanted, start: Span, random: Stream) -> Self {
        Self::new(wanted, start, |rate| Generator::stream(rate, random))
    }

    pub(crate) fn chat(wanted: &Wanted, start: Span, random: Stream) -> Self {
        Self::new(wanted, start, |rate| Generator::chat(rate, random))
    }

    fn new(wanted: &Wanted, start: Span, generator: impl FnOnce(f64) -> Generator) -> Self {
        let frames = match &wanted.frames {
            FrameSource::Trace { frames, .. } => Origin::Trace { frames: frames.clone(), next: 0, pass: Span::ZERO },
            FrameSource::Generator { rate } => {
                Origin::Generator { generator: generator(rate.as_bps() as f64), tick: 0 }
            }
        };
        Self { start, frames }
    }

    /// Cuts the next frame into `packets`, at least one.
    pub(crate) fn next_frame(&mut self, packets: &mut VecDeque<Emission>) {
        match &mut self.frames {
            Origin::Trace { frames, next, pass } => loop {
                let Some(frame) = frames.frames().get(*next) else {
                    *pass += frames.length();
                    *next = 0;
                    continue;
                };
                *next += 1;
                if frame.bytes > 0 {
                    let at = self.start + *pass + frame.at;
                    cut(u64::from(frame.bytes), LARGEST_PACKET - SMALLEST_UDP, SMALLEST_UDP, at, packets);
                    return;
                }
            },
            Origin::Generator { generator, tick } => {
                let at = self.start + Span::from_nanos(*tick * (1_000_000_000 / FRAMES_PER_SECOND));
                let frame = generator.next_frame();
                *tick += frame.gap;
                cut(frame.bytes, LARGEST_PACKET, 0, at, packets);
            }
        }
    }
}

/// Cuts `bytes` into packets of nearly equal size, at most `most` each, with `headers` on top of each.
fn cut(bytes: u64, most: u64, headers: u64, at: Span, packets: &mut VecDeque<Emission>) {
    let count = bytes.div_ceil(most);
    let (size, longer) = (bytes / count, bytes % count);
    packets.extend((0..count).map(|i| Emission { at, bytes: (size + u64::from(i < longer) + headers) as u32 }));
}

/// Mean rate over one pass of a trace, or of the generator.
pub(crate) fn mean_rate(wanted: &Wanted) -> BitRate {
    match &wanted.frames {
        FrameSource::Generator { rate } => *rate,
        FrameSource::Trace { frames, .. } => {
            let ip_bytes = |bytes: u64| bytes + bytes.div_ceil(LARGEST_PACKET - SMALLEST_UDP) * SMALLEST_UDP;
            let bytes: u64 = frames.frames().iter().map(|f| ip_bytes(u64::from(f.bytes))).sum();
            BitRate::from_bps_f64(bytes as f64 * 8.0 / frames.length().as_secs_f64())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(bytes: u64, most: u64, headers: u64) -> Vec<u32> {
        let mut packets = VecDeque::new();
        cut(bytes, most, headers, Span::ZERO, &mut packets);
        packets.iter().map(|p| p.bytes).collect()
    }

    #[test]
    fn a_frame_is_cut_evenly_and_carries_headers_on_every_packet() {
        assert_eq!(sizes(1472, 1472, 28), [1500]);
        assert_eq!(sizes(1473, 1472, 28), [765, 764]);
        assert_eq!(sizes(1510, 1500, 0), [755, 755]);
    }

    #[test]
    fn a_trace_is_sent_as_it_is_and_begins_again() {
        let text = "# number type time bytes\n1 I 0 2000\n2 P 120 500\n3 B 40 0\n4 B 80 300\n";
        let frames = Arc::new(Frames::parse(text).unwrap());
        let wanted = Wanted { frames: FrameSource::Trace { path: "t".into(), frames } };
        let mut video = Video::stream(&wanted, Span::from_secs(1), Stream::named(1, "x"));
        let mut packets = VecDeque::new();
        (0..4).for_each(|_| video.next_frame(&mut packets));
        let seen: Vec<(u64, u32)> = packets.iter().map(|p| (p.at.as_nanos() / 1_000_000, p.bytes)).collect();
        // Coding order at the sorted times: I at 0, P at 40, the empty B at 80, B at 120; a pass lasts 160 ms.
        assert_eq!(seen, [(1000, 1028), (1000, 1028), (1040, 528), (1120, 328), (1160, 1028), (1160, 1028)]);
    }
}

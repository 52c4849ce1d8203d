//! Video without a trace: TES models of frame sizes.
//!
//! `U_n = frac(U_{n-1} + V_n)`,                 V_n uniform on [-alpha/2, alpha/2]   (background, TES+)
//! `S(U) = U/xi` up to xi, `(1-U)/(1-xi)` above  (stitching: no jump where the circle closes)
//! `F_n = H^-1(S(U_n)) x c_n                    [bytes]`
//!
//! H^-1 is the inverse histogram of a frame type: quantiles at equal steps, straight lines between them, scaled so
//! that its mean is exactly that type's share of the wanted rate. U_n and S(U_n) are uniform, so the marginal
//! distribution is the histogram whatever alpha is; a small alpha makes neighbours alike (lag-1 autocorrelation of U
//! about `sin(pi alpha) / (pi alpha)`).
//! Sources: B. Melamed, "An overview of TES processes", 1993; A. Matrawy, I. Lambadaris, C. Huang, "MPEG4 traffic
//! modeling using the transform expand sample methodology", 2002 (three models, one each for I, P and B, interleaved
//! by the GOP).
//!
//! Ours: the histograms (log-normal quantiles with the spread of the Star Wars IV and Lecture Room-Cam traces, from
//! their published statistics), and the slow correction `c_n = 1 + (bytes owed) / (3 s of the rate)`, within 0.5..1.5:
//! an encoder's rate control, which keeps the mean rate of a few minutes within 1 %.
//! Not done: scene changes, dependence between the frame types of one GOP.

use lasthop_medium::random::Stream;

use crate::scenario::SMALLEST_UDP;
use crate::trace::FrameType;

/// The group of pictures, in the order of sending.
pub const GOP: &[u8; 12] = b"IBBPBBPBBPBB";

/// Frames per second.
pub const FRAMES_PER_SECOND: u64 = 25;

/// Quantiles at 0, 1/16 .. 1 of a frame size relative to its type's mean.
type Histogram = [f64; 17];

/// I frames: log-normal, coefficient of variation 0.45, cut at the 0.5 % quantiles.
const I_FRAMES: Histogram = [
    0.308, 0.476, 0.553, 0.618, 0.678, 0.736, 0.794, 0.852, 0.912, 0.976, 1.047, 1.129, 1.227, 1.346, 1.504, 1.748,
    2.700,
];

/// P and B frames: log-normal, coefficient of variation 0.5.
const P_AND_B_FRAMES: Histogram = [
    0.265, 0.434, 0.515, 0.582, 0.645, 0.706, 0.767, 0.830, 0.894, 0.964, 1.042, 1.133, 1.240, 1.373, 1.554, 1.842,
    3.019,
];

/// H.263 frames of a room camera: mean 618 B, deviation 370 B, 240 B at least, relative to the mean.
const CHAT_FRAMES: Histogram = [
    0.389, 0.423, 0.482, 0.543, 0.604, 0.665, 0.728, 0.793, 0.858, 0.930, 1.013, 1.112, 1.231, 1.380, 1.589, 1.929,
    3.600,
];

/// Mean size of each type relative to the mean of the GOP: 1 I, 3 P, 8 B of these weigh 12.
const RELATIVE: [(FrameType, f64); 3] = [(FrameType::I, 2.645), (FrameType::P, 1.170), (FrameType::B, 0.730_625)];

/// Width of the background's steps: lag-1 autocorrelation about 0.75.
const ALPHA: f64 = 0.4;

/// Where the stitching turns.
const XI: f64 = 0.5;

/// Smallest frame: the headers of its packet and one byte.
const SMALLEST_FRAME: f64 = SMALLEST_UDP as f64 + 1.0;

/// Time over which owed bytes are made up, s.
const CORRECTION_SECONDS: f64 = 3.0;

/// One TES model.
#[derive(Clone, Debug)]
struct Tes {
    background: f64,
    quantiles: [f64; 17],
}

impl Tes {
    /// With mean `mean`, bytes.
    fn new(histogram: &Histogram, mean: f64, random: &mut Stream) -> Self {
        let raw_mean = histogram.windows(2).map(|w| (w[0] + w[1]) / 2.0).sum::<f64>() / 16.0;
        Self { background: random.f64(), quantiles: histogram.map(|q| q * mean / raw_mean) }
    }

    fn next(&mut self, random: &mut Stream) -> f64 {
        let moved = self.background + ALPHA * (random.f64() - 0.5);
        self.background = moved - libm::floor(moved);
        let u = self.background;
        let stitched = if u <= XI { u / XI } else { (1.0 - u) / (1.0 - XI) };
        self.inverse(stitched)
    }

    fn inverse(&self, u: f64) -> f64 {
        let place = u * 16.0;
        let below = (place as usize).min(15);
        let (low, high) = (self.quantiles[below], self.quantiles[below + 1]);
        low + (high - low) * (place - below as f64)
    }
}

/// Frame sizes of an MPEG-4 stream or of a video chat, in bytes.
#[derive(Clone, Debug)]
pub struct Generator {
    random: Stream,
    /// One per frame type; a chat has one.
    models: Vec<Tes>,
    /// Index into the GOP; `None` for a chat.
    place: Option<usize>,
    /// Bytes/s.
    rate: f64,
    /// Bytes sent less than the rate asks for so far.
    owed: f64,
}

/// Gaps of a chat in 25ths of a second, with their probabilities (Lecture Room-Cam).
const CHAT_GAPS: [(u64, f64); 5] = [(1, 0.35), (2, 0.45), (3, 0.12), (4, 0.05), (6, 0.03)];

/// Mean of [`CHAT_GAPS`].
fn mean_chat_gap() -> f64 {
    CHAT_GAPS.iter().map(|(gap, share)| *gap as f64 * share).sum()
}

/// One generated frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneratedFrame {
    /// Its type; frames of a chat are P.
    pub kind: FrameType,
    /// IP bytes.
    pub bytes: u64,
    /// Until the next one, in 25ths of a second.
    pub gap: u64,
}

impl Generator {
    /// MPEG-4 at 25 frames/s with a mean of `bits_per_second`.
    #[must_use]
    pub fn stream(bits_per_second: f64, mut random: Stream) -> Self {
        let rate = bits_per_second / 8.0;
        let mean = rate / FRAMES_PER_SECOND as f64;
        let histogram = |kind| if kind == FrameType::I { &I_FRAMES } else { &P_AND_B_FRAMES };
        let model = |(kind, share): &(FrameType, f64)| Tes::new(histogram(*kind), mean * share, &mut random);
        let models = RELATIVE.iter().map(model).collect();
        Self { random, models, place: Some(0), rate, owed: 0.0 }
    }

    /// An H.263-like chat with a mean of `bits_per_second`.
    #[must_use]
    pub fn chat(bits_per_second: f64, mut random: Stream) -> Self {
        let rate = bits_per_second / 8.0;
        let mean = rate * mean_chat_gap() / FRAMES_PER_SECOND as f64;
        let models = vec![Tes::new(&CHAT_FRAMES, mean, &mut random)];
        Self { random, models, place: None, rate, owed: 0.0 }
    }

    /// The next frame.
    pub fn next_frame(&mut self) -> GeneratedFrame {
        let (model, kind, gap) = match self.place {
            Some(place) => {
                self.place = Some((place + 1) % GOP.len());
                let index = match GOP[place] {
                    b'I' => 0,
                    b'P' => 1,
                    _ => 2,
                };
                (index, RELATIVE[index].0, 1)
            }
            None => (0, FrameType::P, self.chat_gap()),
        };
        let correction = (1.0 + self.owed / (self.rate * CORRECTION_SECONDS)).clamp(0.5, 1.5);
        let bytes = (self.models[model].next(&mut self.random) * correction).round().max(SMALLEST_FRAME);
        // A type's mean is due for its frame, so that the order of the GOP is no debt.
        let due = match self.place {
            Some(_) => self.rate / FRAMES_PER_SECOND as f64 * RELATIVE[model].1,
            None => self.rate / FRAMES_PER_SECOND as f64 * gap as f64,
        };
        self.owed += due - bytes;
        GeneratedFrame { kind, bytes: bytes as u64, gap }
    }

    fn chat_gap(&mut self) -> u64 {
        let mut left = self.random.f64();
        for (gap, share) in CHAT_GAPS {
            if left < share {
                return gap;
            }
            left -= share;
        }
        1
    }
}

/// The sample trace that ships in `scenarios/traces`: 25 groups of pictures (12 s) at 0.28 Mbit/s, seed 1.
#[must_use]
pub fn sample_trace() -> String {
    let mut generator = Generator::stream(280_000.0, Stream::named(1, "sample trace"));
    let mut text = "# Generated by the video generator of lasthop-home (example sample_trace): no recorded film.\n\
                    # frame type time_ms bytes\n"
        .to_owned();
    for frame in 0..300_u64 {
        let GeneratedFrame { kind, bytes, .. } = generator.next_frame();
        text.push_str(&format!("{frame} {kind:?} {} {bytes}\n", frame * 1000 / FRAMES_PER_SECOND));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn autocorrelation(samples: &[f64], lag: usize) -> f64 {
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        let variance: f64 = samples.iter().map(|x| (x - mean).powi(2)).sum();
        let together: f64 = samples.windows(lag + 1).map(|w| (w[0] - mean) * (w[lag] - mean)).sum();
        together / variance
    }

    #[test]
    fn the_shipped_sample_is_what_the_generator_writes() {
        let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/traces/sample.txt");
        assert!(std::fs::read_to_string(shipped).is_ok_and(|text| text == sample_trace()), "run the example again");
    }

    fn of_type(seed: u64, kind: FrameType, frames: usize) -> Vec<f64> {
        let mut generator = Generator::stream(280_000.0, Stream::named(seed, "video"));
        let all = std::iter::repeat_with(|| generator.next_frame()).take(frames);
        all.filter(|f| f.kind == kind).map(|f| f.bytes as f64).collect()
    }

    #[test]
    fn the_gop_weighs_its_twelve_frames() {
        let share = |c: u8| RELATIVE[usize::from(c != b'I') + usize::from(c == b'B')].1;
        let weight: f64 = GOP.iter().map(|c| share(*c)).sum();
        assert!((weight - 12.0).abs() < 1e-9, "{weight}");
    }

    #[test]
    fn three_minutes_keep_the_mean_rate_within_one_per_cent() {
        for seed in 0..40 {
            let mut generator = Generator::stream(280_000.0, Stream::named(seed, "video"));
            let bytes: u64 = (0..4500).map(|_| generator.next_frame().bytes).sum();
            assert!((bytes as f64 * 8.0 / 180.0 / 280_000.0 - 1.0).abs() < 0.01, "seed {seed}: {bytes}");
        }
    }

    #[test]
    fn three_minutes_of_chat_keep_the_mean_rate_within_one_per_cent() {
        for seed in 0..40 {
            let mut generator = Generator::chat(62_000.0, Stream::named(seed, "chat"));
            let (mut bytes, mut ticks) = (0, 0);
            while ticks < 4500 {
                let frame = generator.next_frame();
                bytes += frame.bytes;
                ticks += frame.gap;
            }
            let rate = bytes as f64 * 8.0 * 25.0 / ticks as f64;
            assert!((rate / 62_000.0 - 1.0).abs() < 0.01, "seed {seed}: {rate}");
        }
    }

    #[test]
    fn frames_of_one_type_resemble_their_neighbours() {
        for kind in [FrameType::I, FrameType::P, FrameType::B] {
            let sizes = of_type(7, kind, 30_000);
            let (near, far) = (autocorrelation(&sizes, 1), autocorrelation(&sizes, 200));
            assert!(near > 0.5, "{kind:?}: {near}");
            assert!(far.abs() < 0.15, "{kind:?}: {far}");
        }
    }

    #[test]
    fn intra_frames_are_the_largest_and_sizes_spread_as_the_trace_does() {
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        let [i, p, b] = [FrameType::I, FrameType::P, FrameType::B].map(|kind| mean(&of_type(5, kind, 60_000)));
        assert!(i > 2.0 * p && p > 1.3 * b, "{i} {p} {b}");
        let all: Vec<f64> =
            [FrameType::I, FrameType::P, FrameType::B].into_iter().flat_map(|kind| of_type(5, kind, 60_000)).collect();
        let m = mean(&all);
        let cov = (all.iter().map(|x| (x - m).powi(2)).sum::<f64>() / all.len() as f64).sqrt() / m;
        assert!((0.55..0.85).contains(&cov), "coefficient of variation {cov}, the trace has 0.66");
    }
}

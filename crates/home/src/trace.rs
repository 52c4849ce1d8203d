//! Video frame traces in the common text form: one frame a line, with its number, type, time and bytes.
//!
//! Read as they are: lines that begin with no digit are comments; columns are split by blanks, tabs, commas or
//! semicolons; the type (I, P, B, PB) may stand before or after the time; further columns (quality) are passed over.
//! Times are milliseconds, or seconds where the mean frame period would otherwise be under one millisecond. Frames
//! stand in coding order (I P B B), so display times jump back and forth: the i-th frame of the file is sent at the
//! i-th smallest time. Frames of zero bytes were skipped by the encoder and send nothing.

use lasthop_core::units::Span;

/// Type of a coded frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameType {
    /// Intra-coded.
    I,
    /// Predicted; PB frames of H.263 count here.
    P,
    /// Bidirectionally predicted.
    B,
}

/// One frame of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its type.
    pub kind: FrameType,
    /// When it is sent, since the first frame.
    pub at: Span,
    /// Coded bytes.
    pub bytes: u32,
}

/// The frames of one trace, at least one, in order of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frames {
    frames: Vec<Frame>,
    period: Span,
}

/// Largest frame taken for one, in bytes; larger numbers are a column mistaken.
const LARGEST_FRAME: u64 = 10_000_000;

/// Most frames of one trace: more than 12 hours at 25 fps.
const MOST_FRAMES: usize = 1_200_000;

/// Longest trace.
const LONGEST_SECONDS: f64 = 7.0 * 86_400.0;

impl Frames {
    /// Reads a trace.
    ///
    /// # Errors
    /// The number of the WAN link and what is wrong there: `12: ...`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lines: Vec<(FrameType, f64, u32)> = Vec::new();
        for (i, line) in text.lines().enumerate() {
            if !line.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
                continue;
            }
            if lines.len() == MOST_FRAMES {
                return Err(format!("{}: more than {MOST_FRAMES} frames", i + 1));
            }
            lines.push(read_line(line).map_err(|why| format!("{}: {why}", i + 1))?);
        }
        let total: u64 = lines.iter().map(|(_, _, bytes)| u64::from(*bytes)).sum();
        if total == 0 {
            return Err("1: no frame with bytes; write one frame a line: number, type, time in ms, bytes".to_owned());
        }
        Self::in_order(lines)
    }

    fn in_order(lines: Vec<(FrameType, f64, u32)>) -> Result<Self, String> {
        let mut times: Vec<f64> = lines.iter().map(|(_, time, _)| *time).collect();
        times.sort_by(f64::total_cmp);
        let gaps = (times.len() - 1).max(1) as f64;
        let mean_gap = (times[times.len() - 1] - times[0]) / gaps;
        let unit = if mean_gap < 1.0 { 1.0 } else { 1e-3 };
        if (times[times.len() - 1] - times[0]) * unit > LONGEST_SECONDS {
            return Err("1: lasts longer than a week; times are in milliseconds or seconds".to_owned());
        }
        // A trace of one frame, or with all frames at one time, repeats at 25 fps.
        let period = if mean_gap > 0.0 { Span::from_secs_f64(mean_gap * unit) } else { Span::from_millis(40) };
        let first = times[0];
        let frame = |((kind, _, bytes), time): ((FrameType, f64, u32), f64)| Frame {
            kind,
            at: Span::from_secs_f64((time - first) * unit),
            bytes,
        };
        let frames: Vec<Frame> = lines.into_iter().zip(times).map(frame).collect();
        Ok(Self { frames, period: period.max(Span::from_micros(10)) })
    }

    /// The frames, in order of time.
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// How long one pass lasts: to the last frame and one mean period on.
    #[must_use]
    pub fn length(&self) -> Span {
        self.frames[self.frames.len() - 1].at + self.period
    }
}

fn read_line(line: &str) -> Result<(FrameType, f64, u32), String> {
    let columns: Vec<&str> =
        line.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';')).filter(|c| !c.is_empty()).collect();
    let right = "write number, type (I, P, B), time, bytes";
    let [_, second, third, bytes, ..] = columns[..] else {
        return Err(format!("{} columns stand here; {right}", columns.len()));
    };
    let (kind, time) = match (frame_type(second), frame_type(third)) {
        (Some(kind), None) => (kind, third),
        (None, Some(kind)) => (kind, second),
        _ => return Err(format!("there is no frame type in columns 2 or 3; {right}")),
    };
    let time: f64 = time.parse().ok().filter(|t: &f64| t.is_finite() && *t >= 0.0).ok_or("the time is no number")?;
    let bytes: u64 = bytes.parse().map_err(|_| format!("the bytes are no integer; {right}"))?;
    if bytes > LARGEST_FRAME {
        return Err(format!("a frame of {bytes} bytes; {LARGEST_FRAME} is the most"));
    }
    Ok((kind, time, bytes as u32))
}

fn frame_type(column: &str) -> Option<FrameType> {
    match column {
        "I" | "i" | "IDR" => Some(FrameType::I),
        "P" | "p" | "PB" => Some(FrameType::P),
        "B" | "b" => Some(FrameType::B),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(text: &str) -> Vec<(FrameType, u64, u32)> {
        let frames = Frames::parse(text).unwrap();
        frames.frames().iter().map(|f| (f.kind, f.at.as_nanos() / 1_000_000, f.bytes)).collect()
    }

    #[test]
    fn the_common_form_is_read_as_it_is_with_its_comments() {
        let text = "Frame No.\tFrametype\tTime[ms]\tLength [byte]\n; TKN\n0\tI\t0\t534\n1\tP\t120\t1542\n2\tB\t40\t134\n\n3\tB\t80\t390\n";
        // In coding order, at the sorted times.
        assert_eq!(
            seen(text),
            [(FrameType::I, 0, 534), (FrameType::P, 40, 1542), (FrameType::B, 80, 134), (FrameType::B, 120, 390)]
        );
        assert_eq!(Frames::parse(text).unwrap().length(), Span::from_millis(160));
    }

    #[test]
    fn seconds_and_the_time_before_the_type_and_further_columns_are_read_too() {
        let text = "1 0.000000 I 2000 38.5 41.2\n2 0.040000 PB 500 37.0 40.0\n";
        assert_eq!(seen(text), [(FrameType::I, 0, 2000), (FrameType::P, 40, 500)]);
    }

    #[test]
    fn a_wrong_line_is_named_with_what_would_be_right() {
        let error = |text: &str| Frames::parse(text).unwrap_err();
        assert_eq!(
            error("1 I 0 200\n2 40 300 7\n"),
            "2: there is no frame type in columns 2 or 3; write number, type (I, P, B), time, bytes"
        );
        assert_eq!(error("1 I 0\n"), "1: 3 columns stand here; write number, type (I, P, B), time, bytes");
        assert!(error("# nothing\n").contains("no frame with bytes"));
        assert!(error("1 I -5 200\n").contains("the time is no number"));
        assert!(error("1 I 0 99999999999\n").contains("10000000 is the most"));
        assert!(error("1 I 0 10\n2 P 1e300 10\n").contains("longer than a week"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_and_frames_are_in_order(
            lines in prop::collection::vec("([0-9]{1,3} [IPBx] [0-9]{1,5}(\\.[0-9])? [0-9]{1,6}|.{0,12})", 0..20),
        ) {
            if let Ok(frames) = Frames::parse(&lines.join("\n")) {
                prop_assert!(!frames.frames().is_empty());
                prop_assert!(frames.frames().windows(2).all(|w| w[0].at <= w[1].at));
                prop_assert!(frames.length() > frames.frames()[frames.frames().len() - 1].at);
            }
        }
    }
}

//! How often something may happen: a bucket that holds so many at once and is filled as time goes by; and lines of a log by
//! one, with a count of those that were left out.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How much a bucket holds, and how fast it is filled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// As many at once.
    pub most: f64,
    /// What comes again, per second.
    pub per_second: f64,
}

/// A token bucket.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    left: f64,
    since: Instant,
}

impl Bucket {
    /// A full one.
    pub fn new(rate: Rate, now: Instant) -> Self {
        Self { left: rate.most, since: now }
    }

    /// Takes one; or how many seconds until there is one again.
    pub fn take(&mut self, rate: Rate, now: Instant) -> Result<(), f64> {
        let filled = now.saturating_duration_since(self.since).as_secs_f64() * rate.per_second;
        (self.left, self.since) = ((self.left + filled).min(rate.most), now);
        if self.left < 1.0 {
            return Err((1.0 - self.left) / rate.per_second);
        }
        self.left -= 1.0;
        Ok(())
    }
}

/// Lines about refusals: who makes a server refuse as often as it can must not fill the disk with them. At this rate a day has
/// some 17,000 lines, less than 2 MB.
const LINES: Rate = Rate { most: 20.0, per_second: 0.2 };

/// Lines of one kind.
pub struct Lines(Mutex<Written>);

struct Written {
    bucket: Bucket,
    left_out: u64,
}

impl Lines {
    pub fn new(now: Instant) -> Self {
        Self(Mutex::new(Written { bucket: Bucket::new(LINES, now), left_out: 0 }))
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one more may be written, and then how many were left out before it; they are told by that.
    pub fn take(&self, now: Instant) -> Option<u64> {
        let mut written = self.written();
        if written.bucket.take(LINES, now).is_ok() {
            return Some(std::mem::take(&mut written.left_out));
        }
        written.left_out += 1;
        None
    }

    /// How many were left out, when there are any and that may be written now, or `is_last`.
    pub fn left_out(&self, now: Instant, is_last: bool) -> Option<u64> {
        let mut written = self.written();
        let is_due = written.left_out > 0 && (is_last || written.bucket.take(LINES, now).is_ok());
        is_due.then(|| std::mem::take(&mut written.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn lines_are_written_at_a_limited_rate_and_what_was_left_out_is_counted() {
        let now = Instant::now();
        let lines = Lines::new(now);
        let written = (0..1000).filter(|_| lines.take(now).is_some()).count();
        assert_eq!((written, lines.left_out(now, false)), (20, None));
        let later = now + Duration::from_secs(5);
        assert_eq!(lines.left_out(later, false), Some(980));
        assert_eq!((lines.left_out(later, true), lines.take(later)), (None, None));
        assert_eq!(lines.left_out(later, true), Some(1), "at the end all is told");
        assert_eq!(lines.take(later + Duration::from_secs(60)), Some(0));
    }
}

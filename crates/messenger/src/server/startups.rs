//! How many connections may be there that have not said who they are: sshd's `MaxStartups`, start:rate:full.
//!
//! ```text
//! p = 0                                              u < start
//! p = rate + (100 - rate) x (u - start) / (full - start)    start <= u < full
//! p = 100                                            u >= full
//! ```
//!
//! `u`: connections that have not said who they are when one more comes; `p`: how likely one has to go, in percent.
//! Source: sshd_config(5), `MaxStartups`; the arithmetic in whole percent is that of sshd's `should_drop_connection`.
//! Differs: sshd turns the one that comes away. Who comes first and says nothing would hold every place there until its time
//! is over, so here the one that goes is drawn from all of them (`gate`).

use std::fmt;
use std::str::FromStr;

/// See above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Startups {
    start: u16,
    /// In percent, 1 to 100.
    rate: u8,
    full: u16,
}

impl Default for Startups {
    /// That of sshd: 10:30:100.
    fn default() -> Self {
        Self { start: 10, rate: 30, full: 100 }
    }
}

impl Startups {
    /// Most of them at once.
    #[must_use]
    pub const fn full(&self) -> usize {
        self.full as usize
    }

    /// Whether one has to go when there are `unknown` and one more comes. `draw`: a number below 100, each as likely.
    #[must_use]
    pub fn is_one_too_many(&self, unknown: usize, draw: u32) -> bool {
        let (start, full) = (usize::from(self.start), usize::from(self.full));
        if unknown < start {
            return false;
        }
        if unknown >= full {
            return true;
        }
        let (rate, beyond, range) = (u32::from(self.rate), (unknown - start) as u32, (full - start) as u32);
        draw < rate + (100 - rate) * beyond / range
    }
}

/// What is no start:rate:full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "give start:rate:full, like 10:30:100, with 1 <= start <= full <= 10000 and a rate of 1 to 100 percent; or one number"
)]
pub struct NoStartups;

impl FromStr for Startups {
    type Err = NoStartups;

    /// `start:rate:full`, or one number for both start and full, as sshd reads it.
    fn from_str(text: &str) -> Result<Self, NoStartups> {
        let number = |text: &str| {
            let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|number: &u16| is_plain && (1..=10_000).contains(number)).ok_or(NoStartups)
        };
        let (start, rate, full) = match *text.split(':').collect::<Vec<_>>() {
            [both] => (number(both)?, 100, number(both)?),
            [start, rate, full] => (number(start)?, number(rate)?, number(full)?),
            _ => return Err(NoStartups),
        };
        let rate = u8::try_from(rate).ok().filter(|rate| *rate <= 100).ok_or(NoStartups)?;
        if start > full { Err(NoStartups) } else { Ok(Self { start, rate, full }) }
    }
}

impl fmt::Display for Startups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.start, self.rate, self.full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a hundred draws, how many send one away.
    fn percent(startups: &str, unknown: usize) -> usize {
        let startups: Startups = startups.parse().unwrap();
        (0..100).filter(|draw| startups.is_one_too_many(unknown, *draw)).count()
    }

    #[test]
    fn the_probability_is_that_of_the_manual() {
        // sshd_config(5): "10:30:60", 30 % at 10, linear, and all at 60.
        let table = [(0, 0), (9, 0), (10, 30), (35, 65), (59, 98), (60, 100), (1000, 100)];
        for (unknown, expected) in table {
            assert_eq!(percent("10:30:60", unknown), expected, "{unknown}");
        }
        assert_eq!([9, 10, 11].map(|unknown| percent("10", unknown)), [0, 100, 100], "a number alone is a limit");
    }

    #[test]
    fn what_sshd_refuses_is_refused() {
        for text in
            ["", "10:30", "60:30:10", "10:0:60", "10:101:60", "0:30:60", "0", "a:b:c", "10:30:60:1", "+1", "1: 2:3"]
        {
            assert_eq!(text.parse::<Startups>(), Err(NoStartups), "{text}");
        }
        assert_eq!(Startups::default().to_string().parse(), Ok(Startups::default()));
    }
}

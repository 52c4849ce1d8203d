//! What is said to whoever watches: lines of text, JSON lines, or fields of systemd's journal. Never called per packet.
//!
//! A decision has a name and values beside its sentence ([`Decision::name`](lasthop_core::ap::Decision::name), `values`); `book/src/fleets.md` has the fields.
//! Control goes on when nobody reads it any more: what cannot be said is lost.

mod journal;
mod json;

use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use lasthop_core::ap::Value;

use journal::Journald;

/// In which form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The journal's where stderr leads there (`JOURNAL_STREAM`), else text.
    #[default]
    Auto,
    /// A line on stderr: `lasthop: `, and a sentence.
    Text,
    /// A JSON object in a line on stderr.
    Json,
    /// Fields, to the journal's own socket.
    Journal,
}

/// How much it matters; the numbers are syslog's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Somebody has to do something, or it stays wrong.
    Warning = 4,
    /// What happens.
    Info = 6,
}

/// What is said at once.
#[derive(Clone, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) level: Level,
    /// A sentence.
    pub(crate) message: &'a str,
    /// The name of a decision.
    pub(crate) decision: Option<&'static str>,
    /// Its values, each with its unit in the name.
    pub(crate) values: &'a [(&'static str, Value)],
}

impl<'a> Entry<'a> {
    /// One without values.
    pub(crate) const fn plain(level: Level, message: &'a str) -> Self {
        Self { level, message, decision: None, values: &[] }
    }
}

/// Where it goes.
enum Sink {
    Text,
    Json,
    Journal(Journald),
}

static SINK: Mutex<Sink> = Mutex::new(Sink::Text);

/// From now on everything is said in this form. Where the journal cannot be told it is text.
pub fn set_format(format: Format) {
    let wants_journal = match format {
        Format::Auto => journal::is_stderr(),
        format => format == Format::Journal,
    };
    let journald = wants_journal.then(Journald::new).and_then(Result::ok);
    let sink = match (format, journald) {
        (_, Some(journald)) => Sink::Journal(journald),
        (Format::Json, None) => Sink::Json,
        (_, None) => Sink::Text,
    };
    *SINK.lock().unwrap_or_else(PoisonError::into_inner) = sink;
}

/// Says it.
pub(crate) fn say(entry: &Entry<'_>) {
    let sink = SINK.lock().unwrap_or_else(PoisonError::into_inner);
    let line = match &*sink {
        Sink::Journal(journald) if journald.say(entry) => return,
        Sink::Text | Sink::Journal(_) => format!("lasthop: {}", entry.message),
        Sink::Json => json::line(entry, json::wall_clock()),
    };
    // Whole, so that lines of two threads do not mix; `eprintln!` would panic where nobody reads.
    let _ = std::io::stderr().write_all((line + "\n").as_bytes());
}

/// One sentence.
pub(crate) fn log(line: &str) {
    say(&Entry::plain(Level::Info, line));
}

#[cfg(test)]
pub(crate) mod tests {
    use lasthop_core::ap::{Decision, QueuePlace};
    use lasthop_core::packet::Direction;
    use lasthop_core::units::{BitRate, Span};

    /// One with values of every kind.
    pub(crate) fn decision() -> Decision {
        let (now, before) = (BitRate::bps(19_812_345), Some(BitRate::mbps(12)));
        Decision::Capacity { direction: Direction::ToStation, before, now, queue: Span::from_micros(5_340) }
    }

    /// Of a place.
    pub(crate) fn place() -> Decision {
        let (local, remote) = (Span::from_millis(3), Span::ZERO);
        Decision::Queue { direction: Direction::ToRemote, place: QueuePlace::Wan, local, remote }
    }
}

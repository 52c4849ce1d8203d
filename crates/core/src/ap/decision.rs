//! What the controller decided, each with its cause: one line for a person.

use core::fmt;

use super::Tunnel;
use crate::elastic::{Behaviour, Why};
use crate::packet::{Direction, FlowId};
use crate::units::{BitRate, Bytes, Span};

/// Where packets wait for their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueuePlace {
    /// In the access point's own queue, whose backlog is known.
    AccessPoint,
    /// Behind the access point's own queue: in the driver or the radio's firmware, or in a station.
    Firmware,
    /// In front of the home: at the provider, or in the modem.
    Wan,
}

impl QueuePlace {
    /// The name that status and report use for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AccessPoint => "access-point",
            Self::Firmware => "firmware",
            Self::Wan => "wan",
        }
    }
}

/// A decision worth a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// The first estimate of what a hop carries.
    Estimate {
        /// Of data that goes this way.
        direction: Direction,
        /// The estimate.
        capacity: BitRate,
        /// Acknowledgments of one train showed it, this many bytes; 0: there was none yet.
        train_bytes: u64,
    },
    /// Another estimate of what a hop carries.
    Capacity {
        /// Of data that goes this way.
        direction: Direction,
        /// What it was; `None`: nothing was known.
        before: Option<BitRate>,
        /// What it is.
        now: BitRate,
        /// What waited at the hop while this much was delivered.
        queue: Span,
    },
    /// The queue was found.
    Queue {
        /// Of data that goes this way.
        direction: Direction,
        /// Where it stands.
        place: QueuePlace,
        /// What was added to the half of the round trip that leads to the stations.
        local: Span,
        /// What was added to the half that leads to the remote ends.
        remote: Span,
    },
    /// Windows begin to be held.
    Hold {
        /// Of data that goes this way.
        direction: Direction,
        /// Number of flows.
        flows: usize,
        /// The rate that they share.
        available: BitRate,
    },
    /// Packets wait because of connections that windows do not hold: whoever is held has its equal part over the whole of its round
    /// trip, and does not wait for them to give way.
    Beside {
        /// Of data that goes this way.
        direction: Direction,
        /// So many that cannot be held.
        flows: usize,
        /// What everybody else has at least.
        share: BitRate,
    },
    /// Nothing waits and nobody fills what he may have: windows are left alone.
    Release {
        /// Of data that goes this way.
        direction: Direction,
    },
    /// More flows than windows can hold: the floors together exceed the pipe.
    Floors {
        /// Of data that goes this way.
        direction: Direction,
        /// Number of flows.
        flows: usize,
        /// Their floors together, bytes.
        floors: u64,
        /// The bandwidth-delay product, bytes.
        pipe: u64,
    },
    /// A UDP flow is taken for something else from now on.
    Behaviour {
        /// The host's name for it.
        flow: FlowId,
        /// Of data that goes this way.
        direction: Direction,
        /// It is one.
        tunnel: Option<Tunnel>,
        /// What it is taken for.
        behaviour: Behaviour,
        /// Why.
        why: Why,
        /// The rate that it has.
        rate: BitRate,
    },
    /// A UDP flow begins to be held to its share, by marks or drops.
    Steer {
        /// The host's name for it.
        flow: FlowId,
        /// Of data that goes this way.
        direction: Direction,
        /// The rate that it may have.
        share: BitRate,
    },
}

/// A value of a decision, for programs.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// So many, in the unit of its name: `_bps`, `_bytes`, flows.
    Count(u64),
    /// So much, in the unit of its name: `_ms`.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// A word, or a sentence.
    Text(String),
}

impl From<BitRate> for Value {
    fn from(rate: BitRate) -> Self {
        Self::Count(rate.as_bps())
    }
}

impl From<Span> for Value {
    fn from(span: Span) -> Self {
        Self::Number(span.as_millis_f64())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Decision {
    /// What programs call it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Estimate { .. } => "estimate",
            Self::Capacity { .. } => "capacity",
            Self::Queue { .. } => "queue",
            Self::Hold { .. } => "hold",
            Self::Beside { .. } => "beside",
            Self::Release { .. } => "release",
            Self::Floors { .. } => "floors",
            Self::Behaviour { .. } => "behaviour",
            Self::Steer { .. } => "steer",
        }
    }

    /// Its values beside its sentence, each with its unit in the name; `direction` (`down`, `up`) first. Which flow it is about the host
    /// knows.
    #[must_use]
    pub fn values(&self) -> Vec<(&'static str, Value)> {
        let count = |n: usize| Value::Count(n as u64);
        let (direction, values) = match *self {
            Self::Estimate { direction, capacity, train_bytes } => {
                (direction, vec![("capacity_bps", capacity.into()), ("train_bytes", Value::Count(train_bytes))])
            }
            Self::Capacity { direction, before, now, queue } => {
                let before = before.map(|before| ("before_bps", before.into()));
                let others = [("capacity_bps", now.into()), ("queue_ms", queue.into())];
                (direction, before.into_iter().chain(others).collect())
            }
            Self::Queue { direction, place, local, remote } => {
                let place = place.name().into();
                (direction, vec![("place", place), ("local_ms", local.into()), ("remote_ms", remote.into())])
            }
            Self::Hold { direction, flows, available } => {
                (direction, vec![("flows", count(flows)), ("available_bps", available.into())])
            }
            Self::Beside { direction, flows, share } => {
                (direction, vec![("flows", count(flows)), ("share_bps", share.into())])
            }
            Self::Release { direction } => (direction, Vec::new()),
            Self::Floors { direction, flows, floors, pipe } => {
                let (floors, pipe) = (Value::Count(floors), Value::Count(pipe));
                (direction, vec![("flows", count(flows)), ("floors_bytes", floors), ("pipe_bytes", pipe)])
            }
            Self::Behaviour { direction, tunnel, behaviour, why, rate, .. } => {
                let taken_for = match behaviour {
                    Behaviour::Unknown => "unknown",
                    Behaviour::RealTime => "real-time",
                    Behaviour::Elastic => "elastic",
                };
                let tunnel = tunnel.map(|tunnel| ("tunnel", Value::Text(tunnel.to_string())));
                let why = ("why", Value::Text(why.to_string()));
                let others = [("taken_for", taken_for.into()), why, ("rate_bps", rate.into())];
                (direction, others.into_iter().chain(tunnel).collect())
            }
            Self::Steer { direction, share, .. } => (direction, vec![("share_bps", share.into())]),
        };
        let way = match direction {
            Direction::ToStation => "down",
            Direction::ToRemote => "up",
        };
        std::iter::once(("direction", way.into())).chain(values).collect()
    }
}

const fn data(direction: Direction) -> &'static str {
    match direction {
        Direction::ToStation => "downloads",
        Direction::ToRemote => "uploads",
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Estimate { direction, capacity, train_bytes } => {
                let (what, capacity, packet_train) =
                    (data(*direction), capacity.rounded(), Bytes(*train_bytes).rounded());
                write!(f, "{what}: the hop seems to carry {capacity}; ")?;
                match train_bytes {
                    0 => write!(f, "so much was delivered until now"),
                    _ => write!(f, "a first train of {packet_train} came through at that pace"),
                }
            }
            Self::Capacity { direction, before, now, queue } => {
                write!(f, "{}: the hop carries {}", data(*direction), now.rounded())?;
                if let Some(before) = before {
                    write!(f, " instead of {}", before.rounded())?;
                }
                write!(f, "; so much was delivered while packets waited {}", queue.rounded())
            }
            Self::Queue { direction, place, local, remote } => {
                let what = data(*direction);
                let place = match place {
                    QueuePlace::AccessPoint => "in the access point's own queue",
                    QueuePlace::Firmware => "behind the access point's own queue, in its driver or firmware",
                    QueuePlace::Wan => "in front of the home",
                };
                let (local, remote) = (local.rounded(), remote.rounded());
                write!(
                    f,
                    "{what}: packets wait {place}; {local} were added on the side of the stations, {remote} on the other"
                )
            }
            Self::Hold { direction, flows, available } => {
                let (what, available) = (data(*direction), available.rounded());
                match flows {
                    1 => write!(f, "{what}: one is limited to {available}, because packets wait at the hop"),
                    n => write!(f, "{what}: {n} are limited to {available} together, because packets wait at the hop"),
                }
            }
            Self::Behaviour { flow, direction, tunnel, behaviour, why, rate } => {
                let what = data(*direction);
                let tunnel = tunnel.map_or_else(String::new, |tunnel| format!(", a {tunnel} tunnel,"));
                let taken = match behaviour {
                    Behaviour::Unknown => "unknown",
                    Behaviour::RealTime => "real-time and left alone",
                    Behaviour::Elastic => "elastic and gets a share",
                };
                write!(f, "{what}: UDP flow {}{tunnel} with {} is {taken}: {why}", flow.0, rate.rounded())
            }
            Self::Steer { flow, direction, share } => {
                let (what, share) = (data(*direction), share.rounded());
                write!(
                    f,
                    "{what}: UDP flow {} is limited to {share} by marks, or drops where it takes no marks",
                    flow.0
                )
            }
            Self::Beside { direction, flows, share } => {
                let (what, share) = (data(*direction), share.rounded());
                let cannot = if *flows == 1 { "one cannot" } else { "some cannot" };
                write!(
                    f,
                    "{what}: {cannot} be held by windows ({flows}), and packets wait; each of the others has {share} at least"
                )
            }
            Self::Release { direction } => {
                write!(f, "{}: windows released, because nothing waits and nobody asks for more", data(*direction))
            }
            Self::Floors { direction, flows, floors, pipe } => {
                let (what, floors, pipe) = (data(*direction), Bytes(*floors).rounded(), Bytes(*pipe).rounded());
                write!(
                    f,
                    "{what}: {flows} flows need {floors} at least where {pipe} fill the hop; windows cannot hold them, a queue that is fair (--queue chap) can"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Digits of the number that has most of them, zeros in front and the name of a flow left out.
    fn most_digits(line: &str) -> usize {
        let (mut most, mut before) = (0, "");
        for word in line.split_whitespace() {
            let number: String = word.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
            if before != "flow" {
                most = most.max(number.replace('.', "").trim_start_matches('0').len());
            }
            before = word;
        }
        most
    }

    #[test]
    fn no_line_has_a_number_of_more_than_four_digits_and_the_book_has_every_value() {
        let (direction, flow) = (Direction::ToStation, FlowId(40_123));
        let rate = BitRate::bps(19_856_652);
        let span = Span::from_nanos(5_340_292);
        let whys = [
            Why::New,
            Why::Frames(span),
            Why::HadFrames,
            Why::SmallPackets(0.123_456),
            Why::FillsTheHop,
            Why::NotAnswered(0.012_345),
            Why::Talk(12.345_6),
            Why::Acknowledged(1.234_56),
            Why::Grew(1_234.567),
            Why::Varies(0.456_789),
            Why::Steady(0.012_345),
        ];
        let (tunnel, behaviour) = (Some(Tunnel::WireGuard), Behaviour::Elastic);
        let taken = whys.map(|why| Decision::Behaviour { flow, direction, tunnel, behaviour, why, rate });
        let others = [
            Decision::Estimate { direction, capacity: rate, train_bytes: 144_801 },
            Decision::Capacity { direction, before: Some(BitRate::bps(123_456_789)), now: rate, queue: span },
            Decision::Queue { direction, place: QueuePlace::Wan, local: span, remote: Span::from_nanos(12_345) },
            Decision::Hold { direction, flows: 1, available: rate },
            Decision::Hold { direction, flows: 12, available: BitRate::bps(4_961_234) },
            Decision::Release { direction },
            Decision::Beside { direction, flows: 2, share: rate },
            Decision::Floors { direction, flows: 40, floors: 116_800, pipe: 98_765 },
            Decision::Steer { flow, direction, share: rate },
        ];
        for decision in others.iter().chain(&taken) {
            let line = decision.to_string();
            assert!(most_digits(&line) <= 4, "{line}");
        }
        assert_eq!(
            others[1].to_string(),
            "downloads: the hop carries 19.9 Mbit/s instead of 123 Mbit/s; so much was delivered while packets waited 5.34 ms"
        );
        assert_eq!(most_digits("it was 19.8566 Mbit/s"), 6);
        let book = include_str!("../../../../book/src/fleets.md");
        for decision in others.iter().chain(&taken) {
            let (_, row) = book.split_once(&format!("\n| `{}` |", decision.name())).expect("the book has it");
            let row = row.split('\n').next().unwrap_or_default();
            for (name, _) in decision.values() {
                let is_said = name == "direction" || row.contains(&format!("`{name}`"));
                assert!(is_said, "{}: book/src/fleets.md lacks {name}", decision.name());
            }
        }
    }
}

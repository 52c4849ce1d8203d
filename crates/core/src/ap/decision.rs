//! What the controller decided, each with its cause: one line for a person.

use core::fmt;

use crate::elastic::{Behaviour, Why};
use crate::packet::{Direction, FlowId};
use crate::units::{BitRate, Span};

/// Where packets wait for their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// In the access point's own queue, whose backlog is known.
    AccessPoint,
    /// Behind the access point's own queue: in the driver or the radio's firmware, or in a station.
    Firmware,
    /// In front of the home: at the provider, or in the modem.
    Line,
}

impl Place {
    /// As status and report name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AccessPoint => "access-point",
            Self::Firmware => "firmware",
            Self::Line => "line",
        }
    }
}

/// A decision worth a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// The first estimate of what a hop carries.
    Guess {
        /// Of data that goes this way.
        direction: Direction,
        /// The estimate.
        capacity: BitRate,
        /// Acknowledgments of one train told it, this many bytes.
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
        place: Place,
        /// What was added to the half of the round trip that leads to the stations.
        local: Span,
        /// And to the half that leads to the remote ends.
        remote: Span,
    },
    /// Windows begin to be held.
    Hold {
        /// Of data that goes this way.
        direction: Direction,
        /// So many flows.
        flows: usize,
        /// What they share.
        available: BitRate,
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
        /// So many flows.
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
        /// What it is taken for.
        behaviour: Behaviour,
        /// Why.
        why: Why,
        /// What it has.
        rate: BitRate,
    },
    /// A UDP flow begins to be held to its share, by marks or drops.
    Steer {
        /// The host's name for it.
        flow: FlowId,
        /// Of data that goes this way.
        direction: Direction,
        /// What it may have.
        share: BitRate,
    },
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
            Self::Guess { direction, capacity, train_bytes } => {
                let what = data(*direction);
                write!(
                    f,
                    "{what}: the hop seems to carry {capacity}; a first train of {train_bytes} B came through at that pace"
                )
            }
            Self::Capacity { direction, before, now, queue } => {
                write!(f, "{}: the hop carries {now}", data(*direction))?;
                if let Some(before) = before {
                    write!(f, " instead of {before}")?;
                }
                write!(f, "; so much was delivered while packets waited {queue}")
            }
            Self::Queue { direction, place, local, remote } => {
                let what = data(*direction);
                let place = match place {
                    Place::AccessPoint => "in the access point's own queue",
                    Place::Firmware => "behind the access point's own queue, in its driver or firmware",
                    Place::Line => "in front of the home",
                };
                write!(
                    f,
                    "{what}: packets wait {place}; {local} were added on the side of the stations, {remote} on the other"
                )
            }
            Self::Hold { direction, flows, available } => {
                let what = data(*direction);
                write!(f, "{what}: holding {flows} at {available} together, because packets wait at the hop")
            }
            Self::Behaviour { flow, direction, behaviour, why, rate } => {
                let what = data(*direction);
                let taken = match behaviour {
                    Behaviour::Unknown => "unknown",
                    Behaviour::RealTime => "real-time and left alone",
                    Behaviour::Elastic => "elastic and gets a share",
                };
                write!(f, "{what}: UDP flow {} with {rate} is {taken}: {why}", flow.0)
            }
            Self::Steer { flow, direction, share } => {
                let what = data(*direction);
                write!(f, "{what}: UDP flow {} is held to {share} by marks, or drops where it takes no marks", flow.0)
            }
            Self::Release { direction } => {
                write!(f, "{}: letting go, because nothing waits and nobody asks for more", data(*direction))
            }
            Self::Floors { direction, flows, floors, pipe } => {
                let what = data(*direction);
                write!(
                    f,
                    "{what}: {flows} flows need {floors} B at least where {pipe} B fill the hop; windows cannot hold them, a queue that is fair (--queue chap) can"
                )
            }
        }
    }
}

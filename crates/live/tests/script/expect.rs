//! What the program keeps of a connection, under the names that scripts ask for.

use lasthop_core::fastpath::layout::{FlowState, Half, RttTotal};
use lasthop_core::packet::Direction;

/// Where a connection can be.
pub const TABLES: [&str; 3] = ["flows", "opening", "none"];

/// What a script asks.
#[derive(Debug)]
pub enum Check {
    /// One of [`TABLES`].
    Table(&'static str),
    /// Both halves are as they were before the newest packet.
    Unchanged,
    /// `None`: the program does not know it.
    Half { half: Direction, field: &'static Field, value: Option<u64> },
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Plain,
    /// Places in the data of this half, which count from its sender's first number.
    Sequence,
}

#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    /// `None`: the program does not know it.
    pub of: fn(&Half) -> Option<u64>,
}

const fn plain(name: &'static str, of: fn(&Half) -> Option<u64>) -> Field {
    Field { name, kind: Kind::Plain, of }
}

const fn sequence(name: &'static str, of: fn(&Half) -> Option<u64>) -> Field {
    Field { name, kind: Kind::Sequence, of }
}

/// `yes` and `no` are 1 and 0.
pub const FIELDS: [Field; 19] = [
    sequence("edge", |half| of_edge(half, half.edge)),
    sequence("delivered", |half| of_edge(half, half.delivered)),
    sequence("acked", |half| of_edge(half, half.acked)),
    sequence("snd_nxt", |half| (half.data_flags & Half::DATA_SEEN != 0).then_some(half.snd_nxt.into())),
    plain("window", |half| Some(half.window.into())),
    plain("credit", |half| Some(half.credit.into())),
    plain("stretch", |half| Some(half.stretch.into())),
    plain("waiting", |half| Some(half.waiting.into())),
    plain("mss", |half| Some(half.mss.into())),
    plain("scale", |half| half.known_scale().map(u64::from)),
    plain("rewritten", |half| Some(half.rewritten)),
    plain("bytes", |half| Some(half.bytes)),
    plain("packets", |half| Some(half.packets)),
    plain("payload", |half| Some(half.payload_bytes)),
    plain("closing", |half| Some((half.data_flags & Half::CLOSING != 0).into())),
    plain("reset", |half| Some((half.data_flags & Half::RESET != 0).into())),
    plain("limited", |half| Some((half.data_flags & Half::LIMITED != 0).into())),
    plain("rtt_ms", |half| milliseconds(half.rtt.last_ns)),
    plain("rtt_samples", |half| Some(half.rtt.total.samples_since(RttTotal::default()).into())),
];

fn of_edge(half: &Half, place: u32) -> Option<u64> {
    (half.flags & Half::EDGE_KNOWN != 0).then_some(place.into())
}

/// The program's clock ticks in 1024 ns: the nearest millisecond.
fn milliseconds(ns: u32) -> Option<u64> {
    (ns != 0).then_some((u64::from(ns) + 500_000) / 1_000_000)
}

impl Check {
    /// What is not as asked. `begin` is the first number of station and remote end.
    pub fn against(&self, now: &Kept, before: &Kept, begin: [u32; 2]) -> Result<(), String> {
        match self {
            Self::Table(name) if *name == now.table => Ok(()),
            Self::Table(name) => Err(format!("expected table {name}, it is in {}", now.table)),
            Self::Unchanged if now.state.map(|state| state.half) == before.state.map(|state| state.half) => Ok(()),
            Self::Unchanged => Err(format!("expected unchanged halves, was {:?}, is {:?}", before.state, now.state)),
            Self::Half { half, field, value } => {
                let state =
                    now.state.ok_or_else(|| format!("{} was asked, the connection is not known", field.name))?;
                let from = begin[1 - half.index()];
                let found = (field.of)(&state.half[half.index()]).map(|found| match field.kind {
                    Kind::Sequence => u64::from((found as u32).wrapping_sub(from)),
                    Kind::Plain => found,
                });
                if found == *value {
                    return Ok(());
                }
                let told = |value: Option<u64>| value.map_or("unknown".to_owned(), |value| value.to_string());
                Err(format!("expected {half:?} {} {}, the program has {}", field.name, told(*value), told(found)))
            }
        }
    }
}

/// What the program keeps of the connection of a script.
#[derive(Clone, Copy)]
pub struct Kept {
    /// One of [`TABLES`].
    pub table: &'static str,
    pub state: Option<FlowState>,
}

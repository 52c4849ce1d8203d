//! Snoop: losses of the last hop are repaired from a cache at the access point, and the sender does not hear of them.

mod params;

pub use params::{Ack, Conduct, ConnectionSnapshot, Data, Params, Retransmission, Snapshot, Verdict};

//! What carries packets on the last hop: 802.11 (DCF, ARQ, air time, propagation), a bridge, a lossy wireless link.

mod attempt;
pub mod bridge;
mod contention;
mod crossing;
mod domain;
mod firmware;
mod hidden;
pub mod medium;
mod node;
pub mod params;
pub mod phy;
pub mod propagation;
pub mod random;
pub mod snapshot;
mod times;
pub mod wireless_link;

pub use attempt::{Attempt, AttemptFate, Frame};
pub use bridge::BridgeParams;
pub use medium::{DropPlace, Event, Medium, NodeId};
pub use params::{AfterCollision, MediumParams, StationParams};
pub use phy::{Preamble, Rate, Standard, Timing};
pub use propagation::{Loss, Radio};
pub use snapshot::{NodeStats, Snapshot};
pub use wireless_link::{Repair, WirelessLinkParams};

//! What carries packets on the last hop: 802.11 (DCF, ARQ, air time, propagation), a bridge, a lossy wireless link.

mod attempt;
pub mod bridge;
pub mod channel;
mod contention;
mod crossing;
mod domain;
mod edca;
pub mod edca_params;
mod firmware;
mod hidden;
pub mod medium;
pub mod mode;
mod node;
pub mod params;
pub mod phy;
pub mod propagation;
pub mod random;
pub mod rate_control;
pub mod snapshot;
mod times;
pub mod wireless_link;

pub use attempt::{Attempt, AttemptFate, Frame, InAggregate};
pub use bridge::BridgeParams;
pub use edca_params::{ACCESS_POINT_EDCA, Ampdu, Edca, EdcaClass, MissedBlockAck, STATION_EDCA};
pub use medium::{DropPlace, Event, Medium, NodeId};
pub use mode::{Guard, Mode, Width};
pub use params::{AfterCollision, MediumParams, StationParams};
pub use phy::{Band, Preamble, Rate, Standard, Timing};
pub use propagation::{Loss, Radio};
pub use snapshot::{ClassStats, NodeStats, RateStats, Snapshot};
pub use wireless_link::{Repair, WirelessLinkParams};

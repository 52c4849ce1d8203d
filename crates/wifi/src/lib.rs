//! What the air does: 802.11 DCF, ARQ, air time, propagation.

mod contention;
pub mod medium;
pub mod params;
pub mod phy;
pub mod propagation;
pub mod random;
pub mod snapshot;

pub use medium::{Event, Medium, NodeId, Place};
pub use params::{AfterCollision, MediumParams, StationParams};
pub use phy::{Preamble, Rate, Standard, Timing};
pub use propagation::{Loss, Radio};
pub use snapshot::{NodeStats, Snapshot};

//! Does control help in this home? Blocks with control and without, in random order and in pairs, and what can be said of them.
//!
//! [`Session`] asks a running controller for its status once a second and pauses its control for half of the blocks; it has no clock
//! and no sockets, so that a test plays an evening in a millisecond. What it measured is a [`Report`] of [`Block`]s; [`findings`] is a
//! pure function over them: which pairs count ([`load`]), how they compare ([`lasthop_core::meter::paired`]), and what that is called ([`grade`]).
//! The feature `host` adds what the programs share: options, the loop with clock and sockets, and the report as text.

pub mod block;
pub mod findings;
pub mod grade;
#[cfg(feature = "host")]
pub mod host;
pub mod load;
pub mod plan;
pub mod report;
pub mod session;
mod words;

pub use block::{Arm, Block, Spoilt};
pub use findings::{Comparison, Findings, Verdict};
pub use grade::Grade;
pub use plan::{Direction, Plan};
pub use report::{FORMAT, Report};
pub use session::{Action, Progress, Refusal, Session};

//! What an access point decides: no clock, no I/O, no global state.
//!
//! Every part has the same shape: `new(Params)`, `on_*(&mut self, now, &Sample)`,
//! `poll(&mut self, now) -> Option<Action>`, `next_deadline(&self) -> Option<Time>`, `snapshot(&self)`.
//! After any `on_*`, drain `poll` until `None`, then read `next_deadline`; early and late wake-ups are safe.

pub mod ap;
pub mod aqm;
pub mod capacity;
pub mod clamp;
pub mod credit;
pub mod dscp;
pub mod elastic;
pub mod fastpath;
pub mod flow;
pub mod layout;
pub mod levers;
pub mod meter;
pub mod packet;
pub mod snoop;
pub mod units;
pub mod wire;

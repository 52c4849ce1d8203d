//! The levers of today's Wi-Fi at a real access point: what can be set, how it is set, and who puts it back. Which of them pays decides
//! [`lasthop_core::levers`].

pub mod debugfs;
pub mod guard;
pub mod hostapd;
pub mod place;
pub mod wiphy;

pub use guard::Guard;
pub use place::Place;

//! The levers of today's Wi-Fi at a real access point: what can be set, how it is set, and who puts it back.

pub mod wiphy;

//! A frame trace of any text: never a panic, and what is taken is in order and lasts.
#![no_main]

use lasthop_core::units::Span;
use lasthop_home::traffic::trace::Frames;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(frames) = Frames::parse(text) {
        assert!(frames.frames().windows(2).all(|w| w[0].at <= w[1].at));
        assert!(frames.length() > Span::ZERO);
    }
});

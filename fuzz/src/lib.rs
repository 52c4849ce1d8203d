//! The body of every fuzz target: what must hold for any input at all. A body panics when it does not.
//!
//! Two callers: libfuzzer (`fuzz_targets/`, nightly) and `crates/cli/tests/fuzz_short.rs`, which includes this file and
//! runs every body over seeds and mutations of them on stable, as a part of `make test`. A new parser gets a function
//! here, a line in [`ALL`], a file in `fuzz_targets/` and a `[[bin]]` in Cargo.toml.

use lasthop_core::units::{BitRate, Bytes, Span};
use lasthop_core::wire;
use lasthop_home::scenario::Scenario;

/// A target: its name and its body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const ALL: &[Target] = &[
    ("wire", wire),
    ("scenario", scenario),
    ("set", set),
    ("trace", trace),
    ("config", config),
    ("quantity", quantity),
    ("status_json", status_json),
];

/// Quantities: read or refused with an example, and what is displayed reads back as the same quantity.
pub fn quantity(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(span) = text.parse::<Span>() {
        assert_eq!(span.to_string().parse(), Ok(span), "{text:?}");
    }
    if let Ok(size) = text.parse::<Bytes>() {
        assert_eq!(size.to_string().parse(), Ok(size), "{text:?}");
    }
    if let Ok(rate) = text.parse::<BitRate>() {
        // Displayed in Mbit/s as a decimal fraction: exact up to 2^53 bit/s.
        if rate.as_bps() < 1 << 53 {
            assert_eq!(rate.to_string().parse(), Ok(rate), "{text:?}");
        }
    }
}

/// The controller's configuration: read, or refused with file and line.
pub fn config(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Err(error) = lasthop_live::config::Config::parse(text, "fuzz.toml") {
        assert!(error.to_string().starts_with("fuzz.toml:"), "{error}");
    }
}

/// What a controller says on its socket is read by `lasthop status`: any other text is refused.
pub fn status_json(input: &[u8]) {
    let _ = serde_json::from_slice::<lasthop_live::status::Status>(input);
}

//! Writes the sample frame trace that ships with the project: 12 s of the video generator at 0.28 Mbit/s, seed 1.
//!
//! `cargo run -p lasthop-home --example sample_trace > scenarios/traces/sample.txt`
//! A test of `lasthop-home` holds the file equal to what this prints.

fn main() {
    print!("{}", lasthop_home::traffic::video::sample_trace());
}

//! What the networks of the tests are set to: `schema/namespace.conf`, so that they come out the same on every machine.
//! Included by the tests that make namespaces; no test of its own.
#![allow(dead_code)]

use std::path::Path;

const SETTINGS: &str = include_str!("../../../../schema/namespace.conf");

fn listed() -> impl Iterator<Item = (&'static str, &'static str)> {
    SETTINGS.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" = "))
}

fn words(of: &str) -> &'static str {
    listed().find(|(key, _)| *key == of).expect("a line of schema/namespace.conf").1
}

/// What ends every route: the congestion control.
pub fn route() -> &'static str {
    words("route")
}

/// The root queue discipline of a TUN or TAP; a veth has none by default.
pub fn qdisc() -> &'static str {
    words("qdisc")
}

/// Sets the namespace that the calling thread is in; interfaces that come later take over what stands in `default`.
pub fn apply() {
    for (key, value) in listed().filter(|(key, _)| key.starts_with("net/")) {
        let files = match key.split_once('*') {
            None => vec![key.to_owned()],
            Some((before, after)) => ["all", "default", "lo"].map(|name| format!("{before}{name}{after}")).to_vec(),
        };
        for file in files.iter().map(|file| format!("/proc/sys/{file}")).filter(|file| Path::new(file).exists()) {
            std::fs::write(&file, value).unwrap_or_else(|error| panic!("{file}: {error}"));
        }
    }
}

//! What the BPF programs cost per packet.

use crate::Settings;
use crate::sheet::Sheet;

/// Not yet.
pub fn cost(_: &Settings, sheet: &mut Sheet) {
    sheet.failed("bpf", "cost per packet", "not yet");
}

//! Any bytes: parsing never panics, and a patch changes nothing but window and checksum.
#![no_main]

use lasthop_core::wire::{self, Link, Merged, Parsed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, u16, u16, u16, Vec<u8>)| {
    let (raw_ip, segments, segment_bytes, window, bytes) = input;
    let link = if raw_ip { Link::Ip } else { Link::Ethernet };
    let merged = Merged { segments: u32::from(segments).max(1), segment_bytes: u32::from(segment_bytes) };
    let Parsed::Tcp(tcp) = wire::parse_merged(&bytes, link, merged) else { return };
    let mut patched = bytes.clone();
    wire::patch_window(&mut patched, &tcp, window);
    let valid = wire::checksum_is_valid(&bytes, &tcp);
    assert_eq!(wire::checksum_is_valid(&patched, &tcp), valid);
    let Parsed::Tcp(after) = wire::parse_merged(&patched, link, merged) else { panic!("no longer TCP") };
    assert_eq!(after, wire::TcpFields { window, ..tcp });
    let at = usize::from(tcp.window_at);
    assert_eq!((&patched[..at], &patched[at + 4..]), (&bytes[..at], &bytes[at + 4..]));
});

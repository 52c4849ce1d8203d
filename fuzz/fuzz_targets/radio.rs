#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| lasthop_fuzz::radio(input));

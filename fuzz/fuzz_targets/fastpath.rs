//! Any run of packets under any plan: no panic, windows only ever fall and never to zero, checksums stay valid.
#![no_main]

use lasthop_core::fastpath::layout::{Control, FlowState, Plan};
use lasthop_core::fastpath::{self, Verdict};
use lasthop_core::packet::Direction;
use lasthop_core::units::{Span, Time};
use lasthop_core::wire::{self, Link, Parsed};
use libfuzzer_sys::fuzz_target;

type Packets = Vec<(bool, u32, Vec<u8>)>;

fuzz_target!(|input: ([u32; 6], u8, bool, Packets)| {
    let ([clamp, floor, growth, up_clamp, up_floor, up_growth], scale, dry_run, packets) = input;
    let mut now = Time::from_nanos(1);
    let down = Plan { clamp_bytes: clamp, floor_bytes: floor, growth_bytes: growth };
    let up = Plan { clamp_bytes: up_clamp, floor_bytes: up_floor, growth_bytes: up_growth };
    let mut control = Control { dry_run: u32::from(dry_run), default_plan: [down, up], ..Control::default() };
    let mut state = FlowState::new(&control, now);
    state.half[0].told_scale = scale;
    for (to_remote, wait, mut frame) in packets {
        now += Span::from_micros(u64::from(wait));
        control.heartbeat_ns = now.as_nanos() / 2;
        let Parsed::Tcp(tcp) = wire::parse(&frame, Link::Ethernet) else { continue };
        let direction = if to_remote { Direction::ToRemote } else { Direction::ToStation };
        let Verdict::Rewrite { window } = fastpath::on_packet(&mut state, &control, direction, &tcp, now) else {
            continue;
        };
        assert!(!dry_run && window > 0 && window < tcp.window);
        let valid = wire::checksum_is_valid(&frame, &tcp);
        wire::patch_window(&mut frame, &tcp, window);
        assert_eq!(wire::checksum_is_valid(&frame, &tcp), valid);
    }
});

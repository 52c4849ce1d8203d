//! The C headers compiled for the host.

use lasthop_core::fastpath::layout::{Control, Counters, FlowKey, FlowState, UdpState};
use lasthop_core::packet::Direction;
use lasthop_core::wire::{Link, Merged};

/// Headers lie outside of what can be read.
pub const TOO_SHORT: i32 = -2;

/// `struct frame` of `bpf/wire.h`.
#[repr(C)]
struct Frame {
    data: *const u8,
    data_end: *const u8,
    end: u32,
    segments: u32,
    segment_bytes: u32,
}

#[link(name = "lasthop_fastpath_host", kind = "static")]
unsafe extern "C" {
    fn lasthop_host_open(state: *mut FlowState, control: *const Control, now: u64);
    fn lasthop_host_packet(
        bytes: *mut u8,
        frame: *const Frame,
        link: u32,
        direction: u32,
        control: *mut Control,
        state: *mut FlowState,
        counters: *mut Counters,
        now: u64,
        key: *mut FlowKey,
        udp: *mut UdpState,
    ) -> i32;
}

/// What one packet does to everything it meets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct World {
    pub control: Control,
    pub state: FlowState,
    pub counters: Counters,
    pub key: FlowKey,
    /// Default: it is not in the table.
    pub udp: UdpState,
}

pub fn open(control: &Control, now: u64) -> FlowState {
    let mut state = FlowState::default();
    // SAFETY: both references are valid for the layouts that C asserts to be the same.
    unsafe { lasthop_host_open(&raw mut state, control, now) };
    state
}

/// The reason as a number, or [`TOO_SHORT`]. Only `linear` bytes of the frame can be read.
pub fn packet(
    world: &mut World,
    frame: &mut [u8],
    linear: usize,
    merged: Merged,
    link: Link,
    direction: Direction,
    now: u64,
) -> i32 {
    let range = frame[..linear].as_ptr_range();
    let view = Frame {
        data: range.start,
        data_end: range.end,
        end: frame.len() as u32,
        segments: merged.segments,
        segment_bytes: merged.segment_bytes,
    };
    let bytes = frame.as_mut_ptr();
    // SAFETY: `view` lies within `frame`, which C changes only behind a header it has read; the rest are references.
    unsafe {
        lasthop_host_packet(
            bytes,
            &raw const view,
            link as u32,
            direction as u32,
            &raw mut world.control,
            &raw mut world.state,
            &raw mut world.counters,
            now,
            &raw mut world.key,
            &raw mut world.udp,
        )
    }
}

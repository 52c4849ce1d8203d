//! The C headers compiled for the host.

use lasthop_core::fastpath::layout::{Control, Counters, FlowKey, FlowState, UdpState};
use lasthop_core::fastpath::light::LightFlow;
use lasthop_core::fastpath::udp::Datagram;
use lasthop_core::fastpath::window::Update;
use lasthop_core::packet::Direction;
use lasthop_core::units::Time;
use lasthop_core::wire::{Link, Merged};

/// Headers lie outside of what can be read.
pub const TOO_SHORT: i32 = -2;

/// `struct host_frame` of `bpf/host.c`.
#[repr(C)]
struct Frame {
    bytes: *mut u8,
    copyable: u32,
    length: u32,
    segments: u32,
    segment_bytes: u32,
    port: u32,
    hop: u32,
}

/// `struct window_update` of `bpf/fastpath.h`.
#[derive(Default)]
#[repr(C)]
struct WindowUpdate {
    is_due: i32,
    seq: u32,
    ack: u32,
    window: u16,
    has_timestamps: i32,
    tsval: u32,
    tsecr: u32,
}

#[link(name = "lasthop_fastpath_host", kind = "static")]
unsafe extern "C" {
    fn lasthop_host_open(state: *mut FlowState, control: *const Control, now: u64);
    fn lasthop_host_packet(
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
    fn lasthop_host_due(state: *const FlowState, control: *const Control, direction: u32, now: u64) -> u64;
    fn lasthop_host_update(
        state: *mut FlowState,
        control: *const Control,
        direction: u32,
        now: u64,
        out: *mut WindowUpdate,
    );
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

/// When a window update is due.
pub fn due(state: &FlowState, control: &Control, direction: Direction, now: Time) -> Option<Time> {
    // SAFETY: both references are valid for the layouts that C asserts to be the same.
    let due = unsafe { lasthop_host_due(state, control, direction as u32, now.as_nanos()) };
    (due != u64::MAX).then(|| Time::from_nanos(due))
}

/// The window update that is due now.
pub fn update(state: &mut FlowState, control: &Control, direction: Direction, now: Time) -> Option<Update> {
    let mut out = WindowUpdate::default();
    // SAFETY: as above.
    unsafe { lasthop_host_update(state, control, direction as u32, now.as_nanos(), &raw mut out) };
    let WindowUpdate { is_due, seq, ack, window, has_timestamps, tsval, tsecr } = out;
    (is_due != 0).then_some(Update { seq, ack, window, timestamps: (has_timestamps != 0).then_some((tsval, tsecr)) })
}

/// The reason as a number, or [`TOO_SHORT`]. Only `linear` bytes of the frame can be read.
pub fn packet(
    world: &mut World,
    frame: &mut [u8],
    linear: usize,
    merged: Merged,
    link: Link,
    (direction, (port, hop)): (Direction, (u32, u32)),
    now: u64,
) -> i32 {
    let view = Frame {
        bytes: frame.as_mut_ptr(),
        copyable: linear as u32,
        length: frame.len() as u32,
        segments: merged.segments,
        segment_bytes: merged.segment_bytes,
        port,
        hop,
    };
    // SAFETY: `view` is `frame`, which C reads up to `linear` and changes only behind a header it has read; the rest are references.
    unsafe {
        lasthop_host_packet(
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

unsafe extern "C" {
    fn lasthop_host_light(flow: *mut LightFlow, ip_bytes: u32, segments: u32, dscp: u32, port: u32, now: u64) -> u32;
}

/// What a datagram to a station behind a radio does to its flow, and the user priority that it is given.
pub fn light(flow: &mut LightFlow, datagram: &Datagram, dscp: u8, port: u32, now: Time) -> Option<u8> {
    let Datagram { ip_bytes, segments, .. } = *datagram;
    // SAFETY: the reference is valid for the layout that C asserts to be the same.
    let given = unsafe { lasthop_host_light(flow, ip_bytes, segments, u32::from(dscp), port, now.as_nanos()) };
    (given != 0).then_some(given as u8)
}

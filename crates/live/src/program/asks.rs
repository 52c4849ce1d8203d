//! Window updates, seen from the data path: which flows it asks for, and what is to be sent.

use std::os::fd::OwnedFd;

use lasthop_core::fastpath::layout::FlowKey;
use lasthop_core::fastpath::window::Update;
use lasthop_core::packet::Direction;
use lasthop_core::units::Time;
use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};

use super::{Pod, ProgramError, found, pod, syscall};

/// A flow whose window updates somebody shall see to, until nothing is due any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The flow that this is about.
    pub key: FlowKey,
    /// Of data that goes this way.
    pub direction: Direction,
    /// When the next one is due.
    pub due: Time,
    /// Index of the interface towards the station.
    pub port: u32,
    /// What is before the IP header there, of an acknowledgment to the station: where its interface has Ethernet, of uploads.
    pub link: LinkHeader,
}

/// An Ethernet header with at most one tag; or nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkHeader {
    bytes: [u8; 18],
    length: u8,
}

impl LinkHeader {
    /// As it is on the wire.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length.into()).unwrap_or_default()
    }
}

/// What the data path answers to one who asks what to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What has to be sent now; it is accounted for already.
    pub update: Option<Update>,
    /// When to call again; `None`: the data path will ask again.
    pub next: Option<Time>,
}

/// The ring of asks and the call; both live as long as this.
#[derive(Debug)]
pub struct Asks {
    ring: MapHandle,
    call: OwnedFd,
}

impl Asks {
    pub(super) const fn new(ring: MapHandle, call: OwnedFd) -> Self {
        Self { ring, call }
    }

    /// The ring; `take` is shown each ask when it is consumed. One reader at a time.
    ///
    /// # Errors
    /// When it cannot be mapped.
    pub fn reader<'a>(&self, mut take: impl FnMut(Ask) + 'a) -> Result<RingBuffer<'a>, ProgramError> {
        let mut builder = RingBufferBuilder::new();
        builder.add(&self.ring, move |bytes| {
            if let Some(ask) = pod::<WindowAsk>(bytes) {
                let direction = Direction::BOTH[(ask.direction & 1) as usize];
                let link = LinkHeader { bytes: ask.link, length: ask.link_bytes };
                take(Ask { key: ask.key, direction, due: Time::from_nanos(ask.due_ns), port: ask.ifindex, link });
            }
            0
        })?;
        Ok(builder.build()?)
    }

    /// The window update of a flow that is due now.
    ///
    /// # Errors
    /// [`ProgramError::NoSuchFlow`] when the table has it no more.
    pub fn answer(&self, key: &FlowKey, direction: Direction) -> Result<Answer, ProgramError> {
        self.answer_at(key, direction, Time::ZERO)
    }

    /// As [`Self::answer`]; in the object with a clock that tests set, at `now`.
    ///
    /// # Errors
    /// As [`Self::answer`].
    pub fn answer_at(&self, key: &FlowKey, direction: Direction, now: Time) -> Result<Answer, ProgramError> {
        let mut call = WindowUpdate { now_ns: now.as_nanos(), ..WindowUpdate::of(key, direction) };
        syscall(&self.call, &mut call)?;
        found(call.result)?;
        let timestamps = (call.has & WindowUpdate::HAS_TIMESTAMPS != 0).then_some((call.tsval, call.tsecr));
        let update = Update { seq: call.seq, ack: call.ack, window: call.window as u16, timestamps };
        Ok(Answer {
            update: (call.has & WindowUpdate::HAS_UPDATE != 0).then_some(update),
            next: (call.due_ns != 0).then(|| Time::from_nanos(call.due_ns)),
        })
    }

    /// Nobody sees to this flow any more, whatever is due: its next ACK asks again.
    ///
    /// # Errors
    /// [`ProgramError::NoSuchFlow`] when the table has it no more.
    pub fn released(&self, key: &FlowKey, direction: Direction) -> Result<(), ProgramError> {
        let mut call = WindowUpdate { released: 1, ..WindowUpdate::of(key, direction) };
        syscall(&self.call, &mut call)?;
        found(call.result)
    }
}

/// `struct window_ask` of `bpf/layout.h`.
#[derive(Clone, Copy)]
#[repr(C)]
struct WindowAsk {
    key: FlowKey,
    direction: u32,
    due_ns: u64,
    ifindex: u32,
    link: [u8; 18],
    link_bytes: u8,
    pad: u8,
}

/// `struct window_update_args` of `bpf/layout.h`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct WindowUpdate {
    key: FlowKey,
    direction: u32,
    now_ns: u64,
    due_ns: u64,
    seq: u32,
    ack: u32,
    tsval: u32,
    tsecr: u32,
    window: u32,
    has: u32,
    released: u32,
    result: i32,
}

impl WindowUpdate {
    const HAS_UPDATE: u32 = 1;
    const HAS_TIMESTAMPS: u32 = 2;

    fn of(key: &FlowKey, direction: Direction) -> Self {
        Self { key: *key, direction: direction as u32, ..Self::default() }
    }
}

// SAFETY: integers only; 36 + 4 + 8 + 4 + 20 bytes, in places that are multiples of their sizes.
unsafe impl Pod for WindowAsk {}
// SAFETY: integers only; 36 + 4 + 2 x 8 + 8 x 4 bytes, likewise.
unsafe impl Pod for WindowUpdate {}
const _: () = assert!(size_of::<WindowAsk>() == 72 && size_of::<WindowUpdate>() == 88);

//! Tells the program on the interface where packets are to go, and that we are alive.
//!
//! Gone with its map entry, which we delete; with our TAP, which the kernel deletes when we die; and with our signs of life,
//! when we hang. `bpf/lasthop.bpf.c` (`divert_to`) looks for all three with each packet.

use lasthop_core::units::{Span, Time};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

/// How often we say that we are alive: five times as often as is asked for.
pub const BEAT: Span = Span::from_millis(100);

/// `struct divert` of `bpf/layout.h`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Entry {
    heartbeat_ns: u64,
    cookie: u64,
    into: u32,
    pad: u32,
}

const _: () = assert!(size_of::<Entry>() == 2 * 8 + 2 * 4);

/// See the module. Nothing is diverted before the first [`Diversion::beat`].
#[derive(Debug)]
pub struct Diversion {
    map: MapHandle,
    ifindex: u32,
    cookie: u64,
    into: u32,
}

impl Diversion {
    /// From the interface `ifindex` into the device `into`, but for what the socket with this cookie sends.
    #[must_use]
    pub const fn new(map: MapHandle, ifindex: u32, into: u32, cookie: u64) -> Self {
        Self { map, ifindex, cookie, into }
    }

    /// We are alive now.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn beat(&self, now: Time) -> Result<(), libbpf_rs::Error> {
        let entry = Entry { heartbeat_ns: now.as_nanos(), cookie: self.cookie, into: self.into, pad: 0 };
        // SAFETY: integers without padding (asserted above), so all bytes are initialised.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const entry).cast::<u8>(), size_of::<Entry>()) };
        self.map.update(&self.ifindex.to_ne_bytes(), bytes, MapFlags::ANY)
    }

    /// Packets go their own way from now on.
    pub fn end(&self) {
        // Not there: it never began, or has ended.
        let _ = self.map.delete(&self.ifindex.to_ne_bytes());
    }
}

impl Drop for Diversion {
    fn drop(&mut self) {
        self.end();
    }
}

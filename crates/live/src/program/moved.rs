//! Which connections moved since they were last asked for.

use std::sync::{Arc, Mutex, PoisonError};

use lasthop_core::fastpath::layout::FlowKey;
use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};

use super::pod;

/// Keys that the ring holds, of 36 bytes, a header of 8 and 4 of padding.
const ROOM: usize = 512 * 1024 / 48;

/// The ring in which the data path notes each connection once between two readings, with the first packet of it that passes.
#[derive(Debug)]
pub struct Moved {
    ring: RingBuffer<'static>,
    keys: Arc<Mutex<Vec<FlowKey>>>,
}

impl Moved {
    pub(super) fn new(map: &MapHandle) -> libbpf_rs::Result<Self> {
        let keys = Arc::new(Mutex::new(Vec::new()));
        let all = keys.clone();
        let mut builder = RingBufferBuilder::new();
        builder.add(map, move |bytes| {
            if let Some(key) = pod::<FlowKey>(bytes) {
                all.lock().unwrap_or_else(PoisonError::into_inner).push(key);
            }
            0
        })?;
        Ok(Self { ring: builder.build()?, keys })
    }

    /// Puts into `keys` which connections moved, hardly any of them twice; false when some may be missing.
    pub fn take(&self, keys: &mut Vec<FlowKey>) -> bool {
        keys.clear();
        let taken = self.ring.consume().is_ok();
        keys.append(&mut self.keys.lock().unwrap_or_else(PoisonError::into_inner));
        taken && keys.len() < ROOM * 3 / 4
    }
}

//! Where frames lie while they wait: fixed slots, all there from the start, so that a flood takes no more memory.

/// Fixed slots for frames.
pub struct Arena {
    bytes: Box<[u8]>,
    slot_bytes: usize,
    free: Vec<u32>,
}

impl Arena {
    /// Room for `frames` frames of up to `frame_bytes`. Locked into memory where that is permitted: a page fault is a late
    /// packet.
    #[must_use]
    pub fn new(frames: usize, frame_bytes: usize) -> Self {
        // One byte more, so that a longer frame shows; then to whole cache lines.
        let slot_bytes = (frame_bytes + 1).next_multiple_of(64);
        let bytes = vec![0; frames * slot_bytes].into_boxed_slice();
        // SAFETY: the range was just allocated; it is unlocked when it is unmapped.
        unsafe { libc::mlock(bytes.as_ptr().cast(), bytes.len()) };
        Self { bytes, slot_bytes, free: (0..frames as u32).rev().collect() }
    }

    /// A free slot.
    pub fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// The slot's frame is gone.
    pub fn give_back(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// All bytes of a slot, to be read into.
    pub fn slot(&mut self, slot: u32) -> &mut [u8] {
        let start = slot as usize * self.slot_bytes;
        &mut self.bytes[start..start + self.slot_bytes]
    }

    /// The first bytes of a slot.
    #[must_use]
    pub fn frame(&self, slot: u32, length: u32) -> &[u8] {
        let start = slot as usize * self.slot_bytes;
        &self.bytes[start..start + (length as usize).min(self.slot_bytes)]
    }

    /// Slots that are free.
    #[must_use]
    pub fn free(&self) -> usize {
        self.free.len()
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the range that was locked; unlocking what could not be locked does nothing.
        unsafe { libc::munlock(self.bytes.as_ptr().cast(), self.bytes.len()) };
    }
}

impl std::fmt::Debug for Arena {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arena").field("slot_bytes", &self.slot_bytes).field("free", &self.free.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arena_never_hands_out_more_than_it_has() {
        let mut arena = Arena::new(2, 1_514);
        let (a, b) = (arena.take().unwrap(), arena.take().unwrap());
        assert_ne!(a, b);
        assert_eq!(arena.take(), None);
        arena.slot(a).fill(1);
        arena.slot(b).fill(2);
        assert!(arena.frame(a, 1_514).len() == 1_514 && arena.frame(a, 1_514).iter().all(|byte| *byte == 1));
        arena.give_back(b);
        assert_eq!((arena.free(), arena.take()), (1, Some(b)));
    }
}

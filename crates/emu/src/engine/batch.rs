//! What arrives at one interface at about one moment, written with few system calls.
//!
//! An aggregate brings up to 64 or 256 packets to a host at once. Written one by one, the last of 42 would be late by what the kernel
//! needs for the others. A card joins the segments of a connection that an aggregate brings (GRO) before its kernel sees them; so
//! does a batch, by the same rules ([`lasthop_core::wire::offload`]), for segments for whose checksum a kernel vouches. Everything
//! else is written packet by packet.

use crate::arena::{Arena, Frame};
use crate::tap::Tap;
use lasthop_core::units::Time;
use lasthop_core::wire::offload::{HEADER, Joined, MOST, Run};
use std::io::{self, IoSlice};
use std::ops::Range;

/// Writes after which answers are looked for: as many as one look takes in.
const PATIENCE: usize = super::BATCH / 2;

/// Frames to one interface, in order.
#[derive(Debug, Default)]
pub struct Batch {
    frames: Vec<Frame>,
    /// When each of them arrives.
    due: Vec<Time>,
    /// Frames that have been written, or tried.
    done: usize,
    /// Since answers were looked for.
    writes: usize,
    /// Of the piece that is to be written next, where it was joined.
    joined: Option<(Joined, usize)>,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// One more.
    pub fn push(&mut self, at: Time, frame: Frame) {
        self.due.push(at);
        self.frames.push(frame);
    }

    /// When these of its frames arrive.
    pub fn due(&self, piece: Range<usize>) -> impl Iterator<Item = Time> {
        self.due[piece].iter().copied()
    }

    /// The next frames that are written with one call.
    pub fn next(&mut self, arena: &Arena) -> Option<Range<usize>> {
        let begin = self.done;
        let first = self.frames.get(begin)?;
        let mut end = begin + 1;
        let bytes = arena.bytes(first);
        self.joined = None;
        if first.is_sound
            && let Some(mut run) = Run::of(bytes)
        {
            let goes_on = |frame: &&Frame| frame.is_sound && run.join(bytes, arena.bytes(frame));
            end += self.frames[end..].iter().take_while(goes_on).count();
            if end - begin > 1 {
                let last = arena.bytes(&self.frames[end - 1]);
                self.joined = Some((run.joined(bytes, last), run.payload_at()));
            }
        }
        self.done = end;
        Some(begin..end)
    }

    /// Writes what [`Self::next`] said.
    pub fn write(&mut self, piece: Range<usize>, arena: &Arena, tap: &Tap) -> io::Result<()> {
        self.writes += 1;
        let frames = &self.frames[piece];
        let mut parts = [IoSlice::new(&[]); MOST + 2];
        let Some((joined, payload_at)) = &self.joined else {
            (parts[0], parts[1]) = (IoSlice::new(&[0; HEADER]), IoSlice::new(arena.bytes(&frames[0])));
            return tap.write(&parts[..2]);
        };
        (parts[0], parts[1]) = (IoSlice::new(&joined.header), IoSlice::new(joined.headers()));
        for (part, frame) in parts[2..].iter_mut().zip(frames) {
            *part = IoSlice::new(&arena.bytes(frame)[*payload_at..]);
        }
        tap.write(&parts[..2 + frames.len()])
    }

    /// Whether a host may have answered more than one look takes in.
    pub fn wants_answers(&mut self) -> bool {
        let wants = self.writes >= PATIENCE;
        self.writes = if wants { 0 } else { self.writes };
        wants
    }

    /// Everything is written.
    pub fn clear(&mut self, arena: &mut Arena) {
        self.frames.drain(..).for_each(|frame| arena.give_back(frame.slot));
        self.due.clear();
        (self.done, self.writes) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Port;
    use crate::arena::{Headers, Tag};
    use lasthop_core::wire::Endpoint;
    use lasthop_core::wire::build::{self, Segment, v4};

    const AT: Time = Time::from_nanos(5);
    const TO: Port = Port(4);

    /// A frame of 100 bytes of connection `port` from byte `seq` on, and its identification `id`.
    fn push(batch: &mut Batch, arena: &mut Arena, port: u16, (seq, id): (u32, u16), is_sound: bool) {
        let end = |n: u8, port| Endpoint { address: v4([10, 1, 1, n]), port };
        let segment = Segment { seq, ack: 1, flags: 16, window: 9, options: vec![] };
        let mut bytes = build::Frame::tcp(end(1, port), end(2, 80), segment, 100).bytes();
        bytes[18..20].copy_from_slice(&id.to_be_bytes());
        let slot = arena.take().unwrap();
        arena.slot(slot)[..bytes.len()].copy_from_slice(&bytes);
        let (tag, headers) = (Tag::Other, Headers::default());
        let frame = Frame { slot, len: bytes.len() as u16, to: TO, tag, is_realtime: false, headers, is_sound };
        batch.push(AT, frame);
    }

    fn pieces(batch: &mut Batch, arena: &Arena) -> Vec<Range<usize>> {
        std::iter::from_fn(|| batch.next(arena)).collect()
    }

    #[test]
    fn segments_of_a_connection_are_written_together_and_others_one_by_one() {
        let (mut batch, mut arena) = (Batch::default(), Arena::new(16).unwrap());
        for (port, seq, id) in [(1, 0, 0), (1, 100, 1), (1, 200, 2), (2, 300, 3), (1, 300, 3), (1, 500, 4)] {
            push(&mut batch, &mut arena, port, (seq, id), true);
        }
        assert_eq!(batch.due(0..6).collect::<Vec<_>>(), [AT; 6]);
        assert_eq!(pieces(&mut batch, &arena), [0..3, 3..4, 4..5, 5..6]);
        batch.clear(&mut arena);
        assert!(batch.is_empty() && arena.in_use() == 0, "their places are free again");
    }

    #[test]
    fn what_nobody_vouches_for_is_written_alone() {
        let (mut batch, mut arena) = (Batch::default(), Arena::new(16).unwrap());
        for (n, is_sound) in [true, true, false, true].into_iter().enumerate() {
            push(&mut batch, &mut arena, 1, (n as u32 * 100, n as u16), is_sound);
        }
        assert_eq!(pieces(&mut batch, &arena), [0..2, 2..3, 3..4]);
    }

    #[test]
    fn more_than_a_call_takes_becomes_several_and_answers_are_looked_for_in_between() {
        let (mut batch, mut arena) = (Batch::default(), Arena::new(256).unwrap());
        for n in 0..2 * MOST as u32 + 1 {
            push(&mut batch, &mut arena, 1, (n * 100, n as u16), true);
        }
        assert_eq!(pieces(&mut batch, &arena), [0..MOST, MOST..2 * MOST, 2 * MOST..2 * MOST + 1]);
        batch.writes = PATIENCE - 1;
        assert!(!batch.wants_answers());
        batch.writes += 1;
        assert!(batch.wants_answers() && !batch.wants_answers());
    }
}

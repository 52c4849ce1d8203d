//! Bodies of requests and answers: nothing, a few bytes, or as many as anybody takes.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::pace::Rate;

/// The longest piece of an endless body, in bytes: what one frame of HTTP/2 carries.
const LONGEST: usize = 16 * 1024;
/// The shortest one: a segment.
const SHORTEST: usize = 1460;
/// Random bytes that are repeated: further apart than compression looks back.
const RANDOM: usize = 1 << 20;

/// Random bytes, which nothing can compress, from this place on. Made once; every body's pieces are slices of the same memory.
fn piece(place: u64, bytes: usize) -> Bytes {
    static BYTES: OnceLock<Bytes> = OnceLock::new();
    let random = BYTES.get_or_init(|| {
        let mut random = vec![0; RANDOM + LONGEST];
        // Without random numbers the load is as heavy, but for what compresses zeros.
        let _ = SystemRandom::new().fill(&mut random);
        random.into()
    });
    let start = (place % RANDOM as u64) as usize;
    random.slice(start..start + bytes)
}

/// A body.
#[derive(Debug)]
pub enum Payload {
    /// These bytes.
    Once(Option<Bytes>),
    /// Random bytes.
    Endless(Endless),
}

/// Random bytes, in pieces that each take 5 ms at the rate at which they are taken, within bounds.
#[derive(Debug)]
pub struct Endless {
    left: u64,
    taken: Arc<AtomicU64>,
    rate: Rate,
    piece: usize,
}

impl Payload {
    /// No bytes.
    #[must_use]
    pub const fn empty() -> Self {
        Self::Once(None)
    }

    /// `left` random bytes; `u64::MAX`: without an end, and without a length that is said beforehand. `taken` counts those that were
    /// taken, of this body or of several.
    #[must_use]
    pub fn endless(left: u64, taken: Arc<AtomicU64>) -> Self {
        Self::Endless(Endless { left, taken, rate: Rate::new(), piece: SHORTEST * 4 })
    }

    /// These bytes.
    #[must_use]
    pub fn of(bytes: impl Into<Bytes>) -> Self {
        Self::Once(Some(bytes.into()))
    }
}

impl Endless {
    fn next(&mut self) -> Option<Bytes> {
        let now = self.left.min(self.piece as u64);
        if now == 0 {
            return None;
        }
        if self.left < u64::MAX {
            self.left -= now;
        }
        if let Some(most) = self.rate.took(now as usize) {
            self.piece = most.clamp(SHORTEST, LONGEST);
        }
        let place = self.taken.fetch_add(now, Ordering::Relaxed);
        Some(piece(place, now as usize))
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let bytes = match self.get_mut() {
            Self::Once(bytes) => bytes.take(),
            Self::Endless(endless) => endless.next(),
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Once(None) | Self::Endless(Endless { left: 0, .. }))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Once(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Endless(Endless { left: u64::MAX, .. }) => SizeHint::default(),
            Self::Endless(Endless { left, .. }) => SizeHint::with_exact(*left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(payload: &mut Payload) -> Option<Bytes> {
        match Pin::new(payload).poll_frame(&mut Context::from_waker(std::task::Waker::noop())) {
            Poll::Ready(frame) => frame.map(|frame| frame.expect("no error").into_data().expect("data")),
            Poll::Pending => panic!("it never waits"),
        }
    }

    #[test]
    fn a_body_of_a_length_ends_there_and_is_counted() {
        let taken = Arc::new(AtomicU64::new(0));
        let mut payload = Payload::endless(40_000, Arc::clone(&taken));
        assert_eq!(payload.size_hint().exact(), Some(40_000));
        let bytes: usize = std::iter::from_fn(|| next(&mut payload)).map(|bytes| bytes.len()).sum();
        assert_eq!((bytes, taken.load(Ordering::Relaxed), payload.is_end_stream()), (40_000, 40_000, true));
    }

    #[test]
    fn a_body_without_an_end_makes_no_new_memory_and_repeats_late() {
        let mut payload = Payload::endless(u64::MAX, Arc::default());
        assert_eq!(payload.size_hint().exact(), None);
        let (one, two) = (next(&mut payload).expect("more"), next(&mut payload).expect("more"));
        assert_ne!(one, two);
        assert_eq!(piece(RANDOM as u64, 10).as_ptr(), one.as_ptr());
        assert_eq!(piece(RANDOM as u64 - 1, LONGEST).len(), LONGEST);
    }
}

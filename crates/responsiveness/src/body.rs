//! Bodies of requests and answers: nothing, a few bytes, or as many as anybody takes.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use ring::rand::{SecureRandom as _, SystemRandom};

/// One piece of an endless body, in bytes: what one frame of HTTP/2 carries.
const PIECE: usize = 16 * 1024;
/// Different pieces: repetitions are a mebibyte apart, further than compression looks back.
const PIECES: u64 = 64;

/// Random bytes, which nothing can compress. Made once; every body's pieces are slices of the same memory.
fn piece(number: u64, bytes: usize) -> Bytes {
    static RANDOM: OnceLock<Bytes> = OnceLock::new();
    let random = RANDOM.get_or_init(|| {
        let mut random = vec![0; PIECE * PIECES as usize];
        // Without random numbers the load is as heavy, but for what compresses zeros.
        let _ = SystemRandom::new().fill(&mut random);
        random.into()
    });
    let start = (number % PIECES) as usize * PIECE;
    random.slice(start..start + bytes)
}

/// A body.
#[derive(Debug)]
pub enum Payload {
    /// These bytes.
    Once(Option<Bytes>),
    /// Random bytes.
    Endless {
        /// How many are left; `u64::MAX`: without an end, and without a length that is said beforehand.
        left: u64,
        /// Counts those that were taken, of this body or of several.
        taken: Arc<AtomicU64>,
    },
}

impl Payload {
    /// No bytes.
    #[must_use]
    pub const fn empty() -> Self {
        Self::Once(None)
    }

    /// These bytes.
    #[must_use]
    pub fn of(bytes: impl Into<Bytes>) -> Self {
        Self::Once(Some(bytes.into()))
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let bytes = match self.get_mut() {
            Self::Once(bytes) => bytes.take(),
            Self::Endless { left: 0, .. } => None,
            Self::Endless { left, taken } => {
                let now = (*left).min(PIECE as u64);
                if *left < u64::MAX {
                    *left -= now;
                }
                let before = taken.fetch_add(now, Ordering::Relaxed);
                Some(piece(before / PIECE as u64, now as usize))
            }
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Once(None) | Self::Endless { left: 0, .. })
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Once(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Endless { left: u64::MAX, .. } => SizeHint::default(),
            Self::Endless { left, .. } => SizeHint::with_exact(*left),
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
        let mut payload = Payload::Endless { left: 40_000, taken: Arc::clone(&taken) };
        assert_eq!(payload.size_hint().exact(), Some(40_000));
        let pieces: Vec<usize> = std::iter::from_fn(|| next(&mut payload)).map(|bytes| bytes.len()).collect();
        assert_eq!(pieces, [16_384, 16_384, 7232]);
        assert_eq!((taken.load(Ordering::Relaxed), payload.is_end_stream()), (40_000, true));
    }

    #[test]
    fn a_body_without_an_end_makes_no_new_memory_and_repeats_late() {
        let mut payload = Payload::Endless { left: u64::MAX, taken: Arc::default() };
        assert_eq!(payload.size_hint().exact(), None);
        let pieces: Vec<Bytes> = (0..=PIECES).filter_map(|_| next(&mut payload)).collect();
        assert_eq!(pieces[0].as_ptr(), pieces[PIECES as usize].as_ptr());
        assert_ne!(pieces[0], pieces[1]);
    }
}

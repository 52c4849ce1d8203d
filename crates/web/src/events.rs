//! The body of an answer that does not end: the newest event, again and again.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame};

use crate::source::Viewer;

/// A browser that lost the connection comes back after so long, ms.
const BEGIN: &[u8] = b"retry: 1000\n\n";

type Next = Pin<Box<dyn Future<Output = Option<(Bytes, Viewer)>> + Send>>;

/// See the module.
pub struct Events {
    begin: Option<Bytes>,
    next: Next,
}

impl Events {
    /// What `viewer` is told, `first` before all.
    #[must_use]
    pub fn new(first: &Bytes, mut viewer: Viewer) -> Self {
        viewer.events.mark_unchanged();
        Self { begin: Some([BEGIN, first].concat().into()), next: Box::pin(next(viewer)) }
    }
}

async fn next(mut viewer: Viewer) -> Option<(Bytes, Viewer)> {
    loop {
        viewer.events.changed().await.ok()?;
        let event = viewer.events.borrow_and_update().clone();
        if !event.is_empty() {
            return Some((event, viewer));
        }
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(begin) = self.begin.take() {
            return Poll::Ready(Some(Ok(Frame::data(begin))));
        }
        self.next.as_mut().poll(cx).map(|event| {
            let (event, viewer) = event?;
            self.next = Box::pin(next(viewer));
            Some(Ok(Frame::data(event)))
        })
    }
}

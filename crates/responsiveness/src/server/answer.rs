//! What is answered to a request.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as Task, Poll};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST};
use hyper::http::uri::Authority;
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Counters, count};
use crate::body::Payload;
use crate::config::{Configuration, LARGE, SMALL, UPLOAD};

/// What the large object has, in bytes: the draft asks for 8 GB at least.
const LARGE_BYTES: u64 = 8 << 30;

/// What a connection's answers share.
#[derive(Clone)]
pub struct Context {
    pub counters: Arc<Counters>,
    /// Places for downloads and uploads.
    pub loads: Arc<Semaphore>,
    /// Of this connection.
    pub state: Arc<State>,
}

/// What a connection does.
#[derive(Debug, Default)]
pub struct State {
    /// Grows with every request and every byte of a load.
    progress: AtomicU64,
    /// Requests that are being answered.
    open: AtomicU64,
}

impl State {
    pub fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }

    pub fn is_answering(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }
}

/// That a request is being answered.
struct Open(Arc<State>);

impl Open {
    fn new(state: &Arc<State>) -> Self {
        state.progress.fetch_add(1, Ordering::Relaxed);
        state.open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(state))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The answer's body: while it lasts it takes the place of a load, and is counted.
pub struct Answer {
    payload: Payload,
    load: Option<(OwnedSemaphorePermit, Context)>,
    open: Option<Open>,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        let frame = Pin::new(&mut this.payload).poll_frame(cx);
        if let (Some((_, context)), Poll::Ready(Some(Ok(frame)))) = (&this.load, &frame) {
            let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
            context.state.progress.fetch_add(bytes, Ordering::Relaxed);
            context.counters.sent.fetch_add(bytes, Ordering::Relaxed);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.payload.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.payload.size_hint()
    }
}

/// Answers one request.
pub async fn answer(request: Request<Incoming>, context: Context) -> Result<Response<Answer>, Infallible> {
    count(&context.counters.requests);
    let open = Open::new(&context.state);
    let is_get = request.method() == Method::GET;
    let mut response = match request.uri().path() {
        SMALL if is_get => plain(StatusCode::OK, Payload::of(&b"x"[..])),
        LARGE if is_get => download(&context),
        UPLOAD if request.method() == Method::POST => upload(request.into_body(), &context).await,
        "/config" if is_get => configuration(&request, true),
        "/.well-known/nq" if is_get => configuration(&request, false),
        SMALL | LARGE | "/config" | "/.well-known/nq" => only("GET"),
        UPLOAD => only("POST"),
        _ => plain(StatusCode::NOT_FOUND, Payload::empty()),
    };
    response.body_mut().open = Some(open);
    Ok(response)
}

fn plain(status: StatusCode, payload: Payload) -> Response<Answer> {
    let mut response = Response::new(Answer { payload, load: None, open: None });
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, "application/octet-stream".parse().expect("a constant"));
    response
}

fn only(method: &'static str) -> Response<Answer> {
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, Payload::empty());
    response.headers_mut().insert(ALLOW, method.parse().expect("a constant"));
    response
}

/// Takes a place among the loads.
fn place(context: &Context) -> Option<OwnedSemaphorePermit> {
    let place = Arc::clone(&context.loads).try_acquire_owned().ok();
    if place.is_none() {
        count(&context.counters.refused_loads);
    }
    place
}

fn download(context: &Context) -> Response<Answer> {
    let Some(place) = place(context) else { return plain(StatusCode::SERVICE_UNAVAILABLE, Payload::empty()) };
    let mut response = plain(StatusCode::OK, Payload::endless(LARGE_BYTES, Arc::default()));
    response.headers_mut().insert(CACHE_CONTROL, "no-store".parse().expect("a constant"));
    response.body_mut().load = Some((place, context.clone()));
    response
}

/// Reads and drops what comes.
async fn upload(mut body: Incoming, context: &Context) -> Response<Answer> {
    let Some(_place) = place(context) else { return plain(StatusCode::SERVICE_UNAVAILABLE, Payload::empty()) };
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let Ok(frame) = frame else { return plain(StatusCode::BAD_REQUEST, Payload::empty()) };
        let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
        context.state.progress.fetch_add(bytes, Ordering::Relaxed);
        context.counters.received.fetch_add(bytes, Ordering::Relaxed);
    }
    plain(StatusCode::OK, Payload::empty())
}

/// With the name that the client called us by.
fn configuration(request: &Request<Incoming>, to_older_clients: bool) -> Response<Answer> {
    let host = || request.headers().get(HOST)?.to_str().ok()?.parse::<Authority>().ok();
    let authority = request.uri().authority().cloned().or_else(host).filter(|name| !name.as_str().contains('@'));
    let Some(authority) = authority else { return plain(StatusCode::BAD_REQUEST, Payload::empty()) };
    let said = Configuration::said_by_server(&authority, to_older_clients);
    let mut response = plain(StatusCode::OK, Payload::of(said));
    response.headers_mut().insert(CONTENT_TYPE, "application/json".parse().expect("a constant"));
    response
}

//! One request and its answer: a small object, or a load.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http2::SendRequest;
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Response};
use tokio::time::timeout;

use super::connect::Route;
use super::error::Error;
use crate::body::Payload;

/// How long a small object may take.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// What the object of one byte may have, in bytes; a server that has more of them is no server of this test.
const SMALL_AT_MOST: usize = 1000;

/// The next piece of an answer; `None`: it is whole.
async fn next(body: &mut Incoming, what: &'static str) -> Result<Option<Bytes>, Error> {
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        match frame.transpose().map_err(|cause| Error::Http { what, cause })? {
            None => return Ok(None),
            Some(frame) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

fn is_fine(response: &Response<Incoming>, what: &'static str) -> Result<(), Error> {
    let status = response.status();
    if status.as_u16() == 200 { Ok(()) } else { Err(Error::Status { what, status }) }
}

/// Gets an object of at most `most` bytes. `None`: it has more.
pub async fn get(
    route: &Route,
    requests: &mut SendRequest<Payload>,
    path: &PathAndQuery,
    most: usize,
    what: &'static str,
) -> Result<Option<Vec<u8>>, Error> {
    let whole = async {
        let request = route.request(Method::GET, path, Payload::empty());
        let response = requests.send_request(request).await.map_err(|cause| Error::Http { what, cause })?;
        is_fine(&response, what)?;
        let (mut body, mut got) = (response.into_body(), Vec::new());
        while let Some(piece) = next(&mut body, what).await? {
            if got.len() + piece.len() > most {
                return Ok(None);
            }
            got.extend_from_slice(&piece);
        }
        Ok(Some(got))
    };
    timeout(PATIENCE, whole).await.unwrap_or(Err(Error::Late { what, seconds: PATIENCE.as_secs() }))
}

/// Gets the object of one byte; what it took, from the request to the last byte.
pub async fn probe(route: &Route, requests: &mut SendRequest<Payload>, path: &PathAndQuery) -> Result<Duration, Error> {
    let start = Instant::now();
    let got = get(route, requests, path, SMALL_AT_MOST, "the small object").await?;
    let took = start.elapsed();
    got.map(|_| took).ok_or(Error::NotSmall(SMALL_AT_MOST))
}

/// Downloads the large object, over and over, and counts its bytes; returns with an error only.
pub async fn download(
    route: &Route,
    requests: &mut SendRequest<Payload>,
    path: &PathAndQuery,
    count: &AtomicU64,
) -> Result<(), Error> {
    let what = "a download";
    loop {
        let request = route.request(Method::GET, path, Payload::empty());
        let sent = timeout(PATIENCE, requests.send_request(request)).await;
        let response = sent.map_err(|_| Error::Late { what, seconds: PATIENCE.as_secs() })?;
        let response = response.map_err(|cause| Error::Http { what, cause })?;
        is_fine(&response, what)?;
        let mut body = response.into_body();
        let mut got = 0;
        while let Some(piece) = next(&mut body, what).await? {
            got += piece.len();
            count.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
        pause_after(got).await;
    }
}

/// Uploads without end, over and over should the server end one, and counts the bytes that the connection took; returns with an error
/// only.
pub async fn upload(
    route: &Route,
    requests: &mut SendRequest<Payload>,
    path: &PathAndQuery,
    count: &Arc<AtomicU64>,
) -> Result<(), Error> {
    let what = "an upload";
    loop {
        let before = count.load(Ordering::Relaxed);
        let body = Payload::endless(u64::MAX, Arc::clone(count));
        let request = route.request(Method::POST, path, body);
        let response = requests.send_request(request).await.map_err(|cause| Error::Http { what, cause })?;
        is_fine(&response, what)?;
        pause_after((count.load(Ordering::Relaxed) - before) as usize).await;
    }
}

/// A server whose large object is small is not asked for it without a break.
async fn pause_after(bytes: usize) {
    if bytes < 1 << 20 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

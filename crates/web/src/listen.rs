//! Connections: how many, how long for a head, with TLS or without.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower_service::Service as _;

use crate::count::Refusal;
use crate::patient::Patient;
use crate::router::{App, Ends, router};

/// Most connections at once.
const MOST: usize = 96;
/// Most of them from one address, unless it is a proxy's or this machine's own.
const MOST_OF_ONE: usize = 16;
/// A head that is not whole after so long, and a connection on which nobody asks, is given up.
const HEAD: Duration = Duration::from_secs(15);
/// The same of a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Longest head, and most that waits to be written beside one event, bytes.
const BUFFER: usize = 16 << 10;
/// What the kernel keeps for who reads slowly, bytes (it doubles it): a few events.
const SEND_BUFFER: usize = 64 << 10;
/// Nobody is let in for so long after the kernel refused that, for want of descriptors.
const REST: Duration = Duration::from_millis(100);

/// Who is connected.
#[derive(Debug, Default)]
struct Connections(Mutex<HashMap<IpAddr, usize>>);

/// One of them; its place is free again when this goes.
struct Place {
    connections: Arc<Connections>,
    of: IpAddr,
}

impl Connections {
    fn take(self: &Arc<Self>, of: IpAddr, most_of_one: usize) -> Option<Place> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.values().sum::<usize>() >= MOST || all.get(&of).is_some_and(|own| *own >= most_of_one) {
            return None;
        }
        *all.entry(of).or_default() += 1;
        Some(Place { connections: Arc::clone(self), of })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self.connections.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = all.get_mut(&self.of) {
            *own -= 1;
            if *own == 0 {
                all.remove(&self.of);
            }
        }
    }
}

/// Serves for ever.
///
/// # Errors
/// The listener cannot be used.
pub async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    behind_proxy: bool,
    app: Arc<App>,
) -> io::Result<Infallible> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let router = router(&app);
    let connections = Arc::new(Connections::default());
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            sleep(REST).await;
            continue;
        };
        let Ok(local) = stream.local_addr() else { continue };
        let ends = Ends { peer, local: local.ip() };
        let most_of_one = if behind_proxy || peer.ip().to_canonical().is_loopback() { MOST } else { MOST_OF_ONE };
        let Some(place) = connections.take(peer.ip(), most_of_one) else {
            app.counts.refuse(Refusal::Connections);
            continue;
        };
        let (app, router, tls) = (Arc::clone(&app), router.clone(), tls.clone());
        tokio::spawn(async move {
            let _place = place;
            let _ = stream.set_nodelay(true);
            let _ = rustix::net::sockopt::set_socket_send_buffer_size(&stream, SEND_BUFFER);
            match tls {
                Some(tls) => match timeout(HANDSHAKE, tls.accept(stream)).await {
                    Ok(Ok(stream)) => talk(stream, ends, router, &app).await,
                    _ => app.counts.refuse(Refusal::Handshake),
                },
                None => plain(stream, ends, router, &app).await,
            }
        });
    }
}

async fn plain(stream: TcpStream, ends: Ends, router: Router, app: &App) {
    talk(stream, ends, router, app).await;
}

async fn talk(stream: impl AsyncRead + AsyncWrite + Unpin, ends: Ends, router: Router, app: &App) {
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ends);
        // A router is always ready.
        let answer = router.clone().call(request);
        async move { Ok::<Response<Body>, Infallible>(answer.await.unwrap_or_else(|never| match never {})) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(BUFFER).max_headers(64).half_close(false);
    if let Err(error) = server.serve_connection(TokioIo::new(Patient::new(stream)), service).await {
        let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<io::Error>());
        if cause.is_some_and(|cause| cause.kind() == io::ErrorKind::TimedOut) {
            app.counts.refuse(Refusal::Slow);
        } else if error.is_parse() || error.is_timeout() {
            app.counts.refuse(Refusal::Request);
        }
    }
}

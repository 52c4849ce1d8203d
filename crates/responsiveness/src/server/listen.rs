//! Connections: accepted within bounds, secured, answered, and closed when they make no progress.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConfig;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::answer::{self, Context};
use super::{Counters, Settings, count};
use crate::pace::{Paced, Tcp};

/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Requests that one connection may have open.
const STREAMS: u32 = 250;
/// What one stream of an upload may have under way, in bytes. It is read and dropped as it comes.
const STREAM_WINDOW: u32 = 4 << 20;
/// The same of a connection.
const CONNECTION_WINDOW: u32 = 8 << 20;
/// What HTTP/2 may hold of data that TLS has not taken yet, in bytes: two pieces of a download.
const SEND_BUFFER: usize = 32 * 1024;
/// Headers of a request, in bytes.
const HEADERS: u32 = 16 * 1024;

/// Listens; of IPv6 with the IPv4 that the system gives with it.
pub async fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    TcpListener::from_std(socket.into())
}

/// Accepts connections for ever.
pub async fn accept(listener: TcpListener, tls: Arc<ServerConfig>, settings: Settings, counters: Arc<Counters>) {
    let places = Arc::new(Semaphore::new(settings.connections));
    let loads = Arc::new(Semaphore::new(settings.loads));
    let acceptor = TlsAcceptor::from(tls);
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files, usually: others end soon.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            count(&counters.refused_connections);
            continue;
        };
        count(&counters.connections);
        let (acceptor, counters, loads) = (acceptor.clone(), Arc::clone(&counters), Arc::clone(&loads));
        tokio::spawn(async move {
            let _place = place;
            match secure(acceptor, stream).await {
                Some(secured) => converse(secured, Context { counters, loads, state: Arc::default() }, settings).await,
                None => count(&counters.failed_handshakes),
            }
        });
    }
}

async fn secure(acceptor: TlsAcceptor, stream: TcpStream) -> Option<TlsStream<Tcp>> {
    let stream = Tcp::new(stream).ok()?;
    timeout(HANDSHAKE, acceptor.accept(stream)).await.ok()?.ok()
}

/// Answers requests until the client leaves, asks for nothing, or makes no progress.
async fn converse(secured: TlsStream<Tcp>, context: Context, settings: Settings) {
    let is_http2 = secured.get_ref().1.alpn_protocol() == Some(b"h2");
    let io = TokioIo::new(Paced::new(secured));
    let (counters, state) = (Arc::clone(&context.counters), Arc::clone(&context.state));
    let service = service_fn(move |request| answer::answer(request, context.clone()));
    let talk = async {
        // How a client ends its connection is its own business.
        let _ = if is_http2 {
            let mut http = http2::Builder::new(TokioExecutor::new());
            http.max_concurrent_streams(STREAMS).max_header_list_size(HEADERS);
            http.initial_stream_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
            http.max_send_buf_size(SEND_BUFFER);
            http.serve_connection(io, service).await
        } else {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).max_buf_size(HEADERS as usize);
            http.serve_connection(io, service).await
        };
    };
    tokio::pin!(talk);
    let (mut seen, mut since) = (state.progress(), Instant::now());
    while timeout(settings.idle, &mut talk).await.is_err() {
        if state.progress() != seen {
            (seen, since) = (state.progress(), Instant::now());
        } else if !state.is_answering() {
            return count(&counters.idle_connections);
        } else if since.elapsed() >= settings.patience {
            return count(&counters.stalled_connections);
        }
    }
}

//! One connection: TCP, TLS 1.3, HTTP/2, with what the handshakes took.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::Request;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{Method, Uri, header};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::error::Error;
use crate::body::Payload;
use crate::pace::{Paced, Tcp};

/// How long a handshake may take. A queue of some seconds is no reason to give up.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// What one stream of a download may have under way: 300 ms at 400 Mbit/s, in bytes.
const STREAM_WINDOW: u32 = 16 << 20;
/// The same of a connection.
const CONNECTION_WINDOW: u32 = 32 << 20;
/// What HTTP/2 may hold of data that TLS has not taken yet, in bytes.
const SEND_BUFFER: usize = 32 * 1024;
/// Headers of an answer, in bytes.
const HEADERS: u32 = 16 * 1024;

/// How to reach the server.
#[derive(Clone, Debug)]
pub struct Route {
    /// The address of all connections.
    pub address: SocketAddr,
    /// Its name in TLS.
    pub name: ServerName<'static>,
    /// Its name in HTTP.
    pub authority: Authority,
    /// Whose certificates are believed.
    pub tls: Arc<ClientConfig>,
}

/// A connection over which requests can be sent. Ends at once when it is dropped.
#[derive(Debug)]
pub struct Connected {
    pub requests: SendRequest<Payload>,
    task: Task,
    /// What the TCP handshake took.
    pub tcp: Duration,
    /// What the TLS handshake took.
    pub tls: Duration,
}

#[derive(Debug)]
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Connected {
    /// Says goodbye, for a second at most.
    pub async fn close(self) {
        let Self { requests, mut task, .. } = self;
        drop(requests);
        let _ = timeout(Duration::from_secs(1), &mut task.0).await;
    }
}

impl Route {
    /// Opens a connection.
    pub async fn connect(&self) -> Result<Connected, Error> {
        let start = Instant::now();
        let stream = timeout(PATIENCE, TcpStream::connect(self.address)).await;
        let tcp = start.elapsed();
        let refused = |error| Error::Connect(self.address, error);
        let stream = stream.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into())).map_err(refused)?;
        let stream = Tcp::new(stream).map_err(refused)?;

        let start = Instant::now();
        let secured =
            timeout(PATIENCE, TlsConnector::from(Arc::clone(&self.tls)).connect(self.name.clone(), stream)).await;
        let tls = start.elapsed();
        let secured = secured.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()));
        let secured = secured.map_err(|error| Error::Tls(self.authority.to_string(), error))?;
        if secured.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err(Error::NoHttp2(self.authority.to_string()));
        }

        let mut http = Builder::new(TokioExecutor::new());
        http.initial_stream_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
        http.max_send_buf_size(SEND_BUFFER).max_header_list_size(HEADERS);
        let (requests, connection) = http
            .handshake(TokioIo::new(Paced::new(secured)))
            .await
            .map_err(|cause| Error::Http { what: "HTTP/2", cause })?;
        // What fails here fails the requests, too, which tell.
        let task = Task(tokio::spawn(async move { connection.await.unwrap_or_default() }));
        Ok(Connected { requests, task, tcp, tls })
    }

    /// A request for one of the server's objects.
    pub fn request(&self, method: Method, path: &PathAndQuery, body: Payload) -> Request<Payload> {
        let mut parts = hyper::http::uri::Parts::default();
        parts.scheme = Some(Scheme::HTTPS);
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(path.clone());
        let uri = Uri::from_parts(parts).expect("scheme, authority and path are there");
        let request = Request::builder().method(method.clone()).uri(uri);
        let request = if method == Method::POST {
            request.header(header::CONTENT_TYPE, "application/octet-stream")
        } else {
            // Nobody on the way is to make the objects smaller.
            request.header(header::ACCEPT_ENCODING, "identity")
        };
        request.body(body).expect("the headers are constants")
    }
}

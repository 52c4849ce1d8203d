//! Servers that say what a test wants them to say, over real TLS and HTTP/2.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use lasthop_responsiveness::body::Payload;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::server::TlsStream;

/// A server in a thread of its own, until it is dropped.
pub struct Fake {
    pub address: SocketAddr,
    _runtime: Runtime,
}

/// What it does with a connection after the TLS handshake.
type Conduct = Arc<dyn Fn(TlsStream<TcpStream>) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

fn tls(protocols: &[&str]) -> Arc<rustls::ServerConfig> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("its key");
    let builder = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("TLS 1.3").with_no_client_auth();
    let mut config = builder.with_single_cert(vec![made.cert.der().clone()], key).expect("they belong together");
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

impl Fake {
    fn new(protocols: &[&str], conduct: Conduct) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("its address");
        let acceptor = tokio_rustls::TlsAcceptor::from(tls(protocols));
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, conduct) = (acceptor.clone(), Arc::clone(&conduct));
                tokio::spawn(async move {
                    if let Ok(secured) = acceptor.accept(stream).await {
                        conduct(secured).await;
                    }
                });
            }
        });
        Self { address, _runtime: runtime }
    }

    /// Answers requests by `answer`: path in, answer out; `None`: never.
    pub fn answering(answer: impl Fn(&str, SocketAddr) -> Option<Response<Payload>> + Send + Sync + 'static) -> Self {
        let answer = Arc::new(answer);
        Self::new(
            &["h2"],
            Arc::new(move |secured| {
                let answer = Arc::clone(&answer);
                let address = secured.get_ref().0.local_addr().expect("an address");
                let service = service_fn(move |request: Request<Incoming>| {
                    let answered = answer(request.uri().path(), address);
                    async move {
                        match answered {
                            Some(answered) => Ok::<_, Infallible>(answered),
                            None => std::future::pending().await,
                        }
                    }
                });
                Box::pin(async move {
                    let http = http2::Builder::new(TokioExecutor::new());
                    let _ = http.serve_connection(TokioIo::new(secured), service).await;
                })
            }),
        )
    }

    /// Says that it speaks HTTP/2, reads what comes, and then writes `bytes` over and over.
    pub fn writing(first: Vec<u8>, bytes: Vec<u8>) -> Self {
        Self::new(
            &["h2"],
            Arc::new(move |mut secured| {
                let (first, bytes) = (first.clone(), bytes.clone());
                Box::pin(async move {
                    let mut read = [0; 1024];
                    let _ = secured.read(&mut read).await;
                    let _ = secured.write_all(&first).await;
                    while secured.write_all(&bytes).await.is_ok() {}
                })
            }),
        )
    }

    /// Speaks no protocol that it names.
    pub fn without_http2() -> Self {
        Self::new(&[], Arc::new(|secured| Box::pin(async move { drop(secured) })))
    }

    /// Ends every connection after the handshake.
    pub fn hanging_up() -> Self {
        Self::new(&["h2"], Arc::new(|secured| Box::pin(async move { drop(secured) })))
    }
}

/// An answer with this status and body.
pub fn answer(status: u16, body: impl Into<Vec<u8>>) -> Option<Response<Payload>> {
    let mut response = Response::new(Payload::of(body.into()));
    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
    Some(response)
}

/// An answer without an end.
pub fn endless() -> Option<Response<Payload>> {
    Some(Response::new(Payload::endless(u64::MAX, Arc::default())))
}

/// A configuration whose objects are at `place`, whose large object is `large`.
pub fn configuration(place: &str, large: &str) -> String {
    format!(
        r#"{{"version": 1, "urls": {{"large_download_url": "{place}{large}",
            "small_download_url": "{place}/small", "upload_url": "{place}/upload"}}}}"#
    )
}

//! Downloads over QUIC: one connection of the `quinn` library each, a thread at either end.
//!
//! Both ends are of the same library, which has congestion control, pacing, packet sizes (1,200 bytes, then what a probe
//! of up to 1,452 finds) and ECN of its own. The end in the home connects, as a browser does; the sending end then opens
//! one stream and fills it. The certificate is made at the start of a run and known to nobody else. What the receiver
//! has got is counted as it comes, in whichever order, so a hole hides nothing behind it.

use super::Gate;
use super::tcp::Totals;
use crate::clock;
use crate::observe::identify::FIRST_PORT;
use crate::sys::{CaState, TcpDetail};
use lasthop_core::units::{Span, Time};
use lasthop_home::scenario::CongestionControl;
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, ConnectionError, Endpoint, EndpointConfig, ReadError, RecvStream, SendStream,
    ServerConfig, TokioRuntime, TransportConfig, VarInt, WriteError,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, crypto::ring::default_provider, version::TLS13};
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How often the connection is asked how it is, and the longest wait before the gate is looked at.
const SAMPLE: Span = Span::from_millis(10);
/// The same for the other library.
const LOOK: Duration = Duration::from_millis(10);
/// To whom the certificate is made out.
const NAME: &str = "lasthop";
/// Most that may be unsent and unacknowledged, and most that the receiver offers, bytes: as TCP has it here.
const WINDOW: u32 = 16 << 20;
/// Bytes of a socket's buffers.
const SOCKET_BUFFER: usize = 4 << 20;
/// A segment, bytes: ten of them are the initial window of RFC 9002, section 7.2.
const SEGMENT: u64 = 1472;
const CHUNK: usize = 64 << 10;
/// Time for a farewell before the thread goes.
const FAREWELL: Duration = Duration::from_millis(200);

/// One download.
#[derive(Clone, Debug)]
pub struct Download {
    /// Index of the flow.
    pub flow: u16,
    /// Sender's address.
    pub source: Ipv4Addr,
    /// Receiver's address.
    pub destination: Ipv4Addr,
    /// The receiver is the one that connects.
    pub receiver_connects: bool,
    /// Since the start of the scenario.
    pub start: Span,
    /// Since the start of the scenario.
    pub stop: Span,
    /// When the figures proper begin, since the start of the scenario.
    pub measure_from: Span,
    /// Ends it earlier.
    pub bytes: Option<u64>,
    /// Of the sender.
    pub congestion_control: CongestionControl,
    /// Segments.
    pub initial_window: u32,
}

/// Payload that the receiver got: until when, since the start of the scenario, and how many bytes since the entry before.
pub type Arrivals = Vec<(Span, u64)>;

/// What both ends of every connection of a run are set up with.
#[derive(Debug)]
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

/// Whether the library has it.
#[must_use]
pub fn has(cc: CongestionControl) -> bool {
    use CongestionControl::{Bbr, Cubic, NewReno, Reno};
    matches!(cc, Cubic | Reno | NewReno | Bbr)
}

/// Opens the socket of one end. Call it in the namespace of that end.
///
/// # Errors
/// The failed system call.
pub fn socket(flow: u16, own: Ipv4Addr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(SocketAddrV4::new(own, FIRST_PORT + flow))?;
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER)?;
    rustix::net::sockopt::set_socket_send_buffer_size_force(&socket, SOCKET_BUFFER)?;
    Ok(socket)
}

impl Identity {
    /// A new one.
    ///
    /// # Errors
    /// When no key can be drawn.
    pub fn generate() -> io::Result<Self> {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).map_err(io::Error::other)?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Ok(Self { certificate: made.cert.der().clone(), key })
    }

    fn server(&self, transport: Arc<TransportConfig>) -> io::Result<ServerConfig> {
        let key = PrivateKeyDer::Pkcs8(self.key.clone_key());
        let tls = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])
            .and_then(|it| it.with_no_client_auth().with_single_cert(vec![self.certificate.clone()], key))
            .map_err(io::Error::other)?;
        let crypto = QuicServerConfig::try_from(tls).map_err(io::Error::other)?;
        let mut server = ServerConfig::with_crypto(Arc::new(crypto));
        server.transport_config(transport);
        Ok(server)
    }

    fn client(&self, transport: Arc<TransportConfig>) -> io::Result<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).map_err(io::Error::other)?;
        let tls = rustls::ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let crypto = QuicClientConfig::try_from(tls).map_err(io::Error::other)?;
        let mut client = ClientConfig::new(Arc::new(crypto));
        client.transport_config(transport);
        Ok(client)
    }
}

impl Download {
    fn transport(&self) -> TransportConfig {
        let window = u64::from(self.initial_window) * SEGMENT;
        let controller: Arc<dyn ControllerFactory + Send + Sync> = match self.congestion_control {
            CongestionControl::Bbr => {
                let mut config = BbrConfig::default();
                config.initial_window(window);
                Arc::new(config)
            }
            CongestionControl::Reno | CongestionControl::NewReno => {
                let mut config = NewRenoConfig::default();
                config.initial_window(window);
                Arc::new(config)
            }
            _ => {
                let mut config = CubicConfig::default();
                config.initial_window(window);
                Arc::new(config)
            }
        };
        let mut transport = TransportConfig::default();
        let most = VarInt::from_u32(WINDOW);
        transport.stream_receive_window(most).receive_window(most).send_window(WINDOW.into());
        transport.congestion_controller_factory(controller);
        transport
    }

    /// Both ends' addresses, that of the sender first.
    fn ends(&self) -> [SocketAddr; 2] {
        [self.source, self.destination].map(|address| SocketAddrV4::new(address, FIRST_PORT + self.flow).into())
    }
}

/// Sends from the flow's start until its end; what became of it.
///
/// # Errors
/// A connection that was refused or broke.
pub fn send(flow: &Download, identity: &Identity, socket: UdpSocket, gate: &Gate) -> io::Result<Totals> {
    let mut totals = Totals::default();
    let Some(zero) = at_start(flow, gate) else { return Ok(totals) };
    on_runtime(async {
        let endpoint = endpoint(flow, identity, socket, !flow.receiver_connects)?;
        let end = End { gate, stop: zero + flow.stop };
        let Some(connection) = end.meet(flow, &endpoint, !flow.receiver_connects).await? else { return Ok(()) };
        let mut sending = Sending {
            connection: connection.clone(),
            left: flow.bytes,
            measure_from: zero + flow.measure_from,
            sampled: Time::ZERO,
            before: TcpDetail::default(),
            reductions: 0,
        };
        let outcome = sending.run(&end, &mut totals).await;
        sending.sample(&mut totals);
        connection.close(VarInt::from_u32(0), b"");
        // So that the other end hears of it.
        let _ = timeout(FAREWELL, endpoint.wait_idle()).await;
        if outcome? {
            totals.completed = Some(sending.sampled.since(zero));
        }
        Ok(())
    })?;
    Ok(totals)
}

/// Receives until the sender or the gate ends; what came when.
///
/// # Errors
/// A connection that was refused or broke.
pub fn receive(flow: &Download, identity: &Identity, socket: UdpSocket, gate: &Gate) -> io::Result<Arrivals> {
    let mut arrivals = Arrivals::new();
    let Some(zero) = at_start(flow, gate) else { return Ok(arrivals) };
    on_runtime(async {
        let endpoint = endpoint(flow, identity, socket, flow.receiver_connects)?;
        let end = End { gate, stop: Time::MAX };
        let Some(connection) = end.meet(flow, &endpoint, flow.receiver_connects).await? else { return Ok(()) };
        let Some(stream) = end.wait(connection.accept_uni()).await else { return Ok(()) };
        let Some(mut stream) = unless_closed(stream)? else { return Ok(()) };
        let mut got = 0;
        let mut told = clock::now();
        let ended = loop {
            match end.next(&mut stream).await {
                Some(Ok(Some(bytes))) => got += bytes,
                Some(Ok(None)) => break Ok(()),
                Some(Err(error)) => break Err(error),
                None if gate.is_closed() => break Ok(()),
                None => {}
            }
            if clock::now() >= told + SAMPLE {
                told = clock::now();
                arrivals.push((told.since(zero), std::mem::take(&mut got)));
            }
        };
        arrivals.push((clock::now().since(zero), got));
        match ended {
            Err(ReadError::ConnectionLost(error)) => unless_closed(Err::<(), _>(error)).map(drop)?,
            Err(ReadError::Reset(_)) | Ok(()) => {}
            Err(error) => return Err(io::Error::other(error)),
        }
        // Everything is there: that is acknowledged until the sender closes.
        let _ = end.wait(connection.closed()).await;
        Ok(())
    })?;
    arrivals.retain(|(_, bytes)| *bytes > 0);
    Ok(arrivals)
}

/// When the scenario started, once the flow starts; `None` when the gate closed before.
fn at_start(flow: &Download, gate: &Gate) -> Option<Time> {
    let zero = gate.wait()?;
    gate.sleep_until(zero + flow.start).then_some(zero)
}

fn on_runtime<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?.block_on(work)
}

fn endpoint(flow: &Download, identity: &Identity, socket: UdpSocket, connects: bool) -> io::Result<Endpoint> {
    let transport = Arc::new(flow.transport());
    let server = if connects { None } else { Some(identity.server(Arc::clone(&transport))?) };
    let mut endpoint = Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(TokioRuntime))?;
    if connects {
        endpoint.set_default_client_config(identity.client(transport)?);
    }
    Ok(endpoint)
}

/// A connection that the other end closed in good order is nothing; any other end of it is an error.
fn unless_closed<T>(outcome: Result<T, ConnectionError>) -> io::Result<Option<T>> {
    match outcome {
        Ok(it) => Ok(Some(it)),
        Err(ConnectionError::ApplicationClosed(_) | ConnectionError::LocallyClosed) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// When one end gives up.
struct End<'a> {
    gate: &'a Gate,
    stop: Time,
}

impl End<'_> {
    fn is_over(&self) -> bool {
        self.gate.is_closed() || clock::now() >= self.stop
    }

    /// What `work` gives, unless the end comes before.
    async fn wait<T>(&self, work: impl IntoFuture<Output = T>) -> Option<T> {
        let mut work = pin!(work.into_future());
        while !self.is_over() {
            if let Ok(outcome) = timeout(LOOK, &mut work).await {
                return Some(outcome);
            }
        }
        None
    }

    /// The connection between the two.
    async fn meet(&self, flow: &Download, endpoint: &Endpoint, connects: bool) -> io::Result<Option<Connection>> {
        let [sender, receiver] = flow.ends();
        let other = if flow.receiver_connects { sender } else { receiver };
        let met = if connects {
            let connecting = endpoint.connect(other, NAME).map_err(io::Error::other)?;
            self.wait(connecting).await
        } else {
            let Some(Some(incoming)) = self.wait(endpoint.accept()).await else { return Ok(None) };
            self.wait(incoming).await
        };
        met.map_or(Ok(None), unless_closed)
    }

    /// How many further bytes came within a short while; `Ok(None)`: that was all. Nothing is lost when nothing came.
    async fn next(&self, stream: &mut RecvStream) -> Option<Result<Option<u64>, ReadError>> {
        let outcome = timeout(LOOK, stream.read_chunk(CHUNK, false)).await.ok()?;
        Some(outcome.map(|chunk| chunk.map(|chunk| chunk.bytes.len() as u64)))
    }
}

struct Sending {
    connection: Connection,
    /// Bytes not yet written; `None`: endless.
    left: Option<u64>,
    measure_from: Time,
    sampled: Time,
    before: TcpDetail,
    /// Times that the window was cut.
    reductions: u64,
}

impl Sending {
    /// True when everything was delivered.
    async fn run(&mut self, end: &End<'_>, totals: &mut Totals) -> io::Result<bool> {
        let Some(stream) = end.wait(self.connection.open_uni()).await else { return Ok(false) };
        let Some(mut stream) = unless_closed(stream)? else { return Ok(false) };
        let chunk = vec![0x5a; CHUNK];
        while !end.is_over() {
            if clock::now() >= self.sampled + SAMPLE {
                self.sample(totals);
            }
            let most = self.left.map_or(CHUNK, |left| CHUNK.min(left as usize));
            if most == 0 {
                return self.finish(stream, end, totals).await;
            }
            // Dropping it before it is ready writes nothing.
            match timeout(LOOK, stream.write(&chunk[..most])).await {
                Ok(Ok(n)) => self.left = self.left.map(|left| left - n as u64),
                Ok(Err(WriteError::Stopped(_))) => return Ok(false),
                Ok(Err(WriteError::ConnectionLost(error))) => {
                    return unless_closed(Err::<(), _>(error)).map(|_| false);
                }
                Ok(Err(error)) => return Err(io::Error::other(error)),
                Err(_) => {}
            }
        }
        Ok(false)
    }

    /// Says that it was all, and waits until the receiver has acknowledged it.
    async fn finish(&mut self, mut stream: SendStream, end: &End<'_>, totals: &mut Totals) -> io::Result<bool> {
        stream.finish().map_err(io::Error::other)?;
        let mut acknowledged = pin!(stream.stopped());
        while !end.is_over() {
            let outcome = timeout(LOOK, &mut acknowledged).await;
            self.sample(totals);
            if let Ok(outcome) = outcome {
                return Ok(matches!(outcome, Ok(None)));
            }
        }
        Ok(false)
    }

    /// The same figures that the kernel has of its senders, but for timeouts, which the library does not count. What is
    /// in flight counts as acknowledged.
    fn sample(&mut self, totals: &mut Totals) {
        let path = self.connection.stats().path;
        let mss = u32::from(path.current_mtu).max(1);
        let now = TcpDetail {
            cwnd: (path.cwnd / u64::from(mss)) as u32,
            srtt_us: path.rtt.as_micros() as u32,
            retransmitted: path.lost_packets as u32,
            bytes_acked: (path.sent_packets - path.lost_packets.min(path.sent_packets)) * u64::from(mss),
            mss,
            timeouts: Some(0),
            state: CaState::Open,
        };
        self.sampled = clock::now();
        let measured = self.sampled > self.measure_from;
        let stretch = if measured { &mut totals.metrics } else { &mut totals.start_up };
        stretch.add(&self.before, &now);
        stretch.recoveries += path.congestion_events - self.reductions;
        (self.before, self.reductions) = (now, path.congestion_events);
    }
}

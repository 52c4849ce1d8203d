//! Flows over TCP: one kernel connection each, a thread at either end; greedy, or a stream that is given as it arises.

use super::{Gate, PRIORITY};
use crate::clock;
use crate::observe::identify::FIRST_PORT;
use crate::sys::{self, CaState, TcpDetail};
use lasthop_core::dscp::Dscp;
use lasthop_core::units::{Span, Time};
use lasthop_home::course::Stretches;
use lasthop_home::scenario::KernelName;
use lasthop_home::traffic::feed::Feed;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How often TCP_INFO is read, and the longest wait before the gate is looked at.
const SAMPLE: Span = Span::from_millis(10);
/// Bytes that may wait unsent in the sender: most of a second at 20 Mbit/s, so that a thread that is not scheduled for a
/// while does not make a greedy flow pause and then burst.
const UNSENT: u32 = 2 << 20;
/// Send buffer: what may be in flight and unsent, with the kernel's own cost per segment. The kernel's own choice
/// follows the congestion window so closely that a late thread would leave it empty.
const SEND_BUFFER: usize = 16 << 20;
const CHUNK: usize = 64 << 10;

/// One flow.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Index of the flow.
    pub flow: u16,
    /// Sender's address.
    pub source: Ipv4Addr,
    /// Receiver's address.
    pub destination: Ipv4Addr,
    /// Where the sender's own connection ends: there, or at a proxy's address.
    pub ends_at: Ipv4Addr,
    /// Since the start of the scenario.
    pub start: Span,
    /// Since the start of the scenario.
    pub stop: Span,
    /// When the figures proper begin, since the start of the scenario.
    pub measure_from: Span,
    /// The kernel's name of the congestion control; `None`: as the host has it.
    pub congestion_control: Option<KernelName>,
    /// Payload bytes of a segment, before options.
    pub mss: u16,
    /// Most the receiver offers, bytes.
    pub window: Option<u32>,
    /// Code point of its packets, in both directions.
    pub dscp: Dscp,
    /// How long the run lasts, where its congestion window over time is to be kept.
    pub course_of: Option<Span>,
}

/// What a connection has to carry.
pub enum Supply {
    /// More bytes than it can carry in the run.
    Endless,
    /// So many bytes, which end it.
    Bytes(u64),
    /// What its schedule gives it.
    Stream(Box<Feed>),
}

/// What the sender's kernel said over one stretch of the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stretch {
    /// Payload bytes acknowledged.
    pub bytes_acked: u64,
    /// Segment size at the end, bytes of payload.
    pub mss: u32,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Retransmission timeouts; below Linux 6.7 those that a sample saw.
    pub timeouts: u64,
    /// Times that a sample found the sender newly in fast recovery.
    pub recoveries: u64,
    /// Largest congestion window sampled, segments.
    pub cwnd_max: u32,
    cwnd_sum: u64,
    samples: u64,
    /// Smoothed RTT at the end, us.
    pub srtt_us: u32,
}

/// What became of a greedy flow.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Before measuring began.
    pub start_up: Stretch,
    /// From then on.
    pub metrics: Stretch,
    /// When the receiver had everything, since the start of the scenario.
    pub completed: Option<Span>,
    /// Its congestion window over time, bytes, where that was to be kept.
    pub congestion: Option<Stretches>,
}

impl Stretch {
    /// Mean congestion window over the samples, segments.
    #[must_use]
    pub fn cwnd_mean(&self) -> f64 {
        self.cwnd_sum as f64 / self.samples.max(1) as f64
    }

    /// What was sampled `now`, after `before`.
    pub(super) fn add(&mut self, before: &TcpDetail, now: &TcpDetail) {
        self.bytes_acked += now.bytes_acked - before.bytes_acked.min(now.bytes_acked);
        self.retransmitted += u64::from(now.retransmitted.saturating_sub(before.retransmitted));
        let newly_lost = u32::from(now.state == CaState::Loss && before.state != CaState::Loss);
        self.timeouts += u64::from(match (before.timeouts, now.timeouts) {
            (_, None) => newly_lost,
            (before, Some(now)) => now.saturating_sub(before.unwrap_or(0)),
        });
        self.recoveries += u64::from(now.state == CaState::Recovery && before.state != CaState::Recovery);
        self.mss = now.mss;
        self.srtt_us = now.srtt_us;
        self.cwnd_max = self.cwnd_max.max(now.cwnd);
        self.cwnd_sum += u64::from(now.cwnd);
        self.samples += 1;
    }
}

/// Opens the receiver's socket. Call it in the receiver's namespace.
///
/// # Errors
/// The failed system call.
pub fn listen(flow: &Connection) -> io::Result<TcpListener> {
    let socket = new_socket()?;
    sys::set_max_segment(&socket, flow.mss)?;
    super::mark(&socket, flow.dscp)?;
    bound_window(&socket, flow)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(flow.destination, FIRST_PORT + flow.flow))?;
    rustix::net::listen(&socket, 1)?;
    Ok(TcpListener::from(socket))
}

/// Receives until the sender or the gate ends; `offer`: the most that it may offer, bytes, once that is told.
pub fn receive(flow: &Connection, listener: &TcpListener, offer: &AtomicU32, gate: &Gate) -> io::Result<()> {
    let Some(zero) = gate.wait() else { return Ok(()) };
    if !gate.sleep_until(zero + flow.start) {
        return Ok(());
    }
    while !wait_for(listener, PollFlags::IN)? {
        if gate.is_closed() {
            return Ok(());
        }
    }
    let (mut stream, _) = listener.accept()?;
    stream.set_nonblocking(true)?;
    let mut sink = vec![0; CHUNK];
    let (mut clamped, mut offered) = (Time::ZERO, 0);
    while !gate.is_closed() {
        let told = Some(offer.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0);
        let most = [flow.window, told].into_iter().flatten().min();
        // The kernel sets the clamp anew when it learns how much memory a segment costs.
        if let Some(most) = most.filter(|most| *most != offered || clock::now() >= clamped + SAMPLE * 10) {
            sys::set_window_clamp(&stream, most)?;
            (offered, clamped) = (most, clock::now());
        }
        match stream.read(&mut sink) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait_for(&stream, PollFlags::IN)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The sender stopped in the middle of the stream, as a user does.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Opens the sender's socket. Call it in the sender's namespace.
///
/// # Errors
/// The failed system call.
pub fn sender(flow: &Connection) -> io::Result<TcpStream> {
    let socket = new_socket()?;
    // Tried here, where a kernel without it can still be refused by name.
    set_congestion_control(&socket, flow)?;
    sys::set_max_segment(&socket, flow.mss)?;
    sys::set_unsent_limit(&socket, UNSENT)?;
    super::mark(&socket, flow.dscp)?;
    rustix::net::sockopt::set_socket_send_buffer_size_force(&socket, SEND_BUFFER)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(flow.source, FIRST_PORT + flow.flow))?;
    Ok(TcpStream::from(socket))
}

/// Connects at the flow's start and sends until its end.
///
/// # Errors
/// A connection that was refused or broke.
pub fn send(flow: &Connection, stream: TcpStream, supply: Supply, gate: &Gate) -> io::Result<Totals> {
    let mut totals = Totals { congestion: flow.course_of.map(Stretches::new), ..Totals::default() };
    let Some(zero) = gate.wait() else { return Ok(totals) };
    if !gate.sleep_until(zero + flow.start) {
        return Ok(totals);
    }
    let stop = zero + flow.stop;
    stream.set_nonblocking(true)?;
    let to = SocketAddrV4::new(flow.ends_at, FIRST_PORT + flow.flow);
    match rustix::net::connect(&stream, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    // Again: the route chose one for programs that do not.
    set_congestion_control(&stream, flow)?;
    while !wait_for(&stream, PollFlags::OUT)? {
        if gate.is_closed() || clock::now() >= stop {
            return Ok(totals);
        }
    }
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    let measure_from = zero + flow.measure_from;
    let before = TcpDetail::default();
    if let Supply::Stream(_) = supply {
        // What a frame ends with is sent at once; and without the right to it, frames arise a little later than scheduled.
        stream.set_nodelay(true)?;
        let _ = sys::set_realtime(PRIORITY);
    }
    let mut sending = Sending { stream, supply, zero, written: 0, measure_from, sampled: Time::ZERO, before };
    let outcome = sending.run(stop, gate, &mut totals);
    sending.sample(&mut totals)?;
    if outcome? {
        totals.completed = Some(clock::now().since(zero));
    } else {
        // Stops like a user who ends a download: what is still in the buffer must not be sent.
        rustix::net::sockopt::set_socket_linger(&sending.stream, Some(Duration::ZERO))?;
    }
    Ok(totals)
}

struct Sending {
    stream: TcpStream,
    supply: Supply,
    /// When the scenario started.
    zero: Time,
    /// Bytes.
    written: u64,
    measure_from: Time,
    sampled: Time,
    before: TcpDetail,
}

impl Sending {
    /// True when everything was delivered.
    fn run(&mut self, stop: Time, gate: &Gate, totals: &mut Totals) -> io::Result<bool> {
        let chunk = vec![0x5a; CHUNK];
        while !gate.is_closed() && clock::now() < stop {
            if clock::now() >= self.sampled + SAMPLE {
                self.sample(totals)?;
            }
            let left = match &mut self.supply {
                Supply::Endless => u64::MAX,
                Supply::Bytes(bytes) if self.written == *bytes => return self.finish(stop, gate, totals),
                Supply::Bytes(bytes) => *bytes - self.written,
                Supply::Stream(feed) => {
                    let now = clock::now();
                    let left = feed.given(Time::ZERO + now.since(self.zero)) - self.written;
                    if left == 0 {
                        let next = feed.next_deadline().map_or(stop, |at| self.zero + at.since(Time::ZERO));
                        clock::sleep_until(next.min(stop).min(now + SAMPLE));
                        continue;
                    }
                    left
                }
            };
            match self.stream.write(&chunk[..CHUNK.min(left as usize)]) {
                Ok(n) => self.written += n as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait_for(&self.stream, PollFlags::OUT)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Says that it was all, and waits until the receiver closes too.
    fn finish(&mut self, stop: Time, gate: &Gate, totals: &mut Totals) -> io::Result<bool> {
        self.stream.shutdown(std::net::Shutdown::Write)?;
        while !gate.is_closed() && clock::now() < stop {
            if wait_for(&self.stream, PollFlags::IN)? {
                self.sample(totals)?;
                return Ok(matches!(self.stream.read(&mut [0]), Ok(0)));
            }
        }
        Ok(false)
    }

    fn sample(&mut self, totals: &mut Totals) -> io::Result<()> {
        let detail = sys::tcp_detail(&self.stream)?;
        self.sampled = clock::now();
        let measured = self.sampled > self.measure_from;
        let stretch = if measured { &mut totals.metrics } else { &mut totals.start_up };
        stretch.add(&self.before, &detail);
        if let Some(congestion) = &mut totals.congestion {
            congestion.note(self.sampled.since(self.zero), f64::from(detail.cwnd) * f64::from(detail.mss));
        }
        self.before = detail;
        Ok(())
    }
}

fn new_socket() -> io::Result<std::os::fd::OwnedFd> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    Ok(socket)
}

fn set_congestion_control(socket: &impl std::os::fd::AsFd, flow: &Connection) -> io::Result<()> {
    let Some(name) = flow.congestion_control else { return Ok(()) };
    Ok(rustix::net::sockopt::set_tcp_congestion(socket, name.as_str())?)
}

fn bound_window(socket: &impl std::os::fd::AsFd, flow: &Connection) -> io::Result<()> {
    let Some(window) = flow.window else { return Ok(()) };
    // The buffer also holds the kernel's overhead per segment: room to spare, the clamp is the bound.
    rustix::net::sockopt::set_socket_recv_buffer_size_force(socket, (window as usize).saturating_mul(4).max(1 << 16))?;
    sys::set_window_clamp(socket, window)
}

/// Waits at most one sampling interval; whether the socket is ready.
fn wait_for(socket: &impl std::os::fd::AsFd, what: PollFlags) -> io::Result<bool> {
    let mut fds = [PollFd::new(socket, what)];
    let ready = rustix::io::retry_on_intr(|| poll(&mut fds, Some(&clock::timeout(SAMPLE))))?;
    Ok(ready > 0)
}

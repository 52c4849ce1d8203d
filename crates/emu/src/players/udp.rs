//! Open-loop flows of one host.

use super::Gate;
use super::PRIORITY;
use crate::clock;
use crate::observe::identify::{FIRST_PORT, MARK, UDP_HEADERS, mark};
use crate::sys;
use lasthop_core::dscp::Dscp;
use lasthop_core::units::{Span, Time};
use lasthop_home::traffic::Source;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

/// Bytes of a sink's buffer: it is never read.
const SINK_BUFFER: usize = 4096;
/// Largest payload under the MTU.
const LARGEST: usize = 1472;

/// One flow as its sender sees it.
pub struct Open {
    /// Index of the flow.
    pub flow: u16,
    /// Sender's address.
    pub source: Ipv4Addr,
    /// Receiver's address.
    pub destination: Ipv4Addr,
    /// When to send how much.
    pub schedule: Source,
    /// Code point of its packets.
    pub dscp: Dscp,
}

struct Sending {
    flow: u16,
    socket: UdpSocket,
    schedule: Source,
    seq: u32,
}

/// The flows of one host, with their sockets open.
pub struct Sender(Vec<Sending>);

/// Opens the receiving socket of a flow. Call it in the receiver's namespace.
///
/// # Errors
/// The failed system call.
pub fn sink(flow: u16, address: Ipv4Addr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(SocketAddrV4::new(address, FIRST_PORT + flow))?;
    rustix::net::sockopt::set_socket_recv_buffer_size(&socket, SINK_BUFFER)?;
    Ok(socket)
}

impl Sender {
    /// Opens a socket per flow. Call it in the sender's namespace.
    ///
    /// # Errors
    /// The failed system call.
    pub fn open(flows: Vec<Open>) -> io::Result<Self> {
        let open = |it: Open| {
            let port = FIRST_PORT + it.flow;
            let socket = UdpSocket::bind(SocketAddrV4::new(it.source, port))?;
            super::mark(&socket, it.dscp)?;
            socket.connect(SocketAddrV4::new(it.destination, port))?;
            // A full queue below is a loss of the network, not a reason to wait.
            socket.set_nonblocking(true)?;
            Ok(Sending { flow: it.flow, socket, schedule: it.schedule, seq: 0 })
        };
        flows.into_iter().map(open).collect::<io::Result<_>>().map(Self)
    }

    /// Sends by the schedules until they or the gate end.
    pub fn play(mut self, gate: &Gate) {
        // Without the right to it, packets leave a little later than scheduled.
        let _ = sys::set_realtime(PRIORITY);
        let Some(zero) = gate.wait() else { return };
        let mut due: BinaryHeap<Reverse<(Span, usize, u32)>> = BinaryHeap::new();
        for (index, flow) in self.0.iter_mut().enumerate() {
            due.extend(flow.schedule.next().map(|e| Reverse((e.at, index, e.bytes))));
        }
        let mut payload = [0_u8; LARGEST];
        while let Some(Reverse((at, index, bytes))) = due.pop() {
            if !gate.sleep_until(zero + at) {
                return;
            }
            let flow = &mut self.0[index];
            flow.send(&mut payload, bytes, zero);
            due.extend(flow.schedule.next().map(|e| Reverse((e.at, index, e.bytes))));
        }
    }
}

impl Sending {
    fn send(&mut self, payload: &mut [u8; LARGEST], ip_bytes: u32, zero: Time) {
        let len = (ip_bytes.saturating_sub(UDP_HEADERS) as usize).clamp(MARK, LARGEST);
        let sent_ns = clock::now().since(zero).as_nanos();
        payload[..MARK].copy_from_slice(&mark(self.flow, self.seq, sent_ns));
        self.seq = self.seq.wrapping_add(1);
        // What the host refuses was never handed to the network and is not counted as sent.
        let _ = self.socket.send(&payload[..len]);
    }
}

//! The per-packet half of the controller: what passes is measured, and windows come down to the plan.
//!
//! Integers on header fields only. Rust for hosts that carry the packets themselves (the simulator), restated in C for tc
//! (`crates/live/src/bpf/fastpath.h`), which shares the layouts of [`layout`] byte for byte.
//!
//! A segment changes something only if it fits what both ends have shown (`gate`).
//!
//! A packet in direction `e` is data of `half[e]` (`measure`) and, with ACK set, an acknowledgment for
//! `half[e.reverse()]`, whose sender its window holds back ([`window`]). A SYN teaches both halves (`handshake`), and its
//! window is what the other end may begin with (`hop`).
//!
//! Between ACKs the host may owe the sender window updates: [`window::due`] says when, [`window::update`] what.
//!
//! What becomes of a packet is decided in this order: no ACK, invalid, SYN, RST, authenticated, zero window, stale heartbeat,
//! scale unknown, no plan, and only then the law of [`window`]. Datagrams have a law of their own, [`udp`].

mod gate;
mod handshake;
mod hop;
pub mod light;
mod measure;
#[cfg(test)]
mod tests;
pub mod udp;
pub mod vectors;
pub mod window;

// Below headers too, which count by its reasons; for all others it belongs to the fast path.
pub use crate::layout;

use crate::packet::Direction;
use crate::units::{Span, Time};
use crate::wire::{Parsed, TcpFields, flag, protocol};
use layout::{Control, Counters, FlowState, HOPS, Half, Reason};

/// What to do with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Leave it as it is.
    Pass(Reason),
    /// Write this window, raw, before scaling.
    Rewrite {
        /// Always lower than what stands there, never 0.
        window: u16,
    },
}

impl Verdict {
    /// The reason that counts this verdict.
    #[must_use]
    pub const fn reason(self) -> Reason {
        match self {
            Self::Pass(reason) => reason,
            Self::Rewrite { .. } => Reason::Rewritten,
        }
    }
}

/// Direction in which a packet crosses the access point.
#[derive(Clone, Copy, Debug)]
pub struct Passage {
    /// To stations, or from them.
    pub direction: Direction,
    /// The port that it crossed last, as in [`FlowState::port`].
    pub port: u32,
    /// The hop that it crossed last, as in [`FlowState::hop`].
    pub hop: u32,
}

/// Measures a segment that crosses the access point, and decides on its window. One that is [`Reason::Invalid`] changes nothing.
pub fn on_packet(
    state: &mut FlowState,
    control: &mut Control,
    passage: Passage,
    tcp: &TcpFields,
    now: Time,
) -> Verdict {
    let Passage { direction, port, hop } = passage;
    if !gate::is_taken(tcp) {
        return Verdict::Pass(Reason::NoAck);
    }
    if !gate::fits(state, direction, tcp, now) {
        return Verdict::Pass(Reason::Invalid);
    }
    state.last_seen_ns = now.as_nanos();
    (state.port, state.hop) = (port, hop);
    let hop = hop as usize % HOPS;
    let [to_station, to_remote] = &mut state.half;
    let (data, acked) = match direction {
        Direction::ToStation => (to_station, to_remote),
        Direction::ToRemote => (to_remote, to_station),
    };
    if state.assured == 0 && gate::assures(acked, tcp) {
        state.assured = 1;
    }
    let repeated_syn = tcp.has(flag::SYN) && handshake::begin(data, acked, tcp);
    if tcp.has(flag::SYN) && !tcp.has(flag::ACK) {
        state.first_seen_ns = now.as_nanos();
    }
    let before = (acked.flags & Half::EDGE_KNOWN != 0).then_some((acked.delivered, acked.waiting, acked.acked_ns));
    let heard = tcp.has(flag::SYN) || gate::is_heard(data, tcp);
    // A train of one who may not be there says nothing of the hop.
    let train = (state.assured != 0).then_some(&mut control.hops[hop][direction.index()]);
    measure::data(data, acked.rtt.last_ns, (control.epoch, control.tick_ns), train, tcp, now, repeated_syn);
    if tcp.has(flag::ACK) && heard {
        measure::acknowledgment(acked, control.epoch, tcp, now);
    }
    let verdict = if tcp.has(flag::SYN) {
        let verdict = begin(control, (hop, direction.reverse()), tcp, handshake::advertised(acked, tcp.ack), now);
        handshake::learn(data, acked, tcp, verdict);
        verdict
    } else if !heard {
        return Verdict::Pass(Reason::WithinPlan);
    } else {
        decide(acked, control, (hop, direction.reverse()), tcp, now)
    };
    if let Some((delivered, waiting, acked_ns)) = before {
        let rtt_ns = u64::from(acked.rtt.last_ns) + u64::from(data.rtt.last_ns);
        let newly = acked.delivered.wrapping_sub(delivered);
        let acknowledged = &mut control.hops[hop][direction.reverse().index()];
        hop::served(acknowledged, (newly, waiting), now.as_nanos().saturating_sub(acked_ns), rtt_ns, now);
        if direction == Direction::ToRemote {
            hop::brought(acknowledged, newly, now);
        }
    }
    if direction == Direction::ToRemote && state.assured != 0 {
        hop::brought(&mut control.hops[hop][direction.index()], tcp.payload_bytes, now);
    }
    measure::on_advertised(acked, data.rtt.last_ns, tcp, verdict, now);
    verdict
}

/// Of a SYN: hop and direction are those of the data it lets through, `before` what it advertised when it was sent before; 0: nothing.
fn begin(control: &mut Control, way: (usize, Direction), tcp: &TcpFields, before: u32, now: Time) -> Verdict {
    let offered = u32::from(tcp.window);
    let window = match before {
        _ if tcp.authenticated || is_stale(control, now) => None,
        0 => hop::start(control, way, offered, now),
        before => Some(before),
    };
    match window.filter(|window| *window < offered) {
        None => Verdict::Pass(Reason::Syn),
        Some(_) if control.dry_run != 0 => Verdict::Pass(Reason::WouldRewrite),
        Some(window) => Verdict::Rewrite { window: window as u16 },
    }
}

fn is_stale(control: &Control, now: Time) -> bool {
    now.since(Time::from_nanos(control.heartbeat_ns)) > Span::from_nanos(Control::STALE_NS)
}

fn decide(
    half: &mut Half,
    control: &Control,
    (hop, direction): (usize, Direction),
    tcp: &TcpFields,
    now: Time,
) -> Verdict {
    if tcp.has(flag::RST) {
        return Verdict::Pass(Reason::Rst);
    }
    let stale = is_stale(control, now);
    let left_alone = match (tcp.authenticated, stale) {
        (true, _) => Some(Reason::Authenticated),
        (false, true) => Some(Reason::Stale),
        (false, false) => None,
    };
    let Some(scale) = half.known_scale() else {
        return Verdict::Pass(match (tcp.window, left_alone) {
            (_, Some(Reason::Authenticated)) => Reason::Authenticated,
            (0, _) => Reason::ZeroWindow,
            (_, Some(reason)) => reason,
            (_, None) => Reason::ScaleUnknown,
        });
    };
    let updates = control.hops[hop][direction.index()].updates;
    let silent = control.silent_ns != 0 && now.as_nanos() > control.silent_ns;
    let mode = window::Mode { left_alone, silent, dry_run: control.dry_run != 0, updates };
    window::clamp(half, tcp, scale, mode, now)
}

/// Counts a packet and what it carried over which of [`Control::hops`].
pub fn count(counters: &mut Counters, hop: u32, direction: Direction, parsed: &Parsed, reason: Reason) {
    let d = direction.index();
    let bytes = u64::from(parsed.ip_bytes());
    counters.reason[reason as usize] += 1;
    if reason == Reason::UdpDropped {
        return;
    }
    let hop = &mut counters.hops[hop as usize % HOPS];
    counters.packets[d] += u64::from(parsed.segments());
    counters.ip_bytes[d] += bytes;
    hop.ip_bytes[d] += bytes;
    match parsed.protocol() {
        protocol::TCP => counters.tcp_bytes[d] += bytes,
        protocol::UDP => {
            let segments = u64::from(parsed.segments());
            counters.udp_bytes[d] += bytes;
            counters.udp_packets[d] += segments;
            hop.udp_bytes[d] += bytes;
            hop.udp_packets[d] += segments;
        }
        _ => {}
    }
}

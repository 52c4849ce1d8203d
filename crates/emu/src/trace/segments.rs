//! From what happened to segments to lines: which connection, which numbers, which window, which answer.
//!
//! A segment is known again at the end of its way by its numbers and timestamps; the access point changes neither.
//! Numbers are relative to those of the SYNs, and windows scaled by what the SYNs say, so connections whose beginning
//! was not seen are left out and counted.

use super::line::Line;
use super::{Event, What, address, host};
use crate::address::AddressPlan;
use crate::network::LostAt;
use crate::observe::identify::FIRST_PORT;
use lasthop_core::units::{Span, Time};
use lasthop_core::wire::{Endpoint, TcpFields, flag};
use lasthop_home::scenario::{HostId, Scenario};
use std::collections::{HashMap, VecDeque};

/// Most connections remembered; then the one that was silent for longest is forgotten.
const CONNECTIONS: usize = 4096;
/// Most segments of one direction remembered in flight, and likewise delivered and not acknowledged.
const SEGMENTS: usize = 1 << 14;
/// How long a segment is remembered that neither arrives nor is lost: it vanished inside a kernel.
const LONGEST_DELAY: Span = Span::from_secs(60);

/// What a trace lacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Events for which the engine found no room.
    pub missed: u64,
    /// Segments of connections whose beginning was not seen.
    pub unknown: u64,
    /// Segments forgotten in flight.
    pub forgotten: u64,
    /// Segments that arrived and were not seen sent: copies of the access point's.
    pub copies: u64,
}

/// All connections.
#[derive(Debug)]
pub struct Segments {
    plan: AddressPlan,
    hosts: HashMap<HostId, String>,
    flows: Vec<String>,
    connections: HashMap<(Endpoint, Endpoint), Connection>,
    counters: Counters,
}

/// `ends[0]` is the station's.
#[derive(Debug)]
struct Connection {
    name: String,
    flow: Option<String>,
    ends: [End; 2],
    touched: Time,
}

/// One end: what it sent, and what reached it.
#[derive(Debug, Default)]
struct End {
    /// Number of its SYN, once it was seen.
    first: Option<u32>,
    /// Window scale it announced.
    scale: Option<u8>,
    /// Highest relative number it sent, and acknowledged; near them the next ones are looked for.
    sent_to: u64,
    acked_to: u64,
    window: u64,
    /// Its segments that are in flight, in the order of their sending.
    in_flight: VecDeque<(Mark, Time, Line)>,
    /// Data that reached it and that it has not acknowledged: number of the byte behind it, when.
    unanswered: VecDeque<(u64, Time)>,
}

impl End {
    /// Data up to `byte` reached it.
    fn on_data(&mut self, byte: u64, at: Time) {
        if byte > self.acked_to && !self.unanswered.iter().any(|(other, _)| *other == byte) {
            self.unanswered.push_back((byte, at));
        }
    }

    /// It acknowledges everything before `ack`: how many segments for the first time, and when the last of them came.
    fn acknowledge(&mut self, ack: u64) -> (u32, Option<Time>) {
        self.acked_to = self.acked_to.max(ack);
        let (mut count, mut last) = (0, None);
        self.unanswered.retain(|(byte, at)| {
            let is_answered = *byte <= ack;
            if is_answered {
                count += 1;
                last = last.max(Some(*at));
            }
            !is_answered
        });
        (count, last)
    }

    /// Finds a segment that is in flight.
    fn take(&mut self, tcp: &TcpFields) -> Option<(Time, Line)> {
        let at = self.in_flight.iter().position(|(other, ..)| *other == mark(tcp))?;
        self.in_flight.remove(at).map(|(_, at, line)| (at, line))
    }
}

/// What a segment is known again by: numbers, payload, flags, timestamps.
type Mark = (u32, u32, u32, u8, Option<(u32, u32)>);

fn mark(tcp: &TcpFields) -> Mark {
    (tcp.seq, tcp.ack, tcp.payload_bytes, tcp.flags, tcp.timestamps)
}

/// The flags that change what a connection is at.
fn flags(tcp: &TcpFields) -> Option<String> {
    let names = [(flag::SYN, "SYN"), (flag::FIN, "FIN"), (flag::RST, "RST")];
    let set: Vec<&str> = names.iter().filter(|(bit, _)| tcp.has(*bit)).map(|(_, name)| *name).collect();
    (!set.is_empty()).then(|| set.join("+"))
}

/// The relative number of `number` that is nearest to `near`.
fn unwrap(number: u32, first: u32, near: u64) -> u64 {
    let step = number.wrapping_sub(first).wrapping_sub(near as u32).cast_signed();
    near.saturating_add_signed(step.into())
}

impl Segments {
    /// For the connections of a home.
    #[must_use]
    pub fn new(scenario: &Scenario, plan: AddressPlan) -> Self {
        let servers = (0..plan.servers).map(HostId::Server);
        let hosts = servers.chain((0..plan.stations).map(HostId::Station)).chain([HostId::AccessPoint]);
        Self {
            plan,
            hosts: hosts.map(|id| (id, scenario.host_name(id).to_owned())).collect(),
            flows: scenario.flows.iter().map(|flow| flow.name.clone()).collect(),
            connections: HashMap::new(),
            counters: Counters::default(),
        }
    }

    /// The name of the scenario's flow number `flow`.
    #[must_use]
    pub fn flow(&self, flow: u16) -> &str {
        self.flows.get(usize::from(flow)).map_or("", String::as_str)
    }

    /// What was left out so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The line of a segment whose way is over.
    pub fn on_event(&mut self, event: &Event) -> Option<Line> {
        let (key, from) = self.key(&event.tcp);
        if event.what == What::Sent && event.tcp.has(flag::SYN) {
            self.begin(key, from, event);
        }
        // A refusal is all that its sender ever says.
        if event.what == What::Sent
            && event.tcp.has(flag::RST)
            && let Some(connection) = self.connections.get_mut(&key)
        {
            connection.ends[from].first.get_or_insert(event.tcp.seq);
        }
        let Some(connection) = self.connections.get_mut(&key).filter(|it| it.ends[from].first.is_some()) else {
            self.counters.unknown += u64::from(event.what == What::Sent);
            return None;
        };
        connection.touched = event.at;
        self.counters.forgotten += connection.forget(event.at);
        match event.what {
            What::Sent => {
                connection.on_sent(from, event.at, &event.tcp);
                None
            }
            What::Delivered => {
                let line = connection.on_delivered(from, event.at, &event.tcp);
                self.counters.copies += u64::from(line.is_none());
                line
            }
            What::Lost(place) => connection.ends[from].take(&event.tcp).map(|(_, line)| Line {
                lost: Some(match place {
                    LostAt::Channel => "channel",
                    LostAt::ApQueue => "ap_queue",
                    LostAt::StationQueue => "station_queue",
                    LostAt::Wired => "wired",
                }),
                ..line
            }),
        }
    }

    /// Both ends, the station's first, and which of them sent the segment.
    fn key(&self, tcp: &TcpFields) -> ((Endpoint, Endpoint), usize) {
        let is_station = |end| matches!(host(&self.plan, end), Some(HostId::Station(_)));
        let from_first = match (is_station(&tcp.source), is_station(&tcp.destination)) {
            (true, false) => true,
            (false, true) => false,
            _ => tcp.source < tcp.destination,
        };
        match from_first {
            true => ((tcp.source, tcp.destination), 0),
            false => ((tcp.destination, tcp.source), 1),
        }
    }

    /// A SYN: the beginning of a connection, or of its other direction, or one of them again.
    fn begin(&mut self, key: (Endpoint, Endpoint), from: usize, event: &Event) {
        let tcp = &event.tcp;
        let known = self.connections.get(&key);
        let is_new = known.is_none_or(|it| it.ends[from].first.is_some_and(|first| first != tcp.seq));
        if is_new {
            self.make_room();
            let fresh = self.connection(key, event.at);
            self.connections.insert(key, fresh);
        }
        if let Some(connection) = self.connections.get_mut(&key) {
            let end = &mut connection.ends[from];
            (end.first, end.scale) = (Some(tcp.seq), tcp.window_scale);
        }
    }

    fn make_room(&mut self) {
        if self.connections.len() >= CONNECTIONS
            && let Some((&oldest, _)) = self.connections.iter().min_by_key(|(_, it)| it.touched)
        {
            self.connections.remove(&oldest);
        }
    }

    fn connection(&self, (one, other): (Endpoint, Endpoint), touched: Time) -> Connection {
        let name = |end: &Endpoint| match host(&self.plan, end).and_then(|id| self.hosts.get(&id)) {
            Some(host) => format!("{host}:{}", end.port),
            None => format!("{}:{}", address(end), end.port),
        };
        let index = one.port.checked_sub(FIRST_PORT).filter(|_| one.port == other.port);
        let flow = index.and_then(|index| self.flows.get(usize::from(index)).cloned());
        Connection { name: format!("{} {}", name(&one), name(&other)), flow, ends: Default::default(), touched }
    }
}

impl Connection {
    fn on_sent(&mut self, from: usize, at: Time, tcp: &TcpFields) {
        let window = self.window(from, tcp);
        let peer = self.ends[1 - from].first;
        let end = &mut self.ends[from];
        let seq = unwrap(tcp.seq, end.first.unwrap_or(tcp.seq), end.sent_to);
        let sent_to = seq + u64::from(tcp.sequence_length());
        let ack = peer.filter(|_| tcp.has(flag::ACK)).map(|first| unwrap(tcp.ack, first, end.acked_to));
        let is_plain = tcp.payload_bytes == 0 && !tcp.has(flag::SYN | flag::FIN | flag::RST);
        let opens = window > end.window && ack == Some(end.acked_to) && tcp.sack_high.is_none();
        let (acked_segments, last_arrival) = end.acknowledge(ack.unwrap_or(0));
        let line = Line {
            t_s: at.since(Time::ZERO).as_secs_f64(),
            connection: self.name.clone(),
            flow: self.flow.clone(),
            direction: if from == 0 { "up" } else { "down" },
            flags: flags(tcp),
            seq,
            ack,
            bytes: tcp.payload_bytes,
            offered_window: window,
            retransmitted: tcp.payload_bytes > 0 && sent_to <= end.sent_to,
            window_update: is_plain && opens,
            ack_ms: last_arrival.map(|arrival| at.since(arrival).as_millis_f64()),
            acked_segments,
            ..Line::default()
        };
        end.sent_to = end.sent_to.max(sent_to);
        end.window = window;
        end.in_flight.push_back((mark(tcp), at, line));
    }

    /// Makes room, and says how much was thrown away.
    fn forget(&mut self, now: Time) -> u64 {
        let mut forgotten = 0;
        for end in &mut self.ends {
            let in_flight = &mut end.in_flight;
            while in_flight.len() >= SEGMENTS
                || in_flight.front().is_some_and(|(_, at, _)| now.since(*at) > LONGEST_DELAY)
            {
                in_flight.pop_front();
                forgotten += 1;
            }
            if end.unanswered.len() >= SEGMENTS {
                end.unanswered.pop_front();
                forgotten += 1;
            }
        }
        forgotten
    }

    /// `None`: nobody was seen sending it.
    fn on_delivered(&mut self, from: usize, at: Time, tcp: &TcpFields) -> Option<Line> {
        let read = self.window(from, tcp);
        let (first, sent_to) = (self.ends[from].first.unwrap_or(tcp.seq), self.ends[from].sent_to);
        if tcp.payload_bytes > 0 {
            let end = unwrap(tcp.seq, first, sent_to) + u64::from(tcp.payload_bytes);
            self.ends[1 - from].on_data(end, at);
        }
        let (sent, line) = self.ends[from].take(tcp)?;
        Some(Line {
            clamped_window: Some(read).filter(|read| *read != line.offered_window),
            data_ms: (tcp.payload_bytes > 0).then(|| at.since(sent).as_millis_f64()),
            ..line
        })
    }

    /// The window of a segment in bytes: scaled, when both SYNs say how (RFC 7323).
    fn window(&self, from: usize, tcp: &TcpFields) -> u64 {
        let scale = match (self.ends[from].scale, self.ends[1 - from].scale) {
            (Some(own), Some(_)) if !tcp.has(flag::SYN) => own,
            _ => 0,
        };
        u64::from(tcp.window) << scale
    }
}

#[cfg(test)]
mod tests;

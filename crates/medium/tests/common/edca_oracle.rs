//! EDCA with aggregates in the plainest form: every node looks at the medium every microsecond, and every class decides at its
//! slot boundaries what the standard lets it decide there: send, count, or give way to a higher class. Packets have sequence
//! numbers, senders a list of what is not acknowledged, receivers a set of what waits for its order. Slow, and written
//! from the standard's rules; only how random numbers are drawn is agreed with the model.
//!
//! All times of the cells compared are whole microseconds: 802.11n with the long guard interval at 5 GHz.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lasthop_core::packet::AccessCategory;
use lasthop_medium::phy::{ACK_BYTES, Phy, RTS_BYTES};
use lasthop_medium::random::Stream;
use lasthop_medium::{
    Ampdu, DropPlace, EdcaClass, Event, Loss, MediumParams, MissedBlockAck, NodeId, Rate, StationParams,
};

use super::{Classed, us};

const SLOT: u64 = 9;
const SIFS: u64 = 16;

#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub at_us: u64,
    pub from: u16,
    pub to: u16,
    pub packet: Classed,
}

/// A packet at its sender.
#[derive(Clone, Debug)]
struct Held {
    sequence: u64,
    packet: Classed,
    attempts: u32,
    was_sent: bool,
    came: u64,
}

/// One sender, receiver and class.
struct Flow {
    to: u16,
    next_sequence: u64,
    held: VecDeque<Held>,
    /// The receiver's: arrived, not handed on.
    buffer: BTreeMap<u64, Classed>,
    /// The receiver's: arrived ever.
    arrived: BTreeSet<u64>,
    /// The receiver's: the next to be handed on.
    expects: u64,
    /// Given up by the sender.
    skipped: BTreeSet<u64>,
    asks: bool,
    requests: u32,
    losses: Stream,
    left: f64,
}

/// What a class has on the way.
#[derive(Clone, Debug)]
struct Sent {
    flow: usize,
    sequences: Vec<u64>,
    /// Of these, those that arrive for the first time.
    fresh: Vec<u64>,
    request: bool,
    has_data: bool,
}

struct Class {
    params: EdcaClass,
    cw: u64,
    counter: u64,
    draws: Stream,
    contends: bool,
    sent: Option<Sent>,
    txop_end: u64,
}

struct Node {
    qos: bool,
    classes: Vec<Class>,
    /// AIFS counts from here, what NAV and time-outs say included.
    base: u64,
    nav: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Arrive,
    Settle { answered: bool },
}

pub struct Oracle {
    params: MediumParams,
    stations: Vec<StationParams>,
    phy: Phy,
    seed: u64,
    nodes: Vec<Node>,
    /// By sender, receiver, class.
    flows: BTreeMap<(u16, u16, u16), usize>,
    all_flows: Vec<Flow>,
    /// Time, contender, what.
    agenda: BTreeSet<(u64, u16, Happens)>,
    busy_until: u64,
    channel: Stream,
    came: u64,
    pub events: Vec<Event<Classed>>,
}

fn micros(span: lasthop_core::units::Span) -> u64 {
    assert_eq!(span.as_nanos() % 1000, 0, "the oracle steps whole microseconds");
    span.as_nanos() / 1000
}

impl Oracle {
    pub fn new(params: &MediumParams, stations: &[StationParams], seed: u64) -> Self {
        let phy = params.phy(stations);
        let node = |number: u16, qos: bool, edca: [EdcaClass; 4]| Node {
            qos,
            classes: (0..4)
                .map(|class| Class {
                    params: edca[usize::from(class)],
                    cw: u64::from(edca[usize::from(class)].cw_min),
                    counter: 0,
                    draws: Stream::named(seed, &format!("wifi.edca.backoff.{}", 4 * number + class)),
                    contends: false,
                    sent: None,
                    txop_end: 0,
                })
                .collect(),
            base: 0,
            nav: 0,
        };
        let mut nodes = vec![node(0, true, params.edca)];
        for (number, station) in (1..).zip(stations) {
            let qos = station.standard.has_classes();
            nodes.push(node(number, qos, if qos { station.edca } else { [EdcaClass::dcf(15); 4] }));
        }
        Self {
            params: params.clone(),
            stations: stations.to_vec(),
            phy,
            seed,
            nodes,
            flows: BTreeMap::new(),
            all_flows: Vec::new(),
            agenda: BTreeSet::new(),
            busy_until: 0,
            channel: Stream::named(seed, "wifi.edca.channel"),
            came: 0,
            events: Vec::new(),
        }
    }

    pub fn run(&mut self, arrivals: &[Arrival], until_us: u64) {
        let mut arrivals = arrivals.iter().peekable();
        for now in 0..=until_us {
            while let Some(first) = self.agenda.first().copied().filter(|(at, ..)| *at == now) {
                self.agenda.remove(&first);
                match first.2 {
                    Happens::Arrive => self.arrived(now, first.1),
                    Happens::Settle { answered } => self.settle(now, first.1, answered),
                }
            }
            self.look(now);
            while let Some(arrival) = arrivals.next_if(|a| a.at_us == now) {
                self.arrive(now, arrival);
            }
        }
    }

    /// Every class of every node looks at the medium.
    fn look(&mut self, now: u64) {
        if now < self.busy_until {
            return;
        }
        let mut senders = Vec::new();
        for (number, node) in (0u16..).zip(&mut self.nodes) {
            let Some(idle) = now.checked_sub(node.base) else { continue };
            for (index, class) in (0u16..).zip(&mut node.classes) {
                let aifs = u64::from(class.params.aifsn) * SLOT;
                if idle < aifs {
                    continue;
                }
                let at_boundary = (idle - aifs).is_multiple_of(SLOT);
                if node.qos {
                    if at_boundary && class.contends && class.counter == 0 {
                        senders.push(4 * number + index);
                    } else if at_boundary {
                        class.counter = class.counter.saturating_sub(1);
                    }
                } else {
                    if at_boundary && idle > aifs {
                        class.counter = class.counter.saturating_sub(1);
                    }
                    if class.contends && class.counter == 0 {
                        senders.push(4 * number + index);
                    }
                }
            }
        }
        self.start(now, &senders);
    }

    fn start(&mut self, now: u64, ready: &[u16]) {
        let mut senders: Vec<u16> = Vec::new();
        for contender in ready {
            if senders.last().is_some_and(|first| first / 4 == contender / 4) {
                self.give_way(*contender);
            } else {
                senders.push(*contender);
            }
        }
        for contender in &senders {
            let class = self.class(*contender);
            (class.contends, class.txop_end) = (false, now + micros(class.params.txop_limit));
        }
        match senders[..] {
            [] => {}
            [sender] => self.exchange(now, sender, true),
            _ => self.collision(now, &senders),
        }
    }

    fn class(&mut self, contender: u16) -> &mut Class {
        &mut self.nodes[usize::from(contender / 4)].classes[usize::from(contender % 4)]
    }

    /// An internal collision.
    fn give_way(&mut self, contender: u16) {
        let flow = self.next_flow(contender).expect("it contends");
        self.all_flows[flow].held[0].attempts += 1;
        let class = self.class(contender);
        class.cw = (2 * class.cw + 1).min(u64::from(class.params.cw_max));
        class.counter = class.draws.below(class.cw + 1);
    }

    /// Whose packet is the oldest.
    fn next_flow(&self, contender: u16) -> Option<usize> {
        let of = self.flows.iter().filter(|((from, _, class), _)| *from == contender / 4 && *class == contender % 4);
        of.map(|(_, flow)| *flow)
            .filter(|flow| !self.all_flows[*flow].held.is_empty())
            .min_by_key(|flow| self.all_flows[*flow].held[0].came)
    }

    fn rate(&self, from: u16, to: u16) -> Rate {
        self.stations[usize::from(from.max(to)) - 1].rate
    }

    fn ampdu(&self, contender: u16, to: u16) -> Option<Ampdu> {
        let node = contender / 4;
        let station = &self.stations[usize::from(node.max(to)) - 1];
        let aggregates = self.nodes[usize::from(node)].classes[usize::from(contender % 4)].params.aggregates;
        station.ampdu.filter(|_| aggregates && station.standard.has_classes())
    }

    fn header(&self, from: u16, to: u16) -> u32 {
        if self.stations[usize::from(from.max(to)) - 1].standard.has_classes() { 38 } else { 36 }
    }

    fn control(&self, from: u16, to: u16, bytes: u32) -> u64 {
        micros(self.phy.duration(self.phy.control(self.rate(from, to)), bytes))
    }

    /// The next frame: what it is, bytes, whether a block ack answers.
    fn compose(&self, now: u64, contender: u16) -> (Sent, u32, bool) {
        let flow = self.next_flow(contender).expect("it has something");
        let to = self.all_flows[flow].to;
        let from = contender / 4;
        if self.all_flows[flow].asks {
            return (Sent { flow, sequences: Vec::new(), fresh: Vec::new(), request: true, has_data: false }, 24, true);
        }
        let rate = self.rate(from, to);
        let header = self.header(from, to);
        let held = &self.all_flows[flow].held;
        let ampdu = self.ampdu(contender, to);
        let class = &self.nodes[usize::from(from)].classes[usize::from(contender % 4)];
        let mut sequences = vec![held[0].sequence];
        let mut bytes = header + held[0].packet.bytes;
        if let Some(ampdu) = ampdu {
            let block_ack = self.control(from, to, if ampdu.window > 64 { 56 } else { 32 });
            let mut whole = bytes + 4;
            for next in held.iter().skip(1) {
                let longer = whole.div_ceil(4) * 4 + 4 + header + next.packet.bytes;
                let time = micros(self.phy.duration(rate, longer));
                let in_txop =
                    class.params.txop_limit.as_nanos() == 0 || now + time + SIFS + block_ack <= class.txop_end;
                let in_window = next.sequence < held[0].sequence + u64::from(ampdu.window);
                if sequences.len() >= usize::from(ampdu.packets) || !in_window {
                    break;
                }
                if longer > ampdu.bytes || time > micros(ampdu.time) || !in_txop {
                    break;
                }
                sequences.push(next.sequence);
                whole = longer;
                bytes = longer;
            }
        }
        let several = sequences.len() > 1;
        (Sent { flow, sequences, fresh: Vec::new(), request: false, has_data: false }, bytes, several)
    }

    fn exchange(&mut self, now: u64, contender: u16, opens: bool) {
        let (mut sent, bytes, by_block_ack) = self.compose(now, contender);
        let (from, to) = (contender / 4, self.all_flows[sent.flow].to);
        let window = self.ampdu(contender, to).map_or(1, |ampdu| ampdu.window);
        let block_ack = if window > 64 { 56 } else { 32 };
        let answer = self.control(from, to, if by_block_ack { block_ack } else { ACK_BYTES });
        let cts = self.control(from, to, ACK_BYTES);
        let data = if sent.request {
            self.control(from, to, 24)
        } else {
            micros(self.phy.duration(self.rate(from, to), bytes))
        };
        let timeout = SIFS + SLOT + 20;
        let undecoded = SIFS + micros(self.phy.duration(Rate::OFDM_6, ACK_BYTES)) + SIFS;
        let (there, back) = self.frame_losses(from, to);
        let rts = opens && self.uses_rts(&sent, bytes);
        let mut at = now;
        if rts {
            let rts_end = now + self.control(from, to, RTS_BYTES);
            if self.lost(there) {
                // NAV of an RTS that nothing follows: 2 SIFS, CTS, preamble, 2 slots.
                let nav = rts_end + 2 * SIFS + cts + 20 + 2 * SLOT;
                self.fails(contender, sent, rts_end + timeout);
                return self.after(
                    rts_end,
                    nav,
                    &[(from, rts_end + timeout + SIFS, rts_end + timeout), (to, rts_end + undecoded, 0)],
                );
            }
            let cts_end = rts_end + SIFS + cts;
            let nav = cts_end + SIFS + data + SIFS + answer;
            if self.lost(back) {
                let settled = cts_end.max(rts_end + timeout);
                self.fails(contender, sent, settled);
                return self.after(cts_end, nav, &[(from, cts_end + undecoded, settled), (to, cts_end + SIFS, 0)]);
            }
            at = cts_end + SIFS;
        }
        let data_end = at + data;
        let end = data_end + SIFS + answer;
        sent.has_data = !sent.request;
        self.mark_sent(&sent);
        let any = !self.lost(there) && self.receive(&mut sent);
        if !any {
            self.fails(contender, sent, data_end + timeout);
            let own = [(from, data_end + timeout + SIFS, data_end + timeout), (to, data_end + undecoded, 0)];
            return self.after(data_end, end, &own);
        }
        self.class(contender).sent = Some(sent);
        self.agenda.insert((data_end, contender, Happens::Arrive));
        if self.lost(back) {
            let settled = end.max(data_end + timeout);
            self.agenda.insert((settled, contender, Happens::Settle { answered: false }));
            return self.after(end, end, &[(from, end + undecoded, settled), (to, end + SIFS, 0)]);
        }
        self.agenda.insert((end, contender, Happens::Settle { answered: true }));
        self.after(end, 0, &[]);
    }

    fn uses_rts(&self, sent: &Sent, bytes: u32) -> bool {
        let aggregate = sent.sequences.len() > 1 && self.params.rts_for_aggregates;
        !sent.request && (aggregate || bytes > self.params.rts_threshold)
    }

    fn fails(&mut self, contender: u16, sent: Sent, settled: u64) {
        self.class(contender).sent = Some(sent);
        self.agenda.insert((settled, contender, Happens::Settle { answered: false }));
    }

    /// Frames are on the channel until `end`; then all count from a SIFS later, or from the end of a NAV, those in `own` (base,
    /// deaf until) from their own times.
    fn after(&mut self, end: u64, nav: u64, own: &[(u16, u64, u64)]) {
        self.busy_until = end;
        for (number, node) in (0u16..).zip(&mut self.nodes) {
            let base = match own.iter().find(|(of, ..)| *of == number) {
                Some((_, base, deaf)) => {
                    node.nav = node.nav.max(*deaf);
                    *base
                }
                None => {
                    node.nav = node.nav.max(nav);
                    end + SIFS
                }
            };
            node.base = base.max(if node.nav > 0 { node.nav + SIFS } else { 0 });
        }
    }

    fn collision(&mut self, now: u64, senders: &[u16]) {
        let timeout = SIFS + SLOT + 20;
        let undecoded = SIFS + micros(self.phy.duration(Rate::OFDM_6, ACK_BYTES)) + SIFS;
        let mut ends = Vec::new();
        for contender in senders {
            let (mut sent, bytes, _) = self.compose(now, *contender);
            let (from, to) = (contender / 4, self.all_flows[sent.flow].to);
            let rts = self.uses_rts(&sent, bytes);
            let first = if rts {
                self.control(from, to, RTS_BYTES)
            } else if sent.request {
                self.control(from, to, 24)
            } else {
                micros(self.phy.duration(self.rate(from, to), bytes))
            };
            sent.has_data = !rts && !sent.request;
            if sent.has_data {
                self.mark_sent(&sent);
            }
            self.fails(*contender, sent, now + first + timeout);
            ends.push((from, now + first));
        }
        let last = ends.iter().map(|(_, end)| *end).max().unwrap_or(now);
        self.busy_until = last;
        for (number, node) in (0u16..).zip(&mut self.nodes) {
            let base = match ends.iter().find(|(of, _)| *of == number) {
                Some((_, end)) => {
                    node.nav = node.nav.max(end + timeout);
                    last.max(end + timeout) + SIFS
                }
                None => last + undecoded,
            };
            node.base = base.max(if node.nav > 0 { node.nav + SIFS } else { 0 });
        }
    }

    fn frame_losses(&self, from: u16, to: u16) -> (f64, f64) {
        let Loss::Shadowing { .. } = self.params.loss else { return (0.0, 0.0) };
        let station = &self.stations[usize::from(from.max(to)) - 1];
        let p = |power| self.params.radio.loss_probability(self.params.loss, power, station.distance_m);
        let (up, down) = (p(station.power_w), p(self.params.power_w));
        if from == 0 { (down, up) } else { (up, down) }
    }

    fn lost(&mut self, p: f64) -> bool {
        p > 0.0 && self.channel.chance(p)
    }

    fn mark_sent(&mut self, sent: &Sent) {
        for held in &mut self.all_flows[sent.flow].held {
            held.was_sent |= sent.sequences.contains(&held.sequence);
        }
    }

    /// Which MPDUs arrive; whether any does.
    fn receive(&mut self, sent: &mut Sent) -> bool {
        if sent.request {
            return true;
        }
        let hazard = match self.params.loss {
            Loss::Fixed { rate } => -(-rate).ln_1p(),
            _ => 0.0,
        };
        let flow = &mut self.all_flows[sent.flow];
        let mut any = false;
        for sequence in &sent.sequences {
            if hazard > 0.0 {
                flow.left -= hazard;
                if flow.left <= 0.0 {
                    flow.left = flow.losses.exponential(1.0);
                    continue;
                }
            }
            any = true;
            if flow.arrived.insert(*sequence) {
                sent.fresh.push(*sequence);
                let held = flow.held.iter().find(|held| held.sequence == *sequence).expect("it is sent");
                flow.buffer.insert(*sequence, held.packet);
            }
        }
        any
    }

    /// A data frame ends.
    fn arrived(&mut self, now: u64, contender: u16) {
        let sent = self.class(contender).sent.clone().expect("it sends");
        if !sent.request {
            self.hand_on(now, contender / 4, sent.flow);
        }
    }

    fn hand_on(&mut self, now: u64, from: u16, flow: usize) {
        let flow = &mut self.all_flows[flow];
        loop {
            if let Some(packet) = flow.buffer.remove(&flow.expects) {
                let (from, to) = (NodeId(from), NodeId(flow.to));
                self.events.push(Event::Delivered { at: us(now), from, to, packet });
            } else if !flow.skipped.contains(&flow.expects) {
                return;
            }
            flow.expects += 1;
        }
    }

    fn attempts(&self, contender: u16, packet: &Classed) -> u32 {
        let class = &self.nodes[usize::from(contender / 4)].classes[usize::from(contender % 4)];
        class.params.attempts.unwrap_or_else(|| {
            let short = packet.bytes + 36 <= self.params.rts_threshold;
            self.params.short_attempts.filter(|_| short).unwrap_or(self.params.attempts)
        })
    }

    fn settle(&mut self, now: u64, contender: u16, answered: bool) {
        let sent = self.class(contender).sent.take().expect("it sends");
        let first = self.all_flows[sent.flow].held.front().map(|held| held.sequence);
        if sent.request {
            let head = &self.all_flows[sent.flow].held[0];
            let limit = self.attempts(contender, &head.packet);
            let flow = &mut self.all_flows[sent.flow];
            flow.requests += 1;
            if answered {
                let arrived = &flow.arrived;
                flow.held.retain(|held| !arrived.contains(&held.sequence));
            }
            if answered || flow.requests >= limit {
                (flow.asks, flow.requests) = (false, 0);
            }
        } else {
            self.settle_data(now, contender, &sent, answered);
        }
        self.hand_on(now, contender / 4, sent.flow);
        let flow = &mut self.all_flows[sent.flow];
        if flow.held.iter().all(|held| !held.was_sent) {
            flow.asks = false;
        }
        let is_done = flow.held.front().map(|held| held.sequence) != first;
        let class = self.class(contender);
        class.cw = if answered || is_done {
            u64::from(class.params.cw_min)
        } else {
            (2 * class.cw + 1).min(u64::from(class.params.cw_max))
        };
        self.expire(now, contender, sent.flow);
        self.go_on(now, contender, answered);
    }

    fn settle_data(&mut self, now: u64, contender: u16, sent: &Sent, answered: bool) {
        let limits: Vec<u32> =
            self.all_flows[sent.flow].held.iter().map(|held| self.attempts(contender, &held.packet)).collect();
        let flow = &mut self.all_flows[sent.flow];
        let mut kept = VecDeque::new();
        for (mut held, limit) in flow.held.drain(..).zip(limits) {
            if sent.sequences.contains(&held.sequence) {
                if answered && flow.arrived.contains(&held.sequence) {
                    continue;
                }
                held.attempts += 1;
                if held.attempts >= limit {
                    flow.skipped.insert(held.sequence);
                    if !flow.arrived.contains(&held.sequence) {
                        let (node, place) = (NodeId(contender / 4), DropPlace::Channel);
                        self.events.push(Event::Dropped { at: us(now), node, place, packet: held.packet });
                    }
                    continue;
                }
            }
            kept.push_back(held);
        }
        flow.held = kept;
        flow.asks = !answered
            && sent.has_data
            && sent.sequences.len() > 1
            && self.params.missed_block_ack == MissedBlockAck::Bar;
    }

    fn expire(&mut self, now: u64, contender: u16, flow: usize) {
        let Some(lifetime) = self.class(contender).params.lifetime else { return };
        let oldest = now.saturating_sub(micros(lifetime));
        let flow_of = &mut self.all_flows[flow];
        let mut any = false;
        // What came is in order, so the old ones are the first.
        while flow_of.held.front().is_some_and(|held| held.came >> 20 < oldest) {
            let held = flow_of.held.pop_front().expect("there is a first");
            flow_of.skipped.insert(held.sequence);
            any = true;
            if !flow_of.arrived.contains(&held.sequence) {
                let (node, place) = (NodeId(contender / 4), DropPlace::Channel);
                self.events.push(Event::Dropped { at: us(now), node, place, packet: held.packet });
            }
        }
        if any {
            self.hand_on(now, contender / 4, flow);
        }
    }

    fn go_on(&mut self, now: u64, contender: u16, answered: bool) {
        let next = self.next_flow(contender);
        if let Some(flow) = next.filter(|_| answered) {
            let (from, to) = (contender / 4, self.all_flows[flow].to);
            let window = self.ampdu(contender, to).map_or(1, |ampdu| ampdu.window);
            let block_ack = self.control(from, to, if window > 64 { 56 } else { 32 });
            let data = if self.all_flows[flow].asks {
                self.control(from, to, 24)
            } else {
                let bytes = 4 + self.header(from, to) + self.all_flows[flow].held[0].packet.bytes;
                micros(self.phy.duration(self.rate(from, to), bytes))
            };
            if now + SIFS + data + SIFS + block_ack <= self.class(contender).txop_end {
                return self.exchange(now + SIFS, contender, false);
            }
        }
        let class = self.class(contender);
        class.counter = class.draws.below(class.cw + 1);
        class.contends = next.is_some();
    }

    fn arrive(&mut self, now: u64, arrival: &Arrival) {
        let Arrival { from, to, packet, .. } = *arrival;
        let qos = self.nodes[usize::from(from.max(to))].qos;
        let index = if qos { packet.class as u16 } else { AccessCategory::Be as u16 };
        let contender = 4 * from + index;
        let limit = if from == 0 { self.params.queue_limit } else { self.stations[usize::from(from) - 1].queue_limit };
        let of = self.flows.iter().filter(|((of, _, class), _)| *of == from && *class == index);
        let held: usize = of
            .map(|(_, flow)| &self.all_flows[*flow])
            // In the air, also when it is known already that it will arrive.
            .map(|flow| flow.held.iter().filter(|held| !self.is_there(flow, held, contender)).count())
            .sum();
        if held >= limit {
            let place = DropPlace::Queue;
            return self.events.push(Event::Dropped { at: us(now), node: NodeId(from), place, packet });
        }
        let flow = self.flow(from, to, index);
        self.came += 1;
        let flow = &mut self.all_flows[flow];
        let sequence = flow.next_sequence;
        flow.next_sequence += 1;
        flow.held.push_back(Held {
            sequence,
            packet,
            attempts: 0,
            was_sent: false,
            came: now << 20 | self.came & 0xfffff,
        });
        let busy = now < self.busy_until || now < self.nodes[usize::from(from)].nav;
        let base = self.nodes[usize::from(from)].base;
        let class = self.class(contender);
        if class.contends || class.sent.is_some() {
            return;
        }
        class.contends = true;
        if class.counter > 0 {
            return;
        }
        let difs = u64::from(class.params.aifsn) * SLOT;
        if if qos_of(contender, &self.nodes) { busy } else { now < base + difs } {
            let class = self.class(contender);
            class.counter = class.draws.below(class.cw + 1);
        } else if !qos_of(contender, &self.nodes) {
            self.start_now(now, contender);
        }
    }

    /// A radio without classes sends at once into a medium that has been idle for long enough.
    fn start_now(&mut self, now: u64, contender: u16) {
        if self.busy_until <= now {
            self.start(now, &[contender]);
        }
    }

    /// Whether a packet reached its receiver in a frame that has ended.
    fn is_there(&self, flow: &Flow, held: &Held, contender: u16) -> bool {
        let class = &self.nodes[usize::from(contender / 4)].classes[usize::from(contender % 4)];
        let in_air = class.sent.as_ref().is_some_and(|sent| {
            sent.fresh.contains(&held.sequence)
                && std::ptr::eq(flow, &raw const self.all_flows[sent.flow])
                && self.agenda.iter().any(|(_, of, what)| *of == contender && *what == Happens::Arrive)
        });
        flow.arrived.contains(&held.sequence) && !in_air
    }

    fn flow(&mut self, from: u16, to: u16, class: u16) -> usize {
        let station = from.max(to);
        let link = 2 * station + u16::from(from == 0);
        let name = format!("wifi.edca.loss.{from}.{to}.{}", 4 * link + class);
        let (seed, next) = (self.seed, self.all_flows.len());
        let flow = *self.flows.entry((from, to, class)).or_insert(next);
        if flow == next {
            let mut losses = Stream::named(seed, &name);
            let left = losses.exponential(1.0);
            self.all_flows.push(Flow {
                to,
                next_sequence: 0,
                held: VecDeque::new(),
                buffer: BTreeMap::new(),
                arrived: BTreeSet::new(),
                expects: 0,
                skipped: BTreeSet::new(),
                asks: false,
                requests: 0,
                losses,
                left,
            });
        }
        flow
    }
}

fn qos_of(contender: u16, nodes: &[Node]) -> bool {
    nodes[usize::from(contender / 4)].qos
}

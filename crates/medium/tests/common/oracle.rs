//! DCF in the plainest form: every node looks at the medium every microsecond. Slow, and written from the standard's
//! rules alone; only the order in which random numbers are drawn is agreed with the model.
//!
//! All times of the cells compared are whole microseconds (OFDM, and DSSS at 1 and 2 Mbit/s; ns-2's rules with the
//! latter only, since it does not round to symbols).

use std::collections::VecDeque;

use lasthop_medium::phy::Phy;
use lasthop_medium::random::Stream;
use lasthop_medium::{AfterCollision, DropPlace, Event, Loss, MediumParams, NodeId, Rate, StationParams};

use super::{AP, Numbered, us};

#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub at_us: u64,
    pub from: u16,
    pub to: u16,
    pub packet: Numbered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Deliver,
    Settle {
        acked: bool,
    },
    /// A frame ends; this node then needs DIFS or EIFS.
    Heard {
        eifs: bool,
    },
}

struct Node {
    rate: Rate,
    cw_min: u32,
    cw: u32,
    limit: usize,
    queue: VecDeque<(Numbered, u16)>,
    /// Packet (None once delivered), destination, bytes, attempts.
    service: Option<(Option<Numbered>, u16, u32, u32)>,
    backoff: u64,
    draws: Stream,
    /// Waits for an answer or is in an exchange: does not contend.
    engaged: bool,
    /// Receives or answers until then, the gaps between frames included.
    answers_until: u64,
    /// Until then it does not count the medium as idle, whatever it hears: waits for an answer, or ns-2's EIFS.
    deaf_until: u64,
    nav: u64,
    /// DIFS or EIFS, by what it heard last.
    ifs: u64,
    /// How long the medium has been idle for it, NAV included.
    idle: u64,
    /// The same without regard to the NAV, which is what EIFS is counted by.
    silence: u64,
    slot: u64,
}

impl Node {
    /// May send, or count a slot.
    fn free(&self, difs: u64) -> bool {
        self.idle >= difs && self.silence >= self.ifs
    }

    fn hear(&mut self) {
        (self.idle, self.silence, self.slot) = (0, 0, 0);
    }
}

pub struct Oracle {
    phy: Phy,
    slot: u64,
    difs: u64,
    params: MediumParams,
    nodes: Vec<Node>,
    /// (time, node, what), any order.
    agenda: Vec<(u64, u16, Happens)>,
    /// When the last frame on the channel ends.
    busy: Vec<(u64, u64)>,
    channel: Stream,
    pub events: Vec<Event<Numbered>>,
}

fn micros(span: lasthop_core::units::Span) -> u64 {
    assert_eq!(span.as_nanos() % 1000, 0, "the oracle steps whole microseconds");
    span.as_nanos() / 1000
}

impl Oracle {
    pub fn new(params: &MediumParams, stations: &[StationParams], seed: u64) -> Self {
        let phy = params.phy(stations);
        let node = |rate, standard, limit| Node {
            rate,
            cw_min: phy.cw_min(standard),
            cw: phy.cw_min(standard),
            limit,
            queue: VecDeque::new(),
            service: None,
            backoff: 0,
            draws: Stream::named(0, ""),
            engaged: false,
            answers_until: 0,
            deaf_until: 0,
            nav: 0,
            ifs: micros(phy.difs()),
            idle: micros(phy.difs()),
            silence: micros(phy.difs()),
            slot: 0,
        };
        let mut nodes = vec![node(Rate::OFDM_54, params.standard, params.queue_limit)];
        nodes.extend(stations.iter().map(|s| node(s.rate, s.standard, s.queue_limit)));
        for (number, node) in nodes.iter_mut().enumerate() {
            node.draws = Stream::named(seed, &format!("wifi.backoff.{number}"));
        }
        Self {
            phy,
            slot: micros(phy.slot()),
            difs: micros(phy.difs()),
            params: params.clone(),
            nodes,
            agenda: Vec::new(),
            busy: Vec::new(),
            channel: Stream::named(seed, "wifi.channel"),
            events: Vec::new(),
        }
    }

    pub fn run(&mut self, arrivals: &[Arrival], until_us: u64) {
        let mut arrivals = arrivals.iter().peekable();
        for now in 0..=until_us {
            self.happen(now);
            while let Some(arrival) = arrivals.next_if(|a| a.at_us == now) {
                self.arrive(now, *arrival);
                self.happen(now);
            }
            self.pass(now);
        }
    }

    /// Everything that falls on this microsecond, then the starts of transmissions.
    fn happen(&mut self, now: u64) {
        let mut due: Vec<_> = self.agenda.extract_if(.., |(at, ..)| *at == now).collect();
        due.sort_unstable();
        for (_, node, what) in due {
            match what {
                Happens::Deliver => self.deliver(now, node),
                Happens::Settle { acked } => self.settle(now, node, acked),
                Happens::Heard { eifs } => {
                    let ifs = if eifs { micros(self.phy.eifs()) } else { self.difs };
                    self.nodes[usize::from(node)].ifs = ifs;
                }
            }
        }
        let difs = self.difs;
        let ready = |n: &Node| n.service.is_some() && !n.engaged && n.backoff == 0 && n.free(difs);
        let senders: Vec<u16> = (0..self.nodes.len() as u16).filter(|n| ready(&self.nodes[usize::from(*n)])).collect();
        match senders[..] {
            [] => {}
            [sender] => {
                self.exchange(now, sender);
                let to = self.nodes[usize::from(sender)].service.map_or(0, |(_, to, ..)| to);
                let ends = self.busy.iter().map(|(_, end)| *end).max().unwrap_or(0);
                self.nodes[usize::from(to)].answers_until = ends;
            }
            _ => self.collision(now, &senders),
        }
        if !senders.is_empty() {
            self.nodes.iter_mut().for_each(|n| n.hear());
        }
    }

    /// One microsecond goes by.
    fn pass(&mut self, now: u64) {
        self.busy.retain(|(_, end)| *end > now);
        let air = self.busy.iter().any(|(start, _)| *start <= now);
        let (slot, difs) = (self.slot, self.difs);
        for node in &mut self.nodes {
            if air {
                node.hear();
                continue;
            }
            if node.free(difs) {
                node.slot += 1;
                if node.slot == slot {
                    node.slot = 0;
                    node.backoff = node.backoff.saturating_sub(1);
                }
            }
            node.silence += 1;
            node.idle += 1;
            if node.nav > now || node.deaf_until > now {
                (node.idle, node.slot) = (0, 0);
            }
        }
    }

    fn arrive(&mut self, now: u64, arrival: Arrival) {
        let difs = self.difs;
        let idle = self.is_idle(now, arrival.from);
        let ns2 = self.phy.is_ns2();
        let values = self.phy.backoff_values(self.nodes[usize::from(arrival.from)].cw);
        let node = &mut self.nodes[usize::from(arrival.from)];
        if node.service.is_some() {
            if node.queue.len() < node.limit {
                node.queue.push_back((arrival.packet, arrival.to));
            } else {
                let (node, place) = (NodeId(arrival.from), DropPlace::Queue);
                self.events.push(Event::Dropped { at: us(now), node, place, packet: arrival.packet });
            }
            return;
        }
        node.service = Some((Some(arrival.packet), arrival.to, arrival.packet.bytes, 0));
        if node.backoff == 0 && ns2 && idle {
            // Its wait begins with its arrival, however long the medium has been idle.
            node.backoff = node.draws.below(values);
            (node.idle, node.slot) = (0, 0);
        } else if node.backoff == 0 && (ns2 || !node.free(difs)) {
            node.backoff = node.draws.below(values);
        }
    }

    /// Whether a node finds the medium idle, if not yet for long enough.
    fn is_idle(&self, now: u64, number: u16) -> bool {
        let node = &self.nodes[usize::from(number)];
        let air = self.busy.iter().any(|(start, end)| *start <= now && now < *end);
        let difs = self.difs;
        let silent = node.answers_until.max(node.nav).max(node.deaf_until) <= now;
        silent && !air && node.silence + difs >= node.ifs
    }

    /// First frame, data, answer, answer timeout, all in us; RTS or not.
    fn frames(&self, sender: u16) -> (u64, u64, u64, u64, bool) {
        let (_, to, bytes, _) = self.nodes[usize::from(sender)].service.unwrap();
        let rate = self.nodes[usize::from(sender.max(to))].rate;
        let data = micros(self.phy.protection(rate) + self.phy.data(rate, bytes));
        let answer = micros(self.phy.answer(rate));
        let rts = self.phy.frame_bytes(bytes) > self.params.rts_threshold;
        let first = if rts { micros(self.phy.rts(rate)) } else { data };
        (first, data, answer, micros(self.phy.answer_timeout(self.phy.control(rate))), rts)
    }

    fn lost(&mut self) -> bool {
        match self.params.loss {
            Loss::Fixed { rate } if rate > 0.0 => self.channel.chance(rate),
            _ => false,
        }
    }

    fn exchange(&mut self, now: u64, sender: u16) {
        let (first, data, answer, timeout, rts) = self.frames(sender);
        let receiver = self.engage(sender);
        let sifs = micros(self.phy.sifs());
        let rate = self.nodes[usize::from(sender.max(receiver))].rate;
        let nav = micros(self.phy.nav(self.phy.sifs() + self.phy.answer(rate)));
        let mut at = now;
        let mut heard = Vec::new();
        if rts {
            let rts_end = now + first;
            self.busy.push((at, rts_end));
            if self.lost() {
                let control = self.phy.control(self.nodes[usize::from(sender.max(receiver))].rate);
                self.overhear(rts_end + micros(self.phy.nav_reset(control)), sender, receiver);
                self.unanswered(rts_end, sender, receiver, timeout);
                return;
            }
            let cts_end = rts_end + sifs + answer;
            self.busy.push((rts_end + sifs, cts_end));
            at = cts_end + sifs;
            self.overhear(at + data + nav, sender, receiver);
            if self.lost() {
                self.agenda.push((cts_end, sender, Happens::Heard { eifs: true }));
                self.agenda.push((cts_end.max(rts_end + timeout), sender, Happens::Settle { acked: false }));
                self.agenda.push((cts_end, receiver, Happens::Heard { eifs: false }));
                return;
            }
        }
        let data_end = at + data;
        self.busy.push((at, data_end));
        self.overhear(data_end + nav, sender, receiver);
        if self.lost() {
            self.unanswered(data_end, sender, receiver, timeout);
            return;
        }
        self.agenda.push((data_end, sender, Happens::Deliver));
        let ack_end = data_end + sifs + answer;
        self.busy.push((data_end + sifs, ack_end));
        let acked = !self.lost();
        heard.push((ack_end, sender, Happens::Heard { eifs: !acked }));
        heard.push((ack_end, receiver, Happens::Heard { eifs: false }));
        heard.push((ack_end.max(data_end + if acked { 0 } else { timeout }), sender, Happens::Settle { acked }));
        self.agenda.extend(heard);
    }

    /// The frame that ended was lost at its receiver.
    fn unanswered(&mut self, end: u64, sender: u16, receiver: u16, timeout: u64) {
        self.agenda.push((end, receiver, Happens::Heard { eifs: true }));
        self.agenda.push((end, sender, Happens::Heard { eifs: false }));
        self.agenda.push((end + timeout, sender, Happens::Settle { acked: false }));
        self.nodes[usize::from(sender)].deaf_until = end + timeout;
    }

    /// Everybody else decodes the exchange and keeps its NAV.
    fn overhear(&mut self, nav: u64, sender: u16, receiver: u16) {
        let difs = self.difs;
        for (n, node) in self.nodes.iter_mut().enumerate() {
            if n != usize::from(sender) && n != usize::from(receiver) {
                node.nav = node.nav.max(nav);
                node.ifs = difs;
            }
        }
    }

    fn collision(&mut self, now: u64, senders: &[u16]) {
        let bianchi = self.params.after_collision == AfterCollision::Eifs;
        let ends: Vec<u64> = senders.iter().map(|s| now + self.frames(*s).0).collect();
        let last = *ends.iter().max().unwrap();
        let alone_at_the_end = ends.iter().filter(|end| **end == last).count() == 1;
        // ns-2: whoever hears another's frame end has received an error, and DIFS counts from the end of its EIFS.
        let hears_another = |end: u64| self.phy.is_ns2() && (end < last || !alone_at_the_end);
        let undecoded = last + micros(self.phy.eifs()) - self.difs;
        let errors: Vec<_> = ends.iter().map(|end| if hears_another(*end) { undecoded } else { 0 }).collect();
        for ((sender, end), error) in senders.iter().zip(ends).zip(errors) {
            let timeout = self.frames(*sender).3;
            self.engage(*sender);
            self.busy.push((now, end));
            self.agenda.push((end + timeout, *sender, Happens::Settle { acked: false }));
            if !bianchi {
                self.nodes[usize::from(*sender)].deaf_until = error.max(end + timeout);
            }
        }
        for node in 0..self.nodes.len() as u16 {
            let eifs = bianchi || !senders.contains(&node);
            self.agenda.push((last, node, Happens::Heard { eifs }));
        }
    }

    fn engage(&mut self, sender: u16) -> u16 {
        let node = &mut self.nodes[usize::from(sender)];
        node.engaged = true;
        let service = node.service.as_mut().unwrap();
        service.3 += 1;
        service.1
    }

    fn deliver(&mut self, now: u64, node: u16) {
        let service = self.nodes[usize::from(node)].service.as_mut().unwrap();
        if let Some(packet) = service.0.take() {
            let (from, to) = (NodeId(node), if node == 0 { NodeId(service.1) } else { AP });
            self.events.push(Event::Delivered { at: us(now), from, to, packet });
        }
    }

    fn settle(&mut self, now: u64, number: u16, acked: bool) {
        let node = &mut self.nodes[usize::from(number)];
        (node.engaged, node.slot) = (false, 0);
        let (packet, _, bytes, attempts) = node.service.unwrap();
        let short = self.phy.frame_bytes(bytes) <= self.params.rts_threshold;
        let limit =
            if short { self.params.short_attempts.unwrap_or(self.params.attempts) } else { self.params.attempts };
        if !acked && attempts < limit {
            node.cw = (2 * node.cw + 1).min(self.phy.cw_max());
        } else {
            if let Some(packet) = packet {
                let (node, place) = (NodeId(number), DropPlace::Channel);
                self.events.push(Event::Dropped { at: us(now), node, place, packet });
            }
            node.cw = node.cw_min;
            node.service = node.queue.pop_front().map(|(packet, to)| (Some(packet), to, packet.bytes, 0));
        }
        node.backoff = node.draws.below(self.phy.backoff_values(node.cw));
    }
}

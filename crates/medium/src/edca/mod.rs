//! One collision domain with classes of traffic and aggregates: 802.11n, ac and ax, b and g stations beside them.
//!
//! - Every node has four contenders, one per class (EDCA): AIFSN, contention windows and TXOP limit of each are its own
//!   ([`crate::edca_params`]), how they count is in `contention.rs`. When two classes of a node would start together the one of
//!   higher priority does, and the other's window doubles as after a collision.
//! - A frame that arrives at a class without backoff in an idle medium is sent at the next boundary of a slot, at the earliest
//!   at the end of the AIFS; in a busy one a backoff is drawn. Radios of b and g follow DCF, as in `domain`.
//! - A class sends the first MPDUs to one receiver that are not acknowledged, as many as bytes, MPDUs, the block ack window,
//!   the frame's duration and the TXOP limit let it (`window.rs`). Which arrive is drawn when the frame starts. They reach the
//!   host, in order, when it ends. A single MPDU is answered by an ACK, several by a block ack. MPDUs that did not arrive go
//!   first in the next frame. A frame without an answer doubles the window; one that is answered resets it, whatever it lost.
//! - With a TXOP limit a class goes on a SIFS after the answer, while its next frame and the answer to that fit; it ends at
//!   the first frame that is not answered.
//! - A limit of attempts counts for each MPDU. An unanswered RTS counts for all that it announced, an internal collision for
//!   the first MPDU. What is given up leaves a hole that nobody waits for.
//! - The access point serves the oldest packet's station, in a plain queue of each class. Another discipline, one of each class,
//!   hands over what it has while fewer than `firmware_queue` packets are on their way behind it; with 0, what the next frame
//!   takes. `linux.rs` has that of a Linux access point. A limit counts what has not reached its receiver, what is in the air included.
//! - Frames that start together collide, and all their MPDUs are lost. `exchange.rs` says who waits how long.
//!
//! Source: IEEE 802.11-2020 clauses 9.3.1, 10.3, 10.12, 10.23.2, 10.25. Losses: [`crate::Loss::Fixed`] takes MPDUs of data, each by
//! itself, and no others, since answers go at robust rates; [`crate::Loss::Shadowing`] takes whole frames, answers too.
//!
//! Not modelled: hidden stations, capture, propagation delay, fragmentation, management frames, power save, admission control,
//! multi-user frames, EIFS of g stations after frames they cannot decode, the set-up of block ack agreements, receivers' own
//! time-outs of reorder buffers.

mod access;
mod adapt;
mod contention;
mod exchange;
mod linux;
mod queue;
mod record;
mod retune;
mod settle;
mod times;
mod transmit;
mod window;

use std::collections::VecDeque;

use lasthop_core::aqm::Discipline;
use lasthop_core::aqm::metrics::Metrics;
use lasthop_core::packet::{AccessCategory, Packet};
use lasthop_core::units::{Span, Time};

use crate::attempt::Attempt;
use crate::channel::{Path, Place};
use crate::contention::tree::Tree;
use crate::domain::agenda::{Agenda, Due, Step};
use crate::edca_params::EdcaClass;
use crate::medium::{Event, NodeId};
use crate::params::{MediumParams, StationParams};
use crate::phy::{Phy, Rate};
use crate::propagation::Loss;
use crate::random::Stream;
use crate::rate_control::RatePlan;
use crate::snapshot::{NodeStats, Snapshot};
use access::{Access, Link, Losses};
use adapt::{Adapt, Progress};
use contention::{Contention, Counts, Own};
use exchange::Waits;
use linux::Linux;
use times::Times;
use window::Window;

/// A threshold of RTS that stands for none, though aggregates may be longer.
const NO_RTS: u32 = 65_535;
/// No window yet.
const NONE: u32 = u32::MAX;

/// One radio.
#[derive(Clone, Debug)]
struct Radio {
    /// Has classes.
    qos: bool,
    power_w: f64,
    place: Place,
    amsdu_bytes: u32,
    stats: NodeStats,
    /// Packets that were never sent.
    waiting: usize,
    metrics: Metrics,
}

/// Packets that a receiver hands on at one moment.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    at: Time,
    from: NodeId,
    window: usize,
    next: u64,
    end: u64,
    /// The packet before `next` is what was handed out last.
    is_last: bool,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Edca<P> {
    params: MediumParams,
    phy: Phy,
    waits: Waits,
    times: Vec<Times>,
    radios: Vec<Radio>,
    /// By contender: 4 x node + class.
    accesses: Vec<Access<P>>,
    /// By 2 x station + (1 to it, 0 from it).
    links: Vec<Link>,
    windows: Vec<Window<P>>,
    /// By window.
    losses: Vec<Losses>,
    /// By window; looked at only where the link adapts.
    progress: Vec<Progress>,
    /// By link; none where the rate and its errors never change.
    adapts: Vec<Option<Box<Adapt>>>,
    /// By station.
    paths: Vec<Option<Path>>,
    /// By 4 x link + class, made when first needed.
    window_of: Vec<u32>,
    /// Stations that the access point has packets for, by the number of their oldest one; of each class.
    ready: [Tree; 4],
    contention: Contention,
    agenda: Agenda,
    cursor: Cursor,
    events: VecDeque<Event<P>>,
    /// Time of what was committed last.
    clock: Time,
    /// Packets that came so far.
    order: u64,
    seed: u64,
    channel: Stream,
    /// Scratch.
    senders: Vec<u16>,
    losers: Vec<u16>,
    own: Vec<Own>,
    recording: bool,
    attempts: VecDeque<Attempt<P>>,
    /// Aggregates so far.
    aggregates: u32,
    counts_air_time: bool,
    /// The access point's queue, where it is one of Linux.
    linux: Option<Box<Linux<P>>>,
    /// Rate control is the host's: how a packet is sent.
    plan_of: Option<fn(&P) -> RatePlan>,
}

impl<P: Packet + Copy> Edca<P> {
    /// A silent medium.
    pub fn new(mut params: MediumParams, stations: &[StationParams], seed: u64) -> Self {
        if params.rts_threshold >= NO_RTS {
            params.rts_threshold = u32::MAX;
        }
        let nodes = stations.len() + 1;
        assert!(nodes < usize::from(u16::MAX / 4), "a class of a node is numbered by 16 bits");
        let phy = params.phy(stations);
        let (slot, sifs) = (phy.slot(), phy.sifs());
        let waits = Waits { sifs, undecoded: phy.eifs() - slot * 2, shortest: Span::from_micros(20) };
        let accesses: Vec<Access<P>> = queue::accesses(&params, stations, &phy, seed);
        let is_qos = |number: usize| number == 0 || stations[number - 1].standard.has_classes();
        let counts: Vec<_> = (0..).zip(&accesses).map(|(n, access)| counts(&access.class, is_qos(n / 4))).collect();
        let mut edca = Self {
            waits,
            times: Vec::new(),
            radios: radios(&params, stations),
            links: Vec::new(),
            windows: Vec::new(),
            losses: Vec::new(),
            progress: Vec::new(),
            adapts: Vec::new(),
            paths: Vec::new(),
            window_of: vec![NONE; 8 * nodes],
            ready: std::array::from_fn(|_| Tree::new(nodes.max(2))),
            contention: Contention::new(&counts, slot, sifs),
            agenda: Agenda::new(),
            cursor: Cursor { at: Time::ZERO, from: NodeId::ACCESS_POINT, window: 0, next: 0, end: 0, is_last: false },
            events: VecDeque::with_capacity(8),
            clock: Time::ZERO,
            order: 0,
            seed,
            channel: Stream::named(seed, "wifi.edca.channel"),
            senders: Vec::with_capacity(8),
            losers: Vec::with_capacity(8),
            own: Vec::with_capacity(8),
            recording: false,
            attempts: VecDeque::new(),
            aggregates: 0,
            linux: Linux::new(&params, nodes),
            plan_of: None,
            counts_air_time: accesses.iter().flat_map(|access| &access.discipline).any(|q| q.counts_air_time())
                || matches!(params.queue, Discipline::Mac80211(..)),
            accesses,
            params,
            phy,
        };
        // The access point's own two stand first and are not used.
        edca.add_links(&StationParams::default());
        stations.iter().for_each(|station| edca.add_links(station));
        edca
    }

    fn add_links(&mut self, station: &StationParams) {
        let framing = window::Framing { header: 0, delimits_one: false, amsdu_bytes: 0 };
        let ampdu = station.ampdu.filter(|_| station.standard.has_classes());
        let link = Link {
            times: 0,
            ampdu,
            ampdu_limit: u32::MAX,
            framing,
            most_bytes: 0,
            longest_bytes: 0,
            hazard: 0.0,
            byte_hazard: 0.0,
            loss: 0.0,
        };
        self.links.extend([link; 2]);
        let number = self.links.len() / 2 - 1;
        self.radios[number].amsdu_bytes = if station.standard.has_classes() { station.amsdu_bytes } else { 0 };
        self.set_fixed_rate(NodeId(number as u16), station.rate);
        self.refresh_loss(number);
        self.add_adaptation(station);
    }

    /// Where the times of `rate` stand.
    fn find_times(&mut self, rate: Rate) -> u8 {
        let at = self.times.iter().position(|times| times.rate == rate).unwrap_or_else(|| {
            self.times.push(Times::new(&self.phy, rate));
            self.times.len() - 1
        });
        at as u8
    }

    /// Which class a packet between two nodes belongs to: one without classes knows best effort only.
    #[inline]
    fn class_of(&self, from: NodeId, to: NodeId, packet: &P) -> AccessCategory {
        if self.radios[usize::from(from.0.max(to.0))].qos { packet.access_category() } else { AccessCategory::Be }
    }

    #[inline]
    fn link_of(from: NodeId, to: NodeId) -> usize {
        if from.0 == 0 { 2 * usize::from(to.0) + 1 } else { 2 * usize::from(from.0) }
    }

    /// Where the window of this sender, receiver and class is.
    #[inline]
    fn window_at(&mut self, from: NodeId, to: NodeId, class: AccessCategory) -> usize {
        let at = 4 * Self::link_of(from, to) + class.index();
        match self.window_of[at] {
            NONE => self.add_window(at, from, to, class),
            window => window as usize,
        }
    }

    #[cold]
    fn add_window(&mut self, at: usize, from: NodeId, to: NodeId, class: AccessCategory) -> usize {
        let link = &self.links[Self::link_of(from, to)];
        let access = &mut self.accesses[usize::from(access::contender(from.0, class))];
        let framing = link.framing;
        self.windows.push(Window::new(to, link.window(&access.class), framing));
        self.losses.push(Losses::new(Stream::named(self.seed, &format!("wifi.edca.loss.{}.{}.{at}", from.0, to.0))));
        self.progress.push(Progress::new(RatePlan::of(Rate::OFDM_6)));
        let window = self.windows.len() - 1;
        self.window_of[at] = window as u32;
        if from != NodeId::ACCESS_POINT {
            access.window = window;
        }
        window
    }

    /// What happens up to `limit` is handed out later.
    #[inline(never)]
    fn catch_up(&mut self, limit: Time) {
        self.hand_on_all();
        while self.advance(limit) {
            self.hand_on_all();
        }
    }

    /// Everything that a receiver can hand on goes to the events.
    fn hand_on_all(&mut self) {
        while let Some(event) = self.hand_on() {
            self.events.push_back(event);
        }
    }

    /// The next packet that a receiver hands on.
    #[inline]
    fn hand_on(&mut self) -> Option<Event<P>> {
        let Cursor { at, from, window, .. } = self.cursor;
        while self.cursor.next < self.cursor.end {
            let number = self.cursor.next;
            self.cursor.next += 1;
            self.cursor.is_last = true;
            let window = &self.windows[window];
            if let Some(packet) = window.handed(number) {
                return Some(Event::Delivered { at, from, to: window.to, packet });
            }
        }
        None
    }

    #[inline]
    fn is_due(&self, limit: Time) -> bool {
        self.agenda.first_at() <= limit || self.contention.next() <= limit
    }

    /// How long before the end of its frame the packet that was handed out last was at its receiver with all before it; zero
    /// where that is not known any more.
    pub fn lead(&self) -> Span {
        let Cursor { from, window, next, is_last, .. } = self.cursor;
        let own = &self.accesses[4 * usize::from(from.0)..][..4];
        let Some(access) = own.iter().find(|access| is_last && access.window == window) else { return Span::ZERO };
        let link = &self.links[Self::link_of(from, self.windows[window].to)];
        let Some(mode) = self.times[usize::from(link.times)].rate.mode() else { return Span::ZERO };
        let behind = self.windows[window].bytes_behind(next - 1, &access.flight.aggregate);
        Span::from_nanos(u64::from(behind) * 8 * mode.symbol().as_nanos() / u64::from(mode.bits_per_symbol()))
    }

    /// Out of line, like the others that a host calls for every packet: b and g do not pay for it.
    #[inline(never)]
    pub fn poll(&mut self, now: Time) -> Option<Event<P>> {
        let Cursor { at, from, window, next, end, .. } = self.cursor;
        if next < end && self.windows[window].is_plain() {
            self.cursor.next = next + 1;
            let window = &self.windows[window];
            return Some(Event::Delivered { at, from, to: window.to, packet: window.packet(next) });
        }
        self.poll_others(now)
    }

    #[inline(never)]
    fn poll_others(&mut self, now: Time) -> Option<Event<P>> {
        if let Some(event) = self.hand_on() {
            return Some(event);
        }
        self.cursor.is_last = false;
        if let Some(event) = self.events.front() {
            return if event.at() <= now { self.events.pop_front() } else { None };
        }
        if self.is_due(now) { self.poll_due(now) } else { None }
    }

    /// Apart, so that a packet of many at one moment costs no more than it must.
    #[inline(never)]
    fn poll_due(&mut self, now: Time) -> Option<Event<P>> {
        while self.advance(now) {
            if let Some(event) = self.hand_on() {
                return Some(event);
            }
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
        }
        None
    }

    /// Commits what comes next, if it is due at or before `limit`.
    #[inline(always)]
    fn advance(&mut self, limit: Time) -> bool {
        let start = self.contention.next();
        if start < self.agenda.first_at() {
            if start > limit {
                return false;
            }
            self.clock = self.clock.max(start);
            self.transmit(start);
            return true;
        }
        let Some(step) = self.agenda.pop(limit) else { return false };
        self.clock = self.clock.max(step.at);
        match step.due() {
            Due::Deliver { settled, acked } => {
                self.expect_settled(settled, step.node(), acked);
                self.deliver(step.at, step.node());
            }
            Due::Settle { acked } => self.settle(step.at, step.node(), acked),
        }
        true
    }

    /// Its sender will know how an exchange went.
    #[inline]
    fn expect_settled(&mut self, at: Time, contender: u16, answered: bool) {
        let access = &self.accesses[usize::from(contender)];
        let seen = !(answered && access.flight.whole) || access.managed || access.class.lifetime.is_some();
        self.agenda.push(Step::settle(at, contender, answered, seen));
    }

    /// Not later than what the host sees next.
    #[inline(never)]
    pub fn next_deadline(&self) -> Option<Time> {
        if self.cursor.next < self.cursor.end {
            return Some(self.cursor.at);
        }
        if let Some(event) = self.events.front() {
            return Some(event.at());
        }
        let first = self.agenda.first_at().min(self.contention.next());
        if first == Time::MAX {
            return None;
        }
        Some(self.agenda.seen_at().min(first + self.waits.shortest))
    }

    pub fn phy(&self) -> &Phy {
        &self.phy
    }

    pub fn backlog(&self, node: NodeId) -> usize {
        let accesses = &self.accesses[4 * usize::from(node.0)..][..4];
        let own = |access: &Access<P>| access.held + access.discipline.as_ref().map_or(0, |queue| queue.len());
        accesses.iter().map(own).sum::<usize>() + if node.0 == 0 { self.linux_backlog() } else { 0 }
    }

    fn linux_backlog(&self) -> usize {
        self.linux.as_ref().map_or(0, |linux| linux.len())
    }

    pub fn discipline_backlog(&self) -> usize {
        if self.linux.is_some() {
            return self.linux_backlog();
        }
        self.accesses[..4]
            .iter()
            .map(|access| match &access.discipline {
                Some(queue) => queue.len(),
                None => access.held.saturating_sub(self.params.plain_limit(0)),
            })
            .sum()
    }

    pub fn snapshot(&self, now: Time) -> Snapshot {
        Snapshot {
            nodes: (0..self.radios.len()).map(|node| self.node_stats(node)).collect(),
            queues: (0..self.radios.len()).map(|node| self.queue_snapshot(now, node)).collect(),
            classes: self.accesses.chunks(4).map(|node| std::array::from_fn(|n| node[n].stats)).collect(),
            rates: self.rate_stats(),
        }
    }

    pub fn set_station_rate(&mut self, station: NodeId, rate: Rate) {
        self.set_fixed_rate(station, rate);
        self.set_adapted_rate(usize::from(station.0), rate);
    }

    fn set_fixed_rate(&mut self, station: NodeId, rate: Rate) {
        let times = self.find_times(rate);
        let number = usize::from(station.0);
        let (qos, amsdu_bytes) = (self.radios[number].qos, self.radios[number].amsdu_bytes);
        for link in &mut self.links[2 * number..2 * number + 2] {
            let of = &self.times[usize::from(times)];
            link.times = times;
            let header = if qos { times::QOS_LLC_BYTES } else { self.phy.frame_bytes(0) };
            link.framing = window::Framing { header, delimits_one: of.delimits_one, amsdu_bytes };
            (link.most_bytes, link.longest_bytes) = link.room(of);
        }
        for at in 8 * number..8 * number + 8 {
            if let Some(window) = self.windows.get_mut(self.window_of[at] as usize) {
                window.set_framing(window.window(), self.links[at / 4].framing);
            }
        }
        self.estimate_anew(station);
    }

    pub fn set_distance(&mut self, station: NodeId, metres: f64) {
        self.radios[usize::from(station.0)].place.distance_m = metres;
        self.refresh_loss(usize::from(station.0));
        self.move_path(usize::from(station.0));
    }

    pub fn set_loss(&mut self, loss: Loss) {
        self.params.loss = loss;
        (1..self.radios.len()).for_each(|station| self.refresh_loss(station));
    }

    /// Computes the loss probabilities of a station again.
    fn refresh_loss(&mut self, station: usize) {
        let Radio { power_w, place: Place { distance_m, .. }, .. } = self.radios[station];
        let loss = self.params.loss;
        let at = |power_w| self.params.radio.loss_probability(loss, power_w, distance_m);
        for (link, p) in [(2 * station, at(power_w)), (2 * station + 1, at(self.params.power_w))] {
            let (of_mpdus, of_frames) = if matches!(loss, Loss::Shadowing { .. }) { (0.0, p) } else { (p, 0.0) };
            self.links[link].hazard = if of_mpdus < 1.0 { -libm::log1p(-of_mpdus) } else { f64::INFINITY };
            self.links[link].loss = of_frames;
        }
    }

    pub fn params_mut(&mut self) -> &mut MediumParams {
        &mut self.params
    }

    pub fn record_attempts(&mut self, on: bool) {
        self.recording = on;
    }

    pub fn poll_attempt(&mut self) -> Option<Attempt<P>> {
        self.attempts.pop_front()
    }
}

fn counts(class: &EdcaClass, qos: bool) -> Counts {
    Counts { aifsn: class.aifsn.max(1), dcf: !qos }
}

fn radios(params: &MediumParams, stations: &[StationParams]) -> Vec<Radio> {
    let radio = |qos, power_w, distance_m| Radio {
        qos,
        power_w,
        place: Place { distance_m, walls: 0, snr_db: None },
        amsdu_bytes: 0,
        stats: NodeStats::default(),
        waiting: 0,
        metrics: Metrics::new(Time::ZERO),
    };
    std::iter::once(radio(true, params.power_w, 0.0))
        .chain(stations.iter().map(|s| radio(s.standard.has_classes(), s.power_w, s.distance_m)))
        .collect()
}

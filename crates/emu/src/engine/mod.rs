//! The one thread that moves frames: it runs the models against CLOCK_MONOTONIC.
//!
//! A frame is due at a *scheduled* time, known before the clock reaches it. The thread sleeps in ppoll until shortly
//! before the next one, spins the rest, writes the frame to its TAP, and records how late it was (the lag). Being late
//! never shifts the schedule: the models only ever see scheduled times. *Causal stamping*: whatever the kernel produced
//! in answer to a frame (it forwards and acknowledges before `write` returns) is read at once and stamped with the
//! scheduled time of that frame, so that lag does not add up along a path: up to a lag of 200 us, for clocks in the hosts
//! see a path that is shorter by as much. What answers a frame that was later, and frames that come by themselves, are stamped
//! when they are read. Model time counts from the start of the scenario; before it, frames are thrown away.

mod batch;
mod route;
mod spin;

use crate::address::{AddressPlan, Port};
use crate::arena::{Arena, ETHERNET, Frame, Headers, MTU, Tag};
use crate::clock;
use crate::network::{Exit, Network};
use crate::observe::{Observer, Recent};
use crate::pcap::{Capture, Crossing};
use crate::sys::{self, QUEUES};
use crate::tap::{LONGEST, Tap};
use crate::trace::Trace;
use batch::Batch;
use lasthop_core::meter::histogram::Histogram;
use lasthop_core::packet::{AccessCategory, Direction, Packet as _};
use lasthop_core::units::{Span, Time};
use lasthop_core::wire::offload::{HEADER, Offload, Segments};
use lasthop_core::wire::{Link, ecn};
use lasthop_home::clamp::ClampControl;
use lasthop_home::course::Stretches;
use lasthop_home::scenario::HostId;
use lasthop_medium::NodeId;
use rustix::event::{PollFd, PollFlags, poll};
use spin::{SPIN, Spin};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::Sender;

/// Frames read from one interface before the clock is looked at again.
const BATCH: usize = 64;
/// Above the players (10) and far below the kernel's own threads (99).
const PRIORITY: i32 = 50;
/// A card with offloads hands over together what arrives within this: Linux's e1000 interrupts at most 20,000 times a second.
const COALESCED: Span = Span::from_micros(50);
/// What answers a frame that was written later than this was late, too. In real time, which kernels and controllers measure in, a compensated lag
/// is a path that is shorter by the lag: after a pause of the machine the least round trip is one that no packet needs again, and for as long
/// as it is remembered the path looks like a queue. A tenth of the queue that the law keeps; p99 of the lag is 0.1 ms over g.
const CAUSAL: Span = Span::from_micros(200);
/// Longest sleep, so that a stop is noticed.
const NAP: Span = Span::from_millis(20);
/// How often to look for the start.
const BRIEFLY: Span = Span::from_millis(2);
const SECOND: Span = Span::from_secs(1);

/// What the rest of the process and the engine tell each other while it runs.
#[derive(Debug, Default)]
pub struct Shared {
    /// Ends the engine at once.
    pub stop: AtomicBool,
    /// When the scenario starts, ns of CLOCK_MONOTONIC; 0: not known yet.
    pub zero_ns: AtomicU64,
}

/// One second of a run.
#[derive(Clone, Debug)]
pub struct ProgressCheck {
    /// Since the start of the scenario.
    pub elapsed: Span,
    /// `recent[flow]`.
    pub recent: Vec<Recent>,
    /// p99 of the lag so far.
    pub lag_p99: Span,
}

/// What the engine counted besides flows.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Frames read from and written to TAPs, each segment of a long one counted.
    pub events: u64,
    /// System calls that read or wrote them.
    pub calls: u64,
    /// Frames for which the arena had no room.
    pub no_room: u64,
    /// Frames that are nobody's: not IP, multicast, to addresses outside the home.
    pub unroutable: u64,
    /// Frames above the MTU, which cannot be without VNET_HDR.
    pub oversize: u64,
    /// Frames that a host's kernel refused.
    pub refused: u64,
    /// Frames left out of the capture.
    pub uncaptured: u64,
    /// Processor time of the engine's thread.
    pub busy: Span,
}

/// Frames scheduled against the clock.
pub struct Engine {
    plan: AddressPlan,
    /// `taps[port]`.
    taps: Vec<Arc<Tap>>,
    network: Network,
    arena: Arena,
    observer: Observer,
    capture: Option<Capture>,
    trace: Option<Trace>,
    /// Packets waiting at the access point for stations, where that is wanted.
    queue: Option<Stretches>,
    /// Unix time of the start, ns.
    wall_zero: u64,
    /// Start of the scenario, CLOCK_MONOTONIC.
    zero: Time,
    end: Time,
    lag: Histogram,
    counts: Counts,
    shared: Arc<Shared>,
    /// Scheduled actions on the network, the next one last.
    changes: Vec<(Time, Change)>,
    progress_check: Option<Sender<ProgressCheck>>,
    /// Told once, when frames begin to move.
    plays: Option<Sender<()>>,
    clamp: Option<(ClampControl, Offers)>,
    /// `batches[port]`: what arrives at about one moment, to be written; and the interfaces for which something is, in order.
    batches: Vec<Batch>,
    open: Vec<Port>,
    /// How far apart what a card hands over together arrives.
    coalesced: Span,
    /// When left what left last.
    polled: Time,
    /// What a kernel hands over at a time.
    handed: Box<[u8]>,
    /// `seen[port][queue]`: packets that were given to it when it was last read.
    seen: Vec<[u64; QUEUES]>,
}

/// The most that the receiver of each flow may offer, bytes; 0: what it likes.
pub type Offers = Arc<[AtomicU32]>;

/// Something that changes the network at a given time.
pub type Change = Box<dyn FnOnce(Time, &mut Network) + Send>;

/// What an engine leaves behind.
pub struct Remains {
    /// The models.
    pub network: Network,
    /// The flows.
    pub observer: Observer,
    /// Scheduled against actual time of delivery.
    pub lag: Histogram,
    /// The rest.
    pub counts: Counts,
    /// The capture, to be finished.
    pub capture: Option<Capture>,
    /// The trace, to be finished.
    pub trace: Option<Trace>,
    /// Packets that waited at the access point for stations.
    pub queue: Option<Stretches>,
    /// When the scenario ended (or was stopped).
    pub ended: Time,
    /// What of the real-time set-up was refused.
    pub notes: Vec<String>,
}

impl Engine {
    /// From its parts; runs for `duration`.
    #[must_use]
    pub fn new(
        plan: AddressPlan,
        taps: Vec<Arc<Tap>>,
        network: Network,
        arena: Arena,
        observer: Observer,
        duration: Span,
    ) -> Self {
        let has_offloads = taps.iter().any(|tap| tap.queue_count() > 1);
        Self {
            batches: taps.iter().map(|_| Batch::default()).collect(),
            open: Vec::new(),
            coalesced: if has_offloads { COALESCED } else { Span::ZERO },
            polled: Time::ZERO,
            plan,
            taps,
            network,
            arena,
            observer,
            capture: None,
            trace: None,
            queue: None,
            wall_zero: 0,
            zero: Time::ZERO,
            end: Time::ZERO + duration,
            lag: Histogram::new(),
            counts: Counts::default(),
            shared: Arc::default(),
            changes: Vec::new(),
            progress_check: None,
            plays: None,
            clamp: None,
            handed: vec![0; LONGEST].into_boxed_slice(),
            seen: vec![[0; QUEUES]; plan.ports()],
        }
    }

    /// Records every frame.
    pub fn capture_into(&mut self, capture: Capture) {
        self.capture = Some(capture);
    }

    /// Traces every segment.
    pub fn trace_into(&mut self, trace: Trace) {
        self.trace = Some(trace);
    }

    /// Keeps how long the queue towards the stations is.
    pub fn keep_queue(&mut self, queue: Stretches) {
        self.queue = Some(queue);
    }

    /// Changes the network while it runs; in order of time.
    pub fn change(&mut self, mut changes: Vec<(Time, Change)>) {
        changes.reverse();
        self.changes = changes;
    }

    /// The queue towards the stations has a price, and by it their receivers' offers are told.
    pub fn clamp(&mut self, clamp: ClampControl, offers: Offers) {
        self.clamp = Some((clamp, offers));
    }

    /// Tells once a second how it goes.
    pub fn progress_into(&mut self, progress_check: Sender<ProgressCheck>) {
        self.progress_check = Some(progress_check);
    }

    /// Tells when the scenario has started: frames that hosts send before it are thrown away.
    pub fn tell_start(&mut self, plays: Sender<()>) {
        self.plays = Some(plays);
    }

    /// How to start and stop it from outside.
    #[must_use]
    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Waits for the start, then runs until the end, or until stopped.
    ///
    /// # Errors
    /// A TAP that can no longer be read.
    pub fn run(mut self) -> io::Result<Remains> {
        let mut notes = Vec::new();
        if let Err(error) = sys::set_realtime(PRIORITY) {
            notes.push(format!(
                "no real-time scheduling ({error}): lag will be larger; needs root outside a CPU cgroup"
            ));
        }
        let ended = if self.wait_for_start()? { self.play()? } else { Time::ZERO };
        self.counts.busy = clock::thread_time();
        if let Some(capture) = &self.capture {
            self.counts.uncaptured = capture.missed();
        }
        let Self { network, observer, lag, counts, capture, trace, queue, .. } = self;
        Ok(Remains { network, observer, lag, counts, capture, trace, queue, ended, notes })
    }

    /// False when stopped before the start.
    fn wait_for_start(&mut self) -> io::Result<bool> {
        loop {
            if self.shared.stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            // Looked at before anything is thrown away: who wakes late finds what was sent since the start.
            let zero = Time::from_nanos(self.shared.zero_ns.load(Ordering::Acquire));
            if zero != Time::ZERO && clock::now() + BRIEFLY >= zero {
                self.zero = zero;
                self.wall_zero = zero.as_nanos() + clock::to_wall();
                self.counts = Counts::default();
                clock::sleep_until(zero);
                return Ok(true);
            }
            for port in 0..self.taps.len() {
                self.discard(Port(port as u16))?;
            }
            clock::sleep_until(clock::now() + BRIEFLY);
        }
    }

    fn play(&mut self) -> io::Result<Time> {
        if let Some(plays) = self.plays.take() {
            // Nobody has to wait for it.
            let _ = plays.send(());
        }
        let taps = self.taps.clone();
        let queues =
            |(port, tap): (usize, &Arc<Tap>)| (0..tap.queue_count()).map(move |queue| (Port(port as u16), queue));
        let places: Vec<(Port, usize)> = taps.iter().enumerate().flat_map(queues).collect();
        let wait_for = |(port, queue): &(Port, usize)| {
            PollFd::from_borrowed_fd(taps[usize::from(port.0)].queue(*queue), PollFlags::IN)
        };
        let mut fds: Vec<PollFd<'_>> = places.iter().map(wait_for).collect();
        let mut next_progress_check = Time::ZERO + SECOND;
        let mut spin = Spin::default();
        loop {
            let now = self.now().min(self.end);
            self.catch_up(now)?;
            if now >= self.end || self.shared.stop.load(Ordering::Relaxed) {
                return Ok(now);
            }
            if now >= next_progress_check {
                self.send_progress(now.since(Time::ZERO));
                next_progress_check += SECOND;
            }
            let deadline = self.next_deadline().min(next_progress_check).min(now + NAP);
            let spins = spin.may(now);
            let wait = deadline.since(self.now()).saturating_sub(if spins { SPIN } else { Span::ZERO });
            let ready = rustix::io::retry_on_intr(|| poll(&mut fds, Some(&clock::timeout(wait))))?;
            if ready == 0 {
                if spins {
                    spin.until(deadline, || self.now());
                }
                continue;
            }
            let at = self.now().min(self.end);
            self.catch_up(at)?;
            for (place, _) in places.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty()) {
                self.take_queue(*place, at)?;
            }
        }
    }

    /// Model time: since the start of the scenario.
    fn now(&self) -> Time {
        Time::ZERO + clock::now().since(self.zero)
    }

    fn next_deadline(&self) -> Time {
        let change = self.changes.last().map(|(at, _)| *at);
        self.network.next_deadline().into_iter().chain(change).min().unwrap_or(Time::MAX).min(self.end)
    }

    /// Everything that is due by `now`, in order.
    fn catch_up(&mut self, now: Time) -> io::Result<()> {
        while let Some((at, change)) = self.changes.pop_if(|(at, _)| *at <= now) {
            self.deliver_until(at)?;
            change(at, &mut self.network);
        }
        self.deliver_until(now)
    }

    fn deliver_until(&mut self, now: Time) -> io::Result<()> {
        while let Some(exit) = self.network.poll(now) {
            let together = (exit.at() + self.coalesced).min(now);
            self.leave(exit);
            // All that arrives at this moment, as an aggregate does, or so soon that no card tells it apart, and nothing later: answers come
            // before that.
            while let Some(exit) = self.network.poll(together) {
                self.leave(exit);
            }
            let mut open = std::mem::take(&mut self.open);
            for to in open.drain(..) {
                self.write_batch(to)?;
            }
            self.open = open;
        }
        Ok(())
    }

    fn leave(&mut self, exit: Exit) {
        self.polled = exit.at();
        match exit {
            Exit::Delivered { at, frame } => {
                self.deliver(at, &frame);
                let batch = &mut self.batches[usize::from(frame.to.0)];
                if batch.is_empty() {
                    self.open.push(frame.to);
                }
                batch.push(at, frame);
            }
            Exit::Lost { at, place, frame } => {
                if let Some(trace) = &mut self.trace {
                    trace.on_lost(at, place, self.arena.bytes(&frame));
                }
                if let Tag::Data { flow, id } = frame.tag {
                    self.observer.on_lost(place, flow, id);
                }
                self.left_queue(&frame);
                self.arena.give_back(frame.slot);
            }
        }
    }

    fn deliver(&mut self, at: Time, frame: &Frame) {
        self.counts.events += 1;
        if frame.headers.is_ce() {
            ecn::set_ce(self.arena.bytes_mut(frame), Link::Ethernet);
        }
        if let Some(capture) = &mut self.capture {
            capture.record(frame.to.0, at.as_nanos() + self.wall_zero, Crossing::Inbound, self.arena.bytes(frame));
        }
        self.left_queue(frame);
        let bytes = self.arena.bytes(frame);
        if let Some(trace) = &mut self.trace {
            trace.on_delivered(at, frame.to, bytes);
        }
        if let Some(data) = self.observer.identify(bytes)
            && self.is_end(frame.to, self.observer.destination(data.flow))
        {
            let (sent, fresh) = self.observer.on_delivered(at, &data);
            if let (Some(sent), Some(trace)) = (sent, &mut self.trace) {
                trace.on_datagram(sent, at, &data);
            }
            if let Some((clamp, offers)) = &mut self.clamp
                && let Some(offer) = clamp.on_segment(at, usize::from(data.flow), fresh)
            {
                offers[usize::from(data.flow)].store(offer as u32, Ordering::Relaxed);
            }
        }
    }

    /// Writes what arrived at an interface, and takes in the answers: as of the newest frame that left, which is the same moment or at most so
    /// much later as a card waits.
    fn write_batch(&mut self, to: Port) -> io::Result<()> {
        let port = usize::from(to.0);
        while let Some(piece) = self.batches[port].next(&self.arena) {
            let now = self.now();
            self.batches[port].due(piece.clone()).for_each(|at| self.lag.record(now.since(at)));
            self.counts.calls += 1;
            if self.batches[port].write(piece, &self.arena, &self.taps[port]).is_err() {
                self.counts.refused += 1;
            }
            if self.batches[port].wants_answers() {
                self.take_answers(to, self.polled)?;
            }
        }
        self.batches[port].clear(&mut self.arena);
        self.take_answers(to, self.polled)
    }

    /// Reads what the host of `port` sent in answer to what it got at `at`, if that is not long past: then it is read when all that is due has
    /// been written.
    fn take_answers(&mut self, port: Port, at: Time) -> io::Result<()> {
        if self.now().since(at) > CAUSAL {
            return Ok(());
        }
        match self.plan.host(port) {
            HostId::AccessPoint => {
                self.take_in(AddressPlan::WLAN, at)?;
                self.take_in(AddressPlan::WAN, at)
            }
            _ => self.take_in(port, at),
        }
    }

    /// Reads what the host behind `port` sent and gives it to the network as of `at`.
    fn take_in(&mut self, port: Port, at: Time) -> io::Result<()> {
        for queue in 0..self.taps[usize::from(port.0)].queue_count() {
            let given = self.taps[usize::from(port.0)].given(queue);
            let seen = &mut self.seen[usize::from(port.0)][queue];
            if given.is_some_and(|given| given == *seen) {
                continue;
            }
            *seen = given.unwrap_or(0);
            self.take_queue((port, queue), at)?;
        }
        Ok(())
    }

    fn take_queue(&mut self, (port, queue): (Port, usize), at: Time) -> io::Result<()> {
        for _ in 0..BATCH {
            self.counts.calls += 1;
            let mut handed = std::mem::take(&mut self.handed);
            let read = self.taps[usize::from(port.0)].read(queue, &mut handed);
            if let Ok(Some(length)) = read {
                self.unpack((port, queue), at, &mut handed[..length]);
            }
            self.handed = handed;
            match read {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                // The user took the interface down: nothing comes until it is up again.
                Err(error) => return if error.raw_os_error() == Some(libc::EBADFD) { Err(error) } else { Ok(()) },
            }
        }
        Ok(())
    }

    /// Gives the packets of what a kernel handed over to the network.
    fn unpack(&mut self, from: (Port, usize), at: Time, handed: &mut [u8]) {
        let Some((header, frame)) = handed.split_first_chunk_mut::<HEADER>() else { return };
        let offload = Offload::read(header);
        if offload.segment_bytes == 0 {
            let is_sound = offload.fill_in(frame);
            let Some(slot) = self.room_for(frame.len()) else { return };
            self.arena.slot(slot)[..frame.len()].copy_from_slice(frame);
            return self.admit(from, at, (slot, frame.len()), is_sound);
        }
        let Some(mut segments) = Segments::of(frame, &offload) else {
            self.counts.oversize += 1;
            return;
        };
        while let Some(slot) = self.arena.take() {
            let Some(length) = segments.write_next(&mut self.arena.slot(slot)[..MTU + ETHERNET]) else {
                return self.arena.give_back(slot);
            };
            self.admit(from, at, (slot, length), true);
        }
        self.counts.no_room += segments.left() as u64;
    }

    /// A slot for a frame of `length` bytes.
    fn room_for(&mut self, length: usize) -> Option<u32> {
        if length > MTU + ETHERNET {
            self.counts.oversize += 1;
            return None;
        }
        let slot = self.arena.take();
        self.counts.no_room += u64::from(slot.is_none());
        slot
    }

    fn admit(&mut self, (port, queue): (Port, usize), at: Time, (slot, len): (u32, usize), is_sound: bool) {
        self.counts.events += 1;
        let (tag, headers) = (Tag::Other, Headers::default());
        let mut frame = Frame { slot, len: len as u16, to: port, tag, is_realtime: false, headers, is_sound };
        if let Some(capture) = &mut self.capture {
            capture.record(port.0, at.as_nanos() + self.wall_zero, Crossing::Outbound, self.arena.bytes(&frame));
        }
        let Some(to) = route::next_hop(&self.plan, port, self.arena.bytes(&frame)) else {
            self.counts.unroutable += 1;
            return self.arena.give_back(slot);
        };
        frame.to = to;
        if let Some(trace) = &mut self.trace {
            trace.on_sent(at, port, self.arena.bytes(&frame));
        }
        if let Some(data) = self.observer.identify(self.arena.bytes(&frame)) {
            frame.tag = data.tag();
            frame.is_realtime = self.observer.is_realtime(data.flow);
            if self.is_end(port, self.observer.source(data.flow)) {
                self.observer.on_sent(at, &data);
            }
        }
        let towards_station = matches!(self.plan.host(to), HostId::Station(_));
        let direction = if towards_station { Direction::ToStation } else { Direction::ToRemote };
        frame.headers = Headers::of(self.arena.bytes(&frame), direction);
        if let Some(class) = queue.checked_sub(1) {
            frame.headers.set_class(AccessCategory::ALL[class]);
        }
        // W0 is a router to its servers: it writes the address of the next interface.
        let (mac, own) = (self.plan.mac(to), self.plan.mac(port));
        if let Some((clamp, _)) = &mut self.clamp
            && towards_station
        {
            clamp.on_queued(frame.bytes());
        }
        let bytes = self.arena.bytes_mut(&frame);
        bytes[..6].copy_from_slice(&mac);
        bytes[6..12].copy_from_slice(&own);
        self.network.on_frame(at, port, frame);
        if let Some(queue) = &mut self.queue
            && towards_station
        {
            queue.note(at.since(Time::ZERO), self.network.medium().backlog(NodeId::ACCESS_POINT) as f64);
        }
    }

    /// What the access point was given for a station has arrived there or is lost.
    fn left_queue(&mut self, frame: &Frame) {
        if let Some((clamp, _)) = &mut self.clamp
            && matches!(self.plan.host(frame.to), HostId::Station(_))
        {
            clamp.on_left(frame.bytes());
        }
    }

    fn is_end(&self, port: Port, address: Ipv4Addr) -> bool {
        let owner = self.plan.port_of(address.into()).map(|p| self.plan.host(p));
        owner == Some(self.plan.host(port))
    }

    /// What a host sent before the start.
    fn discard(&mut self, port: Port) -> io::Result<()> {
        for queue in 0..self.taps[usize::from(port.0)].queue_count() {
            while let Ok(Some(_)) = self.taps[usize::from(port.0)].read(queue, &mut self.handed) {}
        }
        Ok(())
    }

    fn send_progress(&mut self, elapsed: Span) {
        let Some(progress_check) = &self.progress_check else { return };
        let recent = self.observer.take_recent();
        let lag_p99 = self.lag.quantile(0.99).unwrap_or_default();
        let _ = progress_check.send(ProgressCheck { elapsed, recent, lag_p99 });
    }
}

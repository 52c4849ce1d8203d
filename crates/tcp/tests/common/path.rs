//! A sender and a receiver at the ends of a path with a bottleneck.

use std::collections::{HashSet, VecDeque};

use lasthop_core::units::{BitRate, Span, Time};
use lasthop_tcp::{Ack, Note, Receiver, ReceiverParams, Reports, Segment, Sender, SenderParams};

/// IP and TCP, bytes.
const HEADER: u64 = 40;

/// One direction: a queue, a rate, a delay.
pub struct Link<P> {
    rate: BitRate,
    delay: Span,
    /// Packets that may wait beside the one on the link.
    room: usize,
    free_at: Time,
    /// When those that wait get their turn.
    starts: VecDeque<Time>,
    /// Longest wait so far since it was last set to zero.
    pub longest_wait: Span,
    flying: VecDeque<(Time, P)>,
}

impl<P> Link<P> {
    pub fn new(rate: BitRate, delay: Span, room: usize) -> Self {
        Self {
            rate,
            delay,
            room,
            free_at: Time::ZERO,
            starts: VecDeque::new(),
            longest_wait: Span::ZERO,
            flying: VecDeque::new(),
        }
    }

    fn send(&mut self, now: Time, bytes: u64, packet: P) {
        while self.starts.front().is_some_and(|&start| start <= now) {
            self.starts.pop_front();
        }
        if self.starts.len() >= self.room {
            return;
        }
        let start = self.free_at.max(now);
        self.longest_wait = self.longest_wait.max(start.since(now));
        if start > now {
            self.starts.push_back(start);
        }
        self.free_at = start + self.rate.time_for(bytes);
        self.flying.push_back((self.free_at + self.delay, packet));
    }

    fn next(&self) -> Option<Time> {
        self.flying.front().map(|&(at, _)| at)
    }

    fn arrived(&mut self, now: Time) -> Option<P> {
        let due = self.next().is_some_and(|at| at <= now);
        if due { self.flying.pop_front().map(|(_, packet)| packet) } else { None }
    }
}

/// What stands before the link down: lets a packet of so many bytes pass, or not.
pub type Gate = Box<dyn FnMut(Time, u64) -> bool>;

/// A sender and a receiver without delayed ACKs, a link each direction.
pub struct Path {
    pub sender: Sender,
    receiver: Receiver,
    /// Segments with their marks.
    pub down: Link<(Segment, u32)>,
    up: Link<(Ack, Option<Note>)>,
    /// Nothing, if it is not set.
    pub gate: Option<Gate>,
    /// Sees every acknowledgment leave the receiver.
    pub answers: Option<Box<dyn FnMut(Time)>>,
    /// Segments leave at 5/4 of window per round trip, ten at once at most, as QUIC's do (RFC 9002 section 7.7).
    pub paced: bool,
    /// When the next ten may go.
    paced_until: Time,
    mss: u64,
    now: Time,
    /// Lost on the direction down, counted from 0 without the SYN.
    pub drops: HashSet<u64>,
    /// And every one whose number this divides; 0: none.
    pub lose_every: u64,
    /// Segments sent.
    pub count: u64,
    /// When which segment was sent, if it is to be remembered.
    pub sent: Option<Vec<(Time, u64)>>,
}

impl Path {
    pub fn new(params: SenderParams, window: u64, down: Link<(Segment, u32)>) -> Self {
        let reports = params.cc.reports();
        Self::reporting(params, window, down, reports)
    }

    /// Its receiver acknowledges every second segment.
    pub fn delay_acks(&mut self) {
        let (mss, sack) = (self.mss as u32, true);
        self.receiver = Receiver::new(ReceiverParams { mss, sack, window: Some(64 << 20), ..Default::default() });
    }

    /// With a receiver that watches this.
    pub fn reporting(params: SenderParams, window: u64, down: Link<(Segment, u32)>, reports: Reports) -> Self {
        let (mss, sack) = (params.mss, params.sack);
        let receiver =
            ReceiverParams { mss, sack, delayed_ack: false, window: Some(window), reports, ..Default::default() };
        Self {
            sender: Sender::new(params),
            receiver: Receiver::new(receiver),
            up: Link::new(down.rate, down.delay, usize::MAX),
            down,
            gate: None,
            answers: None,
            paced: false,
            paced_until: Time::ZERO,
            mss: u64::from(mss),
            now: Time::ZERO,
            drops: HashSet::new(),
            lose_every: 0,
            count: 0,
            sent: None,
        }
    }

    fn send(&mut self, now: Time) {
        while let Some(segment) = self.may_send(now).then(|| self.sender.poll(now)).flatten() {
            if segment.syn {
                self.down.send(now, HEADER, (segment, 0));
                continue;
            }
            self.on_sent(now);
            if let Some(sent) = &mut self.sent {
                sent.push((now, segment.offset / self.mss));
            }
            if self.gate.as_mut().is_some_and(|gate| !gate(now, self.mss + HEADER)) {
                self.count += 1;
                continue;
            }
            // A packet that is lost takes its time on the link like the others.
            let periodic = self.lose_every > 0 && self.count % self.lose_every == self.lose_every - 1;
            let lost = periodic || (!self.drops.is_empty() && self.drops.contains(&self.count));
            let segment = if lost { Segment { bytes: 0, offset: u64::MAX, ..segment } } else { segment };
            self.down.send(now, self.mss + HEADER, (segment, self.sender.mark()));
            self.count += 1;
        }
    }

    /// A bucket of ten segments, filled at the pace: whether one is in it.
    fn may_send(&self, now: Time) -> bool {
        !self.paced || self.paced_until <= now
    }

    fn on_sent(&mut self, now: Time) {
        let snapshot = self.sender.snapshot();
        let Some(srtt) = snapshot.srtt else { return };
        let gap = srtt.mul_f64(1.0 / (1.25 * snapshot.cwnd.max(1.0)));
        let least = Time::ZERO + now.since(Time::ZERO + gap * 10);
        self.paced_until = self.paced_until.max(least) + gap;
    }

    /// On until `end`, or until nothing is left to do.
    pub fn run(&mut self, end: Time) {
        let mut now = self.now;
        loop {
            self.now = now;
            self.send(now);
            // A deadline that has come is served when the pace lets it.
            let paced = (!self.may_send(now)).then_some(self.paced_until);
            let sender = self.sender.next_deadline().map(|at| at.max(paced.unwrap_or(at)));
            let timers = [sender, self.receiver.next_deadline(), paced];
            let next = timers.into_iter().chain([self.down.next(), self.up.next()]).flatten().min();
            let Some(next) = next.filter(|next| *next < end) else {
                self.now = if end < Time::MAX { end.max(now) } else { now };
                return;
            };
            now = next.max(now);
            while let Some((segment, mark)) = self.down.arrived(now) {
                if segment.offset == u64::MAX {
                    continue;
                }
                self.receiver.on_mark(mark);
                self.receiver.on_segment(now, &segment);
                while let Some(ack) = self.receiver.poll(now) {
                    if let Some(answers) = &mut self.answers {
                        answers(now);
                    }
                    self.up.send(now, HEADER, (ack, self.receiver.note()));
                }
            }
            // The timer of a delayed acknowledgment.
            while let Some(ack) = self.receiver.poll(now) {
                if let Some(answers) = &mut self.answers {
                    answers(now);
                }
                self.up.send(now, HEADER, (ack, self.receiver.note()));
            }
            // One at a time: each releases its own segments.
            if let Some((ack, note)) = self.up.arrived(now) {
                if let Some(note) = note {
                    self.sender.on_note(now, &note);
                }
                self.sender.on_ack(now, &ack);
            }
        }
    }
}

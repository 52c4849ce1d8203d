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
    flying: VecDeque<(Time, P)>,
}

impl<P> Link<P> {
    pub fn new(rate: BitRate, delay: Span, room: usize) -> Self {
        Self { rate, delay, room, free_at: Time::ZERO, starts: VecDeque::new(), flying: VecDeque::new() }
    }

    fn send(&mut self, now: Time, bytes: u64, packet: P) {
        while self.starts.front().is_some_and(|&start| start <= now) {
            self.starts.pop_front();
        }
        if self.starts.len() >= self.room {
            return;
        }
        let start = self.free_at.max(now);
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

/// A sender and a receiver without delayed ACKs, a link each way.
pub struct Path {
    pub sender: Sender,
    receiver: Receiver,
    /// Segments with their marks.
    down: Link<(Segment, u32)>,
    up: Link<(Ack, Option<Note>)>,
    mss: u64,
    now: Time,
    /// Lost on the way down, counted from 0 without the SYN.
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
            mss: u64::from(mss),
            now: Time::ZERO,
            drops: HashSet::new(),
            lose_every: 0,
            count: 0,
            sent: None,
        }
    }

    fn send(&mut self, now: Time) {
        while let Some(segment) = self.sender.poll(now) {
            if segment.syn {
                self.down.send(now, HEADER, (segment, 0));
                continue;
            }
            if let Some(sent) = &mut self.sent {
                sent.push((now, segment.offset / self.mss));
            }
            // A packet that is lost takes its time on the link like the others.
            let periodic = self.lose_every > 0 && self.count % self.lose_every == self.lose_every - 1;
            let lost = periodic || (!self.drops.is_empty() && self.drops.contains(&self.count));
            let segment = if lost { Segment { bytes: 0, offset: u64::MAX, ..segment } } else { segment };
            self.down.send(now, self.mss + HEADER, (segment, self.sender.mark()));
            self.count += 1;
        }
    }

    /// On until `end`, or until nothing is left to do.
    pub fn run(&mut self, end: Time) {
        let mut now = self.now;
        loop {
            self.now = now;
            self.send(now);
            let timers = [self.sender.next_deadline(), self.receiver.next_deadline()];
            let Some(next) = timers.into_iter().chain([self.down.next(), self.up.next()]).flatten().min() else {
                return;
            };
            now = next.max(now);
            if now >= end {
                return;
            }
            while let Some((segment, mark)) = self.down.arrived(now) {
                if segment.offset == u64::MAX {
                    continue;
                }
                self.receiver.on_mark(mark);
                self.receiver.on_segment(now, &segment);
                while let Some(ack) = self.receiver.poll(now) {
                    self.up.send(now, HEADER, (ack, self.receiver.note()));
                }
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

//! What Snoop knows of one connection, and the standard law.

use super::cache::{Cache, Segment};
use super::ns2;
use super::params::{Ack, Conduct, Data, Params, Snapshot, SnoopVerdict};
use crate::units::{Span, Time};
use crate::wire::seq;

/// Sequence numbers further apart than this are not of the same connection's life: no window is larger.
pub(super) const FAR: u32 = 1 << 30;
/// Holes that one acknowledgment may have repaired: each says that a packet has left the hop, and two let it catch up.
const BURST: u32 = 2;
/// The timer before the first round trip is known (RFC 6298 section 2.1).
const FIRST_TIMER: Span = Span::from_secs(1);
/// Doublings of the timer.
const MOST_BACKOFF: u32 = 6;

/// What a connection needs from the whole.
pub(super) struct Host<'a> {
    pub params: &'a Params,
    pub counters: &'a mut Snapshot,
    /// First bytes of the segments to be sent once more.
    pub due: &'a mut Vec<u32>,
    /// ns-2's count of signs of holes, of all connections together.
    pub ns2_signs: &'a mut u32,
}

/// Why a segment is sent again from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Duplicates,
    Timer,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Connection<P> {
    pub cache: Cache<P>,
    /// Behind the last byte that has come by.
    pub highest: u32,
    /// Newest acknowledgment; none before the first.
    pub acked: Option<u32>,
    /// Of the newest acknowledgment.
    window: Option<u32>,
    /// Signs of the hole at `acked` so far.
    signs: u32,
    /// More signs than these, and the retransmission of the hole is lost as well.
    most_signs: u32,
    /// Duplicates that copies of what is not missing may yet cause, and until when.
    owed: u32,
    owed_until: Time,
    /// It has reported blocks, so a duplicate without any tells of no hole.
    has_sack: bool,
    /// Behind the last byte that blocks reported.
    sacked_to: Option<u32>,
    /// Number of the next transmission.
    next: u64,
    /// The latest transmission known to have arrived.
    arrived: u64,
    pub rtt: Rtt,
    backoff: u32,
    pub deadline: Option<Time>,
    /// When its alarm is set, which is no later than `deadline`.
    pub alarm: Option<Time>,
    /// When it last did anything.
    pub used: Time,
    pub ns2: ns2::State,
}

/// Round trips of the hop.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rtt {
    pub srtt: Option<Span>,
    pub var: Span,
    least: Option<Span>,
}

impl Rtt {
    /// RFC 6298 section 2.
    fn on_sample(&mut self, sample: Span) {
        self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
        let Some(srtt) = self.srtt else {
            (self.srtt, self.var) = (Some(sample), sample / 2);
            return;
        };
        let off = srtt.saturating_sub(sample) + sample.saturating_sub(srtt);
        self.var = (self.var * 3 + off) / 4;
        self.srtt = Some((srtt * 7 + sample) / 8);
    }

    /// `max(least, 2 srtt, srtt + 4 var)`.
    fn timer(&self, least: Span) -> Span {
        self.srtt.map_or(FIRST_TIMER, |srtt| srtt + srtt.max(self.var * 4)).max(least)
    }
}

/// What an acknowledgment's blocks say.
#[derive(Clone, Copy, Debug, Default)]
struct Report {
    /// Something beyond a hole has arrived.
    above: bool,
    /// Something has arrived twice (RFC 2883).
    twice: bool,
}

impl<P> Connection<P> {
    /// Seen for the first time, about to send from `seq` on.
    pub const fn new(seq: u32, now: Time) -> Self {
        Self {
            cache: Cache::new(),
            highest: seq,
            acked: None,
            window: None,
            signs: 0,
            most_signs: 0,
            owed: 0,
            owed_until: Time::ZERO,
            has_sack: false,
            sacked_to: None,
            next: 1,
            arrived: 0,
            rtt: Rtt { srtt: None, var: Span::ZERO, least: None },
            backoff: 0,
            deadline: None,
            alarm: None,
            used: now,
            ns2: ns2::State::NEW,
        }
    }

    /// Whether what begins at `seq` cannot belong to what was sent so far.
    pub const fn is_foreign(&self, seq: u32) -> bool {
        let ahead = seq.wrapping_sub(self.highest);
        ahead > FAR && ahead < FAR.wrapping_neg()
    }

    /// A segment came by; `room`: it may be cached.
    pub fn on_data(&mut self, now: Time, data: &Data, packet: P, room: bool, host: &mut Host<'_>) {
        let (start, end) = (data.seq, data.seq.wrapping_add(data.bytes + u32::from(data.fin) + u32::from(data.syn)));
        let is_new = !seq::after(self.highest, start);
        if is_new {
            self.drop_far(end);
        }
        host.counters.sent_again += u64::from(!is_new);
        let number = self.next;
        self.next += 1;
        if self.acked.is_some_and(|acked| !seq::after(end, acked)) {
            return;
        }
        let ns2 = host.params.conduct == Conduct::Ns2;
        if room && !data.queue_full {
            let segment = Segment {
                start,
                end,
                packet,
                sent_at: now,
                first: number,
                last: number,
                retransmissions: 0,
                by_sender: !is_new,
                sacked: false,
                given_up: false,
            };
            host.counters.cached += 1;
            if ns2 {
                self.insert_as_ns2(now, segment);
            } else {
                self.cache.insert(segment);
            }
        } else if let Some(old) = self.cache.same(start, end) {
            // An older copy is as good, but the hole is the sender's business now.
            old.by_sender = true;
        }
        if seq::after(end, self.highest) && !(ns2 && data.queue_full) {
            self.highest = end;
        }
        let is_first = self.cache.front().is_some_and(|front| front.start == start);
        if !is_new && is_first {
            self.backoff = 0;
        }
        if self.deadline.is_none() || (!is_new && is_first) {
            self.restart_timer(now, host.params);
        }
    }

    /// What is no longer comparable with the byte before `end` is of no use: acknowledgments do not come by here.
    fn drop_far(&mut self, end: u32) {
        if self.cache.front().is_some_and(|front| end.wrapping_sub(front.start) > FAR) {
            self.cache.clear();
        }
        if self.acked.is_some_and(|acked| end.wrapping_sub(acked) > FAR) {
            (self.acked, self.sacked_to) = (None, None);
        }
    }

    /// An acknowledgment came by.
    pub fn on_ack(&mut self, now: Time, ack: &Ack<'_>, host: &mut Host<'_>) -> SnoopVerdict {
        let unsent = seq::after(ack.ack, self.highest);
        if unsent || (self.acked.is_none() && self.highest.wrapping_sub(ack.ack) > FAR) {
            host.counters.strange += 1;
            return SnoopVerdict::Forward;
        }
        if self.acked.is_some_and(|acked| seq::after(acked, ack.ack)) {
            return SnoopVerdict::Forward;
        }
        if host.params.conduct == Conduct::Ns2 {
            let verdict = self.on_ack_as_ns2(now, ack.ack, host);
            // It knows no others.
            return if ack.carries_more { SnoopVerdict::Forward } else { verdict };
        }
        let same_window = self.window == Some(ack.window) && ack.window != 0;
        self.window = Some(ack.window);
        let is_new = self.acked != Some(ack.ack);
        if is_new {
            self.on_progress(now, ack.ack, host.params);
        }
        let report = self.read_blocks(ack, host.counters);
        let may_hold = !ack.carries_more && !report.twice;
        if self.has_sack || !ack.sack.is_empty() {
            let repaired = report.above && ack.window != 0 && self.repair_blocks(now, ack, host);
            return match (repaired && may_hold, is_new, same_window) {
                (true, true, _) => SnoopVerdict::Strip,
                (true, false, true) => SnoopVerdict::Suppress,
                _ => SnoopVerdict::Forward,
            };
        }
        if is_new || !same_window || !may_hold {
            return SnoopVerdict::Forward;
        }
        self.on_duplicate(now, ack.ack, host)
    }

    fn on_progress(&mut self, now: Time, ack: u32, params: &Params) {
        self.acked = Some(ack);
        self.signs = 0;
        self.most_signs = 0;
        self.backoff = 0;
        self.sacked_to = self.sacked_to.filter(|to| seq::after(*to, ack));
        let mut sample = None;
        let mut clean = true;
        while let Some(segment) = self.cache.take_below(ack) {
            clean &= segment.is_plain() && !segment.sacked;
            if segment.is_plain() {
                self.arrived = self.arrived.max(segment.first);
            }
            let age = now.since(segment.sent_at);
            sample = Some(age);
            // It came sooner than a round trip can be: of the transmission before, so the copy is in flight for nothing.
            if segment.retransmissions > 0 && self.rtt.least.is_some_and(|least| age < least) {
                self.owed += segment.retransmissions;
                self.owed_until = now + self.rtt.timer(params.least_timer);
            }
        }
        if let Some(sample) = sample.filter(|_| clean) {
            self.rtt.on_sample(sample);
        }
        self.restart_timer(now, params);
    }

    /// Marks what has arrived.
    fn read_blocks(&mut self, ack: &Ack<'_>, counters: &mut Snapshot) -> Report {
        let mut report = Report::default();
        for (number, &(start, end)) in ack.sack.iter().enumerate() {
            let is_range = seq::after(end, start) && !seq::after(end, self.highest);
            if is_range && number == 0 && !seq::after(end, ack.ack) {
                report.twice = true;
                continue;
            }
            if !is_range || !seq::after(start, ack.ack) {
                counters.strange += 1;
                continue;
            }
            let within = |outer: &&(u32, u32)| !seq::after(outer.0, start) && !seq::after(end, outer.1);
            if number == 0 && ack.sack.get(1).filter(within).is_some() {
                report.twice = true;
                continue;
            }
            report.above = true;
            self.sacked_to = Some(self.sacked_to.map_or(end, |to| seq::later(to, end)));
            self.mark(start, end);
        }
        self.has_sack |= report.above || report.twice;
        report
    }

    fn mark(&mut self, start: u32, end: u32) {
        let mut arrived = self.arrived;
        for segment in self.cache.iter_mut() {
            if seq::after(segment.end, end) {
                break;
            }
            if !segment.sacked && !seq::after(start, segment.start) {
                segment.sacked = true;
                if segment.is_plain() {
                    arrived = arrived.max(segment.first);
                }
            }
        }
        self.arrived = arrived;
    }

    /// Sends what blocks show to be missing once more. True when all of it is cached, and neither the sender's business nor
    /// given up.
    ///
    /// Missing is what was sent before something that has arrived: a hop keeps the order.
    fn repair_blocks(&mut self, now: Time, ack: &Ack<'_>, host: &mut Host<'_>) -> bool {
        let Some(to) = self.sacked_to else { return false };
        self.signs += 1;
        let is_hole = self.signs >= host.params.duplicates;
        let (mut ours, mut burst, mut expected) = (is_hole, 0, ack.ack);
        let (arrived, mut next, retries) = (self.arrived, self.next, host.params.retries);
        for segment in self.cache.iter_mut() {
            if !seq::after(to, segment.start) {
                break;
            }
            ours &= !seq::after(segment.start, expected) || has_arrived(ack.sack, expected, segment.start);
            expected = segment.end;
            if segment.sacked {
                continue;
            }
            if is_hole && !segment.by_sender && !segment.given_up && segment.last < arrived && burst < BURST {
                burst += u32::from(try_again(segment, now, &mut next, retries, Cause::Duplicates, host));
            }
            ours &= !segment.by_sender && !segment.given_up;
        }
        ours &= !seq::after(to, expected) || has_arrived(ack.sack, expected, to);
        self.next = next;
        if burst > 0 {
            self.restart_timer(now, host.params);
        }
        ours
    }

    /// A duplicate of a receiver that reports no blocks.
    fn on_duplicate(&mut self, now: Time, ack: u32, host: &mut Host<'_>) -> SnoopVerdict {
        let (most, first_signs) = (self.most_signs, host.params.duplicates);
        let owes = self.owed > 0 && now < self.owed_until;
        let Some(hole) = self.cache.front_mut().filter(|front| front.holds(ack) && !front.by_sender && !front.given_up)
        else {
            return SnoopVerdict::Forward;
        };
        if owes {
            self.owed -= 1;
            return SnoopVerdict::Suppress;
        }
        self.signs += 1;
        if self.signs < first_signs {
            return SnoopVerdict::Forward;
        }
        if hole.retransmissions > 0 && self.signs <= most {
            return SnoopVerdict::Suppress;
        }
        let behind = self.next - hole.first - 1 - u64::from(hole.retransmissions);
        let again = try_again(hole, now, &mut self.next, host.params.retries, Cause::Duplicates, host);
        if !again {
            return SnoopVerdict::Forward;
        }
        self.most_signs = self.signs.max(u32::try_from(behind).unwrap_or(u32::MAX));
        self.restart_timer(now, host.params);
        SnoopVerdict::Suppress
    }

    /// The timer has gone off, early or late.
    pub fn on_timer(&mut self, now: Time, host: &mut Host<'_>) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        self.deadline = None;
        if host.params.conduct == Conduct::Ns2 {
            return self.on_timer_as_ns2(now, host);
        }
        let acked = self.acked;
        let is_closed = self.window == Some(0);
        let Some(front) = self.cache.front_mut() else { return };
        let is_next = acked.is_none_or(|acked| front.holds(acked));
        if !is_next || is_closed || front.given_up || front.sacked {
            return;
        }
        if try_again(front, now, &mut self.next, host.params.retries, Cause::Timer, host) {
            self.backoff = (self.backoff + 1).min(MOST_BACKOFF);
            self.restart_timer(now, host.params);
        }
    }

    pub fn restart_timer(&mut self, now: Time, params: &Params) {
        let timer = match params.conduct {
            Conduct::Standard => self.rtt.timer(params.least_timer) * (1 << self.backoff),
            Conduct::Ns2 => self.ns2.timer(params.least_timer),
        };
        self.deadline = (!self.cache.is_empty()).then(|| now + timer);
    }

    /// Takes the number of a transmission.
    pub const fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }
}

/// Whether blocks hold all of `[start, end)`.
fn has_arrived(blocks: &[(u32, u32)], start: u32, end: u32) -> bool {
    blocks.iter().any(|block| !seq::after(block.0, start) && !seq::after(end, block.1))
}

/// Sends `segment` once more, unless that has been done often enough: then it is given up, and false.
fn try_again<P>(
    segment: &mut Segment<P>,
    now: Time,
    next: &mut u64,
    retries: u32,
    cause: Cause,
    host: &mut Host<'_>,
) -> bool {
    if segment.retransmissions >= retries {
        segment.given_up = true;
        host.counters.gave_up += 1;
        return false;
    }
    segment.retransmissions += 1;
    segment.sent_at = now;
    segment.last = *next;
    *next += 1;
    host.due.push(segment.start);
    host.count(cause);
    true
}

impl Host<'_> {
    /// Counts a local retransmission.
    pub const fn count(&mut self, cause: Cause) {
        match cause {
            Cause::Duplicates => self.counters.by_duplicates += 1,
            Cause::Timer => self.counters.by_timer += 1,
        }
    }
}

//! What is outstanding: one record per segment, from the cumulative acknowledgment to the newest byte sent.
//!
//! ```text
//! pipe = sum over segments not sacked of  bytes x [not lost] + bytes x [sent again]     [bytes]
//! lost: not sacked, and below `lost_below`
//! ```
//!
//! Source: RFC 6675 sections 3 and 4 (scoreboard, IsLost, SetPipe), kept up to date by differences instead of computed
//! anew. Without blocks from the receiver the same numbers describe RFC 5681 and ns-2: after a timeout everything
//! outstanding is lost, and `pipe` is what has been sent again since.
//!
//! What was sent again is lost again when something that was sent later, and once, has been delivered (RFC 8985 section
//! 6.2 with a reordering window of 0; RFC 6675 waits for the timer). [`Flight::give_up_repairs`] does it, where it is wanted.
//!
//! Ours: sacked segments stay so after a timeout, as in Linux (RFC 2018 section 8 forgets them, for receivers that
//! take back what they reported; ours do not).

use std::collections::VecDeque;

use lasthop_core::units::Time;

use crate::ranges::Ranges;
use crate::segment::SackBlocks;

/// Sacked ranges, or segments, above one that is then lost (RFC 6675: DupThresh).
const DUP_THRESH: usize = 3;

#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentRecord {
    pub offset: u64,
    pub sent_at: Time,
    pub bytes: u32,
    /// Never cleared: its round trip cannot be told (Karn).
    pub again: bool,
    /// Sent again since it was last given up.
    resent: bool,
    sacked: bool,
}

impl SegmentRecord {
    fn end(&self) -> u64 {
        self.offset + u64::from(self.bytes)
    }

    fn in_pipe(&self, lost_below: u64) -> u64 {
        let bytes = u64::from(self.bytes);
        match (self.sacked, self.offset < lost_below, self.resent) {
            (true, ..) | (false, true, false) => 0,
            (false, false, false) | (false, true, true) => bytes,
            (false, false, true) => 2 * bytes,
        }
    }
}

/// What an acknowledgment said about single segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Learned {
    /// When the newest of them that was sent once was sent.
    pub sent_at: Option<Time>,
    /// One of them was sent more than once.
    pub again: bool,
    /// Bytes.
    pub bytes: u64,
}

#[derive(Debug)]
pub(super) struct Flight {
    mss: u32,
    records: VecDeque<SegmentRecord>,
    sacked: Ranges,
    pipe: u64,
    lost_below: u64,
    /// No segment below it waits to be sent again.
    cursor: u64,
    /// Offsets of what was sent again in this recovery by blocks, the oldest repetition first; some may have arrived.
    repairs: VecDeque<u64>,
    /// When the newest segment was sent that was sent once and has been delivered.
    delivered_sent_at: Time,
}

impl Flight {
    pub(super) fn new(mss: u32) -> Self {
        Self {
            mss,
            records: VecDeque::with_capacity(64),
            sacked: Ranges::with_capacity(16),
            pipe: 0,
            lost_below: 0,
            cursor: 0,
            repairs: VecDeque::with_capacity(16),
            delivered_sent_at: Time::ZERO,
        }
    }

    /// Bytes in the network, as far as can be told.
    #[inline]
    pub(super) fn pipe(&self) -> u64 {
        self.pipe
    }

    pub(super) fn front(&self) -> Option<&SegmentRecord> {
        self.records.front()
    }

    /// A segment never sent before.
    pub(super) fn push(&mut self, offset: u64, bytes: u32, now: Time) {
        self.records.push_back(SegmentRecord {
            offset,
            sent_at: now,
            bytes,
            again: false,
            resent: false,
            sacked: false,
        });
        self.pipe += u64::from(bytes);
    }

    /// Everything below `offset` has arrived.
    pub(super) fn acknowledge(&mut self, offset: u64) -> Learned {
        match self.records.front() {
            // Nearly always: one segment, and no loss in sight.
            Some(&first) if first.end() == offset && self.lost_below <= first.offset && self.sacked.is_empty() => {
                self.pipe -= first.in_pipe(0);
                self.records.pop_front();
                self.cursor = self.cursor.max(offset);
                let sent_at = if first.again { None } else { Some(first.sent_at) };
                Learned { sent_at, again: first.again, bytes: u64::from(first.bytes) }
            }
            _ => self.acknowledge_many(offset),
        }
    }

    fn acknowledge_many(&mut self, offset: u64) -> Learned {
        let mut learned = Learned::default();
        while let Some(&first) = self.records.front() {
            if first.offset >= offset {
                break;
            }
            if first.end() > offset {
                self.cut_front(offset);
                break;
            }
            self.pipe -= first.in_pipe(self.lost_below);
            learned.bytes += u64::from(first.bytes);
            learned.again |= first.again;
            if !first.sacked && !first.again {
                learned.sent_at = Some(first.sent_at);
                self.delivered_sent_at = self.delivered_sent_at.max(first.sent_at);
            }
            self.records.pop_front();
        }
        self.sacked.remove_below(offset);
        self.cursor = self.cursor.max(offset);
        learned
    }

    /// Half a segment was acknowledged.
    fn cut_front(&mut self, offset: u64) {
        let lost_below = self.lost_below;
        if let Some(first) = self.records.front_mut() {
            self.pipe -= first.in_pipe(lost_below);
            first.bytes = (first.end() - offset) as u32;
            first.offset = offset;
            self.pipe += first.in_pipe(lost_below);
        }
    }

    /// Enters what the receiver reports beyond `una`; nothing when it was known.
    pub(super) fn sack(&mut self, una: u64, next: u64, blocks: &SackBlocks) -> Learned {
        let mut learned = Learned::default();
        for &(start, end) in blocks.as_slice() {
            let (start, end) = (start.max(una), end.min(next));
            if start < end && !self.sacked.covers(start, end) {
                self.sacked.insert(start, end);
                self.sack_range(start, end, &mut learned);
            }
        }
        learned
    }

    fn sack_range(&mut self, start: u64, end: u64, learned: &mut Learned) {
        let mut at = self.index_of(start);
        while let Some(record) = self.records.get_mut(at).filter(|record| record.offset < end) {
            if !record.sacked && self.sacked.covers(record.offset, record.end()) {
                self.pipe -= record.in_pipe(self.lost_below);
                record.sacked = true;
                learned.bytes += u64::from(record.bytes);
                learned.again |= record.again;
                if !record.again {
                    learned.sent_at = learned.sent_at.max(Some(record.sent_at));
                    self.delivered_sent_at = self.delivered_sent_at.max(record.sent_at);
                }
            }
            at += 1;
        }
    }

    /// Where the record with `offset` stands, or the first beyond it. Nearly all are one MSS: the guess hits.
    fn index_of(&self, offset: u64) -> usize {
        let Some(front) = self.records.front() else { return 0 };
        if offset < front.end() {
            return 0;
        }
        let guess = ((offset - front.offset) / u64::from(self.mss)) as usize;
        match self.records.get(guess) {
            Some(record) if record.offset <= offset && offset < record.end() => guess,
            _ => self.records.partition_point(|record| record.end() <= offset),
        }
    }

    /// Draws the line below which what is not sacked is lost: three ranges, or more than two segments, above it.
    pub(super) fn mark_lost(&mut self) {
        let mut bytes = 0;
        for (count, &(start, end)) in self.sacked.as_slice().iter().rev().enumerate() {
            bytes += end - start;
            if count + 1 >= DUP_THRESH || bytes > (DUP_THRESH as u64 - 1) * u64::from(self.mss) {
                self.give_up_below(start);
                return;
            }
        }
    }

    /// Lost is what `segments` or more have been sent after, up to the highest reported one (FACK). Whether that is news.
    pub(super) fn mark_lost_beyond(&mut self, segments: u64) -> bool {
        let before = self.lost_below;
        let highest = self.sacked.as_slice().last().map_or(0, |&(_, end)| end);
        self.give_up_below(highest.saturating_sub(segments * u64::from(self.mss)));
        self.lost_below > before && self.next_lost().is_some_and(|(at, _)| self.records[at].offset >= before)
    }

    fn give_up_below(&mut self, line: u64) {
        if line <= self.lost_below {
            return;
        }
        let mut at = self.index_of(self.lost_below);
        while let Some(record) = self.records.get(at).filter(|record| record.offset < line) {
            if record.offset >= self.lost_below {
                self.pipe -= record.in_pipe(0) - record.in_pipe(u64::MAX);
            }
            at += 1;
        }
        self.lost_below = line;
    }

    /// What was sent again and must have been lost again waits once more. When the newest of it was sent; `None`: there was none.
    pub(super) fn give_up_repairs(&mut self) -> Option<Time> {
        let mut newest = None;
        while let Some(&offset) = self.repairs.front() {
            let (at, lost_below) = (self.index_of(offset), self.lost_below);
            let Some(record) = self.records.get_mut(at).filter(|r| r.offset == offset && r.resent && !r.sacked) else {
                self.repairs.pop_front();
                continue;
            };
            if record.sent_at >= self.delivered_sent_at {
                return newest;
            }
            newest = newest.max(Some(record.sent_at));
            self.pipe -= record.in_pipe(lost_below);
            record.resent = false;
            self.pipe += record.in_pipe(lost_below);
            self.cursor = self.cursor.min(offset);
            self.repairs.pop_front();
        }
        newest
    }

    /// Timeout: everything that is not sacked is lost, and nothing of it has been sent again.
    pub(super) fn give_up_all(&mut self) {
        // A receiver that had the first byte would have acknowledged it: it took back what it reported.
        let reneged = self.front().is_some_and(|first| first.sacked);
        if reneged {
            self.sacked.clear();
        }
        for record in &mut self.records {
            record.resent = false;
            record.sacked &= !reneged;
        }
        self.pipe = 0;
        self.repairs.clear();
        if let (Some(first), Some(last)) = (self.records.front(), self.records.back()) {
            self.cursor = first.offset;
            self.lost_below = last.end();
        }
    }

    /// Fast retransmit of the first segment, whatever the windows say.
    pub(super) fn resend_front(&mut self, now: Time) -> Option<SegmentRecord> {
        let end = self.records.front()?.end();
        self.give_up_below(end);
        self.cursor = self.cursor.max(end);
        self.resend(0, now)
    }

    /// Scanning starts over at the first segment, as recovery does.
    pub(super) fn rewind(&mut self) {
        let first = self.records.front().map_or(self.cursor, |first| first.offset);
        self.cursor = first;
        self.repairs.retain(|&offset| offset >= first);
    }

    /// The first segment is lost and waits, or has been sent again.
    pub(super) fn front_is_lost(&self) -> bool {
        self.front().is_some_and(|first| !first.sacked && first.offset < self.lost_below)
    }

    /// The first segment has been sent again since it was given up.
    pub(super) fn front_is_resent(&self) -> bool {
        self.front().is_some_and(|first| first.resent)
    }

    /// Lowest lost segment that waits (RFC 6675 NextSeg rule 1); its bytes.
    pub(super) fn next_lost(&mut self) -> Option<(usize, u32)> {
        self.next_hole(self.lost_below)
    }

    /// Lowest segment below something sacked that was not sent again (RFC 6675 NextSeg rule 3).
    pub(super) fn next_unsacked(&mut self) -> Option<(usize, u32)> {
        let highest = self.sacked.as_slice().last().map_or(0, |&(_, end)| end);
        self.next_hole(highest)
    }

    fn next_hole(&mut self, line: u64) -> Option<(usize, u32)> {
        if self.cursor >= line {
            return None;
        }
        let mut at = self.index_of(self.cursor);
        while let Some(record) = self.records.get(at).filter(|record| record.offset < line) {
            if !record.sacked && !record.resent {
                self.cursor = record.offset;
                return Some((at, record.bytes));
            }
            at += 1;
        }
        self.cursor = line;
        None
    }

    /// Highest segment not sacked, unless it has been sent again (RFC 6675 NextSeg rule 4).
    pub(super) fn last_unsacked(&self) -> Option<usize> {
        let at = self.records.iter().rposition(|record| !record.sacked)?;
        Some(at).filter(|_| !self.records[at].resent)
    }

    /// Sends record `at` again, just in case: it counts as before (RFC 6675: HighRxt is not updated).
    pub(super) fn rescue(&mut self, at: usize, now: Time) -> Option<SegmentRecord> {
        let record = self.records.get_mut(at)?;
        record.again = true;
        record.sent_at = now;
        Some(*record)
    }

    /// Sends record `at` again.
    pub(super) fn resend(&mut self, at: usize, now: Time) -> Option<SegmentRecord> {
        let lost_below = self.lost_below;
        let record = self.records.get_mut(at)?;
        self.pipe -= record.in_pipe(lost_below);
        record.again = true;
        record.resent = true;
        record.sent_at = now;
        self.pipe += record.in_pipe(lost_below);
        let record = *record;
        if !self.sacked.is_empty() {
            self.repairs.push_back(record.offset);
        }
        Some(record)
    }
}

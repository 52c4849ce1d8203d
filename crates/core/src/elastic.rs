//! Elastic or real-time: what one direction of a UDP flow is, told by how it behaves, not by its port.
//!
//! Real-time traffic comes when something happens (a frame, a key, 20 ms of speech); elastic traffic comes when there is
//! room. Over a sliding second of intervals, of which each is what `fastpath::udp` counted:
//!
//! ```text
//! full       = bytes in packets of at least 1200 / bytes                                          [1]
//! answered   = packets in the other direction / packets                                                    [1], and per second
//! framed     : trains of three packets or more, not doubling, at least 60 % of them one period (8 to 70 ms) apart,
//!              with at least a quarter of the time in the pauses between them
//! steadiness = mean |rate of an interval - mean rate| / mean rate                                 [1]
//! ```
//!
//! | seen, in this order | is | why |
//! |---|---|---|
//! | framed, or it was for 1 s within the last minute, at no more than 3/2 of the rate it had then | real-time | an encoder's clock is its own, a sender's is the network's |
//! | full < 0.93; 0.5 of one that was elastic, for who is held sends what is left of its windows | real-time | who sends as much as there is room for sends full packets; the last packet of a frame is what is left |
//! | fills what the hop has, while its queue stands | elastic | nothing live is larger than its hop |
//! | answered < 1/16, or less than 30 per s and 1/3 | real-time | without news from the receiver nobody can follow the room there is |
//! | more than 5/4 small packets in the other direction for each | real-time | that is somebody's input |
//! | framed, but for 40 % of the trains and an eighth of the time | as before | these may be frames yet |
//! | answered >= 1/4 and >= 150 per s | elastic | every few packets are acknowledged |
//! | elastic before | elastic | who is held neither grows nor varies |
//! | less than 60 packets per s, answered >= 2/5 | elastic | whether so few are steady is not seen, but a window is acknowledged like this |
//! | rate grew to twice of what it was, or steadiness >= 5 % and a packet | elastic | it looks for its room |
//! | else | real-time | a stream of constant rate that is answered now and then |
//!
//! What it is found to be must be found for 0.3 s on end; for 1 s by its growth or steadiness alone, and to undo what was
//! found before. So a bulk transfer is elastic 0.7 s after it began, a slow one 1.5 s. Until something is found it is unknown, which hosts treat as real-time;
//! but what began as a QUIC connection is elastic, for it gives way (RFC 9002).
//!
//! Sources: RFC 9000 section 13.2 and RFC 9221 for how often QUIC acknowledges (every second packet, or within 25 ms),
//! RFC 8888 and the transport-wide feedback of WebRTC (every 50 to 250 ms) for real-time media. Ours: the rules and numbers.
//!
//! Does not: look at ports, nor at payload but for how a flow began; tell a bulk transfer that sends trains by a clock of 8 to 70 ms (a sender without
//! pacing that is acknowledged once per train) from frames; see inside a tunnel, which is what most of its bytes are.
//! Being wrong costs nothing below the fair share: who is there is not steered whatever it is.

use std::collections::VecDeque;
use std::fmt;
use std::ops::RangeInclusive;

use crate::fastpath::layout::UdpState;
use crate::packet::Direction;
use crate::units::{BitRate, Span};

/// What a flow is taken for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Behaviour {
    /// Not seen for long enough: left alone.
    #[default]
    Unknown,
    /// Late is as bad as lost: never touched.
    RealTime,
    /// Takes what there is: gets a share like TCP.
    Elastic,
}

impl Behaviour {
    /// As status and reports name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::RealTime => "real-time",
            Self::Elastic => "elastic",
        }
    }
}

/// Why it is taken for that.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Why {
    /// Less than half a second of it has been seen.
    #[default]
    New,
    /// It began as a QUIC connection.
    BeganAsQuic,
    /// Its packets come in frames, so far apart.
    Frames(Span),
    /// They did until lately, and it sends no more now.
    HadFrames,
    /// Only this part of its bytes is in full packets.
    SmallPackets(f64),
    /// It fills the hop, and its queue stands.
    FillsTheHop,
    /// This many packets come back for each of its own: too few to steer by.
    NotAnswered(f64),
    /// This many small packets come back for each of its own: more than could acknowledge it.
    Talk(f64),
    /// This many packets come back for each of its own: every few are acknowledged.
    Acknowledged(f64),
    /// Its rate grew by this factor.
    Grew(f64),
    /// Its rate moves by this part about its mean.
    Varies(f64),
    /// Its rate does not.
    Steady(f64),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => write!(f, "too little of it has been seen"),
            Self::BeganAsQuic => write!(f, "it began as a QUIC connection, which gives way (RFC 9002)"),
            Self::Frames(period) => write!(f, "it comes in frames, {} apart", period.rounded()),
            Self::HadFrames => write!(f, "it came in frames and sends no more than then"),
            Self::SmallPackets(full) => write!(f, "{:.0} % of its bytes are in full packets", full * 100.0),
            Self::FillsTheHop => write!(f, "it fills the hop and the queue stands"),
            Self::NotAnswered(ratio) => write!(f, "{ratio:.3} packets come back for each, too few to steer by"),
            Self::Talk(ratio) => {
                write!(f, "{ratio:.1} small packets come back for each, more than could acknowledge it")
            }
            Self::Acknowledged(ratio) => write!(f, "{ratio:.2} acknowledgments come back for each full packet"),
            Self::Grew(factor) if *factor >= 100.0 => {
                write!(f, "full packets, acknowledged, and its rate grew more than a hundred times")
            }
            Self::Grew(factor) => write!(f, "full packets, acknowledged, and its rate grew {factor:.1} times"),
            Self::Varies(part) => {
                write!(f, "full packets, acknowledged, and its rate follows the room by {:.0} %", part * 100.0)
            }
            Self::Steady(part) => write!(f, "its rate is steady within {:.1} %", part * 100.0),
        }
    }
}

/// What a direction of a flow did in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// Length of the interval.
    pub span: Span,
    /// IP bytes.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// IP bytes in packets of at least `fastpath::udp::FULL_BYTES`.
    pub full_bytes: u64,
    /// Trains that began.
    pub trains: u32,
    /// Of those, how many one period after the one before.
    pub regular: u32,
    /// Time in pauses between trains.
    pub pause: Span,
    /// The running period.
    pub period: Span,
    /// Packets of the flow in the other direction.
    pub answers: u64,
    /// Of those, the ones that are not full.
    pub small_answers: u64,
}

impl Interval {
    /// What `direction` did between two looks at a flow.
    #[must_use]
    pub fn between(before: &UdpState, after: &UdpState, direction: Direction, span: Span) -> Self {
        let (a, b) = (&before.half[direction.index()], &after.half[direction.index()]);
        let back = |state: &UdpState| state.half[direction.reverse().index()];
        let answers = back(after).packets.wrapping_sub(back(before).packets);
        let full_back = back(after).full_bytes.wrapping_sub(back(before).full_bytes);
        Self {
            span,
            bytes: b.bytes.wrapping_sub(a.bytes),
            packets: b.packets.wrapping_sub(a.packets),
            full_bytes: b.full_bytes.wrapping_sub(a.full_bytes),
            trains: b.trains.wrapping_sub(a.trains),
            regular: b.regular.wrapping_sub(a.regular),
            pause: Span::from_nanos(b.pause_ns.wrapping_sub(a.pause_ns)),
            period: Span::from_nanos(u64::from(b.period_ns)),
            answers,
            small_answers: answers.saturating_sub(full_back.div_ceil(LARGEST_PACKET)),
        }
    }
}

/// What the hop was like in that interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HopLoad {
    /// What this flow could have there, if that is known: the capacity without what cannot give way.
    pub room: Option<BitRate>,
    /// A queue that is longer than its target stands in front of it.
    pub standing_queue: bool,
}

/// What is looked at: long enough for several frames and round trips.
const WINDOW: Span = Span::from_secs(1);
/// Nothing is found in less time, nor in fewer packets.
const LEAST: Span = Span::from_millis(400);
const LEAST_PACKETS: u64 = 30;
/// For how long a first finding must hold, and a later one.
const CONFIRM: Span = Span::from_millis(300);
const UNDO: Span = Span::from_secs(1);
/// How long frames are remembered while the flow sends: a queue before the home hides them.
const MEMORY: Span = Span::from_secs(60);
/// Periods of frames: 14 to 125 per second.
const PERIOD: RangeInclusive<Span> = Span::from_millis(8)..=Span::from_millis(70);
/// Part of the trains that is one period apart, and part of the time that is in pauses, at least.
const REGULAR: f64 = 0.6;
const PAUSE: f64 = 0.25;
/// The same two parts, for a flow that may still turn out to send frames.
const PERHAPS: (f64, f64) = (0.4, PAUSE / 2.0);
/// Part of the bytes that is in full packets, at least.
const FULL: f64 = 0.93;
/// Part of the room that fills it.
const FILLS: f64 = 0.9;
/// Mean deviation of the rate that is not steady, and growth that shows a search for room.
const VARIES: f64 = 0.05;
const GROWS: f64 = 2.0;
/// An elastic flow of which fewer bytes are in full packets has become something else: most of them. aioquic has 0.88 while it is held
/// (`quic-and-tcp-20` of `make outside`), and takes two thirds of the hop where that undoes it.
const MOSTLY: f64 = 0.5;
/// Answers by feedback on media come 4 to 20 times per second, acknowledgments at least 40 times.
const ANSWERS_PER_SECOND: f64 = 30.0;
const ANSWERED: f64 = 1.0 / 16.0;
const ANSWERED_DENSELY: f64 = 1.0 / 3.0;
/// One packet is acknowledged by one at most; a quarter more for what the window cuts off.
const TALK: f64 = 1.25;
/// IP bytes.
const LARGEST_PACKET: u64 = 1500;
/// Only acknowledgments are as many as this: per packet and per second.
const ACKNOWLEDGED: (f64, f64) = (0.25, 150.0);
/// Every second packet, but for some.
const ACKNOWLEDGED_AS_A_WINDOW: f64 = 0.4;
/// Packets per second, three in an interval of 50 ms: of fewer it is not seen whether their rate is steady.
const FEW_PER_SECOND: f64 = 60.0;
/// Frames are believed up to this part of the rate they had.
const BELIEVED: f64 = 1.5;
/// Fewer trains in the window have no rhythm.
const LEAST_TRAINS: u32 = 8;
/// Frames of fewer packets have too few full ones anyway.
const LEAST_PER_TRAIN: u64 = 3;

/// One direction of one flow.
#[derive(Clone, Debug, Default)]
pub struct Classifier {
    intervals: VecDeque<Interval>,
    total: Interval,
    behaviour: Behaviour,
    why: Why,
    /// What is found of late, and for how long on end.
    candidate: (Behaviour, Span),
    /// For how long frames have been seen on end.
    framing: Span,
    /// Time left for which frames are remembered, and the rate they had, bit/s.
    framed: Option<(Span, f64)>,
    /// Rate of the first whole interval, bit/s.
    first_rate: Option<f64>,
    seen: bool,
}

impl Classifier {
    /// Of a flow that began as a QUIC connection, which gives way (RFC 9002 section 7), until it shows otherwise.
    #[must_use]
    pub fn of_quic() -> Self {
        Self { behaviour: Behaviour::Elastic, why: Why::BeganAsQuic, ..Self::default() }
    }

    /// What it is taken for.
    #[must_use]
    pub const fn behaviour(&self) -> Behaviour {
        self.behaviour
    }

    /// Why.
    #[must_use]
    pub const fn why(&self) -> Why {
        self.why
    }

    /// The end of an interval; true when the flow is taken for something else from now on.
    pub fn on_interval(&mut self, interval: &Interval, hop: &HopLoad) -> bool {
        if interval.packets == 0 {
            // What is silent shows nothing; after a window of that it is looked at as if it were new.
            self.push(interval);
            if self.total.packets == 0 {
                (self.first_rate, self.seen) = (None, false);
                self.candidate.1 = Span::ZERO;
            }
            return false;
        }
        self.push(interval);
        // The first interval is only a part of one.
        if self.seen && self.first_rate.is_none() {
            self.first_rate = Some(rate(interval));
        }
        self.seen = true;
        let active: Span = self.intervals.iter().filter(|i| i.packets > 0).fold(Span::ZERO, |sum, i| sum + i.span);
        if active < LEAST || self.total.packets < LEAST_PACKETS {
            return false;
        }
        self.remember(interval.span);
        let (found, why) = self.find(hop);
        self.settle(found, why, interval.span)
    }

    fn push(&mut self, interval: &Interval) {
        self.intervals.push_back(*interval);
        add(&mut self.total, interval);
        while self.total.span > WINDOW && self.intervals.len() > 1 {
            if let Some(oldest) = self.intervals.pop_front() {
                subtract(&mut self.total, &oldest);
            }
        }
    }

    /// Keeps that frames were seen, or forgets it.
    fn remember(&mut self, span: Span) {
        let now = rate(&self.total);
        self.framing = if self.has_frames() { self.framing + span } else { Span::ZERO };
        if self.framing >= UNDO {
            let before = self.framed.map_or(0.0, |(_, rate)| rate);
            self.framed = Some((MEMORY, now.max(before)));
        } else if let Some((left, believed)) = self.framed {
            let kept = left > span && now <= BELIEVED * believed;
            self.framed = kept.then(|| (left - span, believed));
        }
    }

    /// What was found elastic and is acknowledged as densely as a window is has the clock of its own round trip.
    fn has_frames(&self) -> bool {
        let was_found = self.behaviour == Behaviour::Elastic && self.why != Why::BeganAsQuic;
        let is_window = was_found && self.total.answers as f64 >= ACKNOWLEDGED_AS_A_WINDOW * self.total.packets as f64;
        !is_window && self.frames((REGULAR, PAUSE))
    }

    fn frames(&self, (regular, pause): (f64, f64)) -> bool {
        let Interval { trains, packets, span, .. } = self.total;
        let period_now = self.intervals.back().map_or(Span::ZERO, |interval| interval.period);
        trains >= LEAST_TRAINS
            && packets >= LEAST_PER_TRAIN * u64::from(trains)
            && !self.doubles()
            && f64::from(self.total.regular) >= regular * f64::from(trains)
            && self.total.pause.as_secs_f64() >= pause * span.as_secs_f64()
            && PERIOD.contains(&period_now)
    }

    /// The later half of the window carried more than twice what the earlier did: slow start, sent in trains.
    fn doubles(&self) -> bool {
        let half = self.intervals.len() / 2;
        let sum = |part: &mut dyn Iterator<Item = &Interval>| part.map(|i| i.bytes).sum::<u64>();
        let (earlier, later) = (self.intervals.iter().take(half), self.intervals.iter().rev().take(half));
        sum(&mut { later }) > 2 * sum(&mut { earlier })
    }

    fn find(&self, hop: &HopLoad) -> (Behaviour, Why) {
        use Behaviour::{Elastic, RealTime};
        let total = &self.total;
        if self.has_frames() {
            let period = self.intervals.back().map_or(Span::ZERO, |interval| interval.period);
            return (RealTime, Why::Frames(period));
        }
        if self.framed.is_some() {
            return (RealTime, Why::HadFrames);
        }
        let in_full = total.full_bytes as f64 / total.bytes.max(1) as f64;
        let elastic = self.behaviour == Elastic;
        // Who is held sends what is left of its windows, and again what was dropped.
        if in_full < if elastic { MOSTLY } else { FULL } {
            return (RealTime, Why::SmallPackets(in_full));
        }
        let now = rate(total);
        // Once it is held there is no queue any more.
        let queue = hop.standing_queue || (elastic && self.why == Why::FillsTheHop);
        if queue && hop.room.is_some_and(|room| now >= FILLS * room.as_bps() as f64) {
            return (Elastic, Why::FillsTheHop);
        }
        let answered = total.answers as f64 / total.packets as f64;
        let per_second = total.answers as f64 / total.span.as_secs_f64();
        if answered < ANSWERED || (per_second < ANSWERS_PER_SECOND && answered < ANSWERED_DENSELY) {
            return (RealTime, Why::NotAnswered(answered));
        }
        let talk = total.small_answers as f64 / total.packets as f64;
        if talk > TALK {
            return (RealTime, Why::Talk(talk));
        }
        if !elastic && self.frames(PERHAPS) {
            return (self.behaviour, self.why);
        }
        if answered >= ACKNOWLEDGED.0 && per_second >= ACKNOWLEDGED.1 {
            return (Elastic, Why::Acknowledged(answered));
        }
        // A flow that is held to its share neither grows nor varies.
        if elastic {
            return (Elastic, self.why);
        }

        let growth = self.first_rate.map_or(0.0, |first| now / first.max(1.0));
        if growth >= GROWS {
            return (Elastic, Why::Grew(growth));
        }
        let few = (total.packets as f64) < FEW_PER_SECOND * total.span.as_secs_f64();
        if few && answered >= ACKNOWLEDGED_AS_A_WINDOW {
            return (Elastic, Why::Acknowledged(answered));
        }
        let deviation = self.steadiness(now);
        // A packet more or less in an interval is no change.
        let one_packet = self.intervals.len() as f64 / total.packets as f64;
        if deviation >= VARIES + one_packet {
            (Elastic, Why::Varies(deviation))
        } else {
            (RealTime, Why::Steady(deviation))
        }
    }

    fn steadiness(&self, mean: f64) -> f64 {
        let deviations = self.intervals.iter().map(|interval| (rate(interval) - mean).abs());
        deviations.sum::<f64>() / self.intervals.len().max(1) as f64 / mean.max(1.0)
    }

    fn settle(&mut self, found: Behaviour, why: Why, span: Span) -> bool {
        if found == self.behaviour {
            self.candidate = (found, Span::ZERO);
            self.why = why;
            return false;
        }
        let before = if self.candidate.0 == found { self.candidate.1 } else { Span::ZERO };
        self.candidate = (found, before + span);
        let confident = !matches!(why, Why::Grew(_) | Why::Varies(_));
        let first = self.behaviour == Behaviour::Unknown && confident;
        let needed = if first { CONFIRM } else { UNDO };
        if self.candidate.1 < needed {
            return false;
        }
        (self.behaviour, self.why) = (found, why);
        true
    }
}

/// Bit/s.
fn rate(interval: &Interval) -> f64 {
    interval.bytes as f64 * 8.0 / interval.span.as_secs_f64().max(1e-9)
}

fn add(total: &mut Interval, one: &Interval) {
    total.span += one.span;
    total.bytes += one.bytes;
    total.packets += one.packets;
    total.full_bytes += one.full_bytes;
    total.trains += one.trains;
    total.regular += one.regular;
    total.pause += one.pause;
    total.answers += one.answers;
    total.small_answers += one.small_answers;
}

fn subtract(total: &mut Interval, one: &Interval) {
    total.span -= one.span;
    total.bytes -= one.bytes;
    total.packets -= one.packets;
    total.full_bytes -= one.full_bytes;
    total.trains -= one.trains;
    total.regular -= one.regular;
    total.pause -= one.pause;
    total.answers -= one.answers;
    total.small_answers -= one.small_answers;
}

#[cfg(test)]
mod tests;

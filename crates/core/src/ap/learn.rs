//! The same decisions where nobody said what the hop carries.
//!
//! Each direction of data is a *way*. Per interval, with `q` what waits beyond the round trip without queueing:
//!
//! ```text
//! busy     for a round trip on end even the fastest packet of each interval waited, and the hop was seen working:
//!          what was delivered is what it carries (core::capacity)
//! boost'   boost (1 + (gain (bound - q) / rtt + m - e) dt / rtt)   while windows hold flows, or while q > bound;
//!          m = (1 - used) / 2 while q < bound, else 0; while the air is busy not of the capacity but of what was given;
//!          e = (used - 1) / 2 of that while the other way of the air lacks what it was given, else 0
//! probe    boost (1 + r dt / rtt)         windows hold flows, and nothing waited for 2 round trips (4 where the hop is not used);
//!          r = 1/2 where more came through than is known, else 1 ms / rtt
//! window   share x p x boost x base_rtt
//! ```
//!
//! So the capacity gives the shares, and `boost`, one for all flows of a way, keeps the queue where it should be: small,
//! but there. Without one nobody could tell a hop that is just full from one that could carry more, and an air that has
//! to wait for packets between two frames is not full. The probe queues no longer than a millisecond; a
//! link that became ten times as fast is found in a few doublings.
//!
//! Where window updates are sent, what comes of a flow keeps to a pace: its share, and a little more (`GAIN_*`): most while a guess
//! is not sure, for what is paced too slowly shows nothing; next while nothing waits; least while the hop is full, for what comes
//! faster then queues. While nothing was measured the boost rises only when all windows have been full for a round trip:
//! what they bring is seen no earlier.
//!
//! What waits on a slow line before the home stands for minutes where nothing empties it, and the least round trip of the last
//! ten seconds is then no more that of the path: so every five seconds the bound is zero there until the queue was empty.
//! Who waits there, data on their way in or acknowledgments on theirs out, no round trip tells: a line that is known to carry more
//! than comes is not full while the other way is loaded as ever.
//!
//! Stations differ in what a byte costs the air (`divide`). What the air carries is told in bytes of the cheapest one, TCP and UDP
//! alike, what the line carries in bytes; the queue that is left alone in the packets of those that move now.
//!
//! Before anything was measured there is a guess: trains that were sent at once come at the pace of the line and are delivered at
//! that of the last hop. A train that lasted longer may have the pace of its sender. While windows are full and nothing waits a
//! little more than the guess is tried.
//!
//! Where the queue is: what is added to the round trip between access point and station is the last hop's, what is added
//! to the other half is in front of the home. The flow that saw least is believed: flows share the queue, while delayed
//! ACKs, power save and slow servers only add. A half that nobody told of keeps what it had for a round trip. The ACKs of uploads wait
//! where downloads do. For the far half only flows that fill their windows count: others answer
//! when they have something to say.

use super::record::Basis;
use super::seen::{Seen, pause};
use super::{Decision, Params, Place};
use crate::capacity::{self, Estimator};
use crate::meter::rtt::MinFilter;
use crate::packet::Direction;
use crate::units::{BitRate, Span, Time};

/// Gain of the boost per round trip.
const GAIN: f64 = 0.3;
/// Bounds of the boost: flows that do not use their shares leave that much to the others.
const BOOST: (f64, f64) = (0.5, 64.0);
/// A boost that is no more than so many times the least cannot fall much further.
const HAS_HELPED: f64 = 1.1;
/// What the boost begins with: a minimum round trip lacks what contention and delayed ACKs add.
const START_BOOST: f64 = 1.1;
/// Where window updates are sent the boost begins with no more than so much of the round trip, s.
const START_QUEUE: f64 = 0.005;
/// What comes of a flow that is told its window between ACKs, in parts of its share: while the hop is full; while nothing waits;
/// while its capacity is a guess that is not sure; while only the line's is. The first lets a pause be made up for, the others
/// find out that there is more.
const GAIN_FULL: f64 = 1.02;
const GAIN_QUIET: f64 = 1.1;
const GAIN_UNSURE: f64 = 1.2;
const GAIN_LINE: f64 = 2.0;
/// So much of the line is used: what comes faster would wait there.
const LINE_USED: f64 = 0.6;
/// And at most.
const MOST_GAIN: f64 = 4.0;
/// Round trips without a queue after which nothing is said to wait.
const NOTHING_WAITS: f64 = 1.0;
/// A train that came so many times faster than it was delivered was stretched by the hop.
const STRETCHED: f64 = 1.1;
/// Who was asked answers within so many round trips.
const ANSWERS: f64 = 1.5;
/// Round trips without a queue before the probe begins: of a hop that is used, and of one that is not, whose flows may have
/// other reasons.
const QUIET: f64 = 2.0;
const HELD_UP: f64 = 4.0;
/// What the probe adds queues for so long, s.
const PROBE: f64 = 0.001;
/// Delivered so many times as much as the hop is said to carry, there is more, and windows grow by so much a round trip.
const MORE: f64 = 1.04;
const RISE: f64 = 0.5;
/// More than a guess is tried while windows are full and nothing waits, where window updates are sent: what comes then comes at a
/// pace. So much more a round trip, or what queues for so long before that is seen, s, and at most so many times the guess.
const TRY_MORE: f64 = 0.25;
const TRY_QUEUE: f64 = 0.01;
const MOST_TRIED: f64 = 1.25;
/// So much in a queue is no chance, bytes: three full packets.
const WAITING: u64 = 3 * 1500;
/// A train of fewer bytes says little: six packets.
const TRAIN_BYTES: f64 = 6.0 * 1500.0;
/// A part of a round trip, and a time, s: a train that took no longer was sent at once, at the pace of no sender.
const AT_ONCE: f64 = 0.25;
const AT_ONCE_TIME: f64 = 0.01;
/// Those of several flows that begin together make one train on the line, as long as all of them. At most this part of a round
/// trip: a longer one may be the pace of acknowledgments.
const AT_ONCE_TOGETHER: f64 = 0.75;
/// A part of the largest train of late: in slow start they grow, so what is smaller is what a sender with a pace left over.
const WHOLE: f64 = 0.5;
/// A first measurement takes more than one interval of 50 ms, s.
const FIRST_SURE: f64 = 0.06;
/// A part of an interval: a train of a download that filled less of it has ended.
const TRAIN_ENDS: f64 = 0.6;
/// One of an upload has when nothing has come for so long, s, or for a quarter of a round trip: what a sender paces is no train,
/// and the air is the first hop that it meets.
const TRAIN_PAUSE: f64 = 0.01;
/// A part of the air below which a direction's own price cannot be told from the other's.
const LEAST_AIR: f64 = 0.1;
/// A part of the bound. If even the fastest packet of an interval waited longer, the queue was never empty.
const STANDS: f64 = 0.15;
/// And so many bounds are plainly a queue.
const PLAINLY: f64 = 4.0;
/// The same in front of the home: further away more happens that is no queue.
const STANDS_THERE: f64 = 0.5;
/// An air that was busy within this, s, is full: what the other way takes of it is not missing here.
const BUSY_LATELY: f64 = 2.0;
/// A part of the estimate: who delivers as much was busy.
const NEARLY: f64 = 0.9;
/// What the line delivers varies by no larger part of it: what comes through a queue comes evenly.
const EVEN: f64 = 0.25;
/// What UDP may raise an estimate by, per interval.
const UDP_MORE: f64 = 1.1;
/// An estimate is too low when more than this many times as much was delivered for half a second.
const OUTDONE: f64 = 1.01;
/// How long it is remembered what was delivered, and what waited meanwhile.
const LATELY: Span = Span::from_secs(10);
/// A part of what was delivered lately: a hop that carries less has nothing to wait for.
const UNUSED: f64 = 0.85;
/// A sender that waits for two segments before it sends, as Linux does to fill its offloads, seems as far away as this, s.
const FAR_NOISE: f64 = 0.001;
/// And less than this may be that and no queue, s.
const FAR_STANDS: f64 = 0.004;
/// More than this waits for no other reason than a queue, s.
const MOST_NOISE: f64 = 0.01;
/// A queue there that has not been empty for so long, s, is drained: half of what a round trip is remembered for.
const DRAIN_AFTER: f64 = 5.0;
/// Beside two round trips, s.
const PUZZLED: f64 = 0.2;
/// A part of an interval: so much of it the hop was seen working.
const WORKS: f64 = 0.8;
/// Nobody asked for more for so long: nothing is held, s.
const LET_GO: f64 = 2.0;
/// Estimates that differ by less are not worth a line.
const WORTH_A_LINE: f64 = 0.1;

/// Another place of the queue is believed after so much time in which it was seen there, s.
const PLACE_SURE: f64 = 1.0;
/// What waits, and where, is averaged over this, s.
const PLACE_MEAN: f64 = 1.0;

/// Which of the two hops holds a way up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Neck {
    /// The last one.
    Here,
    /// The line before the home.
    Line,
}

/// One direction of data.
#[derive(Debug)]
pub(super) struct Way {
    direction: Direction,
    /// What the last hop carries.
    pub(super) air: Estimator,
    /// What the line carries.
    pub(super) line: Estimator,
    pub(super) boost: f64,
    /// What the boost began with.
    first: f64,
    /// Window updates are sent.
    pub(super) paced: bool,
    /// Something is known, so `first` is what the boost began with there.
    begun: bool,
    /// How much faster than its share a flow is told its window.
    gain: f64,
    /// For how long the line's queue was never empty, s.
    filled: f64,
    /// So many times the guess is tried.
    tries: f64,
    /// For how long no window has grown, and no pace held a flow back, s.
    full: f64,
    /// What the way was known to carry an interval ago.
    known: Option<BitRate>,
    /// At what pace the newest train came, bytes/s.
    came: f64,
    /// Of the newest train that showed something, IP bytes.
    shown_by: f64,
    pub(super) queue: Span,
    pub(super) local: Span,
    pub(super) place: Option<Place>,
    pub(super) holds: bool,
    /// The floors of all flows together exceed the pipe.
    pub(super) too_many: bool,
    pub(super) quiet: f64,
    /// The same for what flows may come at, whatever holds them.
    calm: f64,
    /// For how long packets waited without a pause, at the last hop and in front of the home, s.
    pub(super) stands: [f64; 2],
    /// For how long nobody told of them, s.
    silent: [f64; 2],
    /// What waited there when somebody did last, s: mean and least.
    waited: [(f64, f64); 2],
    /// Part of the capacity that is used, over a round trip, and of what was given.
    used: f64,
    got: f64,
    /// The other way of a shared air has clearly less than it was given.
    pub(super) others_lack: bool,
    /// What its flows were given together, and what cannot give way, as bytes of the cheapest station.
    pub(super) given: Option<BitRate>,
    /// For how long the air has not been busy, s.
    rested: f64,
    /// What a byte costs beside one of the cheapest, of those that arrive.
    mix: f64,
    /// For how long something seemed to wait at a hop that was not used, s.
    puzzled: f64,
    /// For how long what arrives has been even, s.
    even: f64,
    /// What arrives, over half a second, bytes/s.
    rate: f64,
    /// Of the trains that have not ended, at the last hop and in front of the home: IP bytes, and the time they took.
    trains: [(f64, f64); 2],
    /// The largest train that came within about a second, IP bytes.
    largest: f64,
    /// What arrived in each of the newest intervals, bytes/s.
    arrived: [f64; 3],
    /// What was delivered, likewise.
    lately: [f64; 3],
    /// Inverse of the rates lately, s per byte: the most that was delivered.
    most: MinFilter,
    /// What seemed to wait while the hop carried less than that.
    noise: MinFilter,
    said: Option<BitRate>,
    said_place: Option<Place>,
    /// Another place that the queue seems to have, and for how long, s.
    elsewhere: Option<(Place, f64)>,
    /// What waits in the access point's own queue, and between access point and station in all, s.
    own: f64,
    waits: f64,
    /// For how long no flow filled what it may have, s.
    idle: f64,
    /// For how long no round trip was measured, s.
    unasked: f64,
}

impl Way {
    pub(super) fn new(direction: Direction, paced: bool) -> Self {
        Self {
            direction,
            air: Estimator::new(capacity::Params::default()),
            line: Estimator::new(capacity::Params::default()),
            boost: START_BOOST,
            first: START_BOOST,
            paced,
            begun: false,
            gain: GAIN_FULL,
            filled: 0.0,
            tries: 1.0,
            full: 0.0,
            known: None,
            came: 0.0,
            shown_by: 0.0,
            queue: Span::ZERO,
            local: Span::ZERO,
            place: None,
            holds: false,
            too_many: false,
            quiet: 0.0,
            calm: 0.0,
            stands: [0.0; 2],
            silent: [0.0; 2],
            waited: [(0.0, 0.0); 2],
            used: 0.0,
            got: 0.0,
            others_lack: false,
            given: None,
            rested: f64::MAX,
            mix: 1.0,
            puzzled: 0.0,
            even: 0.0,
            rate: 0.0,
            trains: [(0.0, 0.0); 2],
            largest: 0.0,
            arrived: [0.0; 3],
            lately: [0.0; 3],
            most: MinFilter::new(LATELY),
            noise: MinFilter::new(LATELY),
            said: None,
            said_place: None,
            elsewhere: None,
            own: 0.0,
            waits: 0.0,
            idle: 0.0,
            unasked: 0.0,
        }
    }

    /// More was delivered than the hop is said to carry.
    pub(super) fn outdo(&mut self, dt: f64) {
        self.air.outdo(self.rate * 8.0);
        self.line.outdo(self.rate / self.mix * 8.0);
        let Some(capacity) = self.capacity() else { return };
        let rate = self.lately.iter().copied().fold(f64::MAX, f64::min).max(self.rate);
        if rate * 8.0 <= capacity.as_bps() as f64 * OUTDONE {
            return;
        }
        let (bytes, capacity) = (rate * dt, Some(capacity));
        if self.air.capacity() <= capacity && self.air.is_measured() {
            self.on_busy(Neck::Here, bytes, dt);
        } else if self.across_the_line() <= capacity && self.line.is_measured() {
            self.on_busy(Neck::Line, bytes / self.mix, dt);
        }
    }

    /// What windows may bring does not jump with what is known: the boost gives back what it has risen by.
    pub(super) fn settle(&mut self) {
        let carries = self.carries();
        let before = std::mem::replace(&mut self.known, carries);
        if let Some((before, now)) = before.zip(carries)
            && now > before
        {
            let less = before.as_bps() as f64 / now.as_bps() as f64;
            self.tries = (self.tries * less).max(1.0);
            if self.boost > self.first {
                self.boost = (self.boost * less).max(self.first);
            }
        }
    }

    /// How much faster than its share a flow may come; `None`: no window updates are sent, so ACKs tell it in trains.
    pub(super) fn pace(&self) -> Option<f64> {
        let least = match (self.air.is_sure() || self.line.is_measured(), self.air.capacity()) {
            (true, _) => 0.0,
            (false, Some(_)) => GAIN_UNSURE,
            (false, None) if self.used >= LINE_USED => GAIN_UNSURE,
            (false, None) => GAIN_LINE,
        };
        self.paced.then_some(self.gain.max(least))
    }

    /// Its line is known to carry more than `bytes` in `dt`. Not any more where windows of half the size have not helped.
    pub(super) fn line_carries_more(&self, bytes: f64, dt: f64) -> bool {
        let known = self.line.capacity().map_or(0.0, |line| line.as_bps() as f64 / 8.0);
        bytes < NEARLY * known * dt && self.boost > HAS_HELPED * BOOST.0
    }

    /// Held flows have less than nine tenths of what they were given.
    pub(super) fn lacks(&self, seen: &Seen) -> bool {
        seen.held > 0 && self.got < NEARLY
    }

    /// About as much as at most lately.
    pub(super) fn carries_as_ever(&self) -> bool {
        self.most.min().is_some_and(|least| self.rate * least.as_secs_f64() >= WORKS)
    }

    /// Its line is known and used.
    pub(super) fn fills_the_line(&self) -> bool {
        self.line.is_measured() && self.used >= WORKS
    }

    /// What may have been delivered in an interval, bytes, of which UDP is a part: what was measured, and a little. A guess is not
    /// raised by what came.
    pub(super) fn limit(&self, dt: f64) -> Option<f64> {
        let more = if self.is_measured() { UDP_MORE } else { 1.0 };
        self.capacity().map(|capacity| capacity.as_bps() as f64 / 8.0 * more * dt)
    }

    /// What was measured, bytes/s.
    pub(super) fn measured(&self) -> Option<f64> {
        self.capacity().filter(|_| self.is_measured()).map(|capacity| capacity.as_bps() as f64 / 8.0)
    }

    /// What shares of it stem from, where `flows` share it.
    pub(super) fn basis(&self, flows: u32) -> Basis {
        match (self.is_measured(), self.air.capacity()) {
            (true, _) => Basis::Measured,
            (false, Some(_)) if self.air.is_sure() => Basis::Sure,
            (false, Some(_)) => Basis::Guess,
            (false, None) => Basis::LineAlone { flows },
        }
    }

    /// What is known was measured while the hop was busy.
    pub(super) fn is_measured(&self) -> bool {
        self.air.is_measured() || self.line.is_measured()
    }

    /// What is divided, as bytes of the cheapest station: what is known, and of a guess what is tried.
    pub(super) fn capacity(&self) -> Option<BitRate> {
        narrower(self.air(), self.across_the_line())
    }

    /// The same of the last hop. A guess of the line is never too low for want of a faster sender.
    pub(super) fn air(&self) -> Option<BitRate> {
        let tries = if self.is_measured() { 1.0 } else { self.tries };
        self.air.capacity().map(|air| air.mul_f64(tries))
    }

    /// What the narrower of the two hops carries, as bytes of the cheapest station.
    fn carries(&self) -> Option<BitRate> {
        narrower(self.air.capacity(), self.across_the_line())
    }

    /// What the line carries, as bytes of the cheapest station.
    fn across_the_line(&self) -> Option<BitRate> {
        self.line.capacity().map(|line| line.mul_f64(self.mix))
    }

    /// What the narrower of the two carries, as bytes of the stations that use it now.
    pub(super) fn shown(&self) -> Option<BitRate> {
        self.carries().map(|carries| carries.mul_f64(1.0 / self.mix))
    }

    /// Queue that is left alone.
    pub(super) fn bound(&self, params: &Params) -> Span {
        params.queue_bound(self.shown().unwrap_or(BitRate::mbps(20)))
    }

    /// Nobody answered, as UDP does not: what waits in the access point's own queue, bytes, tells.
    pub(super) fn on_backlog(&self, seen: &mut Seen, backlog: u64, dt: f64) {
        let rate = self.capacity().map_or(self.rate, |capacity| capacity.as_bps() as f64 / 8.0).max(1.0);
        let queue = backlog as f64 * self.mix / rate;
        seen.local = Some((queue, queue));
        seen.served = if backlog >= WAITING { dt } else { 0.0 };
    }

    /// Takes off what is no queue: what is seen between access point and station also while the hop carries clearly less
    /// than it did lately is contention, power save or a station that is slow to answer. `seen` holds the queue from here on.
    pub(super) fn clean(&mut self, now: Time, seen: &mut Seen, dt: f64) {
        let rate = (seen.arrived + seen.udp) / dt;
        // The filter keeps minima.
        self.most.on_sample(now, Span::from_secs_f64(1.0 / self.rate.max(1.0)));
        let most = self.most.min().map_or(0.0, |least| 1.0 / least.as_secs_f64());
        if let Some((mean, least)) = &mut seen.remote {
            *mean -= FAR_NOISE;
            *least -= FAR_NOISE;
        }
        let Some((mean, least)) = &mut seen.local else { return };
        if rate < UNUSED * most && self.rate < UNUSED * most && rate > 0.0 {
            self.noise.on_sample(now, Span::from_secs_f64(mean.max(0.0)));
        }
        let noise = self.noise.min().map_or(0.0, Span::as_secs_f64).min(MOST_NOISE);
        *mean -= noise;
        *least -= noise;
    }

    /// Counts for how long the queues were never empty. Who was not asked does not change it, for a round trip.
    pub(super) fn watch(&mut self, seen: &Seen, bound: Span, dt: f64) {
        let bound = bound.as_secs_f64();
        // An ACK for a single segment waits for the second: who has no more under way tells nothing.
        let usual =
            self.air.capacity().filter(|_| self.air.is_measured()).map_or(f64::MAX, |c| c.as_bps() as f64 / 8.0);
        let comes = seen.gap <= pause(seen.active, dt);
        // Before anything was measured nothing but a queue makes everybody wait for so long while data come without a pause.
        let plainly = !self.air.is_measured() && comes && seen.local.is_some_and(|(_, least)| least >= PLAINLY * bound);
        let works = plainly
            || seen.arrived + seen.udp >= NEARLY * usual * dt
            || match self.direction {
                Direction::ToStation => {
                    let most = self.most.min().map_or(f64::MAX, |least| 1.0 / least.as_secs_f64());
                    let much = (seen.arrived + seen.udp) / dt >= NEARLY * most;
                    seen.served >= WORKS * dt
                        || (much
                            && self.even >= seen.rtt.max(2.0 * dt)
                            && seen.local.is_some_and(|(mean, _)| mean >= bound / 2.0))
                }
                Direction::ToRemote => comes,
            };
        if let Some(cost) = seen.cost {
            self.mix += (cost - self.mix) * (dt / 0.5).min(1.0);
        }
        let now = (seen.arrived + seen.udp) / dt;
        self.arrived = [self.arrived[1], self.arrived[2], now];
        // Beside the newest intervals, or half a second: what ACKs that waited say of a slow line varies more than that does.
        let mean = self.arrived.iter().sum::<f64>() / self.arrived.len() as f64;
        let is_even = [mean, self.rate].into_iter().any(|usual| (now - usual).abs() <= EVEN * usual);
        self.even = if is_even { self.even + dt } else { 0.0 };
        let queues = [
            seen.local.map(|(_, least)| works && least >= bound * STANDS),
            seen.remote.map(|(_, least)| comes && least >= bound.max(FAR_STANDS) * STANDS_THERE),
        ];
        for (i, waits) in queues.into_iter().enumerate() {
            self.silent[i] = if waits.is_some() { 0.0 } else { self.silent[i] + dt };
            self.stands[i] = match waits {
                Some(true) => self.stands[i] + dt,
                None if self.stands[i] > 0.0 && self.silent[i] <= ANSWERS * (seen.rtt + self.queue.as_secs_f64()) => {
                    self.stands[i] + dt
                }
                _ => 0.0,
            };
        }
    }

    /// The last hop had something to serve all the time, for a round trip at least: trains leave gaps between them.
    pub(super) fn is_busy_here(&self, seen: &Seen) -> bool {
        let enough = if self.air.is_measured() { seen.rtt } else { seen.rtt.max(FIRST_SURE) };
        // What the line lets through is no more than the last hop carries, and waits there for other reasons.
        let line_is_full =
            self.line.is_measured() && self.used >= WORKS && self.across_the_line() <= self.air.capacity();
        self.stands[0] > 0.0 && self.stands[0] >= enough && self.silent[0] == 0.0 && !line_is_full
    }

    /// The air was, or was not, busy with this way or the other.
    pub(super) fn note_busy(&mut self, busy: bool, dt: f64) {
        self.rested = if busy { 0.0 } else { self.rested + dt };
    }

    /// It has begun to, which tells no less than a train that was stretched: more waits than should, and more was under way all
    /// the time.
    pub(super) fn fills_early(&self, seen: &Seen, bound: Span, dt: f64) -> bool {
        let waits = seen.local.is_some_and(|(_, least)| least >= bound.as_secs_f64());
        self.is_early()
            && self.air.capacity().is_some()
            && waits
            && seen.served >= WORKS * dt
            && !self.is_busy_here(seen)
    }

    /// The line had.
    pub(super) fn is_busy_there(&self, seen: &Seen) -> bool {
        let enough = seen.rtt + 0.05;
        self.stands[1] >= enough && self.even >= enough
    }

    /// What waits at the last hop and in front of the home, s: mean and least. Where nobody was asked it stays what it was, for a
    /// round trip: else an answer of the one half would say that the other is empty.
    fn waits_now(&mut self, seen: &Seen) -> [(f64, f64); 2] {
        let recent = ANSWERS * (seen.rtt + self.queue.as_secs_f64());
        for (i, queue) in [seen.local, seen.remote].into_iter().enumerate() {
            self.waited[i] = match queue {
                Some((mean, least)) => (mean.max(0.0), least.max(0.0)),
                None if self.silent[i] <= recent => self.waited[i],
                None => (0.0, 0.0),
            };
        }
        self.waited
    }

    /// After the estimates: the boost.
    pub(super) fn steer(&mut self, seen: &Seen, bound: Span, dt: f64) {
        let both = self.waits_now(seen);
        let (queue, least) = (both[0].0 + both[1].0, both[0].1 + both[1].1);
        let known = seen.local.is_some() || seen.remote.is_some();
        let now = seen.delivered(self.limit(dt)) / dt;
        self.rate += (now - self.rate) * (dt / 0.5).min(1.0);
        let air_is_narrower =
            self.across_the_line().is_none_or(|line| self.air.capacity().is_some_and(|air| air <= line));
        let now = if air_is_narrower { now + seen.small / dt } else { now };
        self.lately = [self.lately[1], self.lately[2], now];
        if let Some(capacity) = self.capacity() {
            let given = self.given.map_or(capacity, |given| given.min(capacity));
            let part = |of: BitRate| now * 8.0 / of.as_bps().max(1) as f64;
            let weight = (dt / seen.rtt.max(dt)).min(1.0);
            self.used += (part(capacity) - self.used) * weight;
            self.got += (part(given) - self.got) * weight;
        }
        if known {
            self.queue = Span::from_secs_f64(queue);
            self.local = Span::from_secs_f64(both[0].0);
        }
        let bound = bound.as_secs_f64();
        let rtt = seen.rtt.max(dt);
        let step = dt / rtt;
        if self.paced && !self.begun && seen.active > 0 && self.capacity().is_some() {
            self.begun = true;
            self.boost = (1.0 + START_QUEUE / seen.rtt).min(START_BOOST);
            self.first = self.boost;
        }
        self.full = if seen.growing + seen.paced > 0 { 0.0 } else { self.full + dt };
        // Who is asked once in a round trip answers for all of it.
        self.unasked = (self.unasked + dt).min(rtt);
        // A queue in front of a hop that is not used is none: with few segments under way each second ACK is late.
        let doubtful = queue > bound && self.used < WORKS && !self.is_busy_here(seen) && !self.is_busy_there(seen);
        self.puzzled = if doubtful { self.puzzled + dt } else { 0.0 };
        // A queue in front of the home that is never empty is taken for the path once no shorter round trip is remembered.
        let was_empty = seen.remote.is_some_and(|(_, least)| least < (bound * STANDS).max(FAR_NOISE));
        self.filled = if !self.fills_the_line() || was_empty { 0.0 } else { self.filled + dt };
        let target = if self.filled > DRAIN_AFTER { 0.0 } else { bound };
        if known && (seen.held > 0 || queue > bound) {
            // What is missing of the capacity may be made up for at once: there is nothing to wait for.
            let early = self.is_early() && self.full < rtt;
            let used = if self.rested <= BUSY_LATELY { self.got } else { self.used };
            let missing = if early || seen.paced > seen.held { 0.0 } else { (1.0 - used).max(0.0) / 2.0 };
            let error = if doubtful {
                if self.puzzled > 2.0 * rtt + PUZZLED { missing } else { 0.0 }
            } else {
                let waits = GAIN * (target - queue) / seen.rtt.max(0.005);
                // What the other way lacks is here.
                let beyond =
                    if self.rested <= BUSY_LATELY && self.others_lack { (self.got - 1.0).max(0.0) / 2.0 } else { 0.0 };
                waits - beyond + if queue < target { missing } else { 0.0 }
            };
            self.boost *= 1.0 + error.clamp(-0.3, 0.3) * self.unasked / rtt;
        }
        if known {
            self.unasked = 0.0;
        }
        let is_empty = least < bound * STANDS || self.used < NEARLY;
        let grows = seen.paced > seen.held || self.is_early() && seen.growing > 0;
        // Who is asked once in a round trip answers for all of it.
        let answered = self.silent.iter().any(|silent| *silent <= ANSWERS * rtt);
        let is_quiet = seen.held > 0 && !grows && answered && is_empty && queue < bound / 2.0;
        self.quiet = if is_quiet { self.quiet + step } else { 0.0 };
        let patience = if self.used < NEARLY { HELD_UP } else { QUIET };
        let asks = seen.held + seen.paced > 0;
        self.calm = match answered && queue < bound / 2.0 {
            true if asks => self.calm + step,
            true => self.calm,
            false => 0.0,
        };
        if self.is_early() && asks && self.calm > NOTHING_WAITS {
            self.tries = (self.tries * (1.0 + TRY_MORE.min(TRY_QUEUE / rtt) * step)).min(MOST_TRIED);
        }
        self.gain = match self.calm > NOTHING_WAITS {
            // More came through than was known: there is more.
            true if self.used > MORE => (self.gain.max(GAIN_QUIET) * (1.0 + self.beyond() * step)).min(MOST_GAIN),
            true => GAIN_QUIET,
            false => GAIN_FULL,
        };
        if self.quiet > patience && (self.used > MORE || !self.is_early()) {
            // More came through than was known: there is more. Else what is added queues no longer than PROBE.
            let rise = match self.used > MORE {
                true if self.paced => self.beyond(),
                true => RISE,
                false => PROBE / rtt,
            };
            self.boost *= 1.0 + rise * step;
        }
        self.boost = self.boost.clamp(BOOST.0, BOOST.1);
    }

    /// What came through beyond what was known, a part of that.
    fn beyond(&self) -> f64 {
        (self.used - 1.0).min(RISE)
    }

    /// What windows bring is not known yet.
    fn is_early(&self) -> bool {
        self.paced && !self.is_measured()
    }

    /// What a byte costs beside one of the cheapest station, of those that move now.
    pub(super) fn mix(&self) -> f64 {
        self.mix
    }

    /// The hop delivered so much in so much time while it was busy; of the last one, as bytes of the cheapest station.
    pub(super) fn on_busy(&mut self, neck: Neck, bytes: f64, seconds: f64) {
        match neck {
            Neck::Line => self.line.on_busy(bytes, seconds),
            Neck::Here => self.air.on_busy(bytes, seconds),
        }
    }

    /// How much of what waits between access point and station waits in the access point's own queue, `backlog` bytes.
    pub(super) fn locate(&mut self, seen: &Seen, backlog: Option<u64>, dt: f64) {
        let weight = (dt / PLACE_MEAN).min(1.0);
        let own = self.measured().map_or(0.0, |rate| backlog.unwrap_or(0) as f64 * self.mix / rate);
        self.own += (own - self.own) * weight;
        if let Some((mean, _)) = seen.local {
            self.waits += (mean.max(0.0) - self.waits) * weight;
        }
    }

    /// A queue was seen at a hop. At the last one it is the access point's own where that holds half of what waits at least;
    /// what it holds for a moment says nothing, so another place has to be seen for a while.
    pub(super) fn find(&mut self, neck: Neck, dt: f64) {
        let place = match neck {
            Neck::Line => Place::Line,
            Neck::Here if self.own > 0.0 && 2.0 * self.own >= self.waits => Place::AccessPoint,
            Neck::Here => Place::Firmware,
        };
        if self.place == Some(place) {
            self.elsewhere = None;
            return;
        }
        let before = self.elsewhere.filter(|(candidate, _)| *candidate == place).map_or(0.0, |(_, seconds)| seconds);
        self.elsewhere = Some((place, before + dt));
        // The first is believed as soon as the means say something.
        let sure = if self.place.is_none() { PLACE_SURE / 4.0 } else { PLACE_SURE };
        if before + dt >= sure {
            (self.place, self.elsewhere) = (Some(place), None);
        }
    }

    /// Trains came through before anything was known.
    pub(super) fn on_trains(&mut self, seen: &Seen, dt: f64) {
        let (air, line) = match self.direction {
            Direction::ToStation => (seen.train, seen.came),
            Direction::ToRemote => (seen.came, seen.train),
        };
        let longest = (seen.rtt * AT_ONCE).max(AT_ONCE_TIME);
        let ends = [line, air].map(|(_, seconds)| match self.direction {
            Direction::ToStation => seconds < dt * TRAIN_ENDS,
            Direction::ToRemote => seen.pause >= (seen.rtt * AT_ONCE).min(TRAIN_PAUSE),
        });
        self.largest *= (1.0 - dt).max(0.0);
        let came = ended(&mut self.trains[1], line, ends[0]);
        let served = ended(&mut self.trains[0], air, ends[1]);
        if let Some((bytes, seconds)) = came {
            self.came = bytes / seconds.max(1e-6);
            let whole = bytes >= WHOLE * self.largest;
            self.largest = self.largest.max(bytes);
            if whole && seconds <= longest.max((AT_ONCE_TIME * seen.active as f64).min(AT_ONCE_TOGETHER * seen.rtt)) {
                self.line.on_train(bytes, seconds);
                self.shown_by = bytes;
            }
        }
        let Some((bytes, seconds)) = served else { return };
        // Of uploads, too, the air comes first: what the line let through says nothing of it.
        let came = if self.direction == Direction::ToStation { self.came } else { 0.0 };
        if came > STRETCHED * bytes / seconds.max(1e-6) {
            self.air.on_stretched(bytes, seconds);
            self.shown_by = bytes;
        } else if seconds <= longest {
            // It cannot have been delivered faster than it came: its ACKs waited.
            let least = if came > 0.0 { bytes / came } else { 0.0 };
            self.air.on_train(bytes, seconds.max(least));
            self.shown_by = bytes;
        }
    }

    /// What changed that somebody should know: the capacity, the place of the queue, whether windows are held.
    pub(super) fn news(&mut self, seen: &Seen, dt: f64) -> impl Iterator<Item = Decision> + use<> {
        [self.capacity_news(), self.place_news(seen), self.hold_news(seen, dt)].into_iter().flatten()
    }

    fn capacity_news(&mut self) -> Option<Decision> {
        let now = self.carries()?;
        let direction = self.direction;
        if let Some(before) = self.said {
            let far = now.as_bps().abs_diff(before.as_bps()) as f64 > WORTH_A_LINE * before.as_bps() as f64;
            if !far {
                return None;
            }
        }
        let before = self.said.replace(now);
        Some(match self.is_measured() {
            true => Decision::Capacity { direction, before, now, queue: self.queue },
            false => Decision::Guess { direction, capacity: now, train_bytes: self.shown_by as u64 },
        })
    }

    fn place_news(&mut self, seen: &Seen) -> Option<Decision> {
        let place = self.place.filter(|place| self.said_place != Some(*place))?;
        self.said_place = Some(place);
        let [local, remote] = [seen.local, seen.remote].map(|queue| queue.map_or(0.0, |(mean, _)| mean.max(0.0)));
        let (local, remote) = (Span::from_secs_f64(local), Span::from_secs_f64(remote));
        Some(Decision::Queue { direction: self.direction, place, local, remote })
    }

    fn hold_news(&mut self, seen: &Seen, dt: f64) -> Option<Decision> {
        let direction = self.direction;
        self.idle = if seen.held > 0 { 0.0 } else { self.idle + dt };
        if !self.holds && self.is_measured() && seen.held > 0 {
            self.holds = true;
            let available = self.capacity().unwrap_or_default();
            return Some(Decision::Hold { direction, flows: seen.held, available });
        }
        if self.holds && self.idle > LET_GO {
            self.holds = false;
            return Some(Decision::Release { direction });
        }
        None
    }
}

/// Adds to a train; when it `ends`, and was not of few packets: its IP bytes, and the time it took, s.
fn ended(train: &mut (f64, f64), (bytes, seconds): (f64, f64), ends: bool) -> Option<(f64, f64)> {
    *train = (train.0 + bytes, train.1 + seconds);
    if !ends {
        return None;
    }
    Some(std::mem::take(train)).filter(|train| train.0 >= TRAIN_BYTES)
}

fn narrower(air: Option<BitRate>, line: Option<BitRate>) -> Option<BitRate> {
    match (air, line) {
        (Some(air), Some(line)) => Some(air.min(line)),
        (air, line) => air.or(line),
    }
}

/// Divides an interval of a busy air between both directions, by what their bytes cost; parts sum to one.
pub(super) fn air_used(ways: &[Way; 2], seen: &[Seen; 2]) -> [f64; 2] {
    let prices = [ways[0].air.capacity(), ways[1].air.capacity()];
    let price = |i: usize| prices[i].or(prices[1 - i]).map_or(1.0, |capacity| 1.0 / capacity.as_bps().max(1) as f64);
    let used = [0, 1].map(|i| (seen[i].arrived + seen[i].udp + seen[i].small) * price(i));
    let total = used[0] + used[1];
    if total > 0.0 { used.map(|part| part / total) } else { [0.5, 0.5] }
}

/// Enough of the air to tell the price of a direction.
pub(super) const fn tells(part: f64) -> bool {
    part >= LEAST_AIR
}

#[cfg(test)]
mod tests;

//! What each place showed, and which is which. The estimator: what a bottleneck carries, and how long its queue has stood.

use super::HopId;
use super::aggregates::Turn;
use super::fair_rate::{FULL, FairRate, Mode, Observation};
use super::law::Law;
use super::packet_train::PacketTrain;
use super::path::{PathTest, Shown};
use super::record::Unknown;
use super::snapshot::Basis;
use crate::capacity::{Estimator, SURPRISE};
use crate::packet::Direction;
use crate::units::{BitRate, Time};

/// Who delivers this part of what is carried keeps it busy. Without it 3 of 1,800 small homes more lose work (`conserve.py`).
const NEARLY: f64 = 0.9;
/// A queue that its own does not explain is believed after so much time, s: as another place of it is.
const ELSEWHERE_CONFIRMED: f64 = 1.0;
/// A first measurement takes more than one interval of 50 ms, s.
const FIRST_CONFIRMED: f64 = 0.06;

/// A full packet.
pub(super) const PACKET_BITS: f64 = 12_000.0;

/// A place where packets can wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Id {
    /// A hop between access point and stations; a medium that both directions share has none.
    Hop(HopId, Option<Direction>),
    /// The WAN link before the home.
    Wan(Direction),
}

impl Id {
    /// What goes in `direction` meets it before the access point.
    pub(super) const fn comes_before(self, direction: Direction) -> bool {
        matches!((self, direction), (Self::Wan(_), Direction::ToStation) | (Self::Hop(..), Direction::ToRemote))
    }
}

/// A queue that a connection began behind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Behind {
    /// What was delivered meanwhile, bit/s.
    pub(super) delivered: f64,
    /// For so long it is remembered.
    pub(super) until: Time,
}

impl Behind {
    /// Where more is delivered now than while it stood, it stood elsewhere, on the way of those that told of it. Without it homes in which downloads
    /// wait at their server's own link have down to 0.77 of their goodput (`onset` of the simulator).
    pub(super) fn stood_here(&self, now: Time, delivered: f64) -> bool {
        now < self.until && delivered <= self.delivered * (1.0 + SURPRISE)
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Bottleneck {
    pub(super) fair: FairRate,
    pub(super) capacity: Estimator,
    /// What somebody said that it carries, bit/s.
    given: Option<f64>,
    /// What a shaper lets pass, bit/s.
    bound: Option<f64>,
    /// What is delivered, over a round trip, and over half a second, bit/s.
    delivered: f64,
    usual: f64,
    /// Least queueing delay of the newest interval that told one, s.
    least: Option<f64>,
    /// In the newest interval somebody found none, or nobody told of one.
    empty: bool,
    /// For how long the queue was never empty, and for how long nobody told of it, s.
    stood: f64,
    silent: f64,
    /// What it delivered since somebody told of its queue, while that stood, bytes and s.
    unobserved: (f64, f64),
    path: PathTest,
    /// Of a hop, the longest round trip to a station that was told from a queue, s: at most so long is a path.
    longest: f64,
    turn: Turn,
    /// The path was found to be longer in the newest interval.
    longer: bool,
    /// Where the access point's own queue before it is fair to flows: for how long more waited than that explains, s.
    elsewhere: Option<f64>,
}

impl Bottleneck {
    pub(super) fn new(given: Option<f64>) -> Self {
        Self {
            given,
            fair: FairRate::default(),
            capacity: Estimator::default(),
            bound: None,
            delivered: 0.0,
            usual: 0.0,
            least: None,
            empty: true,
            stood: 0.0,
            silent: 0.0,
            unobserved: (0.0, 0.0),
            path: PathTest::default(),
            longest: 0.0,
            longer: false,
            turn: Turn::Periodic(0.0),
            elsewhere: None,
        }
    }

    /// Bit/s: what was given, or what it delivered while its queue stood, or what trains came through at; 0: unknown.
    pub(super) fn carries(&self) -> f64 {
        [self.given.or(self.learned()), self.bound].into_iter().flatten().reduce(f64::min).unwrap_or(0.0)
    }

    fn learned(&self) -> Option<f64> {
        self.capacity.capacity().map(|capacity| capacity.as_bps() as f64)
    }

    /// Where what it carries is from, and how far measurements of it spread.
    pub(super) fn basis(&self) -> (Option<Basis>, Option<f64>) {
        let is_bound = self.bound.is_some_and(|bound| bound <= self.carries());
        let basis = match () {
            () if self.given.is_some() || is_bound => Basis::Given,
            () if self.capacity.is_measured() => Basis::Measured,
            () if self.learned().is_some() => Basis::Estimate,
            () => return (None, None),
        };
        (Some(basis), self.capacity.spread().filter(|_| basis == Basis::Measured))
    }

    /// It is no estimate.
    pub(super) fn is_measured(&self) -> bool {
        self.given.is_some() || self.capacity.is_measured()
    }

    /// The same, and where it is not known what is delivered.
    fn at_least(&self) -> f64 {
        if self.carries() > 0.0 { self.carries() } else { self.delivered }
    }

    /// It carries no more, as a shaper says, bit/s.
    pub(super) const fn set_bound(&mut self, bound: Option<f64>) {
        self.bound = bound;
    }

    /// Known as if it had been measured for a second.
    pub(super) fn resume(&mut self, capacity: BitRate) {
        self.capacity.on_busy(capacity.as_bps() as f64 / 8.0, 1.0);
    }

    /// A packet train came through before anything was measured.
    pub(super) fn on_packet_train(&mut self, packet_train: PacketTrain) {
        if self.given.is_some() {
            return;
        }
        match packet_train.dispersed {
            true => self.capacity.on_dispersion(packet_train.bytes, packet_train.seconds),
            false => self.capacity.on_packet_train(packet_train.bytes, packet_train.seconds),
        }
    }

    /// What waits there for stations waits in a queue that is fair to flows: nobody waits for anybody else's, and no download is held.
    pub(super) fn has_fair_queue(&self) -> bool {
        self.elsewhere.is_some_and(|elsewhere| elsewhere < ELSEWHERE_CONFIRMED)
    }

    /// The same queue, while what waits is believed to wait elsewhere.
    pub(super) fn has_queue_elsewhere(&self) -> bool {
        self.elsewhere.is_some() && !self.has_fair_queue()
    }

    /// What `filling` downloads found waiting, and the longest wait that the access point's own queue explains, s, where that is fair to flows.
    /// A station may have a queue behind it, too (a repeater, a node of a mesh). Windows that are held leave nothing of it to see, so
    /// that it is believed until nobody fills them.
    pub(super) fn on_downloads(&mut self, waits: Option<f64>, filling: usize, longest: Option<f64>, dt: f64) {
        let before = self.elsewhere.unwrap_or(0.0);
        self.elsewhere = longest.map(|longest| match waits {
            Some(waits) if waits > longest => before + dt,
            Some(_) if before < ELSEWHERE_CONFIRMED => 0.0,
            _ if filling > 0 => before,
            _ => 0.0,
        });
    }

    pub(super) fn delivered(&self) -> f64 {
        self.delivered
    }

    /// A queue is standing, whether somebody is window-limited or not.
    pub(super) fn has_standing_queue(&self) -> bool {
        self.stood > 0.0
    }

    /// What a connection that begins now begins behind.
    pub(super) fn behind(&self, law: &Law, id: Id, until: Time) -> Option<Behind> {
        let waits = self.silent == 0.0 && self.fair.queue() >= law.standing_threshold * self.target(law, id, 1.0);
        waits.then_some(Behind { delivered: self.delivered, until })
    }

    /// Somebody found no queue in the newest interval, or nobody told of one.
    pub(super) const fn is_empty(&self) -> bool {
        self.empty
    }

    /// What takes longer between access point and station waits there, s: as is believed at first, and as far as is known.
    pub(super) fn paths(&self, law: &Law, id: Id, cost: f64) -> (f64, f64) {
        let first = self.of_packets(law, id, cost) + self.period();
        (first, first.max(self.longest))
    }

    /// The longest path to a station that moves payload now, s.
    pub(super) fn on_local_path(&mut self, path: f64) {
        if path > 0.0 {
            self.longest = self.longest.min(path);
        }
    }

    /// What seemed to wait in the newest interval is a longer path.
    pub(super) const fn has_longer_path(&self) -> bool {
        self.longer
    }

    /// What is not known of it.
    pub(super) fn unknown(&self, law: &Law, id: Id, cost: f64) -> Unknown {
        match self.fair.mode {
            Mode::Startup if self.silent == 0.0 && self.fair.queue() <= self.target(law, id, cost) => Unknown::Quiet,
            Mode::Startup => Unknown::Queue,
            _ => Unknown::Nothing,
        }
    }

    pub(super) const fn set_turn(&mut self, turn: Turn) {
        self.turn = turn;
    }

    /// What is kept as a queue, s.
    pub(super) fn target(&self, law: &Law, id: Id, cost: f64) -> f64 {
        let of_packets = self.of_packets(law, id, cost);
        match (self.turn, self.carries()) {
            (Turn::Periodic(period), _) => of_packets + period,
            (Turn::Contended(..), 0.0) => of_packets,
            (Turn::Contended(bytes, longest), carries) => {
                of_packets.max(law.queue_turns * (bytes * 8.0 * cost / carries).min(longest))
            }
        }
    }

    /// What it delivers comes in bunches, so long after one another, s. Without it ports that do have down to 0.14 of their goodput
    /// (`bunches` of the simulator).
    pub(super) const fn period(&self) -> f64 {
        match self.turn {
            Turn::Periodic(period) => period,
            Turn::Contended(..) => 0.0,
        }
    }

    /// The same of a medium that sends packets one by one.
    fn of_packets(&self, law: &Law, id: Id, cost: f64) -> f64 {
        let carries = match self.at_least() {
            0.0 => BitRate::mbps(20).as_bps() as f64,
            known => known,
        };
        // On a wire nobody contends, and what is in service is no queue, where timestamps tell what waits. Downloads over a port keep all: with one
        // less 213 instead of 206 of 1,000 odd homes lose more than 5 %, where hops deliver in bunches (`random_homes.py --kind odd`).
        let fewer = match id {
            Id::Hop(_, None | Some(Direction::ToStation)) => 0.0,
            Id::Hop(_, Some(Direction::ToRemote)) | Id::Wan(_) => 2.0,
        };
        let packets = law.queue_packets - fewer;
        law.queue_target.max(packets.max(0.0) * PACKET_BITS * cost / carries)
    }

    /// One interval of `dt`; `busy`: it had something to serve all the time, as far as flows tell.
    pub(super) fn on_interval(&mut self, x: &mut Observation, busy: bool, law: &Law, dt: f64) {
        let rtt = x.base_rtt + self.fair.queue();
        self.delivered += (x.delivered - self.delivered) * (dt / rtt.max(dt)).min(1.0);
        self.usual += (x.delivered - self.usual) * (dt / 0.5).min(1.0);
        self.longer = self.find_longer_path(x, law, dt);
        self.empty = x.queue.is_none_or(|(_, least)| least < law.standing_threshold * x.target);
        if let Some((_, least)) = &mut x.queue {
            // What stands is the least of 100 ms (RFC 8289 section 4.3): this interval's and the one's before.
            let before = self.least.replace(*least);
            *least = before.map_or(*least, |before| before.min(*least));
        }
        let measured = self.is_measured();
        let waits = x.queue.is_none_or(|(mean, _)| mean >= law.quiet * x.target);
        // Many small windows leave nothing in flight: where even the luckiest waits they fill it nevertheless.
        let busy = busy
            || (x.window_limited > 0
                && x.window_limited >= x.filling
                && x.queue.is_some_and(|(_, least)| least >= x.target));
        let works = (busy && waits) || (measured && x.delivered >= NEARLY * self.carries());
        self.silent = if x.queue.is_some() { 0.0 } else { self.silent + dt };
        if self.silent > rtt + dt && x.filling > 0 && x.served == 0.0 {
            // Whatever was acknowledged, nothing was left in flight; and datagrams tell of no queue. Without it many uploads leave a
            // faster WAN link empty (`many_uploads_over_a_faster_line_keep_it_full` of the simulator).
            x.queue = Some((0.0, 0.0));
        }
        self.stood = match x.queue {
            Some((_, least)) if works && !x.ran_empty(least, law) => self.stood + dt,
            None if self.stood > 0.0 && self.silent <= rtt => self.stood + dt,
            _ => 0.0,
        };
        let enough = if measured { x.base_rtt + dt } else { rtt.max(FIRST_CONFIRMED) };
        x.stood = self.stood >= enough;
        // Over half a second, and still: it carries that at least. Without it a WAN link that is full in both directions is taken for less than it
        // carries (`a_line_that_is_full_both_ways` of the simulator).
        let more = self.usual.min(self.delivered);
        if self.stood > 0.0 {
            self.unobserved = (self.unobserved.0 + x.delivered / 8.0 * dt, self.unobserved.1 + dt);
        } else {
            self.unobserved = (0.0, 0.0);
        }
        // What comes through without a queue for so long is what was paced: a C that is measured by it stays as far too low as it is. Without it 14 instead of
        // 5 of 96 directions are not full again two seconds after two slow ones (`both_ways` of the simulator).
        let room = self.fair.found_no_queue();
        if x.stood && self.silent == 0.0 && !x.doubtful && !room {
            // Of all of the time, not of the intervals in which acknowledgments came, which have more than others.
            let (bytes, seconds) = std::mem::take(&mut self.unobserved);
            self.capacity.on_busy(bytes, seconds);
        } else if self.carries() > 0.0 && more > self.carries() {
            let came = room && more > self.carries() * (1.0 + self.fair.tried() / 2.0);
            let is_its_own = self.capacity.is_its_own();
            match () {
                () if (came && (measured || x.both_ways)) || (measured && !is_its_own) => {
                    self.capacity.exceed(self.delivered / 8.0 * dt, dt)
                }
                () if measured => self.capacity.on_busy(more / 8.0 * dt, dt),
                // Beyond what trains showed comes what is tried, until half of that has.
                () if x.both_ways && is_its_own => {}
                // Without it a flow whose sender paces its first windows has down to 0.93 of its goodput beside another one (`first_trains` of the
                // simulator).
                () if self.capacity.outdo(more) => self.fair.begin_anew(),
                () => {}
            }
        }
        (x.delivered, x.usual) = (self.delivered, self.usual);
        // Where it is not measured nobody has sent for long. With nobody but the elastic ones QUIC that begins beside TCP has 47 ms of queue
        // instead of 12 (`elastic` of the simulator).
        x.parts = if self.is_measured() { x.elastic } else { x.beginning };
        // Where more was given than comes through, nobody has a part of the rest.
        (x.packet_trains, x.capacity) = (self.carries(), self.at_least().min(self.learned().unwrap_or(f64::MAX)));
        // Where nothing was measured, or more is delivered than a measurement may be off by, nobody knows what fits. Without it a hop that
        // delivers in bunches has down to 0.47 of its goodput (`bunches` of the simulator).
        let fits = |learned| self.delivered <= learned * (1.0 + SURPRISE / 2.0);
        let fits = self.learned().map_or(self.given.is_some(), fits);
        x.full = fits && self.delivered >= FULL * x.capacity;
        x.dispersed = self.capacity.is_dispersed();
        let known = self.given.is_some() || self.capacity.is_its_own();
        if x.both_ways && !known {
            self.fair.leave_pace();
        }
        (x.measured, x.both_ways) = (self.is_measured(), x.both_ways && known);
        self.fair.step(x, law, dt);
    }

    fn find_longer_path(&mut self, x: &mut Observation, law: &Law, dt: f64) -> bool {
        // Where no window is ours, none becomes smaller by our doing.
        let asks = x.filling > 0 && x.elastic > x.uncontrolled;
        let shown = x.timed.filter(|_| asks).map(|(_, queue)| Shown {
            windows: x.windows,
            elastic: x.elastic,
            queue,
            empty: law.standing_threshold * x.target,
            base_rtt: x.base_rtt,
            rtt: x.rtt,
            delivered: self.delivered,
            capacity: self.capacity.capacity().filter(|_| self.capacity.is_measured()),
        });
        let Some(capacity) = self.path.on_interval(shown, dt) else { return false };
        self.capacity = Estimator::default();
        if let Some(capacity) = capacity {
            self.resume(capacity);
        }
        // The longest that shows from now on says how long it is: no longer than this.
        self.longest = x.target + x.base_rtt + x.timed.map_or(0.0, |(mean, _)| mean.max(0.0));
        (x.queue, self.least) = (Some((0.0, 0.0)), None);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_in_a_fair_queue_is_left_to_it_and_what_waits_elsewhere_is_not() {
        let mut hop = Bottleneck::new(None);
        let mut after = |waits, filling, longest, seconds: f64| {
            for _ in 0..(seconds / 0.05).round() as u32 {
                hop.on_downloads(waits, filling, longest, 0.05);
            }
            hop.has_fair_queue()
        };
        assert!(!after(Some(0.05), 2, None, 2.0), "nobody says that the queue is fair");
        assert!(after(Some(0.05), 2, Some(0.1), 2.0));
        // A repeater's queue: what its windows hold then explains nothing any more.
        assert!(after(Some(0.3), 2, Some(0.1), 0.9), "not yet");
        assert!(!after(Some(0.3), 2, Some(0.1), 0.2));
        assert!(!after(Some(0.004), 2, Some(0.1), 10.0), "it is held");
        assert!(after(None, 0, Some(0.1), 0.05), "nobody fills it");
        assert!(!hop.has_queue_elsewhere());
        for _ in 0..21 {
            hop.on_downloads(Some(0.3), 2, Some(0.1), 0.05);
        }
        assert!(hop.has_queue_elsewhere());
        hop.on_downloads(Some(0.3), 2, None, 0.05);
        assert!(!hop.has_queue_elsewhere() && !hop.has_fair_queue(), "nobody says any more that the queue is fair");
    }
}

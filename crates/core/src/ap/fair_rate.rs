//! The control law: one fair rate per bottleneck. Pure: what an interval showed goes in, a rate comes out.
//!
//! A window-limited flow may have `R / cost x base round trip` in flight. Windows are clocked by their ACKs, so with windows W, base round
//! trip d and capacity C the plant is static, `q = W / C - d`, and the controller an integrator on the logarithm of R:
//!
//! ```text
//! tau  = d + q + T                                        round trip and interval: what was decided is seen no earlier      [s]
//! e    = ln((d + q*) / (d + q))                           queue q, its target q*
//! l    = ln(C / (b + P))                                  what windows in force bring, b, and may yet, P, leaves of C
//! s    = min(k q*/d, probe/5), doubling per tau up to `probe`           while l < 0, q < q*/2 and most flows that fill their windows are held
//! R   <- R exp(max(k e + s, l) dt / tau)                  s and l only while q < q*/2
//! ```
//!
//! Of q* what is kept for the next bunch (`aggregates`) is quiet whole.
//!
//! So what a flow that has ended leaves of a known C is another's at once, and only beyond C anything is tried: beyond a C that is measured
//! no faster than s begins before what windows bring has come without a queue, four tau. While C is what packet trains
//! show, and q <= q*, R falls by the factor by which that does: R is a part of it.
//!
//! Linearised, `dx/dt = -k x(t - tau) / tau`: stable for `k < pi/2`, phase margin `90 - 57.3 k` degrees. Flows that need less than
//! R use less, so R rises until the bottleneck is full: max-min fairness without knowing anybody's demand, and work is conserved
//! whoever else is there.
//!
//! | mode | what R does | goes to |
//! |---|---|---|
//! | startup | nothing is known: windows grow by themselves | steady: a packet train came through, or a queue stood for a round trip |
//! | steady | the law above | drain: a queue that tells its path stood for `drain_after`; released: nobody was held for `release_after`; startup: a fifth more came through than trains had shown |
//! | drain | the same with no target | steady, with what each flow had before: it was empty, or eight tau have passed |
//! | released | R follows what the largest flow could have, at once where a queue stands | steady: a flow is held |
//!
//! Bounds, all of them against wind-up: what rises counts only for the part of the filling flows that is held; with windows that
//! have not arrived yet, or of a C that trains showed which were stretched, R never advertises more than C; where there is a queue and nobody is held R is no more than what the largest flow has;
//! where a queue of many targets stands, which no burst leaves behind, R falls to what is delivered; what waits only now and then while
//! less than C is delivered is no queue at all; and R never falls below an equal part of C, less what the saws of datagrams beside windows need.
//!
//! Sources: RCP (Dukkipati, McKeown 2005): one rate for all flows of a link. FAST (Wei, Jin, Low, Hegde 2006): windows by queueing
//! delay. PIE (RFC 8033), PI2 (De Schepper et al. 2016): integral control of a queue to a target. BBR (Cardwell et al. 2016): modes.

use super::bottleneck::PACKET_BITS;
use super::law::Law;
use super::udp::MOST_OF_MEAN;

/// What a part of C is for who is window-limited, however much cannot be.
pub(super) const LEAST: f64 = 0.05;
/// Windows double every round trip: from ten packets to 160 in so many. What was advertised for longer is not taken
/// (`what_was_promised_counts_until_it_should_have_arrived`).
const MOST_ADVERTISED: f64 = 4.0;
/// The probe begins at what keeps the queue under its target, and at no more than this part of what it may come to
/// (`a_first_step_beyond_what_is_carried_leaves_less_than_the_target`).
const FIRST_PROBE: f64 = 5.0;
/// A bottleneck that delivers less than this part of its capacity has nothing left to serve. Without it a hop that is full in both directions has
/// twice the queue (`both-ways-50` of `make outside`).
pub(super) const FULL: f64 = 0.96;
/// A drain that has not ended after so many tau found no queue.
const DRAINS: f64 = 8.0;

/// Paced right edges bring so many targets of a queue within tau beyond what was measured. With 1 later seconds of 64 instead of 68 of 80 homes that are
/// busy both ways keep their bound, with 3 of 61 (`make bounds`).
const TRIED: f64 = 2.0;

/// What a bottleneck's rate is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nothing is known.
    #[default]
    Startup,
    /// The law.
    Steady,
    /// A standing queue is emptied once.
    Drain,
    /// Nobody is window-limited.
    Released,
}

/// What an interval showed of a bottleneck. Rates in bit/s, weighted by what a byte costs there; times in s.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Observation {
    /// Queueing delay of the flow that saw least: mean and least.
    pub(super) queue: Option<(f64, f64)>,
    /// The same as round trips tell it, where it is counted, too.
    pub(super) timed: Option<(f64, f64)>,
    /// It is counted: what of flows that may be held waits, and of nobody else.
    pub(super) counted: bool,
    /// What is kept of it.
    pub(super) target: f64,
    /// Of that, what no window takes away.
    pub(super) period: f64,
    /// Mean round trip without queueing, of flows that fill their windows and whose round trips are known; where nobody does, of the largest.
    pub(super) base_rtt: f64,
    pub(super) base_of_largest: f64,
    /// Newest round trips of the same, with everything that waits anywhere, in the mean.
    pub(super) rtt: f64,
    /// What was delivered, of everything, over a round trip and over half a second.
    pub(super) delivered: f64,
    pub(super) usual: f64,
    /// What it carries; 0: not known.
    pub(super) capacity: f64,
    /// That is measured.
    pub(super) measured: bool,
    /// It is not, but trains that it stretched showed it: no sender's pace.
    pub(super) dispersed: bool,
    /// As much is delivered as is known to fit.
    pub(super) full: bool,
    /// The queue was not empty for a round trip.
    pub(super) stood: bool,
    /// The access point's own backlog told that.
    pub(super) backlogged: bool,
    /// Nobody can tell its standing queue from the path.
    pub(super) hides: bool,
    /// Nor has anybody been asked yet: what waits may be the path.
    pub(super) doubtful: bool,
    /// The first trains came through at this; 0: none did.
    pub(super) packet_trains: f64,
    /// Flows that fill their windows, and those among them whose round trips are known.
    pub(super) filling: usize,
    pub(super) timed_flows: usize,
    /// Time in which something of a connection arrived while more was in flight, of all together, s.
    pub(super) served: f64,
    /// Of those, the ones that are held by this bottleneck.
    pub(super) window_limited: usize,
    /// Elastic datagram flows that are not limited: nothing tells whether they will take more.
    pub(super) unlimited: usize,
    /// Flows that take what they get, controlled or not; those among them that are datagrams, and those that cannot be held.
    pub(super) elastic: usize,
    pub(super) datagrams: usize,
    pub(super) uncontrolled: usize,
    /// The elastic ones, whoever else fills a window, and what began as QUIC: of who has just begun no rate tells what he will take.
    pub(super) beginning: usize,
    /// Time of the interval in pauses of the elastic datagram flow that paused least, s.
    pub(super) pause: Option<f64>,
    /// Into how many equal parts C is divided.
    pub(super) parts: usize,
    /// Windows in force of the elastic ones, together, bytes.
    pub(super) windows: f64,
    /// Rate of the largest.
    pub(super) most: f64,
    /// Widest window in force of those that fill theirs, over its base round trip.
    pub(super) widest: f64,
    /// What windows in force bring of the flows that fill theirs and still arrive, and what the others do; of that, what is of those that
    /// are held by this bottleneck.
    pub(super) brought: f64,
    pub(super) held: f64,
    /// What windows that still grow may bring beyond what they do.
    pub(super) advertised: f64,
    /// Least that any packet of the interval waited, where all of them tell.
    pub(super) soonest: Option<f64>,
    /// Data go in the other direction, too, and something is known of C: right edges keep a pace.
    pub(super) both_ways: bool,
    /// UDP that cannot give way.
    pub(super) inelastic: f64,
}

impl Observation {
    /// An elastic flow has `rate`, bit/s, over a round trip of `base`, s.
    pub(super) fn on_elastic(&mut self, rate: f64, base: f64) {
        if rate > self.most {
            (self.most, self.base_of_largest) = (rate, base);
        }
    }

    /// Somebody found no queue: of those who tell `least` did, or any packet.
    pub(super) fn ran_empty(&self, least: f64, law: &Law) -> bool {
        self.soonest.unwrap_or(least).min(least) < law.standing_threshold * self.target
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct FairRate {
    pub(super) mode: Mode,
    rate: f64,
    /// An equal part of C, where somebody cannot be held.
    beside: Option<f64>,
    /// For how many tau there has been no queue; where stretched trains showed C, those in which windows promised all of it.
    calm: f64,
    /// Growth per tau while window-limited flows find no queue.
    probe: f64,
    /// Newest queueing delay.
    queue: f64,
    /// What paced right edges may bring together, and the part that it is of what R would; `None`: windows alone hold.
    together: f64,
    fits: Option<f64>,
    /// What they may bring beyond a C that nothing waits at, as a part of it.
    tried: f64,
    /// Since the rate was moved last, for who is asked once in a round trip answers for all of it.
    unmoved: f64,
    /// Since the queue was empty; since anybody was held; of a drain.
    never_empty: f64,
    idle: f64,
    draining: f64,
    /// By what part of it the queue makes a round trip longer, q / d.
    longer: f64,
    /// What a flow had before the drain, of what the bottleneck carries.
    kept: f64,
    /// What windows brought when what is delivered now was advertised, bit/s.
    brought: f64,
    /// What packet trains have shown of it, bit/s; 0 once it is measured.
    estimate: f64,
}

impl FairRate {
    /// Bit/s; `None`: nothing is known.
    pub(super) fn rate(&self) -> Option<f64> {
        (self.mode != Mode::Startup).then_some(self.rate)
    }

    /// The same of what has no window: what a window brings that lasts for the queue, too.
    pub(super) fn rate_without_window(&self) -> Option<f64> {
        self.rate().map(|rate| rate * self.brings())
    }

    /// Part of the rate that a window brings, d / (d + q).
    pub(super) const fn brings(&self) -> f64 {
        1.0 / (1.0 + self.longer)
    }

    /// What right edges of a flow may bring, bit/s.
    pub(super) fn pace(&self, law: &Law) -> Option<f64> {
        self.rate().map(|rate| rate * self.fits.unwrap_or(law.pace_gain))
    }

    /// Newest queueing delay, s.
    pub(super) const fn queue(&self) -> f64 {
        self.queue
    }

    /// What a controlled flow has over its whole round trip where somebody cannot be held.
    pub(super) const fn share_beside_uncontrolled(&self) -> Option<f64> {
        self.beside
    }

    /// One interval of `dt`.
    pub(super) fn step(&mut self, x: &Observation, law: &Law, dt: f64) {
        if let Some((mean, least)) = x.queue {
            // What waits now and then, where more fits or nobody knows, is others' bursts, and no queue of who is window-limited.
            let bursts = !x.counted && x.ran_empty(least, law) && !x.full;
            let stands = mean + law.standing_weight * (least - mean);
            self.queue = if bursts { x.soonest.unwrap_or(least).min(least) } else { stands }.max(0.0);
        }
        self.longer = self.queue / x.base_rtt;
        let tau = x.base_rtt + self.queue + dt;
        self.unmoved = (self.unmoved + dt).min(tau);
        // What is delivered is a round trip late, and the mean of another one.
        self.brought += (x.brought - self.brought) * dt / (2.0 * tau);
        self.change_mode(x, law, tau, dt);
        // R is a part of what it carries, and before a queue tells more so it stays. Without it windows grow to what a short train showed, all of which
        // a token bucket let pass at once, after longer ones have shown less: 51 instead of 59 of 78 homes with downloads keep the bound of their
        // first five seconds (`make bounds`). Behind a queue it would count twice (`falls` of the simulator).
        if self.queue <= x.target && x.packet_trains > 0.0 && x.packet_trains < self.estimate {
            self.rate *= x.packet_trains / self.estimate;
        }
        self.estimate = if x.measured { 0.0 } else { x.packet_trains };
        self.beside = (x.uncontrolled > 0 && x.elastic > x.uncontrolled).then(|| floor(x));
        if self.mode != Mode::Startup && x.queue.is_some() {
            let part = std::mem::take(&mut self.unmoved) / tau;
            match self.mode {
                Mode::Released => self.park(x, part),
                _ => self.integrate(x, law, part),
            }
            let floor = if self.mode == Mode::Drain { 0.5 * floor(x) } else { floor(x) };
            self.rate = self.rate.max(floor);
        }
        self.keep_pace(x, law, tau);
    }

    /// Nothing is known any more.
    pub(super) fn begin_anew(&mut self) {
        (self.mode, self.estimate) = (Mode::Startup, 0.0);
    }

    /// What was decided has come by now, and there is no queue.
    pub(super) fn found_no_queue(&self) -> bool {
        self.calm >= MOST_ADVERTISED
    }

    /// What paced right edges let through windows alone bring from now on. Without it the first five seconds of 37 instead of 62 of
    /// 80 homes that are busy both ways keep their bound (`make bounds`).
    pub(super) fn leave_pace(&mut self) {
        self.rate *= self.fits.take().unwrap_or(1.0).min(1.0);
    }

    /// What is tried beyond a C that nothing waits at, as a part of it.
    pub(super) const fn tried(&self) -> f64 {
        self.tried
    }

    /// What windows will bring, once those that this bottleneck holds are R, bit/s.
    fn will_bring(&self, x: &Observation) -> f64 {
        x.brought - x.held + x.window_limited as f64 * self.rate
    }

    /// Right edges where data go in both directions. Together they bring `C (1 + k (q* - q) / tau)`, or what is tried beyond C while the queue is
    /// short: it integrates what is paced, `dq/dt = Y / C - 1`, so that the loop is that of windows. Of a C that is right all that is tried is a queue, and
    /// is seen after tau. Where that came C is no measurement any more, and windows alone hold until there is one.
    fn keep_pace(&mut self, x: &Observation, law: &Law, tau: f64) {
        self.tried = law.headroom.min(TRIED * x.target / tau);
        // Before what they may bring comes nothing is missing beyond it.
        let comes = self.found_no_queue() || (self.calm > 0.0 && x.delivered >= FULL * self.together);
        let tried = if comes { self.probe.min(self.tried) } else { f64::MIN };
        let short = law.gain * (x.target - self.queue) / tau;
        self.together = x.capacity * (1.0 + short.max(tried));
        let all = self.will_bring(x);
        self.fits = (x.both_ways && all > x.capacity).then(|| self.together / all);
    }

    fn change_mode(&mut self, x: &Observation, law: &Law, tau: f64, dt: f64) {
        let packet = if x.capacity > 0.0 { PACKET_BITS / x.capacity } else { 0.0 };
        // What a packet itself takes is no queue. Without it a slower WAN link is drained of that, and an upload has 0.91 of its goodput (`falls` of the
        // simulator).
        let nothing = (law.standing_threshold * x.target).max(packet);
        let empty = x.queue.is_some_and(|(_, least)| least < nothing);
        self.never_empty = if empty || !x.hides { 0.0 } else { self.never_empty + dt };
        self.idle = if x.window_limited > 0 { 0.0 } else { self.idle + dt };
        self.draining = if self.mode == Mode::Drain { self.draining + dt } else { 0.0 };
        self.mode = match self.mode {
            Mode::Startup if x.packet_trains > 0.0 && x.filling > 0 => {
                self.rate = x.packet_trains * law.startup_gain / x.parts.max(1) as f64;
                Mode::Steady
            }
            Mode::Startup if x.stood && self.queue > x.target && x.most > 0.0 => {
                self.rate = x.most * (x.base_rtt + x.target) / x.base_rtt;
                Mode::Steady
            }
            Mode::Steady if self.never_empty > law.drain_after => {
                self.kept = self.rate * x.base_rtt / (x.base_rtt + x.target);
                Mode::Drain
            }
            Mode::Steady if self.idle > law.release_after => Mode::Released,
            Mode::Drain if empty || self.draining > DRAINS * tau => {
                self.never_empty = 0.0;
                self.rate = self.rate.max(self.kept * (x.base_rtt + x.target) / x.base_rtt);
                Mode::Steady
            }
            Mode::Released if x.window_limited > 0 => Mode::Steady,
            mode => mode,
        };
    }

    /// Where it would be if the largest flow took what is left, or those that grow together shared it. It goes there step by step, and at once
    /// where a queue shows that R is too high: nobody is held, so that nobody loses by it.
    fn park(&mut self, x: &Observation, part: f64) {
        let left = (x.capacity - x.delivered).max(0.0) / (x.filling + x.unlimited).max(1) as f64;
        let most = (x.most + left).min(x.capacity);
        self.rate = match self.queue > x.target {
            true => self.rate.min(most),
            false => self.rate + (most - self.rate) * part.min(1.0),
        };
    }

    fn integrate(&mut self, x: &Observation, law: &Law, part: f64) {
        let target = if self.mode == Mode::Drain { 0.0 } else { x.target };
        // What may wait for the next bunch says nothing. Without it R climbs for seconds (`work_conservation` of the simulator, over ports that
        // deliver in bunches: the worst download has 0.48 of its goodput instead of 0.69).
        let quiet = self.queue < law.quiet * (target - x.period).max(0.0) + x.period;
        // What windows in force leave of what it carries is theirs at once; only beyond that nobody knows.
        let left = if x.capacity > 0.0 { (x.capacity / (x.brought + x.advertised).max(1.0)).ln() } else { 0.0 };
        // That windows which promise less leave no queue says nothing of those that have grown since. Without it 198 instead of 212 of 240 homes of flows
        // that begin one after another keep their bound (`onset` of the simulator).
        self.calm = match quiet {
            true if left > 0.0 && x.dispersed => self.calm,
            true => self.calm + part,
            false => 0.0,
        };
        // What was advertised and has not arrived after so long never will.
        let waits = self.calm < MOST_ADVERTISED;
        let window_limited = match waits {
            true => x.window_limited as f64 / x.filling.max(1) as f64,
            false => f64::from(u8::from(x.window_limited > 0)),
        };
        let least = (law.gain * target / x.base_rtt).min(law.probe / FIRST_PROBE);
        // Beyond a C that is measured more is tried once what windows in force bring has come: what was tried is under way for tau, and a probe that doubles
        // meanwhile is a queue before anybody sees it. Without it later seconds of 74 instead of 82 of 84 homes with uploads keep their bound (`make bounds`).
        let pending = x.measured && waits && x.elastic > x.datagrams;
        self.probe = match (quiet && left <= 0.0 && !pending, window_limited > 0.5) {
            (true, true) => (self.probe.max(least) * 2f64.powf(part)).min(law.probe.max(least)),
            (true, false) => self.probe.max(least),
            (false, _) => least,
        };
        // Where a queue is and nobody is held R is what the largest has, as when released. Else it has risen to all of C while senders left their windows
        // empty (BBR every 10 s), and more than once C comes before it is down again: later seconds of 8 instead of 12 of 22 homes with downloads of BBR keep
        // their bound, 15.6 instead of 10.3 ms in the mean (`make bounds`). Of what is not limited the largest takes what it gets.
        let fills = (x.base_rtt + target) / x.base_rtt;
        if self.queue > target && x.window_limited == 0 && x.unlimited == 0 && x.most > 0.0 {
            self.rate = self.rate.min(x.most * fills);
        }
        // What a burst leaves behind is gone before it says anything of the bottleneck: what collapsed stands.
        let standing_queue = x.queue.is_some_and(|(_, least)| least > law.collapse * x.target);
        if standing_queue && x.stood && x.window_limited > 0 {
            let most = x.most * (1.0 + law.headroom);
            self.rate = self.rate.min(most.max(self.rate * x.delivered / x.brought.max(1.0)) * fills);
        }
        let error = law.gain * ((x.base_rtt + target) / (x.base_rtt + self.queue)).ln();
        let error = match self.mode {
            Mode::Drain => error.min(0.0) - law.gain * x.target / x.base_rtt,
            _ if quiet => (error + self.probe).max(left),
            _ => error,
        };
        // Where paced right edges bring all of a C that is measured, or windows twice what edges may, no window is too small. Without it R climbs to six times
        // C, and what leaves the pace for a moment is a queue: the first five seconds of 36 instead of 62 of 80 homes that are busy both ways keep their
        // bound where trains showed C (`make bounds`). What is missing in one round trip is a cluster.
        let comes = x.measured && x.delivered.max(x.usual) >= FULL * self.together;
        let paced = x.both_ways && (comes || self.will_bring(x) > 2.0 * self.together);
        let window_limited = if paced { 0.0 } else { window_limited };
        let mut error = if error > 0.0 { error * window_limited } else { error };
        if waits && (x.advertised > 0.0 || x.dispersed) && x.capacity > 0.0 {
            // What is delivered is of the windows of a round trip ago: by so much as they have grown since more comes, and no more than they bring. By what was
            // delivered alone 135 instead of 212 of 240 homes of flows that begin one after another keep their bound (`onset` of the simulator).
            let grown = x.delivered * (x.brought / self.brought.max(1.0));
            let comes = x.delivered.max(grown.min(x.brought * self.brings()));
            let room = (x.capacity / (comes + x.advertised).max(1.0)).ln();
            error = error.min(room.max(-1.0) + law.headroom);
        }
        let before = self.rate;
        self.rate *= (error * part).exp();
        if x.window_limited > 0 {
            // Nor does it run ahead of what windows bring (`the_queue_comes_to_its_target_whatever_path_capacity_and_number_of_flows`).
            self.rate = self.rate.min((2.0 * x.widest).max(before));
        }
    }
}

/// An equal part of what inelastic UDP leaves; where datagrams have theirs in the mean, windows leave what their saws have above that.
fn floor(x: &Observation) -> f64 {
    let part = (x.capacity - x.inelastic).max(LEAST * x.capacity) / x.parts.max(1) as f64;
    let windows = x.elastic.saturating_sub(x.datagrams);
    let saws = if windows > 0 { (x.datagrams as f64 / windows as f64).min(1.0) } else { 0.0 };
    part * (1.0 - (MOST_OF_MEAN - 1.0) * saws)
}

#[cfg(test)]
mod tests;

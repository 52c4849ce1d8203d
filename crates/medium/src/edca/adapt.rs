//! Rates that are chosen while a home runs, and errors by signal-to-noise ratio.
//!
//! A sender's choice for a receiver is one for all classes; a frame's plan is its window's, since classes take turns. Before a
//! frame is made its link gets the rate of the plan's next stage; times, most bytes and errors of a rate are computed when it
//! is first used, errors again when the channel moves. What is heard of a frame goes back when its plan is done.
//!
//! Tries that end with a lost RTS say nothing of the rate and do not count. Not modelled: answers and RTS that the channel
//! takes; they go at robust rates.

use lasthop_core::packet::Packet;
use lasthop_core::units::Time;

use super::Edca;
use super::access::Flight;
use crate::channel::{ChannelParams, Direction, Path, Place};
use crate::medium::NodeId;
use crate::mode::{Guard, Width};
use crate::params::StationParams;
use crate::phy::{Rate, Standard};
use crate::random::Stream;
use crate::rate_control::ideal::FULL_MPDU;
use crate::rate_control::{Capability, Ideal, MinstrelHt, RateControl, RateLaw, RatePlan, Stage, TxResult};
use crate::snapshot::RateStats;

/// What a rate is like on a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    rate: Rate,
    pub(super) times: u8,
    /// [`super::Link::room`].
    pub(super) room: (u32, u32),
    /// `-ln(1 - p)` per byte of an MPDU.
    hazard: f64,
    /// MPDUs sent with it, and those acknowledged.
    mpdus: u64,
    acked: u64,
}

/// One direction's choice.
#[derive(Clone, Debug)]
pub(super) struct Adapt {
    law: RateLaw,
    capability: Capability,
    control: RateControl,
    /// Those used so far; the first one is in force.
    pub(super) known: Vec<Known>,
}

/// How far a window's frame is in its plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    plan: RatePlan,
    tried: u16,
    open: bool,
}

impl Progress {
    pub(super) const fn new(plan: RatePlan) -> Self {
        Self { plan, tried: 0, open: false }
    }

    /// One MPDU, no aggregate; and with RTS, however short.
    pub(super) fn wants(&self) -> (bool, bool) {
        (self.plan.is_single, self.plan.after(self.tried).is_some_and(|stage| stage.rts))
    }
}

fn capability(station: &StationParams) -> Capability {
    capability_of(station.standard, station.rate)
}

fn capability_of(standard: Standard, rate: Rate) -> Capability {
    match rate.mode() {
        Some(mode) => {
            Capability { standard: mode.standard, width: mode.width, streams: mode.streams, guard: mode.guard }
        }
        None => Capability { standard, width: Width::Mhz20, streams: 1, guard: Guard::Ns800 },
    }
}

fn control(law: RateLaw, capability: Capability, rate: Rate, seed: u64, link: u16) -> RateControl {
    match law {
        RateLaw::Fixed => RateControl::Fixed(rate),
        RateLaw::Ideal { per } => RateControl::Ideal(Ideal::new(capability.rates(), per)),
        RateLaw::MinstrelHt(scheme) => {
            let stream = Stream::numbered(seed, "wifi.minstrel", link);
            RateControl::MinstrelHt(Box::new(MinstrelHt::new(scheme, capability, stream)))
        }
    }
}

impl<P: Packet + Copy> Edca<P> {
    /// A station's channel and its choices, where it has any.
    pub(super) fn add_adaptation(&mut self, station: &StationParams) {
        let number = self.links.len() / 2 - 1;
        let capability = capability(station);
        self.radios[number].place =
            Place { distance_m: station.distance_m, walls: station.walls, snr_db: station.snr_db };
        let path =
            self.params.channel.filter(|_| number > 0).map(|channel| self.path(channel, number, capability.width));
        self.paths.push(path);
        for link in [2 * number, 2 * number + 1] {
            let adapt =
                (number > 0 && (self.paths[number].is_some() || station.rate_law != RateLaw::Fixed)).then(|| {
                    let control = control(station.rate_law, capability, station.rate, self.seed, link as u16);
                    Box::new(Adapt { law: station.rate_law, capability, control, known: Vec::new() })
                });
            self.adapts.push(adapt);
        }
        self.refresh_errors(number);
    }

    fn path(&self, channel: ChannelParams, station: usize, width: Width) -> Path {
        let radio = &self.radios[station];
        let powers = [self.params.power_w, radio.power_w];
        Path::new(channel, radio.place, powers, width, self.seed, station as u16)
    }

    /// The channel of a station is another: errors at the rates in use, and what knows the SNR decides anew.
    pub(super) fn refresh_errors(&mut self, station: usize) {
        let path = self.paths[station].as_ref();
        for (link, direction) in [(2 * station, Direction::Up), (2 * station + 1, Direction::Down)] {
            let Some(adapt) = &mut self.adapts[link] else { continue };
            for known in &mut adapt.known {
                known.hazard = hazard(path, direction, known.rate);
            }
            if let (RateControl::Ideal(ideal), Some(path)) = (&mut adapt.control, path) {
                ideal.on_snr(|rate| path.per(direction, rate, FULL_MPDU));
            }
        }
        self.take_rate(2 * station, None);
        self.take_rate(2 * station + 1, None);
    }

    /// Puts a rate in force on a link; `None`: its errors are others.
    fn take_rate(&mut self, link: usize, rate: Option<Rate>) {
        let Some(adapt) = &mut self.adapts[link] else { return };
        if let Some(rate) = rate {
            match adapt.known.iter().position(|known| known.rate == rate) {
                Some(at) => adapt.known.swap(0, at),
                None => self.learn_rate(link, rate),
            }
        }
        if let Some(known) = self.adapts[link].as_ref().and_then(|adapt| adapt.known.first()) {
            let link = &mut self.links[link];
            (link.times, link.byte_hazard) = (known.times, known.hazard);
            (link.most_bytes, link.longest_bytes) = known.room;
        }
    }

    #[cold]
    fn learn_rate(&mut self, link: usize, rate: Rate) {
        let times = self.find_times(rate);
        let room = self.links[link].room(&self.times[usize::from(times)]);
        let direction = if link.is_multiple_of(2) { Direction::Up } else { Direction::Down };
        let hazard = hazard(self.paths[link / 2].as_ref(), direction, rate);
        if let Some(adapt) = &mut self.adapts[link] {
            adapt.known.insert(0, Known { rate, times, room, hazard, mpdus: 0, acked: 0 });
        }
    }

    /// Before a window's next frame is made: its link gets the rate for it.
    #[inline(never)]
    pub(super) fn adapt(&mut self, at: Time, window: usize, link: usize) {
        if self.paths[link / 2].as_mut().is_some_and(|path| path.advance(at)) {
            self.refresh_errors(link / 2);
        }
        let given = self.plan_of.and_then(|plan_of| self.given_stage(plan_of, window));
        let Some(adapt) = &mut self.adapts[link] else { return };
        let progress = &mut self.progress[window];
        let goes_on = progress.open && matches!(adapt.control, RateControl::MinstrelHt(_));
        let stage = if goes_on { progress.plan.after(progress.tried) } else { None };
        let stage = given.or(stage).unwrap_or_else(|| {
            *progress = Progress { plan: adapt.control.plan(at), tried: 0, open: true };
            progress.plan.first()
        });
        if adapt.known.first().is_none_or(|known| known.rate != stage.rate) {
            self.take_rate(link, Some(stage.rate));
        }
    }

    /// What the first packet of a window, which decides for its frame, brings with it.
    #[cold]
    fn given_stage(&mut self, plan_of: fn(&P) -> RatePlan, window: usize) -> Option<Stage> {
        let slot = self.windows[window].front()?;
        let (plan, tried) = (plan_of(&slot.packet), slot.attempts);
        self.progress[window] = Progress { plan, tried, open: true };
        // An internal collision takes a try, too, and does not drop the packet at once.
        plan.after(tried).or(plan.stages().last().copied())
    }

    /// Rates are the host's from now on.
    pub fn set_plans(&mut self, plan_of: fn(&P) -> RatePlan) {
        self.plan_of = Some(plan_of);
    }

    /// A window's frame was answered, or not.
    #[inline(never)]
    pub(super) fn report(&mut self, at: Time, number: u16, flight: &Flight, answered: bool) {
        if flight.is_request || !flight.has_data {
            return;
        }
        let window = self.accesses[usize::from(number)].window;
        let from = NodeId(number / 4);
        let Some(adapt) = &mut self.adapts[Self::link_of(from, self.windows[window].to)] else { return };
        let progress = &mut self.progress[window];
        if !progress.open {
            return;
        }
        let acked = if answered { flight.acked } else { 0 };
        let mpdus = flight.aggregate.mpdus;
        let stage = progress.plan.after(progress.tried);
        let known = adapt.known.iter_mut().find(|known| stage.is_some_and(|stage| stage.rate == known.rate));
        if let Some(known) = known {
            known.mpdus += u64::from(mpdus);
            known.acked += u64::from(acked);
        }
        progress.tried += 1;
        if !answered && progress.plan.after(progress.tried).is_some() {
            return;
        }
        progress.open = false;
        adapt.control.on_result(at, &TxResult { plan: &progress.plan, tries: progress.tried, mpdus, acked });
    }

    /// The station's rate is another: the fixed one, or the mode within which others choose.
    pub(super) fn set_adapted_rate(&mut self, station: usize, rate: Rate) {
        for link in [2 * station, 2 * station + 1] {
            let Some(adapt) = &mut self.adapts[link] else { return };
            let capability = capability_of(adapt.capability.standard, rate);
            let width = capability.width;
            if adapt.law == RateLaw::Fixed || adapt.capability != capability {
                adapt.control = control(adapt.law, capability, rate, self.seed, link as u16);
                adapt.capability = capability;
            }
            if let Some(path) = &mut self.paths[station] {
                path.set_width(width);
            }
        }
        self.forget_plans(station);
        self.refresh_errors(station);
    }

    /// What is on the way keeps its rate, and what follows has a plan of its own.
    fn forget_plans(&mut self, station: usize) {
        for window in &self.window_of[8 * station..8 * station + 8] {
            if let Some(progress) = self.progress.get_mut(*window as usize) {
                progress.open = false;
            }
        }
    }

    /// Moves a station, and what stands between, from the next frame on.
    pub fn set_place(&mut self, station: NodeId, walls: u8, snr_db: Option<f64>) {
        let number = usize::from(station.0);
        let place = &mut self.radios[number].place;
        (place.walls, place.snr_db) = (walls, snr_db);
        self.move_path(number);
    }

    pub(super) fn move_path(&mut self, station: usize) {
        let place = self.radios[station].place;
        if self.paths[station].as_mut().is_some_and(|path| path.set_place(place)) {
            self.refresh_errors(station);
        }
    }

    /// What the channel is like, from the next frame on.
    pub fn set_channel(&mut self, channel: Option<ChannelParams>) {
        if self.params.channel == channel {
            return;
        }
        self.params.channel = channel;
        for station in 1..self.radios.len() {
            self.paths[station] = match (self.paths[station].take(), channel) {
                (_, None) => None,
                (Some(mut path), Some(channel)) => {
                    path.set_params(channel);
                    Some(path)
                }
                (None, Some(channel)) => Some(self.path(channel, station, self.width(station))),
            };
            self.refresh_errors(station);
        }
    }

    fn width(&self, station: usize) -> Width {
        let rate = self.times[usize::from(self.links[2 * station].times)].rate;
        self.adapts[2 * station]
            .as_ref()
            .map_or_else(|| rate.mode().map_or(Width::Mhz20, |mode| mode.width), |adapt| adapt.capability.width)
    }

    /// What was sent with each rate.
    pub(super) fn rate_stats(&self) -> Vec<RateStats> {
        let mut stats = Vec::new();
        for (link, adapt) in self.adapts.iter().enumerate() {
            let Some(adapt) = adapt else { continue };
            let station = NodeId((link / 2) as u16);
            let [from, to] =
                if link.is_multiple_of(2) { [station, NodeId::ACCESS_POINT] } else { [NodeId::ACCESS_POINT, station] };
            let used = adapt.known.iter().filter(|known| known.mpdus > 0);
            stats.extend(used.map(|&Known { rate, mpdus, acked, .. }| RateStats { from, to, rate, mpdus, acked }));
        }
        stats
    }
}

/// Of a byte, `-ln(1 - p)`, infinite where nothing arrives.
fn hazard(path: Option<&Path>, direction: Direction, rate: Rate) -> f64 {
    let Some(path) = path else { return 0.0 };
    let per = path.per_of_reference(direction, rate);
    if per < 1.0 { -libm::log1p(-per) / crate::channel::per::REFERENCE_BYTES } else { f64::INFINITY }
}

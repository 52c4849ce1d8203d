//! The host of the medium: frames of simulated radios in, arrivals and outcomes out.
//!
//! The first radio is the access point, the others its stations. What goes between it and a station is a packet of [`Medium`] with
//! the kernel's own table of rates; what is addressed to several, or to nobody here, does not contend.

use std::collections::{BTreeMap, VecDeque};

use lasthop_core::packet::{AccessCategory, FlowId, Packet};
use lasthop_core::units::{Span, Time};
use lasthop_medium::channel::{ChannelParams, Direction, Path, Place};
use lasthop_medium::random::Stream;
use lasthop_medium::rate_control::{Capability, RatePlan};
use lasthop_medium::{Ampdu, Band, Event, Medium, MediumParams, NodeId, Rate, StationParams};

use crate::Mac;
use crate::frame::{Addba, Header};
use crate::message::{NO_ACK, STAGES, STAT_ACK, Transmission, TxRate};
use crate::rates;

/// Most frames that wait for their outcome: a radio of mac80211_hwsim has 200 under way at most.
const MOST_WAITING: usize = 4_096;
/// MAC header with QoS and FCS, LLC/SNAP: what [`Medium`] adds to an IP packet.
const AROUND_BYTES: u32 = 30 + 8;
const FCS_BYTES: u32 = 4;
/// Signal of a radio with an SNR of 0 dB, dBm: thermal noise of 20 MHz and a noise figure of 7 dB.
const NOISE_DBM: i32 = -94;

/// The cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// What all radios can do; its standard is that of the cell.
    pub capability: Capability,
    /// Of losses and backoffs.
    pub seed: u64,
}

/// A packet of the medium.
#[derive(Clone, Copy, Debug)]
struct Carried {
    number: u64,
    ip_bytes: u32,
    class: AccessCategory,
    plan: RatePlan,
}

impl Packet for Carried {
    fn flow(&self) -> FlowId {
        FlowId(self.class.index() as u32)
    }
    fn bytes(&self) -> u32 {
        self.ip_bytes
    }
    fn access_category(&self) -> AccessCategory {
        self.class
    }
}

/// A frame whose outcome is not known yet.
#[derive(Clone, Debug)]
struct Waiting {
    from: usize,
    to: usize,
    header: Header,
    frame: Vec<u8>,
    flags: u32,
    cookie: u64,
    frequency_mhz: u32,
    rates: [TxRate; STAGES],
    /// Rates of the tries so far.
    tried: Vec<Rate>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A frame arrives at a radio.
    Arrive {
        /// The radio.
        radio: Mac,
        /// From its frame control field on.
        frame: Vec<u8>,
        /// For the driver: the fastest of the band's rates that is not above the one it was sent with.
        rate: u32,
        /// As the receiver hears it.
        signal_dbm: i32,
        /// Of the channel.
        frequency_mhz: u32,
    },
    /// A sender learns what became of a frame.
    Settle(Outcome),
}

/// What became of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When its sender knew.
    pub at: Time,
    /// The sender.
    pub radio: Mac,
    /// Its number, 0 being the access point, and that of the receiver; `None`: addressed to several, or to none of them.
    pub between: (usize, Option<usize>),
    /// What was read of it.
    pub header: Header,
    /// Length with FCS.
    pub bytes: u32,
    /// Names it.
    pub cookie: u64,
    /// The driver's flags, with [`STAT_ACK`] if it arrived.
    pub flags: u32,
    /// The table that the kernel gave it.
    pub rates: [TxRate; STAGES],
    /// Of the channel.
    pub frequency_mhz: u32,
    /// Rates of the tries that were made, in order.
    pub tried: Vec<Rate>,
    /// As the access point hears the answer.
    pub signal_dbm: i32,
    /// The block ack agreement that it was about.
    pub addba: Option<Addba>,
}

impl Outcome {
    /// It arrived and was acknowledged.
    #[must_use]
    pub const fn is_acked(&self) -> bool {
        self.flags & STAT_ACK != 0
    }
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Frames between the access point and a station.
    pub carried: u64,
    /// Of these, acknowledged.
    pub acked: u64,
    /// Frames to several, or to none of the radios.
    pub uncontended: u64,
    /// Of a radio that is not ours.
    pub strange: u64,
    /// Whose header or rates could not be read; they arrive nowhere.
    pub malformed: u64,
    /// Refused, since too many waited.
    pub overflowed: u64,
}

/// A frame that did not contend, and when it has ended.
#[derive(Clone, Debug)]
struct Uncontended {
    ends: Time,
    waiting: Waiting,
    plan: RatePlan,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Air {
    medium: Medium<Carried>,
    radios: Vec<Mac>,
    /// By station, the first one being station 1.
    paths: Vec<Path>,
    waiting: BTreeMap<u64, Waiting>,
    uncontended: VecDeque<Uncontended>,
    actions: VecDeque<Action>,
    next_number: u64,
    losses: Stream,
    snapshot: Snapshot,
}

impl Air {
    /// A silent cell: the address of the access point, then of each station and its SNR over the channel's width in dB.
    #[must_use]
    pub fn new(params: Params, access_point: Mac, stations: &[(Mac, f64)]) -> Self {
        let Params { capability, seed } = params;
        let fastest = capability.rates().pop().unwrap_or(Rate::OFDM_6);
        let channel = ChannelParams::default();
        let medium_params = MediumParams {
            standard: capability.standard,
            band: Band::Ghz5,
            queue_limit: MOST_WAITING,
            channel: Some(channel),
            ..MediumParams::default()
        };
        let station = |snr_db| StationParams {
            standard: capability.standard,
            rate: fastest,
            snr_db: Some(snr_db),
            queue_limit: MOST_WAITING,
            ampdu: Ampdu::of(capability.standard),
            ..StationParams::default()
        };
        let powers = [medium_params.power_w; 2];
        let path = |(number, (_, snr_db)): (u16, &(Mac, f64))| {
            Path::new(channel, place(*snr_db), powers, capability.width, seed, number)
        };
        let paths = (1..).zip(stations).map(path).collect();
        let mut medium: Medium<Carried> =
            Medium::new(medium_params, stations.iter().map(|(_, snr_db)| station(*snr_db)).collect(), seed);
        medium.set_plans(|packet: &Carried| packet.plan);
        medium.record_attempts(true);
        Self {
            medium,
            radios: std::iter::once(access_point).chain(stations.iter().map(|(address, _)| *address)).collect(),
            paths,
            waiting: BTreeMap::new(),
            uncontended: VecDeque::new(),
            actions: VecDeque::new(),
            next_number: 0,
            losses: Stream::named(seed, "hwsim.uncontended"),
            snapshot: Snapshot::default(),
        }
    }

    /// A radio sends.
    pub fn on_frame(&mut self, now: Time, sent: &Transmission<'_>) {
        let Some(from) = self.radios.iter().position(|address| *address == sent.radio) else {
            self.snapshot.strange += 1;
            return;
        };
        let (Some(header), Some(plan)) = (Header::read(sent.frame), rates::plan(&sent.rates, sent.frequency_mhz))
        else {
            self.snapshot.malformed += 1;
            return;
        };
        if self.waiting.len() + self.uncontended.len() >= MOST_WAITING {
            self.snapshot.overflowed += 1;
            return;
        }
        let to = self.radios.iter().position(|address| *address == header.to);
        let waiting = Waiting {
            from,
            to: to.unwrap_or(usize::MAX),
            header,
            frame: sent.frame.to_vec(),
            flags: sent.flags,
            cookie: sent.cookie,
            frequency_mhz: sent.frequency_mhz,
            rates: sent.rates,
            tried: Vec::new(),
        };
        match to.filter(|to| (*to == 0) != (from == 0) && sent.flags & NO_ACK == 0) {
            Some(to) => self.contend(now, from, to, waiting, plan),
            None => self.bypass(now, waiting, plan),
        }
    }

    fn contend(&mut self, now: Time, from: usize, to: usize, waiting: Waiting, plan: RatePlan) {
        self.snapshot.carried += 1;
        let number = self.next_number;
        self.next_number += 1;
        let ip_bytes = (waiting.frame.len() as u32 + FCS_BYTES).saturating_sub(AROUND_BYTES);
        let packet = Carried { number, ip_bytes, class: waiting.header.class(), plan };
        self.waiting.insert(number, waiting);
        self.medium.on_packet(now, NodeId(from as u16), NodeId(to as u16), packet);
        self.note_attempts();
    }

    /// It is sent at once, and ends after its air time.
    fn bypass(&mut self, now: Time, waiting: Waiting, plan: RatePlan) {
        self.snapshot.uncontended += 1;
        let bytes = waiting.frame.len() as u32 + FCS_BYTES;
        let lasts = self.medium.phy().map_or(Span::ZERO, |phy| phy.duration(plan.first().rate, bytes));
        // Nobody answers what is addressed to none of them.
        let tries = if waiting.header.is_to_group() || waiting.flags & NO_ACK != 0 { 1 } else { plan.tries() };
        let ends = now + lasts * u64::from(tries);
        let before = self.uncontended.iter().take_while(|other| other.ends <= ends).count();
        self.uncontended.insert(before, Uncontended { ends, waiting, plan });
    }

    /// What is to be done at or before `now`.
    pub fn poll(&mut self, now: Time) -> Option<Action> {
        loop {
            if let Some(action) = self.actions.pop_front() {
                return Some(action);
            }
            if self.uncontended.front().is_some_and(|first| first.ends <= now) {
                let first = self.uncontended.pop_front()?;
                self.end_uncontended(first);
                continue;
            }
            let event = self.medium.poll(now);
            self.note_attempts();
            match event? {
                Event::Delivered { at, packet, .. } => self.settle(at, &packet, true),
                Event::Dropped { at, packet, .. } => self.settle(at, &packet, false),
            }
        }
    }

    /// When to poll again.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        let first = self.uncontended.front().map(|first| first.ends);
        [first, self.medium.next_deadline()].into_iter().flatten().min()
    }

    /// Counters.
    #[must_use]
    pub const fn snapshot(&self) -> Snapshot {
        self.snapshot
    }

    /// Moves a station, from the next try on: SNR in dB, both ways.
    ///
    /// # Panics
    /// Without such a station.
    pub fn set_snr(&mut self, station: usize, snr_db: f64) {
        self.paths[station - 1].set_place(place(snr_db));
        self.medium.set_place(NodeId(station as u16), 0, Some(snr_db));
    }

    /// The path of a station, if there is such a one.
    #[must_use]
    pub fn path(&self, station: usize) -> Option<&Path> {
        self.paths.get(station.checked_sub(1)?)
    }

    fn note_attempts(&mut self) {
        while let Some(attempt) = self.medium.poll_attempt() {
            if let (Some(waiting), Some(data)) = (self.waiting.get_mut(&attempt.packet.number), attempt.data) {
                waiting.tried.push(data.rate);
            }
        }
    }

    fn settle(&mut self, at: Time, packet: &Carried, arrived: bool) {
        let Some(waiting) = self.waiting.remove(&packet.number) else { return };
        self.snapshot.acked += u64::from(arrived);
        if arrived {
            self.arrive(waiting.to, &waiting);
        }
        self.finish(at, waiting, arrived);
    }

    fn end_uncontended(&mut self, ended: Uncontended) {
        let Uncontended { ends, mut waiting, plan } = ended;
        if waiting.header.is_to_group() {
            waiting.tried.push(plan.first().rate);
            for radio in (0..self.radios.len()).filter(|radio| *radio != waiting.from) {
                // Stations do not hear each other, as in the medium.
                let (station, direction) = match (waiting.from, radio) {
                    (0, station) => (station, Direction::Down),
                    (station, 0) => (station, Direction::Up),
                    _ => continue,
                };
                let bytes = waiting.frame.len() as u32 + FCS_BYTES;
                let per = self.paths[station - 1].per(direction, plan.first().rate, bytes);
                if !self.losses.chance(per) {
                    self.arrive(radio, &waiting);
                }
            }
        } else {
            waiting.tried.extend((0..plan.tries()).filter_map(|tried| plan.after(tried)).map(|stage| stage.rate));
        }
        self.finish(ends, waiting, false);
    }

    fn signal_dbm(&self, from: usize, to: usize) -> i32 {
        let path = self.path(from.max(if to == usize::MAX { 0 } else { to }));
        path.map_or(NOISE_DBM, |path| NOISE_DBM + i32::from(path.snr_quarters(Direction::Down)) / 4)
    }

    fn arrive(&mut self, radio: usize, waiting: &Waiting) {
        let sent = waiting.tried.last().copied().unwrap_or(Rate::OFDM_6);
        let first = Rate::all(lasthop_medium::Standard::G).skip(if waiting.frequency_mhz < 4000 { 0 } else { 4 });
        let below = first.filter(|rate| rate.bit_rate() <= sent.bit_rate()).count();
        self.actions.push_back(Action::Arrive {
            radio: self.radios[radio],
            frame: waiting.frame.clone(),
            rate: below.saturating_sub(1) as u32,
            signal_dbm: self.signal_dbm(waiting.from, radio),
            frequency_mhz: waiting.frequency_mhz,
        });
    }

    fn finish(&mut self, at: Time, waiting: Waiting, arrived: bool) {
        let Waiting { from, to, header, frame, flags, cookie, frequency_mhz, rates, tried } = waiting;
        self.actions.push_back(Action::Settle(Outcome {
            at,
            radio: self.radios[from],
            between: (from, (to < self.radios.len()).then_some(to)),
            addba: Addba::read(&frame, &header),
            header,
            bytes: frame.len() as u32 + FCS_BYTES,
            cookie,
            flags: flags | if arrived { STAT_ACK } else { 0 },
            rates,
            frequency_mhz,
            tried,
            signal_dbm: self.signal_dbm(from, to),
        }));
    }
}

fn place(snr_db: f64) -> Place {
    Place { distance_m: 1.0, walls: 0, snr_db: Some(snr_db) }
}

#[cfg(test)]
mod tests;

//! The medium as its host sees it: packets in, what became of them out.
//!
//! Three models of the channel stand behind it, with one interface: `domain` (802.11b and g; everybody hears everybody, a
//! transmission costs O(log stations)), `edca` (the same where the access point is one of 802.11n, ac or ax: classes of
//! traffic and aggregates) and, with [`MediumParams::hidden`], `hidden` (b and g; who hears whom follows
//! from positions, powers and thresholds; O(stations)). With [`MediumParams::bridge`] there is no channel but a time per
//! packet ([`crate::bridge`]), with [`MediumParams::wireless_link`] one lossy link ([`crate::wireless_link`]).
//!
//! # Time
//!
//! Times count from the start of the run. Event times are the model's own, however late [`Medium::poll`] is called,
//! and `poll` commits nothing beyond the event it returns. [`Medium::on_packet`] may therefore be stamped with the
//! time of the event just returned; a stamp older than what is committed already counts as that moment. Of things
//! that fall on one nanosecond the model's own come first: an arrival then finds the medium busy.
//!
//! [`Medium::next_deadline`] names the moment of the next thing a host can see, or an earlier one: what happens
//! unseen in between (a backoff ends, an ACK arrives) is caught up with at the next call. Whoever reads metrics or changes
//! settings while it runs polls until `None` first.

use lasthop_core::aqm::mac80211::Aql;
use lasthop_core::packet::{AccessCategory, Packet};
use lasthop_core::units::{Span, Time};

use crate::attempt::Attempt;
use crate::bridge::Bridge;
use crate::channel::ChannelParams;
use crate::domain::Domain;
use crate::edca::Edca;
use crate::edca_params::EdcaClass;
use crate::hidden::Hidden;
use crate::params::{MediumParams, StationParams};
use crate::phy::{Phy, Rate};
use crate::propagation::Loss;
use crate::rate_control::RatePlan;
use crate::snapshot::Snapshot;
use crate::wireless_link::{WirelessLink, WirelessLinkParams};

/// A radio: 0 is the access point, i the i-th station (from 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u16);

impl NodeId {
    /// The access point.
    pub const ACCESS_POINT: Self = Self(0);
}

/// Where a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropPlace {
    /// The sender's queue was full.
    Queue,
    /// All attempts failed.
    Channel,
}

/// What happened to a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<P> {
    /// It reached the other end.
    Delivered {
        /// End of the data frame.
        at: Time,
        /// Sender.
        from: NodeId,
        /// Receiver.
        to: NodeId,
        /// The packet.
        packet: P,
    },
    /// It is gone.
    Dropped {
        /// When the sender dropped it.
        at: Time,
        /// The sender.
        node: NodeId,
        /// Where.
        place: DropPlace,
        /// The packet.
        packet: P,
    },
}

impl<P> Event<P> {
    /// The model's time of the event.
    #[must_use]
    pub fn at(&self) -> Time {
        match self {
            Self::Delivered { at, .. } | Self::Dropped { at, .. } => *at,
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Medium<P>(Model<P>);

// There is one of it per run, and the common one is worth being reached without a pointer.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug)]
enum Model<P> {
    Shared(Domain<P>),
    Edca(Box<Edca<P>>),
    Hidden(Box<Hidden<P>>),
    Bridge(Box<Bridge<P>>),
    Link(Box<WirelessLink<P>>),
}

/// The same call of whichever model there is.
macro_rules! model {
    ($medium:expr, $model:ident => $call:expr) => {
        match $medium {
            Model::Shared($model) => $call,
            Model::Edca($model) => $call,
            Model::Hidden($model) => $call,
            Model::Bridge($model) => $call,
            Model::Link($model) => $call,
        }
    };
}

/// The same call of a model that has a radio; the others have the `else`.
macro_rules! radio {
    ($medium:expr, $model:ident => $call:expr, else $none:expr) => {
        match $medium {
            Model::Shared($model) => $call,
            Model::Edca($model) => $call,
            Model::Hidden($model) => $call,
            Model::Bridge(_) | Model::Link(_) => $none,
        }
    };
}

impl<P: Packet + Copy> Medium<P> {
    /// A silent medium.
    ///
    /// # Panics
    ///
    /// With more than 65,534 stations; of n, ac and ax with more than 16,381.
    #[must_use]
    pub fn new(params: MediumParams, stations: Vec<StationParams>, seed: u64) -> Self {
        assert!(stations.len() < usize::from(u16::MAX), "a node is numbered by 16 bits");
        if let Some(bridge) = params.bridge {
            return Self(Model::Bridge(Box::new(Bridge::new(bridge, params, &stations, seed))));
        }
        if let Some(link) = params.wireless_link {
            return Self(Model::Link(Box::new(WirelessLink::new(link, params, &stations, seed))));
        }
        if params.standard.has_classes() {
            return Self(Model::Edca(Box::new(Edca::new(params, &stations, seed))));
        }
        if params.hidden {
            return Self(Model::Hidden(Box::new(Hidden::new(params, &stations, seed))));
        }
        Self(Model::Shared(Domain::new(params, &stations, seed)))
    }

    /// A packet for `to` at node `from`; one of them is the access point.
    ///
    /// A packet that finds the queue full comes back from [`Self::poll`] as dropped.
    ///
    /// # Panics
    ///
    /// With a node that the medium was not made with; so do the setters.
    #[inline]
    pub fn on_packet(&mut self, now: Time, from: NodeId, to: NodeId, packet: P) {
        debug_assert!((from.0 == 0) != (to.0 == 0), "the medium carries between access point and station");
        model!(&mut self.0, model => model.on_packet(now, from, to, packet));
    }

    /// The same, ahead of what waits, where the medium has a way for that (a wireless link); elsewhere as any packet.
    #[cold]
    #[inline(never)]
    pub fn on_urgent_packet(&mut self, now: Time, from: NodeId, to: NodeId, packet: P) {
        match &mut self.0 {
            Model::Link(link) => link.on_urgent_packet(now, from, to, packet),
            _ => self.on_further_packet(now, from, to, packet),
        }
    }

    /// As [`Self::on_packet`], out of the way of the others.
    #[cold]
    #[inline(never)]
    pub fn on_further_packet(&mut self, now: Time, from: NodeId, to: NodeId, packet: P) {
        model!(&mut self.0, model => model.on_packet(now, from, to, packet));
    }

    /// The next event at or before `now`, in order of time.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Option<Event<P>> {
        model!(&mut self.0, model => model.poll(now))
    }

    /// Of an aggregate all packets are handed out when it ends. How long before that the one that [`Self::poll`] has just given
    /// was at its receiver, with all before it; zero of anything else. Meters of delay take it off.
    #[must_use]
    pub fn lead(&self) -> Span {
        match &self.0 {
            Model::Edca(model) => model.lead(),
            _ => Span::ZERO,
        }
    }

    /// When to call [`Self::poll`] again; `None`: nothing happens without another packet.
    #[inline]
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        model!(&self.0, model => model.next_deadline())
    }

    /// Metrics since the start; queue means cover the time up to `now`.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> Snapshot {
        model!(&self.0, model => model.snapshot(now))
    }

    /// Packets that a node holds: queued and in service.
    #[must_use]
    pub fn backlog(&self, node: NodeId) -> usize {
        model!(&self.0, model => model.backlog(node))
    }

    /// Packets that the access point's queue discipline holds: what it can still put in order, or drop. The firmware's and
    /// the one in service are none of them.
    #[must_use]
    pub fn discipline_backlog(&self) -> usize {
        match &self.0 {
            Model::Shared(model) => model.discipline_backlog(),
            Model::Edca(model) => model.discipline_backlog(),
            Model::Hidden(model) => model.discipline_backlog(),
            model @ (Model::Bridge(_) | Model::Link(_)) => {
                model!(model, model => model.backlog(NodeId::ACCESS_POINT))
            }
        }
    }

    /// Changes of the base station so far; none but over a wireless link.
    #[must_use]
    pub fn handoffs(&self) -> u64 {
        match &self.0 {
            Model::Link(link) => link.handoffs(),
            _ => 0,
        }
    }

    /// What the wireless link is like, from the next packet on; nothing where there is none.
    pub fn set_wireless_link(&mut self, params: WirelessLinkParams) {
        if let Model::Link(link) = &mut self.0 {
            link.set_link(params);
        }
    }

    /// The air times in force; `None` without a radio.
    #[must_use]
    pub fn phy(&self) -> Option<&Phy> {
        radio!(&self.0, radio => Some(radio.phy()), else None)
    }

    /// Data rate to and from a station, from the next attempt on. This and the settings below are those of a radio: a bridge and a
    /// wireless link have none of them.
    pub fn set_station_rate(&mut self, station: NodeId, rate: Rate) {
        radio!(&mut self.0, radio => radio.set_station_rate(station, rate), else ());
    }

    /// Moves a station, from the next frame on.
    pub fn set_distance(&mut self, station: NodeId, metres: f64) {
        radio!(&mut self.0, radio => radio.set_distance(station, metres), else ());
    }

    /// What stands between a station and the access point, and an SNR in place of what follows from it, from the next frame on; with
    /// classes.
    pub fn set_place(&mut self, station: NodeId, walls: u8, snr_db: Option<f64>) {
        if let Model::Edca(edca) = &mut self.0 {
            edca.set_place(station, walls, snr_db);
        }
    }

    /// Errors by signal-to-noise ratio, from the next frame on; with classes.
    pub fn set_channel(&mut self, channel: Option<ChannelParams>) {
        if let Model::Edca(edca) = &mut self.0 {
            edca.set_channel(channel);
        }
    }

    /// Rate control is the host's: a packet goes through the stages that `plan_of` names, and is given up when they are used up. The
    /// plan of the first packet decides for an aggregate. With classes and a [`MediumParams::channel`]; elsewhere nothing.
    pub fn set_plans(&mut self, plan_of: fn(&P) -> RatePlan) {
        if let Model::Edca(edca) = &mut self.0 {
            edca.set_plans(plan_of);
        }
    }

    /// How a class of a node contends; `None` where there are no classes.
    #[must_use]
    pub fn class(&self, node: NodeId, class: AccessCategory) -> Option<EdcaClass> {
        if let Model::Edca(edca) = &self.0 { edca.class(node, class) } else { None }
    }

    /// Contention windows, TXOP limit and attempts of a class, from the next frame on; AIFSN and what else a class has stay. With classes.
    pub fn set_class(&mut self, node: NodeId, class: AccessCategory, wanted: &EdcaClass) {
        if let Model::Edca(edca) = &mut self.0 {
            edca.set_class(node, class, wanted);
        }
    }

    /// The access point makes no longer A-MPDUs than this, bytes, whatever it agreed on with a station; from the next frame on.
    pub fn set_ampdu_limit(&mut self, bytes: u32) {
        if let Model::Edca(edca) = &mut self.0 {
            edca.set_ampdu_limit(bytes);
        }
    }

    /// Air time that may wait below the access point's queue, where that is a Linux one with such a limit.
    pub fn set_aql(&mut self, aql: Aql) {
        if let Model::Edca(edca) = &mut self.0 {
            edca.set_aql(aql);
        }
    }

    /// Air time that was used so far, by whomever; `None` but with classes.
    #[must_use]
    pub fn airtime(&self) -> Option<Span> {
        if let Model::Edca(edca) = &self.0 { Some(edca.airtime()) } else { None }
    }

    /// Frames lost to the channel, from the next frame on.
    pub fn set_loss(&mut self, loss: Loss) {
        radio!(&mut self.0, radio => radio.set_loss(loss), else ());
    }

    /// Packets a node's queue holds, from the next arrival on; of any medium.
    pub fn set_queue_limit(&mut self, node: NodeId, packets: usize) {
        model!(&mut self.0, model => model.set_queue_limit(node, packets));
    }

    /// Transmissions of one frame, from the next decision on: for all frames, or for those up to the RTS threshold.
    pub fn set_attempts(&mut self, attempts: u32, short_attempts: Option<u32>) {
        if let Some(params) = self.radio_params() {
            (params.attempts, params.short_attempts) = (attempts, short_attempts);
        }
    }

    /// Transmissions of real-time packets' frames ([`Packet::is_realtime`]), from the next decision on; `None`: as
    /// others.
    pub fn set_realtime_attempts(&mut self, attempts: Option<u32>) {
        if let Some(params) = self.radio_params() {
            params.realtime_attempts = attempts;
        }
    }

    fn radio_params(&mut self) -> Option<&mut MediumParams> {
        radio!(&mut self.0, radio => Some(radio.params_mut()), else None)
    }

    /// Whether [`Self::poll_attempt`] has something to tell of transmissions from now on.
    pub fn record_attempts(&mut self, on: bool) {
        radio!(&mut self.0, radio => radio.record_attempts(on), else ());
    }

    /// The next attempt that was not told yet, in the order in which they started. It may be told before it is over, with
    /// what is to come of it; whoever records asks after every [`Self::poll`], since what is not told is kept.
    pub fn poll_attempt(&mut self) -> Option<Attempt<P>> {
        radio!(&mut self.0, radio => radio.poll_attempt(), else None)
    }
}

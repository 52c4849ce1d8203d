//! One radio: its queue, the frame it is sending, its contention window.

use lasthop_core::aqm::{Queue, Snapshot};
use lasthop_core::packet::{AccessCategory, FlowId, FlowKind, Packet};
use lasthop_core::units::{Span, Time};

use crate::firmware::{self, Firmware};
use crate::medium::NodeId;
use crate::params::{MediumParams, StationParams};
use crate::phy::Phy;
use crate::propagation::Loss;
use crate::random::{Stream, seeded};
use crate::snapshot::NodeStats;
use crate::times::Rates;

/// A packet and where it goes.
#[derive(Clone, Copy, Debug)]
pub struct Addressed<P> {
    pub packet: P,
    pub to: NodeId,
}

impl<P: Packet> Packet for Addressed<P> {
    fn flow(&self) -> FlowId {
        self.packet.flow()
    }
    fn bytes(&self) -> u32 {
        self.packet.bytes()
    }
    fn is_realtime(&self) -> bool {
        self.packet.is_realtime()
    }
    fn access_category(&self) -> AccessCategory {
        self.packet.access_category()
    }
    fn key(&self, kind: FlowKind) -> u64 {
        self.packet.key(kind)
    }
    fn mark_ce(&mut self) -> bool {
        self.packet.mark_ce()
    }
}

/// The frame in service.
#[derive(Clone, Copy, Debug)]
pub struct Service<P> {
    pub packet: P,
    pub bytes: u32,
    /// Transmissions so far.
    pub attempts: u32,
    pub to: NodeId,
    /// It reached its receiver; repetitions after that are duplicates, which the receiver removes.
    pub delivered: bool,
}

/// See the module. The access point's air times and loss fields are not used: each station holds both directions.
#[derive(Clone, Debug)]
pub struct Node<P> {
    pub service: Option<Service<P>>,
    pub cw: u32,
    pub cw_min: u32,
    /// Where [`Rates`] has the times of frames to and from this station.
    pub times: u8,
    /// Its backoffs: with a stream of its own it does not matter which node draws first.
    pub backoff: Stream,
    pub stats: NodeStats,
    pub queue: Queue<Addressed<P>>,
    /// Of its air time, what the queue's accounts know.
    charged: Span,
    pub power_w: f64,
    pub distance_m: f64,
    pub angle_deg: f64,
    /// A frame from this station to the access point is lost with this probability.
    pub loss_up: f64,
    /// The same from the access point to this station.
    pub loss_down: f64,
    /// Behind a queue that is no plain one, where there is such.
    firmware: Option<Box<Firmware<P>>>,
}

impl<P: Packet + Copy> Node<P> {
    /// The access point, then the stations.
    pub fn all(
        params: &MediumParams,
        stations: &[StationParams],
        phy: &Phy,
        rates: &mut Rates,
        seed: u64,
    ) -> Vec<Self> {
        let access_point = StationParams {
            standard: params.standard,
            distance_m: 0.0,
            power_w: params.power_w,
            queue: params.queue,
            queue_limit: params.plain_limit(params.queue_limit),
            // Not used; a rate that every cell has.
            rate: crate::Rate::DSSS_1,
            ..StationParams::default()
        };
        let places = std::iter::once(&access_point).chain(stations);
        let mut nodes: Vec<_> = places.zip(0..).map(|(place, n)| Self::new(place, phy, rates, seed, n)).collect();
        if params.firmware_queue > 0 && !nodes[0].queue.is_plain() {
            nodes[0].firmware = Some(Box::new(Firmware::new(params.firmware_queue)));
        }
        nodes
    }

    fn new(place: &StationParams, phy: &Phy, rates: &mut Rates, seed: u64, number: u16) -> Self {
        let cw_min = phy.cw_min(place.standard);
        Self {
            service: None,
            cw: cw_min,
            cw_min,
            backoff: Stream::numbered(seed, "wifi.backoff", number),
            stats: NodeStats::default(),
            times: rates.find(place.rate),
            power_w: place.power_w,
            distance_m: place.distance_m,
            angle_deg: place.angle_deg,
            queue: Queue::new(&seeded(place.queue, seed, number), place.queue_limit, Time::ZERO),
            charged: Span::ZERO,
            loss_up: 0.0,
            loss_down: 0.0,
            firmware: None,
        }
    }

    /// Computes the loss probabilities again, after the distance changed.
    pub fn refresh_loss(&mut self, params: &MediumParams) {
        let at = |power_w| params.radio.loss_probability(params.loss, power_w, self.distance_m);
        (self.loss_up, self.loss_down) = (at(self.power_w), at(params.power_w));
    }

    /// Packets held: queued, and in service until delivered.
    pub fn backlog(&self) -> usize {
        let in_service = usize::from(self.service.as_ref().is_some_and(|s| !s.delivered));
        self.queue.len() + self.firmware.as_ref().map_or(0, |firmware| firmware.len()) + in_service
    }

    /// Figures of its queue, the firmware's packets among them.
    pub fn queue_snapshot(&self, now: Time) -> Snapshot {
        let queue = self.queue.snapshot(now);
        self.firmware.as_ref().map_or(queue, |firmware| firmware.with(now, queue))
    }

    /// A packet for a radio that has one in service; what is dropped goes to `lose`.
    pub fn enqueue(&mut self, now: Time, packet: P, to: NodeId, mut lose: impl FnMut(P)) {
        if let Some(refused) = self.queue.enqueue(now, Addressed { packet, to }, to.0) {
            lose(refused.packet);
        }
        if let Some(firmware) = &mut self.firmware {
            firmware.feed(now, &mut self.queue, lose);
        }
    }

    /// A packet for a radio that has none in service goes there at once, past a plain queue; false: it is no plain one, see
    /// [`Self::begin_counted`].
    #[inline]
    pub fn begin(&mut self, packet: P, to: NodeId) -> bool {
        let Queue::Fifo(queue) = &mut self.queue else { return false };
        queue.pass_by();
        self.service = Some(Service::new(packet, to));
        true
    }

    /// The same through the accounts of the queue; gives the packet back when the queue drops it.
    pub fn begin_counted(&mut self, now: Time, packet: P, to: NodeId) -> Option<P> {
        let refused = self.queue.enqueue(now, Addressed { packet, to }, to.0);
        // One that is alone is never dropped at the head.
        let next = self.queue.dequeue(now, |_| ());
        self.service = next.map(|next| Service::new(next.packet, next.to));
        refused.map(|refused| refused.packet)
    }

    /// Takes the next packet of a plain queue into service; false: it is no plain one, see [`Self::serve_counted`].
    #[inline]
    pub fn serve_next(&mut self, now: Time) -> bool {
        let Queue::Fifo(queue) = &mut self.queue else { return false };
        // Copied from where it lies: a packet handed on twice would be read while it is still being written.
        match queue.front() {
            Some(Addressed { packet, to }) => match &mut self.service {
                Some(service) => {
                    service.packet = *packet;
                    (service.bytes, service.attempts) = (packet.bytes(), 0);
                    (service.to, service.delivered) = (*to, false);
                }
                none => *none = Some(Service::new(*packet, *to)),
            },
            None => self.service = None,
        }
        let _ = queue.pop(now);
        true
    }

    /// Takes the next packet into service after the last one's air time is charged; packets that the queue drops before
    /// it go to `lose`.
    ///
    /// Air time is what [`NodeStats`] says, of all attempts: frames, answers and what is between them. Waiting for a free
    /// medium (DIFS and backoff) is nobody's.
    pub fn serve_counted(&mut self, now: Time, mut lose: impl FnMut(P)) {
        let cost = self.stats.airtime - self.charged;
        self.charged = self.stats.airtime;
        let next = match &mut self.firmware {
            None => {
                self.queue.charge(cost);
                self.queue.dequeue(now, |dropped| lose(dropped.packet))
            }
            Some(firmware) => {
                if let Some(Service { packet, to, .. }) = self.service {
                    firmware::charge(&mut self.queue, &Addressed { packet, to }, cost);
                }
                let next = firmware.pop(now);
                firmware.feed(now, &mut self.queue, lose);
                next
            }
        };
        self.service = next.map(|next| Service::new(next.packet, next.to));
    }

    /// Mean power of this node's frames `metres` away, dBm; meaningful with shadowing only.
    pub fn mean_power_at(&self, params: &MediumParams, metres: f64) -> f64 {
        let Loss::Shadowing { exponent, .. } = params.loss else { return 0.0 };
        params.radio.mean_power(self.power_w, metres, exponent)
    }

    /// Metres between two nodes.
    pub fn distance_to(&self, other: &Self) -> f64 {
        let position = |node: &Self| {
            let angle = node.angle_deg.to_radians();
            (node.distance_m * libm::cos(angle), node.distance_m * libm::sin(angle))
        };
        let ((ax, ay), (bx, by)) = (position(self), position(other));
        libm::hypot(ax - bx, ay - by)
    }
}

impl<P: Packet> Service<P> {
    pub fn new(packet: P, to: NodeId) -> Self {
        let bytes = packet.bytes();
        Self { packet, bytes, attempts: 0, to, delivered: false }
    }
}

//! What happens to the packets of the scenario's flows, seen at the TAPs.
//!
//! A packet is *sent* when the engine reads it from the interface of the flow's `from` host, *delivered* when it is
//! written to an interface of the `to` host, *lost* when a model says so. One-way delay is the difference of the two
//! scheduled times, which count from the start of the scenario. A packet that vanishes inside a kernel (or is still
//! in flight at the end) counts nowhere.

pub mod identify;
pub mod track;

use crate::network::LostAt;
use identify::{Data, Endpoints, Transport, UDP_HEADERS};
use lasthop_core::units::{Span, Time};
use lasthop_home::report::FlowMeter;
use track::{Arrival, InFlight, Numbers, Stream};

/// In-flight packets remembered per flow: TCP has 16 bits of identification, half of them are plenty.
const TCP_IN_FLIGHT: usize = 1 << 15;
/// As above; a flow of 50,000 datagrams/s over a third of a second of queues.
const UDP_IN_FLIGHT: usize = 1 << 14;
/// In-flight packets remembered in all, so that thousands of small flows do not take thousands of large tables.
const ALL_IN_FLIGHT: usize = 1 << 22;
/// In-flight packets that are remembered for each flow in any case.
const LEAST_IN_FLIGHT: usize = 256;

/// What a flow did since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recent {
    /// IP bytes delivered.
    pub bytes: u64,
    /// Packets delivered.
    pub packets: u64,
    /// Packets lost.
    pub lost: u64,
    /// Largest one-way delay.
    pub worst_delay: Span,
}

/// One flow under observation.
pub struct Watched {
    /// Where its data come from and go to.
    pub ends: Endpoints,
    /// Its figures.
    pub meter: FlowMeter,
    /// The same over the whole run, where that may end before it is measured.
    whole: Option<FlowMeter>,
    in_flight: InFlight,
    stream: Stream,
    numbers: Numbers,
    recent: Recent,
}

/// All flows under observation.
pub struct Observer {
    ends: Vec<Endpoints>,
    flows: Vec<Watched>,
}

impl Observer {
    /// Watches flows in the order of their ports.
    #[must_use]
    pub fn new(flows: Vec<(Endpoints, FlowMeter)>) -> Self {
        let ends = flows.iter().map(|(ends, _)| *ends).collect();
        let share = (ALL_IN_FLIGHT / flows.len().max(1)).max(LEAST_IN_FLIGHT);
        let watch = |(ends, meter): (Endpoints, FlowMeter)| {
            let room = if ends.transport == Transport::Tcp { TCP_IN_FLIGHT } else { UDP_IN_FLIGHT };
            let in_flight = InFlight::new(room.min(share));
            let (stream, numbers) = (Stream::default(), Numbers::default());
            Watched { ends, meter, whole: None, in_flight, stream, numbers, recent: Recent::default() }
        };
        Self { ends, flows: flows.into_iter().map(watch).collect() }
    }

    /// Measures the whole run besides, in the order of the flows.
    pub fn measure_whole(&mut self, meters: impl IntoIterator<Item = FlowMeter>) {
        for (flow, meter) in self.flows.iter_mut().zip(meters) {
            flow.whole = Some(meter);
        }
    }

    /// Whose data a frame carries.
    #[must_use]
    pub fn identify(&self, frame: &[u8]) -> Option<Data> {
        identify::identify(frame, &self.ends)
    }

    /// Where the flow comes from.
    #[must_use]
    pub fn source(&self, flow: u16) -> std::net::Ipv4Addr {
        self.ends[usize::from(flow)].source
    }

    /// Where the flow goes to.
    #[must_use]
    pub fn destination(&self, flow: u16) -> std::net::Ipv4Addr {
        self.ends[usize::from(flow)].destination
    }

    /// Late is as bad as lost for it.
    #[must_use]
    pub fn is_realtime(&self, flow: u16) -> bool {
        self.ends[usize::from(flow)].is_realtime
    }

    /// The flow's sender handed a packet to the network.
    pub fn on_sent(&mut self, at: Time, data: &Data) {
        let flow = &mut self.flows[usize::from(data.flow)];
        let id = match flow.ends.transport {
            Transport::Quic => flow.numbers.on_sent(data.id, flow.in_flight.room()),
            Transport::Udp | Transport::Tcp => data.id,
        };
        flow.in_flight.on_sent(id, at);
        if flow.ends.transport == Transport::Tcp {
            flow.stream.on_sent(data.seq);
        }
        flow.meters().for_each(|meter| meter.on_sent(at));
    }

    /// A packet reached the flow's receiver. When it was sent, where this is the first copy of a datagram; and how many bytes of its
    /// payload are new.
    pub fn on_delivered(&mut self, at: Time, data: &Data) -> (Option<Time>, u32) {
        let flow = &mut self.flows[usize::from(data.flow)];
        let arrival = flow.number(data.id).map_or(Arrival::Unknown, |id| flow.in_flight.on_arrived(id));
        let fresh = match flow.ends.transport {
            Transport::Udp => data.bytes.saturating_sub(UDP_HEADERS),
            // The receiver says, in the end.
            Transport::Quic => 0,
            Transport::Tcp => flow.stream.on_segment(data.seq, data.payload),
        };
        match arrival {
            Arrival::First(sent) if fresh > 0 || data.payload == 0 => {
                let place = flow.stream.place(data.seq);
                for meter in flow.meters() {
                    meter.on_delivered(sent, at, data.bytes, fresh);
                    place.iter().for_each(|(seq, next)| meter.on_stream(*seq, *next));
                }
                let delay = at.since(sent);
                flow.recent.bytes += u64::from(data.bytes);
                flow.recent.packets += 1;
                flow.recent.worst_delay = flow.recent.worst_delay.max(delay);
                return ((flow.ends.transport != Transport::Tcp).then_some(sent), fresh);
            }
            Arrival::First(sent) => flow.meters().for_each(|meter| meter.on_duplicate(sent)),
            Arrival::Again => flow.meters().for_each(|meter| meter.on_duplicate(at)),
            Arrival::Unknown => {}
        }
        (None, 0)
    }

    /// A model dropped a packet.
    pub fn on_lost(&mut self, place: LostAt, flow: u16, id: u32) {
        let flow = &mut self.flows[usize::from(flow)];
        if let Some(sent) = flow.number(id).and_then(|id| flow.in_flight.on_lost(id)) {
            flow.meters().for_each(|meter| meter.on_lost(sent, place.into()));
            flow.recent.lost += 1;
        }
    }

    /// What every flow did since the last call.
    pub fn take_recent(&mut self) -> Vec<Recent> {
        self.flows.iter_mut().map(|flow| std::mem::take(&mut flow.recent)).collect()
    }

    /// The flows, when all is over.
    #[must_use]
    pub fn into_flows(self) -> Vec<Watched> {
        self.flows
    }
}

impl Watched {
    /// The figures of the whole run in the place of those from `measure_from` on.
    pub fn take_whole(&mut self) {
        if let Some(whole) = self.whole.take() {
            self.meter = whole;
        }
    }

    /// Everything that counts.
    fn meters(&mut self) -> impl Iterator<Item = &mut FlowMeter> {
        std::iter::once(&mut self.meter).chain(&mut self.whole)
    }

    /// What `id` stands for in the memory of what is in flight.
    fn number(&self, id: u32) -> Option<u32> {
        match self.ends.transport {
            Transport::Quic => self.numbers.of(id),
            Transport::Udp | Transport::Tcp => Some(id),
        }
    }

    /// Packets sent before `limit` that were neither delivered nor lost by a model, and those forgotten.
    #[must_use]
    pub fn vanished(&self, limit: Time) -> u64 {
        self.in_flight.silent_since(limit) + self.in_flight.forgotten()
    }
}

//! What TCP alone gets over this air: the reference of `capacity = "98%"`.
//!
//! `C = 8 x (IP bytes of data delivered in [1 s, 20 s)) / 19 s`   [bit/s]
//!
//! The medium of the scenario (same radio, rates, loss, attempts, seed; no UDP) runs in virtual time with greedy
//! senders in place of the elastic flows: the access point's queue never empties and serves downloads round robin, an
//! uploading station's neither; the other end answers every second segment (each one without `delayed_ack`) with an
//! ACK of 52 IP bytes: 20 of IP, 20 of TCP, 12 of timestamps. A segment fills a packet of `mss + 40` bytes. Without an
//! elastic flow it is a download to the first station.
//! Not in it: congestion control (a lost segment is made up for at once), wired limits, the ACKs' time on the wire.

use lasthop_core::packet::{FlowId, Packet};
use lasthop_core::units::{BitRate, Time};
use lasthop_medium::{DropPlace, Event, Medium, NodeId};

use crate::scenario::{Capacity, Flow, HostId, LastHop, Scenario};

/// IP bytes of an ACK with timestamps.
const ACK_BYTES: u32 = 52;

/// Queues have filled and backoff has met its mean.
const WARM_UP: Time = Time::from_nanos(1_000_000_000);

/// Long enough for 0.3 % between seeds.
const END: Time = Time::from_nanos(20_000_000_000);

/// Packets a greedy sender keeps in its queue, where the queue holds so many: never empty is what counts.
const BACKLOG: usize = 16;

/// Capacity of the last hop for TCP alone, IP bit/s of data; zero in a home without stations.
#[must_use]
pub fn tcp_alone(scenario: &Scenario) -> BitRate {
    match &scenario.hop {
        LastHop::Wifi(_) | LastHop::Bridge(_) => Run::new(scenario).map_or(BitRate::ZERO, Run::finish),
        // Nothing contends there: what the link carries and does not lose.
        LastHop::WirelessLink(link) => link.params.rate.mul_f64(1.0 - link.params.error_rate),
    }
}

/// What a scenario's word means in it; zero where it is to be learned.
#[must_use]
pub fn rate(scenario: &Scenario, capacity: Capacity) -> BitRate {
    match capacity {
        Capacity::Rate(rate) => rate,
        Capacity::Share(share) => tcp_alone(scenario).mul_f64(share),
        Capacity::Learn => BitRate::ZERO,
    }
}

/// A greedy flow over the channel.
#[derive(Clone, Copy, Debug)]
struct Greedy {
    from: NodeId,
    to: NodeId,
    /// IP bytes of a segment.
    bytes: u32,
    /// Segments per ACK.
    per_ack: u32,
    /// Segments received since the last ACK.
    unacked: u32,
}

/// A segment or an ACK of flow `flow`.
#[derive(Clone, Copy, Debug)]
struct Segment {
    flow: u32,
    bytes: u32,
    is_ack: bool,
}

impl Packet for Segment {
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    fn bytes(&self) -> u32 {
        self.bytes
    }
}

struct Run {
    medium: Medium<Segment>,
    flows: Vec<Greedy>,
    senders: Vec<Sender>,
    data_bytes: u64,
}

/// A node and its flows.
struct Sender {
    node: NodeId,
    flows: Vec<u32>,
    /// Index of the flow whose turn it is.
    turn: usize,
    /// Segments that found its queue full: each goes when an answer has left it.
    owed: usize,
}

impl Run {
    fn new(scenario: &Scenario) -> Option<Self> {
        let (params, stations) = scenario.medium();
        let mut flows: Vec<Greedy> = scenario.flows.iter().filter_map(|flow| greedy(scenario, flow)).collect();
        if flows.is_empty() && !stations.is_empty() {
            flows.push(Greedy { from: NodeId(0), to: NodeId(1), bytes: 1500, per_ack: 2, unacked: 0 });
        }
        let (ap_limit, station_limit) = (params.queue_limit, stations.first()?.queue_limit);
        let mut run = Self {
            medium: Medium::new(params, stations, scenario.seed),
            senders: senders(&flows),
            flows,
            data_bytes: 0,
        };
        for sender in 0..run.senders.len() {
            let limit = if run.senders[sender].node == NodeId(0) { ap_limit } else { station_limit };
            // One packet is in service beside those that wait.
            (0..=limit.min(BACKLOG)).for_each(|_| run.send_next(Time::ZERO, sender));
        }
        Some(run)
    }

    /// The flow whose turn it is at `sender` sends a segment.
    fn send_next(&mut self, now: Time, sender: usize) {
        let Sender { node, flows, turn, .. } = &mut self.senders[sender];
        let flow = flows[*turn % flows.len()];
        *turn += 1;
        let Greedy { to, bytes, .. } = self.flows[flow as usize];
        self.medium.on_packet(now, *node, to, Segment { flow, bytes, is_ack: false });
    }

    fn finish(mut self) -> BitRate {
        while let Some(now) = self.medium.next_deadline().filter(|at| *at < END) {
            while let Some(event) = self.medium.poll(now) {
                self.on_event(event);
            }
        }
        BitRate::from_bps_f64(self.data_bytes as f64 * 8.0 / END.since(WARM_UP).as_secs_f64())
    }

    fn on_event(&mut self, event: Event<Segment>) {
        let (at, node, segment, arrived) = match event {
            Event::Delivered { at, from, packet, .. } => (at, from, packet, true),
            Event::Dropped { at, node, packet, place: DropPlace::Channel } => (at, node, packet, false),
            // Answers to others have filled its queue. One that tried again at once would find it full for ever.
            Event::Dropped { node, packet, place: DropPlace::Queue, .. } => {
                let sender = self.senders.iter_mut().find(|sender| sender.node == node && !packet.is_ack);
                return sender.into_iter().for_each(|sender| sender.owed += 1);
            }
        };
        if arrived && !segment.is_ack {
            self.data_bytes += if at < WARM_UP { 0 } else { u64::from(segment.bytes) };
            self.acknowledge(at, segment.flow);
        }
        let Some(sender) = self.senders.iter().position(|sender| sender.node == node) else { return };
        if segment.is_ack {
            let owed = &mut self.senders[sender].owed;
            if *owed == 0 {
                return;
            }
            *owed -= 1;
        }
        self.send_next(at, sender);
    }

    fn acknowledge(&mut self, at: Time, flow: u32) {
        let greedy = &mut self.flows[flow as usize];
        greedy.unacked += 1;
        if greedy.unacked >= greedy.per_ack {
            greedy.unacked = 0;
            let (from, to) = (greedy.to, greedy.from);
            self.medium.on_packet(at, from, to, Segment { flow, bytes: ACK_BYTES, is_ack: true });
        }
    }
}

/// `flow` as a greedy one, where it is elastic and crosses the channel once.
fn greedy(scenario: &Scenario, flow: &Flow) -> Option<Greedy> {
    if !flow.kind.is_elastic() {
        return None;
    }
    let (from, to) = match (flow.from, flow.to) {
        (HostId::Station(_), HostId::Station(_)) => return None,
        (up @ HostId::Station(_), _) => (scenario.node(up)?, NodeId(0)),
        (_, down) => (NodeId(0), scenario.node(down)?),
    };
    if from == to {
        return None;
    }
    let tcp = flow.transport();
    let bytes = tcp.map_or(1500, |tcp| tcp.mss.0 as u32 + 40);
    let per_ack = if tcp.is_none_or(|tcp| tcp.delayed_ack) { 2 } else { 1 };
    Some(Greedy { from, to, bytes, per_ack, unacked: 0 })
}

/// Senders in the order of their first flow.
fn senders(flows: &[Greedy]) -> Vec<Sender> {
    let mut senders: Vec<Sender> = Vec::new();
    for (i, flow) in flows.iter().enumerate() {
        match senders.iter_mut().find(|sender| sender.node == flow.from) {
            Some(sender) => sender.flows.push(i as u32),
            None => senders.push(Sender { node: flow.from, flows: vec![i as u32], turn: 0, owed: 0 }),
        }
    }
    senders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(flows: &str, set: &[&str]) -> Scenario {
        let text = format!(
            "format = 1\nname = \"t\"\nduration = \"10s\"\n[wifi]\nrate = \"54Mbit/s\"\n[[server]]\nname = \"W\"\n\
             [[station]]\nname = \"A\"\n[[station]]\nname = \"B\"\n{flows}"
        );
        let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
        Scenario::parse(&text, "t.toml", &set).unwrap()
    }

    const DOWN: &str = "[[flow]]\nname = \"ftp\"\nfrom = \"W\"\nto = \"A\"\nkind = \"ftp\"\n";
    const BOTH: &str = "[[flow]]\nname = \"a\"\nfrom = \"W\"\nto = \"A\"\nkind = \"ftp\"\n\
                        [[flow]]\nname = \"b\"\nfrom = \"W\"\nto = \"B\"\nkind = \"ftp\"\n";

    fn mbps(scenario: &Scenario) -> f64 {
        tcp_alone(scenario).as_mbps_f64()
    }

    #[test]
    fn fewer_acks_leave_more_air_to_data() {
        let (delayed, each) = (mbps(&home(DOWN, &[])), mbps(&home(DOWN, &["flow.ftp.delayed_ack=false"])));
        // By hand: data 254 + 10 + 34 us, ACK 42 + 10 + 34 us, two DIFS of 28 us, 7.5 slots of 9 us, and a collision
        // for one segment in nine that costs about 380 us: 550 us for 12,000 bit, 21.8 Mbit/s.
        assert!((20.7..22.9).contains(&each), "{each}");
        assert!((1.05..1.25).contains(&(delayed / each)), "{delayed} and {each}");
    }

    #[test]
    fn a_slow_station_costs_the_fast_one_its_time() {
        let alone = mbps(&home(DOWN, &[]));
        let mixed = mbps(&home(BOTH, &["station.B.rate=6Mbit/s"]));
        // Round robin by packets: both get the same, and the slow one needs most of the time.
        assert!(mixed < 0.45 * alone, "{mixed} beside {alone}");
    }

    #[test]
    fn loss_costs_capacity_and_one_seed_gives_one_figure() {
        let clean = home(DOWN, &[]);
        let lossy = home(DOWN, &["wifi.loss.kind=fixed", "wifi.loss.rate=0.1"]);
        assert!(mbps(&lossy) < 0.95 * mbps(&clean));
        assert_eq!(tcp_alone(&lossy), tcp_alone(&lossy));
    }

    #[test]
    fn without_an_elastic_flow_it_is_a_download_to_the_first_station() {
        assert_eq!(tcp_alone(&home("", &[])), tcp_alone(&home(DOWN, &[])));
    }

    /// Answers to uploads and the segments of a download wait in one queue, which is often full of answers.
    #[test]
    fn a_queue_full_of_answers_does_not_stop_the_clock() {
        let up: String =
            (0..6).map(|i| format!("[[flow]]\nname = \"up{i}\"\nfrom = \"A\"\nto = \"W\"\nkind = \"ftp\"\n")).collect();
        let both = home(&format!("{DOWN}{up}"), &["wifi.queue.limit=2", "flow.*.delayed_ack=false"]);
        assert!((5.0..40.0).contains(&mbps(&both)));
    }

    #[test]
    fn an_upload_is_served_like_a_download() {
        let up = "[[flow]]\nname = \"up\"\nfrom = \"A\"\nto = \"W\"\nkind = \"ftp\"\n";
        let (up, down) = (mbps(&home(up, &[])), mbps(&home(DOWN, &[])));
        assert!((up / down - 1.0).abs() < 0.02, "{up} and {down}");
    }
}

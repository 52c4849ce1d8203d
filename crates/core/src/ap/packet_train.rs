//! The first estimate of what a bottleneck carries: trains that were sent at once come at the pace of the WAN link, and are delivered at
//! that of the last hop (packet-pair dispersion: Keshav 1991).
//!
//! A packet train that came faster than it was delivered was stretched by the hop: its pace is the hop's. One that lasted longer may have
//! the pace of its sender, and says nothing, unless it waited: that came faster by as much. What data waited before they came to the
//! access point their sender's timestamps tell: what was sent at once has one timestamp.

use super::Duplex;
use super::sample::{HopId, LinkSample};
use crate::packet::Direction;
use crate::units::Time;

/// A packet train that came so many times faster than it was delivered was stretched by the hop.
const DISPERSED: f64 = 1.1;
/// A burst that the WAN link stretches by more than so much was not stretched by acknowledgments alone, each of which waits for a second
/// segment (RFC 9293 section 3.8.6.3): twice. Without it windows grow on over slow WAN links (`slow_lines` of the simulator).
const CLEARLY: f64 = 2.0;
/// A packet train of fewer bytes says little: six packets.
const TRAIN_BYTES: f64 = 6.0 * 1500.0;
/// A part of a round trip, and a time, s: a packet train that took no longer was sent at once, at the pace of no sender.
const AT_ONCE: f64 = 0.25;
const AT_ONCE_TIME: f64 = 0.01;
/// Those of several flows that begin together make one train on the WAN link, as long as all of them. At most this part of a round
/// trip: a longer one may be the pace of acknowledgments. Without it 5 of 1,800 small homes more lose work.
const AT_ONCE_TOGETHER: f64 = 0.75;
/// This part of a burst tells its pace. Told by all of it an upload fills a slow WAN link before (`slow_lines` of the simulator).
const SUFFICES: f64 = 0.5;
/// A part of an interval: a packet train of a download that filled less of it has ended. One of an upload has when nothing has come for a
/// quarter of a round trip: the channel is the first hop that it meets.
const TRAIN_ENDS: f64 = 0.6;

/// Of all flows whose data goes in one direction: a packet train that has not ended, IP bytes and s, where it came and where it was delivered.
#[derive(Debug, Default)]
pub(super) struct PacketTrains {
    came: (f64, f64),
    served: (f64, f64),
    /// At what pace the newest one came, bytes/s.
    pace: f64,
    /// Of an upload, the newest that came over the hop at once: IP bytes and s.
    burst: Option<(f64, f64)>,
    /// The newest that showed something, IP bytes.
    pub(super) shown_by: f64,
}

/// A packet train that came through a bottleneck.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketTrain {
    /// What it cost there, bytes.
    pub(super) bytes: f64,
    /// How long it took, s.
    pub(super) seconds: f64,
    /// It had come faster.
    pub(super) dispersed: bool,
}

/// What passed of trains in an interval: IP bytes, and the time they took, s.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Passed {
    came: (f64, f64),
    served: (f64, f64),
    /// For how long nothing has come, s.
    pause: f64,
}

impl Passed {
    /// Of data that goes over `hop` in `direction`; `to_ip`: IP bytes for each of payload.
    pub(super) fn between(
        (before, now): (&LinkSample, &LinkSample),
        hop: HopId,
        direction: Direction,
        at: Time,
        to_ip: f64,
    ) -> Option<Self> {
        let of = |sample: &LinkSample| {
            sample.each_hop.iter().find(|each| each.hop == hop).map(|each| each.packet_trains[direction.index()])
        };
        let (a, b) = (of(before)?, of(now)?);
        let part = |bytes: u64, was: u64, ns: u64, was_ns: u64| {
            (bytes.wrapping_sub(was) as f64 * to_ip, ns.wrapping_sub(was_ns) as f64 / 1e9)
        };
        Some(Self {
            came: part(b.came_bytes, a.came_bytes, b.came_ns, a.came_ns),
            served: part(b.served_bytes, a.served_bytes, b.served_ns, a.served_ns),
            pause: at.since(Time::from_nanos(b.data_ns)).as_secs_f64(),
        })
    }
}

impl PacketTrains {
    /// An interval of `dt`: what trains show of the hop and of the WAN link. `cost`: of a byte at the hop.
    pub(super) fn on_interval(
        &mut self,
        direction: Direction,
        passed: &Passed,
        // Round trip, flows, what of them arrives, IP bytes/s, and the longest that any of them waited at the hop and on the WAN link.
        (rtt, active, arrives, waited): (f64, usize, f64, [f64; 2]),
        (cost, duplex): (f64, Duplex),
        dt: f64,
    ) -> (Option<PacketTrain>, Option<PacketTrain>) {
        let (mut of_hop, mut of_wan) = (None, None);
        let longest = (rtt * AT_ONCE).max(AT_ONCE_TIME);
        // All that is sent in a round trip would take so long at this pace; where it took much of it, a sender has paced it (BBR, 2.89 times what
        // arrives). Without it, a flow beside which another begins is held to its first pace (`first_trains` of the simulator).
        let whole = |bytes: f64, seconds: f64| seconds * (arrives * rtt / bytes).max(1.0);
        // Data of an upload come from the hop.
        let down = direction == Direction::ToStation;
        let (at_hop, at_wan) = if down { (passed.served, passed.came) } else { (passed.came, passed.served) };
        let (behind_hop, behind_wan) = (waited_there(at_hop, waited[0]), waited_there(at_wan, waited[1]));
        let ends = [at_wan, at_hop].map(|(_, seconds)| match down {
            true => seconds < dt * TRAIN_ENDS,
            false => passed.pause >= rtt * AT_ONCE,
        });
        if !down && at_hop.0 >= TRAIN_BYTES && at_hop.1 < dt * TRAIN_ENDS && self.came.0 + at_wan.0 == 0.0 {
            self.burst = Some(at_hop);
        }
        let at_hop = ended(&mut self.served, at_hop, ends[1]);
        // A burst that the WAN link clearly stretches tells its pace by a part of it, though more follows it without a pause.
        let so_far = (self.came.0 + at_wan.0, self.came.1 + at_wan.1);
        let judged = self.burst.take_if(|burst| so_far.0 >= SUFFICES * burst.0);
        let is_clear = judged.is_some_and(|burst| so_far.1 * burst.0 > CLEARLY * burst.1 * so_far.0);
        let at_wan = ended(&mut self.came, at_wan, ends[0] || is_clear);
        if let Some((bytes, seconds)) = behind_wan.or(at_wan) {
            self.pace = bytes / seconds.max(1e-6);
            let dispersed = behind_wan.is_some() || is_clear;
            // What times an upload comes back over the WAN link: acknowledgments that waited for each other there come together, and tell 100 times
            // what it carries (ACK compression: Mogul 1992).
            let together = longest.max((AT_ONCE_TIME * active as f64).min(AT_ONCE_TOGETHER * rtt));
            if dispersed || down && whole(bytes, seconds) <= together {
                of_wan = Some(PacketTrain { bytes, seconds, dispersed });
                self.shown_by = bytes;
            }
        }
        // Without it 187 instead of 212 of 240 homes of flows that begin one after another keep their bound (`onset` of the simulator). A medium that both
        // directions share has served the other one, too.
        if let Some((bytes, seconds)) = behind_hop.filter(|_| duplex == Duplex::Full) {
            self.shown_by = bytes;
            return (Some(PacketTrain { bytes: bytes * cost, seconds, dispersed: true }), of_wan);
        }
        let Some((bytes, seconds)) = at_hop else { return (None, of_wan) };
        // Of uploads the hop comes first: what the WAN link let through says nothing of it.
        let came = if down && self.pace > 0.0 { bytes / self.pace } else { 0.0 };
        let pace = match seconds.max(came) {
            _ if came > 0.0 && seconds > DISPERSED * came => Some((seconds, true)),
            // It cannot have been delivered faster than it came: its ACKs waited.
            longer if whole(bytes, longer) <= longest => Some((longer, false)),
            // What came had its sender's pace; on a wire no ACK contends, so that the burst in it tells its own.
            _ if duplex == Duplex::Full && seconds > 0.0 && seconds <= longest => Some((seconds, false)),
            _ => None,
        };
        if let Some((seconds, dispersed)) = pace {
            of_hop = Some(PacketTrain { bytes: bytes * cost, seconds, dispersed });
            self.shown_by = bytes;
        }
        (of_hop, of_wan)
    }
}

/// Whether a packet train ended or not: what waited had come faster by as much, and of more than a few packets that tells. Without it on the WAN link
/// 67 instead of 77 of 84 homes with uploads keep the bound of their first five seconds (`make bounds`).
fn waited_there((bytes, seconds): (f64, f64), waited: f64) -> Option<(f64, f64)> {
    let waited = waited.min(seconds);
    (seconds > DISPERSED * (seconds - waited) && bytes * waited >= TRAIN_BYTES * seconds).then_some((bytes, seconds))
}

/// Adds to a packet train; when it `ends`, and was not of few packets: its IP bytes, and the time it took, s.
fn ended(packet_train: &mut (f64, f64), (bytes, seconds): (f64, f64), ends: bool) -> Option<(f64, f64)> {
    *packet_train = (packet_train.0 + bytes, packet_train.1 + seconds);
    if !ends {
        return None;
    }
    Some(std::mem::take(packet_train)).filter(|packet_train| packet_train.0 >= TRAIN_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A burst of nine packets from the hop, of which the WAN link delivers one in `packet` s; each answer brings more data.
    fn shown(packet: f64) -> Option<PacketTrain> {
        let mut packet_trains = PacketTrains::default();
        let mut interval = |came, served, pause| {
            let passed = Passed { came, served, pause };
            packet_trains
                .on_interval(Direction::ToRemote, &passed, (0.04, 1, 0.0, [0.0; 2]), (1.0, Duplex::Half), 0.05)
                .1
        };
        assert!(interval((13_500.0, 0.001), (0.0, 0.0), 0.009).is_none());
        let first = interval((7_500.0, 0.03), (3_000.0, 2.0 * packet), 0.0);
        first.or_else(|| interval((12_000.0, 0.048), (12_000.0, 8.0 * packet), 0.0))
    }

    #[test]
    fn an_upload_that_a_line_stretches_shows_it_before_its_train_ends() {
        let packet_train = shown(0.006).expect("a train");
        assert!(
            packet_train.dispersed && (packet_train.bytes * 8.0 / packet_train.seconds - 2e6).abs() < 1e3,
            "{packet_train:?}"
        );
        assert!(shown(0.0001).is_none(), "it came at the pace at which it was sent");
    }

    #[test]
    fn uploads_that_never_pause_show_the_wan_link_by_what_waits_there() {
        // 50 ms at 51 Mbit/s, always more behind it.
        let shown = |waited| {
            let mut packet_trains = PacketTrains::default();
            let passed = Passed { came: (475_000.0, 0.05), served: (318_750.0, 0.05), pause: 0.0 };
            let flows = (0.1, 8, 6e6, [0.0, waited]);
            (0..3)
                .find_map(|_| {
                    packet_trains.on_interval(Direction::ToRemote, &passed, flows, (1.0, Duplex::Half), 0.05).1
                })
                .map(|train| (train.bytes * 8.0 / train.seconds / 1e6, train.dispersed))
        };
        assert_eq!(shown(0.015), Some((51.0, true)));
        assert_eq!(shown(0.0), None, "it came at the pace of its senders");
        assert_eq!(shown(0.0012), None, "that few packets wait for each other says nothing");
    }

    #[test]
    fn a_download_that_waits_shows_the_wan_link_and_not_the_hop_though_its_train_lasts_for_most_of_a_round_trip() {
        // Of what a token bucket let pass at once the pace was 1 Gbit/s; now 39 ms at 29 Mbit/s, of 97.
        let shown = |waited| {
            let mut packet_trains = PacketTrains::default();
            let mut interval = |(came, served), waited| {
                let passed = Passed { came, served, pause: 0.004 };
                let flows = (0.097, 3, 2e6, [0.0, waited]);
                packet_trains.on_interval(Direction::ToStation, &passed, flows, (1.0, Duplex::Half), 0.05)
            };
            interval(((27_000.0, 0.0002), (0.0, 0.0)), 0.0);
            let (of_hop, of_wan) = interval(((142_500.0, 0.039), (142_500.0, 0.039)), waited);
            [of_hop, of_wan]
                .map(|train| train.map(|train| ((train.bytes * 8.0 / train.seconds / 1e6).round(), train.dispersed)))
        };
        assert_eq!(shown(0.020), [None, Some((29.0, true))]);
        assert_eq!(shown(0.0), [None, None], "it came at the pace of its senders");
    }

    #[test]
    fn what_waits_at_a_wire_shows_it_in_either_direction_though_it_never_pauses() {
        // 35 ms at 50 Mbit/s, over a WAN link of 1 Gbit/s.
        let shown = |direction, waited, duplex| {
            let mut packet_trains = PacketTrains::default();
            let at = [(218_750.0, 0.035), (218_750.0, 0.002)];
            let (served, came) = if direction == Direction::ToStation { (at[0], at[1]) } else { (at[1], at[0]) };
            let passed = Passed { came, served, pause: 0.0 };
            let (of_hop, _) =
                packet_trains.on_interval(direction, &passed, (0.05, 4, 6e6, [waited, 0.0]), (1.0, duplex), 0.05);
            of_hop.map(|train| ((train.bytes * 8.0 / train.seconds / 1e6).round(), train.dispersed))
        };
        for direction in Direction::BOTH {
            assert_eq!(shown(direction, 0.01, Duplex::Full), Some((50.0, true)), "{direction:?}");
            assert_eq!(shown(direction, 0.001, Duplex::Full), None, "few packets wait for each other, {direction:?}");
            assert_eq!(shown(direction, 0.01, Duplex::Half), None, "the other direction has its part, {direction:?}");
        }
    }

    #[test]
    fn acknowledgments_of_uploads_that_come_together_tell_no_pace() {
        let mut packet_trains = PacketTrains::default();
        let mut interval = |direction, came, served| {
            let passed = Passed { came, served, pause: 0.05 };
            packet_trains.on_interval(direction, &passed, (0.08, 1, 0.0, [0.0; 2]), (1.0, Duplex::Half), 0.05).1
        };
        // 20 packets over a WAN link of 20 Mbit/s; ten ACKs that waited behind downloads come within 50 us.
        assert!(interval(Direction::ToRemote, (30_000.0, 0.012), (0.0, 0.0)).is_none());
        assert!(interval(Direction::ToRemote, (0.0, 0.0), (30_000.0, 50e-6)).is_none());
        assert!(interval(Direction::ToStation, (30_000.0, 0.008), (30_000.0, 0.008)).is_some(), "data tell theirs");
    }

    #[test]
    fn what_a_sender_paces_is_no_train_and_a_burst_within_it_tells_a_wires_pace() {
        // Ten packets within a third of 100 ms, while as many arrive in each; of them, six were delivered within 1 ms: 72 Mbit/s.
        let shown = |arrives, duplex| {
            let mut packet_trains = PacketTrains::default();
            let mut interval = |came, served| {
                let passed = Passed { came, served, pause: 0.0 };
                let flows = (0.1, 2, arrives, [0.0; 2]);
                packet_trains.on_interval(Direction::ToStation, &passed, flows, (1.0, duplex), 0.05)
            };
            let (_, of_wan) = interval((9_000.0, 0.02), (0.0, 0.0));
            let (of_hop, _) = interval((0.0, 0.0), (9_000.0, 0.001));
            [of_hop, of_wan].map(|train| train.map(|train| (train.bytes * 8.0 / train.seconds / 1e6).round()))
        };
        assert_eq!(shown(0.0, Duplex::Full), [Some(4.0); 2], "at once, in a fifth of a round trip");
        assert_eq!(shown(150e3, Duplex::Full), [Some(72.0), None]);
        assert_eq!(shown(150e3, Duplex::Half), [None, None], "acknowledgments that waited for the air come together");
    }
}

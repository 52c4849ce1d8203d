//! What the per-packet half measured in an interval, as the deciding half takes it.

use super::Duplex;
use crate::fastpath::layout::{FlowState, Half, Hop, RttTotal, Stamp};
use crate::packet::{Direction, FlowId};
use crate::units::{BitRate, Span, Time};
use crate::wire::seq;

/// One direction of one flow at the end of an interval. Counts are cumulative since the flow began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowSample {
    /// The host's name for it.
    pub flow: FlowId,
    /// Direction of its data.
    pub direction: Direction,
    /// The station at its end.
    pub station: StationId,
    /// The hop that its packets crossed last between access point and station.
    pub hop: HopId,
    /// IP bytes in this direction.
    pub bytes: u64,
    /// TCP payload bytes in this direction.
    pub payload_bytes: u64,
    /// Smallest RTT between access point and station in this interval.
    pub local_rtt_min: Option<Span>,
    /// Smallest RTT between access point and remote end in this interval.
    pub remote_rtt_min: Option<Span>,
    /// Mean RTT between access point and station in this interval.
    pub local_rtt_mean: Option<Span>,
    /// Mean RTT between access point and remote end in this interval.
    pub remote_rtt_mean: Option<Span>,
    /// For how long what is being measured has not come back: the round trip is longer. Indexed by the direction of its data.
    pub unanswered: [Option<Span>; 2],
    /// When segments came from a side, and the timestamps (RFC 7323) that they carried; indexed by the direction of what comes.
    pub stamped: [Option<Stamps>; 2],
    /// When left what was answered last in this interval, and the timestamp of the answer; indexed by the direction of what was answered.
    pub answered: [Option<(Time, u32)>; 2],
    /// Highest byte known to have arrived, modulo 2^32; differences count.
    pub delivered: u32,
    /// How long something arrived while more of the flow waited or was in flight, cumulative.
    pub served: Span,
    /// Longest pause between payload and payload in this interval.
    pub gap: Span,
    /// When payload passed last.
    pub payload_at: Time,
    /// The sender filled the window that was advertised to it.
    pub window_limited: bool,
    /// The window in force, bytes: below the plan's while it still grows, and where its receiver offers less.
    pub window_bytes: u32,
    /// Its receiver offers less than it was planned: no window of ours holds it.
    pub receiver_limited: bool,
    /// What is in flight, bytes.
    pub in_flight: u32,
    /// What of it was not advertised yet, bytes: its pace holds it back.
    pub unadvertised_bytes: u32,
    /// Largest payload of a segment, bytes; 0 unknown.
    pub mss: u32,
    /// IPv4 and TCP headers of its segments, bytes; of IPv6 it takes 20 less than they are.
    pub header_bytes: u32,
    /// Scale of its windows; `None`: not known, so that none can be rewritten.
    pub scale: Option<u8>,
    /// A FIN or RST has passed.
    pub closing: bool,
}

/// The host's name for a station: one at the end of many flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationId(pub u32);

/// The host's name for a hop between the access point and stations: one medium. Interfaces that share it (those of one radio, a VLAN
/// and what it lies on) are one hop. 0: not known, or one of those that are too many to be told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HopId(pub u32);

/// What a hop is, and what it carried so far; counts begin anywhere, so that differences count. Indexed by [`Direction::index`].
#[derive(Clone, Copy, Debug)]
pub struct HopSample {
    /// Which one.
    pub hop: HopId,
    /// Whether both directions share it.
    pub duplex: Duplex,
    /// What waits in front of it for the stations now, in the access point's own queues, bytes, where they can be asked.
    pub backlog: Option<u64>,
    /// IP bytes of UDP.
    pub udp_bytes: [u64; 2],
    /// Packets of UDP.
    pub udp_packets: [u64; 2],
    /// At what pace trains of its connections move, by direction of the data.
    pub packet_trains: [Hop; 2],
    /// Most that a shaper lets out to the stations, bits of frames per second, where one was found.
    pub shaped: Option<BitRate>,
    /// The access point's own queue before it serves flows in turn, what is sparse has a class of its own, and no more than this waits
    /// below: nobody waits for what another one keeps there. None: it is not so, or nobody knows.
    pub fair_queue: Option<Span>,
}

/// What the link carried, cumulative, IP bytes, indexed by [`Direction::index`].
#[derive(Clone, Debug, Default)]
pub struct LinkSample {
    /// UDP.
    pub udp_bytes: [u64; 2],
    /// What each hop carried, and what waits there.
    pub each_hop: Vec<HopSample>,
    /// Most that shapers of the access point let pass to and from the provider, bits of frames per second, where they were found.
    pub wan_shaped: [Option<BitRate>; 2],
}

/// What the driver says of a station (nl80211), where there is one.
#[derive(Clone, Copy, Debug)]
pub struct StationSample {
    /// Which one.
    pub station: StationId,
    /// Rate that frames to it are sent at.
    pub rate: BitRate,
    /// Attempts per frame, at least 1.
    pub attempts: f64,
}

/// All samples of the RTT, by [`Direction::index`] of the side.
#[must_use]
pub const fn rtt_totals(state: &FlowState) -> [RttTotal; 2] {
    [state.half[0].rtt.total, state.half[1].rtt.total]
}

impl FlowSample {
    /// The same of an interval that ended at `now`, as long as `silent`, in which nothing of the flow passed.
    #[must_use]
    pub fn silent(&self, now: Time, silent: Span) -> Self {
        Self {
            local_rtt_min: None,
            remote_rtt_min: None,
            local_rtt_mean: None,
            remote_rtt_mean: None,
            unanswered: self.unanswered.map(|so_far| so_far.map(|so_far| so_far + silent)),
            answered: [None; 2],
            gap: now.since(self.payload_at),
            window_limited: false,
            ..*self
        }
    }

    /// One sample per direction of a flow that has carried payload, of which the host says who it is; `before`: [`rtt_totals`] an
    /// interval ago.
    pub fn of(
        now: Time,
        (flow, station, hop): (FlowId, StationId, HopId),
        epoch: u32,
        state: &FlowState,
        before: [RttTotal; 2],
    ) -> impl Iterator<Item = Self> {
        let local_rtt_min = state.half[Direction::ToStation.index()].rtt_min(epoch);
        let remote_rtt_min = state.half[Direction::ToRemote.index()].rtt_min(epoch);
        let totals = rtt_totals(state);
        let [local_rtt_mean, remote_rtt_mean] = [0, 1].map(|side| totals[side].mean_since(before[side]));
        let answered = [0, 1].map(|side| {
            let answered = state.half[side].rtt.answered;
            let newest = totals[side].samples_since(before[side]) > 0 && !answered.is_none();
            newest.then(|| (answered.at(now), answered.value()))
        });
        Direction::BOTH.into_iter().filter_map(move |direction| {
            let half = &state.half[direction.index()];
            // The receiver's own offer as it last was; a window of 0 is a pause.
            let offered = half.known_scale().map_or(0, |scale| u32::from(half.last_window) << scale);
            let receiver_limited = offered != 0 && offered < half.window;
            let window_bytes = if receiver_limited { offered } else { half.window };
            let advertised = seq::later(half.edge, half.delivered).wrapping_sub(half.delivered);
            (half.payload_bytes > 0).then(|| Self {
                flow,
                direction,
                station,
                hop,
                bytes: half.bytes,
                payload_bytes: half.payload_bytes,
                local_rtt_min,
                remote_rtt_min,
                local_rtt_mean,
                remote_rtt_mean,
                unanswered: [unanswered(&state.half[0], now), unanswered(&state.half[1], now)],
                stamped: [stamped(&state.half[0], now), stamped(&state.half[1], now)],
                answered,
                delivered: half.delivered,
                served: Span::from_nanos(half.served_ns),
                gap: half.longest_gap(epoch, now),
                payload_at: Time::from_nanos(half.data_ns),
                window_limited: half.window_limited(epoch),
                window_bytes,
                receiver_limited,
                in_flight: seq::later(half.snd_nxt, half.delivered).wrapping_sub(half.delivered),
                unadvertised_bytes: window_bytes.saturating_sub(advertised),
                mss: half.mss,
                header_bytes: if half.rtt.ts_newest.value() == 0 { 40 } else { 52 },
                scale: half.known_scale(),
                closing: state.closing(direction),
            })
        })
    }
}

/// When two segments came, and their timestamps: an acknowledgment or SYN, and what came last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// The older of the two.
    pub older: (Time, u32),
    /// The newer.
    pub newer: (Time, u32),
    /// The one that came soonest after it was stamped.
    pub soonest: (Time, u32),
}

fn unanswered(half: &Half, now: Time) -> Option<Span> {
    let rtt = &half.rtt;
    let outstanding = !rtt.seq_sent.is_none() && rtt.seq_sent.value() != rtt.seq_done;
    outstanding.then(|| rtt.seq_sent.seen_age(now))
}

fn stamped(half: &Half, now: Time) -> Option<Stamps> {
    let rtt = &half.rtt;
    let of = |stamp: Stamp| (stamp.at(now), stamp.value());
    let newer = (rtt.ts_newest.value() != 0).then(|| of(rtt.ts_newest))?;
    let older = if rtt.ts_sent.is_none() { newer } else { of(rtt.ts_sent) };
    let soonest = if rtt.ts_soonest.is_none() { newer } else { of(rtt.ts_soonest) };
    Some(Stamps { older, newer, soonest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fastpath::layout::Control;

    /// Packets pass while records are read: the clock was read before.
    #[test]
    fn what_left_after_the_clock_was_read_has_waited_for_nothing_yet() {
        let now = Time::ZERO + Span::from_secs(100);
        let later = now + Span::from_micros(300);
        let mut half = Half::default();
        half.rtt.seq_sent = Stamp::new(7, later);
        half.rtt.ts_newest = Stamp::new(9, later);
        assert_eq!(unanswered(&half, now), Some(Span::ZERO));
        let at = stamped(&half, now).map(|stamps| stamps.newer.0);
        assert!(at.is_some_and(|at| at.since(now) > Span::from_micros(298) && at <= later), "{at:?}");
        half.rtt.seq_sent = Stamp::new(7, now - Span::from_secs(2));
        let waited = unanswered(&half, now).expect("it is not answered");
        assert!(waited >= Span::from_secs(2) && waited - Span::from_secs(2) < Span::from_micros(2), "{waited:?}");
    }

    /// Whatever was measured in an interval, the next one is told by it and by the clock if nothing passes meanwhile.
    #[test]
    fn what_a_silent_flow_shows_follows_from_what_it_showed_before() {
        let (at, ms) = (|ms: u64| Time::from_nanos(100_000_000_000 + ms * 1_000_000), Span::from_millis);
        let mut state = FlowState::new(&Control::default(), at(0));
        for half in &mut state.half {
            (half.payload_bytes, half.bytes, half.data_ns) = (7_000, 7_400, at(20).as_nanos());
            (half.epoch, half.data_flags, half.gap_ns) = (3, Half::LIMITED, 45_000_000);
            (half.rtt.epoch, half.rtt.min_ns) = (3, 12_000_000);
            half.rtt.total = half.rtt.total.add(12_000);
            (half.rtt.seq_sent, half.rtt.answered) = (Stamp::new(9_000, at(20)), Stamp::new(5, at(10)));
            half.rtt.ts_newest = Stamp::new(9, at(18));
        }
        let who = (FlowId(1), StationId(0), HopId(0));
        let seen = |now, epoch, before| FlowSample::of(now, who, epoch, &state, before).collect::<Vec<_>>();
        let moved = seen(at(50), 3, Default::default());
        assert!(
            moved.iter().all(|sample| sample.window_limited && sample.gap == ms(45) && sample.answered[0].is_some())
        );
        let mut silent = moved;
        for step in 1..40u32 {
            let now = at(50 + 50 * u64::from(step));
            silent = silent.iter().map(|sample| sample.silent(now, ms(50))).collect();
            let rounding = Span::from_nanos(1 << (Stamp::SHIFT + 1));
            for (silent, seen) in silent.iter().zip(seen(now, 3 + step, rtt_totals(&state))) {
                let so_far = |sample: &FlowSample| sample.unanswered.map(|so_far| so_far.expect("it is not answered"));
                for (silent, seen) in so_far(silent).into_iter().zip(so_far(&seen)) {
                    assert!(silent.saturating_sub(seen).max(seen.saturating_sub(silent)) <= rounding, "{silent:?}");
                }
                assert_eq!(FlowSample { unanswered: seen.unanswered, ..*silent }, seen, "after {step} intervals");
            }
        }
    }

    /// A window of 50,000 by the plan; the receiver offers 100 x 2^7.
    #[test]
    fn the_window_in_force_is_not_larger_than_what_the_receiver_offers() {
        let mut state = FlowState::new(&Control::default(), Time::ZERO);
        let half = &mut state.half[Direction::ToStation.index()];
        (half.payload_bytes, half.window, half.last_window) = (1, 50_000, 100);
        let window = |state: &FlowState| {
            let sample =
                FlowSample::of(Time::ZERO, (FlowId(1), StationId(0), HopId(0)), 1, state, Default::default()).next();
            sample.map(|sample| sample.window_bytes)
        };
        assert_eq!(window(&state), Some(50_000), "its scale is not known");
        let half = &mut state.half[Direction::ToStation.index()];
        (half.flags, half.scale) = (Half::SCALE_KNOWN, 7);
        assert_eq!(window(&state), Some(12_800));
        state.half[Direction::ToStation.index()].last_window = 0;
        assert_eq!(window(&state), Some(50_000), "a closed window is a pause");
    }
}

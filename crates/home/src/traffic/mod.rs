//! When each flow sends packets of which size (book/src/traffic-and-metrics.md). Sizes and rates count IP bytes.
//!
//! | kind | packets |
//! |---|---|
//! | `game-server`, `game-client`, `audio`, `voip` | `size` every `every` |
//! | `cbr` | `size` every `8 size / rate` |
//! | `poisson` | `size` at exponential gaps of mean `8 size / rate` |
//! | `video`, `video-chat` | frames of a trace, or of the generator in [`video`], cut into packets |
//! | `ftp`, `web`, `quic`, `request-response` | elastic: what the path gives, no schedule |
//!
//! Ours: the copies of a periodic flow are spread evenly over one period, copy i of n starting i/n of it later, so that
//! no two stay in phase for a whole run. A frame is handed to the network at once, as an encoder does.

pub mod feed;
mod frames;
pub mod page;
pub mod video;

use std::collections::VecDeque;

use lasthop_core::units::{BitRate, Span};
use lasthop_medium::random::Stream;

use crate::scenario::{Flow, Kind, Periodic, Rated};
use frames::Video;

/// One packet of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emission {
    /// Since the start of the run.
    pub at: Span,
    /// IP bytes.
    pub bytes: u32,
}

/// The packets of one flow, in order of time, from its start to before its stop.
#[derive(Debug)]
pub struct Source {
    stop: Span,
    pattern: Pattern,
    /// Packets of a frame that are still to be handed out.
    ready: VecDeque<Emission>,
}

#[derive(Debug)]
enum Pattern {
    /// Elastic kinds have no schedule.
    None,
    Steady {
        first: Span,
        gap_ns: f64,
        bytes: u32,
        count: u64,
    },
    Poisson {
        at_ns: f64,
        mean_gap_ns: f64,
        bytes: u32,
        random: Stream,
    },
    Frames(Box<Video>),
}

impl Source {
    /// The schedule of `flow` in a run with this seed; empty for elastic kinds.
    #[must_use]
    pub fn new(flow: &Flow, seed: u64) -> Self {
        let random = || Stream::named(seed, &format!("traffic {}", flow.name));
        let pattern = match &flow.kind {
            Kind::GameServer(p) | Kind::GameClient(p) | Kind::Audio(p) | Kind::Voip(p) => periodic(flow, *p),
            Kind::Cbr(rated) => steady(flow, gap_ns(*rated), rated.size.0 as u32),
            Kind::Poisson(rated) => Pattern::Poisson {
                at_ns: flow.start.as_nanos() as f64,
                mean_gap_ns: gap_ns(*rated),
                bytes: rated.size.0 as u32,
                random: random(),
            },
            Kind::Video(video) => Pattern::Frames(Box::new(Video::stream(video, flow.start, random()))),
            Kind::VideoChat(video) => Pattern::Frames(Box::new(Video::chat(video, flow.start, random()))),
            Kind::Ftp(_) | Kind::Web(_) | Kind::Quic(_) | Kind::RequestResponse(_) => Pattern::None,
        };
        Self { stop: flow.stop, pattern, ready: VecDeque::new() }
    }

    fn advance(&mut self) -> Option<Emission> {
        match &mut self.pattern {
            Pattern::None => None,
            Pattern::Steady { first, gap_ns, bytes, count } => {
                let since = Span::from_nanos((*count as f64 * *gap_ns).round() as u64);
                *count += 1;
                Some(Emission { at: *first + since, bytes: *bytes })
            }
            Pattern::Poisson { at_ns, mean_gap_ns, bytes, random } => {
                *at_ns += random.exponential(*mean_gap_ns);
                Some(Emission { at: Span::from_nanos(at_ns.round() as u64), bytes: *bytes })
            }
            Pattern::Frames(video) => {
                if self.ready.is_empty() {
                    video.next_frame(&mut self.ready);
                }
                self.ready.pop_front()
            }
        }
    }
}

impl Iterator for Source {
    type Item = Emission;

    fn next(&mut self) -> Option<Emission> {
        self.advance().filter(|emission| emission.at < self.stop)
    }
}

fn periodic(flow: &Flow, periodic: Periodic) -> Pattern {
    steady(flow, periodic.every.as_nanos() as f64, periodic.size.0 as u32)
}

fn steady(flow: &Flow, gap_ns: f64, bytes: u32) -> Pattern {
    let (copy, of) = flow.copy;
    let phase = Span::from_nanos((gap_ns * f64::from(copy) / f64::from(of)).round() as u64);
    Pattern::Steady { first: flow.start + phase, gap_ns, bytes, count: 0 }
}

fn gap_ns(rated: Rated) -> f64 {
    rated.size.0 as f64 * 8e9 / rated.rate.as_bps() as f64
}

/// Mean rate of a flow's schedule, IP bit/s, where it has one that is known beforehand.
#[must_use]
pub fn mean_rate(kind: &Kind) -> Option<BitRate> {
    let periodic = |p: &Periodic| BitRate::from_bps_f64(p.size.0 as f64 * 8.0 / p.every.as_secs_f64());
    match kind {
        Kind::GameServer(p) | Kind::GameClient(p) | Kind::Audio(p) | Kind::Voip(p) => Some(periodic(p)),
        Kind::Cbr(rated) | Kind::Poisson(rated) => Some(rated.rate),
        Kind::Video(v) | Kind::VideoChat(v) => Some(frames::mean_rate(v)),
        Kind::Ftp(_) | Kind::Web(_) | Kind::Quic(_) | Kind::RequestResponse(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::HostId;
    use lasthop_core::dscp::Dscp;
    use lasthop_core::packet::AccessCategory;
    use lasthop_core::units::Bytes;

    fn flow(kind: Kind) -> Flow {
        Flow {
            name: "f".to_owned(),
            table: "f".to_owned(),
            copy: (0, 1),
            from: HostId::AccessPoint,
            to: HostId::Station(0),
            kind,
            carrier: None,
            class: AccessCategory::Be,
            dscp: Dscp::default(),
            start: Span::from_secs(45),
            starts: (Span::from_secs(45), Span::ZERO),
            stop: Span::from_secs(180),
        }
    }

    #[test]
    fn a_game_server_sends_200_bytes_every_50_ms_from_its_start() {
        let source =
            Source::new(&flow(Kind::GameServer(Periodic { size: Bytes(200), every: Span::from_millis(50) })), 1);
        let packets: Vec<Emission> = source.collect();
        assert_eq!(packets[0], Emission { at: Span::from_secs(45), bytes: 200 });
        assert_eq!(packets[1].at, Span::from_millis(45_050));
        assert_eq!(packets.len(), 135 * 20);
    }

    #[test]
    fn copies_of_a_periodic_flow_never_send_together() {
        let mut second = flow(Kind::GameServer(Periodic { size: Bytes(200), every: Span::from_millis(50) }));
        second.copy = (1, 2);
        assert_eq!(Source::new(&second, 1).next().map(|e| e.at), Some(Span::from_millis(45_025)));
    }

    #[test]
    fn a_constant_rate_is_exact_also_where_the_gap_is_no_whole_nanosecond() {
        let rated = Rated { rate: BitRate::mbps(7), size: Bytes(1500) };
        let bytes: u64 = Source::new(&flow(Kind::Cbr(rated)), 1).map(|e| u64::from(e.bytes)).sum();
        let right = 7e6 / 8.0 * 135.0;
        assert!((bytes as f64 - right).abs() <= 1500.0, "{bytes} for {right}");
    }

    #[test]
    fn a_poisson_source_keeps_its_mean_and_its_gaps_spread_like_their_mean() {
        let rated = Rated { rate: BitRate::mbps(5), size: Bytes(1000) };
        let times: Vec<f64> = Source::new(&flow(Kind::Poisson(rated)), 3).map(|e| e.at.as_secs_f64()).collect();
        let gaps: Vec<f64> = times.windows(2).map(|w| w[1] - w[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = (gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((mean / 1.6e-3 - 1.0).abs() < 0.01, "{mean}");
        assert!((deviation / mean - 1.0).abs() < 0.02, "{deviation} for {mean}");
    }

    #[test]
    fn one_seed_gives_one_schedule() {
        let rated = Kind::Poisson(Rated { rate: BitRate::mbps(5), size: Bytes(1000) });
        let schedule = |seed| Source::new(&flow(rated.clone()), seed).take(100).collect::<Vec<_>>();
        assert_eq!(schedule(1), schedule(1));
        assert_ne!(schedule(1), schedule(2));
    }
}

//! Rate control and errors by signal-to-noise ratio: a saturated upload against ns-3.37 (`tests/vectors/air-ns3.csv`, which says
//! how it was made), and what they promise each by itself.

use std::collections::BTreeMap;

use crate::common::{AP, Numbered, us};
use lasthop_core::units::{Span, Time};
use lasthop_medium::channel::{ChannelParams, Fading};
use lasthop_medium::rate_control::{RateLaw, RatePlan, Scheme, Stage};
use lasthop_medium::{
    Ampdu, Band, Event, Guard, Medium, MediumParams, Mode, NodeId, Rate, Standard, StationParams, Timing, Width,
};

/// One row: goodput in Mbit/s, the mode that most MPDUs had, and their share.
struct Peer {
    goodput: f64,
    mode: String,
    share: f64,
}

fn peer(cell: &str) -> Peer {
    let text = include_str!("../../../../tests/vectors/air-ns3.csv");
    let mut rows = text.lines().filter(|line| !line.starts_with('#'));
    let names: Vec<&str> = rows.next().unwrap().split(',').collect();
    let row = rows.map(|line| line.split(',').collect::<Vec<_>>()).find(|row| row[0] == cell);
    let row = row.unwrap_or_else(|| panic!("no cell {cell}"));
    let field = |name: &str| row[names.iter().position(|n| *n == name).unwrap()];
    Peer {
        goodput: field("goodput_mbps").parse().unwrap(),
        mode: field("mode").to_owned(),
        share: field("mode_share").parse().unwrap(),
    }
}

/// ns-3's cell: 5 GHz, answers at 24 Mbit/s, no limit of attempts.
fn cell(standard: Standard) -> MediumParams {
    MediumParams {
        standard,
        band: Band::Ghz5,
        timing: Timing::Ns3,
        attempts: u32::MAX,
        power_w: 0.1,
        edca: lasthop_medium::STATION_EDCA,
        channel: Some(ChannelParams::default()),
        ..MediumParams::default()
    }
}

fn station(mode: Mode, snr_db: f64, rate_law: RateLaw) -> StationParams {
    StationParams {
        standard: mode.standard,
        rate: Rate::of_mode(mode).unwrap(),
        ampdu: Ampdu::of(mode.standard),
        snr_db: Some(snr_db),
        power_w: 0.1,
        rate_law,
        queue_limit: 400,
        ..StationParams::default()
    }
}

fn ht20(mcs: u8) -> Mode {
    Mode { standard: Standard::N, width: Width::Mhz20, streams: 1, mcs, guard: Guard::Ns800 }
}

/// A saturated upload of 1,500 bytes: UDP payload in Mbit/s over the given seconds, at each seed.
struct Upload {
    medium: Medium<Numbered>,
    delivered: u64,
}

impl Upload {
    fn new(params: MediumParams, station: StationParams, seed: u64) -> Self {
        let mut medium = Medium::new(params, vec![station], seed);
        for number in 0..300 {
            medium.on_packet(Time::ZERO, NodeId(1), AP, Numbered { number, bytes: 1500 });
        }
        Self { medium, delivered: 0 }
    }

    /// Mbit/s of UDP payload until then.
    fn run(&mut self, from: Time, until: Time) -> f64 {
        let before = self.delivered;
        while let Some(event) = self.medium.poll(until) {
            self.delivered += u64::from(matches!(event, Event::Delivered { .. }));
            self.medium.on_packet(event.at(), NodeId(1), AP, Numbered { number: 0, bytes: 1500 });
        }
        (self.delivered - before) as f64 * 1472.0 * 8.0 / until.since(from).as_secs_f64() / 1e6
    }

    /// The mode of most MPDUs, and their share.
    fn mode(&self) -> (Mode, f64) {
        let rates = self.medium.snapshot(Time::ZERO).rates;
        assert!(rates.iter().all(|r| r.from == NodeId(1) && r.to == AP && r.acked <= r.mpdus), "{rates:?}");
        let all: u64 = rates.iter().map(|rate| rate.mpdus).sum();
        let top = rates.into_iter().max_by_key(|rate| rate.mpdus).unwrap();
        (top.rate.mode().unwrap(), top.mpdus as f64 / all as f64)
    }
}

fn secs(n: u64) -> Time {
    us(n * 1_000_000)
}

/// Goodput, and the MCS of most MPDUs with their share, over ten seconds and seeds 1 to 3.
fn play(station: StationParams) -> (f64, u8, f64) {
    let mut goodput = 0.0;
    let mut shares = BTreeMap::new();
    for seed in 1..=3 {
        let mut upload = Upload::new(cell(station.standard), station, seed);
        upload.run(Time::ZERO, secs(1));
        goodput += upload.run(secs(1), secs(11)) / 3.0;
        let (mode, share) = upload.mode();
        *shares.entry(mode.mcs).or_insert(0.0) += share / 3.0;
    }
    let (mcs, share) = shares.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    (goodput, mcs, share)
}

#[test]
fn minstrel_ht_carries_what_ns_3_carries_with_the_same_rate() {
    let law = RateLaw::MinstrelHt(Scheme::Share);
    for snr in [3, 5, 7, 9, 11, 13, 16, 18, 19, 20, 22, 30] {
        let peer = peer(&format!("n-minstrel-{snr}"));
        let (goodput, mcs, share) = play(station(ht20(7), f64::from(snr), law));
        println!(
            "{snr} dB: {goodput:.2} of {:.2}, MCS {mcs} {share:.3} of {} {:.3}",
            peer.goodput, peer.mode, peer.share
        );
        assert!((goodput / peer.goodput - 1.0).abs() < 0.05, "{snr} dB: {goodput} for {}", peer.goodput);
        assert_eq!(format!("HtMcs{mcs}x1"), peer.mode, "{snr} dB");
        assert!((share - peer.share).abs() < 0.1, "{snr} dB: {share} for {}", peer.share);
    }
}

#[test]
fn the_newer_minstrel_ht_finds_the_same_rate_and_loses_a_tenth_at_most() {
    let law = RateLaw::MinstrelHt(Scheme::Kinds);
    for snr in [3, 5, 7, 9, 11, 13, 16, 18, 19, 20, 22, 30] {
        let peer = peer(&format!("n-minstrel-{snr}"));
        let (goodput, mcs, _) = play(station(ht20(7), f64::from(snr), law));
        println!("{snr} dB: {goodput:.2} of {:.2}, MCS {mcs}", peer.goodput);
        assert!((0.9..1.05).contains(&(goodput / peer.goodput)), "{snr} dB: {goodput} for {}", peer.goodput);
        // At 18 dB MCS 5 and 6 are worth the same to within 3 %, which single MPDUs do not tell.
        let right = format!("HtMcs{mcs}x1") == peer.mode || (snr == 18 && mcs == 6);
        assert!(right, "{snr} dB: MCS {mcs} for {}", peer.mode);
    }
}

#[test]
fn a_fixed_rate_loses_what_its_curve_says() {
    for (mcs, snr) in [(0, "1"), (4, "12.5"), (4, "13.25"), (7, "20")] {
        let peer = peer(&format!("n-mcs-{mcs}-snr-{snr}"));
        let mut upload = Upload::new(cell(Standard::N), station(ht20(mcs), snr.parse().unwrap(), RateLaw::Fixed), 1);
        let goodput = upload.run(Time::ZERO, secs(10));
        println!("MCS {mcs} at {snr} dB: {goodput:.3} of {:.3}", peer.goodput);
        assert!((goodput / peer.goodput - 1.0).abs() < 0.01, "{mcs} {snr}: {goodput} for {}", peer.goodput);
    }
}

#[test]
fn the_ideal_rate_is_at_least_as_good_as_any_that_learns() {
    let ideal = RateLaw::Ideal { per: 0.1 };
    for snr in [5.0, 7.0, 11.0, 13.0, 20.0] {
        let goodput = |law| Upload::new(cell(Standard::N), station(ht20(7), snr, law), 1).run(Time::ZERO, secs(5));
        let (known, learnt) = (goodput(ideal), goodput(RateLaw::MinstrelHt(Scheme::Share)));
        assert!(known > 0.99 * learnt, "{snr} dB: {known} {learnt}");
    }
}

#[test]
fn rates_follow_a_station_that_walks_behind_a_wall_and_back() {
    let far = StationParams { snr_db: None, distance_m: 12.0, ..station(ht20(7), 0.0, RateLaw::Ideal { per: 0.1 }) };
    let newer = RateLaw::MinstrelHt(Scheme::Kinds);
    for law in [far.rate_law, newer] {
        let mut upload = Upload::new(cell(Standard::N), StationParams { rate_law: law, ..far }, 1);
        let near = upload.run(Time::ZERO, secs(2));
        upload.medium.set_place(NodeId(1), 4, None);
        upload.run(secs(2), secs(3));
        let behind = upload.run(secs(3), secs(5));
        upload.medium.set_place(NodeId(1), 0, None);
        upload.run(secs(5), secs(6));
        let back = upload.run(secs(6), secs(8));
        // 34.8 dB, and 14.8 with four walls of 5 dB: MCS 7 and MCS 4.
        assert!(near > 58.0 && back > 58.0, "{law:?}: {near} {behind} {back}");
        assert!((30.0..37.0).contains(&behind), "{law:?}: {near} {behind} {back}");
    }
}

#[test]
fn half_the_width_is_taken_where_the_whole_one_is_too_noisy() {
    // 3 dB over 80 MHz, where the slowest loses nothing but the second all; 9 dB over 20 MHz carries more.
    let mode = Mode { standard: Standard::Ac, width: Width::Mhz80, streams: 1, mcs: 9, guard: Guard::Ns800 };
    let mut upload = Upload::new(cell(Standard::Ac), station(mode, -2.0, RateLaw::MinstrelHt(Scheme::Kinds)), 1);
    upload.run(Time::ZERO, secs(3));
    assert_ne!(upload.mode().0.width, Width::Mhz80, "{:?}", upload.mode());
}

/// Even numbers: MCS 7 twice, then MCS 0 once behind RTS. Odd ones: MCS 3 once.
fn given_plan(packet: &Numbered) -> RatePlan {
    let stage = |mcs, tries, rts| Stage { rate: Rate::of_mode(ht20(mcs)).unwrap(), tries, rts };
    let stages: &[Stage] =
        if packet.number.is_multiple_of(2) { &[stage(7, 2, false), stage(0, 1, true)] } else { &[stage(3, 1, false)] };
    RatePlan::of_stages(stages).unwrap()
}

/// MCS and RTS of each attempt at two packets, and which of them arrived.
fn play_given(snr_db: f64) -> (Vec<(u32, u8, bool)>, Vec<u32>) {
    let station = StationParams { ampdu: None, ..station(ht20(7), snr_db, RateLaw::Fixed) };
    let mut medium = Medium::new(cell(Standard::N), vec![station], 1);
    medium.set_plans(given_plan);
    medium.record_attempts(true);
    for number in [2, 3] {
        medium.on_packet(Time::ZERO, AP, NodeId(1), Numbered { number, bytes: 1500 });
    }
    let (mut attempts, mut arrived) = (Vec::new(), Vec::new());
    while let Some(event) = medium.poll(secs(1)) {
        if let Event::Delivered { packet, .. } = event {
            arrived.push(packet.number);
        }
        while let Some(attempt) = medium.poll_attempt() {
            let mode = attempt.data.unwrap().rate.mode().unwrap();
            attempts.push((attempt.packet.number, mode.mcs, attempt.rts.is_some()));
        }
    }
    (attempts, arrived)
}

#[test]
fn packets_that_bring_their_plans_go_through_them_and_are_given_up_behind() {
    // MCS 7 loses all at 12 dB, MCS 3 and MCS 0 nothing.
    let first_stage = [(2, 7, false), (2, 7, false)];
    let (attempts, arrived) = play_given(12.0);
    assert_eq!((&attempts[..2], &attempts[2..]), (&first_stage[..], &[(2, 0, true), (3, 3, false)][..]));
    assert_eq!(arrived, [2, 3]);
    let (attempts, arrived) = play_given(-10.0);
    assert_eq!((&attempts[..2], &attempts[2..]), (&first_stage[..], &[(2, 0, true), (3, 3, false)][..]));
    assert!(arrived.is_empty());
    assert_eq!(play_given(40.0), (vec![(2, 7, false), (3, 3, false)], vec![2, 3]));
}

#[test]
fn a_run_with_fading_repeats_and_another_seed_differs() {
    let fading = Some(Fading { deviation_db: 5.0, correlation: Span::from_millis(300) });
    let params =
        MediumParams { channel: Some(ChannelParams { fading, ..ChannelParams::default() }), ..cell(Standard::N) };
    let goodput = |seed| {
        let station = station(ht20(7), 14.0, RateLaw::MinstrelHt(Scheme::Share));
        Upload::new(params.clone(), station, seed).run(Time::ZERO, secs(4))
    };
    assert_eq!(goodput(1), goodput(1));
    assert_ne!(goodput(1), goodput(2));
    // A level that moves costs something against one that stays.
    let still = Upload::new(cell(Standard::N), station(ht20(7), 14.0, RateLaw::Ideal { per: 0.1 }), 1);
    let still = { still }.run(Time::ZERO, secs(4));
    assert!(goodput(1) < still * 1.3 && goodput(1) > still * 0.5, "{} {still}", goodput(1));
}

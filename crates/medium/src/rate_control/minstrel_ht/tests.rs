use super::*;
use crate::channel::per::{per_at, scaled};
use crate::mode::{Guard, Width};
use crate::phy::Standard;
use crate::rate_control::ideal::FULL_MPDU;

const HT20: Capability = Capability { standard: Standard::N, width: Width::Mhz20, streams: 1, guard: Guard::Ns800 };

const SCHEMES: [Scheme; 2] = [Scheme::Share, Scheme::Kinds];

fn minstrel(scheme: Scheme, capability: Capability) -> MinstrelHt {
    MinstrelHt::new(scheme, capability, Stream::named(1, "minstrel"))
}

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

/// Frames of 20 MPDUs, one every 3 ms, at this SNR, from `from` to `to` ms. Returns samples and the other frames.
fn play(minstrel: &mut MinstrelHt, snr_db: f64, (from, to): (u64, u64), stream: &mut Stream) -> (u64, u64) {
    let (mut samples, mut others) = (0, 0);
    for ms in (from..to).step_by(3) {
        let plan = minstrel.plan(at(ms));
        *(if plan.is_sample { &mut samples } else { &mut others }) += 1;
        let mpdus = if plan.is_single { 1 } else { 20 };
        let mut tries = 0;
        let mut acked = 0;
        while let Some(stage) = plan.after(tries).filter(|_| acked == 0) {
            tries += 1;
            let per = scaled(per_at(stage.rate.modulation(), (snr_db * 4.0) as i16), FULL_MPDU);
            acked = (0..mpdus).filter(|_| !stream.chance(per)).count() as u16;
        }
        minstrel.on_result(at(ms + 2), &TxResult { plan: &plan, tries, mpdus, acked });
    }
    (samples, others)
}

fn settled(scheme: Scheme, capability: Capability, snr_db: f64) -> Rate {
    let mut minstrel = minstrel(scheme, capability);
    // By shares it takes that long when groups are many.
    let ms = if scheme == Scheme::Kinds { 3_000 } else { 40_000 };
    play(&mut minstrel, snr_db, (0, ms), &mut Stream::named(2, "air"));
    minstrel.rate()
}

#[test]
fn it_begins_with_the_slowest_rate() {
    let minstrel = minstrel(Scheme::Share, Capability { width: Width::Mhz40, streams: 2, ..HT20 });
    assert_eq!(minstrel.rate().bit_rate().as_bps(), 6_500_000);
}

#[test]
fn it_finds_the_rate_of_most_throughput() {
    // Losing 5 % at MCS 4 beats MCS 3; losing all at MCS 5 does not.
    for (snr, mcs) in [(3.0, 0), (7.0, 2), (16.0, 4), (22.0, 7)] {
        for scheme in SCHEMES {
            let found = settled(scheme, HT20, snr).mode().map(|mode| mode.mcs);
            assert_eq!(found, Some(mcs), "{scheme:?}, {snr} dB");
        }
    }
}

#[test]
fn wide_channels_and_streams_are_found_too() {
    for scheme in SCHEMES {
        let n = Capability { width: Width::Mhz40, streams: 2, guard: Guard::Ns400, ..HT20 };
        assert_eq!(settled(scheme, n, 30.0).bit_rate().as_bps(), 300_000_000);
        let ac = Capability { standard: Standard::Ac, width: Width::Mhz80, ..n };
        assert_eq!(settled(scheme, ac, 35.0).bit_rate().as_mbps_f64().round(), 867.0);
        let ax = Capability { standard: Standard::Ax, width: Width::Mhz80, guard: Guard::Ns800, ..n };
        assert_eq!(settled(scheme, ax, 40.0).bit_rate().as_mbps_f64().round(), 1201.0);
    }
}

#[test]
fn by_kinds_one_mpdu_goes_out_as_a_sample_every_20_ms() {
    let mut minstrel = minstrel(Scheme::Kinds, HT20);
    let mut air = Stream::named(2, "air");
    let (samples, _) = play(&mut minstrel, 12.0, (0, 10_000), &mut air);
    // At most one per 20 ms and one more after each update.
    assert!((100..=700).contains(&samples), "{samples}");
    let plan = (10_000..10_200).map(|ms| minstrel.plan(at(ms))).find(|plan| plan.is_sample).unwrap();
    assert!(plan.is_single && plan.stages().len() == 1);
    assert_eq!(plan.first().tries, 1);
    let chain = minstrel.chain;
    assert_eq!(chain.stages().len(), 4);
    assert!(!chain.first().rts);
    assert!(chain.stages()[1..].iter().all(|stage| stage.rts && stage.tries >= 2));
}

#[test]
fn by_share_one_frame_in_16_and_twice_its_mpdus_is_a_sample() {
    let mut minstrel = minstrel(Scheme::Share, HT20);
    let mut air = Stream::named(2, "air");
    play(&mut minstrel, 12.0, (0, 3_000), &mut air);
    let (samples, others) = play(&mut minstrel, 12.0, (3_000, 63_000), &mut air);
    // 56 frames, and those for which the rate whose turn it was is not worth it.
    let each = (samples + others) as f64 / samples as f64;
    assert!((56.0..=70.0).contains(&each), "{each}");
    assert_eq!(minstrel.chain.stages().len(), 3);
}

#[test]
fn at_the_top_nothing_is_left_to_try() {
    let mut minstrel = minstrel(Scheme::Kinds, HT20);
    let mut air = Stream::named(2, "air");
    play(&mut minstrel, 40.0, (0, 5_000), &mut air);
    let (samples, others) = play(&mut minstrel, 40.0, (5_000, 10_000), &mut air);
    assert!(samples * 20 < others, "{samples} of {others}");
}

#[test]
fn it_follows_the_channel_down_at_once_and_up_within_a_second() {
    let mut minstrel = minstrel(Scheme::Kinds, HT20);
    let mut air = Stream::named(2, "air");
    let mcs = |minstrel: &MinstrelHt| minstrel.rate().mode().unwrap().mcs;
    play(&mut minstrel, 25.0, (0, 3_000), &mut air);
    assert_eq!(mcs(&minstrel), 7);
    play(&mut minstrel, 8.0, (3_000, 3_400), &mut air);
    assert!(mcs(&minstrel) <= 3, "{}", mcs(&minstrel));
    play(&mut minstrel, 8.0, (3_400, 6_000), &mut air);
    assert_eq!(mcs(&minstrel), 2);
    play(&mut minstrel, 25.0, (6_000, 7_500), &mut air);
    assert_eq!(mcs(&minstrel), 7);
}

#[test]
fn the_most_robust_rate_has_fewer_streams() {
    let mut minstrel = minstrel(Scheme::Kinds, Capability { streams: 2, ..HT20 });
    play(&mut minstrel, 19.0, (0, 3_000), &mut Stream::named(2, "air"));
    let streams = |rate: Rate| rate.mode().unwrap().streams;
    let plan = minstrel.chain;
    assert_eq!(streams(plan.first().rate), 2);
    assert_eq!(streams(plan.stages()[3].rate), 1);
}

#[test]
fn tries_fit_into_a_segment_of_6_ms() {
    let mut minstrel = minstrel(Scheme::Kinds, HT20);
    // One packet of 1,200 bytes at MCS 7: 9600 / 65 = 148 us; contention 9 us x 15/2, 31/2, 63/2 ..
    minstrel.average = ONE;
    assert_eq!(minstrel.tries(Index::new(0, 7), false), 5);
    // 28 of them: 4.1 ms.
    minstrel.average = 28 * ONE;
    assert_eq!(minstrel.tries(Index::new(0, 7), false), 2);
}

#[test]
fn throughput_counts_the_overhead_once_per_frame() {
    let mut minstrel = minstrel(Scheme::Kinds, HT20);
    let top = Index::new(0, 7);
    let stats = &mut minstrel.stats[0][7];
    (stats.attempts, stats.successes) = (100, 100);
    stats.fold(&mut 0);
    // Not more than 0.9: 0.9 / (108 us + 147.75 us) and 0.9 / (10.8 us + 147.75 us), in 1/100 s.
    assert_eq!(minstrel.throughput(top), (100.0_f64 * 0.9 * 1e6 / 255_750.0) as u64);
    minstrel.average = 10 * ONE;
    assert_eq!(minstrel.throughput(top), (100.0_f64 * 0.9 * 1e6 / 158_550.0) as u64);
}

#[test]
fn radios_of_b_and_g_have_their_rates_in_two_groups() {
    let capability = Capability { standard: Standard::G, ..HT20 };
    let minstrel = minstrel(Scheme::Share, capability);
    assert_eq!(minstrel.counts().count(), 12);
    assert_eq!(minstrel.rate(), Rate::DSSS_1);
    assert_eq!(settled(Scheme::Share, capability, 30.0), Rate::OFDM_54);
}

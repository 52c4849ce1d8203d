//! Saturation throughput against closed forms and published figures: every station's queue always full, 1500 B IP
//! packets up, no channel errors, IP bytes counted.

use crate::common::{b_stations, g_stations, saturate_up, secs};
use lasthop_core::units::Span;
use lasthop_medium::phy::Phy;
use lasthop_medium::{AfterCollision, Medium, MediumParams, Rate, Standard, StationParams, Timing};

const BYTES: u32 = 1500;

/// Bianchi (2000), unlimited attempts, Tc = data + EIFS; Mbit/s.
fn bianchi(phy: &Phy, standard: Standard, rate: Rate, n: usize) -> f64 {
    let w = f64::from(phy.cw_min(standard)) + 1.0;
    let m = (f64::from(phy.cw_max() + 1) / w).log2();
    let tau = |p: f64| 2.0 * (1.0 - 2.0 * p) / ((1.0 - 2.0 * p) * (w + 1.0) + p * w * (1.0 - (2.0 * p).powf(m)));
    let others = n as i32 - 1;
    // The difference falls with tau: bisect.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let t: f64 = (low + high) / 2.0;
        let p = 1.0 - (1.0 - t).powi(others);
        if tau(p + 1e-13) > t { low = t } else { high = t }
    }
    let t: f64 = (low + high) / 2.0;
    let some = 1.0 - (1.0 - t).powi(n as i32);
    let one = n as f64 * t * (1.0 - t).powi(others);
    let data = phy.data(rate, BYTES);
    let success = (data + phy.sifs() + phy.answer(rate) + phy.difs()).as_secs_f64();
    let collision = (data + phy.eifs()).as_secs_f64();
    let slot = (1.0 - some) * phy.slot().as_secs_f64() + one * success + (some - one) * collision;
    one * f64::from(BYTES) * 8.0 / slot / 1e6
}

fn b_params() -> MediumParams {
    MediumParams { standard: Standard::B, control_rate: Some(Rate::DSSS_1), ..g_params() }
}

fn g_params() -> MediumParams {
    MediumParams { attempts: 1_000_000, after_collision: AfterCollision::Eifs, ..MediumParams::default() }
}

fn throughput(params: &MediumParams, stations: Vec<StationParams>, seconds: u64) -> f64 {
    throughput_of_seed(1, params, stations, seconds)
}

fn throughput_of_seed(seed: u64, params: &MediumParams, stations: Vec<StationParams>, seconds: u64) -> f64 {
    let n = stations.len() as u16;
    let mut medium = Medium::new(params.clone(), stations, seed);
    let delivered: u64 = saturate_up(&mut medium, n, BYTES, secs(seconds)).iter().sum();
    delivered as f64 * f64::from(BYTES) * 8.0 / seconds as f64 / 1e6
}

fn assert_within(found: f64, expected: f64, share: f64, what: &str) {
    println!("{what}: {found:.3} Mbit/s, expected {expected:.3}, {:+.2} %", 100.0 * (found / expected - 1.0));
    assert!((found / expected - 1.0).abs() <= share, "{what}: {found} for {expected}");
}

#[test]
fn bianchi_is_the_reference_sheets() {
    let b = b_params().phy(&b_stations(1));
    let g = g_params().phy(&g_stations(1));
    for (n, b_mbps, g_mbps) in
        [(1, 6.051, 30.496), (2, 6.353, 31.210), (5, 6.219, 29.336), (10, 5.857, 27.187), (20, 5.404, 24.951)]
    {
        assert!((bianchi(&b, Standard::B, Rate::DSSS_11, n) - b_mbps).abs() < 0.001, "{n}");
        assert!((bianchi(&g, Standard::G, Rate::OFDM_54, n) - g_mbps).abs() < 0.001, "{n}");
    }
}

#[test]
fn one_station_gets_what_its_cycle_gives() {
    assert_within(throughput(&b_params(), b_stations(1), 300), 6.051, 0.001, "b n=1");
    assert_within(throughput(&g_params(), g_stations(1), 300), 30.496, 0.001, "g n=1");
}

#[test]
fn two_stations_get_what_exact_dcf_gives() {
    assert_within(throughput(&b_params(), b_stations(2), 60), 6.315, 0.01, "b n=2");
    assert_within(throughput(&g_params(), g_stations(2), 60), 30.74, 0.01, "g n=2");
}

#[test]
fn many_stations_get_what_bianchi_says() {
    let b = b_params();
    let g = g_params();
    for n in [2, 5, 10, 20, 50] {
        let expected = bianchi(&b.phy(&b_stations(1)), Standard::B, Rate::DSSS_11, n);
        assert_within(throughput(&b, b_stations(n), 60), expected, 0.02, &format!("b n={n}"));
        let expected = bianchi(&g.phy(&g_stations(1)), Standard::G, Rate::OFDM_54, n);
        assert_within(throughput(&g, g_stations(n), 60), expected, 0.02, &format!("g n={n}"));
    }
}

#[test]
fn with_one_decrement_per_busy_period_cells_get_what_bianchi_says() {
    let counted = |params: MediumParams| MediumParams { check_bianchi_decrement: true, ..params };
    let (b, g) = (counted(b_params()), counted(g_params()));
    // g lies 0.6 % above him from 20 stations on: the mean of four seeds, so that the rest is not chance.
    let mean = |params: &MediumParams, stations: &[StationParams]| {
        let seeds = if params.standard == Standard::G { 4 } else { 1 };
        (1..=seeds).map(|seed| throughput_of_seed(seed, params, stations.to_vec(), 50)).sum::<f64>() / seeds as f64
    };
    for n in [1, 2, 5, 10, 20, 50] {
        let expected = bianchi(&b.phy(&b_stations(1)), Standard::B, Rate::DSSS_11, n);
        assert_within(mean(&b, &b_stations(n)), expected, 0.007, &format!("b n={n}, his decrement"));
        let expected = bianchi(&g.phy(&g_stations(1)), Standard::G, Rate::OFDM_54, n);
        assert_within(mean(&g, &g_stations(n)), expected, 0.007, &format!("g n={n}, his decrement"));
    }
}

#[test]
fn ns2_timing_keeps_overhearers_off_the_phase_of_the_last_pair() {
    // 33.8 Mbit/s at n = 2 with the NAV in whole microseconds, 31.4 without; ACK at 24 Mbit/s.
    let control_rate = Some(Rate::OFDM_24);
    let ns2 = MediumParams { timing: Timing::Ns2G, control_rate, attempts: 1_000_000, ..MediumParams::default() };
    assert_within(throughput(&ns2, g_stations(2), 60), 33.8, 0.01, "ns2-g n=2");
}

#[test]
fn the_standard_resumes_colliders_sooner_than_eifs() {
    let eifs = g_params();
    let standard = MediumParams { after_collision: AfterCollision::Standard, ..eifs.clone() };
    // Over four seeds: of one run of 30 s the gain spreads by half a per cent at most.
    let mean = |params| (1..=4).map(|seed| throughput_of_seed(seed, params, g_stations(50), 30)).sum::<f64>();
    let gain = mean(&standard) / mean(&eifs) - 1.0;
    println!("standard over eifs, g n=50: {:+.2} %", 100.0 * gain);
    // A prototype: +3.4 % with ACK timeout and DIFS.
    assert!((0.02..0.05).contains(&gain), "{gain}");
}

#[test]
fn stations_share_the_medium_alike() {
    let mut medium = Medium::new(g_params(), g_stations(5), 3);
    let delivered = saturate_up(&mut medium, 5, BYTES, secs(30));
    let mean = delivered.iter().sum::<u64>() as f64 / 5.0;
    assert!(delivered[1..].iter().all(|n| (*n as f64 / mean - 1.0).abs() < 0.03), "{delivered:?}");
}

#[test]
fn air_time_adds_up_to_the_busy_time_of_the_medium() {
    let mut medium = Medium::new(g_params(), g_stations(1), 3);
    let delivered = saturate_up(&mut medium, 1, BYTES, secs(10))[1];
    let stats = medium.snapshot(secs(10)).nodes[1];
    let per_frame = Span::from_micros(254 + 10 + 34);
    let frames = stats.airtime.as_nanos() / per_frame.as_nanos();
    assert!(frames.abs_diff(delivered) <= 1, "{frames} for {delivered}");
    assert_eq!((stats.retries, stats.given_up, stats.collisions), (0, 0, 0));
}

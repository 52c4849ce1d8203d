//! The SAP-LAW home (ACE 2006) under eq. (1): what the download loses when told more than the hop carries, and what the game
//! meets at C = 18 Mbit/s with either of the paper's deviations.

mod common;

use common::{flow, load, run};
use lasthop_home::report::{Metrics, Report};

const SEEDS: u32 = 5;

/// The home told `capacity` Mbit/s, on regular 802.11 (4 retransmissions).
fn told(capacity: u32, sets: &[&str]) -> Vec<Report> {
    let play = |seed: u32| {
        let own = [format!("seed={seed}"), format!("control.window.capacity={capacity}Mbit/s")];
        let mut set = vec!["wifi.timing=ns2-g", "wifi.attempts=5", &own[0], &own[1]];
        set.extend(sets);
        run(&load("papers/sap-law.toml", &set))
    };
    (1..=SEEDS).map(play).collect()
}

fn mean(reports: &[Report], name: &str, of: impl Fn(&Metrics) -> f64) -> f64 {
    reports.iter().map(|report| of(&flow(report, name).metrics)).sum::<f64>() / reports.len() as f64
}

fn acked(metrics: &Metrics) -> f64 {
    metrics.tcp.as_ref().expect("a download over TCP").acked_packets as f64
}

#[test]
fn told_more_than_the_hop_carries_the_download_loses_to_a_full_queue_and_moves_less() {
    let [fits, beyond] = [20, 26].map(|capacity| told(capacity, &[]));
    let lost = |reports: &[Report]| mean(reports, "ftp", |metrics| metrics.lost.ap_queue as f64);
    assert!(mean(&beyond, "ftp", acked) < 0.95 * mean(&fits, "ftp", acked));
    assert!(lost(&beyond) > 2.0 * lost(&fits), "{} {}", lost(&beyond), lost(&fits));
    assert!(
        mean(&beyond, "ftp", |metrics| metrics.lost.channel as f64) < 1.0,
        "a fifth attempt leaves no loss of the air"
    );

    // Twice the buffer holds all that the window lets through: nothing overflows, and nothing falls.
    let deep = ["wifi.queue.limit=100", "wifi.station_queue.limit=100"];
    let [fits, beyond] = [20, 26].map(|capacity| told(capacity, &deep));
    assert!(lost(&fits) == 0.0 && lost(&beyond) == 0.0);
    assert!(mean(&beyond, "ftp", acked) > mean(&fits, "ftp", acked));
}

#[test]
fn after_slow_start_the_game_jitters_within_10_ms_at_7_db_and_not_at_9() {
    let greatest = |deviation: &str| {
        let reports = told(18, &["measure_from=137s", &format!("wifi.loss.deviation={deviation}")]);
        mean(&reports, "game-down", |metrics| metrics.jitter.as_ref().expect("packets of the game").max)
    };
    let (scenario, lossier) = (greatest("7dB"), greatest("9dB"));
    assert!(scenario < 10.0, "{scenario}");
    assert!(lossier > 10.0, "{lossier}");
}

//! The same home in the simulator and the emulator, `tests/worlds`: virtual time and its own TCP, real time and the kernel's. Goodput of the
//! elastic flow within 5 %, p95 of the game's delay within 1 ms, as far as the medians are known. The emulator needs root and says
//! SKIPPED without it.

mod programs;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

const WORLDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/worlds/");

/// How often a home is played with real kernels before what they say counts as different.
const RUNS: u64 = 5;

/// So many valid runs enclose their median 7 of 8 times.
const ENOUGH: usize = 4;

/// Runs a home in one world.
fn report(command: &str, world: &str, seed: u64) -> Value {
    let file = format!("{WORLDS}{world}.toml");
    let arguments = [command, &file, "--json", "-", "--set", &format!("seed={seed}")].map(str::to_owned);
    let output = Command::new(programs::lasthop()).args(arguments).output().expect("the binary starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("nothing but JSON on stdout")
}

/// Goodput of `elastic`, bit/s, and p95 of the game's delay, ms.
fn metrics(report: &Value, elastic: &str) -> (f64, f64) {
    let flows = report["flows"].as_array().expect("flows");
    let flow = |name: &str| flows.iter().find(|f| f["name"] == name).unwrap_or_else(|| panic!("no flow {name}"));
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    (number(&flow(elastic)["goodput_bps"]), number(&flow("game")["delay"]["p95"]))
}

/// The middle of a few figures, and where the middle of all that could have been measured lies.
#[derive(Clone, Copy, Debug)]
struct Median {
    value: f64,
    low: f64,
    high: f64,
}

impl Median {
    /// The middle figure, or what lies between the middle two. Its interval is the sign test's, which asks nothing of the
    /// distribution: each figure is below the true median with one half, so that the k-th from either end encloses it unless
    /// fewer than k of the n figures fell on one side. It holds at least 93 of 100 times, the most that five figures can say
    /// (their least and their largest: 1 - 2 / 2^5), and less of fewer.
    fn of(mut metrics: Vec<f64>) -> Median {
        metrics.sort_by(f64::total_cmp);
        let n = metrics.len();
        let (mut outside, mut term, mut k) = (0.0, 0.5f64.powi(n as i32), 0);
        while 2.0 * (outside + term) <= 0.07 {
            outside += term;
            term *= (n - k) as f64 / (k + 1) as f64;
            k += 1;
        }
        let from_end = k.saturating_sub(1);
        Median {
            value: f64::midpoint(metrics[(n - 1) / 2], metrics[n / 2]),
            low: metrics[from_end],
            high: metrics[n - 1 - from_end],
        }
    }

    /// How far apart two are.
    fn apart(self, other: Median) -> f64 {
        (self.value - other.value).abs()
    }

    /// How far apart they are beyond what chance explains: the gap between the intervals.
    fn surely_apart(self, other: Median) -> f64 {
        (self.low - other.high).max(other.low - self.high).max(0.0)
    }
}

fn the_worlds_agree_on(world: &str, elastic: &str) {
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/net/tun").exists() {
        println!("SKIPPED: the emulator needs root and /dev/net/tun");
        return;
    }
    let medians = |runs: &[(f64, f64)]| {
        (Median::of(runs.iter().map(|f| f.0).collect()), Median::of(runs.iter().map(|f| f.1).collect()))
    };
    let simulated: Vec<_> = (1..=25).map(|seed| metrics(&report("sim", world, seed), elastic)).collect();
    let (goodput, p95) = medians(&simulated);
    // An invalid run is repeated; so is a valid one that differs, for real runs spread, too: the p95 of a lossy one by 0.6 ms.
    let mut valid = Vec::new();
    for seed in 1..=RUNS {
        let emulated = report("emulate", world, seed);
        if emulated["run"]["valid"] != true {
            continue;
        }
        valid.push(metrics(&emulated, elastic));
        let real = medians(&valid);
        let mbps = [goodput, real.0].map(|m| m.value / 1e6);
        println!("{world}: {:.2} and {:.2} Mbit/s, p95 {:.2} and {:.2} ms", mbps[0], mbps[1], p95.value, real.1.value);
        if goodput.apart(real.0) < 0.05 * real.0.value && p95.apart(real.1) < 1.0 {
            return;
        }
    }
    if valid.len() < ENOUGH {
        println!("SKIPPED: the machine was too busy: {} of {RUNS} runs were valid", valid.len());
        return;
    }
    // Real runs on a busy machine spread more than the bound is wide: what all of them say has to differ by more than chance.
    let real = medians(&valid);
    assert!(
        goodput.surely_apart(real.0) < 0.05 * real.0.value && p95.surely_apart(real.1) < 1.0,
        "{world}: simulated {goodput:?} bit/s and {p95:?} ms, emulated {real:?} of {valid:?}"
    );
}

#[test]
fn a_game_beside_a_download() {
    the_worlds_agree_on("download", "download");
}

#[test]
fn a_game_beside_an_upload_from_its_own_station() {
    the_worlds_agree_on("upload", "upload");
}

#[test]
fn a_game_beside_a_download_over_a_lossy_air() {
    the_worlds_agree_on("lossy", "download");
}

#[test]
fn a_game_beside_a_download_under_control() {
    the_worlds_agree_on("control", "download");
}

#[test]
fn a_game_beside_a_download_over_the_bridge_of_the_chap_paper() {
    the_worlds_agree_on("bridge", "download");
}

#[test]
fn what_chance_explains_is_no_difference_and_a_shift_is_one() {
    let simulated = Median::of(vec![39.1, 39.9, 40.1, 40.4, 40.7, 40.9, 41.0, 41.1, 41.3]);
    // Five real runs of a busy machine, one of them all otherwise, and the same ones three milliseconds further off.
    let busy = [24.6, 40.7, 39.5, 39.7, 39.3];
    assert!(simulated.apart(Median::of(busy.to_vec())) > 1.0);
    assert!(simulated.surely_apart(Median::of(busy.to_vec())) < 1.0);
    assert!(simulated.surely_apart(Median::of(busy.map(|p95| p95 - 3.0).to_vec())) > 1.0);
    // Three that lie close together by chance say nothing of how far five spread.
    let close = [38.8, 38.9, 39.0, 39.4, 40.3];
    assert!(simulated.surely_apart(Median::of(close.to_vec())) < 1.0);
    // Ranks of the sign test: 8 and 18 of 25, 1 and 5 of 5 (tables of the binomial distribution).
    let ranks = |n: usize| {
        (Median::of((1..=n).map(|r| r as f64).collect()).low, Median::of((1..=n).map(|r| r as f64).collect()).high)
    };
    assert_eq!((ranks(25), ranks(5), ranks(8)), ((8.0, 18.0), (1.0, 5.0), (1.0, 8.0)));
}

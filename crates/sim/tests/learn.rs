//! Nobody says what the hop carries: it is found, wherever there is a standing queue, and followed when it changes.

mod common;

use common::{flow, home, run};
use lasthop_home::report::Report;

const LEARN: &str = "control.window.capacity=learn";
const DEEP: [&str; 2] = ["wifi.queue.limit=1000", "wifi.station_queue.limit=1000"];
/// 20 Mbit/s with half a second of buffer before the home.
const LINE: [&str; 4] = ["wan.rate_down=20Mbit/s", "wan.rate_up=20Mbit/s", "wan.buffer_down=833", "wan.buffer_up=833"];
const GAME: [&str; 2] = ["game-down V B game-server", "game-up B V game-client"];

/// A greedy flow beside a game; `down`: from the server.
fn beside_a_game(down: bool, set: &[&str]) -> Report {
    let greedy = if down { "bulk W A ftp start = \"1s\"" } else { "bulk A W ftp start = \"1s\"" };
    let flows = [greedy, GAME[0], GAME[1]];
    let set: Vec<&str> = DEEP.iter().chain(set).copied().chain(["duration=20s"]).collect();
    run(&home(&flows, &set))
}

/// What the greedy flow has alone, IP Mbit/s.
fn truth(down: bool, set: &[&str]) -> f64 {
    let greedy = if down { "bulk W A ftp" } else { "bulk A W ftp" };
    let set: Vec<&str> = DEEP.iter().chain(set).copied().chain(["duration=40s", "measure_from=15s"]).collect();
    flow(&run(&home(&[greedy], &set)), "bulk").metrics.rate_bps / 1e6
}

fn added_p99(report: &Report, name: &str) -> f64 {
    flow(report, name).metrics.added_delay.as_ref().unwrap().p99
}

#[test]
fn it_learns_within_three_percent_wherever_the_queue_stands_and_says_where() {
    let places: [(&str, &[&str]); 3] =
        [("access-point", &[]), ("firmware", &["wifi.firmware_queue=1000"]), ("wan", &LINE)];
    for (place, set) in places {
        for down in [true, false] {
            if !down && place == "firmware" {
                continue; // The firmware is the access point's.
            }
            let with: Vec<&str> = set.iter().copied().chain([LEARN]).collect();
            let report = beside_a_game(down, &with);
            let learned = &report.control.as_ref().unwrap().learned;
            let (capacity, found) = match down {
                true => (learned.capacity_down_bps.unwrap().last, learned.queue_place.as_ref().unwrap().down.clone()),
                false => (learned.capacity_up_bps.unwrap().last, learned.queue_place.as_ref().unwrap().up.clone()),
            };
            let truth = truth(down, set);
            let ratio = capacity / 1e6 / truth;
            println!("{place}, down {down}: C {:.2} of {truth:.2} Mbit/s, found {found:?}", capacity / 1e6);
            assert!((0.97..=1.03).contains(&ratio), "{place}, down {down}: {ratio}");
            if down {
                assert_eq!(found.as_deref(), Some(place));
            }
        }
    }
}

#[test]
fn a_game_beside_the_first_download_waits_little_and_the_download_is_as_fast() {
    for set in [&[][..], &["wifi.firmware_queue=1000"], &LINE] {
        let off = beside_a_game(true, set);
        let with: Vec<&str> = set.iter().copied().chain([LEARN]).collect();
        let on = beside_a_game(true, &with);
        let (goodput_off, goodput_on) = (flow(&off, "bulk").metrics.rate_bps, flow(&on, "bulk").metrics.rate_bps);
        let (p99_off, p99_on) = (added_p99(&off, "game-down"), added_p99(&on, "game-down"));
        println!(
            "{set:?}: {:.1} % of the goodput, game {p99_off:.1} -> {p99_on:.1} ms",
            100.0 * goodput_on / goodput_off
        );
        assert!(p99_on < 15.0 && p99_off > 5.0 * p99_on, "{set:?}: {p99_off} -> {p99_on}");
        assert!(goodput_on > 0.9 * goodput_off, "{set:?}: {goodput_off} -> {goodput_on}");
    }
}

/// From 54 to 6 Mbit/s: what was promised drains, then the game is well again.
#[test]
fn a_link_that_falls_is_followed() {
    let text = ["bulk W A ftp start = \"1s\"", GAME[0], GAME[1]];
    let mut set: Vec<&str> = DEEP.to_vec();
    set.extend([LEARN, "duration=30s", "measure_from=15s"]);
    let mut scenario = home(&text, &set);
    let slow = home(&text, &[&set[..], &["station.A.rate=6Mbit/s"]].concat());
    scenario.changes = vec![lasthop_home::scenario::Change {
        at: "10s".parse().unwrap(),
        keys: vec!["station.A.rate".to_owned()],
        after: std::sync::Arc::new(slow),
    }];
    let report = run(&scenario);
    let capacity = report.control.as_ref().unwrap().learned.capacity_down_bps.unwrap().last / 1e6;
    let rate = flow(&report, "bulk").metrics.rate_bps / 1e6;
    println!("C {capacity:.2}, carried {rate:.2} Mbit/s, game {:.1} ms", added_p99(&report, "game-down"));
    assert!((4.0..6.5).contains(&capacity) && rate > 4.0, "{capacity} {rate}");
    assert!(added_p99(&report, "game-down") < 40.0);
}

/// A flow that its application holds back is no sign of what the hop carries.
#[test]
fn a_modest_flow_teaches_nothing_wrong() {
    let flows = ["live W A video rate = \"3Mbit/s\"; cc = \"cubic\"", GAME[0], GAME[1]];
    let report = run(&home(&flows, &[LEARN, "duration=20s", DEEP[0]]));
    let metrics = &flow(&report, "live").metrics;
    assert_eq!(metrics.lost.ap_queue + metrics.lost.station_queue, 0);
    assert!(metrics.rate_bps > 2.5e6, "{}", metrics.rate_bps);
    assert!(added_p99(&report, "game-down") < 5.0);
}

/// Downloads and an upload over 20/5 Mbit/s with half a second of buffer each direction: what waits on the way out delays the
/// acknowledgments of what comes in, and must not be taken for a full line there.
#[test]
fn a_wan_link_that_is_full_both_directions_is_told_apart_and_never_taken_for_the_path() {
    let flows = [
        "bulk W A ftp start = \"1s\"",
        "second W B ftp start = \"1.5s\"",
        "up A W ftp start = \"1.8s\"",
        GAME[0],
        GAME[1],
    ];
    let line = ["wan.rate_down=20Mbit/s", "wan.rate_up=5Mbit/s", "wan.buffer_down=833", "wan.buffer_up=208"];
    let (mut smooth, mut of_ten) = (0, 0.0);
    for seed in 1..=10 {
        let seed = format!("seed={seed}");
        let set: Vec<&str> =
            DEEP.iter().chain(&line).copied().chain(["duration=40s", "measure_from=5s", &seed]).collect();
        let off = run(&home(&flows, &set));
        let on = run(&home(&flows, &[&set[..], &[LEARN]].concat()));
        let sum = |report: &Report| {
            ["bulk", "second", "up"].map(|name| flow(report, name).metrics.rate_bps / 1e6).iter().sum::<f64>()
        };
        let learned = on.control.as_ref().unwrap().learned.clone();
        let (down, up) = (learned.capacity_down_bps.unwrap().last / 1e6, learned.capacity_up_bps.unwrap().last / 1e6);
        let (p99_off, p99_on) = (added_p99(&off, "game-down"), added_p99(&on, "game-down"));
        println!(
            "{seed}: C {down:.1} and {up:.1}, {:.1} -> {:.1} Mbit/s, game {p99_off:.0} -> {p99_on:.0} ms",
            sum(&off),
            sum(&on)
        );
        assert!((12.0..21.0).contains(&down) && (4.4..5.6).contains(&up), "{down} {up}");
        assert!(sum(&on) > 1.2 * sum(&off), "{} -> {}", sum(&off), sum(&on));
        assert!(p99_on < 60.0, "{p99_on}");
        smooth += usize::from(p99_on < 20.0 && p99_off > 4.0 * p99_on);
        of_ten += up;
    }
    // One direction's ACKs wait, its queue runs empty, and the other's fills: in one of twenty such a swing lasts.
    assert!(smooth >= 9, "{smooth} of ten");
    assert!(of_ten > 45.0, "{of_ten}");
}

/// What a slow station gets costs more of the channel, whatever brings it: alone it has all of it, a queue of a few of its own packets
/// and no less than without control.
#[test]
fn a_slow_station_alone_is_not_held_below_what_the_air_carries() {
    for bulk in ["bulk W A ftp start = \"1s\"", "bulk W A quic start = \"1s\""] {
        let flows = [bulk, GAME[0], GAME[1]];
        let set: Vec<&str> =
            DEEP.iter().copied().chain(["station.A.rate=6Mbit/s", "duration=20s", "measure_from=3s"]).collect();
        let off = flow(&run(&home(&flows, &set)), "bulk").metrics.goodput_bps / 1e6;
        let report = run(&home(&flows, &[&set[..], &[LEARN]].concat()));
        let on = flow(&report, "bulk").metrics.goodput_bps / 1e6;
        println!("{bulk}: {off:.2} -> {on:.2} Mbit/s, game {:.1} ms", added_p99(&report, "game-down"));
        assert!(on > 0.9 * off, "{bulk}: {off} -> {on}");
        assert!(added_p99(&report, "game-down") < 60.0);
    }
}

#[test]
fn parameters_of_the_law_act_whether_the_capacity_is_learned_or_given() {
    let played = |set: &[&str]| beside_a_game(true, set);
    for capacity in [LEARN, "control.window.capacity=20Mbit/s"] {
        let usual = played(&[capacity]);
        let stated = played(&[capacity, "control.law.gain=0.5"]);
        assert_eq!(flow(&stated, "game-down").metrics, flow(&usual, "game-down").metrics, "as it is without");
        let far = played(&[capacity, "control.law.queue_target=0.02"]);
        let [near, far] = [&usual, &far].map(|r| added_p99(r, "game-down"));
        assert!(far > near + 8e-3, "ten times the target: {:.1} and {:.1} ms", near * 1e3, far * 1e3);
    }
}

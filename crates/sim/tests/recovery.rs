//! Who recovers what the last hop loses, and what else is done about it: what the chapters "Beside Snoop" and "Where to
//! recover" say, at one seed and with room.

mod common;

use common::{flow, load, run};
use lasthop_home::report::Metrics;

const SNOOP: &str = "wireless_link.snoop=true";
const ARQ: &str = "wireless_link.repair={ kind = \"arq\", attempts = 4 }";
const FEC: &str = "wireless_link.repair={ kind = \"fec\", data = 4, parity = 2 }";

fn metrics(home: &str, name: &str, set: &[&str]) -> Metrics {
    flow(&run(&load(&format!("papers/{home}.toml"), set)), name).metrics.clone()
}

fn mbps(home: &str, name: &str, set: &[&str]) -> f64 {
    metrics(home, name, set).goodput_bps / 1e6
}

#[test]
fn parity_is_for_a_long_link_and_repetition_for_a_short_one() {
    let download = |repair: &str, delay: &str, loss: &str| {
        mbps("snoop-repair", "download", &["flow.audio=none", "flow.download.window=1000", repair, delay, loss])
    };
    let (short, long) = ("wireless_link.delay=1ms", "wireless_link.delay=100ms");
    let (lossy, clean) = ("wireless_link.error_rate=0.03", "wireless_link.error_rate=0");
    assert!(download(ARQ, short, lossy) > 1.1 * download(FEC, short, lossy));
    assert!(download(FEC, long, lossy) > 1.5 * download(ARQ, long, lossy));
    // Four of six packets are data, of use or not.
    let idle = download(FEC, short, clean) / download(ARQ, short, clean);
    assert!((idle - 4.0 / 6.0).abs() < 0.05, "{idle}");
}

#[test]
fn a_repetition_over_a_long_link_makes_the_audio_late_and_parity_does_not() {
    let audio = |repair: &str| {
        metrics("snoop-repair", "audio", &["flow.download=none", "wireless_link.delay=100ms", repair])
            .timely_index
            .unwrap()
    };
    assert!(audio(FEC) > 0.995 && audio(ARQ) < 0.98, "{} and {}", audio(FEC), audio(ARQ));
}

#[test]
fn a_hand_off_costs_reno_a_second_and_a_sender_with_sack_a_tenth_of_it() {
    let lost_ms = |sender: &[&str]| {
        let goodput = |handoff: &str| mbps("snoop-handoff", "download", &[sender, &[handoff]].concat());
        let without = goodput("wireless_link.handoff=none");
        1e4 * (1.0 - goodput("wireless_link.handoff.outage=0ms") / without)
    };
    let reno = lost_ms(&["flow.download.cc=reno"]);
    let sack = lost_ms(&["flow.download.cc=newreno", "flow.download.sack=true"]);
    assert!((500.0..1500.0).contains(&reno) && (0.0..150.0).contains(&sack), "{reno} and {sack}");
}

#[test]
fn a_thin_reverse_path_slows_vegas_to_a_packet_per_acknowledgment_and_adjusts_no_window_of_reno() {
    let of = |cc: &str| metrics("snoop-reverse", "download", &["flow.upload=none", "wan.rate_up=32kbit/s", cc]);
    let (reno, vegas) = (of("flow.download.cc=reno"), of("flow.download.cc=vegas"));
    let tcp = reno.tcp.unwrap();
    assert_eq!((tcp.retransmitted, tcp.timeouts), (0, 0));
    // 40 B at 32 kbit/s: 100 acknowledgments a second.
    let packets = |bps: f64| bps / (8.0 * 960.0);
    assert!((packets(vegas.goodput_bps) - 100.0).abs() < 2.0, "{}", packets(vegas.goodput_bps));
    assert!(packets(reno.goodput_bps) > 180.0, "{}", packets(reno.goodput_bps));
}

#[test]
fn snoop_needs_marks_in_place_of_drops_to_be_timely() {
    let red = "wireless_link.queue={ kind = \"red\", limit = 28, packet_time = \"1.6ms\" }";
    let both = |set: &[&str]| {
        let report = run(&load("papers/snoop-red.toml", &[&["wireless_link.error_rate=0.05"], set].concat()));
        let of = |get: fn(&Metrics) -> f64| report.flows.iter().map(|f| get(&f.metrics)).sum::<f64>();
        (of(|f| f.goodput_bps) / 1e6, of(|f| f.timely_index.unwrap()) / report.flows.len() as f64)
    };
    let (alone, drops, marks) = (both(&[]), both(&[SNOOP]), both(&[SNOOP, red, "flow.media.ecn=true"]));
    assert!(drops.0 > alone.0 && drops.1 < alone.1 - 0.02, "{alone:?} {drops:?}");
    assert!(marks.0 > drops.0 && marks.1 > alone.1 + 0.03, "{marks:?} {drops:?}");
}

#[test]
fn a_download_far_from_the_access_point_is_better_off_with_snoop_above_two_attempts_than_with_seven() {
    let at_30_m = |attempts: &str, more: &[&str]| {
        let set = ["flow.audio=none", "flow.video=none", "station.M.distance=30m", attempts];
        mbps("recovery-wifi", "download", &[&set[..], more].concat())
    };
    let (two, seven) = (at_30_m("wifi.attempts=2", &[]), at_30_m("wifi.attempts=7", &[]));
    let snoop = at_30_m("wifi.attempts=2", &["control.snoop={}"]);
    assert!(snoop > 1.25 * seven && seven > 2.0 * two, "{two} {seven} {snoop}");
}

#[test]
fn senders_bear_losses_by_their_distance_and_by_whether_they_take_them_for_congestion() {
    let download = |delay: &str, cc: &str, more: &[&str]| {
        let set = ["flow.audio=none", "flow.video=none", "wireless_link.error_rate=0.01", delay, cc];
        mbps("recovery-link", "download", &[&set[..], more].concat())
    };
    let (near, far) = ("server.S.delay=5ms", "server.S.delay=100ms");
    let (newreno, bbr) = ("flow.download.cc=newreno", "flow.download.cc=bbr");
    assert!(download(near, newreno, &[]) > 4.4 && download(far, newreno, &[]) < 1.0);
    assert!(download(far, bbr, &[]) > 4.0);
    assert!(download(far, newreno, &[SNOOP]) > 4.0 && download(far, newreno, &[ARQ]) > 4.0);
}

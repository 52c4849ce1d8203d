//! What flows of gentle laws leave to Reno at a wired bottleneck, and what it leaves to them: between half and twice.
//!
//! All flows have one round trip, so a queue that drops what comes last needs something that mixes them: without it the
//! drops fall where the phase of TCP's self-clocked packets lets them fall (Floyd and Jacobson 1992; `phase` below).

mod common;

use common::{home, run};
use lasthop_home::report::Report;

const LAWS: [&str; 3] = ["tfrc", "ssvp", "aimd"];

/// Goodput of all flows whose names begin with `name`.
fn total(report: &Report, name: &str) -> f64 {
    report.flows.iter().filter(|f| f.name.starts_with(name)).map(|f| f.metrics.goodput_bps).sum()
}

/// What `n` flows by `cc` get over what as many of Reno get beside them, and both, bit/s.
fn share(cc: &str, n: u32, extra: &[&str], set: &[&str]) -> (f64, f64) {
    let tcp = format!("tcp W A ftp cc = \"reno\"; count = {n}; start = \"0.3s\"");
    let other = format!("other W B ftp cc = \"{cc}\"; count = {n}");
    let flows: Vec<&str> = [tcp.as_str(), other.as_str()].into_iter().chain(extra.iter().copied()).collect();
    let set: Vec<&str> = ["duration=120s", "measure_from=20s"].into_iter().chain(set.iter().copied()).collect();
    let report = run(&home(&flows, &set));
    let (tcp, other) = (total(&report, "tcp"), total(&report, "other"));
    (other / tcp, other + tcp)
}

/// 4 and 4 over a queue that drops early, of 9.6 Mbit/s: a packet of 1500 bytes takes 1.25 ms.
#[test]
fn they_share_a_queue_that_drops_early() {
    for cc in LAWS {
        for limit in [40, 80, 160] {
            let (min, max) = (limit / 8, limit / 2);
            let red = format!(
                "bridge.queue={{ kind = \"red\", limit = {limit}, min = {min}, max = {max}, gentle = true, packet_time = \"1250us\" }}"
            );
            let (share, both) = share(cc, 4, &[], &["wifi=none", "bridge.extra=840us", &red]);
            println!("{cc}, RED of {limit}: {share:.2} of Reno's, {:.2} Mbit/s in all", both / 1e6);
            assert!((0.5..2.0).contains(&share), "{cc}, RED of {limit}: {share}");
            assert!(both > 7.5e6, "{cc}, RED of {limit}: {both}");
        }
    }
}

/// 4 and 4 over 10 Mbit/s and a queue that drops the last, a tenth of it taken by packets at random times.
#[test]
fn they_share_a_queue_that_drops_the_last() {
    let noise = "noise W B poisson rate = \"1Mbit/s\"; size = \"500B\"";
    for cc in LAWS {
        for buffer in [40, 80, 160] {
            let set = ["wan.rate_down=10Mbit/s", &format!("wan.buffer_down={buffer}"), "wifi.queue.limit=1000"];
            let (share, both) = share(cc, 4, &[noise], &set);
            println!("{cc}, a queue of {buffer}: {share:.2} of Reno's, {:.2} Mbit/s in all", both / 1e6);
            assert!((0.5..2.0).contains(&share), "{cc}, a queue of {buffer}: {share}");
            assert!(both > 8e6, "{cc}, a queue of {buffer}: {both}");
        }
    }
}

/// One and one over 5 Mbit/s, nothing else: the share swings with where TCP's packets fall between two departures (2.4 ms),
/// and comes back when the round trip has grown by that.
#[test]
fn two_alone_at_a_queue_that_drops_the_last_share_by_their_phase() {
    let of = |cc: &str, micros: u32| {
        let delay = format!("server.W.delay={micros}us");
        let set = ["wan.rate_down=5Mbit/s", "wan.buffer_down=25", "wifi.queue.limit=1000", &delay];
        share(cc, 1, &[], &set).0
    };
    for cc in ["tfrc", "ssvp"] {
        let shares = [0, 300, 600, 900, 1200].map(|phase| of(cc, 10_000 + phase));
        println!("{cc} by phase: {shares:.2?}");
        let (least, most) = shares.iter().fold((f64::MAX, 0.0_f64), |(a, b), s| (a.min(*s), b.max(*s)));
        assert!(least < 1.5 && most > 1.5 * least, "{cc}: {shares:?}");
        assert!((0.6..1.7).contains(&(shares[4] / shares[0])), "{cc}: {shares:?}");
    }
}

/// Each alone on a link that loses at random, so that all meet the same losses.
#[test]
fn at_equal_losses_they_get_what_reno_gets() {
    for rate in [0.001, 0.005, 0.02, 0.05] {
        let alone = |cc: &str| {
            let set = ["duration=300s", "measure_from=20s", "wifi=none"];
            let loss = format!("wireless_link.error_rate={rate}");
            let rates = ["wireless_link.rate=100Mbit/s", "wireless_link.station_rate=100Mbit/s"];
            let set: Vec<&str> = set.into_iter().chain(rates).chain([loss.as_str()]).collect();
            total(&run(&home(&[&format!("f W A ftp cc = \"{cc}\"")], &set)), "f")
        };
        let reno = alone("reno");
        for cc in LAWS {
            let share = alone(cc) / reno;
            println!("loss {rate}: {cc} {share:.2} of Reno's {:.2} Mbit/s", reno / 1e6);
            assert!((0.5..2.0).contains(&share), "{cc} at {rate}: {share}");
        }
    }
}

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::*;
use crate::tests::sample;

/// Value of a series, as it is written.
fn value(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))?;
    Some(line.parse().expect("a number"))
}

/// Names of families, with the three of a histogram.
fn names(text: &str) -> BTreeSet<&str> {
    let series = text.lines().filter(|line| !line.starts_with('#'));
    series.map(|line| &line[..line.find(['{', ' ']).expect("a value")]).collect()
}

#[test]
fn figures_are_in_base_units() {
    let text = render(&sample());
    assert_eq!(value(&text, "lasthop_up"), Some(1.0));
    assert_eq!(value(&text, r#"lasthop_capacity_bytes_per_second{direction="down"}"#), Some(2_250_000.0));
    assert_eq!(value(&text, r#"lasthop_capacity_bytes_per_second{direction="up"}"#), None, "nothing is known of it");
    assert_eq!(value(&text, r#"lasthop_standing_queue_seconds{direction="down"}"#), Some(0.0019));
    assert_eq!(value(&text, r#"lasthop_carried_bytes_total{direction="down"}"#), Some(2e9));
    assert_eq!(value(&text, r#"lasthop_flows{direction="down",condition="window-limited"}"#), Some(1.0));
    assert_eq!(value(&text, r#"lasthop_paused{what="windows",scope="device"}"#), Some(1.0));
    assert_eq!(value(&text, r#"lasthop_interface_up{interface="wlan0",role="lan"}"#), Some(1.0));
}

#[test]
fn waits_are_cumulative_and_end_with_those_longer_than_all() {
    let text = render(&sample());
    let bucket = |le: &str| {
        value(&text, &format!(r#"lasthop_waiting_seconds_bucket{{direction="down",place="all",le="{le}"}}"#))
    };
    assert_eq!([bucket("0.001"), bucket("0.002"), bucket("0.004")], [Some(0.0), Some(1_300.0), Some(1_390.0)]);
    assert_eq!([bucket("4.096"), bucket("+Inf")], [Some(1_390.0), Some(1_400.0)]);
    assert_eq!(value(&text, r#"lasthop_waiting_seconds_sum{direction="down",place="all"}"#), Some(2.8));
}

#[test]
fn every_bound_of_a_status_falls_within_one_bucket() {
    let bounds = (0..113).map(|n| 0.25 * f64::powf(2.0, f64::from(n) / 8.0));
    let waiting = WaitingStatus { buckets: bounds.map(|ms| (Some(ms), 1)).collect(), ..WaitingStatus::default() };
    let cumulative: Vec<u64> = cumulative(&waiting).into_iter().map(|(_, n)| n).collect();
    assert_eq!(cumulative, (0..15).map(|octave| 1 + 8 * octave).collect::<Vec<_>>());
}

#[test]
fn one_word_of_several_is_so() {
    let text = render(&sample());
    let so = |family: &str| -> Vec<&str> {
        text.lines().filter(|line| line.starts_with(&format!("{family}{{")) && line.ends_with(" 1")).collect()
    };
    assert_eq!(
        so("lasthop_queue_place"),
        [
            r#"lasthop_queue_place{direction="down",place="firmware"} 1"#,
            r#"lasthop_queue_place{direction="up",place="none"} 1"#
        ]
    );
    assert_eq!(so("lasthop_capacity_basis"), [r#"lasthop_capacity_basis{direction="down",basis="measured"} 1"#]);
}

#[test]
fn the_words_of_labels_are_those_of_the_status() {
    for (condition, word) in CONDITIONS {
        assert_eq!(serde_json::to_value(condition).unwrap(), word);
    }
    for (what, word) in What::ALL.into_iter().zip(["windows", "updates", "udp", "levers", "trials"]) {
        assert_eq!(serde_json::to_value(what).unwrap(), word);
    }
    for (basis, word) in [Basis::Given, Basis::Measured, Basis::Estimate].into_iter().zip(BASES) {
        assert_eq!(serde_json::to_value(basis).unwrap(), word);
    }
}

#[test]
fn no_series_names_a_flow_a_device_or_an_address() {
    let text = render(&sample());
    for word in ["10.0.0.2", "192.0.2.1", "2001:db8", "02:00:5e", "laptop"] {
        assert!(!text.contains(word), "{word}");
    }
}

#[test]
fn the_number_of_series_does_not_grow_with_flows_and_devices() {
    let few = sample();
    let mut many = few.clone();
    many.flows = vec![few.flows[0].clone(); 500];
    many.udp = vec![few.udp[0].clone(); 500];
    many.devices = vec![few.devices[0].clone(); 200];
    many.paused = vec![few.paused[0].clone(); 200];
    assert_eq!(render(&many).lines().count(), render(&few).lines().count());
}

#[test]
fn the_book_has_every_metric_and_no_other() {
    let book = include_str!("../../../../book/src/prometheus.md");
    let known: BTreeSet<_> = book
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .filter(|n| n.starts_with("lasthop_"))
        .collect();
    let text = render(&sample());
    let families: BTreeSet<_> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    assert_eq!(known, families);
}

#[test]
fn the_rules_and_the_dashboard_ask_for_metrics_that_there_are() {
    let text = render(&sample());
    let known = names(&text);
    let rules = include_str!("../../../../contrib/prometheus/lasthop.rules.yml");
    let dashboard = include_str!("../../../../contrib/grafana/lasthop.json");
    for (file, asks) in [("rules", rules), ("dashboard", dashboard)] {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':' || c == '.';
        let words = asks.split(|c| !is_part(c)).filter(|word| word.starts_with("lasthop_"));
        for word in words {
            assert!(known.contains(word), "{file} asks for {word}");
        }
    }
    let panels: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    assert!(panels["panels"].as_array().is_some_and(|panels| panels.len() > 8));
}

/// Prometheus' own checker, installed or unpacked.
fn promtool() -> Option<PathBuf> {
    let unpacked = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench-results/study/root/usr/bin/promtool");
    let found = ["/usr/bin/promtool", unpacked].map(PathBuf::from).into_iter().find(|path| path.exists());
    if found.is_none() {
        println!("SKIPPED: the metrics: there is no promtool (tools/unpack-deps unpack-try fetches it)");
    }
    found
}

/// What it says of `input`, and whether it is content.
fn told(promtool: &Path, arguments: &[&str], input: &str) -> (bool, String) {
    let contrib = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/prometheus");
    let mut command = Command::new(promtool);
    command.args(arguments).current_dir(contrib).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("promtool starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // It may be done before it has read all.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    (output.status.success(), text)
}

#[test]
fn promtool_finds_nothing_to_complain_of() {
    let Some(promtool) = promtool() else { return };
    for text in [render(&sample()), render_absent()] {
        assert_eq!(told(&promtool, &["check", "metrics"], &text), (true, String::new()));
    }
    let broken = render(&sample()).replace("lasthop_up 1", "lasthop_up one");
    assert!(!told(&promtool, &["check", "metrics"], &broken).0, "it reads what it is given");
}

#[test]
fn promtool_agrees_with_the_rules_and_what_they_are_to_tell() {
    let Some(promtool) = promtool() else { return };
    for arguments in [["check", "rules", "lasthop.rules.yml"], ["test", "rules", "lasthop.test.yml"]] {
        let (is_content, said) = told(&promtool, &arguments, "");
        assert!(is_content, "{said}");
    }
}

//! `--trace` of a download over kernel TCP, a program's and the scenario's.

mod common;

use common::{scenario, turn, with_cause};
use lasthop_emu::{Options, run};
use serde_json::Value;

const HOME: &str = r#"
format = 1
name = "test"
seed = 7
duration = "3s"
[[server]]
name = "W"
delay = "10ms"
rate = "100Mbit/s"
[wifi]
loss = { kind = "none" }
[[station]]
name = "N"
[[flow]]
name = "ftp"
from = "W"
to = "N"
kind = "ftp"
bytes = "500kB"
"#;

fn number(line: &Value, key: &str) -> f64 {
    line[key].as_f64().unwrap_or(0.0)
}

#[test]
fn a_trace_of_a_download_accounts_for_every_byte_and_every_answer() {
    let Some(_turn) = turn("trace") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("segments.jsonl");
    let options = Options { trace: Some(file.clone()), revision: "r1".into(), ..Options::default() };
    let outcome = run(&scenario(HOME), options).unwrap_or_else(|e| panic!("{}", with_cause(&e)));
    assert!(!outcome.notes.iter().any(|note| note.contains("trace lacks")), "{:?}", outcome.notes);
    let text = std::fs::read_to_string(&file).expect("a trace");
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let header = serde_json::json!({"format": 1, "revision": "r1", "scenario": "test", "seed": 7});
    assert_eq!(lines.next(), Some(header));
    let lines: Vec<Value> = lines.collect();

    assert!(lines.iter().all(|line| line["connection"] == "N:20000 W:20000" && line["flow"] == "ftp"));
    let data: Vec<&Value> = lines.iter().filter(|line| line["bytes"] != 0 && line["lost"].is_null()).collect();
    // A kernel may lose a segment and send it again, so what arrived is a union of ranges.
    let mut ranges: Vec<(f64, f64)> =
        data.iter().map(|line| (number(line, "seq"), number(line, "seq") + number(line, "bytes"))).collect();
    ranges.sort_by(|one, other| one.0.total_cmp(&other.0));
    let union = |(bytes, end): (f64, f64), (from, to): (f64, f64)| (bytes + (to - from.max(end)).max(0.0), end.max(to));
    let (bytes, _) = ranges.into_iter().fold((0.0, 0.0), union);
    assert!((500e3..=500e3 + 8.0).contains(&bytes), "{bytes}");
    for line in &data {
        assert_eq!(line["direction"], "down");
        assert!(number(line, "data_ms") > 10.0, "faster than its wire: {line}");
    }
    let answered: f64 = lines.iter().map(|line| number(line, "acked_segments")).sum();
    let segments: std::collections::BTreeSet<u64> = data.iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert_eq!(answered, segments.len() as f64);
    let acks: Vec<&Value> = lines.iter().filter(|line| !line["ack_ms"].is_null()).collect();
    assert!(acks.len() > 50 && acks.iter().all(|line| line["direction"] == "up" && number(line, "ack_ms") >= 0.0));
    assert!(acks.iter().all(|line| number(line, "offered_window") >= 1460.0), "nobody was slow");
}

#[test]
fn a_trace_has_a_line_for_every_datagram_that_arrived() {
    let Some(_turn) = turn("trace of datagrams") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("segments.jsonl");
    let options = Options { trace: Some(file.clone()), ..Options::default() };
    let home = HOME.replace("\"ftp\"\nbytes = \"500kB\"", "\"game-server\"").replace("\"3s\"", "\"1s\"");
    let outcome = run(&scenario(&home), options).unwrap_or_else(|e| panic!("{}", with_cause(&e)));
    let text = std::fs::read_to_string(&file).expect("a trace");
    let lines: Vec<Value> = text.lines().skip(1).map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let metrics = &outcome.report.flows[0].metrics;
    assert!(metrics.delivered > 15 && lines.len() as u64 == metrics.delivered, "{} {metrics:?}", lines.len());
    assert!(lines.iter().all(|line| line["flow"] == "ftp" && line["bytes"] == 200), "{lines:?}");
    let least = lines.iter().map(|line| number(line, "delay_ms")).fold(f64::MAX, f64::min);
    assert!(metrics.delay.is_some_and(|delay| (delay.min - least).abs() < 0.01), "{least} {metrics:?}");
}

#[test]
fn the_connection_of_a_program_is_traced_too() {
    let Some(_turn) = turn("trace of a program") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("segments.jsonl");
    // Nobody listens.
    let exec = vec![("N".to_owned(), "sleep 0.3; exec 3<>/dev/tcp/$LASTHOP_W/9 || true".to_owned())];
    let exec = exec.into_iter().map(|(host, command)| (host, format!("bash -c '{command}' 2>&-"))).collect();
    let options = Options { trace: Some(file.clone()), exec, ..Options::default() };
    run(&scenario(HOME), options).unwrap_or_else(|e| panic!("{}", with_cause(&e)));
    let text = std::fs::read_to_string(&file).expect("a trace");
    let own: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let own: Vec<&Value> =
        own.iter().filter(|line| line["connection"].as_str().is_some_and(|it| it.ends_with("W:9"))).collect();
    let flags: Vec<&str> = own.iter().filter_map(|line| line["flags"].as_str()).collect();
    assert_eq!(flags, ["SYN", "RST"], "{own:?}");
}

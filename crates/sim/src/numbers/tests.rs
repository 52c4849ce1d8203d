//! What the window control is shown of whole runs, flow by flow: one stream each direction, of which nothing is acknowledged that has not passed.

use std::collections::BTreeMap;

use lasthop_core::packet::Direction;
use lasthop_core::units::{Span, Time};
use lasthop_core::wire::{TcpFields, flag as tcp_flag};
use lasthop_home::scenario::Scenario;

use super::*;
use crate::engine::Engine;
use crate::expansion::Expansion;
use crate::options::Options;
use crate::packet::{Position, Sacks};
use crate::refuse;

/// A server 20 ms away and two stations.
const HOME: &str = r#"
format = 1
name = "t"
duration = "6s"
[wan]
delay = "1ms"
rate_down = "100Mbit/s"
rate_up = "100Mbit/s"
[[server]]
name = "W"
delay = "9ms"
[[station]]
name = "A"
[[station]]
name = "B"
[wifi]
standard = "802.11g"
[control.window]
capacity = "learn"
"#;

/// A TCP flow of every kind, down or up.
const KINDS: [&str; 10] = [
    "kind = \"ftp\"",
    "kind = \"ftp\"\nbytes = \"300kB\"",
    "kind = \"ftp\"\nhalf_close = true",
    "kind = \"ftp\"\nbytes = \"90kB\"\nhalf_close = true\ncc = \"newreno\"\nsack = false",
    "kind = \"ftp\"\nwindow = 2\nmss = \"536B\"",
    "kind = \"cbr\"\ncc = \"cubic\"\nsize = \"328B\"\nrate = \"20kbit/s\"",
    "kind = \"cbr\"\ncc = \"cubic\"\nsize = \"328B\"\nrate = \"20kbit/s\"\nhalf_close = true",
    "kind = \"request-response\"\nevery = \"20ms\"\nresponse = \"3kB\"",
    "kind = \"request-response\"\nevery = \"200ms\"\nthink = \"90ms\"\nrequest = \"1400B\"\nresponse = \"40kB\"",
    "kind = \"web\"\npage = \"google-news\"",
];

fn home(set: &[&str]) -> Scenario {
    home_of(|_| true, set)
}

/// Those kinds alone.
fn home_of(wanted: impl Fn(&str) -> bool, set: &[&str]) -> Scenario {
    let mut text = HOME.to_owned();
    for (i, kind) in KINDS.iter().enumerate().filter(|(_, kind)| wanted(kind)) {
        for (way, from, to) in [("down", "W", "A"), ("up", "B", "W")] {
            let is_up_page = way == "up" && kind.contains("web");
            let start = i as f64 * 0.05;
            if !is_up_page {
                text += &format!(
                    "[[flow]]\nname = \"{way}-{i}\"\nfrom = \"{from}\"\nto = \"{to}\"\nstart = \"{start}s\"\n{kind}\n"
                );
            }
        }
    }
    let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
    Scenario::parse(&text, "t.toml", &set).unwrap_or_else(|e| panic!("{e}"))
}

/// What the fast path was shown in a run.
fn seen(scenario: &Scenario) -> Vec<(Time, u32, Direction, TcpFields)> {
    refuse::check(scenario).unwrap();
    let expansion = Expansion::new(scenario);
    let mut options = Options::default();
    let mut engine = Engine::new(&expansion, &mut options).unwrap();
    engine.run().unwrap();
    engine.access_point.seen().expect("a window control")
}

/// What has passed of one stream.
#[derive(Default)]
struct Passed {
    since: Option<Time>,
    /// Everything below has; and what has beyond, from and to.
    whole: u32,
    beyond: BTreeMap<u32, u32>,
    /// End of all of it, and how much of it the other end has acknowledged.
    highest: u32,
    acked: u32,
    /// Newest timestamp of its sender.
    stamp: u32,
}

impl Passed {
    fn take(&mut self, now: Time, tcp: &TcpFields) {
        self.since.get_or_insert(now);
        let end = tcp.seq + tcp.sequence_length();
        if end > tcp.seq {
            let known = self.beyond.entry(tcp.seq).or_default();
            *known = end.max(*known);
        }
        self.join();
        self.highest = self.highest.max(end);
        self.stamp = self.stamp.max(tcp.timestamps.map_or(0, |(value, _)| value));
    }

    fn join(&mut self) {
        while let Some(next) = self.beyond.first_entry().filter(|first| *first.key() <= self.whole) {
            self.whole = self.whole.max(next.remove());
        }
    }
}

/// What is wrong with a segment of `own`, whose other stream is `other`.
fn fault(tcp: &TcpFields, own: &Passed, other: &Passed) -> Option<String> {
    if tcp.has(tcp_flag::ACK) && tcp.ack > other.whole {
        return Some(format!("acknowledges {}, and {} has passed", tcp.ack, other.whole));
    }
    if tcp.has(tcp_flag::ACK) && tcp.timestamps.is_some_and(|(_, echo)| echo > other.stamp) {
        return Some(format!("echoes {:?}, and {} is the newest", tcp.timestamps, other.stamp));
    }
    // A probe has the number before the first that is not acknowledged.
    let bare = tcp.sequence_length() == 0;
    (bare && tcp.seq + 1 < own.acked).then(|| format!("stands at {}, and {} is acknowledged", tcp.seq, own.acked))
}

/// Plays a home and looks at each segment. `unseen`: for so long what passed before may be acknowledged; `lossless`: nothing is lost
/// before it passes. How many segments there were.
fn examine(scenario: &Scenario, unseen: Span, lossless: bool) -> usize {
    let seen = seen(scenario);
    let mut streams: BTreeMap<u32, [Passed; 2]> = BTreeMap::new();
    for (now, flow, direction, tcp) in &seen {
        let [to_station, to_remote] = streams.entry(*flow).or_default();
        let (own, other) = match direction {
            Direction::ToStation => (to_station, to_remote),
            Direction::ToRemote => (to_remote, to_station),
        };
        own.take(*now, tcp);
        if own.since.is_some_and(|since| *now < since + unseen) {
            other.whole = other.whole.max(tcp.ack);
            other.join();
            continue;
        }
        let gap = || format!("begins at {}, and {} has passed", tcp.seq, own.whole);
        let beyond = (lossless && tcp.seq > own.whole).then(gap);
        if let Some(fault) = fault(tcp, own, other).or(beyond) {
            panic!(
                "{} {} at {now:?}: {fault}: {tcp:?}",
                scenario.flows.get(*flow as usize).map_or("", |f| &f.name),
                flow
            );
        }
        if tcp.has(tcp_flag::ACK) {
            other.acked = other.acked.max(tcp.ack);
        }
    }
    for (flow, streams) in &streams {
        let both = streams.iter().map(|stream| stream.whole).min();
        assert!(both > Some(0), "flow {flow}: nothing passed one way");
    }
    seen.len()
}

#[test]
fn of_every_kind_of_flow_nothing_is_acknowledged_that_has_not_passed() {
    assert!(examine(&home(&[]), Span::ZERO, true) > 10_000);
}

#[test]
fn nor_is_it_where_requests_and_ends_of_streams_are_lost_on_the_air() {
    // In three of these a SYN+ACK is lost and the request behind it is not.
    for (rate, seed) in (1..40).flat_map(|seed| [("0.4", seed), ("0.6", seed)]) {
        let (loss, seed) = (format!("wifi.loss={{ kind = \"fixed\", rate = {rate} }}"), format!("seed={seed}"));
        assert!(examine(&home(&[&loss, &seed]), Span::ZERO, false) > 1000);
    }
}

#[test]
fn nor_by_what_snoop_and_split_connections_show() {
    let one_way = |kind: &str| !kind.contains("request-response") && !kind.contains("web");
    for control in ["control.snoop={}", "control.split={}"] {
        let home = home_of(one_way, &[control, "wifi.loss={ kind = \"fixed\", rate = 0.4 }"]);
        assert!(examine(&home, Span::ZERO, false) > 1000, "{control}");
    }
}

#[test]
fn nor_where_the_controller_comes_later() {
    assert!(examine(&home(&["control.window.start=2500ms"]), Span::from_millis(500), false) > 5000);
}

fn packet(flags: u32, offset: u64, turns: u32) -> SimPacket {
    let position = Position::new(offset, turns);
    SimPacket {
        sent: Time::ZERO,
        position,
        flow: 0,
        sack: Sacks::NONE,
        bytes: 540,
        window: 0,
        flags: flags | flag::TCP,
    }
}

#[test]
fn turns_stand_behind_each_other_and_have_their_numbers_again_when_they_are_sent_again() {
    let turn = 300;
    let numbers = |flags, offset, turns| {
        let Numbers { seq, ack } = Numbers::of(&packet(flags, offset, turns), turn);
        (seq, ack)
    };
    assert_eq!(numbers(flag::SYN, 0, 0), (0, None));
    assert_eq!(numbers(flag::SYN | flag::BACK, 0, 0), (0, Some(1)));
    assert_eq!(numbers(flag::ASK | flag::BACK, 0, 1), (1, Some(1)));
    assert_eq!(numbers(0, 0, 1), (1, Some(301)));
    assert_eq!(numbers(flag::BACK, 500, 1), (301, Some(501)));
    assert_eq!(numbers(flag::ASK | flag::BACK, 500, 40), (1 + 39 * 300, Some(501)));
    assert_eq!(numbers(flag::BACK | flag::ALL, 500, 40), (1 + 40 * 300, Some(502)), "and the FIN");
}

#[test]
fn payload_is_what_headers_leave() {
    let connection = Connection { mss: 500, scale: 0, headers: 40, turn: 300 };
    let bytes = |flags| connection.payload_bytes(&packet(flags, 0, 0));
    assert_eq!([0, flag::SYN, flag::BACK, flag::BACK | flag::ASK, flag::ASK].map(bytes), [500, 0, 0, 300, 0]);
    assert_eq!(Connection { headers: 0, ..connection }.payload_bytes(&packet(0, 0, 0)), 540, "of ns-2's Vegas");
}

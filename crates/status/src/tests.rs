use super::*;

pub(crate) fn sample() -> Status {
    let flow = FlowStatus {
        flow: "10.0.0.2:5000 <- 192.0.2.1:443".to_owned(),
        device: "02:00:5e:10:00:01".to_owned(),
        direction: Direction::ToStation,
        state: FlowCondition::WindowLimited,
        rate_bps: 17_100_000,
        share_bps: Some(17_700_000),
        clamp_bytes: Some(174_000),
        window_bytes: 174_000,
        local_rtt_ms: Some(2.1),
        remote_rtt_ms: None,
        bytes: 1,
        rewritten: 1,
        timely_index: Some(0.987),
    };
    let older = FlowStatus {
        flow: "[2001:db8::2]:5001 -> [2001:db8::1]:22".to_owned(),
        direction: Direction::ToRemote,
        state: FlowCondition::ScaleUnknown,
        share_bps: None,
        clamp_bytes: None,
        rate_bps: 300_000,
        ..flow.clone()
    };
    let lan = InterfaceStatus {
        name: "wlan0".to_owned(),
        role: Role::Lan,
        state: Presence::Up,
        bridge: Some("br0".to_owned()),
        attached: Some(Mechanism::Tcx),
        reattached: 1,
        went_down: 1,
        received_bytes: 1_500_000,
        sent_bytes: 2_000_000_000,
    };
    Status {
        format: FORMAT,
        version: "0.1.0".to_owned(),
        pid: 7,
        running_s: 72.4,
        dry_run: false,
        windows: true,
        interfaces: vec![lan],
        waits: vec!["waiting for wlan9: there is no such interface".to_owned()],
        queues: vec![QueueStatus {
            interface: "wlan0".to_owned(),
            kind: "chap".to_owned(),
            pace_bps: 17_000_000,
            sent_packets: 1_000,
            dropped: 3,
            queued: 12,
            backlogged: 2,
            flows: 40,
            flows_bound: 4_032,
            boosts: 9,
            merged: 5,
            ..QueueStatus::default()
        }],
        knobs: vec![KnobStatus {
            what: "wlan0: root queue discipline".to_owned(),
            before: "noqueue".to_owned(),
            ours: "chap".to_owned(),
            given_up: true,
        }],
        levers: vec![
            LeverStatus {
                name: "class".to_owned(),
                state: "kept".to_owned(),
                found: Some("off".to_owned()),
                in_force: Some("on".to_owned()),
                pairs: 7,
                added_ms: Some(-3.2),
                carried: Some(0.998),
                flows: Some(2),
                packets: Some(12_000),
                why: None,
            },
            LeverStatus {
                name: "aql".to_owned(),
                state: "not-here".to_owned(),
                why: Some("the driver does not limit air time in the hardware (AQL)".to_owned()),
                ..LeverStatus::default()
            },
        ],
        fair_queues: vec![
            FairQueueStatus {
                interface: "wlan0".to_owned(),
                state: "left".to_owned(),
                why: None,
                below_ms: Some(24.0),
                waits_bytes: Some(31_500),
            },
            FairQueueStatus {
                interface: "wlan1".to_owned(),
                state: "held".to_owned(),
                why: Some("the driver does not limit air time in the hardware (AQL)".to_owned()),
                ..FairQueueStatus::default()
            },
        ],
        found: vec![FoundStatus {
            interface: "eth0".to_owned(),
            what: "cake at 5 Mbit/s".to_owned(),
            shapes: true,
            short: true,
            follows: "uploads wait there".to_owned(),
        }],
        capacity_bps: 18_000_000,
        learns: true,
        directions: Directions {
            down: DirectionStatus {
                capacity_bps: Some(18_000_000),
                capacity_basis: Some(Basis::Measured),
                capacity_spread: Some(0.034),
                carried_bytes: 2_000_000_000,
                rate_bps: 17_400_000,
                waiting: vec![WaitingStatus {
                    place: "all".to_owned(),
                    count: 1_400,
                    sum_ms: 2_800.0,
                    buckets: vec![(Some(2.0), 1_300), (Some(4.0), 90), (None, 10)],
                }],
                queue_place: Some("firmware".to_owned()),
                queue_ms: 1.9,
                limits: true,
            },
            up: DirectionStatus::default(),
        },
        devices: vec![DeviceStatus {
            id: "02:00:5e:10:00:01".to_owned(),
            name: Some("laptop".to_owned()),
            named_by: Some("dhcp".to_owned()),
            down_bps: 17_100_000,
            up_bps: 300_000,
            flows: 2,
            down_waiting_ms: Some(1.9),
            up_waiting_ms: None,
        }],
        udp: vec![UdpStatus {
            flow: "10.0.0.2:51820 <- 192.0.2.1:443".to_owned(),
            direction: Direction::ToStation,
            device: "02:00:5e:10:00:01".to_owned(),
            taken_for: "elastic".to_owned(),
            why: "full packets, acknowledged, and its rate grew 4.0 times".to_owned(),
            tunnel: Some("WireGuard".to_owned()),
            rate_bps: 280_000,
            share_bps: Some(9_000_000),
            bytes: 1_000_000,
            marked: 3,
            dropped: 1,
        }],
        paused: vec![PauseStatus {
            what: command::What::Windows,
            device: Some("02:00:5e:10:00:01".to_owned()),
            left_s: Some(61.0),
        }],
        configuration: ConfigurationStatus {
            reloads: 1,
            refused: Some("lasthop.toml:3: capacty: there is no such key; did you mean `capacity`?".to_owned()),
            waits_for_restart: vec!["flows".to_owned()],
        },
        nothing_to_do: false,
        decisions: vec![DecisionStatus { at_s: 1.25, line: "downloads: the hop seems to carry 18 Mbit/s".to_owned() }],
        available_bps: 17_700_000,
        udp_bps: ByDirection { to_station: 280_000.0, to_remote: 5_600.0 },
        flows: vec![flow, older],
        table: TableStatus {
            connections: 2,
            bound: 65_536,
            forgotten: 3,
            uncontrolled: 340,
            full_s: Some(61.0),
            scale_unknown: 1,
        },
        packets: BTreeMap::from([("rewritten".to_owned(), 1234)]),
        window_updates: WindowUpdates { on: true, sent: 4321, failed: 2, dropped: 1, off: None },
        conntrack: ConntrackStatus { unavailable: Some("no such file".to_owned()), ..ConntrackStatus::default() },
        bypass: Bypass { bytes: 50_000_000, share: 0.25, bypasses_control: true },
        controller: LoopStatus { missed: 2, failures: 1, longest_ms: 3.25, ..LoopStatus::default() },
        control: Control {
            rewritten: 1234,
            passed: 56,
            controllable_share: 0.9,
            not_controlled: BTreeMap::from([("syn".to_owned(), 4), ("rst".to_owned(), 0)]),
            ..Control::default()
        },
    }
}

#[test]
fn downloads_that_wait_elsewhere_are_said_to_be_held_for_that() {
    let queue = FairQueueStatus { state: "elsewhere".to_owned(), ..sample().fair_queues[0].clone() };
    let text = render(&Status { fair_queues: vec![queue], ..sample() });
    assert!(
        text.contains("downloads over wlan0 are held: they wait elsewhere, longer than its own fair queue explains"),
        "{text}"
    );
}

#[test]
fn a_status_survives_its_json() {
    let text = serde_json::to_string(&sample()).unwrap();
    assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), sample());
}

/// Paths of all fields; of a list those of its members, of a map none of its own.
fn fields(value: &serde_json::Value, path: &str, all: &mut std::collections::BTreeSet<String>) {
    const MAPS: [&str; 4] = ["packets", "control.not_controlled", "control.clamps", "queues[].snoop"];
    match value {
        serde_json::Value::Object(members) if !MAPS.contains(&path) => {
            for (name, member) in members {
                let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                all.insert(inner.clone());
                fields(member, &inner, all);
            }
        }
        serde_json::Value::Array(members) => {
            members.iter().for_each(|member| fields(member, &format!("{path}[]"), all));
        }
        _ => {}
    }
}

#[test]
fn the_book_has_every_field_and_no_other() {
    let book = include_str!("../../../book/src/status.md");
    let mut all = std::collections::BTreeSet::new();
    let learned = Status { control: Control { learned: Some(Learned::default()), ..sample().control }, ..sample() };
    fields(&serde_json::to_value(&learned).unwrap(), "", &mut all);
    let (_, rows) = book.split_once("| field | type | what |\n").expect("the table");
    let rows = rows.lines().skip(1).map_while(|line| line.strip_prefix("| `"));
    let known: std::collections::BTreeSet<_> = rows.map(|row| row.split('`').next().unwrap().to_owned()).collect();
    let of_uploads = |field: &&String| !field.starts_with("directions.up.");
    let missing: Vec<_> = all.iter().filter(of_uploads).filter(|field| !known.contains(*field)).collect();
    assert_eq!(missing, Vec::<&String>::new(), "book/src/status.md lacks them");
    // What a sample leaves out is in no field of its own.
    let gone: Vec<_> = known.iter().filter(|field| !all.contains(*field)).collect();
    let left_out = ["queues[].device", "queues[].instead_of", "queues[].mean_sojourn_ms", "queues[].p99_sojourn_ms"];
    let left_out = [&left_out[..], &["queues[].snoop", "queues[].stations", "window_updates.off"]].concat();
    let is_stale = |field: &&&String| !left_out.iter().any(|known| field.starts_with(known));
    assert_eq!(gone.iter().copied().filter(|field| is_stale(&field)).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn a_status_of_the_version_before_is_read_by_its_names() {
    let text = serde_json::to_string(&sample()).unwrap();
    let old = text.replace("\"limits\":", "\"holds\":").replace("\"window-limited\"", "\"held\"");
    assert!(old.contains("\"holds\":") && old.contains("\"held\""), "{old}");
    assert_eq!(serde_json::from_str::<Status>(&old).unwrap(), sample());
}

#[test]
fn a_status_of_another_form_is_told_by_both_numbers() {
    let said = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut value = serde_json::to_value(sample()).unwrap();
        value["version"] = "9.8.7".into();
        change(&mut value);
        read(&value.to_string(), Path::new("/run/x.sock")).map_err(|error| error.to_string())
    };
    assert!(said(&|_| {}).is_ok());
    assert!(said(&|status| status["of a later version"] = 1.into()).is_ok(), "fields come without another number");
    let newer = said(&|status| status["format"] = (FORMAT + 1).into()).unwrap_err();
    let both = format!("is lasthop 9.8.7, and its status has form {}; this program, lasthop ", FORMAT + 1);
    assert!(newer.contains(&both) && newer.contains(&format!("reads form {FORMAT}: ask with")), "{newer}");
    let older = said(&|status| {
        status["format"] = 1.into();
        status.as_object_mut().unwrap().remove("pid");
    });
    assert!(older.unwrap_err().contains("has form 1; this program"));
    let nonsense = read("[]", Path::new("/run/x.sock")).unwrap_err().to_string();
    assert!(nonsense.contains("did not answer with a status"), "{nonsense}");
}

#[test]
fn control_has_the_fields_of_a_report_and_no_others() {
    let control = serde_json::to_value(sample().control).unwrap();
    let fields: Vec<_> = control.as_object().unwrap().keys().cloned().collect();
    let mut of_a_report =
        ["capacity_bps", "udp_bps", "controllable_share", "rewritten", "passed", "not_controlled", "clamps"];
    of_a_report.sort_unstable();
    let mut fields: Vec<_> = fields.iter().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(fields, of_a_report);
    assert!(control["capacity_bps"]["mean"].is_number() && control["capacity_bps"]["last"].is_number());
    let learned = Control { learned: Some(Learned::default()), ..sample().control };
    let control = serde_json::to_value(&learned).unwrap();
    for field in ["capacity_down_bps", "capacity_up_bps", "queue_place", "elastic_udp_bps", "decisions"] {
        assert!(control.get(field).is_some(), "{field}");
    }
    assert!(control["capacity_up_bps"]["last"].is_number() && control["queue_place"]["down"].is_null());
    assert_eq!(serde_json::from_value::<Control>(control).unwrap(), learned);
}

#[test]
fn the_table_tells_a_reader_what_is_held_what_is_not_and_why() {
    let text = render(&sample());
    for part in [
        "running for 1 min 12 s, in control",
        "LAN wlan0 (port of br0): up, hooked by tcx, hooked again once; in 1.5 MB, out 2 GB",
        "  waiting for wlan9: there is no such interface\n",
        "queue wlan0: chap at 17 Mbit/s; 12 packets of 2 flows wait, 1000 sent, 3 dropped; 40 of at most 4032 flows known, 9 boosts",
        "5 packets came merged",
        "downloads over wlan0 are left to its own fair queue, with at most 24 ms below; 31.5 kB wait in its queue\n",
        "downloads over wlan1 are held: the driver does not limit air time in the hardware (AQL)\n",
        "downloads: learned 18 Mbit/s (measured, spread 3 %); packets wait behind its own queue, in driver or firmware, now 1.9 ms; of all intervals half waited at most 1.92 ms, 95 % at most 3.78 ms; windows limited",
        "window control is paused for 02:00:5e:10:00:01 (laptop) for 1 min 1 s more; `lasthop resume` goes on",
        "the configuration was not read again: lasthop.toml:3: capacty: there is no such key",
        "wait for a restart: flows\n",
        "  laptop                    17.1 Mbit/s   300 kbit/s       1.9 ms            -",
        "10.0.0.2:51820 <- 192.0.2.1:443 (laptop): elastic, a WireGuard tunnel, because full packets",
        "280 kbit/s of 9 Mbit/s, 3 marked, 1 dropped",
        "uploads: nothing learned yet: never was anything seen waiting; windows left alone",
        "wlan0: root queue discipline: chap, before noqueue; somebody else has changed it since, so it is theirs",
        "found at eth0: cake at 5 Mbit/s: uploads wait there",
        "UDP down 280 kbit/s up 5.6 kbit/s, left for TCP 17.7 Mbit/s",
        "   1.2 s  downloads: the hop seems to carry 18 Mbit/s",
        "10.0.0.2:5000 <- 192.0.2.1:443 (laptop): window-limited to its share",
        "17.1 Mbit/s of 17.7 Mbit/s, window 174 kB, RTT home + far 2.1 + ? ms, timely 98.7 %",
        "its window scale is unknown",
        "ACKs: 1234 lowered, 56 were low enough; 90 % of all bytes",
        "packets left alone: syn 4\n",
        "window updates: 4321 sent, 2 could not be, 1 connections did without\n",
        "connections: 2 of at most 65536, 3 ended or silent; 1 left alone, their window scale is unknown\n",
        "WARNING: the table of connections is full since 1 min 1 s: about 340 newer ones pass uncontrolled; set `flows` higher than 65536\n",
        "WARNING: 50 MB (25 %) bypass control",
        "conntrack cannot be asked for older connections: no such file",
        "2 decisions came late (longest took 3.25 ms)",
    ] {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
    let dry = render(&Status { dry_run: true, flows: Vec::new(), ..sample() });
    let given = render(&Status { learns: false, nothing_to_do: true, ..sample() });
    assert!(given.contains("capacity 18 Mbit/s, given"), "{given}");
    assert!(given.contains("nothing to do"), "{given}");
    let updates = WindowUpdates { off: Some("a dry run sends nothing".to_owned()), ..WindowUpdates::default() };
    let without = render(&Status { window_updates: updates, ..sample() });
    assert!(without.contains("window updates: off (a dry run sends nothing)\n"), "{without}");
    assert!(dry.contains("dry run") && dry.contains("would have been lowered") && dry.contains("no TCP connection"));
}

#[test]
fn nobody_at_the_socket_is_said_with_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    let error = query(&folder.path().join("none.sock")).unwrap_err().to_string();
    assert!(error.contains("lasthop run"), "{error}");
}

#[test]
fn a_controller_that_goes_while_it_answers_is_gone_and_no_other_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sock");
    for (answer, is_there) in [("", false), ("{\"format\": 7, \"dir", false), ("7 8", true), ("<html>", true)] {
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let serves = std::thread::spawn(move || {
            std::io::Write::write_all(&mut listener.accept().unwrap().0, answer.as_bytes()).unwrap();
        });
        let said = query_json(&path).unwrap_err();
        assert_eq!(matches!(said, QueryError::NotAStatus { .. }), is_there, "{answer}: {said}");
        assert_eq!(matches!(said, QueryError::NobodyThere { .. }), !is_there, "{answer}: {said}");
        serves.join().unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}

use super::*;

const MAC: Mac = [2, 0, 0, 0, 1, 0];

fn station(packets: u32, retries: u32, failed: u32) -> Station {
    Station { mac: MAC, rate: None, bytes: 0, packets, retries, failed, airtime: None, weight: None, waits: None }
}

#[test]
fn losses_are_those_of_attempts_since_the_last_sample_that_says_something() {
    let mut known = Known { ifindex: 3, mac: MAC, before: station(100, 50, 5), weight: 256, loss: None };
    known.on_sample(&station(110, 60, 5));
    assert_eq!(known.loss, None, "ten frames say nothing");
    // 100 frames, 90 of them sent again and ten given up: 100 of 190 attempts.
    known.on_sample(&station(200, 140, 15));
    assert_eq!(known.loss, Some(100.0 / 190.0));
    // Counters that began anew say nothing, either.
    known.on_sample(&station(30, 0, 0));
    assert_eq!(known.loss, Some(100.0 / 190.0));
    known.on_sample(&station(130, 0, 0));
    assert_eq!(known.loss, Some(0.0));
}

#[test]
fn every_place_belongs_to_the_lever_that_sets_it() {
    let phy = || "phy0".to_owned();
    let all = [
        (Place::Retries { wiphy: 0 }, Some(Lever::Attempts)),
        (Place::Attempts { ifindex: 3, mac: MAC, tids: 9 }, Some(Lever::Attempts)),
        (Place::Edca { ifindex: 3, class: 2 }, Some(Lever::Txop)),
        (Place::Weight { ifindex: 3, mac: MAC }, Some(Lever::Weights)),
        (Place::Aql { phy: phy(), class: 2 }, Some(Lever::Aql)),
        (Place::AqlThreshold { phy: phy() }, Some(Lever::Aql)),
        (Place::Txq { wiphy: 0 }, None),
    ];
    for (place, lever) in all {
        assert_eq!(lever_of(&place), lever, "{place}");
    }
}

/// A radio whose debugfs is a folder, and a guard for it.
fn with_a_radio(folder: &std::path::Path) -> Levers {
    use crate::levers::place::Machine;
    use crate::levers::wiphy::Wiphy;
    let phy = folder.join("phy0");
    std::fs::create_dir(&phy).unwrap();
    std::fs::create_dir(folder.join("records")).unwrap();
    std::fs::write(phy.join("aql_threshold"), "24000\n").unwrap();
    // Written, it would no longer be the table that the kernel makes of it: classes are refused here.
    let wiphy = Wiphy { name: "phy0".to_owned(), has_aql: true, ..Wiphy::default() };
    let radio = Radio {
        ifindex: 3,
        is_access_point: true,
        wiphy,
        aql: Some(Aql::default()),
        edca: None,
        is_own: true,
        below: Ok(Span::ZERO),
    };
    let guard = Guard::start_with(Machine::new(folder.to_owned()), folder.join("records")).unwrap();
    let config = Config::parse("levers = \"aql\"", "x").unwrap();
    Levers::with(&config, Radios::made_up(vec![radio], folder.to_owned()), Some(guard))
}

fn threshold() -> Place {
    Place::AqlThreshold { phy: "phy0".to_owned() }
}

/// Hears the guard until it has answered every order.
fn settle(levers: &mut Levers) {
    let mut journal = Journal::new(Time::ZERO);
    while levers.guard.as_ref().unwrap().waits() > 0 {
        levers.hear(Time::ZERO, &mut journal);
        std::thread::yield_now();
    }
}

#[test]
fn what_is_set_is_put_back_though_it_was_not_answered_yet() {
    let folder = tempfile::tempdir().unwrap();
    let mut levers = with_a_radio(folder.path());
    let stands = || std::fs::read_to_string(folder.path().join("phy0/aql_threshold")).unwrap();
    for rounds in [1, 2] {
        // Set, put back, set again, put back, each before the one before was answered.
        for _ in 0..rounds {
            levers.put(threshold(), Some(vec![12_000]), None);
            levers.put(threshold(), None, None);
        }
        settle(&mut levers);
        assert_eq!(stands().trim_end(), "24000");
        assert!(levers.knobs.is_empty() && levers.ordered.is_empty());
    }
    levers.put(threshold(), None, None);
    levers.put(threshold(), Some(vec![12_000]), None);
    settle(&mut levers);
    assert_eq!(stands().trim_end(), "12000");
}

/// An order that the guard had no room for, while the controller is paused, is given again.
#[test]
fn nothing_stays_set_while_it_is_paused() {
    let folder = tempfile::tempdir().unwrap();
    let mut levers = with_a_radio(folder.path());
    levers.put(threshold(), Some(vec![12_000]), None);
    settle(&mut levers);
    levers.ordered.clear(); // as if it had been ordered back
    levers.set_paused(Time::ZERO, true);
    levers.put_all_back();
    settle(&mut levers);
    assert_eq!(std::fs::read_to_string(folder.path().join("phy0/aql_threshold")).unwrap().trim_end(), "24000");
    assert!(levers.knobs.is_empty());
    assert_eq!(stage(Stage::Kept, false, true), "paused");
}

#[test]
fn of_a_stations_connections_the_one_that_waits_least_tells_and_only_radios_count() {
    use super::super::table::RoundTrips;
    let folder = tempfile::tempdir().unwrap();
    let mut levers = with_a_radio(folder.path());
    levers.law.on_found(Setting::Class(false));
    let ms = Span::from_millis;
    let mut interval = |port: u32, mean: u64, least: u64| {
        let round_trips = RoundTrips { mean: ms(mean), samples: 5, least: ms(least) };
        let heard = Heard::from([((port, StationId(7)), round_trips)]);
        levers.on_round_trips(Time::ZERO, &heard);
        levers.nearest.get(&StationId(7)).map(|nearest| nearest.least)
    };
    assert_eq!(interval(9, 5, 1), None, "a wired port");
    assert_eq!([interval(3, 9, 6), interval(3, 8, 2), interval(3, 30, 20)], [Some(ms(6)), Some(ms(2)), Some(ms(2))]);
}

/// Levers of a configuration, over a radio with AQL and mac80211's queues whose data path was told where it is.
fn above_flow_queues(config: &str, is_dry: bool, folder: &std::path::Path) -> Levers {
    use crate::levers::wiphy::{Txq, Wiphy};
    let txq = Some(Txq { limit: 8_192, memory_bytes: 16 << 20, quantum_bytes: 300 });
    let wiphy = Wiphy { name: "phy0".to_owned(), has_aql: true, txq, ..Wiphy::default() };
    let below = Ok(Span::from_millis(24));
    let radio = Radio { ifindex: 3, is_access_point: true, wiphy, aql: None, edca: None, is_own: true, below };
    let config = Config { dry_run: is_dry, ..Config::parse(config, "x").unwrap() };
    let mut levers = Levers::with(&config, Radios::made_up(vec![radio], folder.to_owned()), None);
    levers.law.on_found(Setting::Class(false));
    levers.told = vec![3];
    levers
}

/// Plays two minutes in which packets wait 5 ms, and longer by `added` while they have a class; for how much of it one was tried.
fn play(levers: &mut Levers, added: Span) -> Span {
    let (mut has_class, mut tried) = (true, Span::ZERO);
    for step in 0..2_400u64 {
        let now = Time::ZERO + Span::from_millis(50) * step;
        levers.law.on_waits(now, Span::from_millis(5) + if has_class { added } else { Span::ZERO }, 5);
        levers.law.on_link(now, &LinkSample { bytes: [step * 100_000, step * 2_000], airtime: None });
        while let Some(action) = levers.law.poll(now) {
            if let Action::Set(Setting::Class(on)) = action {
                has_class = on;
            }
        }
        tried += if levers.are_tried() { Span::from_millis(50) } else { Span::ZERO };
    }
    tried
}

#[test]
fn while_one_is_tried_the_controller_knows() {
    let folder = tempfile::tempdir().unwrap();
    let mut levers = above_flow_queues("", false, folder.path());
    assert!(!levers.are_tried(), "nothing has been heard yet");
    let tried = play(&mut levers, Span::ZERO);
    assert!(tried > Span::from_secs(10) && tried < Span::from_secs(110), "{tried}");
}

#[test]
fn downloads_are_left_to_flow_queues_while_sparse_flows_have_a_class_and_only_then() {
    let folder = tempfile::tempdir().unwrap();
    let mut levers = above_flow_queues("", false, folder.path());
    let why = |levers: &Levers| levers.fair_queue(3).unwrap_err();
    assert_eq!(levers.fair_queue(3), Ok(Span::from_millis(24)), "in force until it is found to hurt");
    play(&mut levers, Span::ZERO);
    assert_eq!(levers.fair_queue(3), Ok(Span::from_millis(24)), "it does not");
    assert!(levers.fair_queue(4).is_err(), "another interface");
    levers.set_paused(Time::ZERO, true);
    assert!(why(&levers).contains("paused"));
    levers.set_paused(Time::ZERO, false);
    assert!(levers.fair_queue(3).is_ok());
    levers.set_held(Time::ZERO, true);
    assert!(levers.fair_queue(3).is_ok(), "held, what was decided stays in force");
    levers.puts_back = true;
    assert!(levers.fair_queue(3).is_err(), "other radios came");
    levers.puts_back = false;
    levers.told.clear();
    assert!(levers.fair_queue(3).is_err(), "its packets are given no class");
    levers.told = vec![3];
    levers.law.release();
    assert!(levers.fair_queue(3).is_err(), "everything is as it was found");
    for (config, is_dry, expected) in [("levers = \"aql\"", false, "gives nobody a class"), ("", true, "dry run")] {
        let levers = above_flow_queues(config, is_dry, folder.path());
        assert!(why(&levers).contains(expected), "{config:?}: {}", why(&levers));
    }
    let mut levers = above_flow_queues("", false, folder.path());
    play(&mut levers, Span::from_millis(60));
    assert!(why(&levers).contains("have no class"), "it hurts: {}", why(&levers));
}

/// All that a hop's sample is made of: the radio, the driver's answers, and what is before them.
#[test]
fn downloads_are_held_where_a_discipline_queues_before_the_driver_or_it_stops_telling() {
    use super::super::{disciplines::Disciplines, fair_queue, queues::Queues};
    use crate::discipline::Discipline;
    let folder = tempfile::tempdir().unwrap();
    let levers = above_flow_queues("", false, folder.path());
    let root = |kind: &str| {
        let (kind, parent) = (kind.to_owned(), u32::MAX);
        let one = Discipline { ifindex: 3, kind, handle: 0, parent, backlog: 0, rate: None, takes_all: true };
        Disciplines::made_up(vec![one])
    };
    let mut queues = Queues::new(&Config::default(), None);
    let at = |queues: &Queues, second: u64, kind: &str| {
        fair_queue(Time::ZERO + Span::from_secs(second), 3, &levers, queues, &root(kind))
    };
    assert!(at(&queues, 1, "noqueue").unwrap_err().contains("does not tell"));
    let told = |waits| Station { waits, ..station(0, 0, 0) };
    queues.tell(Time::ZERO + Span::from_secs(1), 3, &[told(Some(30_000))]);
    assert_eq!(at(&queues, 1, "noqueue"), Ok((Span::from_millis(24), 30_000)));
    assert!(at(&queues, 1, "tbf").unwrap_err().contains("queue discipline"));
    assert!(at(&queues, 4, "noqueue").is_err(), "it is silent");
    queues.tell(Time::ZERO + Span::from_secs(5), 3, &[told(None)]);
    assert!(at(&queues, 5, "noqueue").is_err(), "an older kernel or another driver");
}

/// What debugfs shows is in force from the next second on, and what is not bounded any more is left to nobody.
#[test]
fn downloads_are_held_again_when_aql_is_switched_off() {
    let folder = tempfile::tempdir().unwrap();
    let phy = folder.path().join("phy0");
    std::fs::create_dir(&phy).unwrap();
    let mut levers = above_flow_queues("", false, folder.path());
    let mut second = 0;
    let mut with = |file: &str, text: &str| {
        std::fs::write(phy.join(file), text).unwrap();
        second += 1;
        levers.radios.watch(Time::ZERO + Span::from_secs(second));
        levers.fair_queue(3)
    };
    assert_eq!(with("aql_threshold", "12000\n"), Ok(Span::from_millis(12)));
    assert!(with("aql_enable", "0\n").is_err_and(|why| why.contains("switched off")));
    assert!(with("aql_enable", "1\n").is_ok());
}

#[test]
fn only_what_is_set_on_the_machine_takes_a_guard() {
    let config = Config::default();
    assert_eq!(config.levers_in_force(), [Lever::Class]);
    assert!(!needs_guard(&config));
    for text in ["levers = \"auto\"", "mac = \"auto\"", "mac_queue = 100"] {
        let config = Config::parse(text, "x").unwrap();
        assert!(needs_guard(&config), "{text}");
        assert!(!needs_guard(&Config { dry_run: true, ..config }), "{text}");
    }
}

use super::*;

/// A way of 20 Mbit/s in front of which packets wait 40 ms, `own` bytes of them in the access point's own queue.
fn place(own: impl Iterator<Item = u64>) -> (Option<Place>, usize) {
    let mut way = Way::new(Direction::ToStation, false);
    way.on_busy(Neck::Here, 125_000.0, 0.05);
    let seen = Seen { local: Some((0.04, 0.04)), ..Seen::default() };
    let mut lines = 0;
    for backlog in own {
        way.locate(&seen, Some(backlog), 0.05);
        way.find(Neck::Here, 0.05);
        lines += usize::from(way.place_news(&seen).is_some());
    }
    (way.place, lines)
}

#[test]
fn what_waits_in_our_own_queue_does_not_wait_in_the_firmware() {
    assert_eq!(place([90_000].into_iter().cycle().take(60)).0, Some(Place::AccessPoint));
    assert_eq!(place([20_000].into_iter().cycle().take(60)).0, Some(Place::Firmware));
}

#[test]
fn a_queue_that_is_full_and_empty_by_turns_stands_in_one_place() {
    let (found, lines) = place([0, 180_000].into_iter().cycle().take(400));
    assert_eq!(found, Some(Place::AccessPoint));
    assert!(lines <= 2, "{lines} lines");
}

/// A way whose line carries 20 Mbit/s, and whose flows use it.
fn full_line() -> Way {
    let mut way = Way::new(Direction::ToRemote, false);
    way.on_busy(Neck::Line, 125_000.0, 0.05);
    way.used = 1.0;
    way
}

#[test]
fn a_queue_of_the_line_that_is_never_empty_is_drained() {
    let bound = Span::from_millis(10);
    let full = Seen { remote: Some((0.006, 0.006)), arrived: 125_000.0, held: 1, rtt: 0.05, ..Seen::default() };
    let after = |seconds: u32, empty_at: Option<u32>| {
        let mut way = full_line();
        for interval in 0..seconds * 20 {
            let is_empty = empty_at.is_some_and(|at| interval == at * 20);
            way.steer(&Seen { remote: if is_empty { Some((0.0, 0.0)) } else { full.remote }, ..full }, bound, 0.05);
        }
        way.boost
    };
    let (four, six) = (after(4, None), after(6, None));
    assert!(four > START_BOOST && six < four, "what waits is less than the bound, until it has stood: {four} {six}");
    assert!(after(6, Some(4)) > six, "one that was empty is left alone");
}

#[test]
fn a_line_that_is_known_to_carry_more_is_not_full_unless_half_the_windows_do_not_help() {
    let mut way = full_line();
    assert!(way.line_carries_more(60_000.0, 0.05) && !way.line_carries_more(120_000.0, 0.05));
    way.boost = BOOST.0;
    assert!(!way.line_carries_more(60_000.0, 0.05));
}

#[test]
fn the_bound_counts_packets_of_the_stations_that_move() {
    let mut way = Way::new(Direction::ToStation, false);
    way.on_busy(Neck::Here, 125_000.0, 0.05);
    let bound = |way: &Way| way.bound(&Params::learning()).as_millis_f64();
    assert!((bound(&way) - 2.4).abs() < 0.01, "four packets at 20 Mbit/s");
    way.mix = 8.0;
    assert!((bound(&way) - 19.2).abs() < 0.01, "of a station whose bytes cost eight times as much");
}

#[test]
fn more_than_a_guess_is_tried_while_nothing_waits_and_not_said() {
    let mut way = Way::new(Direction::ToStation, true);
    way.air.on_train(25_000.0, 0.01);
    let quiet = Seen { local: Some((0.0, 0.0)), held: 1, active: 1, rtt: 0.05, ..Seen::default() };
    (0..40).for_each(|_| way.steer(&quiet, Span::from_millis(2), 0.05));
    let (tried, shown) = (way.capacity().unwrap().as_mbps_f64(), way.shown().unwrap().as_mbps_f64());
    assert!((tried - 25.0).abs() < 0.01 && (shown - 20.0).abs() < 0.01, "{tried} {shown}");
    way.on_busy(Neck::Here, 125_000.0, 0.05);
    assert!((way.capacity().unwrap().as_mbps_f64() - 20.0).abs() < 0.01, "what was measured is");
}

#[test]
fn what_is_tried_grows_by_no_more_than_queues_for_ten_milliseconds_before_it_is_seen() {
    let tried = |rtt: f64| {
        let mut way = Way::new(Direction::ToStation, true);
        way.air.on_train(25_000.0, 0.01);
        let quiet = Seen { local: Some((0.0, 0.0)), held: 1, active: 1, rtt, ..Seen::default() };
        // Two round trips, of which the first only shows that nothing waits.
        (0..=(2.0 * rtt / 0.01) as u32).for_each(|_| way.steer(&quiet, Span::from_millis(2), 0.01));
        way.capacity().unwrap().as_mbps_f64() / 20.0 - 1.0
    };
    let (short, long) = (tried(0.04), tried(0.2));
    assert!(short > 0.15 && (0.03..0.06).contains(&long), "{short} {long}");
}

#[test]
fn an_answer_from_the_one_half_does_not_say_that_the_other_is_empty() {
    let mut way = Way::new(Direction::ToStation, false);
    way.on_busy(Neck::Here, 125_000.0, 0.05);
    let bound = Span::from_millis(2);
    let both = Seen {
        local: Some((0.2, 0.2)),
        remote: Some((0.0, 0.0)),
        arrived: 125_000.0,
        held: 1,
        rtt: 0.05,
        ..Seen::default()
    };
    let far = Seen { local: None, ..both };
    let step = |way: &mut Way, seen: &Seen| {
        way.watch(seen, bound, 0.05);
        way.steer(seen, bound, 0.05);
        way.queue.as_secs_f64()
    };
    assert!((step(&mut way, &both) - 0.2).abs() < 1e-9);
    let boost = way.boost;
    (0..4).for_each(|_| assert!((step(&mut way, &far) - 0.2).abs() < 1e-9, "for one and a half round trips"));
    assert!(way.boost < boost);
    (0..60).for_each(|_| _ = step(&mut way, &far));
    assert!(way.queue == Span::ZERO, "who was not asked for so long knows nothing: {}", way.queue);
}

#[test]
fn the_trains_of_flows_that_begin_together_show_the_line() {
    let line = |active: usize, seconds: f64, rtt: f64| {
        let mut way = Way::new(Direction::ToStation, true);
        way.on_trains(&Seen { came: (60_000.0, seconds), active, rtt, ..Seen::default() }, 0.05);
        way.line.capacity().map(|line| line.as_mbps_f64())
    };
    assert!(line(4, 0.024, 0.04).is_some_and(|mbps| (mbps - 20.0).abs() < 0.01), "ten packets of each of four");
    assert_eq!(line(1, 0.024, 0.04), None, "one flow may have been paced");
    assert_eq!(line(16, 0.024, 0.03), None, "as long as most of a round trip: acknowledgments may pace it");
}

#[test]
fn who_waits_for_so_long_while_data_come_waits_in_a_queue() {
    let stands = |wait: f64, gap: f64| {
        let mut way = Way::new(Direction::ToStation, true);
        let seen = Seen { local: Some((wait, wait)), gap, arrived: 60_000.0, active: 16, rtt: 0.01, ..Seen::default() };
        way.watch(&seen, Span::from_millis(2), 0.05);
        way.stands[0] > 0.0
    };
    assert!(stands(0.01, 0.03) && !stands(0.005, 0.03) && !stands(0.01, 0.3));
}

#[test]
fn what_is_left_over_of_a_longer_train_does_not_show_the_line() {
    let mut way = Way::new(Direction::ToStation, true);
    let train = |way: &mut Way, bytes: f64, seconds: f64| {
        way.on_trains(&Seen { came: (bytes, seconds), active: 2, rtt: 0.2, ..Seen::default() }, 0.2);
        way.line.capacity().map(|line| line.as_mbps_f64())
    };
    assert_eq!(train(&mut way, 55_500.0, 0.11), None, "a third of a round trip: the sender's pace");
    assert_eq!(train(&mut way, 10_500.0, 0.02), None, "and its last packets");
    assert!(train(&mut way, 100_000.0, 0.04).is_some_and(|mbps| (mbps - 20.0).abs() < 0.01), "more at once than ever");
}

#[test]
fn what_the_other_way_takes_of_a_busy_air_is_not_missing() {
    let boost = |busy: bool| {
        let mut way = Way::new(Direction::ToRemote, false);
        way.on_busy(Neck::Here, 125_000.0, 0.05);
        // A quarter of the hop is its share, and it has that.
        way.given = Some(BitRate::mbps(5));
        let seen = Seen { local: Some((0.001, 0.0)), arrived: 31_250.0, held: 1, rtt: 0.05, ..Seen::default() };
        for _ in 0..40 {
            way.note_busy(busy, 0.05);
            way.steer(&seen, Span::from_millis(2), 0.05);
        }
        way.boost
    };
    assert!(boost(true) < 1.5 && boost(false) > 3.0, "{} {}", boost(true), boost(false));
}

#[test]
fn what_a_way_has_beyond_its_shares_it_gives_back_while_the_other_lacks() {
    let boost = |others_lack: bool| {
        let mut way = Way::new(Direction::ToRemote, false);
        way.on_busy(Neck::Here, 125_000.0, 0.05);
        (way.given, way.others_lack) = (Some(BitRate::mbps(5)), others_lack);
        let seen = Seen { local: Some((0.002, 0.002)), arrived: 62_500.0, held: 1, rtt: 0.05, ..Seen::default() };
        for _ in 0..20 {
            way.note_busy(true, 0.05);
            way.steer(&seen, Span::from_millis(2), 0.05);
        }
        way.boost
    };
    assert!(boost(true) < 0.6 && boost(false) > 1.0, "{} {}", boost(true), boost(false));
}

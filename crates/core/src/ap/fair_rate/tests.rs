use super::*;

const DT: f64 = 0.05;

/// Windows over a path: what is in flight beyond what fits waits. What windows are is seen a round trip later.
struct Plant {
    capacity: f64,
    base_rtt: f64,
    /// Of each flow, at most, bit/s; infinite: greedy.
    limits: Vec<f64>,
    /// Windows that are in flight, s and bit.
    told: Vec<(f64, f64)>,
    time: f64,
    /// UDP, bit/s.
    inelastic: f64,
    noise: f64,
    /// What stands hides in the path.
    hides: bool,
}

impl Plant {
    fn new(capacity: f64, base_rtt: f64, flows: usize) -> Self {
        let limits = vec![f64::INFINITY; flows];
        Self { capacity, base_rtt, limits, told: vec![], time: 0.0, inelastic: 0.0, noise: 0.0, hides: false }
    }

    /// What R gives every flow, one round trip and queue ago.
    fn window(&self, queue: f64) -> f64 {
        let then = self.time - self.base_rtt - queue;
        let old = self.told.iter().rev().find(|(at, _)| *at <= then).or(self.told.first());
        old.map_or(0.0, |(_, rate)| rate * self.base_rtt)
    }

    fn step(&mut self, law: &Law, fair: &mut FairRate, packet_trains: f64) -> Observation {
        self.time += DT;
        let window = self.window(fair.queue());
        let left = (self.capacity - self.inelastic).max(1.0);
        let wants: Vec<f64> = self.limits.iter().map(|limit| (window / self.base_rtt).min(*limit)).collect();
        let greedy = self.limits.iter().filter(|limit| **limit * self.base_rtt > window).count();
        let offered: f64 = wants.iter().sum();
        let others: f64 = self.limits.iter().filter(|limit| **limit * self.base_rtt <= window).sum();
        // What does not fit waits, of those that have windows: W / C - d.
        let queue =
            if offered > left { greedy as f64 * window / (left - others).max(1.0) - self.base_rtt } else { 0.0 };
        let noisy = (queue.max(0.0) + self.noise).min(5.0);
        let x = Observation {
            queue: Some((noisy, noisy)),
            target: law.queue_target.max(law.queue_packets * 12_000.0 / self.capacity),
            base_rtt: self.base_rtt,
            delivered: offered.min(left) + self.inelastic,
            brought: offered + self.inelastic,
            capacity: self.capacity,
            stood: queue > 0.0,
            hides: self.hides,
            packet_trains,
            filling: greedy,
            served: DT,
            window_limited: greedy,
            elastic: greedy.max(1),
            parts: greedy.max(1),
            most: wants.iter().copied().fold(0.0, f64::max).min(left),
            widest: window / self.base_rtt,
            inelastic: self.inelastic,
            ..Observation::default()
        };
        fair.step(&x, law, DT);
        self.told.push((self.time, fair.rate().unwrap_or(0.0)));
        x
    }

    /// The last observation of so many seconds.
    fn run(&mut self, law: &Law, fair: &mut FairRate, seconds: f64) -> Observation {
        let steps = (seconds / DT) as usize;
        (0..steps.max(1)).map(|_| self.step(law, fair, self.capacity)).last().unwrap_or_default()
    }
}

#[test]
fn the_queue_comes_to_its_target_whatever_path_capacity_and_number_of_flows() {
    let law = Law::default();
    for base_rtt in [0.005, 0.02, 0.08, 0.3] {
        for capacity in [1e6, 2e7, 1e9] {
            for flows in [1, 4, 64] {
                let (mut plant, mut fair) = (Plant::new(capacity, base_rtt, flows), FairRate::default());
                let tau = base_rtt + DT;
                let x = plant.run(&law, &mut fair, 20.0 * tau + 2.0);
                assert!(
                    (fair.queue() - x.target).abs() <= x.target,
                    "{capacity} bit/s, {base_rtt} s, {flows}: {} s waits, {} s should",
                    fair.queue(),
                    x.target
                );
                assert!(x.delivered >= 0.97 * capacity, "{capacity} {base_rtt} {flows}: {x:?}");
            }
        }
    }
}

/// Two that begin and are not limited yet, of which one tells of no window, may have what the largest has and half of what is left, and when one
/// is limited the law holds.
#[test]
fn who_begins_may_have_an_equal_part_of_what_is_left() {
    let law = Law::default();
    let mut fair = FairRate::default();
    for _ in 0..200 {
        fair.step(&Observation { target: law.queue_target, base_rtt: 0.04, ..Observation::default() }, &law, DT);
    }
    let begins = Observation {
        queue: Some((0.0, 0.0)),
        target: law.queue_target,
        base_rtt: 0.04,
        capacity: 2e7,
        packet_trains: 2e7,
        delivered: 6e6,
        most: 4e6,
        filling: 1,
        unlimited: 1,
        elastic: 2,
        parts: 2,
        ..Observation::default()
    };
    let modes: Vec<_> = (0..20)
        .map(|_| {
            fair.step(&begins, &law, DT);
            fair.mode
        })
        .collect();
    assert_eq!((modes[0], &modes[1..]), (Mode::Steady, &[Mode::Released; 19][..]));
    let rate = fair.rate().unwrap();
    assert!((rate - 1.1e7).abs() < 1e5, "{rate}");
    fair.step(&Observation { window_limited: 1, ..begins }, &law, DT);
    assert_eq!(fair.mode, Mode::Steady);
}

/// Half of the range of the queue's last ten round trips, in targets.
fn swing(gain: f64) -> f64 {
    let law = Law { gain, probe: 0.0, collapse: 100.0, ..Law::default() };
    let (mut plant, mut fair) = (Plant::new(2e7, 0.2, 4), FairRate::default());
    plant.run(&law, &mut fair, 10.0);
    let queues: Vec<f64> = (0..60)
        .map(|_| {
            plant.step(&law, &mut fair, 2e7);
            fair.queue()
        })
        .collect();
    let (least, most) = queues.iter().fold((f64::MAX, 0.0f64), |(a, b), q| (a.min(*q), b.max(*q)));
    (most - least) / 2.0 / 0.0024
}

#[test]
fn it_is_stable_at_its_gain_and_not_beyond_the_margin() {
    let (at_half, at_two_and_a_half) = (swing(0.5), swing(2.5));
    assert!(at_half < 0.5, "{at_half}");
    assert!(at_two_and_a_half > 4.0 * at_half.max(0.25), "{at_two_and_a_half}");
}

#[test]
fn work_is_conserved_beside_any_that_need_less() {
    let law = Law::default();
    for small in [0, 1, 5, 60] {
        let (mut plant, mut fair) = (Plant::new(2e7, 0.04, 1 + small), FairRate::default());
        plant.limits[1..].fill(8_000.0);
        plant.run(&law, &mut fair, 5.0);
        let greedy = fair.rate().unwrap_or(0.0).min(2e7 - 8_000.0 * small as f64);
        assert!(greedy >= 0.97 * (2e7 - 8_000.0 * small as f64), "{small}: {greedy}");
    }
}

#[test]
fn an_idle_flow_more_changes_nobodys_rate() {
    let law = Law::default();
    let rate = |idle: usize| {
        let (mut plant, mut fair) = (Plant::new(2e7, 0.04, 2 + idle), FairRate::default());
        plant.limits[2..].fill(1_000.0);
        plant.run(&law, &mut fair, 10.0);
        fair.rate().unwrap_or(0.0)
    };
    let (without, with) = (rate(0), rate(1));
    assert!((with / without - 1.0).abs() < 0.01, "{without} -> {with}");
}

#[test]
fn who_cannot_be_held_pushes_nobody_under_an_equal_part() {
    let law = Law::default();
    let (mut plant, mut fair) = (Plant::new(2e7, 0.04, 2), FairRate::default());
    // 0.9 C of UDP, and a queue that no window can shorten.
    (plant.inelastic, plant.noise) = (1.8e7, 0.2);
    plant.run(&law, &mut fair, 20.0);
    assert!(fair.rate().unwrap_or(0.0) >= 0.99e6, "{:?}", fair.rate());
}

#[test]
fn a_fall_to_a_tenth_drains_within_what_was_in_flight_and_two_tau() {
    let law = Law::default();
    for base_rtt in [0.02, 0.1] {
        let (mut plant, mut fair) = (Plant::new(1e8, base_rtt, 1), FairRate::default());
        plant.run(&law, &mut fair, 10.0);
        plant.capacity = 1e7;
        // The queue is what was in flight: 9 d; so long it takes to drain.
        plant.run(&law, &mut fair, 9.0 * base_rtt + 2.0 * (10.0 * base_rtt + DT) + 0.2);
        assert!(fair.queue() < 0.02, "{base_rtt}: {}", fair.queue());
    }
}

#[test]
fn ten_times_the_capacity_is_found_in_a_few_doublings() {
    let law = Law::default();
    let (mut plant, mut fair) = (Plant::new(1e7, 0.04, 1), FairRate::default());
    plant.run(&law, &mut fair, 10.0);
    plant.capacity = 1e8;
    plant.run(&law, &mut fair, 20.0 * (0.04 + DT));
    assert!(fair.rate().unwrap_or(0.0) > 0.9e8, "{:?}", fair.rate());
}

#[test]
fn without_samples_it_stays() {
    let law = Law::default();
    let (mut plant, mut fair) = (Plant::new(2e7, 0.04, 2), FairRate::default());
    let x = plant.run(&law, &mut fair, 5.0);
    let before = fair.rate();
    (0..100).for_each(|_| fair.step(&Observation { queue: None, ..x }, &law, DT));
    assert_eq!(fair.rate(), before);
}

#[test]
fn with_nobody_held_it_never_rises_above_what_is_carried() {
    let law = Law::default();
    let mut fair = FairRate::default();
    let x = Observation {
        queue: Some((0.0, 0.0)),
        target: 0.002,
        base_rtt: 0.04,
        capacity: 2e7,
        packet_trains: 2e7,
        filling: 1,
        elastic: 1,
        parts: 1,
        most: 1e6,
        delivered: 1e6,
        ..Observation::default()
    };
    (0..400).for_each(|_| fair.step(&x, &law, DT));
    assert_eq!(fair.mode, Mode::Released);
    assert!(fair.rate().is_some_and(|rate| rate <= 2.2e7), "{:?}", fair.rate());
}

#[test]
fn a_queue_that_hides_in_the_path_is_drained_now_and_then() {
    let law = Law::default();
    let (mut plant, mut fair) = (Plant::new(2e7, 0.04, 2), FairRate::default());
    plant.run(&law, &mut fair, 3.0);
    // Half a target is never empty.
    (plant.hides, plant.noise) = (true, 0.0012);
    let modes: Vec<Mode> = (0..200)
        .map(|_| {
            plant.step(&law, &mut fair, 2e7);
            fair.mode
        })
        .collect();
    let drains = modes.iter().filter(|mode| **mode == Mode::Drain).count();
    assert!((1..=60).contains(&drains) && modes.last() == Some(&Mode::Steady), "{drains} of 200");
}

#[test]
fn every_parameter_can_be_set_by_its_name_and_no_other() {
    assert!(Law::PARAMETERS.len() <= 30, "{}", Law::PARAMETERS.len());
    for parameter in Law::PARAMETERS {
        let mut law = Law::default();
        let middle = f64::midpoint(parameter.range.0, parameter.range.1);
        assert_eq!(law.set(parameter.name, middle), Ok(()), "{}", parameter.name);
        assert!(law.set(parameter.name, parameter.range.1 * 2.0 + 1.0).is_err());
        assert!((parameter.range.0..=parameter.range.1).contains(&parameter.without), "{}", parameter.name);
    }
    assert!(Law::default().set("boost", 1.0).is_err_and(|why| why.contains("gain")));
}

#[test]
fn what_has_no_window_has_what_a_window_brings() {
    let law = Law::default();
    for (base_rtt, flows) in [(0.02, 2), (0.08, 8)] {
        let (mut plant, mut fair) = (Plant::new(2e7, base_rtt, flows), FairRate::default());
        plant.run(&law, &mut fair, 10.0);
        let (windows, datagrams) = (2e7 / flows as f64, fair.rate_without_window().unwrap_or(0.0));
        assert!((0.95..1.1).contains(&(datagrams / windows)), "{datagrams} beside {windows} bit/s");
    }
}

#[test]
fn a_drain_gives_back_what_it_took() {
    let law = Law::default();
    let stands = Observation {
        queue: Some((0.002, 0.002)),
        target: 0.002,
        base_rtt: 0.04,
        delivered: 2e7,
        capacity: 2e7,
        hides: true,
        filling: 2,
        window_limited: 2,
        elastic: 2,
        parts: 2,
        most: 1e7,
        widest: 1.1e7,
        ..Observation::default()
    };
    let mut fair = FairRate { mode: Mode::Steady, rate: 1.1e7, ..FairRate::default() };
    for _ in 0..200 {
        fair.step(&stands, &law, DT);
        if fair.mode == Mode::Drain {
            break;
        }
    }
    (0..8).for_each(|_| fair.step(&stands, &law, DT));
    assert!(fair.mode == Mode::Drain && fair.rate < 0.95e7, "{fair:?}");
    let empty = Observation { queue: Some((0.0, 0.0)), delivered: 1.5e7, ..stands };
    fair.step(&empty, &law, DT);
    assert!(fair.mode == Mode::Steady && fair.rate >= 1.04e7, "{fair:?}");
}

/// Between real kernels four downloads that began together queued for 31 ms: each was advertised all that was left.
#[test]
fn those_that_grow_together_are_advertised_no_more_than_is_left() {
    let law = Law::default();
    let advertised = |growing: usize| {
        let mut fair = FairRate { mode: Mode::Released, rate: 5e7, ..FairRate::default() };
        let x = Observation {
            queue: Some((0.0, 0.0)),
            target: 0.002,
            base_rtt: 0.04,
            capacity: 5e7,
            delivered: 1e7,
            most: 1e7 / growing as f64,
            filling: growing,
            elastic: growing,
            parts: growing,
            ..Observation::default()
        };
        (0..20).for_each(|_| fair.step(&x, &law, DT));
        fair.rate().unwrap() * growing as f64
    };
    for growing in [1, 4, 16] {
        assert!((advertised(growing) / 5e7 - 1.0).abs() < 0.01, "{growing}: {}", advertised(growing));
    }
}

#[test]
fn a_rate_that_holds_nobody_falls_to_what_the_largest_flow_has_as_soon_as_a_queue_stands() {
    // Trains came through a token bucket at 2 Gbit/s; 89 Mbit/s are delivered, and 20 ms wait.
    let mut fair = FairRate { mode: Mode::Released, rate: 1e9, ..FairRate::default() };
    let x = Observation {
        queue: Some((0.02, 0.01)),
        target: 0.002,
        base_rtt: 0.026,
        capacity: 8.9e7,
        measured: true,
        delivered: 8.9e7,
        most: 3.2e7,
        filling: 2,
        elastic: 3,
        parts: 3,
        ..Observation::default()
    };
    fair.step(&x, &Law::default(), DT);
    assert!(fair.rate().is_some_and(|rate| (8.9e7 / 3.0..=3.2e7).contains(&rate)), "{:?}", fair.rate());
}

/// Five windows that have grown bring 1.5 C between them in a round trip from now; 0.6 C has arrived, and there is no queue yet.
#[test]
fn what_windows_in_force_will_bring_is_promised_before_it_has_arrived() {
    let law = Law::default();
    let after = |brought: f64| {
        let mut fair = FairRate { mode: Mode::Steady, rate: 8e6, brought: 1.2e7, ..FairRate::default() };
        let x = Observation {
            queue: Some((0.0, 0.0)),
            target: 0.002,
            base_rtt: 0.09,
            capacity: 2e7,
            delivered: 1.2e7,
            brought,
            held: 0.5 * brought,
            advertised: 2e6,
            filling: 5,
            window_limited: 3,
            elastic: 5,
            parts: 5,
            most: 2e6,
            widest: 7e6,
            ..Observation::default()
        };
        (0..2).for_each(|_| fair.step(&x, &law, DT));
        fair.rate
    };
    assert!(after(3e7) < 7.7e6, "{}", after(3e7));
    assert!(after(1.2e7) >= 8e6, "room is left: {}", after(1.2e7));
}

/// So many windows that are all held bring this, bit/s, and no queue is seen.
fn held(flows: usize, (capacity, base_rtt): (f64, f64), brought: f64, delivered: f64) -> Observation {
    Observation {
        queue: Some((0.0, 0.0)),
        target: 0.002,
        base_rtt,
        capacity,
        delivered,
        brought,
        held: brought,
        filling: flows,
        window_limited: flows,
        elastic: flows,
        parts: flows,
        most: delivered / flows as f64,
        widest: brought / flows as f64,
        ..Observation::default()
    }
}

/// There was no queue while seven windows brought half of C; now they bring 1.3 C, grow no more, and 0.6 C have arrived.
#[test]
fn that_small_windows_left_no_queue_says_nothing_of_what_those_bring_that_have_grown() {
    let law = Law::default();
    let changes = |dispersed: bool| {
        let before = 1.04e8 / 7.0;
        let mut fair = FairRate { mode: Mode::Steady, rate: before, ..FairRate::default() };
        let x = |brought, delivered| Observation { dispersed, ..held(7, (8e7, 0.07), brought, delivered) };
        (0..40).for_each(|_| fair.step(&x(4e7, 4e7), &law, DT));
        fair.rate = before;
        fair.step(&x(1.04e8, 5e7), &law, DT);
        fair.rate / before
    };
    assert!(changes(true) < 1.0, "{}", changes(true));
    assert!(changes(false) >= 1.0, "the pace of a sender is no bound: {}", changes(false));
}

#[test]
fn beyond_a_measured_capacity_more_is_tried_once_what_windows_bring_has_come() {
    let law = Law::default();
    let after = |measured: bool, taus: f64| {
        let mut fair = FairRate { mode: Mode::Steady, rate: 1e7, ..FairRate::default() };
        let x = Observation { measured, ..held(1, (1e7, 0.05), 1e7, 1e7) };
        (0..(taus * 0.1 / DT).round() as u32).for_each(|_| fair.step(&x, &law, DT));
        fair.rate / 1e7
    };
    assert!(after(true, 3.0) < 1.15 && after(false, 3.0) > 1.3, "{} and {}", after(true, 3.0), after(false, 3.0));
    assert!(after(true, 8.0) > 1.4, "nor does it stay below a C that has grown: {}", after(true, 8.0));
}

#[test]
fn what_was_advertised_counts_until_it_should_have_arrived() {
    let law = Law::default();
    let mut fair = FairRate { mode: Mode::Steady, rate: 1e7, ..FairRate::default() };
    // One is held; the other has been advertised more than is left, and does not take it.
    let x = Observation {
        queue: Some((0.0, 0.0)),
        target: 0.002,
        base_rtt: 0.04,
        capacity: 2e7,
        delivered: 1e7,
        brought: 1e7,
        advertised: 3e7,
        filling: 2,
        window_limited: 1,
        elastic: 2,
        parts: 2,
        most: 1e7,
        widest: 1e7,
        ..Observation::default()
    };
    (0..4).for_each(|_| fair.step(&x, &law, DT));
    assert!(fair.rate < 1.01e7, "{fair:?}");
    (0..40).for_each(|_| fair.step(&x, &law, DT));
    assert!(fair.rate > 1.9e7, "{fair:?}");
}

#[test]
fn a_first_step_beyond_what_is_carried_leaves_less_than_the_target() {
    let law = Law::default();
    for base_rtt in [0.002, 0.005, 0.01, 0.02] {
        let mut fair = FairRate { mode: Mode::Steady, rate: 2e7, ..FairRate::default() };
        let x = Observation {
            queue: Some((0.0, 0.0)),
            target: 0.002,
            base_rtt,
            capacity: 2e7,
            delivered: 2e7,
            brought: 2e7,
            filling: 1,
            window_limited: 1,
            elastic: 1,
            parts: 1,
            most: 2e7,
            widest: 2e7,
            ..Observation::default()
        };
        fair.step(&x, &law, DT);
        let waits = (fair.rate / 2e7 - 1.0) * base_rtt;
        assert!(waits < x.target, "{base_rtt}: {waits} s");
    }
}

/// Right edges that keep a pace: the queue integrates what they bring beyond C. Queue and what is delivered after `seconds`, where C was learned
/// as `learned` of what it is.
fn paced(law: &Law, (capacity, base_rtt): (f64, f64), learned: f64, seconds: f64) -> (f64, f64, f64) {
    let (mut fair, mut told) = (FairRate::default(), Vec::new());
    let (mut queue, mut known, mut x) = (0.0f64, learned * capacity, Observation::default());
    for step in 0..(seconds / DT) as usize {
        let late = 1 + ((base_rtt + queue) / DT) as usize;
        let (window, pace) = told.get(step.saturating_sub(late)).copied().unwrap_or((known, known));
        let brings = f64::min(pace, window * base_rtt / (base_rtt + queue));
        let delivered = if queue > 0.0 { capacity } else { brings.min(capacity) };
        queue = (queue + (brings / capacity - 1.0) * DT).max(0.0);
        known = known.max(delivered);
        let rate = fair.rate().unwrap_or(known);
        x = Observation {
            queue: Some((queue, queue)),
            target: law.queue_target.max(law.queue_packets * 12_000.0 / capacity),
            base_rtt,
            delivered,
            usual: delivered,
            capacity: known,
            brought: rate,
            held: rate,
            packet_trains: known,
            both_ways: true,
            full: true,
            filling: 1,
            window_limited: 1,
            elastic: 1,
            parts: 1,
            most: delivered,
            widest: rate,
            ..Observation::default()
        };
        fair.step(&x, law, DT);
        told.push((fair.rate().unwrap_or(known), fair.pace(law).unwrap_or(known)));
    }
    (queue, x.target, x.delivered)
}

#[test]
fn what_is_paced_comes_to_the_target_and_finds_what_was_learned_too_low() {
    for capacity in [5e6, 5e7, 1e9] {
        for base_rtt in [0.005, 0.04, 0.2] {
            for learned in [0.5, 1.0] {
                let law = Law::default();
                let (queue, target, delivered) = paced(&law, (capacity, base_rtt), learned, 20.0);
                // What is tried beyond C is seen a round trip and an interval later.
                let tried = law.headroom * (base_rtt + DT);
                assert!(
                    queue < target + tried && delivered > 0.97 * capacity,
                    "{capacity} bit/s, {base_rtt} s, {learned}: {queue} s waits, {target} s should, {delivered} bit/s comes"
                );
            }
        }
    }
}

#[test]
fn what_is_tried_beyond_a_capacity_leaves_two_targets_before_it_is_seen() {
    let (law, mut fair) = (Law::default(), FairRate { mode: Mode::Steady, rate: 2e7, ..FairRate::default() });
    let x = Observation { measured: true, both_ways: true, ..held(1, (1e7, 0.05), 2e7, 1e7) };
    (0..40).for_each(|_| fair.step(&x, &law, DT));
    assert!(fair.found_no_queue());
    // Of 2 ms in 50 ms and an interval.
    assert!((fair.together / 1.04e7 - 1.0).abs() < 1e-9, "{} bit/s", fair.together);
}

#[test]
fn what_the_pace_let_through_windows_bring_without_it() {
    let law = Law::default();
    let mut fair = FairRate { mode: Mode::Steady, rate: 2e7, ..FairRate::default() };
    let x = Observation { measured: true, both_ways: true, ..held(1, (1e7, 0.05), 2e7, 1e7) };
    fair.step(&x, &law, DT);
    assert!(fair.rate > 1.9e7);
    let paced = fair.pace(&law).expect("a pace");
    fair.leave_pace();
    assert!((fair.rate / paced - 1.0).abs() < 1e-9, "{} and {paced} bit/s", fair.rate);
    fair.leave_pace();
    assert!((fair.rate / paced - 1.0).abs() < 1e-9, "once");
}

/// What passes a token bucket at once is many times what it carries.
#[test]
fn a_rate_by_packet_trains_falls_with_what_they_show() {
    let (law, mut fair) = (Law::default(), FairRate::default());
    let mut shown = |packet_trains| {
        // Windows that grow by themselves: nobody is held.
        let x = Observation {
            queue: Some((0.0, 0.0)),
            target: 0.005,
            base_rtt: 0.1,
            delivered: 5e6,
            brought: 5e6,
            capacity: packet_trains,
            packet_trains,
            filling: 3,
            elastic: 3,
            parts: 3,
            most: 2e6,
            ..Observation::default()
        };
        fair.step(&x, &law, DT);
        fair.rate().expect("it is known")
    };
    let before = shown(1e9);
    let after = shown(60e6);
    assert!(before > 300e6 && after < 24e6, "{before:.0} and {after:.0}");
}

/// Senders that leave their windows empty for a moment, as BBR does to measure the path, leave C to whoever fills his; they come back together.
#[test]
fn a_rate_that_holds_nobody_is_no_more_than_what_the_largest_has_once_a_queue_shows() {
    let law = Law::default();
    let after = |unlimited| {
        let mut fair = FairRate { mode: Mode::Steady, rate: 1e8, ..FairRate::default() };
        let back = Observation {
            queue: Some((0.02, 0.012)),
            target: 0.005,
            base_rtt: 0.1,
            delivered: 1e8,
            usual: 1e8,
            brought: 1e8,
            capacity: 1e8,
            measured: true,
            elastic: 5,
            parts: 5,
            most: 2.1e7,
            unlimited,
            ..Observation::default()
        };
        fair.step(&back, &law, DT);
        fair.rate / 1e6
    };
    assert!((after(0) - 21.0).abs() < 2.1, "{:.1} Mbit/s", after(0));
    assert!(after(1) > 80.0, "nothing limits datagrams but R: {:.1} Mbit/s", after(1));
}

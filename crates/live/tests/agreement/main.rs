//! Rust, the C headers compiled for the host, and the program loaded into the kernel decide alike, byte for byte.

#[path = "../common/compile.rs"]
mod compile;
mod host;
mod loaded;
mod random;
#[path = "../common/runnable.rs"]
mod runnable;
mod traffic;
mod udp;

use std::collections::HashMap;

use lasthop_core::fastpath::layout::{Control, Counters, FlowKey, FlowState, HOPS, Half, Hop, Plan, Reason, UdpState};
use lasthop_core::fastpath::udp::{self as datagrams, Datagram, UdpVerdict, on_datagram};
use lasthop_core::fastpath::vectors::{self, Step};
use lasthop_core::fastpath::{self, Passage, Verdict, window};
use lasthop_core::packet::Direction;
use lasthop_core::units::{Span, Time};
use lasthop_core::wire::{self, Link, Merged, Parsed, flag};
use proptest::prelude::*;

use random::Random;
use traffic::{Crossing, Traffic};

/// Packets compared per run.
pub const PACKETS: u32 = 120_000;

/// The controller's whims change after so many packets.
pub const SPELL: u32 = 400;

const INVALID: Verdict = Verdict::Pass(Reason::Invalid);

/// Whose window updates somebody is to see to, for data of which direction, from when on, and what is before the IP header then.
pub type Asked = (FlowKey, Direction, Time, Vec<u8>);

/// The Rust side of the comparison.
#[derive(Default)]
pub struct Reference {
    /// What the controller says.
    pub control: Control,
    /// What was counted.
    pub counters: Counters,
    /// Every connection so far; with `opening` those that are assured.
    pub flows: HashMap<FlowKey, FlowState>,
    /// The others, where they live apart.
    pub opening: Option<HashMap<FlowKey, FlowState>>,
    /// Every UDP flow so far.
    pub udp: HashMap<FlowKey, UdpState>,
    /// What the program around the fast path asks for, where there is one.
    pub asks: Option<Vec<Asked>>,
    /// What the packet that passes has before its IP header; `None`: an Ethernet header with more than one tag, so that nobody is told like it.
    begins: Option<Vec<u8>>,
    /// Window updates so far.
    pub updates: u32,
}

/// What a packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kept {
    /// Of a TCP connection.
    Tcp(FlowKey),
    /// Of a UDP flow.
    Udp(FlowKey),
    /// Of neither.
    Not,
}

impl Reference {
    /// Passes a packet: the reason, and the flow it belongs to.
    pub fn pass(
        &mut self,
        frame: &mut [u8],
        link: Link,
        merged: Merged,
        (direction, (port, hop)): (Direction, (u32, u32)),
        now: Time,
    ) -> (Reason, Kept) {
        let parsed = wire::parse_merged(frame, link, merged);
        let is_ip = |at: &usize| matches!(frame.get(at - 2..*at), Some([8, 0] | [0x86, 0xdd]));
        self.begins = match link {
            Link::Ip => Some(Vec::new()),
            // One tag at most.
            Link::Ethernet => [14, 18].into_iter().find(is_ip).map(|at| frame[..at].to_vec()),
        };
        let (reason, key) = match &parsed {
            Parsed::Tcp(tcp) => {
                let key = wire::flow_key(tcp, direction);
                let taken = tcp.has(flag::SYN | flag::RST | flag::ACK);
                let verdict = match wire::is_intact(frame, tcp) {
                    _ if !taken => Verdict::Pass(Reason::NoAck),
                    true => self.decide(key, Passage { direction, port, hop }, tcp, now),
                    false => Verdict::Pass(Reason::Invalid),
                };
                if let Verdict::Rewrite { window } = verdict {
                    assert!(window < tcp.window && window > 0, "only ever lower, never 0");
                    let valid = wire::checksum_is_valid(frame, tcp);
                    wire::patch_window(frame, tcp, window);
                    assert_eq!(wire::checksum_is_valid(frame, tcp), valid);
                }
                (verdict.reason(), Kept::Tcp(key))
            }
            Parsed::Udp(udp) => self.datagram(frame, link, udp, (direction, (port, hop)), now),
            Parsed::Other(other) => (other.reason, Kept::Not),
        };
        fastpath::count(&mut self.counters, hop, direction, &parsed, reason);
        (reason, key)
    }
}

impl Reference {
    /// As `on_tcp` of `lasthop.bpf.c`.
    fn decide(&mut self, key: FlowKey, passage: Passage, tcp: &wire::TcpFields, now: Time) -> Verdict {
        if self.opening.is_none() {
            let state = self.flows.entry(key).or_insert_with(|| FlowState::new(&self.control, now));
            return fastpath::on_packet(state, &mut self.control, passage, tcp, now);
        }
        let living = self.flows.get(&key).copied().map(|state| self.decide_one(state, passage, tcp, now));
        match living {
            Some((mut state, verdict)) if verdict != INVALID => {
                if tcp.has(flag::ACK) {
                    self.ask(key, passage.direction.reverse(), &mut state, now);
                }
                self.flows.insert(key, state);
                verdict
            }
            _ => self.on_stranger(key, passage, tcp, now),
        }
    }

    /// Likewise.
    fn on_stranger(&mut self, key: FlowKey, passage: Passage, tcp: &wire::TcpFields, now: Time) -> Verdict {
        let known = self.opening.as_ref().and_then(|opening| opening.get(&key)).copied();
        let known = known.map(|state| self.decide_one(state, passage, tcp, now));
        if tcp.has(flag::SYN) && known.is_some_and(|(_, verdict)| verdict == INVALID) {
            return INVALID;
        }
        let (state, verdict) = known.filter(|(_, verdict)| *verdict != INVALID).unwrap_or_else(|| {
            let fresh = FlowState::new(&self.control, now);
            self.decide_one(fresh, passage, tcp, now)
        });
        let living = self.flows.get(&key);
        let opening = self.opening.as_mut().expect("they live apart");
        if state.assured == 0 {
            opening.insert(key, state);
            let changed = matches!(verdict, Verdict::Rewrite { .. });
            return if living.is_some() && !changed { INVALID } else { verdict };
        }
        opening.remove(&key);
        let begun = state.half.iter().all(|half| half.flags & Half::SYN_SEEN != 0);
        let takes_place = |living: &FlowState| match begun {
            true => living.last_seen_ns < state.first_seen_ns,
            false => now.since(Time::from_nanos(living.last_seen_ns)) > Span::from_secs(1),
        };
        if living.is_some_and(|living| !takes_place(living)) {
            return INVALID;
        }
        self.flows.insert(key, state);
        verdict
    }

    /// As `decide_tcp` of `lasthop.bpf.c`.
    fn decide_one(
        &mut self,
        mut state: FlowState,
        passage: Passage,
        tcp: &wire::TcpFields,
        now: Time,
    ) -> (FlowState, Verdict) {
        let verdict = fastpath::on_packet(&mut state, &mut self.control, passage, tcp, now);
        (state, verdict)
    }

    /// As `ask` of `lasthop.bpf.c`, for what goes in `data`.
    fn ask(&mut self, key: FlowKey, data: Direction, state: &mut FlowState, now: Time) {
        let Some(asks) = &mut self.asks else { return };
        if data == Direction::ToRemote && self.begins.is_none() {
            return;
        }
        let due = window::due(state, &self.control, data, now);
        let half = &mut state.half[data.index()];
        if let Some(due) = due.filter(|_| half.flags & Half::ASKED == half.answered) {
            half.flags ^= Half::ASKED;
            let link = if data == Direction::ToRemote { self.begins.clone().unwrap_or_default() } else { Vec::new() };
            asks.push((key, data, due, link));
        }
    }

    /// A window update of this flow, and when the next one is due.
    pub fn update(&mut self, key: &FlowKey, direction: Direction, now: Time) -> (Option<window::Update>, Option<Time>) {
        let state = self.flows.get_mut(key).expect("known");
        let update = window::update(state, &self.control, direction, now);
        self.updates += u32::from(update.is_some());
        (update, window::due(state, &self.control, direction, now))
    }

    fn datagram(
        &mut self,
        frame: &mut [u8],
        link: Link,
        udp: &wire::UdpFields,
        (direction, (port, hop)): (Direction, (u32, u32)),
        now: Time,
    ) -> (Reason, Kept) {
        let (key, datagram) = (wire::udp_flow_key(udp, direction), Datagram::of(udp));
        if udp.deep || !(datagram.is_full() || self.udp.contains_key(&key)) {
            return (Reason::Udp, Kept::Not);
        }
        let state = self.udp.entry(key).or_insert_with(|| datagrams::open(&datagram, now));
        (state.port, state.hop) = (port, hop);
        let verdict = on_datagram(state, &self.control, direction, &datagram, now);
        if verdict == UdpVerdict::Mark {
            assert!(wire::ecn::set_ce(frame, link), "its ends understand marks");
        }
        (verdict.reason(), Kept::Udp(key))
    }
}

/// The interface that packets pass, and the place of its hop.
pub const PORT: (u32, u32) = (1, 5);

/// What a controller may want, sensible or not.
pub fn whim(random: &mut Random) -> Plan {
    let wide = random.percent(10);
    Plan {
        clamp_bytes: if wide { random.pick(&[1_000_000, u32::MAX]) } else { random.pick(&[1, 3_000, 9_000, 50_000]) },
        floor_bytes: random.pick(if wide { &[5_840, 40_000, u32::MAX] } else { &[0, 600, 600] }),
        growth_bytes: random.pick(&[0, 300, 300, 3_000, 30_000, u32::MAX]),
        pace_bytes: random.pick(&[0, 0, 10_000, 3_000_000, u32::MAX]),
    }
}

/// What all connections may have together, sensible or not; what the fast path wrote stays.
pub fn whim_of_a_hop(hop: &mut Hop, random: &mut Random) {
    hop.depth_bytes = random.pick(&[0, 0, 1, 3_000, 30_000, 30_000, 200_000, u32::MAX]);
    hop.rate_bytes = random.pick(&[0, 1, 100_000, 3_000_000, 3_000_000, 50_000_000, u32::MAX]);
    hop.updates = random.pick(&[0, 0, 1, 1, 1, 4_000]);
}

/// Heartbeat age, dry run, epoch, hops and default plans of a spell; mostly an ordinary one.
pub fn spell(control: &mut Control, random: &mut Random) -> bool {
    control.epoch += 1;
    control.dry_run = u32::from(random.percent(4));
    control.silent_ns = u64::from(random.percent(10));
    control.tick_ns = random.pick(&[0, 1_000, 1_000_000, 1_000_000]);
    let nothing = random.percent(6);
    control.default_plan = [0, 1].map(|_| if nothing { Plan::default() } else { whim(random) });
    for d in 0..2 {
        whim_of_a_hop(&mut control.hops[0][d], random);
        let Hop { depth_bytes, rate_bytes, updates, .. } = control.hops[0][d];
        for hop in &mut control.hops[1..] {
            hop[d] = Hop { depth_bytes, rate_bytes, updates, ..hop[d] };
        }
    }
    !random.percent(4)
}

/// To the next packet, ns: now and then next to nothing, as in a train.
pub fn gap_ns(random: &mut Random) -> u64 {
    let most = random.pick(&[2_000, 100_000, 2_000_000, 2_000_000]);
    u64::from(random.below(most))
}

/// Trains came by each of them and arrived by some, in both directions.
pub fn assert_the_hops(hops: &[[Hop; 2]]) {
    for d in 0..2 {
        let each: Vec<_> = hops.iter().map(|hop| hop[d]).collect();
        eprintln!("{each:?}");
        assert!(each.iter().all(|hop| hop.came_bytes > 0 && hop.came_ns > 0), "{each:?}");
        assert!(each.iter().any(|hop| hop.served_bytes > 0 && hop.served_ns > 0), "{each:?}");
    }
    assert!(hops.iter().flatten().any(|hop| hop.bunches > 0 && hop.bunched_bytes > 0), "{hops:?}");
}

/// Window updates were sent.
pub fn assert_the_updates(reference: &Reference) {
    eprintln!("{} window updates", reference.updates);
    assert!(reference.updates > 100);
}

/// At least a fifth rewritten, a third refused, every reason met that packets can bring about.
pub fn assert_the_mix(counters: &Counters) {
    let total: u64 = counters.reason.iter().sum();
    let of = |reason: Reason| counters.reason[reason as usize];
    eprintln!("{total} packets:");
    for reason in Reason::ALL {
        eprintln!("  {reason:?}: {}", of(reason));
        // The table of the kernel always finds someone to evict; UDP has a test of its own.
        let elsewhere = matches!(reason, Reason::TableFull | Reason::Unwritable) || reason.is_of_a_virtual_queue();
        assert!(of(reason) > 0 || elsewhere, "{reason:?} was not met");
    }
    let refused = total - of(Reason::Rewritten) - of(Reason::WithinPlan);
    assert!(of(Reason::Rewritten) * 5 >= total, "less than a fifth rewritten");
    assert!(refused * 3 >= total, "less than a third refused");
}

/// When a host asks for a window update after a packet, and for which way; now and then.
pub fn whim_of_a_host(now: Time, random: &mut Random) -> Option<(Direction, Time)> {
    let direction = if random.percent(75) { Direction::ToStation } else { Direction::ToRemote };
    let later = random.pick(&[0, 1_000, 300_000, 3_000_000, 50_000_000]);
    random.percent(40).then(|| (direction, now + Span::from_nanos(u64::from(random.below(later + 1)))))
}

/// A connection of this traffic seldom has anything to tell: its windows are too wide, its holes too many. This one has, or nearly.
pub fn owe(state: &mut FlowState, direction: Direction, random: &mut Random) {
    state.half.iter_mut().for_each(|half| half.data_flags = Half::DATA_SEEN | half.data_flags & Half::LIMITED);
    let half = &mut state.half[direction.index()];
    let scale = random.pick(&[0, 0, 2, 7, 14]);
    half.flags |= Half::EDGE_KNOWN;
    if half.known_scale().is_some() {
        (half.flags, half.conntrack_scale) = (half.flags & !Half::SCALE_KNOWN, scale + 1);
    }
    half.plan =
        Plan { clamp_bytes: 50_000, pace_bytes: random.pick(&[0, 1, 10_000, 3_000_000, u32::MAX]), ..half.plan };
    half.acked = if random.percent(80) { half.delivered } else { half.acked };
    half.window = random.pick(&[0, 3_000, 50_000, 50_000, u32::MAX / 4]);
    half.edge = half.delivered.wrapping_add(random.below(half.window.max(1)));
    let most = random.pick(&[1, 5_000, 100_000]);
    half.credit = random.below(most);
    half.last_window = random.pick(&[0, 20, 3_000, 60_000, u16::MAX]);
}

/// When it is due, and what is sent, in Rust and in the host's C.
fn assert_updates_alike(reference: &mut Reference, key: &FlowKey, direction: Direction, now: Time) {
    let mut state = reference.flows[key];
    let due = host::due(&state, &reference.control, direction, now);
    // A host that looked ahead of the packets has paced the edge already.
    let paced = Time::from_nanos(state.half[direction.index()].paced_ns);
    assert_eq!(due, window::due(&state, &reference.control, direction, now), "{state:?}");
    let update = host::update(&mut state, &reference.control, direction, now);
    let next = host::due(&state, &reference.control, direction, now);
    assert_eq!((update, next), reference.update(key, direction, now), "{state:?}");
    assert_eq!(state, reference.flows[key]);
    assert!(update.is_none() || due == Some(now.max(paced)), "{due:?} {now:?}");
}

/// One packet through Rust and through the host's C, with all that it changes.
fn assert_alike(reference: &mut Reference, crossing: &Crossing, linear: usize, now: Time) -> Kept {
    let Crossing { direction, link, merged, frame } = crossing;
    let parsed = wire::parse_merged(frame, *link, *merged);
    // Some are known by one place of a hop, some by a number that is too large.
    let ports = match &parsed {
        Parsed::Tcp(tcp) => tcp.source.port ^ tcp.destination.port,
        _ => frame.len() as u16,
    };
    let at = [PORT, (9, 3), (21, 21)][usize::from(ports % 3)];
    let (state, udp) = match parsed {
        Parsed::Tcp(tcp) => (reference.flows.get(&wire::flow_key(&tcp, *direction)), None),
        Parsed::Udp(udp) => (None, reference.udp.get(&wire::udp_flow_key(&udp, *direction))),
        Parsed::Other(_) => (None, None),
    };
    let (state, udp) = (state.copied(), udp.copied().unwrap_or_default());
    let before = host::World {
        control: reference.control,
        state: state.unwrap_or_else(|| host::open(&reference.control, now.as_nanos())),
        counters: reference.counters,
        key: FlowKey::default(),
        udp,
    };
    let run = |linear: usize| {
        let (mut world, mut bytes) = (before, frame.clone());
        let reason = host::packet(&mut world, &mut bytes, linear, *merged, *link, (*direction, at), now.as_nanos());
        (reason, world, bytes)
    };
    let cut = run(linear);
    let whole = run(frame.len());
    assert!(cut == whole || (cut.0 == host::TOO_SHORT && cut.1 == before), "a cut frame decides otherwise");

    let mut bytes = frame.clone();
    let (reason, found) = reference.pass(&mut bytes, *link, *merged, (*direction, at), now);
    assert_eq!(whole.0, reason as i32, "{reason:?} {crossing:?}");
    assert_eq!(whole.2, bytes, "the packet {crossing:?}");
    assert_eq!(whole.1.counters, reference.counters);
    assert_eq!(whole.1.control, reference.control, "{reason:?} {crossing:?}");
    match found {
        Kept::Tcp(key) => {
            let state = reference.flows.get(&key).copied().unwrap_or(before.state);
            assert_eq!((whole.1.key, whole.1.state), (key, state), "{crossing:?}");
            // The program would try it as another connection's; here that one takes the place at times.
            if reason == Reason::Invalid && now.as_nanos().is_multiple_of(4) {
                let mut another = FlowState::new(&reference.control, now);
                for (half, before) in another.half.iter_mut().zip(&state.half) {
                    half.conntrack_scale = before.known_scale().map_or(0, |scale| scale + 1);
                }
                reference.flows.insert(key, another);
            }
        }
        Kept::Udp(key) => assert_eq!((whole.1.key, whole.1.udp), (key, reference.udp[&key]), "{crossing:?}"),
        Kept::Not => assert_eq!((whole.1.key, whole.1.udp), (FlowKey::default(), udp), "{crossing:?}"),
    }
    found
}

#[test]
fn the_headers_compiled_for_the_host_agree_with_rust() {
    let mut traffic = Traffic::new(1);
    let mut reference = Reference::default();
    let mut now = 5_000_000_000;
    let mut fresh = true;
    for number in 0..PACKETS {
        let random = &mut traffic.random;
        now += 1 + gap_ns(random);
        if random.percent(1) {
            now += 1_000_000_000;
        }
        if number % SPELL == 0 {
            fresh = spell(&mut reference.control, random);
            for state in reference.flows.values_mut().filter(|_| fresh) {
                state.half[0].plan = reference.control.default_plan[1];
                let told = u8::from(state.half[0].packets % 4 != 0) * 8;
                state.half.iter_mut().for_each(|half| half.conntrack_scale = told);
            }
        }
        if fresh {
            reference.control.heartbeat_ns = now - 1_000;
        } else {
            reference.control.heartbeat_ns = now - 3_000_000_000;
        }
        let crossing = traffic.next();
        let linear = traffic.random.below(crossing.frame.len() as u32 + 1) as usize;
        let now = Time::from_nanos(now);
        let found = assert_alike(&mut reference, &crossing, linear, now);
        if let (Kept::Tcp(key), Some((direction, at))) = (found, whim_of_a_host(now, &mut traffic.random)) {
            let Some(state) = reference.flows.get_mut(&key) else { continue };
            if traffic.random.percent(15) {
                owe(state, direction, &mut traffic.random);
            }
            assert_updates_alike(&mut reference, &key, direction, at);
        }
    }
    assert_the_updates(&reference);
    assert_the_mix(&reference.counters);
    assert_the_hops(&[5, 3, 21 % HOPS].map(|hop| reference.control.hops[hop]));
}

#[test]
fn the_shared_vectors_hold_in_c() {
    for case in vectors::read(include_str!("../../../../tests/vectors/window.txt")) {
        let mut now = 10_000_000_000;
        let mut world = host::World { state: host::open(&Control::default(), now), ..host::World::default() };
        world.control.heartbeat_ns = now;
        for step in case.steps {
            match step {
                Step::Plan(direction, plan) => world.state.half[direction.index()].plan = plan,
                Step::Default(direction, plan) => world.control.default_plan[direction.index()] = plan,
                Step::Hop { direction, depth_bytes, rate_bytes } => {
                    let hop = &mut world.control.hops[0][direction.index()];
                    (hop.depth_bytes, hop.rate_bytes) = (depth_bytes, rate_bytes);
                }
                Step::Updates(direction) => world.control.hops[0][direction.index()].updates = 1,
                Step::Update { direction, expected, line } => {
                    let now = Time::from_nanos(now);
                    let due = host::due(&world.state, &world.control, direction, now);
                    let update = host::update(&mut world.state, &world.control, direction, now);
                    assert_eq!(update, expected, "{}, line {line}", case.name);
                    assert!(update.is_none() || due == Some(now), "{}, line {line}: {due:?}", case.name);
                }
                Step::Another => world.state = host::open(&world.control, now),
                Step::ConntrackScale(direction, scale) => {
                    world.state.half[direction.index()].conntrack_scale = scale + 1
                }
                Step::Wait(span) => {
                    now += span.as_nanos();
                    world.control.heartbeat_ns = now;
                }
                Step::Stale(stale) => world.control.heartbeat_ns = if stale { 1 } else { now },
                Step::Silent => world.control.silent_ns = 1,
                Step::DryRun => world.control.dry_run = 1,
                Step::Segment { direction, mut frame, expected, line } => {
                    let linear = frame.len();
                    let link = Link::Ethernet;
                    let reason =
                        host::packet(&mut world, &mut frame, linear, Merged::NOT, link, (direction, (1, 0)), now);
                    assert_eq!(reason, expected.reason() as i32, "{}, line {line}", case.name);
                    if let (Verdict::Rewrite { window }, Parsed::Tcp(tcp)) = (expected, wire::parse(&frame, link)) {
                        assert_eq!(tcp.window, window, "{}, line {line}", case.name);
                        assert!(wire::checksum_is_valid(&frame, &tcp));
                    }
                    assert_eq!(world.key, vectors::key());
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_in_any_state_are_decided_alike(
        bytes in prop::collection::vec(any::<u8>(), 0..160),
        overlay in prop::option::of(0u64..50_000),
        linear in 0usize..160,
        up: bool,
        seed: u64,
    ) {
        let mut random = Random::new(seed);
        let direction = if up { Direction::ToRemote } else { Direction::ToStation };
        let link = if random.percent(50) { Link::Ethernet } else { Link::Ip };
        let mut crossing = Crossing { direction, link, merged: Merged::NOT, frame: bytes };
        if let Some(seed) = overlay {
            // A real packet of a random connection, with a few bytes of the random ones over it.
            let mut traffic = Traffic::new(seed);
            let over = std::mem::replace(&mut crossing, (0..30).map(|_| traffic.next()).last().unwrap());
            for byte in over.frame.iter().take(4) {
                let at = random.below(crossing.frame.len().max(1) as u32) as usize;
                if let Some(place) = crossing.frame.get_mut(at) {
                    *place = *byte;
                }
            }
        }
        let mut reference = Reference::default();
        spell(&mut reference.control, &mut random);
        let linear = linear.min(crossing.frame.len());
        for _twice in 0..2 {
            assert_alike(&mut reference, &crossing, linear, Time::from_nanos(3));
        }
    }
}

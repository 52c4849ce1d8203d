//! What a capture is told of the channel agrees with the events and with the figures.

use crate::common::{AP, Numbered, g_stations, secs, us};
use lasthop_core::units::{Span, Time};
use lasthop_medium::{Attempt, AttemptFate, Event, Loss, Medium, MediumParams, NodeId, Radio, Standard, Timing};

fn packet(number: u32) -> Numbered {
    Numbered { number, bytes: 1500 }
}

/// Keeps two stations and the access point busy for a second; events and attempts in the order in which they came.
fn watch(params: MediumParams) -> (Medium<Numbered>, Vec<Event<Numbered>>, Vec<Attempt<Numbered>>) {
    let mut medium = Medium::new(params, g_stations(2), 3);
    medium.record_attempts(true);
    for (number, (from, to)) in [(NodeId(1), AP), (NodeId(2), AP), (AP, NodeId(1))].into_iter().enumerate() {
        medium.on_packet(Time::ZERO, from, to, packet(number as u32));
    }
    let (mut events, mut attempts) = (Vec::new(), Vec::new());
    let mut number = 3;
    while let Some(event) = medium.poll(secs(1)) {
        attempts.extend(std::iter::from_fn(|| medium.poll_attempt()));
        let (at, from, to) = match event {
            Event::Delivered { at, from, to, .. } => (at, from, to),
            Event::Dropped { at, node, .. } => (at, node, if node == AP { NodeId(1) } else { AP }),
        };
        medium.on_packet(at, from, to, packet(number));
        number += 1;
        events.push(event);
    }
    attempts.extend(std::iter::from_fn(|| medium.poll_attempt()));
    (medium, events, attempts)
}

fn lossy() -> MediumParams {
    MediumParams { attempts: 3, loss: Loss::Fixed { rate: 0.3 }, ..MediumParams::default() }
}

#[test]
fn every_transmission_is_told_once_in_order_of_its_start() {
    for rts_threshold in [65_535, 500] {
        let (medium, _, attempts) = watch(MediumParams { rts_threshold, ..lossy() });
        assert!(attempts.is_sorted_by_key(Attempt::start));
        for (number, node) in medium.snapshot(secs(1)).nodes.iter().enumerate() {
            let own = || attempts.iter().filter(|a| a.from == NodeId(number as u16));
            assert_eq!(own().count() as u64, node.attempts);
            assert_eq!(own().filter(|a| a.is_retry).count() as u64, node.retries);
            assert_eq!(own().filter(|a| a.fate == AttemptFate::Collided).count() as u64, node.collisions);
        }
    }
}

#[test]
fn a_packet_is_delivered_when_its_first_answered_data_frame_ends() {
    let (_, events, attempts) = watch(lossy());
    for event in &events {
        let Event::Delivered { at, packet, .. } = event else { continue };
        let mut answered = attempts.iter().filter(|a| a.packet == *packet && a.ack.is_some());
        assert_eq!(answered.next().and_then(|a| a.data).map(|data| data.end()), Some(*at));
    }
    // A repetition after a lost ACK still shows the packet.
    let lost = attempts.iter().find(|a| a.fate == AttemptFate::AckLost && !a.is_retry).unwrap();
    assert!(attempts.iter().any(|a| a.is_retry && a.packet == lost.packet));
}

#[test]
fn the_frames_of_an_exchange_are_a_sifs_apart() {
    let sifs = Span::from_micros(10);
    let (_, _, attempts) = watch(MediumParams { rts_threshold: 500, ..lossy() });
    let whole: Vec<_> = attempts.iter().filter(|a| a.fate == AttemptFate::Acked).collect();
    assert!(whole.len() > 100);
    for attempt in whole {
        let [rts, cts, data, ack] = [attempt.rts, attempt.cts, attempt.data, attempt.ack].map(Option::unwrap);
        assert_eq!((rts.end() + sifs, cts.end() + sifs, data.end() + sifs), (cts.start, data.start, ack.start));
        assert_eq!((rts.duration, data.duration), (Span::from_micros(34), Span::from_micros(254)));
        assert_eq!(attempt.start(), rts.start);
    }
    assert!(attempts.iter().filter(|a| a.fate == AttemptFate::CtsLost).all(|a| a.cts.is_some() && a.data.is_none()));
}

#[test]
fn nobody_starts_while_the_exchange_of_a_captured_frame_goes_on() {
    let loss = Loss::Shadowing { exponent: 4.0, deviation_db: 9.0 };
    let radio = Radio { capture_db: 3.0, ..Radio::default() };
    let cells = [Timing::Standard, Timing::Ns2G].map(|timing| [(timing, 65_535), (timing, 500)]);
    for (timing, rts_threshold) in cells.into_iter().flatten() {
        let (_, _, attempts) = watch(MediumParams { timing, rts_threshold, loss, radio, ..MediumParams::default() });
        let mut busy_until = Time::ZERO;
        let mut captured = 0;
        for together in attempts.chunk_by(|a, b| a.start() == b.start()) {
            assert!(together[0].start() >= busy_until, "{timing:?} {rts_threshold} {:?}", together[0]);
            captured += usize::from(together.len() > 1 && together[0].fate == AttemptFate::Acked);
            let frames = together.iter().flat_map(|a| [a.rts, a.cts, a.data, a.ack]).flatten();
            busy_until = frames.map(|frame| frame.end()).fold(busy_until, Time::max);
        }
        assert!(captured > 10, "{timing:?} {rts_threshold} {captured}");
    }
}

#[test]
fn a_protected_frame_shows_its_cts_to_self() {
    let mut stations = g_stations(1);
    stations[0].standard = Standard::G;
    let params = MediumParams { protection: true, ..MediumParams::default() };
    let mut medium = Medium::new(params, stations, 1);
    medium.record_attempts(true);
    medium.on_packet(us(100), NodeId(1), AP, packet(1));
    assert_eq!(medium.poll(secs(1)).map(|event| event.at()), Some(us(100 + 258 + 254)));
    let attempt = medium.poll_attempt().unwrap();
    let (cts, data) = (attempt.cts_to_self.unwrap(), attempt.data.unwrap());
    assert_eq!((cts.start, cts.duration, data.start), (us(100), Span::from_micros(248), us(358)));
    assert_eq!((attempt.ip_bytes, attempt.fate, medium.poll_attempt()), (1500, AttemptFate::Acked, None));
}

#[test]
fn nothing_is_kept_when_nobody_asked() {
    let mut medium = Medium::new(MediumParams::default(), g_stations(1), 1);
    medium.on_packet(us(100), NodeId(1), AP, packet(1));
    assert!(medium.poll(secs(1)).is_some() && medium.poll_attempt().is_none());
}

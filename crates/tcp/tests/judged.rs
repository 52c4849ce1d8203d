//! Losses that are judged before they are answered: by probes, or by the receiver.

mod common;

use common::{MSS, ms, plain};
use lasthop_core::units::{BitRate, Span, Time};
use lasthop_tcp::{Ack, Algorithm, Note, Reports, Sender, SenderParams};

use common::path::{Link, Path};

fn polled(sender: &mut Sender, at: f64) -> Vec<(u64, u32)> {
    std::iter::from_fn(|| sender.poll(ms(at))).map(|segment| (segment.offset / MSS, segment.bytes)).collect()
}

fn ack(sender: &mut Sender, at: f64, number: u64) {
    sender.on_ack(ms(at), &Ack { offset: number * MSS, window_bytes: 1 << 30, ..Ack::default() });
}

/// A window of eight over 100 ms, whose first segment is lost.
fn with_a_loss(cc: Algorithm) -> Sender {
    let params = SenderParams { initial_window: 8, initial_ssthresh: Some(8.0), ..plain(cc) };
    let mut sender = Sender::new(params);
    sender.poll(ms(0.0));
    sender.on_ack(ms(100.0), &Ack { syn: true, window_bytes: 65_535, ..Ack::default() });
    assert_eq!(polled(&mut sender, 100.0).len(), 8);
    for duplicate in 0..3 {
        ack(&mut sender, 200.0 + f64::from(duplicate), 0);
    }
    sender
}

fn answer(sender: &mut Sender, at: f64) {
    let number = sender.mark();
    sender.on_note(ms(at), &Note::Probe { number });
}

/// Both probes take 90 ms, less than the 100 ms before: the window stays, and the segment goes out again.
#[test]
fn two_quick_probes_give_an_immediate_recovery() {
    let mut sender = with_a_loss(Algorithm::Probing);
    assert_eq!(polled(&mut sender, 202.0), [(0, 0)], "a probe, and no data");
    ack(&mut sender, 205.0, 0);
    assert_eq!(polled(&mut sender, 205.0), []);
    answer(&mut sender, 292.0);
    assert_eq!(polled(&mut sender, 292.0), [(0, 0)], "the second");
    answer(&mut sender, 382.0);
    let sent = polled(&mut sender, 382.0);
    assert_eq!(sent[0], (0, 1000), "{sent:?}");
    assert_eq!(sent.len(), 1 + 4, "one for each of the four duplicates: {sent:?}");
    assert_eq!((sender.snapshot().cwnd, sender.snapshot().ssthresh), (8.0, 8.0), "eight were the initial window");
}

/// The second takes 130 ms: half of the window, as Reno.
#[test]
fn a_slow_probe_halves() {
    let mut sender = with_a_loss(Algorithm::Probing);
    assert_eq!(polled(&mut sender, 202.0), [(0, 0)]);
    answer(&mut sender, 292.0);
    assert_eq!(polled(&mut sender, 292.0), [(0, 0)]);
    answer(&mut sender, 422.0);
    assert_eq!(polled(&mut sender, 422.0), [(0, 1000)]);
    assert_eq!((sender.snapshot().cwnd, sender.snapshot().ssthresh), (4.0, 4.0));
}

/// An answer that does not come: both again, after the timeout of 300 ms and after twice that; an old answer counts nothing.
#[test]
fn a_dead_path_sees_nothing_but_probes() {
    let mut sender = with_a_loss(Algorithm::Probing);
    assert_eq!(polled(&mut sender, 202.0), [(0, 0)]);
    let old = sender.mark();
    assert_eq!(polled(&mut sender, 501.0), []);
    assert_eq!(polled(&mut sender, 502.0), [(0, 0)]);
    sender.on_note(ms(510.0), &Note::Probe { number: old });
    assert_eq!(polled(&mut sender, 1101.0), []);
    assert_eq!(polled(&mut sender, 1102.0), [(0, 0)]);
    assert_eq!((sender.snapshot().cwnd, sender.snapshot().timeouts), (8.0, 0));
}

/// The hole is said to be the link's: sent again, and nothing is cut; without the word half is.
#[test]
fn what_the_receiver_calls_corrupted_cuts_nothing() {
    let params = SenderParams { initial_window: 8, initial_ssthresh: Some(8.0), ..plain(Algorithm::NewReno) };
    for told in [false, true] {
        let mut sender = Sender::new(params);
        sender.poll(ms(0.0));
        sender.on_ack(ms(100.0), &Ack { syn: true, window_bytes: 65_535, ..Ack::default() });
        polled(&mut sender, 100.0);
        for duplicate in 0..3 {
            if told {
                sender.on_note(ms(200.0), &Note::Corrupted { offset: 0 });
            }
            ack(&mut sender, 200.0 + f64::from(duplicate), 0);
        }
        assert_eq!(polled(&mut sender, 202.0)[0], (0, 1000));
        assert_eq!(sender.snapshot().cwnd, if told { 8.0 } else { 4.0 });
        // The next hole is a queue's: now it is cut, once.
        ack(&mut sender, 302.0, 3);
        assert_eq!(sender.snapshot().cwnd, 4.0);
    }
}

/// Mbit/s in a minute over 10 Mbit/s and 80 ms, one segment in a hundred lost on the link.
fn carried(cc: Algorithm, discriminates: bool) -> f64 {
    let link = Link::new(BitRate::mbps(10), Span::from_millis(40), 1000);
    let params = SenderParams { cc, ..SenderParams::default() };
    let mut path = match discriminates {
        true => Path::reporting(params, 60 * 1460, link, Reports::Losses),
        false => Path::new(params, 60 * 1460, link),
    };
    path.lose_every = 101;
    path.run(Time::from_nanos(60_000_000_000));
    path.sender.snapshot().acked_bytes as f64 * 8.0 / 60e6
}

#[test]
fn judging_pays_on_a_link_that_loses() {
    let (blind, probing, told) =
        (carried(Algorithm::NewReno, false), carried(Algorithm::Probing, false), carried(Algorithm::NewReno, true));
    println!("{blind} {probing} {told} Mbit/s");
    assert!(probing > 1.2 * blind && told > 1.5 * blind, "{blind} {probing} {told} Mbit/s");
}

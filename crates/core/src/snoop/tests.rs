use super::*;

const CONNECTION: u64 = 7;
const MSS: u32 = 1_000;

/// A connection whose segments are numbered: segment n is `[base + n MSS, base + (n + 1) MSS)`.
struct Hop {
    snoop: Snoop<u32>,
    now: Time,
    base: u32,
}

impl Hop {
    fn new(params: Params) -> Self {
        Self::from(params, 0)
    }

    fn from(params: Params, base: u32) -> Self {
        Self { snoop: Snoop::new(params), now: Time::ZERO, base }
    }

    fn byte(&self, segment: u32) -> u32 {
        self.base.wrapping_add(segment * MSS)
    }

    fn wait_ms(&mut self, ms: u64) -> &mut Self {
        self.now += Span::from_millis(ms);
        self
    }

    fn data(&mut self, segments: std::ops::Range<u32>) -> &mut Self {
        for segment in segments {
            let data = Data { connection: CONNECTION, seq: self.byte(segment), bytes: MSS, ..Data::default() };
            self.snoop.on_data(self.now, &data, segment);
            assert!(self.sent().is_empty(), "data makes nothing leave");
        }
        self
    }

    /// An acknowledgment of everything before `segment`, with blocks of segments.
    fn ack_with(
        &mut self,
        segment: u32,
        blocks: &[(u32, u32)],
        change: impl FnOnce(&mut Ack<'_>),
    ) -> (SnoopVerdict, Vec<u32>) {
        let blocks: Vec<_> = blocks.iter().map(|b| (self.byte(b.0), self.byte(b.1))).collect();
        let mut ack =
            Ack { connection: CONNECTION, ack: self.byte(segment), window: 100, sack: &blocks, ..Ack::default() };
        change(&mut ack);
        let verdict = self.snoop.on_ack(self.now, &ack);
        (verdict, self.sent())
    }

    fn ack(&mut self, segment: u32) -> (SnoopVerdict, Vec<u32>) {
        self.ack_with(segment, &[], |_| ())
    }

    fn sack(&mut self, segment: u32, blocks: &[(u32, u32)]) -> (SnoopVerdict, Vec<u32>) {
        self.ack_with(segment, blocks, |_| ())
    }

    fn sent(&mut self) -> Vec<u32> {
        std::iter::from_fn(|| self.snoop.poll(self.now)).map(|sent| sent.packet).collect()
    }

    fn snapshot(&self) -> Snapshot {
        self.snoop.snapshot()
    }
}

use SnoopVerdict::{Forward, Strip, Suppress};

const NOTHING: Vec<u32> = Vec::new();

#[test]
fn the_first_duplicate_repairs_the_hole_and_the_sender_hears_of_none() {
    let mut hop = Hop::new(Params::default());
    hop.data(0..5).wait_ms(10);
    assert_eq!(hop.ack(1), (Forward, NOTHING));
    // 1 is lost; 2, 3 and 4 each cause a duplicate.
    assert_eq!(hop.ack(1), (Suppress, vec![1]));
    assert_eq!(hop.ack(1), (Suppress, NOTHING));
    assert_eq!(hop.ack(1), (Suppress, NOTHING));
    assert_eq!(hop.wait_ms(5).ack(5), (Forward, NOTHING));
    let snapshot = hop.snapshot();
    assert_eq!((snapshot.by_duplicates, snapshot.suppressed, snapshot.segments, snapshot.bytes), (1, 3, 0, 0));
}

#[test]
fn more_duplicates_than_segments_behind_the_hole_mean_that_the_repair_is_lost_too() {
    let mut hop = Hop::new(Params::default());
    hop.data(0..4).wait_ms(10);
    let _ = hop.ack(1);
    assert_eq!(hop.ack(1), (Suppress, vec![1]));
    assert_eq!(hop.ack(1), (Suppress, NOTHING));
    // 2 and 3 have answered. What is sent now comes after the repair.
    hop.data(4..6);
    assert_eq!(hop.ack(1), (Suppress, vec![1]));
}

#[test]
fn what_never_came_here_is_the_senders_business() {
    let mut hop = Hop::new(Params::default());
    hop.data(0..1).data(2..5).wait_ms(10);
    let _ = hop.ack(1);
    for _each in 0..3 {
        assert_eq!(hop.ack(1), (Forward, NOTHING));
    }
    // The sender sends it again: its fast recovery lives on duplicates.
    hop.data(1..2);
    assert_eq!(hop.ack(1), (Forward, NOTHING));
    assert_eq!(hop.snapshot().sent_again, 1);
}

#[test]
fn a_senders_retransmission_that_is_lost_on_the_hop_is_repaired_by_the_timer() {
    let mut hop = Hop::new(Params::default());
    hop.data(0..1).data(2..5).wait_ms(10);
    let _ = hop.ack(1);
    hop.data(1..2).wait_ms(99);
    assert_eq!(hop.sent(), NOTHING);
    assert_eq!(hop.wait_ms(1).sent(), [1]);
}

#[test]
fn a_segment_that_the_queue_has_no_room_for_is_the_senders_business() {
    let mut hop = Hop::new(Params::default());
    hop.data(0..1);
    let data = Data { connection: CONNECTION, seq: MSS, bytes: MSS, queue_full: true, ..Data::default() };
    hop.snoop.on_data(hop.now, &data, 1);
    hop.data(2..4).wait_ms(10);
    let _ = hop.ack(1);
    assert_eq!(hop.ack(1), (Forward, NOTHING));
    assert_eq!(hop.snapshot().queue_full, 1);
}

#[test]
fn retries_are_bounded_their_time_doubles_and_then_duplicates_pass() {
    let mut hop = Hop::new(Params { retries: 3, ..Params::default() });
    hop.data(0..3).wait_ms(10);
    let _ = hop.ack(1);
    assert_eq!(hop.ack(1), (Suppress, vec![1]));
    assert_eq!(hop.wait_ms(99).sent(), NOTHING);
    assert_eq!(hop.wait_ms(1).sent(), [1]);
    assert_eq!(hop.wait_ms(199).sent(), NOTHING);
    assert_eq!(hop.wait_ms(1).sent(), [1]);
    assert_eq!(hop.wait_ms(10_000).sent(), NOTHING);
    assert_eq!(hop.ack(1), (Forward, NOTHING));
    assert_eq!(hop.snapshot().gave_up, 1);
    // The sender's own one begins anew.
    hop.data(1..2);
    assert_eq!(hop.wait_ms(100).sent(), [1]);
}

#[test]
fn the_timer_is_above_twice_the_hops_round_trip() {
    let mut hop = Hop::new(Params { least_timer: Span::from_millis(1), ..Params::default() });
    for segment in 0..50 {
        hop.data(segment..segment + 1).wait_ms(40);
        let _ = hop.ack(segment + 1);
    }
    assert_eq!(hop.snoop.connection(CONNECTION).unwrap().srtt, Some(Span::from_millis(40)));
    hop.data(50..51).wait_ms(79);
    assert_eq!(hop.sent(), NOTHING);
    assert_eq!(hop.wait_ms(1).sent(), [50]);
}

#[test]
fn what_was_sent_twice_measures_no_round_trip() {
    let mut hop = Hop::new(Params::default());
    hop.data(0..3).wait_ms(10);
    let _ = hop.ack(1);
    let _ = hop.ack(1);
    let _ = hop.wait_ms(500).ack(3);
    assert_eq!(hop.snoop.connection(CONNECTION).unwrap().srtt, Some(Span::from_millis(10)));
}

#[test]
fn a_copy_that_was_not_needed_does_not_cause_another() {
    let mut hop = Hop::new(Params::default());
    hop.data(0..4).wait_ms(10);
    let _ = hop.ack(1);
    // Reordered, not lost: the original arrives before the copy can.
    assert_eq!(hop.ack(1), (Suppress, vec![1]));
    assert_eq!(hop.wait_ms(1).ack(3), (Forward, NOTHING));
    // The copy's duplicate.
    assert_eq!(hop.ack(3), (Suppress, NOTHING));
    assert_eq!(hop.ack(3), (Suppress, vec![3]));
}

#[test]
fn duplicates_below_the_threshold_pass() {
    let mut hop = Hop::new(Params { duplicates: 2, ..Params::default() });
    hop.data(0..4).wait_ms(10);
    let _ = hop.ack(1);
    assert_eq!(hop.ack(1), (Forward, NOTHING));
    assert_eq!(hop.ack(1), (Suppress, vec![1]));
}

#[test]
fn what_tells_more_than_a_hole_always_passes() {
    let mut hop = Hop::new(Params::default());
    hop.data(0..9).wait_ms(10);
    let _ = hop.ack(1);
    assert_eq!(hop.ack_with(1, &[], |ack| ack.carries_more = true), (Forward, NOTHING));
    assert_eq!(hop.ack_with(1, &[], |ack| ack.window = 90), (Forward, NOTHING), "a change of the window");
    assert_eq!(hop.ack_with(1, &[], |ack| ack.window = 0), (Forward, NOTHING));
    assert_eq!(hop.ack_with(1, &[], |ack| ack.window = 0), (Forward, NOTHING), "an answer to a probe");
    assert_eq!(hop.ack(0), (Forward, NOTHING), "overtaken by a newer one");
    assert_eq!(hop.ack(10), (Forward, NOTHING), "of what was never sent");
    assert_eq!(hop.snapshot().strange, 1);
    let _ = hop.ack_with(1, &[], |ack| ack.window = 100);
    assert_eq!(hop.ack(1), (Suppress, vec![1]));
}

#[test]
fn nothing_is_sent_into_a_closed_window() {
    let mut hop = Hop::new(Params::default());
    hop.data(0..3).wait_ms(10);
    let _ = hop.ack_with(1, &[], |ack| ack.window = 0);
    assert_eq!(hop.wait_ms(5_000).sent(), NOTHING);
}

#[test]
fn blocks_have_all_holes_repaired_two_at_a_time() {
    let mut hop = Hop::new(Params::default());
    hop.data(0..8).wait_ms(10);
    let _ = hop.ack(1);
    // 1, 3, 5 are lost.
    assert_eq!(hop.sack(1, &[(2, 3)]), (Suppress, vec![1]));
    assert_eq!(hop.sack(1, &[(4, 5), (2, 3)]), (Suppress, vec![3]));
    assert_eq!(hop.sack(1, &[(6, 7), (4, 5), (2, 3)]), (Suppress, vec![5]));
    assert_eq!(hop.sack(1, &[(6, 8), (4, 5), (2, 3)]), (Suppress, NOTHING));
    assert_eq!(hop.sack(3, &[(6, 8), (4, 5)]), (Strip, NOTHING));
    assert_eq!(hop.sack(8, &[]), (Forward, NOTHING));
    assert_eq!(hop.snapshot().by_duplicates, 3);
}

#[test]
fn blocks_that_come_late_are_worked_off_by_the_acknowledgments_that_follow() {
    let mut hop = Hop::new(Params::default());
    hop.data(0..8).wait_ms(10);
    let _ = hop.ack(1);
    assert_eq!(hop.sack(1, &[(7, 8), (5, 6)]), (Suppress, vec![1, 2]));
    assert_eq!(hop.sack(2, &[(7, 8), (5, 6)]), (Strip, vec![3, 4]));
    assert_eq!(hop.sack(3, &[(7, 8), (5, 6)]), (Strip, vec![6]));
}

#[test]
fn a_repair_is_lost_when_something_sent_after_it_has_arrived() {
    let mut hop = Hop::new(Params::default());
    hop.data(0..4).wait_ms(10);
    let _ = hop.ack(1);
    assert_eq!(hop.sack(1, &[(2, 3)]), (Suppress, vec![1]));
    hop.data(4..5);
    assert_eq!(hop.sack(1, &[(2, 4)]), (Suppress, NOTHING));
    assert_eq!(hop.sack(1, &[(2, 5)]), (Suppress, vec![1]));
}

#[test]
fn a_hole_that_is_not_cached_lets_all_blocks_pass() {
    let mut hop = Hop::new(Params::default());
    hop.data(0..3).data(4..8).wait_ms(10);
    let _ = hop.ack(1);
    // 1 was lost here, 3 before it came here.
    assert_eq!(hop.sack(1, &[(2, 3)]), (Suppress, vec![1]));
    assert_eq!(hop.sack(1, &[(4, 5), (2, 3)]), (Forward, NOTHING));
    assert_eq!(hop.sack(3, &[(4, 6)]), (Forward, NOTHING));
    // The sender's retransmission of it does not change that.
    hop.data(3..4);
    assert_eq!(hop.sack(3, &[(4, 7)]), (Forward, NOTHING));
    assert_eq!(hop.sack(8, &[]), (Forward, NOTHING));
}

#[test]
fn what_was_refused_for_room_but_has_arrived_is_no_hole() {
    let mut hop = Hop::new(Params { segments: 3, ..Params::default() });
    hop.data(0..5).wait_ms(10);
    // 3 and 4 found no room; 1 is lost.
    let _ = hop.ack(1);
    assert_eq!(hop.sack(1, &[(2, 5)]), (Suppress, vec![1]));
    assert_eq!(hop.snapshot().refused_connection, 2);
}

#[test]
fn a_hole_given_up_lets_all_blocks_pass() {
    let mut hop = Hop::new(Params { retries: 1, ..Params::default() });
    hop.data(0..4).wait_ms(10);
    let _ = hop.ack(1);
    assert_eq!(hop.sack(1, &[(2, 3)]), (Suppress, vec![1]));
    hop.data(4..6);
    assert_eq!(hop.sack(1, &[(2, 5)]), (Forward, NOTHING));
    assert_eq!(hop.sack(1, &[(2, 6)]), (Forward, NOTHING));
    assert_eq!(hop.snapshot().gave_up, 1);
}

#[test]
fn duplicates_without_blocks_mean_something_else_to_a_receiver_that_reports_them() {
    let mut hop = Hop::new(Params::default());
    hop.data(0..4).wait_ms(10);
    let _ = hop.ack(1);
    let _ = hop.sack(1, &[(2, 3)]);
    let _ = hop.ack(3);
    assert_eq!(hop.ack(3), (Forward, NOTHING));
    assert_eq!(hop.sack(3, &[(1, 2)]), (Forward, NOTHING), "a report of a duplicate");
    assert_eq!(hop.sack(3, &[(1, 2)]), (Forward, NOTHING));
}

#[test]
fn blocks_of_nonsense_change_nothing() {
    let mut hop = Hop::new(Params::default());
    hop.data(0..4).wait_ms(10);
    let _ = hop.ack(1);
    for block in [(3, 2), (3, 9), (2, 2), (1, 2)] {
        assert_eq!(hop.sack(1, &[block, block]).1, NOTHING, "{block:?}");
    }
    assert_eq!(hop.snapshot().by_duplicates, 0);
    assert!(hop.snapshot().strange >= 4);
}

#[test]
fn a_new_connection_of_the_same_name_gets_no_old_copies() {
    let mut hop = Hop::new(Params::default());
    let opens = Data { connection: CONNECTION, syn: true, ..Data::default() };
    for of_the_host in [false, true] {
        hop.data(0..4);
        if of_the_host {
            let _ = hop.ack_with(0, &[], |ack| ack.syn = true);
        } else {
            hop.snoop.on_data(hop.now, &opens, 99);
        }
        assert_eq!((hop.snapshot().segments, hop.snapshot().connections), (0, 0));
        assert_eq!(hop.wait_ms(10_000).sent(), NOTHING);
    }
    // One whose opening was not seen: its numbers are far away.
    hop.data(0..4);
    hop.base = 1 << 31;
    hop.data(0..1);
    assert_eq!(hop.snapshot().segments, 1);
}

#[test]
fn sequence_numbers_wrap() {
    let mut hop = Hop::from(Params::default(), u32::MAX - 2_500);
    hop.data(0..6).wait_ms(10);
    let _ = hop.ack(1);
    assert_eq!(hop.sack(1, &[(3, 4)]), (Suppress, vec![1, 2]));
    assert_eq!(hop.sack(2, &[(3, 6)]), (Strip, NOTHING));
    assert_eq!(hop.ack(6), (Forward, NOTHING));
    assert_eq!(hop.snapshot().bytes, 0);
}

#[test]
fn the_end_of_a_stream_is_repaired_by_the_timer() {
    let mut hop = Hop::new(Params::default());
    hop.data(0..1).wait_ms(10);
    let _ = hop.ack(1);
    let last = Data { connection: CONNECTION, seq: MSS, fin: true, ..Data::default() };
    hop.snoop.on_data(hop.now, &last, 1);
    assert_eq!(hop.wait_ms(100).sent(), [1]);
    let _ = hop.ack_with(1, &[], |ack| ack.ack += 1);
    assert_eq!(hop.snapshot().segments, 0);
}

#[test]
fn ten_thousand_connections_stay_within_their_bounds() {
    let params = Params { connections: 2_000, bytes: 4 << 20, ..Params::default() };
    let mut snoop = Snoop::new(params);
    let mut now = Time::ZERO;
    for round in 0..5u32 {
        for connection in 0..10_000u64 {
            now += Span::from_micros(100);
            let data = Data { connection, seq: round * MSS, bytes: MSS, ..Data::default() };
            snoop.on_data(now, &data, 0u8);
            while snoop.poll(now).is_some() {}
            let snapshot = snoop.snapshot();
            assert!(snapshot.connections <= 2_000 && snapshot.bytes <= 4 << 20, "{snapshot:?}");
            assert!(snoop.alarms.len() <= 2_000);
        }
    }
    assert!(snoop.snapshot().evicted > 10_000, "{:?}", snoop.snapshot());
}

#[test]
fn memory_taken_by_connections_in_use_is_not_taken_from_them() {
    let mut snoop = Snoop::new(Params { bytes: 20_000, ..Params::default() });
    let mut now = Time::ZERO;
    let send = |snoop: &mut Snoop<u8>, now, connection, seq| {
        snoop.on_data(now, &Data { connection, seq, bytes: MSS, ..Data::default() }, 0);
    };
    for number in 0..40 {
        send(&mut snoop, now, number % 2, number as u32 * MSS);
    }
    assert_eq!((snoop.snapshot().segments, snoop.snapshot().refused, snoop.snapshot().evicted), (17, 23, 0));
    // One of them has been silent for a second.
    now += Span::from_millis(999);
    send(&mut snoop, now, 0, 100 * MSS);
    now += Span::from_millis(1);
    send(&mut snoop, now, 0, 101 * MSS);
    assert_eq!(snoop.snapshot().evicted, 1);
    assert_eq!(snoop.snapshot().connections, 1);
}

/// By hand from the rules of ns-2.35: of two signs the first passes; then as many are held back as segments were behind the
/// hole, less two.
#[test]
fn ns2_lets_every_second_sign_pass_and_counts_what_it_holds_back() {
    let mut hop = Hop::new(Params::ns2());
    hop.data(0..6).wait_ms(10);
    assert_eq!(hop.ack(1), (Forward, NOTHING));
    // 1 is lost; 2 to 5 answer. Five cached, so three are expected.
    assert_eq!(hop.ack(1), (Forward, NOTHING));
    assert_eq!(hop.ack(1), (Suppress, vec![1]));
    assert_eq!(hop.ack(1), (Suppress, NOTHING));
    assert_eq!(hop.ack(1), (Suppress, NOTHING));
    assert_eq!(hop.ack(6), (Forward, NOTHING));
    assert_eq!(hop.snapshot().suppressed, 3);
}

/// `snoop_rtt`: 0.1 s and 0.25 s at first; a sample of 10 ms makes srtt 0.125 x 100 + 0.875 x 10 = 21.25 ms and rttvar
/// 0.125 x 11.25 + 0.875 x 250 = 220.16 ms, but the timer is set before it is taken.
#[test]
fn ns2_sets_its_timer_before_it_takes_the_sample_and_does_not_back_off() {
    let mut hop = Hop::new(Params::ns2());
    hop.data(0..3).wait_ms(10);
    let _ = hop.ack(1);
    assert_eq!(hop.wait_ms(1_099).sent(), NOTHING);
    assert_eq!(hop.wait_ms(1).sent(), [1]);
    for _each in 0..9 {
        assert_eq!(hop.wait_ms(901).sent(), NOTHING);
        assert_eq!(hop.wait_ms(1).sent(), [1]);
    }
    assert_eq!(hop.wait_ms(10_000).sent(), NOTHING, "ten times in all");
}

/// 100 ms + 4 x 250 ms after it went out, and the answer of the copy is taken for a round trip.
#[test]
fn ns2_repairs_the_syn_like_data() {
    let mut hop = Hop::from(Params::ns2(), 0);
    let opens = Data { connection: CONNECTION, seq: u32::MAX, syn: true, ..Data::default() };
    hop.snoop.on_data(hop.now, &opens, 99);
    assert_eq!(hop.wait_ms(1_099).sent(), NOTHING);
    assert_eq!(hop.wait_ms(1).sent(), [99]);
    assert_eq!(hop.wait_ms(50).ack_with(0, &[], |ack| ack.syn = true), (Forward, NOTHING));
    assert_eq!(hop.snapshot().segments, 0);
    // srtt = (100 + 7 x 50) / 8 = 56.25 ms, var = (6.25 + 7 x 250) / 8 = 219.53 ms.
    hop.data(0..1);
    assert_eq!(hop.wait_ms(934).sent(), NOTHING);
    assert_eq!(hop.wait_ms(1).sent(), [0]);
    let mut standard = Hop::new(Params::default());
    standard.snoop.on_data(standard.now, &opens, 99);
    assert_eq!(standard.snapshot().connections, 0);
}

#[test]
fn ns2_leaves_to_its_sender_what_its_sender_has_sent_again() {
    let mut hop = Hop::new(Params::ns2());
    hop.data(0..1).data(2..6).wait_ms(10);
    let _ = hop.ack(1);
    assert_eq!(hop.ack(1), (Forward, NOTHING), "not cached");
    hop.data(1..2);
    for _each in 0..4 {
        assert_eq!(hop.ack(1), (Forward, NOTHING));
    }
}

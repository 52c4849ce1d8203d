use super::*;
use lasthop_medium::{Guard, Standard, Width};

const AP: Mac = [2, 0, 0, 0, 0, 0];
const STATION: Mac = [2, 0, 0, 0, 1, 0];
const OTHER: Mac = [2, 0, 0, 0, 2, 0];
const MCS: u16 = 1 << 3;

fn air(snr_db: f64) -> Air {
    let capability = Capability { standard: Standard::N, width: Width::Mhz20, streams: 1, guard: Guard::Ns800 };
    Air::new(Params { capability, seed: 5 }, AP, &[(STATION, snr_db), (OTHER, snr_db)])
}

/// QoS data of this TID, or a beacon for everybody.
fn frame(from: Mac, to: Mac, tid: Option<u8>) -> Vec<u8> {
    let mut frame = vec![if tid.is_some() { 0x88 } else { 0x80 }, 0, 0, 0];
    frame.extend([to, from, from].concat());
    frame.extend([0, 0, tid.unwrap_or(0), 0]);
    frame.resize(1_000, 0);
    frame
}

fn send(air: &mut Air, from: Mac, frame: &[u8], cookie: u64, rates: [TxRate; STAGES]) {
    let sent = Transmission { radio: from, frame, flags: 1, cookie, frequency_mhz: 5180, rates };
    air.on_frame(Time::ZERO, &sent);
}

fn table(entries: &[(i8, u8)]) -> [TxRate; STAGES] {
    let mut table = [TxRate::NONE; STAGES];
    for (place, (index, count)) in table.iter_mut().zip(entries) {
        *place = TxRate { index: *index, count: *count, flags: MCS };
    }
    table
}

/// Radios at which something arrived, and outcomes, up to a second later.
fn play(air: &mut Air) -> (Vec<Mac>, Vec<Outcome>) {
    let (mut arrived, mut outcomes) = (Vec::new(), Vec::new());
    while let Some(action) = air.poll(Time::from_nanos(1_000_000_000)) {
        match action {
            Action::Arrive { radio, .. } => arrived.push(radio),
            Action::Settle(outcome) => outcomes.push(outcome),
        }
    }
    assert_eq!(air.next_deadline(), None);
    (arrived, outcomes)
}

#[test]
fn a_frame_arrives_once_and_its_sender_learns_at_which_try() {
    // MCS 7 loses all at 12 dB, MCS 3 nothing.
    let mut air = air(12.0);
    send(&mut air, AP, &frame(AP, STATION, Some(6)), 7, table(&[(7, 2), (3, 4)]));
    let (arrived, outcomes) = play(&mut air);
    assert_eq!(arrived, [STATION]);
    let [outcome] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert_eq!((outcome.cookie, outcome.is_acked(), outcome.between), (7, true, (0, Some(1))));
    assert_eq!(outcome.tried.iter().map(|rate| rate.mode().unwrap().mcs).collect::<Vec<_>>(), [7, 7, 3]);
    assert_eq!(rates::used(&outcome.rates, outcome.tried.len() as u16), table(&[(7, 2), (3, 1)]));
    assert!(outcome.at > Time::from_nanos(600_000));
}

#[test]
fn what_the_channel_takes_is_tried_as_often_as_the_table_says() {
    let mut air = air(-10.0);
    send(&mut air, STATION, &frame(STATION, AP, Some(0)), 1, table(&[(7, 2), (3, 1), (0, 3)]));
    let (arrived, outcomes) = play(&mut air);
    assert!(arrived.is_empty());
    assert!(!outcomes[0].is_acked());
    assert_eq!(outcomes[0].tried.len(), 6);
    assert_eq!(air.snapshot(), Snapshot { carried: 1, ..Snapshot::default() });
}

#[test]
fn what_is_for_all_reaches_those_whom_the_channel_lets() {
    for (snr, reached) in [(30.0, vec![STATION, OTHER]), (-10.0, vec![])] {
        let mut air = air(snr);
        send(&mut air, AP, &frame(AP, [255; 6], None), 1, table(&[(0, 1)]));
        let (arrived, outcomes) = play(&mut air);
        assert_eq!((arrived, outcomes.len(), outcomes[0].between), (reached, 1, (0, None)));
    }
    let mut air = air(30.0);
    send(&mut air, STATION, &frame(STATION, [255; 6], None), 1, table(&[(0, 1)]));
    assert_eq!(play(&mut air).0, [AP]);
}

#[test]
fn nobody_answers_for_a_stranger() {
    let mut air = air(30.0);
    send(&mut air, AP, &frame(AP, [2, 9, 9, 9, 9, 9], Some(0)), 1, table(&[(7, 2), (0, 2)]));
    let (arrived, outcomes) = play(&mut air);
    assert!(arrived.is_empty() && !outcomes[0].is_acked());
    assert_eq!(outcomes[0].tried.len(), 4);
}

#[test]
fn what_cannot_be_read_is_counted() {
    let mut air = air(30.0);
    send(&mut air, AP, &[0x88; 12], 1, table(&[(7, 2)]));
    send(&mut air, AP, &frame(AP, STATION, Some(0)), 2, table(&[]));
    send(&mut air, [4; 6], &frame(AP, STATION, Some(0)), 3, table(&[(7, 2)]));
    assert_eq!(air.snapshot(), Snapshot { malformed: 2, strange: 1, ..Snapshot::default() });
    assert_eq!(play(&mut air), (vec![], vec![]));
}

#[test]
fn a_station_can_be_moved() {
    let mut air = air(30.0);
    air.set_snr(1, -10.0);
    send(&mut air, AP, &frame(AP, STATION, Some(5)), 1, table(&[(7, 1)]));
    send(&mut air, AP, &frame(AP, OTHER, Some(5)), 2, table(&[(7, 1)]));
    assert_eq!(play(&mut air).0, [OTHER]);
}

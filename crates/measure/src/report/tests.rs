use super::*;
use crate::block::Arm;
use crate::plan::Direction;

fn report() -> Report {
    let plan = Plan { pairs: 2, block_s: 4, discard_s: 1, seed: 9, direction: Direction::Up };
    let block = |i: usize| {
        let mut block = Block::new(plan.arm(i), 4.0 * i as f64);
        (block.at_s, block.rate_bps) = (vec![1.0, 2.0], vec![7, 8]);
        block.wait_ms = vec![None, Some(0.125)];
        (block.waiting.buckets, block.waiting.count) = (vec![(Some(0.25), 3), (None, 1)], 4);
        block
    };
    let mut report = Report {
        format: FORMAT,
        version: "0.2.0".to_owned(),
        started_unix_s: 1_795_600_000,
        ended: Ended::Stopped,
        plan,
        capacity_bps: Some(20_000_000),
        base_rtt_ms: None,
        devices: vec![Device { name: "device 1".to_owned(), down_bps: 1, up_bps: 2 }],
        devices_paused: false,
        blocks: (0..3).map(block).collect(),
        findings: None,
    };
    report.judge();
    report
}

#[test]
fn what_is_written_is_read_back_with_the_same_findings() {
    let report = report();
    let read = Report::read(report.to_json().as_bytes()).unwrap();
    assert_eq!(read, report);
    assert!(report.to_json().contains("\"findings\":{\"verdict\":\"not-enough-load\""));
}

#[test]
fn what_a_probe_saw_is_kept_with_its_block() {
    let mut report = report();
    report.set_rpm(1, 310.5);
    report.set_rpm(7, 1.0);
    let read = Report::read(report.to_json().as_bytes()).unwrap();
    assert_eq!(read.blocks.iter().map(|block| block.rpm).collect::<Vec<_>>(), [None, Some(310.5), None]);
}

#[test]
fn a_field_that_was_added_later_is_no_obstacle_and_another_form_is_refused() {
    let more = report().to_json().replacen('{', "{\"added\": 7, ", 1);
    assert!(Report::read(more.as_bytes()).is_ok());
    let other = report().to_json().replace("\"format\":1", "\"format\":2");
    assert!(matches!(Report::read(other.as_bytes()), Err(ReadError::Format(2))));
    assert!(matches!(Report::read(b"{}"), Err(ReadError::Json(_))));
}

#[test]
fn what_cannot_have_been_measured_is_refused() {
    let refused = |change: fn(&mut Report)| {
        let mut report = report();
        change(&mut report);
        Report::read(report.to_json().as_bytes()).expect_err("refused").to_string()
    };
    assert!(refused(|r| r.plan.discard_s = 4).contains("plan"));
    assert!(
        refused(|r| r.blocks[0].arm = if r.blocks[0].arm == Arm::On { Arm::Off } else { Arm::On }).contains("block 1")
    );
    assert!(refused(|r| r.blocks[1].rate_bps.push(1)).contains("differ in length"));
    assert!(refused(|r| r.blocks[1].at_s.reverse()).contains("seconds"));
    assert!(refused(|r| r.blocks[2].waiting.buckets.reverse()).contains("histogram"));
    assert!(refused(|r| r.blocks[2].waiting.buckets[0].1 = u64::MAX).contains("histogram"));
    assert!(refused(|r| r.blocks[2].rpm = Some(-1.0)).contains("round trips"));
    assert!(refused(|r| r.capacity_bps = Some(u64::MAX)).contains("capacity"));
    assert!(refused(|r| r.blocks.extend(r.blocks.clone())).contains("number of blocks"));
}

//! The verifier walks the programs with much room to spare: older kernels prune less than this one.

use std::sync::Mutex;

use libbpf_rs::{ObjectBuilder, PrintLevel, set_print};

const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/lasthop.bpf.o"));

/// Three tenths of what the kernel allows.
const ROOM: u64 = 300_000;

/// Statistics only.
const STATISTICS: u32 = 4;

static LOG: Mutex<String> = Mutex::new(String::new());

fn keep(_level: PrintLevel, text: String) {
    LOG.lock().unwrap().push_str(&text);
}

#[test]
fn every_program_takes_the_verifier_less_than_a_quarter_of_its_limit() {
    set_print(Some((PrintLevel::Debug, keep)));
    let mut open = ObjectBuilder::default().open_memory(OBJECT).expect("the object opens");
    for mut program in open.progs_mut() {
        program.set_log_level(STATISTICS);
    }
    if let Err(error) = open.load() {
        eprintln!("SKIPPED: {error}");
        return;
    }
    let log = LOG.lock().unwrap();
    let counts: Vec<u64> =
        log.lines().filter_map(|line| line.strip_prefix("processed ")?.split(' ').next()?.parse().ok()).collect();
    eprintln!("instructions walked: {counts:?}");
    assert!(!counts.is_empty());
    assert!(counts.iter().all(|count| *count < ROOM));
}

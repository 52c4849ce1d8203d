//! What the kernel's verifier has to do before a program runs: on a small router it is what the start takes.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::{ObjectBuilder, OpenProgram, PrintLevel, set_print};

#[path = "common/compile.rs"]
mod compile;

const OBJECT: &[u8] = include_bytes!("../src/bpf/object/lasthop.bpf.o");

/// A quarter of what the kernel allows for one program.
const ROOM: u64 = 250_000;

/// Statistics only.
const STATISTICS: u32 = 4;

/// Kernels for processors that cannot read across words check that nothing is read so; here it is asked for.
const STRICT_ALIGNMENT: u32 = libbpf_sys::BPF_F_STRICT_ALIGNMENT;

/// Of an object, which is part of every binary.
const MOST_BYTES: usize = 182 * 1024;

static LOG: Mutex<String> = Mutex::new(String::new());

fn keep(_level: PrintLevel, text: String) {
    LOG.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
}

#[test]
fn every_program_takes_the_verifier_less_than_a_quarter_of_its_limit_and_reads_aligned() {
    set_print(Some((PrintLevel::Debug, keep)));
    let mut open = ObjectBuilder::default().open_memory(OBJECT).expect("the object opens");
    for mut program in open.progs_mut() {
        program.set_log_level(STATISTICS);
        program
            .set_flags(STRICT_ALIGNMENT | if program.section() == "syscall" { libbpf_sys::BPF_F_SLEEPABLE } else { 0 });
    }
    let loaded = open.load();
    let log = LOG.lock().unwrap();
    if let Err(error) = loaded {
        // SAFETY: a plain call without arguments.
        assert!(unsafe { libc::geteuid() } != 0, "{error}\n{log}");
        eprintln!("SKIPPED: {error}");
        return;
    }
    let counts: Vec<u64> =
        log.lines().filter_map(|line| line.strip_prefix("processed ")?.split(' ').next()?.parse().ok()).collect();
    eprintln!("instructions walked: {counts:?}, together {}", counts.iter().sum::<u64>());
    assert!(!counts.is_empty());
    assert!(counts.iter().all(|count| *count < ROOM));
    let stacks = stacks(&log);
    let [(_, pass)]: [_; 1] = of(&stacks, |name| name == "lasthop_pass").try_into().expect("one such program");
    let hooks = ["ingress", "egress", "divert", "catch"].map(|hook| format!("lasthop_{hook}"));
    let hooks = of(&stacks, |name| hooks.iter().any(|hook| name.starts_with(hook.as_str())));
    assert_eq!(hooks.len(), 8, "{stacks:?}");
    // Without a compiler to machine code, Linux 6.10 and later run the one on the stack of the other.
    assert!(hooks.iter().all(|(_, stack)| *stack >= pass), "{stacks:?}");
}

#[test]
fn a_hook_and_what_it_jumps_to_are_both_interpreted_where_32_bit_arm_cannot_compile_one() {
    // Its compiler takes neither atomic operations nor calls between functions, of which `lasthop_pass` has some; and the kernel refuses a
    // jump from what is compiled to what is not (`make small-router ARGS="--machines armhf"` loads it there).
    const ATOMIC: u8 = 0xdb;
    const TAIL_CALL: (u8, i32) = (0x85, 12);
    let open = ObjectBuilder::default().open_memory(OBJECT).expect("the object opens");
    let jumps = |program: &OpenProgram| program.insns().iter().any(|insn| (insn.code, insn.imm) == TAIL_CALL);
    let all = open.progs().filter(|program| program.name() == "lasthop_pass" || jumps(program));
    let counts: Vec<bool> = all.map(|program| program.insns().iter().any(|insn| insn.code == ATOMIC)).collect();
    assert_eq!(counts, [true; 9], "eight hooks, and what they jump to");
}

/// Bytes of stack that each program itself takes, without those that it calls.
fn stacks(log: &str) -> Vec<(String, u32)> {
    let mut name = "";
    let mut stacks = Vec::new();
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("prog '").filter(|_| line.ends_with("BEGIN PROG LOAD LOG --")) {
            name = rest.split('\'').next().unwrap_or_default();
        }
        let first = line.strip_prefix("stack depth ").and_then(|depths| depths.split('+').next()?.parse().ok());
        stacks.extend(first.map(|stack| (name.to_owned(), stack)));
    }
    stacks
}

fn of(stacks: &[(String, u32)], wanted: impl Fn(&str) -> bool) -> Vec<(String, u32)> {
    stacks.iter().filter(|(name, _)| wanted(name)).cloned().collect()
}

#[test]
fn the_objects_in_the_repository_are_what_their_sources_make() {
    let clang = match compile::clang() {
        Ok(clang) => clang,
        Err(why) => {
            eprintln!("SKIPPED: {why}");
            return;
        }
    };
    let version = compile::version(&clang).unwrap();
    for name in ["lasthop", "chap"] {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/bpf/object/{name}.bpf.o"));
        let kept = std::fs::read(kept).expect("it is in the repository");
        assert!(kept.len() <= MOST_BYTES, "{name}: {} bytes", kept.len());
        let made = compile::object(&clang, &format!("{name}.bpf.c"), &[]).unwrap();
        // Other versions make other instructions of the same source; that they make something is worth knowing.
        if version == compile::VERSION {
            assert!(kept == made, "{name}.bpf.o is not what {clang} makes of its source: run `make bpf`");
        } else {
            eprintln!("SKIPPED: {name}.bpf.o is of clang {}, this is {version}: not compared", compile::VERSION);
        }
    }
}

//! What the RFCs and the law ask of the loaded program, packet by packet, in scripts that packetdrill's readers can read.
//!
//! packetdrill (Cardwell et al., 2013) plays the far end of a socket of the kernel that it runs on. Here is no socket: a program of
//! tc stands between two ends, both of which a script plays, and what matters is the packet as it goes on and what the program
//! keeps. So the form is packetdrill's and what runs it is ours, by BPF_PROG_TEST_RUN. Rust and C can agree and both be wrong; the
//! numbers here come from RFCs and from the equations of `fastpath::window`, by hand, as the comments of each script say.
//!
//! ```text
//! over ipv6 vlan 5 hop-by-hop     the script runs over this; one run for each such line, without any over IPv4 on Ethernet
//! plan down clamp 50000 floor 3000 growth 3000 pace 0      of data to the station; what is not named is 0
//! hop down depth 20000 rate 0     what SYNs may promise together; `down` is the data, so SYNs of the station
//! heartbeat stops | heartbeat beats | silent | heard | dry run | dry end | epoch 2 | scale down 7
//! 0.000 > S 0:0(0) win 64240 <mss 1460,wscale 7,TS val 100 ecr 0> = syn
//! +0.040 < P. 1:1001(1000) ack 1 win 500 [gso 500] = rewritten win 100
//! ? down.edge 64241, up.scale 7, table flows
//! ```
//!
//! `>` goes to the remote side, `<` to the station. Times are seconds from the begin, or with a plus from the line before. Numbers
//! count from each end's first one, timestamps likewise; every script runs with several beginnings, two of which wrap soon. What
//! follows in brackets: `gso BYTES`, `fragment OFFSET`, `fragment OFFSET more`, `bad checksum`, `padding BYTES`, `longer BYTES`
//! (what the IP header says beyond what there is; `longer -8` is less), separated by commas. A verdict is one of `Reason`, with the window where one is written, or `untouched`: whatever the reason. After each
//! packet its bytes are compared: nothing but window and checksum may differ, and the checksum, added up anew, is as right as it was.
//!
//! `?` asks what the program keeps, of `down` (data to the station) and `up`: see `expect::FIELDS`; `unknown` is a value,
//! too. `table` is `flows`, `opening` or `none`; `unchanged` says that both halves are as they were before the newest packet.

#[path = "../common/compile.rs"]
mod compile;
mod connection;
mod expect;
mod frame;
mod headers;
mod mutate;
mod odd;
mod parse;
#[path = "../agreement/random.rs"]
mod random;
mod rig;
#[path = "../common/runnable.rs"]
mod runnable;

use std::fs;
use std::path::Path;

use lasthop_core::fastpath::layout::Reason;

use parse::Script;
use rig::Rig;

/// First numbers and first timestamps of station and remote end: far from a wrap, soon before it, soon before the middle.
const BEGINNINGS: [[u32; 2]; 3] = [[0x1000_0000, 0x9000_0000], [0xffff_f800, 0xffff_f000], [0x7fff_f800, 0x7fff_f000]];

fn scripts(folder: &str) -> Vec<Script> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/script").join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("it is there").path()).collect();
    paths.sort();
    let parse = |path: &Path| {
        let name = path.file_name().expect("a file").to_string_lossy();
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"));
        parse::script(&name, &text).unwrap_or_else(|error| panic!("{error}"))
    };
    paths.iter().map(|path| parse(path)).collect()
}

/// Each of them in each of its networks and with each beginning; all that failed are told.
fn hold(scripts: &[Script]) {
    let Some(mut rig) = Rig::load() else { return };
    let mut failures = Vec::new();
    for script in scripts {
        for over in &script.overs {
            let failed = BEGINNINGS.iter().find_map(|begin| rig.run(script, over, *begin).err());
            failures.extend(failed);
        }
    }
    assert!(failures.is_empty(), "{} runs failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn the_loaded_program_follows_the_scripts() {
    let scripts = scripts("scripts");
    assert!(scripts.len() >= 15, "{} scripts were found", scripts.len());
    hold(&scripts);
}

/// They are read in any case, so that none of them rots.
#[test]
fn the_loaded_program_refuses_what_its_gate_refuses() {
    let scripts = scripts("gate");
    assert!(scripts.len() >= 6, "{} scripts were found", scripts.len());
    if !has_gate() {
        eprintln!("SKIPPED: {} scripts of the gate: the fast path has none yet", scripts.len());
        return;
    }
    hold(&scripts);
}

/// Whether segments that do not fit their connection are told apart.
fn has_gate() -> bool {
    Reason::ALL.iter().any(|reason| reason.name() == "invalid")
}

#[test]
fn a_wrong_line_is_named() {
    let says = |text: &str| parse::script("x.pkt", text).expect_err("it is wrong");
    assert_eq!(says("\n0.0 > Q 0:0(0) = syn"), "x.pkt:2: flags are of F, S, R, P, U, E, W and . or - alone, not `Q`");
    assert_eq!(says("0.0 > S 0:1(0) = syn"), "x.pkt:1: 0:1 is not 0 bytes long");
    assert_eq!(says("0.0 > S 0:0(0)"), "x.pkt:1: expected `=`, found the end of the line");
    assert_eq!(says("0.0 > . 0:0(0) = rewritten"), "x.pkt:1: expected `win`, found the end of the line");
    assert_eq!(says("1.0 > S 0:0(0) = syn\n0.5 heard"), "x.pkt:2: time goes back");
    assert_eq!(says("? down.egde 7"), "x.pkt:1: there is no `egde` of a half");
    assert_eq!(says("plan down clmap 7"), "x.pkt:1: expected clamp, floor, growth or pace, found `clmap`");
    assert_eq!(says("heard of it"), "x.pkt:1: `of` is too much");
    assert_eq!(says("over ipv6 vlan x"), "x.pkt:1: the tag is no number in range: `x`");
    assert_eq!(says("? table elsewhere"), "x.pkt:1: there is no table `elsewhere`");
}

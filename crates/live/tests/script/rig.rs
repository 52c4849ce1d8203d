//! The program in the kernel, its clock set by the test, and a script that is run on it.

use std::sync::OnceLock;

use lasthop_core::fastpath::layout::{Control, FlowKey, FlowState, Reason};
use lasthop_core::packet::Direction;
use lasthop_core::units::Time;
use lasthop_core::wire::{Endpoint, Merged};
use lasthop_live::program::{
    LinkLayer, LoadError, LoadOptions, PLACES_OF_PORTS, Program, ProgramError, Refusal, TestPacket,
};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::compile;
use crate::expect::Kept;
use crate::frame::Over;
use crate::headers::{Found, compare};
use crate::parse::{Line, Packet, Script, Step, Verdict};

/// What a script calls 0, of the program's clock; anything but its begin.
const BEGIN_NS: u64 = 5_000_000_000;

/// What is made up passes the loopback interface.
const LOOPBACK: usize = 1;
/// The hop behind it; any but the first, which is that of interfaces without one of their own.
const HOP: u8 = 3;

const GO_ON: u32 = u32::MAX;

/// More connections than strangers make up while one of ours lives; few, because the table is read as a whole.
const FLOWS: u32 = 2_048;

/// The loaded program.
pub struct Rig {
    pub program: Program,
    control: MapHandle,
    /// Where connections wait until one end has acknowledged what the other sent, if the object has such a table.
    opening: Option<MapHandle>,
    /// What the program left of the newest packet.
    out: Vec<u8>,
}

/// What became of a packet.
pub struct Passed {
    pub reason: &'static str,
    /// What was written, if anything was.
    pub window: Option<u16>,
}

impl Rig {
    /// Without clang or the rights there is none, which is said.
    pub fn load() -> Option<Self> {
        let skipped = |why: String| {
            eprintln!("SKIPPED: {why}");
            None
        };
        // Once for all tests of this file: compiling takes longer than what follows.
        static OBJECT: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
        let compile = || {
            let clang = compile::clang()?;
            Ok(compile::object(&clang, "lasthop.bpf.c", &["-DLASTHOP_TEST_CLOCK"]).expect("it compiles"))
        };
        let object = match OBJECT.get_or_init(compile) {
            Ok(object) => object,
            Err(why) => return skipped(why.clone()),
        };
        let program = match Program::load_object(object, LoadOptions { flows: FLOWS, ..LoadOptions::default() }) {
            Ok(program) => program,
            Err(error @ LoadError::Refused(Refusal::Rights(_))) => return skipped(error.to_string()),
            Err(error) => panic!("{error}"),
        };
        let mut places = [0; PLACES_OF_PORTS];
        places[LOOPBACK] = HOP;
        program.set_hops(&places).expect("the map takes it");
        let map = |name: &str| {
            let map = program.object().maps().find(|map| map.name() == name)?;
            Some(MapHandle::try_from(&map).expect("a descriptor"))
        };
        let (control, opening) = (map(".bss.control").expect("the object has it"), map("opening"));
        Some(Self { program, control, opening, out: vec![0; 8_192] })
    }

    /// As if the program had just been loaded, but for its counters.
    pub fn forget(&self) {
        let zeros = vec![0; self.control.value_size() as usize];
        assert_eq!(zeros.len(), size_of::<Control>());
        self.control.update(&0u32.to_ne_bytes(), &zeros, MapFlags::ANY).expect("the map takes it");
        for (key, _) in self.program.flows().expect("they can be read") {
            self.program.delete(&key).expect("it is there");
        }
        if let Some(map) = &self.opening {
            let keys: Vec<_> = map.keys().collect();
            keys.iter().for_each(|key| map.delete(key).expect("it is there"));
        }
    }

    /// What the program keeps of a connection.
    pub fn kept(&self, key: &FlowKey) -> Kept {
        if let Some(state) = self.program.flow(key).expect("it can be read") {
            return Kept { table: "flows", state: Some(state) };
        }
        let bytes = [&key.station[..], &key.remote].concat();
        let ports = [key.station_port.to_ne_bytes(), key.remote_port.to_ne_bytes()].concat();
        let found = |map: &MapHandle| map.lookup(&[bytes, ports].concat(), MapFlags::ANY).expect("it can be read");
        match self.opening.as_ref().and_then(found) {
            Some(value) => Kept { table: "opening", state: Some(state_of(&value)) },
            None => Kept { table: "none", state: None },
        }
    }

    /// A frame passes at a time that is `mark` after the heartbeat. What the program may not do is an error.
    pub fn pass(
        &mut self,
        direction: Direction,
        raw: bool,
        frame: &[u8],
        merged: Merged,
        mark: u32,
    ) -> Result<Option<u16>, String> {
        let link = if raw { LinkLayer::Ip } else { LinkLayer::Ethernet };
        let hook = self.program.prog_fd(direction, link);
        let packet = TestPacket { bytes: frame, merged, mark };
        let run = self.program.run_on(hook, packet, &mut self.out, 1).map_err(|error| match error {
            ProgramError::Kernel(error) => format!("the kernel did not run it: {error}"),
            error => error.to_string(),
        })?;
        if run.returned != GO_ON {
            return Err(format!("the program returned {}, and the packet does not go on", run.returned as i32));
        }
        compare(frame, &self.out[..run.length], Found::of(frame, raw, merged.segments > 1).as_ref())
    }

    /// Runs a script over one network, its numbers counted from `begin`.
    pub fn run(&mut self, script: &Script, over: &Over, begin: [u32; 2]) -> Result<(), String> {
        self.forget();
        let before = Kept { table: "none", state: None };
        let mut run = Run { rig: self, over, begin, key: key_of(over.ends()), stopped_ns: None, before };
        script.lines.iter().try_for_each(|line| {
            let told = |what: String| format!("{}:{}: {what} ({over:?}, from {begin:x?})", script.name, line.number);
            run.line(line).map_err(told)
        })
    }
}

/// A script that runs.
struct Run<'a> {
    rig: &'a mut Rig,
    over: &'a Over,
    begin: [u32; 2],
    key: FlowKey,
    /// When the heartbeat stopped.
    stopped_ns: Option<u64>,
    /// What was kept before the newest packet.
    before: Kept,
}

impl Run<'_> {
    fn line(&mut self, line: &Line) -> Result<(), String> {
        let now_ns = BEGIN_NS + line.at_ns;
        let control = self.rig.program.control();
        match &line.step {
            Step::Packet(packet, verdict) => return self.packet(packet, verdict, now_ns),
            Step::Check(checks) => {
                let now = self.rig.kept(&self.key);
                return checks.iter().try_for_each(|check| check.against(&now, &self.before, self.begin));
            }
            Step::Plan(direction, plan) => {
                control.set_default_plan(*direction, *plan);
                match self.rig.program.set_plan(&self.key, *direction, *plan) {
                    Ok(()) | Err(ProgramError::NoSuchFlow) => {}
                    Err(error) => return Err(error.to_string()),
                }
            }
            Step::Hop { direction, depth_bytes, rate_bytes } => {
                control.set_start_of(HOP.into(), *direction, *depth_bytes, *rate_bytes);
            }
            Step::Heartbeat { beats } => self.stopped_ns = (!beats).then_some(now_ns),
            Step::Silent(silent) => control.set_silent(Time::from_nanos(if *silent { now_ns } else { 0 })),
            Step::DryRun(dry_run) => control.set_dry_run(*dry_run),
            Step::Epoch(epoch) => control.set_epoch(*epoch),
            Step::Scale(direction, scale) => {
                self.rig.program.set_scale(&self.key, *direction, *scale).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    fn packet(&mut self, packet: &Packet, verdict: &Verdict, now_ns: u64) -> Result<(), String> {
        let heartbeat_ns = self.stopped_ns.unwrap_or(now_ns);
        let mark = u32::try_from(now_ns - heartbeat_ns).map_err(|_| "the heartbeat stopped too long ago".to_owned())?;
        self.rig.program.control().heartbeat(Time::from_nanos(heartbeat_ns));
        let (frame, merged) = packet.frame(self.over, self.begin);
        self.before = self.rig.kept(&self.key);
        let counted = self.reasons();
        let window = self.rig.pass(packet.direction(), self.over.raw, &frame, merged, mark)?;
        let passed = Passed { reason: self.newest_reason(&counted)?, window };
        match verdict {
            Verdict::Untouched if passed.window.is_none() => Ok(()),
            Verdict::Named(reason, window) if *reason == passed.reason && *window == passed.window => Ok(()),
            Verdict::Untouched => Err(format!("expected untouched, the program {}", passed.told())),
            Verdict::Named(reason, window) => {
                let window = window.map_or(String::new(), |window| format!(" win {window}"));
                Err(format!("expected {reason}{window}, the program {}", passed.told()))
            }
        }
    }

    fn reasons(&self) -> [u64; Reason::COUNT] {
        self.rig.program.counters().expect("they can be read").reason
    }

    /// The one that was counted since.
    fn newest_reason(&self, before: &[u64; Reason::COUNT]) -> Result<&'static str, String> {
        let after = self.reasons();
        let counted: Vec<_> =
            Reason::ALL.iter().filter(|reason| after[**reason as usize] != before[**reason as usize]).collect();
        match counted[..] {
            [reason] if after[*reason as usize] == before[*reason as usize] + 1 => Ok(reason.name()),
            _ => Err(format!("one packet was counted as {counted:?}")),
        }
    }
}

impl Passed {
    fn told(&self) -> String {
        let window = self.window.map_or(String::new(), |window| format!(" and wrote {window}"));
        format!("says {}{window}", self.reason)
    }
}

/// The key of a connection between station and remote end.
pub fn key_of([station, remote]: [Endpoint; 2]) -> FlowKey {
    FlowKey { station: station.address, remote: remote.address, station_port: station.port, remote_port: remote.port }
}

fn state_of(value: &[u8]) -> FlowState {
    assert_eq!(value.len(), size_of::<FlowState>());
    // SAFETY: so many bytes are there, and any bytes make a FlowState, which is of integers without padding.
    unsafe { std::ptr::read_unaligned(value.as_ptr().cast()) }
}

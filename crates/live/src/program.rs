//! The loaded BPF object, typed: its programs, its maps, and the calls that change a flow in place.
//!
//! Layouts are those of `lasthop_core::fastpath::layout`, byte for byte. Attaching is not done here.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use lasthop_core::fastpath::layout::{Counters, FlowKey, FlowState, Plan, UdpPlan, UdpState};
use lasthop_core::fastpath::light::LightFlow;
use lasthop_core::packet::Direction;
use lasthop_core::units::Time;
use lasthop_core::wire::Merged;
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, ObjectBuilder};

use crate::maps::{ControlError, ControlPage, LastLarge, PlanOf, Plans, READS, Reads, Refused};

mod asks;
mod moved;
mod refusal;
mod wakes;

pub use asks::{Answer, Ask, Asks, LinkHeader};
pub use moved::Moved;
pub use refusal::Refusal;
pub use wakes::Wakes;

/// What an interface hands to the program first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLayer {
    /// An Ethernet header.
    Ethernet,
    /// The IP header itself (tun, ppp, cellular).
    Ip,
}

/// What has to be known at load time.
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions {
    /// Size of the flow table, connections. 16,384 take about 6 MiB.
    pub flows: u32,
    /// What goes to stations is handed to the process that keeps the queue of the interface (`live::datapath`), where there is one.
    pub diverts: bool,
    /// Bare acknowledgments of stations are handed to the process that repairs losses of the interface, where there is one.
    pub catches: bool,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self { flows: 16_384, diverts: false, catches: false }
    }
}

impl LoadOptions {
    /// Connections that are not assured yet, at most. More than a quarter of all seldom begin within a round trip.
    fn opening(&self) -> u32 {
        (self.flows / 4).max(64)
    }

    /// Name in the object of the program for packets going `direction`.
    const fn hook(&self, direction: Direction, link: LinkLayer) -> &'static str {
        match (direction, link) {
            (Direction::ToStation, LinkLayer::Ethernet) if self.diverts => "lasthop_divert",
            (Direction::ToStation, LinkLayer::Ip) if self.diverts => "lasthop_divert_ip",
            (Direction::ToStation, LinkLayer::Ethernet) => "lasthop_egress",
            (Direction::ToStation, LinkLayer::Ip) => "lasthop_egress_ip",
            (Direction::ToRemote, LinkLayer::Ethernet) if self.catches => "lasthop_catch",
            (Direction::ToRemote, LinkLayer::Ip) if self.catches => "lasthop_catch_ip",
            (Direction::ToRemote, LinkLayer::Ethernet) => "lasthop_ingress",
            (Direction::ToRemote, LinkLayer::Ip) => "lasthop_ingress_ip",
        }
    }
}

/// The object could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The kernel did not load it.
    #[error("{}; {}", _0, _0.remedy())]
    Refused(Refusal),
    /// A descriptor or a map of the loaded object could not be had.
    #[error("the BPF object was loaded and cannot be used")]
    Kernel(#[from] libbpf_rs::Error),
    /// The object lacks a program or a map.
    #[error("the BPF object has no {0}")]
    Absent(&'static str),
    /// The control map could not be mapped into this process.
    #[error(transparent)]
    Control(#[from] ControlError),
}

/// A call into the loaded object failed.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The flow is not (or no longer) in the table.
    #[error("the flow is not in the table")]
    NoSuchFlow,
    /// The kernel refused the call.
    #[error("the kernel refused a call to the BPF object")]
    Kernel(#[source] std::io::Error),
    /// A map could not be read or written.
    #[error("a BPF map could not be accessed")]
    Map(#[from] libbpf_rs::Error),
}

/// A made-up packet.
#[derive(Clone, Copy, Debug)]
pub struct TestPacket<'a> {
    /// From the link header on, at least 14 bytes.
    pub bytes: &'a [u8],
    /// What an offload engine is to have merged.
    pub merged: Merged,
    /// `skb->mark`, which nothing but a test reads.
    pub mark: u32,
}

/// What one run of a program on a made-up packet gave.
#[derive(Clone, Copy, Debug)]
pub struct TestRun {
    /// What the program returned.
    pub returned: u32,
    /// Length of the packet afterwards, bytes.
    pub length: usize,
    /// Mean duration of one run, ns.
    pub duration_ns: u32,
}

/// How far a walk over a table has come: from here on when it is a new one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk {
    /// The kernel's own position in the table; a key's length is what it may use at most. None: at the begin.
    position: Option<[u8; size_of::<FlowKey>()]>,
}

/// Flows that are read at once: half a megabyte, which stays in the processor's cache.
pub const BATCH: usize = 1024;

/// Room for as many flows as are read at once; kept from one reading to the next.
#[derive(Debug)]
pub struct Batch<T> {
    keys: Vec<FlowKey>,
    states: Vec<T>,
}

impl<T: Clone + Default> Default for Batch<T> {
    fn default() -> Self {
        Self { keys: vec![FlowKey::default(); BATCH], states: vec![T::default(); BATCH] }
    }
}

/// Names of the tables that outlive a controller which hands over.
const TABLES: [&str; 2] = ["flows", "udp_flows"];

/// The object, loaded and verified.
#[derive(Debug)]
pub struct Program {
    options: LoadOptions,
    object: Object,
    flows: MapHandle,
    udp_flows: MapHandle,
    /// Of each processor; the counters stand at its begin.
    counters: MapHandle,
    control: ControlPage,
    large: LastLarge,
    refused: Refused,
    reads: Reads,
    read_flows: OwnedFd,
    remove_flows: OwnedFd,
    plans: Plans,
    set_plans: OwnedFd,
    set_udp_plan: OwnedFd,
    set_class: OwnedFd,
    set_scale: OwnedFd,
    /// UDP flows to stations behind radios, which interfaces lead to radios, and how many packets were given a class.
    light_flows: MapHandle,
    radios: MapHandle,
    classed: MapHandle,
    /// Stations behind hooked ports of bridges, and how many they are: with none the data path does not look.
    locals: MapHandle,
    locals_number: MapHandle,
    /// Which hop is behind an interface.
    hops: MapHandle,
}

/// How many interfaces have places of their own in the map of hops, by the lower bits of their numbers.
pub const PLACES_OF_PORTS: usize = 1024;

#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!("bpf/object/lasthop.bpf.o"));

impl Program {
    /// Loads the object this crate was built with.
    pub fn load(options: LoadOptions) -> Result<Self, LoadError> {
        Self::load_around(&OBJECT.0, options, None)
    }

    /// Loads the programs around the tables of connections and of UDP flows that another controller filled, of the same layout and size.
    pub fn load_with_tables(options: LoadOptions, tables: &[OwnedFd; 2]) -> Result<Self, LoadError> {
        Self::load_around(&OBJECT.0, options, Some(tables))
    }

    /// Loads another object with the same maps and programs: benches wrap the fast path in programs of their own.
    pub fn load_object(bytes: &[u8], options: LoadOptions) -> Result<Self, LoadError> {
        Self::load_around(bytes, options, None)
    }

    fn load_around(bytes: &[u8], options: LoadOptions, tables: Option<&[OwnedFd; 2]>) -> Result<Self, LoadError> {
        refusal::listen();
        let mut open = ObjectBuilder::default().open_memory(bytes)?;
        for mut map in open.maps_mut() {
            match map.name().as_encoded_bytes() {
                b"flows" => map.set_max_entries(options.flows)?,
                b"opening" => map.set_max_entries(options.opening())?,
                _ => {}
            }
        }
        for (name, table) in TABLES.iter().zip(tables.into_iter().flatten()) {
            for mut map in open.maps_mut().filter(|map| map.name() == *name) {
                map.reuse_fd(table.as_fd())?;
            }
        }
        let object = open.load().map_err(|_| LoadError::Refused(refusal::find()))?;
        let control = ControlPage::map(map_named(&object, ".bss.control")?.as_fd())?;
        let large = LastLarge::map(map_named(&object, ".data.large")?.as_fd())?;
        let flows = map_named(&object, "flows")?;
        let udp_flows = map_named(&object, "udp_flows")?;
        let light_flows = map_named(&object, "light_flows")?;
        let sizes = |map: &MapHandle| (map.key_size() as usize, map.value_size() as usize);
        if sizes(&flows) != (size_of::<FlowKey>(), size_of::<FlowState>())
            || sizes(&udp_flows) != (size_of::<FlowKey>(), size_of::<UdpState>())
            || sizes(&light_flows) != (size_of::<FlowKey>(), size_of::<LightFlow>())
        {
            return Err(LoadError::Absent("map of flows with this crate's layout"));
        }
        let counters = map_named(&object, "per_cpu")?;
        if (counters.value_size() as usize) < size_of::<Counters>() {
            return Err(LoadError::Absent("map of counters with this crate's layout"));
        }
        Ok(Self {
            options,
            flows,
            udp_flows,
            counters,
            control,
            large,
            reads: Reads::map(map_named(&object, "reads")?.as_fd())?,
            read_flows: owned_program(&object, "read_flows")?,
            remove_flows: owned_program(&object, "remove_flows")?,
            refused: Refused::map(map_named(&object, "refused")?.as_fd())?,
            plans: Plans::map(map_named(&object, "plans")?.as_fd())?,
            set_plans: owned_program(&object, "set_plans")?,
            set_udp_plan: owned_program(&object, "set_udp_plan")?,
            set_class: owned_program(&object, "set_class")?,
            set_scale: owned_program(&object, "set_scale")?,
            light_flows,
            radios: map_named(&object, ".data.radios")?,
            classed: map_named(&object, ".data.classed")?,
            locals: map_named(&object, "local_macs")?,
            locals_number: map_named(&object, ".data.locals")?,
            hops: map_named(&object, ".data.hops")?,
            object,
        })
    }

    /// The tables of connections and of UDP flows, for a controller that takes over.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn tables(&self) -> std::io::Result<[OwnedFd; 2]> {
        Ok([self.flows.as_fd().try_clone_to_owned()?, self.udp_flows.as_fd().try_clone_to_owned()?])
    }

    /// The program for packets going `direction`: tc egress of a LAN interface for [`Direction::ToStation`], tc
    /// ingress for [`Direction::ToRemote`].
    #[must_use]
    pub fn prog_fd(&self, direction: Direction, link: LinkLayer) -> BorrowedFd<'_> {
        self.program_fd(self.options.hook(direction, link)).expect("checked by the compiler of the object and its test")
    }

    /// For ingress of the device that caught acknowledgments come back by, and one that does nothing, for its egress.
    #[must_use]
    pub fn return_fds(&self) -> [BorrowedFd<'_>; 2] {
        ["lasthop_return", "nothing"]
            .map(|name| self.program_fd(name).expect("checked by the compiler of the object and its test"))
    }

    /// The map of interfaces whose acknowledgments go by a process; a descriptor of its own.
    ///
    /// # Errors
    /// When the object has none, or no descriptor is left.
    pub fn catches(&self) -> Result<MapHandle, LoadError> {
        map_named(&self.object, "catches")
    }

    /// The map of interfaces whose queue is kept by a process; a descriptor of its own.
    ///
    /// # Errors
    /// When the object has none, or no descriptor is left.
    pub fn diverts(&self) -> Result<MapHandle, LoadError> {
        map_named(&self.object, "diverts")
    }

    /// Flows whose window updates the data path asks for, and the call that tells what to send; with descriptors of its own.
    ///
    /// # Errors
    /// When the object lacks either, or no descriptor is left.
    pub fn asks(&self) -> Result<Asks, LoadError> {
        Ok(Asks::new(map_named(&self.object, "asks")?, owned_program(&self.object, "window_update_due")?))
    }

    /// Which connections moved, told by the data path.
    ///
    /// # Errors
    /// When the object lacks the ring, or it cannot be mapped.
    pub fn moved(&self) -> Result<Moved, LoadError> {
        Ok(Moved::new(&map_named(&self.object, "moved")?)?)
    }

    /// Wakes whoever waits when bulk data begin to pass after a pause.
    ///
    /// # Errors
    /// When the object lacks the ring, or it cannot be mapped.
    pub fn wakes(&self) -> Result<Wakes, LoadError> {
        Ok(Wakes::new(&map_named(&self.object, "wakes")?)?)
    }

    /// Any loaded program of the object by name.
    #[must_use]
    pub fn program_fd(&self, name: &str) -> Option<BorrowedFd<'_>> {
        let program = self.object.progs().find(|program| program.autoload() && program.name() == name)?;
        // SAFETY: the object owns the descriptor and lives as long as `self`, whose lifetime the result carries.
        Some(unsafe { BorrowedFd::borrow_raw(program.as_fd().as_raw_fd()) })
    }

    /// The object itself, for `bpf_program__attach_tcx` and the like.
    #[must_use]
    pub const fn object(&self) -> &Object {
        &self.object
    }

    /// Maps the same page once more, for a thread of its own.
    ///
    /// # Errors
    /// When it cannot be mapped.
    pub fn another_control(&self) -> Result<ControlPage, LoadError> {
        Ok(ControlPage::map(map_named(&self.object, ".bss.control")?.as_fd())?)
    }

    /// What the controller tells the data path.
    #[must_use]
    pub const fn control(&self) -> &ControlPage {
        &self.control
    }

    /// When a large packet last passed: all bulk data come in such.
    #[must_use]
    pub fn last_large(&self) -> Time {
        self.large.at()
    }

    /// Who found no place in the table of connections.
    #[must_use]
    pub const fn refused(&self) -> &Refused {
        &self.refused
    }

    /// A copy of every connection in the table.
    pub fn flows(&self) -> Result<Vec<(FlowKey, FlowState)>, ProgramError> {
        let mut all = Vec::new();
        self.read_flows(&mut Batch::default(), |key, state| all.push((*key, *state)))?;
        Ok(all)
    }

    /// Shows every connection in the table, in the memory of `batch`: no copy of the whole is made. After an error some
    /// were shown.
    pub fn read_flows(
        &self,
        batch: &mut Batch<FlowState>,
        show: impl FnMut(&FlowKey, &FlowState),
    ) -> Result<(), ProgramError> {
        read_all(&self.flows, batch, show)
    }

    /// Shows the next connections of the table, as many as `batch` holds, and whether those were the last: then the walk begins anew.
    /// One that comes or goes meanwhile may be missed; every other is shown once.
    pub fn walk_flows(
        &self,
        walk: &mut Walk,
        batch: &mut Batch<FlowState>,
        mut show: impl FnMut(&FlowKey, &FlowState),
    ) -> Result<bool, ProgramError> {
        read_next(&self.flows, walk, batch, &mut show)
    }

    /// Shows those of these connections that are in the table, each as often as it is named.
    pub fn read_some(
        &mut self,
        keys: &[FlowKey],
        mut show: impl FnMut(&FlowKey, &FlowState),
    ) -> Result<(), ProgramError> {
        let Self { reads, read_flows, .. } = self;
        keys.chunks(READS).try_for_each(|some| {
            let call = || test_run(read_flows.as_fd(), &mut without_arguments());
            reads.read(some, call, &mut show)
        })
    }

    /// Forgets those of these connections of which nothing has passed since they were last seen; how many those are.
    pub fn remove(&mut self, flows: &[(FlowKey, Time)]) -> Result<u64, ProgramError> {
        let Self { reads, remove_flows, .. } = self;
        flows
            .chunks(READS)
            .map(|some| reads.remove(some, || test_run(remove_flows.as_fd(), &mut without_arguments())))
            .sum()
    }

    /// A copy of every UDP flow in its table: those that ever sent a full packet.
    pub fn udp_flows(&self) -> Result<Vec<(FlowKey, UdpState)>, ProgramError> {
        let mut all = Vec::new();
        self.read_udp_flows(&mut Batch::default(), |key, state| all.push((*key, *state)))?;
        Ok(all)
    }

    /// Shows every UDP flow, as [`Self::read_flows`].
    pub fn read_udp_flows(
        &self,
        batch: &mut Batch<UdpState>,
        show: impl FnMut(&FlowKey, &UdpState),
    ) -> Result<(), ProgramError> {
        read_all(&self.udp_flows, batch, show)
    }

    /// How many have a place there.
    #[must_use]
    pub fn udp_places(&self) -> usize {
        self.udp_flows.max_entries() as usize
    }

    /// A copy of one UDP flow.
    pub fn udp_flow(&self, key: &FlowKey) -> Result<Option<UdpState>, ProgramError> {
        Ok(self.udp_flows.lookup(bytes_of(key), MapFlags::ANY)?.as_deref().and_then(pod))
    }

    /// Forgets a UDP flow; one that is not there is forgotten already.
    pub fn delete_udp(&self, key: &FlowKey) -> Result<(), ProgramError> {
        match self.udp_flows.delete(bytes_of(key)) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Sets what the controller wants of one direction of a UDP flow.
    pub fn set_udp_plan(&self, key: &FlowKey, direction: Direction, plan: UdpPlan) -> Result<(), ProgramError> {
        let mut call = SetUdpPlan { key: *key, direction: direction as u32, plan, result: 0 };
        syscall(&self.set_udp_plan, &mut call)?;
        found(call.result)
    }

    /// Says which stations are behind hooked ports of bridges: those that came, with the number of their port, and those that went.
    /// `all` is how many there are then. Those that could not be told are counted.
    pub fn set_locals(&self, added: &[([u8; 6], u32)], removed: &[[u8; 6]], all: u32) -> u64 {
        let [stations, number] = [&self.locals, &self.locals_number];
        let key = |mac: &[u8; 6]| [mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], 0, 0];
        let gone = |mac| match stations.delete(&key(mac)) {
            Err(error) => error.kind() == libbpf_rs::ErrorKind::NotFound,
            Ok(()) => true,
        };
        let come =
            |(mac, port): &([u8; 6], u32)| stations.update(&key(mac), &port.to_ne_bytes(), MapFlags::ANY).is_ok();
        let told = number.update(&0u32.to_ne_bytes(), &all.to_ne_bytes(), MapFlags::ANY).is_ok();
        let refused = removed.iter().filter(|mac| !gone(mac)).count() + added.iter().filter(|one| !come(one)).count();
        refused as u64 + u64::from(!told)
    }

    /// Shows every UDP flow to a station behind a radio, as [`Self::read_flows`].
    pub fn read_light_flows(
        &self,
        batch: &mut Batch<LightFlow>,
        show: impl FnMut(&FlowKey, &LightFlow),
    ) -> Result<(), ProgramError> {
        read_all(&self.light_flows, batch, show)
    }

    /// Forgets one of them; one that is not there is forgotten already.
    pub fn delete_light(&self, key: &FlowKey) -> Result<(), ProgramError> {
        match self.light_flows.delete(bytes_of(key)) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Gives packets of one of them this user priority, 1 to 7, or none but their own with 0.
    pub fn set_class(&self, key: &FlowKey, user_priority: u32) -> Result<(), ProgramError> {
        let mut call = SetClass { key: *key, user_priority, result: 0 };
        syscall(&self.set_class, &mut call)?;
        found(call.result)
    }

    /// Says behind which interfaces, by their numbers, there are radios, and whether classes are in force there.
    pub fn set_radios(&self, ifindexes: &[u32], classes: bool) -> Result<(), ProgramError> {
        let mut radios = [0u8; 8 + PLACES_OF_PORTS];
        radios[0] = u8::from(!ifindexes.is_empty());
        for ifindex in ifindexes {
            radios[8 + *ifindex as usize % PLACES_OF_PORTS] = 1 + u8::from(classes);
        }
        Ok(self.radios.update(&0u32.to_ne_bytes(), &radios, MapFlags::ANY)?)
    }

    /// How many packets were given a class.
    pub fn classed(&self) -> Result<u64, ProgramError> {
        let count = self.classed.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)?;
        Ok(count.and_then(|bytes| bytes.first_chunk().copied()).map_or(0, u64::from_ne_bytes))
    }

    /// Says which of [`lasthop_core::fastpath::layout::Control::hops`] is behind each interface, by the lower bits of its number.
    pub fn set_hops(&self, places: &[u8; PLACES_OF_PORTS]) -> Result<(), ProgramError> {
        Ok(self.hops.update(&0u32.to_ne_bytes(), places, MapFlags::ANY)?)
    }

    /// A copy of one flow.
    pub fn flow(&self, key: &FlowKey) -> Result<Option<FlowState>, ProgramError> {
        Ok(self.flows.lookup(bytes_of(key), MapFlags::ANY)?.as_deref().and_then(pod))
    }

    /// A copy of one that is not assured: for tests.
    pub fn opening(&self, key: &FlowKey) -> Result<Option<FlowState>, ProgramError> {
        let opening = map_named(&self.object, "opening").map_err(|_| ProgramError::NoSuchFlow)?;
        Ok(opening.lookup(bytes_of(key), MapFlags::ANY)?.as_deref().and_then(pod))
    }

    /// Puts a flow into the table, or replaces it: for tests.
    pub fn put(&self, key: &FlowKey, state: &FlowState) -> Result<(), ProgramError> {
        Ok(self.flows.update(bytes_of(key), bytes_of(state), MapFlags::ANY)?)
    }

    /// Forgets a flow, whatever passes; one that is not there is forgotten already: for tests.
    pub fn delete(&self, key: &FlowKey) -> Result<(), ProgramError> {
        match self.flows.delete(bytes_of(key)) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// The counters, summed over CPUs.
    pub fn counters(&self) -> Result<Counters, ProgramError> {
        let per_cpu = self.counters.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
        let mut sum = Counters::default();
        for one in per_cpu.iter().filter_map(|bytes| pod::<Counters>(bytes)) {
            sum.add(&one);
        }
        Ok(sum)
    }

    /// Sets what the controller wants of one direction of a flow.
    pub fn set_plan(&mut self, key: &FlowKey, direction: Direction, plan: Plan) -> Result<(), ProgramError> {
        match self.set_plans(&[PlanOf::new(*key, direction, plan)])? {
            0 => Err(ProgramError::NoSuchFlow),
            _ => Ok(()),
        }
    }

    /// Sets many plans and returns for how many there is a flow. After an error some were set.
    pub fn set_plans(&mut self, plans: &[PlanOf]) -> Result<u64, ProgramError> {
        let call = || test_run(self.set_plans.as_fd(), &mut without_arguments());
        plans.chunks(READS).map(|some| self.plans.tell(some, call)).sum()
    }

    /// Tells the window scale of `direction`'s receiver, 0..=14, as conntrack knows it.
    pub fn set_scale(&self, key: &FlowKey, direction: Direction, scale: u8) -> Result<(), ProgramError> {
        let mut call = SetScale { key: *key, direction: direction as u32, scale: u32::from(scale), result: 0 };
        syscall(&self.set_scale, &mut call)?;
        found(call.result)
    }

    /// Runs a program on a packet (BPF_PROG_TEST_RUN). `out` must have room for the packet afterwards.
    pub fn run_on(
        &self,
        program: BorrowedFd<'_>,
        packet: TestPacket<'_>,
        out: &mut [u8],
        repeat: u32,
    ) -> Result<TestRun, ProgramError> {
        let mut context = [0u32; SK_BUFF_WORDS];
        context[MARK_WORD] = packet.mark;
        if packet.merged.segments > 1 {
            context[GSO_SEGS_WORD] = packet.merged.segments;
            context[GSO_SIZE_WORD] = packet.merged.segment_bytes;
        }
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
            data_in: packet.bytes.as_ptr().cast(),
            data_size_in: packet.bytes.len() as u32,
            data_out: out.as_mut_ptr().cast(),
            data_size_out: out.len() as u32,
            ctx_in: context.as_ptr().cast(),
            ctx_size_in: size_of_val(&context) as u32,
            repeat: repeat as i32,
            ..Default::default()
        };
        test_run(program, &mut options)?;
        Ok(TestRun { returned: options.retval, length: options.data_size_out as usize, duration_ns: options.duration })
    }
}

/// Shows every entry of a table.
fn read_all<T: Pod + Copy + Default>(
    map: &MapHandle,
    batch: &mut Batch<T>,
    mut show: impl FnMut(&FlowKey, &T),
) -> Result<(), ProgramError> {
    let mut walk = Walk::default();
    while !read_next(map, &mut walk, batch, &mut show)? {}
    Ok(())
}

/// Shows the next entries of a table, and whether they were the last.
///
/// Batches by hand: the kernel ends a batch at a whole bucket, so one that is not full is not the last, as
/// libbpf-rs takes it to be; under a flood most of the table would be missing.
fn read_next<T: Pod + Copy + Default>(
    map: &MapHandle,
    walk: &mut Walk,
    Batch { keys, states }: &mut Batch<T>,
    show: &mut impl FnMut(&FlowKey, &T),
) -> Result<bool, ProgramError> {
    let mut next = [0u8; size_of::<FlowKey>()];
    loop {
        let mut count = keys.len() as u32;
        let from = walk.position.as_mut().map_or(std::ptr::null_mut(), |position| position.as_mut_ptr().cast());
        // SAFETY: keys and states have room for `count` elements of the map's sizes, which `load` has checked.
        let result = unsafe {
            libbpf_sys::bpf_map_lookup_batch(
                map.as_fd().as_raw_fd(),
                from,
                next.as_mut_ptr().cast(),
                keys.as_mut_ptr().cast(),
                states.as_mut_ptr().cast(),
                &raw mut count,
                std::ptr::null(),
            )
        };
        match -result {
            0 | libc::ENOENT => {
                keys.iter().zip(states.iter()).take(count as usize).for_each(|(key, state)| show(key, state));
                walk.position = (result == 0).then_some(next);
                return Ok(result != 0);
            }
            // One bucket alone holds more.
            libc::ENOSPC => {
                keys.resize(keys.len() * 2, FlowKey::default());
                states.resize(states.len() * 2, T::default());
            }
            libc::EINTR => {}
            error => return Err(ProgramError::Kernel(std::io::Error::from_raw_os_error(error))),
        }
    }
}

/// `struct __sk_buff` of linux/bpf.h in words of 32 bits, and three of its fields.
const SK_BUFF_WORDS: usize = 48;
const MARK_WORD: usize = 2;
const GSO_SEGS_WORD: usize = 41;
const GSO_SIZE_WORD: usize = 44;

fn without_arguments() -> libbpf_sys::bpf_test_run_opts {
    libbpf_sys::bpf_test_run_opts { sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _, ..Default::default() }
}

/// Calls a syscall program; what it answers stands in `call` afterwards.
fn syscall<T: Pod>(program: &OwnedFd, call: &mut T) -> Result<(), ProgramError> {
    let mut options = libbpf_sys::bpf_test_run_opts {
        ctx_in: std::ptr::from_mut(call).cast(),
        ctx_size_in: size_of::<T>() as u32,
        ..without_arguments()
    };
    test_run(program.as_fd(), &mut options)
}

fn test_run(program: BorrowedFd<'_>, options: &mut libbpf_sys::bpf_test_run_opts) -> Result<(), ProgramError> {
    // SAFETY: every pointer in `options` comes from a live reference of the length given beside it.
    let result = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), options) };
    if result < 0 {
        return Err(ProgramError::Kernel(std::io::Error::from_raw_os_error(-result)));
    }
    Ok(())
}

fn found(result: i32) -> Result<(), ProgramError> {
    match result {
        0 => Ok(()),
        error if -error == libc::ENOENT => Err(ProgramError::NoSuchFlow),
        error => Err(ProgramError::Kernel(std::io::Error::from_raw_os_error(-error))),
    }
}

fn map_named(object: &Object, name: &'static str) -> Result<MapHandle, LoadError> {
    let map = object.maps().find(|map| map.name() == name).ok_or(LoadError::Absent(name))?;
    Ok(MapHandle::try_from(&map)?)
}

fn owned_program(object: &Object, name: &'static str) -> Result<OwnedFd, LoadError> {
    let program = object.progs().find(|program| program.name() == name).ok_or(LoadError::Absent(name))?;
    program.as_fd().try_clone_to_owned().map_err(|error| LoadError::Kernel(error.into()))
}

/// Arguments of the program `set_udp_plan`; `bpf/layout.h` states the same.
#[derive(Clone, Copy)]
#[repr(C)]
struct SetUdpPlan {
    key: FlowKey,
    direction: u32,
    plan: UdpPlan,
    result: i32,
}

/// Arguments of the program `set_class`; `bpf/layout.h` states the same.
#[derive(Clone, Copy)]
#[repr(C)]
struct SetClass {
    key: FlowKey,
    user_priority: u32,
    result: i32,
}

/// Arguments of the program `set_scale`; `bpf/layout.h` states the same.
#[derive(Clone, Copy)]
#[repr(C)]
struct SetScale {
    key: FlowKey,
    direction: u32,
    scale: u32,
    result: i32,
}

/// Plain integers without padding: every bit pattern is a value and every byte is initialised.
///
/// # Safety
/// Only for `repr(C)` types of integers whose size is the sum of their fields'.
unsafe trait Pod: Copy {}

// SAFETY: integers only; sizes asserted beside their definition.
unsafe impl Pod for FlowKey {}
// SAFETY: as above.
unsafe impl Pod for FlowState {}
// SAFETY: as above.
unsafe impl Pod for Counters {}
// SAFETY: integers only; sizes asserted beside its definition.
unsafe impl Pod for UdpState {}
// SAFETY: integers only; 36 + 4 + 12 + 4 bytes, all multiples of 4.
unsafe impl Pod for SetUdpPlan {}
// SAFETY: integers only; sizes asserted beside its definition.
unsafe impl Pod for LightFlow {}
// SAFETY: integers only; 36 + 2 x 4 bytes, all multiples of 4.
unsafe impl Pod for SetClass {}
// SAFETY: integers only; 36 + 3 x 4 bytes, all multiples of 4.
unsafe impl Pod for SetScale {}

/// Reads a `T` from as many bytes; `None` when there are fewer.
fn pod<T: Pod>(bytes: &[u8]) -> Option<T> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: both sides are valid for size_of::<T>() bytes, do not overlap, and any bytes make a T (Pod).
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), value.as_mut_ptr().cast(), size_of::<T>());
        Some(value.assume_init())
    }
}

fn bytes_of<T: Pod>(value: &T) -> &[u8] {
    // SAFETY: a Pod has no padding, so all its bytes are initialised.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

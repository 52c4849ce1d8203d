//! CHAP as the queue discipline of an interface: loads it, makes it the root, tells it what packets cost, takes it off.
//!
//! One BPF object per interface (Linux 6.16, `CONFIG_NET_SCH_BPF`), registered while this process holds its link. It paces
//! itself by the costs that it is told, `byte_ns = 8e9 / rate [bit/s]` for each byte and a constant for each packet. When
//! the process dies the discipline stays where it is; 2 s after the last heartbeat it lets everything pass at once, in
//! CHAP's order still, and the next start removes it. Taking it off puts back what was there before (`root.rs`).

pub mod layout;
pub mod root;

use std::io;
use std::mem::MaybeUninit;

use lasthop_core::packet::mix;
use lasthop_core::units::{BitRate, Span, Time};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder};

use crate::discipline::{CHAP, Discipline};
use crate::interface::InterfaceName;
use crate::log::log;
use crate::netlink::Socket;
use crate::program::LinkLayer;
use crate::stations::Mac;
use layout::{Control, LARGEST_LIMIT, Metrics, PacketCost, STATIONS};
use root::Root;

/// Most of them on one machine.
const MOST: usize = 64;
/// What a kernel must have.
pub const REQUIREMENT: &str = "Linux 6.16 or later with CONFIG_NET_SCH_BPF=y and CONFIG_DEBUG_INFO_BTF=y";

/// Why an interface cannot have it.
#[derive(Debug, thiserror::Error)]
pub enum QdiscError {
    /// The kernel is too old, or made without.
    #[error(
        "this kernel has no queue disciplines in BPF: CHAP in the kernel needs {REQUIREMENT}; --datapath user (or auto) does \
         the same in this process"
    )]
    Unsupported,
    /// The kernel refused the object.
    #[error("the kernel did not load the queue discipline")]
    Kernel(#[from] libbpf_rs::Error),
    /// The object is not what this crate was built with.
    #[error("the object of the queue discipline has no {0}")]
    Absent(&'static str),
    /// There is a root that could not be put back.
    #[error(
        "{name} has the queue discipline {kind}, made by hand or by another program; it cannot be put back as it was, so \
         it is not replaced: take it off first (tc qdisc delete dev {name} root)"
    )]
    Foreign {
        /// The interface.
        name: InterfaceName,
        /// Kind of its root.
        kind: String,
    },
    /// The root could not be changed.
    #[error("the queue discipline of {name} could not be changed")]
    Root {
        /// The interface.
        name: InterfaceName,
        /// Why.
        source: io::Error,
    },
}

/// What counts as one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// Addresses, ports and protocol, by the kernel's own hash.
    Connection,
    /// Source, destination and protocol, as CHAP's own queue discipline had it.
    Hosts,
}

/// How it is to behave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// I: credit of a new flow, and of each boost, in channel time.
    pub increment: Span,
    /// What counts as one flow.
    pub flow_kind: FlowKind,
    /// Packets held at most, 1 to 4,095.
    pub limit: u32,
    /// Channel time of each packet beside that of its bytes.
    pub packet_time: Span,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            increment: Span::from_millis(16),
            flow_kind: FlowKind::Connection,
            limit: 1_000, // 0.6 s of full packets at 20 Mbit/s: one flow's own affair, the others pass it
            packet_time: Span::ZERO,
        }
    }
}

/// How long a flow without packets is remembered.
pub(crate) const ACTIVE: Span = Span::from_secs(10);
/// Credit that the new flows of a station bring in per second, and how much of it they may save up.
pub(crate) const NEW_CREDIT: Span = Span::from_millis(200);
pub(crate) const BURST: u64 = 16;
/// A timer comes late by tens of microseconds, in a virtual machine by milliseconds. What is caught up with follows time in
/// which nothing left, so it makes no queue below.
const SLACK: Span = Span::from_millis(20);

impl Settings {
    /// What the discipline is told at this rate, by a controller that was alive at `now`.
    #[must_use]
    pub fn control(&self, now: Time, rate: BitRate, link: LinkLayer, secret: u64) -> Control {
        let increment_ns = self.increment.as_nanos().max(1);
        let interval_ns = increment_ns.saturating_mul(1_000_000_000) / NEW_CREDIT.as_nanos();
        Control {
            heartbeat_ns: now.as_nanos(),
            increment_ns,
            active_ns: ACTIVE.as_nanos(),
            interval_ns,
            burst_ns: interval_ns * BURST,
            slack_ns: SLACK.as_nanos(),
            secret,
            limit: self.limit.clamp(1, LARGEST_LIMIT),
            flow_kind: u32::from(self.flow_kind == FlowKind::Hosts),
            header_bytes: if link == LinkLayer::Ethernet { 14 } else { 0 },
            pad: 0,
            cost: cost(rate, self.packet_time),
            station: [PacketCost::default(); STATIONS],
        }
    }
}

/// The number of a station; `chap_station` of `bpf/chap.h` says the same.
fn station(secret: u64, mac: Mac) -> usize {
    let address = mac.iter().fold(0u64, |address, byte| address << 8 | u64::from(*byte));
    (mix(secret ^ address) % STATIONS as u64) as usize
}

/// What a packet costs on a link of this rate.
pub(crate) fn cost(rate: BitRate, packet_time: Span) -> PacketCost {
    // 8e9 x 65536 is 5.2e14: no rate makes it overflow, and no rate that a link can have makes it 0.
    let byte_ns_q16 = (8_000_000_000u64 << 16) / rate.as_bps().max(1);
    PacketCost { byte_ns_q16: byte_ns_q16.max(1), packet_ns: packet_time.as_nanos() }
}

/// Whether this kernel has queue disciplines in BPF.
#[must_use]
pub fn is_supported() -> bool {
    // SAFETY: plain calls; what is loaded is freed, and a null pointer is an answer.
    unsafe {
        let btf = libbpf_sys::btf__load_vmlinux_btf();
        if btf.is_null() {
            return false;
        }
        let id = libbpf_sys::btf__find_by_name_kind(btf, c"bpf_qdisc_skb_drop".as_ptr(), libbpf_sys::BTF_KIND_FUNC);
        libbpf_sys::btf__free(btf);
        id > 0
    }
}

/// Loads the discipline and takes it away again; no interface is touched.
///
/// # Errors
/// What the kernel did not like.
pub fn try_to_register() -> Result<(), QdiscError> {
    register().map(drop)
}

/// CHAP on one interface; taken off when dropped.
pub struct Qdisc {
    name: InterfaceName,
    ifindex: u32,
    kind: String,
    link_layer: LinkLayer,
    before: Option<Root>,
    settings: Settings,
    secret: u64,
    route: Socket,
    control: MapHandle,
    metrics: MapHandle,
    // The discipline goes from the interface first (see `drop`), then from the kernel's list, then its memory.
    link: Option<Link>,
    _object: Object,
}

impl Qdisc {
    /// Makes CHAP the root of the interface `name` with number `ifindex`, at this rate of IP bytes.
    ///
    /// # Errors
    /// Says what is in the way; the root is as it was then.
    pub fn new(
        name: &InterfaceName,
        ifindex: u32,
        link_layer: LinkLayer,
        settings: Settings,
        now: Time,
        rate: BitRate,
    ) -> Result<Self, QdiscError> {
        if !is_supported() {
            return Err(QdiscError::Unsupported);
        }
        let changed = |source| QdiscError::Root { name: name.clone(), source };
        let mut route = Socket::open(libc::NETLINK_ROUTE).map_err(changed)?;
        let mut before = root::root(&mut route, ifindex).map_err(changed)?;
        if before.as_ref().is_some_and(Root::is_ours) {
            // Nobody alive put it there: the interface is claimed.
            root::restore(&mut route, ifindex, None).map_err(changed)?;
            before = root::root(&mut route, ifindex).map_err(changed)?;
        }
        if let Some(root) = before.as_ref().filter(|root| !root.is_restorable()) {
            return Err(QdiscError::Foreign { name: name.clone(), kind: root.kind.clone() });
        }
        let (object, link, kind) = register()?;
        let mut qdisc = Self {
            name: name.clone(),
            ifindex,
            kind,
            link_layer,
            before,
            settings,
            secret: secret(),
            route,
            control: map(&object, ".bss.control", size_of::<Control>())?,
            metrics: map(&object, ".bss.figures", size_of::<Metrics>())?,
            link: Some(link),
            _object: object,
        };
        // The first packet already meets a living controller.
        qdisc.set_pace(now, rate, std::iter::empty())?;
        root::put(&mut qdisc.route, ifindex, &qdisc.kind).map_err(changed)?;
        Ok(qdisc)
    }

    /// Says that the controller is alive, how fast packets may leave, and what those of some stations cost.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn set_pace(
        &self,
        now: Time,
        rate: BitRate,
        stations: impl Iterator<Item = (Mac, PacketCost)>,
    ) -> Result<(), QdiscError> {
        let mut control = self.settings.control(now, rate, self.link_layer, self.secret);
        for (mac, cost) in stations {
            let place = &mut control.station[station(self.secret, mac)];
            // Two of them may share a place: the dearer one counts.
            *place = PacketCost {
                byte_ns_q16: place.byte_ns_q16.max(cost.byte_ns_q16),
                packet_ns: place.packet_ns.max(cost.packet_ns),
            };
        }
        Ok(self.control.update(&0u32.to_ne_bytes(), bytes_of(&control), MapFlags::ANY)?)
    }

    /// What it has counted.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn metrics(&self) -> Result<Metrics, QdiscError> {
        let bytes = self.metrics.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
        let mut metrics = MaybeUninit::<Metrics>::zeroed();
        let length = bytes.len().min(size_of::<Metrics>());
        // SAFETY: both sides are valid for `length` bytes and do not overlap; Figures is integers only.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), metrics.as_mut_ptr().cast(), length);
            Ok(metrics.assume_init())
        }
    }

    /// The interface's number when it was put there.
    #[must_use]
    pub const fn ifindex(&self) -> u32 {
        self.ifindex
    }

    /// Its kind, as `tc qdisc` lists it.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Kind of the discipline that is put back in the end, if the kernel told of one.
    #[must_use]
    pub fn before(&self) -> Option<&str> {
        self.before.as_ref().map(|root| root.kind.as_str())
    }

    /// Whether this root is ours.
    #[must_use]
    pub fn is(&self, root: &Discipline) -> bool {
        root.handle == root::HANDLE && root.kind == self.kind
    }
}

impl Drop for Qdisc {
    fn drop(&mut self) {
        // The interface may be gone, and its queue with it.
        match root::restore(&mut self.route, self.ifindex, self.before.as_ref()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
            Err(error) => log(&format!("the queue discipline of {} could not be put back: {error}", self.name)),
        }
        self.link = None;
    }
}

impl std::fmt::Debug for Qdisc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Qdisc").field("name", &self.name).field("kind", &self.kind).finish_non_exhaustive()
    }
}

#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!("bpf/object/chap.bpf.o"));

/// Loads an object and registers it under the first free name: names are the whole machine's.
fn register() -> Result<(Object, Link, String), QdiscError> {
    let mut refusal = QdiscError::Absent("free name");
    for number in 1..=MOST {
        let kind = if number == 1 { CHAP.to_owned() } else { format!("{CHAP}{number}") };
        let mut object = load(&kind)?;
        let mut ops = object.maps_mut().find(|map| map.name() == OPS).ok_or(QdiscError::Absent("operations"))?;
        match ops.attach_struct_ops() {
            Ok(link) => return Ok((object, link, kind)),
            Err(error) if error.kind() == libbpf_rs::ErrorKind::AlreadyExists => refusal = error.into(),
            Err(error) => return Err(error.into()),
        }
    }
    Err(refusal)
}

const OPS: &str = "chap_ops";
/// Room for a name, its final zero included: IFNAMSIZ.
const NAME: usize = 16;

fn load(kind: &str) -> Result<Object, QdiscError> {
    libbpf_rs::set_print(None);
    let mut open = ObjectBuilder::default().open_memory(&OBJECT.0)?;
    for mut map in open.maps_mut().filter(|map| map.name() == OPS) {
        // The name is the first field of `struct Qdisc_ops` in bpf/chap.bpf.c.
        let name = map.initial_value_mut().and_then(|value| value.get_mut(..NAME));
        let name = name.ok_or(QdiscError::Absent("operations"))?;
        name.fill(0);
        name[..kind.len()].copy_from_slice(kind.as_bytes());
    }
    Ok(open.load()?)
}

fn map(object: &Object, name: &'static str, size: usize) -> Result<MapHandle, QdiscError> {
    let map = object.maps().find(|map| map.name() == name).ok_or(QdiscError::Absent(name))?;
    if map.value_size() as usize != size {
        return Err(QdiscError::Absent("map with this crate's layout"));
    }
    Ok(MapHandle::try_from(&map)?)
}

fn bytes_of(control: &Control) -> &[u8] {
    // SAFETY: integers without padding (asserted beside the definition), so all bytes are initialised.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(control).cast(), size_of::<Control>()) }
}

/// Nobody outside can know it, so nobody can choose addresses that share a flow.
pub(crate) fn secret() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_price_of_a_full_packet_is_its_time_on_the_wire() {
        let cost = cost(BitRate::mbps(20), Span::from_micros(177));
        let cost = ((1_500 * cost.byte_ns_q16) >> 16) + cost.packet_ns;
        assert_eq!(cost, 600_000 + 177_000);
        assert_eq!(super::cost(BitRate::bps(u64::MAX), Span::ZERO).byte_ns_q16, 1);
    }

    #[test]
    fn the_cap_on_new_flows_lets_twelve_a_second_in_at_the_default_increment() {
        let control = Settings::default().control(Time::from_nanos(7), BitRate::mbps(20), LinkLayer::Ethernet, 1);
        assert_eq!((control.interval_ns, control.burst_ns), (80_000_000, 16 * 80_000_000));
        assert_eq!((control.heartbeat_ns, control.limit, control.flow_kind), (7, 1_000, 0));
        assert_eq!(control.header_bytes, 14);
    }
}

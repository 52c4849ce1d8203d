//! Maps that both sides share, mapped into this process: heartbeat, epoch, dry run, default plans and hops without a system call, and
//! many connections with one.
//!
//! The data path reads each field on its own, so a torn default plan costs at most one connection one packet, and a torn hop
//! what the old rate or the old depth lets pass until the next packet. Of a hop the two sides write different fields; those
//! of the data path are read one by one, so a sum of bytes may be a packet older or newer than its time.

use std::ffi::c_void;
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

use lasthop_core::fastpath::layout::{Control, FlowKey, FlowState, HOPS, Hop, Plan};
use lasthop_core::packet::Direction;
use lasthop_core::units::{Span, Time};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A map that both sides share could not be mapped.
#[derive(Debug, thiserror::Error)]
#[error("the control map could not be mapped into memory")]
pub struct ControlError(#[source] rustix::io::Errno);

/// The one element of a map, mapped into this process; every field of `T` is atomic, or nobody else writes it meanwhile.
#[derive(Debug)]
struct Mapped<T>(NonNull<T>);

/// The one element of the control map.
#[derive(Debug)]
pub struct ControlPage(Mapped<Shared>);

/// When a large packet last passed, as the data path tells it.
#[derive(Debug)]
pub struct LastLarge(Mapped<AtomicU64>);

/// Slots of connections that found no place in the table, as the data path marks them.
#[derive(Debug)]
pub struct Refused(Mapped<[AtomicU8; SLOTS]>);

/// `1 << REFUSED_BITS` of `bpf/lasthop.bpf.c`.
const SLOTS: usize = 1 << 15;

/// Connections that are copied at once, by a program of the data path that this process calls.
#[derive(Debug)]
pub struct Reads(Mapped<SharedReads>);

/// What is wanted of connections, told at once by a program of the data path that this process calls.
#[derive(Debug)]
pub struct Plans(Mapped<SharedPlans>);

/// How many those are at once.
pub const READS: usize = 64;

/// `struct reads` of `bpf/layout.h`.
#[derive(Debug)]
#[repr(C)]
struct SharedReads {
    count: u64,
    found: [u32; READS],
    keys: [FlowKey; READS],
    states: [FlowState; READS],
}

/// What is wanted of one direction of a connection; `struct plan_of` of `bpf/layout.h`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PlanOf {
    key: FlowKey,
    direction: u32,
    plan: Plan,
}

impl PlanOf {
    /// It.
    #[must_use]
    pub const fn new(key: FlowKey, direction: Direction, plan: Plan) -> Self {
        Self { key, direction: direction as u32, plan }
    }
}

/// `struct plans` of `bpf/layout.h`.
#[derive(Debug)]
#[repr(C)]
struct SharedPlans {
    count: u64,
    found: u64,
    each: [PlanOf; READS],
}

const _: () = assert!(size_of::<SharedReads>() == 8 + READS * (4 + size_of::<FlowKey>() + size_of::<FlowState>()));
const _: () = assert!(size_of::<SharedPlans>() == 2 * 8 + READS * (size_of::<FlowKey>() + 4 + size_of::<Plan>()));

/// [`Control`] as the two sides share it.
#[derive(Debug)]
#[repr(C)]
struct Shared {
    heartbeat_ns: AtomicU64,
    epoch: AtomicU32,
    dry_run: AtomicU32,
    silent_ns: AtomicU64,
    looks_ns: AtomicU64,
    tick_ns: AtomicU64,
    default_plan: [SharedPlan; 2],
    readings: AtomicU32,
    pad: [AtomicU32; 13],
    hops: [[SharedHop; 2]; HOPS],
}

#[derive(Debug)]
#[repr(C)]
struct SharedPlan {
    clamp_bytes: AtomicU32,
    floor_bytes: AtomicU32,
    growth_bytes: AtomicU32,
    pace_bytes: AtomicU32,
}

#[derive(Debug)]
#[repr(C)]
struct SharedHop {
    rate_bytes: AtomicU32,
    depth_bytes: AtomicU32,
    left_bytes: AtomicU32,
    updates: AtomicU32,
    earned_ns: AtomicU64,
    pad_start: [AtomicU64; 5],
    data_ns: AtomicU64,
    came_ns: AtomicU64,
    came_bytes: AtomicU64,
    pad_came: [AtomicU64; 5],
    acked_ns: AtomicU64,
    served_ns: AtomicU64,
    served_bytes: AtomicU64,
    brought_ns: AtomicU64,
    bunched_bytes: AtomicU64,
    bunches: AtomicU64,
    bunch_bytes: AtomicU64,
    pad_served: AtomicU64,
}

const _: () = assert!(size_of::<Shared>() == size_of::<Control>());
const _: () = assert!(size_of::<SharedHop>() == size_of::<Hop>());

impl<T> Mapped<T> {
    fn new(map: BorrowedFd<'_>) -> Result<Self, ControlError> {
        // SAFETY: a fresh mapping at an address of the kernel's choice; nothing else refers to it.
        let page = unsafe {
            let flags = ProtFlags::READ | ProtFlags::WRITE;
            mmap(std::ptr::null_mut(), size_of::<T>(), flags, MapFlags::SHARED, map, 0)
        };
        let page = page.map_err(ControlError)?;
        Ok(Self(NonNull::new(page.cast()).ok_or(ControlError(rustix::io::Errno::NOMEM))?))
    }
}

impl<T> Deref for Mapped<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: mapped in `new`, unmapped only in `drop`; every field is atomic, so the kernel may read and write.
        unsafe { self.0.as_ref() }
    }
}

impl LastLarge {
    pub(crate) fn map(map: BorrowedFd<'_>) -> Result<Self, ControlError> {
        Mapped::new(map).map(Self)
    }

    /// When it did; the zero of time where none has.
    #[must_use]
    pub fn at(&self) -> Time {
        Time::from_nanos(self.0.load(Ordering::Acquire))
    }
}

impl Refused {
    pub(crate) fn map(map: BorrowedFd<'_>) -> Result<Self, ControlError> {
        Mapped::new(map).map(Self)
    }

    /// How many connections have found no place since this was last asked, about: `n = -m ln(e/m)` of `m` slots of which `e` are
    /// empty (Whang, Vander-Zanden and Taylor 1990), to some hundredths up to a hundred thousand. When none is empty it is more.
    #[must_use]
    pub fn take(&self) -> u64 {
        let marked =
            self.0.iter().filter(|slot| slot.load(Ordering::Relaxed) != 0).map(|slot| slot.store(0, Ordering::Relaxed));
        refused(marked.count())
    }
}

fn refused(marked: usize) -> u64 {
    let empty = (SLOTS - marked).max(1) as f64;
    (SLOTS as f64 * (SLOTS as f64 / empty).ln()).round() as u64
}

impl Reads {
    pub(crate) fn map(map: BorrowedFd<'_>) -> Result<Self, ControlError> {
        Mapped::new(map).map(Self)
    }

    /// Asks for at most [`READS`] connections, of which `call` has the data path copy those that are in the table, and shows them.
    pub(crate) fn read<E>(
        &mut self,
        keys: &[FlowKey],
        call: impl FnOnce() -> Result<(), E>,
        mut show: impl FnMut(&FlowKey, &FlowState),
    ) -> Result<(), E> {
        let shared = self.0.0.as_ptr();
        // SAFETY: mapped as long as `self`; whoever else writes there does so within `call`, and no reference is kept over that. Any
        // bytes are a value of these fields.
        unsafe {
            (*shared).count = keys.len().min(READS) as u64;
            (*shared).keys.iter_mut().zip(keys).for_each(|(to, key)| *to = *key);
        }
        call()?;
        // SAFETY: as above.
        let (found, states) = unsafe { (&(*shared).found, &(*shared).states) };
        for ((key, state), _) in keys.iter().zip(states).zip(found).filter(|(_, found)| **found != 0) {
            show(key, state);
        }
        Ok(())
    }

    /// Names at most [`READS`] connections and when each was last seen, of which `call` has the data path forget those that were not
    /// seen since; how many those are.
    pub(crate) fn remove<E>(
        &mut self,
        flows: &[(FlowKey, Time)],
        call: impl FnOnce() -> Result<(), E>,
    ) -> Result<u64, E> {
        let shared = self.0.0.as_ptr();
        // SAFETY: as in `read`.
        unsafe {
            (*shared).count = flows.len().min(READS) as u64;
            for (i, (key, seen)) in flows.iter().take(READS).enumerate() {
                ((*shared).keys[i], (*shared).states[i].last_seen_ns) = (*key, seen.as_nanos());
            }
        }
        call()?;
        // SAFETY: as in `read`.
        let found = unsafe { &(*shared).found };
        Ok(found.iter().zip(flows).filter(|(found, _)| **found != 0).count() as u64)
    }
}

impl Plans {
    pub(crate) fn map(map: BorrowedFd<'_>) -> Result<Self, ControlError> {
        Mapped::new(map).map(Self)
    }

    /// Has `call` tell the data path at most [`READS`] plans; of how many there is a connection.
    pub(crate) fn tell<E>(&mut self, plans: &[PlanOf], call: impl FnOnce() -> Result<(), E>) -> Result<u64, E> {
        let shared = self.0.0.as_ptr();
        // SAFETY: mapped as long as `self`; whoever else writes there does so within `call`, and no reference is kept over that.
        unsafe {
            (*shared).count = plans.len().min(READS) as u64;
            (*shared).each.iter_mut().zip(plans).for_each(|(to, plan)| *to = *plan);
        }
        call()?;
        // SAFETY: as above.
        Ok(unsafe { (*shared).found })
    }
}

impl ControlPage {
    pub(crate) fn map(map: BorrowedFd<'_>) -> Result<Self, ControlError> {
        Mapped::new(map).map(Self)
    }

    fn shared(&self) -> &Shared {
        &self.0
    }

    /// Says that the controller is alive at `now` (CLOCK_MONOTONIC, as `bpf_ktime_get_ns`).
    pub fn heartbeat(&self, now: Time) {
        self.shared().heartbeat_ns.store(now.as_nanos(), Ordering::Release);
    }

    /// From `at` on, unless another time is told, nobody is to wait for window updates.
    pub fn set_silent(&self, at: Time) {
        self.shared().silent_ns.store(at.as_nanos(), Ordering::Release);
    }

    /// Begins a measuring epoch: the per-epoch minima start anew at each flow's next packet.
    pub fn set_epoch(&self, epoch: u32) {
        self.shared().epoch.store(epoch, Ordering::Release);
    }

    /// Connections are about to be read: from here on what passes is noted for the next time.
    pub fn begin_reading(&self) {
        self.shared().readings.fetch_add(1, Ordering::SeqCst);
    }

    /// Decide and count, rewrite nothing.
    pub fn set_dry_run(&self, dry_run: bool) {
        self.shared().dry_run.store(u32::from(dry_run), Ordering::Release);
    }

    /// What a new connection starts with.
    pub fn set_default_plan(&self, direction: Direction, plan: Plan) {
        let shared = &self.shared().default_plan[direction.index()];
        shared.floor_bytes.store(plan.floor_bytes, Ordering::Relaxed);
        shared.growth_bytes.store(plan.growth_bytes, Ordering::Relaxed);
        shared.pace_bytes.store(plan.pace_bytes, Ordering::Relaxed);
        shared.clamp_bytes.store(plan.clamp_bytes, Ordering::Release);
    }

    /// What connections of each hop whose data goes in `direction` may begin with together: `depth_bytes` at once, bytes (0: what
    /// they like), and `rate_bytes` more in 2^30 ns, bytes.
    pub fn set_start(&self, direction: Direction, depth_bytes: u32, rate_bytes: u32) {
        (0..HOPS).for_each(|hop| self.set_start_of(hop, direction, depth_bytes, rate_bytes));
    }

    /// The same of one of them, by its place.
    pub fn set_start_of(&self, hop: usize, direction: Direction, depth_bytes: u32, rate_bytes: u32) {
        let shared = &self.shared().hops[hop % HOPS][direction.index()];
        shared.rate_bytes.store(rate_bytes, Ordering::Relaxed);
        shared.depth_bytes.store(depth_bytes, Ordering::Release);
    }

    /// Tick of most senders' timestamp clocks.
    pub fn set_tick(&self, tick: Span) {
        self.shared().tick_ns.store(tick.as_nanos(), Ordering::Release);
    }

    /// When whoever sends window updates looks next by itself. What was asked for before this is seen by one who looks after it.
    pub fn set_looks(&self, at: Time) {
        self.shared().looks_ns.store(at.as_nanos(), Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Whether window updates are sent to senders whose data goes in `direction`: how much each tells at least, bytes, or 0.
    pub fn set_updates(&self, direction: Direction, least: u32) {
        for hop in &self.shared().hops {
            hop[direction.index()].updates.store(least, Ordering::Release);
        }
    }

    /// The same in both directions.
    pub fn set_updates_of_both(&self, least: [u32; 2]) {
        Direction::BOTH.into_iter().zip(least).for_each(|(direction, least)| self.set_updates(direction, least));
    }

    /// What stands there now, what the data path writes included.
    #[must_use]
    pub fn get(&self) -> Control {
        let shared = self.shared();
        let plan = |plan: &SharedPlan| Plan {
            clamp_bytes: plan.clamp_bytes.load(Ordering::Acquire),
            floor_bytes: plan.floor_bytes.load(Ordering::Relaxed),
            growth_bytes: plan.growth_bytes.load(Ordering::Relaxed),
            pace_bytes: plan.pace_bytes.load(Ordering::Relaxed),
        };
        let hop = |hop: &SharedHop| Hop {
            depth_bytes: hop.depth_bytes.load(Ordering::Acquire),
            rate_bytes: hop.rate_bytes.load(Ordering::Relaxed),
            left_bytes: hop.left_bytes.load(Ordering::Relaxed),
            updates: hop.updates.load(Ordering::Relaxed),
            earned_ns: hop.earned_ns.load(Ordering::Relaxed),
            data_ns: hop.data_ns.load(Ordering::Relaxed),
            came_ns: hop.came_ns.load(Ordering::Relaxed),
            came_bytes: hop.came_bytes.load(Ordering::Relaxed),
            acked_ns: hop.acked_ns.load(Ordering::Relaxed),
            served_ns: hop.served_ns.load(Ordering::Relaxed),
            served_bytes: hop.served_bytes.load(Ordering::Relaxed),
            brought_ns: hop.brought_ns.load(Ordering::Relaxed),
            bunched_bytes: hop.bunched_bytes.load(Ordering::Relaxed),
            bunches: hop.bunches.load(Ordering::Relaxed),
            bunch_bytes: hop.bunch_bytes.load(Ordering::Relaxed),
            ..Hop::default()
        };
        Control {
            heartbeat_ns: shared.heartbeat_ns.load(Ordering::Acquire),
            epoch: shared.epoch.load(Ordering::Acquire),
            dry_run: shared.dry_run.load(Ordering::Acquire),
            silent_ns: shared.silent_ns.load(Ordering::Acquire),
            looks_ns: shared.looks_ns.load(Ordering::Acquire),
            tick_ns: shared.tick_ns.load(Ordering::Acquire),
            readings: shared.readings.load(Ordering::Acquire),
            default_plan: [plan(&shared.default_plan[0]), plan(&shared.default_plan[1])],
            hops: std::array::from_fn(|i| [hop(&shared.hops[i][0]), hop(&shared.hops[i][1])]),
            ..Control::default()
        }
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        // SAFETY: this mapping was made in `new` with this length, and no reference outlives `self`.
        let _ = unsafe { munmap(self.0.as_ptr().cast::<c_void>(), size_of::<T>()) };
    }
}

// SAFETY: the mapping belongs to the process, and every access is atomic.
unsafe impl Send for ControlPage {}
// SAFETY: as above.
unsafe impl Sync for ControlPage {}
// SAFETY: as above.
unsafe impl Send for Refused {}
// SAFETY: as above.
unsafe impl Sync for Refused {}
// SAFETY: as above.
unsafe impl Send for LastLarge {}
// SAFETY: as above.
unsafe impl Sync for LastLarge {}
// SAFETY: the mapping belongs to the process, and whoever reads or writes there has it alone.
unsafe impl Send for Reads {}
// SAFETY: as above.
unsafe impl Sync for Reads {}
// SAFETY: as above.
unsafe impl Send for Plans {}
// SAFETY: as above.
unsafe impl Sync for Plans {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_slots_tell_how_many_connections_marked_them() {
        assert_eq!(refused(0), 0);
        // So many of 32,768 are marked in the mean by as many that hash anywhere: m (1 - (1 - 1/m)^n).
        for n in [1u32, 100, 30_000, 100_000] {
            let empty = (1.0 - 1.0 / SLOTS as f64).powf(f64::from(n));
            let told = refused(((1.0 - empty) * SLOTS as f64).round() as usize) as f64;
            assert!((told / f64::from(n) - 1.0).abs() < 0.01, "{n}: {told}");
        }
        assert!(refused(SLOTS) > 300_000);
    }
}

//! What of a packet's priority a TAP can tell: a queue per class, and how many packets each was given.
//!
//! A frame that is read from a TAP says nothing of `skb->priority`, by which Linux's wireless stack chooses a class before it looks at
//! the code point: 256 + UP means the user priority UP (`cfg80211_classify8021d`). A TAP of several queues has a program that chooses
//! the queue of each packet (TUNSETSTEERINGEBPF). This one chooses the class's, and counts:
//!
//! ```text
//! queue = 0                               no user priority
//!         1 VO (UP 6, 7), 2 VI (4, 5), 3 BE (0, 3), 4 BK (1, 2)
//! count[queue] += 1
//! ```
//!
//! The counters lie in memory that is mapped here: whoever looks at them learns without a system call where there is something to
//! read. Source of the classes: IEEE 802.11-2020, table 10-1.

use super::check;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// Queues of a TAP that tells classes.
pub const QUEUES: usize = 5;

/// `_IOR('T', 224, int)` of `linux/if_tun.h`.
const TUNSETSTEERINGEBPF: libc::c_ulong = 0x8004_54e0;
/// Of `enum bpf_cmd`, `enum bpf_map_type`, `enum bpf_prog_type` and their flags.
const MAP_CREATE: libc::c_long = 0;
const PROG_LOAD: libc::c_long = 5;
const ARRAY: u32 = 2;
const MMAPABLE: u32 = 1 << 10;
const SOCKET_FILTER: u32 = 1;
/// Offset of `priority` in `struct __sk_buff`.
const PRIORITY: i16 = 32;

/// The counters of a TAP's queues.
#[derive(Debug)]
pub struct Counts {
    counters: *const AtomicU64,
    _map: OwnedFd,
}

// SAFETY: the mapping is owned, read-only and of atomic integers; nothing in it is tied to a thread.
unsafe impl Send for Counts {}
// SAFETY: as above.
unsafe impl Sync for Counts {}

impl Counts {
    /// Packets that `queue` was given so far.
    pub fn of(&self, queue: usize) -> u64 {
        assert!(queue < QUEUES);
        // SAFETY: the mapping has a page, and QUEUES counters at its beginning; it lives as long as `self`.
        unsafe { (*self.counters.add(queue)).load(Ordering::Acquire) }
    }
}

impl Drop for Counts {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly the page that `steer` mapped; no reference outlives `self`.
        unsafe { libc::munmap(self.counters.cast_mut().cast(), page()) };
    }
}

fn page() -> usize {
    // SAFETY: asks for a number of the system.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// One instruction: operation, registers, offset, immediate value (`struct bpf_insn`).
type Instruction = (u8, u8, i16, i32);

/// The program; `map`: where it counts.
fn program(map: i32) -> Vec<u8> {
    let list: [Instruction; 18] = [
        (0xb7, 0x00, 0, 0),        //  0: r0 = 0
        (0x61, 0x12, PRIORITY, 0), //  1: r2 = skb->priority
        (0xa5, 0x02, 9, 256),      //  2: if r2 < 256 goto 12
        (0x25, 0x02, 8, 263),      //  3: if r2 > 263 goto 12
        (0xb7, 0x00, 0, 1),        //  4: r0 = 1
        (0x35, 0x02, 6, 262),      //  5: if r2 >= 262 goto 12
        (0xb7, 0x00, 0, 2),        //  6: r0 = 2
        (0x35, 0x02, 4, 260),      //  7: if r2 >= 260 goto 12
        (0xb7, 0x00, 0, 3),        //  8: r0 = 3
        (0x15, 0x02, 2, 256),      //  9: if r2 == 256 goto 12
        (0x15, 0x02, 1, 259),      // 10: if r2 == 259 goto 12
        (0xb7, 0x00, 0, 4),        // 11: r0 = 4
        (0xbf, 0x03, 0, 0),        // 12: r3 = r0
        (0x67, 0x03, 0, 3),        // 13: r3 <<= 3
        (0x18, 0x21, 0, map),      // 14: r1 = counters
        (0x00, 0x00, 0, 0),        // 15: (its upper half: offset 0)
        (0x0f, 0x31, 0, 0),        // 16: r1 += r3
        (0xb7, 0x02, 0, 1),        // 17: r2 = 1
    ];
    let last: [Instruction; 2] = [
        (0xdb, 0x21, 0, 0), // 18: lock *(u64 *)r1 += r2
        (0x95, 0x00, 0, 0), // 19: exit
    ];
    let bytes = |(operation, registers, offset, value): &Instruction| {
        let [low, high] = offset.to_ne_bytes();
        let head =
            [*operation, if cfg!(target_endian = "big") { registers.rotate_left(4) } else { *registers }, low, high];
        head.into_iter().chain(value.to_ne_bytes())
    };
    list.iter().chain(&last).flat_map(bytes).collect()
}

/// Chooses the queue of each packet that the TAP's host sends, and counts.
pub fn steer(tap: &File) -> io::Result<Counts> {
    // BPF_MAP_CREATE: type, bytes of a key and of a value, entries, flags.
    let map = bpf(MAP_CREATE, &[ARRAY, 4, 8 * QUEUES as u32, 1, MMAPABLE].map(u32::to_ne_bytes).concat())?;
    let (program, licence) = (program(map.as_raw_fd()), c"GPL");
    // BPF_PROG_LOAD: type, instructions, where they are, where the licence is.
    let mut load = [SOCKET_FILTER, (program.len() / 8) as u32].map(u32::to_ne_bytes).concat();
    load.extend((program.as_ptr() as u64).to_ne_bytes());
    load.extend((licence.as_ptr() as u64).to_ne_bytes());
    let program = bpf(PROG_LOAD, &load)?;
    let descriptor: libc::c_int = program.as_raw_fd();
    // SAFETY: the ioctl reads one int that lives across the call.
    check(unsafe { libc::ioctl(tap.as_raw_fd(), TUNSETSTEERINGEBPF as _, &raw const descriptor) })?;
    // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
    let counters =
        unsafe { libc::mmap(std::ptr::null_mut(), page(), libc::PROT_READ, libc::MAP_SHARED, map.as_raw_fd(), 0) };
    if counters == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(Counts { counters: counters.cast(), _map: map })
}

/// bpf(2). `attributes`: the beginning of `union bpf_attr`; the rest is zero.
fn bpf(command: libc::c_long, attributes: &[u8]) -> io::Result<OwnedFd> {
    let mut union = [0_u64; 16];
    let words = attributes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    });
    union.iter_mut().zip(words).for_each(|(to, from)| *to = from);
    // SAFETY: the kernel reads the 128 bytes of `union`; what the pointers in it point to lives in the caller.
    let descriptor = unsafe { libc::syscall(libc::SYS_bpf, command, union.as_ptr(), size_of_val(&union)) };
    let descriptor = check(descriptor as libc::c_int)?;
    // SAFETY: a descriptor that the kernel has just made and nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

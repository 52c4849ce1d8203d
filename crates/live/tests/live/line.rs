//! A line with a delay between two namespaces: a TUN at each end and a thread that holds packets back.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::namespace::Namespace;
use crate::settings;

/// Ends the WAN link when dropped; the interfaces go with it.
pub struct Line {
    stop: Arc<AtomicBool>,
}

impl Line {
    /// Interfaces `near` and `far`, each packet `delay` later on the other side.
    pub fn new(near: (&Namespace, &'static str), far: (&Namespace, &'static str), delay: Duration) -> io::Result<Self> {
        Self::lay(near, far, Pause::Each(delay))
    }

    /// Packets arrive in bunches, as aggregates of the channel do: all that is in flight, once in `period`.
    pub fn bunching(
        near: (&Namespace, &'static str),
        far: (&Namespace, &'static str),
        period: Duration,
    ) -> io::Result<Self> {
        Self::lay(near, far, Pause::Bunches(period))
    }

    fn lay(near: (&Namespace, &'static str), far: (&Namespace, &'static str), pause: Pause) -> io::Result<Self> {
        let ends = [near.0.inside(move || open(near.1))?, far.0.inside(move || open(far.1))?];
        for (space, name) in [near, far] {
            space.ip(&format!("link set {name} txqueuelen 10000"));
            space.tool("tc", &format!("qdisc replace dev {name} root {}", settings::qdisc()));
        }
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        std::thread::spawn(move || carry(&ends, pause, &flag));
        Ok(Self { stop })
    }
}

/// When what comes in now goes out.
#[derive(Clone, Copy)]
enum Pause {
    Each(Duration),
    Bunches(Duration),
}

impl Pause {
    fn ends(self, begun: Instant) -> Instant {
        match self {
            Self::Each(delay) => Instant::now() + delay,
            Self::Bunches(period) => {
                let over = begun.elapsed().as_nanos() / period.as_nanos();
                begun + period * (over as u32 + 1)
            }
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn open(name: &str) -> io::Result<File> {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
    let tun = OpenOptions::new().read(true).write(true).custom_flags(flags).open("/dev/net/tun")?;
    // SAFETY: an all-zero ifreq is a valid value of that plain C struct.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as i16;
    // SAFETY: the request is a valid ifreq with a terminated name.
    let result = unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF as _, &mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(tun) }
}

fn carry(ends: &[File; 2], pause: Pause, stop: &AtomicBool) {
    let begun = Instant::now();
    // `in_flight[i]` is on its way to `ends[i]`.
    let mut in_flight: [VecDeque<(Instant, Vec<u8>)>; 2] = Default::default();
    let mut packet = [0u8; 65_536];
    while !stop.load(Ordering::Relaxed) {
        let due = in_flight.iter().filter_map(|queue| Some(queue.front()?.0)).min();
        let wait = due.map_or(Duration::from_millis(100), |due| due.saturating_duration_since(Instant::now()));
        let wait = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) as _ };
        let mut fds = [PollFd::new(&ends[0], PollFlags::IN), PollFd::new(&ends[1], PollFlags::IN)];
        let _ = poll(&mut fds, Some(&wait));
        for from in 0..2 {
            while let Ok(length @ 1..) = (&ends[from]).read(&mut packet) {
                in_flight[1 - from].push_back((pause.ends(begun), packet[..length].to_vec()));
            }
        }
        let now = Instant::now();
        for (mut end, queue) in ends.iter().zip(&mut in_flight) {
            while queue.front().is_some_and(|(due, _)| *due <= now) {
                let (_, packet) = queue.pop_front().expect("just seen");
                let _ = end.write(&packet);
            }
        }
    }
}

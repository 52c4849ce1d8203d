//! A download and a ping over ordinary sockets.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::namespace::Namespace;
use crate::world::World;

/// What a download consists of, again and again: a number of bytes that divides no power of two, so that nothing fits but its place.
const BLOCK: usize = 65_521;

fn block() -> Vec<u8> {
    (0..BLOCK).map(|place| (place % 251) as u8).collect()
}

/// Kernel TCP from the server to the station until it is dropped.
pub struct Download {
    received: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    pauses: Arc<AtomicBool>,
    sender: TcpStream,
    receiver: TcpStream,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

fn option<T>(socket: &impl AsRawFd, level: i32, name: i32, value: &[T]) -> io::Result<()> {
    let length = size_of_val(value) as u32;
    // SAFETY: the value and its length describe readable memory.
    let set = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value.as_ptr().cast(), length) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A field of the kernel's `struct tcp_info`.
fn tcp_info<const N: usize>(socket: &TcpStream, at: usize) -> [u8; N] {
    let mut info = [0u8; 256];
    let mut length = info.len() as u32;
    // SAFETY: the buffer and its length describe writable memory.
    let result = unsafe {
        let fd = socket.as_raw_fd();
        libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &raw mut length)
    };
    assert!(result == 0 && length as usize >= at + N, "TCP_INFO with that field");
    info[at..at + N].try_into().expect("so many bytes")
}

impl Download {
    pub fn start(world: &World, address: &'static str) -> Self {
        Self::to(&world.station, world, address)
    }

    /// Of another station.
    pub fn to(station: &Namespace, world: &World, address: &'static str) -> Self {
        let listener = world.server.inside(move || TcpListener::bind(World::server_at(address, 0)).expect("a port"));
        option(&listener, libc::IPPROTO_TCP, libc::TCP_CONGESTION, b"cubic").expect("cubic is there");
        let server = listener.local_addr().expect("an address");
        let receiver = station.inside(move || TcpStream::connect(server).expect("a connection"));
        let (sender, _) = listener.accept().expect("a connection");
        Self::between(sender, receiver)
    }

    /// The same from the station to the server.
    pub fn upwards(world: &World, address: &'static str) -> Self {
        let listener = world.server.inside(move || TcpListener::bind(World::server_at(address, 0)).expect("a port"));
        let server = listener.local_addr().expect("an address");
        let sender = world.station.inside(move || TcpStream::connect(server).expect("a connection"));
        option(&sender, libc::IPPROTO_TCP, libc::TCP_CONGESTION, b"cubic").expect("cubic is there");
        let (receiver, _) = listener.accept().expect("a connection");
        Self::between(sender, receiver)
    }

    fn between(sender: TcpStream, receiver: TcpStream) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let pauses = Arc::new(AtomicBool::new(false));
        let received = Arc::new(AtomicU64::new(0));
        let sending = {
            let mut sender = sender.try_clone().expect("a descriptor");
            let (stop, pauses) = (stop.clone(), pauses.clone());
            std::thread::spawn(move || {
                let block = block();
                while !stop.load(Ordering::Relaxed) {
                    if pauses.load(Ordering::Relaxed) {
                        std::thread::park_timeout(Duration::from_millis(5));
                    } else {
                        sender.write_all(&block)?;
                    }
                }
                Ok(())
            })
        };
        let receiving = {
            let (mut receiver, received) = (receiver.try_clone().expect("a descriptor"), received.clone());
            std::thread::spawn(move || {
                let (sent, mut part, mut place) = (block(), [0; BLOCK], 0);
                loop {
                    let length = receiver.read(&mut part[..BLOCK - place])?;
                    if length == 0 {
                        return Ok(());
                    }
                    assert!(part[..length] == sent[place..place + length], "the bytes arrive as they were sent");
                    place = (place + length) % BLOCK;
                    received.fetch_add(length as u64, Ordering::Relaxed);
                }
            })
        };
        Self { received, stop, pauses, sender, receiver, threads: vec![sending, receiving] }
    }

    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// The sender has nothing to send for a while, or again.
    pub fn pause(&self, pauses: bool) {
        self.pauses.store(pauses, Ordering::Relaxed);
    }

    /// The station's end and the server's.
    pub fn ends(&self) -> (SocketAddr, SocketAddr) {
        (self.sender.peer_addr().expect("connected"), self.sender.local_addr().expect("connected"))
    }

    /// The window that the sender was last told, bytes.
    pub fn offered_window(&self) -> u32 {
        const TCPI_SND_WND: usize = 228;
        u32::from_ne_bytes(tcp_info(&self.sender, TCPI_SND_WND))
    }

    /// The scale of the windows that the sender is told.
    pub fn scale(&self) -> u8 {
        const TCPI_SND_WSCALE: usize = 6;
        let [scales] = tcp_info(&self.sender, TCPI_SND_WSCALE);
        if cfg!(target_endian = "little") { scales & 15 } else { scales >> 4 }
    }

    /// What the sender takes for acknowledged and what the receiver has, bytes: the first is never more than the second.
    pub fn acknowledged_and_had(&self) -> (u64, u64) {
        const TCPI_BYTES_ACKED: usize = 120;
        const TCPI_BYTES_RECEIVED: usize = 128;
        let acknowledged = u64::from_ne_bytes(tcp_info(&self.sender, TCPI_BYTES_ACKED));
        (acknowledged, u64::from_ne_bytes(tcp_info(&self.receiver, TCPI_BYTES_RECEIVED)))
    }

    /// The station says that it has nothing more to send.
    pub fn half_close(&self) {
        self.receiver.shutdown(std::net::Shutdown::Write).expect("it is connected");
    }

    /// Ends it in order; an error when the connection broke before.
    pub fn finish(mut self) -> io::Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        let receiving = self.threads.pop().expect("two threads");
        self.threads.pop().expect("two threads").join().expect("no panic")?;
        self.sender.shutdown(std::net::Shutdown::Write)?;
        receiving.join().expect("no panic")?;
        Ok(self.received())
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.sender.shutdown(std::net::Shutdown::Both);
    }
}

/// Echoes datagrams in the server until the returned flag is set.
pub fn echo(world: &World, address: &'static str) -> (SocketAddr, Arc<AtomicBool>) {
    let socket = world.server.inside(move || UdpSocket::bind(World::server_at(address, 0)).expect("a port"));
    let at = socket.local_addr().expect("an address");
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    std::thread::spawn(move || {
        socket.set_read_timeout(Some(Duration::from_millis(200))).expect("a timeout");
        let mut packet = [0; 512];
        while !flag.load(Ordering::Relaxed) {
            if let Ok((length, from)) = socket.recv_from(&mut packet) {
                let _ = socket.send_to(&packet[..length], from);
            }
        }
    });
    (at, stop)
}

/// Round trips of datagrams sent every 20 ms for `time`, in ms, sorted.
pub fn ping(world: &World, to: SocketAddr, time: Duration) -> Vec<f64> {
    ping_from(&world.station, to, time)
}

/// Of another station.
pub fn ping_from(station: &Namespace, to: SocketAddr, time: Duration) -> Vec<f64> {
    station.inside(move || {
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).expect("a port");
        socket.connect(to).expect("a route");
        let begun = Instant::now();
        let (mut next, mut packet, mut round_trips) = (begun, [0; 64], Vec::new());
        while begun.elapsed() < time {
            let now = Instant::now();
            if now >= next {
                let _ = socket.send(&(begun.elapsed().as_nanos() as u64).to_be_bytes());
                next += Duration::from_millis(20);
                continue;
            }
            socket.set_read_timeout(Some(next - now)).expect("a timeout");
            if let Ok(8) = socket.recv(&mut packet) {
                let sent = u64::from_be_bytes(packet[..8].try_into().expect("eight bytes"));
                round_trips.push((begun.elapsed().as_nanos() as u64 - sent) as f64 / 1e6);
            }
        }
        round_trips.sort_by(f64::total_cmp);
        round_trips
    })
}

/// Sockets in the station that look at the numbers in datagrams.
pub struct Numbered {
    at: Vec<SocketAddr>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

/// What came of numbered datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub received: u64,
    /// With a number below one that came before on the same flow.
    pub overtaken: u64,
}

/// `flows` sockets in the station.
pub fn numbered(world: &World, flows: usize) -> Numbered {
    let sockets: Vec<UdpSocket> = world.station.inside(move || {
        let socket = |_| UdpSocket::bind("10.9.1.2:0").expect("a port");
        (0..flows).map(socket).collect()
    });
    let at = sockets.iter().map(|s| s.local_addr().expect("an address")).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    let thread = std::thread::spawn(move || {
        let (mut seen, mut newest, mut packet) = (Seen::default(), vec![0u64; sockets.len()], [0; 2048]);
        sockets.iter().for_each(|socket| socket.set_nonblocking(true).expect("a flag"));
        while !flag.load(Ordering::Relaxed) {
            for (socket, newest) in sockets.iter().zip(&mut newest) {
                while let Ok(8..) = socket.recv(&mut packet) {
                    let number = u64::from_be_bytes(packet[..8].try_into().expect("eight bytes"));
                    seen.received += 1;
                    seen.overtaken += u64::from(number < *newest);
                    *newest = number;
                }
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
        seen
    });
    Numbered { at, stop, thread }
}

impl Numbered {
    pub fn finish(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic")
    }
}

/// Numbered datagrams of `bytes` from the server to each in turn, at `bps` together.
pub fn flood(world: &World, to: &Numbered, bytes: usize, bps: u64, time: Duration) {
    let to = to.at.clone();
    world.server.inside(move || {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a port");
        let (begun, mut packet, mut sent) = (Instant::now(), vec![0u8; bytes], 0u64);
        while begun.elapsed() < time {
            let due = begun.elapsed().as_secs_f64() * bps as f64 / 8.0 / bytes as f64;
            while (sent as f64) < due {
                packet[..8].copy_from_slice(&(sent + 1).to_be_bytes());
                let _ = socket.send_to(&packet, to[sent as usize % to.len()]);
                sent += 1;
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
    });
}

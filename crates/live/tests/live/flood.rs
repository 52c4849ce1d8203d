//! A hundred thousand half-open connections beside one that works.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use lasthop_live::Config;
use lasthop_live::status::Status;

use crate::traffic::Download;
use crate::world::{World, world};

const HALF_OPEN: u32 = 100_000;

/// A SYN from the station with made-up addresses and ports, as an Ethernet frame to everybody.
fn syn(number: u32) -> [u8; 54] {
    let mut frame = [0u8; 54];
    frame[..6].fill(0xff);
    frame[6] = 2;
    frame[12..14].copy_from_slice(&[8, 0]);
    let ip = &mut frame[14..34];
    ip[0] = 0x45;
    ip[3] = 40;
    ip[8] = 64;
    ip[9] = 6;
    ip[12..16].copy_from_slice(&[10, 9, 1, 2]);
    ip[16..20].copy_from_slice(&[198, 51, 100, (number >> 16) as u8]);
    let sum: u32 = ip.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    let sum = !(((sum >> 16) + (sum & 0xffff)) as u16);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let tcp = &mut frame[34..];
    tcp[..2].copy_from_slice(&(number as u16).to_be_bytes());
    tcp[2..4].copy_from_slice(&443u16.to_be_bytes());
    tcp[12] = 0x50;
    tcp[13] = 2;
    tcp[14] = 0xff;
    frame
}

fn flood() -> io::Result<()> {
    // SAFETY: a plain socket call; the result is checked before it is owned.
    let raw = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `raw` is a descriptor that nobody else owns.
    let socket = unsafe { OwnedFd::from_raw_fd(raw) };
    // SAFETY: an all-zero sockaddr_ll is a valid value of that plain C struct.
    let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    to.sll_family = libc::AF_PACKET as u16;
    // SAFETY: a text with its final zero.
    to.sll_ifindex = unsafe { libc::if_nametoindex(c"c0".as_ptr()) } as i32;
    to.sll_halen = 6;
    for number in 0..HALF_OPEN {
        let frame = syn(number);
        // SAFETY: frame and address are readable for the lengths given.
        let sent = unsafe {
            let length = size_of::<libc::sockaddr_ll>() as u32;
            libc::sendto(socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0, (&raw const to).cast(), length)
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

#[test]
fn a_hundred_thousand_half_open_connections_do_not_push_out_a_download() {
    let test = "a_hundred_thousand_half_open_connections_do_not_push_out_a_download";
    let Some(world) = world(test) else { return };
    let running = world.control(Config { flows: 8192, ..world.config() }).expect("a controller");
    let download = Download::start(&world, World::SERVER);
    let status = running.wait_for("it lowers windows", |s| s.control.rewritten > 100);
    let (name, lowered) = (status.flows[0].flow.clone(), status.flows[0].rewritten);

    // What they may promise is lowered, so that they do not begin all at once.
    let syns = |status: &Status| status.packets["syn"] + status.packets["rewritten"];
    let before = syns(&status);
    world.station.inside(flood).expect("frames are sent");
    let status = running.wait_for("all of them passed the hook", |s| syns(s) >= before + u64::from(HALF_OPEN));
    let intervals = status.controller.intervals;
    let status = running.wait_for("it has looked at them", |s| s.controller.intervals > intervals + 1);

    eprintln!("{test}: {:?}, longest decision {:.1} ms", status.table, status.controller.longest_ms);
    assert!(status.table.connections <= 8192, "{:?}", status.table);
    assert!(status.table.evicted > 0 || status.packets["table-full"] > 0, "overflow is counted: {:?}", status.table);
    let flow = status.flows.iter().find(|f| f.flow == name).expect("the download is still known");
    assert!(flow.rewritten >= lowered, "and it is the same entry");
    running.wait_for("it is still lowered", |s| s.flows.iter().any(|f| f.flow == name && f.rewritten > lowered + 50));
    download.finish().expect("the connection lives");
}

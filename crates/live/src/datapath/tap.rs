//! The device that packets are handed to: a TAP (TUN where the interface has no link header), gone with its descriptor.
//!
//! Without VNET_HDR and offloads, so that the kernel cuts what was merged and completes checksums before it hands a frame
//! over. It has no address and speaks for nobody: what the kernel itself or a network manager sends there begins with the
//! device's own Ethernet address and is thrown away.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::interface::{self, InterfaceName};
use crate::netlink::{self, Socket};
use crate::program::LinkLayer;

/// Frames between the kernel and us: 12 ms of full frames at 1 Gbit/s, 4 MB.
const QUEUE: u32 = 1_024;

const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
/// No link-local address, so nobody to solicit routers.
const IN6_ADDR_GEN_MODE_NONE: u8 = 1;

/// See the module.
#[derive(Debug)]
pub struct Tap {
    file: File,
    name: InterfaceName,
    ifindex: u32,
    own_address: Option<[u8; 6]>,
}

impl Tap {
    /// Makes one in the namespace of the calling thread, for frames of `layer`, and brings it up.
    ///
    /// # Errors
    /// The failed system call.
    pub fn new(route: &mut Socket, layer: LinkLayer, mtu: u32) -> io::Result<Self> {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open("/dev/net/tun")?;
        // SAFETY: an all-zero ifreq is a valid value of that plain C struct.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(b"lasthop%d") {
            *to = *from as libc::c_char;
        }
        let kind = if layer == LinkLayer::Ethernet { libc::IFF_TAP } else { libc::IFF_TUN };
        request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI) as i16;
        // SAFETY: the request is a valid ifreq with a terminated name.
        if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let name: Vec<u8> = request.ifr_name.iter().map(|c| *c as u8).collect();
        let name: InterfaceName = netlink::text(&name).parse().map_err(io::Error::other)?;
        let own_address = (layer == LinkLayer::Ethernet).then(|| address(&file)).transpose()?;
        let gone = || io::Error::from_raw_os_error(libc::ENODEV);
        let ifindex = interface::state(route, &name)?.ok_or_else(gone)?.ifindex;
        set_up(route, &name, ifindex, mtu)?;
        Ok(Self { file, name, ifindex, own_address })
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &InterfaceName {
        &self.name
    }

    /// Its number.
    #[must_use]
    pub const fn ifindex(&self) -> u32 {
        self.ifindex
    }

    /// Whether a frame is no packet of the interface, but the device's own.
    #[must_use]
    pub fn is_its_own(&self, frame: &[u8]) -> bool {
        self.own_address.is_some_and(|own| frame.get(6..12) == Some(&own[..]))
    }

    /// The next frame, or `None` when there is none now. One that is longer than `into` fills it.
    ///
    /// # Errors
    /// When the device is gone.
    pub fn read(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::retry_on_intr(|| rustix::io::read(&self.file, &mut *into)) {
            Ok(length) => Ok(Some(length)),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Tap {
    /// Hands the kernel a frame as if the device had received it.
    ///
    /// # Errors
    /// When the kernel has no room for it, or the device is gone.
    pub fn write(&self, frame: &[u8]) -> io::Result<()> {
        rustix::io::retry_on_intr(|| rustix::io::write(&self.file, frame)).map(drop).map_err(Into::into)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn address(file: &File) -> io::Result<[u8; 6]> {
    // SAFETY: an all-zero ifreq is a valid value of that plain C struct.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // SAFETY: a TUN descriptor answers this with its own device's address in a valid ifreq.
    if unsafe { libc::ioctl(file.as_raw_fd(), libc::SIOCGIFHWADDR as _, &raw mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: that call filled this member.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr }.sa_data;
    Ok(std::array::from_fn(|i| address[i] as u8))
}

fn header(ifindex: u32, flags: u32) -> Vec<u8> {
    let mut body = vec![0u8; 4]; // family, padding, type
    for word in [ifindex, flags, flags] {
        body.extend(word.to_ne_bytes());
    }
    body
}

fn set_up(route: &mut Socket, name: &InterfaceName, ifindex: u32, mtu: u32) -> io::Result<()> {
    let mut body = header(ifindex, 0);
    netlink::put(&mut body, IFLA_MTU, &mtu.to_ne_bytes());
    netlink::put(&mut body, IFLA_TXQLEN, &QUEUE.to_ne_bytes());
    route.request(libc::RTM_NEWLINK, 0, &body)?;
    let mut body = header(ifindex, 0);
    netlink::put_nested(&mut body, IFLA_AF_SPEC, |families| {
        netlink::put_nested(families, libc::AF_INET6 as u16, |inet6| {
            netlink::put(inet6, IFLA_INET6_ADDR_GEN_MODE, &[IN6_ADDR_GEN_MODE_NONE]);
        });
    });
    // Either may be refused: a kernel without IPv6, a /proc/sys that may not be written.
    let _ = route.request(libc::RTM_NEWLINK, 0, &body);
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
    let up = (libc::IFF_UP | libc::IFF_NOARP) as u32;
    route.request(libc::RTM_NEWLINK, 0, &header(ifindex, up)).map(drop)
}

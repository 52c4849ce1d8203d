//! One controller per interface.
//!
//! An abstract Unix address per interface: it belongs to the network namespace, exactly as the interface does, and the kernel
//! frees it with the process, however that ends. It has the interface's number, which stays when it is renamed.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use super::AttachError;
use crate::interface::InterfaceName;

/// Held while an interface is controlled.
#[derive(Debug)]
pub struct Claim {
    _listener: UnixListener,
}

impl Claim {
    /// Claims the interface of number `ifindex` in the namespace of the calling thread; its `name` is only named in errors.
    ///
    /// # Errors
    /// [`AttachError::Taken`] when another controller holds it.
    pub fn new(name: &InterfaceName, ifindex: u32) -> Result<Self, AttachError> {
        let bind = || -> io::Result<UnixListener> {
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(format!("lasthop/controls/{ifindex}"))?)
        };
        bind().map(|listener| Self { _listener: listener }).map_err(|_| AttachError::Taken(name.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_controller_on_the_same_interface_is_refused() {
        let (name, other): (InterfaceName, InterfaceName) = ("t0".parse().unwrap(), "t1".parse().unwrap());
        // No interface has such a number.
        let ifindex = 1 << 31 | std::process::id();
        let first = Claim::new(&name, ifindex).unwrap();
        assert!(matches!(Claim::new(&other, ifindex), Err(AttachError::Taken(_))), "also by another name");
        drop(first);
        assert!(Claim::new(&name, ifindex).is_ok());
    }
}

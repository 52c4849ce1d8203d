//! One controller per interface.
//!
//! An abstract Unix address per interface name: it belongs to the network namespace, exactly as the interface does,
//! and the kernel frees it with the process, however that ends.

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
    /// Claims the interface `name` in the namespace of the calling thread.
    ///
    /// # Errors
    /// [`AttachError::Taken`] when another controller holds it.
    pub fn new(name: &InterfaceName) -> Result<Self, AttachError> {
        let bind = || -> io::Result<UnixListener> {
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(format!("lasthop/controls/{name}"))?)
        };
        bind().map(|listener| Self { _listener: listener }).map_err(|_| AttachError::Taken(name.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_controller_on_the_same_interface_is_refused() {
        let name: InterfaceName = format!("t{}", std::process::id()).parse().unwrap();
        let first = Claim::new(&name).unwrap();
        assert!(matches!(Claim::new(&name), Err(AttachError::Taken(_))));
        drop(first);
        assert!(Claim::new(&name).is_ok());
    }
}

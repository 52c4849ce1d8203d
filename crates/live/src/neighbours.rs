//! Which Ethernet address has which IP addresses, as the kernel's neighbour table knows it.
//!
//! A station is its Ethernet address: its IPv4 and its IPv6 addresses are one station, and it is by that address that a
//! Wi-Fi driver tells of it (`stations`). One `RTM_GETNEIGH` dump per question. Source: rtnetlink(7), `linux/neighbour.h`.

use std::collections::HashMap;
use std::io;

use crate::netlink::{Attributes, NLM_F_DUMP, Socket};
use crate::stations::Mac;

const NDMSG: usize = 12;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;

/// An IP address as the fast path has it: IPv4 mapped into IPv6.
pub type Address = [u8; 16];

/// Everything that the kernel knows now.
///
/// # Errors
/// When netlink fails.
pub fn all(route: &mut Socket) -> io::Result<HashMap<Address, Mac>> {
    let replies = route.request(libc::RTM_GETNEIGH, NLM_F_DUMP, &[0u8; NDMSG])?;
    Ok(replies.iter().filter_map(|reply| read(&reply.body)).collect())
}

fn read(body: &[u8]) -> Option<(Address, Mac)> {
    let attributes = body.get(NDMSG..)?;
    let mac: Mac = Attributes::find(attributes, NDA_LLADDR)?.try_into().ok()?;
    let destination = Attributes::find(attributes, NDA_DST)?;
    let address = match destination.len() {
        4 => {
            let mut mapped = [0u8; 16];
            mapped[10..12].fill(0xff);
            mapped[12..].copy_from_slice(destination);
            mapped
        }
        _ => destination.try_into().ok()?,
    };
    // Entries that are being resolved have an address of zeros.
    (mac != Mac::default()).then_some((address, mac))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::put;
    use proptest::prelude::*;

    #[test]
    fn both_families_are_read_and_an_entry_without_an_address_is_none() {
        let entry = |destination: &[u8], mac: Option<&[u8]>| {
            let mut body = vec![0u8; NDMSG];
            put(&mut body, NDA_DST, destination);
            if let Some(mac) = mac {
                put(&mut body, NDA_LLADDR, mac);
            }
            read(&body)
        };
        let mac = [2, 0, 0, 0, 1, 0];
        let (address, read_mac) = entry(&[10, 0, 0, 2], Some(&mac)).unwrap();
        assert_eq!((&address[10..], read_mac), ([0xff, 0xff, 10, 0, 0, 2].as_slice(), mac));
        assert_eq!(entry(&[7; 16], Some(&mac)), Some(([7; 16], mac)));
        assert_eq!(entry(&[10, 0, 0, 3], None), None);
        assert_eq!(entry(&[10, 0, 0, 3], Some(&[0; 6])), None);
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_no_neighbour_or_one(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = read(&bytes);
        }
    }
}

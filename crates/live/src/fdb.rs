//! Which Ethernet addresses bridges have learned, and behind which port.
//!
//! One `RTM_GETNEIGH` dump of `AF_BRIDGE` per question. Addresses of the bridge itself and of its ports (permanent entries)
//! are not stations'. Source: `linux/neighbour.h`, bridge(8).

use std::io;

use crate::netlink::{Attributes, NLM_F_DUMP, Socket};
use crate::stations::Mac;

const NDMSG: usize = 12;
const NDA_LLADDR: u16 = 2;
const NUD_NOARP: u16 = 0x40;
const NUD_PERMANENT: u16 = 0x80;
const NTF_EXT_LEARNED: u8 = 0x10;

/// Shows every address that was learned, with the number of the port that it is behind.
///
/// # Errors
/// When netlink fails; some may have been shown by then.
pub fn learned(route: &mut Socket, mut show: impl FnMut(Mac, u32)) -> io::Result<()> {
    let mut body = [0u8; NDMSG];
    body[0] = libc::AF_BRIDGE as u8;
    route.request_each(libc::RTM_GETNEIGH, NLM_F_DUMP, &body, |_, body| {
        if let Some((mac, ifindex)) = read(body) {
            show(mac, ifindex);
        }
    })
}

/// struct ndmsg {family, pad, ifindex, state, flags, type}
fn read(body: &[u8]) -> Option<(Mac, u32)> {
    let header = body.get(..NDMSG)?;
    let ifindex = u32::from_ne_bytes(*header[4..].first_chunk()?);
    let state = u16::from_ne_bytes([header[8], header[9]]);
    let is_ready = header[10] & NTF_EXT_LEARNED != 0;
    let is_learned = state & NUD_PERMANENT == 0 && (state & NUD_NOARP == 0 || is_ready);
    let mac: Mac = Attributes::find(body.get(NDMSG..)?, NDA_LLADDR)?.try_into().ok()?;
    let is_station = mac[0] & 1 == 0 && mac != Mac::default();
    (header[0] == libc::AF_BRIDGE as u8 && is_learned && is_station && ifindex != 0).then_some((mac, ifindex))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::put;
    use proptest::prelude::*;

    #[test]
    fn only_learned_addresses_of_single_stations_are_read() {
        let entry = |mac: Mac, state: u16, flags: u8| {
            let mut body = vec![0u8; NDMSG];
            body[0] = libc::AF_BRIDGE as u8;
            body[4..8].copy_from_slice(&5u32.to_ne_bytes());
            body[8..10].copy_from_slice(&state.to_ne_bytes());
            body[10] = flags;
            put(&mut body, NDA_LLADDR, &mac);
            read(&body)
        };
        let mac = [2, 0, 0, 0, 1, 0];
        assert_eq!(entry(mac, 0x02, 0), Some((mac, 5)), "reachable");
        assert_eq!(entry(mac, 0x04, 0), Some((mac, 5)), "stale");
        assert_eq!(entry(mac, NUD_NOARP, NTF_EXT_LEARNED), Some((mac, 5)), "learned by a driver");
        assert_eq!(entry(mac, NUD_PERMANENT, 0), None, "the port's own");
        assert_eq!(entry(mac, NUD_NOARP, 0), None, "written by hand");
        assert_eq!(entry([0x33, 0x33, 0, 0, 0, 1], 0x02, 0), None, "a group");
        assert_eq!(entry([0; 6], 0x02, 0), None);
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_no_entry_or_one(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = read(&bytes);
        }
    }
}

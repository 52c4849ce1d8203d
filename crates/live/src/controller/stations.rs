//! Stations by name: one for all addresses of one Ethernet address, where the neighbour table knows it.

use std::collections::HashMap;

use lasthop_core::ap::StationId;
use lasthop_core::units::{Span, Time};

use crate::neighbours::{self, Address};
use crate::netlink::Socket;
use crate::stations::Mac;

/// A new station has an entry as soon as something was sent to it.
const ASK_EVERY: Span = Span::from_secs(1);

pub(super) struct Stations {
    route: Option<Socket>,
    asked: Option<Time>,
    known: HashMap<Address, Mac>,
    version: u32,
}

impl Stations {
    pub(super) fn new() -> Self {
        Self { route: Socket::open(libc::NETLINK_ROUTE).ok(), ..Self::unknown() }
    }

    /// Nobody can be asked.
    pub(super) fn unknown() -> Self {
        Self { route: None, asked: None, known: HashMap::new(), version: 0 }
    }

    /// Asks again when it is time; false when asking failed.
    pub(super) fn refresh(&mut self, now: Time) -> bool {
        let Some(route) = self.route.as_mut().filter(|_| self.asked.is_none_or(|at| now.since(at) >= ASK_EVERY)) else {
            return true;
        };
        self.asked = Some(now);
        let Ok(known) = neighbours::all(route) else { return false };
        if known != self.known {
            self.known = known;
            self.version = self.version.wrapping_add(1);
        }
        true
    }

    /// Changes with what is known.
    pub(super) const fn version(&self) -> u32 {
        self.version
    }

    /// The Ethernet address of the station that has this address.
    pub(super) fn mac(&self, address: &Address) -> Option<Mac> {
        self.known.get(address).copied()
    }

    /// The station that has this address; by the address itself where nobody knows more.
    pub(super) fn id(&self, address: &Address) -> StationId {
        self.known.get(address).map_or_else(|| hash(address), |mac| of(*mac))
    }
}

/// The station with this Ethernet address.
pub(super) fn of(mac: Mac) -> StationId {
    hash(&mac)
}

/// FNV-1a: two stations of one home hardly ever meet in 32 bits.
fn hash(bytes: &[u8]) -> StationId {
    StationId(bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_addresses_of_one_station_are_one_station_as_soon_as_it_is_known() {
        let (four, six, mac) = ([4u8; 16], [6u8; 16], [2, 0, 0, 0, 1, 0]);
        let mut stations = Stations::unknown();
        assert_ne!(stations.id(&four), stations.id(&six));
        stations.known = HashMap::from([(four, mac), (six, mac)]);
        assert_eq!((stations.id(&four), stations.id(&six)), (of(mac), of(mac)));
    }
}

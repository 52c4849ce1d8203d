//! Devices of the home: what they are called, and what they carry now.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use lasthop_core::ap::{FlowSnapshot, StationId, UdpSnapshot};
use lasthop_core::packet::Direction;
use lasthop_core::units::{Span, Time};
use lasthop_status::DeviceStatus;

use super::stations::{self, Stations};
use crate::mdns::Mdns;
use crate::names::Names;
use crate::neighbours::Address;
use crate::stations::Mac;

/// Files of names are read at most so often, and only while somebody asks.
const READ_EVERY: Span = Span::from_secs(5);

/// A device as commands name it: its Ethernet address where that is known, else an IP address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Device {
    Mac(Mac),
    Ip(Address),
}

impl Device {
    pub(super) fn of(address: &Address, stations: &Stations) -> Self {
        stations.mac(address).map_or(Self::Ip(*address), Self::Mac)
    }

    pub(super) fn station(&self, stations: &Stations) -> StationId {
        match self {
            Self::Mac(mac) => stations::of(*mac),
            Self::Ip(address) => stations.id(address),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mac([a, b, c, d, e, g]) => write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}"),
            Self::Ip(address) => IpAddr::from(*address).to_canonical().fmt(f),
        }
    }
}

impl FromStr for Device {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Ip(match address {
                IpAddr::V4(four) => four.to_ipv6_mapped().octets(),
                IpAddr::V6(six) => six.octets(),
            }));
        }
        crate::names::mac(text).map(Self::Mac).ok_or(())
    }
}

/// What the devices are called, as it was last read.
#[derive(Debug, Default)]
pub(super) struct Devices {
    names: Names,
    read: Option<Time>,
    mdns: Mdns,
}

impl Devices {
    /// Reads the files of names again when it is time.
    pub(super) fn refresh(&mut self, now: Time) {
        if self.read.is_none_or(|read| now.since(read) >= READ_EVERY) {
            self.read = Some(now);
            self.read();
        }
    }

    fn read(&mut self) {
        self.mdns.listen();
        self.names = Names::read();
        self.names.add_own(self.mdns.names());
    }

    /// The device that somebody calls `text`: an Ethernet or IP address, or a name that one device has.
    pub(super) fn find(&mut self, text: &str, stations: &Stations) -> Result<Device, String> {
        match text.parse() {
            Ok(Device::Ip(address)) => return Ok(Device::of(&address, stations)),
            Ok(device) => return Ok(device),
            Err(()) => {}
        }
        self.read();
        let mut found = self.names.called(text);
        found.sort_unstable();
        found.dedup();
        let known = |address: &Address| Device::of(address, stations);
        let devices: std::collections::BTreeSet<Device> = found
            .iter()
            .map(|who| match who {
                crate::names::Who::Mac(mac) => Device::Mac(*mac),
                crate::names::Who::Ip(address) => known(address),
            })
            .collect();
        match devices.len() {
            1 => Ok(devices.into_iter().next().unwrap_or(Device::Mac([0; 6]))),
            0 => Err(format!(
                "no device is called `{text}`; `lasthop status` lists devices, and their addresses work, too"
            )),
            n => Err(format!("{n} devices are called `{text}`; name the one by its Ethernet address")),
        }
    }

    /// Asks those of the stations' addresses for their names whom no file names.
    pub(super) fn ask(&mut self, now: Time, stations: &Stations, addresses: impl Iterator<Item = Address>) {
        for address in addresses {
            // A neighbour is on this link; any other address may be forged.
            let Some(mac) = stations.mac(&address) else { continue };
            if self.names.of(Some(mac), &address).is_none_or(|(_, by)| by == Names::OWN) {
                self.mdns.ask(&address, now);
            }
        }
    }

    /// The devices that carry something, the fastest first. `flows`: with the address of each one's station.
    pub(super) fn status(
        &self,
        stations: &Stations,
        flows: &[(Address, FlowSnapshot)],
        datagrams: &[(Address, UdpSnapshot)],
    ) -> Vec<DeviceStatus> {
        let mut all: BTreeMap<Device, (DeviceStatus, Address)> = BTreeMap::new();
        let mut of = |address: &Address, direction: Direction, rate: u64, waits: Option<f64>| {
            let (status, _) =
                all.entry(Device::of(address, stations)).or_insert_with(|| (DeviceStatus::default(), *address));
            let (sum, waiting) = match direction {
                Direction::ToStation => (&mut status.down_bps, &mut status.down_waiting_ms),
                Direction::ToRemote => (&mut status.up_bps, &mut status.up_waiting_ms),
            };
            *sum += rate;
            *waiting = [*waiting, waits].into_iter().flatten().reduce(f64::min);
            status.flows += u64::from(rate > 0);
        };
        for (address, flow) in flows {
            let waits = flow.waits.filter(|_| flow.rate.as_bps() > 0).map(Span::as_millis_f64);
            of(address, flow.direction, flow.rate.as_bps(), waits);
        }
        for (address, flow) in datagrams {
            of(address, flow.direction, flow.rate.as_bps(), None);
        }
        let mut named: Vec<_> = all
            .into_iter()
            .map(|(device, (status, address))| {
                let mac = if let Device::Mac(mac) = device { Some(mac) } else { None };
                let (name, named_by) = self.names.of(mac, &address).unzip();
                DeviceStatus { id: device.to_string(), name, named_by: named_by.map(str::to_owned), ..status }
            })
            .collect();
        named.sort_by_key(|device| std::cmp::Reverse(device.down_bps + device.up_bps));
        named
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_written_as_people_write_addresses_and_read_back() {
        for text in ["02:00:5e:10:00:01", "192.0.2.7", "2001:db8::1"] {
            assert_eq!(text.parse::<Device>().unwrap().to_string(), text);
        }
        for text in ["laptop", "02:00:5e:10:00", "02:00:5e:10:00:zz", ""] {
            assert!(text.parse::<Device>().is_err(), "{text}");
        }
    }
}

//! What the driver of a Wi-Fi access point knows of its stations: rate, frames, retries, air time; and which interfaces are
//! access points.
//!
//! One `NL80211_CMD_GET_STATION` dump per question. Counters are the driver's, since the station came; `tx` is what goes to
//! the station. Source: `linux/nl80211.h`, `linux/genetlink.h`. Drivers leave out what they do not count.

use std::collections::BTreeMap;
use std::io;

use lasthop_core::units::{BitRate, Span};

use crate::netlink::{Attributes, GENL_HEADER, NLM_F_DUMP, Reply, Socket, put, text};

const CTRL_ATTR_MCAST_GROUPS: u16 = 7;
const CTRL_ATTR_MCAST_GRP_NAME: u16 = 1;
const CTRL_ATTR_MCAST_GRP_ID: u16 = 2;
const NL80211_CMD_GET_INTERFACE: u8 = 5;
pub(crate) const NL80211_ATTR_WIPHY: u16 = 1;
const NL80211_ATTR_IFTYPE: u16 = 5;
const NL80211_CMD_GET_STATION: u8 = 17;
pub(crate) const NL80211_ATTR_IFINDEX: u16 = 3;
pub(crate) const NL80211_ATTR_MAC: u16 = 6;
const NL80211_ATTR_STA_INFO: u16 = 21;
const STA_INFO_TX_BITRATE: u16 = 8;
const STA_INFO_TX_PACKETS: u16 = 10;
const STA_INFO_TX_RETRIES: u16 = 11;
const STA_INFO_TX_FAILED: u16 = 12;
const STA_INFO_TX_BYTES64: u16 = 24;
const STA_INFO_TID_STATS: u16 = 31;
const STA_INFO_TX_DURATION: u16 = 39;
const STA_INFO_AIRTIME_WEIGHT: u16 = 40;
const TID_STATS_TXQ_STATS: u16 = 6;
const TXQ_STATS_BACKLOG_BYTES: u16 = 1;
const TXQ_STATS_BACKLOG_PACKETS: u16 = 2;
const RATE_INFO_BITRATE: u16 = 1;
const RATE_INFO_BITRATE32: u16 = 5;

/// Where only packets are told, each counts as a full one.
const FULL_PACKET: u64 = 1_500;

/// A station's Ethernet address.
pub type Mac = [u8; 6];

/// One station, as the driver tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station {
    /// Its address.
    pub mac: Mac,
    /// Rate of the last frame to it.
    pub rate: Option<BitRate>,
    /// Bytes sent to it.
    pub bytes: u64,
    /// Frames sent to it.
    pub packets: u32,
    /// Retransmissions among them.
    pub retries: u32,
    /// Frames that were given up.
    pub failed: u32,
    /// Air time of all of that, where the driver measures it.
    pub airtime: Option<Span>,
    /// Its weight among the others, where the driver shares the air by weights.
    pub weight: Option<u16>,
    /// Bytes that wait for it in the flow queues of mac80211, of all traffic identifiers together; none where its driver has queues of its own.
    pub waits: Option<u64>,
}

/// What a Wi-Fi interface is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Radio {
    /// An access point's, or one of its stations' own (four addresses).
    AccessPoint,
    /// A point of a mesh.
    Mesh,
    /// A client, a monitor, or anything else that serves no stations.
    Other,
}

impl Radio {
    const fn of(iftype: u32) -> Self {
        match iftype {
            3 | 4 => Self::AccessPoint,
            7 => Self::Mesh,
            _ => Self::Other,
        }
    }
}

/// A Wi-Fi interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wireless {
    /// What it is.
    pub radio: Radio,
    /// Number of the radio: all of its interfaces share the channel.
    pub wiphy: u32,
}

/// A socket to nl80211.
#[derive(Debug)]
pub struct Nl80211 {
    socket: Socket,
    family: u16,
    /// Number of the multicast group that is told when interfaces come, go, and change their type.
    changes: Option<u32>,
}

impl Nl80211 {
    /// Opens it.
    ///
    /// # Errors
    /// `ENOENT` where the kernel has no Wi-Fi.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::open(libc::NETLINK_GENERIC)?;
        let family = socket.family("nl80211")?;
        let changes = group(&family.attributes, "config");
        Ok(Self { socket, family: family.id, changes })
    }

    /// Sends a message of the family, with its generic header; what answers it.
    pub(crate) fn request(&mut self, flags: u16, body: &[u8]) -> io::Result<Vec<Reply>> {
        self.socket.request(self.family, flags, body)
    }

    /// The multicast group that is told when interfaces come, go, and change their type.
    #[must_use]
    pub const fn changes(&self) -> Option<u32> {
        self.changes
    }

    /// Every Wi-Fi interface by its number.
    ///
    /// # Errors
    /// When netlink fails.
    pub fn interfaces(&mut self) -> io::Result<BTreeMap<u32, Wireless>> {
        let body = [NL80211_CMD_GET_INTERFACE, 0, 0, 0];
        let mut all = BTreeMap::new();
        self.socket.request_each(self.family, NLM_F_DUMP, &body, |_, body| {
            all.extend(body.get(GENL_HEADER..).and_then(read_interface));
        })?;
        Ok(all)
    }

    /// The stations of an access point's interface; none of one that is no Wi-Fi.
    ///
    /// # Errors
    /// When netlink fails.
    pub fn stations(&mut self, ifindex: u32) -> io::Result<Vec<Station>> {
        let mut body = vec![NL80211_CMD_GET_STATION, 0, 0, 0];
        put(&mut body, NL80211_ATTR_IFINDEX, &ifindex.to_ne_bytes());
        match self.socket.request(self.family, NLM_F_DUMP, &body) {
            Ok(replies) => {
                Ok(replies.iter().filter_map(|reply| Station::read(reply.body.get(GENL_HEADER..)?)).collect())
            }
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENODEV | libc::EOPNOTSUPP | libc::EINVAL)) => {
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }
}

/// Number of the family's multicast group of this name.
fn group(attributes: &[u8], name: &str) -> Option<u32> {
    let groups = Attributes::find(attributes, CTRL_ATTR_MCAST_GROUPS)?;
    let is_it = |group: &[u8]| Attributes::find(group, CTRL_ATTR_MCAST_GRP_NAME).map(text).as_deref() == Some(name);
    let (_, group) = Attributes::new(groups).find(|(_, group)| is_it(group))?;
    Attributes::find(group, CTRL_ATTR_MCAST_GRP_ID).and_then(u32_of)
}

fn read_interface(attributes: &[u8]) -> Option<(u32, Wireless)> {
    let word = |kind| Attributes::find(attributes, kind).and_then(u32_of);
    let radio = Radio::of(word(NL80211_ATTR_IFTYPE)?);
    Some((word(NL80211_ATTR_IFINDEX)?, Wireless { radio, wiphy: word(NL80211_ATTR_WIPHY)? }))
}

impl Station {
    /// What one message of the dump says, without its headers.
    #[must_use]
    pub fn read(attributes: &[u8]) -> Option<Self> {
        let mac = Attributes::find(attributes, NL80211_ATTR_MAC)?.try_into().ok()?;
        let about = Attributes::find(attributes, NL80211_ATTR_STA_INFO)?;
        let u32_at = |kind| Attributes::find(about, kind).and_then(u32_of);
        let u64_at = |kind| Attributes::find(about, kind).and_then(u64_of);
        let rate = Attributes::find(about, STA_INFO_TX_BITRATE).and_then(|rate| {
            // In units of 100 kbit/s; the short one is absent where it does not fit.
            let long = Attributes::find(rate, RATE_INFO_BITRATE32).and_then(u32_of);
            long.or_else(|| Attributes::find(rate, RATE_INFO_BITRATE).and_then(u16_of).map(u32::from))
        });
        Some(Self {
            mac,
            rate: rate.filter(|rate| *rate > 0).map(|rate| BitRate::bps(u64::from(rate) * 100_000)),
            bytes: u64_at(STA_INFO_TX_BYTES64).unwrap_or(0),
            packets: u32_at(STA_INFO_TX_PACKETS).unwrap_or(0),
            retries: u32_at(STA_INFO_TX_RETRIES).unwrap_or(0),
            failed: u32_at(STA_INFO_TX_FAILED).unwrap_or(0),
            airtime: u64_at(STA_INFO_TX_DURATION).map(Span::from_micros),
            weight: Attributes::find(about, STA_INFO_AIRTIME_WEIGHT).and_then(u16_of),
            waits: Attributes::find(about, STA_INFO_TID_STATS).and_then(waits),
        })
    }
}

/// What waits in the flow queues of all traffic identifiers, by their statistics: bytes, where mac80211 tells them, else packets. Those of a whole radio
/// (`NL80211_ATTR_TXQ_STATS`) are not asked for: they come with all else that there is to say of a radio, and their bytes are the memory that packets take.
fn waits(tids: &[u8]) -> Option<u64> {
    let of = |tid| {
        let queue = Attributes::find(tid, TID_STATS_TXQ_STATS)?;
        let word = |kind| Attributes::find(queue, kind).and_then(u32_of).map(u64::from);
        word(TXQ_STATS_BACKLOG_BYTES).or_else(|| Some(FULL_PACKET * word(TXQ_STATS_BACKLOG_PACKETS)?))
    };
    Attributes::new(tids).filter_map(|(_, tid)| of(tid)).reduce(|a, b| a + b)
}

fn u16_of(value: &[u8]) -> Option<u16> {
    value.try_into().ok().map(u16::from_ne_bytes)
}

fn u32_of(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_ne_bytes)
}

fn u64_of(value: &[u8]) -> Option<u64> {
    value.try_into().ok().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::put_nested;
    use proptest::prelude::*;

    #[test]
    fn a_told_station_is_read() {
        let mut body = Vec::new();
        put(&mut body, NL80211_ATTR_MAC, &[2, 0, 0, 0, 1, 0]);
        put_nested(&mut body, NL80211_ATTR_STA_INFO, |about| {
            put(about, STA_INFO_TX_PACKETS, &200u32.to_ne_bytes());
            put(about, STA_INFO_TX_RETRIES, &50u32.to_ne_bytes());
            put(about, STA_INFO_TX_FAILED, &3u32.to_ne_bytes());
            put(about, STA_INFO_TX_BYTES64, &300_000u64.to_ne_bytes());
            put_nested(about, STA_INFO_TX_BITRATE, |rate| put(rate, RATE_INFO_BITRATE, &60u16.to_ne_bytes()));
        });
        let expected = Station {
            mac: [2, 0, 0, 0, 1, 0],
            rate: Some(BitRate::mbps(6)),
            bytes: 300_000,
            packets: 200,
            retries: 50,
            failed: 3,
            airtime: None,
            weight: None,
            waits: None,
        };
        assert_eq!(Station::read(&body), Some(expected));
    }

    /// As `nl80211_send_station` of Linux 6.12 lays it out: identifiers are counted from 1, the seventeenth is for what has none and no queue.
    #[test]
    fn what_waits_in_the_queues_of_all_traffic_identifiers_is_summed() {
        let told = |queues: &[(u16, Option<(u16, u32)>)]| {
            let mut body = Vec::new();
            put(&mut body, NL80211_ATTR_MAC, &[2, 0, 0, 0, 1, 0]);
            put_nested(&mut body, NL80211_ATTR_STA_INFO, |about| {
                put_nested(about, STA_INFO_TID_STATS, |tids| {
                    for (tid, queue) in queues {
                        put_nested(tids, *tid, |tid| {
                            put(tid, 1, &7u64.to_ne_bytes());
                            let Some((kind, value)) = queue else { return };
                            put_nested(tid, TID_STATS_TXQ_STATS, |queue| {
                                put(queue, *kind, &value.to_ne_bytes());
                                put(queue, 3, &2u32.to_ne_bytes());
                            });
                        });
                    }
                });
            });
            Station::read(&body).unwrap().waits
        };
        let (bytes, packets) = (TXQ_STATS_BACKLOG_BYTES, TXQ_STATS_BACKLOG_PACKETS);
        assert_eq!(told(&[(1, Some((bytes, 30_000))), (7, Some((bytes, 120))), (17, None)]), Some(30_120));
        assert_eq!(told(&[(1, Some((bytes, 0))), (7, Some((bytes, 0)))]), Some(0), "nothing waits");
        assert_eq!(told(&[(1, Some((packets, 20)))]), Some(30_000), "no bytes are told");
        assert_eq!(told(&[(1, None), (17, None)]), None, "its driver has queues of its own");
        assert_eq!(told(&[(1, Some((bytes, u32::MAX))); 17]), Some(17 * u64::from(u32::MAX)));
    }

    /// What mac80211 of Linux 6.18 answered (mac80211_hwsim) while 93 datagrams of 1,428 bytes waited, by `iw phy get txq`, for a radio off its channel.
    #[test]
    #[cfg(target_endian = "little")]
    fn what_waits_is_read_of_a_recorded_station() {
        let recorded = include_bytes!("../../../fuzz/seeds/radio/station");
        let station = Station::read(recorded).unwrap();
        assert_eq!((station.mac, station.waits), ([2, 0, 0, 0, 1, 0], Some(93 * (1_428 + 34))));
        for cut in 0..recorded.len() {
            assert!(Station::read(&recorded[..cut]).is_none_or(|station| station.waits.is_none()), "{cut}");
        }
    }

    #[test]
    fn access_points_and_meshes_are_told_from_clients() {
        let interface = |iftype: u32| {
            let mut body = Vec::new();
            put(&mut body, NL80211_ATTR_IFINDEX, &7u32.to_ne_bytes());
            put(&mut body, NL80211_ATTR_IFTYPE, &iftype.to_ne_bytes());
            put(&mut body, NL80211_ATTR_WIPHY, &1u32.to_ne_bytes());
            read_interface(&body)
        };
        let types = [Radio::Other, Radio::AccessPoint, Radio::AccessPoint, Radio::Mesh];
        assert_eq!([2, 3, 4, 7].map(interface), types.map(|radio| Some((7, Wireless { radio, wiphy: 1 }))));
        assert_eq!(read_interface(&[]), None);
    }

    #[test]
    fn a_multicast_group_is_found_by_its_name() {
        let mut body = Vec::new();
        put_nested(&mut body, CTRL_ATTR_MCAST_GROUPS, |groups| {
            for (n, name) in [(1, "scan"), (2, "config")] {
                put_nested(groups, n, |group| {
                    put(group, CTRL_ATTR_MCAST_GRP_NAME, name.as_bytes());
                    put(group, CTRL_ATTR_MCAST_GRP_ID, &(40 + u32::from(n)).to_ne_bytes());
                });
            }
        });
        assert_eq!((group(&body, "config"), group(&body, "mlme")), (Some(42), None));
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_no_station_or_one(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Station::read(&bytes), read_interface(&bytes), group(&bytes, "config"));
        }
    }
}

//! What nl80211 says of a radio that can be set, and the messages that set it.
//!
//! | what | read from | set by |
//! |---|---|---|
//! | retry limits | `GET_WIPHY` | `SET_WIPHY` |
//! | limit, memory and quantum of mac80211's queues | `GET_WIPHY` | `SET_WIPHY` |
//! | access point's contention (EDCA) of a class | nowhere | `SET_WIPHY` with `WIPHY_TXQ_PARAMS` |
//! | air-time weight of a station | `GET_STATION` | `SET_STATION` |
//! | retries, aggregation and RTS of a station's traffic identifiers | nowhere | `SET_TID_CONFIG` |
//!
//! Source: `linux/nl80211.h` and `net/wireless/nl80211.c` of Linux 6.12; the tests hold each message to what iw 5.19 and hostapd 2.10
//! were recorded to send, by `nlmon`.

use std::io;

use crate::netlink::{Attributes, GENL_HEADER, NLM_F_DUMP, put, put_nested, text};
use crate::stations::{Mac, NL80211_ATTR_IFINDEX, NL80211_ATTR_MAC, NL80211_ATTR_WIPHY, Nl80211};

const CMD_GET_WIPHY: u8 = 1;
const CMD_SET_WIPHY: u8 = 2;
const CMD_SET_STATION: u8 = 18;
const CMD_SET_TID_CONFIG: u8 = 137;
const ATTR_WIPHY_NAME: u16 = 2;
const ATTR_TXQ_PARAMS: u16 = 37;
const ATTR_RETRY_SHORT: u16 = 61;
const ATTR_RETRY_LONG: u16 = 62;
const ATTR_SPLIT_WIPHY_DUMP: u16 = 174;
const ATTR_EXT_FEATURES: u16 = 217;
const ATTR_TXQ_LIMIT: u16 = 266;
const ATTR_TXQ_MEMORY_LIMIT: u16 = 267;
const ATTR_TXQ_QUANTUM: u16 = 268;
const ATTR_AIRTIME_WEIGHT: u16 = 274;
const ATTR_TID_CONFIG: u16 = 285;
/// Bits of `ATTR_EXT_FEATURES`.
const FEATURE_AIRTIME_FAIRNESS: usize = 33;
const FEATURE_AQL: usize = 40;
const TXQ_AC: u16 = 1;
const TXQ_TXOP: u16 = 2;
const TXQ_CWMIN: u16 = 3;
const TXQ_CWMAX: u16 = 4;
const TXQ_AIFS: u16 = 5;
const TID_PEER_SUPPORT: u16 = 3;
const TID_OVERRIDE: u16 = 4;
const TID_TIDS: u16 = 5;
const TID_RETRY_SHORT: u16 = 7;
const TID_RETRY_LONG: u16 = 8;
const TID_AMPDU: u16 = 9;
const TID_RTS: u16 = 10;
const TID_AMSDU: u16 = 11;

/// Transmissions of a frame, the first one included, before it is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Of one below the RTS threshold, 1 to 255.
    pub short: u8,
    /// Of a longer one.
    pub long: u8,
}

/// Bounds of mac80211's own queues (FQ-CoDel).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Txq {
    /// Packets of all stations.
    pub limit: u32,
    /// Bytes of all stations.
    pub memory_bytes: u32,
    /// What a flow may send in its turn, bytes, 1 and more.
    pub quantum_bytes: u32,
}

/// How the access point contends with the frames of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edca {
    /// Slots before the first.
    pub aifs: u8,
    /// Smallest contention window, slots: 2^n - 1.
    pub cw_min: u16,
    /// Largest one.
    pub cw_max: u16,
    /// How long it may send once it has the channel, in 32 us; 0: one aggregate.
    pub txop_32us: u16,
}

/// What a station's frames of some traffic identifiers are sent like; `None`: as before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TidConfig {
    /// Retries of a short frame, 1 and more.
    pub retry_short: Option<u8>,
    /// Of a long one.
    pub retry_long: Option<u8>,
    /// Whether frames are sent in A-MPDUs.
    pub ampdu: Option<bool>,
    /// Whether packets are put together in A-MSDUs.
    pub amsdu: Option<bool>,
    /// Whether RTS goes before.
    pub rts: Option<bool>,
}

impl TidConfig {
    /// Numbers of the attributes that it would take, as bits: what [`Wiphy::tid_support`] has to have.
    #[must_use]
    pub fn takes(&self) -> u64 {
        let numbers = [
            (self.retry_short.is_some(), TID_RETRY_SHORT),
            (self.retry_long.is_some(), TID_RETRY_LONG),
            (self.ampdu.is_some(), TID_AMPDU),
            (self.amsdu.is_some(), TID_AMSDU),
            (self.rts.is_some(), TID_RTS),
        ];
        numbers.into_iter().filter(|(is_there, _)| *is_there).fold(0, |bits, (_, number)| bits | 1 << number)
    }
}

/// A radio, as far as it says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wiphy {
    /// Its number.
    pub number: u32,
    /// Its name ("phy0"): its folder in debugfs.
    pub name: String,
    /// Retry limits in force.
    pub retries: Option<Retries>,
    /// Its queues; none where its driver has its own.
    pub txq: Option<Txq>,
    /// The driver does what the weights of stations say.
    pub has_weights: bool,
    /// What waits in the hardware is limited by its air time.
    pub has_aql: bool,
    /// What of [`TidConfig`] its driver can do for one station, by [`TidConfig::takes`].
    pub tid_support: u64,
    /// Most retries that a [`TidConfig`] may ask for.
    pub tid_retries: u8,
}

impl Wiphy {
    /// Takes in one message of the dump: each tells a part.
    fn take(&mut self, attributes: &[u8]) {
        for (kind, value) in Attributes::new(attributes) {
            match kind {
                NL80211_ATTR_WIPHY => self.number = u32_of(value).unwrap_or_default(),
                ATTR_WIPHY_NAME => self.name = text(value),
                ATTR_EXT_FEATURES => {
                    let has = |bit: usize| value.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1);
                    (self.has_weights, self.has_aql) = (has(FEATURE_AIRTIME_FAIRNESS), has(FEATURE_AQL));
                }
                ATTR_TID_CONFIG => {
                    let find = |kind| Attributes::find(value, kind);
                    self.tid_support =
                        find(TID_PEER_SUPPORT).and_then(|v| v.try_into().ok()).map_or(0, u64::from_ne_bytes);
                    let most =
                        [TID_RETRY_SHORT, TID_RETRY_LONG].map(|kind| find(kind).and_then(|v| v.first().copied()));
                    self.tid_retries = most.into_iter().flatten().min().unwrap_or(0);
                }
                _ => {}
            }
        }
        let find = |kind| Attributes::find(attributes, kind);
        let byte = |kind| find(kind).and_then(|value| value.first().copied());
        let word = |kind| find(kind).and_then(u32_of);
        if let (Some(short), Some(long)) = (byte(ATTR_RETRY_SHORT), byte(ATTR_RETRY_LONG)) {
            self.retries = Some(Retries { short, long });
        }
        if let (Some(limit), Some(memory_bytes), Some(quantum_bytes)) =
            (word(ATTR_TXQ_LIMIT), word(ATTR_TXQ_MEMORY_LIMIT), word(ATTR_TXQ_QUANTUM))
        {
            self.txq = Some(Txq { limit, memory_bytes, quantum_bytes });
        }
    }

    /// What the messages of a dump say of one radio, without their headers.
    #[must_use]
    pub fn read<'a>(messages: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut wiphy = Self::default();
        messages.into_iter().for_each(|message| wiphy.take(message));
        wiphy
    }
}

impl Nl80211 {
    /// What a radio says of itself.
    ///
    /// # Errors
    /// `ENODEV` when there is none of this number; or when netlink fails.
    pub fn wiphy(&mut self, number: u32) -> io::Result<Wiphy> {
        let replies = self.request(NLM_F_DUMP, &get_wiphy(number))?;
        let wiphy = Wiphy::read(replies.iter().filter_map(|reply| reply.body.get(GENL_HEADER..)));
        if wiphy.name.is_empty() { Err(io::Error::from_raw_os_error(libc::ENODEV)) } else { Ok(wiphy) }
    }

    /// Sends what one of the functions below made.
    ///
    /// # Errors
    /// What the driver, or the kernel for it, refuses: `EOPNOTSUPP`, `EINVAL`, `EPERM`, ...
    pub fn set(&mut self, message: &[u8]) -> io::Result<()> {
        self.request(0, message).map(drop)
    }
}

fn get_wiphy(number: u32) -> Vec<u8> {
    let mut body = vec![CMD_GET_WIPHY, 0, 0, 0];
    put(&mut body, NL80211_ATTR_WIPHY, &number.to_ne_bytes());
    put(&mut body, ATTR_SPLIT_WIPHY_DUMP, &[]);
    body
}

fn set_wiphy(number: u32) -> Vec<u8> {
    let mut body = vec![CMD_SET_WIPHY, 0, 0, 0];
    put(&mut body, NL80211_ATTR_WIPHY, &number.to_ne_bytes());
    body
}

/// Sets the retry limits of a radio.
#[must_use]
pub fn set_retries(wiphy: u32, retries: Retries) -> Vec<u8> {
    let mut body = set_wiphy(wiphy);
    put(&mut body, ATTR_RETRY_SHORT, &[retries.short]);
    put(&mut body, ATTR_RETRY_LONG, &[retries.long]);
    body
}

/// Sets the bounds of a radio's queues.
#[must_use]
pub fn set_txq(wiphy: u32, txq: Txq) -> Vec<u8> {
    let mut body = set_wiphy(wiphy);
    put(&mut body, ATTR_TXQ_LIMIT, &txq.limit.to_ne_bytes());
    put(&mut body, ATTR_TXQ_MEMORY_LIMIT, &txq.memory_bytes.to_ne_bytes());
    put(&mut body, ATTR_TXQ_QUANTUM, &txq.quantum_bytes.to_ne_bytes());
    body
}

/// Sets how an access point contends with frames of a class: 0 voice, 1 video, 2 best effort, 3 background.
#[must_use]
pub fn set_edca(ifindex: u32, class: u8, edca: Edca) -> Vec<u8> {
    let mut body = vec![CMD_SET_WIPHY, 0, 0, 0];
    put(&mut body, NL80211_ATTR_IFINDEX, &ifindex.to_ne_bytes());
    put_nested(&mut body, ATTR_TXQ_PARAMS, |all| {
        put_nested(all, 1, |one| {
            put(one, TXQ_AC, &[class]);
            put(one, TXQ_TXOP, &edca.txop_32us.to_ne_bytes());
            put(one, TXQ_CWMIN, &edca.cw_min.to_ne_bytes());
            put(one, TXQ_CWMAX, &edca.cw_max.to_ne_bytes());
            put(one, TXQ_AIFS, &[edca.aifs]);
        });
    });
    body
}

fn of_station(command: u8, ifindex: u32, station: Mac) -> Vec<u8> {
    let mut body = vec![command, 0, 0, 0];
    put(&mut body, NL80211_ATTR_IFINDEX, &ifindex.to_ne_bytes());
    put(&mut body, NL80211_ATTR_MAC, &station);
    body
}

/// Sets the air-time weight of a station; 256 is usual.
#[must_use]
pub fn set_weight(ifindex: u32, station: Mac, weight: u16) -> Vec<u8> {
    let mut body = of_station(CMD_SET_STATION, ifindex, station);
    put(&mut body, ATTR_AIRTIME_WEIGHT, &weight.to_ne_bytes());
    body
}

/// Sets how frames of these traffic identifiers (a bit each) are sent to a station, in place of what was set before; with nothing to set
/// the driver's own way is in force again.
#[must_use]
pub fn set_tid_config(ifindex: u32, station: Mac, tids: u16, config: TidConfig) -> Vec<u8> {
    let mut body = of_station(CMD_SET_TID_CONFIG, ifindex, station);
    // NL80211_TID_CONFIG_ENABLE, _DISABLE.
    let switch = |on: bool| [u8::from(!on)];
    put_nested(&mut body, ATTR_TID_CONFIG, |all| {
        put_nested(all, 0, |one| {
            put(one, TID_TIDS, &tids.to_ne_bytes());
            put(one, TID_OVERRIDE, &[]);
            config.retry_short.inspect(|most| put(one, TID_RETRY_SHORT, &[*most]));
            config.retry_long.inspect(|most| put(one, TID_RETRY_LONG, &[*most]));
            config.ampdu.inspect(|on| put(one, TID_AMPDU, &switch(*on)));
            config.amsdu.inspect(|on| put(one, TID_AMSDU, &switch(*on)));
            config.rts.inspect(|on| put(one, TID_RTS, &switch(*on)));
        });
    });
    body
}

fn u32_of(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_ne_bytes)
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STATION: Mac = [2, 0, 0, 0, 1, 0];

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
    }

    #[test]
    fn retries_are_set_as_iw_sets_them() {
        // iw phy#0 set retry short 4 long 3
        let recorded = "02000000 0800010000000000 05003d0004000000 05003e0003000000";
        assert_eq!(set_retries(0, Retries { short: 4, long: 3 }), bytes(recorded));
    }

    #[test]
    fn queues_are_set_as_iw_sets_them() {
        // iw phy#0 set txq limit 1000, memory_limit 2000000, quantum 600: one message each.
        let recorded = "02000000 0800010000000000 08000a01e8030000 08000b0180841e00 08000c0158020000";
        assert_eq!(set_txq(0, Txq { limit: 1_000, memory_bytes: 2_000_000, quantum_bytes: 600 }), bytes(recorded));
    }

    #[test]
    fn contention_is_set_as_hostapd_sets_it() {
        // hostapd 2.10 at its start, with tx_queue_data2_burst=2.0 and all else as it is.
        let recorded = [
            "0500010000000000060002002f000000060003000300000006000400070000000500050001000000",
            "0500010001000000060002005e0000000600030007000000060004000f0000000500050001000000",
            "0500010002000000060002003f000000060003000f000000060004003f0000000500050003000000",
            "05000100030000000600020000000000060003000f00000006000400ff0300000500050007000000",
        ];
        let told = [(1, 3, 7, 0x2f), (1, 7, 15, 0x5e), (3, 15, 63, 0x3f), (7, 15, 1_023, 0)];
        for (class, (recorded, (aifs, cw_min, cw_max, txop_32us))) in recorded.into_iter().zip(told).enumerate() {
            let whole = format!("02000000 0800030002000000 30002580 2c000180 {recorded}");
            let edca = Edca { aifs, cw_min, cw_max, txop_32us };
            assert_eq!(set_edca(2, class as u8, edca), bytes(&whole), "{class}");
        }
    }

    #[test]
    fn the_weight_of_a_station_is_set_as_iw_sets_it() {
        // iw dev wlan0 station set 02:00:00:00:01:00 airtime_weight 512
        let recorded = "12000000 0800030002000000 0a000600020000000100 0000 0600120100020000";
        assert_eq!(set_weight(2, STATION, 512), bytes(recorded));
    }

    /// iw dev wlan0 set tidconf peer 02:00:00:00:01:00 tids 0x41 override sretry 5 lretry 4 ampdu off amsdu off rtscts on
    #[test]
    fn a_stations_traffic_is_configured_as_iw_does_it_but_for_the_order_of_what_is_in_it() {
        let recorded = bytes(
            "89000000 0800030002000000 0a000600020000000100 0000 3c001d81 38000080 0600050041000000 04000400
             0500070005000000 0500080004000000 0500090001000000 05000b0001000000 05000a0000000000",
        );
        let config = TidConfig {
            retry_short: Some(5),
            retry_long: Some(4),
            ampdu: Some(false),
            amsdu: Some(false),
            rts: Some(true),
        };
        assert_eq!(set_tid_config(2, STATION, 0x41, config), recorded);
        assert_eq!(config.takes(), 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11);
        // What takes it back names the identifiers, and that what was set is void.
        let back = "89000000 0800030002000000 0a000600020000000100 0000 14001d81 10000080 0600050041000000 04000400";
        assert_eq!(set_tid_config(2, STATION, 0x41, TidConfig::default()), bytes(back));
    }

    #[test]
    fn a_radio_is_asked_for_as_iw_asks() {
        assert_eq!(get_wiphy(0), bytes("01000000 0800010000000000 0400ae00"));
    }

    /// Three of the messages by which the simulated radio of Linux 6.18 answered, after the settings above.
    #[test]
    fn what_a_radio_said_is_read() {
        let recorded = [
            "03010000080001000000000009000200706879300000000008002e000200000005003d000400000005003e000300000008003f00
             ffffffff08004000ffffffff050059000000000005002b000400000005007b0000000000060038004208000006007c0000000000
             050085000000000004006800040073000400820004008b0004008c00",
            "03010000080001000000000009000200706879300000000008002e00020000000500ce00020000000d00d900432200f411b60124
             180000002400558104001c0004001d0004001e00040024000400600004006d000400a2000400a300",
            "03010000080001000000000009000200706879300000000008002e00020000000800ef0003000000340009010800010000000000
             080002000000000008000600000000000800070000000000080008000000000008000b000010000008000a01e803000008000b01
             80841e0008000c0158020000",
        ];
        let messages = recorded.map(bytes);
        let wiphy = Wiphy::read(messages.iter().map(|message| &message[GENL_HEADER..]));
        let expected = Wiphy {
            name: "phy0".to_owned(),
            retries: Some(Retries { short: 4, long: 3 }),
            txq: Some(Txq { limit: 1_000, memory_bytes: 2_000_000, quantum_bytes: 600 }),
            ..Wiphy::default()
        };
        assert_eq!(wiphy, expected);
    }

    /// As ath10k has it: made here by what `nl80211_put_tid_config_support` of Linux 6.12 puts there.
    #[test]
    fn what_a_driver_can_do_for_a_stations_traffic_is_read() {
        let mut body = Vec::new();
        put_nested(&mut body, ATTR_TID_CONFIG, |about| {
            put(about, 2, &0xb80u64.to_ne_bytes());
            put(about, TID_PEER_SUPPORT, &0xf80u64.to_ne_bytes());
            put(about, TID_RETRY_SHORT, &[30]);
            put(about, TID_RETRY_LONG, &[30]);
        });
        put(&mut body, ATTR_EXT_FEATURES, &[0, 0, 0, 0, 2, 1]);
        let wiphy = Wiphy::read([body.as_slice()]);
        assert_eq!((wiphy.tid_support, wiphy.tid_retries, wiphy.has_weights, wiphy.has_aql), (0xf80, 30, true, true));
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_some_radio(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let wiphy = Wiphy::read([bytes.as_slice()]);
            prop_assert!(wiphy.name.len() <= 3 * bytes.len());
        }
    }
}

//! The messages of `MAC80211_HWSIM`, a family of generic netlink.
//!
//! | command | direction | attributes |
//! |---|---|---|
//! | REGISTER | to the kernel | none: frames go to this socket from now on |
//! | NEW_RADIO | to the kernel | name, address, regulatory domain; it goes when the socket is closed |
//! | FRAME | from the kernel | transmitter, frame, flags, frequency, 4 rates with counts and flags, cookie |
//! | FRAME | to the kernel | receiver, frame, rate, signal, frequency |
//! | TX_INFO_FRAME | to the kernel | transmitter, flags, cookie, signal, 4 rates with the tries that were made |
//!
//! A radio made with an address of its own is named by that one. Numbers are in host order.
//! Source: `drivers/net/wireless/virtual/mac80211_hwsim.h`, which says that its numbers stay.

use lasthop_live::netlink::{Attributes, GENL_HEADER, put};

use crate::Mac;

/// The family's name.
pub const FAMILY: &str = "MAC80211_HWSIM";

const CMD_REGISTER: u8 = 1;
const CMD_FRAME: u8 = 2;
const CMD_TX_INFO_FRAME: u8 = 3;
const CMD_NEW_RADIO: u8 = 4;
const VERSION: u8 = 1;

const ATTR_ADDR_RECEIVER: u16 = 1;
const ATTR_ADDR_TRANSMITTER: u16 = 2;
const ATTR_FRAME: u16 = 3;
const ATTR_FLAGS: u16 = 4;
const ATTR_RX_RATE: u16 = 5;
const ATTR_SIGNAL: u16 = 6;
const ATTR_TX_INFO: u16 = 7;
const ATTR_COOKIE: u16 = 8;
const ATTR_REG_CUSTOM_REG: u16 = 12;
const ATTR_DESTROY_RADIO_ON_CLOSE: u16 = 16;
const ATTR_RADIO_NAME: u16 = 17;
const ATTR_FREQ: u16 = 19;
const ATTR_TX_INFO_FLAGS: u16 = 21;
const ATTR_PERM_ADDR: u16 = 22;

/// No answer is expected.
pub const NO_ACK: u32 = 1 << 1;
/// It was acknowledged.
pub const STAT_ACK: u32 = 1 << 2;
/// Rates of a frame.
pub const STAGES: usize = 4;
/// The driver's own regulatory domain in which channels 36 to 48 may be used up to 80 MHz wide, whatever the country.
const REGULATORY_DOMAIN: u32 = 3;

/// One entry of a frame's table of rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxRate {
    /// Of the band's rates, or an MCS, as `flags` say; -1: the table ends before it.
    pub index: i8,
    /// Tries.
    pub count: u8,
    /// `mac80211_hwsim_tx_rate_flags`.
    pub flags: u16,
}

impl TxRate {
    /// Behind the end of a table.
    pub const NONE: Self = Self { index: -1, count: 0, flags: 0 };
}

/// A frame that a radio sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmission<'a> {
    /// The radio.
    pub radio: Mac,
    /// From its frame control field on, without FCS.
    pub frame: &'a [u8],
    /// [`NO_ACK`], and others that are handed back.
    pub flags: u32,
    /// Names it in the answer.
    pub cookie: u64,
    /// Of the channel, MHz.
    pub frequency_mhz: u32,
    /// What it is to be tried with.
    pub rates: [TxRate; STAGES],
}

/// A message lacks an attribute, or one is of another length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// Reads what follows a netlink header; `None`: it is no frame.
///
/// # Errors
/// Names the attribute that is wrong.
pub fn read(body: &[u8]) -> Result<Option<Transmission<'_>>, Malformed> {
    let [CMD_FRAME, ..] = body else { return Ok(None) };
    let attributes = body.get(GENL_HEADER..).ok_or(Malformed("header"))?;
    let find = |kind, name| Attributes::find(attributes, kind).ok_or(Malformed(name));
    let number = |kind, name| {
        let value = find(kind, name)?.first_chunk().ok_or(Malformed(name))?;
        Ok(u32::from_ne_bytes(*value))
    };
    let cookie = find(ATTR_COOKIE, "cookie")?.first_chunk().ok_or(Malformed("cookie"))?;
    let counts: &[u8; 2 * STAGES] = find(ATTR_TX_INFO, "rates")?.first_chunk().ok_or(Malformed("rates"))?;
    let flags: &[u8; 3 * STAGES] =
        find(ATTR_TX_INFO_FLAGS, "rate flags")?.first_chunk().ok_or(Malformed("rate flags"))?;
    Ok(Some(Transmission {
        radio: *find(ATTR_ADDR_TRANSMITTER, "transmitter")?.first_chunk().ok_or(Malformed("transmitter"))?,
        frame: find(ATTR_FRAME, "frame")?,
        flags: number(ATTR_FLAGS, "flags")?,
        cookie: u64::from_ne_bytes(*cookie),
        frequency_mhz: number(ATTR_FREQ, "frequency")?,
        rates: std::array::from_fn(|n| TxRate {
            index: counts[2 * n] as i8,
            count: counts[2 * n + 1],
            flags: u16::from_ne_bytes([flags[3 * n + 1], flags[3 * n + 2]]),
        }),
    }))
}

/// Frames come to whoever sends this.
#[must_use]
pub fn register() -> Vec<u8> {
    vec![CMD_REGISTER, VERSION, 0, 0]
}

/// A new radio with one interface, there as long as the socket that asks for it.
#[must_use]
pub fn new_radio(name: &str, address: Mac) -> Vec<u8> {
    let mut body = vec![CMD_NEW_RADIO, VERSION, 0, 0];
    put(&mut body, ATTR_DESTROY_RADIO_ON_CLOSE, &[]);
    put(&mut body, ATTR_RADIO_NAME, name.as_bytes());
    put(&mut body, ATTR_PERM_ADDR, &address);
    put(&mut body, ATTR_REG_CUSTOM_REG, &REGULATORY_DOMAIN.to_ne_bytes());
    body
}

/// A frame arrives at a radio. `rate`: of the band's rates without HT, by which the kernel takes note of it.
#[must_use]
pub fn arrival(radio: Mac, frame: &[u8], rate: u32, signal_dbm: i32, frequency_mhz: u32) -> Vec<u8> {
    let mut body = Vec::with_capacity(frame.len() + 64);
    body.extend([CMD_FRAME, VERSION, 0, 0]);
    put(&mut body, ATTR_ADDR_RECEIVER, &radio);
    put(&mut body, ATTR_FRAME, frame);
    put(&mut body, ATTR_RX_RATE, &rate.to_ne_bytes());
    put(&mut body, ATTR_SIGNAL, &signal_dbm.to_ne_bytes());
    put(&mut body, ATTR_FREQ, &frequency_mhz.to_ne_bytes());
    body
}

/// What became of a frame: `flags` are its own and perhaps [`STAT_ACK`], `rates` those that were tried, and how often.
#[must_use]
pub fn outcome(radio: Mac, cookie: u64, flags: u32, signal_dbm: i32, rates: &[TxRate; STAGES]) -> Vec<u8> {
    let mut body = Vec::with_capacity(80);
    body.extend([CMD_TX_INFO_FRAME, VERSION, 0, 0]);
    put(&mut body, ATTR_ADDR_TRANSMITTER, &radio);
    put(&mut body, ATTR_FLAGS, &flags.to_ne_bytes());
    put(&mut body, ATTR_COOKIE, &cookie.to_ne_bytes());
    put(&mut body, ATTR_SIGNAL, &signal_dbm.to_ne_bytes());
    put(&mut body, ATTR_TX_INFO, &rates.map(|rate| [rate.index as u8, rate.count]).concat());
    let with_flags = rates.map(|rate| {
        let [low, high] = rate.flags.to_ne_bytes();
        [rate.index as u8, low, high]
    });
    put(&mut body, ATTR_TX_INFO_FLAGS, &with_flags.concat());
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RADIO: Mac = [2, 0, 0, 0, 1, 0];

    /// As the kernel writes it.
    fn sent(without: u16) -> Vec<u8> {
        let mut body = vec![CMD_FRAME, VERSION, 0, 0];
        let attributes: [(u16, &[u8]); 7] = [
            (ATTR_ADDR_TRANSMITTER, &RADIO),
            (ATTR_FRAME, &[0x88; 30]),
            (ATTR_FLAGS, &1u32.to_ne_bytes()),
            (ATTR_FREQ, &5180u32.to_ne_bytes()),
            (ATTR_TX_INFO, &[4, 3, 12, 2, 255, 0, 255, 0]),
            (ATTR_TX_INFO_FLAGS, &[4, 0x88, 0, 12, 0x08, 0, 255, 0, 0, 255, 0, 0]),
            (ATTR_COOKIE, &77u64.to_ne_bytes()),
        ];
        attributes.iter().filter(|(kind, _)| *kind != without).for_each(|(kind, value)| put(&mut body, *kind, value));
        body
    }

    #[test]
    fn a_frame_is_read_with_its_rates() {
        let message = sent(0);
        let frame = read(&message).unwrap().unwrap();
        assert_eq!((frame.radio, frame.frame, frame.cookie), (RADIO, &[0x88; 30][..], 77));
        assert_eq!((frame.flags, frame.frequency_mhz), (1, 5180));
        assert_eq!(frame.rates[0], TxRate { index: 4, count: 3, flags: 0x88 });
        assert_eq!(frame.rates[1], TxRate { index: 12, count: 2, flags: 8 });
        assert_eq!(frame.rates[2..], [TxRate::NONE; 2]);
    }

    #[test]
    fn what_is_missing_is_named_and_other_commands_are_none() {
        assert_eq!(read(&sent(ATTR_COOKIE)), Err(Malformed("cookie")));
        assert_eq!(read(&sent(ATTR_TX_INFO_FLAGS)), Err(Malformed("rate flags")));
        assert_eq!(read(&[CMD_NEW_RADIO, 1, 0, 0]), Ok(None));
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[CMD_FRAME, 1]), Err(Malformed("header")));
    }

    #[test]
    fn an_outcome_repeats_cookie_and_rates() {
        let rates = [TxRate { index: 7, count: 2, flags: 8 }, TxRate::NONE, TxRate::NONE, TxRate::NONE];
        let body = outcome(RADIO, 9, STAT_ACK, -60, &rates);
        let find = |kind| Attributes::find(&body[GENL_HEADER..], kind).unwrap();
        assert_eq!(find(ATTR_TX_INFO), [7, 2, 255, 0, 255, 0, 255, 0]);
        assert_eq!(find(ATTR_COOKIE), 9u64.to_ne_bytes());
        assert_eq!(find(ATTR_FLAGS), 4u32.to_ne_bytes());
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_refused_or_read(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), frame in any::<bool>()) {
            if let (true, Some(first)) = (frame, bytes.first_mut()) {
                *first = CMD_FRAME;
            }
            let _ = read(&bytes);
        }
    }
}

//! Radiotap and the headers of 802.11 frames.

use lasthop_core::packet::AccessCategory;
use lasthop_home::address::{Mac, mac};
use lasthop_home::scenario::HostId;
use lasthop_medium::phy::{ACK_BYTES, Phy, Preamble, RTS_BYTES};
use lasthop_medium::{Band, Frame, Guard, InAggregate, Mode, Rate, Standard, Width};

use super::{ChannelFrame, Kind, Sender};

/// Header of a data frame and LLC/SNAP, bytes; with a class 2 more.
const DATA_BYTES: u32 = 24 + 8;
/// Block ack of a window of 64 MPDUs, and of 256.
pub(super) const BLOCK_ACK_BYTES: [u32; 2] = [32, 56];

/// Counted by the channel, and not there.
const FCS_BYTES: u32 = 4;

/// Radiotap fields: their bits in the presence word.
mod field {
    pub const TSFT: u32 = 1;
    pub const FLAGS: u32 = 1 << 1;
    pub const RATE: u32 = 1 << 2;
    pub const CHANNEL: u32 = 1 << 3;
    pub const DATA_RETRIES: u32 = 1 << 17;
    pub const MCS: u32 = 1 << 19;
    pub const AMPDU: u32 = 1 << 20;
    pub const VHT: u32 = 1 << 21;
    pub const HE: u32 = 1 << 23;
}

/// Channel 1 and channel 36, MHz.
const FREQUENCY: u16 = 2412;
const FREQUENCY_5GHZ: u16 = 5180;
/// Channel flags: CCK or OFDM, in the 2 GHz band; OFDM in that of 5 GHz.
const CCK: u16 = 0x00a0;
const OFDM: u16 = 0x00c0;
const OFDM_5GHZ: u16 = 0x0140;
/// Radiotap flag: sent with the short preamble.
const SHORT_PREAMBLE: u8 = 2;

/// Frame control: type and subtype, first byte.
const DATA: u8 = 0x08;
const QOS_DATA: u8 = 0x88;
const BLOCK_ACK: u8 = 0x94;
const RTS: u8 = 0xb4;
const CTS: u8 = 0xc4;
const ACK: u8 = 0xd4;
/// Frame control: flags, second byte.
const TO_DS: u8 = 1;
const FROM_DS: u8 = 2;
const RETRY: u8 = 8;

/// LLC/SNAP of IPv4 (RFC 1042).
const SNAP_IPV4: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

/// The radiotap header of a frame, each field at a multiple of its size; returns its length. `aggregate`: its place, of an MPDU in an
/// A-MPDU.
pub(super) fn radiotap(
    out: &mut Vec<u8>,
    phy: &Phy,
    sent: Frame,
    retries: Option<u8>,
    aggregate: Option<InAggregate>,
) -> u32 {
    let (from, rate, mode) = (out.len(), sent.rate, sent.rate.mode());
    let of_mode = mode.map_or(field::RATE, |mode| match mode.standard {
        Standard::Ax => field::HE,
        Standard::Ac => field::VHT,
        _ => field::MCS,
    });
    let mut present = field::TSFT | field::FLAGS | field::CHANNEL | of_mode;
    present |= if retries.is_some() { field::DATA_RETRIES } else { 0 };
    present |= if aggregate.is_some() { field::AMPDU } else { 0 };
    let short = phy.preamble == Preamble::Short && !rate.is_ofdm() && rate != Rate::DSSS_1;
    out.extend([0; 4]);
    out.extend(present.to_le_bytes());
    out.extend((sent.start.as_nanos() / 1000).to_le_bytes());
    out.push(if short { SHORT_PREAMBLE } else { 0 });
    // Without a rate a byte is left out for the channel's sake.
    out.push(if mode.is_some() { 0 } else { (rate.bit_rate().as_bps() / 500_000) as u8 });
    let (frequency, modulation) = match phy.band {
        Band::Ghz5 => (FREQUENCY_5GHZ, OFDM_5GHZ),
        Band::Ghz2 => (FREQUENCY, if rate.is_ofdm() { OFDM } else { CCK }),
    };
    out.extend(frequency.to_le_bytes());
    out.extend(modulation.to_le_bytes());
    out.extend(retries);
    if let Some(mode) = mode.filter(|mode| mode.standard == Standard::N) {
        out.extend(mcs(&mode));
    }
    if let Some(InAggregate { number, index, mpdus }) = aggregate {
        align(out, from, 4);
        out.extend(number.to_le_bytes());
        // Known which is the last; it is.
        out.extend((4 | if index + 1 == mpdus { 8u16 } else { 0 }).to_le_bytes());
        out.extend([0; 2]);
    }
    if let Some(mode) = mode.filter(|mode| mode.standard != Standard::N) {
        align(out, from, 2);
        out.extend(if mode.standard == Standard::Ac { vht(&mode) } else { he(&mode) });
    }
    let length = (out.len() - from) as u16;
    out[from + 2..from + 4].copy_from_slice(&length.to_le_bytes());
    u32::from(length)
}

/// Fills up to a multiple of `bytes` from the start of the header on.
fn align(out: &mut Vec<u8>, from: usize, bytes: usize) {
    let to = from + (out.len() - from).next_multiple_of(bytes);
    out.resize(to, 0);
}

/// Radiotap's field of 802.11n: bandwidth, MCS, guard interval and format are known.
fn mcs(mode: &Mode) -> [u8; 3] {
    let flags = u8::from(mode.width == Width::Mhz40) | if mode.guard == Guard::Ns400 { 4 } else { 0 };
    [0x0f, flags, mode.mcs + 8 * (mode.streams - 1)]
}

/// Of 802.11ac: guard interval and bandwidth are known, and MCS and streams of the first user.
fn vht(mode: &Mode) -> [u8; 12] {
    let bandwidth = [0, 1, 4, 11][mode.width as usize];
    let guard = if mode.guard == Guard::Ns400 { 4 } else { 0 };
    [0x44, 0, guard, bandwidth, mode.mcs << 4 | mode.streams, 0, 0, 0, 0, 0, 0, 0]
}

/// Of 802.11ax, a frame to one user: MCS, bandwidth and guard interval are known, and streams.
fn he(mode: &Mode) -> [u8; 12] {
    let guard = [0, 0, 1, 2][mode.guard as usize];
    let words: [u16; 6] =
        [0x4020, 2, u16::from(mode.mcs) << 8, 0, mode.width as u16 | guard << 4, u16::from(mode.streams)];
    let mut bytes = [0; 12];
    for (word, place) in words.iter().zip(bytes.chunks_exact_mut(2)) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// An ACK, block ack, RTS or CTS; returns its length. Of a block ack the bitmap is not there.
pub(super) fn control(out: &mut Vec<u8>, frame: &ChannelFrame<'_>) -> u32 {
    let (kind, transmitter, bytes) = match frame.kind {
        Kind::Rts => (RTS, Some(mac(frame.from)), RTS_BYTES),
        Kind::Cts => (CTS, None, ACK_BYTES),
        Kind::BlockAck(bytes) => (BLOCK_ACK, Some(mac(frame.from)), bytes),
        Kind::Ack | Kind::Data(..) => (ACK, None, ACK_BYTES),
    };
    out.extend([kind, 0]);
    out.extend(duration(frame).to_le_bytes());
    out.extend(mac(frame.to));
    out.extend(transmitter.iter().flatten());
    bytes - FCS_BYTES
}

/// User priority of a class: the one that belongs to it first.
const fn priority(class: AccessCategory) -> u16 {
    match class {
        AccessCategory::Vo => 6,
        AccessCategory::Vi => 5,
        AccessCategory::Be => 0,
        AccessCategory::Bk => 1,
    }
}

/// The header of a data frame, and LLC/SNAP; returns their length.
pub(super) fn data(out: &mut Vec<u8>, frame: &ChannelFrame<'_>, sender: Sender, class: Option<AccessCategory>) -> u32 {
    let (receiver, transmitter) = (mac(frame.to), mac(frame.from));
    // The access point is a router: what comes from it has its address, and what goes to it ends there.
    let bssid: Mac = mac(HostId::AccessPoint);
    let direction = if frame.from == HostId::AccessPoint { FROM_DS } else { TO_DS };
    out.extend([if class.is_some() { QOS_DATA } else { DATA }, direction | if sender.retries > 0 { RETRY } else { 0 }]);
    out.extend(duration(frame).to_le_bytes());
    out.extend(receiver);
    out.extend(transmitter);
    out.extend(bssid);
    out.extend((sender.sequence << 4).to_le_bytes());
    let qos_control = class.map(|class| priority(class).to_le_bytes());
    out.extend(qos_control.iter().flatten());
    out.extend(SNAP_IPV4);
    DATA_BYTES + if class.is_some() { 2 } else { 0 }
}

/// The NAV, whole us rounded up, at most what the field holds.
fn duration(frame: &ChannelFrame<'_>) -> u16 {
    frame.nav.as_nanos().div_ceil(1000).min(32_767) as u16
}

//! Radiotap and the headers of 802.11 frames.

use lasthop_home::address::{Mac, mac};
use lasthop_home::scenario::HostId;
use lasthop_medium::phy::{ACK_BYTES, Phy, Preamble, RTS_BYTES};
use lasthop_medium::{Frame, Rate};

use super::{ChannelFrame, Kind, Sender};

/// Header of a data frame and LLC/SNAP, bytes.
pub(super) const DATA_BYTES: u32 = 24 + 8;

/// Counted by the channel, and not there.
const FCS_BYTES: u32 = 4;

/// Radiotap fields: their bits in the presence word.
mod field {
    pub const TSFT: u32 = 1;
    pub const FLAGS: u32 = 1 << 1;
    pub const RATE: u32 = 1 << 2;
    pub const CHANNEL: u32 = 1 << 3;
    pub const DATA_RETRIES: u32 = 1 << 17;
}

/// Channel 1, MHz.
const FREQUENCY: u16 = 2412;
/// Channel flags: CCK or OFDM, in the 2 GHz band.
const CCK: u16 = 0x00a0;
const OFDM: u16 = 0x00c0;
/// Radiotap flag: sent with the short preamble.
const SHORT_PREAMBLE: u8 = 2;

/// Frame control: type and subtype, first byte.
const DATA: u8 = 0x08;
const RTS: u8 = 0xb4;
const CTS: u8 = 0xc4;
const ACK: u8 = 0xd4;
/// Frame control: flags, second byte.
const TO_DS: u8 = 1;
const FROM_DS: u8 = 2;
const RETRY: u8 = 8;

/// LLC/SNAP of IPv4 (RFC 1042).
const SNAP_IPV4: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];

/// The radiotap header of a frame, each field at a multiple of its size; returns its length.
pub(super) fn radiotap(out: &mut Vec<u8>, phy: &Phy, sent: Frame, retries: Option<u8>) -> u32 {
    let mut present = field::TSFT | field::FLAGS | field::RATE | field::CHANNEL;
    let mut length = 22u16;
    if retries.is_some() {
        present |= field::DATA_RETRIES;
        length += 1;
    }
    let rate = sent.rate;
    let short = phy.preamble == Preamble::Short && !rate.is_ofdm() && rate != Rate::DSSS_1;
    out.extend([0, 0]);
    out.extend(length.to_le_bytes());
    out.extend(present.to_le_bytes());
    out.extend((sent.start.as_nanos() / 1000).to_le_bytes());
    out.push(if short { SHORT_PREAMBLE } else { 0 });
    out.push((rate.bit_rate().as_bps() / 500_000) as u8);
    out.extend(FREQUENCY.to_le_bytes());
    out.extend((if rate.is_ofdm() { OFDM } else { CCK }).to_le_bytes());
    out.extend(retries);
    u32::from(length)
}

/// An ACK, RTS or CTS; returns its length.
pub(super) fn control(out: &mut Vec<u8>, frame: &ChannelFrame<'_>) -> u32 {
    let (kind, transmitter, bytes) = match frame.kind {
        Kind::Rts => (RTS, Some(mac(frame.from)), RTS_BYTES),
        Kind::Cts => (CTS, None, ACK_BYTES),
        Kind::Ack | Kind::Data(..) => (ACK, None, ACK_BYTES),
    };
    out.extend([kind, 0]);
    out.extend(duration(frame).to_le_bytes());
    out.extend(mac(frame.to));
    out.extend(transmitter.iter().flatten());
    bytes - FCS_BYTES
}

/// The header of a data frame, and LLC/SNAP.
pub(super) fn data(out: &mut Vec<u8>, frame: &ChannelFrame<'_>, sender: Sender) {
    let (receiver, transmitter) = (mac(frame.to), mac(frame.from));
    // The access point is a router: what comes from it has its address, and what goes to it ends there.
    let bssid: Mac = mac(HostId::AccessPoint);
    let direction = if frame.from == HostId::AccessPoint { FROM_DS } else { TO_DS };
    out.extend([DATA, direction | if sender.retries > 0 { RETRY } else { 0 }]);
    out.extend(duration(frame).to_le_bytes());
    out.extend(receiver);
    out.extend(transmitter);
    out.extend(bssid);
    out.extend((sender.sequence << 4).to_le_bytes());
    out.extend(SNAP_IPV4);
}

/// The NAV, whole us rounded up, at most what the field holds.
fn duration(frame: &ChannelFrame<'_>) -> u16 {
    frame.nav.as_nanos().div_ceil(1000).min(32_767) as u16
}

//! What is read of an 802.11 frame: who to whom, its TID, and ADDBA.
//!
//! Source: IEEE 802.11-2020, 9.2.4 (frame control, QoS control), 9.4.1.13 (block ack parameters), 9.6.4 (ADDBA). Not read: control frames
//! without a transmitter, and what is encrypted.

use lasthop_core::packet::AccessCategory;

use crate::Mac;

/// What kind of frame it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Management, with its subtype.
    Management(u8),
    /// Control, with its subtype.
    Control(u8),
    /// Data; a TID where it is QoS data.
    Data(Option<u8>),
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it is.
    pub kind: Kind,
    /// Addressed to.
    pub to: Mac,
    /// Sent by.
    pub from: Mac,
    /// Its body is encrypted.
    pub is_protected: bool,
    /// It carries an MSDU.
    pub has_msdu: bool,
}

impl Header {
    /// Reads it; `None`: too short, or of a kind that names no transmitter.
    #[must_use]
    pub fn read(frame: &[u8]) -> Option<Self> {
        let control = u16::from_le_bytes(*frame.first_chunk()?);
        let subtype = (control >> 4 & 15) as u8;
        let four_addresses = control & 0x300 == 0x300;
        let kind = match control >> 2 & 3 {
            0 => Kind::Management(subtype),
            1 => Kind::Control(subtype),
            2 if subtype & 8 == 0 => Kind::Data(None),
            2 => Kind::Data(Some(*frame.get(if four_addresses { 30 } else { 24 })? & 15)),
            _ => return None,
        };
        let address = |at: usize| frame.get(at..at + 6)?.first_chunk().copied();
        Some(Self {
            kind,
            to: address(4)?,
            from: address(10)?,
            is_protected: control & 0x4000 != 0,
            has_msdu: matches!(kind, Kind::Data(_)) && subtype & 4 == 0,
        })
    }

    /// Addressed to several.
    #[must_use]
    pub const fn is_to_group(&self) -> bool {
        self.to[0] & 1 == 1
    }

    /// The class in which it contends: management goes as voice.
    #[must_use]
    pub const fn class(&self) -> AccessCategory {
        match self.kind {
            Kind::Data(Some(tid)) => class_of_tid(tid),
            Kind::Data(None) => AccessCategory::Be,
            Kind::Management(_) | Kind::Control(_) => AccessCategory::Vo,
        }
    }
}

/// The class of a user priority (table 10-1).
#[must_use]
pub const fn class_of_tid(tid: u8) -> AccessCategory {
    match tid & 7 {
        1 | 2 => AccessCategory::Bk,
        4 | 5 => AccessCategory::Vi,
        6 | 7 => AccessCategory::Vo,
        _ => AccessCategory::Be,
    }
}

/// What two radios agree on, or want to, before they aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addba {
    /// 0 of a request, else the answer's status code.
    pub status: Option<u16>,
    /// Which one.
    pub tid: u8,
    /// MPDUs; 0: as the other wants.
    pub buffer: u16,
    /// Acknowledged at once.
    pub is_immediate: bool,
    /// A-MSDUs may be within.
    pub takes_amsdu: bool,
}

impl Addba {
    /// Reads one of a management frame's body; `None`: it is something else, or encrypted.
    #[must_use]
    pub fn read(frame: &[u8], header: &Header) -> Option<Self> {
        const ACTION: Kind = Kind::Management(13);
        if header.kind != ACTION || header.is_protected {
            return None;
        }
        let body = frame.get(24..)?;
        let word = |at: usize| Some(u16::from_le_bytes(*body.get(at..)?.first_chunk()?));
        let (status, parameters) = match body.get(..2)? {
            [3, 0] => (None, word(3)?),
            [3, 1] => (Some(word(3)?), word(5)?),
            _ => return None,
        };
        Some(Self {
            status,
            tid: (parameters >> 2 & 15) as u8,
            buffer: parameters >> 6,
            is_immediate: parameters & 2 != 0,
            takes_amsdu: parameters & 1 != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(control: u16, rest: &[u8]) -> Vec<u8> {
        let mut frame = control.to_le_bytes().to_vec();
        frame.extend([0, 0]);
        frame.extend([2, 0, 0, 0, 2, 0, 2, 0, 0, 0, 1, 0, 9, 9, 9, 9, 9, 9, 0, 0]);
        frame.extend(rest);
        frame
    }

    #[test]
    fn qos_data_has_its_tid_behind_three_addresses_or_four() {
        let three = Header::read(&frame(0x4288, &[6, 0])).unwrap();
        assert_eq!((three.kind, three.class()), (Kind::Data(Some(6)), AccessCategory::Vo));
        assert!(three.is_protected && three.has_msdu && !three.is_to_group());
        assert_eq!((three.to, three.from), ([2, 0, 0, 0, 2, 0], [2, 0, 0, 0, 1, 0]));
        let four = Header::read(&frame(0x0388, &[0, 0, 0, 0, 0, 0, 5, 0])).unwrap();
        assert_eq!(four.kind, Kind::Data(Some(5)));
        // A QoS Null frame carries nothing.
        assert!(!Header::read(&frame(0x01c8, &[7, 0])).unwrap().has_msdu);
        assert_eq!(Header::read(&frame(0x0088, &[])), None);
    }

    #[test]
    fn classes_follow_user_priorities() {
        use AccessCategory::{Be, Bk, Vi, Vo};
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(class_of_tid), [Be, Bk, Bk, Be, Vi, Vi, Vo, Vo]);
    }

    #[test]
    fn addba_is_read_with_tid_and_buffer() {
        // Immediate, TID 5, 64 MPDUs, A-MSDUs.
        let parameters = 1 | 2 | 5 << 2 | 64 << 6;
        let [low, high] = u16::to_le_bytes(parameters);
        let request = frame(0x00d0, &[3, 0, 1, low, high, 0, 0, 0x10, 0]);
        let header = Header::read(&request).unwrap();
        let addba = Addba { status: None, tid: 5, buffer: 64, is_immediate: true, takes_amsdu: true };
        assert_eq!(Addba::read(&request, &header), Some(addba));
        let response = frame(0x00d0, &[3, 1, 1, 37, 0, low, high, 0, 0]);
        assert_eq!(Addba::read(&response, &header), Some(Addba { status: Some(37), ..addba }));
        assert_eq!(Addba::read(&frame(0x00d0, &[4, 0, 1, low, high]), &header), None);
        assert_eq!(Addba::read(&frame(0x00d0, &[3, 0, 1]), &header), None);
    }

    proptest! {
        #[test]
        fn hostile_frames_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Some(header) = Header::read(&bytes) {
                let _ = Addba::read(&bytes, &header);
            }
        }
    }
}

//! Frames as bytes; see the module above.

use crate::tuning::quantity::PacketSize;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes before the body: length and kind.
pub const HEADER: usize = 5;
/// Bytes of a packet's offset.
const OFFSET: usize = 8;
/// Longest body of a control frame.
const LONGEST_CONTROL: usize = 64 << 10;
/// Longest frame, header included.
pub const LONGEST: usize = HEADER + OFFSET + PacketSize::MOST_BYTES;

const CONTROL: u8 = 0;
const PACKET: u8 = 1;

/// Bytes that are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A length that no frame has.
    #[error("a frame of {0} bytes")]
    Length(u32),
    /// A kind that no frame has.
    #[error("a frame of the unknown kind {0}")]
    Kind(u8),
    /// The body of a control frame is not understood.
    #[error("a control frame that is not understood")]
    Control,
}

/// The first frame of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Decoded<'a, T> {
    /// At least so many bytes are needed in all.
    Needs(usize),
    /// A control frame, and how many bytes it took.
    Control(T, usize),
    /// A packet.
    Packet {
        /// Where its bytes belong in the message.
        offset: u64,
        /// 1 to 1 MiB of them.
        bytes: &'a [u8],
        /// How many bytes the frame took.
        took: usize,
    },
}

/// Looks at the first frame of `input`. Control frames are of type `T`.
///
/// # Errors
/// [`FrameError`]: the connection cannot be used any more.
pub fn decode<T: DeserializeOwned>(input: &[u8]) -> Result<Decoded<'_, T>, FrameError> {
    let Some((head, rest)) = input.split_first_chunk::<HEADER>() else { return Ok(Decoded::Needs(HEADER)) };
    let [a, b, c, d, kind] = *head;
    let length = u32::from_be_bytes([a, b, c, d]);
    let size = (length as usize).checked_sub(1).ok_or(FrameError::Length(length))?;
    let bounds = match kind {
        CONTROL => 1..=LONGEST_CONTROL,
        PACKET => OFFSET + 1..=OFFSET + PacketSize::MOST_BYTES,
        _ => return Err(FrameError::Kind(kind)),
    };
    if !bounds.contains(&size) {
        return Err(FrameError::Length(length));
    }
    let took = HEADER + size;
    let Some(body) = rest.get(..size) else { return Ok(Decoded::Needs(took)) };
    if kind == CONTROL {
        return match postcard::take_from_bytes(body) {
            Ok((frame, [])) => Ok(Decoded::Control(frame, took)),
            _ => Err(FrameError::Control),
        };
    }
    let (offset, bytes) = body.split_first_chunk::<OFFSET>().ok_or(FrameError::Length(length))?;
    Ok(Decoded::Packet { offset: u64::from_be_bytes(*offset), bytes, took })
}

/// A control frame as bytes.
///
/// # Panics
/// Never for the types of this module: they are all finite and encodable.
#[must_use]
pub fn control<T: Serialize>(frame: &T) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    bytes[HEADER - 1] = CONTROL;
    let mut bytes = postcard::to_extend(frame, bytes).expect("a frame can be encoded");
    let length = (bytes.len() - HEADER + 1) as u32;
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// What goes before the bytes of a packet; there are 1 to 1 MiB of them.
#[must_use]
pub fn packet_header(offset: u64, bytes: usize) -> [u8; HEADER + OFFSET] {
    debug_assert!((1..=PacketSize::MOST_BYTES).contains(&bytes));
    let mut header = [0; HEADER + OFFSET];
    header[..4].copy_from_slice(&((1 + OFFSET + bytes) as u32).to_be_bytes());
    header[HEADER - 1] = PACKET;
    header[HEADER..].copy_from_slice(&offset.to_be_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{MessageId, Refusal, Reply, Request, Secret, VERSION};

    fn hello() -> Request {
        Request::Hello { version: VERSION, account: "anna".into(), secret: Secret("s".into()) }
    }

    #[test]
    fn a_frame_reads_back_whole_and_asks_for_more_when_cut() {
        let bytes = control(&hello());
        assert_eq!(decode(&bytes), Ok(Decoded::Control(hello(), bytes.len())));
        for cut in 0..bytes.len() {
            let needs = if cut < HEADER { HEADER } else { bytes.len() };
            assert_eq!(decode::<Request>(&bytes[..cut]), Ok(Decoded::Needs(needs)), "cut at {cut}");
        }
        let packet = [&packet_header(7, 3)[..], b"abc"].concat();
        assert_eq!(decode::<Reply>(&packet), Ok(Decoded::Packet { offset: 7, bytes: b"abc", took: packet.len() }));
    }

    #[test]
    fn a_length_beyond_what_a_frame_has_is_refused_before_it_is_waited_for() {
        let most = PacketSize::MOST_BYTES;
        let with = |length: usize, kind: u8| [&(length as u32).to_be_bytes()[..], &[kind]].concat();
        assert_eq!(decode::<Request>(&with(1 + OFFSET + most, PACKET)), Ok(Decoded::Needs(LONGEST)));
        for (length, kind) in [(2 + OFFSET + most, PACKET), (2 + LONGEST_CONTROL, CONTROL), (0, CONTROL), (9, PACKET)] {
            assert_eq!(decode::<Request>(&with(length, kind)), Err(FrameError::Length(length as u32)));
        }
        assert_eq!(decode::<Request>(&with(9, 2)), Err(FrameError::Kind(2)));
    }

    #[test]
    fn a_control_frame_with_something_behind_it_is_refused() {
        let mut bytes = control(&Reply::Refused(Refusal::NoSuchMessage));
        bytes.push(0);
        bytes[3] += 1;
        assert_eq!(decode::<Reply>(&bytes), Err(FrameError::Control));
        assert_eq!(decode::<Reply>(&control(&Reply::Kept { message: MessageId(1) })[..6]), Ok(Decoded::Needs(7)));
    }

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Request::Hello { version: 1, account: "anna".into(), secret: Secret("geheim".into()) };
        assert!(!format!("{secret:?}").contains("geheim"));
    }
}

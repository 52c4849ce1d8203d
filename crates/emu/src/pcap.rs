//! A capture of every interface, for Wireshark: pcapng with one interface block per TAP.
//!
//! Source: draft-ietf-opsawg-pcapng (section header, interface description, enhanced packet blocks). Times are the
//! model's, in nanoseconds, moved to wall clock by one constant. A frame that crosses the access point shows up on
//! every interface it passes, marked outbound where a host sent it and inbound where it arrived.
//!
//! The engine never waits for the disk (see `spool`): a frame for which there is no room is left out and counted.

use crate::error::Error;
use crate::spool::{self, Spool, Writer};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Bytes handed to the writer at a time.
const BUFFER: usize = 1 << 20;
/// Buffers in circulation: about a third of a second at 1 Gbit/s.
const BUFFERS: usize = 48;
/// `LINKTYPE_ETHERNET`.
const ETHERNET: u16 = 1;
/// Fixed bytes of an enhanced packet block with the flags option.
const PACKET_OVERHEAD: usize = 44;

/// In which direction a frame crossed an interface, seen from its host. Values of `epb_flags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// The host received it.
    Inbound = 1,
    /// The host sent it.
    Outbound = 2,
}

/// The engine's end of a capture.
#[derive(Debug)]
pub struct Capture {
    spool: Spool<u8>,
    missed: u64,
}

/// Opens `path` and starts the writer. `interfaces` in the order of their numbers.
///
/// # Errors
/// [`Error::Capture`] when the file cannot be made.
pub fn start(path: &Path, interfaces: &[String]) -> Result<(Capture, Writer), Error> {
    let refuse = |source| Error::Capture { path: path.to_owned(), source };
    let mut file = File::create(path).map_err(refuse)?;
    file.write_all(&header(interfaces)).map_err(refuse)?;
    let write = |file: &mut File, bytes: &[u8]| file.write_all(bytes);
    let (spool, writer) = spool::start("capture", (BUFFERS, BUFFER), file, write, |_| Ok(())).map_err(refuse)?;
    Ok((Capture { spool, missed: 0 }, writer))
}

impl Capture {
    /// Records one frame. `wall_ns` is Unix time.
    pub fn record(&mut self, interface: u16, wall_ns: u64, crossing: Crossing, frame: &[u8]) {
        match self.spool.room_for(frame.len() + PACKET_OVERHEAD + 4) {
            Some(buffer) => packet(buffer, interface, wall_ns, crossing, frame),
            None => self.missed += 1,
        }
    }

    /// Frames left out so far.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Writes out what is left and waits for it. Returns how many frames were left out.
    ///
    /// # Errors
    /// The failed write.
    pub fn finish(self, writer: Writer) -> io::Result<u64> {
        self.spool.finish(writer).map(|()| self.missed)
    }
}

fn header(interfaces: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    block(&mut out, 0x0a0d_0d0a, |body| {
        body.extend(0x1a2b_3c4d_u32.to_le_bytes());
        body.extend(1_u16.to_le_bytes());
        body.extend(0_u16.to_le_bytes());
        body.extend(u64::MAX.to_le_bytes());
        option(body, 4, b"lasthop emulate");
        option(body, 0, b"");
    });
    for name in interfaces {
        block(&mut out, 1, |body| {
            body.extend(ETHERNET.to_le_bytes());
            body.extend([0; 6]);
            option(body, 2, name.as_bytes());
            // Resolution: 10^-9 s.
            option(body, 9, &[9]);
            option(body, 0, b"");
        });
    }
    out
}

fn packet(out: &mut Vec<u8>, interface: u16, wall_ns: u64, crossing: Crossing, frame: &[u8]) {
    block(out, 6, |body| {
        body.extend(u32::from(interface).to_le_bytes());
        body.extend(((wall_ns >> 32) as u32).to_le_bytes());
        body.extend((wall_ns as u32).to_le_bytes());
        body.extend((frame.len() as u32).to_le_bytes());
        body.extend((frame.len() as u32).to_le_bytes());
        body.extend_from_slice(frame);
        pad(body, frame.len());
        option(body, 2, &(crossing as u32).to_le_bytes());
        option(body, 0, b"");
    });
}

/// Type, length, body, length again.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    body(out);
    let len = ((out.len() - start + 4) as u32).to_le_bytes();
    out.extend(len);
    out[start + 4..start + 8].copy_from_slice(&len);
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend_from_slice(value);
    pad(out, value.len());
}

fn pad(out: &mut Vec<u8>, len: usize) {
    out.extend(std::iter::repeat_n(0, len.next_multiple_of(4) - len));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    /// Block types and bodies, checking that both lengths of every block agree.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, &[u8])> {
        let mut list = Vec::new();
        while !bytes.is_empty() {
            let len = word(bytes, 4) as usize;
            assert_eq!((len % 4, word(bytes, len - 4) as usize), (0, len));
            list.push((word(bytes, 0), &bytes[8..len - 4]));
            bytes = &bytes[len..];
        }
        list
    }

    #[test]
    fn a_capture_reads_back_with_its_interfaces_times_and_frames() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (mut capture, writer) = start(file.path(), &["AP wan0".into(), "N1 eth0".into()]).unwrap();
        let time = 1_700_000_000_123_456_789;
        capture.record(1, time, Crossing::Outbound, &[7; 61]);
        assert_eq!(capture.finish(writer).unwrap(), 0);

        let bytes = std::fs::read(file.path()).unwrap();
        let blocks = blocks(&bytes);
        assert_eq!(blocks.iter().map(|b| b.0).collect::<Vec<_>>(), [0x0a0d_0d0a, 1, 1, 6]);
        let packet = blocks[3].1;
        assert_eq!(word(packet, 0), 1);
        assert_eq!(u64::from(word(packet, 4)) << 32 | u64::from(word(packet, 8)), time);
        assert_eq!((word(packet, 12), word(packet, 16)), (61, 61));
        assert_eq!(packet[20..81], [7; 61]);
        assert_eq!(word(packet, 88), 2, "outbound");
    }

    #[test]
    fn more_frames_than_a_buffer_holds_are_all_written() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (mut capture, writer) = start(file.path(), &["a".into()]).unwrap();
        for n in 0..3000 {
            capture.record(0, n, Crossing::Inbound, &[0; 1514]);
        }
        let missed = capture.finish(writer).unwrap();
        let packets = blocks(&std::fs::read(file.path()).unwrap()).iter().filter(|b| b.0 == 6).count() as u64;
        assert_eq!(packets + missed, 3000);
    }

    #[test]
    fn a_file_that_cannot_be_made_is_named() {
        let error = start(Path::new("/nonexistent/x.pcapng"), &[]).unwrap_err();
        assert_eq!(error.to_string(), "cannot write /nonexistent/x.pcapng");
    }
}

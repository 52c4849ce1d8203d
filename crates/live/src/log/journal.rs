//! systemd's journal by its native protocol: one datagram of fields for each entry.
//!
//! Source: <https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>; `JOURNAL_STREAM` in systemd.exec(5).

use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

use super::{Entry, Value};

const SOCKET: &str = "/run/systemd/journal/socket";

/// The journal.
pub(super) struct Journald {
    socket: UnixDatagram,
    to: SocketAddr,
}

/// Whether stderr is a stream to the journal, as systemd says by device and inode.
pub(super) fn is_stderr() -> bool {
    let stream = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let Ok(stderr) = rustix::fs::fstat(std::io::stderr()) else { return false };
    let numbers = stream.split_once(':').and_then(|(device, inode)| Some((device.parse().ok()?, inode.parse().ok()?)));
    numbers == Some((stderr.st_dev, stderr.st_ino))
}

impl Journald {
    pub(super) fn new() -> io::Result<Self> {
        Self::at(Path::new(SOCKET))
    }

    fn at(path: &Path) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        // A journal that stands still must not stop control: what it does not take is lost.
        socket.set_nonblocking(true)?;
        Ok(Self { socket, to: SocketAddr::from_pathname(path)? })
    }

    /// False where there is no journal.
    pub(super) fn say(&self, entry: &Entry<'_>) -> bool {
        match self.socket.send_to_addr(&datagram(entry), &self.to) {
            Ok(_) => true,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}

fn datagram(entry: &Entry<'_>) -> Vec<u8> {
    let mut fields = Vec::new();
    let mut field = |name: &str, value: &str| {
        fields.extend_from_slice(name.as_bytes());
        if value.contains('\n') {
            fields.push(b'\n');
            fields.extend_from_slice(&(value.len() as u64).to_le_bytes());
        } else {
            fields.push(b'=');
        }
        fields.extend_from_slice(value.as_bytes());
        fields.push(b'\n');
    };
    field("PRIORITY", &(entry.level as u8).to_string());
    field("SYSLOG_IDENTIFIER", "lasthop");
    field("MESSAGE", entry.message);
    if let Some(decision) = entry.decision {
        field("LASTHOP_DECISION", decision);
    }
    for (name, value) in entry.values {
        let value = match value {
            Value::Count(count) => count.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Flag(flag) => flag.to_string(),
            Value::Text(text) => text.clone(),
        };
        field(&format!("LASTHOP_{}", name.to_ascii_uppercase()), &value);
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::super::tests::{decision, place};
    use super::*;

    #[test]
    fn a_decision_comes_as_fields_and_a_message_of_two_lines_by_its_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let journal = UnixDatagram::bind(&path).unwrap();
        let journald = Journald::at(&path).unwrap();
        let heard = || {
            let mut room = [0; 4096];
            let n = journal.recv(&mut room).unwrap();
            room[..n].to_vec()
        };
        let values = decision().values();
        let entry = Entry { level: Level::Info, message: "so", decision: Some(decision().name()), values: &values };
        assert!(journald.say(&entry));
        assert_eq!(
            String::from_utf8(heard()).unwrap(),
            "PRIORITY=6\nSYSLOG_IDENTIFIER=lasthop\nMESSAGE=so\nLASTHOP_DECISION=capacity\nLASTHOP_DIRECTION=down\n\
             LASTHOP_BEFORE_BPS=12000000\nLASTHOP_CAPACITY_BPS=19812345\nLASTHOP_QUEUE_MS=5.34\n"
        );
        journald.say(&Entry { values: &place().values(), ..entry });
        assert!(String::from_utf8(heard()).unwrap().contains("\nLASTHOP_PLACE=wan\n"));
        journald.say(&Entry::plain(Level::Warning, "a\nbc"));
        assert_eq!(heard(), b"PRIORITY=4\nSYSLOG_IDENTIFIER=lasthop\nMESSAGE\n\x04\0\0\0\0\0\0\0a\nbc\n");
        drop((journal, folder));
        assert!(!journald.say(&Entry::plain(Level::Info, "nobody")), "then it is text");
    }

    #[test]
    fn a_journal_that_stands_still_stops_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let _journal = UnixDatagram::bind(&path).unwrap();
        let journald = Journald::at(&path).unwrap();
        for _ in 0..2_000 {
            assert!(journald.say(&Entry::plain(Level::Info, "one of many")));
        }
    }
}

//! The log of a running emulation (`lasthop emulate --log`): JSON lines, of which the newest status and the newest words are kept.
//!
//! A line is `{t_s, said}` or `{t_s, status}`. What is no such line is counted and left out; a line is read when its end is there.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;

/// Longest line, bytes: a status with all of its flows has 300 kB.
const LONGEST_LINE: usize = 2 << 20;
/// Of a log that is there already, so much of its end is read, and so much at a time.
const MOST_AT_ONCE: u64 = 4 << 20;
/// Words of the controller that are kept.
const MOST_SAID: usize = 40;
/// Longest of them, characters.
const LONGEST_SAID: usize = 600;

/// What a log has said so far.
#[derive(Debug, Default)]
pub struct Lines {
    /// The beginning of a line whose end is still to come.
    begun: Vec<u8>,
    /// The rest of the line is left out: it is too long, or its beginning was not read.
    skips: bool,
    /// When the newest line was written, seconds into the scenario.
    pub t_s: f64,
    /// The newest status, as it stands there.
    pub status: Option<Box<RawValue>>,
    /// What the controller said last, the newest at the end.
    pub said: VecDeque<(f64, String)>,
    /// Lines that were none of these.
    pub unknown: u64,
}

#[derive(Deserialize)]
struct Line<'a> {
    t_s: f64,
    #[serde(default)]
    said: Option<String>,
    #[serde(borrow, default)]
    status: Option<&'a RawValue>,
}

impl Lines {
    /// More of the log.
    pub fn take(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            if self.skips {
                self.skips = false;
            } else if self.begun.is_empty() {
                self.line(line);
            } else {
                let mut whole = std::mem::take(&mut self.begun);
                whole.extend_from_slice(line);
                self.line(&whole);
            }
            bytes = rest;
        }
        if self.skips {
            return;
        }
        self.begun.extend_from_slice(bytes);
        if self.begun.len() > LONGEST_LINE {
            (self.begun, self.skips) = (Vec::new(), true);
            self.unknown += 1;
        }
    }

    fn line(&mut self, line: &[u8]) {
        let read = std::str::from_utf8(line).ok().and_then(|line| serde_json::from_str::<Line>(line).ok());
        let Some(Line { t_s, said, status }) = read.filter(|line| line.t_s.is_finite()) else {
            self.unknown += 1;
            return;
        };
        self.t_s = t_s;
        if let Some(status) = status.filter(|status| status.get().starts_with('{')) {
            self.status = Some(status.to_owned());
        }
        if let Some(said) = said {
            self.said.push_back((t_s, said.chars().take(LONGEST_SAID).collect()));
            while self.said.len() > MOST_SAID {
                self.said.pop_front();
            }
        }
    }
}

/// A log that is followed while it grows.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    open: Option<(File, u64)>,
    at: u64,
    /// What it said.
    pub lines: Lines,
}

impl Log {
    /// The log that is at `path`, or will be.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), open: None, at: 0, lines: Lines::default() }
    }

    /// Reads what has come; whether anything has.
    ///
    /// # Errors
    /// Of the system calls.
    pub fn read(&mut self) -> io::Result<bool> {
        let about = std::fs::metadata(&self.path)?;
        if !about.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
        }
        let is_another = self.open.as_ref().is_none_or(|(_, inode)| *inode != about.ino());
        if is_another || about.len() < self.at {
            let file = File::open(&self.path)?;
            self.lines = Lines::default();
            self.at = 0;
            self.open = Some((file, about.ino()));
        }
        if about.len() - self.at > MOST_AT_ONCE {
            // Nobody has watched for a while. What stands before the first end of a line is a part of one.
            self.at = about.len() - MOST_AT_ONCE;
            (self.lines.begun, self.lines.skips) = (Vec::new(), true);
        }
        let Some((file, _)) = &mut self.open else { return Ok(false) };
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(self.at))?;
        let read = file.take(MOST_AT_ONCE).read_to_end(&mut bytes)?;
        self.at += read as u64;
        self.lines.take(&bytes);
        Ok(read > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn lines_are_read_when_their_ends_are_there_and_the_newest_status_counts() {
        let mut lines = Lines::default();
        lines.take(b"{\"t_s\":0,\"said\":\"hello\"}\n{\"t_s\":0.1,\"status\":{\"pid\":1}}\n{\"t_s\":0.2,\"sta");
        assert_eq!(lines.status.as_ref().unwrap().get(), "{\"pid\":1}");
        lines.take(b"tus\":{\"pid\":2}}\nnonsense\n");
        assert_eq!((lines.status.unwrap().get(), lines.t_s, lines.unknown), ("{\"pid\":2}", 0.2, 1));
        assert_eq!(lines.said, [(0.0, "hello".to_owned())]);
    }

    #[test]
    fn a_line_without_end_is_left_out_and_what_comes_after_it_is_not() {
        let mut lines = Lines::default();
        for _ in 0..5 {
            lines.take(&vec![b'x'; LONGEST_LINE / 2]);
            assert!(lines.begun.len() <= LONGEST_LINE);
        }
        lines.take(b"\n{\"t_s\":1,\"status\":{}}\n");
        assert_eq!((lines.status.unwrap().get(), lines.unknown), ("{}", 1));
    }

    #[test]
    fn a_log_that_is_written_anew_is_read_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let mut log = Log::new(&path);
        assert_eq!(log.read().unwrap_err().kind(), io::ErrorKind::NotFound);
        let mut file = File::create(&path).unwrap();
        file.write_all(b"{\"t_s\":7,\"status\":{\"pid\":1}}\n").unwrap();
        assert!(log.read().unwrap() && !log.read().unwrap());
        std::fs::write(&path, "{\"t_s\":0,\"status\":{}}\n").unwrap();
        assert!(log.read().unwrap());
        assert_eq!((log.lines.status.unwrap().get(), log.lines.t_s), ("{}", 0.0));
    }
}

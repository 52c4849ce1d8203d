//! What a controller says while a scenario runs, as JSON lines: its own log, and what it answers when asked.
//!
//! `{t_s, said}` is a line of its standard error; `{t_s, status}` its status, asked ten times a second. Times count from the
//! start of the scenario; what was said before it has 0.

use crate::clock;
use lasthop_core::units::{Span, Time};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

/// How often the controller is asked.
pub const EVERY: Span = Span::from_millis(100);

/// A log being written.
#[derive(Debug)]
pub struct Log {
    file: Mutex<BufWriter<File>>,
    zero: OnceLock<Time>,
}

#[derive(Serialize)]
struct Line<'a> {
    t_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    said: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a serde_json::Value>,
}

impl Log {
    /// Opens `path`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: Mutex::new(BufWriter::new(File::create(path)?)), zero: OnceLock::new() })
    }

    /// The scenario starts at `zero` (CLOCK_MONOTONIC).
    pub fn start(&self, zero: Time) {
        let _ = self.zero.set(zero);
    }

    /// The controller said `words`.
    pub fn say(&self, words: &str) {
        self.write(&Line { t_s: self.elapsed(), said: Some(words), status: None });
    }

    /// It answered `status`.
    pub fn answer(&self, status: &serde_json::Value) {
        self.write(&Line { t_s: self.elapsed(), said: None, status: Some(status) });
        // Who follows the log sees it now, and not when the buffer is full.
        let _ = self.file.lock().unwrap_or_else(PoisonError::into_inner).flush();
    }

    /// Writes out what is left.
    ///
    /// # Errors
    /// The failed write.
    pub fn finish(&self) -> io::Result<()> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }

    fn elapsed(&self) -> f64 {
        self.zero.get().map_or(0.0, |zero| clock::now().since(*zero).as_secs_f64())
    }

    fn write(&self, line: &Line<'_>) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk shows when the file is finished.
        if serde_json::to_writer(&mut *file, line).is_ok() {
            let _ = file.write_all(b"\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_said_is_a_line_with_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = Log::create(&path).unwrap();
        log.say("before \"it\" begins");
        log.start(Time::ZERO);
        log.answer(&serde_json::json!({"a": 1}));
        log.finish().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0], serde_json::json!({"t_s": 0.0, "said": "before \"it\" begins"}));
        assert!(lines[1]["status"]["a"] == 1 && lines[1]["t_s"].as_f64().unwrap() > 0.0, "{lines:?}");
    }
}

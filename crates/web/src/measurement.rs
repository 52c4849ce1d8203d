//! Before and after: what `lasthop measure --json` has written, as far as the page shows it.
//!
//! The file is read as it is: what of it is not understood is left out, so that an older or a newer one is shown as well.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use lasthop_files::Terms;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest file, bytes: as `measure` reads its own.
const LONGEST: u64 = 32 << 20;
/// Longest text of it that is shown, characters.
const LONGEST_TEXT: usize = 1_000;

/// What the page shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Shown {
    /// The answer, where the file has it in words.
    pub sentence: Option<String>,
    /// The answer in one word: `shorter`, `no-difference`, ...
    pub verdict: Option<String>,
    /// Grade without control, A+ to F.
    pub grade_off: Option<String>,
    /// The same with it.
    pub grade_on: Option<String>,
    /// Pairs of blocks that count.
    pub counted: Option<u64>,
    /// Pairs that were planned.
    pub planned: Option<u64>,
    /// When it began, s since 1970.
    pub started_unix_s: Option<u64>,
    /// Figures with control and without.
    pub rows: Vec<Row>,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// `waiting`, ms; `throughput`, bit/s; `rpm`, round trips per minute.
    pub what: &'static str,
    /// Without control.
    pub off: f64,
    /// With it.
    pub on: f64,
    /// `on` in parts of `off`, and its interval.
    pub ratio: Option<[f64; 3]>,
}

/// Of the file; all other parts of it are passed over without being kept.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Written {
    sentence: Value,
    verdict: Value,
    grade: Value,
    started_unix_s: Value,
    findings: Value,
}

/// What of `text` is shown.
///
/// # Errors
/// It is not JSON.
pub fn shown(text: &[u8]) -> serde_json::Result<Shown> {
    let written: Written = serde_json::from_slice(text)?;
    let found = &written.findings;
    let text = |value: &Value| value.as_str().map(|text| text.chars().take(LONGEST_TEXT).collect());
    let grade = |which| text(&found["grades"][which]).or_else(|| text(&written.grade[which]));
    let row = |what| {
        let of = &found[what];
        let ratio = ["ratio", "low", "high"].map(|name| of[name].as_f64());
        let ratio = ratio.iter().all(Option::is_some).then(|| ratio.map(Option::unwrap_or_default));
        Some(Row { what, off: of["off"].as_f64()?, on: of["on"].as_f64()?, ratio })
    };
    Ok(Shown {
        sentence: text(&written.sentence).or_else(|| text(&found["sentence"])),
        verdict: text(&written.verdict).or_else(|| text(&found["verdict"])),
        grade_off: grade("off"),
        grade_on: grade("on"),
        counted: found["counted"].as_u64(),
        planned: found["planned"].as_u64(),
        started_unix_s: written.started_unix_s.as_u64(),
        rows: ["waiting", "throughput", "rpm"].into_iter().filter_map(row).collect(),
    })
}

/// The file, and what it held when it was last read.
#[derive(Debug)]
pub struct Measurement {
    path: PathBuf,
    last: Mutex<(Option<SystemTime>, Shown)>,
}

/// Why it cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum MeasurementError {
    /// The file.
    #[error("cannot read the measurement {}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What it holds.
    #[error("{} is not what `lasthop measure --json` writes", path.display())]
    NotJson {
        /// Which.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
}

impl Measurement {
    /// The file at `path`.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn read(path: &Path) -> Result<Self, MeasurementError> {
        let last = Mutex::new((changed(path), load(path)?));
        Ok(Self { path: path.to_owned(), last })
    }

    /// What it holds now, or held before somebody broke it.
    #[must_use]
    pub fn shown(&self) -> Shown {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = changed(&self.path);
        if changed.is_some() && changed != last.0 {
            last.0 = changed;
            last.1 = load(&self.path).unwrap_or_else(|_| last.1.clone());
        }
        last.1.clone()
    }
}

fn changed(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|about| about.modified()).ok()
}

fn load(path: &Path) -> Result<Shown, MeasurementError> {
    let terms = Terms { most_bytes: LONGEST, ..Terms::CONFIGURATION };
    let unreadable = |source| MeasurementError::Unreadable { path: path.to_owned(), source };
    let text = lasthop_files::read(path, terms).map_err(unreadable)?;
    shown(&text).map_err(|source| MeasurementError::NotJson { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_left_out() {
        let text = br#"{ "format": 1, "blocks": [{"arm": "on"}], "findings": { "verdict": "shorter", "counted": 11, "planned": 12,
            "waiting": { "on": 4.0, "off": 40.0, "ratio": 0.1, "low": 0.08, "high": 0.13 }, "throughput": { "on": 1e7 },
            "rpm": null, "grades": { "on": "A+", "off": "B" } } }"#;
        let shown = shown(text).unwrap();
        assert_eq!(shown.verdict.as_deref(), Some("shorter"));
        assert_eq!((shown.grade_off.as_deref(), shown.grade_on.as_deref()), (Some("B"), Some("A+")));
        assert_eq!(shown.rows, [Row { what: "waiting", off: 40.0, on: 4.0, ratio: Some([0.1, 0.08, 0.13]) }]);
        assert_eq!(super::shown(b"{\"findings\": 7, \"grade\": []}").unwrap(), Shown::default());
        assert!(super::shown(b"nonsense").is_err());
    }

    #[test]
    fn a_newer_file_is_shown_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("evening.json");
        let put = |text: &str, s: u64| {
            std::fs::write(&path, text).unwrap();
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(s);
            std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        };
        put("{\"verdict\":\"longer\"}", 1);
        let measurement = Measurement::read(&path).unwrap();
        put("{\"verdict\":\"shorter\"}", 2);
        assert_eq!(measurement.shown().verdict.as_deref(), Some("shorter"));
        put("{", 3);
        assert_eq!(measurement.shown().verdict.as_deref(), Some("shorter"));
        assert!(Measurement::read(&path).unwrap_err().to_string().contains("lasthop measure --json"));
    }
}

//! Limits of air time that mac80211 keeps in debugfs (AQL): how much may wait in the hardware.
//!
//! ```text
//! /sys/kernel/debug/ieee80211/phy0/aql_txq_limit      read: a table of four classes; written: "CLASS LOW HIGH", us
//! /sys/kernel/debug/ieee80211/phy0/aql_threshold      a number, us
//! /sys/kernel/debug/ieee80211/phy0/aql_enable         1, or 0 where they are switched off, for all radios (Linux 5.12)
//! ```
//!
//! Source: `net/mac80211/debugfs.c` of Linux 5.5 to 6.18. `aql_txq_limit` has the mode 0400, so that whoever writes there needs
//! CAP_DAC_OVERRIDE. There is no such folder in kernels without CONFIG_MAC80211_DEBUGFS (Debian's), and with one that is locked down writing is
//! refused.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where debugfs has its radios.
pub const FOLDER: &str = "/sys/kernel/debug/ieee80211";
/// Classes in the order of nl80211: voice, video, best effort, background.
pub const CLASSES: [&str; 4] = ["VO", "VI", "BE", "BK"];
/// Longest file that is read: a table of four rows.
const LONGEST: usize = 400;

/// Limits of one class, us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Of one station, where all together have more than the threshold.
    pub low_us: u32,
    /// Of one station else.
    pub high_us: u32,
}

/// The files of one radio.
#[derive(Clone, Debug)]
pub struct Files {
    folder: PathBuf,
}

impl Files {
    /// Of the radio of this name below `folder`.
    ///
    /// # Errors
    /// When that is no name of a radio.
    pub fn of(folder: &Path, phy: &str) -> io::Result<Self> {
        let is_name = !phy.is_empty() && phy.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        if !is_name {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Self { folder: folder.join(phy) })
    }

    /// The limits of the four classes.
    ///
    /// # Errors
    /// When the file cannot be read, or is not what it was.
    pub fn limits(&self) -> io::Result<[Limit; 4]> {
        limits(&self.read("aql_txq_limit")?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Limits one class, 0 to 3.
    ///
    /// # Errors
    /// `EACCES` without CAP_DAC_OVERRIDE, `EPERM` where the kernel is locked down.
    pub fn set_limit(&self, class: u8, limit: Limit) -> io::Result<()> {
        self.write("aql_txq_limit", &format!("{class} {} {}", limit.low_us, limit.high_us))
    }

    /// The threshold of all stations together, us.
    ///
    /// # Errors
    /// As for the limits.
    pub fn threshold(&self) -> io::Result<u32> {
        threshold(&self.read("aql_threshold")?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Sets it.
    ///
    /// # Errors
    /// As for the limits.
    pub fn set_threshold(&self, us: u32) -> io::Result<()> {
        self.write("aql_threshold", &us.to_string())
    }

    /// Whether they are in force.
    ///
    /// # Errors
    /// As for the limits; and where the kernel has no such switch.
    pub fn is_enabled(&self) -> io::Result<bool> {
        enabled(&self.read("aql_enable")?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn read(&self, file: &str) -> io::Result<String> {
        fs::read_to_string(self.folder.join(file))
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        // Neither made nor cut: it is no file like others.
        let mut file = fs::File::options().write(true).open(self.folder.join(file))?;
        io::Write::write_all(&mut file, text.as_bytes())
    }
}

/// Reads the table of `aql_txq_limit`.
#[must_use]
pub fn limits(text: &str) -> Option<[Limit; 4]> {
    if text.len() > LONGEST {
        return None;
    }
    let mut found = [None; 4];
    for line in text.lines().skip(1) {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        let class = CLASSES.iter().position(|class| *class == name)?;
        let limit = Limit { low_us: words.next()?.parse().ok()?, high_us: words.next()?.parse().ok()? };
        if words.next().is_some() || found[class].replace(limit).is_some() {
            return None;
        }
    }
    let [vo, vi, be, bk] = found;
    Some([vo?, vi?, be?, bk?])
}

/// Reads `aql_threshold`.
#[must_use]
pub fn threshold(text: &str) -> Option<u32> {
    text.trim_end_matches('\n').parse().ok()
}

/// Reads `aql_enable`.
#[must_use]
pub fn enabled(text: &str) -> Option<bool> {
    match text.trim_end_matches('\n') {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the format string of `aql_txq_limit_read`, with the limits that the kernel begins with.
    const TABLE: &str = "AC\tAQL limit low\tAQL limit high\nVO\t5000\t\t12000\nVI\t5000\t\t12000\nBE\t5000\t\t12000\nBK\t5000\t\t12000\n";

    #[test]
    fn the_table_of_limits_is_read_whole_or_not_at_all() {
        let usual = Limit { low_us: 5_000, high_us: 12_000 };
        assert_eq!(limits(TABLE), Some([usual; 4]));
        let odd = TABLE.replace("BE\t5000\t\t12000", "BE\t1500\t\t0");
        assert_eq!(limits(&odd).unwrap()[2], Limit { low_us: 1_500, high_us: 0 });
        for broken in ["", "AC\n", &TABLE.replace("BK", "BE"), &TABLE.replace("12000", "-1"), &TABLE[..60]] {
            assert_eq!(limits(broken), None, "{broken:?}");
        }
        assert_eq!((threshold("24000\n"), threshold(""), threshold("24 ms\n")), (Some(24_000), None, None));
        assert_eq!(["1\n", "0\n", "", "2\n"].map(enabled), [Some(true), Some(false), None, None]);
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_none() {
        for name in ["", "..", "phy0/../..", "phy 0", "/etc"] {
            assert!(Files::of(Path::new(FOLDER), name).is_err(), "{name}");
        }
        assert!(Files::of(Path::new(FOLDER), "phy0").is_ok());
    }

    #[test]
    fn files_are_written_and_never_made() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::of(folder.path(), "phy0").unwrap();
        fs::create_dir(folder.path().join("phy0")).unwrap();
        assert!(files.set_threshold(1).is_err() && !folder.path().join("phy0/aql_threshold").exists());
        fs::write(folder.path().join("phy0/aql_threshold"), "24000\n").unwrap();
        assert_eq!(files.threshold().unwrap(), 24_000);
        fs::write(folder.path().join("phy0/aql_txq_limit"), "").unwrap();
        files.set_limit(2, Limit { low_us: 2_500, high_us: 6_000 }).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("phy0/aql_txq_limit")).unwrap(), "2 2500 6000");
    }
}

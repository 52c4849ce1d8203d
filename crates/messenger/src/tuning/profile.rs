//! The profile of a device: a file beside the account file, and keys of it given on the command line.
//!
//! ```toml
//! [fetch.sender]       # the server, when the device fetches
//! packet = "64KiB"
//! pacing = "400kB/s"
//! [fetch.receiver]     # the device
//! packet = "8KiB"
//! buffer = "256KiB"
//! ```
//!
//! Every key may be left out: [`End::default`](super::End). Tables: `send.sender`, `send.receiver`, `fetch.sender`,
//! `fetch.receiver`; keys: those of [`End`].

use super::{End, Profile};
use crate::durable;
use lasthop_files::Terms;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A profile that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// It cannot be read or written.
    #[error("profile {}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What failed.
        #[source]
        source: io::Error,
    },
    /// It is not understood.
    #[error("profile {}: {why}", path.display())]
    Syntax {
        /// Where.
        path: PathBuf,
        /// Line, key and what would be right.
        why: String,
    },
}

/// A `KEY=VALUE` that does not change a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--set {text}: {why}")]
pub struct SetError {
    text: String,
    why: String,
}

impl Profile {
    /// Where the profile of the device with this account file is: `anna.profile.toml` beside `anna.toml`.
    #[must_use]
    pub fn path(account_file: &Path) -> PathBuf {
        let mut name = match account_file.extension() {
            Some(extension) if extension == "toml" => account_file.file_stem().unwrap_or_default().to_owned(),
            _ => account_file.file_name().unwrap_or_default().to_owned(),
        };
        name.push(".profile.toml");
        account_file.with_file_name(name)
    }

    /// Reads a profile; `None` when there is no such file.
    ///
    /// # Errors
    /// [`ProfileError`].
    pub fn load(path: &Path) -> Result<Option<Self>, ProfileError> {
        let failed = |source| ProfileError::Io { path: path.to_owned(), source };
        let wrong = |why| ProfileError::Syntax { path: path.to_owned(), why };
        match lasthop_files::read_text(path, Terms::FOR_ITS_USER) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(wrong(error.to_string())),
            read => read.map_err(failed)?.parse().map(Some).map_err(wrong),
        }
    }

    /// Writes the profile, whole or not at all, under `remark`, lines that say where its figures are from.
    ///
    /// # Errors
    /// [`ProfileError`].
    pub fn save(&self, path: &Path, remark: &str) -> Result<(), ProfileError> {
        let mut text: String = remark.lines().map(|line| format!("# {line}").trim_end().to_owned() + "\n").collect();
        text += &self.to_string();
        durable::replace(path, text.as_bytes(), 0o644)
            .map_err(|source| ProfileError::Io { path: path.to_owned(), source })
    }

    /// Changes one key: `fetch.receiver.delay=10ms`; `none` takes `buffer` and `pacing` away.
    ///
    /// # Errors
    /// [`SetError`]: no such key (it says the nearest that there is), or no such value.
    pub fn set(&mut self, text: &str) -> Result<(), SetError> {
        let wrong = |why: String| SetError { text: text.to_owned(), why };
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| wrong("there is no `=`; write KEY=VALUE, as fetch.receiver.delay=10ms".to_owned()))?;
        let (key, value) = (key.trim(), value.trim());
        let unknown = || format!("unknown key; {}", nearest(key));
        let [direction, side, quantity] = key.split('.').collect::<Vec<_>>()[..] else { return Err(wrong(unknown())) };
        let tuning = match direction {
            "send" => &mut self.send,
            "fetch" => &mut self.fetch,
            _ => return Err(wrong(unknown())),
        };
        let end = match side {
            "sender" => &mut tuning.sender,
            "receiver" if quantity == "pacing" => {
                return Err(wrong(format!("only a sender is paced; write {direction}.sender.pacing")));
            }
            "receiver" => &mut tuning.receiver,
            _ => return Err(wrong(unknown())),
        };
        end.set(quantity, value).unwrap_or_else(|| Err(unknown())).map_err(wrong)
    }
}

impl End {
    /// `None`: no such key.
    fn set(&mut self, key: &str, value: &str) -> Option<Result<(), String>> {
        Some(match key {
            "packet" => put(&mut self.packet, value),
            "delay" => put(&mut self.delay, value),
            "buffer" => put_or_none(&mut self.buffer, value),
            "pacing" => put_or_none(&mut self.pacing, value),
            _ => return None,
        })
    }
}

fn put<T: FromStr<Err: ToString>>(slot: &mut T, value: &str) -> Result<(), String> {
    *slot = value.parse().map_err(|error: T::Err| error.to_string())?;
    Ok(())
}

fn put_or_none<T: FromStr<Err: ToString>>(slot: &mut Option<T>, value: &str) -> Result<(), String> {
    *slot = match value {
        "none" => None,
        value => Some(value.parse().map_err(|error: T::Err| format!("{}, or `none`", error.to_string()))?),
    };
    Ok(())
}

/// All keys of a profile.
const KEYS: [&str; 14] = [
    "send.sender.packet",
    "send.sender.delay",
    "send.sender.buffer",
    "send.sender.pacing",
    "send.receiver.packet",
    "send.receiver.delay",
    "send.receiver.buffer",
    "fetch.sender.packet",
    "fetch.sender.delay",
    "fetch.sender.buffer",
    "fetch.sender.pacing",
    "fetch.receiver.packet",
    "fetch.receiver.delay",
    "fetch.receiver.buffer",
];

fn nearest(key: &str) -> String {
    let best = KEYS.iter().map(|k| (strsim::jaro_winkler(key, k), k)).max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((likeness, known)) if likeness >= 0.65 => format!("did you mean `{known}`?"),
        _ => format!("known are {}", KEYS.join(", ")),
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())
    }
}

impl std::fmt::Display for Profile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&toml::to_string(self).map_err(|_| std::fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_without_an_end_is_not_read() {
        let error = Profile::load(Path::new("/dev/zero")).unwrap_err();
        assert!(error.to_string().contains("a character device"), "{error}");
    }

    #[test]
    fn it_is_found_beside_the_account_file_and_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = Profile::path(&folder.path().join("anna.toml"));
        assert_eq!(path, folder.path().join("anna.profile.toml"));
        assert_eq!(Profile::path(Path::new("anna")), Path::new("anna.profile.toml"));
        assert_eq!(Profile::load(&path).unwrap(), None);
        let mut profile = Profile::default();
        for set in ["fetch.receiver.delay=10ms", "send.sender.buffer = 16KiB", "fetch.sender.pacing=400kB/s"] {
            profile.set(set).unwrap();
        }
        profile.save(&path, "measured here\n\nand there").unwrap();
        assert_eq!(Profile::load(&path).unwrap(), Some(profile));
        assert!(fs::read_to_string(&path).unwrap().starts_with("# measured here\n#\n# and there\n[send"));
    }

    #[test]
    fn every_key_can_be_set_and_the_later_set_wins() {
        let mut profile = Profile::default();
        for key in KEYS {
            let (first, second) = match key.rsplit('.').next() {
                Some("delay") => ("1ms", "2ms"),
                Some("pacing") => ("1kB/s", "2kB/s"),
                _ => ("1KiB", "2KiB"),
            };
            profile.set(&format!("{key}={first}")).unwrap();
            let before = profile;
            profile.set(&format!("{key}={second}")).unwrap();
            assert_ne!(profile, before, "{key}");
        }
        profile.set("fetch.receiver.buffer=none").unwrap();
        assert_eq!(profile.fetch.receiver.buffer, None);
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_be_right() {
        for (text, says) in [
            ("fetch.reciever.delay=1ms", "did you mean `fetch.receiver.delay`?"),
            ("fetch.receiver.dely=1ms", "did you mean `fetch.receiver.delay`?"),
            ("fetch.receiver=1ms", "did you mean `fetch.receiver."),
            ("x=1", "known are send.sender.packet"),
            ("fetch.receiver.delay", "there is no `=`"),
            ("fetch.receiver.delay=10", "write it like 10ms"),
            ("fetch.receiver.buffer=8", "or `none`"),
            ("fetch.receiver.pacing=8kB/s", "write fetch.sender.pacing"),
        ] {
            let mut profile = Profile::default();
            let error = profile.set(text).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains(text), "{error}");
            assert_eq!(profile, Profile::default());
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.toml");
        fs::write(&path, "[fetch.receiver]\ndelai = \"1ms\"\n").unwrap();
        let error = Profile::load(&path).unwrap_err().to_string();
        assert!(error.contains("delai") && error.contains("line 2") && error.contains("p.toml"), "{error}");
    }
}

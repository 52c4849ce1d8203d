//! The account file: what a client needs to reach its mailbox, in one file that is handed over once.
//!
//! ```toml
//! server = "192.168.1.1:4774"
//! pin = "0d4c.."            # SHA-256 of the server's certificate
//! account = "anna"
//! secret = "k3V.."          # to be read by its owner alone
//! ```

use crate::durable;
use crate::protocol::Secret;
use crate::tls::Pin;
use lasthop_files::Terms;
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// See above.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// Host and port of the server.
    pub server: String,
    /// What the server is known by.
    #[serde(with = "text")]
    pub pin: Pin,
    /// Name of the account.
    pub account: String,
    /// Its secret.
    pub secret: Secret,
}

/// An account file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// It is not there, or cannot be read or written.
    #[error("no account file that can be used: `lasthop message serve --add NAME` makes one, at the server")]
    Io(#[source] io::Error),
    /// It is not what an account file must be: says why, and what to do.
    #[error("{0}")]
    Refused(io::Error),
    /// It is not understood.
    #[error("{0}")]
    Syntax(String),
}

impl Account {
    /// Reads an account file, which nobody but its owner may be able to read, or a pipe from where secrets are kept.
    ///
    /// # Errors
    /// [`AccountError`]; with line and key where it is not understood.
    pub fn load(path: &Path) -> Result<Self, AccountError> {
        let text = lasthop_files::read_text(path, Terms::SECRET).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => AccountError::Refused(error),
            _ => AccountError::Io(error),
        })?;
        text.parse()
    }

    /// Writes a new account file that only its owner can read; one that is there stays, and is an error.
    ///
    /// # Errors
    /// [`AccountError::Io`].
    pub fn save_new(&self, path: &Path) -> Result<(), AccountError> {
        let text = toml::to_string(self).map_err(|error| AccountError::Syntax(error.to_string()))?;
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(AccountError::Io)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        if written.is_err() {
            let _ = fs::remove_file(path);
        }
        written.and_then(|()| durable::sync_folder(path)).map_err(AccountError::Io)
    }
}

impl std::str::FromStr for Account {
    type Err = AccountError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Not the error's own text, which shows the line: it may be that of the secret.
        let at = |error: &toml::de::Error| error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = |error: &toml::de::Error| 1 + at(error).matches('\n').count();
        toml::from_str(text).map_err(|error: toml::de::Error| {
            AccountError::Syntax(format!("line {}: {}", line(&error), error.message()))
        })
    }
}

/// A type as its text.
mod text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::fmt::Display;
    use std::str::FromStr;

    pub fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn anna() -> Account {
        let pin = "ab".repeat(32).parse().unwrap();
        Account { server: "192.168.1.1:4774".into(), pin, account: "anna".into(), secret: Secret("k3".into()) }
    }

    #[test]
    fn it_reads_back_and_only_its_owner_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anna.toml");
        anna().save_new(&path).unwrap();
        assert_eq!(Account::load(&path).unwrap(), anna());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(anna().save_new(&path).is_err(), "it stays as it is");
    }

    #[test]
    fn a_file_without_an_end_is_not_read() {
        assert!(matches!(Account::load(Path::new("/dev/zero")), Err(AccountError::Refused(_))));
    }

    #[test]
    fn a_file_that_others_can_read_is_refused_with_what_to_type() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("anna.toml");
        anna().save_new(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let said = Account::load(&path).unwrap_err().to_string();
        assert!(said.contains("mode 0644") && said.contains("chmod 600") && !said.contains("k3"), "{said}");
    }

    #[test]
    fn what_is_wrong_is_said_with_line_and_key_and_without_the_secret() {
        let text = toml::to_string(&anna()).unwrap();
        for (from, to, says) in
            [("pin = \"ab", "pin = \"", "64 hex"), ("account", "acount", "acount"), ("server", "#", "server")]
        {
            let error = text.replacen(from, to, 1).parse::<Account>().unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains("k3"), "{error}");
        }
        let error = text.replacen("\"k3\"", "\"k3", 1).parse::<Account>().unwrap_err().to_string();
        assert!(error.contains("line 4") && !error.contains("k3"), "{error}");
    }
}

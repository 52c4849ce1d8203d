//! Tokens: what they allow, and how one is known without telling by the time that takes how much of it was right.

use std::path::{Path, PathBuf};

use lasthop_files::Terms;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{digest, hmac};

/// What somebody may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// Fetch the page itself, which says nothing, and log in.
    #[default]
    Nothing,
    /// See what the controller says.
    Read,
    /// And pause and resume.
    Control,
}

/// Least and most characters of a token.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=256;

/// Why a file holds no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It cannot be read, or others can read it.
    #[error("cannot use the token file {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not one word of such a length.
    #[error(
        "{} must hold one word of 16 to 256 letters, digits and signs; make one: (umask 077; head -c 24 /dev/urandom | base64 >{})",
        .0.display(), .0.display()
    )]
    NoToken(PathBuf),
}

/// A token that is known again when it comes.
pub struct Secret {
    key: hmac::Key,
    tag: hmac::Tag,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    /// Out of a file that others cannot read.
    ///
    /// # Errors
    /// Says what to do.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let unreadable = |source| TokenError::Unreadable { path: path.to_owned(), source };
        let text = lasthop_files::read_text(path, Terms::SECRET_OF_A_DAEMON).map_err(unreadable)?;
        let token = text.trim();
        if !LENGTHS.contains(&token.len()) || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::NoToken(path.to_owned()));
        }
        Ok(Self::new(token))
    }

    fn new(token: &str) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &random());
        let tag = hmac::sign(&key, token.as_bytes());
        Self { key, tag }
    }

    /// ring compares tags in constant time, and a tag tells nothing of the token that it was made of.
    fn is(&self, given: &str) -> bool {
        hmac::verify(&self.key, given.as_bytes(), self.tag.as_ref()).is_ok()
    }
}

/// The tokens that are known.
#[derive(Debug, Default)]
pub struct Tokens {
    /// Allows to read.
    pub read: Option<Secret>,
    /// Allows to read, and to pause and resume.
    pub control: Option<Secret>,
}

impl Tokens {
    /// Whether there is any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.read.is_none() && self.control.is_none()
    }

    /// What `given` allows.
    #[must_use]
    pub fn right_of(&self, given: &str) -> Right {
        let is = |secret: &Option<Secret>| secret.as_ref().is_some_and(|secret| secret.is(given));
        // Both are looked at in any case.
        match (given.len() <= *LENGTHS.end(), is(&self.control), is(&self.read)) {
            (true, true, _) => Right::Control,
            (true, _, true) => Right::Read,
            _ => Right::Nothing,
        }
    }
}

/// As many random bytes as a session or a key has.
///
/// # Panics
/// Where the kernel has none, which ends a server that could keep nothing secret.
#[must_use]
pub fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).expect("the kernel's random numbers");
    bytes
}

/// SHA-256.
#[must_use]
pub fn hash(text: &[u8]) -> [u8; 32] {
    digest::digest(&digest::SHA256, text).as_ref().try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn each_token_allows_what_it_is_for_and_no_other_word_anything() {
        let tokens =
            Tokens { read: Some(Secret::new("0123456789abcdef")), control: Some(Secret::new("fedcba9876543210")) };
        assert_eq!(tokens.right_of("0123456789abcdef"), Right::Read);
        assert_eq!(tokens.right_of("fedcba9876543210"), Right::Control);
        for wrong in ["", "0123456789abcde", "0123456789abcdef ", "0123456789ABCDEF"] {
            assert_eq!(tokens.right_of(wrong), Right::Nothing);
        }
        assert_eq!(Tokens::default().right_of(""), Right::Nothing);
        assert!(!format!("{tokens:?}").contains("0123"));
    }

    #[test]
    fn a_token_file_holds_one_word_and_is_not_everybodys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let read = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            Secret::read(&path).map(|_| ()).map_err(|error| lasthop_command::exit::chain(&error))
        };
        assert_eq!(read("0123456789abcdef\n", 0o600), Ok(()));
        assert_eq!(read("0123456789abcdef\n", 0o400), Ok(()));
        assert!(read("0123456789abcdef\n", 0o644).unwrap_err().contains("chmod 600"));
        for short in ["", "0123456789abcde", "0123456789 abcdef", &"x".repeat(257)] {
            assert!(read(short, 0o600).unwrap_err().contains("base64"), "{short}");
        }
    }
}

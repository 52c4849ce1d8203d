//! The key of a run: SHA-256 of all that decides its report.
//!
//! `key = SHA-256(recipe || seed)`, `recipe = SHA-256("lasthop run 1" || revision || text || sets || traces)`, where every part is
//! preceded by its length, 8 bytes little-endian, as are lists by their number; the seed is 8 bytes little-endian. Traces are their
//! name as the scenario writes it and the SHA-256 of their contents, in the order of the names. Source: FIPS 180-4 for SHA-256.
//!
//! A program that was built from changed files has a revision that ends in `-dirty`, whatever was changed: reports of two such programs
//! have one key. Who changes the program commits before a sweep that is to be kept.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// See the module. Written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub [u8; 32]);

impl Key {
    /// The SHA-256 of `bytes`.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The SHA-256 of what `reader` reads to its end.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn of_reader(mut reader: impl Read) -> io::Result<Self> {
        let mut hash = Sha256::new();
        let mut block = vec![0; 1 << 16];
        loop {
            match reader.read(&mut block)? {
                0 => return Ok(Self(hash.finalize().into())),
                bytes => hash.update(&block[..bytes]),
            }
        }
    }

    /// The SHA-256 of all `keys` in a row.
    #[must_use]
    pub fn of_keys(keys: impl Iterator<Item = Self>) -> Self {
        let mut hash = Sha256::new();
        keys.for_each(|key| hash.update(key.0));
        Self(hash.finalize().into())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Key {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(());
        }
        for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| ())?;
        }
        Ok(Self(bytes))
    }
}

/// All of a run but its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipe([u8; 32]);

impl Recipe {
    /// Of a scenario's `text`, changed by `sets` in their order, with the `traces` (name as written, contents) that it names, run by
    /// the program of `revision`.
    pub fn new<'a>(
        revision: &str,
        text: &str,
        sets: &[String],
        traces: impl ExactSizeIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(b"lasthop run 1");
        part(revision.as_bytes());
        part(text.as_bytes());
        part(&(sets.len() as u64).to_le_bytes());
        sets.iter().for_each(|set| part(set.as_bytes()));
        part(&(traces.len() as u64).to_le_bytes());
        for (name, contents) in traces {
            part(name.as_bytes());
            part(&Sha256::digest(contents.as_bytes()));
        }
        Self(hash.finalize().into())
    }

    /// The key of the run with this seed.
    #[must_use]
    pub fn key(&self, seed: u64) -> Key {
        Key(Sha256::new().chain_update(self.0).chain_update(seed.to_le_bytes()).finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_changes_a_report_changes_the_key() {
        let sets = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let of = |revision: &str, text: &str, set: &[&str], traces: &[(&str, &str)], seed| {
            Recipe::new(revision, text, &sets(set), traces.iter().copied()).key(seed)
        };
        let one = of("r", "t", &["a=1"], &[("x", "1"), ("y", "2")], 7);
        assert_eq!(one, of("r", "t", &["a=1"], &[("x", "1"), ("y", "2")], 7));
        let others = [
            of("s", "t", &["a=1"], &[("x", "1"), ("y", "2")], 7),
            of("r", "u", &["a=1"], &[("x", "1"), ("y", "2")], 7),
            of("r", "t", &["a=2"], &[("x", "1"), ("y", "2")], 7),
            of("r", "t", &["a=", "1"], &[("x", "1"), ("y", "2")], 7),
            of("r", "t", &["a=1"], &[("x", "2"), ("y", "1")], 7),
            of("r", "t", &["a=1"], &[("x", "1")], 7),
            of("r", "t", &["a=1"], &[("x", "1"), ("y", "2")], 8),
            of("rt", "", &["a=1"], &[("x", "1"), ("y", "2")], 7),
        ];
        assert!(others.iter().all(|other| *other != one));
    }

    #[test]
    fn a_key_reads_back_and_is_the_sha_256_of_fips_180() {
        let abc = Key::of_bytes(b"abc");
        assert_eq!(abc.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Key::of_reader(&b"abc"[..]).unwrap(), abc);
        assert_eq!(abc.to_string().parse(), Ok(abc));
        for wrong in ["", "ba", &"g".repeat(64), &"+a".repeat(32), &"A".repeat(64)] {
            assert_eq!(wrong.parse::<Key>(), Err(()));
        }
    }
}

//! Differentiated services code points: the class in which marked packets go over the air.
//!
//! | class | code points |
//! |---|---|
//! | VO | CS7, CS6, EF, VOICE-ADMIT |
//! | VI | CS5, AF4x, CS4, AF3x, CS3 |
//! | BK | CS1, LE |
//! | BE | all others |
//!
//! Source: RFC 8325 section 4.3 and figure 1 (user priorities 7 and 6; 5 and 4; 1; 3 and 0), RFC 8622 section 11 (LE).

use crate::packet::AccessCategory;

/// A code point, 0 to 63.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dscp(u8);

/// Names of code points (RFC 2474, 2597, 3246, 5865, 8622).
const NAMES: [(&str, u8); 24] = [
    ("CS0", 0),
    ("DF", 0),
    ("LE", 1),
    ("CS1", 8),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("CS2", 16),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("CS3", 24),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("CS4", 32),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("CS5", 40),
    ("VOICE-ADMIT", 44),
    ("EF", 46),
    ("CS6", 48),
    ("CS7", 56),
];

impl Dscp {
    /// The code point, if it has six bits.
    #[must_use]
    pub const fn new(value: u8) -> Option<Self> {
        if value < 64 { Some(Self(value)) } else { None }
    }

    /// The code point of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| Self(*value))
    }

    /// Every name.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// A code point of a class, as most applications mark it: EF for voice, AF41 for video, CS1 for background.
    #[must_use]
    pub const fn of(class: AccessCategory) -> Self {
        Self(match class {
            AccessCategory::Vo => 46,
            AccessCategory::Vi => 34,
            AccessCategory::Be => 0,
            AccessCategory::Bk => 8,
        })
    }

    /// As a number.
    #[must_use]
    pub const fn value(self) -> u8 {
        self.0
    }

    /// The class on the air.
    #[must_use]
    pub const fn access_category(self) -> AccessCategory {
        match self.0 {
            44 | 46 | 48 | 56 => AccessCategory::Vo,
            24 | 26 | 28 | 30 | 32 | 34 | 36 | 38 | 40 => AccessCategory::Vi,
            1 | 8 => AccessCategory::Bk,
            _ => AccessCategory::Be,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_figure_1_of_rfc_8325() {
        let class = |name: &str| Dscp::named(name).unwrap().access_category();
        let all = |names: &[&str], expected| assert!(names.iter().all(|name| class(name) == expected), "{names:?}");
        all(&["CS6", "CS7", "EF", "voice-admit"], AccessCategory::Vo);
        all(&["CS5", "AF41", "AF42", "AF43", "CS4", "AF31", "AF32", "AF33", "CS3"], AccessCategory::Vi);
        all(&["AF21", "AF22", "AF23", "CS2", "AF11", "AF12", "AF13", "DF", "CS0"], AccessCategory::Be);
        all(&["CS1", "LE"], AccessCategory::Bk);
        let unnamed = (0..64).filter(|value| !NAMES.iter().any(|(_, known)| known == value));
        assert!(unnamed.map(|value| Dscp(value).access_category()).all(|class| class == AccessCategory::Be));
        assert!(AccessCategory::ALL.iter().all(|class| Dscp::of(*class).access_category() == *class));
        assert_eq!((Dscp::new(63).map(Dscp::value), Dscp::new(64), Dscp::named("EX")), (Some(63), None, None));
    }
}

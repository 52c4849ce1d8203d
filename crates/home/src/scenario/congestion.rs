//! `cc`: who decides how much may be in flight.

use super::ScenarioError;
use super::read::Reader;

/// TCP senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionControl {
    /// RFC 5681 without fast recovery.
    Tahoe,
    /// RFC 5681.
    Reno,
    /// RFC 6582.
    NewReno,
    /// Brakmo and Peterson.
    Vegas,
    /// Westwood, BWE filter.
    Westwood,
    /// Westwood, ABSE (2002).
    WestwoodAbse,
    /// Westwood+.
    WestwoodPlus,
    /// TCP-Real (2002).
    TcpReal,
    /// TCP probing (Tsaoussidis and Badr, 2000).
    TcpProbing,
    /// WTCP (Sinha et al., 2002).
    Wtcp,
    /// GAIMD (0.31, 0.875).
    Aimd,
    /// RFC 5348.
    Tfrc,
    /// Scalable streaming video protocol.
    Ssvp,
    /// RFC 9438.
    Cubic,
    /// draft-ietf-ccwg-bbr.
    Bbr,
    /// Another one of the kernel's.
    Kernel(KernelName),
}

impl CongestionControl {
    /// Words of the file; any other is a name of the kernel's.
    pub const WORDS: [(&'static str, Self); 15] = [
        ("tahoe", Self::Tahoe),
        ("reno", Self::Reno),
        ("newreno", Self::NewReno),
        ("vegas", Self::Vegas),
        ("westwood", Self::Westwood),
        ("westwood-abse", Self::WestwoodAbse),
        ("westwood+", Self::WestwoodPlus),
        ("tcp-real", Self::TcpReal),
        ("tcp-probing", Self::TcpProbing),
        ("wtcp", Self::Wtcp),
        ("aimd", Self::Aimd),
        ("tfrc", Self::Tfrc),
        ("ssvp", Self::Ssvp),
        ("cubic", Self::Cubic),
        ("bbr", Self::Bbr),
    ];

    /// A rate in place of a window, and datagrams that are not sent again in place of a stream of bytes.
    #[must_use]
    pub const fn is_rate_based(self) -> bool {
        matches!(self, Self::Tfrc | Self::Ssvp)
    }

    /// The key `cc` of a flow; CUBIC where it is not written.
    pub(crate) fn read(flow: &Reader<'_>) -> Result<Self, ScenarioError> {
        let Some(word) = flow.text("cc")? else { return Ok(Self::Cubic) };
        let known = Self::WORDS.iter().find(|(name, _)| *name == word).map(|(_, cc)| *cc);
        known.or_else(|| KernelName::new(word).map(Self::Kernel)).ok_or_else(|| {
            let words = Self::WORDS.map(|(word, _)| word).join(", ");
            let most = KernelName::MOST;
            let of_kernel = format!("or what the kernel calls another one: at most {most} letters, digits, - and _");
            flow.wrong("cc", format!("`{word}` is no congestion control; write one of {words}, {of_kernel}"))
        })
    }
}

/// What the kernel calls a congestion control.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KernelName {
    bytes: [u8; Self::MOST],
    len: u8,
}

impl KernelName {
    /// Most bytes: TCP_CA_NAME_MAX less the zero that ends it.
    pub const MOST: usize = 15;

    /// `None`: no such name can be.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        let mut bytes = [0; Self::MOST];
        bytes
            .get_mut(..name.len())
            .filter(|own| !own.is_empty() && name.bytes().all(fits))?
            .copy_from_slice(name.as_bytes());
        Some(Self { bytes, len: name.len() as u8 })
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl std::fmt::Debug for KernelName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_str().fmt(f)
    }
}

impl std::fmt::Display for KernelName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_the_kernel_is_short_and_plain() {
        assert_eq!(KernelName::new("illinois").map(|name| name.to_string()).as_deref(), Some("illinois"));
        assert!(KernelName::new("123456789012345").is_some());
        for wrong in ["", "1234567890123456", "a b", "Reno", "../x", "reno\n", "r\u{e9}no"] {
            assert!(KernelName::new(wrong).is_none(), "{wrong}");
        }
    }
}

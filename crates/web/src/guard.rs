//! Which requests may be for us at all: by their Host header, and for those that change something by their Origin.
//!
//! A page of somebody else can have its own name looked up as this machine's address and then read what is served here as if it
//! were its own (DNS rebinding). Its requests carry its name in Host. An address is never looked up, so an address in Host is
//! safe where it is one of ours. Source: RFC 9110 section 7.2 (Host), RFC 6454 (Origin).

use std::net::IpAddr;

/// Names that the page is reached by, beside addresses and `localhost`.
#[derive(Clone, Debug, Default)]
pub struct Names(Vec<String>);

impl Names {
    /// `names` as they were typed.
    #[must_use]
    pub fn new(names: &[String]) -> Self {
        Self(names.iter().map(|name| name.trim_end_matches('.').to_ascii_lowercase()).collect())
    }

    /// Whether `host` (the header) may name a connection that came in at the address `local`.
    #[must_use]
    pub fn allow(&self, host: &str, local: IpAddr) -> bool {
        let Some(name) = without_port(host) else { return false };
        match name.parse::<IpAddr>() {
            Ok(address) => {
                let address = address.to_canonical();
                address.is_loopback() || address == local.to_canonical()
            }
            Err(_) => {
                let name = name.trim_end_matches('.').to_ascii_lowercase();
                name == "localhost" || self.0.contains(&name)
            }
        }
    }
}

/// `name`, `name:80`, `192.0.2.1:80`, `[2001:db8::1]:80` without the port and the brackets; `None` of anything else.
fn without_port(host: &str) -> Option<&str> {
    let is_port = |port: &str| !port.is_empty() && port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(rest) = host.strip_prefix('[') {
        let (name, port) = rest.split_once(']')?;
        let is_fine = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
        return Some(name).filter(|name| is_fine && name.contains(':'));
    }
    let name = match host.split_once(':') {
        Some((name, port)) => Some(name).filter(|_| is_port(port))?,
        None => host,
    };
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    Some(name).filter(|name| !name.is_empty() && name.bytes().all(is_letter))
}

/// How the page is reached, as far as an Origin tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// By HTTP.
    Http,
    /// By HTTPS.
    Https,
    /// By whatever the proxy in front speaks.
    Either,
}

/// Whether `origin` (the header) is a page that was served under `host`.
#[must_use]
pub fn is_own_page(origin: &str, host: &str, scheme: Scheme) -> bool {
    let of = |prefix| origin.strip_prefix(prefix).is_some_and(|name: &str| name.eq_ignore_ascii_case(host));
    match scheme {
        Scheme::Http => of("http://"),
        Scheme::Https => of("https://"),
        Scheme::Either => of("http://") || of("https://"),
    }
}

/// The value of a cookie in a Cookie header. Source: RFC 6265 section 4.2.1.
#[must_use]
pub fn cookie<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let pairs = header.split(';').filter_map(|pair| pair.trim().split_once('='));
    pairs.into_iter().find(|(found, _)| *found == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_loopback_the_address_that_was_asked_or_a_name_that_was_given() {
        let names = Names::new(&["Router.lan.".to_owned()]);
        let local: IpAddr = "192.0.2.1".parse().unwrap();
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:8080",
            "127.8.8.8",
            "[::1]:8080",
            "[::1]",
            "192.0.2.1",
            "[::ffff:192.0.2.1]:1",
            "router.LAN",
            "router.lan.:443",
        ] {
            assert!(names.allow(host, local), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "192.0.2.2",
            "localhost:80:80",
            "localhost:x",
            "localhost:",
            "::1",
            "[localhost]",
            "[::1",
            "router.lan/",
            "user@router.lan",
            "router.lan, evil.example",
        ] {
            assert!(!names.allow(host, local), "{host}");
        }
    }

    #[test]
    fn an_origin_is_the_very_place_that_was_asked() {
        assert!(is_own_page("http://localhost:8080", "localhost:8080", Scheme::Http));
        assert!(is_own_page("https://Router.lan", "router.lan", Scheme::Either));
        for (origin, scheme) in [
            ("null", Scheme::Either),
            ("http://localhost:81", Scheme::Http),
            ("http://localhost:8080.evil.example", Scheme::Http),
            ("https://localhost:8080", Scheme::Http),
            ("http://localhost:8080", Scheme::Https),
        ] {
            assert!(!is_own_page(origin, "localhost:8080", scheme), "{origin}");
        }
    }

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        assert_eq!(cookie("a=1; lasthop=abc; b=2", "lasthop"), Some("abc"));
        assert_eq!(cookie("xlasthop=abc;lasthop=d=e", "lasthop"), Some("d=e"));
        assert_eq!(cookie("lasthop", "lasthop"), None);
        assert_eq!(cookie("", "lasthop"), None);
    }
}

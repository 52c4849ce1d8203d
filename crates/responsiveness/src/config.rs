//! What a server says about itself: where its objects are, as JSON.
//!
//! ```json
//! {"version": 1, "urls": {"large_download_url": "https://..", "small_download_url": "https://..", "upload_url": "https://.."}}
//! ```
//!
//! Source: draft-ietf-ippm-responsiveness-09, "Well-Known URI For Test Server Discovery". Unknown names are ignored, known ones must stand
//! there once. Read beside them are the names of older servers (`large_https_download_url`, `small_https_download_url`,
//! `https_upload_url`), where the draft's own are absent. Stricter than the draft: URLs of https only, all of one host and port.

use hyper::Uri;
use hyper::http::uri::{Authority, PathAndQuery};
use serde::Deserialize;

/// The longest configuration that is read, in bytes.
pub const LONGEST: usize = 16 * 1024;

/// Where a server's objects are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Host and port of all three.
    pub authority: Authority,
    /// The object of one byte.
    pub small: PathAndQuery,
    /// The object that does not end.
    pub large: PathAndQuery,
    /// What takes data and keeps none.
    pub upload: PathAndQuery,
    /// The host to connect to in place of the one in the URLs, which keeps its name in TLS and HTTP.
    pub test_endpoint: Option<String>,
}

/// A configuration that cannot be used, and why.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// More bytes than one may have.
    #[error("the server's configuration has more than {LONGEST} bytes")]
    TooLong,
    /// Not JSON of the draft's form; a name that stands there twice is this, too.
    #[error("the server's configuration is not as draft-ietf-ippm-responsiveness has it")]
    Json(#[source] serde_json::Error),
    /// Of another version.
    #[error("the server's configuration has version {0}; version 1 is understood")]
    Version(u64),
    /// A URL is not there.
    #[error("the server's configuration has no {0}")]
    Missing(&'static str),
    /// A URL is none, or none of https.
    #[error("{name} of the server's configuration is {url:?}; it has to be a URL of https")]
    Url {
        /// Which.
        name: &'static str,
        /// What stands there, shortened.
        url: String,
    },
    /// Not all of one host.
    #[error("{name} of the server's configuration is at {found}, another URL at {other}; all have to be at one host")]
    Hosts {
        /// Which.
        name: &'static str,
        /// Its host and port.
        found: String,
        /// Those of the others.
        other: String,
    },
    /// The host to connect to is no host's name or address.
    #[error("test_endpoint of the server's configuration is no host: {0:?}")]
    Endpoint(String),
}

#[derive(Deserialize)]
struct Said {
    version: u64,
    urls: Urls,
    test_endpoint: Option<String>,
}

#[derive(Deserialize)]
struct Urls {
    small_download_url: Option<String>,
    large_download_url: Option<String>,
    upload_url: Option<String>,
    small_https_download_url: Option<String>,
    large_https_download_url: Option<String>,
    https_upload_url: Option<String>,
}

impl Configuration {
    /// Reads what a server said.
    ///
    /// # Errors
    /// Where it is not what the draft has, or leads to more than one host, or out of TLS.
    pub fn parse(said: &[u8]) -> Result<Self, ConfigError> {
        if said.len() > LONGEST {
            return Err(ConfigError::TooLong);
        }
        let said: Said = serde_json::from_slice(said).map_err(ConfigError::Json)?;
        if said.version != 1 {
            return Err(ConfigError::Version(said.version));
        }
        let urls = said.urls;
        let (authority, large) = url("large_download_url", urls.large_download_url.or(urls.large_https_download_url))?;
        let (small_at, small) = url("small_download_url", urls.small_download_url.or(urls.small_https_download_url))?;
        let (upload_at, upload) = url("upload_url", urls.upload_url.or(urls.https_upload_url))?;
        for (name, found) in [("small_download_url", small_at), ("upload_url", upload_at)] {
            if !is_same_place(&found, &authority) {
                let (found, other) = (shortened(found.as_str()), shortened(authority.as_str()));
                return Err(ConfigError::Hosts { name, found, other });
            }
        }
        let test_endpoint = said.test_endpoint.map(endpoint).transpose()?;
        Ok(Self { authority, small, large, upload, test_endpoint })
    }

    /// What our server says of itself, to who called it `authority`; with the names of older servers, too, where clients of their time ask.
    #[must_use]
    pub fn said_by_server(authority: &Authority, to_older_clients: bool) -> String {
        let at = |path: &str| format!("https://{authority}{path}");
        let (small, large, upload) = (at(SMALL), at(LARGE), at(UPLOAD));
        let mut urls = serde_json::json!({
            "large_download_url": large,
            "small_download_url": small,
            "upload_url": upload,
        });
        if to_older_clients {
            urls["large_https_download_url"] = large.into();
            urls["small_https_download_url"] = small.into();
            urls["https_upload_url"] = upload.into();
        }
        serde_json::json!({ "version": 1, "urls": urls }).to_string()
    }
}

/// Where our server has the object of one byte.
pub const SMALL: &str = "/small";
/// Where it has the object that does not end.
pub const LARGE: &str = "/large";
/// Where it takes uploads.
pub const UPLOAD: &str = "/slurp";

fn url(name: &'static str, said: Option<String>) -> Result<(Authority, PathAndQuery), ConfigError> {
    let said = said.ok_or(ConfigError::Missing(name))?;
    let wrong = || ConfigError::Url { name, url: shortened(&said) };
    let parts = said.parse::<Uri>().map_err(|_| wrong())?.into_parts();
    match (parts.scheme, parts.authority, parts.path_and_query) {
        (Some(scheme), Some(authority), path) if scheme.as_str() == "https" && is_plain(&authority) => {
            Ok((authority, path.unwrap_or_else(|| PathAndQuery::from_static("/"))))
        }
        _ => Err(wrong()),
    }
}

/// A host, with a port or without, and no user's name.
fn is_plain(authority: &Authority) -> bool {
    !authority.host().is_empty() && !authority.as_str().contains('@') && (authority.port_u16() != Some(0))
}

/// Host and port are the same; https without a port is 443.
pub(crate) fn is_same_place(one: &Authority, other: &Authority) -> bool {
    let port = |authority: &Authority| authority.port_u16().unwrap_or(443);
    one.host().eq_ignore_ascii_case(other.host()) && port(one) == port(other)
}

fn endpoint(said: String) -> Result<String, ConfigError> {
    match said.parse::<Authority>() {
        Ok(authority) if authority.host() == said && !said.is_empty() => Ok(said),
        _ => Err(ConfigError::Endpoint(shortened(&said))),
    }
}

/// For messages: what a stranger wrote, but not much of it.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(urls: &str) -> Result<Configuration, ConfigError> {
        Configuration::parse(format!(r#"{{"version": 1, "urls": {{{urls}}}}}"#).as_bytes())
    }

    const LARGE_AND_SMALL: &str =
        r#""large_download_url": "https://a.example:4043/l?x=1", "small_download_url": "https://a.example:4043/s""#;

    #[test]
    fn the_example_of_the_draft_is_read() {
        let said = br#"{ "version": 1, "urls": {
            "large_download_url":"https://www.example.com/large",
            "small_download_url":"https://www.example.com/small",
            "upload_url":        "https://www.example.com/upload" },
            "test_endpoint": "nq-test-server.example.com" }"#;
        let read = Configuration::parse(said).expect("the draft's own");
        assert_eq!((read.authority.as_str(), read.large.as_str()), ("www.example.com", "/large"));
        assert_eq!((read.small.as_str(), read.upload.as_str()), ("/small", "/upload"));
        assert_eq!(read.test_endpoint.as_deref(), Some("nq-test-server.example.com"));
    }

    #[test]
    fn names_of_older_servers_are_read_and_unknown_ones_ignored() {
        let read = with(
            r#""large_https_download_url": "https://a/l", "small_https_download_url": "https://a/s",
               "https_upload_url": "https://a:443/u", "more": [1, {}]"#,
        );
        assert_eq!(read.expect("older names").upload.as_str(), "/u");
    }

    #[test]
    fn what_our_server_says_is_understood_by_our_client() {
        for host in ["192.0.2.1:4043", "[2001:db8::1]:4043", "home.example"] {
            let authority: Authority = host.parse().expect("a host");
            for older in [false, true] {
                let said = Configuration::said_by_server(&authority, older);
                let read = Configuration::parse(said.as_bytes()).expect("our own");
                assert_eq!((&read.authority, read.large.as_str(), read.upload.as_str()), (&authority, LARGE, UPLOAD));
                assert_eq!(said.contains("https_upload_url"), older);
            }
        }
    }

    #[test]
    fn what_lies_is_refused_with_its_reason() {
        let upload =
            |url: &str| with(&format!(r#"{LARGE_AND_SMALL}, "upload_url": {url}"#)).expect_err(url).to_string();
        for (url, reason) in [
            (r#""http://a.example:4043/u""#, "a URL of https"),
            (r#""https://b.example:4043/u""#, "at one host"),
            (r#""https://a.example/u""#, "at one host"),
            (r#""https://user@a.example:4043/u""#, "a URL of https"),
            (r#""/u""#, "a URL of https"),
            ("7", "not as draft"),
            ("null", "has no upload_url"),
            (r#""https://a.example:4043/u", "upload_url": "https://a.example:4043/u""#, "not as draft"),
        ] {
            assert!(upload(url).contains(reason), "{url}: {}", upload(url));
        }
        let message = |said: &[u8]| Configuration::parse(said).expect_err("refused").to_string();
        assert!(message(br#"{"version": 2, "urls": {}}"#).contains("version 2"));
        assert!(message(br#"{"version": 1}"#).contains("not as draft"));
        assert!(message(&vec![b' '; LONGEST + 1]).contains("more than"));
        let long = "x".repeat(9000);
        assert!(upload(&format!("\"{long}\"")).len() < 300, "what a stranger wrote is shortened");
    }

    #[test]
    fn an_endpoint_is_a_host_and_nothing_more() {
        let said = |endpoint: &str| {
            let urls = format!(r#"{LARGE_AND_SMALL}, "upload_url": "https://a.example:4043/u""#);
            Configuration::parse(
                format!(r#"{{"version": 1, "urls": {{{urls}}}, "test_endpoint": "{endpoint}"}}"#).as_bytes(),
            )
        };
        assert!(said("edge.example").is_ok());
        for wrong in ["", "edge.example:80", "user@edge.example", "edge example", "https://edge.example"] {
            assert!(said(wrong).is_err(), "{wrong}");
        }
    }
}

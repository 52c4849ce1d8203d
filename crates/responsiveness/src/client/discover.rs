//! From a URL to a server whose objects and address are known.

use hyper::Uri;
use hyper::http::uri::{Authority, PathAndQuery};
use rustls::pki_types::ServerName;
use tokio::net::lookup_host;

use super::connect::{Connected, Route};
use super::error::Error;
use super::{Target, exchange};
use crate::config::{self, ConfigError, Configuration, is_same_place, shortened};

/// Where the draft has a server's configuration.
const WELL_KNOWN: &str = "/.well-known/nq";

/// A server that can be used.
#[derive(Clone, Debug)]
pub struct Server {
    pub route: Route,
    pub objects: Configuration,
    /// What the TCP handshake took before there was a load, ms.
    pub idle_ms: f64,
}

/// Fetches the configuration and finds the address.
pub async fn discover(target: &Target) -> Result<Server, Error> {
    let (authority, path) = parts(&target.url)?;
    let tls = target.trust.client_config()?;
    let wrong = || Error::Url(shortened(&target.url.to_string()));
    let host = plain(authority.host());
    let name = ServerName::try_from(host.to_owned()).map_err(|_| wrong())?;
    let port = authority.port_u16().unwrap_or(443);
    let mut last = wrong();
    for address in lookup(host, port).await? {
        let route = Route { address, name: name.clone(), authority: authority.clone(), tls: tls.clone() };
        match route.connect().await {
            Ok(connected) => return configured(target, route, connected, &path).await,
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn configured(
    target: &Target,
    route: Route,
    mut connected: Connected,
    path: &PathAndQuery,
) -> Result<Server, Error> {
    let what = "the configuration";
    let said = exchange::get(&route, &mut connected.requests, path, config::LONGEST, what).await?;
    let objects = Configuration::parse(&said.ok_or(ConfigError::TooLong)?)?;
    if !is_same_place(&objects.authority, &route.authority) {
        let found = shortened(objects.authority.as_str());
        return Err(Error::Elsewhere { asked: route.authority.to_string(), found });
    }
    let idle_ms = connected.tcp.as_secs_f64() * 1e3;
    let Some(endpoint) = &objects.test_endpoint else { return Ok(Server { route, objects, idle_ms }) };
    if !target.trust.asks_for_proof() {
        return Err(Error::UnprovenEndpoint);
    }
    // Its certificate has to be that of the URLs' host: nobody is loaded who does not take part.
    let mut last = Error::UnprovenEndpoint;
    for address in lookup(plain(endpoint), route.address.port()).await? {
        let route = Route { address, ..route.clone() };
        match route.connect().await {
            Ok(connected) => return Ok(Server { route, idle_ms: connected.tcp.as_secs_f64() * 1e3, objects }),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Host and path of a URL that can be used.
pub fn parts(url: &Uri) -> Result<(Authority, PathAndQuery), Error> {
    let wrong = || Error::Url(shortened(&url.to_string()));
    let (Some("https"), Some(authority)) = (url.scheme_str(), url.authority()) else { return Err(wrong()) };
    if authority.host().is_empty() || authority.as_str().contains('@') {
        return Err(wrong());
    }
    let path = match url.path_and_query() {
        Some(path) if path.as_str() != "/" => path.clone(),
        _ => PathAndQuery::from_static(WELL_KNOWN),
    };
    Ok((authority.clone(), path))
}

/// An address of IPv6 stands in brackets within a URL, and without elsewhere.
fn plain(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

async fn lookup(host: &str, port: u16) -> Result<Vec<std::net::SocketAddr>, Error> {
    let found = lookup_host((host, port)).await.map_err(|error| Error::Lookup(host.to_owned(), error))?;
    Ok(found.take(8).collect())
}

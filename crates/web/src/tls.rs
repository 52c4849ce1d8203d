//! TLS 1.3, by a certificate and a key that somebody else has made.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lasthop_files::Terms;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::{ServerConfig, version};
use tokio_rustls::TlsAcceptor;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It holds something else.
    #[error("{} holds no {what} in PEM", path.display())]
    NotPem {
        /// Which.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
        /// Why.
        source: pem::Error,
    },
    /// They do not belong together, or are of no use.
    #[error("certificate and key cannot be used together")]
    Unusable(#[from] rustls::Error),
}

/// What speaks TLS by these files.
///
/// # Errors
/// Says which of them is wrong.
pub fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let read = |path: &Path, terms| {
        lasthop_files::read(path, terms).map_err(|source| TlsError::Unreadable { path: path.to_owned(), source })
    };
    let not_pem = |path: &Path, what| {
        let path = path.to_owned();
        move |source| TlsError::NotPem { path, what, source }
    };
    let text = read(certificate, Terms::CONFIGURATION)?;
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>().map_err(not_pem(certificate, "certificate"))?;
    let own_key =
        PrivateKeyDer::from_pem_slice(&read(key, Terms::SECRET_OF_A_DAEMON)?).map_err(not_pem(key, "private key"))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, own_key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

//! The server's certificate and key.

use std::sync::Arc;

use rustls::crypto::ring as provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, version};

use super::ServeError;
use crate::trust::Fingerprint;

/// A certificate (its own first) and its key.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// A new one, signed by itself, for these names and addresses. Kept nowhere: the next start makes another.
    ///
    /// # Errors
    /// [`ServeError::Make`].
    pub fn self_signed(names: Vec<String>) -> Result<Self, ServeError> {
        let made = rcgen::generate_simple_self_signed(names).map_err(ServeError::Make)?;
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key that was just made");
        Ok(Self { chain: vec![made.cert.der().clone()], key })
    }

    /// Of these files' contents, PEM.
    ///
    /// # Errors
    /// [`ServeError::Pem`].
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, ServeError> {
        let wrong = |error| ServeError::Pem("the certificate's file", error);
        let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate).collect::<Result<_, _>>().map_err(wrong)?;
        if chain.is_empty() {
            return Err(wrong(rustls::pki_types::pem::Error::NoItemsFound));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| ServeError::Pem("the key's file", error))?;
        Ok(Self { chain, key })
    }

    /// What clients know it by.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.chain[0])
    }

    /// For the server's end: HTTP/2, or HTTP/1.1 for who knows no better.
    pub(super) fn server_config(&self) -> Result<Arc<ServerConfig>, ServeError> {
        let config = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
            .with_protocol_versions(&[&version::TLS13])
            .and_then(|builder| {
                builder.with_no_client_auth().with_single_cert(self.chain.clone(), self.key.clone_key())
            });
        let mut config = config.map_err(ServeError::Unusable)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // A handshake is to cost each client what it costs a new one.
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

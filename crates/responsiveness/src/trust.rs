//! Whose certificates are believed: TLS 1.3 at both ends.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use ring::digest;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring as provider, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme, version};

/// SHA-256 of a certificate (of its DER form), as `openssl x509 -fingerprint -sha256` has it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

/// Text that is no fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint is the SHA-256 of a certificate: 64 hexadecimal digits, with colons between or without")]
pub struct ParseFingerprintError;

/// Whose certificates a client believes.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Those that the machine's authorities signed.
    System,
    /// Those that these authorities signed, as PEM.
    Authorities(Vec<u8>),
    /// One certificate.
    Fingerprint(Fingerprint),
    /// Every certificate. Whoever stands between may be the server.
    Anything,
}

/// Nobody can be believed.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The machine has no authorities.
    #[error(
        "this machine has no certificates of authorities; install ca-certificates, or name the server's fingerprint"
    )]
    NoAuthorities,
    /// The file holds none, or something else.
    #[error("the authorities' file is no PEM with certificates")]
    Pem(#[source] Option<rustls::pki_types::pem::Error>),
    /// One of them is of no use.
    #[error("a certificate of an authority cannot be used")]
    Unusable(#[source] rustls::Error),
}

impl Trust {
    /// For the client's end: HTTP/2 and nothing else, TLS 1.3, no session resumed.
    ///
    /// # Errors
    /// Where there is nobody to believe.
    pub(crate) fn client_config(&self) -> Result<Arc<ClientConfig>, TrustError> {
        let provider = Arc::new(provider::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&version::TLS13])
            .expect("the provider has TLS 1.3");
        let pinned = |pin| Arc::new(Pinned { pin, provider: Arc::clone(&provider) });
        let mut config = match self {
            Self::System => builder.with_root_certificates(of_the_machine()?).with_no_client_auth(),
            Self::Authorities(pem) => builder.with_root_certificates(of_pem(pem)?).with_no_client_auth(),
            Self::Fingerprint(fingerprint) => {
                builder.dangerous().with_custom_certificate_verifier(pinned(Some(*fingerprint))).with_no_client_auth()
            }
            Self::Anything => builder.dangerous().with_custom_certificate_verifier(pinned(None)).with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }

    /// Whether a server has to prove who it is.
    pub(crate) const fn asks_for_proof(&self) -> bool {
        !matches!(self, Self::Anything)
    }
}

fn of_the_machine() -> Result<RootCertStore, TrustError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() { Err(TrustError::NoAuthorities) } else { Ok(roots) }
}

fn of_pem(pem: &[u8]) -> Result<RootCertStore, TrustError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.map_err(|error| TrustError::Pem(Some(error)))?).map_err(TrustError::Unusable)?;
    }
    if roots.is_empty() { Err(TrustError::Pem(None)) } else { Ok(roots) }
}

/// Believes one certificate, or every one; the server has to have its key in either case.
#[derive(Debug)]
struct Pinned {
    pin: Option<Fingerprint>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.pin {
            Some(pin) if pin != Fingerprint::of(certificate) => {
                Err(CertificateError::ApplicationVerificationFailure.into())
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl Fingerprint {
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Self {
        let hash = digest::digest(&digest::SHA256, certificate);
        Self(hash.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = ParseFingerprintError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b':').collect();
        let mut hash = [0; 32];
        if digits.len() != 64 || text.len() > 95 {
            return Err(ParseFingerprintError);
        }
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let value = |digit: u8| char::from(digit).to_digit(16).ok_or(ParseFingerprintError);
            *byte = (value(pair[0])? << 4 | value(pair[1])?) as u8;
        }
        Ok(Self(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_reads_back_as_it_is_written_and_as_openssl_writes_it() {
        let plain = "00ff".repeat(16);
        let fingerprint: Fingerprint = plain.parse().expect("64 digits");
        assert_eq!(fingerprint.to_string(), plain);
        let colons = ["00:FF"; 16].join(":");
        assert_eq!(colons.parse(), Ok(fingerprint));
        for wrong in ["", "00ff", &plain[1..], &"zz".repeat(32), &format!("{plain}00")] {
            assert_eq!(wrong.parse::<Fingerprint>(), Err(ParseFingerprintError), "{wrong}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_refused() {
        for pem in [&b""[..], b"hello", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            assert!(Trust::Authorities(pem.to_vec()).client_config().is_err());
        }
    }
}

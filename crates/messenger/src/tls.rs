//! TLS 1.3 between client and server: a certificate that the server makes for itself at its first start, and that the
//! client knows by its SHA-256, its *pin*. No authority is asked: the pin came with the account.

use ring::digest;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring as provider, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme, version};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// What every certificate is made out to; the pin, not the name, says who it is.
const NAME: &str = "lasthop-messages";

/// SHA-256 of a server's certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pin([u8; 32]);

/// A certificate or key that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// None could be made.
    #[error("cannot make a certificate")]
    Make(#[source] rcgen::Error),
    /// What was kept is not understood.
    #[error("not a certificate and its key")]
    Pem(#[source] rustls::pki_types::pem::Error),
    /// They do not belong together, or are of no use.
    #[error("certificate and key cannot be used")]
    Unusable(#[source] rustls::Error),
}

/// Text that is no pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a pin is 64 hexadecimal digits")]
pub struct ParsePinError;

/// A server's certificate and its key.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// A new one, as PEM: the certificate, then the key. To be kept where nobody else can read it.
    ///
    /// # Errors
    /// [`IdentityError::Make`].
    pub fn generate() -> Result<String, IdentityError> {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).map_err(IdentityError::Make)?;
        Ok(made.cert.pem() + &made.signing_key.serialize_pem())
    }

    /// Out of what [`Identity::generate`] made.
    ///
    /// # Errors
    /// [`IdentityError::Pem`].
    pub fn from_pem(pem: &[u8]) -> Result<Self, IdentityError> {
        let certificate = CertificateDer::from_pem_slice(pem).map_err(IdentityError::Pem)?;
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(IdentityError::Pem)?;
        Ok(Self { certificate, key })
    }

    /// What clients know it by.
    #[must_use]
    pub fn pin(&self) -> Pin {
        Pin::of(&self.certificate)
    }

    /// For the server's end of a connection.
    ///
    /// # Errors
    /// [`IdentityError::Unusable`].
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, IdentityError> {
        let config = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
            .with_protocol_versions(&[&version::TLS13])
            .and_then(|builder| {
                builder.with_no_client_auth().with_single_cert(vec![self.certificate.clone()], self.key.clone_key())
            });
        config.map(Arc::new).map_err(IdentityError::Unusable)
    }
}

/// For the client's end of a connection to the server with this pin, and what to call the server there.
///
/// # Panics
/// Never: the provider has TLS 1.3, and the name is one.
#[must_use]
pub fn client_config(pin: Pin) -> (Arc<ClientConfig>, ServerName<'static>) {
    let provider = Arc::new(provider::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&version::TLS13])
        .expect("the provider has TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned { pin, provider }))
        .with_no_client_auth();
    (Arc::new(config), NAME.try_into().expect("a name"))
}

/// Trusts one certificate and no authority. Dates are not looked at: a device whose clock is wrong gets its messages.
#[derive(Debug)]
struct Pinned {
    pin: Pin,
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
        if Pin::of(certificate) == self.pin {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
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

impl Pin {
    fn of(certificate: &CertificateDer<'_>) -> Self {
        let hash = digest::digest(&digest::SHA256, certificate);
        Self(hash.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pin({self})")
    }
}

impl FromStr for Pin {
    type Err = ParsePinError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut pin = [0; 32];
        let text = text.as_bytes();
        if text.len() != 2 * pin.len() || !text.iter().all(u8::is_ascii_hexdigit) {
            return Err(ParsePinError);
        }
        for (byte, pair) in pin.iter_mut().zip(text.chunks_exact(2)) {
            let digit = |c: u8| (c as char).to_digit(16).ok_or(ParsePinError);
            *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
        }
        Ok(Self(pin))
    }
}

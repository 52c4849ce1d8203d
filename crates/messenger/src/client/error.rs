//! What goes wrong between a client and its server, and whether it helps to try again.

use crate::channel::ChannelError;
use crate::protocol::Refusal;
use rustls::CertificateError;
use std::io;
use std::time::Duration;

/// Why a client cannot do something with its server.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server's name or address is not understood, or no name server knows it.
    #[error(
        "cannot find the server {server} (see `server` of the account file, and whether this device is on the network)"
    )]
    Unknown {
        /// As in the account file.
        server: String,
        /// What the resolver said.
        #[source]
        source: io::Error,
    },
    /// Nobody answers there.
    #[error("cannot reach the server at {server} (is it running, and this device on the network?)")]
    Unreachable {
        /// As in the account file.
        server: String,
        /// Of the last address tried.
        #[source]
        source: io::Error,
    },
    /// Somebody else answers there.
    #[error(
        "{server} is not the server of this account, or has a new certificate (its pin differs): nothing was sent to it. \
         Ask who runs the server for a new account file"
    )]
    NotTheServer {
        /// As in the account file.
        server: String,
    },
    /// The connection ended.
    #[error("lost the connection to the server")]
    Lost(#[source] ChannelError),
    /// The server said why it will not.
    #[error(transparent)]
    Refused(Refusal),
    /// The server answered what does not belong there.
    #[error("the server answered {0}, which does not belong there: use the same release of lasthop on both sides")]
    Unexpected(&'static str),
    /// Was told to stop.
    #[error("stopped")]
    Stopped,
}

impl ClientError {
    /// Whether the same may go well a little later, and if the server said so, when at the earliest.
    #[must_use]
    pub fn passes(&self) -> Option<Duration> {
        match self {
            Self::Unknown { .. } | Self::Unreachable { .. } => Some(Duration::ZERO),
            Self::Lost(error) => (!matches!(error, ChannelError::Frame(_))).then_some(Duration::ZERO),
            Self::Refused(Refusal::Busy { seconds } | Refusal::TooManyMessages { seconds }) => {
                Some(Duration::from_secs((*seconds).into()))
            }
            Self::Refused(Refusal::Idle { .. } | Refusal::Stopping) => Some(Duration::ZERO),
            _ => None,
        }
    }

    /// Whether somebody was there who can have been the server.
    pub(super) fn was_reached(&self) -> bool {
        match self {
            Self::Refused(_) => true,
            Self::Lost(ChannelError::Io(cause)) => cause.kind() == io::ErrorKind::ConnectionReset,
            Self::Lost(error) => matches!(error, ChannelError::Closed),
            _ => false,
        }
    }

    /// What a channel's error means on a connection to `server`.
    pub(super) fn of_channel(error: ChannelError, server: &str) -> Self {
        let pin = CertificateError::ApplicationVerificationFailure;
        match error {
            ChannelError::Tls(rustls::Error::InvalidCertificate(reason)) if reason == pin => {
                Self::NotTheServer { server: server.to_owned() }
            }
            error => Self::Lost(error),
        }
    }
}

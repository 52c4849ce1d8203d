//! The client: a connection to a server as the holder of an account.

mod error;
mod session;

pub use error::ClientError;
pub use session::Session;

//! The status socket, and the files of sockets; what is said over it is `lasthop_status`'s.

mod server;
mod socket_file;

pub use server::{Access, Server, ServerError};
pub(crate) use socket_file::SocketFile;

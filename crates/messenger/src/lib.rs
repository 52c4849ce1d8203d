//! Store-and-forward messages for slow receivers: a server that keeps them, a client that sends and fetches them, and the
//! tuning of both to the device.
//!
//! Source: Hong, Hur, "An Evaluation of Multimedia Data Downstream with PDA in an Infrastructure Network" (JIPS 2006). A
//! device that writes its storage at half the speed it reads receives slower than it sends; what helps is said there in
//! three remedies (socket buffers, application buffer, inter-packet delay), all of them in [`tuning`].
//!
//! Words: a *message* is what somebody sends to somebody; it travels in *packets*, as in the paper: what is read from
//! storage, sent, received and written in one go. Blocking I/O, one thread per connection.

pub mod account;
pub mod channel;
pub mod client;
pub mod durable;
pub mod protocol;
pub mod server;
pub mod store;
pub mod tls;
pub mod transfer;
pub mod tune;
pub mod tuning;

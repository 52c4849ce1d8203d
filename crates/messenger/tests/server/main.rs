//! A server and its clients, over real sockets on this machine.

mod delivery;
mod house;
mod measuring;
mod owner;

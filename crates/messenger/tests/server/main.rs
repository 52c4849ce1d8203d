//! A server and its clients, over real sockets on this machine.

mod damage;
mod delivery;
mod disk_full;
mod house;
mod limits;
mod malformed;
mod measuring;
mod owner;
mod store;
mod strangers;

//! What can be set so that a slow receiver receives as fast as it can: the paper's three remedies, for each end and direction.
//!
//! | remedy | the paper's form | key |
//! |---|---|---|
//! | socket buffers sized to the path | larger send buffer at the server, larger receive buffer at the device | `buffer` |
//! | application buffer matched to the storage | 8,192 B instead of 3,072 B | `packet` |
//! | inter-packet delay set for each end | a sleep after each packet | `delay`, and as today's form `pacing` |
//!
//! A path carries at most `window / RTT` (the paper's eq. 1), and the window is what fits into the receive buffer.

pub mod profile;
pub mod quantity;
pub mod socket;

use quantity::{Delay, PacketSize, Rate, Size};
use serde::{Deserialize, Serialize};

/// How messages travel in one direction: what both ends do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tuning {
    /// The end that reads a message from its storage and sends it.
    pub sender: End,
    /// The end that receives it and writes it to its storage.
    pub receiver: End,
}

/// What one end of a transfer does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct End {
    /// Application buffer: read from storage and sent, or received and written to storage, in one go.
    pub packet: PacketSize,
    /// Inter-packet delay: how long the application sleeps after each packet.
    pub delay: Delay,
    /// SO_SNDBUF of a sender, SO_RCVBUF of a receiver; `None`: the kernel sizes it as it goes.
    pub buffer: Option<Size>,
    /// SO_MAX_PACING_RATE, of a sender; `None`: unpaced. Without meaning for a receiver.
    pub pacing: Option<Rate>,
}

/// The tuning of a device, as `tune` finds it and as it is kept: one for each direction, named after the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// Messages from the device: it is the sender, the server the receiver.
    pub send: Tuning,
    /// Messages to the device: the server is the sender.
    pub fetch: Tuning,
}

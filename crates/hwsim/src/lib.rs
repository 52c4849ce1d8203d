//! A kernel's own 802.11 stack over the air of our models: a medium for `mac80211_hwsim`, which simulates radios and leaves to a program
//! what becomes of their frames.
//!
//! ```text
//! hostapd, wpa_supplicant, sockets
//! mac80211: queues, TIDs, ADDBA, minstrel_ht     the kernel's
//! mac80211_hwsim  --HWSIM_CMD_FRAME-->  Air: Medium<Carried>   when, at which of the frame's rates, arrived or not
//!                 <--HWSIM_CMD_FRAME, HWSIM_CMD_TX_INFO_FRAME--
//! ```
//!
//! - [`message`]: the family of generic netlink, [`frame`]: what is read of an 802.11 frame, [`rates`]: the kernel's table of rates as a
//!   plan of ours, [`air`]: the host of the medium, [`shadow`]: our own rate control beside the kernel's.
//!
//! A frame of one radio to another goes through [`lasthop_medium::Medium`]: EDCA, the channel's errors, tries at the rates and counts
//! that the kernel gave it. Frames to all (beacons, probe requests, ARP) do not contend: each receiver has them after their air
//! time, or loses them to the channel.
//!
//! What this can prove is behaviour, not time: frames come when the kernel's processor gets to them. mac80211_hwsim pushes nothing
//! back (its queue of 200 frames drops a hundred when it is full), and has no way to report an A-MPDU, so minstrel_ht takes no notice of
//! what is sent within a block ack agreement (`book/src/hwsim.md`).
//!
//! Used by `tools/vm/cases/air`; no program of ours links it.

pub mod air;
pub mod frame;
pub mod message;
pub mod rates;
pub mod shadow;

/// An Ethernet address.
pub type Mac = [u8; 6];

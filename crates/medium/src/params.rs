//! What a medium is made of, as a host configures it.

use lasthop_core::aqm::Discipline;
use lasthop_core::packet::Packet;

use crate::bridge::BridgeParams;
use crate::channel::ChannelParams;
use crate::edca_params::{ACCESS_POINT_EDCA, Ampdu, Edca, MissedBlockAck, STATION_EDCA};
use crate::phy::{Band, Phy, Preamble, Rate, Standard, Timing};
use crate::propagation::{Loss, Radio};
use crate::rate_control::RateLaw;
use crate::wireless_link::WirelessLinkParams;

/// How the senders of a collision resume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterCollision {
    /// They wait for the ACK timeout, then DIFS; everybody else waits EIFS.
    #[default]
    Standard,
    /// Everybody waits EIFS from the end of the collision: Bianchi's convention.
    Eifs,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub struct MediumParams {
    /// Generation of the access point.
    pub standard: Standard,
    /// Where in the spectrum: what SIFS is, and the signal extension.
    pub band: Band,
    /// Whose timing rules.
    pub timing: Timing,
    /// Fastest rate of ACK, RTS and CTS; `None`: the highest basic rate not above the data rate.
    pub control_rate: Option<Rate>,
    /// Of DSSS frames.
    pub preamble: Preamble,
    /// CTS-to-self before OFDM data; also on when a station of 802.11b is in a cell of 802.11g.
    pub protection: bool,
    /// Transmissions of one frame in all (retransmissions + 1), at least 1. 7: the standard's short retry limit, which
    /// governs every frame not above the RTS threshold.
    pub attempts: u32,
    /// The same for frames up to `rts_threshold`; `None`: `attempts`.
    pub short_attempts: Option<u32>,
    /// The same for packets of real-time traffic, whatever their length ([`Packet::is_realtime`]); `None`: as others.
    pub realtime_attempts: Option<u32>,
    /// MAC frames longer than this use RTS/CTS, bytes; of an aggregate all of it counts. 65535: none.
    pub rts_threshold: u32,
    /// Frames of more than one MPDU use RTS/CTS, however long they are.
    pub rts_for_aggregates: bool,
    /// What follows when no block ack came.
    pub missed_block_ack: MissedBlockAck,
    /// How the access point's classes contend, where it has classes (n, ac, ax).
    pub edca: Edca,
    /// Who leaves the access point's queue first, and who is dropped. With classes there is a queue of each.
    pub queue: Discipline,
    /// Packets in the access point's queue, the frame in service not counted. 50: ns-2's default.
    pub queue_limit: usize,
    /// Packets that the access point's firmware takes from that queue before their turn in the channel. 0: none.
    pub firmware_queue: usize,
    /// Access point's transmit power, W.
    pub power_w: f64,
    /// Thresholds.
    pub radio: Radio,
    /// Frames lost to the channel.
    pub loss: Loss,
    /// Errors by signal-to-noise ratio, beside `loss`; only with classes (n, ac, ax).
    pub channel: Option<ChannelParams>,
    /// How senders of a collision resume.
    pub after_collision: AfterCollision,
    /// Who hears whom follows from positions, powers and thresholds; false: everybody hears everybody.
    pub hidden: bool,
    /// Packets take a time each instead of contending for the channel; of the rest only the queues' limits are used.
    pub bridge: Option<BridgeParams>,
    /// A lossy point-to-point link in place of the channel; of the rest only the queues and their limits are used.
    pub wireless_link: Option<WirelessLinkParams>,
    /// Every counter falls by one per busy period, as in Bianchi's model and unlike DCF: only for the comparison with
    /// it. Without hidden stations.
    pub check_bianchi_decrement: bool,
}

impl Default for MediumParams {
    fn default() -> Self {
        Self {
            standard: Standard::G,
            band: Band::Ghz2,
            timing: Timing::Standard,
            control_rate: None,
            preamble: Preamble::Long,
            protection: false,
            attempts: 7,
            short_attempts: None,
            realtime_attempts: None,
            rts_threshold: 65_535,
            rts_for_aggregates: false,
            missed_block_ack: MissedBlockAck::Repeat,
            edca: ACCESS_POINT_EDCA,
            queue: Discipline::Fifo,
            queue_limit: 50,
            firmware_queue: 0,
            power_w: 0.281_838_15,
            radio: Radio::default(),
            loss: Loss::None,
            channel: None,
            after_collision: AfterCollision::Standard,
            hidden: false,
            bridge: None,
            wireless_link: None,
            check_bianchi_decrement: false,
        }
    }
}

impl MediumParams {
    /// The air times of a cell with these stations.
    #[must_use]
    pub fn phy(&self, stations: &[StationParams]) -> Phy {
        let mixed = self.standard != Standard::B && stations.iter().any(|s| s.standard == Standard::B);
        Phy {
            standard: self.standard,
            timing: self.timing,
            preamble: self.preamble,
            protection: self.protection || mixed,
            control_rate: self.control_rate,
            band: self.band,
        }
    }

    /// Packets that the access point's queue holds when its own limit is `limit`: one that is plain is as long as both.
    pub(crate) fn plain_limit(&self, limit: usize) -> usize {
        limit + if self.queue == Discipline::Fifo { self.firmware_queue } else { 0 }
    }

    /// Transmissions of a packet's frame in all.
    pub(crate) fn limit(&self, phy: &Phy, packet: &impl Packet) -> u32 {
        if let Some(attempts) = self.realtime_attempts.filter(|_| packet.is_realtime()) {
            return attempts;
        }
        let short = phy.frame_bytes(packet.bytes()) <= self.rts_threshold;
        self.short_attempts.filter(|_| short).unwrap_or(self.attempts)
    }
}

/// A station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StationParams {
    /// Generation of its radio: its smallest contention window.
    pub standard: Standard,
    /// Data rate to and from it.
    pub rate: Rate,
    /// From the access point, m.
    pub distance_m: f64,
    /// Walls between; with [`MediumParams::channel`].
    pub walls: u8,
    /// Mean SNR over the channel's width, dB, in place of what follows from powers, distance and walls; with
    /// [`MediumParams::channel`].
    pub snr_db: Option<f64>,
    /// What chooses rates to and from it, where it and the access point have classes; [`Self::rate`] is the fixed one, and
    /// says which widths, streams and guard intervals others may use.
    pub rate_law: RateLaw,
    /// Where it stands on the circle around the access point, degrees.
    pub angle_deg: f64,
    /// Transmit power, W.
    pub power_w: f64,
    /// Who leaves its queue first, and who is dropped.
    pub queue: Discipline,
    /// Packets in its queue, the frame in service not counted.
    pub queue_limit: usize,
    /// How its classes contend, where it and the access point have classes.
    pub edca: Edca,
    /// Aggregates to and from it; `None`: every frame carries one MPDU.
    pub ampdu: Option<Ampdu>,
    /// Longest A-MSDU to and from it, bytes of the MPDU's body; 0: none. 3,839 and 7,935 are n's sizes, 11,406 ac's.
    pub amsdu_bytes: u32,
}

impl Default for StationParams {
    fn default() -> Self {
        Self {
            standard: Standard::G,
            rate: Rate::OFDM_54,
            distance_m: 10.0,
            walls: 0,
            snr_db: None,
            rate_law: RateLaw::Fixed,
            angle_deg: 0.0,
            power_w: 0.281_838_15,
            queue: Discipline::Fifo,
            queue_limit: 50,
            edca: STATION_EDCA,
            ampdu: None,
            amsdu_bytes: 0,
        }
    }
}

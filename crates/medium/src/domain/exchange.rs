//! One exchange of frames: [RTS, CTS,] data, ACK; when each node is free again, by how it ends.
//!
//! | ends with | sender decides | sender waits from | receiver waits | overhearers wait |
//! |---|---|---|---|---|
//! | ACK | end of ACK | DIFS | DIFS | DIFS (their NAV ends with the ACK) |
//! | lost data | ACK timeout | timeout + DIFS | EIFS | NAV + DIFS |
//! | lost ACK | end of ACK | EIFS | DIFS | DIFS |
//! | lost RTS | CTS timeout | timeout + DIFS | EIFS | NAV reset + DIFS |
//! | lost CTS | end of CTS | EIFS | DIFS | NAV of the whole exchange + DIFS |
//!
//! Overhearers decode every frame that did not collide: losses are drawn for the addressed receiver only.
//! Source: IEEE 802.11-2016, 10.3.2 to 10.3.4.

use lasthop_core::units::{Span, Time};

use crate::times::{AirTimes, Waits};

/// The frames of one attempt, small enough for two registers.
#[derive(Clone, Copy, Debug)]
pub struct Frames {
    /// Data, CTS-to-self included.
    pub data: Span,
    /// An RTS announces them.
    pub rts: bool,
    /// Where [`crate::times::Rates`] has their other times.
    pub times: u8,
}

/// Where an exchange ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Everything arrived.
    Acked,
    /// The RTS did not arrive.
    RtsLost,
    /// The CTS did not arrive.
    CtsLost,
    /// The data did not arrive.
    DataLost,
    /// The data arrived, its ACK did not.
    AckLost,
}

/// What follows from it.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// When the packet is at its receiver.
    pub delivered: Option<Time>,
    /// When the sender knows.
    pub settled: Time,
    /// Until when the medium is busy with it.
    pub busy_until: Time,
    /// Until when overhearers keep silent.
    pub nav: Time,
    /// From when the sender counts slots again.
    pub sender: Time,
    /// From when the receiver does.
    pub receiver: Time,
}

impl Frames {
    /// The frame that contends: the one a collision destroys.
    #[inline]
    pub fn first(&self, times: &AirTimes) -> Span {
        if self.rts { times.rts } else { self.data }
    }

    /// When the data frame starts, in an attempt that starts at `at`.
    #[inline]
    pub fn data_start(&self, times: &AirTimes, waits: &Waits, at: Time) -> Time {
        if self.rts { at + times.rts + waits.sifs + times.answer + waits.sifs } else { at }
    }

    /// How an exchange that starts at `at` goes.
    #[inline]
    pub fn outcome(&self, times: &AirTimes, waits: &Waits, at: Time, fate: Fate) -> Outcome {
        let Waits { sifs, difs, eifs, .. } = *waits;
        let (answer, timeout) = (times.answer, times.answer_timeout);
        let first_end = at + self.first(times);
        let data_end = self.data_start(times, waits, at) + self.data;
        let ack_end = data_end + sifs + answer;
        let nav = data_end + times.answer_nav;
        let delivered = matches!(fate, Fate::Acked | Fate::AckLost).then_some(data_end);
        let outcome = |settled: Time, busy_until: Time, nav: Time, sender: Time, receiver: Time| Outcome {
            delivered,
            settled,
            busy_until,
            nav,
            sender,
            receiver,
        };
        match fate {
            Fate::Acked => outcome(ack_end, ack_end, nav, ack_end + difs, ack_end + difs),
            Fate::AckLost => outcome(ack_end.max(data_end + timeout), ack_end, nav, ack_end + eifs, ack_end + difs),
            Fate::DataLost => {
                let settled = data_end + timeout;
                outcome(settled, data_end, nav, settled + difs, data_end + eifs)
            }
            Fate::RtsLost => {
                let settled = first_end + timeout;
                let nav = first_end + times.nav_reset;
                outcome(settled, first_end, nav, settled + difs, first_end + eifs)
            }
            Fate::CtsLost => {
                let cts_end = first_end + sifs + answer;
                outcome(cts_end.max(first_end + timeout), cts_end, nav, cts_end + eifs, cts_end + difs)
            }
        }
    }
}

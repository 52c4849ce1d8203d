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

/// The frames of one attempt at one rate.
#[derive(Clone, Copy, Debug)]
pub struct Frames {
    /// RTS, if one is sent.
    pub rts: Option<Span>,
    /// Data, CTS-to-self included.
    pub data: Span,
    /// ACK or CTS.
    pub answer: Span,
    /// How long the sender waits for an answer after its frame.
    pub timeout: Span,
    answer_nav: Span,
    nav_reset: Span,
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
    /// Of an IP packet; `rts`: it is announced by one.
    #[inline]
    pub fn of(times: &AirTimes, ip_bytes: u32, rts: bool) -> Self {
        Self {
            rts: rts.then_some(times.rts),
            data: times.data(ip_bytes),
            answer: times.answer,
            timeout: times.answer_timeout,
            answer_nav: times.answer_nav,
            nav_reset: times.nav_reset,
        }
    }

    /// The frame that contends: the one a collision destroys.
    #[inline]
    pub fn first(&self) -> Span {
        self.rts.unwrap_or(self.data)
    }

    /// When the data frame starts, in an attempt that starts at `at`.
    #[inline]
    pub fn data_start(&self, waits: &Waits, at: Time) -> Time {
        match self.rts {
            Some(rts) => at + rts + waits.sifs + self.answer + waits.sifs,
            None => at,
        }
    }

    /// How an exchange that starts at `at` goes.
    #[inline]
    pub fn outcome(&self, waits: &Waits, at: Time, fate: Fate) -> Outcome {
        let Waits { sifs, difs, eifs, .. } = *waits;
        let first_end = at + self.first();
        let data_end = self.data_start(waits, at) + self.data;
        let ack_end = data_end + sifs + self.answer;
        let nav = data_end + self.answer_nav;
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
            Fate::AckLost => {
                outcome(ack_end.max(data_end + self.timeout), ack_end, nav, ack_end + eifs, ack_end + difs)
            }
            Fate::DataLost => {
                let settled = data_end + self.timeout;
                outcome(settled, data_end, nav, settled + difs, data_end + eifs)
            }
            Fate::RtsLost => {
                let settled = first_end + self.timeout;
                let nav = first_end + self.nav_reset;
                outcome(settled, first_end, nav, settled + difs, first_end + eifs)
            }
            Fate::CtsLost => {
                let cts_end = first_end + sifs + self.answer;
                outcome(cts_end.max(first_end + self.timeout), cts_end, nav, cts_end + eifs, cts_end + difs)
            }
        }
    }
}

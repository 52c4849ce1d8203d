//! One exchange of frames: [RTS, CTS,] data and ACK or block ack, or a block ack request and its answer; from when each node's
//! AIFS counts after it, by how it ends. A base is a SIFS after what a node waits for; EIFS - DIFS is a SIFS and an ACK at the
//! lowest rate.
//!
//! | ends with | sender decides | sender's base after | receiver's after | overhearers' after |
//! |---|---|---|---|---|
//! | answer | its end | its end | its end | its end |
//! | lost data | timeout | timeout | data + (EIFS - DIFS) | NAV |
//! | lost answer | its end | its end + (EIFS - DIFS) | its end | its end |
//! | lost RTS | CTS timeout | timeout | RTS + (EIFS - DIFS) | NAV reset |
//! | lost CTS | its end | its end + (EIFS - DIFS) | its end | NAV of the whole exchange |
//!
//! Data is lost when none of its MPDUs arrives. Overhearers decode every frame that did not collide.
//! Source: IEEE 802.11-2020, 10.3.2 and 10.23.2.

use lasthop_core::units::{Span, Time};

use super::times::Times;

/// The same for every frame of a cell.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    pub sifs: Span,
    /// From the end of a frame that could not be decoded to the base: EIFS - DIFS + SIFS.
    pub undecoded: Span,
    /// No frame that carries a packet is shorter.
    pub shortest: Span,
}

/// The frames of one exchange.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frames {
    /// Data, CTS-to-self included, or a request.
    pub data: Span,
    /// What answers it.
    pub answer: Span,
    /// An RTS announces them.
    pub rts: bool,
    /// Where their other times are.
    pub times: u8,
}

/// Where an exchange ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// With its answer, which may miss MPDUs.
    Answered,
    /// The RTS did not arrive.
    RtsLost,
    /// The CTS did not arrive.
    CtsLost,
    /// No MPDU arrived.
    DataLost,
    /// MPDUs arrived, the answer did not.
    AnswerLost,
}

/// What follows from it.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// When the data frame has ended.
    pub data_end: Time,
    /// When the sender knows.
    pub settled: Time,
    /// Until when the medium is busy with it.
    pub busy_until: Time,
    /// Until when overhearers keep silent.
    pub nav: Time,
    /// From when the sender's AIFS counts.
    pub sender: Time,
    /// From when the receiver's does.
    pub receiver: Time,
}

impl Frames {
    /// The frame that contends: the one a collision destroys.
    #[inline]
    pub fn first(&self, times: &Times) -> Span {
        if self.rts { times.rts } else { self.data }
    }

    /// From the start of the exchange to that of its data.
    #[inline]
    pub fn before_data(&self, times: &Times, sifs: Span) -> Span {
        if self.rts { times.rts + sifs + times.ack + sifs } else { Span::ZERO }
    }

    /// How an exchange that starts at `at` goes.
    #[inline]
    pub fn outcome(&self, times: &Times, waits: &Waits, at: Time, fate: Fate) -> Outcome {
        let Waits { sifs, undecoded, .. } = *waits;
        let timeout = times.answer_timeout;
        let data_end = at + self.before_data(times, sifs) + self.data;
        let end = data_end + sifs + self.answer;
        let first_end = at + self.first(times);
        let of = |settled: Time, busy_until: Time, nav: Time, sender: Time, receiver: Time| Outcome {
            data_end,
            settled,
            busy_until,
            nav,
            sender,
            receiver,
        };
        match fate {
            Fate::Answered => of(end, end, end, end + sifs, end + sifs),
            Fate::AnswerLost => of(end.max(data_end + timeout), end, end, end + undecoded, end + sifs),
            Fate::DataLost => {
                let settled = data_end + timeout;
                of(settled, data_end, end, settled + sifs, data_end + undecoded)
            }
            Fate::RtsLost => {
                let settled = first_end + timeout;
                of(settled, first_end, first_end + times.nav_reset, settled + sifs, first_end + undecoded)
            }
            Fate::CtsLost => {
                let cts_end = first_end + sifs + times.ack;
                of(cts_end.max(first_end + timeout), cts_end, end, cts_end + undecoded, cts_end + sifs)
            }
        }
    }
}

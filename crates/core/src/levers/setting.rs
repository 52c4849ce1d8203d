//! What can be set, and the steps in which a lever is tried.

use std::fmt;

use crate::aqm::mac80211::Aql;
use crate::units::Span;

/// What of today's Wi-Fi an access point can move, in order of worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lever {
    /// Sparse real-time flows go in a class of higher priority (`sparse`).
    Class,
    /// Air time that may wait in the hardware, below the discipline.
    Aql,
    /// How long the access point may send once its best effort has the channel.
    Txop,
    /// The same of all stations, who are told in beacons (the WMM element).
    StationTxop,
    /// Longest A-MPDU of the access point.
    Aggregate,
    /// Air-time weight of stations with sparse real-time flows.
    Weights,
    /// Transmissions of an MPDU, by class, loss and round trip ([`super::attempts`]).
    Attempts,
}

impl Lever {
    /// All, in the order in which they are tried.
    pub const ALL: [Self; 7] =
        [Self::Class, Self::Aql, Self::Txop, Self::StationTxop, Self::Aggregate, Self::Weights, Self::Attempts];

    /// Index into arrays of all.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// As scenarios, status and reports name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Class => "class",
            Self::Aql => "aql",
            Self::Txop => "txop",
            Self::StationTxop => "station-txop",
            Self::Aggregate => "aggregate",
            Self::Weights => "weights",
            Self::Attempts => "attempts",
        }
    }

    /// Of that name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lever| lever.name() == name)
    }

    /// It takes so little from others (at most a tenth of the air time, of flows that were there before) that it is in force until it is found
    /// to hurt; any other is in force only where it was found to pay.
    #[must_use]
    pub const fn is_presumed(self) -> bool {
        matches!(self, Self::Class)
    }
}

/// How best effort contends (WMM, nl80211's `NL80211_TXQ_ATTR_*`): what is set together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contention {
    /// Slots of idle time after a SIFS, before contention.
    pub aifsn: u8,
    /// First contention window, slots.
    pub cw_min: u16,
    /// Largest contention window, slots.
    pub cw_max: u16,
    /// How long it may send once it has the channel, in steps of 32 us; zero: one exchange.
    pub txop: Span,
}

/// A lever's setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// What [`super::Action::SetClass`] says is in force; false: nothing is.
    Class(bool),
    /// Of every station and class.
    Aql(Aql),
    /// Best effort of the access point.
    Txop(Contention),
    /// Best effort of all stations.
    StationTxop(Contention),
    /// Bytes of the longest A-MPDU that the access point sends.
    Aggregate(u32),
    /// What [`super::Action::SetWeight`] says is in force; false: every station has the weight that was found.
    Weights(bool),
    /// What [`super::Action::SetAttempts`] says is in force; false: the attempts that were found.
    Attempts(bool),
}

/// The longest frame (IEEE 802.11-2020, 10.13: L-SIG says no more), and the first limits that are tried: about half and a quarter of
/// it. A limit is given in steps of 32 us.
const TXOPS: [Span; 2] = [Span::from_micros(2_048), Span::from_micros(1_024)];
/// Below these nothing is left to halve: a full MPDU of every mode in use has to fit, and one that is sent while the next is handed over.
const LEAST_AQL: Span = Span::from_millis(1);
const LEAST_AGGREGATE: u32 = 8_192;

impl Setting {
    /// Of which lever.
    #[must_use]
    pub const fn lever(&self) -> Lever {
        match self {
            Self::Class(_) => Lever::Class,
            Self::Aql(_) => Lever::Aql,
            Self::Txop(_) => Lever::Txop,
            Self::StationTxop(_) => Lever::StationTxop,
            Self::Aggregate(_) => Lever::Aggregate,
            Self::Weights(_) => Lever::Weights,
            Self::Attempts(_) => Lever::Attempts,
        }
    }

    /// What is tried from here on, if there is anything left.
    #[must_use]
    pub fn further(&self) -> Option<Self> {
        let txop = |own: &Contention| {
            let txop = TXOPS.into_iter().find(|txop| own.txop == Span::ZERO || *txop < own.txop)?;
            Some(Contention { txop, ..*own })
        };
        match self {
            Self::Class(on) => (!on).then_some(Self::Class(true)),
            Self::Weights(on) => (!on).then_some(Self::Weights(true)),
            Self::Attempts(on) => (!on).then_some(Self::Attempts(true)),
            Self::Aql(aql) => {
                let half = |span: Span| Span::from_nanos(span.as_nanos() / 2);
                let next = Aql { low: half(aql.low), high: half(aql.high), threshold: half(aql.threshold) };
                (next.low >= LEAST_AQL).then_some(Self::Aql(next))
            }
            Self::Txop(own) => txop(own).map(Self::Txop),
            Self::StationTxop(own) => txop(own).map(Self::StationTxop),
            Self::Aggregate(bytes) => (bytes / 2 >= LEAST_AGGREGATE).then_some(Self::Aggregate(bytes / 2)),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let switch = |on: bool| if on { "on" } else { "off" };
        match self {
            Self::Class(on) | Self::Weights(on) | Self::Attempts(on) => f.write_str(switch(*on)),
            Self::Aql(aql) => {
                let Aql { low, high, threshold } = aql;
                write!(f, "{} or {} of a station, {} of all", low.rounded(), high.rounded(), threshold.rounded())
            }
            Self::Txop(own) | Self::StationTxop(own) if own.txop == Span::ZERO => write!(f, "one exchange"),
            Self::Txop(own) | Self::StationTxop(own) => write!(f, "{}", own.txop.rounded()),
            Self::Aggregate(bytes) => write!(f, "{bytes} B"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_further(found: Setting) -> Vec<Setting> {
        std::iter::successors(Some(found), Setting::further).skip(1).collect()
    }

    #[test]
    fn every_lever_comes_to_an_end() {
        let own = Contention { aifsn: 3, cw_min: 15, cw_max: 63, txop: Span::ZERO };
        let aql = all_further(Setting::Aql(Aql::default()));
        assert_eq!(aql.len(), 2);
        assert!(matches!(aql[1], Setting::Aql(Aql { low, .. }) if low == Span::from_micros(1_250)));
        assert_eq!(all_further(Setting::Txop(own)).len(), 2);
        let long = Contention { txop: Span::from_micros(1_504), ..own };
        assert_eq!(all_further(Setting::StationTxop(long)).len(), 1);
        let bytes = all_further(Setting::Aggregate(65_535));
        assert_eq!(bytes, [32_767, 16_383, 8_191].map(Setting::Aggregate)[..2]);
        for switch in [Setting::Class, Setting::Weights, Setting::Attempts] {
            assert_eq!(all_further(switch(false)), [switch(true)]);
        }
        // What makes no sense has nothing further.
        assert_eq!(Setting::Aggregate(0).further(), None);
        let none = Aql { low: Span::ZERO, high: Span::ZERO, threshold: Span::ZERO };
        assert_eq!(Setting::Aql(none).further(), None);
    }

    #[test]
    fn names_are_found_again() {
        for (at, lever) in Lever::ALL.into_iter().enumerate() {
            assert_eq!((Lever::of_name(lever.name()), lever.index()), (Some(lever), at));
        }
        assert_eq!(Lever::of_name("qos"), None);
    }
}

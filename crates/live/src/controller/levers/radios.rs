//! The radios among the interfaces that are hooked, and which levers work on each.

use std::path::{Path, PathBuf};

use lasthop_core::aqm::mac80211::Aql;
use lasthop_core::levers::{Contention, Lever, Setting};
use lasthop_core::units::{Span, Time};

use crate::levers::Place;
use crate::levers::debugfs::{FOLDER, Files};
use crate::levers::hostapd;
use crate::levers::wiphy::{Edca, TidConfig, Txq, Wiphy};
use crate::ports::Port;
use crate::stations::{self, Nl80211, Wireless};

/// A radio that could not be asked is asked again after this.
const AGAIN: Span = Span::from_secs(10);
/// Between two looks at what may wait below mac80211's flow queues.
const WATCH_EVERY: Span = Span::from_secs(1);

const NO_AQL: &str = "the driver does not limit air time in the hardware (AQL)";

pub(crate) struct Radios {
    wifi: Option<Nl80211>,
    list: Vec<Radio>,
    /// Interfaces that were looked at, and when.
    looked: Option<(Vec<u32>, Time)>,
    /// When it was last looked at what may wait below flow queues.
    watched: Option<Time>,
    /// Where debugfs has its radios.
    folder: PathBuf,
}

/// A radio's interface.
pub(crate) struct Radio {
    pub(crate) ifindex: u32,
    pub(crate) is_access_point: bool,
    pub(crate) wiphy: Wiphy,
    /// Its limits of air time, where debugfs tells.
    pub(crate) aql: Option<Aql>,
    /// How it contends with best effort, where hostapd's file tells.
    pub(crate) edca: Option<Edca>,
    /// The hooked interface is the radio's own, and does not lie on one.
    pub(crate) is_own: bool,
    /// Most that waits below mac80211's flow queues, as it was last seen, or why that is not bounded.
    pub(crate) below: Result<Span, &'static str>,
}

impl Radios {
    pub(crate) fn new() -> Self {
        Self { wifi: Nl80211::open().ok(), list: Vec::new(), looked: None, watched: None, folder: FOLDER.into() }
    }

    /// As if they had been found.
    #[cfg(test)]
    pub(super) fn made_up(list: Vec<Radio>, folder: PathBuf) -> Self {
        Self { wifi: None, list, looked: None, watched: None, folder }
    }

    /// This kernel has Wi-Fi.
    pub(crate) const fn are_known(&self) -> bool {
        self.wifi.is_some()
    }

    pub(crate) fn list(&self) -> &[Radio] {
        &self.list
    }

    /// The radio of a hooked interface.
    pub(crate) fn at(&self, ifindex: u32) -> Option<&Radio> {
        self.list.iter().find(|radio| radio.ifindex == ifindex)
    }

    /// Looks again, when it is time, at what may wait below flow queues: a lever or somebody else may have moved it.
    pub(crate) fn watch(&mut self, now: Time) {
        if self.watched.is_none_or(|watched| now.since(watched) >= WATCH_EVERY) {
            self.watched = Some(now);
            self.list.iter_mut().for_each(|radio| radio.below = radio.look_below(&self.folder));
        }
    }

    /// Whether it is time to look: others are there, or one could not be asked.
    pub(crate) fn is_time(&self, now: Time, ports: &[Port]) -> bool {
        self.looked.as_ref().is_none_or(|(known, at)| {
            known.iter().copied().ne(radios(ports).filter_map(|port| port.ifindex))
                || (self.list.len() < known.len() && now.since(*at) >= AGAIN)
        })
    }

    /// Looks what is there; true when it is something else than before. Nothing may be set meanwhile, or it would be taken for what was found.
    pub(crate) fn look(&mut self, now: Time, ports: &[Port]) -> bool {
        let before: Vec<u32> = self.list.iter().map(|radio| radio.ifindex).collect();
        let is_first = self.looked.is_none();
        self.watched = None;
        self.looked = Some((radios(ports).filter_map(|port| port.ifindex).collect(), now));
        let Some(wifi) = &mut self.wifi else { return is_first };
        let wireless = wifi.interfaces().unwrap_or_default();
        let ports = radios(ports);
        self.list = ports
            .filter_map(|port| {
                let (at, found) = port.medium.chain.iter().find_map(|at| Some((*at, wireless.get(at)?)))?;
                let name = if Some(at) == port.ifindex { Some(port.name.as_str()) } else { None };
                Radio::look(wifi, port.ifindex?, *found, name)
            })
            .collect();
        is_first || self.list.iter().map(|radio| radio.ifindex).ne(before)
    }
}

fn radios(ports: &[Port]) -> impl Iterator<Item = &Port> {
    ports.iter().filter(|port| port.medium.is_radio && port.ifindex.is_some())
}

impl Radio {
    /// What its driver, debugfs and hostapd's file say of it; `name`: of the access point.
    pub(crate) fn look(wifi: &mut Nl80211, ifindex: u32, found: Wireless, name: Option<&str>) -> Option<Self> {
        let is_access_point = found.radio == stations::Radio::AccessPoint;
        let wiphy = wifi.wiphy(found.wiphy).ok()?;
        let aql = Files::of(FOLDER.as_ref(), &wiphy.name).and_then(|files| {
            let [.., best_effort, _] = files.limits()?;
            let us = |us: u32| Span::from_micros(us.into());
            let threshold = us(files.threshold()?);
            Ok(Aql { low: us(best_effort.low_us), high: us(best_effort.high_us), threshold })
        });
        let edca =
            name.filter(|_| is_access_point).and_then(hostapd::contention).map(|[.., best_effort, _]| best_effort);
        let aql = aql.ok().filter(|_| wiphy.has_aql);
        let mut radio =
            Self { ifindex, is_access_point, aql, edca, wiphy, is_own: name.is_some(), below: Ok(Span::ZERO) };
        radio.below = radio.look_below(FOLDER.as_ref());
        Some(radio)
    }

    /// Most that waits below mac80211's flow queues, which serve flows in turn, where AQL bounds it: its threshold, and what the kernel begins with
    /// where that is not told, or is less. More than that is not little, and where more waits, downloads show it. Else why it is not bounded.
    fn look_below(&self, folder: &Path) -> Result<Span, &'static str> {
        if !self.is_own {
            return Err("it is no interface of the radio itself, and nobody tells what waits for its stations");
        }
        if !self.wiphy.has_aql {
            return Err(NO_AQL);
        }
        if self.wiphy.txq.is_none() {
            return Err("the driver has queues of its own, and does not use those of mac80211");
        }
        let files = Files::of(folder, &self.wiphy.name).ok();
        if files.as_ref().and_then(|files| files.is_enabled().ok()) == Some(false) {
            return Err("AQL is switched off (aql_enable in debugfs)");
        }
        let usual = Aql::default().threshold;
        let threshold = files.and_then(|files| files.threshold().ok());
        Ok(threshold.map_or(usual, |us| Span::from_micros(us.into()).min(usual)))
    }

    pub(crate) fn phy(&self) -> String {
        self.wiphy.name.clone()
    }

    /// Its driver has attempts for stations and traffic identifiers.
    pub(crate) fn has_tid_retries(&self) -> bool {
        let config = TidConfig { retry_short: Some(1), retry_long: Some(1), ..TidConfig::default() };
        self.wiphy.tid_support & config.takes() == config.takes() && self.wiphy.tid_retries > 0
    }

    /// Its queues, where mac80211 keeps them.
    pub(crate) fn queue(&self) -> Option<(Place, [u32; 3])> {
        let Txq { limit, memory_bytes, quantum_bytes } = self.wiphy.txq?;
        Some((Place::Txq { wiphy: self.wiphy.number }, [limit, memory_bytes, quantum_bytes]))
    }

    /// What is in force of a lever, or why it does not work here.
    pub(crate) fn found(&self, lever: Lever) -> Result<Setting, &'static str> {
        match lever {
            Lever::Class => Ok(Setting::Class(false)),
            Lever::Aql if !self.wiphy.has_aql => Err(NO_AQL),
            Lever::Aql => self.aql.map(Setting::Aql).ok_or(
                "the kernel shows no limits of air time: it has no CONFIG_MAC80211_DEBUGFS, debugfs is not mounted, or this is not root",
            ),
            Lever::Txop if !self.is_access_point => Err("it is no access point"),
            Lever::Txop => {
                let Edca { aifs, cw_min, cw_max, txop_32us } = self
                    .edca
                    .ok_or("nobody tells what to put back: no hostapd runs here whose configuration can be read")?;
                let txop = Span::from_micros(32 * u64::from(txop_32us));
                Ok(Setting::Txop(Contention { aifsn: aifs, cw_min, cw_max, txop }))
            }
            Lever::Weights if self.wiphy.has_weights => Ok(Setting::Weights(false)),
            Lever::Weights => Err("the driver does not share air time by weights"),
            Lever::Attempts if self.has_tid_retries() || self.wiphy.retries.is_some() => Ok(Setting::Attempts(false)),
            Lever::Attempts => Err("the driver has no retry limits"),
            Lever::StationTxop => Err("hostapd tells stations how to contend, and takes no orders from here"),
            Lever::Aggregate => Err("Linux has no call that limits an aggregate's bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::levers::wiphy::Retries;

    fn radio(wiphy: Wiphy) -> Radio {
        Radio { ifindex: 3, is_access_point: true, wiphy, aql: None, edca: None, is_own: true, below: Err("") }
    }

    /// A radio with AQL and mac80211's queues.
    fn with_flow_queues() -> Radio {
        let txq = Some(Txq { limit: 8_192, memory_bytes: 16 << 20, quantum_bytes: 300 });
        radio(Wiphy { name: "phy0".to_owned(), has_aql: true, txq, ..Wiphy::default() })
    }

    #[test]
    fn below_flow_queues_waits_what_aql_allows_and_elsewhere_nobody_knows() {
        let folder = tempfile::tempdir().unwrap();
        let phy = folder.path().join("phy0");
        let below = |radio: &Radio| radio.look_below(folder.path());
        let own = with_flow_queues();
        assert_eq!(below(&own), Ok(Span::from_millis(24)), "a kernel that shows no limits");
        std::fs::create_dir(&phy).unwrap();
        for (threshold, expected) in [("24000\n", 24), ("12000\n", 12), ("500000\n", 24), ("broken", 24)] {
            std::fs::write(phy.join("aql_threshold"), threshold).unwrap();
            assert_eq!(below(&own), Ok(Span::from_millis(expected)), "{threshold:?}");
        }
        std::fs::write(phy.join("aql_enable"), "0\n").unwrap();
        assert!(below(&own).unwrap_err().contains("aql_enable"));
        std::fs::write(phy.join("aql_enable"), "1\n").unwrap();
        assert!(below(&own).is_ok());
        let other = |change: fn(&mut Radio)| {
            let mut radio = with_flow_queues();
            change(&mut radio);
            below(&radio).unwrap_err()
        };
        assert_eq!(other(|radio| radio.wiphy.has_aql = false), NO_AQL);
        assert!(other(|radio| radio.wiphy.txq = None).contains("queues of its own"));
        assert!(other(|radio| radio.is_own = false).contains("no interface of the radio itself"));
    }

    #[test]
    fn what_a_lever_or_somebody_moves_is_seen_within_a_second() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("phy0")).unwrap();
        let mut radios = Radios::made_up(vec![with_flow_queues()], folder.path().to_owned());
        let mut at = |ms: u64, threshold: &str| {
            std::fs::write(folder.path().join("phy0/aql_threshold"), threshold).unwrap();
            radios.watch(Time::ZERO + Span::from_millis(ms));
            radios.at(3).unwrap().below
        };
        let ms = Span::from_millis;
        assert_eq!([at(0, "24000"), at(999, "12000"), at(1_000, "12000")], [Ok(ms(24)), Ok(ms(24)), Ok(ms(12))]);
    }

    #[test]
    fn a_lever_works_where_driver_kernel_and_hostapd_have_it() {
        let bare = radio(Wiphy::default());
        assert_eq!(bare.found(Lever::Class), Ok(Setting::Class(false)));
        for lever in [Lever::Aql, Lever::Txop, Lever::Weights, Lever::Attempts, Lever::StationTxop, Lever::Aggregate] {
            assert!(bare.found(lever).is_err_and(|why| !why.is_empty()), "{lever:?}");
        }
        let retries = Some(Retries { short: 7, long: 4 });
        let mut whole = radio(Wiphy { has_aql: true, has_weights: true, retries, ..Wiphy::default() });
        assert!(whole.found(Lever::Aql).unwrap_err().contains("CONFIG_MAC80211_DEBUGFS"));
        whole.aql = Some(Aql::default());
        whole.edca = Some(Edca { aifs: 3, cw_min: 15, cw_max: 63, txop_32us: 63 });
        assert_eq!(whole.found(Lever::Aql), Ok(Setting::Aql(Aql::default())));
        let txop = Span::from_micros(2_016);
        assert_eq!(whole.found(Lever::Txop), Ok(Setting::Txop(Contention { aifsn: 3, cw_min: 15, cw_max: 63, txop })));
        assert_eq!(whole.found(Lever::Weights), Ok(Setting::Weights(false)));
        assert_eq!((whole.found(Lever::Attempts), whole.has_tid_retries()), (Ok(Setting::Attempts(false)), false));
        whole.is_access_point = false;
        assert!(whole.found(Lever::Txop).is_err());
    }

    #[test]
    fn attempts_are_a_stations_own_where_the_driver_has_both_limits() {
        // As ath10k (0xb80, 0x380 of it counts) and as rtw89, which has aggregation alone (Linux 6.12).
        for (tid_support, tid_retries, has) in [(0x1b80 | 1 << 6, 30, true), (1 << 9 | 1 << 11, 0, false)] {
            let radio = radio(Wiphy { tid_support, tid_retries, ..Wiphy::default() });
            assert_eq!(radio.has_tid_retries(), has, "{tid_support:#x}");
            assert_eq!(radio.found(Lever::Attempts).is_ok(), has);
        }
    }
}

//! What can be set, and the machine that it is set on.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::debugfs::{self, CLASSES, Files, Limit};
use super::wiphy::{self, Edca, Retries, TidConfig, Txq};
use crate::stations::{Mac, Nl80211};

/// One thing that can be set.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Place {
    /// Retry limits of a radio: short, long.
    Retries {
        /// Number of the radio.
        wiphy: u32,
    },
    /// Queues of a radio: packets, bytes, quantum.
    Txq {
        /// Number of the radio.
        wiphy: u32,
    },
    /// How an access point contends in a class: AIFS, smallest and largest window, TXOP in 32 us.
    Edca {
        /// Number of the interface.
        ifindex: u32,
        /// 0 voice, 1 video, 2 best effort, 3 background.
        class: u8,
    },
    /// Air-time weight of a station.
    Weight {
        /// Number of the interface.
        ifindex: u32,
        /// The station.
        mac: Mac,
    },
    /// Retries for traffic identifiers of a station: short, long.
    Attempts {
        /// Number of the interface.
        ifindex: u32,
        /// The station.
        mac: Mac,
        /// Traffic identifiers, a bit each.
        tids: u16,
    },
    /// Limits of air time in the hardware: low, high, us.
    Aql {
        /// Name of the radio.
        phy: String,
        /// As above.
        class: u8,
    },
    /// Their threshold, us.
    AqlThreshold {
        /// Name of the radio.
        phy: String,
    },
}

/// What stands at a place.
pub type Values = Vec<u32>;

impl Place {
    /// How many values stand there.
    const fn count(&self) -> usize {
        match self {
            Self::Retries { .. } | Self::Attempts { .. } | Self::Aql { .. } => 2,
            Self::Txq { .. } => 3,
            Self::Edca { .. } => 4,
            Self::Weight { .. } | Self::AqlThreshold { .. } => 1,
        }
    }

    /// The station that it is a setting of, if it is one's.
    #[must_use]
    pub const fn station(&self) -> Option<&Mac> {
        match self {
            Self::Weight { mac, .. } | Self::Attempts { mac, .. } => Some(mac),
            _ => None,
        }
    }

    /// What is there when nobody has set anything, where no one could be asked: the driver's own way.
    pub(super) fn own_way(&self) -> Option<Values> {
        matches!(self, Self::Attempts { .. }).then(|| vec![0, 0])
    }
}

fn station(mac: &Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |class: &u8| CLASSES.get(usize::from(*class)).copied().unwrap_or("?");
        match self {
            Self::Retries { wiphy } => write!(f, "radio {wiphy}: retry limits, short and long"),
            Self::Txq { wiphy } => write!(f, "radio {wiphy}: queues, packets, bytes and quantum"),
            Self::Edca { ifindex, class } => {
                write!(f, "interface {ifindex}: contention of {}, AIFS, windows, TXOP x 32 us", name(class))
            }
            Self::Weight { mac, .. } => write!(f, "station {}: air-time weight", station(mac)),
            Self::Attempts { mac, tids, .. } => {
                write!(f, "station {}: retries of traffic {tids:#04x}, short and long", station(mac))
            }
            Self::Aql { phy, class } => write!(f, "{phy}: air time in hardware of {}, low and high, us", name(class)),
            Self::AqlThreshold { phy } => write!(f, "{phy}: air time in hardware of all, us"),
        }
    }
}

/// Values as people read them.
#[must_use]
pub fn text(values: &[u32]) -> String {
    values.iter().map(u32::to_string).collect::<Vec<_>>().join(" / ")
}

/// The machine that has them.
#[derive(Debug)]
pub struct Machine {
    wifi: Option<Nl80211>,
    debugfs: PathBuf,
}

impl Machine {
    /// This one, with its debugfs of radios at `debugfs`.
    #[must_use]
    pub fn new(debugfs: PathBuf) -> Self {
        Self { wifi: None, debugfs }
    }

    /// Where its debugfs has radios.
    #[must_use]
    pub fn debugfs(&self) -> &Path {
        &self.debugfs
    }

    fn wifi(&mut self) -> io::Result<&mut Nl80211> {
        match &mut self.wifi {
            Some(wifi) => Ok(wifi),
            none => Ok(none.insert(Nl80211::open()?)),
        }
    }

    /// What stands there; `None` where nobody tells.
    ///
    /// # Errors
    /// When there is no such place, or asking is refused.
    pub fn read(&mut self, place: &Place) -> io::Result<Option<Values>> {
        let absent = || io::Error::from_raw_os_error(libc::EOPNOTSUPP);
        let values = match place {
            Place::Retries { wiphy } => {
                let Retries { short, long } = self.wifi()?.wiphy(*wiphy)?.retries.ok_or_else(absent)?;
                vec![short.into(), long.into()]
            }
            Place::Txq { wiphy } => {
                let Txq { limit, memory_bytes, quantum_bytes } = self.wifi()?.wiphy(*wiphy)?.txq.ok_or_else(absent)?;
                vec![limit, memory_bytes, quantum_bytes]
            }
            Place::Edca { .. } | Place::Attempts { .. } => return Ok(None),
            Place::Weight { ifindex, mac } => {
                let all = self.wifi()?.stations(*ifindex)?;
                let gone = || io::Error::from_raw_os_error(libc::ENOENT);
                let station = all.into_iter().find(|station| station.mac == *mac).ok_or_else(gone)?;
                vec![station.weight.ok_or_else(absent)?.into()]
            }
            Place::Aql { phy, class } => {
                let limits = Files::of(&self.debugfs, phy)?.limits()?;
                let Limit { low_us, high_us } = limits.get(usize::from(*class)).ok_or_else(absent)?;
                vec![*low_us, *high_us]
            }
            Place::AqlThreshold { phy } => vec![Files::of(&self.debugfs, phy)?.threshold()?],
        };
        Ok(Some(values))
    }

    /// Sets it.
    ///
    /// # Errors
    /// What the kernel or the driver refuses; `EINVAL` for values that do not belong there.
    pub fn write(&mut self, place: &Place, values: &[u32]) -> io::Result<()> {
        let wrong = || io::Error::from_raw_os_error(libc::EINVAL);
        if values.len() != place.count() {
            return Err(wrong());
        }
        let byte = |at: usize| u8::try_from(values[at]).map_err(|_| wrong());
        let short = |at: usize| u16::try_from(values[at]).map_err(|_| wrong());
        let message = match place {
            Place::Retries { wiphy } => wiphy::set_retries(*wiphy, Retries { short: byte(0)?, long: byte(1)? }),
            Place::Txq { wiphy } => {
                let txq = Txq { limit: values[0], memory_bytes: values[1], quantum_bytes: values[2] };
                wiphy::set_txq(*wiphy, txq)
            }
            Place::Edca { ifindex, class } => {
                let edca = Edca { aifs: byte(0)?, cw_min: short(1)?, cw_max: short(2)?, txop_32us: short(3)? };
                wiphy::set_edca(*ifindex, *class, edca)
            }
            Place::Weight { ifindex, mac } => wiphy::set_weight(*ifindex, *mac, short(0)?),
            Place::Attempts { ifindex, mac, tids } => {
                let most = |at: usize| byte(at).map(|most| (most > 0).then_some(most));
                let config = TidConfig { retry_short: most(0)?, retry_long: most(1)?, ..TidConfig::default() };
                wiphy::set_tid_config(*ifindex, *mac, *tids, config)
            }
            Place::Aql { phy, class } => {
                let limit = Limit { low_us: values[0], high_us: values[1] };
                return Files::of(&self.debugfs, phy)?.set_limit(*class, limit);
            }
            Place::AqlThreshold { phy } => return Files::of(&self.debugfs, phy)?.set_threshold(values[0]),
        };
        self.wifi()?.set(&message)
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self::new(PathBuf::from(debugfs::FOLDER))
    }
}

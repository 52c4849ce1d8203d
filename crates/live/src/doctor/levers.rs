//! Which levers of a radio work here, and what moves none although it can be set.

use super::Check;
use crate::controller::{below_flow_queues, levers_of};
use crate::interface::{self, InterfaceName};
use lasthop_core::levers::Lever;

const NAME: &str = "levers";

/// Drivers over mac80211 that act on a radio's retry limits: those with `IEEE80211_CONF_CHANGE_RETRY_LIMITS` in Linux 6.12. mac80211 itself takes
/// the limits for every driver, and its own rate control does not ask for them.
const ACT_ON_RETRIES: [&str; 9] =
    ["ath5k", "b43", "b43legacy", "brcmsmac", "cw1200", "rt2400pci", "rt2500pci", "rt61pci", "rt73usb"];
/// The same of drivers whose names begin like this.
const FAMILIES_THAT_ACT: [&str; 1] = ["rt2800"];
/// Drivers that are their own MAC and act on them in `set_wiphy_params`, likewise.
const OWN_MAC: [&str; 5] = ["brcmfmac", "mwifiex", "qtnfmac", "wil6210", "wilc1000"];

/// Of one interface: nothing where it is no radio.
pub(super) fn checks(name: &InterfaceName) -> Vec<Check> {
    let Some(found) = levers_of(name) else { return Vec::new() };
    let works: Vec<_> = found.iter().filter(|(_, found)| found.is_ok()).collect();
    let not: Vec<_> = found.iter().filter_map(|(lever, found)| Some((lever, found.as_ref().err()?))).collect();
    let mut detail = works
        .iter()
        .map(|(lever, setting)| match setting {
            Ok(setting) => format!("{} ({setting} now)", lever.name()),
            Err(_) => String::new(),
        })
        .collect::<Vec<_>>()
        .join(", ");
    detail += "; `levers = \"auto\"` tries them, attempts `mac = \"auto\"`";
    for (lever, why) in &not {
        detail += &format!("; not {}: {why}", lever.name());
    }
    let mut checks = vec![Check::ok(NAME, format!("{name}: can be moved: {detail}"))];
    let line = match below_flow_queues(name) {
        Some(Ok(below)) => format!(
            "are left to its own fair queue (mac80211 with AQL) while sparse flows have a class: no more than {} waits below it",
            below.rounded()
        ),
        Some(Err(why)) => format!("are held: {why}"),
        None => return checks,
    };
    checks.push(Check::ok("fair queue", format!("{name}: downloads {line}")));
    let driver = interface::driver(name);
    if works.iter().any(|(lever, _)| *lever == Lever::Attempts) && !acts_on_retries(&driver) {
        checks.push(Check::warning(
            "retry limits",
            format!("{name}: they can be set, and the driver {driver} is not known to act on them (Linux 6.12)"),
            "see `lasthop status` whether attempts follow what is set; without that leave mac = \"off\"",
        ));
    }
    checks
}

fn acts_on_retries(driver: &str) -> bool {
    ACT_ON_RETRIES.iter().chain(&OWN_MAC).any(|known| *known == driver || driver.starts_with(&format!("{known}_")))
        || FAMILIES_THAT_ACT.iter().any(|family| driver.starts_with(family))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_are_told_by_their_names() {
        for (driver, acts) in [
            ("rt2800usb", true),
            ("mwifiex_pcie", true),
            ("brcmfmac", true),
            ("ath9k", false),
            ("mt7915e", false),
            ("", false),
        ] {
            assert_eq!(acts_on_retries(driver), acts, "{driver}");
        }
    }

    #[test]
    fn what_is_no_radio_has_no_levers() {
        assert!(checks(&"lo".parse().unwrap()).is_empty());
    }
}

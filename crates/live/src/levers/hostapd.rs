//! How an access point contends, by hostapd's configuration: nl80211 sets it and tells it to nobody, and what cannot be put back is not set.
//!
//! hostapd sets all four classes when it starts: by `tx_queue_data0_aifs` and so on where its file has them, else by what it was built
//! with. The file is the one that a running hostapd was started with and that names the interface.
//! Source: `hostapd.conf`, `hostapd_config_defaults` and `nl80211`'s driver of hostapd 2.10 (`txop = (burst x 100 + 16) / 32`).

use std::fs;
use std::path::Path;

use super::wiphy::Edca;

/// What it sets without a word in its file: voice, video, best effort, background, in the order of its queues 0 to 3.
const USUAL: [Edca; 4] = [
    Edca { aifs: 1, cw_min: 3, cw_max: 7, txop_32us: 47 },
    Edca { aifs: 1, cw_min: 7, cw_max: 15, txop_32us: 94 },
    Edca { aifs: 3, cw_min: 15, cw_max: 63, txop_32us: 0 },
    Edca { aifs: 7, cw_min: 15, cw_max: 1_023, txop_32us: 0 },
];
/// A longer file is not hostapd's, bytes.
const LONGEST: u64 = 256 * 1024;

/// How the access point `interface` contends in each class, where a hostapd runs it whose file can be read.
#[must_use]
pub fn contention(interface: &str) -> Option<[Edca; 4]> {
    let processes = fs::read_dir("/proc").ok()?;
    processes.flatten().find_map(|process| {
        let line = fs::read(process.path().join("cmdline")).ok()?;
        let mut words = line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let program = words.next()?;
        if Path::new(&*program).file_name()? != "hostapd" {
            return None;
        }
        let place = process.path().join("cwd");
        words.filter(|word| !word.starts_with('-') && !word.is_empty()).find_map(|word| {
            // Where it was started; an absolute name stays one.
            let file = place.join(&*word);
            let is_file = fs::metadata(&file).is_ok_and(|about| about.is_file() && about.len() <= LONGEST);
            read(&fs::read_to_string(file).ok().filter(|_| is_file)?, interface)
        })
    })
}

/// What a file says of the radio of `interface`; `None` where it does not name it, or a value of it is none.
#[must_use]
pub fn read(text: &str, interface: &str) -> Option<[Edca; 4]> {
    let mut found = USUAL;
    let mut is_it = false;
    for line in text.lines() {
        let Some((key, value)) = line.trim_end().split_once('=') else { continue };
        is_it |= matches!(key, "interface" | "bss") && value == interface;
        let Some((queue, what)) = key.strip_prefix("tx_queue_data").and_then(|rest| rest.split_once('_')) else {
            continue;
        };
        let of_class = found.get_mut(queue.parse::<usize>().ok()?)?;
        match what {
            "aifs" => of_class.aifs = value.parse().ok()?,
            "cwmin" => of_class.cw_min = value.parse().ok()?,
            "cwmax" => of_class.cw_max = value.parse().ok()?,
            "burst" => of_class.txop_32us = burst(value)?,
            _ => return None,
        }
    }
    is_it.then_some(found)
}

/// Milliseconds with at most one digit behind the point, in steps of 32 us.
fn burst(value: &str) -> Option<u16> {
    let (whole, tenth) = value.split_once('.').unwrap_or((value, "0"));
    let tenths = whole.parse::<u32>().ok()?.checked_mul(10)?.checked_add(u32::from(tenth.parse::<u8>().ok()?))?;
    if tenth.len() != 1 {
        return None;
    }
    tenths.checked_mul(100)?.checked_add(16).map(|us| us / 32)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_does_not_say_is_as_hostapd_has_it() {
        assert_eq!(read("interface=wlan0\nssid=x\n", "wlan0"), Some(USUAL));
        assert_eq!(read("interface=wlan0\nbss=wlan0-1\n", "wlan0-1"), Some(USUAL));
        assert_eq!(read("interface=wlan0\n", "wlan1"), None);
        assert_eq!(read("#interface=wlan0\n", "wlan0"), None);
    }

    /// As hostapd 2.10 was recorded to do: 2.0 ms are 63, 1.5 ms are 47, 3.0 ms are 94.
    #[test]
    fn bursts_become_steps_as_hostapd_makes_them() {
        assert_eq!(["2.0", "1.5", "3.0", "0", "6"].map(burst), [63, 47, 94, 0, 188].map(Some));
        assert_eq!(["", ".", "2.05", "-1", "x", "400000"].map(burst), [None; 6]);
        let found = read("interface=wlan0\ntx_queue_data2_burst=2.0\ntx_queue_data2_cwmax=127\n", "wlan0").unwrap();
        assert_eq!(found[2], Edca { aifs: 3, cw_min: 15, cw_max: 127, txop_32us: 63 });
    }

    #[test]
    fn a_value_that_is_none_makes_the_whole_unknown() {
        for line in ["tx_queue_data2_aifs=300", "tx_queue_data9_aifs=1", "tx_queue_data2_x=1", "tx_queue_datax_aifs=1"]
        {
            assert_eq!(read(&format!("interface=wlan0\n{line}\n"), "wlan0"), None, "{line}");
        }
    }
}

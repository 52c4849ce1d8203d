//! The air of the demo's home, and what is around it.
//!
//! `ac` is the default because most homes have it: of the tests that Ookla saw over Wi-Fi in the United Kingdom in 2025, 51 % went over
//! Wi-Fi 5 (802.11ac), 31 % over Wi-Fi 6 (ax), 17 % over Wi-Fi 4 (n) and 0.3 % over Wi-Fi 7; its report has the same order for most of
//! Europe (ISPreview, "Ookla Examine WiFi 6 vs 7 Performance", 2025). Stations of ac and ax have one stream over 80 MHz, as a
//! small phone has: what two would bring is beyond what the emulator carries in time on two cores. Those of n have two over 20 MHz.
//!
//! With n, ac and ax the line and the servers have 1 Gbit/s, so that the air is where packets wait, as 802.11g's is at the paper's
//! 100 Mbit/s.

use serde::Serialize;

/// Packets in the access point's queue where there are aggregates: the length that Linux gives an interface, and with it a driver
/// whose queue is one for all. The paper's 50 are little more than one aggregate.
const DEEP: u32 = 1000;
/// Of the SAP-LAW paper.
const PAPER: u32 = 50;

/// Generation of the access point and its stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Air {
    /// 802.11ax (Wi-Fi 6), 80 MHz, one stream
    Ax,
    /// 802.11ac (Wi-Fi 5), 80 MHz, one stream; what most homes have
    Ac,
    /// 802.11n (Wi-Fi 4), 20 MHz, two streams
    N,
    /// 802.11g, 54 Mbit/s, as in the SAP-LAW paper
    G,
}

impl Air {
    /// As the demo's text has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ax => "802.11ax (Wi-Fi 6, 80 MHz, one stream, 432 Mbit/s)",
            Self::Ac => "802.11ac (Wi-Fi 5, 80 MHz, one stream, 433 Mbit/s)",
            Self::N => "802.11n (Wi-Fi 4, 20 MHz, two streams, 144 Mbit/s)",
            Self::G => "802.11g (54 Mbit/s)",
        }
    }

    /// Packets in the access point's queue.
    pub const fn queue(self) -> u32 {
        match self {
            Self::G => PAPER,
            Self::Ax | Self::Ac | Self::N => DEEP,
        }
    }

    /// What it changes of the paper's home.
    pub fn overrides(self) -> Vec<String> {
        let (standard, band, width, streams, mcs, guard) = match self {
            Self::G => return Vec::new(),
            Self::N => ("802.11n", "2.4GHz", "20MHz", 2, 7, "400ns"),
            Self::Ac => ("802.11ac", "5GHz", "80MHz", 1, 9, "400ns"),
            Self::Ax => ("802.11ax", "5GHz", "80MHz", 1, 8, "800ns"),
        };
        let mut sets = vec![
            "wifi.rate=none".to_owned(),
            format!("wifi.standard={standard}"),
            format!("wifi.band={band}"),
            format!("wifi.width={width}"),
            format!("wifi.streams={streams}"),
            format!("wifi.mcs={mcs}"),
            format!("wifi.guard_interval={guard}"),
            format!("wifi.station_queue.limit={DEEP}"),
        ];
        for wire in ["wan.rate_down", "wan.rate_up", "server.W1.rate", "server.W2.rate", "server.W3.rate"] {
            sets.push(format!("{wire}=1Gbit/s"));
        }
        // The paper's 140 packets are 1.7 ms of such a line.
        for buffer in ["wan.buffer_down", "wan.buffer_up", "server.W1.buffer", "server.W2.buffer", "server.W3.buffer"] {
            sets.push(format!("{buffer}=1400"));
        }
        sets
    }
}

//! What a configuration that was read again changes, and what of it a running controller can take.

use std::fmt::Display;

use lasthop_core::ap::{Law, RttSource};
use lasthop_core::units::{Bytes, Span};

use super::{Capacity, Config, read};

/// A key whose value is another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its name; of a parameter of the law with `law.` in front.
    pub key: String,
    /// As the file has it.
    pub before: String,
    /// The same, now.
    pub after: String,
    /// A running controller keeps the value before.
    pub waits_for_restart: bool,
}

/// The sockets are made, and the table of connections, the hooks and the process that sets levers, before rights are given up.
const AT_START: [&str; 7] = ["flows", "attach", "levers", "mac", "mac_queue", "socket", "socket_group"];
/// What decides whether the programs hand packets to a queue of this process; where they would be others, they are loaded at the start.
const OF_PROGRAMS: [&str; 4] = ["queueing", "datapath", "snoop", "dry_run"];

impl Config {
    /// What a controller that runs with this one has after it read `wanted`: all of it, but the old values of keys that wait for a
    /// restart; and every change, in the order of the sample.
    #[must_use]
    pub fn adopt(&self, mut wanted: Self) -> (Self, Vec<Change>) {
        let mut after = wanted.values();
        let waits = |key: &str| AT_START.contains(&key) || (OF_PROGRAMS.contains(&key) && self.loads_others(&wanted));
        let changes = self.values().into_iter().zip(after.drain(..)).filter(|(before, after)| before != after);
        let changes: Vec<_> = changes
            .map(|((key, before), (_, after))| Change { waits_for_restart: waits(&key), key, before, after })
            .collect();
        if self.loads_others(&wanted) {
            (wanted.queueing, wanted.datapath) = (self.queueing, self.datapath);
            (wanted.snoop, wanted.dry_run) = (self.snoop, self.dry_run);
        }
        (wanted.flows, wanted.attach) = (self.flows, self.attach);
        (wanted.levers, wanted.mac, wanted.mac_queue) = (self.levers.clone(), self.mac, self.mac_queue);
        (wanted.socket, wanted.socket_group) = (self.socket.clone(), self.socket_group.clone());
        (wanted, changes)
    }

    /// `wanted` takes other programs, whatever the size of its table.
    fn loads_others(&self, wanted: &Self) -> bool {
        let (ours, theirs) = (self.programs(), wanted.programs());
        (ours.diverts, ours.catches) != (theirs.diverts, theirs.catches)
    }

    /// Every key with its value as a file has it, in the order of the sample. The law's parameters are by their own names, but those two
    /// that keys of their own name.
    fn values(&self) -> Vec<(String, String)> {
        let (snoop, chap) = (&self.snoop_params, &self.chap);
        let names: Vec<_> = self.lan.iter().map(quoted).collect();
        let lan = if names.is_empty() { quoted(super::AUTO) } else { format!("[{}]", names.join(", ")) };
        let levers: Vec<_> = self.levers.iter().map(|lever| quoted(lever.name())).collect();
        let levers = match self.levers.as_slice() {
            [] => quoted("off"),
            all if all == read::LEVERS => quoted(super::AUTO),
            _ => format!("[{}]", levers.join(", ")),
        };
        let rtt = match self.rtt {
            RttSource::Measured => quoted("measured"),
            RttSource::Constant(rtt) => quoted(rtt),
        };
        let seconds = |name| quoted(Span::from_secs_f64(self.law.get(name).unwrap_or_default()));
        let rows = [
            ("lan", lan),
            ("wan", optional(self.wan.as_ref())),
            ("capacity", quoted(self.capacity)),
            ("link", optional(self.link)),
            ("interval", optional(self.interval)),
            ("share", name(&read::SHARES, self.share)),
            ("udp_weight", self.udp_weight.to_string()),
            ("rtt", rtt),
            ("queue", seconds("queue_target")),
            ("growth", seconds("growth_time")),
            ("flows", self.flows.to_string()),
            ("idle", quoted(self.idle)),
            ("attach", name(&read::ATTACH_MODES, self.attach)),
            ("windows", self.windows.to_string()),
            ("window_updates", self.window_updates.to_string()),
            ("queueing", name(&read::QUEUES, self.queueing)),
            ("datapath", name(&read::DATAPATHS, self.datapath)),
            ("snoop", self.snoop.to_string()),
            ("snoop_timer", quoted(snoop.least_timer)),
            ("snoop_retries", snoop.retries.to_string()),
            ("snoop_duplicates", snoop.duplicates.to_string()),
            ("snoop_connections", snoop.connections.to_string()),
            ("snoop_connection_bytes", quoted(Bytes(snoop.connection_bytes))),
            ("snoop_bytes", quoted(Bytes(snoop.bytes))),
            ("packet_time", quoted(chap.packet_time)),
            ("increment", quoted(chap.increment)),
            ("flow_key", name(&read::FLOW_KINDS, chap.flow_kind)),
            ("limit", chap.limit.to_string()),
            ("duplex", name(&read::DUPLEXES, self.duplex)),
            ("levers", levers),
            ("mac", name(&read::MAC, self.mac)),
            ("mac_queue", self.mac_queue.map_or_else(|| "its default".to_owned(), |packets| packets.to_string())),
            ("dry_run", self.dry_run.to_string()),
            ("socket", quoted(self.socket.display())),
            ("socket_group", quoted(&self.socket_group)),
            ("log_format", name(&read::LOG_FORMATS, self.log_format)),
        ];
        let own = ["queue_target", "growth_time"];
        let law = Law::PARAMETERS.iter().filter(|parameter| !own.contains(&parameter.name));
        let law = law.map(|p| (format!("law.{}", p.name), self.law.get(p.name).unwrap_or_default().to_string()));
        rows.into_iter().map(|(key, value)| (key.to_owned(), value)).chain(law).collect()
    }
}

impl Display for Capacity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Learn => f.write_str("learn"),
            Self::Rate(rate) => write!(f, "{rate}"),
            // As it was written: 0.07 x 100 is not quite 7.
            Self::Share(share) => write!(f, "{}%", (share * 1e8).round() / 1e6),
        }
    }
}

fn quoted(value: impl Display) -> String {
    format!("\"{value}\"")
}

fn optional(value: Option<impl Display>) -> String {
    value.map_or_else(|| "its default".to_owned(), quoted)
}

fn name<T: Copy + PartialEq>(choices: &[(&str, T)], value: T) -> String {
    quoted(choices.iter().find(|(_, choice)| *choice == value).map_or("", |(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Datapath, Queueing};

    fn keys(changes: &[Change]) -> Vec<(&str, bool)> {
        changes.iter().map(|change| (change.key.as_str(), change.waits_for_restart)).collect()
    }

    #[test]
    fn every_key_is_compared_and_its_value_said_as_a_file_has_it() {
        let all = super::super::tests::EVERY_KEY;
        let config = Config::parse(all, "x").unwrap();
        let text: String = config.values().into_iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        assert_eq!(Config::parse(&text, "values").unwrap(), config);
        for key in read::KEYS.iter().filter(|key| **key != "law") {
            assert!(config.values().iter().any(|(name, _)| name == key), "{key} is not compared");
        }
        let (adopted, changes) = Config::default().adopt(config.clone());
        assert_eq!(changes.len(), read::KEYS.len() - 1 + 1, "all, [law]'s gain among them: {changes:?}");
        assert_eq!((adopted.flows, adopted.dry_run), (Config::default().flows, true));
        assert!(config.adopt(config.clone()).1.is_empty());
    }

    #[test]
    fn what_takes_other_programs_or_sockets_waits_for_a_restart_and_keeps_its_value() {
        let before = Config::default();
        let wanted = Config { queueing: Queueing::Chap, flows: 2_048, udp_weight: 0.5, ..before.clone() };
        let (adopted, changes) = before.adopt(wanted);
        assert_eq!(keys(&changes), [("udp_weight", false), ("flows", true), ("queueing", true)]);
        assert_eq!(adopted, Config { udp_weight: 0.5, ..before });
        let kept = Config { queueing: Queueing::Chap, datapath: Datapath::User, ..Config::default() };
        let (adopted, changes) = kept.adopt(Config { queueing: Queueing::FqCodel, ..kept.clone() });
        assert_eq!((keys(&changes), adopted.queueing), (vec![("queueing", false)], Queueing::FqCodel));
        let (adopted, changes) = kept.adopt(Config { dry_run: true, ..kept.clone() });
        assert_eq!((keys(&changes), adopted.dry_run), (vec![("dry_run", true)], false));
    }

    #[test]
    fn a_change_says_both_values_as_they_are_written() {
        let before = Config::parse("capacity = \"7%\"\nqueue = \"2ms\"\n", "x").unwrap();
        let after = Config::parse("capacity = \"24.5Mbit/s\"\nqueue = \"4ms\"\nlaw.gain = 0.4\n", "x").unwrap();
        let (_, changes) = before.adopt(after);
        let said: Vec<_> = changes.iter().map(|c| format!("{}: {} -> {}", c.key, c.before, c.after)).collect();
        assert_eq!(said, ["capacity: \"7%\" -> \"24.5Mbit/s\"", "queue: \"2ms\" -> \"4ms\"", "law.gain: 0.5 -> 0.4"]);
    }
}

//! What `--json` writes: schema/messages.md says what each field means.

use std::time::Duration;

use lasthop_command::REVISION;
use lasthop_messenger::client::{Client, Fetched, Metrics, Sent};
use lasthop_messenger::protocol::{Listed, TcpMetrics};
use lasthop_messenger::tuning::Tuning;
use serde::Serialize;

/// The document.
#[derive(Debug, Serialize)]
pub struct Written {
    format: u32,
    revision: &'static str,
    command: &'static str,
    server: String,
    account: String,
    tuning: Tuning,
    messages: Vec<Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
enum Message {
    Sent {
        message: u64,
        to: String,
        name: String,
        bytes: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        sound_s: Option<f64>,
        #[serde(flatten)]
        metrics: Transfer,
    },
    Fetched {
        message: u64,
        from: String,
        name: String,
        file: String,
        bytes: u64,
        kept_at: u64,
        #[serde(flatten)]
        metrics: Transfer,
    },
    /// Only listed.
    Listed { message: u64, from: String, name: String, bytes: u64, kept_at: u64 },
    /// Could not be fetched.
    Missed { message: u64, from: String, name: String, bytes: u64, kept_at: u64, why: String },
}

#[derive(Debug, Serialize)]
struct Transfer {
    resumed_bytes: u64,
    took_s: f64,
    connecting_s: f64,
    storage_s: f64,
    sleeping_s: f64,
    network_s: f64,
    rereading_s: f64,
    settling_s: f64,
    tcp: Tcp,
}

#[derive(Debug, Serialize)]
struct Tcp {
    busy_s: f64,
    window_limited_s: f64,
    send_buffer_limited_s: f64,
    least_rtt_ms: f64,
    srtt_ms: f64,
    retransmitted: u32,
    cwnd: u32,
}

impl Written {
    /// Of a command that has done nothing yet.
    pub fn new(command: &'static str, client: &Client, tuning: Tuning) -> Self {
        let (server, account) = (client.account.server.clone(), client.account.account.clone());
        let (messages, failure) = (Vec::new(), None);
        Self { format: 1, revision: REVISION, command, server, account, tuning, messages, failure }
    }

    /// A message was sent.
    pub fn sent(&mut self, to: &str, name: &str, sound: Option<Duration>, sent: &Sent) {
        self.messages.push(Message::Sent {
            message: sent.message.0,
            to: to.to_owned(),
            name: name.to_owned(),
            bytes: sent.bytes,
            sound_s: sound.map(|length| length.as_secs_f64()),
            metrics: Transfer::new(sent.resumed, &sent.metrics),
        });
    }

    /// A message was fetched.
    pub fn fetched(&mut self, fetched: &Fetched) {
        let Listed { message, from, name, bytes, kept_at } = fetched.listed.clone();
        self.messages.push(Message::Fetched {
            message: message.0,
            from,
            name,
            file: fetched.file.display().to_string(),
            bytes,
            kept_at,
            metrics: Transfer::new(fetched.resumed, &fetched.metrics),
        });
    }

    /// A message was listed.
    pub fn listed(&mut self, listed: &Listed) {
        let Listed { message, from, name, bytes, kept_at } = listed.clone();
        self.messages.push(Message::Listed { message: message.0, from, name, bytes, kept_at });
    }

    /// A message could not be fetched.
    pub fn missed(&mut self, listed: &Listed, why: String) {
        let Listed { message, from, name, bytes, kept_at } = listed.clone();
        self.messages.push(Message::Missed { message: message.0, from, name, bytes, kept_at, why });
    }

    /// It all ended so.
    pub fn failed(&mut self, why: String) {
        self.failure = Some(why);
    }
}

impl Transfer {
    fn new(resumed_bytes: u64, metrics: &Metrics) -> Self {
        Self {
            resumed_bytes,
            took_s: metrics.took.as_secs_f64(),
            connecting_s: metrics.connecting.as_secs_f64(),
            storage_s: metrics.spent.storage.as_secs_f64(),
            sleeping_s: metrics.spent.asleep.as_secs_f64(),
            network_s: metrics.spent.network.as_secs_f64(),
            rereading_s: metrics.rereading.as_secs_f64(),
            settling_s: metrics.settling.as_secs_f64(),
            tcp: Tcp::new(&metrics.tcp),
        }
    }
}

impl Tcp {
    fn new(tcp: &TcpMetrics) -> Self {
        let seconds = |us: u64| us as f64 / 1e6;
        Self {
            busy_s: seconds(tcp.busy_us),
            window_limited_s: seconds(tcp.window_limited_us),
            send_buffer_limited_s: seconds(tcp.send_buffer_limited_us),
            least_rtt_ms: f64::from(tcp.least_rtt_us) / 1e3,
            srtt_ms: f64::from(tcp.srtt_us) / 1e3,
            retransmitted: tcp.retransmitted,
            cwnd: tcp.cwnd,
        }
    }
}

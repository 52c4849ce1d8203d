//! `[control.split]`: a real proxy in the access point, socat, ends connections between servers and stations and begins them anew, one
//! process for each.
//!
//! Senders connect to the access point; the flow is then watched from there to its receiver, and keeps its port in both directions. What a
//! proxy holds of a connection lies in three places: the receive buffer of one socket and the send buffer of the other, which share
//! `buffer`, and what it copies at a time, an eighth of it.

use crate::address::near;
use crate::clock;
use crate::error::Error;
use crate::home::Home;
use crate::observe::identify::FIRST_PORT;
use crate::refuse::kernel_name;
use crate::spawn::Child;
use lasthop_core::units::Span;
use lasthop_home::scenario::{Flow, HostId, Scenario, SplitControl, Tcp};
use std::process::{Command, Stdio};

/// They listen within.
const PATIENCE: Span = Span::from_secs(5);
/// How often that is looked at.
const LOOK: Span = Span::from_millis(10);
/// What is left of the other direction when one has ended, s: until a slow receiver has taken what is held.
const LEFT: u32 = 60;
/// setsockopt(2): TCP and TCP_CONGESTION.
const CONGESTION: &str = "setsockopt-string=6:13";

/// The proxies of a run; they end when this is dropped.
#[derive(Default)]
pub struct Proxies(Vec<Child>);

impl Proxies {
    /// Starts them, and waits until they listen.
    ///
    /// # Errors
    /// [`Error::NoSocat`], or one that does not listen.
    pub fn start(scenario: &Scenario, home: &Home) -> Result<Self, Error> {
        let Some(split) = &scenario.control.split else { return Ok(Self::default()) };
        let known = Command::new("socat").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
        known.map_err(Error::NoSocat)?;
        let (mut proxies, mut ports) = (Self::default(), Vec::new());
        for (flow, port) in scenario.flows.iter().zip(FIRST_PORT..) {
            let Some(tcp) = flow.tcp().filter(|_| scenario.is_split(flow)) else { continue };
            proxies.0.push(home.spawn(HostId::AccessPoint, socat(port, flow, tcp, split))?);
            ports.push(port);
        }
        let last = clock::now() + PATIENCE;
        loop {
            let tables = || std::fs::read_to_string("/proc/thread-self/net/tcp");
            let table =
                home.namespace(HostId::AccessPoint).run(|| tables().map_err(Error::system("cannot read sockets")))?;
            if ports.iter().all(|port| listens(&table, *port)) {
                return Ok(proxies);
            }
            let ended = proxies.0.iter_mut().any(|child| !matches!(child.try_wait(), Ok(None)));
            if ended || clock::now() >= last {
                let why = std::io::Error::other(if ended { "one ended at once" } else { "not within 5 s" });
                return Err(Error::system("the access point's proxies do not listen")(why));
            }
            clock::sleep_until(clock::now() + LOOK);
        }
    }
}

/// The proxy of a flow.
fn socat(port: u16, flow: &Flow, tcp: &Tcp, split: &SplitControl) -> Command {
    let ap = HostId::AccessPoint;
    let (half, copied) = (split.buffer.0 / 2, split.buffer.0 / 8);
    let congestion = kernel_name(tcp.cc).map_or_else(String::new, |name| format!(",{CONGESTION}:{name}"));
    let tos = flow.dscp.value() << 2;
    let from = format!("TCP-LISTEN:{port},bind={},reuseaddr,rcvbuf={half},tos={tos}", near(ap, flow.from));
    let to = format!(
        "TCP:{}:{port},bind={}:{port},reuseaddr,nodelay,mss={},sndbuf={half},tos={tos}{congestion}",
        near(flow.to, ap),
        near(ap, flow.to),
        tcp.mss.0
    );
    let mut command = Command::new("socat");
    command.args(["-b", &copied.to_string(), "-t", &LEFT.to_string(), &from, &to]);
    // A sender that stops in the middle of a download is no fault of the proxy's.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Whether `table`, of /proc/net/tcp, has a socket that listens at `port`.
fn listens(table: &str, port: u16) -> bool {
    let port = format!(":{port:04X}");
    let is_it = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        words.next().is_some_and(|own| own.ends_with(&port)) && words.nth(1) == Some("0A")
    };
    table.lines().any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_socket_is_found_by_its_port_and_state() {
        let table = "  sl  local_address rem_address   st tx_queue\n   0: 0100010A:4E20 00000000:0000 0A 00000000:00000000\n\
                     \x20  1: 0100010A:4E21 0101010A:4E21 01 00000000:00000000\n";
        assert!(listens(table, 0x4e20) && !listens(table, 0x4e21) && !listens(table, 0x0e20));
    }
}

//! How the network of one host is set up: the lines for `ip -batch` and the kernel's settings.
//!
//! No frame is ever spent on finding neighbours: entries are permanent, duplicate address detection and router
//! solicitation are off. The settings stand in `schema/namespace.conf`, each with its reason: a run comes out the same
//! whatever the machine is set to.

use crate::address::{AddressPlan, Mac, Port, near};
use crate::error::Error;
use crate::tap::QUEUE;
use lasthop_home::scenario::HostId;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Stdio};

/// What every namespace is set to, and how its routes end.
const SETTINGS: &str = include_str!("../../../schema/namespace.conf");

/// Keys and values of [`SETTINGS`], in their order.
fn listed() -> impl Iterator<Item = (&'static str, &'static str)> {
    SETTINGS.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" = "))
}

/// What ends every route: the congestion control of programs that do not choose. Players choose after they connected.
fn route_words() -> &'static str {
    listed().find(|(key, _)| *key == "route").map_or("", |(_, words)| words)
}

/// The root queue discipline of every interface.
fn queue_discipline() -> &'static str {
    listed().find(|(key, _)| *key == "qdisc").map_or("pfifo_fast", |(_, kind)| kind)
}

/// What a flow asks of the route between two hosts, because the kernel has no socket option for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteHints {
    /// Initial congestion window, segments.
    pub initial_window: Option<u32>,
    /// Acknowledge every segment at once.
    pub quick_ack: bool,
    /// Ask for congestion marks (RFC 3168), and heed them.
    pub ecn: bool,
}

/// Everything `ip` has to be told in one host. `v6` false leaves IPv6 out, for kernels without it.
#[must_use]
pub fn batch(plan: &AddressPlan, host: HostId, v6: bool) -> String {
    let mut text = String::from("link set lo up\n");
    let words = route_words();
    match host {
        HostId::AccessPoint => {
            up(&mut text, plan, AddressPlan::WAN, v6);
            up(&mut text, plan, AddressPlan::WLAN, v6);
            address(&mut text, AddressPlan::WAN, AddressPlan::WAN_V4.into(), 16);
            address(&mut text, AddressPlan::WLAN, AddressPlan::v4(host).into(), 16);
            for (net, dev, own) in [("10.1.0.0/16", "wan0", "10.1.0.1"), ("10.2.0.0/16", "wlan0", "10.2.0.1")] {
                let _ = writeln!(text, "route replace {net} dev {dev} scope link src {own} {words}");
            }
            if v6 {
                address(&mut text, AddressPlan::WAN, AddressPlan::WAN_V6.into(), 64);
                address(&mut text, AddressPlan::WLAN, AddressPlan::v6(host).into(), 64);
            }
            for peer in (2..plan.ports() as u16).map(Port) {
                let near =
                    if matches!(plan.host(peer), HostId::Server(_)) { AddressPlan::WAN } else { AddressPlan::WLAN };
                neighbour(&mut text, near, AddressPlan::v4(plan.host(peer)).into(), plan.mac(peer));
                if v6 {
                    neighbour(&mut text, near, AddressPlan::v6(plan.host(peer)).into(), plan.mac(peer));
                }
            }
        }
        HostId::Server(_) | HostId::Station(_) => {
            let port = plan.port(host);
            up(&mut text, plan, port, v6);
            let ap = plan.mac(gateway_port(host));
            address(&mut text, port, AddressPlan::v4(host).into(), 32);
            neighbour(&mut text, port, gateway(host, false), ap);
            let _ = writeln!(text, "route add 0.0.0.0/0 via {} dev eth0 onlink {words}", gateway(host, false));
            if v6 {
                address(&mut text, port, AddressPlan::v6(host).into(), 128);
                neighbour(&mut text, port, gateway(host, true), ap);
                let _ = writeln!(text, "route add ::/0 via {} dev eth0 onlink {words}", gateway(host, true));
            }
        }
    }
    text
}

/// The line that gives `host` a route of its own to `peer`.
#[must_use]
pub fn route(host: HostId, peer: HostId, hints: RouteHints) -> String {
    let mut text = format!("route replace {}/32 ", near(peer, host));
    match (host, peer) {
        (HostId::AccessPoint, HostId::Server(_)) => text.push_str("dev wan0"),
        (HostId::AccessPoint, _) => text.push_str("dev wlan0"),
        _ => {
            let _ = write!(text, "via {} dev eth0 onlink", gateway(host, false));
        }
    }
    if let Some(segments) = hints.initial_window {
        let _ = write!(text, " initcwnd {segments}");
    }
    if hints.quick_ack {
        text.push_str(" quickack 1");
    }
    if hints.ecn {
        text.push_str(" features ecn");
    }
    let _ = writeln!(text, " {}", route_words());
    text
}

fn gateway_port(host: HostId) -> Port {
    if matches!(host, HostId::Server(_)) { AddressPlan::WAN } else { AddressPlan::WLAN }
}

fn gateway(host: HostId, v6: bool) -> IpAddr {
    match (gateway_port(host), v6) {
        (AddressPlan::WAN, false) => AddressPlan::WAN_V4.into(),
        (AddressPlan::WAN, true) => AddressPlan::WAN_V6.into(),
        (_, false) => AddressPlan::v4(HostId::AccessPoint).into(),
        (_, true) => AddressPlan::v6(HostId::AccessPoint).into(),
    }
}

fn up(text: &mut String, plan: &AddressPlan, port: Port, v6: bool) {
    let (name, mac) = (AddressPlan::interface(port), shown(plan.mac(port)));
    // Without a link-local address the host has nothing to say to its neighbours on its own; a kernel without IPv6 has none.
    let quiet = if v6 { " addrgenmode none" } else { "" };
    let _ = writeln!(text, "link set {name} address {mac} mtu 1500 txqueuelen {QUEUE}{quiet}");
    let _ = writeln!(text, "link set {name} up");
}

fn address(text: &mut String, port: Port, address: IpAddr, prefix: u8) {
    let nodad = if address.is_ipv6() { " nodad" } else { "" };
    let _ = writeln!(text, "addr add {address}/{prefix} dev {}{nodad}", AddressPlan::interface(port));
}

fn neighbour(text: &mut String, port: Port, address: IpAddr, mac: Mac) {
    let (name, mac) = (AddressPlan::interface(port), shown(mac));
    let _ = writeln!(text, "neigh replace {address} lladdr {mac} nud permanent dev {name}");
}

fn shown(mac: Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Files under `/proc/sys/net` and their values for one host. Missing files are skipped: an older kernel.
#[must_use]
pub fn settings(host: HostId, interfaces: &[&str]) -> Vec<(String, String)> {
    let mut list = Vec::new();
    if host == HostId::AccessPoint {
        // First: writing it resets settings of interfaces.
        list.push(("ipv4/ip_forward".into(), "1".into()));
    }
    for (file, value) in listed().filter_map(|(key, value)| Some((key.strip_prefix("net/")?, value))) {
        match file.split_once('*') {
            _ if host == HostId::AccessPoint && file.contains("forward") => {}
            None => list.push((file.to_owned(), value.to_owned())),
            Some((before, after)) => list.extend(
                ["all", "default", "lo"]
                    .iter()
                    .chain(interfaces)
                    .map(|name| (format!("{before}{name}{after}"), value.to_owned())),
            ),
        }
    }
    if host == HostId::AccessPoint {
        list.push(("ipv6/conf/all/forwarding".into(), "1".into()));
    }
    list
}

/// Whether this kernel has queue disciplines to choose from; one without has `pfifo_fast` for all.
#[must_use]
pub fn has_traffic_control() -> bool {
    Path::new("/proc/thread-self/net/psched").exists()
}

/// Whether this kernel has IPv6.
#[must_use]
pub fn has_v6() -> bool {
    Path::new("/proc/sys/net/ipv6").exists()
}

/// Writes kernel settings of the calling thread's namespace.
///
/// # Errors
/// The first file that exists and cannot be written.
pub fn write_settings(list: &[(String, String)]) -> Result<(), Error> {
    for (key, value) in list {
        let path = format!("/proc/sys/net/{key}");
        match std::fs::write(&path, value) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::system(format!("cannot write {value} to {path}"))(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The lines for `tc -batch`: before `ip`'s, so that no packet of an interface that is up is lost to the change; its queue's
/// length follows the interface's.
#[must_use]
pub fn queues(interfaces: &[&str]) -> String {
    let kind = queue_discipline();
    interfaces.iter().map(|name| format!("qdisc replace dev {name} root {kind}\n")).collect()
}

/// Runs `ip -batch`, or `tc -batch`, with `lines` in the namespace of the calling thread.
///
/// # Errors
/// [`Error::NoIproute`], or [`Error::Configure`] with what the tool said.
pub fn run_batch(tool: &str, host: &str, lines: &str) -> Result<(), Error> {
    let spawn = |program: &str| {
        let mut command = Command::new(program);
        command.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
    };
    // A user's PATH often lacks /usr/sbin.
    let mut child = spawn(tool)
        .or_else(|_| spawn(&format!("/usr/sbin/{tool}")))
        .or_else(|_| spawn(&format!("/sbin/{tool}")))
        .map_err(Error::NoIproute)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A broken pipe means that the tool gave up; its own words below say why.
        let _ = stdin.write_all(lines.as_bytes());
    }
    let output = child.wait_with_output().map_err(Error::NoIproute)?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Configure { host: host.to_owned(), stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: AddressPlan = AddressPlan { servers: 1, stations: 1 };

    #[test]
    fn a_station_knows_only_the_way_to_the_access_point() {
        let text = batch(&PLAN, HostId::Station(0), false);
        let expected = "link set lo up\n\
            link set eth0 address 02:4c:48:03:00:01 mtu 1500 txqueuelen 10000\n\
            link set eth0 up\n\
            addr add 10.2.1.1/32 dev eth0\n\
            neigh replace 10.2.0.1 lladdr 02:4c:48:01:00:01 nud permanent dev eth0\n\
            route add 0.0.0.0/0 via 10.2.0.1 dev eth0 onlink congctl cubic\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_access_point_knows_every_neighbour_in_both_families() {
        let text = batch(&PLAN, HostId::AccessPoint, true);
        for line in [
            "neigh replace 10.1.1.1 lladdr 02:4c:48:02:00:01 nud permanent dev wan0",
            "neigh replace fd00:2::1:1 lladdr 02:4c:48:03:00:01 nud permanent dev wlan0",
            "addr add fd00:1::1/64 dev wan0 nodad",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
    }

    #[test]
    fn settings_stand_once_and_only_the_access_point_forwards() {
        let of = |host| settings(host, &["eth0"]);
        for host in [HostId::AccessPoint, HostId::Station(0)] {
            let mut files: Vec<_> = of(host).into_iter().map(|(file, _)| file).collect();
            let count = files.len();
            files.sort();
            files.dedup();
            assert_eq!(files.len(), count, "{host:?}");
        }
        let forwards = |host| of(host).iter().any(|(file, value)| file == "ipv4/ip_forward" && value == "1");
        assert!(forwards(HostId::AccessPoint) && !forwards(HostId::Station(0)));
        let station = of(HostId::Station(0));
        for expected in [("ipv4/tcp_rmem", "4096 131072 33554432"), ("ipv6/conf/eth0/accept_dad", "0")] {
            assert!(station.iter().any(|(file, value)| (file.as_str(), value.as_str()) == expected), "{expected:?}");
        }
        assert_eq!(queues(&["eth0"]), "qdisc replace dev eth0 root pfifo_fast\n");
    }

    #[test]
    fn what_no_socket_option_can_do_becomes_a_route() {
        let hints = RouteHints { initial_window: Some(2), ..RouteHints::default() };
        assert_eq!(
            route(HostId::Server(0), HostId::Station(0), hints),
            "route replace 10.2.1.1/32 via 10.1.0.1 dev eth0 onlink initcwnd 2 congctl cubic\n"
        );
        let hints = RouteHints { quick_ack: true, ecn: true, ..RouteHints::default() };
        assert_eq!(
            route(HostId::AccessPoint, HostId::Station(0), hints),
            "route replace 10.2.1.1/32 dev wlan0 quickack 1 features ecn congctl cubic\n"
        );
    }
}

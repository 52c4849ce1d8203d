//! How the network of one host is set up: the lines for `ip -batch` and the kernel's settings.
//!
//! No frame is ever spent on finding neighbours: entries are permanent, duplicate address detection and router
//! solicitation are off. TCP forgets what it learned of a path (`tcp_no_metrics_save`), or the second flow of a run
//! would start with the first one's ssthresh. Buffers may grow to 32 MiB, which makes the window scale 10.

use crate::address::{AddressPlan, Mac, Port};
use crate::error::Error;
use crate::tap::QUEUE;
use lasthop_home::scenario::HostId;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Stdio};

/// Largest socket buffer, bytes.
const BUFFER: u32 = 32 << 20;

/// The congestion control of programs that do not choose, whatever this machine's default is. A route sets it because
/// the setting `tcp_congestion_control` of a namespace takes only what the machine allows to everybody. A route's
/// choice beats what a socket chose before it connected; players choose after.
const CONGESTION_CONTROL: &str = "congctl cubic";

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
    match host {
        HostId::AccessPoint => {
            up(&mut text, plan, AddressPlan::WAN);
            up(&mut text, plan, AddressPlan::WLAN);
            address(&mut text, AddressPlan::WAN, AddressPlan::WAN_V4.into(), 16);
            address(&mut text, AddressPlan::WLAN, AddressPlan::v4(host).into(), 16);
            for (net, dev, own) in [("10.1.0.0/16", "wan0", "10.1.0.1"), ("10.2.0.0/16", "wlan0", "10.2.0.1")] {
                let _ = writeln!(text, "route replace {net} dev {dev} scope link src {own} {CONGESTION_CONTROL}");
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
            up(&mut text, plan, port);
            let ap = plan.mac(gateway_port(host));
            address(&mut text, port, AddressPlan::v4(host).into(), 32);
            neighbour(&mut text, port, gateway(host, false), ap);
            let _ =
                writeln!(text, "route add 0.0.0.0/0 via {} dev eth0 onlink {CONGESTION_CONTROL}", gateway(host, false));
            if v6 {
                address(&mut text, port, AddressPlan::v6(host).into(), 128);
                neighbour(&mut text, port, gateway(host, true), ap);
                let _ =
                    writeln!(text, "route add ::/0 via {} dev eth0 onlink {CONGESTION_CONTROL}", gateway(host, true));
            }
        }
    }
    text
}

/// The line that gives `host` a route of its own to `peer`.
#[must_use]
pub fn route(host: HostId, peer: HostId, hints: RouteHints) -> String {
    let mut text = format!("route replace {}/32 ", AddressPlan::v4(peer));
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
    let _ = write!(text, " {CONGESTION_CONTROL}");
    text.push('\n');
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

fn up(text: &mut String, plan: &AddressPlan, port: Port) {
    let (name, mac) = (AddressPlan::interface(port), shown(plan.mac(port)));
    // Without a link-local address the host has nothing to say to its neighbours on its own.
    let _ = writeln!(text, "link set {name} address {mac} mtu 1500 txqueuelen {QUEUE} addrgenmode none");
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
    let mut list = vec![
        ("ipv4/tcp_no_metrics_save".into(), "1".into()),
        ("ipv4/tcp_rmem".into(), format!("4096 131072 {BUFFER}")),
        ("ipv4/tcp_wmem".into(), format!("4096 65536 {BUFFER}")),
    ];
    if host == HostId::AccessPoint {
        list.push(("ipv4/ip_forward".into(), "1".into()));
        list.push(("ipv6/conf/all/forwarding".into(), "1".into()));
    }
    for name in ["all", "default"].iter().chain(interfaces) {
        for (key, value) in [("rp_filter", "0"), ("send_redirects", "0"), ("accept_redirects", "0")] {
            list.push((format!("ipv4/conf/{name}/{key}"), value.into()));
        }
        for (key, value) in [("accept_ra", "0"), ("accept_dad", "0"), ("router_solicitations", "0")] {
            list.push((format!("ipv6/conf/{name}/{key}"), value.into()));
        }
    }
    list
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

/// Runs `ip -batch` with `lines` in the namespace of the calling thread.
///
/// # Errors
/// [`Error::NoIproute`], or [`Error::Configure`] with what `ip` said.
pub fn run_batch(host: &str, lines: &str) -> Result<(), Error> {
    let spawn = |program| {
        let mut command = Command::new(program);
        command.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()
    };
    // A user's PATH often lacks /usr/sbin.
    let mut child =
        spawn("ip").or_else(|_| spawn("/usr/sbin/ip")).or_else(|_| spawn("/sbin/ip")).map_err(Error::NoIproute)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A broken pipe means that `ip` gave up; its own words below say why.
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
            link set eth0 address 02:4c:48:03:00:01 mtu 1500 txqueuelen 10000 addrgenmode none\n\
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

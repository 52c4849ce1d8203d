//! Which interfaces `lasthop run` would hook now, and why not others.

use super::{Check, levers, link};
use crate::interface::InterfaceName;
use crate::netlink::Socket;
use crate::ports::{self, Choice, Port};
use crate::stations::Nl80211;
use crate::topology::Machine;

const NAME: &str = "LAN interfaces";

/// The choice, and each interface in it.
pub(super) fn checks(lan: Option<&InterfaceName>, wan: Option<&InterfaceName>) -> Vec<Check> {
    let machine = Socket::open(libc::NETLINK_ROUTE)
        .and_then(|mut route| Machine::read(&mut route, Nl80211::open().ok().as_mut()));
    let machine = match machine {
        Ok(machine) => machine,
        Err(error) => return vec![Check::missing(NAME, format!("they cannot be listed: {error}"), "ip link")],
    };
    let names: Vec<_> = lan.into_iter().cloned().collect();
    if let Err(refusal) = ports::check(&names, wan, &machine) {
        return vec![Check::missing(NAME, refusal.to_string(), "ip link")];
    }
    let choice = ports::choose(&names, wan, &machine);
    let mut checks = vec![summary(lan, &choice)];
    for port in &choice.ports {
        let mut about = link::interface(&port.name);
        about.extend(levers::checks(&port.name));
        checks.extend(about.into_iter().map(|check| if choice.ports.len() > 1 { whose(check, port) } else { check }));
    }
    checks
}

/// Says which of several interfaces a line is about.
fn whose(check: Check, port: &Port) -> Check {
    if check.detail.contains(port.name.as_str()) {
        return check;
    }
    Check { detail: format!("{}: {}", port.name, check.detail), ..check }
}

fn summary(lan: Option<&InterfaceName>, choice: &Choice) -> Check {
    let remarks = choice.remarks.join("; ");
    let name = |port: &Port| match &port.bridge {
        Some(bridge) => format!("{} (port of {bridge})", port.name),
        None => port.name.to_string(),
    };
    let hooked: Vec<_> = choice.ports.iter().filter(|port| port.ifindex.is_some()).map(name).collect();
    let flag = lan.map_or_else(String::new, |name| format!(" --lan {name}"));
    match (hooked.is_empty(), remarks.is_empty()) {
        (true, _) => Check::warning(
            NAME,
            format!("lasthop run{flag} would hook none now: {remarks}"),
            "name those towards the stations (lasthop run --lan DEV; ip link lists them), or let it wait",
        ),
        (false, true) => Check::ok(NAME, format!("lasthop run{flag} hooks {}", hooked.join(", "))),
        (false, false) => Check::ok(NAME, format!("lasthop run{flag} hooks {}; {remarks}", hooked.join(", "))),
    }
}

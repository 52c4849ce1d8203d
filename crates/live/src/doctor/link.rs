//! One interface: is it there, what does it offload, who else works on it.

use std::path::Path;

use super::{AS_ROOT, Check, is_refusal};
use crate::attach::{self, PROGRAM_PREFIX, Side};
use crate::discipline;
use crate::interface::{self, InterfaceName, LinkState};
use crate::netlink::{Attributes, NLM_F_DUMP, Socket, text};

const SIDES: [(Side, &str); 2] = [(Side::Ingress, "ingress"), (Side::Egress, "egress")];

pub(super) fn interface(name: &InterfaceName) -> Vec<Check> {
    let state = Socket::open(libc::NETLINK_ROUTE).and_then(|mut route| interface::state(&mut route, name));
    let state = match state {
        Ok(Some(state)) => state,
        Ok(None) => return vec![Check::missing("interface", format!("there is no {name}"), "ip link")],
        Err(error) => return vec![Check::missing("interface", format!("{name}: {error}"), "ip link")],
    };
    vec![
        presence(name, &state),
        speed(name),
        receive_offload(name),
        shapers(discipline::Side::Lan, name, &state),
        others(name, &state),
    ]
}

fn presence(name: &InterfaceName, state: &LinkState) -> Check {
    let layer = if state.ethernet { "Ethernet" } else { "plain IP" };
    if state.up {
        Check::ok("interface", format!("{name} is up, {layer}"))
    } else {
        Check::warning("interface", format!("{name} is down"), format!("ip link set {name} up"))
    }
}

fn speed(name: &InterfaceName) -> Check {
    match interface::speed(name) {
        Some(speed) => Check::ok("link speed", format!("{speed}: capacity may be given as a share")),
        None => Check::ok("link speed", "not known (radio, or a link that is down): what it carries is learned"),
    }
}

/// LRO merges what is forwarded; hardware tc offload takes packets around the hooks. GRO and TSO are fine.
fn receive_offload(name: &InterfaceName) -> Check {
    const NAME: &str = "offloads";
    const ETHTOOL_GFLAGS: u32 = 0x25;
    const ETH_FLAG_LRO: u32 = 1 << 15;
    const ETHTOOL_GGRO: u32 = 0x2b;
    const ETHTOOL_GTSO: u32 = 0x1e;
    let value = |command| {
        let answer = interface::ethtool::<8>(name, command).ok()?;
        Some(u32::from_ne_bytes([answer[4], answer[5], answer[6], answer[7]]))
    };
    if value(ETHTOOL_GFLAGS).is_some_and(|flags| flags & ETH_FLAG_LRO != 0) {
        return Check::warning(NAME, "LRO is on: it loses what forwarding needs", format!("ethtool -K {name} lro off"));
    }
    if hardware_tc(name) == Some(true) {
        return Check::warning(
            NAME,
            "hardware tc offload is on: offloaded traffic bypasses control",
            format!("ethtool -K {name} hw-tc-offload off"),
        );
    }
    let on = |command| match value(command) {
        Some(0) => "off",
        Some(_) => "on",
        None => "unknown",
    };
    Check::ok(NAME, format!("GRO {}, TSO {} (both are fine), no LRO", on(ETHTOOL_GGRO), on(ETHTOOL_GTSO)))
}

/// Whether the feature `hw-tc-offload` is active; `None` when the driver does not say.
fn hardware_tc(name: &InterfaceName) -> Option<bool> {
    const ETHTOOL_GSTRINGS: u32 = 0x1b;
    const ETHTOOL_GFEATURES: u32 = 0x3a;
    const ETH_SS_FEATURES: u32 = 4;
    const MOST: u32 = 128;
    // struct ethtool_gstrings {cmd, string_set, len, names of 32 bytes}
    let strings =
        interface::ethtool_with::<{ 12 + 32 * MOST as usize }>(name, &[ETHTOOL_GSTRINGS, ETH_SS_FEATURES, MOST]);
    let strings = strings.ok()?;
    let bit = strings[12..].chunks(32).position(|s| text(s) == "hw-tc-offload")?;
    // struct ethtool_gfeatures {cmd, size, blocks of {available, requested, active, never_changed}}
    let features = interface::ethtool_with::<{ 8 + 16 * 4 }>(name, &[ETHTOOL_GFEATURES, 4]).ok()?;
    let active = features.get(8 + 16 * (bit / 32) + 8..)?.get(..4)?;
    Some(u32::from_ne_bytes(active.try_into().ok()?) >> (bit % 32) & 1 == 1)
}

/// Queue disciplines of others, and what follows from them.
fn shapers(side: discipline::Side, name: &InterfaceName, state: &LinkState) -> Check {
    let what = match side {
        discipline::Side::Lan => "other queues",
        discipline::Side::Wan => "other queues, WAN",
    };
    let list = Socket::open(libc::NETLINK_ROUTE).and_then(|mut route| discipline::of(&mut route, state.ifindex));
    match list {
        Ok(list) => match discipline::found(side, &list) {
            Some(found) => Check::ok(what, format!("{name} has {}: {}", found.what, found.follows)),
            None => {
                let kinds: Vec<_> = list.into_iter().map(|discipline| discipline.kind).collect();
                let kinds = if kinds.is_empty() { "no queue".to_owned() } else { kinds.join(", ") };
                Check::ok(what, format!("{name}: none that shapes or keeps flows apart ({kinds})"))
            }
        },
        Err(error) => Check::warning(what, error.to_string(), format!("tc qdisc show dev {name}")),
    }
}

/// The interface towards the provider: nothing is attached there, but a queue of others may stand there, in both directions.
pub(super) fn wan(name: &InterfaceName) -> Vec<Check> {
    let state = |name: &InterfaceName| {
        Socket::open(libc::NETLINK_ROUTE).and_then(|mut route| interface::state(&mut route, name)).ok().flatten()
    };
    let Some(there) = state(name) else {
        return vec![Check::missing("interface, WAN", format!("there is no {name}"), "ip link")];
    };
    let mut checks = vec![shapers(discipline::Side::Wan, name, &there)];
    if let Some((ifb, there)) = discipline::ifb_of(name).and_then(|ifb| Some((ifb.clone(), state(&ifb)?))) {
        checks.push(shapers(discipline::Side::Wan, &ifb, &there));
    }
    checks
}

/// Programs and filters beside ours.
fn others(name: &InterfaceName, state: &LinkState) -> Check {
    const NAME: &str = "other programs";
    let (mut ours, mut theirs) = (0, Vec::new());
    for (side, direction) in SIDES {
        match attach::attached(state.ifindex, side) {
            Ok(list) => {
                for program in list {
                    if program.name.starts_with(PROGRAM_PREFIX) {
                        ours += 1;
                    } else {
                        theirs.push(format!("tcx {direction}: {} (number {})", program.name, program.program_id));
                    }
                }
            }
            Err(error) if is_refusal(&error) => return Check::warning(NAME, "asking was refused", AS_ROOT),
            // No tcx in this kernel.
            Err(_) => {}
        }
        let filters = Socket::open(libc::NETLINK_ROUTE)
            .and_then(|mut route| attach::filters(&mut route, state.ifindex, side))
            .unwrap_or_default();
        for filter in filters {
            if filter.is_ours() {
                ours += 1;
            } else {
                theirs.push(format!("{} filter, {direction}, priority {}", filter.kind, filter.priority));
            }
        }
    }
    let mine = if ours > 0 {
        "; a lasthop controller is attached (or left filters behind: its next start removes them)"
    } else {
        ""
    };
    if theirs.is_empty() {
        return Check::ok(NAME, format!("none{mine}"));
    }
    Check::warning(
        NAME,
        format!("{}{mine}", theirs.join("; ")),
        format!("if they redirect or drop, the controller does not see it all: bpftool net show dev {name}"),
    )
}

/// Flow tables with hardware offload take traffic around the hooks; software ones do not.
pub(super) fn flow_offload() -> Check {
    const NAME: &str = "flow offload";
    const NFT_MSG_GETFLOWTABLE: u16 = 10 << 8 | 23;
    const NFTA_FLOWTABLE_TABLE: u16 = 1;
    const NFTA_FLOWTABLE_NAME: u16 = 2;
    const NFTA_FLOWTABLE_FLAGS: u16 = 7;
    const HARDWARE: u32 = 1;
    let tables = Socket::open(libc::NETLINK_NETFILTER)
        .and_then(|mut socket| socket.request(NFT_MSG_GETFLOWTABLE, NLM_F_DUMP, &[0, 0, 0, 0]));
    let tables = match tables {
        Ok(tables) => tables,
        Err(error) if is_refusal(&error) => return Check::warning(NAME, "asking was refused", AS_ROOT),
        Err(_) => return Check::ok(NAME, "the kernel has no flow tables"),
    };
    for found in &tables {
        let attributes = found.body.get(4..).unwrap_or_default();
        let flags = Attributes::find(attributes, NFTA_FLOWTABLE_FLAGS).and_then(|v| v.try_into().ok());
        if flags.map_or(0, u32::from_be_bytes) & HARDWARE != 0 {
            let word = |kind| Attributes::find(attributes, kind).map(text).unwrap_or_default();
            let (table, name) = (word(NFTA_FLOWTABLE_TABLE), word(NFTA_FLOWTABLE_NAME));
            return Check::warning(
                NAME,
                format!("flow table {name} offloads to hardware: that traffic bypasses control"),
                offload_off(
                    found.body.first().copied().unwrap_or_default(),
                    &table,
                    Path::new(OPENWRT_FIREWALL).exists(),
                ),
            );
        }
    }
    Check::ok(NAME, format!("{} flow tables, none offloads to hardware", tables.len()))
}

const OPENWRT_FIREWALL: &str = "/etc/config/firewall";

/// The command that turns hardware offload off. A flow table's flags cannot be changed: its table is made anew, in one step.
fn offload_off(family: u8, table: &str, is_openwrt: bool) -> String {
    if is_openwrt {
        return "uci set firewall.@defaults[0].flow_offloading_hw=0; uci commit firewall; service firewall restart"
            .to_owned();
    }
    let family = match family {
        2 => "ip",
        10 => "ip6",
        5 => "netdev",
        7 => "bridge",
        _ => "inet",
    };
    format!(
        "(echo delete table {family} {table}; nft list table {family} {table} | sed '/flags offload/d') | nft -f -    \
         (and take `flags offload` out of the file that makes it)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_turns_hardware_offload_off_names_the_table() {
        assert!(offload_off(1, "fw4", true).starts_with("uci set "));
        let command = offload_off(10, "filter", false);
        assert!(command.starts_with("(echo delete table ip6 filter; nft list table ip6 filter | sed"), "{command}");
    }
}

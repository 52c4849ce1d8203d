//! `lan = "auto"`: the interfaces that lead to stations, as far as that can be told.

use super::Choosing;
use crate::stations::Radio;
use crate::topology::Link;

impl Choosing<'_> {
    pub(super) fn find(&mut self) {
        let machine = self.machine;
        let bridges = machine.links.iter().any(|link| link.is_bridge() && machine.ports(link).count() > 1);
        if !machine.forwards && !bridges {
            self.remark(
                "this machine forwards nothing (net.ipv4.ip_forward and net.ipv6.conf.all.forwarding are 0, and no bridge \
                 has two ports): there is nothing to control, until that changes"
                    .to_owned(),
            );
            return;
        }
        machine.links.iter().for_each(|link| self.consider(link));
        if self.choice.ports.is_empty() {
            self.remark(
                "found no interface towards stations: looked for radios of access points, wired ports of their bridges, and \
                 switch ports; waiting for one, and --lan DEV names any other"
                    .to_owned(),
            );
        }
    }

    fn consider(&mut self, link: &Link) {
        let (machine, bridge) = (self.machine, self.machine.bridge_of(link));
        let radio = machine.radio(link.ifindex);
        let is_wired = radio.is_none() && (link.is_switch_port || bridge.is_some_and(|b| self.is_wired(link, b)));
        if (radio.is_none() && !is_wired) || link.is_loopback || self.is_hooked(link) {
            return;
        }
        if self.provider.contains(&link.ifindex) {
            return self.leads_to_the_provider(link);
        }
        match radio {
            Some(Radio::AccessPoint) => self.hook(link, bridge),
            Some(Radio::Mesh) => match bridge.filter(|bridge| self.hides_the_provider(bridge)) {
                Some(bridge) => self.one_of_the_wired_ports(bridge),
                None => self.hook(link, bridge),
            },
            Some(Radio::Other) => self.remark(format!("{} is Wi-Fi, and no access point: not hooked", link.name)),
            None => self.consider_wired(link, bridge),
        }
    }

    /// A port by cable of a bridge that leads to stations.
    fn is_wired(&self, link: &Link, bridge: &Link) -> bool {
        let serves = |port: &Link| {
            let radio = self.machine.radio(port.ifindex);
            port.is_switch_port || matches!(radio, Some(Radio::AccessPoint | Radio::Mesh))
        };
        matches!(link.kind.as_str(), "" | "dsa" | "vlan" | "bond" | "team") && self.machine.ports(bridge).any(serves)
    }

    fn consider_wired(&mut self, link: &Link, bridge: Option<&Link>) {
        let name = &link.name;
        let leads_by_its_bridge = |wan: &Link| bridge.is_some_and(|bridge| wan.master == Some(bridge.ifindex));
        match bridge {
            Some(bridge) if self.hides_the_provider(bridge) => self.one_of_the_wired_ports(bridge),
            // It only bridges: what leads on to the provider is a port like the others.
            Some(bridge) if !self.machine.forwards && !self.wan.is_some_and(leads_by_its_bridge) => {
                self.one_of_the_wired_ports(bridge);
            }
            _ if self.provider.is_empty() => self.remark(format!(
                "{name} is not hooked before there is a default route: it might lead to the provider; --lan {name} says that \
                 it does not"
            )),
            None if name.as_str().starts_with("wan") || self.is_dialled() => self.remark(format!(
                "{name} is a switch port in no bridge, and might lead to the provider: not hooked; --lan {name} says that it \
                 does not"
            )),
            _ => self.hook(link, bridge),
        }
    }

    /// The provider is reached by PPP, and nobody tells what that lies on.
    fn is_dialled(&self) -> bool {
        let is_ppp = |ifindex: &u32| self.machine.link(*ifindex).is_some_and(|link| link.kind == "ppp");
        self.wan.is_none() && self.provider.iter().any(is_ppp)
    }
}

//! Which medium is behind an interface: those that share one are one hop, for what one of them carries the others cannot.
//!
//! - Interfaces of one radio (nl80211's wiphy): access points for guests, a mesh that leads on, stations with four addresses.
//! - A VLAN, macvlan or tunnel and what it lies on; a port of a switch is a wire of its own all the same.
//! - What is made of several interfaces, a radio among them (batman-adv, a bond): that radio.

use std::collections::BTreeSet;

use crate::topology::{Link, Machine};

/// A medium, as far as the kernel tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Medium {
    /// Number of its first interface, which names it; 0: not known.
    pub id: u32,
    /// It is air.
    pub is_radio: bool,
    /// Numbers of the interface that was asked for and of what it lies on, from the top.
    pub chain: Vec<u32>,
}

impl Medium {
    /// The one behind this interface.
    #[must_use]
    pub fn behind(machine: &Machine, link: &Link) -> Self {
        let chain = chain(machine, link);
        let bottom = chain.last().and_then(|ifindex| machine.link(*ifindex)).unwrap_or(link);
        let radio = chain.iter().find_map(|ifindex| machine.radios.get(ifindex)).or_else(|| {
            let mut ports =
                machine.links.iter().filter(|port| port.master == Some(bottom.ifindex) && !bottom.is_bridge());
            ports.find_map(|port| machine.radios.get(&port.ifindex))
        });
        let first = radio.and_then(|radio| {
            machine.radios.iter().find(|(_, other)| other.wiphy == radio.wiphy).map(|(ifindex, _)| *ifindex)
        });
        Self { id: first.unwrap_or(bottom.ifindex), is_radio: radio.is_some(), chain }
    }
}

/// The interface, and what it lies on.
fn chain(machine: &Machine, link: &Link) -> Vec<u32> {
    let (mut chain, mut seen) = (vec![link.ifindex], BTreeSet::from([link.ifindex]));
    let mut upper = link;
    while let Some(lower) = upper.lower.filter(|_| !upper.is_switch_port).and_then(|lower| machine.link(lower)) {
        // Whatever the kernel says lies on what.
        if !seen.insert(lower.ifindex) {
            break;
        }
        chain.push(lower.ifindex);
        upper = lower;
    }
    chain
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::stations::{Radio, Wireless};

    fn link(ifindex: u32, kind: &str, lower: Option<u32>, master: Option<u32>) -> Link {
        Link {
            ifindex,
            name: format!("i{ifindex}").parse().unwrap(),
            alternatives: Vec::new(),
            kind: kind.to_owned(),
            master,
            lower,
            is_loopback: false,
            is_switch_port: kind == "dsa",
        }
    }

    #[test]
    fn interfaces_of_one_radio_and_a_vlan_with_what_it_lies_on_are_one_medium() {
        let links = vec![
            link(2, "", None, None),
            link(3, "dsa", Some(2), Some(20)),
            link(4, "dsa", Some(2), Some(20)),
            link(5, "vlan", Some(3), None),
            link(6, "macvlan", Some(5), None),
            link(10, "", None, Some(20)),
            link(11, "", None, None),
            link(12, "", None, Some(21)),
            link(13, "vlan", Some(11), None),
            link(20, "bridge", None, None),
            link(21, "batadv", None, None),
            link(22, "vlan", Some(20), None),
        ];
        let air = |wiphy| Wireless { radio: Radio::AccessPoint, wiphy };
        let radios = BTreeMap::from([(10, air(0)), (11, air(0)), (12, air(1))]);
        let machine = Machine { links, radios, ..Machine::default() };
        let behind = |ifindex| {
            let medium = Medium::behind(&machine, machine.link(ifindex).unwrap());
            (medium.id, medium.is_radio, medium.chain)
        };
        assert_eq!(behind(3), (3, false, vec![3]), "a port of a switch is a wire of its own");
        assert_eq!(behind(4).0, 4);
        assert_eq!(behind(5), (3, false, vec![5, 3]));
        assert_eq!(behind(6), (3, false, vec![6, 5, 3]));
        assert_eq!([10, 11, 13].map(|ifindex| behind(ifindex).0), [10; 3], "one radio");
        assert_eq!(behind(13), (10, true, vec![13, 11]));
        assert_eq!(behind(12), (12, true, vec![12]), "another radio");
        assert_eq!(behind(21), (12, true, vec![21]), "made of a radio");
        assert_eq!(behind(22), (20, false, vec![22, 20]), "of a bridge nobody knows which port");
    }

    #[test]
    fn interfaces_that_lie_on_each_other_end_the_walk() {
        let links = vec![link(2, "vlan", Some(3), None), link(3, "vlan", Some(2), None)];
        let machine = Machine { links, ..Machine::default() };
        assert_eq!(Medium::behind(&machine, &machine.links[0]).chain, [2, 3]);
    }
}

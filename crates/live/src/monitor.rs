//! Told by the kernel, unasked, that interfaces, routes, bridges or radios have changed.
//!
//! Multicast groups of rtnetlink and of nl80211, whose descriptors are waited for. What a message says in detail is not
//! believed: it only says what has to be read anew, so that a message lost (`ENOBUFS`) or in an unknown form costs one reading.
//! Source: rtnetlink(7), `linux/rtnetlink.h`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::netlink::Socket;
use crate::stations::Nl80211;

const RTNLGRP_LINK: u32 = 1;
const RTNLGRP_NEIGH: u32 = 3;
const RTNLGRP_IPV4_ROUTE: u32 = 7;
const RTNLGRP_IPV6_ROUTE: u32 = 11;
const RTNLGRP_IPV4_NETCONF: u32 = 24;
const RTNLGRP_IPV6_NETCONF: u32 = 25;
/// libc does not name it.
const RTM_DELNETCONF: u16 = 81;
const GROUPS: [u32; 6] =
    [RTNLGRP_LINK, RTNLGRP_NEIGH, RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV4_NETCONF, RTNLGRP_IPV6_NETCONF];

/// What has to be read anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Interfaces, default routes, whether the machine forwards, radios.
    pub machine: bool,
    /// Which stations are behind which port of a bridge.
    pub stations: bool,
}

impl News {
    const ALL: Self = Self { machine: true, stations: true };

    /// What one message of rtnetlink makes old.
    fn on_message(&mut self, kind: u16, body: &[u8]) {
        match kind {
            libc::RTM_NEWLINK | libc::RTM_DELLINK | libc::RTM_NEWNETCONF | RTM_DELNETCONF => self.machine = true,
            // struct rtmsg {family, dst_len, ..}: all but default routes are of no interest.
            libc::RTM_NEWROUTE | libc::RTM_DELROUTE => self.machine |= body.get(1) == Some(&0),
            // struct ndmsg {family, ..}: ARP and its like are of none.
            libc::RTM_NEWNEIGH | libc::RTM_DELNEIGH => self.stations |= body.first() == Some(&(libc::AF_BRIDGE as u8)),
            _ => {}
        }
    }
}

/// The sockets that are told.
#[derive(Debug)]
pub struct Monitor {
    route: Socket,
    /// None: no Wi-Fi in this kernel.
    wifi: Option<Socket>,
}

impl Monitor {
    /// Listens in the namespace of the calling thread.
    ///
    /// # Errors
    /// When rtnetlink cannot be listened to; without Wi-Fi it does without.
    pub fn new(wifi: Option<&Nl80211>) -> io::Result<Self> {
        let route = Socket::listening(libc::NETLINK_ROUTE, &GROUPS)?;
        let listens = |group| Socket::listening(libc::NETLINK_GENERIC, &[group]).ok();
        let wifi = wifi.and_then(Nl80211::changes).and_then(listens);
        Ok(Self { route, wifi })
    }

    /// Descriptors that become readable when there is news.
    pub fn waits_for(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [Some(&self.route), self.wifi.as_ref()].into_iter().flatten().map(AsFd::as_fd)
    }

    /// What has to be read anew since the last time; never waits.
    pub fn news(&mut self) -> News {
        let mut news = News::default();
        if self.route.listen(|kind, body| news.on_message(kind, body)).is_err() {
            news = News::ALL;
        }
        if let Some(wifi) = &mut self.wifi {
            let lost = wifi.listen(|_, _| news.machine = true).is_err();
            news.machine |= lost;
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_change_the_choice_of_ports_has_to_be_read_anew() {
        let news = |kind, body: &[u8]| {
            let mut news = News::default();
            news.on_message(kind, body);
            (news.machine, news.stations)
        };
        assert_eq!(news(libc::RTM_NEWLINK, &[]), (true, false));
        assert_eq!(news(libc::RTM_DELROUTE, &[libc::AF_INET as u8, 0]), (true, false), "a default route");
        assert_eq!(news(libc::RTM_NEWROUTE, &[libc::AF_INET as u8, 24]), (false, false));
        assert_eq!(news(libc::RTM_NEWROUTE, &[]), (false, false));
        assert_eq!(news(libc::RTM_NEWNEIGH, &[libc::AF_BRIDGE as u8]), (false, true));
        assert_eq!(news(libc::RTM_NEWNEIGH, &[libc::AF_INET as u8]), (false, false));
        assert_eq!(news(libc::RTM_NEWQDISC, &[]), (false, false));
    }
}

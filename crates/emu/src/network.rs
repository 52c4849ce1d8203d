//! Everything between the TAPs as one model: wired links, the WAN link, the channel.
//!
//! ```text
//! server --link--+
//! server --link--W0==line==(wan0 access point wlan0)~~~air~~~station
//! ```
//!
//! No clock and no I/O: frames go in with the time they were sent, come out with the exact time they arrive, however
//! late `poll` is called, and events of all parts are taken in the order of their times. Servers reach each other at
//! W0; station to station goes through the access point's own forwarding.

use crate::address::{AddressPlan, Port};
use crate::arena::Frame;
use lasthop_core::aqm::fifo;
use lasthop_core::units::Time;
use lasthop_home::link::Link;
use lasthop_home::scenario::{HostId, Scenario};
use lasthop_medium::{DropPlace, Event, Medium, NodeId};
use std::collections::VecDeque;

/// Where a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostAt {
    /// A wired link's buffer.
    Wired,
    /// The access point's queue towards the channel.
    ApQueue,
    /// A station's queue.
    StationQueue,
    /// On the channel, all attempts used up.
    Channel,
}

/// A frame that leaves the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// To be written to the TAP `frame.to`.
    Delivered {
        /// When it arrives there.
        at: Time,
        /// The frame that this is about.
        frame: Frame,
    },
    /// Gone.
    Lost {
        /// When.
        at: Time,
        /// Where.
        place: LostAt,
        /// The frame that this is about.
        frame: Frame,
    },
}

impl Exit {
    /// When it leaves.
    #[must_use]
    pub const fn at(&self) -> Time {
        match self {
            Self::Delivered { at, .. } | Self::Lost { at, .. } => *at,
        }
    }
}

/// The parts, by the way they are polled.
#[derive(Clone, Copy)]
enum Part {
    Up(usize),
    Down(usize),
    WanToServers,
    WanToAccessPoint,
    Channel,
}

/// What joins W0 to the access point.
pub struct WanLink {
    /// Away from the home.
    pub to_servers: Link<Frame>,
    /// Into the home.
    pub to_access_point: Link<Frame>,
}

/// The wires and the channel of a home.
pub struct Network {
    plan: AddressPlan,
    /// `up[server]`, `down[server]`: each server's own link to W0 and back.
    up: Vec<Link<Frame>>,
    down: Vec<Link<Frame>>,
    /// Absent: no delay, no limit.
    wan: Option<WanLink>,
    medium: Medium<Frame>,
    /// The channel was touched at this time and may have more to say.
    stirred: Option<Time>,
    /// Losses at the doors of links, not yet told.
    ready: VecDeque<Exit>,
}

impl Network {
    /// From its parts; `up` and `down` in the order of the servers.
    #[must_use]
    pub fn new(
        plan: AddressPlan,
        up: Vec<Link<Frame>>,
        down: Vec<Link<Frame>>,
        wan: Option<WanLink>,
        medium: Medium<Frame>,
    ) -> Self {
        Self { plan, up, down, wan, medium, stirred: None, ready: VecDeque::with_capacity(64) }
    }

    /// A host sent `frame` through its interface `from` at `at`, which is no earlier than anything polled before.
    pub fn on_frame(&mut self, at: Time, from: Port, frame: Frame) {
        match (from, self.plan.host(from)) {
            (AddressPlan::WAN, _) => self.towards_servers(at, frame),
            (_, HostId::AccessPoint) => {
                if let HostId::Station(i) = self.plan.host(frame.to) {
                    self.medium.on_packet(at, NodeId(0), NodeId(i as u16 + 1), frame);
                    self.stirred = Some(at);
                }
            }
            (_, HostId::Station(i)) => {
                self.medium.on_packet(at, NodeId(i as u16 + 1), NodeId(0), frame);
                self.stirred = Some(at);
            }
            (_, HostId::Server(i)) => {
                let pushed = self.up[i].on_packet(at, frame);
                self.lost_unless(at, pushed);
            }
        }
    }

    /// The next frame that leaves no later than `now`.
    pub fn poll(&mut self, now: Time) -> Option<Exit> {
        loop {
            if let Some(exit) = self.ready.pop_front() {
                return Some(exit);
            }
            if let Some(at) = self.stirred {
                match self.medium.poll(at) {
                    Some(event) => return Some(leave_channel(event)),
                    None => self.stirred = None,
                }
            }
            let (at, part) = self.earliest()?;
            if at > now {
                return None;
            }
            if let Some(exit) = self.advance(part, at) {
                return Some(exit);
            }
        }
    }

    /// When `poll` next has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.earliest().map(|(at, _)| at)
    }

    /// The channel, to be changed or read.
    pub fn medium(&mut self) -> &mut Medium<Frame> {
        &mut self.medium
    }

    /// Figures of the wired buffers, by name.
    #[must_use]
    pub fn wires(&self, scenario: &Scenario, now: Time) -> Vec<(String, fifo::Snapshot)> {
        let mut list = Vec::new();
        if let Some(wan) = &self.wan {
            list.push(("WAN down".to_owned(), wan.to_access_point.snapshot(now)));
            list.push(("WAN up".to_owned(), wan.to_servers.snapshot(now)));
        }
        for (i, server) in scenario.servers.iter().enumerate() {
            list.push((format!("{} to W0", server.name), self.up[i].snapshot(now)));
            list.push((format!("W0 to {}", server.name), self.down[i].snapshot(now)));
        }
        list
    }

    fn earliest(&self) -> Option<(Time, Part)> {
        let mut best: Option<(Time, Part)> = None;
        let mut offer = |at: Option<Time>, part| {
            if let Some(at) = at
                && best.is_none_or(|(earliest, _)| at < earliest)
            {
                best = Some((at, part));
            }
        };
        offer(self.medium.next_deadline(), Part::Channel);
        if let Some(wan) = &self.wan {
            offer(wan.to_servers.next_deadline(), Part::WanToServers);
            offer(wan.to_access_point.next_deadline(), Part::WanToAccessPoint);
        }
        for (i, (up, down)) in self.up.iter().zip(&self.down).enumerate() {
            offer(up.next_deadline(), Part::Up(i));
            offer(down.next_deadline(), Part::Down(i));
        }
        best
    }

    fn advance(&mut self, part: Part, now: Time) -> Option<Exit> {
        match part {
            Part::Channel => {
                self.stirred = Some(now);
                None
            }
            Part::Up(i) => {
                let (at, frame) = self.up[i].poll(now)?;
                match self.plan.host(frame.to) {
                    HostId::Server(_) => self.down_to(at, frame),
                    _ => return self.towards_access_point(at, frame),
                }
                None
            }
            Part::WanToAccessPoint => {
                let (at, frame) = self.wan.as_mut()?.to_access_point.poll(now)?;
                Some(Exit::Delivered { at, frame })
            }
            Part::WanToServers => {
                let (at, frame) = self.wan.as_mut()?.to_servers.poll(now)?;
                self.down_to(at, frame);
                None
            }
            Part::Down(i) => {
                let (at, frame) = self.down[i].poll(now)?;
                Some(Exit::Delivered { at, frame })
            }
        }
    }

    fn towards_access_point(&mut self, at: Time, frame: Frame) -> Option<Exit> {
        match &mut self.wan {
            None => Some(Exit::Delivered { at, frame }),
            Some(wan) => {
                let pushed = wan.to_access_point.on_packet(at, frame);
                self.lost_unless(at, pushed);
                None
            }
        }
    }

    fn towards_servers(&mut self, at: Time, frame: Frame) {
        match &mut self.wan {
            None => self.down_to(at, frame),
            Some(wan) => {
                let pushed = wan.to_servers.on_packet(at, frame);
                self.lost_unless(at, pushed);
            }
        }
    }

    fn down_to(&mut self, at: Time, frame: Frame) {
        if let HostId::Server(i) = self.plan.host(frame.to) {
            let pushed = self.down[i].on_packet(at, frame);
            self.lost_unless(at, pushed);
        }
    }

    fn lost_unless(&mut self, at: Time, pushed: Result<(), Frame>) {
        if let Err(frame) = pushed {
            self.ready.push_back(Exit::Lost { at, place: LostAt::Wired, frame });
        }
    }
}

fn leave_channel(event: Event<Frame>) -> Exit {
    match event {
        Event::Delivered { at, packet, .. } => Exit::Delivered { at, frame: packet },
        Event::Dropped { at, node, place, packet } => {
            let place = match (place, node) {
                (DropPlace::Channel, _) => LostAt::Channel,
                (DropPlace::Queue, NodeId(0)) => LostAt::ApQueue,
                (DropPlace::Queue, _) => LostAt::StationQueue,
            };
            Exit::Lost { at, place, frame: packet }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{ETHERNET, Tag};

    const HOME: &str = r#"
format = 1
name = "two servers, one station"
duration = "1s"
[wan]
delay = "3ms"
rate_down = "12Mbit/s"
rate_up = "12Mbit/s"
buffer_down = 2
[[server]]
name = "W1"
delay = "1ms"
[[server]]
name = "W2"
delay = "2ms"
[wifi]
[[station]]
name = "N"
"#;
    const W1: Port = Port(2);
    const W2: Port = Port(3);
    const N: Port = Port(4);

    fn network(text: &str) -> Network {
        crate::medium::network(&Scenario::parse(text, "home.toml", &[]).unwrap())
    }

    fn frame(slot: u32, to: Port) -> Frame {
        let (len, headers) = ((1500 + ETHERNET) as u16, crate::arena::Headers::default());
        Frame { slot, len, to, tag: Tag::Other, is_realtime: false, headers, is_sound: false }
    }

    fn us(n: u64) -> Time {
        Time::from_nanos(n * 1000)
    }

    /// Everything that leaves by `until`: microsecond, slot, or the place of loss.
    fn exits(network: &mut Network, until: Time) -> Vec<(u64, Result<u32, LostAt>)> {
        std::iter::from_fn(|| network.poll(until))
            .map(|exit| match exit {
                Exit::Delivered { at, frame } => (at.as_nanos() / 1000, Ok(frame.slot)),
                Exit::Lost { at, place, frame } => {
                    assert!(frame.slot < 100);
                    (at.as_nanos() / 1000, Err(place))
                }
            })
            .collect()
    }

    #[test]
    fn a_frame_from_a_server_crosses_its_link_and_the_line() {
        let mut network = network(HOME);
        network.on_frame(us(100), W1, frame(1, AddressPlan::WAN));
        // 1 ms of link, then 1500 B at 12 Mbit/s and 3 ms of line.
        assert_eq!(exits(&mut network, us(5099)), []);
        assert_eq!(exits(&mut network, us(90_000)), [(5100, Ok(1))], "exact, however late");
    }

    #[test]
    fn servers_reach_each_other_without_the_line() {
        let mut network = network(HOME);
        network.on_frame(us(0), W1, frame(1, W2));
        assert_eq!(exits(&mut network, us(90_000)), [(3000, Ok(1))]);
    }

    #[test]
    fn without_a_line_a_frame_arrives_when_its_link_is_done() {
        let text = HOME.replace("[wan]", "").replace("delay = \"3ms\"\n", "").replace("buffer_down = 2\n", "");
        let text = text.replace("rate_down = \"12Mbit/s\"\nrate_up = \"12Mbit/s\"\n", "");
        let mut network = network(&text);
        network.on_frame(us(0), W2, frame(1, AddressPlan::WAN));
        network.on_frame(us(0), AddressPlan::WAN, frame(2, W1));
        assert_eq!(exits(&mut network, us(90_000)), [(1000, Ok(2)), (2000, Ok(1))]);
    }

    #[test]
    fn every_frame_that_a_full_line_refuses_is_told() {
        let mut network = network(HOME);
        for slot in 0..6 {
            network.on_frame(us(0), W1, frame(slot, AddressPlan::WAN));
        }
        let wired = Err(LostAt::Wired);
        let expected = [(1000, wired), (1000, wired), (1000, wired), (5000, Ok(0)), (6000, Ok(1)), (7000, Ok(2))];
        assert_eq!(exits(&mut network, us(90_000)), expected);
    }

    #[test]
    fn the_air_loses_at_the_queue_of_whoever_sends() {
        let mut network = network(HOME);
        for slot in 0..60 {
            network.on_frame(us(0), AddressPlan::WLAN, frame(slot, N));
            network.on_frame(us(0), N, frame(slot, AddressPlan::WLAN));
        }
        let exits = exits(&mut network, us(900_000));
        let lost = |place| exits.iter().filter(|(_, exit)| *exit == Err(place)).count();
        // 50 wait and one is in service, on each side.
        assert_eq!((lost(LostAt::ApQueue), lost(LostAt::StationQueue), lost(LostAt::Channel)), (9, 9, 0));
        assert_eq!(exits.len(), 120);
        assert!(exits.is_sorted_by_key(|(at, _)| *at));
    }
}

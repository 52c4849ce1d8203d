//! Everything between the TAPs as one model: wired links, the line, the air.
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
use lasthop_wifi::{Event, Medium, NodeId, Place};
use std::collections::VecDeque;

/// Where a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostAt {
    /// A wired link's buffer.
    Wired,
    /// The access point's queue towards the air.
    ApQueue,
    /// A station's queue.
    StationQueue,
    /// On the air, all attempts used up.
    Air,
}

/// A frame that leaves the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// To be written to the TAP `frame.to`.
    Delivered {
        /// When it arrives there.
        at: Time,
        /// Which frame.
        frame: Frame,
    },
    /// Gone.
    Lost {
        /// When.
        at: Time,
        /// Where.
        place: LostAt,
        /// Which frame.
        frame: Frame,
    },
}

/// The parts, by the way they are polled.
#[derive(Clone, Copy)]
enum Part {
    Up(usize),
    Down(usize),
    LineToServers,
    LineToAccessPoint,
    Air,
}

/// What joins W0 to the access point.
pub struct Line {
    /// Away from the home.
    pub to_servers: Link<Frame>,
    /// Into the home.
    pub to_access_point: Link<Frame>,
}

/// The wires and the air of a home.
pub struct Network {
    plan: AddressPlan,
    /// `up[server]`, `down[server]`: each server's own link to W0 and back.
    up: Vec<Link<Frame>>,
    down: Vec<Link<Frame>>,
    /// Absent: no delay, no limit.
    line: Option<Line>,
    air: Medium<Frame>,
    /// The air was touched at this time and may have more to say.
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
        line: Option<Line>,
        air: Medium<Frame>,
    ) -> Self {
        Self { plan, up, down, line, air, stirred: None, ready: VecDeque::with_capacity(64) }
    }

    /// A host sent `frame` through its interface `from` at `at`, which is no earlier than anything polled before.
    pub fn on_frame(&mut self, at: Time, from: Port, frame: Frame) {
        match (from, self.plan.host(from)) {
            (AddressPlan::WAN, _) => self.towards_servers(at, frame),
            (_, HostId::AccessPoint) => {
                if let HostId::Station(i) = self.plan.host(frame.to) {
                    self.air.on_packet(at, NodeId(0), NodeId(i as u16 + 1), frame);
                    self.stirred = Some(at);
                }
            }
            (_, HostId::Station(i)) => {
                self.air.on_packet(at, NodeId(i as u16 + 1), NodeId(0), frame);
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
                match self.air.poll(at) {
                    Some(event) => return Some(leave_air(event)),
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

    /// The air, to be changed or read.
    pub fn air(&mut self) -> &mut Medium<Frame> {
        &mut self.air
    }

    /// Figures of the wired buffers, by name.
    #[must_use]
    pub fn wires(&self, scenario: &Scenario, now: Time) -> Vec<(String, fifo::Snapshot)> {
        let mut list = Vec::new();
        if let Some(line) = &self.line {
            list.push(("line down".to_owned(), line.to_access_point.snapshot(now)));
            list.push(("line up".to_owned(), line.to_servers.snapshot(now)));
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
        offer(self.air.next_deadline(), Part::Air);
        if let Some(line) = &self.line {
            offer(line.to_servers.next_deadline(), Part::LineToServers);
            offer(line.to_access_point.next_deadline(), Part::LineToAccessPoint);
        }
        for (i, (up, down)) in self.up.iter().zip(&self.down).enumerate() {
            offer(up.next_deadline(), Part::Up(i));
            offer(down.next_deadline(), Part::Down(i));
        }
        best
    }

    fn advance(&mut self, part: Part, now: Time) -> Option<Exit> {
        match part {
            Part::Air => {
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
            Part::LineToAccessPoint => {
                let (at, frame) = self.line.as_mut()?.to_access_point.poll(now)?;
                Some(Exit::Delivered { at, frame })
            }
            Part::LineToServers => {
                let (at, frame) = self.line.as_mut()?.to_servers.poll(now)?;
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
        match &mut self.line {
            None => Some(Exit::Delivered { at, frame }),
            Some(line) => {
                let pushed = line.to_access_point.on_packet(at, frame);
                self.lost_unless(at, pushed);
                None
            }
        }
    }

    fn towards_servers(&mut self, at: Time, frame: Frame) {
        match &mut self.line {
            None => self.down_to(at, frame),
            Some(line) => {
                let pushed = line.to_servers.on_packet(at, frame);
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

fn leave_air(event: Event<Frame>) -> Exit {
    match event {
        Event::Delivered { at, packet, .. } => Exit::Delivered { at, frame: packet },
        Event::Dropped { at, node, place, packet } => {
            let place = match (place, node) {
                (Place::Air, _) => LostAt::Air,
                (Place::Queue, NodeId(0)) => LostAt::ApQueue,
                (Place::Queue, _) => LostAt::StationQueue,
            };
            Exit::Lost { at, place, frame: packet }
        }
    }
}

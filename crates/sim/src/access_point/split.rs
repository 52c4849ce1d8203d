//! Split connections (I-TCP): the access point ends a TCP connection and begins another one.
//!
//! ```text
//! from == first half ==> access point == second half ==> to
//!          a flow of its own, behind those of the scenario    the flow itself: its figures are those of this half
//! ```
//!
//! The access point acknowledges what it has, before the receiver has it. It holds at most `buffer` bytes: what the second half
//! has not had acknowledged comes off the window that the first is offered. The second half opens when the SYN of the first
//! arrives, and has the flow's sender, too.
//!
//! Source: Bakre and Badrinath, "I-TCP: Indirect TCP for mobile hosts", ICDCS 1995. Does not: move the connection's state
//! with a hand-off.

use lasthop_core::units::Time;
use lasthop_home::report::FlowReport;

use super::Stage;
use crate::flows::Flows;
use crate::halves::Halves;

/// See the module.
pub struct SplitConnections {
    halves: Halves,
    /// What the access point holds of one connection, bytes.
    buffer: u64,
}

impl SplitConnections {
    /// Before any of them opens.
    pub const fn new(halves: Halves, buffer: u64) -> Self {
        Self { halves, buffer }
    }

    /// What the second half has not delivered comes off the window of the first. The server is told of room by itself when
    /// half of the buffer is free.
    fn make_room(&self, first: usize, second: usize, flows: &mut Flows) {
        let Some(delivered) = flows.connection(second).map(|half| half.sender.snapshot().acked_bytes) else { return };
        let Some(half) = flows.connection(first) else { return };
        let held = half.receiver.received().saturating_sub(delivered);
        half.receiver.set_limit(Some(self.buffer.saturating_sub(held)));
        half.receiver.on_room(self.buffer / 2);
    }

    /// The receiver of the second half has all bytes, where the first half has ended.
    fn complete(now: Time, first: usize, second: usize, flows: &mut Flows) {
        let Some(received) = flows.connection(second).map(|half| half.receiver.received()) else { return };
        let Some(half) = flows.connection(first) else { return };
        if half.receiver.is_finished() && received >= half.receiver.received() {
            flows[second].meter.on_completed(now);
        }
    }
}

impl Stage for SplitConnections {
    fn follows(&self) -> bool {
        true
    }

    /// What the first half has in order, the second may send.
    fn on_segment(&mut self, now: Time, flow: usize, _: u32, flows: &mut Flows) -> Option<usize> {
        if let Some(first) = self.halves.first(flow) {
            Self::complete(now, first, flow, flows);
            return None;
        }
        let second = self.halves.second(flow)?;
        let received = flows.connection(flow)?.receiver.received();
        flows.connection(second)?.sender.extend(received);
        self.make_room(flow, second, flows);
        Some(second)
    }

    fn on_acknowledged(&mut self, flow: usize, flows: &mut Flows) -> Option<usize> {
        let first = self.halves.first(flow)?;
        self.make_room(first, flow, flows);
        Some(first)
    }

    /// What the sender of the first half went through.
    fn report_flow(&self, flow: usize, end: Time, flows: &mut Flows, report: &mut FlowReport) {
        let Some(half) = self.halves.first(flow).and_then(|first| flows.connection(first)) else { return };
        let (start_up, metrics) = half.reports(end);
        (report.start_up.first_half, report.metrics.first_half) = (start_up, Some(metrics));
    }
}

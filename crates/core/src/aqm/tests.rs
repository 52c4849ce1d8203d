//! What the tests of several disciplines use.

use crate::packet::{FlowId, Packet};
use crate::units::{Span, Time};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sized {
    pub flow: u32,
    pub bytes: u32,
    pub number: u32,
    pub ect: bool,
    pub ce: bool,
}

impl Sized {
    pub fn of(flow: u32, bytes: u32) -> Self {
        Self { flow, bytes, number: 0, ect: false, ce: false }
    }
}

impl Packet for Sized {
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn mark_ce(&mut self) -> bool {
        self.ce |= self.ect;
        self.ect
    }
}

pub(super) fn at_us(us: u64) -> Time {
    Time::ZERO + Span::from_micros(us)
}

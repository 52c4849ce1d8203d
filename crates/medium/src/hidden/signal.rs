//! Frames in flight, and what each node makes of them.
//!
//! `P_ij = mean_ij + X`, mean by distance and path loss, X drawn per frame and receiver with shadowing   [dBm]
//! heard at j:   `P_ij >= carrier-sense threshold`
//! decoded at j: `P_ij >= receive threshold`, j sent nothing meanwhile, and
//!               `P_ij >= capture + 10 log10(I_ij)`, I_ij the most power of all other frames together that j received
//!               at any one moment of it [mW]
//!
//! Under ns-2's rules a receiver is locked to a frame instead. It locks to the first that it hears; of another one, heard
//! meanwhile:
//! weaker by capture:   passed over; the first goes on
//! else:                both are lost, and the receiver stays locked to the one that ends later
//! Source: ns-2's Phy/WirelessPhy and Mac/802_11. Of frames that begin at one moment the nearest comes first there, by the way
//! through the air; here the one with the greater mean power.

use lasthop_core::packet::Packet;
use lasthop_core::units::{Span, Time};

use crate::node::Node;
use crate::params::MediumParams;
use crate::propagation::{Loss, milliwatts};
use crate::random::Stream;

/// Path loss exponent where the loss model names none: free space.
const FREE_SPACE: f64 = 2.0;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Rts,
    Cts,
    /// CTS-to-self included.
    Data,
    Ack,
}

/// A frame's place in an exchange.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub kind: Kind,
    pub from: u16,
    pub to: u16,
    pub duration: Span,
    /// For how long after its end those who decode it and are not addressed keep silent.
    pub nav: Span,
}

/// What one node receives of a frame.
#[derive(Clone, Copy, Debug, Default)]
struct Reception {
    power_mw: f64,
    /// I: see the module.
    worst_mw: f64,
    heard: bool,
    /// The node sends.
    deaf: bool,
    /// The node sent when the frame began: it hears energy, no frame.
    missed: bool,
    /// The node was locked to another frame, or met another one while locked to this.
    crossed: bool,
}

/// A frame in flight.
#[derive(Clone, Debug)]
pub struct Signal {
    pub frame: Frame,
    pub start: Time,
    receptions: Vec<Reception>,
}

/// How a frame ended at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Too weak to be noticed.
    Nothing,
    /// Decodable, as far as power and other frames go.
    Frame,
    /// Noticed from its beginning, and lost for want of power.
    Weak,
    /// The same, but lost because others sent too.
    Spoiled,
    /// Noticed as energy only.
    Energy,
}

impl Signal {
    /// Whether a node notices it.
    pub fn is_heard(&self, node: u16) -> bool {
        self.receptions[usize::from(node)].heard
    }

    /// Whether a node hears its answer come.
    pub fn answers(&self, node: u16) -> bool {
        self.frame.to == node && matches!(self.frame.kind, Kind::Cts | Kind::Ack) && self.is_heard(node)
    }

    /// How it ends at a node.
    pub fn ends(&self, node: u16, signals: &Signals) -> Heard {
        let reception = &self.receptions[usize::from(node)];
        if !reception.heard {
            return Heard::Nothing;
        }
        let strong = reception.power_mw >= signals.receive_mw;
        let captured = match signals.locked {
            Some(_) => !reception.crossed,
            None => reception.power_mw >= reception.worst_mw * signals.capture,
        };
        match (reception.missed, reception.deaf, strong && captured, strong) {
            (true, ..) => Heard::Energy,
            (false, false, true, _) => Heard::Frame,
            (false, false, false, false) => Heard::Weak,
            _ => Heard::Spoiled,
        }
    }
}

/// Everything in flight.
#[derive(Clone, Debug)]
pub struct Signals {
    nodes: usize,
    /// `mean[from x nodes + to]`, dBm.
    mean: Vec<f64>,
    deviation_db: f64,
    carrier_sense_mw: f64,
    receive_mw: f64,
    /// Ratio of powers.
    capture: f64,
    pub signals: Vec<Signal>,
    /// `locked[node]`: who sends the frame that it is locked to. Under ns-2's rules only.
    locked: Option<Vec<Option<u16>>>,
    /// Receptions of frames that are over, to be used again.
    spare: Vec<Vec<Reception>>,
}

impl Signals {
    pub fn new<P: Packet + Copy>(params: &MediumParams, nodes: &[Node<P>], is_ns2: bool) -> Self {
        let mut signals = Self {
            nodes: nodes.len(),
            mean: vec![0.0; nodes.len() * nodes.len()],
            deviation_db: 0.0,
            carrier_sense_mw: params.radio.carrier_sense_threshold_w * 1e3,
            receive_mw: params.radio.receive_threshold_w * 1e3,
            capture: milliwatts(params.radio.capture_db),
            signals: Vec::with_capacity(8),
            locked: is_ns2.then(|| vec![None; nodes.len()]),
            spare: Vec::new(),
        };
        signals.measure(params, nodes);
        signals
    }

    /// Computes mean powers again, after positions or the loss model changed.
    pub fn measure<P: Packet + Copy>(&mut self, params: &MediumParams, nodes: &[Node<P>]) {
        let (exponent, deviation_db) = match params.loss {
            Loss::Shadowing { exponent, deviation_db } => (exponent, deviation_db),
            Loss::None | Loss::Fixed { .. } => (FREE_SPACE, 0.0),
        };
        self.deviation_db = deviation_db;
        for (i, from) in nodes.iter().enumerate() {
            for (j, to) in nodes.iter().enumerate() {
                let metres = from.distance_to(to);
                self.mean[i * self.nodes + j] = params.radio.mean_power(from.power_w, metres, exponent);
            }
        }
    }

    /// A frame begins. `sends[node]`: it is sending; the sender itself included.
    pub fn begin(&mut self, at: Time, frame: Frame, sends: impl Fn(u16) -> bool, channel: &mut Stream) -> &Signal {
        let mut receptions = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(self.nodes));
        receptions.clear();
        let from = usize::from(frame.from);
        for to in 0..self.nodes {
            let mean = self.mean[from * self.nodes + to];
            if to == from {
                receptions.push(Reception { deaf: true, missed: true, ..Reception::default() });
                continue;
            }
            let power = if self.deviation_db > 0.0 { channel.normal(mean, self.deviation_db) } else { mean };
            let power_mw = milliwatts(power);
            let deaf = sends(to as u16);
            let heard = power_mw >= self.carrier_sense_mw.min(self.receive_mw);
            receptions.push(Reception { power_mw, heard, deaf, missed: deaf, ..Reception::default() });
        }
        for other in &mut self.signals {
            other.receptions[from].deaf = true;
        }
        self.signals.push(Signal { frame, start: at, receptions });
        if let Some(mut locked) = self.locked.take() {
            self.lock(&mut locked);
            self.locked = Some(locked);
        } else if self.signals.len() > 1 {
            self.interfere();
        }
        self.signals.last().expect("one was just added")
    }

    /// Each frame meets the others.
    fn interfere(&mut self) {
        for node in 0..self.nodes {
            let power = |signal: &Signal| signal.receptions[node].power_mw;
            for index in 0..self.signals.len() {
                let others = self.signals.iter().enumerate().filter(|(other, _)| *other != index);
                let sum: f64 = others.map(|(_, signal)| power(signal)).sum();
                let reception = &mut self.signals[index].receptions[node];
                reception.worst_mw = reception.worst_mw.max(sum);
            }
        }
    }

    /// The frame that has just begun meets receivers that are locked to another one, or to none.
    fn lock(&mut self, locked: &mut [Option<u16>]) {
        let Some((young, olds)) = self.signals.split_last_mut() else { return };
        let from = young.frame.from;
        for (node, locked) in locked.iter_mut().enumerate() {
            let new = &mut young.receptions[node];
            if !new.heard {
                continue;
            }
            let Some(old) = olds.iter_mut().find(|old| Some(old.frame.from) == *locked) else {
                *locked = Some(from);
                continue;
            };
            let mean = |from: u16| self.mean[usize::from(from) * self.nodes + node];
            let comes_first = old.start == young.start && mean(from) > mean(old.frame.from);
            let outlasts = young.start + young.frame.duration > old.start + old.frame.duration;
            let old = &mut old.receptions[node];
            let (first, second) = if comes_first { (new, old) } else { (old, new) };
            let passed_over = first.power_mw >= second.power_mw * self.capture;
            second.crossed = true;
            first.crossed |= !passed_over;
            let stays_with_new = if passed_over { comes_first } else { outlasts };
            if stays_with_new {
                *locked = Some(from);
            }
        }
    }

    /// Whether a node sends a frame that is not over at `at`.
    pub fn sends_after(&self, node: u16, at: Time) -> bool {
        self.signals.iter().any(|signal| signal.frame.from == node && signal.start + signal.frame.duration > at)
    }

    /// The frame that a node sends is over.
    pub fn end(&mut self, from: u16) -> Option<Signal> {
        let index = self.signals.iter().position(|signal| signal.frame.from == from)?;
        for locked in self.locked.iter_mut().flatten() {
            *locked = locked.filter(|sender| *sender != from);
        }
        Some(self.signals.swap_remove(index))
    }

    /// Keeps the memory of a frame that is over.
    pub fn forget(&mut self, signal: Signal) {
        self.spare.push(signal.receptions);
    }
}

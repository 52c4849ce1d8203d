//! A run over time in 600 stretches, and the distribution of delays: what a plot needs, in little memory however long the run.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringDictionaryBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Float64Array};
use lasthop_core::units::Span;
use lasthop_home::course::{Course, Packets, Stretches, Windows};
use lasthop_home::scenario::Scenario;
use lasthop_sim::TraceLine;
use pyo3::prelude::*;

use crate::arrow::{Table, batch};

/// See the module.
pub struct Series {
    course: Course,
    /// Payload bytes of a segment of each TCP flow.
    sizes: BTreeMap<String, f64>,
}

/// The course of a run as tables.
pub struct Tables {
    /// By flow and stretch.
    pub flows: Table,
    /// Of the access point's queue, by stretch.
    pub queue: Table,
    /// Of the delays of each flow.
    pub delays: Table,
}

impl Series {
    pub fn new(home: &Scenario) -> Self {
        let sizes = home.flows.iter().filter_map(|flow| Some((flow.name.clone(), flow.tcp()?.mss.0 as f64))).collect();
        Self { course: Course::new(home), sizes }
    }

    /// Adds what `line` says. A window that was never read is 0 there, and none.
    pub fn line(&mut self, line: &TraceLine) {
        let since = Span::from_secs_f64(line.t_s);
        line.queue_packets.into_iter().for_each(|packets| self.course.queue.note(since, packets as f64));
        let Some(name) = line.flow.as_deref() else { return };
        let Some(size) = self.sizes.get(name) else { return };
        let bytes = |window: Option<u64>| window.filter(|bytes| *bytes > 0).map(|bytes| bytes as f64);
        let windows = Windows {
            congestion: line.cwnd.filter(|segments| segments.is_finite()).map(|segments| segments * size),
            offered: bytes(line.offered_window),
            allowed: bytes(line.clamped_window),
        };
        self.course.on_windows(since, name, windows);
    }

    pub fn finish(mut self, packets: Vec<Option<Packets>>) -> PyResult<Tables> {
        self.course.set_packets(packets);
        Ok(Tables { flows: self.flows()?, queue: self.queue()?, delays: self.delays()? })
    }

    fn flows(&self) -> PyResult<Table> {
        const FLOATS: [&str; 6] =
            ["delay_mean_ms", "delay_max_ms", "goodput_bps", "cwnd_bytes", "offered_bytes", "allowed_bytes"];
        let mut flow = StringDictionaryBuilder::<Int32Type>::new();
        let mut t_s = Float64Builder::new();
        let mut floats: [Float64Builder; 6] = Default::default();
        for one in &self.course.flows {
            let step = one.congestion.step().as_secs_f64();
            let empty = Stretches::new(Span::ZERO);
            let (delay, arrived) = one.packets.as_ref().map_or((&empty, &empty), |p| (&p.delay, &p.arrived));
            let goodput = arrived.per_second().map(|bytes| one.packets.as_ref().map(|_| bytes * 8.0));
            let windows = one.congestion.mean().zip(one.offered.mean()).zip(one.allowed.mean());
            let delays = delay.mean().zip(delay.most());
            for (i, (((mean, most), goodput), ((cwnd, offered), allowed))) in
                delays.zip(goodput).zip(windows).enumerate()
            {
                flow.append_value(&one.name);
                t_s.append_value(i as f64 * step);
                let row = [mean, most, goodput, cwnd, offered, allowed];
                floats.iter_mut().zip(row).for_each(|(to, value)| to.append_option(value));
            }
        }
        let mut columns: Vec<(&str, ArrayRef)> =
            vec![("flow", Arc::new(flow.finish())), ("t_s", Arc::new(t_s.finish()))];
        columns.extend(FLOATS.into_iter().zip(&mut floats).map(|(name, it)| (name, Arc::new(it.finish()) as ArrayRef)));
        Ok(Table::of(batch(columns)?))
    }

    fn queue(&self) -> PyResult<Table> {
        let queue = &self.course.queue;
        let step = queue.step().as_secs_f64();
        let t_s: Float64Array = (0..queue.mean().count()).map(|i| Some(i as f64 * step)).collect();
        let mean: Float64Array = queue.mean().collect();
        let most: Float64Array = queue.most().collect();
        let columns: Vec<(&str, ArrayRef)> =
            vec![("t_s", Arc::new(t_s)), ("packets_mean", Arc::new(mean)), ("packets_max", Arc::new(most))];
        Ok(Table::of(batch(columns)?))
    }

    /// `fraction` of the packets that the report counts took at most `delay_ms`; steps of 0.1 %.
    fn delays(&self) -> PyResult<Table> {
        let mut flow = StringDictionaryBuilder::<Int32Type>::new();
        let (mut fraction, mut delay) = (Float64Builder::new(), Float64Builder::new());
        for (one, packets) in self.course.flows.iter().filter_map(|one| Some((one, one.packets.as_ref()?))) {
            for i in 0..=1000u32 {
                let at = f64::from(i) / 1000.0;
                let Some(value) = packets.delays.quantile(at).map(Span::as_millis_f64) else { break };
                flow.append_value(&one.name);
                fraction.append_value(at);
                delay.append_value(value);
            }
        }
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("flow", Arc::new(flow.finish())),
            ("fraction", Arc::new(fraction.finish())),
            ("delay_ms", Arc::new(delay.finish())),
        ];
        Ok(Table::of(batch(columns)?))
    }
}

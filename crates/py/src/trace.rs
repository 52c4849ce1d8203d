//! The lines of a trace as columns, built while the home runs.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, Int32Builder, UInt64Builder};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, StringArray};
use arrow_buffer::ScalarBuffer;
use lasthop_home::scenario::Scenario;
use lasthop_sim::TraceLine;
use pyo3::prelude::*;

use crate::arrow::{Table, batch};

/// Most lines of one trace: 4 GB.
const MOST_LINES: usize = 40_000_000;

/// See the module.
pub struct Trace {
    t_s: Vec<f64>,
    names: Vec<String>,
    by_name: HashMap<String, i32>,
    flow: Int32Builder,
    queue: Int32Builder,
    floats: [Float64Builder; 5],
    counts: [UInt64Builder; 4],
}

const FLOATS: [&str; 5] = ["cwnd", "ssthresh", "rate_bps", "bandwidth_bps", "delay_ms"];
const COUNTS: [&str; 4] = ["offered_window", "clamped_window", "inflight", "queue_packets"];

impl Trace {
    pub fn new(home: &Scenario) -> Self {
        let names: Vec<String> = home.flows.iter().map(|flow| flow.name.clone()).collect();
        let by_name = names.iter().enumerate().map(|(i, name)| (name.clone(), i as i32)).collect();
        Self {
            t_s: Vec::new(),
            names,
            by_name,
            flow: Int32Builder::new(),
            queue: Int32Builder::new(),
            floats: Default::default(),
            counts: Default::default(),
        }
    }

    fn place(&mut self, name: Option<&String>) -> Option<i32> {
        let name = name?;
        if let Some(place) = self.by_name.get(name) {
            return Some(*place);
        }
        let place = self.names.len() as i32;
        self.names.push(name.clone());
        self.by_name.insert(name.clone(), place);
        Some(place)
    }

    /// Adds a line. An infinite `ssthresh`, as before the first loss, is null, as in the file that `lasthop sim --trace` writes.
    pub fn line(&mut self, line: &TraceLine) -> io::Result<()> {
        if self.t_s.len() == MOST_LINES {
            let why = format!("the trace has more than {MOST_LINES} lines; run for a shorter time");
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, why));
        }
        let (flow, queue) = (self.place(line.flow.as_ref()), self.place(line.queue.as_ref()));
        self.t_s.push(line.t_s);
        self.flow.append_option(flow);
        self.queue.append_option(queue);
        let floats = [line.cwnd, line.ssthresh, line.rate_bps, line.bandwidth_bps, line.delay_ms];
        for (to, value) in self.floats.iter_mut().zip(floats) {
            to.append_option(value.filter(|value| value.is_finite()));
        }
        let counts = [line.offered_window, line.clamped_window, line.inflight, line.queue_packets];
        self.counts.iter_mut().zip(counts).for_each(|(to, value)| to.append_option(value));
        Ok(())
    }

    pub fn finish(mut self) -> PyResult<Table> {
        let names: ArrayRef = Arc::new(StringArray::from_iter_values(&self.names));
        let named = |mut keys: Int32Builder| -> PyResult<ArrayRef> {
            let array = DictionaryArray::<Int32Type>::try_new(keys.finish(), Arc::clone(&names));
            Ok(Arc::new(array.map_err(|error| crate::refused(&error))?))
        };
        let mut columns: Vec<(&str, ArrayRef)> = vec![
            ("t_s", Arc::new(Float64Array::new(ScalarBuffer::from(self.t_s), None))),
            ("flow", named(self.flow)?),
            ("queue", named(self.queue)?),
        ];
        let mut floats = FLOATS.into_iter().zip(&mut self.floats);
        let mut counts = COUNTS.into_iter().zip(&mut self.counts);
        // In the order of the file: cwnd, ssthresh, windows and queue, then rates and the delay.
        columns.extend(floats.by_ref().take(2).map(|(name, it)| (name, Arc::new(it.finish()) as ArrayRef)));
        columns.extend(counts.by_ref().map(|(name, it)| (name, Arc::new(it.finish()) as ArrayRef)));
        columns.extend(floats.map(|(name, it)| (name, Arc::new(it.finish()) as ArrayRef)));
        Ok(Table::of(batch(columns)?))
    }
}

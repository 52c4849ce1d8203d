//! A law of congestion control that is written in Python: called per acknowledgment and per loss, with the interpreter's lock.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use lasthop_core::units::{Span, Time};
use lasthop_home::scenario::Scenario;
use lasthop_sim::{Law, LawAck, LawWindow};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

#[doc = doc!("Window")]
#[pyclass(module = "lasthop")]
#[derive(Clone, Copy)]
pub struct Window {
    #[doc = doc!("Window.cwnd")]
    #[pyo3(get, set)]
    cwnd: f64,
    #[doc = doc!("Window.ssthresh")]
    #[pyo3(get, set)]
    ssthresh: f64,
}

#[doc = doc!("Ack")]
#[pyclass(frozen, get_all, module = "lasthop")]
pub struct Ack {
    #[doc = doc!("Ack.now_s")]
    now_s: f64,
    #[doc = doc!("Ack.acked")]
    acked: f64,
    #[doc = doc!("Ack.counted")]
    counted: f64,
    #[doc = doc!("Ack.rtt_s")]
    rtt_s: Option<f64>,
    #[doc = doc!("Ack.srtt_s")]
    srtt_s: f64,
    #[doc = doc!("Ack.cwnd_limited")]
    cwnd_limited: bool,
}

/// The first exception that a law raised.
pub type Raised = Arc<Mutex<Option<PyErr>>>;

/// What makes the laws of a run, by the flow's name; `*`: of every other flow.
pub struct Makers {
    makers: Vec<(String, Py<PyAny>)>,
    raised: Raised,
}

impl Makers {
    /// Refuses names of flows that there are not.
    pub fn new(given: &Bound<'_, PyDict>, home: &Scenario) -> PyResult<Self> {
        let mut makers = Vec::new();
        for (name, make) in given {
            let name: String = name.extract()?;
            let flow = home.flows.iter().find(|flow| flow.name == name);
            if name != "*" && flow.is_none_or(|flow| flow.tcp().is_none()) {
                let tcp = home.flows.iter().filter(|flow| flow.tcp().is_some());
                let names: Vec<&str> = tcp.map(|flow| flow.name.as_str()).collect();
                return Err(PyValueError::new_err(format!(
                    "laws: there is no flow `{name}` over TCP; those are {}",
                    names.join(", ")
                )));
            }
            makers.push((name, make.unbind()));
        }
        Ok(Self { makers, raised: Raised::default() })
    }

    /// Where an exception is left.
    pub fn raised(&self) -> Raised {
        Arc::clone(&self.raised)
    }

    /// The law of a flow, if it has one.
    pub fn make(&self, flow: &str) -> Option<Box<dyn Law>> {
        let own = self.makers.iter().find(|(name, _)| name == flow);
        let (_, make) = own.or_else(|| self.makers.iter().find(|(name, _)| name == "*"))?;
        let made = Python::attach(|py| make.call1(py, (flow,)));
        match made {
            Ok(object) => Some(Box::new(Written { object, raised: self.raised() })),
            Err(error) => {
                keep(&self.raised, error);
                None
            }
        }
    }
}

fn keep(raised: &Raised, error: PyErr) {
    raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
}

struct Written {
    object: Py<PyAny>,
    raised: Raised,
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a law in Python")
    }
}

impl Written {
    fn call(
        &self,
        window: &mut LawWindow,
        call: impl for<'py> FnOnce(&Bound<'py, PyAny>, &Bound<'py, Window>) -> PyResult<Bound<'py, PyAny>>,
    ) {
        let called = Python::attach(|py| {
            let own = Bound::new(py, Window { cwnd: window.cwnd, ssthresh: window.ssthresh })?;
            call(self.object.bind(py), &own)?;
            let own = *own.borrow();
            if own.cwnd.is_nan() || own.ssthresh.is_nan() {
                return Err(PyValueError::new_err("a law made its window or its threshold no number (NaN)"));
            }
            Ok(own)
        });
        match called {
            Ok(own) => *window = LawWindow { cwnd: own.cwnd, ssthresh: own.ssthresh },
            Err(error) => keep(&self.raised, error),
        }
    }
}

impl Law for Written {
    fn on_ack(&mut self, window: &mut LawWindow, ack: &LawAck) {
        let ack = Ack {
            now_s: ack.now.since(Time::ZERO).as_secs_f64(),
            acked: ack.acked,
            counted: ack.counted,
            rtt_s: ack.rtt.map(Span::as_secs_f64),
            srtt_s: ack.srtt.as_secs_f64(),
            cwnd_limited: ack.cwnd_limited,
        };
        self.call(window, |law, window| law.call_method1("on_ack", (window, ack)));
    }

    fn on_loss(&mut self, window: &mut LawWindow, flight: f64, marked: bool) {
        self.call(window, |law, window| law.call_method1("on_loss", (window, flight, marked)));
    }

    fn on_timeout(&mut self, window: &mut LawWindow, flight: f64) {
        self.call(window, |law, window| law.call_method1("on_timeout", (window, flight)));
    }
}

//! Figures of one flow, packet by packet.
//!
//! Two populations, by the time a packet was *sent*: `start_up` in [youngest start, measure_from), the figures
//! proper in [measure_from, end). Every other packet of the run still counts for two things: the smallest delay, from
//! which `added_delay` is reckoned, and the arrival before, from which lateness is. Jitter pairs are formed of
//! packets received one after the other (a loss between them breaks no pair: both sides of the difference span it),
//! both of one population. Delays are counted in a histogram: a quantile is within 1/1024 of the delay it stands for.

use lasthop_core::meter::histogram::Histogram;
use lasthop_core::meter::jitter::Jitter;
use lasthop_core::meter::timely::Timely;
use lasthop_core::units::{Span, Time};

use super::in_order::InOrder;
use super::{AddedDelay, Delay, FlowReport, JitterReport, Lost, Metrics};
use crate::course::Packets;

/// Where a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossPlace {
    /// In the channel, after the last attempt.
    Channel,
    /// In the access point's queue.
    ApQueue,
    /// In a station's queue.
    StationQueue,
    /// In a wired buffer.
    Wired,
    /// Elsewhere.
    Other,
}

/// When the populations of a flow begin and end, since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Start of the flow that starts last.
    pub youngest_start: Span,
    /// Start of the figures proper.
    pub measure_from: Span,
    /// Start of this flow.
    pub start: Span,
    /// End of this flow: its stop, at most the end of the run.
    pub end: Span,
}

/// One population.
#[derive(Clone, Debug, Default)]
struct Population {
    sent: u64,
    duplicates: u64,
    lost: Lost,
    ip_bytes: u64,
    payload_bytes: u64,
    delays: Histogram,
    jitter: Jitter,
    timely: Timely,
}

/// The meter of one flow. Packets may be reported in any order of sending; arrivals in order of arrival.
#[derive(Clone, Debug)]
pub struct FlowMeter {
    window: Window,
    /// The run's start on the clock of the given times.
    origin: Time,
    start_up: Population,
    metrics: Population,
    min_delay: Option<Span>,
    /// When the flow was done, where it ended by itself.
    completed: Option<Time>,
    /// Population of the packet that arrived last, and when.
    last_arrival: Option<(Which, Time)>,
    in_order: InOrder,
    /// The same over time, where that is wanted.
    course: Option<Box<Packets>>,
}

/// The population of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Neither,
    StartUp,
    Metrics,
}

impl FlowMeter {
    /// The meter of a flow in a run that starts at `origin`.
    #[must_use]
    pub fn new(origin: Time, window: Window) -> Self {
        Self {
            window,
            origin,
            start_up: Population::default(),
            metrics: Population::default(),
            min_delay: None,
            completed: None,
            last_arrival: None,
            in_order: InOrder::default(),
            course: None,
        }
    }

    /// Also keeps what happens over time, of a run that lasts `duration`.
    pub fn keep_course(&mut self, duration: Span) {
        self.course = Some(Box::new(Packets::new(duration)));
    }

    /// What happened over time, where it was kept.
    #[must_use]
    pub fn course(&self) -> Option<Packets> {
        let kept = self.course.as_deref()?;
        Some(Packets { delays: self.metrics.delays.clone(), ..kept.clone() })
    }

    fn which(&self, sent: Time) -> Which {
        let since = sent.since(self.origin);
        match () {
            () if since >= self.window.end => Which::Neither,
            () if since >= self.window.measure_from => Which::Metrics,
            () if since >= self.window.youngest_start => Which::StartUp,
            () => Which::Neither,
        }
    }

    fn population(&mut self, sent: Time) -> Option<&mut Population> {
        self.one(self.which(sent))
    }

    fn one(&mut self, which: Which) -> Option<&mut Population> {
        match which {
            Which::Neither => None,
            Which::StartUp => Some(&mut self.start_up),
            Which::Metrics => Some(&mut self.metrics),
        }
    }

    /// A packet was handed to the network.
    pub fn on_sent(&mut self, at: Time) {
        if let Some(population) = self.population(at) {
            population.sent += 1;
            population.timely.on_sent();
        }
    }

    /// Its first copy arrived: IP bytes, and the payload among them that had not been received before.
    pub fn on_delivered(&mut self, sent: Time, received: Time, ip_bytes: u32, payload_bytes: u32) {
        let delay = received.since(sent);
        if let Some(course) = &mut self.course {
            course.delay.note(sent.since(self.origin), delay.as_millis_f64());
            course.arrived.note(received.since(self.origin), f64::from(payload_bytes));
        }
        self.min_delay = Some(self.min_delay.map_or(delay, |min| min.min(delay)));
        let which = self.which(sent);
        let before = self.last_arrival.replace((which, received));
        let Some(population) = self.one(which) else { return };
        if let Some((_, at)) = before.filter(|(other, _)| *other != which) {
            population.jitter.on_gap();
            population.timely.on_other_arrival(at);
        }
        population.ip_bytes += u64::from(ip_bytes);
        population.payload_bytes += u64::from(payload_bytes);
        population.delays.record(delay);
        population.jitter.on_packet(sent, received);
        population.timely.on_arrival(received);
    }

    /// Of a byte stream: the packet that was just delivered begins at `seq`, and everything before `next` has arrived.
    pub fn on_stream(&mut self, seq: u64, next: u64) {
        if let Some((which, at)) = self.last_arrival {
            self.in_order.on_packet(which, at, seq, next);
        }
    }

    /// Payload was first received at `at`, of packets that do not show it: those were delivered with none.
    pub fn on_payload(&mut self, at: Time, bytes: u64) {
        if let Some(population) = self.population(at) {
            population.payload_bytes += bytes;
        }
        if let Some(course) = &mut self.course {
            course.arrived.note(at.since(self.origin), bytes as f64);
        }
    }

    /// A further copy arrived.
    pub fn on_duplicate(&mut self, sent: Time) {
        if let Some(population) = self.population(sent) {
            population.duplicates += 1;
        }
    }

    /// It will not arrive.
    pub fn on_lost(&mut self, sent: Time, place: LossPlace) {
        let Some(population) = self.population(sent) else { return };
        population.timely.on_lost();
        let lost = &mut population.lost;
        *match place {
            LossPlace::Channel => &mut lost.channel,
            LossPlace::ApQueue => &mut lost.ap_queue,
            LossPlace::StationQueue => &mut lost.station_queue,
            LossPlace::Wired => &mut lost.wired,
            LossPlace::Other => &mut lost.other,
        } += 1;
    }

    /// The flow ended by itself: all of its bytes have arrived.
    pub fn on_completed(&mut self, at: Time) {
        self.completed = Some(at);
    }

    /// The run ended at `at`, before its time perhaps: rates are reckoned no further.
    pub fn end_by(&mut self, at: Time) {
        self.window.end = self.window.end.min(at.since(self.origin));
    }

    /// The smallest delay so far.
    #[must_use]
    pub fn min_delay(&self) -> Option<Span> {
        self.min_delay
    }

    /// The flow's report; `tcp` and `page` are the host's to add.
    #[must_use]
    pub fn finish(&self, name: &str, from: &str, to: &str, kind: &str) -> FlowReport {
        let Window { youngest_start, measure_from, start, end } = self.window;
        let end = self.completed.map_or(end, |at| end.min(at.since(self.origin)));
        let timely = |which, of: &Population| Some(self.in_order.timely(which)? as f64 / of.sent.max(1) as f64);
        let metrics = Metrics {
            timely_in_order: timely(Which::Metrics, &self.metrics),
            ..self.metrics.metrics(self.min_delay, end - measure_from.max(start))
        };
        let start_up = Metrics {
            timely_in_order: timely(Which::StartUp, &self.start_up),
            ..self.start_up.metrics(self.min_delay, end.min(measure_from) - youngest_start.max(start))
        };
        FlowReport {
            name: name.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            kind: kind.to_owned(),
            metrics,
            start_up,
        }
    }
}

impl Population {
    /// `over`: the time that rates are reckoned over.
    fn metrics(&self, min_delay: Option<Span>, over: Span) -> Metrics {
        let per_second = |bytes: u64| match over {
            Span::ZERO => 0.0,
            over => bytes as f64 * 8.0 / over.as_secs_f64(),
        };
        let delay = self.delay();
        Metrics {
            sent: self.sent,
            delivered: self.delays.count(),
            duplicates: self.duplicates,
            lost: self.lost,
            goodput_bps: per_second(self.payload_bytes),
            rate_bps: per_second(self.ip_bytes),
            delay,
            added_delay: delay.and_then(|delay| added_delay(&delay, min_delay)),
            jitter: self.jitter_report(),
            rfc3550: self.jitter.rfc3550().map(Span::as_millis_f64),
            timely_index: self.timely.index(),
            timely_in_order: None,
            delayed_rate: self.timely.delayed_rate(),
            loss_rate: self.timely.loss_rate(),
            tcp: None,
            first_half: None,
            rate_control: None,
            page: None,
        }
    }

    fn quantile(&self, q: f64) -> Option<f64> {
        self.delays.quantile(q).map(Span::as_millis_f64)
    }

    fn delay(&self) -> Option<Delay> {
        Some(Delay {
            min: self.delays.min()?.as_millis_f64(),
            mean: self.delays.mean()?.as_millis_f64(),
            p50: self.quantile(0.50)?,
            p95: self.quantile(0.95)?,
            p99: self.quantile(0.99)?,
            max: self.delays.max()?.as_millis_f64(),
        })
    }

    fn jitter_report(&self) -> Option<JitterReport> {
        Some(JitterReport {
            mean: self.jitter.mean()?.as_millis_f64(),
            var: self.jitter.variance_ms2()?,
            max: self.jitter.max()?.as_millis_f64(),
        })
    }
}

/// What a delay is above the flow's smallest.
fn added_delay(delay: &Delay, min_delay: Option<Span>) -> Option<AddedDelay> {
    let floor = min_delay?.as_millis_f64();
    let Delay { mean, p50, p95, p99, max, .. } = *delay;
    let above = |ms: f64| (ms - floor).max(0.0);
    Some(AddedDelay { mean: above(mean), p50: above(p50), p95: above(p95), p99: above(p99), max: above(max) })
}

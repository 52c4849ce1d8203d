//! What was seen, as `schema/report.md` has it.

use crate::engine::Counts;
use crate::medium;
use crate::network::{LostAt, Network};
use crate::observe::Watched;
use crate::players::tcp::Stretch;
use crate::stage::Played;
use lasthop_core::meter::histogram::Histogram;
use lasthop_core::units::{Span, Time};
use lasthop_home::course::{Course, Stretches};
use lasthop_home::report::{
    FORMAT, Fairness, FlowReport, Host, Lag, LossPlace, QueueReport, Report, Run, TcpReport, airtime_fairness,
    goodput_fairness, queue, stations,
};
use lasthop_home::scenario::{Flow, Scenario};

/// Everything a run leaves behind.
pub struct Seen {
    /// The models.
    pub network: Network,
    /// In the order of the scenario's flows.
    pub flows: Vec<Watched>,
    /// Scheduled against actual delivery.
    pub lag: Histogram,
    /// The engine's counters.
    pub counts: Counts,
    /// Packets that waited at the access point for stations, over time.
    pub queue: Option<Stretches>,
    /// Frames lost in TAP queues.
    pub drops: u64,
    /// What became of greedy flows.
    pub greedy: Played,
    /// Setting up included.
    pub wall: Span,
    /// Of the program.
    pub revision: String,
}

impl Seen {
    /// The figures of the whole run in the place of those from `measure_from` on.
    pub fn take_whole(&mut self) {
        self.flows.iter_mut().for_each(Watched::take_whole);
        for totals in self.greedy.senders.values_mut() {
            totals.metrics = std::mem::take(&mut totals.start_up);
        }
    }

    /// Adds to the course of the run what is known only at its end.
    #[must_use]
    pub fn tell(&mut self, mut course: Course) -> Course {
        course.set_packets(self.flows.iter().map(|flow| flow.meter.course()));
        for (i, flow) in course.flows.iter_mut().enumerate() {
            let sender = self.greedy.senders.get_mut(&i);
            flow.congestion = sender.and_then(|totals| totals.congestion.take()).unwrap_or(flow.congestion.clone());
        }
        course.queue = self.queue.take().unwrap_or(course.queue);
        course
    }
}

/// p99 of the lag above which a run says that it is not valid.
pub const MOST_LAG: Span = Span::from_millis(1);

/// The report, and why it is not valid. `scenario.duration` is how long it was played.
#[must_use]
pub fn assemble(scenario: &Scenario, mut seen: Seen) -> (Report, Vec<String>) {
    let end = Time::ZERO + scenario.duration;
    let drops = seen.drops + seen.counts.no_room + seen.counts.oversize;
    let lag_p99 = seen.lag.quantile(0.99).unwrap_or_default();
    let mut notes = Vec::new();
    if lag_p99 > MOST_LAG {
        notes.push(format!("not valid: p99 lag {:.2} ms is above 1 ms; is the machine busy?", lag_p99.as_millis_f64()));
    }
    if drops > 0 {
        notes.push(format!("not valid: {drops} frames were lost between the hosts and the engine"));
    }
    let quiet_since = end - (medium::longest_path_delay(scenario) + Span::from_secs(2));
    let vanished: u64 = seen.flows.iter().map(|f| f.vanished(quiet_since)).sum();
    if vanished > 0 {
        notes.push(format!("{vanished} packets were still queued 2 s later, or vanished inside a host"));
    }
    seen.flows.iter_mut().for_each(|flow| flow.meter.end_by(end));
    let greedy = std::mem::take(&mut seen.greedy);
    let pairs = scenario.flows.iter().zip(&mut seen.flows).enumerate();
    let flows: Vec<FlowReport> =
        pairs.map(|(i, (flow, watched))| report(scenario, flow, watched, (i, &greedy))).collect();
    let medium = seen.network.medium().snapshot(end);
    let report = Report {
        format: FORMAT,
        scenario: scenario.name.clone(),
        seed: scenario.seed,
        duration_s: scenario.duration.as_secs_f64(),
        measure_from_s: scenario.measure_from.as_secs_f64(),
        run: Run {
            host: Host::Emu,
            revision: seen.revision,
            wall_s: seen.wall.as_secs_f64(),
            events: seen.counts.events,
            valid: lag_p99 <= MOST_LAG && drops == 0,
            lag_ms: Some(lag(&seen.lag)),
            drops: Some(drops),
        },
        fairness: Fairness { goodput: goodput_fairness(scenario, &flows), airtime: airtime_fairness(&medium.nodes) },
        flows,
        stations: stations(scenario, &medium, scenario.duration),
        queues: queues(scenario, &seen.network, &medium.queues, end),
        control: None,
        snoop: None,
    };
    (report, notes)
}

fn report(scenario: &Scenario, flow: &Flow, watched: &mut Watched, (i, greedy): (usize, &Played)) -> FlowReport {
    let totals = greedy.senders.get(&i);
    for (at, bytes) in greedy.receivers.get(&i).into_iter().flatten() {
        watched.meter.on_payload(Time::ZERO + *at, *bytes);
    }
    if let Some(at) = totals.and_then(|t| t.completed) {
        watched.meter.on_completed(Time::ZERO + at);
    }
    let (from, to) = (scenario.host_name(flow.from), scenario.host_name(flow.to));
    let mut report = watched.meter.finish(&flow.name, from, to, flow.kind.name());
    if let Some(totals) = totals {
        let (metrics, start_up) = (Some(tcp(&totals.metrics)), Some(tcp(&totals.start_up)));
        // A proxy's own sender is not asked.
        if scenario.is_split(flow) {
            (report.metrics.first_half, report.start_up.first_half) = (metrics, start_up);
        } else {
            (report.metrics.tcp, report.start_up.tcp) = (metrics, start_up);
        }
    }
    report
}

fn tcp(stretch: &Stretch) -> TcpReport {
    TcpReport {
        acked_packets: stretch.bytes_acked.div_ceil(u64::from(stretch.mss.max(1))),
        retransmitted: stretch.retransmitted,
        timeouts: stretch.timeouts,
        fast_retransmits: stretch.recoveries,
        cwnd_max: f64::from(stretch.cwnd_max),
        cwnd_mean: stretch.cwnd_mean(),
        srtt_ms: f64::from(stretch.srtt_us) / 1e3,
        local_retransmitted: None,
    }
}

fn lag(lag: &Histogram) -> Lag {
    let at = |q| lag.quantile(q).unwrap_or_default().as_millis_f64();
    Lag { p50: at(0.50), p99: at(0.99), p999: at(0.999), max: lag.max().unwrap_or_default().as_millis_f64() }
}

fn queues(
    scenario: &Scenario,
    network: &Network,
    medium: &[lasthop_core::aqm::fifo::Snapshot],
    end: Time,
) -> Vec<QueueReport> {
    let names = scenario.queue_names().into_iter();
    let mut list: Vec<QueueReport> = names.zip(medium).map(|(name, metrics)| queue(&name, metrics)).collect();
    list.extend(network.wires(scenario, end).iter().map(|(name, metrics)| queue(name, metrics)));
    list
}

impl From<LostAt> for LossPlace {
    fn from(at: LostAt) -> Self {
        match at {
            LostAt::Wired => Self::Wired,
            LostAt::ApQueue => Self::ApQueue,
            LostAt::StationQueue => Self::StationQueue,
            LostAt::Channel => Self::Channel,
        }
    }
}

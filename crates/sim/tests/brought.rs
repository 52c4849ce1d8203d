//! A congestion control law that the caller brings: NewReno brought is the engine's NewReno, bit by bit.

mod common;

use std::sync::{Arc, Mutex};

use common::{home, run};
use lasthop_home::report::Report;
use lasthop_home::scenario::Scenario;
use lasthop_sim::{Law, LawAck, LawWindow, Options};

/// Calls per ACK, per loss, per timeout.
type Calls = Arc<Mutex<[u32; 3]>>;

/// RFC 5681 equations 2 to 4, RFC 3465.
#[derive(Debug)]
struct NewReno(Calls);

impl Law for NewReno {
    fn on_ack(&mut self, window: &mut LawWindow, ack: &LawAck) {
        self.0.lock().unwrap()[0] += 1;
        if ack.cwnd_limited {
            let in_slow_start = window.cwnd < window.ssthresh;
            window.cwnd += if in_slow_start { ack.counted.min(2.0) } else { ack.counted / window.cwnd };
        }
    }

    fn on_loss(&mut self, window: &mut LawWindow, flight: f64, _marked: bool) {
        self.0.lock().unwrap()[1] += 1;
        window.ssthresh = (flight / 2.0).max(2.0);
        window.cwnd = window.ssthresh;
    }

    fn on_timeout(&mut self, window: &mut LawWindow, flight: f64) {
        self.0.lock().unwrap()[2] += 1;
        window.ssthresh = (flight / 2.0).max(2.0);
    }
}

/// Two downloads that lose a lot and a flow over UDP; each download starts from a law of its own.
fn lossy(sender: &str) -> Scenario {
    let downloads = ["one", "two"].map(|name| format!("{name} W A ftp cc = \"{sender}\""));
    let game = "game W B game-server";
    let set = ["wifi.loss={ kind = \"fixed\", rate = 0.3 }", "wifi.attempts=3", "wifi.queue.limit=20", "duration=20s"];
    home(&[&downloads[0], &downloads[1], game], &set)
}

/// The report, but for how long it took, and the flows that were asked about.
fn brought(scenario: &Scenario, calls: &Calls, to: &str) -> (Report, Vec<String>) {
    let mut asked = Vec::new();
    let mut laws = |flow: &str| {
        asked.push(flow.to_owned());
        (flow == to || to == "*").then(|| Box::new(NewReno(Arc::clone(calls))) as Box<dyn Law>)
    };
    let mut options = Options { laws: Some(&mut laws), ..Options::default() };
    let report = lasthop_sim::run(scenario, &mut options).expect("it runs");
    (report, asked)
}

fn flows(report: &Report) -> String {
    format!("{:?}", report.flows)
}

#[test]
fn newreno_that_is_brought_is_the_engines_bit_by_bit() {
    let calls = Calls::default();
    let (own, asked) = brought(&lossy("newreno"), &calls, "*");
    assert_eq!(asked, ["one", "two"], "those over TCP, and no other");
    assert!(calls.lock().unwrap().iter().all(|&n| n > 0), "every method was needed: {calls:?}");
    assert_eq!(flows(&own), flows(&run(&lossy("newreno"))));
}

#[test]
fn a_law_stands_in_the_place_of_the_scenarios_for_the_flow_it_is_brought_for() {
    let calls = Calls::default();
    let cubic = run(&lossy("cubic"));
    let (one, _) = brought(&lossy("cubic"), &calls, "one");
    assert_ne!(flows(&one), flows(&cubic));
    let (none, _) = brought(&lossy("cubic"), &calls, "neither");
    assert_eq!(flows(&none), flows(&cubic));
}

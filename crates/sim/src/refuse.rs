//! What a scenario may say that the simulator does not carry yet: refused with file and line, never ignored.

use lasthop_home::retune::Retune;
use lasthop_home::scenario::{
    CARRIER_SENSE_DEFAULT, CongestionControl, HostId, Kind, LastHop, Scenario, ScenarioError, Storage,
};
use lasthop_tcp::{Algorithm, RateLaw, Reports};

/// Keys of the wires that may change while a home runs; `*` stands for a name.
const WIRE_ROOTS: [&str; 2] = ["wan.", "server."];

/// The sender of `tcp` that a scenario's word means; `None`: not there yet.
pub fn algorithm(cc: CongestionControl) -> Option<Algorithm> {
    Some(match cc {
        CongestionControl::Tahoe => Algorithm::Tahoe,
        CongestionControl::Reno => Algorithm::Reno,
        CongestionControl::NewReno => Algorithm::NewReno,
        CongestionControl::Westwood => Algorithm::Westwood,
        CongestionControl::WestwoodAbse => Algorithm::WestwoodAbse,
        CongestionControl::Cubic => Algorithm::Cubic,
        CongestionControl::Vegas => Algorithm::Vegas,
        CongestionControl::WestwoodPlus => Algorithm::WestwoodPlus,
        CongestionControl::Aimd => Algorithm::Aimd,
        CongestionControl::TcpReal => Algorithm::Real,
        CongestionControl::Bbr => Algorithm::Bbr,
        CongestionControl::TcpProbing => Algorithm::Probing,
        CongestionControl::Wtcp => Algorithm::Wtcp,
        _ => return None,
    })
}

/// The law of a rate that a scenario's word means.
pub fn rate_law(cc: CongestionControl) -> Option<RateLaw> {
    match cc {
        CongestionControl::Tfrc => Some(RateLaw::Tfrc),
        CongestionControl::Ssvp => Some(RateLaw::Ssvp),
        _ => None,
    }
}

fn has(cc: CongestionControl) -> bool {
    algorithm(cc).is_some() || rate_law(cc).is_some()
}

/// Whether the simulator carries all that `scenario` asks for; [`crate::run`] asks the same before it begins.
///
/// # Errors
/// The first key that is not in force here.
pub fn check(scenario: &Scenario) -> Result<(), ScenarioError> {
    if let LastHop::Wifi(cell) = &scenario.hop
        && !cell.hidden
        && cell.carrier_sense_threshold != CARRIER_SENSE_DEFAULT
    {
        let why = "without hidden stations every one hears every other, however weak; write hidden = true";
        return Err(scenario.refuse("wifi.carrier_sense_threshold", why));
    }
    if let Some(slow) = scenario.stations.iter().find(|s| s.storage != Storage::default()) {
        return Err(scenario.refuse(&format!("station.{}.storage", slow.table), "stations store at any speed"));
    }
    if scenario.control.split.is_some() && (scenario.snoop().is_some() || scenario.control.clamp.is_some()) {
        let why = "a split connection has neither Snoop nor CLAMP beside it";
        return Err(scenario.refuse("control.split", why));
    }
    for flow in &scenario.flows {
        let refuse = |key: &str, why: &str| Err(scenario.refuse(&format!("flow.{}.{key}", flow.table), why));
        if let Some(tcp) = flow.transport()
            && !has(tcp.cc)
        {
            let known = CongestionControl::WORDS.iter().filter(|(_, cc)| has(*cc));
            let known: Vec<_> = known.map(|(word, _)| *word).collect();
            return refuse("cc", &format!("the simulator has {}", known.join(", ")));
        }
        if let Some(tcp) = flow.transport().filter(|tcp| tcp.loss_discrimination.is_some())
            && algorithm(tcp.cc).is_some_and(|law| law.reports() != Reports::Nothing)
        {
            return refuse("loss_discrimination", "the receiver of this sender tells it something else already");
        }
        match &flow.kind {
            Kind::Web(_) if scenario.control.split.is_some() => {
                return Err(scenario.refuse("control.split", "connections of pages are not split"));
            }
            Kind::RequestResponse(_) if scenario.control.split.is_some() => {
                return Err(scenario.refuse("control.split", "connections with requests are not split"));
            }
            Kind::RequestResponse(_) if scenario.snoop().is_some() => {
                return refuse("kind", "Snoop here knows data one way only");
            }
            Kind::Quic(quic) if algorithm(quic.cc).is_none_or(|law| law.reports() != Reports::Nothing) => {
                return refuse(
                    "cc",
                    "QUIC sends with a congestion window, and with nothing from its receiver but ACKs",
                );
            }
            Kind::Web(web) if web.tcp.cc.is_rate_based() => return refuse("cc", "a page is loaded over TCP"),
            Kind::Web(_) if !matches!((flow.from, flow.to), (HostId::Server(_), HostId::Station(_))) => {
                return refuse("from", "a page goes from a server to a station");
            }
            _ => {}
        }
    }
    for (i, change) in scenario.changes.iter().enumerate() {
        let can = |key: &str| Retune::covers(key) || WIRE_ROOTS.iter().any(|root| key.starts_with(root));
        if let Some(key) = change.keys.iter().find(|key| !can(key)) {
            let why = format!("while it runs the simulator changes wan.*, server.* and {}", Retune::KEYS.join(", "));
            return Err(scenario.refuse(&format!("change.{}.set.{key}", i + 1), &why));
        }
    }
    Ok(())
}

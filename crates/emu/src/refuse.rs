//! What a scenario may say that this host does not carry yet, or cannot: refused with file and line, never ignored.

use crate::observe::identify::{MARK, UDP_HEADERS};
use crate::players::quic;
use lasthop_core::packet::AccessCategory;
use lasthop_core::snoop::Conduct;
use lasthop_core::units::{BitRate, Span};
use lasthop_home::retune::Retune;
use lasthop_home::scenario::{
    CARRIER_SENSE_DEFAULT, CongestionControl, Flow, HostId, KernelName, Kind, LastHop, Scenario, ScenarioError, Tcp,
    Wifi,
};
use lasthop_medium::rate_control::RateLaw;
use lasthop_medium::{Mode, StationParams};

/// Most hosts: each is a namespace, a TAP and a place in every ppoll.
const MOST_HOSTS: usize = 250;

/// Most that the air and the wires together may bring: what two cores of a virtual machine of 2025 carry in time, as the book's
/// chapter on the emulator measures it.
const MOST_RATE: BitRate = BitRate::mbps(600);

/// Most connections: each has a thread at either end.
const MOST_GREEDY: usize = 500;

/// Whether the emulator can run all of the scenario.
///
/// # Errors
/// The first key that is not in force here.
pub fn check(scenario: &Scenario) -> Result<(), ScenarioError> {
    if let LastHop::Wifi(cell) = &scenario.hop {
        check_cell(scenario, cell)?;
    }
    check_rate(scenario)?;
    for change in &scenario.changes {
        check_rate(&change.after)?;
    }
    if scenario.servers.len() + scenario.stations.len() > MOST_HOSTS {
        return Err(scenario.refuse("station", &format!("the emulator has room for {MOST_HOSTS} hosts")));
    }
    if scenario.snoop().is_some_and(|snoop| snoop.conduct == Conduct::Ns2) {
        return Err(scenario.refuse("wireless_link.timing", "a real access point has no habits of ns-2's Snoop"));
    }
    if scenario.control.split.is_some() && (scenario.control.window.is_some() || scenario.control.clamp.is_some()) {
        let why = "the access point's own connections are not controlled; leave control.window and control.clamp out";
        return Err(scenario.refuse("control.split", why));
    }
    if scenario.control.window.as_ref().is_some_and(|window| window.start > Span::ZERO) {
        return Err(scenario.refuse("control.window.start", "the emulator's controller begins with the run"));
    }
    if scenario.control.window.as_ref().is_some_and(|window| window.left_alone) {
        let why = "the emulator's controller holds windows; the simulator has this (lasthop sim)";
        return Err(scenario.refuse("control.window.left_alone", why));
    }
    if !scenario.control.levers.is_empty() {
        let why =
            "the emulator's air has no levers; the simulator's has (lasthop sim), and a radio (lasthopd run --levers)";
        return Err(scenario.refuse("control.levers", why));
    }
    let greedy = || scenario.flows.iter().filter(|flow| is_greedy(flow));
    if let Some(flow) = greedy().nth(MOST_GREEDY) {
        let why = format!("the emulator has room for {MOST_GREEDY} connections");
        return Err(scenario.refuse(&format!("flow.{}", flow.table), &why));
    }
    scenario.flows.iter().try_for_each(|flow| check_flow(scenario, flow))?;
    check_shared(scenario)?;
    check_changes(scenario)
}

/// It takes what it gets.
fn is_greedy(flow: &Flow) -> bool {
    flow.kind.is_elastic() || flow.carrier.is_some()
}

fn check_cell(scenario: &Scenario, cell: &Wifi) -> Result<(), ScenarioError> {
    if cell.hidden {
        return Err(scenario.refuse("wifi.hidden", "every station hears every other"));
    }
    if cell.carrier_sense_threshold != CARRIER_SENSE_DEFAULT {
        let why = "without hidden stations every one hears every other, however weak";
        return Err(scenario.refuse("wifi.carrier_sense_threshold", why));
    }
    Ok(())
}

/// An air with aggregates may bring more packets than can be carried in time.
fn check_rate(scenario: &Scenario) -> Result<(), ScenarioError> {
    if !scenario.hop.has_classes() {
        return Ok(());
    }
    let (_, stations) = scenario.medium();
    let air = stations.iter().map(fastest).max().unwrap_or(BitRate::ZERO);
    let rate = air.min(wires(scenario));
    if rate <= MOST_RATE {
        return Ok(());
    }
    let why = format!(
        "its air carries {} Mbit/s, and nothing before it less than {}: more than the {} Mbit/s that the emulator carries in time; \
         make wifi.width, wifi.streams or wifi.mcs smaller, or give the line less (wan.rate_down, wan.rate_up)",
        air.as_bps() / 1_000_000,
        rate.as_bps() / 1_000_000,
        MOST_RATE.as_bps() / 1_000_000
    );
    Err(scenario.refuse("wifi.standard", &why))
}

/// The fastest rate to or from a station.
fn fastest(station: &StationParams) -> BitRate {
    let Some(mode) = station.rate.mode().filter(|_| station.rate_law != RateLaw::Fixed) else {
        return station.rate.bit_rate();
    };
    let like = |other: &Mode| (other.width, other.streams, other.guard) == (mode.width, mode.streams, mode.guard);
    Mode::all(mode.standard).filter(like).map(|mode| mode.bit_rate()).max().unwrap_or(BitRate::ZERO)
}

/// The most that wires let through in a direction; what stations and the access point send to each other is held up by none.
fn wires(scenario: &Scenario) -> BitRate {
    let unlimited = BitRate::mbps(1_000_000);
    let is_wired = |flow: &&Flow| [flow.from, flow.to].iter().any(|host| matches!(host, HostId::Server(_)));
    if !scenario.flows.iter().filter(|flow| is_greedy(flow)).all(|flow| is_wired(&flow)) {
        return unlimited;
    }
    let servers = scenario.servers.iter().map(|server| server.wire.rate.unwrap_or(unlimited));
    let servers = BitRate::bps(servers.map(BitRate::as_bps).sum());
    let line = scenario
        .wan
        .as_ref()
        .map_or(unlimited, |wan| wan.down.rate.unwrap_or(unlimited).max(wan.up.rate.unwrap_or(unlimited)));
    servers.min(line)
}

/// The kernel's name of a congestion control; `None`: no kernel has it. What it calls Westwood is Westwood+.
#[must_use]
pub fn kernel_name(cc: CongestionControl) -> Option<KernelName> {
    match cc {
        CongestionControl::Reno | CongestionControl::NewReno => KernelName::new("reno"),
        CongestionControl::Cubic => KernelName::new("cubic"),
        CongestionControl::Bbr => KernelName::new("bbr"),
        CongestionControl::Vegas => KernelName::new("vegas"),
        CongestionControl::WestwoodPlus => KernelName::new("westwood"),
        CongestionControl::Kernel(name) => Some(name),
        _ => None,
    }
}

/// Why the kernel has not `cc`.
fn lacks(cc: CongestionControl) -> &'static str {
    match cc {
        CongestionControl::Westwood => "what the kernel calls westwood is Westwood+; write cc = \"westwood+\"",
        CongestionControl::Tfrc | CongestionControl::Ssvp => "the kernel sends no datagrams at a rate of its own",
        _ => {
            "no kernel has it: reno (newreno is the same), cubic, bbr, vegas, westwood+, or the name of a module, tcp_NAME"
        }
    }
}

fn check_flow(scenario: &Scenario, flow: &Flow) -> Result<(), ScenarioError> {
    let refuse = |key: &str, why: &str| Err(scenario.refuse(&format!("flow.{}.{key}", flow.table), why));
    let smallest = u64::from(UDP_HEADERS) + MARK as u64;
    if let Some(tcp) = flow.transport() {
        if tcp.half_close {
            return refuse("half_close", "the emulator's receivers close when everything has come");
        }
        if tcp.loss_discrimination.is_some() {
            return refuse("loss_discrimination", "the kernel's receivers do not tell losses apart");
        }
        if kernel_name(tcp.cc).is_none() {
            return refuse("cc", lacks(tcp.cc));
        }
    }
    if flow.class != AccessCategory::Be && matches!(flow.kind, Kind::Quic(_)) {
        return refuse(class_key(scenario, flow), "the emulator's library writes its packets' code points itself");
    }
    match &flow.kind {
        Kind::Web(_) | Kind::RequestResponse(_) => {
            refuse("kind", "the emulator plays game, audio, voip, video, cbr, poisson, ftp, quic")
        }
        Kind::Quic(quic) if !quic::has(quic.cc) => {
            refuse("cc", "the emulator has what its library has: cubic, newreno (reno is the same), bbr")
        }
        Kind::GameServer(p) | Kind::GameClient(p) | Kind::Audio(p) | Kind::Voip(p) if p.size.0 < smallest => {
            refuse("size", "the emulator marks every packet, which takes 42B at least")
        }
        Kind::Cbr(r) | Kind::Poisson(r) if flow.carrier.is_none() && r.size.0 < smallest => {
            refuse("size", "the emulator marks every packet, which takes 42B at least")
        }
        _ => Ok(()),
    }
}

/// The key that says a flow's class.
fn class_key(scenario: &Scenario, flow: &Flow) -> &'static str {
    if scenario.source.has(&format!("flow.{}.dscp", flow.table)) { "dscp" } else { "class" }
}

/// Some keys of TCP are settings of a host or of a route: flows that share one must agree.
fn check_shared(scenario: &Scenario) -> Result<(), ScenarioError> {
    let tcp = || scenario.flows.iter().filter_map(|flow| Some((flow, flow.transport()?)));
    for (flow, own) in tcp() {
        for (other, theirs) in tcp() {
            let refuse = |key: &str, shared: &str| {
                let why = format!("{shared} share this setting of the kernel, and {} has another", other.name);
                Err(scenario.refuse(&format!("flow.{}.{key}", flow.table), &why))
            };
            let same_host = [flow.from, flow.to].iter().any(|host| [other.from, other.to].contains(host));
            if same_host && own.sack && !theirs.sack && turns_sack_off(flow, other) {
                return refuse("sack", "flows of one host");
            }
            if (flow.from, flow.to) == (other.from, other.to) && !agree(own, theirs) {
                let key = match () {
                    () if own.ecn != theirs.ecn => "ecn",
                    () if own.delayed_ack != theirs.delayed_ack => "delayed_ack",
                    () => "initial_window",
                };
                return refuse(key, "flows between the same hosts");
            }
        }
    }
    Ok(())
}

/// Without SACK, the sending host of `other` offers it to nobody.
fn turns_sack_off(flow: &Flow, other: &Flow) -> bool {
    flow.from == other.from || flow.to == other.from
}

fn agree(a: &Tcp, b: &Tcp) -> bool {
    a.initial_window == b.initial_window && a.delayed_ack == b.delayed_ack && a.ecn == b.ecn
}

fn check_changes(scenario: &Scenario) -> Result<(), ScenarioError> {
    for (i, change) in scenario.changes.iter().enumerate() {
        if let Some(key) = change.keys.iter().find(|key| !Retune::covers(key)) {
            let why = format!("while it runs the emulator changes only {}", Retune::KEYS.join(", "));
            return Err(scenario.refuse(&format!("change.{}.set.{key}", i + 1), &why));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: &str = r#"
format = 1
name = "small"
duration = "4s"
[[server]]
name = "W"
[wifi]
[[station]]
name = "N"
"#;

    fn refusal(more: &str) -> String {
        let scenario = Scenario::parse(&format!("{HOME}{more}"), "home.toml", &[]).unwrap();
        check(&scenario).map(drop).map_err(|e| e.to_string()).unwrap_err()
    }

    #[test]
    fn a_sender_that_no_kernel_has_is_refused_at_its_line() {
        for (kind, cc) in [("ftp", "wtcp"), ("ftp", "westwood"), ("video", "tfrc"), ("video", "tcp-real")] {
            let text = format!("[[flow]]\nname = \"f\"\nfrom = \"W\"\nto = \"N\"\nkind = \"{kind}\"\ncc = \"{cc}\"\n");
            assert!(refusal(&text).starts_with("home.toml:15: flow.f.cc: not yet: "), "{}", refusal(&text));
        }
    }

    #[test]
    fn a_sender_that_a_kernel_may_have_is_asked_of_the_kernel() {
        for (cc, name) in [("vegas", "vegas"), ("westwood+", "westwood"), ("newreno", "reno"), ("illinois", "illinois")]
        {
            let flow = format!("[[flow]]\nname = \"f\"\nfrom = \"W\"\nto = \"N\"\nkind = \"video\"\ncc = \"{cc}\"\n");
            let home = Scenario::parse(&format!("{HOME}{flow}"), "home.toml", &[]).unwrap();
            check(&home).unwrap();
            let of = home.flows[0].tcp().and_then(|tcp| kernel_name(tcp.cc));
            assert_eq!(of.map(|name| name.to_string()).as_deref(), Some(name));
        }
    }

    #[test]
    fn a_sender_that_the_library_does_not_have_is_refused_at_its_line() {
        let text = "[[flow]]\nname = \"f\"\nfrom = \"W\"\nto = \"N\"\nkind = \"quic\"\ncc = \"vegas\"\n";
        assert!(refusal(text).starts_with("home.toml:15: flow.f.cc: not yet: "), "{}", refusal(text));
    }

    #[test]
    fn a_split_connection_beside_window_control_is_refused_at_its_line() {
        let text = "[control.window]\ncapacity = \"18Mbit/s\"\n[control.split]\nbuffer = \"64KiB\"\n";
        assert!(refusal(text).starts_with("home.toml:12: control.split: not yet: "), "{}", refusal(text));
    }

    /// Whether the home with these keys of its air and more is carried.
    fn carries(wifi: &str, more: &str) -> Result<(), String> {
        let text = HOME.replace("[wifi]", &format!("[wifi]\n{wifi}")) + more;
        check(&Scenario::parse(&text, "home.toml", &[]).unwrap()).map_err(|e| e.to_string())
    }

    #[test]
    fn an_air_beyond_what_is_carried_in_time_is_refused_unless_something_before_it_is_slower() {
        let (one, two) = ("standard = \"802.11ac\"\nstreams = 1", "standard = \"802.11ac\"\nstreams = 2");
        let line = "[wan]\nrate_down = \"500Mbit/s\"\nrate_up = \"100Mbit/s\"\n";
        let flow = |from: &str, kind: &str| {
            format!("[[flow]]\nname = \"f\"\nfrom = \"{from}\"\nto = \"N\"\nkind = \"{kind}\"\n")
        };
        assert_eq!(carries(one, ""), Ok(()));
        let refused = carries(two, "").unwrap_err();
        assert!(refused.starts_with("home.toml:8: wifi.standard: not yet: its air carries 780 Mbit/s"), "{refused}");
        assert!(refused.contains("600 Mbit/s") && refused.contains("wan.rate_down"), "{refused}");
        assert_eq!(carries(two, line), Ok(()));
        assert_eq!(
            carries(two, &(line.to_owned() + &flow("W", "ftp") + &flow("AP", "video").replace("\"f\"", "\"v\""))),
            Ok(())
        );
        // No wire is between them.
        assert!(carries(two, &(line.to_owned() + &flow("AP", "ftp"))).is_err());
        // What rates may be chosen counts, and what they become.
        let adapts =
            "standard = \"802.11ac\"\nstreams = 2\nmcs = 0\nloss = { kind = \"snr\" }\nrate_control = \"ideal\"";
        assert!(carries(adapts, "").is_err() && carries(&adapts.replace("ideal", "fixed"), "").is_ok());
        let change = "[[change]]\nat = \"1s\"\nset = { \"wifi.mcs\" = 9 }\n";
        let slow = "standard = \"802.11ac\"\nstreams = 2\nmcs = 0";
        assert!(carries(slow, "").is_ok() && carries(slow, change).is_err());
    }

    #[test]
    fn a_class_that_its_library_does_not_mark_is_refused_at_its_line() {
        for mark in ["class = \"VO\"", "dscp = 46"] {
            let text = format!("[[flow]]\nname = \"f\"\nfrom = \"W\"\nto = \"N\"\nkind = \"quic\"\n{mark}\n");
            let key = mark.split(' ').next().unwrap();
            assert!(
                refusal(&text).starts_with(&format!("home.toml:15: flow.f.{key}: not yet: ")),
                "{}",
                refusal(&text)
            );
        }
    }

    #[test]
    fn two_flows_that_want_one_kernel_setting_differently_are_refused() {
        let flow = |name: &str, key: &str| {
            format!("[[flow]]\nname = \"{name}\"\nfrom = \"W\"\nto = \"N\"\nkind = \"ftp\"\n{key}\n")
        };
        let text = flow("a", "sack = false") + &flow("b", "");
        assert!(refusal(&text).contains("flow.b.sack: not yet"), "{}", refusal(&text));
        let text = flow("a", "initial_window = 2") + &flow("b", "");
        assert!(refusal(&text).contains(".initial_window: not yet"), "{}", refusal(&text));
    }

    #[test]
    fn what_the_air_cannot_change_is_refused_and_the_rest_is_not() {
        let change = |key: &str, value: &str| format!("[[change]]\nat = \"1s\"\nset = {{ \"{key}\" = \"{value}\" }}\n");
        for (key, value) in [("server.W.delay", "5ms"), ("station.N.storage.write", "1kB/s")] {
            let refusal = refusal(&change(key, value));
            assert!(refusal.contains(&format!("change.1.set.{key}: not yet")), "{refusal}");
        }
        let text = format!("{HOME}{}", change("station.N.rate", "6Mbit/s"));
        assert!(check(&Scenario::parse(&text, "home.toml", &[]).unwrap()).is_ok());
    }
}

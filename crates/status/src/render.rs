//! A status for people: what is controlled, how much each flow may use, and why some are left alone.

use std::fmt::Write;

use lasthop_core::snoop::Snapshot;
use lasthop_core::units::{BitRate, Bytes, Span};

use super::{
    Basis, DirectionStatus, FairQueueStatus, FlowCondition, FlowStatus, InterfaceStatus, LeverStatus, Presence,
    QueueStatus, Role, Status, TableStatus, WindowUpdates,
};

/// Flows shown; the JSON has them all.
const SHOWN: usize = 20;
/// Decisions shown.
const DECISIONS: usize = 10;

/// The status as text for a terminal.
#[must_use]
pub fn render(status: &Status) -> String {
    let mut out = String::new();
    head(&mut out, status);
    devices(&mut out, status);
    flows(&mut out, status);
    datagrams(&mut out, status);
    packets(&mut out, status);
    decisions(&mut out, status);
    remarks(&mut out, status);
    out
}

// Writing to a String cannot fail.
macro_rules! line {
    ($out:expr, $($arg:tt)*) => { { let _ = writeln!($out, $($arg)*); } };
}

fn moved(lever: &LeverStatus) -> String {
    let LeverStatus { name, state, why, found, in_force, .. } = lever;
    let became = match state.as_str() {
        "waiting" => "waits for a radio",
        "not-here" => "does not work here",
        "untried" => "not tried yet",
        "trying" => "being tried",
        "taken-back" => "taken back",
        "refused" => "refused by the driver",
        other => other,
    };
    let mut text = format!("lever {name}: {became}");
    if let Some(why) = why {
        text += &format!(": {why}");
    } else if let Some(in_force) = in_force {
        text += &match found.as_ref().filter(|found| *found != in_force) {
            Some(found) => format!(": {in_force} now, {found} as found"),
            None => format!(": {in_force} as found"),
        };
    }
    if let (Some(added), Some(carried)) = (lever.added_ms, lever.carried) {
        let (carried, pairs) = (100.0 * carried, lever.pairs);
        text += &format!("; with what was tried last waits {added:+.1} ms, {carried:.1} % carried, in {pairs} pairs");
    }
    if let (Some(flows), Some(packets)) = (lever.flows, lever.packets) {
        text += &format!("; {flows} flows have one, {packets} packets went ahead");
    }
    text
}

fn left(queue: &FairQueueStatus) -> String {
    let FairQueueStatus { interface, state, why, below_ms, waits_bytes } = queue;
    let waits = waits_bytes.map_or_else(String::new, |n| format!("; {} wait in its queue", bytes(n as f64)));
    match state.as_str() {
        "left" => {
            let below = below_ms.map_or_else(String::new, |below| format!(", with at most {} below", ms(below)));
            format!("downloads over {interface} are left to its own fair queue{below}{waits}")
        }
        "elsewhere" => {
            format!(
                "downloads over {interface} are held: they wait elsewhere, longer than its own fair queue explains{waits}"
            )
        }
        _ => {
            let why = why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            format!("downloads over {interface} are held{why}{waits}")
        }
    }
}

fn head(out: &mut String, s: &Status) {
    let mode = match (s.dry_run, s.windows) {
        (true, _) => "dry run: shows what it would do, changes nothing",
        (false, true) => "in control",
        (false, false) => "in control of queues, not of windows",
    };
    line!(out, "lasthop {} (process {}), running for {}, {mode}", s.version, s.pid, duration(s.running_s));
    for interface in &s.interfaces {
        line!(out, "  {}", describe(interface));
    }
    for line in &s.waits {
        line!(out, "  {line}");
    }
    for q in &s.queues {
        line!(out, "  {}", queue(q));
        if let Some(snoop) = &q.snoop {
            line!(out, "  {}", repairs(&q.interface, snoop));
        }
    }
    for knob in &s.knobs {
        let whose = if knob.given_up { "; somebody else has changed it since, so it is theirs" } else { "" };
        line!(out, "  {}: {}, before {}{whose}", knob.what, knob.ours, knob.before);
    }
    for lever in &s.levers {
        line!(out, "  {}", moved(lever));
    }
    for queue in &s.fair_queues {
        line!(out, "  {}", left(queue));
    }
    for found in &s.found {
        line!(out, "  found at {}: {}: {}", found.interface, found.what, found.follows);
    }
    for pause in &s.paused {
        let whose =
            pause.device.as_ref().map_or_else(String::new, |device| format!(" for {device}{}", whose(s, device)));
        let left =
            pause.left_s.map_or_else(|| "until it is resumed".to_owned(), |s| format!("for {} more", duration(s)));
        line!(out, "  {} is paused{whose} {left}; `lasthop resume` goes on", pause.what.name());
    }
    if let Some(why) = &s.configuration.refused {
        line!(out, "  the configuration was not read again: {why}");
    }
    if !s.configuration.waits_for_restart.is_empty() {
        line!(out, "  wait for a restart: {}", s.configuration.waits_for_restart.join(", "));
    }
    if s.learns {
        line!(out, "  downloads: {}", direction(&s.directions.down));
        line!(out, "  uploads: {}", direction(&s.directions.up));
    } else {
        line!(out, "  capacity {}, given", rate(s.capacity_bps as f64));
    }
    if s.nothing_to_do {
        line!(out, "  nothing to do: no window is limited");
    }
    line!(
        out,
        "  UDP down {} up {}, left for TCP {}",
        rate(s.udp_bps.to_station),
        rate(s.udp_bps.to_remote),
        rate(s.available_bps as f64)
    );
}

fn direction(d: &DirectionStatus) -> String {
    let limited = if d.limits { "windows limited" } else { "windows left alone" };
    let Some(capacity) = d.capacity_bps else {
        return format!("nothing learned yet: never was anything seen waiting; {limited}");
    };
    let place = match d.queue_place.as_deref() {
        Some("access-point") => "packets wait in its own queue",
        Some("firmware") => "packets wait behind its own queue, in driver or firmware",
        Some("wan" | "line") => "packets wait in front of the home",
        _ => "nothing waited yet",
    };
    let basis = match (d.capacity_basis, d.capacity_spread) {
        (Some(Basis::Measured), Some(spread)) => format!(" (measured, spread {:.0} %)", spread * 100.0),
        (Some(Basis::Measured), None) => " (measured)".to_owned(),
        (Some(Basis::Estimate), _) => " (an estimate from packet trains)".to_owned(),
        (Some(Basis::Given), _) => " (as its shaper says)".to_owned(),
        (None, _) => String::new(),
    };
    let all = d.waiting.iter().find(|waiting| waiting.place == "all");
    let waited =
        all.and_then(|all| Some((all.quantile(0.5)?, all.quantile(0.95)?))).map_or_else(String::new, |waited| {
            format!("; of all intervals half waited at most {}, 95 % at most {}", ms(waited.0), ms(waited.1))
        });
    format!("learned {}{basis}; {place}, now {}{waited}; {limited}", rate(capacity as f64), ms(d.queue_ms))
}

/// What was decided lately, and why.
fn decisions(out: &mut String, s: &Status) {
    if s.decisions.is_empty() {
        return;
    }
    line!(out, "\nlately, seconds since it came:");
    for said in s.decisions.iter().rev().take(DECISIONS).rev() {
        line!(out, "  {:7.1} s  {}", said.at_s, said.line);
    }
}

fn describe(i: &InterfaceStatus) -> String {
    let role = if i.role == Role::Lan { "LAN" } else { "WAN" };
    let presence = match i.state {
        Presence::Up => "up",
        Presence::Down => "down",
        Presence::Away => "away: waiting for it to come back",
    };
    let hooked = match (i.role, i.attached) {
        (_, Some(mechanism)) => format!(", hooked by {}", mechanism.name()),
        (Role::Lan, None) => ", not hooked".to_owned(),
        (Role::Wan, None) => ", watched".to_owned(),
    };
    let again = if i.reattached > 0 { format!(", hooked again {}", times(i.reattached)) } else { String::new() };
    let bridge = i.bridge.as_ref().map_or_else(String::new, |bridge| format!(" (port of {bridge})"));
    format!(
        "{role} {}{bridge}: {presence}{hooked}{again}; in {}, out {}",
        i.name,
        bytes(i.received_bytes as f64),
        bytes(i.sent_bytes as f64)
    )
}

fn queue(q: &QueueStatus) -> String {
    let place = if q.datapath == "user" { " in this process" } else { "" };
    let of_flows = if q.flows_bound > 0 { format!(" of {} flows", q.backlogged) } else { String::new() };
    let mut text = format!(
        "queue {}: {}{place} at {}; {} packets{of_flows} wait, {} sent, {} dropped",
        q.interface,
        q.kind,
        rate(q.pace_bps as f64),
        q.queued,
        q.sent_packets,
        q.dropped,
    );
    if q.flows_bound > 0 {
        let _ = write!(text, "; {} of at most {} flows known, {} boosts", q.flows, q.flows_bound, q.boosts);
    }
    if let (Some(mean), Some(p99)) = (q.mean_sojourn_ms, q.p99_sojourn_ms) {
        let _ = write!(text, "; waited {}, 99 % at most {}", ms(mean), ms(p99));
    }
    text
}

fn repairs(interface: &str, s: &Snapshot) -> String {
    format!(
        "repair {interface}: {} packets sent once more ({} by duplicates, {} by timer), {} ACKs held back, {} left to \
         their senders; {} of {} connections kept",
        s.by_duplicates + s.by_timer,
        s.by_duplicates,
        s.by_timer,
        s.suppressed,
        s.gave_up,
        bytes(s.bytes as f64),
        s.connections,
    )
}

fn flows(out: &mut String, s: &Status) {
    if s.flows.is_empty() {
        line!(out, "\nno TCP connection carries anything now");
        return;
    }
    line!(out, "\nconnections (station, other end), the fastest first:");
    for flow in s.flows.iter().take(SHOWN) {
        line!(out, "  {}{}: {}", flow.flow, whose(s, &flow.device), state(flow.state));
        line!(out, "      {}", flow_line(flow));
    }
    if s.flows.len() > SHOWN {
        line!(out, "  ... and {} more (--json shows them)", s.flows.len() - SHOWN);
    }
}

fn flow_line(f: &FlowStatus) -> String {
    let share = f.share_bps.map_or_else(String::new, |s| format!(" of {}", rate(s as f64)));
    let window = f.clamp_bytes.map_or_else(String::new, |c| format!(", window {}", bytes(f64::from(c))));
    let ms = |v: Option<f64>| v.map_or_else(|| "?".to_owned(), |v| format!("{v:.*}", usize::from(v < 100.0)));
    let rtt = format!(", RTT home + far {} + {} ms", ms(f.local_rtt_ms), ms(f.remote_rtt_ms));
    let timely = f.timely_index.map_or_else(String::new, |index| format!(", timely {:.1} %", index * 100.0));
    format!("{}{share}{window}{rtt}{timely}", rate(f.rate_bps as f64))
}

/// The name of a device, in brackets, where it has one.
fn whose(s: &Status, device: &str) -> String {
    let name = s.devices.iter().find(|known| known.id == device).and_then(|known| known.name.as_ref());
    name.map_or_else(String::new, |name| format!(" ({name})"))
}

fn datagrams(out: &mut String, s: &Status) {
    if s.udp.is_empty() {
        return;
    }
    line!(out, "\nUDP flows with full packets:");
    for flow in s.udp.iter().take(SHOWN) {
        let tunnel = flow.tunnel.as_ref().map_or_else(String::new, |tunnel| format!(", a {tunnel} tunnel"));
        line!(out, "  {}{}: {}{tunnel}, because {}", flow.flow, whose(s, &flow.device), flow.taken_for, flow.why);
        let share = flow.share_bps.map_or_else(String::new, |s| format!(" of {}", rate(s as f64)));
        let signals = format!("{} marked, {} dropped", flow.marked, flow.dropped);
        line!(out, "      {}{share}, {signals}", rate(flow.rate_bps as f64));
    }
    if s.udp.len() > SHOWN {
        line!(out, "  ... and {} more (--json shows them)", s.udp.len() - SHOWN);
    }
}

fn devices(out: &mut String, s: &Status) {
    if s.devices.is_empty() {
        return;
    }
    line!(out, "\n  {:<24}{:>13}{:>13}{:>13}{:>13}", "device", "down", "up", "waits down", "up");
    let wait = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), ms);
    for d in s.devices.iter().take(SHOWN) {
        let (down, up) = (rate(d.down_bps as f64), rate(d.up_bps as f64));
        let waits = [d.down_waiting_ms, d.up_waiting_ms].map(wait);
        line!(out, "  {:<24}{down:>13}{up:>13}{:>13}{:>13}", d.label(), waits[0], waits[1]);
    }
}

const fn state(state: FlowCondition) -> &'static str {
    match state {
        FlowCondition::WindowLimited => "window-limited to its share",
        FlowCondition::Below => "uses less than it may",
        FlowCondition::Idle => "idle",
        FlowCondition::Closing => "ending",
        FlowCondition::IgnoresWindows => "left alone: its sender does not keep to windows",
        FlowCondition::Paused => "left alone: somebody has paused window control",
        FlowCondition::ScaleUnknown => "left alone for now: older than the controller, its window scale is unknown",
    }
}

fn packets(out: &mut String, s: &Status) {
    let would = if s.dry_run || !s.windows { " would have been" } else { "" };
    line!(
        out,
        "\nACKs: {}{would} lowered, {} were low enough; {:.0} % of all bytes belong to flows under control",
        s.control.rewritten,
        s.control.passed,
        s.control.controllable_share * 100.0
    );
    line!(out, "{}", updates(&s.window_updates));
    let left: Vec<_> =
        s.control.not_controlled.iter().filter(|(_, n)| **n > 0).map(|(why, n)| format!("{why} {n}")).collect();
    if !left.is_empty() {
        line!(out, "packets left alone: {}", left.join(", "));
    }
    line!(out, "{}", table(&s.table));
}

fn table(t: &TableStatus) -> String {
    let mut text = format!("connections: {} of at most {}, {} ended or silent", t.connections, t.bound, t.forgotten);
    if t.scale_unknown > 0 {
        let _ = write!(text, "; {} left alone, their window scale is unknown", t.scale_unknown);
    }
    text
}

fn updates(u: &WindowUpdates) -> String {
    let mut text = match &u.off {
        Some(why) if !u.on => format!("window updates: off ({why})"),
        _ if u.on => "window updates".to_owned(),
        _ => "window updates: off".to_owned(),
    };
    if u.on || u.sent > 0 || u.failed > 0 {
        let _ = write!(text, ": {} sent, {} could not be", u.sent, u.failed);
    }
    if u.dropped > 0 {
        let _ = write!(text, ", {} connections did without", u.dropped);
    }
    text
}

fn remarks(out: &mut String, s: &Status) {
    if s.bypass.bypasses_control {
        line!(
            out,
            "WARNING: {} ({:.0} %) bypass control; is hardware flow offload on? `lasthop doctor` tells",
            bytes(s.bypass.bytes as f64),
            s.bypass.share * 100.0
        );
    }
    if let Some(seconds) = s.table.full_s {
        line!(
            out,
            "WARNING: the table of connections is full since {}: about {} newer ones pass uncontrolled; set `flows` higher than {}",
            duration(seconds),
            s.table.uncontrolled,
            s.table.bound
        );
    }
    if let Some(why) = &s.conntrack.unavailable {
        line!(out, "conntrack cannot be asked for older connections: {why}");
    }
    for q in s.queues.iter().filter(|q| q.merged > 0) {
        line!(
            out,
            "{}: {} packets came merged from several and pass whole; `ethtool -K DEV gro off` where they come in parts them",
            q.interface,
            q.merged
        );
    }
    for q in s.queues.iter().filter(|q| q.lost > 0) {
        line!(out, "WARNING: the queue of {} lost {} packets, which it never should", q.interface, q.lost);
    }
    if s.controller.missed > 0 {
        line!(out, "{} decisions came late (longest took {})", s.controller.missed, ms(s.controller.longest_ms));
    }
    if s.controller.failures > 0 {
        line!(out, "the kernel refused {} reads or writes of the maps", s.controller.failures);
    }
}

fn times(n: u64) -> String {
    if n == 1 { "once".to_owned() } else { format!("{n} times") }
}

pub(super) fn rate(bps: f64) -> String {
    BitRate::from_bps_f64(bps).rounded().to_string()
}

pub(super) fn ms(milliseconds: f64) -> String {
    Span::from_secs_f64(milliseconds / 1e3).rounded().to_string()
}

fn bytes(n: f64) -> String {
    Bytes(n as u64).rounded().to_string()
}

pub(super) fn duration(seconds: f64) -> String {
    let s = seconds as u64;
    match (s / 3600, s / 60 % 60, s % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

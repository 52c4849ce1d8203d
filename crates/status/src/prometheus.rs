//! A status in Prometheus' text format, version 0.0.4: for `/metrics`, and for the textfile collector of a router without it.
//!
//! Base units (seconds, bytes, ratios), `_total` for what only grows, `_info` for words. No label is a flow, a device or an
//! address, so the number of series is that of interfaces, directions and places; where a figure is one of several words, each of them is a
//! series of 0 or 1. Source: <https://prometheus.io/docs/instrumenting/exposition_formats/>, and its rules for names.

mod families;
mod text;

use lasthop_core::packet::Direction;

use super::command::What;
use super::{
    Basis, DirectionStatus, FlowCondition, InterfaceStatus, PauseStatus, Presence, QueueStatus, Role, Status,
    WaitingStatus,
};
use families::{
    BASES, BUCKETS, CONDITIONS, DIRECTIONS, PLACES, TAKEN_FOR, WAITING_PLACES, bytes_per_second, one_hot, seconds,
};
use text::{Kind, Text};

/// What `Content-Type` says of it.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Everything that is measured of a running controller.
#[must_use]
pub fn render(status: &Status) -> String {
    let mut text = Text::default();
    up(&mut text, true);
    controller(&mut text, status);
    capacity(&mut text, status);
    waiting(&mut text, status);
    traffic(&mut text, status);
    flows(&mut text, status);
    table(&mut text, status);
    asked(&mut text, status);
    interfaces(&mut text, &status.interfaces);
    queues(&mut text, &status.queues);
    text.into_string()
}

/// What is to be said where no controller answers.
#[must_use]
pub fn render_absent() -> String {
    let mut text = Text::default();
    up(&mut text, false);
    text.into_string()
}

fn up(text: &mut Text, is_up: bool) {
    text.family("lasthop_up", Kind::Gauge, "Whether a controller answers.").one(&[], f64::from(is_up));
}

fn controller(text: &mut Text, status: &Status) {
    let form = status.format.to_string();
    let labels = [("version", status.version.as_str()), ("format", form.as_str())];
    text.family("lasthop_info", Kind::Gauge, "Version of the controller and of the form of its status.")
        .one(&labels, 1.0);
    let flags = [
        ("lasthop_dry_run", "It decides, and rewrites nothing.", status.dry_run),
        ("lasthop_window_control", "Windows are lowered, unless they are paused.", status.windows),
        (
            "lasthop_nothing_to_do",
            "Nobody is held back: nothing waits, or nobody fills the share.",
            status.nothing_to_do,
        ),
        (
            "lasthop_configuration_refused",
            "The configuration was wrong when it was last read again, and the one before is in force.",
            status.configuration.refused.is_some(),
        ),
        (
            "lasthop_configuration_waits_for_restart",
            "Keys of the configuration that was read again wait for a restart.",
            !status.configuration.waits_for_restart.is_empty(),
        ),
    ];
    for (name, help, value) in flags {
        text.family(name, Kind::Gauge, help).one(&[], f64::from(value));
    }
    let own = &status.controller;
    let gauges = [
        ("lasthop_uptime_seconds", "Time since the controller came.", status.running_s),
        ("lasthop_interval_seconds", "Time between two decisions.", seconds(own.interval_ms)),
        ("lasthop_longest_decision_seconds", "Longest time that one decision took.", seconds(own.longest_ms)),
    ];
    for (name, help, value) in gauges {
        text.family(name, Kind::Gauge, help).one(&[], value);
    }
    let counters = [
        ("lasthop_intervals_total", "Decisions.", own.intervals),
        ("lasthop_missed_intervals_total", "Intervals without a decision: the one before took too long.", own.missed),
        ("lasthop_plans_total", "Plans written for the kernel.", own.plans),
        ("lasthop_failures_total", "Reads and writes that the kernel refused.", own.failures),
    ];
    for (name, help, value) in counters {
        text.family(name, Kind::Counter, help).one(&[], value as f64);
    }
    let mut paused = text.family("lasthop_paused", Kind::Gauge, "Pauses in force, by what is paused and for whom.");
    for (what, word) in What::ALL.into_iter().zip(["windows", "updates", "udp", "levers", "trials"]) {
        for (scope, of_a_device) in [("all", false), ("device", true)] {
            let is_one = |pause: &&PauseStatus| pause.what == what && pause.device.is_some() == of_a_device;
            let count = status.paused.iter().filter(is_one).count();
            paused.one(&[("what", word), ("scope", scope)], count as f64);
        }
    }
}

fn directions(status: &Status) -> [(&'static str, &DirectionStatus); 2] {
    [(DIRECTIONS[0], &status.directions.down), (DIRECTIONS[1], &status.directions.up)]
}

fn capacity(text: &mut Text, status: &Status) {
    let help = "What the narrowest hop carries; absent while nothing is known.";
    let mut family = text.family("lasthop_capacity_bytes_per_second", Kind::Gauge, help);
    for (name, direction) in directions(status) {
        if let Some(bps) = direction.capacity_bps {
            family.one(&[("direction", name)], bytes_per_second(bps as f64));
        }
    }
    let help = "Where the capacity is from: 1 for the word that is so.";
    let mut family = text.family("lasthop_capacity_basis", Kind::Gauge, help);
    for (name, direction) in directions(status) {
        let word = direction.capacity_basis.map(|basis| match basis {
            Basis::Given => "given",
            Basis::Measured => "measured",
            Basis::Estimate => "estimate",
        });
        one_hot(&mut family, &[("direction", name)], "basis", &BASES, word);
    }
    let help = "Standard deviation of the capacity's measurements as a part of it; absent where it was not measured.";
    let mut family = text.family("lasthop_capacity_spread_ratio", Kind::Gauge, help);
    for (name, direction) in directions(status) {
        if let Some(spread) = direction.capacity_spread {
            family.one(&[("direction", name)], spread);
        }
    }
}

fn waiting(text: &mut Text, status: &Status) {
    let help = "Waiting times of those who send all the time, an interval of the controller each.";
    let mut family = text.family("lasthop_waiting_seconds", Kind::Histogram, help);
    for (name, direction) in directions(status) {
        for place in WAITING_PLACES {
            let labels = [("direction", name), ("place", place)];
            let empty = WaitingStatus::default();
            let waiting = direction.waiting.iter().find(|waiting| waiting.place == place).unwrap_or(&empty);
            family.histogram(&labels, &cumulative(waiting), waiting.count, seconds(waiting.sum_ms));
        }
    }
    let mut family = text.family("lasthop_standing_queue_seconds", Kind::Gauge, "What waits now, as a time.");
    for (name, direction) in directions(status) {
        family.one(&[("direction", name)], seconds(direction.queue_ms));
    }
    let help = "Where packets waited when they last did: 1 for the place that is so.";
    let mut family = text.family("lasthop_queue_place", Kind::Gauge, help);
    for (name, direction) in directions(status) {
        let place = direction.queue_place.as_deref().or(Some("none"));
        one_hot(&mut family, &[("direction", name)], "place", &PLACES, place);
    }
    let mut family = text.family("lasthop_window_limited", Kind::Gauge, "Windows are limited in this direction.");
    for (name, direction) in directions(status) {
        family.one(&[("direction", name)], f64::from(direction.limits));
    }
}

/// The waits up to each of [`BUCKETS`], s. The status has eight buckets for each of them, whose bounds meet.
fn cumulative(waiting: &WaitingStatus) -> Vec<(f64, u64)> {
    let up_to = |bound: f64| {
        let within =
            waiting.buckets.iter().filter(|(upper, _)| upper.is_some_and(|ms| seconds(ms) <= bound * 1.000_001));
        within.map(|(_, n)| n).sum()
    };
    BUCKETS.map(|bound| (bound, up_to(bound))).to_vec()
}

fn traffic(text: &mut Text, status: &Status) {
    let mut family = text.family("lasthop_carried_bytes_total", Kind::Counter, "IP bytes that passed.");
    for (name, direction) in directions(status) {
        family.one(&[("direction", name)], direction.carried_bytes as f64);
    }
    let mut family = text.family("lasthop_udp_bytes_per_second", Kind::Gauge, "UDP, filtered.");
    for (name, bps) in DIRECTIONS.into_iter().zip([status.udp_bps.to_station, status.udp_bps.to_remote]) {
        family.one(&[("direction", name)], bytes_per_second(bps));
    }
    let help = "Packets by what became of them.";
    let mut family = text.family("lasthop_packets_total", Kind::Counter, help);
    for (reason, count) in &status.packets {
        family.one(&[("reason", reason)], *count as f64);
    }
    let help = "Share of all IP bytes that belonged to flows whose window can be controlled.";
    text.family("lasthop_controllable_ratio", Kind::Gauge, help).one(&[], status.control.controllable_share);
    let help = "IP bytes on the interfaces that passed no hook: hardware flow offload, as far as it can be told.";
    text.family("lasthop_bypassing_bytes", Kind::Gauge, help).one(&[], status.bypass.bytes as f64);
    let help = "More passes around the hooks than measurement explains.";
    text.family("lasthop_bypassed", Kind::Gauge, help).one(&[], f64::from(status.bypass.bypasses_control));
}

fn flows(text: &mut Text, status: &Status) {
    let help = "Directions of connections that carry payload, by what is done with them; at most 500 in all.";
    let mut family = text.family("lasthop_flows", Kind::Gauge, help);
    for (name, direction) in DIRECTIONS.into_iter().zip([Direction::ToStation, Direction::ToRemote]) {
        for (condition, word) in CONDITIONS {
            let is_one = |flow: &&super::FlowStatus| flow.direction == direction && flow.state == condition;
            let count = status.flows.iter().filter(is_one).count();
            family.one(&[("direction", name), ("condition", word)], count as f64);
        }
    }
    let help = "UDP flows that ever sent a full packet, by what they are taken for; at most 500 in all.";
    let mut family = text.family("lasthop_udp_flows", Kind::Gauge, help);
    for (name, direction) in DIRECTIONS.into_iter().zip([Direction::ToStation, Direction::ToRemote]) {
        for word in TAKEN_FOR {
            let count = status.udp.iter().filter(|flow| flow.direction == direction && flow.taken_for == word).count();
            family.one(&[("direction", name), ("taken_for", word)], count as f64);
        }
    }
    text.family("lasthop_devices", Kind::Gauge, "Devices with a flow.").one(&[], status.devices.len() as f64);
}

fn table(text: &mut Text, status: &Status) {
    let table = &status.table;
    let gauges = [
        ("lasthop_connections", "Connections in the table.", table.connections as f64),
        ("lasthop_connections_limit", "Bound of the table.", table.bound as f64),
        (
            "lasthop_uncontrolled_connections",
            "Newer connections that found no place lately.",
            table.uncontrolled as f64,
        ),
        (
            "lasthop_scale_unknown_connections",
            "Left alone: their window scale is not known.",
            table.scale_unknown as f64,
        ),
        ("lasthop_table_full_seconds", "For how long the table has been full.", table.full_s.unwrap_or(0.0)),
    ];
    for (name, help, value) in gauges {
        text.family(name, Kind::Gauge, help).one(&[], value);
    }
    text.family("lasthop_forgotten_connections_total", Kind::Counter, "Connections that had ended or were silent.")
        .one(&[], table.forgotten as f64);
}

fn asked(text: &mut Text, status: &Status) {
    let updates = &status.window_updates;
    text.family("lasthop_window_updates", Kind::Gauge, "Whether windows are advertised between acknowledgments.")
        .one(&[], f64::from(updates.on));
    let mut family =
        text.family("lasthop_window_updates_total", Kind::Counter, "Window updates by what became of them.");
    for (result, count) in [("sent", updates.sent), ("failed", updates.failed), ("dropped", updates.dropped)] {
        family.one(&[("result", result)], count as f64);
    }
    let help = "Connections that conntrack was asked for, by whether it knew their window scales.";
    let mut family = text.family("lasthop_conntrack_answers_total", Kind::Counter, help);
    for (result, count) in [("learned", status.conntrack.learned), ("unknown", status.conntrack.unknown)] {
        family.one(&[("result", result)], count as f64);
    }
}

type Read<T> = fn(&T) -> f64;

fn interfaces(text: &mut Text, interfaces: &[InterfaceStatus]) {
    let families: [(&str, Kind, &str, Read<InterfaceStatus>); 6] = [
        ("lasthop_interface_up", Kind::Gauge, "It is there, up and with carrier.", |it| {
            f64::from(it.state == Presence::Up)
        }),
        ("lasthop_interface_attached", Kind::Gauge, "The programs are attached.", |it| {
            f64::from(it.attached.is_some())
        }),
        ("lasthop_interface_receive_bytes_total", Kind::Counter, "Bytes received, link headers included.", |it| {
            it.received_bytes as f64
        }),
        ("lasthop_interface_transmit_bytes_total", Kind::Counter, "Bytes sent, link headers included.", |it| {
            it.sent_bytes as f64
        }),
        ("lasthop_interface_reattached_total", Kind::Counter, "How often programs had to be attached again.", |it| {
            it.reattached as f64
        }),
        ("lasthop_interface_went_down_total", Kind::Counter, "How often it went down or away.", |it| {
            it.went_down as f64
        }),
    ];
    for (name, kind, help, read) in families {
        let mut family = text.family(name, kind, help);
        for it in interfaces {
            let role = if it.role == Role::Lan { "lan" } else { "wan" };
            family.one(&[("interface", &it.name), ("role", role)], read(it));
        }
    }
}

fn queues(text: &mut Text, queues: &[QueueStatus]) {
    let families: [(&str, Kind, &str, Read<QueueStatus>); 8] = [
        ("lasthop_queue_pace_bytes_per_second", Kind::Gauge, "How fast packets leave.", |it| {
            bytes_per_second(it.pace_bps as f64)
        }),
        ("lasthop_queue_packets", Kind::Gauge, "Packets held.", |it| it.queued as f64),
        ("lasthop_queue_flows", Kind::Gauge, "Flows remembered.", |it| it.flows as f64),
        ("lasthop_queue_sent_packets_total", Kind::Counter, "Packets sent.", |it| it.sent_packets as f64),
        ("lasthop_queue_sent_bytes_total", Kind::Counter, "Bytes sent, link headers included.", |it| {
            it.sent_bytes as f64
        }),
        ("lasthop_queue_dropped_packets_total", Kind::Counter, "Dropped because the queue was full.", |it| {
            it.dropped as f64
        }),
        ("lasthop_queue_lost_packets_total", Kind::Counter, "Lost for any other reason; stays 0.", |it| it.lost as f64),
        ("lasthop_queue_airtime_seconds_total", Kind::Counter, "Channel time charged.", |it| it.airtime_s),
    ];
    for (name, kind, help, read) in families {
        let mut family = text.family(name, kind, help);
        for it in queues {
            family.one(&[("interface", &it.interface), ("kind", &it.kind)], read(it));
        }
    }
}

#[cfg(test)]
mod tests;

"""What the Snoop paper says of its figures, put to our runs and to ns-2's of the same cells.

A finding is a comparison at some cells: the number it rests on, and whether it holds there. `holds` below compares means; it
does not ask whether a difference is larger than the spread between seeds, which the tables of the figures show.
"""

from dataclasses import dataclass
from typing import Callable

from .catalogue import Drawn, Figure
from .snoop_cells import (
    HOME,
    REAL,
    REAL_SNOOP,
    RENO,
    RENO_SNOOP,
    SEEDS,
    SOURCES,
    USUAL,
    VEGAS,
    VEGAS_SNOOP,
    WESTWOOD,
    ns2,
    ours,
    samples,
    settings,
)
from .simulator import where
from .table import markdown, shown

CHAPTER = "snoop-paper.md"
SMALL = 0.05  # a gain of the index that counts as minimal


@dataclass(frozen=True)
class Finding:
    """`of(cell)` gives (number as text, whether it holds) where `cell(scheme, metric)` is a mean; None where ns-2 has no such sender.

    `cells`: what is looked at, (flows, error rate).
    """

    says: str
    of: Callable
    cells: tuple = ((1, USUAL), (10, USUAL), (40, USUAL))


class Unknown(Exception):
    """Nobody asked ns-2 for this cell, or it has no such sender."""


def ratio(metric, above, below, wanted):
    def of(cell):
        value = cell(above, metric) / cell(below, metric) if cell(below, metric) else float("inf")
        return f"x {value:.2f}", wanted(value)

    return of


def difference(metric, above, below, wanted):
    def of(cell):
        value = cell(above, metric) - cell(below, metric)
        return f"{value:+.3f}", wanted(value)

    return of


def helped_less(cell):
    """Vegas' gain of goodput by Snoop beside Reno's."""
    gains = [
        cell(with_it, "goodput_mbps") / cell(without, "goodput_mbps")
        for with_it, without in ((VEGAS_SNOOP, VEGAS), (RENO_SNOOP, RENO))
    ]
    return f"x {gains[0]:.2f} / {gains[1]:.2f}", gains[0] < gains[1]


def others(cell, metric, schemes):
    """Those of the schemes that this simulator has."""
    found = []
    for scheme in schemes:
        try:
            found.append(cell(scheme, metric))
        except Unknown:
            pass
    return found


def highest_goodput(cell):
    value = cell(RENO_SNOOP, "goodput_mbps") / max(others(cell, "goodput_mbps", (VEGAS, WESTWOOD, REAL)))
    return f"x {value:.2f}", value > 1


def best_in_time(cell):
    value = min(others(cell, "timely_index", (VEGAS, REAL))) - max(
        cell(RENO_SNOOP, "timely_index"), cell(WESTWOOD, "timely_index")
    )
    return f"{value:+.3f}", value > 0


def lowest_goodput(cell):
    value = cell(WESTWOOD, "goodput_mbps") / min(others(cell, "goodput_mbps", (RENO_SNOOP, VEGAS, REAL)))
    return f"x {value:.2f}", value < 1


def least_fair(scheme):
    def of(cell):
        value = cell(scheme, "jain")
        return f"{value:.3f}", value < min(others(cell, "jain", (RENO_SNOOP, REAL)))

    return of


def link_used(cell):
    """Share of what the errors leave of the link that Reno + Snoop takes, in packets' bits."""
    value = cell(RENO_SNOOP, "goodput_mbps") / 0.96 / (5 * (1 - USUAL))
    return f"{100 * value:.0f} %", value < 0.98


def survivors(cell):
    """At high error rates, goodput of the worse of Reno + Snoop and Vegas over the better of the others."""
    value = min(cell(RENO_SNOOP, "goodput_mbps"), cell(VEGAS, "goodput_mbps")) / max(
        others(cell, "goodput_mbps", (WESTWOOD, REAL))
    )
    return f"x {value:.2f}", value > 1


UP, DOWN = (lambda value: value > 0), (lambda value: value < 0)
MORE, LESS = (lambda value: value > 1), (lambda value: value < 1)
HIGH = ((20, USUAL), (30, USUAL), (40, USUAL))
SHARED = ((10, USUAL), (20, USUAL), (40, USUAL))
FINDINGS = (
    Finding("3a: Snoop raises Reno's goodput", ratio("goodput_mbps", RENO_SNOOP, RENO, MORE)),
    Finding("3d: and cuts its losses", ratio("loss_rate", RENO_SNOOP, RENO, LESS)),
    Finding(
        "3b: gains of the index are small", difference("timely_index", RENO_SNOOP, RENO, lambda value: value < SMALL)
    ),
    Finding("3b: and negative with many flows", difference("timely_index", RENO_SNOOP, RENO, DOWN), HIGH),
    Finding("3c: because more is delayed", difference("delayed_rate", RENO_SNOOP, RENO, UP), HIGH),
    Finding("3e: the sender sends less again", ratio("retransmitted", RENO_SNOOP, RENO, LESS)),
    Finding("4a: Snoop helps Vegas less than Reno", helped_less),
    Finding("4b: the index of Vegas falls", difference("timely_index", VEGAS_SNOOP, VEGAS, DOWN)),
    Finding("4c: more of it is delayed", difference("delayed_rate", VEGAS_SNOOP, VEGAS, UP)),
    Finding("4e: it sends more again, at times", ratio("retransmitted", VEGAS_SNOOP, VEGAS, MORE)),
    Finding("5a: Reno + Snoop has the highest goodput", highest_goodput),
    Finding("5a: and still under-uses the link", link_used),
    Finding("5a: Westwood+ has the lowest", lowest_goodput),
    Finding("5b: Vegas and TCP-Real have the best index", best_in_time),
    Finding("5e: Westwood+ shares unfairly", least_fair(WESTWOOD), SHARED),
    Finding("5e: Vegas, in part", least_fair(VEGAS), SHARED),
    Finding("6, 7: from 0.04 on Reno + Snoop and Vegas hold up", survivors, ((10, 0.04), (10, 0.05), (20, 0.05))),
    Finding("5.1: with TCP-Real, Snoop costs the index", difference("timely_index", REAL_SNOOP, REAL, DOWN)),
)


def findings(simulator):
    table = [
        [
            "the paper says (figure)",
            "cells",
            *(f"{name}, {who}" for name in SOURCES.values() for who in ("ours", "ns-2.35")),
            "holds",
        ]
    ]
    for finding in FINDINGS:
        row, verdicts = [], []
        for source in SOURCES:
            for look in (mine(simulator, source), theirs(source)):
                numbers, held = judged(finding, look)
                row.append(numbers)
                verdicts += held
        table.append([finding.says, cells_of(finding), *row, verdict(verdicts)])
    return Drawn(table=markdown(table))


def mine(simulator, source):
    return lambda flows, rate: lambda scheme, metric: ours(simulator, source, scheme, flows, rate)[metric].mean


def theirs(source):
    def at(flows, rate):
        def cell(scheme, metric):
            found = ns2(source, scheme, flows, rate)[metric]
            if found is None:
                raise Unknown
            return found.mean

        return cell

    return at


def judged(finding, look):
    """The numbers of a finding at its cells, those where it does not hold struck out; and whether it holds at each."""
    texts, held = [], []
    for flows, rate in finding.cells:
        try:
            text, holds = finding.of(look(flows, rate))
        except Unknown:
            return "-", []
        texts.append(text if holds else f"~~{text}~~")
        held.append(holds)
    return ", ".join(texts), held


def cells_of(finding):
    counts = ", ".join(str(flows) for flows, _ in finding.cells)
    rates = {rate for _, rate in finding.cells}
    if rates == {USUAL}:
        return f"{counts} flows"
    return ", ".join(f"{flows} flows at {rate}" for flows, rate in finding.cells)


def verdict(held):
    """In how many of the cells, ours and ns-2's, it holds."""
    if all(held):
        return "yes"
    return f"in {sum(held)} of {len(held)}" if any(held) else "no"


TIMERS = ["10ms", "20ms", "50ms", "100ms", "200ms", "500ms"]


def timer(simulator):
    """The least local timer, from a fifth of the hop's round trip (with its queue, 50 ms) to ten times that."""
    table = [
        ["least local timer", "flows", "goodput [Mbit/s]", "index", "delayed", "sent again by the sender", "by Snoop"]
    ]
    for flows in (1, 10, 40):
        vary = {"wireless_link.snoop": "true", "control.snoop.least_timer": TIMERS}
        rows = simulator.sweep(HOME, settings("ftp", RENO_SNOOP, flows, vary), SEEDS)
        for value in TIMERS:
            cell = samples(where(rows, control__snoop__least_timer=value))
            columns = (
                ("goodput_mbps", 3),
                ("timely_index", 3),
                ("delayed_rate", 3),
                ("retransmitted", 1),
                ("link_retransmitted", 1),
            )
            table.append([value, flows, *(shown(cell[name], digits) for name, digits in columns)])
    return Drawn(table=markdown(table))


FIGURES = [
    Figure("snoop-findings", "what the Snoop paper finds, one by one", CHAPTER, findings),
    Figure("snoop-timer", "Snoop's local timer", CHAPTER, timer),
]

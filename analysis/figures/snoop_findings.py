"""What the Snoop paper says of its figures, put to our runs and to ns-2's of the same cells.

A finding is a comparison at some cells: the number it rests on, and whether it holds there. Means are compared: what differs
by less than 1 % of a goodput or a count, or by less than 0.005 of a share, is alike, and says neither yes nor no.
"""

from collections.abc import Callable
from dataclasses import dataclass

from .catalogue import Drawn, Figure
from .simulator import where
from .snoop_cells import (
    FAR,
    GREEDY,
    HOME,
    REAL,
    REAL_SNOOP,
    RENO,
    RENO_SNOOP,
    SEEDS,
    STANDARD,
    USUAL,
    VEGAS,
    VEGAS_SNOOP,
    WESTWOOD,
    WORLDS,
    ns2,
    ours,
    samples,
    settings,
)
from .table import markdown, shown

CHAPTER = "snoop-paper.md"
SMALL = 0.05  # a gain of the index that counts as minimal
ALIKE, ALIKE_SHARE = 0.01, 0.005


@dataclass(frozen=True)
class Finding:
    """`of(cell)` gives (number as text, whether it holds; None: alike) where `cell(scheme, metric)` is a mean.

    `cells`: what is looked at, (flows, error rate).
    """

    says: str
    of: Callable
    cells: tuple = ((1, USUAL), (10, USUAL), (40, USUAL))


class Unknown(Exception):
    """Nobody asked ns-2 for this cell, or it has no such sender."""


def apart(value, middle, alike, wanted):
    """Whether a value on the `wanted` side of the middle: True or False; None near it."""
    return None if abs(value - middle) < alike else (value > middle) == (wanted > 0)


def ratio(metric, above, below, wanted):
    """`wanted`: 1 where the first should be the greater, -1 where the lesser."""

    def of(cell):
        # By ns-2's count a base station's copies can hide more losses than there were.
        first, second = max(cell(above, metric), 0.0), max(cell(below, metric), 0.0)
        value = first / second if second else 1.0
        return f"x {value:.2f}", apart(value, 1, ALIKE, wanted)

    return of


def difference(metric, above, below, wanted):
    def of(cell):
        value = cell(above, metric) - cell(below, metric)
        return f"{value:+.3f}", apart(value, 0, ALIKE_SHARE, wanted)

    return of


def small_gain(cell):
    value = cell(RENO_SNOOP, "timely_index") - cell(RENO, "timely_index")
    return f"{value:+.3f}", value < SMALL


def helped_less(cell):
    """Vegas' gain of goodput by Snoop over Reno's."""
    gains = [cell(helped, "goodput_mbps") / cell(alone, "goodput_mbps") for helped, alone in PAIRS]
    return f"x {gains[1]:.2f} / {gains[0]:.2f}", apart(gains[1] / gains[0], 1, ALIKE, -1)


def others(cell, metric, schemes):
    """Those of the schemes that this simulator has."""
    found = []
    for scheme in schemes:
        try:
            found.append(cell(scheme, metric))
        except Unknown:
            pass
    if not found:
        raise Unknown
    return found


def highest_goodput(cell):
    value = cell(RENO_SNOOP, "goodput_mbps") / max(others(cell, "goodput_mbps", (VEGAS, WESTWOOD, REAL)))
    return f"x {value:.2f}", apart(value, 1, ALIKE, 1)


def best_in_time(cell):
    best, rest = (others(cell, "timely_index", some) for some in ((VEGAS, REAL), (RENO_SNOOP, WESTWOOD)))
    value = min(best) - max(rest)
    return f"{value:+.3f}", apart(value, 0, ALIKE_SHARE, 1)


def lowest_goodput(cell):
    value = cell(WESTWOOD, "goodput_mbps") / min(others(cell, "goodput_mbps", (RENO_SNOOP, VEGAS, REAL)))
    return f"x {value:.2f}", apart(value, 1, ALIKE, -1)


def less_fair(scheme):
    """Than Reno with Snoop."""

    def of(cell):
        value = cell(scheme, "jain")
        return f"{value:.3f}", apart(value, cell(RENO_SNOOP, "jain"), ALIKE_SHARE, -1)

    return of


def under_used(cell):
    """Share of the link that Reno + Snoop takes, errors left out and headers counted in."""
    value = cell(RENO_SNOOP, "goodput_mbps") / 0.96 / (5 * (1 - USUAL))
    return f"{100 * value:.0f} %", value < 0.98


def survivors(cell):
    """At high error rates, goodput of the worse of Reno + Snoop and Vegas over the better of the others."""
    first, rest = (others(cell, "goodput_mbps", some) for some in ((RENO_SNOOP, VEGAS), (WESTWOOD, REAL)))
    value = min(first) / max(rest)
    return f"x {value:.2f}", apart(value, 1, ALIKE, 1)


PAIRS = ((RENO_SNOOP, RENO), (VEGAS_SNOOP, VEGAS))
MORE, LESS = 1, -1
HIGH = ((20, USUAL), (30, USUAL), (40, USUAL))
SHARED = ((10, USUAL), (20, USUAL), (40, USUAL))
FINDINGS = (
    Finding("3a: Snoop raises Reno's goodput", ratio("goodput_mbps", RENO_SNOOP, RENO, MORE)),
    Finding("3d: and cuts its losses", ratio("loss_rate", RENO_SNOOP, RENO, LESS)),
    Finding("3b: gains of the index are small", small_gain),
    Finding("3b: and negative with many flows", difference("timely_index", RENO_SNOOP, RENO, LESS), HIGH),
    Finding("3c: because more is delayed", difference("delayed_rate", RENO_SNOOP, RENO, MORE), HIGH),
    Finding("3e: the sender sends less again", ratio("retransmitted", RENO_SNOOP, RENO, LESS)),
    Finding("4a: Snoop helps Vegas less than Reno", helped_less),
    Finding("4b: the index of Vegas falls", difference("timely_index", VEGAS_SNOOP, VEGAS, LESS)),
    Finding("4c: more of it is delayed", difference("delayed_rate", VEGAS_SNOOP, VEGAS, MORE)),
    Finding("4e: it sends more again, at times", ratio("retransmitted", VEGAS_SNOOP, VEGAS, MORE)),
    Finding("5a: Reno + Snoop has the highest goodput", highest_goodput),
    Finding("5a: and still under-uses the link", under_used),
    Finding("5a: Westwood+ has the lowest", lowest_goodput),
    Finding("5b: Vegas and TCP-Real have the best index", best_in_time),
    Finding("5e: Westwood+ shares unfairly", less_fair(WESTWOOD), SHARED),
    Finding("5e: Vegas, in part", less_fair(VEGAS), SHARED),
    Finding("6, 7: from 0.04 on Reno + Snoop and Vegas hold up", survivors, ((10, 0.04), (10, 0.05), (20, 0.05))),
    Finding("5.1: with TCP-Real, Snoop costs the index", difference("timely_index", REAL_SNOOP, REAL, LESS)),
)


def findings(simulator):
    columns = [f"{world.name}, {who}" for world in WORLDS for who in ("ours", "ns-2.35")] + [f"{STANDARD.name}, ours"]
    table = [["the paper says (figure)", "cells", *columns, "holds with ns-2's habits"]]
    for finding in FINDINGS:
        row, verdicts = [], []
        for world in WORLDS:
            for look in (mine(simulator, world), theirs(world)):
                numbers, held = judged(finding, look)
                row.append(numbers)
                verdicts += held
        row.append(judged(finding, mine(simulator, STANDARD))[0])
        table.append([finding.says, cells_of(finding), *row, verdict(verdicts)])
    return Drawn(table=markdown(table))


def mine(simulator, world):
    return lambda flows, rate: lambda scheme, metric: ours(simulator, world, scheme, flows, rate)[metric].mean


def theirs(world):
    def at(flows, rate):
        def cell(scheme, metric):
            found = ns2(world, scheme, flows, rate)[metric]
            if found is None:
                raise Unknown
            return found.mean

        return cell

    return at


def judged(finding, look):
    """The numbers of a finding at its cells, struck out where it does not hold; whether it holds at each that is not alike."""
    texts, held = [], []
    for flows, rate in finding.cells:
        try:
            text, holds = finding.of(look(flows, rate))
        except Unknown:
            return "-", []
        texts.append(f"~~{text}~~" if holds is False else text)
        held += [] if holds is None else [holds]
    return ", ".join(texts), held


def cells_of(finding):
    if all(rate == USUAL for _, rate in finding.cells):
        return ", ".join(str(flows) for flows, _ in finding.cells) + " flows"
    return ", ".join(f"{flows} flows at {rate}" for flows, rate in finding.cells)


def verdict(held):
    """In how many of the cells with ns-2's habits that are not alike, ours and ns-2's, it holds."""
    if not held:
        return "alike"
    if all(held):
        return "yes"
    return f"in {sum(held)} of {len(held)}" if any(held) else "no"


# Round trips of the hop with a full queue: 50 ms, and 210 ms where the buffer is that of the long way.
TIMERS = ["10ms", "50ms", "100ms", "200ms", "500ms", "1s", "2s"]
COLUMNS = (
    ("goodput_mbps", 3),
    ("timely_index", 3),
    ("delayed_rate", 3),
    ("retransmitted", 1),
    ("link_retransmitted", 1),
)
HEADS = ["goodput [Mbit/s]", "index", "delayed", "sent again by the sender", "by Snoop"]


def values(cell):
    return [shown(cell[name], digits) for name, digits in COLUMNS]


def timer(simulator):
    """What the least time after which Snoop's timer sends again does to Reno."""
    table = [["sources", "flows", "least local timer", *HEADS]]
    for world, flows in ((GREEDY, 10), (GREEDY, 40), (FAR, 20), (FAR, 40)):
        table.append([world.name, flows, "without Snoop", *values(ours(simulator, world, RENO, flows))])
        vary = {"wireless_link.snoop": "true", "control.snoop.least_timer": TIMERS}
        rows = simulator.sweep(HOME, settings(world, RENO_SNOOP, flows, vary), SEEDS)
        for value in TIMERS:
            table.append([world.name, flows, value, *values(samples(where(rows, control__snoop__least_timer=value)))])
    return Drawn(table=markdown(table))


def standard(simulator):
    """The same cells where packets are lost after they were sent, senders keep to the RFCs, and Snoop to its own law."""
    table = [["sources", "flows", "", *(f"{head}, {timing}" for head in HEADS[:2] for timing in ("ns2", "standard"))]]
    for world in (FAR, GREEDY):
        for flows in (1, 10, 40):
            for scheme in (RENO, RENO_SNOOP, VEGAS, VEGAS_SNOOP):
                law = {"wireless_link.timing": "standard"}
                cells = [ours(simulator, world, scheme, flows, more=more) for more in (None, law)]
                row = [shown(cell[name], digits) for name, digits in COLUMNS[:2] for cell in cells]
                table.append([world.name, flows, scheme.name, *row])
    return Drawn(table=markdown(table))


FIGURES = [
    Figure("snoop-findings", "what the Snoop paper finds, one by one", CHAPTER, findings),
    Figure("snoop-timer", "Snoop's local timer", CHAPTER, timer),
    Figure("snoop-standard", "the same cells without ns-2's habits", CHAPTER, standard),
]

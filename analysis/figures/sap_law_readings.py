"""SAP-LAW (ACE 2006): which defaults the paper's own numbers point to, and what limits the download beyond the capacity.

The paper prints its defaults in bold, which its text form has lost. A reading is one choice of everything that is not said;
each is held against every number and every finding that the paper prints about the default home.
"""

from dataclasses import dataclass

from . import peers
from .catalogue import Drawn, Figure
from .sap_law import (
    BOUND,
    CHAPTER,
    FREE,
    HOME,
    MAC_SETTING,
    NS2,
    PAPER_LAW,
    PAPER_SETTING,
    PIPE,
    REGULAR,
    attempts,
    law,
    mac,
)
from .sap_law_sweeps import ACKED, FIGURE_5, STANDARD
from .simulator import column, where
from .stats import fits, sample
from .table import markdown, shown

TOLD = [18, 20, 22, 24, 26]  # C, Mbit/s
JITTER = "flows.game-down.jitter"
# Nothing overflows and nothing but the air limits the download: what TCP can reach.
UNBOUNDED = {"wifi.queue.limit": 2000, "wifi.station_queue.limit": 2000, "flow.ftp.window": 700}
ACHIEVABLE = 20.0  # Mbit/s: "circa 20Mbps"


@dataclass(frozen=True)
class Reading:
    """One choice of what the paper does not say."""

    name: str
    deviation: int = 7
    distance: int = 10
    regular_buffer: int = 50
    law_buffer: int = 50
    fewer: int = 0
    timing: str = "ns2"
    rtt: str = "81.5ms"

    def sets(self, retransmissions, buffer=50):
        radio = {"wifi.loss.deviation": f"{self.deviation}dB", "station.*.distance": f"{self.distance}m"}
        return {**self.mac(retransmissions, buffer), **radio}

    def mac(self, retransmissions, buffer=50):
        timing = NS2 if self.timing == "ns2" else STANDARD
        return {**mac(retransmissions, buffer, timing), "wifi.attempts": attempts(retransmissions) - self.fewer}


READINGS = (
    Reading("**7 dB, 10 m** (the scenario)"),
    Reading("9 dB, 10 m", 9),
    Reading("7 dB, 5 m", 7, 5),
    Reading("9 dB, 5 m", 9, 5),
    Reading("7 dB, 10 m; buffer of regular and SAP-LAW 100", regular_buffer=100, law_buffer=100),
    Reading("9 dB, 10 m; the same", 9, regular_buffer=100, law_buffer=100),
    Reading("7 dB, 10 m; buffer of regular alone 100", regular_buffer=100),
    Reading("9 dB, 10 m; the same", 9, regular_buffer=100),
    Reading("7 dB, 10 m; retransmissions are ns-2's limit (attempts = r)", fewer=1),
    Reading("9 dB, 10 m; the same", 9, fewer=1),
    Reading("7 dB, 10 m; the standard's timing", timing="standard"),
    Reading("9 dB, 10 m; the same", 9, timing="standard"),
    Reading("7 dB, 10 m; window of an RTT of 87.6 ms (146 packets at 20 Mbit/s)", rtt="87.6ms"),
    Reading("9 dB, 10 m; the same", 9, rtt="87.6ms"),
)
HEADS = (
    "reading",
    f"TCP alone [Mbit/s] (about {ACHIEVABLE:.0f})",
    f"figure 5: 9 dB, 10 m, 3 retransmissions, packets ({PAPER_SETTING})",
    f"MAC setting, packets ({PAPER_SETTING})",
    f"SAP-LAW, packets ({PAPER_LAW})",
    f"its greatest jitter [ms]; runs within {BOUND} ms (a tenth or more)",
    "C of most packets (20)",
    "regular, packets (fewer than SAP-LAW)",
    "jitter, average: regular -> MAC setting (less)",
    f"regular, mean cwnd (above {PIPE})",
    "fit, of 9",
)


def marked(text, holds):
    """A cell, with a tick where the paper's statement holds."""
    return f"{text} ✓" if holds else text


def row(simulator, reading):
    """What a reading gives for each statement of the paper, and how many of them it meets."""
    setting = simulator.sweep(HOME, {**reading.sets(MAC_SETTING), **FREE})
    regular = simulator.sweep(HOME, {**reading.sets(REGULAR, reading.regular_buffer), **FREE})
    alone = simulator.sweep(HOME, {**reading.sets(REGULAR), **FREE, **UNBOUNDED})
    told = {**law(TOLD), "control.window.rtt": reading.rtt}
    rows = simulator.sweep(HOME, {**reading.sets(REGULAR, reading.law_buffer), **told})
    fifth = sample(column(simulator.sweep(HOME, {**reading.mac(MAC_SETTING), **FREE, **FIGURE_5}), ACKED))
    controlled = {c: where(rows, control__window__capacity=f"{c}Mbit/s") for c in TOLD}
    acked = {c: sample(column(group, ACKED)) for c, group in controlled.items()}
    best = max(TOLD, key=lambda c: acked[c].mean)
    rate = sample(value * 12000 / 45e6 for value in column(alone, ACKED))
    ours, free = sample(column(setting, ACKED)), sample(column(regular, ACKED))
    greatest = sample(column(controlled[18], f"{JITTER}.max"))
    within = column(controlled[18], f"{JITTER}.max")
    within = sum(value <= BOUND for value in within) / len(within)
    before, after = (sample(column(each, f"{JITTER}.mean")) for each in (regular, setting))
    cwnd = sample(column(regular, "flows.ftp.tcp.cwnd_mean"))
    cells = [
        (shown(rate, 1), fits(rate.mean, ACHIEVABLE)),
        (shown(fifth, 0), fits(fifth.mean, PAPER_SETTING)),
        (shown(ours, 0), fits(ours.mean, PAPER_SETTING)),
        (shown(acked[18], 0), fits(acked[18].mean, PAPER_LAW)),
        (f"{shown(greatest, 1)}; {100 * within:.0f} %", within >= 0.1),
        (str(best), best == 20),
        (shown(free, 0), free.mean < acked[18].mean),
        (f"{before.mean:.2f} -> {after.mean:.2f}", after.mean < 0.9 * before.mean),
        (shown(cwnd, 0), cwnd.mean > PIPE),
    ]
    return [reading.name, *(marked(*cell) for cell in cells), sum(holds for _, holds in cells)]


def readings(simulator):
    return Drawn(table=markdown([HEADS, *(row(simulator, reading) for reading in READINGS)]))


# What happens beyond the capacity: radio, retransmissions, buffer.
CASES = [(deviation, r, buffer) for deviation in (7, 9) for r in (REGULAR, MAC_SETTING) for buffer in (50, 100)]


def beyond(simulator):
    """Packets acknowledged, dropped by the queue and lost on the air, over what the access point is told."""
    table = [["deviation", "retransmissions", "buffer", "", *(f"C = {c}" for c in TOLD)]]
    kinds = (
        ("packets acknowledged", ACKED, 0),
        ("dropped by the AP's queue", "flows.ftp.lost.ap_queue", 1),
        ("lost on the air", "flows.ftp.lost.channel", 1),
    )
    for deviation, r, buffer in CASES:
        sets = {**mac(r, buffer), **law(TOLD), "wifi.loss.deviation": f"{deviation}dB"}
        rows = simulator.sweep(HOME, sets)
        case = [f"{deviation} dB", r, buffer]
        for name, field, digits in kinds:
            each = [sample(column(where(rows, control__window__capacity=f"{c}Mbit/s"), field)) for c in TOLD]
            table.append([*case, name, *(shown(one, digits) for one in each)])
            case = ["", "", ""]
        theirs = [peers.home("acked", attempts(r), c, deviation=deviation, queue=buffer) for c in TOLD]
        if any(theirs):
            table.append([*case, "ns-2.35: packets", *(shown(one, 0) for one in theirs)])
    return Drawn(table=markdown(table))


FIGURES = [
    Figure("sap-law-readings", "readings of the paper's defaults", CHAPTER, readings),
    Figure("sap-law-beyond", "the download beyond the capacity", CHAPTER, beyond),
]

"""Where a formula knows the answer: saturation throughput (Bianchi 2000) and what retransmissions leave of a loss."""

import math
import re

from . import style
from .bianchi import B, G, bianchi
from .catalogue import Drawn, Figure
from .simulator import column, where
from .stats import sample
from .table import markdown, shown

CHAPTER = "saturation.md"
STATIONS = [1, 2, 5, 10, 20, 50]


def saturation(simulator):
    made, axes = style.figure("Saturation throughput, 1500 B, no channel errors", "stations", "throughput [Mbit/s]")
    table = [["stations", "802.11b measured", "Bianchi", "", "802.11g measured", "Bianchi", ""]]
    cells = [[str(n)] for n in STATIONS]
    for scenario, name, timing, colour in (
        ("theory/saturation", "802.11g", G, style.VERMILION), ("theory/saturation-b", "802.11b", B, style.BLUE)
    )[::-1]:  # fmt: skip
        rows = simulator.sweep(scenario, {"station.S.count": STATIONS, "wifi.after_collision": "eifs"}, seeds=5)
        ours = [sample(rate(row) / 1e6 for row in where(rows, station__S__count=n)) for n in STATIONS]
        theirs = [bianchi(n, timing) for n in STATIONS]
        style.line(
            axes,
            list(zip(STATIONS, theirs)),
            color=style.GREY,
            linestyle="--",
            label="Bianchi" if name == "802.11b" else None,
        )
        style.points(axes, STATIONS, ours, name, color=colour, linestyle="none")
        for row, our, their in zip(cells, ours, theirs):
            row += [shown(our, 3), f"{their:.3f}", f"{100 * (our.mean / their - 1):+.2f} %"]
    axes.set(ylim=(0, None), xlim=(0, None))
    axes.legend()
    return Drawn(made, markdown(table + cells))


def rate(row):
    """IP bit/s of all stations together."""
    return math.fsum(value for key, value in row.items() if re.fullmatch(r"flows\.load(\.\d+)?\.rate_bps", key))


def residual_loss(simulator):
    made, axes = style.figure(
        "Loss that is left after k attempts (k - 1 retransmissions)", "attempts", "share of packets lost"
    )
    losses, attempts = [0.05, 0.1, 0.2, 0.4], [1, 2, 3, 4, 5, 7]
    table = [["frame loss p", *(f"k = {k}" for k in attempts)]]
    rows = simulator.sweep("theory/residual-loss", {"wifi.loss.rate": losses, "wifi.attempts": attempts}, seeds=5)
    for p, colour in zip(losses, (style.BLUE, style.GREEN, style.ORANGE, style.VERMILION)):
        ours = [
            sample(column(where(rows, wifi__attempts=k, wifi__loss__rate=p), "flows.load.loss_rate")) for k in attempts
        ]
        style.line(axes, [(k, p**k) for k in attempts], color=style.GREY, linestyle="--", linewidth=0.8)
        axes.plot(attempts, [v.mean for v in ours], "o", color=colour, markersize=4, label=f"p = {p}")
        table.append([f"{p}: p^k", *(f"{p**k:.2e}" for k in attempts)])
        table.append([f"{p}: measured", *(f"{v.mean:.2e}" for v in ours)])
    axes.set(yscale="log", ylim=(1e-6, 1))
    axes.legend()
    return Drawn(made, markdown(table))


FIGURES = [
    Figure("saturation", "saturation throughput beside Bianchi", CHAPTER, saturation, short=True),
    Figure("residual-loss", "loss left after k attempts", CHAPTER, residual_loss),
]

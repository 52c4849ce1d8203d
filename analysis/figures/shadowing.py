"""What the shadowing model loses over the distance, beside its closed form.

`P_r(d) = P_r(1 m) - 10 beta log10(d)`, `P_r(1 m) = P_t (c / (4 pi f))^2`, `p = Phi((threshold - P_r) / sigma)`
"""

import math

from . import style
from .catalogue import Drawn, Figure
from .simulator import column
from .stats import sample
from .table import markdown, shown

CHAPTER = "shadowing.md"
DISTANCES = [2, 5, 7, 10, 15, 20, 30, 40]  # m
# Name, P_t as the scenario has it and in W, beta, sigma in dB.
RADIOS = (
    ("SAP-LAW, deviation 7 dB", "0.28183815W", 0.28183815, 4, 7),
    ("SAP-LAW, deviation 9 dB", "0.28183815W", 0.28183815, 4, 9),
    ("ARQ, deviation 7.5 dB", "1mW", 0.001, 2, 7.5),
)
THRESHOLD_W, FREQUENCY_HZ, LIGHT = 3.652e-10, 914e6, 299_792_458.0


def loss(distance, power_w, exponent, deviation_db):
    """Share of frames that fall below the threshold."""
    reference = power_w * (LIGHT / (4 * math.pi * FREQUENCY_HZ)) ** 2
    margin_db = 10 * math.log10(reference / THRESHOLD_W) - 10 * exponent * math.log10(distance)
    return 0.5 * math.erfc(margin_db / deviation_db / math.sqrt(2))


def over_distance(simulator):
    made, axes = style.figure("Frames lost to shadowing, one attempt", "distance [m]", "share of frames lost")
    table = [["", *(f"{d} m" for d in DISTANCES)]]
    for radio, colour, mark in zip(RADIOS, (style.BLUE, style.VERMILION, style.GREEN), "os^"):
        name, power, watts, exponent, deviation = radio
        rows = simulator.sweep(
            "theory/shadowing",
            {
                "wifi.power": power,
                "wifi.loss.exponent": exponent,
                "wifi.loss.deviation": f"{deviation}dB",
                "station.S.distance": [f"{d}m" for d in DISTANCES],
            },
            seeds=5,
        )
        at = lambda d: [row for row in rows if row["station.S.distance"] == f"{d}m"]
        ours = [sample(column(at(d), "flows.load.loss_rate")) for d in DISTANCES]
        law = [loss(d, watts, exponent, deviation) for d in DISTANCES]
        fine = [2 + 38 * i / 200 for i in range(201)]
        style.line(axes, [(d, loss(d, watts, exponent, deviation)) for d in fine], color=style.GREY, linestyle="--")
        axes.plot(DISTANCES, [v.mean for v in ours], mark, color=colour, markersize=4, label=name)
        table.append([f"{name}: closed form", *(f"{p:.5f}" for p in law)])
        table.append([f"{name}: measured", *(shown(v, 5) for v in ours)])
    axes.set(yscale="log", ylim=(1e-5, 1), xlim=(0, 41))
    axes.legend(loc="lower right")
    return Drawn(made, markdown(table))


FIGURES = [Figure("shadowing", "frames lost over distance", CHAPTER, over_distance)]

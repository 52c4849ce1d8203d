"""CLAMP beside SAP-LAW and beside no control, in the SAP-LAW home over the capacity that both are told.

ns-2's timing and regular 802.11 (4 retransmissions, attempts = 5) as in the figures of SAP-LAW. SAP-LAW is eq. (1) to the
letter, its capacity in IP bits; both at 9 dB, the harder of the paper's two radios; CLAMP has the constants of `crates/core/src/clamp.rs`.
"""

from . import style
from .catalogue import Drawn, Figure
from .sap_law import FREE, HOME, REGULAR, described, law, mac
from .series import pooled
from .simulator import column
from .stats import sample
from .table import markdown, shown

CLAMP = "papers/sap-law-clamp"
CHAPTER = "tcp/clamp.md"
CAPACITIES = [12, 14, 16, 18, 20, 22]  # C, Mbit/s
RADIO = {"wifi.loss.deviation": "9dB"}
# Name with unit, how it comes out of rows, digits.
PANELS = (
    ("delay of the game, p95 [ms]", lambda rows: column(rows, "flows.game-down.delay.p95"), 1),
    ("download [Mbit/s]", lambda rows: pooled(rows, ["ftp"], "goodput_bps", 1e-6), 2),
    ("wait in the AP's queue, mean [ms]", lambda rows: column(rows, "queues.AP to stations.mean_sojourn"), 1),
)


def beside(simulator):
    values = [f"{capacity}Mbit/s" for capacity in CAPACITIES]
    free = simulator.sweep(HOME, {**mac(REGULAR), **FREE, **RADIO})
    schemes = (
        ("SAP-LAW", "control.window.capacity", simulator.sweep(HOME, {**mac(REGULAR), **law(CAPACITIES), **RADIO}), style.BLUE),
        ("CLAMP", "control.clamp.capacity", simulator.sweep(CLAMP, {**mac(REGULAR), "control.clamp.capacity": values, **RADIO}), style.VERMILION),
    )  # fmt: skip
    made, panels = style.plt.subplots(3, 1, figsize=(6.4, 6.6), sharex=True)
    panels[0].set_title(f"CLAMP beside SAP-LAW; {described(REGULAR)}")
    table = [["", "", *(f"C = {capacity}" for capacity in CAPACITIES)]]
    for axes, (name, of, digits) in zip(panels, PANELS):
        for scheme, key, rows, colour in schemes:
            each = [sample(of([row for row in rows if row[key] == value])) for value in values]
            style.points(axes, CAPACITIES, each, scheme, color=colour, linestyle="-" if scheme == "SAP-LAW" else "--")
            table.append([name, scheme, *(shown(one, digits) for one in each)])
        none = sample(of(free))
        style.level(axes, none.mean, "no control", color=style.GREY, linestyle=":")
        table.append([name, "no control", shown(none, digits), *("" for _ in CAPACITIES[1:])])
        axes.set(ylabel=name.replace(", ", ",\n"), ylim=(0, None), xticks=CAPACITIES)
    panels[-1].set_xlabel("C, the capacity told [Mbit/s]")
    panels[1].legend(loc="lower right")
    return Drawn(made, markdown(table))


FIGURES = [Figure("clamp", "CLAMP beside SAP-LAW", CHAPTER, beside)]

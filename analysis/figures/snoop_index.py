"""The Real-Time Performance Index of the Snoop paper in its three readings: pooled, per flow as the paper averages it, in order."""

from . import style
from .catalogue import Drawn, Figure
from .snoop_cells import FLOWS, NEAR, REAL, RENO, RENO_SNOOP, VEGAS, VEGAS_SNOOP, WESTWOOD, WORLDS, ours
from .table import markdown, shown

CHAPTER = "snoop-paper.md"
READINGS = (
    ("timely_per_flow", "mean of the flows (the paper's)", style.BLUE, "-"),
    ("timely_index", "all packets pooled", style.INK, "--"),
    ("timely_in_order", "handed on in order, mean of the flows", style.VERMILION, ":"),
)
DRAWN = (RENO, RENO_SNOOP, VEGAS, VEGAS_SNOOP)


def readings(simulator):
    made, axes = style.plt.subplots(2, 2, figsize=(7.2, 5.4), sharex=True, sharey=True)
    for one, scheme in zip(axes.flatten(), DRAWN):
        cells = [ours(simulator, NEAR, scheme, n) for n in FLOWS]
        for metric, label, colour, dash in READINGS:
            style.points(one, FLOWS, [cell[metric] for cell in cells], label, color=colour, linestyle=dash)
        one.set_title(scheme.name)
        one.set_xticks(FLOWS)
    for one in axes[-1]:
        one.set_xlabel("flows")
    made.suptitle(f"Real-time performance index, {NEAR.name}", x=0.01, ha="left", fontsize=9.5)
    made.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower left", ncols=3)
    return Drawn(made)


def in_numbers(simulator):
    table = [["sources", "flows", "", *(label for _, label, *_ in READINGS)]]
    for world in WORLDS:
        for count in (10, 40):
            for scheme in (*DRAWN, WESTWOOD, REAL):
                cell = ours(simulator, world, scheme, count)
                values = (shown(cell[metric], 3) for metric, *_ in READINGS)
                table.append([world.name, str(count), scheme.name, *values])
    return Drawn(table=markdown(table))


FIGURES = [
    Figure("snoop-index", "the index per flow, pooled and in order", CHAPTER, readings),
    Figure("snoop-index-table", "the same for all sources and senders", CHAPTER, in_numbers),
]

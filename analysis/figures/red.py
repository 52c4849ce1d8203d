"""RED, CoDel and ECN at the base station, over the link's error rate: ten of the Snoop paper's senders.

The home is `scenarios/papers/snoop-red.toml`. Timely, delayed and lost are means over the ten flows, as in the paper.
"""

from . import style
from .catalogue import Drawn, Figure
from .series import pooled
from .simulator import column, where
from .stats import sample
from .suffices import percent_lost
from .table import markdown, shown

HOME = "papers/snoop-red"
CHAPTER = "snoop-beside.md"
SEEDS = 10
FLOWS = [f"media.{i}" for i in range(1, 11)]
ERRORS = [0, 0.01, 0.02, 0.03, 0.04, 0.05]
RED = '{ kind = "red", limit = 28, packet_time = "1.6ms" }'
CODEL = '{ kind = "codel", limit = 28 }'
QUEUES = (
    ("drop-tail", {}, style.GREY, "-"),
    ("RED", {"wireless_link.queue": RED}, style.VERMILION, "--"),
    ("RED and ECN", {"wireless_link.queue": RED, "flow.media.ecn": "true"}, style.VERMILION, "-"),
    ("CoDel", {"wireless_link.queue": CODEL}, style.BLUE, "--"),
    ("CoDel and ECN", {"wireless_link.queue": CODEL, "flow.media.ecn": "true"}, style.BLUE, "-"),
)
WITH_SNOOP = (
    ("drop-tail, Snoop", {"wireless_link.snoop": "true"}, style.GREEN, "--"),
    (
        "RED and ECN, Snoop",
        {"wireless_link.queue": RED, "flow.media.ecn": "true", "wireless_link.snoop": "true"},
        style.GREEN,
        "-",
    ),
)
# Name with unit, how it comes out of rows, digits.
PANELS = (
    ("goodput of all [Mbit/s]", lambda rows: pooled(rows, FLOWS, "goodput_bps", len(FLOWS) / 1e6), 2),
    ("timely packets [%]", lambda rows: pooled(rows, FLOWS, "timely_index", 100.0), 1),
    ("lost to the queue [%]", lambda rows: [percent_lost(row, FLOWS, "ap_queue") for row in rows], 2),
    ("queue, mean [packets]", lambda rows: column(rows, "queues.AP to stations.mean_packets"), 1),
)


def queues(simulator):
    made, panels = style.plt.subplots(2, 2, figsize=(6.8, 5.8), sharex=True)
    panels = panels.flatten()
    schemes = QUEUES + WITH_SNOOP
    rows = [simulator.sweep(HOME, {**s, "wireless_link.error_rate": ERRORS}, seeds=SEEDS) for _, s, _, _ in schemes]
    table = [["", "", *(f"{100 * e:g} % lost" for e in ERRORS)]]
    for axes, (what, of, digits) in zip(panels, PANELS):
        for (name, _, colour, dash), these in zip(schemes, rows):
            values = [sample(of(where(these, wireless_link__error_rate=e))) for e in ERRORS]
            style.points(axes, ERRORS, values, name, color=colour, linestyle=dash)
            table.append([what, name, *(shown(v, digits) for v in values)])
        axes.set(ylabel=what)
    panels[0].set_title("Ten Reno senders: the base station's queue")
    for axes in panels[2:]:
        axes.set_xlabel("error rate of the link")
    made.legend(*panels[0].get_legend_handles_labels(), loc="outside lower left", ncols=3, fontsize=8)
    return Drawn(made, markdown(table))


FIGURES = [Figure("red-ecn", "RED, CoDel and ECN at the base station", CHAPTER, queues, short=True)]

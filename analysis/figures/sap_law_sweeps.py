"""SAP-LAW (ACE 2006): the figures over settings (5, 8, 11), and every combination of tables 1 to 3."""

from . import peers, style
from .catalogue import Drawn, Figure
from .sap_law import (
    BOUND,
    CHAPTER,
    DEVIATION,
    FREE,
    HOME,
    MAC_SETTING,
    NS2,
    PAPER_LAW,
    PAPER_SETTING,
    REGULAR,
    attempts,
    described,
    law,
    mac,
)
from .simulator import column, where
from .stats import sample
from .table import MILLISECONDS, PACKETS, Line, markdown, shown, three_columns

STANDARD = {"wifi.timing": "standard"}
CAPACITIES = [12, 14, 16, 18, 20, 22, 24, 26]  # C, Mbit/s
FIGURE_5 = {"wifi.loss.deviation": "9dB", "station.*.distance": "10m"}
RETRANSMISSIONS = [1, 2, 3, 4]
ACKED = "flows.ftp.tcp.acked_packets"
# What a table shows, the report's field, ns-2's column, and the rule for differences.
COUNTED = (
    ("packets acknowledged", ACKED, "acked", PACKETS),
    ("jitter, average [ms]", "flows.game-down.jitter.mean", "jitter_mean_ms", MILLISECONDS),
    ("jitter, variance [ms²]", "flows.game-down.jitter.var", "jitter_var_ms2", MILLISECONDS),
    ("jitter, maximum [ms]", "flows.game-down.jitter.max", "jitter_max_ms", MILLISECONDS),
    ("delay of the game, p95 [ms]", "flows.game-down.delay.p95", "delay_p95_ms", MILLISECONDS),
)


def lines(what, rows, retransmissions, capacity=None, paper=None):
    """One line for everything counted, ns-2's figures of the same case beside ours."""
    made = []
    for name, field, theirs, rule in COUNTED:
        ns2 = peers.home(theirs, attempts(retransmissions), capacity, deviation=DEVIATION)
        made.append(Line(f"{what}: {name}", sample(column(rows, field)), rule, (paper or {}).get(field), ns2))
    return made


def throughput(simulator):
    title = "FTP total throughput with different MAC buffer sizes; 10 m, deviation 9 dB"
    abscissa = "maximum number of retransmissions (attempts = this + 1)"
    made, axes = style.figure(title, abscissa, "FTP, packets acknowledged in 45 s")
    counts, table = [0, *RETRANSMISSIONS], []
    for buffer, colour, look, mark in ((50, style.VERMILION, "-", "o"), (100, style.BLUE, "--", "s")):
        rows = simulator.sweep(HOME, {**mac(counts, buffer), **FREE, **FIGURE_5})
        ours = [sample(column(where(rows, wifi__attempts=attempts(r)), ACKED)) for r in counts]
        style.points(axes, counts, ours, f"buffer {buffer} packets", color=colour, linestyle=look)
        theirs = [peers.home("acked", attempts(r), queue=buffer) for r in counts]
        style.peer(axes, counts, theirs, f"ns-2.35, buffer {buffer}", mark, color=colour)
        for r, acked, ns2 in zip(counts, ours, theirs):
            paper = PAPER_SETTING if (r, buffer) == (MAC_SETTING, 50) else None
            what = f"{r} retransmissions, buffer {buffer}: packets acknowledged"
            table.append(Line(what, acked, PACKETS, paper, ns2))
    style.paper(axes, [MAC_SETTING], [PAPER_SETTING], f"the paper, buffer 50: {PAPER_SETTING}")
    axes.set(ylim=(0, None), xticks=counts)
    axes.legend(loc="lower right")
    return Drawn(made, three_columns(table))


def combinations(simulator):
    """Every combination of table 3, with both timings."""
    table = [["timing", "deviation", "distance", "buffer", *(f"{r} retransmissions" for r in RETRANSMISSIONS)]]
    vary = {"wifi.loss.deviation": ["7dB", "9dB"], "station.*.distance": ["5m", "10m"]}
    for name, timing in (("ns-2's", NS2), ("the standard's", STANDARD)):
        for buffer in (50, 100):
            rows = simulator.sweep(HOME, {**mac(RETRANSMISSIONS, buffer, timing), **FREE, **vary})
            for deviation in vary["wifi.loss.deviation"]:
                for distance in vary["station.*.distance"]:
                    case = {"wifi.loss.deviation": deviation, "station.*.distance": distance}
                    these = [row for row in rows if all(row[key] == value for key, value in case.items())]
                    acked = [sample(column(where(these, wifi__attempts=attempts(r)), ACKED)) for r in RETRANSMISSIONS]
                    table.append([name, deviation, distance, buffer, *(shown(a, 0) for a in acked)])
    return Drawn(table=markdown(table))


BARS = (
    ("average [ms]", "mean", style.BLUE, ""),
    ("variance [ms²]", "var", style.SKY, "////"),
    ("maximum [ms]", "max", style.VERMILION, "\\\\\\\\"),
)


def bars(axes, labels, groups, paper, depth=0.17):
    """Jitter's average, variance and maximum as bars, a group per label; the download as a line on a second axis.

    `paper`: packets acknowledged, by the index of their group.
    """
    width = 0.26
    for i, (name, statistic, colour, hatch) in enumerate(BARS):
        values = [sample(column(rows, f"flows.game-down.jitter.{statistic}")) for rows in groups]
        at, means = [x + (i - 1) * width for x in range(len(labels))], [v.mean for v in values]
        axes.bar(at, means, width, color=colour, hatch=hatch, edgecolor="white", linewidth=0, label=f"jitter, {name}")
        axes.errorbar(at, means, yerr=[v.sd for v in values], fmt="none", ecolor=style.INK, elinewidth=0.6, capsize=1.5)
    style.level(axes, BOUND, f"{BOUND} ms: the paper's greatest jitter at C = 18")
    other = axes.twinx()
    acked = [sample(column(rows, ACKED)) for rows in groups]
    style.points(other, range(len(labels)), acked, "FTP throughput (right)", color=style.GREEN)
    style.paper(other, paper, paper.values(), f"the paper's throughput (right): {', '.join(map(str, paper.values()))}")
    other.set(ylim=(0, 75000), ylabel="FTP, packets acknowledged in 45 s")
    other.spines["right"].set_visible(True)
    other.grid(False)
    axes.set_xticks(range(len(labels)), labels)
    axes.set(ylim=(0, 40), ylabel="jitter of the game [ms, ms²]")
    drawn, beside = axes.get_legend_handles_labels(), other.get_legend_handles_labels()
    style.legend_below(axes, drawn[0] + beside[0], drawn[1] + beside[1], depth)


COLUMNS = (
    ("packets acknowledged", ACKED, 0),
    ("dropped by the AP's queue", "flows.ftp.lost.ap_queue", 1),
    ("lost on the air", "flows.ftp.lost.channel", 1),
    ("jitter, average [ms]", "flows.game-down.jitter.mean", 2),
    ("variance [ms²]", "flows.game-down.jitter.var", 2),
    ("maximum [ms]", "flows.game-down.jitter.max", 1),
    ("delay, p95 [ms]", "flows.game-down.delay.p95", 1),
)


def within_bound(rows):
    """How many runs never passed the paper's bound."""
    greatest = column(rows, "flows.game-down.jitter.max")
    return f"{sum(value <= BOUND for value in greatest)} of {len(greatest)}"


def over_capacity(simulator):
    made, axes = style.figure("FTP throughput and jitter of the game under SAP-LAW", "", "", size=(6.8, 4.0))
    axes.set_xlabel(f"C [Mbit/s]; {described(REGULAR)}")
    heads = [name for name, _, _ in COLUMNS]
    table = [["retransmissions", "C", *heads, f"runs within {BOUND} ms", "ns-2.35: packets", "ns-2.35: maximum [ms]"]]
    for r in (REGULAR, MAC_SETTING):
        rows = simulator.sweep(HOME, {**mac(r), **law(CAPACITIES)})
        groups = [where(rows, control__window__capacity=f"{c}Mbit/s") for c in CAPACITIES]
        for c, group in zip(CAPACITIES, groups):
            ours = [shown(sample(column(group, field)), digits) for _, field, digits in COLUMNS]
            theirs = (peers.home(what, attempts(r), c, deviation=DEVIATION) for what in ("acked", "jitter_max_ms"))
            ns2 = [shown(value, digits) for value, digits in zip(theirs, (0, 1))]
            table.append([r, c, *ours, within_bound(group), *ns2])
        if r == REGULAR:
            bars(axes, [str(c) for c in CAPACITIES], groups, {CAPACITIES.index(18): PAPER_LAW}, depth=0.16)
    return Drawn(made, markdown(table))


SCHEMES = (
    ("Regular", REGULAR, None, {}),
    ("MAC setting", MAC_SETTING, None, {ACKED: PAPER_SETTING}),
    ("SAP-LAW", REGULAR, 18, {ACKED: PAPER_LAW, "flows.game-down.jitter.max": f"within {BOUND}"}),
    ("both together", MAC_SETTING, 18, {}),
)


def summary(simulator):
    made, axes = style.figure(
        "The game and the download under the three schemes; C = 18 Mbit/s", "", "", size=(6.8, 4.0)
    )
    table, groups, labels = [], [], []
    for name, r, capacity, paper in SCHEMES:
        groups.append(simulator.sweep(HOME, {**mac(r), **(law(capacity) if capacity else FREE)}))
        labels.append(f"{name}\n{r} retransmissions\n(attempts = {attempts(r)})")
        table += lines(f"{name}, {r} retransmissions", groups[-1], r, capacity, paper)
    paper = {at: scheme[3][ACKED] for at, scheme in enumerate(SCHEMES) if scheme[3]}
    bars(axes, labels, groups, paper, depth=0.26)
    axes.tick_params(axis="x", labelsize=8)
    return Drawn(made, three_columns(table))


FIGURES = [
    Figure("sap-law-5", "FTP throughput over retransmissions and buffer", CHAPTER, throughput, short=True),
    Figure("sap-law-combinations", "every combination of table 3", CHAPTER, combinations),
    Figure("sap-law-8", "throughput and jitter over C", CHAPTER, over_capacity),
    Figure("sap-law-11", "the three schemes", CHAPTER, summary),
]

"""SAP-LAW (ACE 2006): the figures over settings (5, 8, 11), and every combination of tables 1 to 3."""

from . import peers, style
from .catalogue import Drawn, Figure
from .sap_law import CHAPTER, FREE, HOME, MAC_SETTING, NS2, REGULAR, attempts, described, law, mac
from .simulator import column, where
from .stats import sample
from .table import MILLISECONDS, PACKETS, Line, markdown, shown, three_columns

STANDARD = {"wifi.timing": "standard"}
CAPACITIES = [12, 14, 16, 18, 20, 22]  # C, Mbit/s
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
PAPER_SETTING = {ACKED: 55371}
PAPER_LAW = {ACKED: 58677, "flows.game-down.jitter.max": "within 10"}


def lines(what, rows, retransmissions, capacity=None, paper=None):
    """One line for everything counted, ns-2's figures of the same case beside ours."""
    made = []
    for name, field, theirs, rule in COUNTED:
        ns2 = peers.home(theirs, attempts(retransmissions), capacity)
        made.append(Line(f"{what}: {name}", sample(column(rows, field)), rule, (paper or {}).get(field), ns2))
    return made


def throughput(simulator):
    title = "FTP total throughput with different MAC buffer sizes; 10 m, deviation 9 dB"
    abscissa = "maximum number of retransmissions (attempts = this + 1)"
    made, axes = style.figure(title, abscissa, "FTP, packets acknowledged in 45 s")
    counts, table = [0, *RETRANSMISSIONS], []
    for buffer, colour in ((50, style.VERMILION), (100, style.BLUE)):
        rows = simulator.sweep(HOME, {**mac(counts, buffer), **FREE})
        ours = [sample(column(where(rows, wifi__attempts=attempts(r)), ACKED)) for r in counts]
        style.points(axes, counts, ours, f"buffer {buffer} packets", color=colour)
        theirs = [peers.home("acked", attempts(r), queue=buffer) for r in counts]
        style.peer(axes, counts, theirs, f"ns-2.35, buffer {buffer}", color=colour)
        for r, acked, ns2 in zip(counts, ours, theirs):
            paper = PAPER_SETTING[ACKED] if (r, buffer) == (MAC_SETTING, 50) else None
            what = f"{r} retransmissions, buffer {buffer}: packets acknowledged"
            table.append(Line(what, acked, PACKETS, paper, ns2))
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
    ("average [ms]", "mean", style.BLUE),
    ("variance [ms²]", "var", style.SKY),
    ("maximum [ms]", "max", style.VERMILION),
)


def bars(axes, labels, groups, depth=0.17):
    """Average, variance and maximum of the jitter as bars, one group per label; the download as a line on a second axis."""
    width = 0.26
    for i, (name, statistic, colour) in enumerate(BARS):
        values = [sample(column(rows, f"flows.game-down.jitter.{statistic}")) for rows in groups]
        at, means = [x + (i - 1) * width for x in range(len(labels))], [v.mean for v in values]
        axes.bar(at, means, width, color=colour, label=f"jitter, {name}")
        axes.errorbar(at, means, yerr=[v.sd for v in values], fmt="none", ecolor=style.INK, elinewidth=0.6, capsize=1.5)
    other = axes.twinx()
    acked = [sample(column(rows, ACKED)) for rows in groups]
    style.points(other, range(len(labels)), acked, "FTP throughput (right)", color=style.GREEN)
    other.set(ylim=(0, 70000), ylabel="FTP, packets acknowledged in 45 s")
    other.spines["right"].set_visible(True)
    other.grid(False)
    axes.set_xticks(range(len(labels)), labels)
    axes.set(ylim=(0, 40), ylabel="jitter of the game [ms, ms²]")
    drawn, beside = axes.get_legend_handles_labels(), other.get_legend_handles_labels()
    style.legend_below(axes, drawn[0] + beside[0], drawn[1] + beside[1], depth)


def over_capacity(simulator):
    made, axes = style.figure("FTP throughput and jitter of the game under SAP-LAW", "", "", size=(6.8, 3.8))
    axes.set_xlabel(f"C [Mbit/s]; {described(REGULAR)}")
    table = []
    for r in (REGULAR, MAC_SETTING):
        rows = simulator.sweep(HOME, {**mac(r), **law(CAPACITIES)})
        groups = [where(rows, control__window__capacity=f"{c}Mbit/s") for c in CAPACITIES]
        for c, group in zip(CAPACITIES, groups):
            paper = PAPER_LAW if (r, c) == (REGULAR, 18) else None
            table += lines(f"C = {c}, {r} retransmissions", group, r, c, paper)
        if r == REGULAR:
            bars(axes, [str(c) for c in CAPACITIES], groups)
    return Drawn(made, three_columns(table))


SCHEMES = (
    ("Regular", REGULAR, None, None),
    ("MAC setting", MAC_SETTING, None, PAPER_SETTING),
    ("SAP-LAW", REGULAR, 18, PAPER_LAW),
    ("both together", MAC_SETTING, 18, None),
)


def summary(simulator):
    made, axes = style.figure(
        "The game and the download under the three schemes; C = 18 Mbit/s", "", "", size=(6.8, 3.8)
    )
    table, groups, labels = [], [], []
    for name, r, capacity, paper in SCHEMES:
        groups.append(simulator.sweep(HOME, {**mac(r), **(law(capacity) if capacity else FREE)}))
        labels.append(f"{name}\n{r} retransmissions\n(attempts = {attempts(r)})")
        table += lines(f"{name}, {r} retransmissions", groups[-1], r, capacity, paper)
    bars(axes, labels, groups, depth=0.26)
    axes.tick_params(axis="x", labelsize=8)
    return Drawn(made, three_columns(table))


FIGURES = [
    Figure("sap-law-5", "FTP throughput over retransmissions and buffer", CHAPTER, throughput, short=True),
    Figure("sap-law-combinations", "every combination of table 3", CHAPTER, combinations),
    Figure("sap-law-8", "throughput and jitter over C", CHAPTER, over_capacity),
    Figure("sap-law-11", "the three schemes", CHAPTER, summary),
]

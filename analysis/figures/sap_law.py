"""SAP-LAW (ACE 2006): figures 3 to 11 and every combination of tables 1 to 3.

The home is `scenarios/papers/sap-law.toml` with ns-2's timing, since the paper ran in ns-2; the combinations are run with
the standard's timing too. The paper's "maximum number of retransmissions" r is `attempts` = r + 1: "regular" 802.11 has
r = 4, its MAC setting r = 3. SAP-LAW runs on regular 802.11 as the paper has it, eq. (1) to the letter: equal shares, one
constant round trip of 81.5 ms, UDP smoothed with 0.2.
"""

from . import peers, style
from .catalogue import Drawn, Figure, Missing
from .series import as_steps, jitter, thin
from .simulator import column, where
from .stats import sample
from .table import Line, markdown, shown, three_columns

HOME = "papers/sap-law"
CHAPTER = "sap-law.md"
NS2 = {"wifi.timing": "ns2-g", "wifi.control_rate": "6Mbit/s"}
STANDARD = {"wifi.timing": "standard", "wifi.control_rate": "24Mbit/s"}
FREE = {"control.window": "none"}
CAPACITIES = [12, 14, 16, 18, 20, 22]  # C, Mbit/s
RETRANSMISSIONS = [1, 2, 3, 4]
REGULAR, MAC_SETTING = 4, 3  # retransmissions
BUFFER = 50  # packets
PIPE = 146  # packets: the paper's line "bandwidth-RTT product"
FTP = (135.0, 180.0)  # s
ACKED = "flows.ftp.tcp.acked_packets"
GAME = "flows.game-down"


def attempts(retransmissions):
    """What the simulator counts."""
    return retransmissions + 1


def mac(retransmissions, buffer=BUFFER, timing=NS2):
    """Settings of the MAC, the buffer at the access point and at the stations alike, as ns-2 has it."""
    counts = [attempts(r) for r in retransmissions] if isinstance(retransmissions, list) else attempts(retransmissions)
    return {**timing, "wifi.attempts": counts, "wifi.queue.limit": buffer, "wifi.station_queue.limit": buffer}


def law(capacity):
    """Window control by eq. (1) to the letter."""
    values = [f"{c}Mbit/s" for c in capacity] if isinstance(capacity, list) else f"{capacity}Mbit/s"
    return {"control.window.capacity": values, "control.window.share": "equal", "control.window.rtt": "81.5ms"}


def described(retransmissions, capacity=None):
    control = f", SAP-LAW with C = {capacity} Mbit/s" if capacity else ""
    return f"at most {retransmissions} retransmissions (attempts = {attempts(retransmissions)}){control}"


# Figures 3, 6, 9: windows of one run.


def windows(title, settings, advertised=False):
    """cwnd and ssthresh of the download over its 45 s, and the line of the pipe."""

    def make(simulator):
        run = simulator.trace(HOME, settings)
        made, axes = style.figure(title, "time [s]", "packets")
        limit = run.curve("ftp", "clamped_window", 1 / 1460)
        ssthresh = [
            (t, y) for t, y in run.curve("ftp", "ssthresh") if y < 1000
        ]  # before the first loss it is unbounded
        style.line(axes, thin(run.curve("ftp", "cwnd")), color=style.VERMILION, label="congestion window")
        style.line(axes, thin(as_steps(ssthresh, FTP[1])), color=style.GREEN, label="slow start threshold")
        if advertised:
            if not limit:
                raise Missing("the trace holds no clamped_window")
            style.line(
                axes,
                thin(as_steps(limit, FTP[1])),
                color=style.ORANGE,
                label="advertised window, as the access point lets it through",
            )
        style.level(axes, PIPE, f"bandwidth-RTT product, {PIPE}")
        top = max([PIPE, *(y for _, y in run.curve("ftp", "cwnd")), *(y for _, y in ssthresh)])
        axes.set(xlim=FTP, ylim=(0, 1.25 * min(top, 420)))
        style.legend_below(axes)
        return Drawn(made)

    return make


# Figures 4, 7, 10: jitter of every game packet of one run.


def game_jitter(title, settings):
    def make(simulator):
        run = simulator.trace(HOME, settings)
        delays = run.curve("game-down", "delay_ms")
        if not delays:
            raise Missing("the trace holds no delay_ms")
        made, axes = style.figure(title, "time [s]", "jitter of the game, server to client [ms]")
        style.line(axes, jitter(delays), color=style.VERMILION, linewidth=0.6)
        axes.axvline(FTP[0], color=style.GREY, linewidth=0.8, linestyle=":")
        axes.annotate(
            "FTP starts",
            (FTP[0], 0.96),
            xycoords=("data", "axes fraction"),
            xytext=(-3, 0),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=8,
        )
        axes.set(xlim=(45, 180), ylim=(0, JITTER_TOP))
        return Drawn(made)

    return make


JITTER_TOP = 40  # ms, the same for figures 4, 7 and 10, so that they can be compared


# Figure 5: throughput over the number of retransmissions and the buffer.


def throughput(simulator):
    made, axes = style.figure(
        "FTP total throughput with different MAC buffer sizes; 10 m, deviation 9 dB",
        "maximum number of retransmissions (attempts = this + 1)",
        "FTP, packets acknowledged in 45 s",
    )
    lines = []
    for buffer, colour in ((50, style.VERMILION), (100, style.BLUE)):
        rows = simulator.sweep(HOME, {**mac([0, *RETRANSMISSIONS], buffer), **FREE})
        ours = [sample(column(where(rows, wifi__attempts=attempts(r)), ACKED)) for r in [0, *RETRANSMISSIONS]]
        style.points(axes, [0, *RETRANSMISSIONS], ours, f"buffer {buffer} packets", color=colour)
        for r, acked in zip([0, *RETRANSMISSIONS], ours):
            lines.append(
                Line(
                    f"packets acknowledged, {r} retransmissions, buffer {buffer}",
                    acked,
                    digits=0,
                    paper=55371 if (r, buffer) == (3, 50) else None,
                    ns2=peers.home("acked", attempts(r), queue=buffer),
                    why=WHY_ACKED,
                )
            )
    axes.set(ylim=(0, None), xticks=[0, *RETRANSMISSIONS])
    axes.legend(loc="lower right")
    return Drawn(made, three_columns(lines))


WHY_ACKED = ""


def combinations(simulator):
    """Every combination of table 3, with both timings."""
    rows = [["timing", "deviation", "distance", "buffer", *(f"{r} retransmissions" for r in RETRANSMISSIONS)]]
    for name, timing in (("ns-2's", NS2), ("the standard's", STANDARD)):
        for buffer in (50, 100):
            vary = {"wifi.loss.deviation": ["7dB", "9dB"], "station.*.distance": ["5m", "10m"]}
            runs = simulator.sweep(HOME, {**mac(RETRANSMISSIONS, buffer, timing), **FREE, **vary})
            for deviation in vary["wifi.loss.deviation"]:
                for distance in vary["station.*.distance"]:
                    these = [
                        row
                        for row in runs
                        if row["wifi.loss.deviation"] == deviation and row["station.*.distance"] == distance
                    ]
                    acked = [sample(column(where(these, wifi__attempts=attempts(r)), ACKED)) for r in RETRANSMISSIONS]
                    rows.append([name, deviation, distance, buffer, *(shown(a, 0) for a in acked)])
    return Drawn(table=markdown(rows))


# Figures 8 and 11: statistics of the game's jitter beside the download.

STATISTICS = (
    ("average", "jitter.mean", style.BLUE),
    ("variance", "jitter.var", style.SKY),
    ("maximum", "jitter.max", style.VERMILION),
)


def bars(axes, labels, groups):
    """Average, variance and maximum of the jitter as bars, one group per label; the download as a line on a second axis."""
    width = 0.26
    for i, (name, field, colour) in enumerate(STATISTICS):
        values = [sample(column(rows, f"{GAME}.{field}")) for rows in groups]
        at = [x + (i - 1) * width for x in range(len(labels))]
        axes.bar(
            at,
            [v.mean for v in values],
            width,
            color=colour,
            label=f"jitter, {name} [{'ms²' if name == 'variance' else 'ms'}]",
        )
        axes.errorbar(
            at,
            [v.mean for v in values],
            yerr=[v.sd for v in values],
            fmt="none",
            ecolor=style.INK,
            elinewidth=0.6,
            capsize=1.5,
        )
    other = axes.twinx()
    acked = [sample(column(rows, ACKED)) for rows in groups]
    style.points(other, range(len(labels)), acked, "FTP throughput (right)", color=style.GREEN)
    other.set(ylim=(0, 70000), ylabel="FTP, packets acknowledged in 45 s")
    other.spines["right"].set_visible(True)
    other.grid(False)
    axes.set_xticks(range(len(labels)), labels)
    axes.set(ylim=(0, 40))
    drawn, beside = axes.get_legend_handles_labels(), other.get_legend_handles_labels()
    style.legend_below(axes, drawn[0] + beside[0], drawn[1] + beside[1])


def over_capacity(simulator):
    made, axes = style.figure(
        "FTP throughput and jitter of the game under SAP-LAW",
        f"C [Mbit/s]; {described(REGULAR)}",
        "jitter of the game [ms, ms²]",
        size=(6.8, 3.8),
    )
    runs = {r: simulator.sweep(HOME, {**mac(r), **law(CAPACITIES)}) for r in (REGULAR, MAC_SETTING)}
    of = lambda r, c: where(runs[r], control__window__capacity=f"{c}Mbit/s")
    bars(axes, [str(c) for c in CAPACITIES], [of(REGULAR, c) for c in CAPACITIES])
    lines = []
    for r in (REGULAR, MAC_SETTING):
        for c in CAPACITIES:
            lines += law_lines(of(r, c), r, c)
    return Drawn(made, three_columns(lines))


def law_lines(rows, retransmissions, capacity):
    """What figure 8 shows for one C, beside the paper (which gives numbers for C = 18 on regular 802.11) and ns-2."""
    paper = (retransmissions, capacity) == (REGULAR, 18)
    what = f"C = {capacity}, {retransmissions} retransmissions:"
    beside = lambda field: peers.home(field, attempts(retransmissions), capacity)
    measured = lambda field: sample(column(rows, field))
    return [
        Line(
            f"{what} packets acknowledged", measured(ACKED), 58677 if paper else None, beside("acked"), WHY_LAW_ACKED, 0
        ),
        Line(
            f"{what} jitter, average [ms]",
            measured(f"{GAME}.jitter.mean"),
            None,
            beside("jitter_mean_ms"),
            WHY_LAW_JITTER,
            2,
            0.15,
            0.2,
        ),
        Line(
            f"{what} jitter, maximum [ms]",
            measured(f"{GAME}.jitter.max"),
            "10" if paper else None,
            beside("jitter_max_ms"),
            WHY_LAW_JITTER,
            1,
            0.15,
            0.2,
        ),
        Line(
            f"{what} delay of the game, p95 [ms]",
            measured(f"{GAME}.delay.p95"),
            None,
            beside("delay_p95_ms"),
            WHY_LAW_JITTER,
            1,
            0.15,
            0.2,
        ),
    ]


WHY_LAW_ACKED = ""
WHY_LAW_JITTER = ""


def summary(simulator):
    made, axes = style.figure(
        "The game's jitter and the download under the three schemes; SAP-LAW with C = 18 Mbit/s",
        "",
        "jitter of the game [ms, ms²]",
        size=(6.8, 3.8),
    )
    schemes = [
        ("Regular", REGULAR, FREE, None),
        ("MAC setting", MAC_SETTING, FREE, 55371),
        ("SAP-LAW", REGULAR, law(18), 58677),
        ("both together", MAC_SETTING, law(18), None),
    ]
    groups = [simulator.sweep(HOME, {**mac(r), **control}) for _, r, control, _ in schemes]
    labels = [f"{name}\n{r} retransmissions\n(attempts = {attempts(r)})" for name, r, _, _ in schemes]
    bars(axes, labels, groups)
    axes.tick_params(axis="x", labelsize=8)
    lines = []
    for (name, r, control, paper), rows in zip(schemes, groups):
        why, bound = (WHY_ACKED, None) if control is FREE else (WHY_LAW_ACKED, "10" if paper else None)
        what = f"{name}, {r} retransmissions:"
        lines.append(Line(f"{what} packets acknowledged", sample(column(rows, ACKED)), paper, why=why, digits=0))
        for statistic, field, _ in STATISTICS:
            unit = "ms²" if statistic == "variance" else "ms"
            says = bound if statistic == "maximum" else None
            lines.append(Line(f"{what} jitter, {statistic} [{unit}]", sample(column(rows, f"{GAME}.{field}")), says))
    return Drawn(made, three_columns(lines))


REGULAR_FREE = {**mac(REGULAR), **FREE}
SETTING_FREE = {**mac(MAC_SETTING), **FREE}
REGULAR_LAW = {**mac(REGULAR), **law(18)}

FIGURES = [
    Figure(
        "sap-law-3",
        "TCP congestion window, regular",
        CHAPTER,
        windows(f"TCP NewReno over regular 802.11g: {described(REGULAR)}", REGULAR_FREE),
    ),
    Figure(
        "sap-law-4",
        "jitter of the game, regular",
        CHAPTER,
        game_jitter(f"Regular 802.11g: {described(REGULAR)}", REGULAR_FREE),
    ),
    Figure("sap-law-5", "FTP throughput over retransmissions and buffer", CHAPTER, throughput, short=True),
    Figure("sap-law-combinations", "every combination of table 3", CHAPTER, combinations),
    Figure(
        "sap-law-6",
        "TCP congestion window, MAC setting",
        CHAPTER,
        windows(f"TCP NewReno, MAC setting: {described(MAC_SETTING)}", SETTING_FREE),
    ),
    Figure(
        "sap-law-7",
        "jitter of the game, MAC setting",
        CHAPTER,
        game_jitter(f"MAC setting: {described(MAC_SETTING)}", SETTING_FREE),
    ),
    Figure("sap-law-8", "throughput and jitter over C", CHAPTER, over_capacity),
    Figure(
        "sap-law-9",
        "windows under SAP-LAW",
        CHAPTER,
        windows(f"SAP-LAW, C = 18 Mbit/s: {described(REGULAR)}", REGULAR_LAW, advertised=True),
    ),
    Figure(
        "sap-law-10",
        "jitter of the game under SAP-LAW",
        CHAPTER,
        game_jitter(f"SAP-LAW, C = 18 Mbit/s: {described(REGULAR)}", REGULAR_LAW),
    ),
    Figure("sap-law-11", "the three schemes", CHAPTER, summary),
]

"""SAP-LAW (ACE 2006): its home and settings, and the figures over time: 1, 3, 4, 6, 7, 9, 10.

The home is `scenarios/papers/sap-law.toml` with ns-2's timing, since the paper ran in ns-2; the combinations are run with
the standard's timing too. The paper's "maximum number of retransmissions" r is `attempts` = r + 1: "regular" 802.11 has
r = 4, its MAC setting r = 3. SAP-LAW runs on regular 802.11 as the paper has it, eq. (1) to the letter: equal shares, one
constant round trip of 81.5 ms, UDP smoothed with 0.2. Figure 5 names its radio, 9 dB and 10 m; the others are drawn with
that of the scenario (`sap_law_readings` shows why).
"""

from . import style
from .catalogue import Drawn, Figure, Missing
from .series import as_steps, held, jitter, thin

HOME = "papers/sap-law"
CHAPTER = "sap-law.md"
NS2 = {"wifi.timing": "ns2-g"}
FREE = {"control.window": "none"}
REGULAR, MAC_SETTING = 4, 3  # retransmissions
BUFFER = 50  # packets
PIPE = 146  # packets: the paper's line "bandwidth-RTT product"
FTP = (135.0, 180.0)  # s
DEVIATION = 7  # dB, the scenario's
PAPER_SETTING, PAPER_LAW = 55371, 58677  # packets acknowledged: MAC setting, SAP-LAW at C = 18
BOUND = 10  # ms: "limit the maximum jitter within 10ms"


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


def described(retransmissions):
    return f"at most {retransmissions} retransmissions (attempts = {attempts(retransmissions)})"


# Figures 3, 6, 9: windows of one run.


def windows(title, retransmissions, control):
    """cwnd and ssthresh of the download over its 45 s, the window that the access point lets through, the pipe."""

    def make(simulator):
        run = simulator.trace(HOME, {**mac(retransmissions), **control})
        made, axes = style.figure(f"{title}: {described(retransmissions)}", "time [s]", "packets")
        limit = run.curve("ftp", "clamped_window", 1 / 1460)
        ssthresh = [
            (t, y) for t, y in run.curve("ftp", "ssthresh") if y < 1000
        ]  # before the first loss it is unbounded
        style.line(axes, thin(run.curve("ftp", "cwnd")), color=style.VERMILION, label="congestion window")
        threshold = {"color": style.GREEN, "linestyle": (0, (5, 1.5)), "linewidth": 1.4}
        style.line(axes, thin(as_steps(ssthresh, FTP[1])), label="slow start threshold", **threshold)
        if control is not FREE:
            if not limit:
                raise Missing("the trace holds no clamped_window")
            style.line(
                axes,
                thin(as_steps(limit, FTP[1])),
                color=style.ORANGE,
                linewidth=2.2,
                label="advertised window, as the access point lets it through",
            )
        style.level(axes, PIPE, f"bandwidth-RTT product, {PIPE} (the paper's line)", linestyle=":")
        top = max([PIPE, *(y for _, y in run.curve("ftp", "cwnd")), *(y for _, y in ssthresh)])
        axes.set(xlim=FTP, ylim=(0, 1.25 * min(top, 420)))
        style.legend_below(axes)
        return Drawn(made)

    return make


# Figures 4, 7, 10: jitter of every game packet of one run.


def game_jitter(title, retransmissions, control):
    def make(simulator):
        run = simulator.trace(HOME, {**mac(retransmissions), **control})
        delays = run.curve("game-down", "delay_ms")
        if not delays:
            raise Missing("the trace holds no delay_ms")
        made, axes = style.figure(
            f"{title}: {described(retransmissions)}", "time [s]", "jitter of the game, server to client [ms]"
        )
        style.line(axes, jitter(delays), color=style.VERMILION, linewidth=0.6)
        style.level(axes, BOUND, "")
        axes.annotate(
            f"{BOUND} ms: the paper's bound at C = 18",
            (46, BOUND),
            xytext=(0, 3),
            textcoords="offset points",
            fontsize=8,
            color=style.BLUE,
        )
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


JITTER_TOP = 35  # ms, the same for figures 4, 7 and 10, so that they can be compared


# Figure 1: what the limit changes, in the runs of figures 3 and 9.


def sending_window(run, step=0.05):
    """[(t, packets)] of min(congestion window, window let through) on a grid."""
    cwnd, let = run.curve("ftp", "cwnd"), run.curve("ftp", "clamped_window", 1 / 1460)
    grid = [FTP[0] + step * i for i in range(round((FTP[1] - FTP[0]) / step) + 1)]
    return [(t, min(held(cwnd, t), held(let, t))) for t in grid]


def sending_windows(simulator):
    runs = [simulator.trace(HOME, {**mac(REGULAR), **control}) for control in (FREE, law(18))]
    regular, limited = (sending_window(run) for run in runs)
    xs, above, below = [t for t, _ in regular], [y for _, y in regular], [y for _, y in limited]
    made, axes = style.figure(
        "Sending windows: regular, and limited by SAP-LAW at C = 18 Mbit/s", "time [s]", "packets"
    )
    more, less = ([a > b for a, b in zip(*pair)] for pair in ((above, below), (below, above)))
    axes.fill_between(xs, above, below, where=more, color=style.VERMILION, alpha=0.18, hatch="++", linewidth=0)
    axes.fill_between(xs, above, below, where=less, color=style.BLUE, alpha=0.18, hatch="--", linewidth=0)
    style.line(axes, regular, color=style.VERMILION, linestyle="-", label="regular wnd: min(congestion, advertised)")
    style.line(axes, limited, color=style.BLUE, linestyle="--", linewidth=1.8, label="limited wnd")
    patch = style.plt.matplotlib.patches.Patch
    marks = [
        patch(facecolor=style.VERMILION, alpha=0.3, hatch="++", label="+ regular sends more, and queues"),
        patch(facecolor=style.BLUE, alpha=0.3, hatch="--", label="- regular sends less"),
    ]
    axes.set(xlim=FTP, ylim=(0, None))
    handles = [*axes.get_legend_handles_labels()[0], *marks]
    style.legend_below(axes, handles, [one.get_label() for one in handles])
    return Drawn(made)


FIGURES = [
    Figure("sap-law-1", "regular and limited sending windows", CHAPTER, sending_windows),
    Figure("sap-law-3", "TCP's window, regular", CHAPTER, windows("Regular 802.11g, TCP NewReno", REGULAR, FREE)),
    Figure("sap-law-4", "jitter of the game, regular", CHAPTER, game_jitter("Regular 802.11g", REGULAR, FREE)),
    Figure("sap-law-6", "TCP's window, MAC setting", CHAPTER, windows("MAC setting, TCP NewReno", MAC_SETTING, FREE)),
    Figure("sap-law-7", "jitter of the game, MAC setting", CHAPTER, game_jitter("MAC setting", MAC_SETTING, FREE)),
    Figure("sap-law-9", "windows under SAP-LAW", CHAPTER, windows("SAP-LAW, C = 18 Mbit/s", REGULAR, law(18))),
    Figure("sap-law-10", "jitter under SAP-LAW", CHAPTER, game_jitter("SAP-LAW, C = 18 Mbit/s", REGULAR, law(18))),
]

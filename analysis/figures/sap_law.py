"""SAP-LAW (ACE 2006): its home and settings, and the figures over time: 3, 4, 6, 7, 9, 10.

The home is `scenarios/papers/sap-law.toml` with ns-2's timing, since the paper ran in ns-2; the combinations are run with
the standard's timing too. The paper's "maximum number of retransmissions" r is `attempts` = r + 1: "regular" 802.11 has
r = 4, its MAC setting r = 3. SAP-LAW runs on regular 802.11 as the paper has it, eq. (1) to the letter: equal shares, one
constant round trip of 81.5 ms, UDP smoothed with 0.2.
"""

from . import style
from .catalogue import Drawn, Figure, Missing
from .series import as_steps, jitter, thin

HOME = "papers/sap-law"
CHAPTER = "sap-law.md"
NS2 = {"wifi.timing": "ns2-g"}
FREE = {"control.window": "none"}
REGULAR, MAC_SETTING = 4, 3  # retransmissions
BUFFER = 50  # packets
PIPE = 146  # packets: the paper's line "bandwidth-RTT product"
FTP = (135.0, 180.0)  # s


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
        style.line(axes, thin(as_steps(ssthresh, FTP[1])), color=style.GREEN, label="slow start threshold")
        if control is not FREE:
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


JITTER_TOP = 30  # ms, the same for figures 4, 7 and 10, so that they can be compared


FIGURES = [
    Figure("sap-law-3", "TCP's window, regular", CHAPTER, windows("Regular 802.11g, TCP NewReno", REGULAR, FREE)),
    Figure("sap-law-4", "jitter of the game, regular", CHAPTER, game_jitter("Regular 802.11g", REGULAR, FREE)),
    Figure("sap-law-6", "TCP's window, MAC setting", CHAPTER, windows("MAC setting, TCP NewReno", MAC_SETTING, FREE)),
    Figure("sap-law-7", "jitter of the game, MAC setting", CHAPTER, game_jitter("MAC setting", MAC_SETTING, FREE)),
    Figure("sap-law-9", "windows under SAP-LAW", CHAPTER, windows("SAP-LAW, C = 18 Mbit/s", REGULAR, law(18))),
    Figure("sap-law-10", "jitter under SAP-LAW", CHAPTER, game_jitter("SAP-LAW, C = 18 Mbit/s", REGULAR, law(18))),
]

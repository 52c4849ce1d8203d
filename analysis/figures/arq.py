"""The ARQ paper: figures 4.1 to 4.7, its utilisation figures, and the causes of loss that it states.

The home is `scenarios/papers/arq.toml`. The paper's "maximum number of retransmissions" r is `attempts` = r + 1.
Utilisation is payload of TCP over 100 s by 11 Mbit/s.
"""

from . import peers, style
from .catalogue import Drawn, Figure, Missing
from .series import as_steps, cumulative, thin
from .simulator import column, where
from .stats import sample
from .table import Line, three_columns

HOME = "papers/arq"
CHAPTER = "arq.md"
PIPE, QUEUE = 32, 50  # packets: the paper's bandwidth-delay product, and the access point's buffer
RETRANSMISSIONS = [0, 1, 2, 3, 4]
SENDERS = {"newreno": "TCP NewReno", "westwood-abse": "TCP Westwood (ABSE)"}
RUN_S = 100.0
LINK_BPS = 11e6
# Figure 4.7 has "a video stream" of a rate that the paper does not name.
VIDEO = {"flow.audio.kind": "cbr", "flow.audio.rate": "500kbit/s", "flow.audio.size": "1000B"}


def settings(retransmissions, flows=1, sender="newreno"):
    """One of the paper's configurations; lists where a sweep varies."""
    counts = [r + 1 for r in retransmissions] if isinstance(retransmissions, list) else retransmissions + 1
    return {"wifi.attempts": counts, "flow.audio.count": flows, "flow.ftp.cc": sender}


def audio_names(flows):
    return ["audio"] if flows == 1 else [f"audio.{i}" for i in range(1, flows + 1)]


def utilisation(rows):
    """Percent of 11 Mbit/s."""
    return sample(
        packets * 8000.0 / RUN_S / LINK_BPS * 100.0 for packets in column(rows, "flows.ftp.tcp.acked_packets")
    )


# Figures 4.1, 4.2, 4.3, 4.6, 4.7: windows of one run.


def windows(title, retransmissions, flows, sender, more=None):
    def make(simulator):
        run = simulator.trace(HOME, {**settings(retransmissions, flows, sender), **(more or {})})
        heading = f"{title}; at most {retransmissions} retransmission{'s' * (retransmissions > 1)} (attempts = {retransmissions + 1})"
        made, axes = style.figure(heading, "time [s]", "packets")
        cwnd = run.curve("ftp", "cwnd")
        ssthresh = [
            (t, y) for t, y in run.curve("ftp", "ssthresh") if y < 1000
        ]  # before the first loss it is unbounded
        estimate = run.curve("ftp", "bandwidth_bps", 0.146 / 8 / 1040)  # over the shortest round trip, as a window
        if estimate:
            style.line(axes, thin(estimate), color=style.ORANGE, linewidth=0.8, label="bandwidth estimate x 146 ms")
        style.line(axes, thin(cwnd), color=style.VERMILION, label="congestion window")
        style.line(axes, thin(as_steps(ssthresh, RUN_S)), color=style.GREEN, label="slow start threshold")
        style.level(axes, PIPE + QUEUE, f"bandwidth-delay product {PIPE} + queue {QUEUE}", linestyle="-")
        axes.set(xlim=(0, RUN_S), ylim=(0, 140))
        style.legend_below(axes)
        return Drawn(made)

    return make


# Figures 4.4, 4.5: how many audio packets arrived within a delay.


def cumulative_delays(title, flows):
    def make(simulator):
        made, axes = style.figure(
            f"{title}; at most 3 retransmissions (attempts = 4)",
            "delay [ms]",
            "packets delivered with at most this delay",
        )
        for sender, colour in (("westwood-abse", style.VERMILION), ("newreno", style.GREEN)):
            run = simulator.trace(HOME, settings(3, flows, sender))
            delays = [y for name in audio_names(flows) for _, y in run.curve(name, "delay_ms")]
            if not delays:
                raise Missing("the trace holds no delay_ms")
            style.line(axes, thin(cumulative(delays), 300), color=colour, label=SENDERS[sender])
        axes.set(xlim=(60, 220), ylim=(0, None))
        axes.legend(loc="lower right")
        return Drawn(made)

    return make


# The text's figures, as a table; causes of loss as a picture of their own.

PAPER = {
    ("newreno", 1, 1): 13.19, ("newreno", 1, 5): 12.76, ("westwood-abse", 1, 1): 13.72, ("westwood-abse", 1, 5): 12.38,
    # The text gives the pairs (27.51, 29.05) and (33.23, 34.31) for 1 and 5 streams, in this order, as it says.
    ("newreno", 3, 1): 29.05, ("newreno", 3, 5): 34.31, ("westwood-abse", 3, 1): 27.51, ("westwood-abse", 3, 5): 33.23,
}  # fmt: skip
NS2_SENDER = {"newreno": "newreno"}  # ns-2's Westwood is Linux's Westwood+, no ABSE: it stands beside nothing


def sweeps(simulator):
    """{(sender, streams): rows over all retransmissions}."""
    return {
        (sender, flows): simulator.sweep(HOME, settings(RETRANSMISSIONS, flows, sender))
        for sender in SENDERS
        for flows in (1, 5)
    }


def throughput(simulator):
    runs = sweeps(simulator)
    made, axes = style.figure(
        "TCP's share of the channel over retransmissions",
        "maximum number of retransmissions (attempts = this + 1)",
        "TCP payload, % of 11 Mbit/s",
    )
    lines = []
    looks = {
        ("newreno", 1): (style.GREEN, "-"),
        ("newreno", 5): (style.GREEN, "--"),
        ("westwood-abse", 1): (style.VERMILION, "-"),
        ("westwood-abse", 5): (style.VERMILION, "--"),
    }
    for (sender, flows), rows in runs.items():
        colour, dash = looks[sender, flows]
        ours = [utilisation(where(rows, wifi__attempts=r + 1)) for r in RETRANSMISSIONS]
        style.points(axes, RETRANSMISSIONS, ours, f"{SENDERS[sender]}, {flows} audio", color=colour, linestyle=dash)
        for r, value in zip(RETRANSMISSIONS, ours):
            beside = peers.arq("tcp_percent", r + 1, flows, NS2_SENDER[sender]) if sender in NS2_SENDER else None
            lines.append(
                Line(
                    f"{SENDERS[sender]}, {r} retransmissions, {flows} audio [%]",
                    value,
                    PAPER.get((sender, r, flows)),
                    beside,
                    WHY_SHARE,
                )
            )
    axes.set(ylim=(0, 40), xticks=RETRANSMISSIONS)
    style.legend_below(axes)
    return Drawn(made, three_columns(lines))


WHY_SHARE = ""


def causes(simulator):
    """Where the losses of TCP went, and the audio's delay: what the paper states in words."""
    runs = sweeps(simulator)
    lines = []
    for sender, flows in (("newreno", 1), ("westwood-abse", 1)):
        for r in RETRANSMISSIONS:
            rows = where(runs[sender, flows], wifi__attempts=r + 1)
            of = lambda field: sample(column(rows, field))
            beside = lambda field: peers.arq(field, r + 1, flows, NS2_SENDER[sender]) if sender in NS2_SENDER else None
            what = f"{SENDERS[sender]}, {r} retransmissions:"
            says = {1: ("all", "none"), 3: ("none", "all"), 4: ("none", "all")}.get(r, ("-", "-"))
            lines += [
                Line(
                    f"{what} TCP packets lost on the air",
                    of("flows.ftp.lost.air"),
                    says[0],
                    beside("lost_air"),
                    WHY_CAUSES,
                    1,
                    0.1,
                    2,
                ),
                Line(
                    f"{what} TCP packets dropped by the queue",
                    of("flows.ftp.lost.ap_queue"),
                    says[1],
                    beside("lost_queue"),
                    WHY_CAUSES,
                    1,
                    0.1,
                    2,
                ),
                Line(
                    f"{what} delay of the audio, p50 [ms]",
                    of("flows.audio.delay.p50"),
                    None,
                    beside("delay_p50_ms"),
                    WHY_DELAY,
                    1,
                    0.15,
                    0.2,
                ),
                Line(
                    f"{what} delay of the audio, p95 [ms]",
                    of("flows.audio.delay.p95"),
                    None,
                    beside("delay_p95_ms"),
                    WHY_DELAY,
                    1,
                    0.15,
                    0.2,
                ),
            ]
    return Drawn(table=three_columns(lines))


WHY_CAUSES = ""
WHY_DELAY = ""

FIGURES = [
    Figure("arq-4.1", "NewReno, 1 audio, 1 retransmission", CHAPTER, windows("TCP NewReno and 1 UDP", 1, 1, "newreno")),
    Figure(
        "arq-4.2", "NewReno, 5 audio, 3 retransmissions", CHAPTER, windows("TCP NewReno and 5 UDP", 3, 5, "newreno")
    ),
    Figure(
        "arq-4.3",
        "Westwood, 5 audio, 3 retransmissions",
        CHAPTER,
        windows("TCP Westwood and 5 UDP", 3, 5, "westwood-abse"),
    ),
    Figure("arq-4.4", "cumulative delays, 1 audio", CHAPTER, cumulative_delays("Cumulative delays for 1 UDP", 1)),
    Figure("arq-4.5", "cumulative delays, 5 audio", CHAPTER, cumulative_delays("Cumulative delays for 5 UDP", 5)),
    Figure(
        "arq-4.6", "NewReno, 1 audio, 2 retransmissions", CHAPTER, windows("TCP NewReno and 1 UDP", 2, 1, "newreno")
    ),
    Figure(
        "arq-4.7",
        "Westwood, video of 500 kbit/s, 2 retransmissions",
        CHAPTER,
        windows("TCP Westwood and 1 UDP (video)", 2, 1, "westwood-abse", VIDEO),
    ),
    Figure("arq-share", "TCP's share over retransmissions", CHAPTER, throughput, short=True),
    Figure("arq-causes", "causes of loss, and the audio's delay", CHAPTER, causes),
]

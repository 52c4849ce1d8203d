"""The ARQ paper: figures 4.1 to 4.7, its utilisation figures, and the causes of loss that it states.

The home is `scenarios/papers/arq.toml`. The paper's "maximum number of retransmissions" r is `attempts` = r + 1.
Utilisation is payload of TCP over 100 s by 11 Mbit/s.
"""

from . import peers, style
from .catalogue import Drawn, Figure, Missing
from .series import as_steps, cumulative, thin
from .simulator import column, where
from .stats import sample
from .table import LOSSES, MILLISECONDS, PERCENT, Line, markdown, shown, three_columns

HOME = "papers/arq"
CHAPTER = "arq.md"
PIPE, QUEUE = 32, 50  # packets: the paper's bandwidth-delay product, and the access point's buffer
RETRANSMISSIONS = [0, 1, 2, 3, 4]
SENDERS = {"newreno": "TCP NewReno", "westwood-abse": "TCP Westwood (ABSE)"}
ABSCISSA = "maximum number of retransmissions (attempts = this + 1)"
COLOURS = {"newreno": style.GREEN, "westwood-abse": style.VERMILION}
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
        for sender in ("westwood-abse", "newreno"):
            run = simulator.trace(HOME, settings(3, flows, sender))
            delays = [y for name in audio_names(flows) for _, y in run.curve(name, "delay_ms")]
            if not delays:
                raise Missing("the trace holds no delay_ms")
            style.line(axes, thin(cumulative(delays), 300), color=COLOURS[sender], label=SENDERS[sender])
        axes.set(xlim=(60, 220), ylim=(0, None))
        axes.legend(loc="lower right")
        return Drawn(made)

    return make


# The text's figures, as a table; causes of loss as a picture of their own.

PAPER = {
    ("newreno", 1, 1): 13.19,
    ("newreno", 1, 5): 12.76,
    ("westwood-abse", 1, 1): 13.72,
    ("westwood-abse", 1, 5): 12.38,
    # The text gives (27.51, 29.05) for 1 and (33.23, 34.31) for 5 streams.
    ("westwood-abse", 3, 1): 27.51,
    ("newreno", 3, 1): 29.05,
    ("westwood-abse", 3, 5): 33.23,
    ("newreno", 3, 5): 34.31,
}
NS2_SENDER = {"newreno": "newreno", "westwood-abse": "westwood"}
NS2_NAMES = {"newreno": "NewReno", "westwood-abse": "Westwood+"}
UNNAMED = "[what it leaves unnamed](#what-the-paper-leaves-unnamed)"
THRESHOLD = "[Westwood's threshold](#westwoods-threshold)"
WHY_PAPER = {"newreno": UNNAMED, "westwood-abse": THRESHOLD}
WHY_NS2 = {"newreno": "", "westwood-abse": "its Westwood is another, with SACK"}


def sweeps(simulator):
    """{(sender, streams): rows over all retransmissions}."""
    cases = [(sender, flows) for sender in SENDERS for flows in (1, 5)]
    return {case: simulator.sweep(HOME, settings(RETRANSMISSIONS, case[1], case[0])) for case in cases}


def throughput(simulator):
    made, axes = style.figure("TCP's share of the channel", ABSCISSA, "TCP payload, % of 11 Mbit/s")
    lines = []
    for (sender, flows), rows in sweeps(simulator).items():
        ours = [utilisation(where(rows, wifi__attempts=r + 1)) for r in RETRANSMISSIONS]
        look = {"color": COLOURS[sender], "linestyle": "-" if flows == 1 else "--"}
        style.points(axes, RETRANSMISSIONS, ours, f"{SENDERS[sender]}, {flows} audio", **look)
        theirs = [peers.arq("tcp_percent", r + 1, flows, NS2_SENDER[sender]) for r in RETRANSMISSIONS]
        if flows == 1:
            style.peer(axes, RETRANSMISSIONS, theirs, f"ns-2.35, {NS2_NAMES[sender]}, 1 audio", color=COLOURS[sender])
        for r, value, ns2 in zip(RETRANSMISSIONS, ours, theirs):
            what = f"{SENDERS[sender]}, {r} retransmissions, {flows} audio [%]"
            lines.append(
                Line(what, value, PERCENT, PAPER.get((sender, r, flows)), ns2, WHY_PAPER[sender], WHY_NS2[sender])
            )
    axes.set(ylim=(0, 40), xticks=RETRANSMISSIONS)
    style.legend_below(axes)
    return Drawn(made, three_columns(lines))


# What the report counts, what ns-2's file calls it, and what the paper says of it, by retransmissions.
COUNTED = (
    ("TCP packets lost on the air", "flows.ftp.lost.air", "lost_air", LOSSES, {1: "all", 3: "none", 4: "none"}),
    (
        "TCP packets dropped by the queue",
        "flows.ftp.lost.ap_queue",
        "lost_queue",
        LOSSES,
        {1: "none", 3: "all", 4: "all"},
    ),
    ("delay of the audio, p50 [ms]", "flows.audio.delay.p50", "delay_p50_ms", MILLISECONDS, {}),
    ("delay of the audio, p95 [ms]", "flows.audio.delay.p95", "delay_p95_ms", MILLISECONDS, {}),
)


def causes(simulator):
    """Where the losses of TCP went, and the audio's delay: what the paper states in words."""
    runs = sweeps(simulator)
    lines = []
    for sender in SENDERS:
        for r in RETRANSMISSIONS:
            rows = where(runs[sender, 1], wifi__attempts=r + 1)
            for name, field, theirs, rule, says in COUNTED:
                what = f"{SENDERS[sender]}, {r} retransmissions: {name}"
                ns2 = peers.arq(theirs, r + 1, 1, NS2_SENDER[sender])
                ours = sample(column(rows, field))
                lines.append(Line(what, ours, rule, says.get(r), ns2, why_ns2=WHY_NS2[sender]))
    return Drawn(table=three_columns(lines))


def unnamed(simulator):
    """TCP's share where the settings that the paper does not name are others."""
    table = [["ACK rate", "preamble", "deviation", "1 retransmission [%]", "3 retransmissions [%]"]]
    for rate in ("1Mbit/s", "2Mbit/s", "11Mbit/s"):
        for preamble in ("long", "short"):
            more = {"wifi.control_rate": rate, "wifi.preamble": preamble, "wifi.loss.deviation": ["7.5dB", "4dB"]}
            rows = simulator.sweep(HOME, {**settings([1, 3]), **more})
            for deviation in more["wifi.loss.deviation"]:
                these = [row for row in rows if row["wifi.loss.deviation"] == deviation]
                shares = [shown(utilisation(where(these, wifi__attempts=r + 1)), 2) for r in (1, 3)]
                table.append([rate, preamble, deviation, *shares])
    return Drawn(table=markdown(table))


def threshold(simulator):
    """The two senders over the paper's round trip of 146 ms, and over one of 73 ms."""
    table = [["round trip", "", "TCP [%]", "audio delay, mean [ms]", "p50 [ms]", "p95 [ms]", "mean window [packets]"]]
    for trip, delay in (("146 ms", "70ms"), ("73 ms", "33.5ms")):
        for sender in SENDERS:
            rows = simulator.sweep(HOME, {**settings(3, 1, sender), "line.delay": delay}, seeds=100)
            of = lambda field: shown(sample(column(rows, field)), 1)
            delays = [of(f"flows.audio.delay.{name}") for name in ("mean", "p50", "p95")]
            table.append([trip, SENDERS[sender], shown(utilisation(rows), 2), *delays, of("flows.ftp.tcp.cwnd_mean")])
    return Drawn(table=markdown(table))


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
    Figure("arq-unnamed", "settings that the paper does not name", CHAPTER, unnamed),
    Figure("arq-threshold", "Westwood's threshold and the round trip", CHAPTER, threshold),
]

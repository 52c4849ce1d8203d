"""The ARQ paper: figures 4.1 to 4.7, its utilisation figures, and the causes of loss that it states.

The home is `scenarios/papers/arq.toml`. The paper's "maximum number of retransmissions" r is `attempts` = r + 1.
Utilisation is payload of TCP over 100 s by 11 Mbit/s.
"""

import statistics

from . import peers, style
from .catalogue import Drawn, Figure, Missing
from .series import as_steps, cumulative, pooled, thin
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


# How the home can be read. ns-2 sends RTS before every frame unless it is told otherwise, and the paper does not say that it
# was; it names no shadowing, and its pipe is a product with 146 ms or, of twice the rate, with 73 ms.
RTS = {"wifi.rts_threshold": 0, "wifi.loss.deviation": "4dB"}
HALF = {"wan.delay": "33.5ms"}
# ns-2's retry limits count transmissions: who sets them to r makes r attempts.
AS_LIMIT = "attempts = r"
DRAWN = (
    ("no RTS, 7.5 dB, attempts = r + 1: the scenario", {}),
    ("RTS before every frame, 4 dB, attempts = r", {**RTS, AS_LIMIT: True}),
)
THRESHOLD_SAID = 20  # packets: what the paper's Westwood sets after each loss


def read(retransmissions, flows, sender, reading):
    """One of the paper's configurations under a reading."""
    found = {**settings(retransmissions, flows, sender), **reading}
    if found.pop(AS_LIMIT, False):
        found["wifi.attempts"] -= 1
    return found


def side_by_side(title, retransmissions):
    """One panel for each reading that is drawn."""
    made, panels = style.plt.subplots(1, len(DRAWN), figsize=(8.6, 3.8), sharey=True)
    times = "retransmission" if retransmissions == 1 else "retransmissions"
    made.suptitle(f"{title}; at most r = {retransmissions} {times}", fontsize=9.5)
    for axes, (reading, _) in zip(panels, DRAWN):
        axes.set_title(reading)
    return made, panels


# Figures 4.1, 4.2, 4.3, 4.6, 4.7: windows of one run.


def finite(thresholds):
    """Without those before the first loss, when it is unbounded."""
    return [(t, y) for t, y in thresholds if y < 1000]


def windows(title, retransmissions, flows, sender, more=None):
    def make(simulator):
        made, panels = side_by_side(title, retransmissions)
        for axes, (_, reading) in zip(panels, DRAWN):
            run = simulator.trace(HOME, {**read(retransmissions, flows, sender, reading), **(more or {})})
            # Payload per second over the shortest round trip, as a window.
            estimate = run.curve("ftp", "bandwidth_bps", 0.146 / 8 / 1000)
            if estimate:
                look = {"color": style.ORANGE, "linewidth": 0.8, "label": "bandwidth estimate x 146 ms"}
                style.line(axes, thin(estimate), **look)
            style.line(axes, thin(run.curve("ftp", "cwnd")), color=style.VERMILION, label="congestion window")
            steps = thin(as_steps(finite(run.curve("ftp", "ssthresh")), RUN_S))
            style.line(axes, steps, color=style.GREEN, label="slow start threshold")
            style.level(axes, PIPE + QUEUE, f"the paper: bandwidth-delay product {PIPE} + queue {QUEUE}", linestyle="-")
            if sender == "westwood-abse" and retransmissions == 3:
                style.level(axes, THRESHOLD_SAID, "the paper: threshold after each loss", color=style.GREEN)
            axes.set(xlim=(0, RUN_S), xlabel="time [s]")
        # The panels share it, so once both have been drawn: up to the peak of slow start.
        panels[0].set(ylabel="packets", ylim=(0, None))
        made.legend(*panels[0].get_legend_handles_labels(), loc="outside lower left", ncols=3)
        return Drawn(made)

    return make


# Figures 4.4, 4.5: how many audio packets arrived within a delay.


def cumulative_delays(title, flows):
    def make(simulator):
        made, panels = side_by_side(title, 3)
        for axes, (_, reading) in zip(panels, DRAWN):
            for sender in ("westwood-abse", "newreno"):
                run = simulator.trace(HOME, read(3, flows, sender, reading))
                delays = [y for name in audio_names(flows) for _, y in run.curve(name, "delay_ms")]
                if not delays:
                    raise Missing("the trace holds no delay_ms")
                style.line(axes, thin(cumulative(delays), 300), color=COLOURS[sender], label=SENDERS[sender])
            axes.set(xlim=(60, 260), ylim=(0, None), xlabel="delay [ms]")
        panels[0].set_ylabel("packets delivered with at most this delay")
        panels[0].legend(loc="lower right")
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
THRESHOLD = "[readings](#readings-of-the-home)"
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
    ("TCP packets lost on the air", "flows.ftp.lost.channel", "lost_air", LOSSES, {1: "all", 3: "none", 4: "none"}),
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


# What the paper prints, beside each reading of its home: name, the paper's, digits, how it is measured.
READINGS = (
    ("no RTS, 7.5 dB, 146 ms", {}),
    ("RTS, 4 dB, 146 ms", RTS),
    ("RTS, 6.5 dB, 146 ms", {**RTS, "wifi.loss.deviation": "6.5dB"}),
    ("no RTS, 7.5 dB, 73 ms", HALF),
    ("RTS, 4 dB, 146 ms, attempts = r", {**RTS, AS_LIMIT: True}),
    ("RTS, 4 dB, 73 ms, attempts = r", {**RTS, **HALF, AS_LIMIT: True}),
)
TRACED = range(1, 11)  # seeds


def at_losses(simulator, reading, sender):
    """Medians over a run of the window before each loss and of the threshold after it, packets, from second 5 to 50."""
    before, after = [], []
    for seed in TRACED:
        more = {**read(3, 1, sender, reading), "flow.audio": "none", "duration": "50s"}
        del more["flow.audio.count"]
        run = simulator.trace(HOME, more, seed)
        windows, thresholds = [], []
        window = last = None
        for t, flow, threshold, cwnd in zip(*(run.trace[name] for name in ("t_s", "flow", "ssthresh", "cwnd"))):
            if flow != "ftp":
                continue
            if threshold != last and t > 5:
                windows.append(window)
                thresholds.append(threshold)
            last, window = threshold, window if cwnd is None else cwnd
        if thresholds:
            before.append(statistics.median(windows))
            after.append(statistics.median(thresholds))
    return sample(before), sample(after)


def measured(simulator, reading):
    """Of one reading, every row of the table in its order."""
    newreno, westwood = SENDERS
    of = {
        (sender, r, flows): simulator.sweep(HOME, read(r, flows, sender, reading))
        for sender in SENDERS
        for r in (1, 3)
        for flows in (1, 5)
    }
    share = {case: utilisation(rows) for case, rows in of.items()}
    field = lambda case, name: sample(column(of[case], name))
    ratio = lambda a, b: f"{share[a].mean / share[b].mean:.2f}"
    window, threshold = at_losses(simulator, reading, newreno)
    least = at_losses(simulator, reading, westwood)[1]
    packets = share[newreno, 3, 1].mean / 100 * LINK_BPS / 8000 * (0.073 if "wan.delay" in reading else 0.146)
    audio = lambda sender, flows: shown(sample(pooled(of[sender, 3, flows], audio_names(flows), "delay.mean")), 0)
    return [
        f"{packets:.0f}",
        shown(window, 0),
        shown(threshold, 0),
        shown(least, 1),
        *(" / ".join(audio(sender, flows) for sender in SENDERS) for flows in (1, 5)),
        *(shown(share[case], 2) for case in share),
        *(ratio((sender, 1, 1), (sender, 3, 1)) for sender in SENDERS),
        ratio((newreno, 3, 5), (newreno, 3, 1)),
        shown(field((newreno, 1, 1), "flows.ftp.lost.ap_queue"), 0),
        shown(field((newreno, 3, 1), "flows.ftp.lost.channel"), 1),
    ]


def readings(simulator):
    """All that the paper prints, under five readings of its home."""
    newreno, westwood = SENDERS.values()
    cases = [(sender, r, flows) for sender in SENDERS for r in (1, 3) for flows in (1, 5)]
    names = [
        ("rate x round trip [packets]", "32"),
        (f"window at a loss, {newreno} [packets]", "82"),
        (f"threshold after it, {newreno} [packets]", "41"),
        (f"threshold, {westwood} [packets]", "about 20"),
        *((f"audio delay, mean, beside {newreno} / Westwood, {n} audio [ms]", "Westwood less") for n in (1, 5)),
        *((f"{SENDERS[s]}, {r} retr., {n} audio [% of 11 Mbit/s]", f"{PAPER[s, r, n]:.2f}") for s, r, n in cases),
        *(
            (f"{SENDERS[s]}: share with 1 over share with 3 retr.", f"{PAPER[s, 1, 1] / PAPER[s, 3, 1]:.2f}")
            for s in SENDERS
        ),
        (f"{newreno}, 3 retr.: 5 over 1 audio", "1.18; 0.85 exchanged"),
        (f"{newreno}, 1 retr.: drops by the queue", "none"),
        (f"{newreno}, 3 retr.: lost on the air", "none"),
    ]
    columns = [measured(simulator, reading) for _, reading in READINGS]
    table = [["", "the paper", *(name for name, _ in READINGS)]]
    table += [[name, said, *values] for (name, said), *values in zip(names, *columns)]
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
    Figure("arq-readings", "the home's readings", CHAPTER, readings),
]

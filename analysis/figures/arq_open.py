"""What the ARQ paper's authors left open: Westwood beside NewReno, the access point's queue, jitter at 2 against 3.

Retransmissions r are `attempts` = r + 1.
"""

from . import style
from .arq import ABSCISSA, CHAPTER, COLOURS, HOME, RETRANSMISSIONS, SENDERS, settings, utilisation
from .catalogue import Drawn, Figure, Missing
from .series import cumulative, jitter, thin
from .simulator import column, where
from .stats import sample
from .table import markdown, shown

PAIR = "papers/arq-pair"
QUEUES = [10, 20, 32, 50, 75, 100, 150, 200]  # packets


def beside_each_other(simulator):
    """Goodput of the two senders on one link, and of two NewReno in their places."""
    attempts = {"wifi.attempts": [r + 1 for r in RETRANSMISSIONS]}
    mixed = simulator.sweep(PAIR, attempts)
    equals = simulator.sweep(PAIR, {**attempts, "flow.westwood.cc": "newreno"})
    made, axes = style.figure("Westwood (ABSE) beside NewReno", ABSCISSA, "goodput [Mbit/s]")
    mbps = lambda rows, r, flow: sample(
        x / 1e6 for x in column(where(rows, wifi__attempts=r + 1), f"flows.{flow}.goodput_bps")
    )
    curves = (
        (mixed, "newreno", "NewReno, beside Westwood", style.GREEN, "-"),
        (mixed, "westwood", "Westwood, beside NewReno", style.VERMILION, "-"),
        (equals, "newreno", "NewReno, beside NewReno", style.GREY, ":"),
    )
    table = [["", *(f"{r} retransmissions" for r in RETRANSMISSIONS)]]
    for rows, flow, label, colour, dash in curves:
        values = [mbps(rows, r, flow) for r in RETRANSMISSIONS]
        style.points(axes, RETRANSMISSIONS, values, label, color=colour, linestyle=dash)
        table.append([f"{label} [Mbit/s]", *(shown(v, 2) for v in values)])
    for rows, label in ((mixed, "Westwood and NewReno"), (equals, "two NewReno")):
        jain = [sample(column(where(rows, wifi__attempts=r + 1), "fairness.goodput")) for r in RETRANSMISSIONS]
        table.append([f"Jain's index, {label}", *(shown(v, 3) for v in jain)])
    axes.set(ylim=(0, None), xticks=RETRANSMISSIONS)
    axes.legend()
    return Drawn(made, markdown(table))


def queue_size(simulator):
    """Throughput and delay over the access point's queue, for both senders."""
    made, (above, below) = style.plt.subplots(2, 1, figsize=(6.4, 4.6), sharex=True)
    above.set_title("The access point's queue; at most 3 retransmissions (attempts = 4), 1 audio")
    table = [["", *(f"{q} packets" for q in QUEUES)]]
    for sender, colour in COLOURS.items():
        rows = simulator.sweep(HOME, {**settings(3, 1, sender), "wifi.queue.limit": QUEUES})
        of = lambda q: where(rows, wifi__queue__limit=q)
        share = [utilisation(of(q)) for q in QUEUES]
        delay = [sample(column(of(q), "flows.audio.delay.p95")) for q in QUEUES]
        style.points(above, QUEUES, share, SENDERS[sender], color=colour)
        style.points(below, QUEUES, delay, SENDERS[sender], color=colour)
        table.append([f"{SENDERS[sender]}: TCP [% of 11 Mbit/s]", *(shown(v, 2) for v in share)])
        table.append([f"{SENDERS[sender]}: audio delay, p95 [ms]", *(shown(v, 1) for v in delay)])
    above.set(ylabel="TCP payload,\n% of 11 Mbit/s", ylim=(0, 40))
    below.set(ylabel="audio delay, p95 [ms]", xlabel="queue of the access point [packets]", ylim=(0, None))
    above.legend(loc="lower right")
    return Drawn(made, markdown(table))


def jitter_two_or_three(simulator):
    """Jitter of the audio at 2 against 3 retransmissions: the distribution of one run, the statistics of all seeds."""
    made, axes = style.figure(
        "Jitter of the audio at 2 and 3 retransmissions (attempts 3 and 4), 1 audio",
        "jitter [ms]",
        "share of packets with at most this jitter",
    )
    table = [["", "mean [ms]", "variance [ms²]", "maximum [ms]", "delay p95 [ms]", "lost", "TCP [% of 11 Mbit/s]"]]
    for sender, colour in COLOURS.items():
        rows = simulator.sweep(HOME, settings([2, 3], 1, sender))
        for r, dash in ((2, "--"), (3, "-")):
            delays = simulator.trace(HOME, settings(r, 1, sender)).curve("audio", "delay_ms")
            if not delays:
                raise Missing("the trace holds no delay_ms")
            counted = cumulative(y for _, y in jitter(delays))
            style.line(
                axes,
                thin([(x, n / len(counted)) for x, n in counted], 300),
                color=colour,
                linestyle=dash,
                label=f"{SENDERS[sender]}, {r}",
            )
            these = where(rows, wifi__attempts=r + 1)
            of = lambda field, digits: shown(sample(column(these, f"flows.audio.{field}")), digits)
            table.append(
                [f"{SENDERS[sender]}, {r} retransmissions", of("jitter.mean", 2), of("jitter.var", 1), of("jitter.max", 1),
                 of("delay.p95", 1), of("loss_rate", 5), shown(utilisation(these), 2)]
            )  # fmt: skip
    axes.set(xlim=(0, 20), ylim=(0, 1))
    axes.legend(loc="lower right")
    return Drawn(made, markdown(table))


FIGURES = [
    Figure("arq-pair", "Westwood beside NewReno", CHAPTER, beside_each_other),
    Figure("arq-queue", "the access point's queue", CHAPTER, queue_size),
    Figure("arq-jitter", "jitter at 2 and 3 retransmissions", CHAPTER, jitter_two_or_three),
]

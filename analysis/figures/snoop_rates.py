"""The Snoop paper's network with other streams than those of 0.28 Mbit/s.

Where its ranking holds, what Snoop is worth to each sender, two kinds of senders, and what Snoop above the queue costs.

The paper gives neither the rate of its streams nor the delays of its wires, so both are varied.
"""

from dataclasses import asdict, replace

from . import style
from .catalogue import Drawn, Figure
from .simulator import where
from .snoop_cells import (
    FAR,
    HOME,
    NEAR,
    REAL,
    REAL_SNOOP,
    RENO,
    RENO_SNOOP,
    VEGAS,
    VEGAS_SNOOP,
    WESTWOOD,
    WESTWOOD_SNOOP,
    World,
    samples,
    settings,
)
from .snoop_metrics import metrics
from .stats import sample
from .table import markdown, shown

CHAPTER = "snoop-paper.md"
SEEDS = 10
MAP_SEEDS = 5
RATES = ["0.28Mbit/s", "0.5Mbit/s", "1Mbit/s", "2Mbit/s"]
COUNTS = [1, 3, 5, 10, 20]
TIMINGS = {"ns2": "Snoop above the queue (ns-2)", "standard": "Snoop below the queue (standard)"}
PAIRS = ((RENO, RENO_SNOOP), (VEGAS, VEGAS_SNOOP), (REAL, REAL_SNOOP), (WESTWOOD, WESTWOOD_SNOOP))
FAST = replace(NEAR, name="MPEG streams of 1 Mbit/s from 20 ms away", rate_mbps=1.0)


def away(delay_ms, timing):
    """Streams from there, with the link's buffer to match."""
    return World(f"{delay_ms} ms", "mpeg", delay_ms, -(-5 * 2 * (delay_ms + 2) // 8), "", timing)


def index(simulator, world, scheme, flows):
    """{rate: mean index}."""
    rows = simulator.sweep(HOME, settings(world, scheme, flows, {"flow.media.rate": RATES}), MAP_SEEDS)
    return {rate: samples(where(rows, flow__media__rate=rate))["timely_index"].mean for rate in RATES}


def ranking(simulator):
    """By how much the worse of Vegas and TCP-Real is ahead of Reno + Snoop, over the rate and the number of streams."""
    made, axes = style.plt.subplots(2, 3, figsize=(7.2, 5.4), sharex=True, sharey=True)
    for row, (timing, title) in zip(axes, TIMINGS.items()):
        for one, delay in zip(row, (20, 50, 100)):
            ahead = []
            for flows in COUNTS:
                place = away(delay, timing)
                vegas, real, helped = (index(simulator, place, scheme, flows) for scheme in (VEGAS, REAL, RENO_SNOOP))
                ahead.append([min(vegas[rate], real[rate]) - helped[rate] for rate in RATES])
            one.imshow(ahead, cmap="RdBu", vmin=-0.1, vmax=0.1, origin="lower", aspect="auto")
            for y, values in enumerate(ahead):
                for x, value in enumerate(values):
                    colour = "w" if abs(value) > 0.07 else "k"
                    one.text(x, y, f"{value:+.3f}", ha="center", va="center", fontsize=7, color=colour)
            one.grid(False)
            one.set_xticks(range(len(RATES)), [rate.removesuffix("Mbit/s") for rate in RATES])
            one.set_yticks(range(len(COUNTS)), COUNTS)
            one.set_title(f"{title.split(' (')[0]}, {delay} ms", fontsize=8)
    for one in axes[1]:
        one.set_xlabel("rate of a stream [Mbit/s]")
    for one in axes[:, 0]:
        one.set_ylabel("streams")
    title = "Index: the lower of Vegas and TCP-Real less Reno + Snoop (blue: the paper's ranking)"
    made.suptitle(title, x=0.01, ha="left", fontsize=9.5)
    return Drawn(made)


def both(simulator, world, flows, more=None):
    """[(scheme, samples without Snoop, samples with)]."""
    cell = lambda scheme: samples(simulator.sweep(HOME, settings(world, scheme, flows, more), SEEDS))
    return [(alone, cell(alone), cell(helped)) for alone, helped in PAIRS]


def senders(simulator):
    """Snoop with every sender: its goodput and index, and what Snoop adds."""
    heads = [f"{scheme.name}: {what}" for scheme, _ in PAIRS for what in ("goodput [Mbit/s]", "index")]
    table = [["streams", "Snoop", "flows", *heads]]
    for timing in TIMINGS:
        for world, counts in ((FAR, (1, 10, 40)), (NEAR, (1, 10, 40)), (FAST, (5,))):
            for flows in counts:
                cells = []
                for _, alone, helped in both(simulator, replace(world, timing=timing), flows):
                    for metric, digits in (("goodput_mbps", 2), ("timely_index", 3)):
                        gain = helped[metric].mean - alone[metric].mean
                        cells.append(f"{shown(helped[metric], digits)} ({gain:+.{digits}f})")
                table.append([world.name, "above" if timing == "ns2" else "below", flows, *cells])
    return Drawn(table=markdown(table))


def mixed(simulator):
    """Two kinds of streams on one link, as many of each: what each gets, without and with Snoop."""
    pair = ["goodput of one, of the other [Mbit/s]", "index of one, of the other"]
    table = [["Snoop", "streams of each", "one", "other", *pair]]
    for flows, rate in ((5, "0.28Mbit/s"), (10, "0.28Mbit/s"), (20, "0.28Mbit/s"), (3, "1Mbit/s")):
        for other in ("vegas", "tcp-real", "westwood+"):
            for on in ("false", "true"):
                vary = {f"{key}.count": flows for key in ("server.A", "server.C", "station.B", "station.D")}
                vary |= {f"flow.{kind}.count": flows for kind in ("one", "other")}
                vary |= {f"flow.{kind}.rate": rate for kind in ("one", "other")}
                vary |= {"flow.other.cc": other, "wireless_link.snoop": on}
                vary |= {"flow.other.sack": "true"} if other == "westwood+" else {}
                rows = simulator.sweep("papers/snoop-mixed", vary, SEEDS)
                of = {
                    (kind, name): sample(asdict(metrics(row, kind))[name] for row in rows)
                    for kind in ("one", "other")
                    for name in ("goodput_mbps", "timely_index")
                }
                shares = [
                    ", ".join(shown(of[kind, name], digits) for kind in ("one", "other"))
                    for name, digits in (("goodput_mbps", 2), ("timely_index", 3))
                ]
                table.append(["with" if on == "true" else "without", f"{flows} of {rate}", "reno", other, *shares])
    return Drawn(table=markdown(table))


def above(simulator):
    """Five streams of 1 Mbit/s with Reno: what Snoop above the queue costs, and that it is the queue's drops."""
    table = [["error rate", "buffer", "Snoop", "goodput [Mbit/s]", "fairness index", "sent again by Snoop"]]
    for error in ("0", "0.01"):
        for buffer in (28, 64, 128):
            for timing, scheme, name in (
                ("ns2", RENO, "none"),
                ("ns2", RENO_SNOOP, "above the queue"),
                ("standard", RENO, "none, standard"),
                ("standard", RENO_SNOOP, "below it, standard"),
            ):
                world = replace(FAST, timing=timing, buffer=buffer)
                rows = simulator.sweep(HOME, settings(world, scheme, 5, {"wireless_link.error_rate": error}), SEEDS)
                cell = samples(rows)
                digits = (("goodput_mbps", 2), ("jain", 3), ("link_retransmitted", 0))
                table.append([error, buffer, name, *(shown(cell[key], n) for key, n in digits)])
    return Drawn(table=markdown(table))


FIGURES = [
    Figure("snoop-where", "where the Snoop paper's ranking holds", CHAPTER, ranking),
    Figure("snoop-senders", "Snoop with every sender", CHAPTER, senders),
    Figure("snoop-mixed", "senders of two kinds with Snoop", CHAPTER, mixed),
    Figure("snoop-above", "what Snoop above the queue costs", CHAPTER, above),
]

"""CHAP beyond its paper: the increment, the number of flows, bad links, upstream, many small flows, a flow that changes.

Every statement of the chapter is a row or a curve here, and every one of these a scenario with the keys that are varied.
"""

from . import style
from .catalogue import Drawn, Figure, Missing
from .chap import CHAPTER, KEYS, LOAD, LOOKS, NAMES, NO_DOWNLOAD, WEB, loads, pings, queue
from .simulator import column
from .stats import quantile, sample
from .table import markdown

AIR, PHASES = "papers/chap-air", "papers/chap-phases"
INCREMENTS = [0.5, 1, 2, 4, 8, 16, 32, 64]  # ms
COUNTS = [1, 2, 4, 8, 16, 32]
# What each queue is called, and its keys.
AIR_QUEUES = {
    "FIFO": {"kind": "fifo"},
    "FQ-CoDel": {"kind": "fq_codel"},
    "DRR by air time": {"kind": "drr"},
    "CHAP": {"kind": "chap"},
    "CHAP, I = 4 ms": {"kind": "chap", "increment": "4ms"},
}
SEEDS = 10


def increment(simulator):
    """Response times, pings, and what a bad link leaves to the others, over I."""
    made, (left, middle, right) = style.plt.subplots(1, 3, figsize=(7.4, 3.4))
    for which, look in (("chap-16ms", "-"), ("chap-hosts", "--")):
        for page, colour, shape in (("google-news", style.BLUE, "s"), ("cnn", style.VERMILION, "o")):
            curve = []
            for ms in INCREMENTS:
                more = {f"bridge.{one}.increment": f"{ms}ms" for one in ("queue", "station_queue")}
                idle, beside = (sample(loads(simulator, which, on, more)[page]) for on in (False, True))
                curve.append((ms, beside.mean / idle.mean))
            label = f"{page}, flow = {KEYS[which].get('flow', 'connection')}"
            style.line(left, curve, color=colour, linestyle=look, marker=shape, markersize=3.5, label=label)
    added = []
    for ms in INCREMENTS:
        more = {f"bridge.{one}.increment": f"{ms}ms" for one in ("queue", "station_queue")}
        medians = [quantile(pings(simulator, "chap-16ms", on, more)[0], 0.5) for on in (False, True)]
        added.append((ms, medians[1] - medians[0]))
    style.line(middle, added, color=style.GREEN, marker="o", markersize=3)
    kept, good = [], [f"download.{i}" for i in (1, 2, 3)]
    for ms in INCREMENTS:
        sets = {"wifi.queue.kind": "chap", "wifi.queue.increment": f"{ms}ms"}
        alone, beside = (simulator.sweep(AIR, {**sets, **more}, seeds=SEEDS) for more in ({"flow.slow": "none"}, {}))
        before, after = (sample(total(row, good) for row in rows) for rows in (alone, beside))
        kept.append((ms, 100 * after.mean / before.mean))
    style.line(right, kept, color=style.GREEN, marker="o", markersize=3)
    style.level(right, 75, "three of four", color=style.INK, linestyle=":")
    left.set(
        title="pages beside a download", xlabel="increment I [ms]", ylabel="response time, times idle", ylim=(1, 2.4)
    )
    middle.set(title="game beside a download", xlabel="increment I [ms]", ylabel="median ping, added [ms]", ylim=(0, 4))
    right.set(title="three beside a bad link", xlabel="increment I [ms]", ylabel="goodput kept [%]", ylim=(50, 80))
    for axes in (left, middle, right):
        axes.set_xscale("log", base=2)
        axes.set_xticks([1, 4, 16, 64], ["1", "4", "16", "64"])
    left.legend(loc="upper left", fontsize=6.5)
    right.legend(loc="lower right")
    return Drawn(made)


def flows(simulator):
    """A page beside more and more downloads."""
    made, axes = style.figure("CNN's page beside downloads from one mirror", "downloads", "response time [s]")
    for which in NAMES:
        curve = []
        for count in COUNTS:
            vary = {
                "flow.page.page": "cnn",
                "flow.page.start": ["20s", "41.3s", "66.1s"],
                "duration": "200s",
                **queue(which),
            }
            times = column(simulator.sweep(WEB, {**vary, "flow.download.count": count}, seeds=1), LOAD)
            if times:
                curve.append((count, sample(times).mean / 1e3))
        style.line(axes, curve, markersize=4, label=NAMES[which], **LOOKS[which])
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(COUNTS, [str(count) for count in COUNTS])
    axes.minorticks_off()
    axes.set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
    style.legend_below(axes)
    return Drawn(made)


def total(row, names):
    """Goodput of some flows, Mbit/s."""
    return sum(row[f"flows.{name}.goodput_bps"] for name in names) / 1e6


def air(simulator):
    """What a bad link takes from the others, and what it gets."""
    made, axes = style.figure(
        "Three downloads beside one over a bad link: 6 Mbit/s, 30 % of its frames lost", "", "Mbit/s"
    )
    table = [
        [
            "queue",
            "three good, alone [Mbit/s]",
            "beside the bad one",
            "kept",
            "the bad one",
            "Jain of the three",
            "game, p99 added [ms]",
        ]
    ]
    good = [f"download.{i}" for i in (1, 2, 3)]
    for q, (name, keys) in enumerate(AIR_QUEUES.items()):
        sets = {f"wifi.queue.{key}": value for key, value in keys.items()}
        alone, beside = (
            simulator.sweep(AIR, {**sets, **more}, seeds=SEEDS)
            for more in ({"flow.slow": "none"}, {})
        )
        before, after = (sample(total(row, good) for row in rows) for rows in (alone, beside))
        slow = sample(total(row, ["slow"]) for row in beside)
        jain = sample(fairness([row[f"flows.{name}.goodput_bps"] for name in good]) for row in beside)
        waits = sample(column(beside, "flows.game.added_delay.p99"))
        axes.bar(q - 0.2, before.mean, 0.38, color=style.SKY, label="three good ones, alone" if q == 0 else None)
        lower, upper = ("beside the bad one", "the bad one") if q == 0 else (None, None)
        edge = {"edgecolor": "white", "linewidth": 0}
        axes.bar(q + 0.2, after.mean, 0.38, color=style.BLUE, hatch="////", label=lower, **edge)
        look = {"color": style.VERMILION, "hatch": "\\\\\\\\", **edge}
        axes.bar(q + 0.2, slow.mean, 0.38, bottom=after.mean, label=upper, **look)
        table.append(
            [
                name,
                with_spread(before, 2),
                with_spread(after, 2),
                f"{100 * after.mean / before.mean:.0f} %",
                with_spread(slow, 2),
                with_spread(jain, 3),
                with_spread(waits, 1),
            ]
        )
    axes.axhline(0.75 * before.mean, color=style.INK, linewidth=0.8, linestyle=":", label="three quarters")
    axes.set_xticks(range(len(AIR_QUEUES)), AIR_QUEUES)
    axes.grid(axis="x", visible=False)
    style.legend_below(axes, depth=0.1)
    return Drawn(made, markdown(table))


def fairness(values):
    """Jain's index."""
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def with_spread(value, digits):
    return f"{value.mean:.{digits}f} +- {value.sd:.{digits}f}"


def phases(simulator):
    """A flow's delay before, while and after it is heavy."""
    made, axes = style.figure(
        "A flow of 0.2 Mbit/s that is one of 3 Mbit/s from 40 to 60 s, beside a download",
        "time [s]",
        "added delay [ms]",
    )
    for which in ("fifo", "fq_codel", "chap-16ms"):
        run = simulator.trace(PHASES, queue(which))
        delays = run.curve("changeable", "delay_ms")
        if not delays:
            raise Missing("the trace holds no delay_ms")
        least = {heavy: min(y for t, y in delays if (40 <= t < 60) == heavy) for heavy in (False, True)}
        mean = {}
        for t, y in delays:
            mean.setdefault(int(t * 2), []).append(y - least[40 <= t < 60])
        style.line(
            axes,
            [(half / 2, sum(ys) / len(ys)) for half, ys in sorted(mean.items()) if half >= 20],
            markersize=3.5,
            markevery=8,
            label=NAMES[which],
            **LOOKS[which],
        )
    axes.set(xlim=(30, 80), ylim=(0, None))
    axes.legend(loc="upper left")
    return Drawn(made)


# Where CHAP is ahead of FQ-CoDel and where it is not: what is varied, and how it is called. Each is played with all queues.
UPLOAD = {"flow.download.from": "downloader", "flow.download.to": "mirror"}
PEERS = {"server.mirror.count": 50, "server.mirror.rate": "0.2Mbit/s", "flow.page.start": "40s"}
CASES = {
    "one download": {},
    "fifty peers of 0.2 Mbit/s each (P2P)": PEERS,
    "an upload; the modem's queue is the bottleneck": {**UPLOAD},
    "an upload; the bridge is, both ways by turns": {
        **UPLOAD,
        "wan.rate_up": "20Mbit/s",
        "wan.rate_down": "20Mbit/s",
        "bridge.half_duplex": "true",
    },
    "the download's server far away, 200 ms": {"server.mirror.delay": "90ms"},
    "a queue of 1000 packets": {"bridge.queue.limit": 1000, "bridge.station_queue.limit": 1000},
}


def cases(simulator):
    """One page, every case, every queue."""
    table = [["beside CNN's page", *(f"{name}: page [s]; download [Mbit/s]" for name in NAMES.values())]]
    for what, sets in CASES.items():
        row = [what]
        for which in NAMES:
            vary = {
                "flow.page.page": "cnn",
                "flow.page.start": ["20s", "41.3s", "66.1s"],
                "duration": "200s",
                **queue(which),
                **sets,
            }
            rows = simulator.sweep(WEB, vary, seeds=1)
            times = sample(column(rows, LOAD))
            bulk = sample(
                sum(
                    value
                    for key, value in one.items()
                    if key.startswith("flows.download")
                    and key.endswith(".goodput_bps")
                    and "start_up" not in key
                    and value
                )
                / 1e6
                for one in rows
            )
            row.append(f"{times.mean / 1e3:.2f}; {bulk.mean:.2f}" if times else f"not in time; {bulk.mean:.2f}")
        table.append(row)
    idle = ["nothing"]
    for which in NAMES:
        vary = {
            "flow.page.page": "cnn",
            "flow.page.start": ["20s", "41.3s", "66.1s"],
            "duration": "200s",
            **queue(which),
            **NO_DOWNLOAD,
        }
        idle.append(f"{sample(column(simulator.sweep(WEB, vary, seeds=1), LOAD)).mean / 1e3:.2f}; -")
    return Drawn(table=markdown([table[0], idle, *table[1:]]))


FIGURES = [
    Figure("chap-increment", "The increment I", CHAPTER, increment),
    Figure("chap-flows", "More and more downloads", CHAPTER, flows),
    Figure("chap-air", "A bad link among good ones", CHAPTER, air, short=True),
    Figure("chap-phases", "From light to heavy and back", CHAPTER, phases),
    Figure("chap-cases", "Where CHAP is ahead, and where it is not", CHAPTER, cases),
]

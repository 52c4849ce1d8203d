"""Hand-off: what a change of the base station costs senders, beyond the time in which nothing is carried.

The home is `scenarios/papers/snoop-handoff.toml`. Time lost is what the goodput lacks, as time, per hand-off:
`every (1 - goodput / goodput without hand-offs)`.
"""

from . import style
from .catalogue import Drawn, Figure
from .series import as_steps
from .simulator import column
from .stats import sample
from .suffices import time_lost
from .table import markdown, shown

HOME = "papers/snoop-handoff"
CHAPTER = "snoop-beside.md"
SEEDS = 10
EVERY_S = 10
OUTAGES = [0, 20, 50, 100, 200, 500, 1000]  # ms
SENDERS = (
    ("Reno", {"flow.download.cc": "reno"}, style.VERMILION),
    ("NewReno with SACK", {"flow.download.cc": "newreno", "flow.download.sack": "true"}, style.GREEN),
    ("CUBIC with SACK", {"flow.download.cc": "cubic", "flow.download.sack": "true"}, style.PURPLE),
    ("Vegas", {"flow.download.cc": "vegas"}, style.BLUE),
    ("Westwood+", {"flow.download.cc": "westwood+"}, style.ORANGE),
)
FORWARD = ((False, "queue lost", "-"), (True, "queue forwarded", "--"))


def handoff(outage, forward):
    return f'{{ every = "{EVERY_S}s", outage = "{outage}ms", forward = {str(forward).lower()} }}'


def lost_ms(rows, undisturbed):
    """Per seed, against the same sender without hand-offs."""
    whole = sample(column(undisturbed, "flows.download.goodput_bps")).mean
    return sample(time_lost(x, whole, 1000.0 * EVERY_S) for x in column(rows, "flows.download.goodput_bps"))


def outages(simulator):
    made, panels = style.plt.subplots(2, 1, figsize=(6.4, 5.8), sharex=True, sharey=True)
    table = [["time lost per hand-off [ms]", "", *(f"{o} ms" for o in OUTAGES)]]
    for sender, settings, colour in SENDERS:
        undisturbed = simulator.sweep(HOME, {**settings, "wireless_link.handoff": "none"}, seeds=SEEDS)
        for (forward, how, _), axes in zip(FORWARD, panels):
            values = [handoff(outage, forward) for outage in OUTAGES]
            rows = simulator.sweep(HOME, {**settings, "wireless_link.handoff": values}, seeds=SEEDS)
            lost = [lost_ms([r for r in rows if r["wireless_link.handoff"] == v], undisturbed) for v in values]
            style.points(axes, OUTAGES, lost, sender, color=colour)
            table.append([sender, how, *(shown(v, 0) for v in lost)])
    for (_, how, _), axes in zip(FORWARD, panels):
        style.line(axes, [(o, o) for o in OUTAGES], color=style.GREY, linestyle=":", label="the outage itself")
        axes.set(ylabel=f"time lost per hand-off [ms],\n{how}", ylim=(-50, None))
        axes.set_xscale("symlog", linthresh=20)
        axes.set_xticks(OUTAGES, [str(o) for o in OUTAGES])
    panels[0].set_title("A hand-off every 10 s, no other losses")
    panels[1].set_xlabel("outage [ms]")
    style.legend_below(panels[1], depth=0.3)
    return Drawn(made, markdown(table))


def window(simulator):
    """The congestion window around one hand-off of 100 ms."""
    made, panels = style.plt.subplots(2, 1, figsize=(6.4, 5.0), sharex=True)
    for (forward, how, _), axes in zip(FORWARD, panels):
        for sender, settings, colour in (SENDERS[0], SENDERS[1], SENDERS[3]):
            run = simulator.trace(HOME, {**settings, "wireless_link.handoff": handoff(100, forward)})
            style.line(axes, as_steps(run.curve("download", "cwnd"), 62), color=colour, label=sender)
        axes.axvspan(30.0, 30.1, color=style.SKY, alpha=0.5, linewidth=0, label="nothing is carried")
        axes.set(ylabel=f"congestion window\n[packets], {how}", ylim=(0, 70), xlim=(28, 36))
    panels[0].set_title("The third hand-off, of 100 ms")
    panels[1].set_xlabel("time [s]")
    style.legend_below(panels[1], depth=0.3)
    return Drawn(made)


HELP = (("", {}), (", Snoop", {"wireless_link.snoop": "true"}), (", I-TCP", {"control.split": "{}"}))


def with_help(simulator):
    """Hand-offs of 100 ms over a link that loses 1 %: Snoop's copies stay behind with the old base station."""
    table = [["sender", "queue", "goodput without hand-offs [Mbit/s]", "with [Mbit/s]", "time lost per hand-off [ms]"]]
    mbps = lambda rows: sample(x / 1e6 for x in column(rows, "flows.download.goodput_bps"))
    for name, key in HELP:
        for sender, settings, _ in SENDERS[:2]:
            common = {**settings, **key, "wireless_link.error_rate": 0.01}
            undisturbed = simulator.sweep(HOME, {**common, "wireless_link.handoff": "none"}, seeds=SEEDS)
            for forward, how, _ in FORWARD:
                rows = simulator.sweep(HOME, {**common, "wireless_link.handoff": handoff(100, forward)}, seeds=SEEDS)
                cells = (shown(mbps(undisturbed), 2), shown(mbps(rows), 2), shown(lost_ms(rows, undisturbed), 0))
                table.append([sender + name, how.removeprefix("queue "), *cells])
    return Drawn(table=markdown(table))


FIGURES = [
    Figure("handoff-outage", "what a hand-off costs", CHAPTER, outages),
    Figure("handoff-window", "windows around a hand-off", CHAPTER, window, short=True),
    Figure("handoff-snoop", "hand-off beside losses, with Snoop and I-TCP", CHAPTER, with_help),
]

"""A thin reverse path: what senders get when their ACKs have little room, alone there or beside an upload.

The home is `scenarios/papers/snoop-reverse.toml`; no packet of its link is lost, so that the reverse path acts alone.
"""

from . import style
from .catalogue import Drawn, Figure
from .simulator import column, where
from .stats import sample
from .table import markdown, shown

HOME = "papers/snoop-reverse"
CHAPTER = "snoop-beside.md"
SEEDS = 10
RATES = [16, 32, 64, 128, 256, 1000]  # kbit/s
SENDERS = (
    ("Reno", {"flow.download.cc": "reno"}, style.VERMILION, "-"),
    ("Reno, delayed ACKs", {"flow.download.cc": "reno", "flow.download.delayed_ack": "true"}, style.VERMILION, "--"),
    ("Westwood+", {"flow.download.cc": "westwood+"}, style.ORANGE, "-"),
    ("Vegas", {"flow.download.cc": "vegas"}, style.BLUE, "-"),
    ("TFRC", {"flow.download.cc": "tfrc"}, style.GREEN, "-"),
)
CASES = (("ACKs alone", {"flow.upload": "none"}), ("beside an upload", {}))


def reverse(simulator):
    rates = {"wan.rate_up": [f"{r}kbit/s" for r in RATES]}
    made, panels = style.plt.subplots(2, 1, figsize=(6.4, 5.8), sharex=True, sharey=True)
    table = [["goodput of the download [Mbit/s]", "", *(f"{r} kbit/s" for r in RATES)]]
    for (case, less), axes in zip(CASES, panels):
        for sender, settings, colour, dash in SENDERS:
            rows = simulator.sweep(HOME, {**less, **settings, **rates}, seeds=SEEDS)
            at = lambda r: where(rows, wan__rate_up=f"{r}kbit/s")
            values = [sample(x / 1e6 for x in column(at(r), "flows.download.goodput_bps")) for r in RATES]
            style.points(axes, RATES, values, sender, color=colour, linestyle=dash)
            table.append([sender, case, *(shown(v, 2) for v in values)])
        axes.set(ylabel=f"goodput [Mbit/s],\n{case}", ylim=(0, 5), xscale="log")
        axes.set_xticks(RATES, [str(r) for r in RATES])
    panels[0].set_title("A download of at most 4.8 Mbit/s, and the way of its ACKs")
    panels[1].set_xlabel("rate of the line towards the servers [kbit/s]")
    style.legend_below(panels[1], depth=0.3)
    return Drawn(made, markdown(table))


def adjustments(simulator):
    """What the senders saw: round trips, and what they took for a loss."""
    table = [["", "", "", "round trip at the end [ms]", "window, mean [packets]", "sent again", "timeouts", "late [%]"]]
    for rate in ("32kbit/s", "128kbit/s"):
        for case, less in CASES:
            for sender, settings, _, _ in SENDERS[:4]:
                rows = simulator.sweep(HOME, {**less, **settings, "wan.rate_up": rate}, seeds=SEEDS)
                of = lambda field, digits=0: shown(sample(column(rows, f"flows.download.{field}")), digits)
                late = shown(sample(100 * x for x in column(rows, "flows.download.delayed_rate")), 2)
                tcp = (of(f"tcp.{name}") for name in ("srtt_ms", "cwnd_mean", "retransmitted", "timeouts"))
                table.append([rate.replace("k", " k"), case, sender, *tcp, late])
    return Drawn(table=markdown(table))


FIGURES = [
    Figure("reverse-rate", "goodput over the rate of the reverse path", CHAPTER, reverse, short=True),
    Figure("reverse-table", "what senders see of a thin reverse path", CHAPTER, adjustments),
]

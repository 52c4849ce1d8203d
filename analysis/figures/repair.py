"""FEC against ARQ on the Snoop paper's link, beside Snoop and the sender alone: what its section 2.1 says of them.

The home is `scenarios/papers/snoop-repair.toml`, its download or its audio alone. The link's ARQ repeats one packet until it
is over, then comes the next; FEC is an erasure code over blocks of packets (`crates/wifi/src/wireless_link.rs`).
"""

from . import style
from .catalogue import Drawn, Figure
from .simulator import column, where
from .stats import sample
from .table import markdown, shown

HOME = "papers/snoop-repair"
CHAPTER = "snoop-beside.md"
SEEDS = 10
ERRORS = [0, 0.003, 0.01, 0.03, 0.1]
DELAYS = [1, 5, 25, 100, 250]  # ms, of the link, one way
RATES = [0.25, 0.5, 1, 2, 5, 10]  # Mbit/s
DOWNLOAD, AUDIO = {"flow.audio": "none"}, {"flow.download": "none"}
# Who repairs: name, settings, colour.
SENDER = ("the sender alone", {}, style.GREY)
ARQ = ("ARQ, 4 attempts", {"wireless_link.repair": '{ kind = "arq", attempts = 4 }'}, style.BLUE)
FEC = ("FEC, 10 + 1", {"wireless_link.repair": '{ kind = "fec", data = 10, parity = 1 }'}, style.ORANGE)
STRONG_FEC = ("FEC, 4 + 2", {"wireless_link.repair": '{ kind = "fec", data = 4, parity = 2 }'}, style.VERMILION)
SNOOP = ("Snoop", {"wireless_link.snoop": "true"}, style.GREEN)
FOR_TCP = (SENDER, ARQ, FEC, STRONG_FEC, SNOOP)
FOR_ALL = (SENDER, ARQ, FEC, STRONG_FEC)  # Snoop reads TCP alone


def goodput(rows):
    return sample(x / 1e6 for x in column(rows, "flows.download.goodput_bps"))


def link_time(rows):
    """Time that the link is held, per packet time of what the download got, 1000 B each with its headers."""
    return sample(
        row["stations.AP.airtime_share"] * 5e6 / (row["flows.download.goodput_bps"] * 1000 / 960) for row in rows
    )


def over(axes, table, xs, key, rows_of, schemes, value, what, digits):
    """One panel: a curve and a table row per scheme; `key(x)` picks a sweep's rows."""
    for name, _, colour in schemes:
        values = [value(key(rows_of[name], x)) for x in xs]
        style.points(axes, xs, values, name, color=colour)
        table.append([what, name, *(shown(v, digits) for v in values)])
    axes.set_ylabel(what.replace(", ", ",\n"))


def sweeps(simulator, schemes, settings):
    return {name: simulator.sweep(HOME, {**settings, **scheme}, seeds=SEEDS) for name, scheme, _ in schemes}


def errors(simulator):
    """What each costs and brings over the error rate."""
    rows = sweeps(simulator, FOR_TCP, {**DOWNLOAD, "wireless_link.error_rate": ERRORS})
    made, panels = style.plt.subplots(2, 1, figsize=(6.4, 5.2), sharex=True)
    table = [["", "", *(f"{100 * e:g} % lost" for e in ERRORS)]]
    at = lambda rows, e: where(rows, wireless_link__error_rate=e)
    over(panels[0], table, ERRORS, at, rows, FOR_TCP, goodput, "goodput, Reno [Mbit/s]", 2)
    over(panels[1], table, ERRORS, at, rows, FOR_TCP, link_time, "link's time, per packet delivered [packet times]", 2)
    panels[0].set_title("One download over 5 Mbit/s: who repairs the link's losses")
    panels[0].set(ylim=(0, 5))
    panels[1].set(xlabel="error rate of the link", xscale="symlog", ylim=(0.9, 2))
    panels[1].set_xscale("symlog", linthresh=0.003)
    panels[1].set_xticks(ERRORS, [f"{e:g}" for e in ERRORS])
    style.legend_below(panels[1], depth=0.3)
    return Drawn(made, markdown(table))


def delays(simulator):
    """The link's own delay: repetition waits for it, parity does not."""
    setting = {"wireless_link.error_rate": 0.03, "wireless_link.delay": [f"{d}ms" for d in DELAYS]}
    tcp = sweeps(simulator, FOR_TCP, {**DOWNLOAD, **setting, "flow.download.window": 1000})
    audio = sweeps(simulator, FOR_ALL, {**AUDIO, **setting})
    made, panels = style.plt.subplots(3, 1, figsize=(6.4, 6.8), sharex=True)
    table = [["", "", *(f"{d} ms" for d in DELAYS)]]
    at = lambda rows, d: where(rows, wireless_link__delay=f"{d}ms")
    late = lambda rows: sample(column(rows, "flows.audio.added_delay.p99"))
    untimely = lambda rows: sample(100 * (1 - x) for x in column(rows, "flows.audio.timely_index"))
    over(panels[0], table, DELAYS, at, tcp, FOR_TCP, goodput, "goodput, Reno [Mbit/s]", 2)
    over(panels[1], table, DELAYS, at, audio, FOR_ALL, late, "audio: added delay, p99 [ms]", 1)
    over(panels[2], table, DELAYS, at, audio, FOR_ALL, untimely, "audio: lost or late [%]", 2)
    panels[0].set_title("A link of 5 Mbit/s that loses 3 %, and its own delay")
    panels[0].set(yscale="log")
    panels[1].set(yscale="symlog")
    panels[2].set(xlabel="delay of the link, one way [ms]", xscale="log", yscale="symlog")
    panels[2].set_xticks(DELAYS, [str(d) for d in DELAYS])
    style.legend_below(panels[2], *panels[0].get_legend_handles_labels(), depth=0.3)
    return Drawn(made, markdown(table))


def rates(simulator):
    """The share of the link's rate that a download gets: repetition costs a round trip, parity a packet time."""
    setting = {"wireless_link.error_rate": 0.03, "wireless_link.rate": [f"{r}Mbit/s" for r in RATES]}
    rows = sweeps(simulator, FOR_TCP, {**DOWNLOAD, **setting, "server.A.rate": "100Mbit/s"})
    made, axes = style.figure(
        "A link that loses 3 %, 1 ms away: share of it that a download gets",
        "rate of the link [Mbit/s]",
        "goodput [% of the link's rate]",
    )
    table = [["", "", *(f"{r:g} Mbit/s" for r in RATES)]]
    for name, _, colour in FOR_TCP:
        at = lambda r: where(rows[name], wireless_link__rate=f"{r}Mbit/s")
        values = [sample(x / r / 1e4 for x in column(at(r), "flows.download.goodput_bps")) for r in RATES]
        style.points(axes, RATES, values, name, color=colour)
        table.append(["goodput [% of the link's rate]", name, *(shown(v, 1) for v in values)])
    axes.set(xscale="log", ylim=(0, 100))
    axes.set_xticks(RATES, [f"{r:g}" for r in RATES])
    style.legend_below(axes)
    return Drawn(made, markdown(table))


FIGURES = [
    Figure("repair-errors", "FEC, ARQ, Snoop over the error rate", CHAPTER, errors, short=True),
    Figure("repair-delay", "FEC, ARQ, Snoop over the link's delay", CHAPTER, delays),
    Figure("repair-rate", "FEC, ARQ, Snoop over the link's rate", CHAPTER, rates),
]

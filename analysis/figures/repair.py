"""FEC against ARQ on the Snoop paper's link, beside Snoop and the sender alone: what its section 2.1 says of them.

The home is `scenarios/papers/snoop-repair.toml`, its download or its audio alone. The link's ARQ repeats a packet
until it is over, then comes the next; FEC is an erasure code over blocks of packets (`crates/medium/src/wireless_link.rs`).
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


def link_time(rows, rate_mbps=5):
    """Time that the link is held, per packet time of what the download got, 1000 B each with its headers."""
    packets = lambda row: row["flows.download.goodput_bps"] * 1000 / 960
    return sample(row["stations.AP.airtime_share"] * rate_mbps * 1e6 / packets(row) for row in rows)


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
    panels[1].set(xlabel="error rate of the link", ylim=(0.9, 2))
    panels[1].set_xscale("symlog", linthresh=0.003)
    panels[1].set_xlim(-0.0003, 0.12)
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
    panels[1].set_yscale("symlog", linthresh=1)
    panels[1].set_ylim(-0.2, None)
    panels[2].set(xlabel="delay of the link, one way [ms]", xscale="log", ylim=(0, None))
    panels[2].set_xticks(DELAYS, [str(d) for d in DELAYS])
    style.legend_below(panels[2], *panels[0].get_legend_handles_labels(), depth=0.3)
    return Drawn(made, markdown(table))


def rates(simulator):
    """Over the link's rate: a repetition costs a round trip of the link, a parity packet a packet time."""
    setting = {"wireless_link.error_rate": 0.03, "wireless_link.rate": [f"{r}Mbit/s" for r in RATES]}
    rows = sweeps(simulator, FOR_TCP, {**DOWNLOAD, **setting, "server.A.rate": "100Mbit/s"})
    at = lambda name, r: where(rows[name], wireless_link__rate=f"{r}Mbit/s")
    share = lambda name, r: sample(x / r / 1e4 for x in column(at(name, r), "flows.download.goodput_bps"))
    took = lambda name, r: link_time(at(name, r), r)
    made, panels = style.plt.subplots(2, 1, figsize=(6.4, 5.2), sharex=True)
    table = [["", "", *(f"{r:g} Mbit/s" for r in RATES)]]
    what = (("goodput, Reno [% of the rate]", share, 1), ("link's time, per packet delivered [packet times]", took, 3))
    for axes, (name, value, digits) in zip(panels, what):
        for scheme, _, colour in FOR_TCP:
            values = [value(scheme, r) for r in RATES]
            style.points(axes, RATES, values, scheme, color=colour)
            table.append([name, scheme, *(shown(v, digits) for v in values)])
        axes.set(ylabel=name.replace(", ", ",\n"), xscale="log")
        axes.set_xticks(RATES, [f"{r:g}" for r in RATES])
    panels[0].set(ylim=(0, 100))
    panels[0].set_title("A link that loses 3 %, 1 ms away")
    panels[1].set_xlabel("rate of the link [Mbit/s]")
    style.legend_below(panels[1], depth=0.3)
    return Drawn(made, markdown(table))


def interference(simulator):
    """What TCP sees of the link's repetition: segments sent again, against those that were lost."""
    setting = {**DOWNLOAD, "flow.download.window": 1000}
    fields = ("lost.channel", "lost.ap_queue", "tcp.retransmitted", "tcp.timeouts", "tcp.srtt_ms")
    head = ["lost on the link", "lost to the queue", "sent again", "timeouts", "round trip at the end [ms]"]
    table = [["delay of the link", "", *head]]
    cases = (
        ("no errors", {"wireless_link.error_rate": 0}),
        *((name, {"wireless_link.error_rate": 0.03, **s}) for name, s, _ in (ARQ, STRONG_FEC)),
    )
    for delay in (1, 25, 100, 250):
        for name, scheme in cases:
            rows = simulator.sweep(HOME, {**setting, **scheme, "wireless_link.delay": f"{delay}ms"}, seeds=SEEDS)
            table.append(
                [f"{delay} ms", name, *(shown(sample(column(rows, f"flows.download.{f}")), 0) for f in fields)]
            )
    return Drawn(table=markdown(table))


FIGURES = [
    Figure("repair-errors", "FEC, ARQ, Snoop over the error rate", CHAPTER, errors, short=True),
    Figure("repair-delay", "FEC, ARQ, Snoop over the link's delay", CHAPTER, delays),
    Figure("repair-rate", "FEC, ARQ, Snoop over the link's rate", CHAPTER, rates),
    Figure("repair-tcp", "what TCP sees of the link's repair", CHAPTER, interference),
]

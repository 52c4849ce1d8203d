"""Two stations that may not hear each other, beside ns-2: what each gets of a full access point between them.

The cases are the rows of `tests/golden/ns2-hidden.csv`, the home is `scenarios/theory/hidden.toml`. Which of two equals gets
more is chance, so that the greater and the lesser rate of each run are compared. Rates in IP bits.
"""

from . import peers, style
from .catalogue import Drawn, Figure, Missing
from .simulator import column, where
from .stats import sample
from .table import Line, Rule, three_columns

HOME = "theory/hidden"
CHAPTER = "air.md"
SECONDS = 60.0  # from the flows' start on
SENDER = {"kind": "ftp", "cc": "newreno", "sack": "false", "delayed_ack": "false", "initial_window": 2, "window": 1000}
TRAFFIC = {"cbr": "constant rate up", "up": "upload", "down": "download"}
OFF, ON = 3000, 500  # RTS thresholds
# Distances and carrier-sense threshold of the rows, and what they mean.
PLACES = {
    (5, 5, 2.4e-10): "hidden from each other",
    (1.5, 6.5, 3.5e-10): "hidden, one 12.7 dB stronger",
    (5, 5, 1.559e-11): "heard as energy",
    (3, 3, 2.4e-10): "decoded",
}
RATE = Rule(2)
# What the golden file calls it, and what it is of the two rates of a run.
COUNTED = (("rate_mbps", "both", sum), ("most_mbps", "the greater", max), ("least_mbps", "the lesser", min))


def pairs(simulator, place, traffic, threshold):
    """[(S.1, S.2)] in Mbit/s, one pair per seed."""
    near, far, carrier_sense = place
    settings = {
        "station.S.1.distance": f"{near}m",
        "station.S.2.distance": f"{far}m",
        "wifi.carrier_sense_threshold": f"{carrier_sense}W",
        "wifi.rts_threshold": [OFF, ON],
    }
    if traffic != "cbr":
        settings |= {f"flow.load.{key}": value for key, value in SENDER.items()}
    if traffic == "down":
        settings |= {"flow.load.from": "W", "flow.load.to": "S"}
    rows = where(simulator.sweep(HOME, settings, seeds=10), wifi__rts_threshold=threshold)
    field = "delivered" if traffic == "cbr" else "tcp.acked_packets"
    each = [column(rows, f"flows.load.{station}.{field}") for station in (1, 2)]
    return [tuple(packets * 12e-3 / SECONDS for packets in pair) for pair in zip(*each)]


def beside_ns2(simulator):
    made, panels = style.plt.subplots(2, 2, figsize=(7.2, 5.4), sharex=True, sharey=True)
    lines, labels = [], []
    for axes, (place, what) in zip(panels.flatten(), PLACES.items()):
        drawn = {"the greater": ([], []), "the lesser": ([], [])}
        labels = [f"{traffic}{rts}" for traffic in TRAFFIC for rts in ("", "\nRTS")]
        for traffic, name in TRAFFIC.items():
            for threshold, rts in ((OFF, "no RTS"), (ON, "RTS")):
                case = {"traffic": traffic, "near_m": place[0], "far_m": place[1], "carrier_sense_w": place[2]}
                known = {key: peers.ns2("hidden", key, **case, rts_threshold=threshold) for key, *_ in COUNTED}
                if None in known.values():
                    raise Missing(f"ns-2 was not asked for {traffic} of stations {what}")
                ours = pairs(simulator, place, traffic, threshold)
                for key, of, function in COUNTED:
                    value = sample(function(pair) for pair in ours)
                    lines.append(Line(f"{what}, {name}, {rts}: {of} [Mbit/s]", value, RATE, ns2=known[key]))
                    if of in drawn:
                        drawn[of][0].append(value)
                        drawn[of][1].append(known[key])
        for (of, (ours, theirs)), colour in zip(drawn.items(), (style.BLUE, style.VERMILION)):
            style.points(axes, range(len(labels)), ours, of, color=colour, linestyle="none")
            style.peer(axes, range(len(labels)), theirs, f"{of}, ns-2.35", color=colour)
        axes.set_title(what)
        axes.set_xticks(range(len(labels)), labels)
    panels[0, 0].set(ylim=(0, None))  # shared, and so set when all is drawn
    for axes in panels[:, 0]:
        axes.set_ylabel("IP, Mbit/s")
    panels[1, 1].legend()
    return Drawn(made, without_paper(three_columns(lines)))


def without_paper(table):
    """The table without its column of the paper: there is none."""
    rows = [row.split(" | ") for row in table.split("\n")]
    return "\n".join(" | ".join([row[0], *row[2:]]) for row in rows)


FIGURES = [Figure("hidden", "two stations that may not hear each other, beside ns-2", CHAPTER, beside_ns2)]

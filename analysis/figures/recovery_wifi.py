"""Where to recover, over 802.11: attempts of the MAC, Snoop at the access point, or the sender.

The home is `scenarios/papers/recovery-wifi.toml`. Attempts are retransmissions + 1.
"""

from . import style
from .catalogue import Drawn, Figure
from .recovery import LOOKS, NAMES, NEAR, SENDERS, goodput, late_p99, timely
from .shadowing import loss
from .simulator import where
from .suffices import enough
from .table import markdown, shown

HOME = "papers/recovery-wifi"
CHAPTER = "recovery.md"
SEEDS = 10
METRES = [2, 5, 10, 15, 20, 30]
DELAYS = [5, 20, 100]  # ms, of the server's wire, one way
ATTEMPTS = [1, 2, 3, 4, 5, 6, 7]
RADIO = {"power_w": 1e-3, "exponent": 2, "deviation_db": 7.5}  # the scenario's
ALONE = {"flow.audio": "none", "flow.video": "none"}
SNOOP = {"control.snoop": "{}"}
BY_CLASS = {"control.mac.realtime_attempts": 4}  # the frames of audio and video
# In the order of what they ask for: what every radio does, then Snoop in the access point.
SCHEMES = (
    ("1 attempt: the sender", {"wifi.attempts": 1}, {"color": style.GREY}),
    ("2 attempts", {"wifi.attempts": 2}, {"color": style.SKY}),
    ("4 attempts", {"wifi.attempts": 4}, {"color": style.BLUE}),
    ("7 attempts", {"wifi.attempts": 7}, {"color": style.VERMILION}),
    ("1 attempt, Snoop", {"wifi.attempts": 1, **SNOOP}, {"color": style.GREY, "linestyle": "--"}),
    ("2 attempts, Snoop", {"wifi.attempts": 2, **SNOOP}, {"color": style.SKY, "linestyle": "--"}),
    ("7 attempts, Snoop", {"wifi.attempts": 7, **SNOOP}, {"color": style.VERMILION, "linestyle": "--"}),
)
CHAP = {"wifi.queue.kind": "chap"}
TOGETHER = (
    *SCHEMES[:4],
    ("4 attempts; CHAP", {"wifi.attempts": 4, **CHAP}, {"color": style.BLUE, "linestyle": ":"}),
    SCHEMES[5],
    (
        "2 attempts, Snoop; streams 4",
        {"wifi.attempts": 2, **SNOOP, **BY_CLASS},
        {"color": style.GREEN, "linestyle": "--"},
    ),
    (
        "2 attempts, Snoop; streams 4; CHAP",
        {"wifi.attempts": 2, **SNOOP, **BY_CLASS, **CHAP},
        {"color": style.GREEN, "linestyle": ":"},
    ),
)


def lost(metres):
    """Percent of frames that the shadowing loses, as a table's head."""
    return f"{metres} m ({100 * loss(metres, **RADIO):.1f} %)"


def grid(simulator, settings):
    """{(delay, metres): rows} of one scheme."""
    vary = {"server.S.delay": [f"{d}ms" for d in DELAYS], "station.M.distance": [f"{m}m" for m in METRES]}
    rows = simulator.sweep(HOME, {**settings, **vary}, seeds=SEEDS)
    of = lambda d, m: [r for r in rows if r["server.S.delay"] == f"{d}ms" and r["station.M.distance"] == f"{m}m"]
    return {(d, m): of(d, m) for d in DELAYS for m in METRES}


def bulk(simulator):
    made, panels = style.plt.subplots(len(DELAYS), 1, figsize=(6.4, 7.4), sharex=True, sharey=True)
    table = [["server away", "goodput [Mbit/s]", *(lost(m) for m in METRES)]]
    grids = [grid(simulator, {**ALONE, **settings}) for _, settings, _ in SCHEMES]
    for delay, axes in zip(DELAYS, panels):
        for (name, _, look), cells in zip(SCHEMES, grids):
            values = [goodput(cells[delay, m]) for m in METRES]
            style.points(axes, METRES, values, name, **look)
            table.append([f"{delay} ms", name, *(shown(v, 2) for v in values)])
        axes.set(ylabel=f"goodput [Mbit/s],\nserver {delay} ms away", ylim=(0, None), xticks=METRES)
    panels[0].set_title("A download by NewReno over 802.11b: who recovers")
    panels[-1].set_xlabel("from the access point to the station [m]")
    style.legend_below(panels[-1], depth=0.3)
    return Drawn(made, markdown(table))


def together(simulator):
    """All three kinds of traffic at once, server 20 ms away."""
    vary = {"station.M.distance": [f"{m}m" for m in METRES]}
    at = lambda rows, m: where(rows, station__M__distance=f"{m}m")
    panels_of = (
        ("download [Mbit/s]", goodput, 2),
        ("audio: timely [%]", timely("audio"), 2),
        ("video over TCP: timely [%]", timely("video"), 1),
        ("audio: delay, p99 [ms]", late_p99, 1),
    )
    made, panels = style.plt.subplots(2, 2, figsize=(6.8, 6.4), sharex=True)
    table = [["", "", *(lost(m) for m in METRES)]]
    rows = [simulator.sweep(HOME, {**settings, **vary}, seeds=SEEDS) for _, settings, _ in TOGETHER]
    for axes, (what, of, digits) in zip(panels.flatten(), panels_of):
        for (name, _, look), these in zip(TOGETHER, rows):
            values = [of(at(these, m)) for m in METRES]
            style.points(axes, METRES, values, name, **look)
            table.append([what, name, *(shown(v, digits) for v in values)])
        axes.set(ylabel=what, xticks=METRES)
    for axes in panels[1]:
        axes.set_xlabel("from the access point [m]")
    panels[0][0].set_title("Download, audio and video at once, server 20 ms away")
    made.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower left", ncols=2, fontsize=8)
    return Drawn(made, markdown(table))


def attempts(simulator):
    """How many attempts a download wants, by its sender."""
    made, panels = style.plt.subplots(2, 1, figsize=(6.4, 5.4), sharex=True)
    table = [["station", "goodput [Mbit/s]", *(f"{k} attempt{'s' * (k > 1)}" for k in ATTEMPTS)]]
    for metres, axes in zip((10, 20), panels):
        for sender in SENDERS:
            vary = {**ALONE, "flow.download.cc": sender, "station.M.distance": f"{metres}m", "wifi.attempts": ATTEMPTS}
            rows = simulator.sweep(HOME, vary, seeds=SEEDS)
            values = [goodput(where(rows, wifi__attempts=k)) for k in ATTEMPTS]
            style.points(axes, ATTEMPTS, values, NAMES[sender], color=LOOKS[sender])
            table.append([lost(metres), NAMES[sender], *(shown(v, 2) for v in values)])
        axes.set(ylabel=f"goodput [Mbit/s],\n{metres} m", ylim=(0, None), xticks=ATTEMPTS)
    panels[0].set_title("A download over 802.11b, server 20 ms away: attempts, by sender")
    panels[1].set_xlabel("attempts")
    style.legend_below(panels[1], depth=0.3)
    return Drawn(made, markdown(table))


def answer(simulator):
    """The first way, in order of what it asks of the access point, that suffices."""
    grids = [(name, grid(simulator, {**ALONE, **settings})) for name, settings, _ in SCHEMES]
    table = [["a download, NewReno", *(lost(m) for m in METRES)]]
    for delay in DELAYS:
        best = lambda m: enough([(name, goodput(cells[delay, m]).mean) for name, cells in grids], **NEAR[0])[0]
        table.append([f"server {delay} ms away", *(best(m) for m in METRES)])
    vary = {"station.M.distance": [f"{m}m" for m in METRES]}
    rows = [(name, simulator.sweep(HOME, {**settings, **vary}, seeds=SEEDS)) for name, settings, _ in TOGETHER]
    for what, value in (("audio", timely("audio")), ("video over TCP", timely("video"))):
        at = lambda these, m: where(these, station__M__distance=f"{m}m")
        best = lambda m: enough([(name, value(at(these, m)).mean) for name, these in rows], **NEAR[1])[0]
        table.append([f"{what} beside it, server 20 ms away", *(best(m) for m in METRES)])
    return Drawn(table=markdown(table))


FIGURES = [
    Figure("recovery-wifi", "802.11: attempts, Snoop, sender over the distance", CHAPTER, bulk),
    Figure("recovery-attempts", "802.11: attempts by sender", CHAPTER, attempts, short=True),
    Figure("recovery-together", "802.11: three kinds of traffic at once", CHAPTER, together),
    Figure("recovery-wifi-map", "who suffices, over 802.11", CHAPTER, answer),
]

"""Where to recover, over the Snoop paper's link: the sender, Snoop or the link, for three kinds of traffic.

The home is `scenarios/papers/recovery-link.toml`: error rate by its link, distance by its server's delay. Each kind of
traffic is judged by one figure: a download by its goodput, streams by the share of packets that came in time (the paper's
Real-Time Performance Index).
"""

from . import style
from .catalogue import Drawn, Figure
from .simulator import column
from .stats import sample
from .suffices import enough
from .table import markdown, shown

HOME = "papers/recovery-link"
CHAPTER = "recovery.md"
SEEDS = 10
ERRORS = [0, 0.001, 0.003, 0.01, 0.03, 0.1]
DELAYS = [5, 20, 100]  # ms, of the server's wire, one way
SNOOP = {"wireless_link.snoop": "true"}
ARQ = {"wireless_link.repair": '{ kind = "arq", attempts = 4 }'}
SENDERS = ("newreno", "cubic", "westwood+", "vegas", "bbr")
NAMES = {"newreno": "NewReno", "cubic": "CUBIC", "westwood+": "Westwood+", "vegas": "Vegas", "bbr": "BBR"}
LOOKS = {
    "newreno": style.GREEN,
    "cubic": style.PURPLE,
    "westwood+": style.ORANGE,
    "vegas": style.BLUE,
    "bbr": style.VERMILION,
}
PLACES = (("the sender", {}), ("Snoop", SNOOP), ("the link", ARQ))


def grid(simulator, settings):
    """{(delay, error): rows} of one scheme over all distances and error rates."""
    vary = {"server.S.delay": [f"{d}ms" for d in DELAYS], "wireless_link.error_rate": ERRORS}
    rows = simulator.sweep(HOME, {**settings, **vary}, seeds=SEEDS)
    of = lambda d, e: [r for r in rows if r["server.S.delay"] == f"{d}ms" and r["wireless_link.error_rate"] == e]
    return {(d, e): of(d, e) for d in DELAYS for e in ERRORS}


def goodput(rows):
    return sample(x / 1e6 for x in column(rows, "flows.download.goodput_bps"))


def timely(flow):
    return lambda rows: sample(100 * x for x in column(rows, f"flows.{flow}.timely_index"))


def late_p99(rows):
    return sample(column(rows, "flows.audio.delay.p99"))


def panels_over_errors(schemes, grids, value, what, digits, **axes_settings):
    """One panel per distance; the table's rows are distance by scheme."""
    made, panels = style.plt.subplots(len(DELAYS), 1, figsize=(6.4, 7.4), sharex=True, sharey=True)
    table = [["server away", what, *(f"{100 * e:g} % lost" for e in ERRORS)]]
    for delay, axes in zip(DELAYS, panels):
        for (name, _, look), cells in zip(schemes, grids):
            values = [value(cells[delay, e]) for e in ERRORS]
            style.points(axes, ERRORS, values, name, **look)
            table.append([f"{delay} ms", name, *(shown(v, digits) for v in values)])
        axes.set(ylabel=f"{what},\nserver {delay} ms away", **axes_settings)
        axes.set_xscale("symlog", linthresh=0.001)
        axes.set_xlim(-0.0001, 0.12)
        axes.set_xticks(ERRORS, [f"{e:g}" for e in ERRORS])
    panels[-1].set_xlabel("error rate of the link")
    style.legend_below(panels[-1], depth=0.3)
    return made, panels, table


def bulk_schemes():
    alone = {"flow.audio": "none", "flow.video": "none"}
    cc = lambda name: {**alone, "flow.download.cc": name}
    schemes = [(f"{NAMES[s]} alone", cc(s), {"color": LOOKS[s]}) for s in SENDERS]
    schemes.append(("NewReno, Snoop", {**cc("newreno"), **SNOOP}, {"color": style.GREEN, "linestyle": "--"}))
    schemes.append(("CUBIC, Snoop", {**cc("cubic"), **SNOOP}, {"color": style.PURPLE, "linestyle": "--"}))
    schemes.append(("NewReno, the link repeats", {**cc("newreno"), **ARQ}, {"color": style.GREEN, "linestyle": ":"}))
    return schemes


def bulk(simulator):
    schemes = bulk_schemes()
    grids = [grid(simulator, settings) for _, settings, _ in schemes]
    made, panels, table = panels_over_errors(schemes, grids, goodput, "goodput [Mbit/s]", 2, ylim=(0, 5.2))
    panels[0].set_title("A download over 5 Mbit/s: who recovers")
    return Drawn(made, markdown(table))


def video_schemes():
    alone = {"flow.audio": "none", "flow.download": "none"}
    over = lambda cc: {**alone, "flow.video.cc": cc}
    return [
        ("UDP, not repaired", {**alone, "flow.video": '{ kind = "video" }'}, {"color": style.GREY}),
        ("TFRC, not repaired", over("tfrc"), {"color": style.BLUE}),
        ("NewReno alone", over("newreno"), {"color": style.GREEN}),
        ("NewReno, Snoop", {**over("newreno"), **SNOOP}, {"color": style.GREEN, "linestyle": "--"}),
        ("NewReno, the link repeats", {**over("newreno"), **ARQ}, {"color": style.GREEN, "linestyle": ":"}),
        ("TFRC, the link repeats", {**over("tfrc"), **ARQ}, {"color": style.BLUE, "linestyle": ":"}),
    ]


def video(simulator):
    schemes = video_schemes()[1:]
    grids = [grid(simulator, settings) for _, settings, _ in schemes]
    made, panels, table = panels_over_errors(schemes, grids, timely("video"), "timely packets [%]", 1, ylim=(15, 102))
    panels[0].set_title("Video of 0.5 Mbit/s over TCP or TFRC: who recovers")
    return Drawn(made, markdown(table))


def audio_schemes():
    """The audio is UDP's: what differs is who recovers the download beside it, and whether the link repeats."""
    beside = {"flow.video": "none"}
    return [
        ("no download", {**beside, "flow.download": "none"}, {"color": style.GREY}),
        (
            "no download, the link repeats",
            {**beside, "flow.download": "none", **ARQ},
            {"color": style.GREY, "linestyle": ":"},
        ),
        ("NewReno alone", beside, {"color": style.GREEN}),
        ("NewReno, Snoop", {**beside, **SNOOP}, {"color": style.GREEN, "linestyle": "--"}),
        ("NewReno, the link repeats", {**beside, **ARQ}, {"color": style.GREEN, "linestyle": ":"}),
    ]


def audio(simulator):
    schemes = audio_schemes()
    grids = [grid(simulator, settings) for _, settings, _ in schemes]
    made, panels, table = panels_over_errors(schemes, grids, timely("audio"), "timely packets [%]", 2, ylim=(85, 100.5))
    panels[0].set_title("Audio over UDP, beside a download that recovers in one way or another")
    for (name, _, _), cells in zip(schemes, grids):
        for delay in DELAYS:
            table.append(
                [f"{delay} ms", f"{name}: delay, p99 [ms]", *(shown(late_p99(cells[delay, e]), 1) for e in ERRORS)]
            )
    return Drawn(made, markdown(table))


# The map: per kind of traffic the ways to recover, in order of what they ask for, and what counts as enough.
NEAR = {"share": 0.05}, {"near": 1.0}  # of the best goodput; points of timely packets


def ways(simulator):
    """[(traffic, [(place, its cells)], value, near)]"""
    bulk_of = lambda cc, place: grid(
        simulator, {"flow.audio": "none", "flow.video": "none", "flow.download.cc": cc, **place}
    )
    stream = {name: grid(simulator, settings) for name, settings, _ in video_schemes()[1:]}
    beside = {name: grid(simulator, settings) for name, settings, _ in audio_schemes()}
    downloads = [
        (f"download, {NAMES[cc]}", [(place, bulk_of(cc, settings)) for place, settings in PLACES], goodput, NEAR[0])
        for cc in ("newreno", "cubic", "bbr")
    ]
    return [
        *downloads,
        (
            "video",
            [
                ("nobody", stream["TFRC, not repaired"]),
                ("the sender", stream["NewReno alone"]),
                ("Snoop", stream["NewReno, Snoop"]),
                ("the link", stream["NewReno, the link repeats"]),
            ],
            timely("video"),
            NEAR[1],
        ),
        (
            "audio over UDP",
            [("nobody", beside["no download"]), ("the link", beside["no download, the link repeats"])],
            timely("audio"),
            NEAR[1],
        ),
    ]


def answer(simulator):
    """Who suffices, by traffic, distance and error rate: the first of the list, or all who do when it does not."""
    table = [["traffic", "server away", *(f"{100 * e:g} % lost" for e in ERRORS)]]
    for traffic, places, value, near in ways(simulator):
        for delay in DELAYS:
            who = lambda e: enough([(place, value(cells[delay, e]).mean) for place, cells in places], **near)
            named = lambda names: names[0] if names[0] == places[0][0] else " or ".join(names)
            table.append([traffic, f"{delay} ms", *(named(who(e)) for e in ERRORS)])
    return Drawn(table=markdown(table))


FIGURES = [
    Figure("recovery-bulk", "a download: who recovers", CHAPTER, bulk, short=True),
    Figure("recovery-video", "video over TCP: who recovers", CHAPTER, video),
    Figure("recovery-audio", "audio beside a download: who recovers", CHAPTER, audio),
    Figure("recovery-map", "who suffices, over the link", CHAPTER, answer),
]

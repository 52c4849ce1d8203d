"""CHAP (paper 002): its two case studies, as the paper has them, with real programs, and in the simulator.

The homes are `scenarios/papers/chap-web.toml` and `chap-game.toml`; what real programs gave was written by `make study-web` and
`make study-game` and is kept in `benches/results`.
"""

import importlib.util
import json

from . import style
from .catalogue import Drawn, Figure, Missing
from .simulator import ROOT, column
from .stats import quantile, sample
from .table import markdown

STUDY = importlib.util.spec_from_file_location("pages", ROOT / "tools" / "study" / "pages.py")
pages = importlib.util.module_from_spec(STUDY)
STUDY.loader.exec_module(pages)
TABLE_1 = pages.TABLE_1

WEB, GAME = "papers/chap-web", "papers/chap-game"
CHAPTER = "chap.md"
RESULTS = ROOT / "benches" / "results"

# What each queue is called here, its word in the studies (whose default increment was 4 ms), its keys, and its colour.
NAMES = {
    "fifo": "FIFO",
    "fq_codel": "FQ-CoDel",
    "chap-16ms": "CHAP",
    "chap": "CHAP, I = 4 ms",
    "chap-hosts": "CHAP, I = 4 ms, flow = hosts",
}
KEYS = {
    "fifo": {"kind": "fifo"},
    "fq_codel": {"kind": "fq_codel"},
    "chap-16ms": {"kind": "chap"},
    "chap": {"kind": "chap", "increment": "4ms"},
    "chap-hosts": {"kind": "chap", "increment": "4ms", "flow": "hosts"},
}
# How a queue's curves and bars look where colours cannot be told apart.
LOOKS = {
    "fifo": {"color": style.VERMILION, "linestyle": "-", "marker": "o"},
    "fq_codel": {"color": style.BLUE, "linestyle": "--", "marker": "s"},
    "chap-16ms": {"color": style.GREEN, "linestyle": "-.", "marker": "^"},
    "chap": {"color": style.PURPLE, "linestyle": ":", "marker": "D"},
    "chap-hosts": {"color": style.ORANGE, "linestyle": (0, (6, 2, 1, 2, 1, 2)), "marker": "v"},
}
HATCHES = {"fifo": "", "fq_codel": "////", "chap-16ms": "||||", "chap": "xxxx", "chap-hosts": "----"}
PAGES = {"google-news": "Google News", "yahoo": "Yahoo", "wsj": "WSJ", "cnn": "CNN"}
# The paper, s: section 3.3 and figure 4. Its CHAP hashed source, destination and protocol: flow = hosts.
PAPER_WEB = {
    ("fifo", False): {"google-news": 0.525, "yahoo": 1.43, "wsj": 3.22, "cnn": 3.54},
    ("chap-hosts", False): {"google-news": 0.514, "yahoo": 1.45, "wsj": 3.36, "cnn": 3.40},
    ("fifo", True): {"google-news": 3.81, "yahoo": 11.11, "wsj": 14.40, "cnn": 20.18},
    ("chap-hosts", True): {"google-news": 0.574, "yahoo": 1.81, "wsj": 3.8, "cnn": 5.69},
}
# Section 3.4: median ping, ms, and the share below 150 ms.
PAPER_GAME = {
    ("fifo", False): (133, 0.70),
    ("chap-hosts", False): (135, 0.70),
    ("fifo", True): (562, 0.0),
    ("chap-hosts", True): (135, 0.70),
}
# Five loads; what they meet of the download's window differs.
STARTS = ["20s", "33.1s", "46.3s", "57.7s", "68.9s"]
LOAD = "flows.page.page.load_ms"
PLAYABLE_MS = 150  # "playable threshold of 150 ms"
NO_DOWNLOAD = {"flow.download": "none"}


def queue(which, hop="bridge"):
    """Settings that make both queues of the last hop this one."""
    return {f"{hop}.{one}.{key}": value for one in ("queue", "station_queue") for key, value in KEYS[which].items()}


def loads(simulator, which, download, more=None):
    """{page: load times, s}: five loads each."""
    vary = {"flow.page.page": list(PAGES), "flow.page.start": STARTS, **queue(which), **(more or {})}
    rows = simulator.sweep(WEB, {**vary, **({} if download else NO_DOWNLOAD)}, seeds=1)
    found = {page: column([row for row in rows if row["flow.page.page"] == page], LOAD) for page in PAGES}
    if not all(found.values()):
        raise Missing(f"no page was loaded with {NAMES[which]}")
    return {page: [ms / 1e3 for ms in times] for page, times in found.items()}


def measured(study):
    """The newest results of a study with real programs; None where there are none."""
    files = sorted(RESULTS.glob(f"study-{study}-*.json"), key=lambda path: path.stat().st_mtime)
    return json.loads(files[-1].read_text(encoding="utf-8")) if files else None


def real(results, which, download, page=None):
    """One cell of such results."""
    cells = results["cells"] if results else []
    wanted = (which, download)
    return next(
        (c for c in cells if (c["queue"], c["download"]) == wanted and (page is None or c["page"] == page)), None
    )


def web(simulator):
    """Figure 4 and its table."""
    results = measured("web")
    made, axes = style.figure(
        "Web response times beside a bulk download: real programs, simulator, paper",
        "",
        "response time [s]",
        size=(6.4, 3.8),
    )
    table = [
        [
            "page",
            "queue",
            "download",
            "the paper [s]",
            "real programs [s]",
            "simulator [s]",
            "times idle: paper",
            "real",
            "simulator",
        ]
    ]
    width, marks = 0.17, {}
    for q, which in enumerate(NAMES):
        simulated = {download: loads(simulator, which, download) for download in (False, True)}
        for p, page in enumerate(PAGES):
            at = p + (q - 2) * width
            ours = {download: sample(simulated[download][page]) for download in (False, True)}
            theirs = {download: PAPER_WEB.get((which, download), {}).get(page) for download in (False, True)}
            cells = {download: real(results, which, download, page) for download in (False, True)}
            label = NAMES[which] if p == 0 else None
            colour, bar = LOOKS[which]["color"], {"hatch": HATCHES[which], "edgecolor": "white", "linewidth": 0}
            axes.bar(at, ours[True].mean, width * 0.92, color=colour, alpha=0.55, label=label, **bar)
            axes.hlines(ours[False].mean, at - width / 2, at + width / 2, color=style.INK, linewidth=0.9)
            if cells[True]:
                marks["real"] = axes.errorbar(
                    at,
                    cells[True]["median"],
                    yerr=cells[True]["deviation"],
                    fmt="o",
                    markersize=3.5,
                    color=colour,
                    capsize=2,
                )
            if theirs[True]:
                star = {"color": "black", "markersize": 7, "zorder": 5}
                marks["paper"] = axes.plot(at, theirs[True], "*", **star)[0]
                marks["paper idle"] = axes.plot(at, theirs[False], "*", markerfacecolor="white", **star)[0]
            for download in (False, True):
                ratio = [
                    a / b if a and b else None
                    for a, b in (
                        (theirs[True], theirs[False]),
                        (cells[True] and cells[True]["median"], cells[False] and cells[False]["median"]),
                        (ours[True].mean, ours[False].mean),
                    )
                ]
                table.append(
                    [
                        PAGES[page],
                        NAMES[which],
                        "yes" if download else "no",
                        number(theirs[download]),
                        spread(
                            cells[download] and cells[download]["median"],
                            cells[download] and cells[download]["deviation"],
                        ),
                        spread(ours[download].mean, ours[download].sd),
                        *([number(r) for r in ratio] if download else [""] * 3),
                    ]
                )
    axes.set_yscale("log")
    axes.minorticks_off()
    axes.set_yticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
    axes.set_xticks(range(len(PAGES)), PAGES.values())
    axes.grid(axis="x", visible=False)
    handles, labels = axes.get_legend_handles_labels()
    words = {"real": "real programs", "paper": "the paper", "paper idle": "the paper, without the download"}
    for key, text in words.items():
        if key in marks:
            handles, labels = [*handles, marks[key]], [*labels, text]
    style.legend_below(axes, handles, labels, depth=0.1)
    return Drawn(made, markdown([table[0], *sorted(table[1:], key=lambda row: list(PAGES.values()).index(row[0]))]))


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def spread(mean, deviation):
    return "-" if mean is None else f"{mean:.2f} +- {deviation:.2f}"


def pings(simulator, which, download, more=None):
    """Per path the ping, ms: medians of the way there and of the way back; and the row of the run."""
    vary = {**queue(which), **(more or {}), **({} if download else NO_DOWNLOAD)}
    [row] = simulator.sweep(GAME, vary, seeds=1)
    ways = [[row.get(f"flows.{way}.{i}.delay.p50") for i in range(1, 101)] for way in ("query", "answer")]
    if None in ways[0] + ways[1]:
        raise Missing(f"a path has no delays with {NAMES[which]}")
    return [there + back for there, back in zip(*ways)], row


def cdf(axes, values, first, **how):
    """The share of values up to x; every fortieth part of it has a mark, from `first` on."""
    ordered = sorted(values)
    every = max(1, len(ordered) // 6)
    marks = {"markevery": (first * every // len(NAMES), every), "markersize": 3.5}
    style.line(
        axes, [(x, (i + 1) / len(ordered)) for i, x in enumerate(ordered)], drawstyle="steps-post", **marks, **how
    )


def game(simulator):
    """Figure 5 and its table."""
    results = measured("game")
    made, panels = style.plt.subplots(2, 2, figsize=(6.6, 5.6), sharey=True, sharex="row")
    table = [
        [
            "queue",
            "download",
            "median, the paper [ms]",
            "real programs",
            "simulator",
            "below 150 ms, the paper",
            "real programs",
            "simulator",
            "download, simulator [Mbit/s]",
        ]
    ]
    beside = ("without the download", "beside the download")
    for pair, words, end in zip(panels, beside, (350, 1300)):
        for axes, world in zip(pair, ("simulator", "real programs")):
            axes.set(xlabel="ping [ms]", xlim=(0, end), ylim=(0, 1.01), title=f"{world}, {words}")
            axes.axvline(PLAYABLE_MS, color=style.INK, linewidth=0.8, linestyle=":")
            axes.annotate(
                f"{PLAYABLE_MS} ms: playable",
                (PLAYABLE_MS, 0.03),
                xytext=(3, 0),
                textcoords="offset points",
                fontsize=7,
            )
        pair[0].set_ylabel("share of pings")
    for order, which in enumerate(NAMES):
        for download in (False, True):
            values, row = pings(simulator, which, download)
            left, right = panels[int(download)]
            cdf(left, values, order, label=NAMES[which], **LOOKS[which])
            there = real(results, which, download)
            if there:
                cdf(right, there["pings_ms"], order, **LOOKS[which])
            paper = PAPER_GAME.get((which, download))
            for axes in (left, right) if paper else ():
                label = "the paper's medians: FIFO; CHAP" if axes is left and which == "fifo" else None
                style.paper(axes, [paper[0]], [0.5], label)
                high = which == "fifo" and not download
                where = {"xytext": (-5, 5) if high else (7, -10), "ha": "right" if high else "left"}
                words = f"{NAMES[which].split(',')[0]}: {paper[0]}"
                axes.annotate(words, (paper[0], 0.5), textcoords="offset points", fontsize=7, **where)
            mbps = row.get("flows.download.goodput_bps")
            table.append(
                [
                    NAMES[which],
                    "yes" if download else "no",
                    number(paper and paper[0], 0),
                    number(there and there["median"], 0),
                    number(quantile(values, 0.5), 1),
                    percent(paper and paper[1]),
                    percent(there and there["below_150"]),
                    percent(sum(value < PLAYABLE_MS for value in values) / len(values)),
                    number(mbps and mbps / 1e6),
                ]
            )
    made.legend(*panels[1][0].get_legend_handles_labels(), loc="outside lower left", ncols=3)
    return Drawn(made, markdown(table))


def percent(share):
    return "-" if share is None else f"{100 * share:.0f} %"


# What an activity bears, s: a game by the paper's section 3.4, the others by ITU-T G.1010, preferred and acceptable.
TOLERANCE = {
    "online game": (0.15, 0.18),
    "video call": (0.15, 0.4),
    "web page (CNN)": (2, 4),
    "video stream": (10, 10),
    "download": (15, 60),
}


def activities(simulator):
    """Figure 1: what our models of the activities use, measured, over what such an activity bears."""
    home = simulator.sweep("papers/sap-law", {"control.window": "none"}, seeds=1)[0]
    page = {"flow.page.page": "cnn", **queue("fifo")}
    idle = simulator.sweep(WEB, {**page, **NO_DOWNLOAD}, seeds=1)[0]
    bulk = simulator.sweep(WEB, {**page, "flow.page": "none"}, seeds=1)[0]
    used = {
        "online game": home["flows.game-down.goodput_bps"] + home["flows.game-up.goodput_bps"],
        "video call": home["flows.chat-down.goodput_bps"] + home["flows.chat-up.goodput_bps"],
        "web page (CNN)": 8 * 1024 * TABLE_1["cnn"][2] / (idle[LOAD] / 1e3),
        "video stream": home["flows.video.goodput_bps"],
        "download": bulk["flows.download.goodput_bps"],
    }
    made, axes = style.figure(
        "What activities use and bear", "used on the air, measured [Mbit/s]", "delay that they bear [s]"
    )
    for (name, bits), shape in zip(used.items(), "osD^v"):
        least, most = TOLERANCE[name]
        axes.plot([bits / 1e6] * 2, [least, most], color=style.BLUE, marker=shape, markersize=6)
        side = -1 if bits > 2e6 else 1
        how = {"ha": "right" if side < 0 else "left", "va": "center", "fontsize": 8}
        axes.annotate(
            name, (bits / 1e6, (least * most) ** 0.5), xytext=(8 * side, 0), textcoords="offset points", **how
        )
    axes.set(xscale="log", yscale="log", xlim=(0.02, 10), ylim=(0.05, 200))
    return Drawn(made)


def compositions(_):
    """Table 1, and what the made pages hold."""
    table = [["page", "text objects: the paper", "ours", "others: the paper", "ours", "KB: the paper", "ours"]]
    for name, (text, others, kilobytes) in TABLE_1.items():
        made = pages.page(name)
        images = sum(path.endswith(".png") for path in made.objects)
        cells = (text, len(made.objects) - images, others, images, kilobytes, f"{made.size / 1024:.0f}")
        table.append([PAGES[name], *cells])
    return Drawn(table=markdown(table))


def servers(simulator):
    """In place of figure 5a: how far the hundred servers are. The paper's map has no distances, ours no places."""
    values, _ = pings(simulator, "fifo", False)
    made, axes = style.figure("The hundred servers by their distance", "ping without the download [ms]", "servers")
    axes.hist(values, bins=range(40, 420, 10), color=style.BLUE, edgecolor="white")
    axes.set(ylim=(0, 18))
    near = sum(value < PLAYABLE_MS for value in values)
    axes.axvline(PLAYABLE_MS, color=style.INK, linewidth=0.8, linestyle=":")
    words = f"{PLAYABLE_MS} ms: playable;\n{near} servers nearer, the paper: about 70 %"
    how = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "fontsize": 8}
    axes.annotate(words, (PLAYABLE_MS, 0.9), xytext=(5, 0), **how)
    median = quantile(values, 0.5)
    axes.axvline(median, color=style.VERMILION, linewidth=1.2, linestyle="--")
    words = f"median {median:.0f} ms;\nthe paper: {PAPER_GAME['fifo', False][0]}"
    axes.annotate(words, (median, 0.9), xytext=(-5, 0), ha="right", **how)
    return Drawn(made)


FIGURES = [
    Figure("chap-1", "What activities use and bear (figure 1)", CHAPTER, activities),
    Figure("chap-pages", "What pages are made of (table 1)", CHAPTER, compositions),
    Figure("chap-5a", "How far the game servers are (figure 5a)", CHAPTER, servers),
    Figure("chap-web", "Web response times (figure 4)", CHAPTER, web, short=True),
    Figure("chap-game", "Pings of game servers (figure 5)", CHAPTER, game),
]

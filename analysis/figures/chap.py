"""CHAP (paper 002): its two case studies, as the paper has them, with real programs, and in the simulator.

The homes are `scenarios/papers/chap-web.toml` and `chap-game.toml`; what real programs gave was written by `make study-web` and
`make study-game` and is kept in `benches/results`.
"""

import json

from . import style
from .catalogue import Drawn, Figure, Missing
from .simulator import ROOT, column
from .stats import quantile, sample
from .table import markdown

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
COLOURS = {
    "fifo": style.VERMILION,
    "fq_codel": style.BLUE,
    "chap-16ms": style.GREEN,
    "chap": style.PURPLE,
    "chap-hosts": style.ORANGE,
}
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
PLAYABLE_MS = 150
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
            axes.bar(at, ours[True].mean, width * 0.92, color=COLOURS[which], alpha=0.45, label=label)
            axes.hlines(ours[False].mean, at - width / 2, at + width / 2, color=style.INK, linewidth=0.9)
            if cells[True]:
                marks["real"] = axes.errorbar(
                    at,
                    cells[True]["median"],
                    yerr=cells[True]["deviation"],
                    fmt="o",
                    markersize=3.5,
                    color=COLOURS[which],
                    capsize=2,
                )
            if theirs[True]:
                marks["paper"] = axes.plot(at, theirs[True], "_", markersize=11, markeredgewidth=2, color=style.INK)[0]
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
    for key, words in (("real", "real programs"), ("paper", "the paper")):
        if key in marks:
            handles, labels = [*handles, marks[key]], [*labels, words]
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


def cdf(axes, values, **how):
    ordered = sorted(values)
    style.line(axes, [(x, (i + 1) / len(ordered)) for i, x in enumerate(ordered)], drawstyle="steps-post", **how)


def game(simulator):
    """Figure 5 and its table."""
    results = measured("game")
    made, (left, right) = style.plt.subplots(1, 2, figsize=(6.4, 3.4), sharey=True)
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
    for axes, title in ((left, "simulator"), (right, "real game server and qstat")):
        axes.set(xlabel="ping [ms]", xlim=(0, 1300), ylim=(0, 1.01), title=title)
        axes.axvline(PLAYABLE_MS, color=style.GREY, linewidth=0.8, linestyle=":")
    left.set_ylabel("share of pings")
    for which in NAMES:
        for download in (False, True):
            values, row = pings(simulator, which, download)
            look = {
                "color": COLOURS[which],
                "linestyle": "-" if download else ":",
                "linewidth": 1.2 if download else 0.9,
            }
            cdf(left, values, label=f"{NAMES[which]}" if download else None, **look)
            there = real(results, which, download)
            if there:
                cdf(right, there["pings_ms"], **look)
            paper = PAPER_GAME.get((which, download))
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
    made.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=4)
    return Drawn(made, markdown(table))


def percent(share):
    return "-" if share is None else f"{100 * share:.0f} %"


FIGURES = [
    Figure("chap-web", "Web response times (figure 4)", CHAPTER, web, short=True),
    Figure("chap-game", "Pings of game servers (figure 5)", CHAPTER, game),
]

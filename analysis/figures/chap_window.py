"""What the window of the download's receiver does to the CHAP paper's case studies with a FIFO: the paper does not name it.

Real programs: `web.py` and `game.py` of tools/study with `--window`, results in `benches/results/window-*`.
"""

import json
import statistics

from .catalogue import Drawn, Figure
from .chap import CHAPTER, GAME, PAGES, PAPER_GAME, PAPER_WEB, RESULTS, loads, measured, real
from .stats import sample
from .table import markdown, shown

WINDOWS = (180, 194, 1000)  # segments: 256 KiB; what the paper's median asks for; the scenario's
PATHS = range(1, 101)
CONNECTIONS = (2, 3, 4, 5, 6, 7, 8)
FAR = {"server.web.delay": "30ms"}  # 80 ms of round trip in place of 40


def brief(values, digits):
    """`mean +- sd`; the mean alone where the queue stands still and all are the same."""
    of = sample(values) if isinstance(values, list) else values
    return f"{of.mean:.{digits}f}" if of.sd < 0.5 * 10**-digits else shown(of, digits)


def ping(simulator, window):
    """Median over the paths of a query's and an answer's median delays, ms."""
    medians = []
    for row in simulator.sweep(GAME, {"flow.download.window": window}, seeds=3):
        ways = [[row[f"flows.{way}.{i}.delay.p50"] for i in PATHS] for way in ("query", "answer")]
        medians.append(statistics.median(map(sum, zip(*ways))))
    return sample(medians)


def played(study, window):
    """The newest results of a study with real programs and this window; the study's own for the scenario's."""
    if window == WINDOWS[-1]:
        return measured(study)
    files = sorted(RESULTS.glob(f"window-{window}-study-{study}-*.json"))
    return json.loads(files[-1].read_text(encoding="utf-8")) if files else None


def windows(simulator):
    """Median ping and response times beside a download with a FIFO, over the window of the download's receiver."""
    real_windows = (181, 194, 1000)  # segments of 1448 B, with timestamps; the simulator's have 1460 B
    head = ["FIFO, with the download", "the paper"]
    head += [f"real programs, {window} segments" for window in real_windows]
    head += [f"simulator, {window}" for window in WINDOWS] + ["simulator, 194, pages from 80 ms away"]
    games = [real(played("game", window), "fifo", True) for window in real_windows]
    row = ["median ping [ms]", shown(PAPER_GAME["fifo", True][0], 0), *(shown(g and g["median"], 0) for g in games)]
    table = [head, row + [brief(ping(simulator, window), 0) for window in WINDOWS] + [""]]
    webs = [played("web", window) for window in real_windows]
    ours = [loads(simulator, "fifo", True, {"flow.download.window": window}) for window in WINDOWS]
    ours.append(loads(simulator, "fifo", True, {"flow.download.window": 194, **FAR}))
    for page, title in PAGES.items():
        row = [f"{title} [s]", shown(PAPER_WEB["fifo", True][page], 2)]
        for results in webs:
            cell = real(results, "fifo", True, page)
            row.append(f"{cell['median']:.2f} +- {cell['deviation']:.2f}" if cell else "-")
        table.append(row + [brief(one[page], 2) for one in ours])
    return Drawn(table=markdown(table))


def distance(simulator):
    """Response times with CHAP and the paper's key over the distance of the pages' servers."""
    which = "chap-hosts"
    table = [["CHAP, I = 4 ms, flow = hosts"]]
    for what in ("idle [s]", "with the download [s]", "times idle"):
        table[0] += [f"{what}: the paper", "40 ms", "80 ms"]
    paper = {download: PAPER_WEB[which, download] for download in (False, True)}
    ours = {
        download: [loads(simulator, which, download, {} if not download else {"flow.download.window": 194}),
                   loads(simulator, which, download, FAR if not download else {"flow.download.window": 194, **FAR})]
        for download in (False, True)
    }  # fmt: skip
    for page, title in PAGES.items():
        row = [title]
        for download in (False, True):
            row += [shown(paper[download][page], 2), *(brief(one[page], 2) for one in ours[download])]
        means = [[sample(one[page]).mean for one in ours[download]] for download in (False, True)]
        row += [shown(paper[True][page] / paper[False][page], 2)]
        table.append(row + [f"{loaded / idle:.2f}" for idle, loaded in zip(*means)])
    return Drawn(table=markdown(table))


def connections(simulator):
    """Response times over the number of connections that a page is loaded with."""
    table = [["FIFO, 194 segments [s]", "the paper", *(f"{n} connections" for n in CONNECTIONS)]]
    columns = [
        loads(simulator, "fifo", True, {"flow.download.window": 194, "flow.page.connections": n}) for n in CONNECTIONS
    ]
    for page, title in PAGES.items():
        values = (brief(one[page], 2) for one in columns)
        table.append([title, shown(PAPER_WEB["fifo", True][page], 2), *values])
    return Drawn(table=markdown(table))


FIGURES = [
    Figure("chap-window", "the window of the download's receiver", CHAPTER, windows),
    Figure("chap-distance", "response times with CHAP over the distance of the pages", CHAPTER, distance),
    Figure("chap-connections", "response times over connections", CHAPTER, connections),
]

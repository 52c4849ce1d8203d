"""What `lasthop measure` saw in an emulated home: waits second by second, and each pair against itself.

The numbers are those of `make study-measure ARGS="--keep FOLDER"`, kept in `benches/results/measure-*.json`; nothing is run for the picture.
"""

import json

from . import style
from .catalogue import Drawn, Figure, Missing
from .simulator import ROOT

RESULTS = ROOT / "benches" / "results"
COLOURS = {"off": style.VERMILION, "on": style.GREEN}
WORDS = {"off": "without control", "on": "with control"}


def seconds(report, arm):
    """[(min, ms)] of the seconds of one arm in which something told."""
    for block in report["blocks"]:
        if block["arm"] == arm:
            for at, wait in zip(block["at_s"], block["wait_ms"]):
                # What is longer than the histogram knows was measured wrongly.
                if wait is not None and wait <= 4096:
                    yield (block["start_s"] + at) / 60, max(wait, 0.25)


def p95(block):
    """The bound of the bucket that holds the 95th percentile: as fine as a picture is."""
    left = 0.95 * sum(n for _, n in block["waiting"]["buckets"])
    for upper, n in block["waiting"]["buckets"]:
        left -= n
        if left <= 0:
            return upper or 4096.0
    return None


def pairs(report):
    for pair in zip(report["blocks"][::2], report["blocks"][1::2]):
        arms = {block["arm"]: p95(block) for block in pair}
        if all(arms.get(arm) for arm in COLOURS):
            yield arms["off"], arms["on"]


def measure(_):
    files = sorted(RESULTS.glob("measure-*.json"))
    if not files:
        raise Missing("benches/results has no measure-*.json")
    report = json.loads(files[-1].read_text(encoding="utf-8"))
    made, (left, right) = style.plt.subplots(1, 2, figsize=(7.6, 3.2), width_ratios=(2.1, 1))
    left.set(title="Wait in each second [ms]", xlabel="time [min]", yscale="log")
    for block in report["blocks"]:
        begins, ends = (block["start_s"] + at for at in (0, block["at_s"][-1]))
        if block["arm"] == "off":
            left.axvspan(begins / 60, ends / 60, color="#F6F0EA", linewidth=0, zorder=0)
    for arm, colour in COLOURS.items():
        dots = list(seconds(report, arm))
        left.plot([at for at, _ in dots], [ms for _, ms in dots], ".", color=colour, markersize=3.5, label=WORDS[arm])
    left.legend(loc="center left", ncols=1, framealpha=0.9, frameon=True, edgecolor="none")
    right.set(
        title="Each pair, 95 % wait [ms]", xlabel="without control", ylabel="with control", xscale="log", yscale="log"
    )
    both = list(pairs(report))
    low, high = 0.7 * min(map(min, both)), 1.4 * max(map(max, both))
    right.plot([low, high], [low, high], color=style.GREY, linewidth=0.8)
    right.annotate(
        "no change",
        (high, high),
        xytext=(-4, -14),
        textcoords="offset points",
        ha="right",
        fontsize=8,
        color=style.GREY,
    )
    right.plot([off for off, _ in both], [on for _, on in both], "o", color=style.BLUE, markersize=4)
    right.set(xlim=(low, high), ylim=(low, high))
    return Drawn(made)


FIGURES = [Figure("measure", "an emulated home, with control and without in random order", "measure.md", measure)]

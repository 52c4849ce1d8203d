"""What rate control carries over a channel with errors, beside ns-3's Minstrel-HT and every fixed rate."""

import csv

from . import style
from .catalogue import Drawn, Figure
from .simulator import ROOT, column, where
from .stats import sample
from .table import markdown, shown

CHAPTER = "air-rates.md"
RATIOS = [3, 5, 7, 9, 11, 13, 16, 18, 19, 20, 22, 30]
LAWS = {"minstrel_ht": style.BLUE, "minstrel_ht_5.12": style.ORANGE, "ideal": style.GREEN}


def peer():
    """Goodput of ns-3 by ratio: mean and deviation, Mbit/s."""
    with open(ROOT / "tests/vectors/air-ns3.csv", newline="") as lines:
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    of = {row["cell"]: row for row in rows}
    return [float(of[f"n-minstrel-{snr}"]["goodput_mbps"]) for snr in RATIOS]


def rate_control(simulator):
    made, axes = style.figure("One saturated upload, 802.11n HT20, one stream", "SNR [dB]", "goodput [Mbit/s]")
    vary = {"wifi.rate_control": list(LAWS), "station.S.snr": [f"{snr}dB" for snr in RATIOS]}
    rows = simulator.sweep("theory/rate-control", vary, seeds=3)
    theirs = peer()
    style.line(axes, list(zip(RATIOS, theirs)), color=style.GREY, linestyle="--", label="ns-3's Minstrel-HT")
    cells = [[f"{snr} dB", f"{their:.2f}"] for snr, their in zip(RATIOS, theirs)]
    for law, colour in LAWS.items():
        at = [where(rows, wifi__rate_control=law, station__S__snr=f"{snr}dB") for snr in RATIOS]
        ours = [sample(value / 1e6 for value in column(found, "flows.load.goodput_bps")) for found in at]
        style.points(axes, RATIOS, ours, law, color=colour, linestyle="none")
        for row, our, their in zip(cells, ours, theirs):
            row += [shown(our, 2), f"{100 * (our.mean / their - 1):+.1f} %"]
    axes.set(ylim=(0, None))
    axes.legend()
    head = ["SNR", "ns-3", *(cell for law in LAWS for cell in (f"`{law}`", ""))]
    return Drawn(made, markdown([head, *cells]))


FIGURES = [Figure("rate-control", "what rate control carries over SNR beside ns-3", CHAPTER, rate_control, short=True)]

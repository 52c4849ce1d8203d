"""Attempts per class of traffic: how often a frame of the audio is sent while the download keeps its seven attempts.

The ARQ paper cites the idea and does not try it. Counted are attempts, retransmissions + 1; the home is
`scenarios/papers/arq-classes.toml`, whose distances stand for error levels.
"""

from . import style
from .arq import CHAPTER, audio_names
from .catalogue import Drawn, Figure
from .series import pooled
from .shadowing import loss
from .simulator import where
from .stats import sample
from .table import markdown, shown

HOME = "papers/arq-classes"
ATTEMPTS = [1, 2, 3, 4, 5, 6, 7]
STREAMS = audio_names(5)
RADIO = {"power_w": 1e-3, "exponent": 2, "deviation_db": 7.5}  # the scenario's
LINKS = ((10, style.BLUE), (15, style.ORANGE), (20, style.VERMILION))  # m
# What is drawn: name with unit, field of a flow, scale, digits.
PANELS = (
    ("audio lost [%]", "loss_rate", 100.0, 2),
    ("audio delay, p95 [ms]", "delay.p95", 1.0, 1),
    ("audio jitter, mean [ms]", "jitter.mean", 1.0, 2),
)
DOWNLOAD = "download [Mbit/s]"


def classes(simulator):
    rows = simulator.sweep(
        HOME,
        {"station.M.distance": [f"{metres}m" for metres, _ in LINKS], "control.mac.realtime_attempts": ATTEMPTS},
    )
    made, panels = style.plt.subplots(2, 2, figsize=(6.8, 5.0), sharex=True)
    panels = panels.flatten()
    table = [["", "", *(f"{k} attempts" if k > 1 else "1 attempt" for k in ATTEMPTS)]]
    for metres, colour in LINKS:
        of = lambda k: [
            row
            for row in where(rows, control__mac__realtime_attempts=k)
            if row["station.M.distance"] == f"{metres}m"
        ]
        link = f"{metres} m, {100 * loss(metres, **RADIO):.1f} % of frames lost"
        measured = [
            (name, digits, [sample(pooled(of(k), STREAMS, field, scale)) for k in ATTEMPTS])
            for name, field, scale, digits in PANELS
        ]
        measured.append((DOWNLOAD, 2, [sample(pooled(of(k), ["ftp"], "goodput_bps", 1e-6)) for k in ATTEMPTS]))
        for axes, (name, digits, values) in zip(panels, measured):
            style.points(axes, ATTEMPTS, values, link, color=colour)
            axes.set(ylabel=name, xticks=ATTEMPTS)
            table.append([link, name, *(shown(value, digits) for value in values)])
    panels[0].set(yscale="log")
    for axes in panels[1:]:
        axes.set(ylim=(0, None))
    panels[0].set_title("Attempts of the audio's frames; the download's have 7")
    for axes in panels[2:]:
        axes.set_xlabel("attempts of real-time frames")
    panels[0].legend()
    return Drawn(made, markdown(table))


FIGURES = [Figure("arq-classes", "attempts per class of traffic", CHAPTER, classes)]

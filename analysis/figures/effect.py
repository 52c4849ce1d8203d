"""What control changes in one home: every game packet's delay, and what the others carry, off and on.

The home is `scenarios/homes/evening.toml`: a game, a call, two films, a download and a backup over 802.11g, with the
queue of 1,000 packets that Linux gives an access point.
"""

from . import style
from .catalogue import Drawn, Figure, Missing

HOME = "homes/evening"
OFF, ON = {"control.window": "none"}, {}
SHOWN = 20.0  # s
STARTS = 2.0  # s: the download
OTHERS = (("film", style.BLUE), ("series", style.SKY), ("download", style.GREY), ("backup", "#D0D0D0"))


def effect(simulator):
    runs = {"off": simulator.trace(HOME, OFF), "on": simulator.trace(HOME, ON)}
    made, (left, right) = style.plt.subplots(1, 2, figsize=(7.6, 3.2), width_ratios=(2.1, 1))
    left.set(title="Delay of each game packet [ms]", xlabel="time [s]", xlim=(0, SHOWN), ylim=(0, 650))
    for (word, run), colour in zip(runs.items(), (style.VERMILION, style.GREEN)):
        delays = [(t, y) for t, y in run.curve("game-down", "delay_ms") if t <= SHOWN]
        if not delays:
            raise Missing("the trace holds no delay_ms")
        style.line(left, delays, color=colour, linewidth=1.3)
        end = delays[-1]
        left.annotate(
            f"{'without' if word == 'off' else 'with'} Lasthop",
            (SHOWN - 0.4, end[1]),
            xytext=(0, 7),
            textcoords="offset points",
            ha="right",
            color=colour,
            fontsize=9,
        )
    left.axvline(STARTS, color=style.GREY, linewidth=0.8, linestyle=":")
    text = {"xytext": (4, 0), "textcoords": "offset points", "fontsize": 8, "va": "center"}
    left.annotate("a download starts", (STARTS, 625), **text)
    right.set(title="Throughput [Mbit/s]", xlim=(-0.6, 1.6))
    right.set_xticks((0, 1), ("without", "with"))
    right.grid(axis="x", visible=False)
    for x, run in enumerate(runs.values()):
        base = 0.0
        for name, colour in OTHERS:
            mbps = run.flow(name)["goodput_bps"] / 1e6
            right.bar(x, mbps, 0.86, bottom=base, color=colour, edgecolor="white", linewidth=0.6)
            dark = colour == style.BLUE
            text = {"ha": "center", "va": "center", "fontsize": 7.5, "color": "white" if dark else style.INK}
            right.text(x, base + mbps / 2, f"{name} {mbps:.1f}", **text)
            base += mbps
    return Drawn(made)


FIGURES = [Figure("effect", "what control changes in a home", "homes.md", effect)]

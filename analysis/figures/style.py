"""How every figure looks: quiet, safe for the colour-blind (Okabe and Ito's colours), the same file for the same data.

What the papers draw red, green, blue and yellow is vermilion, green, blue and orange here.
"""

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend comes first)

VERMILION, GREEN, BLUE, ORANGE = "#D55E00", "#009E73", "#0072B2", "#E69F00"
SKY, PURPLE, GREY, INK = "#56B4E9", "#CC79A7", "#9A9A9A", "#333333"

plt.rcParams.update(
    {
        "svg.hashsalt": "lasthop",  # the same names inside the file every time
        "svg.fonttype": "none",  # text stays text
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
        "font.size": 9,
        "axes.titlesize": 9.5,
        "axes.titlelocation": "left",
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "axes.linewidth": 0.6,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#E4E4E4",
        "grid.linewidth": 0.6,
        "xtick.color": INK,
        "ytick.color": INK,
        "text.color": INK,
        "lines.linewidth": 1.1,
        "legend.frameon": False,
        "legend.fontsize": 8,
        "figure.figsize": (6.4, 3.4),
        "figure.constrained_layout.use": True,
        "path.simplify": True,
        "path.simplify_threshold": 0.2,
    }
)


def figure(title, x, y, size=None):
    """An empty figure and its axes."""
    made, axes = plt.subplots(figsize=size)
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return made, axes


def line(axes, points, **how):
    """A curve through `points` [(x, y)]."""
    xs, ys = zip(*points) if points else ((), ())
    return axes.plot(xs, ys, **how)


def level(axes, y, label, **how):
    """A horizontal line across the axes."""
    return axes.axhline(y, label=label, **{"color": BLUE, "linewidth": 0.9, "linestyle": "--", **how})


def points(axes, xs, samples, label, **how):
    """Means over seeds with their standard deviation as bars."""
    means, spreads = [s.mean for s in samples], [s.sd for s in samples]
    return axes.errorbar(
        xs, means, yerr=spreads, label=label, capsize=2.5, elinewidth=0.8, marker="o", markersize=3.5, **how
    )


def legend_below(axes, handles=None, labels=None, depth=0.17):
    """The legend under the x axis, where it hides no curve."""
    chosen = (handles, labels) if handles else axes.get_legend_handles_labels()
    axes.legend(*chosen, loc="upper left", bbox_to_anchor=(0.0, -depth), ncols=2, borderaxespad=0.0)


def peer(axes, xs, samples, label, marker="o", **how):
    """What ns-2 gave: open marks, where it was asked."""
    known = [(x, s.mean) for x, s in zip(xs, samples) if s is not None]
    if known:
        axes.plot(*zip(*known), marker, markerfacecolor="none", markersize=7, markeredgewidth=0.8, label=label, **how)


def paper(axes, xs, ys, label, **how):
    """What a paper printed: black stars, above what we measured."""
    axes.plot(list(xs), list(ys), "*", color="black", markersize=9, zorder=5, label=label, **how)


def save(made, path):
    """Writes the SVG: no date, so that the same figure is the same file."""
    made.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(made)

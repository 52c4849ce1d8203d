"""The plots that everybody draws, by matplotlib. Each takes axes, or makes them, and gives them back.

    ax = lasthop.plot.delay_cdf({"none": report, "learn": other}, flow="game-down")
    ax.figure.savefig("delay.pdf")
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._lasthop import Report
from ._sweep import Runs


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def _named(reports: Report | Mapping[str, Report]) -> dict[str, Report]:
    return dict(reports) if isinstance(reports, Mapping) else {"": reports}


def _columns(table: Any, flow: str | None = None) -> dict[str, list[Any]]:
    columns = table.to_dict()
    if flow is None:
        return columns
    keep = [i for i, name in enumerate(columns["flow"]) if name == flow]
    if not keep:
        raise ValueError(f"there is no flow `{flow}`; the flows are {', '.join(dict.fromkeys(columns['flow']))}")
    return {name: [values[i] for i in keep] for name, values in columns.items()}


def _label(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def delay_cdf(reports: Report | Mapping[str, Report], flow: str | None = None, ax: Any = None) -> Any:
    """Share of packets that took at most so long one way: 0 to 1 over ms.

    Args:
        reports: one of `run(series=True)`, or several by what the legend calls them.
        flow: whose packets; None: a line per flow.
        ax: axes of matplotlib to draw into; None: new ones.

    Returns:
        The axes.

    Raises:
        ValueError: a report was made without `series=True`, or there is no such flow.
    """
    ax = _axes(ax)
    for name, report in _named(reports).items():
        columns = _columns(report.delays, flow)
        for one in dict.fromkeys(columns["flow"]):
            points = [(d, f) for n, d, f in zip(columns["flow"], columns["delay_ms"], columns["fraction"]) if n == one]
            ax.step(*zip(*points), where="post", label=_label(name, "" if flow else one))
    ax.set(xlabel="one-way delay, ms", ylabel="share of packets", ylim=(0, 1))
    ax.legend()
    return ax


def timeline(reports: Report | Mapping[str, Report], figure: str = "goodput_bps", flow: str | None = None, ax: Any = None) -> Any:
    """A column of `Report.series` over the run: in its own unit, goodput in Mbit/s, over s.

    Args:
        reports: one of `run(series=True)`, or several by what the legend calls them.
        figure: `goodput_bps`, `delay_mean_ms`, `delay_max_ms`, `cwnd_bytes`, `offered_bytes` or `allowed_bytes`.
        flow: whose; None: a line per flow.
        ax: axes of matplotlib to draw into; None: new ones.

    Returns:
        The axes.

    Raises:
        ValueError: a report was made without `series=True`, or there is no such figure or flow.
    """
    for report in _named(reports).values():
        if figure not in (known := report.series.columns[2:]):
            raise ValueError(f"a series has no `{figure}`; it has {', '.join(known)}")
    ax = _axes(ax)
    scale, unit = (1e6, "goodput, Mbit/s") if figure == "goodput_bps" else (1.0, figure.replace("_", " "))
    for name, report in _named(reports).items():
        columns = _columns(report.series, flow)
        for one in dict.fromkeys(columns["flow"]):
            points = [(t, v / scale) for n, t, v in zip(columns["flow"], columns["t_s"], columns[figure]) if n == one and v is not None]
            if points:
                ax.plot(*zip(*points), linewidth=0.8, label=_label(name, "" if flow else one))
    ax.set(xlabel="time, s", ylabel=unit)
    ax.legend()
    return ax


def windows(report: Report, flow: str, ax: Any = None) -> Any:
    """What limits a TCP sender: its congestion window, what its receiver offers, and what the access point left of that, kB over s.

    Args:
        report: of `run(series=True)`.
        flow: over TCP.
        ax: axes of matplotlib to draw into; None: new ones.

    Returns:
        The axes.

    Raises:
        ValueError: the report was made without `series=True`, or there is no such flow, or it is not over TCP.
    """
    ax = _axes(ax)
    for figure, label in [("cwnd_bytes", "congestion window"), ("offered_bytes", "offered"), ("allowed_bytes", "allowed")]:
        columns = _columns(report.series, flow)
        points = [(t, v / 1e3) for t, v in zip(columns["t_s"], columns[figure]) if v is not None]
        if points:
            ax.plot(*zip(*points), label=label)
    if not ax.lines:
        raise ValueError(f"`{flow}` has no windows: it is not over TCP, or never began")
    ax.set(xlabel="time, s", ylabel="window, kB", title=flow)
    ax.legend()
    return ax


def goodput_delay(runs: Runs, goodput: str, delay: str, ax: Any = None, confidence: float = 0.95) -> Any:
    """Goodput of one flow, Mbit/s, against the delay of another, ms: a point with both intervals per cell; delays grow to the left.

    Args:
        runs: of a sweep.
        goodput: a figure in bit/s, as `Runs.stats` takes it.
        delay: a figure in ms.
        ax: axes of matplotlib to draw into; None: new ones.
        confidence: of the intervals, 0 to 1.

    Returns:
        The axes.

    Raises:
        ValueError: there is no such figure.
    """
    ax = _axes(ax)
    for x, y in zip(runs.stats(delay, confidence), runs.stats(goodput, confidence)):
        label = _label(*(f"{key}={value}" for key, value in x.values.items()))
        ax.errorbar(x.mean, y.mean / 1e6, xerr=x.half, yerr=y.half / 1e6, fmt="o", capsize=3, label=label)
    ax.set(xlabel=f"{delay}, ms", ylabel=f"{goodput}, Mbit/s")
    ax.invert_xaxis()
    ax.legend()
    return ax


def means(runs: Runs, figure: str, ax: Any = None, confidence: float = 0.95) -> Any:
    """The mean of a figure in each cell with its confidence interval, in the figure's unit.

    Args:
        runs: of a sweep.
        figure: its name, as `Runs.stats` takes it.
        ax: axes of matplotlib to draw into; None: new ones.
        confidence: of the intervals, 0 to 1.

    Returns:
        The axes.

    Raises:
        ValueError: there is no such figure.
    """
    ax = _axes(ax)
    stats = runs.stats(figure, confidence)
    labels = [_label(*interval.values.values()) for interval in stats]
    ax.errorbar(range(len(stats)), [s.mean for s in stats], yerr=[s.half for s in stats], fmt="o", capsize=4)
    ax.set_xticks(range(len(stats)), labels, rotation=20 if max(map(len, labels), default=0) > 12 else 0)
    ax.set(xlabel=", ".join(runs.keys), ylabel=figure)
    return ax


def fairness(runs: Runs, ax: Any = None, confidence: float = 0.95) -> Any:
    """Jain's index over goodputs and over air time in each cell, with intervals: 0 to 1, 1 being equal shares.

    Args:
        runs: of a sweep.
        ax: axes of matplotlib to draw into; None: new ones.
        confidence: of the intervals, 0 to 1.

    Returns:
        The axes.
    """
    ax = _axes(ax)
    for shift, figure in ((-0.08, "fairness.goodput"), (0.08, "fairness.airtime")):
        stats = runs.stats(figure, confidence)
        at = [i + shift for i in range(len(stats))]
        ax.errorbar(at, [s.mean for s in stats], yerr=[s.half for s in stats], fmt="o", capsize=4, label=figure)
        ax.set_xticks(range(len(stats)), [_label(*s.values.values()) for s in stats])
    ax.set(xlabel=", ".join(runs.keys), ylabel="Jain's index", ylim=(0, 1.05))
    ax.legend()
    return ax

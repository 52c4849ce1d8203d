"""Asks the package `lasthop` for sweeps and traces; finished runs stay in its store, one folder per scenario.

A changed program, scenario or trace is another key there: what it gives is run, anything else is read back. A sweep that was broken off
goes on where it was.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from .catalogue import Missing

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "scenarios"


class Failed(Exception):
    """A command did not do what it was asked; the text is what it said."""


@dataclass(frozen=True)
class Run:
    """One run with its trace: the report, and the columns of `--trace`."""

    report: dict
    trace: dict

    def flow(self, name):
        """The report of one flow."""
        return next(flow for flow in self.report["flows"] if flow["name"] == name)

    def curve(self, name, field, scale=1.0):
        """`[(t_s, value)]` of one field of one flow or queue, as often as it changed."""
        names = self.trace["flow" if name in self.trace["flow"] else "queue"]
        rows = zip(self.trace["t_s"], names, self.trace[field])
        return [(t, value * scale) for t, own, value in rows if own == name and value is not None]


class Simulator:
    """The package, where its stores are, and how many seeds a sweep gets at most; the binary is for studies with real programs."""

    def __init__(self, binary, cache, most_seeds=None, say=print):
        self.binary = Path(binary)
        self.most_seeds = most_seeds
        self.say = say
        self.cache = Path(cache)
        self.folder = self.cache / hashlib.sha256(self.binary.read_bytes()).hexdigest()[:16]

    def sweep(self, scenario, vary, seeds=20):
        """Every combination of `vary` ({key: value, or list of values}) with seeds 1..seeds: a list of rows.

        A row maps a key that has a list, `seed`, or a report's field (`flows.ftp.goodput_bps`) to a number, a text or None.
        """
        import lasthop

        seeds = min(seeds, self.most_seeds or seeds)
        grid = {key: [str(one) for one in value] for key, value in vary.items() if isinstance(value, (list, tuple))}
        home = self._home(scenario, {key: value for key, value in vary.items() if key not in grid})
        store = self.cache / "stores" / scenario
        store.parent.mkdir(parents=True, exist_ok=True)
        self.say(f"  {scenario}: {home.sets} over {grid}, {seeds} seeds")
        try:
            runs = lasthop.sweep(home, grid, seeds=seeds, store=store)
        except ValueError as refused:
            raise Failed(str(refused)) from refused
        return [row(runs, run) for run in range(len(runs))]

    def trace(self, scenario, settings, seed=1):
        """One run with everything that changed in it."""
        self.say(f"  {scenario}: {settings}, seed {seed}")
        report = self._home(scenario, settings).run(seed=seed, trace=True)
        return Run(report.to_dict(), report.trace.to_dict())

    def _home(self, scenario, settings):
        import lasthop

        try:
            return lasthop.load(SCENARIOS / f"{scenario}.toml").set({key: str(value) for key, value in settings.items()})
        except ValueError as refused:
            raise Failed(str(refused)) from refused


def row(runs, run):
    """What varies, and every figure; what reads as a number is one."""
    cell = {key: number(value) for key, value in runs.plan.values(runs.plan.run(run)[0])}
    return cell | {name: value for name, value in runs.report(run).figures().items() if name not in cell}


def number(text):
    """`text` as int or float where it is one, None where it is empty, else as it is."""
    if text == "":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def where(rows, **keys):
    """The rows whose varied keys have these values; `wifi__attempts=4` stands for `wifi.attempts`."""
    wanted = {key.replace("__", "."): value for key, value in keys.items()}
    if unknown := [key for key in wanted if rows and key not in rows[0]]:
        raise Missing(f"no row has {', '.join(unknown)}; it was not varied under this name")
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def column(rows, field):
    """One field of every row; rows without it are left out."""
    return [row[field] for row in rows if row.get(field) is not None]

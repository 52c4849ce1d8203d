"""Sweeps: every home of a grid with every seed, on any executor, into a store that a later call goes on with."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import math
import operator
import os
import pathlib
import queue
import secrets
import shutil
import tempfile
import time
import warnings
import weakref
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from . import _frames, _notebook, _stats
from ._home import written
from ._lasthop import REVISION, Home, Plan, Report, Stop, Store

# A task of an executor lasts about so long, s: what scheduling costs (1 ms with Dask) is little of it, and what a killed worker
# costs, too.
_TASK = 0.5
# Most runs of one task.
_MOST_IN_TASK = 256
# Tasks under way per worker: one runs, one waits.
_AHEAD = 2


@functools.lru_cache(maxsize=64)
def _home(home: Home, sets: tuple[str, ...]) -> Home:
    return home._with(list(sets))


def _work(
    home: Home, sets: tuple[str, ...], seeds: list[int], root: str | None, mark: str | None, stop: Stop | None = None
) -> tuple[float, list[str] | None]:
    """What an executor's worker does: seconds it took, and the reports if it does not see the store itself."""
    since = time.perf_counter()
    reports = Store.work(_home(home, sets), seeds, root, mark, stop)
    return time.perf_counter() - since, reports


def sweep(
    home: Home,
    grid: Mapping[str, Iterable[Any]] | None = None,
    *,
    seeds: int | Iterable[int] = 1,
    executor: Any = None,
    store: str | os.PathLike[str] | None = None,
    figures: str | Sequence[str] | None = None,
    until: _stats.Until | None = None,
    workers: int | None = None,
    retries: int = 3,
    progress: bool = False,
) -> Runs:
    """Runs every combination of the values of `grid` with every seed.

    What is finished stays in the store in any case, Ctrl-C and SIGKILL included; the same call goes on from there.

    Args:
        home: what every run has in common.
        grid: dotted keys as `Home.set` takes them, each with a list of its values; the last changes fastest, the seed faster still.
        seeds: how many, from the home's seed on, or a list of them, each 0 to 2**64-1.
        executor: anything with `submit` whose futures have `add_done_callback`: `concurrent.futures`, Dask's `Client`,
            `mpi4py.futures.MPIPoolExecutor`, `executorlib`. None: threads of this process; runs do not hold the interpreter's lock.
        store: a folder that keeps every finished run; one that is there is gone on with. None: runs are kept in a temporary
            folder for as long as the `Runs` are.
        figures: columns of the table `store/table.parquet`, as `lasthop sweep --figures` takes them: names, shorter names, `*`;
            "all"; None: the usual ones, fewer than 40. All figures of all runs stay in the store whatever is chosen.
        until: seeds are added until an interval is small enough; `seeds` is then not used.
        workers: how many tasks may run at once, where the executor does not say it.
        retries: how often a task is given out again whose worker was lost.
        progress: whether to say on stderr how many runs are done, and how many a second.

    Returns:
        The runs, a row each: combinations x seeds.

    Raises:
        ValueError: a key, a value, a seed or a figure is refused, in the words of `lasthop sweep`, before the first run; or `store`
            is a folder that holds something else.
        OSError: the store cannot be read or written.
        KeyboardInterrupt: Ctrl-C. What an executor or its workers raise comes out as it is.
    """
    if REVISION.endswith("-dirty") and store is not None:
        warnings.warn(f"the program's sources were changed after {REVISION[:-6]}: keys of a store do not tell how", stacklevel=2)
    if executor is not None and not hasattr(executor, "submit"):
        raise TypeError(f"executor: {executor!r} has no submit; give one of concurrent.futures, a Client of Dask, or None")
    keys, values = _axes(grid or {})
    wanted = [] if until is not None else _seeds(seeds, home.seed)
    base = Plan(home, [list(zip(keys, combination)) for combination in itertools.product(*values)])
    cells = math.prod(map(len, values))
    # Before anything runs: a name that chooses nothing is refused.
    chosen = base.figures(None if figures is None else [figures] if isinstance(figures, str) else list(figures))
    if until is not None:
        if not isinstance(until, _stats.Until):
            raise TypeError(f"until: {until!r} is no rule; write lasthop.Until(figure, within=0.02)")
        until = dataclasses.replace(until, figure=base.figure(until.figure))
    folder = _Folder() if store is None else None
    kept = Store(folder.path if folder else pathlib.Path(store))
    doer = _Doer(home, kept, executor, workers, retries, progress)
    if until is None:
        plan = base.with_seeds([wanted] * cells)
        doer.run(plan)
    else:
        plan = _until(base, cells, until, kept, doer)
    kept.write_table(plan, chosen, kept.root / "table.parquet")
    return Runs(plan, kept, keys, chosen, folder)


def _axes(grid: Mapping[str, Iterable[Any]]) -> tuple[list[str], list[list[str]]]:
    """Keys, and of each its values as `--set` takes them."""
    if not isinstance(grid, Mapping):
        raise TypeError(f"grid: {grid!r} is no mapping; write {{'wifi.queue.limit': [50, 1000]}}")
    for key, values in grid.items():
        if key == "seed":
            raise ValueError("grid: seeds are varied by seeds=N, from the home's seed on, or seeds=[..]")
        if isinstance(values, (str, Mapping)) or not isinstance(values, Iterable):
            raise TypeError(f"grid: {key}: {values!r} is no list of values; write [{values!r}]")
    axes = {key: [written(value) for value in values] for key, values in grid.items()}
    for key, values in axes.items():
        if not values:
            raise ValueError(f"grid: {key}: there are no values; give at least one")
        if twice := _twice(values):
            raise ValueError(f"grid: {key}: `{twice[0]}` stands there twice")
    return list(axes), list(axes.values())


def _seeds(seeds: int | Iterable[int], first: int) -> list[int]:
    """Every seed of a cell."""
    if isinstance(seeds, str) or not isinstance(seeds, (int, Iterable)):
        raise TypeError(f"seeds: {seeds!r} is no number of seeds; write 20, or a list of them")
    wanted = [first + i for i in range(seeds)] if isinstance(seeds, int) else [operator.index(seed) for seed in seeds]
    if not wanted:
        raise ValueError(f"seeds: {seeds!r} is no seed; give at least one")
    if outside := [seed for seed in wanted if not 0 <= seed < 2**64]:
        raise ValueError(f"seeds: {outside[0]} stands there; write integers from 0 to 2**64-1")
    if twice := _twice(wanted):
        raise ValueError(f"seeds: {twice[0]} stands there twice")
    return wanted


def _twice(values: list[Any]) -> list[Any]:
    return [value for value, count in collections.Counter(values).items() if count > 1]


class _Folder:
    """A temporary folder that goes with this object."""

    def __init__(self) -> None:
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="lasthop-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _until(base: Plan, cells: int, until: _stats.Until, store: Store, doer: _Doer) -> Plan:
    counts = [until.least] * cells
    open_cells = set(range(cells))
    while True:
        plan = base.with_seeds([list(range(base.seed, base.seed + count)) for count in counts])
        doer.run(plan)
        sample: list[list[float | None]] = [[] for _ in range(cells)]
        for run, value in enumerate(store.values(plan, until.figure)):
            sample[plan.run(run)[0]].append(value)
        open_cells = {cell for cell in open_cells if not until.is_met(sample[cell])}
        if not open_cells:
            return plan
        for cell in open_cells:
            counts[cell] = min(counts[cell] + until.step, until.most)


class _Doer:
    """Runs what a store lacks of a plan."""

    def __init__(
        self, home: Home, store: Store, executor: Any, workers: int | None, retries: int, progress: bool
    ) -> None:
        self.home, self.store, self.executor = home, store, executor
        self.retries, self.progress = retries, progress
        self.workers = workers or _workers_of(executor)
        # Seconds that a run takes, as far as is known.
        self.cost: float | None = None

    def run(self, plan: Plan) -> None:
        missing = self.store.missing(plan)
        if not missing:
            return
        mark = f".client-{secrets.token_hex(8)}"
        path = self.store.root / mark
        path.touch()
        try:
            if self.executor is not None:
                self._on(self.executor, plan, missing, mark, None)
                return
            stop = Stop()
            with ThreadPoolExecutor(self.workers) as pool:
                try:
                    self._on(pool, plan, missing, mark, stop)
                except BaseException:
                    stop.set()
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
        finally:
            path.unlink(missing_ok=True)

    def _on(self, executor: Any, plan: Plan, missing: list[int], mark: str, stop: Stop | None) -> None:
        done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # Of each stretch of the plan that is packed together: how many runs are missing.
        left: dict[int, int] = {}
        for run in missing:
            left[run // Store.PACK] = left.get(run // Store.PACK, 0) + 1
        ready = iter(missing)
        waiting: list[list[int]] = []
        ahead: list[int] = []
        under_way: dict[Any, tuple[list[int], int]] = {}
        home = self._sent(executor)
        root = str(self.store.root.absolute())
        finished, since = 0, time.monotonic()

        def task() -> list[int]:
            """Runs of one cell, so many as a task should hold."""
            if waiting:
                return waiting.pop()
            size = 1 if self.cost is None or stop is not None else int(_TASK / max(self.cost, 1e-6))
            size = max(1, min(size, _MOST_IN_TASK))
            runs: list[int] = []
            while len(runs) < size:
                run = ahead.pop() if ahead else next(ready, None)
                if run is None:
                    break
                if runs and plan.run(run)[0] != plan.run(runs[0])[0]:
                    ahead.append(run)
                    break
                runs.append(run)
            return runs

        def give(runs: list[int], tries: int) -> None:
            sets = tuple(f"{key}={value}" for key, value in plan.values(plan.run(runs[0])[0]))
            seeds = [plan.run(run)[1] for run in runs]
            more = {} if stop is None else {"stop": stop}
            if _is_dask(executor):
                more = {"pure": False}
            future = executor.submit(_work, home, sets, seeds, root, mark, **more)
            future.add_done_callback(done.put)
            under_way[future] = (runs, tries)

        try:
            while True:
                while len(under_way) < _AHEAD * self.workers and (runs := task()):
                    give(runs, 0)
                if not under_way:
                    return
                future = done.get()
                runs, tries = under_way.pop(future)
                try:
                    took, reports = future.result()
                except Exception as error:
                    if tries >= self.retries or not _is_lost(error):
                        raise
                    give(runs, tries + 1)
                    continue
                for run, report in zip(runs, reports or ()):
                    self.store.put(plan.key(run), report)
                if took > 0.0:
                    each = took / len(runs)
                    self.cost = each if self.cost is None else 0.8 * self.cost + 0.2 * each
                for run in runs:
                    left[run // Store.PACK] -= 1
                    if left[run // Store.PACK] == 0:
                        self.store.pack(plan, run // Store.PACK)
                finished += len(runs)
                if self.progress:
                    rate = finished / max(time.monotonic() - since, 1e-9)
                    print(f"\r{finished:,} of {len(missing):,} runs, {rate:.1f}/s ", end="", file=_stderr(), flush=True)
        finally:
            for future in under_way:
                future.cancel()
            if self.progress:
                print(file=_stderr())

    def _sent(self, executor: Any) -> Any:
        """The home as tasks are given it: with large traces a cluster of Dask gets it once."""
        size = len(self.home.text) + sum(len(text) for text in self.home.__reduce__()[1][2].values())
        if _is_dask(executor) and size > 100_000:
            return executor.scatter(self.home, broadcast=True, hash=False)
        return self.home


def _stderr() -> Any:
    import sys

    return sys.stderr


def _is_dask(executor: Any) -> bool:
    return hasattr(executor, "scheduler_info") and hasattr(executor, "scatter")


def _is_lost(error: Exception) -> bool:
    """Whether a worker went away, and not the run wrong."""
    return type(error).__name__ in {"KilledWorker", "CancelledError", "FutureCancelledError", "CommClosedError"}


def _workers_of(executor: Any) -> int:
    if _is_dask(executor):
        return max(1, sum(executor.nthreads().values()))
    for name in ("_max_workers", "num_workers", "max_workers"):
        known = getattr(executor, name, None)
        if isinstance(known, int) and known > 0:
            return known
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Runs:
    """The runs of a sweep, a row each in the order of the grid, the seed changing fastest; `len()` is how many. `sweep` makes it.

    Polars, pandas, DuckDB and PyArrow take the object itself (Arrow PyCapsule interface); rows are read from the store batch by batch,
    so that memory stays bounded however many there are. The same rows are in the file `path`. A notebook shows a row per cell: the
    mean of each figure and its interval.

    A figure is named as in `Report.figures()`, or without `flows.`, `stations.` or `queues.` in front, or without its unit behind:
    `flows.ftp.goodput_bps`, `ftp.goodput`. ValueError names those near a wrong one.

    Attributes:
        plan: homes and seeds.
        store: where the reports are.
        keys: what is varied, in the order of the grid.
        figures: columns of the table beside keys and seed.
    """

    def __init__(self, plan: Plan, store: Store, keys: list[str], figures: list[str], folder: Any) -> None:
        self.plan, self.store, self.keys, self.figures = plan, store, keys, figures
        # Removed with this object.
        self._folder = folder
        self._names: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self.plan)

    @property
    def path(self) -> pathlib.Path:
        """The table as Parquet: the varied keys, the seed, `scenario`, `run.revision`, and the figures, each in the unit of its name."""
        return self.store.root / "table.parquet"

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.store.stream(self.plan, self.figures)

    def choose(self, figures: str | Sequence[str]) -> Runs:
        """The same runs with other columns; nothing is run for it.

        Args:
            figures: "all", or names as `sweep` takes them.

        Returns:
            The same runs.

        Raises:
            ValueError: a name chooses nothing; names near it.
        """
        chosen = self.plan.figures([figures] if isinstance(figures, str) else list(figures))
        return Runs(self.plan, self.store, self.keys, chosen, self._folder)

    def to_polars(self) -> Any:
        """As a frame of Polars.

        Returns:
            A `polars.DataFrame`, a row per run: keys, seed, figures.
        """
        return _frames.to_polars(self)

    def to_arrow(self) -> Any:
        """As a table of PyArrow.

        Returns:
            A `pyarrow.Table`, a row per run: keys, seed, figures.
        """
        return _frames.to_arrow(self)

    def to_pandas(self) -> Any:
        """As a frame of pandas, by PyArrow.

        Returns:
            A `pandas.DataFrame`, a row per run: keys, seed, figures.
        """
        return _frames.to_pandas(self)

    def values(self, figure: str) -> list[float | None]:
        """One figure of every run.

        Args:
            figure: its name.

        Returns:
            A number per run, in the order of the rows and the unit of its name; None where there is no population.

        Raises:
            ValueError: there is no such figure, or it is text.
        """
        name = self._name(figure)
        values = self.store.values(self.plan, name)
        if values.count(None) == len(values) and isinstance(said := self.report(0).figures().get(name), str):
            raise ValueError(f"`{name}` is text ({said}), no number; to_polars() and its kin have it")
        return values

    def report(self, run: int) -> Report:
        """The whole report of a run.

        Args:
            run: its row, 0 to `len(runs) - 1`.

        Returns:
            The report, with `wall_s` 0 and without tables.

        Raises:
            ValueError: there is no such row, or its report is not in the store any more.
        """
        if not 0 <= run < len(self):
            raise ValueError(f"there is no run {run}; rows are 0 to {len(self) - 1}")
        text = self.store.get(self.plan.key(run))
        if text is None:
            raise ValueError(f"run {run} is not in {self.store.root} any more")
        return Report._of(text)

    def cells(self) -> list[dict[str, str]]:
        """What each home of the grid varies.

        Returns:
            For each cell, in the order of the rows, value, as `--set` takes it, by key.
        """
        seen: dict[int, dict[str, str]] = {}
        for run in range(len(self)):
            cell = self.plan.run(run)[0]
            if cell not in seen:
                seen[cell] = dict(self.plan.values(cell))
        return [seen[cell] for cell in sorted(seen)]

    def _by_cell(self, figure: str) -> list[dict[int, float | None]]:
        """Of each cell: figure by seed."""
        found: dict[int, dict[int, float | None]] = {}
        for run, value in enumerate(self.values(figure)):
            cell, seed = self.plan.run(run)
            found.setdefault(cell, {})[seed] = value
        return [found[cell] for cell in sorted(found)]

    def stats(self, figure: str, confidence: float = 0.95) -> list[_stats.Interval]:
        """Mean, standard deviation and confidence interval by seeds.

        Args:
            figure: its name.
            confidence: of the intervals, 0 to 1.

        Returns:
            An interval per cell, in the order of the rows and the unit of the figure.

        Raises:
            ValueError: there is no such figure, or it is text.
        """
        samples = self._by_cell(figure)
        return [_stats.interval(by.values(), confidence, what) for by, what in zip(samples, self.cells())]

    def compare(
        self, figure: str, a: Mapping[str, Any], b: Mapping[str, Any], confidence: float = 0.95
    ) -> _stats.Comparison:
        """One cell against another by pairs of one seed (common random numbers, paired t).

        Args:
            figure: its name.
            a: of each varied key its value, as `grid` had it.
            b: the same of the other cell.
            confidence: of the intervals, 0 to 1.

        Returns:
            The difference b - a and both means, in the unit of the figure.

        Raises:
            ValueError: there is no such figure, or `a` or `b` is no cell or several.
        """
        samples = self._by_cell(figure)
        one, other = samples[self._cell(a)], samples[self._cell(b)]
        seeds = [seed for seed in one if seed in other]
        return _stats.compare([one[seed] for seed in seeds], [other[seed] for seed in seeds], confidence)

    def _cell(self, wanted: Mapping[str, Any]) -> int:
        named = {key: written(value) for key, value in wanted.items()}
        found = [i for i, cell in enumerate(self.cells()) if named.items() <= cell.items()]
        if len(found) != 1:
            cells = "no cell" if not found else f"{len(found)} cells"
            kinds = ", ".join(f"{key} ({' or '.join(map(repr, axis))})" for key, axis in self._axes().items())
            raise ValueError(f"{named} is {cells} of the sweep; give a value of each of {kinds}")
        return found[0]

    def _name(self, figure: str) -> str:
        """The whole name of a figure of which the group may be left out."""
        if figure not in self._names:
            self._names[figure] = self.plan.figure(figure)
        return self._names[figure]

    def _axes(self) -> dict[str, list[str]]:
        """Of each varied key its values, in the order of the grid."""
        cells = self.cells()
        return {key: list(dict.fromkeys(cell[key] for cell in cells)) for key in self.keys}

    def to_xarray(self, figure: str) -> Any:
        """One figure as an array.

        Args:
            figure: its name.

        Returns:
            An `xarray.DataArray` with a dimension per varied key, in the order of the grid, then `seed`, in the unit of the figure; NaN:
            there is no population, or the cell has no such seed. Coordinates are numbers where all values of a key are.

        Raises:
            ValueError: there is no such figure, or it is text.
        """
        import numpy
        import xarray

        samples, cells, axes = self._by_cell(figure), self.cells(), self._axes()
        seeds = list(dict.fromkeys(seed for by in samples for seed in by))
        shape = [*(len(axis) for axis in axes.values()), len(seeds)]
        values = numpy.full(shape, numpy.nan)
        places = {seed: i for i, seed in enumerate(seeds)}
        for cell, by in zip(cells, samples):
            at = tuple(axes[key].index(cell[key]) for key in self.keys)
            for seed, value in by.items():
                values[(*at, places[seed])] = numpy.nan if value is None else value
        coordinates = {key: _numbers(axis) for key, axis in axes.items()}
        return xarray.DataArray(values, dims=[*self.keys, "seed"], coords={**coordinates, "seed": seeds}, name=self._name(figure))

    def __repr__(self) -> str:
        return f"<lasthop.Runs: {len(self)} runs, varied: {', '.join(self.keys) or 'the seed'}, in {self.store.root}>"

    def _repr_html_(self) -> str:
        names = [name for name in self.figures if name != "all"][:6]
        rows = []
        means = [self.stats(name) for name in names if _is_number(self, name)]
        names = [name for name in names if _is_number(self, name)]
        for i, cell in enumerate(self.cells()):
            rows.append([*cell.values(), *(str(mean[i]).split(": ")[-1] for mean in means)])
        return _notebook.table([*self.keys, *names], rows, repr(self).strip("<>"))


def _numbers(axis: list[str]) -> list[Any]:
    """Values of a key as numbers, if all of them are written as such."""
    for number in (int, float):
        try:
            return [number(value) for value in axis]
        except ValueError:
            pass
    return axis


def _is_number(runs: Runs, name: str) -> bool:
    try:
        return any(value is not None for value in runs.values(name))
    except ValueError:
        return False

"""Sweeps: every home of a grid with every seed, on any executor, into a store that a later call goes on with."""

from __future__ import annotations

import functools
import itertools
import os
import pathlib
import queue
import secrets
import tempfile
import time
import warnings
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

    grid: dotted keys as `Home.set` takes them, each with its values; the last changes fastest, the seed faster still.
    seeds: how many, from the home's seed on, or which.
    executor: anything with `submit` whose futures have `add_done_callback`: `concurrent.futures`, Dask's `Client`,
        `mpi4py.futures.MPIPoolExecutor`, `executorlib`. Without one, threads of this process: runs do not hold the interpreter's lock.
    store: a folder that keeps every finished run; one that is there is gone on with. Without it runs are kept in a temporary
        folder for as long as the `Runs` are.
    figures: columns of the table `store/table.parquet`, as `lasthop sweep --figures` takes them: names, shorter names, `*`; "all";
        without it the usual ones, fewer than 40. All figures of all runs stay in the store whatever is chosen.
    until: seeds are added until an interval is small enough: `lasthop.Until`; `seeds` is then not used.
    workers: how many tasks may run at once, where the executor does not say it.
    retries: how often a task is given out again whose worker was lost.
    progress: a line on stderr.

    ValueError: a key or a value is refused, in the words of `lasthop sweep`, before the first run. OSError: the store cannot be
    written. What is finished stays in any case, Ctrl-C and SIGKILL included; the same call goes on from there.
    """
    if REVISION.endswith("-dirty") and store is not None:
        warnings.warn(f"the program's sources were changed after {REVISION[:-6]}: keys of a store do not tell how", stacklevel=2)
    keys = list(grid or {})
    values = [[written(value) for value in (grid or {})[key]] for key in keys]
    cells = [list(zip(keys, combination)) for combination in itertools.product(*values)]
    base = Plan(home, cells)
    # Before anything runs: a name that chooses nothing is refused.
    chosen = base.figures(None if figures is None else [figures] if isinstance(figures, str) else list(figures))
    folder = None
    if store is None:
        folder = tempfile.TemporaryDirectory(prefix="lasthop-")
        store = folder.name
    kept = Store(pathlib.Path(store))
    doer = _Doer(home, kept, executor, workers, retries, progress)
    if until is None:
        first = base.seed
        wanted = list(range(first, first + seeds)) if isinstance(seeds, int) else list(seeds)
        plan = base.with_seeds([wanted] * len(cells))
        doer.run(plan)
    else:
        plan = _until(base, len(cells), until, kept, doer)
    kept.write_table(plan, chosen, kept.root / "table.parquet")
    return Runs(plan, kept, keys, chosen, folder)


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
            under_way[future] = (runs, tries)
            future.add_done_callback(done.put)

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
    """The runs of a sweep, in the order of the grid, the seed changing fastest.

    Polars, pandas, DuckDB and PyArrow take the object itself (Arrow PyCapsule interface); rows are read from the store batch by batch,
    so that memory stays bounded however many there are. The same rows are in the file `path`.
    """

    def __init__(self, plan: Plan, store: Store, keys: list[str], figures: list[str], folder: Any) -> None:
        self.plan, self.store, self.keys, self.figures = plan, store, keys, figures
        # Removed with this object.
        self._folder = folder

    def __len__(self) -> int:
        return len(self.plan)

    @property
    def path(self) -> pathlib.Path:
        """The table as Parquet: the varied keys, the seed, `scenario`, `run.revision`, and the figures."""
        return self.store.root / "table.parquet"

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.store.stream(self.plan, self.figures)

    def choose(self, figures: str | Sequence[str]) -> Runs:
        """The same runs with other columns, "all" or names as `sweep` takes them; nothing is run for it."""
        chosen = self.plan.figures([figures] if isinstance(figures, str) else list(figures))
        return Runs(self.plan, self.store, self.keys, chosen, self._folder)

    def to_polars(self) -> Any:
        """A `polars.DataFrame`, a row per run."""
        return _frames.to_polars(self)

    def to_arrow(self) -> Any:
        """A `pyarrow.Table`, a row per run."""
        return _frames.to_arrow(self)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`, a row per run."""
        return _frames.to_pandas(self)

    def values(self, figure: str) -> list[float | None]:
        """One figure of every run, in the order of the rows; None where there is no population."""
        return self.store.values(self.plan, self._name(figure))

    def report(self, run: int) -> Report:
        """The whole report of a run by its row."""
        text = self.store.get(self.plan.key(run))
        if text is None:
            raise ValueError(f"run {run} is not in {self.store.root} any more")
        return Report._of(text)

    def cells(self) -> list[dict[str, str]]:
        """What each home of the grid varies, in the order of the rows."""
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
        """Mean, standard deviation and confidence interval by seeds of a figure, for each cell in the order of the rows."""
        samples = self._by_cell(figure)
        return [_stats.interval(by.values(), confidence, what) for by, what in zip(samples, self.cells())]

    def compare(
        self, figure: str, a: Mapping[str, Any], b: Mapping[str, Any], confidence: float = 0.95
    ) -> _stats.Comparison:
        """The cell `b` against the cell `a` by pairs of one seed (common random numbers); each is what `grid` had of its keys."""
        samples = self._by_cell(figure)
        one, other = samples[self._cell(a)], samples[self._cell(b)]
        seeds = [seed for seed in one if seed in other]
        return _stats.compare([one[seed] for seed in seeds], [other[seed] for seed in seeds], confidence)

    def _cell(self, wanted: Mapping[str, Any]) -> int:
        named = {key: written(value) for key, value in wanted.items()}
        found = [i for i, cell in enumerate(self.cells()) if named.items() <= cell.items()]
        if len(found) != 1:
            raise ValueError(f"{named} is {len(found)} cells of the sweep; give a value of each of {', '.join(self.keys)}")
        return found[0]

    def _name(self, figure: str) -> str:
        """The whole name of a figure of which the group may be left out."""
        if not len(self):
            return figure
        known = self.report(0).figures()
        for name in (figure, f"flows.{figure}", f"stations.{figure}", f"queues.{figure}"):
            if name in known:
                return name
        # Another home of the grid may have it; nobody has what `figures` refuses.
        self.plan.figures([figure])
        return figure

    def to_xarray(self, figure: str) -> Any:
        """An `xarray.DataArray` of one figure: a dimension per varied key, in the order of the grid, then `seed`."""
        import numpy
        import xarray

        samples, cells = self._by_cell(figure), self.cells()
        axes = {key: list(dict.fromkeys(cell[key] for cell in cells)) for key in self.keys}
        seeds = list(dict.fromkeys(seed for by in samples for seed in by))
        shape = [*(len(axis) for axis in axes.values()), len(seeds)]
        values = numpy.full(shape, numpy.nan)
        places = {seed: i for i, seed in enumerate(seeds)}
        for cell, by in zip(cells, samples):
            at = tuple(axes[key].index(cell[key]) for key in self.keys)
            for seed, value in by.items():
                values[(*at, places[seed])] = numpy.nan if value is None else value
        dimensions = [*self.keys, "seed"]
        return xarray.DataArray(values, dims=dimensions, coords={**axes, "seed": seeds}, name=figure)

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


def _is_number(runs: Runs, name: str) -> bool:
    try:
        return any(value is not None for value in runs.values(name))
    except ValueError:
        return False

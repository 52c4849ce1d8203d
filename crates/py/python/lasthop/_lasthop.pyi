"""The extension module: homes, runs, reports, plans and stores. What users need of it stands in `lasthop`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, ClassVar, final

from lasthop._law import Law

REVISION: str
"""Revision of the program, as in the field `run.revision` of a report; `-dirty` behind it: its sources were changed."""
VERSION: str

@final
class Window:
    """What a law moves: `cwnd`, 1 to 1e6 segments, and `ssthresh`, 2 or more, infinite at first; values beyond become the limit."""

    cwnd: float
    ssthresh: float

@final
class Ack:
    """An acknowledgment: when (s); segments acknowledged for the first time; as many as count towards growth; its round trip (s, None:
    of a segment that was sent twice) and the smoothed one; whether the congestion window held the sender back."""

    @property
    def now_s(self) -> float:
        """When it came: virtual time since the run began, s."""
    @property
    def acked(self) -> float:
        """Acknowledged for the first time, segments."""
    @property
    def counted(self) -> float:
        """As much of `acked` as counts towards growth, segments: all of it (RFC 3465), or one after a timeout."""
    @property
    def rtt_s(self) -> float | None:
        """Round trip of the newest segment it tells of, s; None: that was sent twice."""
    @property
    def srtt_s(self) -> float:
        """Smoothed round trip, s; 0 before the first sample."""
    @property
    def cwnd_limited(self) -> bool:
        """The congestion window, not the receiver's, held the sender back."""

@final
class Home:
    """A home that can be run: a scenario, its traces, and what was set. Never changed; equal homes give equal reports."""

    @staticmethod
    def load(path: str | PathLike[str]) -> Home:
        """Of a scenario's file. ValueError says file, line, key, and what would be right."""
    @staticmethod
    def parse(text: str, file: str = "scenario.toml") -> Home:
        """Of a scenario's text, as the content of `file`."""
    def set(self, keys: Mapping[str, Any] | None = None, **named: Any) -> Home:
        """The home with keys changed, as `--set` does: `set(wifi__queue__limit=1000)`, `set({"station.N3.distance": "20m"})`.

        In names `__` stands for the dot. Text is read as `--set` reads it (`"20m"`, `"none"`, `'{ capacity = "learn" }'`); numbers,
        booleans, None (takes the key away), mappings and lists are written as TOML. The later of two wins.
        ValueError: a key is unknown or a value wrong, in the words of `lasthop sim`.
        """
    def check(self) -> None:
        """ValueError where the simulator does not carry what the home asks for (homes of the emulator alone)."""
    def run(
        self,
        seed: int | None = None,
        trace: bool = False,
        series: bool = False,
        laws: dict[str, Callable[[str], Law]] | None = None,
        stop: Stop | None = None,
    ) -> Report:
        """Simulates the home from its start to its end.

        seed: of all random numbers, 0 to 2**64-1; without it the scenario's. One seed gives one report on every machine.
        trace: keep a row per change of a sender or a queue, thinned to 1 ms, and per packet of flows that are not TCP: `Report.trace`.
        series: keep the course of each flow in 600 stretches of time, and its delays' distribution: `Report.series`, `.delays`.
        laws: of a flow over TCP by its name, or of all others (`"*"`): called with the flow's name it gives its law of congestion
            control, in place of the scenario's. One to two microseconds a call; what the law raises ends the run.
        stop: ends the run when it is set from another thread.

        The interpreter's lock is not held: threads run homes at once. Ctrl-C ends a run of the main thread with KeyboardInterrupt.
        ValueError: the simulator does not carry what the home asks for. MemoryError: a trace of more than 40 million rows.
        """
    def key(self, seed: int | None = None) -> str:
        """SHA-256 of all that decides the report: scenario, traces' contents, what was set, seed, revision; 64 digits."""
    def _repr_html_(self) -> str: ...
    @property
    def name(self) -> str:
        """The scenario's name."""
    @property
    def file(self) -> str:
        """Its file, as errors name it."""
    @property
    def text(self) -> str:
        """Its text, before what was set."""
    @property
    def sets(self) -> list[str]:
        """What was set, in order, each as `--set` takes it: `wifi.queue.limit=7`."""
    @property
    def seed(self) -> int:
        """The scenario's seed, 0 to 2**64-1."""
    @property
    def duration_s(self) -> float:
        """How long a run lasts, s of virtual time."""
    @property
    def measure_from_s(self) -> float:
        """Where figures begin to count, s since the start."""
    @property
    def flows(self) -> list[tuple[str, str, str, str, float]]:
        """(name, from, to, kind, start in s) of every flow."""
    @property
    def stations(self) -> list[str]:
        """Names of the stations."""
    def _with(self, sets: list[str]) -> Home: ...

@final
class Report:
    """What a run gave: every field of `schema/report.md`. Equal if the runs were, however long they took."""

    def to_dict(self) -> dict[str, Any]:
        """The report as the JSON of `lasthop sim --json`: the same fields, the same values."""
    def to_json(self) -> str:
        """The text of `lasthop sim --json`."""
    def figures(self) -> dict[str, Any]:
        """Every scalar by its name, as the columns of a sweep: `flows.ftp.goodput_bps`; None: no population."""
    def __getitem__(self, name: str, /) -> Any:
        """One of `figures()`; `flows.`, `stations.` and `queues.` in front may be left out. KeyError names those near it."""
    @property
    def scenario(self) -> str:
        """The scenario's name."""
    @property
    def seed(self) -> int:
        """The seed of the run."""
    @property
    def flows(self) -> list[str]:
        """Names of the flows, in the order of the report."""
    @property
    def wall_s(self) -> float:
        """How long the run took, s."""
    @property
    def events(self) -> int:
        """Events that the simulator handled."""
    @property
    def trace(self) -> Table:
        """Columns t_s (s), flow, queue (dictionaries), cwnd, ssthresh (segments), offered_window, clamped_window, inflight (bytes),
        queue_packets, rate_bps, bandwidth_bps (payload bit/s), delay_ms; null where a row does not have it. One row per change, as
        `schema/report.md` says of `--trace`. ValueError without `run(trace=True)`."""
    @property
    def series(self) -> Table:
        """Columns flow, t_s, delay_mean_ms, delay_max_ms, goodput_bps, cwnd_bytes, offered_bytes, allowed_bytes: 600 rows for each of
        the first 24 flows, t_s being where a stretch begins; null: nothing was seen in it. ValueError without `run(series=True)`."""
    @property
    def queue_series(self) -> Table:
        """Columns t_s, packets_mean, packets_max: packets that wait at the access point for its stations, with the one in service, 600 rows."""
    @property
    def delays(self) -> Table:
        """Columns flow, fraction (0 to 1 by 0.001), delay_ms: so large a share of the packets that the report counts took at most so
        long one way; within 0.1 % of the true delay."""
    @staticmethod
    def _of(text: str, trace: Table | None = None, series: tuple[Table, Table, Table] | None = None) -> Report: ...
    def _kept(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Table:
    """Rows of a run. Polars, pandas, DuckDB and PyArrow take it as it is, without a copy (Arrow PyCapsule interface)."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...
    @property
    def columns(self) -> list[str]:
        """Names, in order."""
    def to_dict(self) -> dict[str, list[Any]]:
        """Every column as a list, null as None; needs no other package."""
    def to_polars(self) -> Any:
        """A `polars.DataFrame`."""
    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`, by PyArrow."""
    def to_arrow(self) -> Any:
        """A `pyarrow.Table`."""

@final
class Stop:
    """Ends runs that were given it."""

    def __new__(cls) -> Stop: ...
    def set(self) -> None:
        """Every run that was given it ends soon, with KeyboardInterrupt."""

@final
class Plan:
    """The runs of a sweep: homes, each with seeds."""

    def __new__(cls, home: Home, cells: list[list[tuple[str, str]]]) -> Plan: ...
    def with_seeds(self, seeds: list[list[int]]) -> Plan:
        """The same homes; `seeds[cell]` are those of each cell. ValueError: more than a sweep may have."""
    def __len__(self) -> int: ...
    @property
    def seed(self) -> int:
        """The first seed: that of the first home."""
    def run(self, run: int) -> tuple[int, int]:
        """(cell, seed) of a run."""
    def key(self, run: int) -> str:
        """SHA-256 of all that decides the report of a run, 64 digits."""
    def values(self, cell: int) -> list[tuple[str, str]]:
        """(key, value) of what a cell varies."""
    def digest(self) -> str:
        """SHA-256 over the keys of all runs, 64 digits."""
    def figures(self, chosen: list[str] | None = None) -> list[str]:
        """Checks names of figures; without any the usual ones. ValueError names those near an unknown one."""

@final
class Store:
    """A folder of finished runs, as `lasthop sweep -o FOLDER/` has it. OSError: it cannot be read or written."""

    PACK: int
    def __new__(cls, root: str | PathLike[str]) -> Store: ...
    @staticmethod
    def is_at(root: str | PathLike[str]) -> bool:
        """Whether a folder is a store."""
    @property
    def root(self) -> Any:
        """The folder, a `pathlib.Path`."""
    def missing(self, plan: Plan) -> list[int]:
        """The runs of `plan` that are not there."""
    def put(self, key: str, report: str) -> None:
        """Keeps a report, compact JSON, under the key of its run; written aside, then renamed."""
    def get(self, key: str) -> str | None:
        """The report of a run as compact JSON; None: it is not there."""
    def pack(self, plan: Plan, stretch: int) -> None:
        """Packs runs `stretch * PACK` to `(stretch + 1) * PACK` of a plan into one file, if all of them are there."""
    def values(self, plan: Plan, name: str) -> list[float | None]:
        """The figure `name` of every run of the plan, in its order; None where a run has none."""
    def write_table(self, plan: Plan, names: list[str], path: str | PathLike[str]) -> bool:
        """Writes a table of these figures to `path` as Parquet, and the manifest; False: both were there already."""
    def stream(self, plan: Plan, names: list[str]) -> object:
        """The rows of a plan as a capsule of the Arrow PyCapsule interface, read batch by batch."""
    @staticmethod
    def work(
        home: Home, seeds: list[int], root: str | None = None, mark: str | None = None, stop: Stop | None = None
    ) -> list[str] | None:
        """What a worker does: runs a home with seeds and keeps each in the store at `root` as soon as it is done. None; or, where it does not see
        that folder (there is no file `mark` in it), the reports."""

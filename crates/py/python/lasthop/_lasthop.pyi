# The extension module: homes, runs, reports, plans and stores. What users need of it stands in `lasthop`.
# Docstrings stand here alone: the build takes them into the module (`build.rs`), where `help()` finds them.

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
    """What a law of congestion control moves; `Law` says when."""

    cwnd: float
    """Congestion window, segments, 1 to 1e6; a value beyond becomes the limit."""
    ssthresh: float
    """Slow start threshold, segments, 2 or more, infinite at first; a value beyond becomes the limit."""

@final
class Ack:
    """An acknowledgment of something new, as `Law.on_ack` is given it."""

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
        """Smoothed round trip (RFC 6298), s; 0 before the first sample."""
    @property
    def cwnd_limited(self) -> bool:
        """Whether the congestion window, not the receiver's, held the sender back."""

@final
class Home:
    """A home that can be run: a scenario, its traces, and what was set. Never changed; equal homes give equal reports.

    Made by `lasthop.load` and `lasthop.parse`. Can be pickled, and takes its traces along; a notebook shows its flows as a table.
    """

    @staticmethod
    def load(path: str | PathLike[str]) -> Home:
        """The home of a scenario's file; `lasthop.load` takes names of packaged scenarios, too.

        Args:
            path: the file. Traces that it names are read beside it, at once.

        Returns:
            The home.

        Raises:
            ValueError: the file cannot be read or is wrong: file, line, key, and what would be right.
        """
    @staticmethod
    def parse(text: str, file: str = "scenario.toml") -> Home:
        """The home of a scenario's text.

        Args:
            text: TOML; every key is in `schema/scenario.toml`.
            file: what errors call it; traces are looked for beside it.

        Returns:
            The home.

        Raises:
            ValueError: file, line, key, and what would be right.
        """
    def set(self, keys: Mapping[str, Any] | None = None, **named: Any) -> Home:
        """The home with keys changed, as `--set` of `lasthop sim` changes them; this one stays as it is.

        `set(wifi__queue__limit=1000)`, `set({"station.N3.distance": "20m"})`, `set({"flow.*.start": "1s"})`.

        Args:
            keys: dotted keys and their values. Text is read as `--set` reads it (`"20m"`, `"none"`, `'{ capacity = "learn" }'`);
                numbers, booleans, mappings and lists are written as TOML; None takes the key away. Of two values of one key the
                later wins.
            named: the same with `__` for the dot, after `keys`.

        Returns:
            The other home.

        Raises:
            ValueError: a key is unknown or a value wrong, in the words of `lasthop sim`.
        """
    def check(self) -> None:
        """Refuses what the simulator does not carry: homes of the emulator alone.

        Raises:
            ValueError: the key, and what would be right.
        """
    def run(
        self,
        seed: int | None = None,
        trace: bool = False,
        series: bool = False,
        laws: dict[str, Callable[[str], Law]] | None = None,
        stop: Stop | None = None,
    ) -> Report:
        """Simulates the home from its start to its end.

        The interpreter's lock is not held: threads run homes at once. Ctrl-C ends a run of the main thread.

        Args:
            seed: of all random numbers, 0 to 2**64-1; None: the scenario's. One seed gives one report on every machine.
            trace: whether to keep a row per change of a sender or a queue, thinned to 1 ms, and a row per packet of flows that are not
                TCP: `Report.trace`. 100 bytes a row.
            series: whether to keep the course of each flow in 600 stretches of time, and the distribution of its delays:
                `Report.series`, `Report.queue_series`, `Report.delays`.
            laws: of a flow over TCP by its name, or of every other such flow (`"*"`): what, called with the flow's name, gives its law
                of congestion control, in place of the scenario's. One to two microseconds a call; what the law raises ends the run.
            stop: ends the run when it is set from another thread.

        Returns:
            What the run gave.

        Raises:
            ValueError: the simulator does not carry what the home asks for, or a seed or the name of a flow is wrong.
            KeyboardInterrupt: Ctrl-C, or `stop` was set.
            MemoryError: a trace of more than 40 million rows.
        """
    def key(self, seed: int | None = None) -> str:
        """SHA-256 of all that decides the report: scenario, traces' contents, what was set, seed, revision. A store keeps it by this.

        Args:
            seed: 0 to 2**64-1; None: the scenario's.

        Returns:
            64 hexadecimal digits.
        """
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
    """What a run gave: every field of `schema/report.md`. Equal if the runs were, however long they took.

    `report["flows.ftp.goodput_bps"]` is one of `figures()`; `flows.`, `stations.` and `queues.` in front, and the unit behind, may be
    left out (`report["ftp.goodput"]`), and a KeyError names those near it. Units stand at the end of a name: `_bps` bit/s, `_s` s,
    `_ms` ms; delays and sojourns are in ms, rates of loss and shares are 0 to 1, the rest are counts. Can be pickled, with its tables; a
    notebook shows a row per flow.
    """

    def to_dict(self) -> dict[str, Any]:
        """The report as the JSON of `lasthop sim --json`: the same fields, the same values.

        Returns:
            Nested mappings and lists; `flows`, `stations` and `queues` are lists with a mapping for each.
        """
    def to_json(self) -> str:
        """The text of `lasthop sim --json`.

        Returns:
            JSON, indented.
        """
    def figures(self) -> dict[str, Any]:
        """Every scalar by its name, as the columns of a sweep: `flows.ftp.goodput_bps`.

        Returns:
            Numbers, truth values and text by name, some hundred; None: there is no population (no packet arrived, for example).
        """
    def __getitem__(self, name: str, /) -> Any: ...
    @property
    def scenario(self) -> str:
        """The scenario's name."""
    @property
    def seed(self) -> int:
        """The seed of the run, 0 to 2**64-1."""
    @property
    def flows(self) -> list[str]:
        """Names of the flows, in the order of the report."""
    @property
    def wall_s(self) -> float:
        """How long the run took, s of this machine's time; in a report of a store 0."""
    @property
    def events(self) -> int:
        """How many events the simulator handled."""
    @property
    def trace(self) -> Table:
        """What senders and queues did: one row per change, thinned to 1 ms, and one per delivered packet of a flow that is not TCP.

        What a row does not have is null; `schema/report.md` says more, at `--trace`.

        Columns:
            t_s: since the start, s; of a delivered packet when it was sent.
            flow, queue: whose row it is (dictionary).
            cwnd, ssthresh: of the sender, segments.
            offered_window, clamped_window: what the receiver offers and what the access point left of it, bytes.
            inflight: sent and not yet acknowledged, bytes.
            queue_packets: what waits, packets.
            rate_bps: payload that arrived for the first time, bit/s.
            bandwidth_bps: what the sender takes its path to carry, bit/s.
            delay_ms: of a delivered packet, one way, ms.

        Raises:
            ValueError: the run was without `trace=True`.
        """
    @property
    def series(self) -> Table:
        """The course of each of the first 24 flows: 600 rows each, one per stretch of equal length; null: nothing was seen in it.

        Columns:
            flow: its name (dictionary).
            t_s: where the stretch begins, s since the start.
            delay_mean_ms, delay_max_ms: one way, ms.
            goodput_bps: payload that arrived for the first time, bit/s.
            cwnd_bytes, offered_bytes, allowed_bytes: means over time of congestion window, of what the receiver offers, and of what the
                access point left of that, bytes.

        Raises:
            ValueError: the run was without `series=True`.
        """
    @property
    def queue_series(self) -> Table:
        """What waits at the access point for its stations, with the packet in service: 600 rows, one per stretch of equal length.

        Columns:
            t_s: where the stretch begins, s since the start.
            packets_mean, packets_max: over the stretch, packets.

        Raises:
            ValueError: the run was without `series=True`.
        """
    @property
    def delays(self) -> Table:
        """The distribution of one-way delays of the packets that the report counts: up to 1,001 rows for each of the first 24 flows.

        Columns:
            flow: its name (dictionary).
            fraction: 0 to 1 by 0.001.
            delay_ms: so large a share of the packets took at most so long, ms; within 0.1 % of the true delay.

        Raises:
            ValueError: the run was without `series=True`.
        """
    @staticmethod
    def _of(text: str, trace: Table | None = None, series: tuple[Table, Table, Table] | None = None) -> Report: ...
    def _kept(self) -> str: ...
    def _repr_html_(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Table:
    """Rows and columns that a run has given; `len()` is the number of rows.

    Polars, pandas, DuckDB and PyArrow take it as it is, numbers without a copy (Arrow PyCapsule interface): `polars.DataFrame(table)`,
    `pyarrow.table(table)`, `pandas.DataFrame.from_arrow(table)` (pandas 3). Can be pickled.
    """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...
    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
    def to_dict(self) -> dict[str, list[Any]]:
        """Every column as a list; needs no other package.

        Returns:
            Lists of one length by name; null is None.
        """
    def to_polars(self) -> Any:
        """As a frame of Polars.

        Returns:
            A `polars.DataFrame`.
        """
    def to_pandas(self) -> Any:
        """As a frame of pandas, by PyArrow.

        Returns:
            A `pandas.DataFrame`.
        """
    def to_arrow(self) -> Any:
        """As a table of PyArrow.

        Returns:
            A `pyarrow.Table`.
        """

@final
class Stop:
    """Ends runs: given to `Home.run(stop=..)` in one thread, set in another."""

    def __new__(cls) -> Stop: ...
    def set(self) -> None:
        """Every run that was given it ends soon, with KeyboardInterrupt."""

@final
class Plan:
    """The runs of a sweep: homes, each with seeds, in the order of the rows; `len()` is how many. `lasthop.sweep` makes one.

    Args:
        home: what all of them vary.
        cells: for each home the (dotted key, value as `--set` takes it) that it varies, all the same keys.

    Raises:
        ValueError: a key or a value is refused, in the words of `lasthop sweep`.
    """

    def __new__(cls, home: Home, cells: list[list[tuple[str, str]]]) -> Plan: ...
    def with_seeds(self, seeds: list[list[int]]) -> Plan:
        """The same homes with these seeds.

        Args:
            seeds: of each home its seeds, 0 to 2**64-1.

        Returns:
            The other plan.

        Raises:
            ValueError: more than ten million runs.
        """
    def __len__(self) -> int: ...
    @property
    def seed(self) -> int:
        """The seed of the first home, 0 to 2**64-1."""
    def run(self, run: int) -> tuple[int, int]:
        """Which run this is.

        Args:
            run: its row, from 0.

        Returns:
            (cell, seed).

        Raises:
            ValueError: there are not so many.
        """
    def key(self, run: int) -> str:
        """SHA-256 of all that decides the report of a run, as `Home.key`.

        Args:
            run: its row, from 0.

        Returns:
            64 hexadecimal digits.
        """
    def values(self, cell: int) -> list[tuple[str, str]]:
        """What a home of the plan varies.

        Args:
            cell: which, from 0.

        Returns:
            (key, value as `--set` takes it) of each varied key.
        """
    def digest(self) -> str:
        """SHA-256 over the keys of all runs.

        Returns:
            64 hexadecimal digits.
        """
    def figures(self, chosen: list[str] | None = None) -> list[str]:
        """Checks names of figures.

        Args:
            chosen: names, shorter names, names with `*`; `["all"]`: every figure; None: the usual ones, fewer than 40.

        Returns:
            Them, or the usual ones.

        Raises:
            ValueError: a name chooses nothing; names near it.
        """
    def figure(self, name: str) -> str:
        """The whole name of one figure.

        Args:
            name: it, or without `flows.`, `stations.` or `queues.` in front, or without the unit behind.

        Returns:
            The name as in `Report.figures()`.

        Raises:
            ValueError: there is no such figure, or that is several; names near it.
        """

@final
class Store:
    """A folder of finished runs, as `lasthop sweep -o FOLDER/` has it. `lasthop.sweep` reads and writes one.

    Args:
        root: the folder; made if it is not there.

    Raises:
        OSError: it cannot be read or written.
        ValueError: it holds something else.
    """

    PACK: int
    """Runs of a plan that are packed into one file."""
    def __new__(cls, root: str | PathLike[str]) -> Store: ...
    @staticmethod
    def is_at(root: str | PathLike[str]) -> bool:
        """Whether a folder is a store.

        Args:
            root: the folder.

        Returns:
            Whether it is.
        """
    @property
    def root(self) -> Any:
        """The folder, a `pathlib.Path`."""
    def missing(self, plan: Plan) -> list[int]:
        """The runs of a plan that are not there.

        Args:
            plan: all of them.

        Returns:
            Their rows, from 0, ascending.
        """
    def put(self, key: str, report: str) -> None:
        """Keeps a report, written aside, then renamed.

        Args:
            key: of its run, 64 hexadecimal digits.
            report: compact JSON, with `run.wall_s` 0.

        Raises:
            OSError: it cannot be written.
        """
    def get(self, key: str) -> str | None:
        """The report of a run.

        Args:
            key: of the run, 64 hexadecimal digits.

        Returns:
            Compact JSON; None: it is not there.
        """
    def pack(self, plan: Plan, stretch: int) -> None:
        """Packs runs `stretch * PACK` to `(stretch + 1) * PACK` of a plan into one file, if all of them are there.

        Args:
            plan: whose runs.
            stretch: which of them, from 0.
        """
    def values(self, plan: Plan, name: str) -> list[float | None]:
        """One figure of every run of a plan.

        Args:
            plan: whose runs.
            name: the whole name of the figure.

        Returns:
            A number per run, in the order of the rows and the unit of the name; None where a run has none.
        """
    def write_table(self, plan: Plan, names: list[str], path: str | PathLike[str]) -> bool:
        """Writes the rows of a plan as Parquet, and the manifest.

        Args:
            plan: a row for each of its runs.
            names: figures, as `Plan.figures` gives them.
            path: where to.

        Returns:
            False: both were there already.
        """
    def stream(self, plan: Plan, names: list[str]) -> object:
        """The rows of a plan, read batch by batch.

        Args:
            plan: a row for each of its runs.
            names: figures, as `Plan.figures` gives them.

        Returns:
            A capsule of the Arrow PyCapsule interface.
        """
    @staticmethod
    def work(
        home: Home, seeds: list[int], root: str | None = None, mark: str | None = None, stop: Stop | None = None
    ) -> list[str] | None:
        """What a worker does: runs a home with seeds and keeps each report as soon as it is done.

        Args:
            home: what to run.
            seeds: each 0 to 2**64-1.
            root: the store's folder.
            mark: a file in it, by which a worker knows that it sees that folder.
            stop: ends the runs.

        Returns:
            None; or, where the folder is not seen, the reports as compact JSON.
        """

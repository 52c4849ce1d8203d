"""Traces and series as Arrow: the program's lines, without copies."""

import json
import math

import lasthop
import polars
import pyarrow


def test_a_trace_is_the_programs_lines(home, scenario, program, tmp_path):
    path = tmp_path / "trace.jsonl"
    program("sim", scenario, "--seed", 5, "--trace", path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    rows = home.run(seed=5, trace=True).trace.to_arrow().to_pylist()
    assert len(lines) > 1000
    assert [{name: value for name, value in row.items() if value is not None} for row in rows] == lines


def test_numbers_are_not_copied(home):
    trace = home.run(trace=True).trace
    one, other = pyarrow.table(trace), pyarrow.table(trace)
    for name in ("t_s", "cwnd", "inflight"):
        address = [table.column(name).chunk(0).buffers()[1].address for table in (one, other)]
        assert address[0] == address[1], name


def test_polars_pandas_and_duckdb_take_a_table(home):
    import duckdb
    import pandas

    trace = home.run(trace=True).trace
    frame = polars.DataFrame(trace)
    assert frame.height == len(trace) == len(trace.to_pandas()) and frame.columns == trace.columns
    assert frame.filter(polars.col("flow") == "ftp").height > 100
    # From pandas 3 on; to_pandas() asks PyArrow.
    assert len(pandas.DataFrame.from_arrow(trace)) == len(trace)
    # DuckDB finds what is called `trace` by its name.
    assert duckdb.sql("select count(*) from trace").fetchall() == [(len(trace),)]


def test_series_agree_with_the_report(home):
    report = home.run(seed=3, series=True)
    series, delays = report.series.to_polars(), report.delays.to_polars()
    ftp = series.filter(polars.col("flow") == "ftp")
    assert ftp.height == 600
    # Payload that arrived over the whole run, counted once by stretches and once by the report's meter.
    assert math.isclose(ftp["goodput_bps"].mean(), report["ftp.goodput_bps"], rel_tol=0.02)
    game = delays.filter(polars.col("flow") == "game-down")
    assert game["fraction"][0] == 0.0 and game["fraction"][-1] == 1.0 and game["delay_ms"].is_sorted()
    for name, at in (("min", 0.0), ("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
        value = game.filter(polars.col("fraction") == at)["delay_ms"][0]
        assert math.isclose(value, report[f"game-down.delay.{name}"], rel_tol=2e-3), name
    # With the packet in service, which the report's queue does not count.
    waiting = report.queue_series.to_polars()["packets_max"].max()
    assert 0 <= waiting - report["AP to stations.max_packets"] <= 1


def test_a_table_says_what_it_is(home):
    trace = home.run(trace=True).trace
    assert isinstance(trace, lasthop.Table) and repr(trace).startswith(f"<lasthop.Table of {len(trace)} rows: t_s, flow, queue")

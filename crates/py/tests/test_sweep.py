"""Sweeps: one row per run, whoever ran it, however often it was stopped."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import lasthop
import polars
import pytest

GRID = {"wifi.queue.limit": [5, 200], "control.window": ["none", {"capacity": "learn"}]}


def digest(path):
    """Of the table's bytes."""
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def test_a_row_per_run_in_the_order_of_the_grid(home, tmp_path):
    runs = lasthop.sweep(home, GRID, seeds=3, store=tmp_path / "out")
    frame = runs.to_polars()
    assert len(runs) == frame.height == 12 and frame.width < 40
    assert frame["wifi.queue.limit"].to_list() == [5] * 6 + [200] * 6 and frame["seed"].to_list() == [3, 4, 5] * 4
    assert frame["control.window"][:6].to_list() == ["none"] * 3 + ['{ capacity = "learn" }'] * 3
    alone = home.set({"wifi.queue.limit": 200, "control.window": {"capacity": "learn"}}).run(seed=4)
    assert runs.report(10) == alone and frame["flows.ftp.goodput_bps"][10] == alone["ftp.goodput_bps"]
    assert polars.read_parquet(runs.path).equals(frame)
    assert runs.to_arrow().num_rows == len(runs.to_pandas()) == 12
    every = runs.choose("all").to_polars()
    assert every.width > 60 and "run.wall_s" not in every.columns
    array = runs.to_xarray("flows.game-down.added_delay.p99")
    assert array.dims == ("wifi.queue.limit", "control.window", "seed") and array.shape == (2, 2, 3)
    assert float(array.sel({"wifi.queue.limit": 200, "seed": 4})[1]) == alone["game-down.added_delay.p99"]
    assert "<table>" in runs._repr_html_()


def test_what_is_wrong_is_refused_before_the_first_run(home, tmp_path):
    for grid, why in (({"wifi.attempts": [1, "many"]}, "with wifi.attempts=many: .*wifi.attempts"), ({"wifi.quue": [1]}, "wifi.quue")):
        with pytest.raises(ValueError, match=why):
            lasthop.sweep(home, grid, store=tmp_path / "out")
    with pytest.raises(ValueError, match="near it are ftp.goodput_bps"):
        lasthop.sweep(home, figures="ftp.goodputt", store=tmp_path / "out")
    with pytest.raises(ValueError, match="near it are ftp.goodput_bps"):
        lasthop.sweep(home, until=lasthop.Until("ftp.goodputt"), store=tmp_path / "out")
    for seeds, why in ((0, "at least one"), ([], "at least one"), ([3, 3], "3 stands there twice"), ([-1], "from 0 to")):
        with pytest.raises(ValueError, match=f"seeds: .*{why}"):
            lasthop.sweep(home, seeds=seeds, store=tmp_path / "out")
    for values, why in (([], "at least one"), ([5, "5"], "`5` stands there twice")):
        with pytest.raises(ValueError, match=f"grid: wifi.queue.limit: .*{why}"):
            lasthop.sweep(home, {"wifi.queue.limit": values}, store=tmp_path / "out")
    # Seeds are no axis of the grid: its rows would all have the first one's.
    with pytest.raises(ValueError, match="seeds are varied by seeds=N"):
        lasthop.sweep(home, {"seed": [1, 2]}, store=tmp_path / "out")
    wrong = [{"grid": {"wifi.queue.limit": values}} for values in ("50", 50, {"a": 1})]
    for arguments in (*wrong, {"grid": ["a"]}, {"seeds": 2.0}, {"until": "ftp.goodput"}, {"executor": 5}):
        with pytest.raises(TypeError, match=f"{next(iter(arguments))}: "):
            lasthop.sweep(home, **arguments, store=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(ValueError, match="is no store of a sweep, and holds thesis.tex"):
        lasthop.sweep(home, store=tmp_path / "mine")


def test_what_is_there_is_not_run_again_and_more_is_added(home, tmp_path, monkeypatch):
    lasthop.sweep(home, GRID, seeds=2, store=tmp_path / "out")
    ran = []
    from lasthop import _sweep

    kept = _sweep._work
    monkeypatch.setattr(_sweep, "_work", lambda home, sets, seeds, *rest, **more: ran.extend(seeds) or kept(home, sets, seeds, *rest, **more))
    before = (tmp_path / "out" / "table.parquet").stat()
    lasthop.sweep(home, GRID, seeds=2, store=tmp_path / "out")
    assert ran == [] and (tmp_path / "out" / "table.parquet").stat().st_ino == before.st_ino
    lasthop.sweep(home, GRID, seeds=3, store=tmp_path / "out")
    assert ran == [5] * 4
    lasthop.sweep(home, GRID, seeds=3, store=tmp_path / "fresh")
    assert digest(tmp_path / "out" / "table.parquet") == digest(tmp_path / "fresh" / "table.parquet")


@pytest.mark.parametrize("kind", ["threads", "processes", "executorlib"])
def test_every_executor_gives_the_same_bytes(home, tmp_path, kind):
    expected = lasthop.sweep(home, GRID, seeds=2, store=tmp_path / "own")
    if kind == "threads":
        executor = concurrent.futures.ThreadPoolExecutor(2)
    elif kind == "processes":
        import multiprocessing

        executor = concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))
    else:
        executor = pytest.importorskip("executorlib").SingleNodeExecutor(max_workers=2)
    with executor:
        runs = lasthop.sweep(home, GRID, seeds=2, executor=executor, store=tmp_path / "out")
    assert digest(runs.path) == digest(expected.path)


def test_what_an_executor_raises_comes_out_and_what_was_finished_stays(home, tmp_path):
    class Once:
        """Runs one task, then has nothing but errors."""

        _max_workers = 1
        ran = 0

        def submit(self, work, *arguments):
            future = concurrent.futures.Future()
            if self.ran:
                future.set_exception(ConnectionError("the cluster went away"))
            else:
                future.set_result(work(*arguments))
            self.ran += 1
            return future

    with pytest.raises(ConnectionError, match="the cluster went away"):
        lasthop.sweep(home, GRID, seeds=2, executor=Once(), store=tmp_path / "out")
    kept = list((tmp_path / "out" / "runs").glob("*/*.json"))
    assert len(kept) == 1
    runs = lasthop.sweep(home, GRID, seeds=2, store=tmp_path / "out")
    assert digest(runs.path) == digest(lasthop.sweep(home, GRID, seeds=2, store=tmp_path / "own").path)


def test_a_temporary_store_goes_with_its_runs(home):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runs = lasthop.sweep(home)
        folder, other = runs.store.root, runs.choose("all")
        del runs
        assert other.to_arrow().num_rows == 1
        del other
    assert not folder.exists()


def test_workers_that_do_not_see_the_store_send_their_reports(home, tmp_path):
    class Far:
        """Runs what it is given as a machine without the client's disk would."""

        _max_workers = 1

        def submit(self, work, home, sets, seeds, root, mark):
            future = concurrent.futures.Future()
            future.set_result(work(home, sets, seeds, "/nonexistent" + root, mark))
            return future

    far = lasthop.sweep(home, GRID, seeds=2, executor=Far(), store=tmp_path / "far")
    near = lasthop.sweep(home, GRID, seeds=2, store=tmp_path / "near")
    assert digest(far.path) == digest(near.path)


def test_the_program_and_the_package_share_a_store(home, scenario, program, tmp_path):
    vary = ["--vary", "wifi.queue.limit=5,200", "--vary", 'control.window=none,{ capacity = "learn" }']
    _, said = program("sweep", scenario, *vary, "--seeds", 2, "-o", f"{tmp_path}/one/")
    assert "8 runs in" in said
    runs = lasthop.sweep(lasthop.load(scenario), GRID, seeds=2, store=tmp_path / "two")
    for name in ("table.parquet", "manifest.json"):
        assert digest(tmp_path / "one" / name) == digest(tmp_path / "two" / name), name
    _, said = program("sweep", scenario, *vary, "--seeds", 2, "-o", f"{tmp_path}/two/")
    assert "all 8 runs were in" in said
    program("sweep", scenario, *vary, "--seeds", 2, "-o", tmp_path / "rows.parquet")
    assert digest(tmp_path / "rows.parquet") == digest(runs.path)
    assert json.loads((tmp_path / "two" / "manifest.json").read_text())["table"]["sha256"] == digest(runs.path)


CLIENT = """
import sys, lasthop
if __name__ == "__main__":
    home = lasthop.load(sys.argv[1]).set(duration="8s")
    lasthop.sweep(home, {"wifi.queue.limit": [5, 50, 200]}, seeds=40, store=sys.argv[2])
"""


def test_a_killed_client_loses_nothing_that_was_finished(scenario, tmp_path):
    script = tmp_path / "client.py"
    script.write_text(CLIENT)
    child = subprocess.Popen([sys.executable, script, scenario, tmp_path / "out"])
    runs = tmp_path / "out" / "runs"
    until = time.monotonic() + 60
    while (done := sum(1 for _ in runs.glob("*/*.json"))) < 20 and time.monotonic() < until:
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    kept = {path: path.stat().st_ino for path in runs.glob("*/*.json")}
    assert 20 <= done <= len(kept) < 120
    home = lasthop.load(scenario).set(duration="8s")
    grid = {"wifi.queue.limit": [5, 50, 200]}
    plan = lasthop.Plan(home, [[("wifi.queue.limit", str(limit))] for limit in (5, 50, 200)])
    plan = plan.with_seeds([list(range(3, 43))] * 3)
    missing = lasthop.Store(tmp_path / "out").missing(plan)
    assert len(missing) == 120 - len(kept)
    lasthop.sweep(home, grid, seeds=40, store=tmp_path / "out")
    lasthop.sweep(home, grid, seeds=40, store=tmp_path / "fresh")
    for name in ("table.parquet", "manifest.json"):
        assert digest(tmp_path / "out" / name) == digest(tmp_path / "fresh" / name)
    names = [sorted(path.name for path in (tmp_path / store / "packs").iterdir()) for store in ("out", "fresh")]
    assert names[0] == names[1] and len(names[0]) == 1


FULL = """
import subprocess, sys, pathlib, lasthop
home, small, fresh = lasthop.load(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], check=True)
print("mounted", flush=True)
try:
    lasthop.sweep(home, seeds=40, store=small / "out")
    sys.exit("a full disk was no error")
except OSError as error:
    print(error)
kept = list((small / "out" / "runs").glob("*/*.json"))
print(len(kept), "kept,", sum(path.read_text().endswith("}\\n") for path in kept), "whole")
subprocess.run(["mount", "-o", "remount,size=8m", small], check=True)
runs, other = lasthop.sweep(home, seeds=40, store=small / "out"), lasthop.sweep(home, seeds=40, store=fresh)
print("same bytes:", pathlib.Path(runs.path).read_bytes() == pathlib.Path(other.path).read_bytes())
"""


def test_a_full_disk_is_an_error_and_what_was_there_stays(scenario, tmp_path):
    """In a mount namespace of its own, which a user may have, too; what was mounted there goes with it."""
    (tmp_path / "small").mkdir()
    alone = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else [])]
    arguments = [scenario, tmp_path / "small", tmp_path / "fresh"]
    done = subprocess.run([*alone, sys.executable, "-c", FULL, *arguments], capture_output=True, text=True, check=False)
    if not done.stdout.startswith("mounted"):
        pytest.skip(f"no small file system can be mounted: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    _, error, kept, same = done.stdout.splitlines()
    assert re.search("cannot be written.*No space left", error)
    count = re.fullmatch(r"(\d+) kept, (\d+) whole", kept)
    assert count and count[1] == count[2] != "0"
    assert same == "same bytes: True"


MPI = """
import sys, lasthop
from mpi4py.futures import MPIPoolExecutor
if __name__ == "__main__":
    with MPIPoolExecutor() as executor:
        lasthop.sweep(lasthop.load(sys.argv[1]), {"wifi.queue.limit": [5, 200]}, seeds=4, executor=executor, store=sys.argv[2])
    print(type(executor).__name__)
"""


def test_ranks_of_mpi_give_the_same_bytes(home, scenario, tmp_path):
    pytest.importorskip("mpi4py", exc_type=ImportError)
    if not (mpirun := shutil.which("mpirun")):
        pytest.skip("there is no mpirun (tools/install-deps try)")
    script = tmp_path / "client.py"
    script.write_text(MPI)
    # Open MPI asks whether root means it, and looks for ssh, also where all ranks are here.
    environment = os.environ | {f"OMPI_ALLOW_RUN_AS_ROOT{more}": "1" for more in ("", "_CONFIRM")} | {"OMPI_MCA_plm": "isolated"}
    command = [mpirun, "--oversubscribe", "-n", "3", sys.executable, "-m", "mpi4py.futures", script, scenario, tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)
    assert done.stdout.strip() == "MPIPoolExecutor", done.stderr
    alone = lasthop.sweep(home, {"wifi.queue.limit": [5, 200]}, seeds=4, store=tmp_path / "alone")
    assert digest(tmp_path / "out" / "table.parquet") == digest(alone.path)


def test_statistics_of_a_sweep(home, tmp_path):
    grid = {"wifi.queue.limit": [5, 200]}
    runs = lasthop.sweep(home, grid, seeds=10, store=tmp_path / "out")
    figure = "flows.game-down.added_delay.p99"
    few, many = runs.stats(figure)
    assert few.values == {"wifi.queue.limit": "5"} and few.n == 10
    values = runs.values(figure)
    assert few.mean == pytest.approx(sum(values[:10]) / 10) and many.mean > few.high
    made = runs.compare(figure, {"wifi.queue.limit": 5}, {"wifi.queue.limit": 200})
    assert made.is_sure and made.difference.mean == pytest.approx(many.mean - few.mean)
    with pytest.raises(ValueError, match="is 2 cells"):
        runs.compare(figure, {}, {"wifi.queue.limit": 200})
    with pytest.raises(ValueError, match=r"is no cell of the sweep; give a value of each of wifi.queue.limit \('5' or '200'\)"):
        runs.compare(figure, {"wifi.queue.limit": 7}, {"wifi.queue.limit": 200})
    assert runs.stats("game-down.added_delay.p99") == [few, many]
    for name, why in (("ftp.good", "near it are"), ("ftp.delay", "near it are"), ("scenario", "is text")):
        with pytest.raises(ValueError, match=why):
            runs.stats(name)


def test_seeds_until_the_interval_is_small(home, tmp_path):
    rule = lasthop.Until("flows.ftp.goodput_bps", within=0.02, least=4, step=2, most=20)
    runs = lasthop.sweep(home, {"wifi.queue.limit": [5, 200]}, until=rule, store=tmp_path / "out")
    for interval in runs.stats(rule.figure):
        assert interval.n >= rule.least
        assert interval.n == rule.most or interval.half <= interval.mean * 0.02
    # The same rule ends at the same seeds, and runs nothing for it.
    again = lasthop.sweep(home, {"wifi.queue.limit": [5, 200]}, until=rule, store=tmp_path / "out")
    assert again.plan.digest() == runs.plan.digest()

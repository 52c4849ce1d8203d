"""A scheduler of Dask and its workers, as processes; one of them is killed."""

import os
import pathlib
import signal
import threading
import time

import lasthop
import pytest

distributed = pytest.importorskip("distributed")


def test_a_killed_worker_costs_its_task_alone(scenario, tmp_path):
    home = lasthop.load(scenario).set(duration="20s")
    grid = {"wifi.queue.limit": [5, 50, 200]}
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    killed = []
    with cluster, distributed.Client(cluster) as client:
        workers = [worker.pid for worker in cluster.workers.values()]

        def kill():
            runs = tmp_path / "out" / "runs"
            while sum(1 for _ in runs.glob("*/*.json")) < 40:
                time.sleep(0.01)
            os.kill(workers[0], signal.SIGKILL)
            killed.append(sum(1 for _ in runs.glob("*/*.json")))

        thread = threading.Thread(target=kill, daemon=True)
        thread.start()
        runs = lasthop.sweep(home, grid, seeds=40, executor=client, store=tmp_path / "out")
        thread.join(10)
    assert killed and killed[0] < 120, "a third of the way"
    lasthop.sweep(home, grid, seeds=40, store=tmp_path / "alone")
    for name in ("table.parquet", "manifest.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()
    assert len(runs) == 120 and pathlib.Path(runs.path).is_file()

"""What the package costs beside the engine, and how it scales: python3 crates/py/benches/sweeps.py [PART..]

Parts: `cost` of a run, `threads` and `processes` on two cores, `memory` of sweeps, `dask` with 32 workers. Every thread's time that it
waited for a core that others had (Linux's run delay, /proc/thread-self/schedstat) is taken off, so that a machine that is shared gives
figures, too; what caches and memory lose to others stays in them. Prints Markdown.
"""

import concurrent.futures
import multiprocessing
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import lasthop

HOME = "homes/evening"
PAIRS, RUNS = 9, 20


def own_time():
    """(seconds on the wall, seconds that this thread waited for a core)."""
    _, waited, _ = pathlib.Path("/proc/thread-self/schedstat").read_text().split()
    return time.perf_counter(), int(waited) / 1e9


def work(seeds):
    """Runs a home with these seeds: seconds it took but for waiting for a core, and of those on a core."""
    home = lasthop.load(HOME)
    home.run(seeds[0])
    (wall, waited), cpu = own_time(), time.thread_time()
    for seed in seeds:
        home.run(seed)
    wall_after, waited_after = own_time()
    return wall_after - wall - (waited_after - waited), time.thread_time() - cpu


def cost():
    """Pairs of the same runs: by `Home.run`, and by a sweep into a store."""
    home, pairs, starts = lasthop.load(HOME), [], []

    def swept(seeds):
        with tempfile.TemporaryDirectory() as folder:
            since = time.process_time()
            lasthop.sweep(home, seeds=seeds, store=folder + "/out", workers=1)
            return time.process_time() - since

    for _ in range(PAIRS):
        since = time.process_time()
        for seed in range(1, RUNS + 1):
            home.run(seed)
        bare = time.process_time() - since
        # A sweep begins with one run, to know its figures' names: its cost is what more runs cost more.
        one = swept(range(1))
        pairs.append((bare / RUNS * 1e3, (swept(range(0, RUNS + 1)) - one) / RUNS * 1e3))
        starts.append(one * 1e3)
    bare, swept = (statistics.median(column) for column in zip(*pairs))
    more = sorted(b - a for a, b in pairs)
    yield f"a sweep of one run of `{HOME}`, which is two runs", f"{statistics.median(starts):.0f} ms"
    yield f"`Home.run` of `{HOME}`, processor time", f"{bare:.1f} ms a run"
    yield "the same in a sweep with a store, table included", f"{swept:.1f} ms a run"
    yield "what the sweep adds", f"{statistics.median(more):+.2f} ms a run ({more[1]:+.2f} to {more[-2]:+.2f}), {statistics.median(more) / bare:+.1%}"
    tiny = lasthop.load("theory/saturation").set(duration="10ms", measure_from="0s")
    since = time.process_time()
    for seed in range(1000):
        tiny.run(seed)
    yield "`Home.run` of 10 ms of `theory/saturation`, engine included", f"{time.process_time() - since:.3f} ms a run"


def scaling(pool):
    """How much sooner two workers are done than one, in turns."""
    ratios, costs = [], []
    seeds = [list(range(1 + RUNS * half, 1 + RUNS * (half + 1))) for half in range(2)]
    with pool(1) as one, pool(2) as two:
        for _ in range(PAIRS):
            alone = [one.submit(work, part).result() for part in seeds]
            both = [future.result() for future in [two.submit(work, part) for part in seeds]]
            ratios.append(sum(took for took, _ in alone) / max(took for took, _ in both))
            costs.append(sum(cpu for _, cpu in both) / sum(cpu for _, cpu in alone))
    ratios.sort()
    return f"{statistics.median(ratios):.2f} times ({ratios[1]:.2f} to {ratios[-2]:.2f}); processor time {statistics.median(costs):.2f} of one's"


def threads():
    """In one process."""
    yield f"two threads of one process, {2 * RUNS} runs of `{HOME}`", scaling(concurrent.futures.ThreadPoolExecutor)


def processes():
    """One thread each."""

    def pool(workers):
        return concurrent.futures.ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))

    yield f"two processes, {2 * RUNS} runs of `{HOME}`", scaling(pool)


SWEEP = """
import resource, sys, time, warnings, lasthop
warnings.simplefilter("ignore")
home = lasthop.load("theory/saturation").set(duration="10ms", measure_from="0s")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
lasthop.sweep(home, seeds=int(sys.argv[1]), store=sys.argv[2])
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(before // 1024, after // 1024, 1e3 * time.process_time() / int(sys.argv[1]))
"""


def memory():
    """Of sweeps whose runs are as small as runs get."""
    for runs in (10_000, 40_000, 100_000):
        with tempfile.TemporaryDirectory() as folder:
            said = subprocess.run([sys.executable, "-c", SWEEP, str(runs), folder + "/out"], capture_output=True, text=True, check=True).stdout
            disk = sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*") if path.is_file())
        before, after, each = said.split()
        yield f"a sweep of {runs:,} runs", f"{before} MB before, {after} MB at most; {float(each):.2f} ms of processor time a run; {disk / runs:.0f} B of disk a run"


def dask():
    """32 workers on this machine: what scheduling costs, by processor time of the client and of the scheduler, which is in its process."""
    import distributed

    home = lasthop.load("theory/saturation").set(duration="10ms", measure_from="0s")
    with distributed.LocalCluster(n_workers=32, threads_per_worker=1, dashboard_address=None) as cluster, distributed.Client(cluster) as client:
        futures = client.map(lambda x: x, range(64))
        client.gather(futures)
        since = time.process_time()
        client.gather(client.map(lambda x: x + 1, range(2000)))
        yield "Dask's scheduler and client, a task that does nothing, 32 workers", f"{(time.process_time() - since) / 2:.2f} ms of processor time"
        for runs in (10_000,):
            with tempfile.TemporaryDirectory() as folder:
                wall, since = time.perf_counter(), time.process_time()
                lasthop.sweep(home, seeds=runs, store=folder + "/out", executor=client)
                yield (
                    f"a sweep of {runs:,} runs of 10 ms, 32 workers: scheduler, client, packs and table",
                    f"{(time.process_time() - since) / runs * 1e3:.2f} ms of processor time a run; {time.perf_counter() - wall:.0f} s",
                )


PARTS = {"cost": cost, "threads": threads, "processes": processes, "memory": memory, "dask": dask}


def main():
    """Prints a table of the parts asked for."""
    warnings.simplefilter("ignore")
    wanted = sys.argv[1:] or list(PARTS)
    model = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    load = os.getloadavg()[0]
    print(f"# The Python package beside the engine, {lasthop.REVISION}\n")
    print(f"By `python3 crates/py/benches/sweeps.py {' '.join(sys.argv[1:])}` with the wheel of `make wheel`, on {model}, {os.cpu_count()} cores,", end=" ")
    print(f"Linux {platform.release()}, Python {platform.python_version()}; load average {load:.1f} at the start. Medians of {PAIRS}, in", end=" ")
    print("parentheses the second least and the second greatest.\n\n| what | measured |\n|---|---|", flush=True)
    for part in wanted:
        for what, measured in PARTS[part]():
            print(f"| {what} | {measured} |", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What a learned capacity does, cell by cell, in the simulator: one game beside greedy TCP over 54 Mbit/s.

    tools/study/learn_grid.py [--binary FILE] [--only cc=cubic,rtt=30,..] [--capacity learn] [--json FILE]

A cell is a sender, a round trip, a number of flows, a direction and a place of the queue: the access point's (1,000 packets,
or the station's for uploads), the radio's firmware (1,000 packets behind FQ-CoDel), a line of 20 Mbit/s with 500 ms of buffer.
Each is played without control and with it; `truth` is what one CUBIC flow gets alone over 30 ms with queues that never
overflow, IP bytes: what the hop carries does not depend on how many share it, but sixteen flows overflow any queue, and
duplicate ACKs cost air.
"""

import argparse
import itertools
import json
import statistics
from pathlib import Path

import simulated

AXES = {
    "cc": ["cubic", "newreno", "bbr"],
    "rtt": [10, 30, 80, 200],
    "flows": [1, 2, 4, 16],
    "direction": ["down", "up"],
    "place": ["ap", "firmware", "line"],
}
# Downloads begin here; the game was there before.
START = 2
LASTS = 20


def home(cell, control, game=True, lasts=LASTS):
    """The home of a cell; `control`: what C is, None without."""
    line = {"delay": f"{cell['rtt'] / 4}ms"}
    wifi = {"rate": "54Mbit/s", "queue": {"kind": "fifo", "limit": 1000}, "station_queue": {"kind": "fifo", "limit": 1000}}
    if cell["place"] == "line":
        packets = 20_000_000 // 2 // 8 // 1500
        line |= {"rate_down": "20Mbit/s", "rate_up": "20Mbit/s", "buffer_down": packets, "buffer_up": packets}
    if cell["place"] == "firmware":
        wifi |= {"firmware_queue": 1000, "queue": {"kind": "fq_codel", "limit": 1000}}
    ends = {"down": ("W", "S"), "up": ("S", "W")}
    (source, to) = ends[cell["direction"]]
    flows = [{"name": "bulk", "from": source, "to": to, "kind": "ftp", "cc": cell["cc"], "count": cell["flows"], "start": f"{START}s"}]
    if game:
        flows.append({"name": "game-down", "from": "W", "to": "G", "kind": "game-server"})
        flows.append({"name": "game-up", "from": "G", "to": "W", "kind": "game-client"})
    result = {
        "format": 1,
        "name": "cell",
        "duration": f"{START + lasts}s",
        "measure_from": f"{START}s",
        "wan": line,
        "wifi": wifi,
        "server": [{"name": "W", "delay": f"{cell['rtt'] / 4}ms"}],
        "station": [{"name": "S"}, {"name": "G"}],
        "flow": flows,
    }
    if control:
        result["control.window"] = {"capacity": control}
    return result


def truths(simulator, cells):
    """IP Mbit/s by direction and place."""
    keys = sorted({(cell["direction"], cell["place"]) for cell in cells})

    def one(key):
        direction, place = key
        cell = {"cc": "cubic", "rtt": 30, "flows": 1, "direction": direction, "place": "line" if place == "line" else "ap"}
        alone = home(cell, None, game=False)
        alone["measure_from"] = f"{START + 5}s"
        for queue in ("queue", "station_queue"):
            alone["wifi"][queue]["limit"] = simulated.DEEP
        if place == "line":
            alone["wan"] |= {"buffer_down": simulated.DEEP, "buffer_up": simulated.DEEP}
        return simulated.rate(simulator.play(alone), direction=direction)

    return dict(zip(keys, simulator.all(one, keys, "truths")))


def table(cells, results):
    columns = f"{'cc':8}{'rtt':>4}{'flows':>6} {'direction':10}{'place':9}{'goodput':>9}{'off':>7}{'on':>7}{'p50 on':>8}{'p99 off':>9}{'p99 on':>8}{'truth':>7}{'C':>7}{'C/truth':>9}  queue is"
    print(columns)
    for cell, r in zip(cells, results):
        learned, ratio = (f"{r['C']:7.2f}", f"{r['C'] / r['truth']:9.3f}") if r["C"] else (f"{'-':>7}", f"{'-':>9}")
        print(
            f"{cell['cc']:8}{cell['rtt']:4}{cell['flows']:6} {cell['direction']:10}{cell['place']:9}{r['ratio']:9.3f}"
            f"{r['off']:7.2f}{r['on']:7.2f}{r['p50_on']:8.2f}{r['p99_off']:9.1f}{r['p99_on']:8.2f}{r['truth']:7.2f}"
            f"{learned}{ratio}  {r['queue'] or ''}"
        )
    bad = sum(r["ratio"] < 0.97 for r in results), sum(r["p99_on"] > 5 for r in results)
    off_c = [r for r in results if r["C"] and abs(r["C"] / r["truth"] - 1) > 0.03]
    print(
        f"{len(results)} cells: goodput on/off median {statistics.median(r['ratio'] for r in results):.3f}, under 0.97 in {bad[0]};"
        f" game p99 over 5 ms in {bad[1]}; C more than 3 % off in {len(off_c)}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path)
    parser.add_argument("--only", default="", help="cc=cubic,rtt=10|30,place=ap")
    parser.add_argument("--capacity", default="learn")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("-j", type=int, dest="jobs")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    axes = dict(AXES)
    for each in filter(None, arguments.only.split(",")):
        key, _, wanted = each.partition("=")
        axes[key] = [type(AXES[key][0])(word) for word in wanted.split("|")]
    cells = [dict(zip(axes, values)) for values in itertools.product(*axes.values())]
    simulator = simulated.Simulator(arguments.binary, arguments.jobs)
    truth = truths(simulator, cells)
    median = lambda values: statistics.median(values)  # noqa: E731

    def one(cell):
        runs = {
            control: [simulator.play(home(cell, control), seed=seed + 1) for seed in range(arguments.seeds)]
            for control in (None, arguments.capacity)
        }
        off, on = runs[None], runs[arguments.capacity]
        carried = {which: median([simulated.goodput(run) for run in which_runs]) for which, which_runs in runs.items()}
        heard = [c for run in on if (c := simulated.learned(run, cell["direction"]))]
        p99 = lambda some: median([simulated.worst(run) for run in some])  # noqa: E731
        return {
            "off": carried[None],
            "on": carried[arguments.capacity],
            "ratio": carried[arguments.capacity] / max(carried[None], 1e-9),
            "p99_off": p99(off),
            "p99_on": p99(on),
            "p50_on": median([simulated.worst(run, "p50") for run in on]),
            "truth": truth[cell["direction"], cell["place"]],
            "C": median(heard) if heard else None,
            "queue": simulated.place(on[0], cell["direction"]),
        }

    results = simulator.all(one, cells, "cells")
    table(cells, results)
    if arguments.json:
        arguments.json.write_text(json.dumps([cell | result for cell, result in zip(cells, results)], indent=1) + "\n")


if __name__ == "__main__":
    main()

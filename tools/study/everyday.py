#!/usr/bin/env python3
"""Everyday cases outside the homes of the book, without window control and with it, in the simulator: one table.

    tools/study/everyday.py [--binary FILE] [--seeds 3] [--only idle,change] [--json FILE]

Scenarios of scenarios/everyday, some with other numbers. Medians over the seeds: goodput of the bulk flows in each direction, Mbit/s; the
game's delay, the worse of both directions, p99 and worst, ms; in cases with two bulk flows in one direction what each gets.
"""

import argparse
import json
import statistics
from pathlib import Path

import odd
import simulated

FOLDER = simulated.ROOT / "scenarios" / "everyday"
SLOW = [f"bridge.rate={odd.port(6)['rate']}"]
# Scenario, what is set besides, the words of it.
CASES = [
    *(("idle", [f"flow.idle.count={n}"], f"{n} idle") for n in (1, 5, 20, 60)),
    ("pollers", [], "at 20"),
    ("pollers", SLOW, "at 6"),
    ("sessions", [], "5 sessions"),
    ("push", [], "15 push, 5 half-closed, 1 tiny"),
    ("upload-slow-line", [], "20/2"),
    ("upload-shared", [], "60, line 50/5"),
    ("each-way", [], "20/2"),
    ("many", [], "30 + 30, line 50/5"),
    ("change", ["change=none", "duration=10s"], "at 100"),
    ("change", ["measure_from=10s", "duration=20.001s"], "then at 10"),
    ("change", ["measure_from=20s"], "then at 100"),
    ("longer-path", [], "at 50, +20 ms"),
    ("longer-path", ['flow.bulk.from="A"', 'flow.bulk.to="W"'], "upload at 50, +20 ms"),
    *(("bunches", [f"bridge.delivery_interval={ms}ms"], f"every {ms} ms") for ms in (5, 10, 20)),
    ("bunches", ['flow.bulk.from="A"', 'flow.bulk.to="W"'], "upload, every 10 ms"),
    ("first-second", [], "at 20"),
    ("first-second", SLOW, "at 6"),
    ("quic", [], "TCP and QUIC at 20"),
    ("existing", [], "at 20, control from 3 s"),
]
SMALL = {"idle", "poll", "session", "push", "half", "tiny", "game"}


def is_bulk(flow):
    return flow["name"].partition("-")[0].partition(".")[0] not in SMALL


def metrics(report):
    bulk = {direction: [f for f in simulated.flows(report, direction=direction) if is_bulk(f)] for direction in ("down", "up")}
    each = [f["goodput_bps"] / 1e6 for flows in bulk.values() for f in flows]
    games = [f["added_delay"] for f in report["flows"] if f["name"].startswith("game") and f["added_delay"]]
    return {
        "down": sum(f["goodput_bps"] for f in bulk["down"]) / 1e6,
        "up": sum(f["goodput_bps"] for f in bulk["up"]) / 1e6,
        "p99": max(delay["p99"] for delay in games),
        "worst": max(delay["max"] for delay in games),
        "each": each if 1 < len(each) < 4 else [],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", help="names of scenarios: idle,change")
    parser.add_argument("--json", type=Path)
    parser.add_argument("-j", type=int, dest="jobs")
    arguments = parser.parse_args()
    cases = [case for case in CASES if arguments.only is None or case[0] in arguments.only.split(",")]
    simulator = simulated.Simulator(arguments.binary, arguments.jobs)

    def one(case):
        name, sets, words = case
        result = {"case": name, "what": words}
        for which, off in (("off", ["control.window=none"]), ("on", [])):
            runs = [metrics(simulator.play(FOLDER / f"{name}.toml", sets + off, seed + 1)) for seed in range(arguments.seeds)]
            result[which] = {key: statistics.median(run[key] for run in runs) for key in ("down", "up", "p99", "worst")}
            result[which]["each"] = [statistics.median(values) for values in zip(*(run["each"] for run in runs))]
        return result

    results = simulator.all(one, cases, "cases")
    print(f"{'case':18}{'':32}{'down':>7}{'on':>7}{'up':>8}{'on':>7}{'p99':>9}{'on':>8}{'worst':>9}{'on':>8}  each")
    for r in results:
        off, on = r["off"], r["on"]
        each = " ".join(f"{before:.2f}->{after:.2f}" for before, after in zip(off["each"], on["each"]))
        print(
            f"{r['case']:18}{r['what']:32}{off['down']:7.2f}{on['down']:7.2f}{off['up']:8.2f}{on['up']:7.2f}"
            f"{off['p99']:9.1f}{on['p99']:8.1f}{off['worst']:9.1f}{on['worst']:8.1f}  {each}"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

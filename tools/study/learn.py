"""What `capacity = "learn"` does with real kernels, in the emulator: goodput, waiting, and the capacity beside the truth.

    learn.py --binary LASTHOP [--parts down,quic] [--runs 3] [--only cc=cubic,rtt=10|80] [-j 2] [--keep-traces] [--out FOLDER]

Runs as root. A run is some ten seconds in real time; each is kept in bench-results/study/learn/REVISION.jsonl as it ends, and is not
played again. Writes bench-results/learn-REVISION.{json,md}: medians of valid runs. On a busy machine: `chrt -r 1 python3 ..`.
`--capacity 98%` plays the same with a capacity that is given.
"""

import argparse
import concurrent.futures
import json
import os
import subprocess
import threading
from pathlib import Path

import learn_plan as plan
import learn_table
import simulated
from common import OUT, Unusable, emulate, give_back, keep, machine, say, until_usable

LATE_MS = 20.0


class Study:
    """Where runs go, and those that are there already."""

    def __init__(self, wanted):
        self.binary, self.wanted = wanted.binary.resolve(), wanted
        self.revision = subprocess.run([self.binary, "--version"], capture_output=True, text=True, check=True).stdout.strip().split("(")[-1].rstrip(")").split(",")[0]
        self.folder = wanted.out / "study" / "learn"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = self.folder / f"{self.revision}.jsonl"
        self.lock = threading.Lock()
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.rows = [json.loads(line) for line in lines]

    def play(self, part, cell, run):
        """Plays it once, unless it was played, and keeps what came of it."""
        name = plan.key(cell)
        if any((row["part"], row["cell"], row["run"]) == (part, name, run) for row in self.rows):
            return
        try:
            row = until_usable(name, lambda: self.once(part, cell, name, run))
        except Unusable:
            return
        with self.lock:
            self.rows.append(row)
            with self.file.open("a") as file:
                file.write(json.dumps(row) + "\n")
        say(f"{part} {run} {name}: {row['goodput']:.2f} Mbit/s, p99 {row['p99'] or 0:.1f} ms, C {row['c'] and round(row['c'], 2)}")

    def once(self, part, cell, name, run):
        here = self.folder / f"{part}-{name.replace(' ', ',')}-{run}"
        files = {end: here.with_name(f"{here.name}.{end}") for end in ("toml", "log", "trace", "said")}
        files["toml"].write_text(simulated.toml(plan.home(cell)))
        more = ["--seed", run, "--log", files["said"]]
        traced = "step" in cell or self.wanted.keep_traces
        more += ["--trace", files["trace"]] if traced else []
        report = emulate(self.binary, files["toml"], {}, [], files["log"], more)
        row = {"revision": self.revision, "part": part, "cell": name, "run": run, **axes(cell), **figures(report, cell), **heard(files["said"], cell)}
        if "step" in cell:
            row |= step(files["trace"])
        if not self.wanted.keep_traces:
            for file in files.values():
                file.unlink(missing_ok=True)
        return row


def axes(cell):
    return {key: value for key, value in cell.items() if key not in ("begins", "lasts", "measure", "game")}


def figures(report, cell):
    """Of a report: Mbit/s and ms."""
    direction = cell.get("direction", "down")
    of = {kind: simulated.goodput(report, {kind}, direction) for kind in ("ftp", "quic")}
    bulk = [flow for flow in report["flows"] if flow["name"].split(".")[0] in ("bulk", "quic")]
    control = report.get("control") or {}
    return {
        "goodput": sum(of.values()),
        "quic_goodput": of["quic"],
        "rate": simulated.rate(report, simulated.ELASTIC, direction),
        "p50": simulated.worst(report, "p50"),
        "p99": simulated.worst(report, "p99"),
        "max": simulated.worst(report, "max"),
        "lost": sum(flow["lost"][place] for flow in bulk for place in flow["lost"]),
        "fairness": report["fairness"]["goodput"],
        "lag_p99": report["run"]["lag_ms"]["p99"],
        "place_says": simulated.place(report, direction),
        "decisions": control.get("decisions"),
    }


def heard(file, cell):
    """C as the controller had it, Mbit/s: at the end, and least and most from two seconds of load on."""
    direction, from_s = cell.get("direction", "down"), cell.get("begins", plan.START) + 2
    found = []
    for line in map(json.loads, file.read_text().splitlines()):
        control = (line.get("status") or {}).get("control")
        if control and line["t_s"] >= from_s:
            learned = control.get(f"capacity_{direction}_bps") or control["capacity_bps"]
            found.append(learned["last"] / 1e6)
    if not found or not cell.get("control"):
        return {"c": None, "c_least": None, "c_most": None}
    return {"c": found[-1], "c_least": min(found), "c_most": max(found)}


def step(trace):
    """Of a run whose link changed: when the game was well again, s after the change, and what the download got when."""
    game, arrived = [], {}
    with trace.open(encoding="utf-8") as file:
        next(file)
        for line in map(json.loads, file):
            if line["flow"].startswith("game"):
                game.append((line["flow"], line["t_s"], line["delay_ms"]))
            elif line.get("data_ms") and line["flow"].startswith("bulk"):
                bin_at = int((line["t_s"] + line["data_ms"] / 1e3) * 10)
                arrived[bin_at] = arrived.get(bin_at, 0) + line["bytes"]
    least = {flow: min(delay for name, _, delay in game if name == flow) for flow in {name for name, *_ in game}}
    added = sorted((at, delay - least[flow]) for flow, at, delay in game if at >= plan.CHANGE)
    last = max(arrived, default=0)
    return {"well_s": well(added), "rates": [arrived.get(i, 0) * 80 / 1e6 for i in range(plan.CHANGE * 10 - 10, last)]}


def well(added):
    """The least time after the change from which on at most 1 % of the packets waited longer than LATE_MS."""
    late = [i for i, (_, ms) in enumerate(added) if ms > LATE_MS]
    for rest, i in enumerate(late):
        if len(late) - rest <= (len(added) - i) / 100:
            return 0.0 if rest == 0 else added[late[rest - 1]][0] - plan.CHANGE
    return added[late[-1]][0] - plan.CHANGE if late else 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--parts", default="")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="cc=cubic,rtt=10|80")
    parser.add_argument("--capacity", default="learn")
    parser.add_argument("-j", type=int, dest="jobs", default=1)
    parser.add_argument("--keep-traces", action="store_true", help="keep scenario, log and trace of every run")
    parser.add_argument("--out", type=Path, default=OUT)
    wanted = parser.parse_args()
    wanted.out = wanted.out.resolve()
    if os.geteuid() != 0:
        raise SystemExit("the emulator makes network namespaces: run this as root")
    every = plan.parts(wanted.capacity)
    names = wanted.parts.split(",") if wanted.parts else list(every)
    if unknown := set(names) - set(every):
        raise SystemExit(f"there is no part {', '.join(sorted(unknown))}; there are: {' '.join(every)}")
    only = [each.partition("=")[::2] for each in filter(None, wanted.only.split(","))]
    study = Study(wanted)
    is_wanted = lambda cell: all(str(cell.get(key)) in values.split("|") for key, values in only)  # noqa: E731
    with concurrent.futures.ThreadPoolExecutor(wanted.jobs) as pool:
        todo = [(part, cell, run) for run in range(1, wanted.runs + 1) for part in names for cell in every[part] if is_wanted(cell)]
        list(pool.map(lambda it: study.play(*it), todo))
    results = {"study": "learn", "revision": study.revision, "machine": machine(), "capacity": wanted.capacity, "rows": study.rows}
    text = learn_table.text(results)
    print(text)
    say(f"written: {keep(wanted.out, 'learn', results, text)}")
    give_back(wanted.out)


if __name__ == "__main__":
    main()

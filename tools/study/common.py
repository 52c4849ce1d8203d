"""What both studies share: their arguments, the home in the emulator, the runs, the table, the file of results."""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "bench-results"
UNPACKED = OUT / "study" / "root"

# How a study calls the queues, and what the scenario calls them.
QUEUES = {
    "fifo": {"kind": "fifo"},
    "fq_codel": {"kind": "fq_codel"},
    "chap": {"kind": "chap", "flow": "connection", "increment": "4ms"},
    "chap-hosts": {"kind": "chap", "flow": "hosts", "increment": "4ms"},
    "chap-16ms": {"kind": "chap", "flow": "connection", "increment": "16ms"},
}
SHOWN = {
    "fifo": "FIFO",
    "fq_codel": "FQ-CoDel",
    "chap": "CHAP, a flow per connection, I = 4 ms",
    "chap-hosts": "CHAP, a flow per pair of hosts and protocol, I = 4 ms",
    "chap-16ms": "CHAP, a flow per connection, I = 16 ms",
}
ATTEMPTS = 3


class Unusable(Exception):
    """A run from which no figure can be taken."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def queue_sets(queue):
    """What `--set` makes both queues of the bridge `queue`."""
    keys = QUEUES[queue].items()
    return {f"bridge.{which}.{key}": value for which in ("queue", "station_queue") for key, value in keys}


def window_sets(window):
    """What `--set` makes the download's receiver offer `window` segments; None: what the scenario says."""
    return {} if window is None else {"flow.download.window": window}


def offered(results):
    """Of results whose download's receiver offered other than the scenario's window: a sentence; else nothing."""
    window = results.get("window")
    return [] if window is None else ["", f"The download's receiver offers {window} segments (`--window {window}`)."]


def arguments(study, description, amount, count, short):
    """The parser of a study with `--AMOUNT` for how often each is measured; `short` says what `--short` does."""
    parser = argparse.ArgumentParser(
        prog=f"{study}.py", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument(f"--{amount}", type=int, default=count)
    parser.add_argument("--window", type=int, help="segments that the download's receiver offers; else the scenario's")
    parser.add_argument("--queues", type=lambda text: text.split(","), default=list(QUEUES))
    parser.add_argument("--out", type=lambda text: Path(text).resolve(), default=OUT)
    parser.add_argument(
        "--add-to", type=Path, help="results of the same revision and machine, to which these are added"
    )
    parser.add_argument("--short", action="store_true", help=f"{short}, FIFO and CHAP: whether it works")
    return parser


def fresh(folder):
    """`folder`, empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def first_second(wanted, download):
    """From when on is measured: without the download the programs are up, with it slow start is over and the queue is full.

    The short form asks whether it works, not for figures: the queue is full after two seconds.
    """
    return wanted.first[wanted.short][download]


def played(wanted, queue, download, seconds, own):
    """What `--set` makes the scenario with `queue`, with the download or without it, for so many seconds; `own` is the study's."""
    sets = {"duration": f"{seconds:.0f}s", "measure_from": f"{first_second(wanted, download):.0f}s", **own, **queue_sets(queue)}
    return sets | (window_sets(wanted.window) if download else {"flow.download": "none"})


def runs(wanted, measure):
    """(queue, download or not, what `measure` gave for it), for every queue wanted."""
    begun = False
    for queue in wanted.queues:
        # Without a download no queue stands: in short, one run tells it for all.
        for download in (True,) if wanted.short and begun else (False, True):
            begun = True
            what = f"{SHOWN[queue]}, {'with the download' if download else 'idle'}"
            say(what)
            yield queue, download, until_usable(what, lambda q=queue, d=download: measure(q, d, wanted))


def run_cell(queue, download, report, **own):
    """What both tables have of a run, beside the study's own."""
    return {
        "queue": queue,
        "download": download,
        **own,
        "download_mbps": goodput(report, "download"),
        "queue_mean_packets": report["queues"][0]["mean_packets"],
        "lag_p99_ms": report["run"]["lag_ms"]["p99"],
    }


def finish(wanted, results, table):
    """Prints the table of `results`, joined with earlier ones where that was asked for, and writes both."""
    results = joined(results, wanted.add_to)
    text = table(results)
    print(text)
    say(f"written: {keep(wanted.out, file_name('study-' + results['study'], wanted), results, text)}")
    give_back(wanted.out)


def emulate(binary, scenario, sets, programs, log, more=()):
    """The report of one run of `scenario`; `programs` are pairs of host and command, `more` further arguments.

    As root: servers at ports below 1024, real-time priorities, and folders of root's, to which the study belongs.
    """
    command = [str(binary), "emulate", str(ROOT / scenario), "--json", "-", *map(str, more)]
    for key, value in sets.items():
        command += ["--set", f"{key}={value}"]
    for host, line in programs:
        command += ["--exec-as-root", f"{host}: {line}"]
    with open(log, "wb") as words:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=words, check=False, preexec_fn=go_first
        )
    if done.returncode != 0:
        tail = Path(log).read_text(errors="replace").strip().splitlines()[-5:]
        why = f"the run ended with {done.returncode}:\n    " + "\n    ".join(tail)
        raise SystemExit(why) if done.returncode == 2 else Unusable(why)
    report = json.loads(done.stdout)
    if not report["run"]["valid"]:
        raise Unusable(f"the machine was too busy: p99 lag {report['run']['lag_ms']['p99']:.2f} ms")
    return report


def go_first():
    """Before whatever else the machine does: browser and servers are a home's, with a processor each."""
    try:
        os.nice(-10)
    except PermissionError:
        pass


def until_usable(what, run):
    """`run()`, again when it gave no figure, ATTEMPTS times at most."""
    for attempt in range(ATTEMPTS):
        try:
            return run()
        except Unusable as why:
            say(f"  {what}: {why}")
            if attempt + 1 == ATTEMPTS:
                raise
    return None


def mean_and_spread(values):
    """Mean and standard deviation, as the paper's figure 4 has them, and the median."""
    return {
        "n": len(values),
        "mean": statistics.fmean(values),
        "deviation": statistics.stdev(values) if len(values) > 1 else 0.0,
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
    }


def joined(results, earlier):
    """`results` with the cells of an earlier file, which was measured at the same revision on the same machine."""
    if earlier is None:
        return results
    before = json.loads(earlier.read_text())
    for key in ("study", "revision", "machine", "programs", "window"):
        if before.get(key) != results.get(key):
            raise SystemExit(f"{earlier} has another {key}: {before.get(key)}")
    mine = {cell["queue"] for cell in results["cells"]}
    return {**results, "cells": [cell for cell in before["cells"] if cell["queue"] not in mine] + results["cells"]}


def goodput(report, flow):
    """Mbit/s of payload; None when the flow was not there."""
    return next((f["goodput_bps"] / 1e6 for f in report["flows"] if f["name"] == flow), None)


def machine():
    """The processor, how many, and the kernel: what a reader needs to judge a figure."""
    model = platform.processor() or platform.machine()
    cores = 0
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model, cores = line.split(":", 1)[1].strip(), cores + 1
    return f"{model}, {cores} cores, {platform.system()} {platform.release()}"


def version(*command):
    """The first line that a program says of itself."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0].strip() if lines else "?"


def file_name(study, wanted):
    """What the results of a study are called, before the revision; another window's are apart from the study's own."""
    window = "" if wanted.window is None else f"window-{wanted.window}-"
    return f"{window}{study}{'-short' if wanted.short else ''}"


def keep(out, name, results, text):
    """Writes `results` and the table beside it into `out`; returns where."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}-{results['revision']}"
    path.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
    path.with_suffix(".md").write_text(text)
    return path.with_suffix(".md")


def give_back(path):
    """What root wrote belongs to whoever called sudo."""
    owner, group = os.environ.get("SUDO_UID"), os.environ.get("SUDO_GID")
    if os.geteuid() == 0 and owner and group:
        for each in [path, *path.rglob("*")]:
            os.chown(each, int(owner), int(group), follow_symlinks=False)

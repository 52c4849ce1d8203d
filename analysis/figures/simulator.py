"""Asks the `lasthop` binary for sweeps and traces, and keeps what it gave.

Results lie under a folder named by the binary's content, a file named by the scenario's content and the arguments: a
changed program or scenario is run again, anything else is read back. A sweep that was broken off goes on where it was.
"""

import hashlib
import json
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "scenarios"


class Failed(Exception):
    """A command did not do what it was asked; the text is what it said."""


@dataclass(frozen=True)
class Run:
    """One run with its trace: the report, and the lines of `--trace`."""

    report: dict
    lines: list

    def flow(self, name):
        """The report of one flow."""
        return next(flow for flow in self.report["flows"] if flow["name"] == name)

    def curve(self, name, field, scale=1.0):
        """`[(t_s, value)]` of one field of one flow or queue, as often as it changed."""
        return [
            (line["t_s"], line[field] * scale)
            for line in self.lines
            if name in (line.get("flow"), line.get("queue")) and line.get(field) is not None
        ]


class Simulator:
    """The binary, its cache, and how many seeds a sweep gets at most."""

    def __init__(self, binary, cache, most_seeds=None, say=print):
        self.binary = Path(binary)
        self.most_seeds = most_seeds
        self.say = say
        self.read = {}
        self.folder = Path(cache) / hashlib.sha256(self.binary.read_bytes()).hexdigest()[:16]

    def sweep(self, scenario, vary, seeds=20):
        """Every combination of `vary` ({key: value, or list of values}) with seeds 1..seeds: a list of rows.

        A row maps a key that has a list, `seed`, or a report's field (`flows.ftp.goodput_bps`) to a number, a text or None.
        """
        seeds = min(seeds, self.most_seeds or seeds)
        arguments = ["sweep", f"scenarios/{scenario}.toml"]
        for key, value in vary.items():
            varied = isinstance(value, (list, tuple))
            values = ",".join(str(one) for one in value) if varied else value
            arguments += ["--vary" if varied else "--set", f"{key}={values}"]
        arguments += ["--seeds", str(seeds), "--figures", "all"]
        path = self._place(scenario, arguments, ".rows.jsonl")
        if path not in self.read:
            # Also when the file is there: only the sweep knows whether all of its rows are.
            self._call(arguments + ["-o", str(path)])
            self.read[path] = read_rows(path)
        return self.read[path]

    def trace(self, scenario, settings, seed=1):
        """One run with everything that changed in it."""
        arguments = ["sim", f"scenarios/{scenario}.toml", "--seed", str(seed)]
        for key, value in settings.items():
            arguments += ["--set", f"{key}={value}"]
        lines = self._place(scenario, arguments, ".jsonl")
        report = lines.with_suffix(".json")
        if not report.exists():
            part = report.with_suffix(".part")
            self._call(arguments + ["--trace", str(lines), "--json", str(part)])
            part.rename(report)
        with lines.open(encoding="utf-8") as file:
            return Run(json.loads(report.read_text(encoding="utf-8")), [json.loads(line) for line in file])

    def _place(self, scenario, arguments, ending):
        text = (SCENARIOS / f"{scenario}.toml").read_bytes()
        name = hashlib.sha256(text + "\0".join(arguments).encode()).hexdigest()[:16]
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / f"{scenario.replace('/', '-')}-{name}{ending}"

    def _call(self, arguments):
        self.say("  " + shlex.join(["lasthop", *arguments]))
        done = subprocess.run(
            [self.binary, *arguments],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise Failed(f"{shlex.join(['lasthop', *arguments])}\n{done.stderr.strip()}")


def read_rows(path):
    """The rows of a sweep's JSON lines, which may differ in what they hold; what reads as a number is one."""
    with Path(path).open(encoding="utf-8") as file:
        return [{key: number(value) for key, value in json.loads(line).items()} for line in file]


def number(text):
    """`text` as int or float where it is one, None where it is empty; what is no text stays."""
    if not isinstance(text, str):
        return text
    if text == "":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def where(rows, **keys):
    """The rows whose varied keys have these values; `wifi__attempts=4` stands for `wifi.attempts`."""
    wanted = {key.replace("__", "."): value for key, value in keys.items()}
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def column(rows, field):
    """One field of every row; rows without it are left out."""
    return [row[field] for row in rows if row.get(field) is not None]

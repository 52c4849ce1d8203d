"""What the studies in the simulator share: a home as tables, runs side by side, figures out of reports."""

import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A queue that no flow of these homes fills for want of places.
DEEP = 4000
# No run takes so long, s: what does hangs.
LONGEST = 120
REALTIME = {"game-server", "game-client", "audio", "voip", "video", "video-chat"}
ELASTIC = {"ftp", "web", "quic"}


def say(text):
    print(text, file=sys.stderr, flush=True)


def binary():
    """The release binary of this tree."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "release" / "lasthop"


def value(v):
    """`v` as TOML writes it."""
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, dict):
        return "{ " + ", ".join(f"{json.dumps(key) if '.' in key else key} = {value(each)}" for key, each in v.items()) + " }"
    return json.dumps(v) if isinstance(v, str) else str(v)


def toml(home):
    """A home of tables, lists of tables and values as the text of a scenario."""
    lines = [f"{key} = {value(v)}" for key, v in home.items() if not is_table(key, v)]
    for key, table in home.items():
        if not is_table(key, table):
            continue
        for each in table if isinstance(table, list) else [table]:
            lines += ["", f"[[{key}]]" if isinstance(table, list) else f"[{key}]"]
            lines += [f"{k} = {value(v)}" for k, v in each.items()]
    return "\n".join(lines) + "\n"


def is_table(key, v):
    return isinstance(v, list) or (isinstance(v, dict) and key != "set")


class Simulator:
    """Plays homes, as many at a time as there are processors."""

    def __init__(self, program=None, jobs=None):
        self.program = str(program or binary())
        self.jobs = jobs or os.cpu_count() or 1
        self.folder = tempfile.TemporaryDirectory(prefix="lasthop-homes-")

    def play(self, home, sets=(), seed=None):
        """The report of one run: of a file, of the text of one, or of a home as tables."""
        path = home
        if not isinstance(home, Path):
            text = toml(home) if isinstance(home, dict) else home
            handle, name = tempfile.mkstemp(suffix=".toml", dir=self.folder.name)
            with os.fdopen(handle, "w") as file:
                file.write(text)
            path = Path(name)
        command = [self.program, "sim", str(path), "--json", "-"]
        command += [] if seed is None else ["--seed", str(seed)]
        for each in sets:
            command += ["--set", each]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=LONGEST)
        except subprocess.TimeoutExpired:
            kept = Path(tempfile.gettempdir()) / "lasthop-endless.toml"
            kept.write_text(path.read_text())
            raise SystemExit(f"{kept} has not ended after {LONGEST} s: {' '.join(command)}") from None
        if path is not home:
            path.unlink()
        if done.returncode != 0:
            words = done.stderr.decode(errors="replace").strip()
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{words[-2000:]}")
        return json.loads(done.stdout)

    def all(self, work, items, what="runs"):
        """`work(item)` of each, in their order."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            results, items = [], list(items)
            for done, result in enumerate(pool.map(work, items), 1):
                results.append(result)
                if sys.stderr.isatty() and (done % 10 == 0 or done == len(items)):
                    print(f"\r{done} of {len(items)} {what}", end="\n" if done == len(items) else "", file=sys.stderr)
            return results


def flows(report, kinds=None, direction=None):
    """Flows of `kinds`, on their path down (to a station) or up."""
    stations = {station["name"] for station in report["stations"]} - {"AP"}
    for flow in report["flows"]:
        goes = "down" if flow["to"] in stations else "up"
        if (kinds is None or flow["kind"] in kinds) and direction in (None, goes):
            yield flow


def goodput(report, kinds=ELASTIC, direction=None):
    """Payload of all of them, Mbit/s."""
    return sum(flow["goodput_bps"] for flow in flows(report, kinds, direction)) / 1e6


def rate(report, kinds=None, direction=None):
    """IP bytes of all of them, Mbit/s."""
    return sum(flow["rate_bps"] for flow in flows(report, kinds, direction)) / 1e6


def worst(report, quantile="p99", kinds=REALTIME, direction=None):
    """The largest added delay of any of them, ms; None where nothing arrived."""
    found = [flow["added_delay"][quantile] for flow in flows(report, kinds, direction) if flow["added_delay"]]
    return max(found, default=None)


def learned(report, direction, which="last"):
    """C at the end of the run, Mbit/s; None without control."""
    control = report.get("control") or {}
    capacity = control.get(f"capacity_{direction}_bps") or control.get("capacity_bps")
    return capacity[which] / 1e6 if capacity and capacity.get(which) else None


def place(report, direction):
    """Where the controller says that the queue is."""
    where = (report.get("control") or {}).get("queue_place") or {}
    return where.get(direction) if isinstance(where, dict) else where

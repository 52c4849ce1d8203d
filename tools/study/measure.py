"""`lasthop measure` in the emulator: kernel TCP downloads under the real controller, measured several times beside a real ping.

    python3 -B tools/study/measure.py --binary target/release/lasthop      as root; 8 minutes a run; `make study-measure`

Each run is an emulation of scenarios/bench/measure.toml of its own, in which `ping` of the system asks from the console all the time. What
ping saw in the blocks that count, less the shortest that it ever saw, stands beside what the controller says of them.
"""

import argparse
import json
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import ROOT

HOME = ROOT / "scenarios" / "bench" / "measure.toml"
HEAD = [
    "run", "seed", "pairs that count", "95 % wait without [ms]", "with [ms]", "ratio", "interval", "p", "carried, ratio", "interval",
    "grades", "p95 of pings without [ms]", "with [ms]", "ratio", "emulator late, p99 [ms]",
]  # fmt: skip


def pings(text):
    """[(time, ms)] of `ping -D`."""
    found = re.findall(r"^\[([0-9.]+)\].* time=([0-9.]+) ms", text, re.MULTILINE)
    return [(float(at), float(ms)) for at, ms in found]


def p95(values):
    return statistics.quantiles(values, n=100)[94]


def counted(report):
    """The blocks of pairs that count, by arm: [(begins, ends)] in s since the measurement began."""
    from_bps, plan = report["findings"]["loaded_from_bps"], report["plan"]

    def counts(block):
        rates = [rate for at, rate in zip(block["at_s"], block["rate_bps"]) if at > plan["discard_s"] + 0.5]
        loaded = sum(rate >= from_bps for rate in rates) >= 0.8 * len(rates)
        return loaded and "spoilt" not in block and block["waiting"]["count"] >= 20

    spans = {"on": [], "off": []}
    for pair in zip(report["blocks"][::2], report["blocks"][1::2]):
        if from_bps and all(counts(block) for block in pair):
            for block in pair:
                spans[block["arm"]].append((block["start_s"] + plan["discard_s"], block["start_s"] + block["at_s"][-1]))
    return spans


def run(given, number):
    """(report of measure, report of the emulation, what ping saw by arm)."""
    length = 2 * given.pairs * given.block + 25
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        socket, seen = folder / "home.sock", folder / "home.json"
        command = [given.binary, "emulate", HOME, "--seed", str(number), "--set", f"duration={length}s", "--socket", socket]
        command += ["--json", seen, "--exec-as-root", f"console: ping -D -n -i 0.05 $LASTHOP_arena > {folder}/ping"]
        emulation = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            while not socket.exists() and emulation.poll() is None:
                time.sleep(0.1)
            # Slow start is over, and what the hop carries is learned.
            time.sleep(8)
            words = [given.binary, "measure", "--pairs", given.pairs, "--block", f"{given.block}s", "--discard", f"{given.discard}s"]
            words += ["--seed", number, "--socket", socket, "--json", "-"]
            began = time.time()
            done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True, check=True)
            if given.keep:
                given.keep.mkdir(parents=True, exist_ok=True)
                (given.keep / f"measure-{number}.json").write_text(done.stdout, encoding="utf-8")
            emulation.wait()
        finally:
            if emulation.poll() is None:
                emulation.terminate()
                emulation.wait()
        if emulation.returncode:
            raise SystemExit(emulation.stderr.read())
        report, home = json.loads(done.stdout), json.loads(seen.read_text(encoding="utf-8"))
        asked = pings((folder / "ping").read_text(encoding="utf-8"))
    least = min(ms for _, ms in asked)
    spans = counted(report)
    within = lambda span: [ms - least for at, ms in asked if span[0] <= at - began <= span[1]]
    # As the report has it: of each block the percentile, of blocks the median.
    of_blocks = {arm: [p95(seen) for seen in map(within, spans[arm]) if len(seen) > 20] for arm in spans}
    return report, home, {arm: statistics.median(of) for arm, of in of_blocks.items() if of}


def row(number, report, home, waits):
    found = report["findings"]
    waiting, carried, grades = found["waiting"], found["throughput"], found["grades"]
    cells = [number, report["plan"]["seed"], f"{found['counted']} of {found['planned']}"]
    if waiting is None:
        cells += [""] * 8
    else:
        cells += [f"{waiting['off']:.1f}", f"{waiting['on']:.1f}", f"{waiting['ratio']:.3f}"]
        cells += [f"{waiting['low']:.3f} to {waiting['high']:.3f} ({waiting['level'] * 100:.1f} %)", f"{waiting['p']:.5f}"]
        cells += [f"{carried['ratio']:.3f}", f"{carried['low']:.3f} to {carried['high']:.3f}", f"{grades['off']} to {grades['on']}"]
    if len(waits) == 2:
        off, on = waits["off"], waits["on"]
        cells += [f"{off:.1f}", f"{on:.1f}", f"{on / off:.3f}"]
    else:
        cells += [""] * 3
    return [*cells, f"{home['run']['lag_ms']['p99']:.2f}"]


def line(cells):
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, type=lambda text: Path(text).resolve())
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--first", type=int, default=1, help="seed of the first run")
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--block", type=int, default=20, help="s")
    parser.add_argument("--discard", type=int, default=10, help="s")
    parser.add_argument("--keep", type=Path, help="folder for what each run measured, as JSON")
    given = parser.parse_args()
    version = subprocess.run([given.binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{version}, Linux {platform.release()}: `{' '.join(['tools/study/measure.py', *sys.argv[1:]])}`\n")
    line(HEAD)
    line(["---"] * len(HEAD))
    for number in range(given.first, given.first + given.runs):
        report, home, waits = run(given, number)
        line(row(number, report, home, waits))


if __name__ == "__main__":
    main()

"""The Snoop paper's comparison with a kernel's own senders, and the same file in the simulator, as a table.

    python3 -B tools/study/senders.py --binary target/release/lasthop      as root; minutes; `make study-senders`

MPEG streams over the network of scenarios/papers/snoop.toml (its standard timing), played by `lasthop emulate`; what the kernel has no
module for is left out and said. A row counts where the emulator was at most 1 ms late (p99); others are marked.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from common import ROOT

HOME = ROOT / "scenarios" / "papers" / "snoop.toml"
SENDERS = ["reno", "vegas", "westwood+", "veno", "cubic", "bbr"]
HEAD = ["flows", "sender", "goodput [Mbit/s]", "index", "in order", "delayed", "lost", "sent again by the sender", "by Snoop"]


def play(binary, host, sender, snoop, count, seconds):
    """A report, or the last line of what was said instead."""
    keys = {
        "server.A.count": count, "station.B.count": count, "flow.media.count": count, "flow.media.kind": "video",
        "flow.media.cc": sender, "wireless_link.snoop": str(snoop).lower(), "wireless_link.timing": "standard",
        "duration": f"{seconds}s",
    }
    sets = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [binary, host, "--json", report.name, *sets, HOME]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        text = Path(report.name).read_text(encoding="utf-8")
    return json.loads(text) if text else (done.stderr.strip().splitlines() or ["it said nothing"])[-1]


def row(report):
    flows = report["flows"]
    mean = lambda key: sum(flow.get(key) or 0 for flow in flows) / len(flows)
    snoop = report.get("snoop") or {}
    lag = report["run"].get("lag_ms")
    late = "" if not lag or lag["p99"] <= 1.0 else f" (not valid: {lag['p99']:.1f} ms late)"
    shares = [f"{mean(key):.3f}" for key in ("timely_index", "timely_in_order", "delayed_rate", "loss_rate")]
    goodput = sum(flow["goodput_bps"] for flow in flows) / 1e6
    again = sum(flow["tcp"]["retransmitted"] for flow in flows)
    return [f"{goodput:.2f}{late}", *shares, again, snoop.get("by_duplicates", 0) + snoop.get("by_timer", 0)]


def line(cells):
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--senders", nargs="+", default=SENDERS, metavar="CC")
    parser.add_argument("--flows", nargs="+", type=int, default=[1, 10, 40], metavar="N")
    parser.add_argument("--seconds", type=int, default=60)
    given = parser.parse_args()
    binary = Path(given.binary).resolve()
    line(HEAD)
    line(["---"] * len(HEAD))
    for count in given.flows:
        for sender in given.senders:
            for snoop in (False, True):
                name = f"{sender} + Snoop" if snoop else sender
                for what, host in (("kernel", "emulate"), ("simulator", "sim")):
                    report = play(binary, host, sender, snoop, count, given.seconds)
                    if isinstance(report, str):
                        print(f"left out: {name}, {what}: {report}", file=sys.stderr)
                    else:
                        line([count, f"{name}, {what}", *row(report)])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes the tables of book/src/kernels.md from what `tools/vm/test --log FILE` has written into FILE.

    tools/vm/table.py FILE [--book FILE|-]

A log is read line by line: `=== NAME` begins a kernel, `== CASE: passed, 3 s` ends a case, `FIGURE name value` is what a case
measured. Nothing else goes into the tables, and what was not tried says so.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "study"))

from marked import fill  # noqa: E402

BOOK = ROOT / "book" / "src" / "kernels.md"
KERNELS = Path(__file__).resolve().parent / "kernels.txt"
UNTRIED = "–"


def read(path):
    """Of each boot what it was, how its cases ended, and its figures."""
    boots, boot = {}, None
    head = "unknown"
    for line in path.read_text(errors="replace").splitlines():
        if line.startswith("Lasthop "):
            head = line
        elif match := re.match(r"=== (\S+)", line):
            boot = boots.setdefault(match[1], {"cases": {}, "figures": {}, "kernel": ""})
        elif boot is None:
            continue
        elif match := re.match(r"Kernel (\S+) \((\S+)\)", line):
            boot["kernel"] = match[1]
        elif match := re.match(r"== (\S+): (passed|skipped|FAILED)", line):
            boot["cases"][match[1]] = match[2]
        elif match := re.match(r"== (\S+)$", line):
            boot["cases"][match[1]] = "FAILED"   # until it has ended: its kernel may not live so long
        elif match := re.match(r"FIGURE (\S+) (.*)", line):
            boot["figures"][match[1]] = match[2]
    return head, boots


def figure(boot, name, form="{}", scale=None):
    value = boot["figures"].get(name)
    if value is None:
        return None
    return form.format(float(value) / scale if scale else value)


def case(boot, name, *parts):
    """What a case measured where it passed, else how it ended."""
    outcome = boot["cases"].get(name)
    if outcome is None:
        return UNTRIED
    if outcome != "passed":
        return f"**{outcome.lower()}**"
    return ", ".join(part for part in parts if part) or "yes"


def thousands(boot, name):
    value = boot["figures"].get(name)
    return f"{int(value):,}" if value else None


def kernels(boots):
    lines = [
        "| kernel | machine | BTF | programs load, hooks | ready after [s] | verified instructions, most | download without / with control [Mbit/s] | waiting without / with [kB] | ACKs lowered | CHAP |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    machines = {"uml": "amd64, User Mode Linux", "amd64": "amd64, QEMU", "arm64": "arm64, QEMU, Cortex-A53",
                "armhf": "armv7, QEMU, Cortex-A7"}
    for line in KERNELS.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name = line.split()[0]
        if name.split("-")[0] not in machines:
            continue   # counted on, not tried
        boot = boots.get(name)
        if boot is None:
            lines.append(f"| {name} | {machines[name.split('-')[0]]} |" + f" {UNTRIED} |" * 8)
            continue
        pair = lambda a, b, scale, form="{:.1f}": " / ".join(figure(boot, each, form, scale) or "?" for each in (a, b))
        lines.append("| " + " | ".join([
            boot["kernel"] or name,
            machines[name.split("-")[0]],
            figure(boot, "btf") or "?",
            case(boot, "load", figure(boot, "hooks")),
            case(boot, "load", figure(boot, "start_ms", "{:.1f}", 1000)),
            case(boot, "verifier", thousands(boot, "walked")),
            case(boot, "traffic", pair("off_bps", "on_bps", 1e6)),
            case(boot, "traffic", pair("off_waiting", "on_waiting", 1e3, "{:.0f}")),
            case(boot, "traffic", thousands(boot, "rewritten")),
            case(boot, "queue", f"{figure(boot, 'chap')}, {figure(boot, 'chap_bps', '{:.1f}', 1e6)} of 5 Mbit/s"),
        ]) + " |")
    return "\n".join(lines)


def bare(boots):
    lines = [
        "| bare root | debootstrap [s] | `apt-get install` [s] | `make demo` with all it installs and builds [s] | its demo on the kernel of that release | ACKs lowered there |",
        "|---|---|---|---|---|---|",
    ]
    for name in ("debian-12", "debian-13"):
        boot = boots.get(name)
        if boot is None:
            lines.append(f"| {name} |" + f" {UNTRIED} |" * 5)
            continue
        seconds = [figure(boot, each) or UNTRIED for each in ("debootstrap_s", "apt_s")]
        lines.append("| " + " | ".join([
            name, *seconds, case(boot, "make-demo", figure(boot, "demo_s")),
            case(boot, "demo", boot["kernel"]), case(boot, "demo", thousands(boot, "lowered")),
        ]) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--book", default=str(BOOK), help="- prints")
    arguments = parser.parse_args()
    head, boots = read(arguments.log)
    tables = {"kernels": kernels(boots), "bare": bare(boots)}
    if arguments.book == "-":
        print(head, *tables.values(), sep="\n\n")
        return
    fill(Path(arguments.book), "make vm-test", {name: f"{head}.\n\n{each}" for name, each in tables.items()})


main()

"""An outside world: the real `lasthop run` on a real kernel, between programs that others wrote.

    outside.py --binary LASTHOP --delay DELAY [--list] [--only NAME,..] [--groups everyday,homes] [--short] [--kernel uml-6.1]

Runs as root: makes network namespaces (see world.py), shapes them with tc, loads them with iperf3, aioquic, nginx, ssh and
others, and measures with irtt what a game feels; each cell without control and with it. Writes
bench-results/outside-REVISION.{json,md} anew after each cell: what was measured, and which bounds (judge.py) hold. Ends with 1
where one does not. What a cell's programs wrote stays in bench-results/study/outside/CELL. In User Mode Linux (--kernel, see
tools/vm/kernels.txt) there are queues that this kernel may lack; it is slow, so that times measured there are no bounds.
"""

import argparse
import fnmatch
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "study"))

import cells as matrix  # noqa: E402
import judge  # noqa: E402
import table  # noqa: E402
from common import OUT, give_back, keep, machine, say, version  # noqa: E402
from play import lateness, play  # noqa: E402
from world import Broken, lacking, program, sweep  # noqa: E402

SHORT_S = 10.0
ATTEMPTS = 3
# In a virtual machine rates are a quarter, so that it keeps up, and it may be later by so much.
GUEST_RATES, GUEST_LATE = 0.25, 10.0


def until_on_time(cell, control, wanted):
    """A run whose clocks were on time, the last of ATTEMPTS if there was none: then it says so."""
    folder = wanted.out / "study" / "outside" / cell.name / ("on" if control else "off")
    for attempt in range(ATTEMPTS):
        try:
            run = play(cell, control, wanted, folder)
        except Broken as why:
            if attempt + 1 == ATTEMPTS:
                raise
            say(f"    {why}; once more")
            continue
        run["late"] = lateness(run, wanted.late)
        if run["late"] is None:
            break
        say(f"    too late, {run['late']}" + ("; once more" if attempt + 1 < ATTEMPTS else "; kept, and marked"))
    return run


def middle(runs):
    """Of several runs the one in the middle, by what the game felt."""
    key = lambda run: (
        run["game"]["rest_p99"] if run["game"] and run["game"]["rest_p99"] is not None else run["mbps"]
    )  # noqa: E731
    return sorted(runs, key=key)[(len(runs) - 1) // 2]


def measure(cell, wanted, earlier):
    """The cell without control and with it, and its verdicts."""
    sides = {}
    for side in ("off", "on"):
        known = earlier.get(cell.name)
        is_same = known and (known["seconds"], known["home"]) == (cell.seconds, table.home(cell)) and "off" in known
        if side == "off" and is_same:
            sides[side] = known["off"]
            continue
        runs = [until_on_time(cell, side == "on", wanted) for _ in range(wanted.runs)]
        sides[side] = middle(runs)
        run = sides[side]
        game = f"game p99 {table.felt(run, 'first')}, then {table.felt(run, 'rest')} ms" if run["game"] else ""
        say(f"    {side:3} {run['mbps']:8.2f} Mbit/s  {game}")
    verdicts = judge.verdicts(cell, sides["off"], sides["on"])
    # Who may be late measures no times.
    verdicts = [each for each in verdicts if wanted.late <= 1 or each["unit"] != "ms"]
    for each in verdicts:
        if not each["ok"]:
            say(f"    fails: {table.verdict(each)}")
    return {
        "cell": cell.name,
        "group": cell.group,
        "seconds": cell.seconds,
        "home": table.home(cell),
        **sides,
        "bounds": table.bounds(cell),
        "verdicts": verdicts,
        "ok": all(each["ok"] for each in verdicts),
    }


def chosen(wanted):
    """The cells that were asked for, as long as was asked for."""
    if wanted.drawn is not None and wanted.drawn < 1:
        raise SystemExit("--drawn: at least 1 home of each kind")
    every = matrix.homes_drawn(wanted.drawn) if wanted.drawn else matrix.cells()
    if wanted.only:
        names = [name for words in wanted.only for name in words.split(",")]
        for name in names:
            if not any(matches(cell, name) for cell in every):
                raise SystemExit(f"there is no cell {name}; --list names them all, and * stands for any letters")
        every = [cell for cell in every if any(matches(cell, name) for name in names)]
    elif wanted.groups:
        groups = wanted.groups.split(",")
        if unknown := set(groups) - {cell.group for cell in every}:
            raise SystemExit(
                f"there is no group {', '.join(sorted(unknown))}; there are: {' '.join(dict.fromkeys(c.group for c in every))}"
            )
        every = [cell for cell in every if cell.group in groups]
    elif wanted.short and not wanted.drawn:
        every = [cell for cell in every if cell.group == "everyday"]
    seconds = wanted.seconds or (SHORT_S if wanted.short else None)
    if seconds and seconds < judge.FIRST_S + 3:
        raise SystemExit(
            f"--seconds: at least {judge.FIRST_S + 3:g}, since bounds differ before second {judge.FIRST_S:g} and after it"
        )
    # What happens at given times takes as long as it takes.
    is_timed = lambda cell: cell.change or cell.rtts or cell.hop_rtts or cell.control_at is not None  # noqa: E731
    every = [cell if seconds is None or is_timed(cell) else replace(cell, seconds=seconds) for cell in every]
    return [matrix.scaled(cell, wanted.rates) for cell in every] if wanted.rates else every


def matches(cell, name):
    return fnmatch.fnmatchcase(cell.name, name)


def arguments():
    parser = argparse.ArgumentParser(
        prog="outside.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--delay", type=Path, required=True, help="the example `delay` of crates/emu")
    parser.add_argument("--list", action="store_true", help="name the cells and what they are, and end")
    parser.add_argument(
        "--only", action="append", help="names of cells, with commas between them; * stands for any letters"
    )
    parser.add_argument("--groups", help="everyday,matrix,uploads,homes,programs")
    parser.add_argument(
        "--drawn",
        type=int,
        metavar="N",
        help="instead of these cells the first N homes of each kind that `make bounds` draws, between the cells",
    )
    parser.add_argument(
        "--short", action="store_true", help=f"{SHORT_S:g} s each; the everyday cells where none are named"
    )
    parser.add_argument(
        "--seconds", type=float, help="of load in each run; cells in which something changes keep theirs"
    )
    parser.add_argument("--runs", type=int, default=1, help="of each cell and side; the one in the middle counts")
    parser.add_argument("--off-from", type=Path, help="results from which runs without control are taken")
    parser.add_argument(
        "--kernel", help="User Mode Linux of tools/vm/kernels.txt, such as uml-6.1, instead of this kernel"
    )
    parser.add_argument("--rates", type=float, help="what every rate is multiplied by")
    parser.add_argument(
        "--late", type=float, default=1.0, help="how many times as late as usual a run may be and still count"
    )
    parser.add_argument("--out", type=Path, default=OUT)
    return parser.parse_args()


def elsewhere(todo, wanted):
    """The same in a virtual machine with another kernel."""
    tools = HERE.parent / "vm"
    if not wanted.kernel.startswith("uml-"):
        raise SystemExit("--kernel: User Mode Linux only (uml-6.1): the others compute too slowly for real time")
    place = wanted.binary.parents[1] / "vm"
    done = subprocess.run([tools / "fetch", place, wanted.kernel], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the kernel {wanted.kernel} cannot be had: make vm-test fetches it")
    kernel = done.stdout.split()[-1]
    longest = 60 * (1 + len(todo)) + sum(4 * (cell.seconds + 30) for cell in todo) * wanted.runs
    words = [tools / "run", "--seconds", f"{longest:.0f}", kernel, HERE / "guest", kernel, "--binary", wanted.binary]
    words += ["--delay", wanted.delay, "--runs", wanted.runs, "--late", GUEST_LATE * wanted.late]
    words += ["--rates", wanted.rates or GUEST_RATES]
    words += ["--drawn", wanted.drawn] if wanted.drawn else []
    words += [word for cell in todo for word in ("--only", cell.name)]
    words += ["--short"] if wanted.short else []
    words += ["--seconds", wanted.seconds] if wanted.seconds else []
    program = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True)
    results = []
    for line in program.stdout:
        if results or line == "RESULTS\n":
            results.append(line)
        else:
            print(line, end="", flush=True)
    program.wait()
    if not results:
        raise SystemExit("the virtual machine brought no results; what it said stands above")
    found = json.loads("".join(results[1:]))
    found["machine"] += f" ({wanted.kernel} on {machine()})"
    where = keep(wanted.out, "outside-" + wanted.kernel.replace(".", "-"), found, table.text(found))
    say(f"written: {where}")
    give_back(wanted.out)
    return program.returncode


def main():
    wanted = arguments()
    wanted.out, wanted.binary, wanted.delay = wanted.out.resolve(), wanted.binary.resolve(), wanted.delay.resolve()
    todo = chosen(wanted)
    if wanted.list:
        for cell in todo:
            print(f"{cell.group:9} {cell.name:28} {table.home(cell)}")
        return 0
    if os.geteuid() != 0:
        raise SystemExit("namespaces, tc and BPF need root; type: make outside")
    for path in (wanted.binary, wanted.delay):
        if not path.exists():
            raise SystemExit(f"there is no {path}; type: make outside")
    if wanted.kernel:
        return elsewhere(todo, wanted)
    earlier = json.loads(wanted.off_from.read_text()) if wanted.off_from else {"cells": []}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sweep()
    revision = version(wanted.binary, "--version").split("(")[-1].rstrip(")").split(",")[0]
    results = {
        "study": "outside",
        "revision": revision,
        "machine": machine(),
        "programs": [version(program("iperf3"), "--version"), version(program("irtt"), "version"), version("tc", "-V")],
        "skipped": [],
        "cells": [],
    }
    known = {each["cell"]: each for each in earlier["cells"]}
    unbroken = True
    for number, cell in enumerate(todo, 1):
        say(f"{number}/{len(todo)} {cell.name}: {table.home(cell)}")
        if absent := lacking(cell):
            say(f"    SKIPPED: this kernel has no {absent}")
            results["skipped"].append([cell.name, absent])
            continue
        try:
            results["cells"].append(measure(cell, wanted, known))
        except Broken as why:
            unbroken = False
            say(f"    broken: {why}")
            results["cells"].append(
                {"cell": cell.name, "group": cell.group, "home": table.home(cell), "broken": str(why), "ok": False}
            )
        where = keep(wanted.out, "outside", results, table.text(results))
    print(table.text(results))
    say(f"written: {where}")
    give_back(wanted.out)
    return 0 if unbroken and all(each["ok"] for each in results["cells"]) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        say("stopped; what was measured before stands in bench-results")
        sys.exit(130)

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
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "study"))

import cells as matrix  # noqa: E402
import judge  # noqa: E402
import table  # noqa: E402
from clients import BIN_S, Game, client  # noqa: E402
from common import OUT, give_back, keep, machine, say, version  # noqa: E402
from world import Broken, World, build, lacking, lan, program, sweep  # noqa: E402

# The game plays alone for so long before the first load, and its median then is what nothing was added to.
IDLE_S = 3.0
SHORT_S = 10.0
ATTEMPTS = 3
# A run says nothing of a queue whose wire was later than this (p99), or whose game was before anything was loaded.
MOST_LATE_MS = 1.0
MOST_IDLE_MS = 2.0
# In a virtual machine rates are a quarter, so that it keeps up, and it may be later by so much.
GUEST_RATES, GUEST_LATE = 0.25, 10.0
# Processor time is read from here on: before, the controller learns.
DAEMON_FROM_S = 3.0
TICKS = os.sysconf("SC_CLK_TCK")


class Controller:
    """`lasthop run` on the access point, and on a second one behind it."""

    def __init__(self, world, cell, binary):
        self.world, self.binary = world, binary
        self.places = [("ap", lan(cell), "wan0")]
        if cell.home == "series":
            self.places.append(("ap2", "l0", "w0"))
        self.running = []

    def start(self):
        for space, inner, wan in self.places:
            words = [self.binary, "run", "--lan", inner, "--wan", wan, "--socket", self.socket(space)]
            self.running.append((space, self.world.start(space, words, f"lasthop-{space}.log")))
        last = time.monotonic() + 5
        for space, running in self.running:
            while self.status(space) is None:
                if running.poll() is not None or time.monotonic() > last:
                    raise Broken(f"lasthop run did not start; see {self.world.folder}/lasthop-{space}.log")
                time.sleep(0.05)

    def socket(self, space):
        return self.world.folder / f"{space}.sock"

    def status(self, space):
        words = [self.binary, "status", "--json", "--socket", self.socket(space)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def seconds(self):
        """Processor time of all controllers so far."""
        ticks = 0
        for space, running in self.running:
            if running.poll() is not None:
                raise Broken(
                    f"lasthop run ended with {running.returncode}; see {self.world.folder}/lasthop-{space}.log"
                )
            fields = Path(f"/proc/{running.pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / TICKS


def play(cell, control, wanted, folder):
    """One run."""
    shutil.rmtree(folder, ignore_errors=True)
    with World(folder) as world:
        wire = build(world, cell, wanted.delay)
        controller = Controller(world, cell, wanted.binary)
        if control and cell.control_at is None:
            controller.start()
        game = Game(world, cell) if cell.game else None
        clients = [client(world, cell, load, number) for number, load in enumerate(cell.loads)]
        for each in clients:
            each.serve()
        time.sleep(0.5)
        if game:
            game.start(world, IDLE_S + cell.seconds)
            time.sleep(IDLE_S)
        if wire:
            wire.stdin.write(b"\n")
            wire.stdin.flush()
        began, daemon = time.time(), []
        what = [(each.load.begins, lambda c=each: c.start(cell.seconds - c.load.begins)) for each in clients]
        what += [(at, lambda m=mbps: change(world, cell, m)) for at, mbps in cell.change]
        if control:
            what += [
                (at, lambda: daemon.append((time.time(), controller.seconds()))) for at in (DAEMON_FROM_S, cell.seconds)
            ]
            if cell.control_at is not None:
                what.append((cell.control_at, controller.start))
        what.append((cell.seconds, lambda: None))
        # Late control is there after the first reading of its time: that one then says none.
        for at, do in sorted(what, key=lambda pair: pair[0]):
            time.sleep(max(0.0, began + at - time.time()))
            do()
        for each in clients:
            each.ended()
        run = figures(cell, clients, game.rounds() if game else [], began)
        if control:
            (at, busy), (until, busy_then) = daemon[0], daemon[-1]
            run["daemon"] = (busy_then - busy) / (until - at)
            run["status"] = {space: (controller.status(space) or {}).get("control") for space, _ in controller.running}
        if wire:
            wire.stdin.close()
            run["wire"] = json.loads(wire.stdout.readline())
        return run


def change(world, cell, mbps):
    space, dev = ("air", "a1") if cell.place == "hidden" else ("ap", "lan0")
    world.shape(space, dev, mbps, cell.shaper, cell.limit, verb="change")


def figures(cell, clients, rounds, began):
    """Of a run: Mbit/s of payload, ms of the game."""
    loads, bulk = {}, None
    from_s = max([judge.FIRST_S, *(load.begins + 3 for load in cell.loads if load.begins)])
    for each in clients:
        load = each.load
        found = {"kind": load.kind, "flows": load.n, **each.figures()}
        bins = each.bins()
        if bins is not None:
            lasted = cell.seconds - load.begins
            bins = bins[: int(lasted / BIN_S)]
            late = bins[int((from_s - load.begins) / BIN_S) :]
            found["mbps"] = sum(bins) * 8e-6 / lasted
            found["steady_mbps"] = sum(late) * 8e-6 / (cell.seconds - from_s)
            if load.is_bulk:
                shifted = [0] * int(load.begins / BIN_S) + bins
                bulk = [a + b for a, b in zip(bulk or [0] * len(shifted), shifted)]
        name = load.name
        while name in loads:
            name += "'"
        loads[name] = found
    sums = [a + b for a, b in zip(bulk[::2], bulk[1::2])][int(judge.FIRST_S) :] if bulk else []
    return {
        "mbps": sum(bulk or []) * 8e-6 / cell.seconds,
        "bins_mbps": [round(count * 8e-6 / BIN_S, 3) for count in bulk or []],
        "bin_median": statistics.median(bulk) * 8e-6 / BIN_S if bulk else None,
        "slowest_second": min(sums) / statistics.fmean(sums) if sums and sum(sums) else None,
        "loads": loads,
        "game": felt(cell, rounds, began) if rounds else None,
        "changes": changes(cell, rounds, began) if rounds else [],
    }


def felt(cell, rounds, began):
    """What the load added to the game's round trip, ms."""
    idle = [ms for at, ms in rounds if at < began and ms is not None]
    if not idle:
        raise Broken("no packet of the game came back before there was a load")
    base = statistics.median(idle)
    added = [(at - began, None if ms is None else ms - base) for at, ms in rounds]
    first = [ms for at, ms in added if 0 <= at < judge.FIRST_S]
    rest = [ms for at, ms in added if judge.FIRST_S <= at < cell.seconds]
    return {
        "idle_ms": base,
        "idle_spread": quantile([ms - base for ms in idle], 0.99),
        "first_p50": quantile(first, 0.5),
        "first_p99": quantile(first, 0.99),
        "rest_p50": quantile(rest, 0.5),
        "rest_p99": quantile(rest, 0.99),
        "first_back_p99": quantile([ms for ms in first if ms is not None], 0.99),
        "rest_back_p99": quantile([ms for ms in rest if ms is not None], 0.99),
        "lost": sum(ms is None for at, ms in added if 0 <= at < cell.seconds) / len(first + rest),
        # Worst of each half second, to be drawn.
        "worst": [worst(added, i * BIN_S) for i in range(int(cell.seconds / BIN_S))],
    }


def worst(added, from_s):
    found = [ms for at, ms in added if from_s <= at < from_s + BIN_S and ms is not None]
    return round(max(found), 2) if found else None


def changes(cell, rounds, began):
    """After each change to less: the game's p99 from its bound on."""
    base = statistics.median([ms for at, ms in rounds if at < began and ms is not None])
    found, old = [], cell.down
    ends = [at for at, _ in cell.change[1:]] + [cell.seconds]
    for (at, new), end in zip(cell.change, ends):
        bound = judge.change_bound_s(cell, old, new) if new < old else None
        late = [None if ms is None else ms - base for t, ms in rounds if at + (bound or 0) <= t - began < end]
        found.append({"at": at, "from": old, "to": new, "bound_from_s": bound, "p99": quantile(late, 0.99)})
        old = new
    return found


def quantile(values, share):
    """None where it falls on a packet that never came back; those count as later than all others."""
    ordered = sorted(math.inf if value is None else value for value in values)
    if not ordered:
        return None
    value = ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]
    return None if math.isinf(value) else value


def lateness(run, times):
    """Why a run tells nothing; None where it does. `times` as late as usual it may be."""
    if run.get("wire") and run["wire"]["late_p99_ms"] > times * MOST_LATE_MS:
        return f"the wire was {run['wire']['late_p99_ms']:.2f} ms late (p99)"
    if run["game"] and (run["game"]["idle_spread"] is None or run["game"]["idle_spread"] > times * MOST_IDLE_MS):
        return f"the game's idle p99 was {run['game']['idle_spread'] or math.inf:.1f} ms above its median"
    return None


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
    every = matrix.cells()
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
    elif wanted.short:
        every = [cell for cell in every if cell.group == "everyday"]
    seconds = wanted.seconds or (SHORT_S if wanted.short else None)
    if seconds and seconds < judge.FIRST_S + 3:
        raise SystemExit(
            f"--seconds: at least {judge.FIRST_S + 3:g}, since bounds differ before second {judge.FIRST_S:g} and after it"
        )
    # What happens at given times takes as long as it takes.
    is_timed = lambda cell: cell.change or cell.control_at is not None  # noqa: E731
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
    revision = version(wanted.binary, "--version").split()[-1].strip("()")
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

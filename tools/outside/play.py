"""One run of a cell: the world, what runs in it and when, and what was measured."""

import json
import math
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import judge
from clients import BIN_S, Game, client
from world import Broken, World, build, lan

# The game plays alone for so long before the first load, and its median then is what nothing was added to.
IDLE_S = 3.0
# A run says nothing of a queue whose wire was later than this (p99), or whose game was before anything was loaded.
MOST_LATE_MS = 1.0
MOST_IDLE_MS = 2.0
# Processor time is read from here on: before, the controller learns.
DAEMON_FROM_S = 3.0


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
        spent = 0
        for space, running in self.running:
            if running.poll() is not None:
                raise Broken(
                    f"lasthop run ended with {running.returncode}; see {self.world.folder}/lasthop-{space}.log"
                )
            tasks = Path(f"/proc/{running.pid}/task").glob("*/schedstat")
            spent += sum(int(task.read_text().split()[0]) for task in tasks)
        return spent / 1e9


def play(cell, control, wanted, folder):
    """One run."""
    shutil.rmtree(folder, ignore_errors=True)
    with World(folder) as world:
        wires = build(world, cell, wanted.delay)
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
        for wire in wires.values():
            wire.stdin.write(b"\n")
            wire.stdin.flush()
        began, daemon = time.time(), []
        what = [(each.load.begins, lambda c=each: c.start(cell.seconds - c.load.begins)) for each in clients]
        what += [(at, lambda m=mbps: change(world, cell, m)) for at, mbps in cell.change]
        for key, wire in wires.items():
            what += [(at, lambda w=wire, m=ms: lengthen(w, m)) for at, ms in getattr(cell, key)]
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
        for wire in wires.values():
            wire.stdin.close()
        # That which was latest.
        latest = lambda said: said["late_p99_ms"]  # noqa: E731
        run["wire"] = max((json.loads(wire.stdout.readline()) for wire in wires.values()), key=latest, default=None)
        return run


def change(world, cell, mbps):
    space, dev = ("air", "a1") if cell.place == "hidden" else ("ap", "lan0")
    world.shape(space, dev, mbps, cell.shaper, cell.limit, verb="change")
    if cell.up:
        world.shape("air", "a0", cell.up * mbps / cell.down, cell.shaper, cell.limit, verb="change")


def lengthen(wire, rtt):
    wire.stdin.write(b"%d\n" % (rtt * 500))
    wire.stdin.flush()


def figures(cell, clients, rounds, began):
    """Of a run: Mbit/s of payload, ms of the game."""
    loads, bulk = {}, None
    from_s = max([judge.FIRST_S, *(load.begins + 3 for load in cell.loads if load.begins)])
    for each in clients:
        load = each.load
        found = {"kind": load.kind, "direction": load.direction, "flows": load.n, **each.figures()}
        bins = each.bins()
        if bins is not None:
            bins = since_first(bins, load.begins, cell.seconds)
            late = bins[int(from_s / BIN_S) :]
            found["mbps"] = sum(bins) * 8e-6 / (cell.seconds - load.begins)
            found["steady_mbps"] = sum(late) * 8e-6 / (len(late) * BIN_S)
            if load.is_bulk:
                bulk = [a + b for a, b in zip(bulk or [0] * len(bins), bins)]
        name = load.name
        while name in loads:
            name += "'"
        loads[name] = found
    sums = [a + b for a, b in zip(bulk[::2], bulk[1::2])][int(judge.FIRST_S) :] if bulk else []
    return {
        "mbps": sum(bulk or []) * 8e-6 / cell.seconds + sum(found.get("answers_mbps", 0) for found in loads.values()),
        "bins_mbps": [round(count * 8e-6 / BIN_S, 3) for count in bulk or []],
        "bin_median": statistics.median(bulk) * 8e-6 / BIN_S if bulk else None,
        "slowest_second": min(sums) / statistics.fmean(sums) if sums and sum(sums) else None,
        "loads": loads,
        "game": felt(cell, rounds, began) if rounds else None,
        "changes": changes(cell, rounds, began) if rounds else [],
    }


def since_first(bins, begins, seconds):
    """Bytes per BIN_S of a load that began so late, s, per BIN_S since the first load did, until `seconds`; each spread evenly over its time."""
    whole, part = divmod(begins / BIN_S, 1)
    spread = [now * (1 - part) + before * part for now, before in zip([*bins, 0], [0, *bins])]
    shifted = [0] * int(whole) + spread
    count = int(seconds / BIN_S)
    return (shifted + [0] * count)[:count]


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

#!/usr/bin/env python3
"""Plays every home of scenarios/homes in the simulator and writes the tables of book/src/homes.md; with --of 2026 those of
scenarios/homes-2026 and book/src/homes-2026.md (homes_2026.py).

    tools/study/homes.py [--of 2026] [--binary FILE] [--seeds 5] [--only evening,p2p] [--short] [--book FILE|-] [--json FILE]

Six runs of each home: FIFO, FQ-CoDel and CHAP as the access point's queue, each without window control and with it. Medians
over the seeds. `truth` is what greedy TCP gets alone in a home and direction: its elastic flows as endless CUBIC, queues that
never overflow, nothing else on the air. Bounds are computed, not measured.
"""

import argparse
import json
import math
import statistics
import tomllib
from pathlib import Path

import homes_2026
import simulated
from marked import fill

FOLDER = simulated.ROOT / "scenarios" / "homes"
BOOK = simulated.ROOT / "book" / "src" / "homes.md"
QUEUES = {"fifo": "FIFO", "fq_codel": "FQ-CoDel", "chap": "CHAP"}
PAYLOAD = {"ftp": 1460, "quic": 1164}
# The start, from the first packet of the first download on, and the rest from here.
BEGIN, REST = 2, 12
# The short form: how long it runs, s, and when its rest begins.
SHORT = (8, 5)
# Segments of a window that is never undercut, and what any sender may send at first.
FLOOR, INITIAL = 3, 10
FULL = 1500


def median(values):
    known = [v for v in values if v is not None]
    return statistics.median(known) if known else None


def load(name):
    return tomllib.loads((FOLDER / f"{name}.toml").read_text())


def way_of(home, flow):
    own = {s["name"] for s in home["station"]}
    return "down" if flow["to"] in own else "up"


def greedy(home, direction=None):
    wanted = [f for f in home["flow"] if f["kind"] in PAYLOAD and "bytes" not in f]
    return [f for f in wanted if direction in (None, way_of(home, f))]


def copies(home, flow):
    """Connections that a table of the file is."""
    counts = [h.get("count", 1) for h in home["server"] + home["station"] if h["name"] in (flow["from"], flow["to"])]
    return max([flow.get("count", 1), *counts])


def alone(home, direction):
    """The home with greedy TCP in one `direction` and nothing else."""
    deep = {"kind": "fifo", "limit": simulated.DEEP}
    air = {k: v for k, v in home["wifi"].items() if k != "firmware_queue"} | {"queue": deep, "station_queue": deep}
    wires = home["wan"] | {"buffer_down": simulated.DEEP, "buffer_up": simulated.DEEP}
    keys = ("name", "from", "to", "count")
    flows = [{k: f[k] for k in keys if k in f} | {"kind": "ftp", "cc": "cubic"} for f in greedy(home, direction)]
    result = {k: v for k, v in home.items() if k not in ("control", "change")}
    return result | {"wifi": air, "wan": wires, "flow": flows, "measure_from": "10s", "duration": "30s"}


def truth(simulator, home, direction):
    """C, Mbit/s; None where nothing would fill it."""
    if not greedy(home, direction):
        return None
    return simulated.rate(simulator.play(alone(home, direction)), direction=direction)


def exchange_us(home, station):
    """A full frame to or from a station: DIFS, mean backoff, CTS-to-self, data, SIFS, ACK, as 802.11 has them."""
    mixed = any(s.get("standard") == "802.11b" for s in home["station"])
    is_b = station.get("standard", home["wifi"]["standard"]) == "802.11b"
    rate = float(station.get("rate", home["wifi"]["rate"]).removesuffix("Mbit/s"))
    slot, difs, cts = (20, 50, 192 + 14 * 8 / 2 + 10) if mixed or is_b else (9, 28, 0)
    if is_b:
        return difs + 31 / 2 * slot + 192 + (FULL + 36) * 8 / rate + 10 + 192 + 14 * 8 / 2
    symbols = lambda size, at: 20 + 4 * math.ceil((22 + 8 * size) / (4 * at)) + 6  # noqa: E731
    answer = max(basic for basic in (6, 12, 24) if basic <= rate)
    return difs + 15 / 2 * slot + (cts if mixed else 0) + symbols(FULL + 36, rate) + 10 + symbols(14, answer)


def slowest_us(home):
    """The longest exchange of a station that downloads or uploads, whatever it changes to."""
    loaded = {end for f in greedy(home) for end in (f["from"], f["to"])}
    own = [s for s in home["station"] if s["name"] in loaded]
    later = [
        s | {"rate": rate}
        for change in home.get("change", [])
        for key, rate in change["set"].items()
        for s in own
        if key == f"station.{s['name']}.rate"
    ]
    return max(exchange_us(home, s) for s in own + later)


def floors_ms(home, direction, capacity):
    """How long what windows promise beyond the path at least takes to drain: of each connection three segments, less its share
    of what is on the path."""
    flows = greedy(home, direction)
    number = sum(copies(home, f) for f in flows)
    delays = {s["name"]: float(s["delay"].removesuffix("ms")) for s in home["server"]}
    beyond = 0.0
    for flow in flows:
        rtt = 2 * (delays[flow["from" if direction == "down" else "to"]] + float(home["wan"]["delay"].removesuffix("ms")))
        on_path = capacity * 1e6 / 8 / number * rtt / 1e3
        beyond += copies(home, flow) * max(0.0, FLOOR * FULL - on_path)
    return beyond * 8 / capacity / 1e3


def sets(queue, controlled, short):
    of_short = [f"duration={SHORT[0]}s"] if short else []
    return [f"wifi.queue.kind={queue}", *of_short] + ([] if controlled else ["control.window=none"])


def play(simulator, name, queue, controlled, seed, short):
    """Figures of one cell and seed; the rest of the run is the same run, counted from later on."""
    path = FOLDER / f"{name}.toml"
    wanted = sets(queue, controlled, short)
    whole = simulator.play(path, wanted, seed)
    rest = simulator.play(path, [*wanted, f"measure_from={SHORT[1] if short else REST}s"], seed)
    game = lambda report, q: max(f["added_delay"][q] for f in report["flows"] if f["name"].startswith("game-"))  # noqa: E731
    lasts = whole["duration_s"] - whole["measure_from_s"]
    acked = sum(f["tcp"]["acked_packets"] * PAYLOAD[f["kind"]] for f in simulated.flows(whole, set(PAYLOAD)))
    live = [f for f in simulated.flows(whole, simulated.REALTIME) if "tcp" not in f and not f["name"].startswith("game-")]
    streams = [f for f in simulated.flows(whole, {"video"}) if "tcp" in f]
    return {
        "p50": game(whole, "p50"),
        "p99": game(whole, "p99"),
        "rest_p50": game(rest, "p50"),
        "rest_p99": game(rest, "p99"),
        "goodput": acked * 8 / lasts / 1e6,
        "other_p99": max((f["added_delay"]["p99"] for f in live), default=None),
        "other_loss": max((f["loss_rate"] for f in live), default=None),
        "streams": sum(f["goodput_bps"] for f in streams) / 1e6 if streams else None,
        "quic": sum(f["goodput_bps"] for f in simulated.flows(whole, {"quic"})) / 1e6,
        "C": {direction: simulated.learned(whole, direction) for direction in ("down", "up")},
        "queue": {direction: simulated.place(whole, direction) for direction in ("down", "up")},
    }


def cell(simulator, name, queue, controlled, seeds, short):
    runs = [play(simulator, name, queue, controlled, seed + 1, short) for seed in range(seeds)]
    result = {key: median([run[key] for run in runs]) for key in runs[0] if key not in ("C", "queue")}
    result["C"] = {direction: median([run["C"][direction] for run in runs]) for direction in ("down", "up")}
    places = {direction: [run["queue"][direction] for run in runs] for direction in ("down", "up")}
    result["queue"] = {direction: max(set(found), key=found.count) for direction, found in places.items()}
    return result


def shown(v, digits=1):
    return "-" if v is None else f"{v:.{digits}f}"


def every(c):
    """What TCP and QUIC got in a cell, films among it, Mbit/s."""
    return c["goodput"] + (c["streams"] or 0)


def table(name, cells, truths, home):
    """The home's table, its C and its bounds, as Markdown."""
    lines = [
        "| queue | control | game p50 / p99, ms | the same from 12 s on | downloads and uploads, Mbit/s | films, Mbit/s"
        " | all against no control | other real-time p99, ms | its loss |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for queue, word in QUEUES.items():
        off = cells[name, queue, False]
        for controlled in (False, True):
            c = cells[name, queue, controlled]
            ratio = f"{100 * every(c) / every(off):.1f} %" if controlled else ""
            loss = "-" if c["other_loss"] is None else f"{100 * c['other_loss']:.2f} %"
            lines.append(
                f"| {word} | {'on' if controlled else 'off'} | {shown(c['p50'])} / {shown(c['p99'])} | {shown(c['rest_p50'])} /"
                f" {shown(c['rest_p99'])} | {c['goodput']:.2f} | {shown(c['streams'])} | {ratio} | {shown(c['other_p99'])} | {loss} |"
            )
    words = []
    for direction, true in truths.items():
        if true is None:
            continue
        each = []
        for queue, word in QUEUES.items():
            c = cells[name, queue, True]
            if c["C"][direction]:
                where = f", queue {c['queue'][direction]}" if c["queue"][direction] else ""
                each.append(f"{word} {c['C'][direction]:.2f} ({100 * (c['C'][direction] / true - 1):+.1f} %{where})")
        words.append(f"C {direction}, Mbit/s: truth {true:.2f}; learned by the end: " + ("; ".join(each) if each else "nothing") + ".")
    exchange = slowest_us(home) / 1e3
    bounds = f"Bounds: an exchange of the slowest loaded station {exchange:.2f} ms, four of them {4 * exchange:.1f} ms"
    for direction, true in truths.items():
        if true is not None:
            initial = INITIAL * FULL * 8 / true / 1e3
            bounds += f"; {direction}, the floors of all windows beyond the path {floors_ms(home, direction, true):.1f} ms, one initial window {initial:.1f} ms"
    return "\n".join([*lines, "", *(f"{each}  " for each in words), bounds + "."])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--of", choices=("all", "2026"), default="all", help="2026: homes of today's Wi-Fi, a quarter of an hour")
    parser.add_argument("--binary", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", help="names of homes: evening,p2p")
    parser.add_argument("--short", action="store_true", help="one home, one seed, 8 s, nothing written: does it all still work?")
    parser.add_argument("--book", help="- prints; else the chapter of these homes")
    parser.add_argument("--json", type=Path)
    parser.add_argument("-j", type=int, dest="jobs")
    arguments = parser.parse_args()
    if arguments.of == "2026":
        return homes_2026.run(arguments)
    arguments.book = arguments.book or str(BOOK)
    names = sorted(path.stem for path in FOLDER.glob("*.toml"))
    if arguments.short:
        arguments.seeds, arguments.book, names = 1, "-", ["slow-line"]
    if arguments.only:
        names = arguments.only.split(",")
    simulator = simulated.Simulator(arguments.binary, arguments.jobs)
    homes = {name: load(name) for name in names}
    directions = [(name, direction) for name in names for direction in ("down", "up")]
    true = dict(zip(directions, simulator.all(lambda key: truth(simulator, homes[key[0]], key[1]), directions, "truths")))
    keys = [(name, queue, on) for name in names for queue in QUEUES for on in (False, True)]
    cells = dict(zip(keys, simulator.all(lambda key: cell(simulator, *key, arguments.seeds, arguments.short), keys, "cells")))
    tables = {name: table(name, cells, {direction: true[name, direction] for direction in ("down", "up")}, homes[name]) for name in names}
    if arguments.book == "-":
        print("\n\n".join(f"{name}\n\n{each}" for name, each in tables.items()))
    else:
        fill(Path(arguments.book), "make homes", tables)
    if arguments.json:
        rows = [{"home": n, "queue": q, "control": on} | cells[n, q, on] for n, q, on in keys]
        arguments.json.write_text(json.dumps({"cells": rows, "truth": {f"{n} {w}": v for (n, w), v in true.items()}}, indent=1) + "\n")


if __name__ == "__main__":
    main()

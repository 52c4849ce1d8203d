"""Homes of today's Wi-Fi, for homes.py: each with four queues of the access point, and each of these with every kind of control.

Medians over the seeds, and of the game's p99 the least and the largest. Trials of levers take minutes, so that a run with all of
them is measured later than the others; what runs in a home stays the same.
"""

import itertools
import json
import statistics
import tomllib
from pathlib import Path

import simulated
from marked import fill

FOLDER = simulated.ROOT / "scenarios" / "homes-2026"
BOOK = simulated.ROOT / "book" / "src" / "homes-2026.md"
QUEUES = {
    "FIFO": ['wifi.queue={ kind = "fifo", limit = 1000 }'],
    "FQ-CoDel over deep firmware": ['wifi.queue={ kind = "fq_codel" }', "wifi.firmware_queue=1000"],
    "mac80211 with AQL": ['wifi.queue={ kind = "mac80211" }'],
    "CHAP": ['wifi.queue={ kind = "chap" }'],
}
CONTROL = {
    "alone": ["control.window=none"],
    "windows": [],
    "windows, class": ["control.levers=class"],
    "all levers": ["control.levers=all"],
    "class alone": ["control.levers=class", "control.window.left_alone=true"],
}
# Most trials are over by then, s.
TRIED = 150
# A run of five minutes takes longer than others where the machine has more to do, s.
LONGEST = 900
# A run in the short form lasts so long, and is measured from here on, s.
SHORT = (6, 3)
# What others are compared with, and what is measured late.
BEFORE, AFTER = "alone", "all levers"


def sets(queue, control, home, short):
    lasts, begin = (float(home[key].removesuffix("s")) for key in ("duration", "measure_from"))
    if short:
        lasts, begin = SHORT
    elif control == AFTER:
        lasts, begin = lasts + TRIED - begin, TRIED
    return [*QUEUES[queue], *CONTROL[control], f"duration={lasts:g}s", f"measure_from={begin:g}s"]


def play(simulator, key, home, seed, short):
    """Figures of one run."""
    name, queue, control = key
    report = simulator.play(FOLDER / f"{name}.toml", sets(queue, control, home, short), seed)
    flows = {flow["name"]: flow for flow in report["flows"]}
    figures = {}
    for flow in ("game-down", "game-up", "call-down", "call-up"):
        added = flows[flow]["added_delay"]
        figures |= {f"{flow}.p50": added["p50"], f"{flow}.p99": added["p99"], f"{flow}.loss": flows[flow]["loss_rate"]}
    figures["goodput"] = sum(f["goodput_bps"] for f in report["flows"] if "tcp" in f or f["kind"] == "quic") / 1e6
    foreign = {s["name"] for s in home["station"] if s.get("neighbour")}
    shares = {s["name"]: s["airtime_share"] for s in report["stations"]}
    figures["air.ap"] = shares.pop("AP")
    figures["air.neighbours"] = sum(share for name, share in shares.items() if name in foreign)
    figures["air.stations"] = sum(shares.values()) - figures["air.neighbours"]
    levers = ((report.get("control") or {}).get("levers") or {}).get("each", {})
    kept = [f"{lever} {each['in_force']}" for lever, each in levers.items() if each["in_force"] != each["found"]]
    return figures, kept


def cell(simulator, key, home, seeds, short):
    runs = [play(simulator, key, home, seed + 1, short) for seed in range(seeds)]
    each = {figure: [run[0][figure] for run in runs] for figure in runs[0][0]}
    medians = {figure: statistics.median(values) for figure, values in each.items()}
    kept = [lever for _, levers in runs for lever in levers]
    return medians | {"each": each, "kept": {lever: kept.count(lever) for lever in sorted(set(kept))}}


def pair(c, flow):
    return f"{c[flow + '.p50']:.1f} / {c[flow + '.p99']:.1f}"


def spread(values):
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def table(name, cells, seeds):
    lines = [
        "| queue | control | game to the player p50 / p99, ms | p99 of each seed | from the player | call to / from p99, ms |"
        " goodput, Mbit/s | against alone | air time of the access point / stations / neighbours, % |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    words = []
    for queue in QUEUES:
        for control in CONTROL:
            c, alone = cells[name, queue, control], cells[name, queue, BEFORE]
            ratio = "" if control == BEFORE else f"{100 * c['goodput'] / alone['goodput']:.1f} %"
            air = " / ".join(f"{100 * c[f'air.{who}']:.0f}" for who in ("ap", "stations", "neighbours"))
            lines.append(
                f"| {queue} | {control} | {pair(c, 'game-down')} | {spread(c['each']['game-down.p99'])} | {pair(c, 'game-up')} |"
                f" {c['call-down.p99']:.1f} / {c['call-up.p99']:.1f} | {c['goodput']:.1f} | {ratio} | {air} |"
            )
        kept = cells[name, queue, AFTER]["kept"]
        words.append(f"{queue}: " + (", ".join(f"{lever} ({count} of {seeds})" for lever, count in kept.items()) or "none"))
    return "\n".join([*lines, "", "Levers in force at the end: " + "; ".join(words) + "."])


def summary(names, cells):
    lines = [
        "| home | queue | game to the player p99, ms: alone, windows, with class, all levers, class alone | goodput of the last four |",
        "|---|---|---|---|",
    ]
    for name, queue in itertools.product(names, QUEUES):
        p99 = [cells[name, queue, control]["game-down.p99"] for control in CONTROL]
        goodput = [cells[name, queue, control]["goodput"] for control in CONTROL]
        ratios = ", ".join(f"{100 * each / goodput[0]:.1f} %" for each in goodput[1:])
        lines.append(f"| {name} | {queue} | {', '.join(f'{each:.1f}' for each in p99)} | {ratios} |")
    return "\n".join(lines)


def run(arguments):
    names = sorted(path.stem for path in FOLDER.glob("*.toml"))
    if arguments.short:
        arguments.seeds, arguments.book, names = 1, "-", ["travel-router"]
    names = arguments.only.split(",") if arguments.only else names
    simulated.LONGEST = LONGEST
    simulator = simulated.Simulator(arguments.binary, arguments.jobs)
    homes = {name: tomllib.loads((FOLDER / f"{name}.toml").read_text()) for name in names}
    printed = arguments.book == "-"
    book = Path(arguments.book or BOOK)
    cells = {}

    def put(name, text):
        if printed:
            print(f"{name}\n\n{text}\n")
        else:
            fill(book, 'make homes ARGS="--of 2026"', {name: text})

    # A home's table stands there as soon as it is played.
    for name in names:
        keys = [(name, queue, control) for queue, control in itertools.product(QUEUES, CONTROL)]
        work = lambda key: cell(simulator, key, homes[key[0]], arguments.seeds, arguments.short)  # noqa: E731
        cells |= dict(zip(keys, simulator.all(work, keys, f"cells of {name}")))
        put(name, table(name, cells, arguments.seeds))
    if printed or not arguments.only:
        put("summary", summary(names, cells))
    if arguments.json:
        rows = [{"home": n, "queue": q, "control": c} | figures for (n, q, c), figures in cells.items()]
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")

"""The Markdown beside the results of the study of the learned capacity, with what physics allows beside what was measured."""

import statistics
from collections import Counter

import learn_plan as plan

# Columns that say which cell it is, in the order they are shown in.
AXES = ("cc", "quic", "rtt", "flows", "direction", "place", "queue", "step")
TITLES = {
    "truth": "The truth: greedy CUBIC alone, no control, endless queue",
    "down": "Downloads beside a game",
    "up": "Uploads beside a game",
    "steps": "The link changes: falls and rises",
    "quic": "QUIC beside TCP",
    "places": "The queue is not ours: FQ-CoDel in front of a deep queue",
}
# A full packet over the air, us: DIFS, mean backoff, frame, SIFS, ACK. By Mbit/s of the data rate: 802.11g, then 802.11b.
EXCHANGE_US = {54: 28 + 67.5 + 20 + 4 * 58 + 6 + 10 + 28, 6: 28 + 67.5 + 20 + 4 * 515 + 6 + 10 + 50, 2: 50 + 310 + 192 + 1536 * 8 / 2 + 10 + 248}


def bound_ms(row):
    """What is asked of the game: 8 ms, or four exchanges of the slowest station."""
    slowest = min(row.get("step") or [54])
    return max(8.0, 4 * EXCHANGE_US[slowest] / 1e3)


def text(results):
    """The whole document."""
    lines = [
        f"# A capacity that is learned: measured at revision {results['revision']}",
        "",
        f"By `make study-learn`, on {results['machine']}; with control: `capacity = \"{results['capacity']}\"`. Medians of valid runs; goodput and C in",
        "Mbit/s (payload and IP bytes), times in ms. `on/off`: goodput with control over that without. `p99`: added delay of the game's worse",
        "direction from the first packet of the first download on. `on/possible`: beside what nobody loses. `C`: at the end over the truth; least and most from two seconds of load on.",
    ]
    others = sorted({row.get("revision", results["revision"]) for row in results["rows"]} - {results["revision"]})
    if others:
        lines += [f"Runs without control stem from revision {', '.join(others)}: what they play is the same."]
    if max(Counter((row["part"], row["cell"]) for row in results["rows"]).values(), default=0) == 1:
        lines += ["**One run a cell**: a median of one is that run."]
    parts = {}
    for row in results["rows"]:
        parts.setdefault(row["part"], []).append(row)
    truth = {plan_key(row, ("rtt", "flows", "direction", "place", "beside")): of for row, of in of_truth(parts.get("truth", []))}
    for part, title in TITLES.items():
        if part in parts and (part == "truth" or any(row["control"] for row in parts[part])):
            lines += ["", f"## {title}", "", *TABLES[part](parts[part], truth)]
    return "\n".join(lines) + "\n"


def plan_key(row, names):
    return tuple(row.get(name) for name in names)


def middle(rows, name):
    values = [row[name] for row in rows if row.get(name) is not None]
    return statistics.median(values) if values else None


def pairs(rows):
    """(axes, rows without control, rows with it) of each cell, in the order in which they were played."""
    cells = {}
    for row in rows:
        key = tuple(tuple(v) if isinstance(v := row.get(axis), list) else v for axis in AXES)
        cells.setdefault(key, ([], []))[bool(row["control"])].append(row)
    return [(dict(zip(AXES, key)), off, on) for key, (off, on) in cells.items()]


def played(rows):
    """Those that were played in both directions."""
    return [(cell, off, on) for cell, off, on in pairs(rows) if off and on]


def of_truth(rows):
    cells = {}
    for row in rows:
        cells.setdefault(row["cell"], []).append(row)
    return [(of[0], (middle(of, "rate"), middle(of, "goodput"))) for of in cells.values()]


def truths(rows, _):
    named = lambda row: [row["rtt"], row["flows"], row.get("direction", "down"), row.get("place", "ap"), row.get("beside", "")]  # noqa: E731
    note = "Without losses receivers acknowledge oftener than beside them (Linux merges ACKs while there is a hole), so runs in which an"
    more = "ordinary queue overflows can carry a few per cent more than the truth."
    head = ["rtt", "flows", "direction", "place", "beside", "IP rate", "goodput"]
    return [*table(head, [[*named(row), *of] for row, of in of_truth(rows)]), "", note, more]


def loaded(rows, truth):
    """Goodput, waiting and C of every cell."""
    body, missed = [], {"goodput": 0, "p99": 0, "C": 0}
    axes = [axis for axis in AXES if any(row.get(axis) is not None for row in rows)]
    for cell, off, on in played(rows):
        without, with_control = middle(off, "goodput"), middle(on, "goodput")
        ratio, p99 = with_control / max(without, 1e-9), middle(on, "p99")
        right, _ = truth.get((cell["rtt"], cell["flows"], cell["direction"], cell["place"], None), (None, None))
        _, possible = truth.get((cell["rtt"], cell["flows"], cell["direction"], cell["place"], "game"), (None, None))
        c = [middle(on, name) for name in ("c", "c_least", "c_most")]
        parts = [value / right if value is not None and right else None for value in c]
        places = sorted({str(row.get("place_says")) for row in on})
        missed["goodput"] += ratio < 0.97
        missed["p99"] += p99 > bound_ms(cell)
        missed["C"] += parts[0] is not None and abs(parts[0] - 1) > 0.03
        mine = [cell[axis] for axis in axes]
        waits = [middle(off, "p99"), p99, middle(on, "p50"), middle(on, "max")]
        body.append([*mine, without, with_control, ratio, possible and with_control / possible, *waits, *parts, "/".join(places), f"{len(off)}+{len(on)}"])
    head = [*axes, "off", "on", "on/off", "on/possible", "p99 off", "p99 on", "p50 on", "max on", "C", "least", "most", "queue is", "runs"]
    missed_text = f"Of {len(body)} cells: goodput under 97 % in {missed['goodput']}, p99 over the bound in {missed['p99']}, C more than 3 % off in {missed['C']}."
    return [*table(head, body), "", missed_text]


def steps(rows, _):
    """When the game was well again after a fall, and how soon the download had a rise."""
    body = []
    for cell, off, on in played(rows):
        before, after = cell["step"]
        rises = after > before
        new = middle([{"rate": statistics.fmean(row["rates"][-30:])} for row in off], "rate")
        row = [f"{before} to {after}", cell["queue"], cell["cc"]]
        for which in (off, on):
            reached = [{"s": reaches(run["rates"], new)} for run in which]
            row += [middle(which, "well_s"), middle(which, "p99"), middle(reached, "s") if rises else None]
        row += [middle(off, "goodput"), middle(on, "goodput"), middle(on, "c_least"), middle(on, "c")]
        body.append([*row, f"{len(off)}+{len(on)}"])
    head = ["Mbit/s", "queue", "cc", "well off, s", "p99 off", "95 % off, s", "well on, s", "p99 on", "95 % on, s", "off", "on", "C least", "C last", "runs"]
    note = [
        f"`well`: seconds after the change from which on 99 % of the game's packets wait less than 20 ms longer than the least; over {plan.AFTER} s, so",
        f"what is near {plan.AFTER} never was. `95 %`: seconds until half a second's mean reaches 95 % of the new rate without control. Figures from the",
        f"change on. An exchange at 6 Mbit/s takes {EXCHANGE_US[6] / 1e3:.1f} ms, one at 2 Mbit/s {EXCHANGE_US[2] / 1e3:.1f} ms.",
    ]
    return [*table(head, body), "", *note]


def reaches(rates, new):
    """Seconds after the change (ten bins of 100 ms are before it) at which half a second's mean is 95 % of `new`."""
    if not new:
        return None
    for i in range(10, len(rates) - 5):
        if statistics.fmean(rates[i : i + 5]) >= 0.95 * new:
            return (i - 10) / 10
    return None


def quic(rows, _):
    """What each had, and what the game waited."""
    body = []
    for cell, off, on in played(rows):
        row = [cell["cc"], cell["quic"], cell["flows"], cell["queue"]]
        for which in (off, on):
            share = middle([{"s": 2 * run["quic_goodput"] / max(run["goodput"], 1e-9)} for run in which], "s")
            row += [middle(which, "goodput"), share, middle(which, "p99"), middle(which, "fairness")]
        body.append([*row, f"{len(off)}+{len(on)}"])
    which = [f"{name} {side}" for side in ("off", "on") for name in ("Mbit/s", "QUIC's share", "p99", "Jain")]
    head = ["TCP", "QUIC", "flows of each", "queue", *which, "runs"]
    return [*table(head, body), "", "QUIC's share: of what is fair, which is 1; 0.8 to 1.2 is asked."]


def table(head, rows):
    lines = [head, ["---"] * len(head), *([cell(value) for value in row] for row in rows)]
    return ["| " + " | ".join(line) + " |" for line in lines]


def cell(value):
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) and value < 100 else f"{value:.0f}" if isinstance(value, float) else str(value)


TABLES = {"truth": truths, "down": loaded, "up": loaded, "steps": steps, "quic": quic, "places": loaded}

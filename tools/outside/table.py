"""Words and Markdown for what was measured."""

from collections import Counter
from dataclasses import replace

import judge

# From so many loads on, those of a kind are told together.
MANY = 5


def home(cell):
    """A cell in words."""
    words = [f"{load.n} {load.name}" for load in cell.loads]
    if len(words) >= MANY:
        kinds = Counter()
        for load in cell.loads:
            kinds[replace(load, n=1, begins=0).name] += load.n
        words = [f"{n} {name}" for name, n in kinds.items()]
        words[-1] += f", begun within {max(load.begins for load in cell.loads):g} s"
    if cell.down or cell.up:
        rates = f"{cell.down or 0:.4g}/{cell.up:.4g}" if cell.up else f"{cell.down:.4g}"
        kind = cell.shaper if cell.queue == "pfifo" else f"{cell.shaper} with {cell.queue}"
        words.append(f"last hop {rates} Mbit/s ({kind}, {'seen' if cell.place == 'ap' else 'hidden'})")
    if cell.line:
        words.append(f"line {cell.line[0]:.4g}/{cell.line[1]:.4g}")
    for at, mbps in cell.change:
        words.append(f"{mbps:g} from {at:g} s")
    words += [f"RTT {rtt:g} ms from {at:g} s" for at, rtt in cell.rtts]
    words += [f"last hop {rtt:g} ms longer from {at:g} s" for at, rtt in cell.hop_rtts]
    words.append(f"RTT {cell.rtt:.4g} ms" if cell.rtt else "no delay")
    words += [cell.home] if cell.home != "routed" else []
    words += ["IPv6"] if cell.family == 6 else []
    words += [f"MTU {cell.mtu}"] if cell.mtu != 1500 else []
    words += ["GSO and GRO"] if cell.offload else []
    words += ["window scale 14 at one station"] if cell.window_scale else []
    words += [f"beside {cell.beside}"] if cell.beside else []
    words += [f"control from {cell.control_at:g} s"] if cell.control_at is not None else []
    return ", ".join(words)


def bounds(cell):
    if not {"game", "slow-upload"} & set(cell.bars) or judge.capacity(cell) is None:
        return None
    # Others are shown and not judged.
    return {"first": judge.first_bound(cell), "rest": judge.rest_bound(cell)}


def ms(value):
    return "lost" if value is None else f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"


def felt(run, part):
    """The game's p99 in a part of a run; where that packet never came back, the p99 of those that did, and the run's loss."""
    game = run["game"]
    if game is None:
        return ""
    if game[f"{part}_p99"] is not None:
        return ms(game[f"{part}_p99"])
    return f"{ms(game[f'{part}_back_p99'])}, lost {game['lost']:.0%}"


def verdict(each):
    value = "lost" if each["value"] is None else f"{each['value']:.3g}"
    return f"{each['what']}: {value} instead of {each['limit']:.3g} {each['unit']}".rstrip()


def text(results):
    lines = [
        f"# Outside world: measured at revision {results['revision']}",
        "",
        f"By `make outside`, on {results['machine']}; {'; '.join(results['programs'])}. Goodput: payload of all bulk flows and answers",
        "together from the first one on, by load where there are several kinds. Game: what the load added to irtt's round trip (50 packets a",
        "second) over the idle median, p99; where more than 1 % never came back, of those that did. Bounds: tools/outside/judge.py.",
    ]
    groups = dict.fromkeys(each["group"] for each in results["cells"])
    for group in groups:
        lines += ["", f"## {group.capitalize()}", ""]
        lines += [
            "| cell | goodput off, Mbit/s | on | on : off | game, first 5 s: off, ms | on | bound | from 5 s on: off, ms | on | bound | daemon, of a core | holds |",
            "|---|---|---|---|---|---|---|---|---|---|---|---|",
        ]
        lines += [row(each) for each in results["cells"] if each["group"] == group]
    good = sum(each["ok"] for each in results["cells"])
    lines += ["", f"{good} of {len(results['cells'])} cells hold."]
    if results["skipped"]:
        absent = ", ".join(f"{name} (no {what})" for name, what in results["skipped"])
        lines += ["", f"Not tried, since this kernel lacks what they need: {absent}."]
    late = [
        each["cell"] for each in results["cells"] if any((each.get(side) or {}).get("late") for side in ("off", "on"))
    ]
    if late:
        lines += [
            "",
            f"The machine was too busy three times, so that figures may be worse than they should: {', '.join(late)}.",
        ]
    return "\n".join(lines) + "\n"


def row(each):
    if "broken" in each:
        return f"| {each['cell']}: {each['home']} |  |  |  |  |  |  |  |  |  |  | broken: {each['broken'].splitlines()[0]} |"
    off, on = each["off"], each["on"]
    bound = each["bounds"] or {}
    cells = [
        f"**{each['cell']}**: {each['home']}",
        goodput(off),
        goodput(on),
        f"{on['mbps'] / off['mbps']:.1%}" if off["mbps"] else "",
    ]
    for part in ("first", "rest"):
        cells += [felt(run, part) for run in (off, on)]
        cells.append(ms(bound[part]) if bound else "")
    cells.append(f"{on['daemon']:.1%}")
    cells.append("yes" if each["ok"] else "**no**: " + "; ".join(verdict(v) for v in each["verdicts"] if not v["ok"]))
    return "| " + " | ".join(cells) + " |"


def goodput(run):
    loads = [it for it in run["loads"].values() if it.get("mbps", it.get("answers_mbps")) is not None]
    rates = [it.get("mbps", it.get("answers_mbps")) for it in loads]
    if len(rates) >= MANY:
        ways = dict.fromkeys(it["direction"] for it in loads)
        rates = [sum(rate for it, rate in zip(loads, rates) if it["direction"] == way) for way in ways]
    parts = " + ".join(f"{rate:.2f}" if rate < 10 else f"{rate:.1f}" for rate in rates)
    return parts if len(rates) > 1 else f"{run['mbps']:.1f}" if run["mbps"] >= 10 else f"{run['mbps']:.2f}"

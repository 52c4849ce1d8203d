"""Do the bounds of the matrix of real kernels (`tools/outside/judge.py`) hold between its cells, in the simulator?

    tools/study/bounds.py [--binary FILE] [--cases 100] [--only down,both] [--all]

Homes drawn at random, without window control and with it: a wired port, a last hop of two directions or the WAN link; 20 to 100
Mbit/s, or slower; round trips of 10 to 100 ms; 1 to 16 flows of CUBIC, NewReno or BBR, which begin within 0.3 s of each other;
a game. Goodput counts, and the game's delay a second time, from 5 s after the first flow on. What holds of a cell: goodput, the game's
99th percentile in the first 5 s, and from then on. BBR empties its windows every 10 s, and its rows are counted apart.
"""

import argparse
import random
import statistics
import sys
from pathlib import Path

import odd
import simulated

sys.path.append(str(simulated.ROOT / "tools" / "outside"))
import cells  # noqa: E402
import judge  # noqa: E402

BEGIN, FIRST, REST = 3.0, judge.FIRST_S, 17.0
# Mbit/s, flows, and the part of its goodput without control that each direction keeps.
KINDS = {
    "down": ((20, 100), 16, 0.97),
    "up": ((20, 100), 16, 0.97),
    "slow-down": ((4, 10), 6, 0.97),
    "slow-up": ((1, 5), 3, 0.95),
    "both": ((15, 60), 4, 0.95),
}


def generate(kind, number):
    draw = random.Random(f"bounds/{kind}/{number}")
    (low, high), most, least = KINDS[kind]
    place = "line" if kind == "slow-up" else draw.choice(("port", "hop", "line"))
    rate, flows, rtt = draw.uniform(low, high), draw.randint(1, most), draw.uniform(10, 100)
    cc = draw.choice(("cubic", "cubic", "cubic", "newreno", "bbr"))
    limit = max(60, round(rate * 1e6 / 8 / 1500 * draw.choice((0.1, 0.3, 0.6))))
    home = {"format": 1, "name": f"{kind}-{number}", "seed": number}
    wan = {"delay": f"{rtt / 4:.2f}ms", "rate_down": "1000Mbit/s", "rate_up": "1000Mbit/s", "buffer_down": 2000, "buffer_up": 2000}
    if place == "line":
        down = rate * draw.uniform(4, 20) if kind == "slow-up" else rate
        wan |= {"rate_down": f"{down:.2f}Mbit/s", "rate_up": f"{rate:.2f}Mbit/s", "buffer_down": limit, "buffer_up": limit}
    home |= {"wan": wan, "server": [{"name": "W", "delay": f"{rtt / 4:.2f}ms", "buffer": 4000}], "station": [{"name": "A"}]}
    if place == "port":
        home["bridge"] = odd.port(rate) | {"queue": odd.queue(limit), "station_queue": odd.queue(limit)}
    else:
        carries, buffer = (rate, limit) if place == "hop" else (1000, 4000)
        link = {"rate": f"{carries:.2f}Mbit/s", "delay": "0ms", "error_rate": 0.0, "buffer": buffer}
        home["wireless_link"] = link | {"station_rate": "1000Mbit/s", "station_delay": "0ms"}
    ways = ("up",) if kind.endswith("up") else ("down", "up") if kind == "both" else ("down",)
    ends = {"down": {"from": "W", "to": "A"}, "up": {"from": "A", "to": "W"}}
    home["flow"] = [
        {"name": f"{way}-{i + 1}", **ends[way], "kind": "ftp", "cc": cc, "start": f"{BEGIN + draw.uniform(0, 0.3):.3f}s"}
        for way in ways
        for i in range(flows)
    ]
    home["flow"] += [{"name": f"game-{way}", **ends[way], "kind": f"game-{what}"} for way, what in (("down", "server"), ("up", "client"))]
    loads = tuple(cells.Load("tcp", flows, way, cc) for way in ways)
    bars = cells.SLOW_UPLOAD["bars"] if kind == "slow-up" else ("game", "goodput")
    cell = cells.Cell(home["name"], "drawn", loads, down=rate, up=rate, rtt=rtt, bars=bars, least=least)
    words = (place, f"{rate:.1f}", f"{rtt:.0f}", f"{flows} {cc}")
    return {"kind": kind, "number": number, "home": home, "ways": ways, "cc": cc, "words": words, "cell": cell}


def shown(report, ways):
    """Goodput of each way, bit/s, and what a game waits, p99, ms."""
    of = lambda kind: [flow for flow in report["flows"] if flow["name"].startswith(f"{kind}-")]  # noqa: E731
    return [sum(flow["goodput_bps"] for flow in of(way)) for way in ways], max(flow["added_delay"]["p99"] for flow in of("game"))


def play(simulator, kind, number):
    case = generate(kind, number)
    later = case["home"] | {"measure_from": f"{BEGIN + FIRST}s", "duration": f"{BEGIN + FIRST + REST}s"}
    first = case["home"] | {"measure_from": f"{BEGIN}s", "duration": f"{BEGIN + FIRST}s"}
    control = {"control.window": {"capacity": "learn"}}
    off, waited = shown(simulator.play(later), case["ways"])
    on, waits = shown(simulator.play(later | control), case["ways"])
    _, began = shown(simulator.play(first | control), case["ways"])
    part = min(a / b for a, b in zip(on, off, strict=True))
    bounds = judge.first_bound(case["cell"]), judge.rest_bound(case["cell"])
    holds = (part >= case["cell"].least, began <= bounds[0], waits <= bounds[1])
    return case | {"part": part, "waited": waited, "first": began, "rest": waits, "bounds": bounds, "holds": holds}


def summary(name, results):
    if not results:
        return f"| {name} | 0 |  |  |  |  |  |  |"
    held = [sum(r["holds"][i] for r in results) for i in range(3)]
    spread = lambda key: f"{statistics.mean(r[key] for r in results):.1f}, at most {max(r[key] for r in results):.0f}"  # noqa: E731
    part = f"{statistics.mean(r['part'] for r in results):.3f}, least {min(r['part'] for r in results):.2f}"
    cells = [name, len(results), held[0], part, held[1], spread("first"), held[2], spread("rest")]
    return "| " + " | ".join(map(str, cells)) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path)
    parser.add_argument("--cases", type=int, default=100, help="of each kind")
    parser.add_argument("--only", help=f"kinds: {','.join(KINDS)}")
    parser.add_argument("--all", action="store_true", help="a row for each home")
    parser.add_argument("-j", type=int, dest="jobs")
    arguments = parser.parse_args()
    kinds = list(KINDS) if arguments.only is None else arguments.only.split(",")
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise SystemExit(f"no kind `{unknown[0]}`; there are {', '.join(KINDS)}")
    simulator = simulated.Simulator(arguments.binary, arguments.jobs)
    cases = [(kind, number) for kind in kinds for number in range(arguments.cases)]
    results = simulator.all(lambda case: play(simulator, *case), cases, "homes")
    if arguments.all:
        print("| home | place | Mbit/s | RTT, ms | flows each way | of the goodput | first 5 s, ms | bound | then | bound | without |")
        print("|---|---|---|---|---|---|---|---|---|---|---|")
        for r in results:
            figures = [f"{r['part']:.2f}", f"{r['first']:.1f}", f"{r['bounds'][0]:.1f}", f"{r['rest']:.1f}", f"{r['bounds'][1]:.1f}"]
            print("| " + " | ".join([f"{r['kind']} {r['number']}", *r["words"], *figures, f"{r['waited']:.0f}"]) + " |")
        print()
    print("| homes | of them | goodput holds | part of that without control | first 5 s hold | p99, ms | then holds | p99, ms |")
    print("|---|---|---|---|---|---|---|---|")
    for kind in kinds:
        of_kind = [r for r in results if r["kind"] == kind]
        print(summary(kind, [r for r in of_kind if r["cc"] != "bbr"]))
        print(summary(f"{kind}, BBR", [r for r in of_kind if r["cc"] == "bbr"]))


if __name__ == "__main__":
    main()

"""Do the bounds of the matrix of real kernels (`tools/outside/judge.py`) hold between its cells, in the simulator?

    tools/study/bounds.py [--binary FILE] [--cases 100] [--only down,both] [--all]

Homes drawn at random, without window control and with it: a wired port, a last hop of two directions or the WAN link; 20 to 100
Mbit/s, or slower; round trips of 10 to 100 ms; 1 to 16 flows of CUBIC, NewReno or BBR, which begin within 0.3 s of each other;
a game. Goodput counts, and the game's delay a second time, from 5 s after the first flow on. What holds of a cell: goodput, the game's
99th percentile in the first 5 s, and from then on. BBR empties its windows every 10 s, and its rows are counted apart.
"""

import argparse
import statistics
import sys
from pathlib import Path

import odd
import simulated

sys.path.append(str(simulated.ROOT / "tools" / "outside"))
import cells  # noqa: E402
import judge  # noqa: E402

BEGIN, FIRST, SECONDS = 3.0, judge.FIRST_S, cells.Cell.seconds
ENDS = {"down": {"from": "W", "to": "A"}, "up": {"from": "A", "to": "W"}}
# As the simulator names them.
CC = {"reno": "newreno"}


def scenario(cell):
    """A cell of one station as a home of the simulator. The last hop is a port, or one medium of both directions where its queue is hidden."""
    home = {"format": 1, "name": cell.name, "seed": int(cell.name.rpartition("-")[2])}
    wan = {"delay": f"{cell.rtt / 4:.2f}ms", "rate_down": "1000Mbit/s", "rate_up": "1000Mbit/s", "buffer_down": 2000, "buffer_up": 2000}
    if cell.line:
        rates = {f"rate_{way}": f"{mbps:.2f}Mbit/s" for way, mbps in zip(("down", "up"), cell.line, strict=True)}
        wan |= rates | {"buffer_down": cell.line_limit, "buffer_up": cell.line_limit}
        wan |= {f"burst_{way}": cells.burst_bytes(mbps, cell.line_burst_ms) for way, mbps in zip(("down", "up"), cell.line, strict=True)}
    home |= {"wan": wan, "server": [{"name": "W", "delay": f"{cell.rtt / 4:.2f}ms", "buffer": 4000}], "station": [{"name": "A"}]}
    if cell.down and cell.place == "ap":
        home["bridge"] = odd.port(cell.down) | {"queue": odd.queue(cell.limit), "station_queue": odd.queue(cell.limit)}
    else:
        carries, buffer = (cell.down, cell.limit) if cell.down else (1000, 4000)
        link = {"rate": f"{carries:.2f}Mbit/s", "delay": "0ms", "error_rate": 0.0, "buffer": buffer}
        home["wireless_link"] = link | {"station_rate": "1000Mbit/s", "station_delay": "0ms"}
    home["flow"] = [
        {"name": f"{load.direction}-{i}", **ENDS[load.direction], "kind": "ftp", "cc": CC.get(load.cc, load.cc), "start": f"{BEGIN + load.begins}s"}
        for i, load in enumerate(cell.loads)
    ]
    home["flow"] += [{"name": f"game-{way}", **ends, "kind": f"game-{what}"} for (way, ends), what in zip(ENDS.items(), ("server", "client"), strict=True)]
    return home


def shown(report, ways):
    """Goodput of each way, bit/s, and what a game waits, p99, ms."""
    of = lambda kind: [flow for flow in report["flows"] if flow["name"].startswith(f"{kind}-")]  # noqa: E731
    return [sum(flow["goodput_bps"] for flow in of(way)) for way in ways], max(flow["added_delay"]["p99"] for flow in of("game"))


def play(simulator, kind, number):
    cell = cells.drawn(kind, number)
    home, ways = scenario(cell), sorted({load.direction for load in cell.loads})
    seen = lambda begin, end: {"measure_from": f"{BEGIN + begin}s", "duration": f"{BEGIN + end}s"}  # noqa: E731
    control = {"control.window": {"capacity": "learn"}}
    off, waited = shown(simulator.play(home | seen(0, SECONDS)), ways)
    on, _ = shown(simulator.play(home | seen(0, SECONDS) | control), ways)
    _, began = shown(simulator.play(home | seen(0, FIRST) | control), ways)
    _, waits = shown(simulator.play(home | seen(FIRST, SECONDS) | control), ways)
    part = min(a / b for a, b in zip(on, off, strict=True))
    bounds = judge.first_bound(cell), judge.rest_bound(cell)
    holds = (part >= cell.least, began <= bounds[0], waits <= bounds[1])
    return {"cell": cell, "kind": kind, "part": part, "waited": waited, "first": began, "rest": waits, "bounds": bounds, "holds": holds}


def words(cell):
    where = f"line, {cell.line_burst_ms:.0f} ms at once" if cell.line else "port" if cell.place == "ap" else "hop"
    return cell.name, where, f"{judge.capacity(cell):.1f}", f"{cell.rtt:.0f}", f"{len(cell.loads)} {cell.loads[0].cc}"


def is_bbr(cell):
    return cell.loads[0].cc == "bbr"


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
    parser.add_argument("--only", help=f"kinds: {','.join(cells.DRAWN)}")
    parser.add_argument("--all", action="store_true", help="a row for each home")
    parser.add_argument("-j", type=int, dest="jobs")
    arguments = parser.parse_args()
    kinds = list(cells.DRAWN) if arguments.only is None else arguments.only.split(",")
    if unknown := [kind for kind in kinds if kind not in cells.DRAWN]:
        raise SystemExit(f"no kind `{unknown[0]}`; there are {', '.join(cells.DRAWN)}")
    simulator = simulated.Simulator(arguments.binary, arguments.jobs)
    cases = [(kind, number) for kind in kinds for number in range(arguments.cases)]
    results = simulator.all(lambda case: play(simulator, *case), cases, "homes")
    if arguments.all:
        print("| home | place | Mbit/s | RTT, ms | flows | of the goodput | first 5 s, ms | bound | then | bound | without |")
        print("|---|---|---|---|---|---|---|---|---|---|---|")
        for r in results:
            figures = [f"{r['part']:.2f}", f"{r['first']:.1f}", f"{r['bounds'][0]:.1f}", f"{r['rest']:.1f}", f"{r['bounds'][1]:.1f}"]
            print("| " + " | ".join([*words(r["cell"]), *figures, f"{r['waited']:.0f}"]) + " |")
        print()
    print("| homes | of them | goodput holds | part of that without control | first 5 s hold | p99, ms | then holds | p99, ms |")
    print("|---|---|---|---|---|---|---|---|")
    for kind in kinds:
        of_kind = [r for r in results if r["kind"] == kind]
        print(summary(kind, [r for r in of_kind if not is_bbr(r["cell"])]))
        print(summary(f"{kind}, BBR", [r for r in of_kind if is_bbr(r["cell"])]))


if __name__ == "__main__":
    main()

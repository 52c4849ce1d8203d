#!/usr/bin/env python3
"""Is work conserved? One greedy flow and any set of small ones, without window control and with it, in the simulator.

    tools/study/conserve.py [--binary FILE] [--cases 1000] [--seed 1] [--only 3,17] [--worst 20] [--keep FOLDER]
    tools/study/conserve.py --show 17              case 17 as a scenario, with control
    tools/study/conserve.py --quic                 the greedy flow is QUIC
    tools/study/conserve.py --bunches              the place is a port that delivers in bunches, at the multiples of 1 to 20 ms
    tools/study/conserve.py --queue fq_codel       this queue at both ends of the hop, and no window control, in place of window control

A case is a place of the bottleneck (the air, a wired port, the line down, the line up), a direction, 5 to 50 Mbit/s, a round
trip of 5 to 120 ms, a buffer, and none to 30 flows that never need much (`odd.py`). The greedy flow has to get 97 % of what it
gets without control, from 2 s after its start on; what the small ones get more (their round trips are shorter) it may lack.
"""

import argparse
import json
import random
import statistics
import sys
from pathlib import Path

import odd
import simulated

LASTS = 8
# From the greedy flow's start on, s.
STARTUP = 2
WANTED = 0.97
# What a packet costs on the air besides its own bytes: contention, preamble, ACK.
AIR_BYTES = 800
PLACES = {"air": 25, "port": 35, "line-down": 20, "line-up": 20}
AIR = {6: 5, 12: 9, 24: 15, 54: 25}


def generate(seed, number, quic=False, bunches=False):
    """Case `number`: its home, the direction of its greedy flow, and when the controller comes."""
    draw = random.Random(f"{seed}/conserve/{number}")
    place = draw.choices(list(PLACES), list(PLACES.values()))[0]
    place = "port" if bunches else place
    direction = place.removeprefix("line-") if place.startswith("line") else draw.choice(["down", "up"])
    rate = round(odd.log_uniform(draw, 5, 50), 1)
    rtt = odd.log_uniform(draw, 5, 120)
    home = {"format": 1, "name": f"conserve-{number}", "duration": f"{LASTS}s", "seed": number}
    line = {"delay": "1ms", "rate_down": "1000Mbit/s", "rate_up": "1000Mbit/s", "buffer_down": 1000, "buffer_up": 1000}
    stations = [{"name": f"S{i + 1}"} for i in range(draw.randint(1, 4))]
    if place == "air":
        own = draw.choice(list(AIR))
        rate = AIR[own]
        stations = [station | {"rate": f"{own}Mbit/s"} for station in stations]
    in_flight = rate * 1e3 * rtt / 8 / 1500
    limit = max(60, round(in_flight * odd.log_uniform(draw, 1, 4)))
    if place.startswith("line"):
        other = round(rate / draw.choice([1, 2, 5, 10]) if direction == "down" else rate * draw.choice([1, 2, 5, 10]), 1)
        down, up = (rate, other) if direction == "down" else (other, rate)
        line |= {"rate_down": f"{down}Mbit/s", "rate_up": f"{up}Mbit/s", "buffer_down": limit, "buffer_up": limit}
    home["wan"] = line
    if place == "air":
        home["wifi"] = {"queue": odd.queue(limit), "station_queue": odd.queue(limit)}
    else:
        hop = odd.port(rate if place == "port" else 190)
        home["bridge"] = hop | {"queue": odd.queue(limit), "station_queue": odd.queue(limit)}
        if bunches:
            interval = odd.log_uniform(random.Random(f"{seed}/bunches/{number}"), 1, 20)
            home["bridge"]["delivery_interval"] = f"{interval:.1f}ms"
    home["server"] = [
        {"name": "W1", "delay": f"{max(rtt / 2 - 1, 0.5):.1f}ms"},
        {"name": "W2", "delay": f"{odd.log_uniform(draw, 1, 60):.1f}ms"},
    ]
    home["station"] = stations
    ends = {"from": "W1", "to": "S1"} if direction == "down" else {"from": "S1", "to": "W1"}
    start = draw.choice([0, 0.5, 1.5])
    cc = draw.choices(["cubic", "newreno", "bbr"], [75, 15, 10])[0]
    home["flow"] = [{"name": "greedy", **ends, "kind": "quic" if quic else "ftp", "cc": cc, "start": f"{start}s"}]
    count = draw.choice([0, 1, 1, 2, 3, 5, 10, 30])
    home["flow"] += [
        odd.small(draw, i + 1, draw.choice(["W1", "W2"]), draw.choice(stations)["name"]) for i in range(count)
    ]
    home["measure_from"] = f"{start + STARTUP}s"
    late = f"{draw.choice([0.5, 1.0, 2.0])}s" if draw.random() < 0.1 else "0s"
    return {"home": home, "place": place, "direction": direction, "late": late, "cc": cc, "count": count, "rate": rate, "rtt": rtt}


def with_control(case, capacity):
    return case["home"] | {"control.window": {"capacity": capacity, "start": case["late"]}}


def carried(report, case):
    """Goodput of the greedy flow, and of the small ones that share its bottleneck; Mbit/s."""
    on_air = case["place"] == "air"
    flows = list(simulated.flows(report, direction=None if on_air else case["direction"]))
    small = [f for f in flows if f["name"] != "greedy"]
    besides = on_air * AIR_BYTES * 8 * sum(f["delivered"] for f in small) / (report["duration_s"] - report["measure_from_s"])
    greedy = sum(f["goodput_bps"] for f in flows if f["name"] == "greedy")
    return greedy / 1e6, (sum(f["rate_bps"] for f in small) + besides) / 1e6


def with_queue(case, kind):
    hop = "wifi" if "wifi" in case["home"] else "bridge"
    queues = {key: case["home"][hop][key] | {"kind": kind} for key in ("queue", "station_queue")}
    return case["home"] | {hop: case["home"][hop] | queues}


def play(simulator, number, arguments):
    case = generate(arguments.seed, number, arguments.quic, arguments.bunches)
    other = with_queue(case, arguments.queue) if arguments.queue else with_control(case, arguments.capacity)
    (off, small_off) = carried(simulator.play(case["home"]), case)
    (on, small_on) = carried(simulator.play(other), case)
    wanted = off - max(0.0, small_on - small_off)
    return case | {"number": number, "off": off, "on": on, "small": (small_off, small_on), "ratio": on / max(wanted, 1e-9)}


def line_of(result):
    kinds = {}
    for flow in result["home"]["flow"][1:]:
        word = flow["name"].partition("-")[0] + (" half-closed" if flow.get("half_close") else "")
        kinds[word] = kinds.get(word, 0) + 1
    late = f", control from {result['late']}" if result["late"] != "0s" else ""
    return (
        f"{result['number']:5} {result['ratio']:6.3f}  {result['off']:6.2f} -> {result['on']:6.2f} Mbit/s  small"
        f" {result['small'][0]:.2f} -> {result['small'][1]:.2f}  {result['place']} {result['direction']} {result['rate']:g} Mbit/s,"
        f" {result['rtt']:.0f} ms, {result['cc']}{late}: " + ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="numbers of cases: 3,17")
    parser.add_argument("--capacity", default="learn")
    parser.add_argument("--quic", action="store_true")
    parser.add_argument("--bunches", action="store_true")
    parser.add_argument("--queue", help="a kind of the simulator's queues: fq_codel")
    parser.add_argument("--worst", type=int, default=20)
    parser.add_argument("--show", type=int)
    parser.add_argument("--keep", type=Path, help="write the worst as scenarios into this folder")
    parser.add_argument("--json", type=Path)
    parser.add_argument("-j", type=int, dest="jobs")
    arguments = parser.parse_args()
    drawn = lambda number: generate(arguments.seed, number, arguments.quic, arguments.bunches)  # noqa: E731
    scenario = lambda number: simulated.toml(with_control(drawn(number), arguments.capacity))  # noqa: E731
    if arguments.show is not None:
        sys.stdout.write(scenario(arguments.show))
        return
    simulator = simulated.Simulator(arguments.binary, arguments.jobs)
    numbers = range(1, arguments.cases + 1)
    if arguments.only:
        numbers = [int(word) for word in arguments.only.split(",")]
    results = simulator.all(lambda n: play(simulator, n, arguments), numbers, "cases")
    failed = sorted((r for r in results if r["ratio"] < WANTED), key=lambda r: r["ratio"])
    shares = {}
    for place in PLACES:
        for direction in ("down", "up"):
            of = [r for r in results if (r["place"], r["direction"]) == (place, direction)]
            if of:
                bad = sum(r["ratio"] < WANTED for r in of)
                shares[place, direction] = f"{place} {direction} {bad} of {len(of)}"
    print(f"{len(failed)} of {len(results)} cases under {WANTED}: {'; '.join(shares.values())}")
    print(f"median ratio {statistics.median(r['ratio'] for r in results):.3f}; the worst:")
    print("\n".join(line_of(r) for r in failed[: arguments.worst]))
    if arguments.json:
        arguments.json.write_text(json.dumps([{k: r[k] for k in r if k != "home"} for r in results], indent=1) + "\n")
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        for r in failed[: arguments.worst]:
            (arguments.keep / f"conserve-{r['number']}.toml").write_text(f"# {line_of(r).strip()}\n" + scenario(r["number"]))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()

"""QUIC alone and beside TCP: has each what it should have, and how long does a game beside them wait?

    tools/study/quic.py [--binary FILE] [--cases 160] [--all]

Homes drawn at random, in the simulator, without window control and with it: a bottleneck (a wired port or the WAN link, either direction, of 8 to
60 Mbit/s; the air, frames of 24 Mbit/s), a round trip of 8 to 100 ms, one or two flows of QUIC (CUBIC, or NewReno in a third), none to two of TCP, a game,
and up to four connections that never need much (`odd.py`). QUIC that shares with TCP should have 0.8 to 1.25 of what that has, each in the mean
of its kind; QUIC whose queue nobody shows is not held.
"""

import argparse
import random
import statistics
from pathlib import Path

import odd
import simulated

PLACES = ("port", "port-up", "line-down", "line-up", "air")
LEAST = 0.97
FAIR = (0.8, 1.25)
# A game that waits for this part of what it does without control is one that control helps.
HELPED = 0.9


def generate(number):
    draw = random.Random(f"quic/{number}")
    place = PLACES[number % len(PLACES)]
    rate, rtt = draw.uniform(8, 60), draw.uniform(8, 100)
    quic, tcp, cc = draw.choice((1, 1, 2)), draw.choice((0, 0, 1, 1, 2)), draw.choice(("cubic", "cubic", "newreno"))
    home = {"format": 1, "name": f"quic-{number}", "duration": "20s", "measure_from": "8s", "seed": number}
    limit = max(100, round(rate * 1e3 * rtt / 8 / 1500 * draw.uniform(1, 3)))
    line = {"delay": "1ms", "rate_down": "1000Mbit/s", "rate_up": "1000Mbit/s", "buffer_down": 1000, "buffer_up": 1000}
    if place.startswith("line"):
        down, up = (rate, rate / 3) if place == "line-down" else (2 * rate, rate)
        line |= {"rate_down": f"{down:.1f}Mbit/s", "rate_up": f"{up:.1f}Mbit/s", "buffer_down": limit, "buffer_up": limit}
    home["wan"] = line
    home["server"] = [{"name": "W", "delay": f"{rtt / 2 - 1:.1f}ms"}]
    queues = {"queue": odd.queue(limit), "station_queue": odd.queue(limit)}
    home["station"] = [{"name": "A"}, {"name": "G"}]
    if place == "air":
        home["wifi"] = queues
        home["station"] = [station | {"rate": "24Mbit/s"} for station in home["station"]]
    else:
        home["bridge"] = odd.port(rate if place.startswith("port") else 190) | queues
    ends = {"from": "A", "to": "W"} if place.endswith("up") else {"from": "W", "to": "A"}
    start = lambda: {"start": f"{0.5 + draw.random():.2f}s"}  # noqa: E731
    home["flow"] = [
        *({"name": f"quic-{i + 1}", **ends, "kind": "quic", "cc": cc} | start() for i in range(quic)),
        *({"name": f"tcp-{i + 1}", **ends, "kind": "ftp"} | start() for i in range(tcp)),
        {"name": "game-down", "from": "W", "to": "G", "kind": "game-server"},
        {"name": "game-up", "from": "G", "to": "W", "kind": "game-client"},
        *(odd.small(draw, i + 1, "W", "G") for i in range(draw.choice((1, 2, 4)))),
    ]
    carries = "24, frames" if place == "air" else f"{rate:.0f}"
    words = (place, carries, f"{rtt:.0f}", f"{quic} {cc}", f"{tcp}")
    return {"number": number, "home": home, "words": words, "flows": (quic, tcp)}


def shown(report, flows):
    """Goodput of QUIC and of TCP, each of a flow in the mean, bit/s, and what a game waits, p99, ms."""
    of = lambda kind: [flow for flow in report["flows"] if flow["name"].startswith(kind)]  # noqa: E731
    rates = [sum(flow["goodput_bps"] for flow in of(kind)) / max(count, 1) for kind, count in zip(("quic-", "tcp-"), flows, strict=True)]
    return rates, max(flow["added_delay"]["p99"] for flow in of("game"))


def play(simulator, number):
    case = generate(number)
    free, waited = shown(simulator.play(case["home"]), case["flows"])
    held, waits = shown(simulator.play(case["home"] | {"control.window": {"capacity": "learn"}}), case["flows"])
    together = lambda rates: sum(rate * count for rate, count in zip(rates, case["flows"], strict=True))  # noqa: E731
    ratio = held[0] / held[1] if case["flows"][1] else None
    return case | {"part": together(held) / together(free), "ratio": ratio, "waited": waited, "waits": waits}


def summary(name, results):
    if not results:
        return f"{name}: none"
    parts, waits = [r["part"] for r in results], sorted(r["waits"] for r in results)
    text = (
        f"{name}, {len(results)} homes: {statistics.mean(parts):.3f} of the goodput in the mean, {sum(p < LEAST for p in parts)} under {LEAST},"
        f" least {min(parts):.2f}; game p99 {statistics.mean(waits):.1f} ms in the mean, nine of ten {waits[len(waits) * 9 // 10]:.1f}, most"
        f" {waits[-1]:.0f} (without control {statistics.mean(r['waited'] for r in results):.0f})"
    )
    ratios = [r["ratio"] for r in results if r["ratio"] is not None]
    if ratios:
        fair = sum(FAIR[0] <= ratio <= FAIR[1] for ratio in ratios)
        text += f"; QUIC over TCP {min(ratios):.2f} to {max(ratios):.2f}, {fair} of {len(ratios)} within {FAIR[0]} to {FAIR[1]}"
    return text + "."


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path)
    parser.add_argument("--cases", type=int, default=160)
    parser.add_argument("--all", action="store_true", help="a row for each home")
    parser.add_argument("-j", type=int, dest="jobs")
    arguments = parser.parse_args()
    simulator = simulated.Simulator(arguments.binary, arguments.jobs)
    results = simulator.all(lambda number: play(simulator, number), range(arguments.cases), "homes")
    if arguments.all:
        print("| home | place | Mbit/s | RTT, ms | QUIC | TCP | of the goodput | QUIC : TCP | game p99 without, ms | with |")
        print("|---|---|---|---|---|---|---|---|---|---|")
        for r in results:
            ratio = "" if r["ratio"] is None else f"{r['ratio']:.2f}"
            words = [str(r["number"]), *r["words"], f"{r['part']:.2f}", ratio, f"{r['waited']:.0f}", f"{r['waits']:.1f}"]
            print("| " + " | ".join(words) + " |")
        print()
    alone = [r for r in results if r["ratio"] is None]
    helps = lambda r: r["waits"] < HELPED * r["waited"]  # noqa: E731
    print(summary("QUIC beside TCP", [r for r in results if r["ratio"] is not None]))
    print(summary("QUIC alone, held", [r for r in alone if helps(r)]))
    print(summary("QUIC alone, not held", [r for r in alone if not helps(r)]))


if __name__ == "__main__":
    main()

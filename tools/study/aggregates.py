"""Does window control keep the frames of today's radios full, and how long does a game beside it wait?

    tools/study/aggregates.py [--binary FILE] [--homes 100] [--set control.law.queue_turns=1.5] [--all]

In the simulator: homes of 802.11n, ac and ax drawn at random: 1 to 8 stations of several rates, 1 to 16 downloads and uploads of CUBIC,
round trips of 5 to 100 ms, queues of a FIFO, of Linux (AQL) and FQ-CoDel above the firmware's; without control and with it, from second 15 to 30.
Goodput of one home says little where stations differ: a sum is as large as the part that the fastest of them happens to have. So
"work" is the sum over the flows of goodput by the rate of its frames: the part of time in which bits are on the air.
"""

import argparse
import concurrent.futures
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

# Of one stream at 20 MHz, Mbit/s, by standard: MCS 0, and the others' multiples of it (IEEE 802.11-2020, table 19-27).
LOWEST = {"802.11n": 6.5, "802.11ac": 6.5, "802.11ax": 8.6}
MULTIPLES = (1, 2, 3, 4, 6, 8, 9, 10, 12, 40 / 3, 15, 50 / 3)
HIGHEST = {"802.11n": 7, "802.11ac": 8, "802.11ax": 11}
WIDER = {"20MHz": 1, "40MHz": 2.08, "80MHz": 4.5}
QUEUES = (("fifo", 0), ("fifo", 0), ("mac80211", 0), ("fq_codel", 64), ("fq_codel", 500))
# Of what the same home has without control.
LEAST = 0.97
GAMES = (("game-down", "W", "S0", "game-server"), ("game-up", "S0", "W", "game-client"))


def drawn(number):
    """Home `number`: its text, the rate of each flow's frames, and what it is in a few words."""
    draw = random.Random(f"aggregates/{number}")
    standard = draw.choice(tuple(LOWEST))
    width = draw.choice(("20MHz", "40MHz") if standard == "802.11n" else tuple(WIDER))
    streams = draw.choice((1, 2))
    queue, firmware = draw.choice(QUEUES)
    stations = draw.choice((1, 1, 2, 3, 4, 8))
    flows = max(stations, round(2 ** draw.uniform(0, 4)))
    uploads = min(draw.choice((0, 0, 0, 1, 2)), flows - 1)
    rtt = 5 * 20 ** draw.random()
    slow = draw.random() < 0.4
    each = [
        draw.randint(0, 2) if slow and i == stations - 1 else draw.randint(3, HIGHEST[standard])
        for i in range(stations)
    ]
    text = f"""
format = 1
name = "aggregates"
duration = "30s"
measure_from = "15s"
[wan]
delay = "{rtt / 4:.2f}ms"
[[server]]
name = "W"
delay = "{rtt / 4:.2f}ms"
[wifi]
standard = "{standard}"
band = "5GHz"
width = "{width}"
streams = {streams}
control_rate = "24Mbit/s"
queue = {{ kind = "{queue}" }}
firmware_queue = {firmware}
[control.window]
capacity = "learn"
"""
    for i, mcs in enumerate(each):
        text += f'[[station]]\nname = "S{i}"\ndistance = "1m"\nmcs = {mcs}\n'
    for i in range(flows):
        source, to = (f"S{i % stations}", "W") if i < uploads else ("W", f"S{i % stations}")
        text += f'[[flow]]\nname = "bulk-{i}"\nfrom = "{source}"\nto = "{to}"\nkind = "ftp"\ncc = "cubic"\n'
        text += f'start = "{i / 10:.1f}s"\n'
    for name, source, to, kind in GAMES:
        text += f'[[flow]]\nname = "{name}"\nfrom = "{source}"\nto = "{to}"\nkind = "{kind}"\n'
    rates = [LOWEST[standard] * MULTIPLES[each[i % stations]] * WIDER[width] * streams for i in range(flows)]
    words = f"{standard} {width} x {streams}, MCS {' '.join(map(str, each))}; {queue}"
    words += f" above {firmware}" if firmware else ""
    return text, rates, f"{words}; {flows - uploads} + {uploads}; {rtt:.0f} ms"


def play(binary, text, rates, sets):
    """Work, goodput in Mbit/s, and what is added to the game's packets, p99 of the worse way, ms."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        command = [binary, "sim", file.name, "--json", "-", *(word for one in sets for word in ("--set", one))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    flows = json.loads(done.stdout)["flows"]
    mbps = [flow["goodput_bps"] / 1e6 for flow in flows if flow["name"].startswith("bulk-")]
    waits = [flow["added_delay"]["p99"] for flow in flows if flow["name"].startswith("game-")]
    return sum(each / rate for each, rate in zip(mbps, rates, strict=True)), sum(mbps), max(waits)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default="target/release/lasthop")
    parser.add_argument("--homes", type=int, default=100)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the runs with control")
    parser.add_argument("--all", action="store_true", help="shows every home, not only those that lose")
    arguments = parser.parse_args()

    def both(number):
        text, rates, words = drawn(number)
        sets = (["control.window=none"], arguments.set)
        return number, words, *(play(arguments.binary, text, rates, each) for each in sets)

    print("| home | | without: Mbit/s | game p99, ms | with: work | goodput | game p99, ms |")
    print("|---|---|---|---|---|---|---|")
    works, goodputs, waits = [], [], []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, words, free, held in pool.map(both, range(arguments.homes)):
            works.append(held[0] / free[0])
            goodputs.append(held[1] / free[1])
            waits.append((free[2], held[2]))
            if arguments.all or works[-1] < LEAST:
                parts = f"{works[-1]:.3f} | {goodputs[-1]:.3f} | {held[2]:.1f}"
                print(f"| {number} | {words} | {free[1]:.1f} | {free[2]:.1f} | {parts} |", flush=True)
    below = sum(work < LEAST for work in works)
    longer = sum(held > free + 1 for free, held in waits)
    free, held = (statistics.mean(each) for each in zip(*waits, strict=True))
    print(f"\nWork: {statistics.mean(works):.3f} in the mean, {min(works):.3f} at least, {below} homes below {LEAST}.")
    print(f"Goodput: {statistics.mean(goodputs):.3f} in the mean, {min(goodputs):.3f} at least.")
    print(f"The game's p99: {free:.1f} and {held:.1f} ms in the mean; longer by more than 1 ms in {longer} homes.")


if __name__ == "__main__":
    main()

"""Both directions at once: has each of them what it has without control, and how long does a game beside them wait?

    tools/study/both_ways.py [--binary FILE] [--only line]
    tools/study/both_ways.py --drawn 100

In the simulator: one or four flows of CUBIC each way, over a last hop of two directions or a WAN link, round trips of 10 to 80 ms.
With --drawn: homes drawn at random, 8 to 50 downloads beside 2 to 8 uploads over a WAN link of 14 to 130 Mbit/s.
"""

import argparse
import itertools
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

# Mbit/s down and up.
HOP = ((50, 50), (20, 20))
LINE = ((50, 50), (20, 20), (20, 2), (50, 5), (100, 20))
RTTS_MS = (10, 40, 80)
FLOWS = (1, 4)
# Of what a direction has without control.
LEAST = 0.95


def drawn(number):
    """Home `number`: its place, rates, round trip and flows each way."""
    draw = random.Random(f"both-ways/{number}")
    down = round(draw.choice((20, 50, 100)) * draw.uniform(0.7, 1.3), 1)
    rates = (down, round(down / draw.choice((1, 2, 5)), 1))
    flows = (draw.choice((8, 16, 30, 50)), draw.choice((2, 4, 8)))
    return ("line", rates), draw.choice((10, 20, 40, 80)), flows


def scenario(place, rates, rtt, flows):
    """Half of the path before the home is the server's."""
    down, up = rates
    hop, line = (rates, (1000, 1000)) if place == "hop" else ((1000, 1000), rates)
    buffer = 1000 if place == "hop" else 256
    text = f"""
format = 1
name = "both-ways"
duration = "25s"
measure_from = "8s"
[wan]
delay = "{rtt / 4}ms"
rate_down = "{line[0]}Mbit/s"
rate_up = "{line[1]}Mbit/s"
buffer_down = {buffer}
buffer_up = {buffer}
[[server]]
name = "W"
delay = "{rtt / 4}ms"
rate = "1000Mbit/s"
buffer = 2000
[wireless_link]
rate = "{hop[0]}Mbit/s"
delay = "0ms"
error_rate = 0.0
buffer = {buffer}
station_rate = "1000Mbit/s"
station_delay = "0ms"
[[station]]
name = "N"
[control.window]
capacity = "learn"
"""
    for name, source, to, count in (("down", "W", "N", flows[0]), ("up", "N", "W", flows[1])):
        for i in range(count):
            start = f"{3 + 0.1 * (i % 20):.1f}s"
            text += f'[[flow]]\nname = "{name}-{i + 1}"\nfrom = "{source}"\nto = "{to}"\nkind = "ftp"\n'
            text += f'cc = "cubic"\nstart = "{start}"\n'
    for name, source, to, kind in (("game-down", "W", "N", "game-server"), ("game-up", "N", "W", "game-client")):
        text += f'[[flow]]\nname = "{name}"\nfrom = "{source}"\nto = "{to}"\nkind = "{kind}"\n'
    return text


def play(binary, file, *sets):
    """Goodput of each direction, Mbit/s, and what is added to the game's packets, p99, ms."""
    done = subprocess.run([binary, "sim", file, "--json", "-", *sets], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    flows = json.loads(done.stdout)["flows"]
    mbps = [
        sum(flow["goodput_bps"] for flow in flows if flow["name"].startswith(way)) / 1e6 for way in ("down-", "up-")
    ]
    added = [flow["added_delay"]["p99"] for flow in flows if flow["name"].startswith("game")]
    return mbps, added


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="target/release/lasthop")
    parser.add_argument("--only", choices=("hop", "line"))
    parser.add_argument("--drawn", type=int, metavar="HOMES")
    arguments = parser.parse_args()
    places = [("hop", rates) for rates in HOP] + [("line", rates) for rates in LINE]
    places = [place for place in places if arguments.only in (None, place[0])]
    parts, waits, waits_free = [], [], []
    print("| place | Mbit/s | RTT, ms | flows | without: Mbit/s | game p99, ms | with: part | game p99, ms |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "both-ways.toml"
        homes = itertools.product(places, RTTS_MS, ((each, each) for each in FLOWS))
        if arguments.drawn is not None:
            homes = map(drawn, range(arguments.drawn))
        for (place, rates), rtt, flows in homes:
            file.write_text(scenario(place, rates, rtt, flows))
            free, waited = play(arguments.binary, file, "--set", "control.window=none")
            held, waits_now = play(arguments.binary, file)
            part = [with_it / without for with_it, without in zip(held, free)]
            parts += part
            waits += waits_now
            waits_free += waited
            words = [
                place,
                "{}/{}".format(*rates),
                f"{rtt}",
                "{} + {}".format(*flows),
                "{:.1f} + {:.1f}".format(*free),
                "{:.0f} + {:.0f}".format(*waited),
                "{:.2f} {:.2f}".format(*part),
                "{:.1f} + {:.1f}".format(*waits_now),
            ]
            print("| " + " | ".join(words) + " |", flush=True)
    low = sum(part < LEAST for part in parts)
    print(
        f"\n{low} of {len(parts)} directions under {LEAST} of what they have without control, the least {min(parts):.2f};"
    )
    mean, free = (sum(each) / len(each) for each in (waits, waits_free))
    print(f"game p99: mean {mean:.1f} ms each way ({free:.0f} without control), most {max(waits):.0f} ms.")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Random homes, each without window control and with it, at the same seeds, in the simulator.

    tools/study/random_homes.py [--homes 1000] [--kind all] [--seed 7] [--capacity learn] [--json FILE] [--keep FOLDER]
    tools/study/random_homes.py --kind odd --show 17          the scenario of odd home 17, as text

So many of each kind, a summary each. Random (`--kind random`): 1-16 stations of 1-54 Mbit/s (802.11g, 802.11b, or both), 1-4 servers with round trips of 5-300 ms, queues of 20-2,000 packets
of several kinds, now and then a slow line before the home or a queue in the radio's firmware, 1-64 flows of all kinds in both
directions. Real-time flows are offered at most 40 % of the air, since what does not fit cannot be kept smooth by anybody.
Odd (`--kind odd`, drawn by odd.py): what those are not: asymmetric lines, ports of a bridge, some of which deliver in bunches, both directions at once, and connections that
idle, poll, push, ask and think, are half-closed, have tiny windows, or were there before the controller.

Goodput is what elastic flows had acknowledged in the run. A home's p99 is the mean over its real-time flows of the 99th
percentile of their added delay. `air` is the share of the time in which somebody sent: where it stays and goodput falls, others
than before were served (Jain's index says how evenly), where it falls, air was left unused. `--keep` writes the ten homes that lose most as scenarios.
"""

import argparse
import json
import math
import random
import statistics
import sys
from pathlib import Path

import odd
import simulated

G_RATES = [6, 9, 12, 18, 24, 36, 48, 54]
B_RATES = [1, 2, 5.5, 11]
LASTS = 20
SHORT = 5
# Flows begin within this time.
BEGIN = 8
REALTIME_SHARE = 0.4
# What a home may lose before it is listed: share of goodput, ms of p99.
LISTED = (0.05, 5.0)
# Two-sided 99 % of a normal distribution.
Z99 = 2.576


log_uniform = odd.log_uniform


def generate(seed, number, kind="random"):
    """Home `number`: the same for ever for the same seed."""
    if kind == "odd":
        return odd.home(random.Random(f"{seed}/odd/{number}"), number)
    draw = random.Random(f"{seed}/{number}")
    kind = draw.choices(["g", "mixed", "b"], [65, 20, 15])[0]
    home = {"format": 1, "name": f"random-{number}", "duration": f"{LASTS}s", "seed": number}
    home["wan"] = line(draw)
    home["wifi"] = wifi(draw, kind)
    home["server"] = [
        {"name": f"W{i + 1}", "delay": f"{max(log_uniform(draw, 5, 300) / 2 - 1, 0.5):.1f}ms"}
        for i in range(draw.randint(1, 4))
    ]
    home["station"] = stations(draw, kind)
    home["flow"] = flows(draw, home)
    return home


def line(draw):
    if draw.random() < 0.75:
        return {"delay": "1ms", "rate_down": "1000Mbit/s", "rate_up": "1000Mbit/s", "buffer_down": 1000, "buffer_up": 1000}
    down = round(log_uniform(draw, 4, 50), 1)
    up = round(down / draw.choice([1, 2, 5, 10]), 1)
    buffer = lambda: round(log_uniform(draw, 20, 1000))  # noqa: E731
    rates = {"rate_down": f"{down}Mbit/s", "rate_up": f"{max(up, 1)}Mbit/s"}
    return {"delay": "1ms", **rates, "buffer_down": buffer(), "buffer_up": buffer()}


def wifi(draw, kind):
    limit = lambda: round(log_uniform(draw, 20, 2000))  # noqa: E731
    air = {"standard": "802.11b" if kind == "b" else "802.11g"}
    air["queue"] = {"kind": draw.choices(["fifo", "fq_codel", "chap"], [70, 15, 15])[0], "limit": limit()}
    air["station_queue"] = {"kind": "fifo", "limit": limit()}
    if draw.random() < 0.15:
        air["firmware_queue"] = limit()
    if draw.random() < 0.2:
        air["loss"] = {"kind": "fixed", "rate": round(draw.uniform(0.01, 0.15), 3)}
    return air


def stations(draw, kind):
    result = []
    for i in range(draw.randint(1, 16)):
        is_b = kind == "b" or (kind == "mixed" and draw.random() < 0.4)
        rate = draw.choice(B_RATES if is_b else G_RATES)
        own = {"name": f"S{i + 1}", "rate": f"{rate}Mbit/s"}
        result.append(own | ({"standard": "802.11b"} if is_b and kind != "b" else {}))
    return result


def air_share(station, kind, size, per_second):
    """Of the air, what packets of `size` bytes take at a station's rate: their bits, and contention, header and ACK."""
    rate = float(station["rate"].removesuffix("Mbit/s"))
    is_b = kind == "802.11b" or "standard" in station
    return per_second * (size * 8 / rate + (900 if is_b else 200)) / 1e6


def flows(draw, home):
    wanted = round(log_uniform(draw, 1, 64))
    result, left = [], REALTIME_SHARE
    kinds = ["ftp", "quic", "game", "voip", "video-chat", "cbr", "video", "web"]
    weights = [40, 12, 14, 10, 6, 5, 8, 5]
    tries = 0
    while len(result) < wanted and tries < 4 * wanted + 20:
        tries += 1
        kind = draw.choices(kinds, weights)[0]
        station, server = draw.choice(home["station"]), draw.choice(home["server"])
        ends = {"from": server["name"], "to": station["name"]}
        if draw.random() < 0.3 and kind != "web":
            ends = {"from": station["name"], "to": server["name"]}
        back = {"from": ends["to"], "to": ends["from"]}
        start = {"start": f"{draw.uniform(0, BEGIN):.2f}s"}
        name = f"{kind}-{len(result) + 1}"
        cost, made = 0.0, []
        share = lambda size, each: air_share(station, home["wifi"]["standard"], size, each)  # noqa: E731, B023
        if kind in ("ftp", "quic"):
            made = [{"name": name, **ends, "kind": kind, **start, **elastic(draw, kind)}]
        elif kind == "game":
            down, up = ({"from": server["name"], "to": station["name"]}, {"from": station["name"], "to": server["name"]})
            made = [{"name": f"{name}-down", **down, "kind": "game-server"}, {"name": f"{name}-up", **up, "kind": "game-client"}]
            cost = share(200, 20) + share(42, 17)
        elif kind == "voip":
            made = [{"name": f"{name}-{direction}", **hosts, "kind": "voip"} for direction, hosts in (("a", ends), ("b", back))]
            cost = 2 * share(200, 50)
        elif kind == "video-chat":
            rate = draw.choice([0.3, 1.0, 2.0])
            made = [
                {"name": f"{name}-{direction}", **hosts, "kind": "video-chat", "rate": f"{rate}Mbit/s"}
                for direction, hosts in (("a", ends), ("b", back))
            ]
            cost = 2 * share(1000, rate * 1e6 / 8000)
        elif kind == "cbr":
            rate = round(log_uniform(draw, 0.05, 1.0), 2)
            made = [{"name": name, **ends, "kind": "cbr", "rate": f"{rate}Mbit/s", "size": "600B", **start}]
            cost = share(600, rate * 1e6 / 4800)
        elif kind == "video":
            rate = draw.choice([1.0, 2.5, 5.0])
            made = [{"name": name, **ends, "kind": "video", "rate": f"{rate}Mbit/s", **start}]
            if draw.random() < 0.5:
                made[0]["cc"] = "cubic"
            cost = share(1300, rate * 1e6 / 10400)
        else:
            page = draw.choice(["google-news", "yahoo", "wsj", "cnn"])
            made = [{"name": name, **ends, "kind": "web", "page": page, "cc": "cubic", **start}]
        if cost > left or over_line(home, made):
            continue
        left -= cost
        result += made
    return result


def over_line(home, made):
    """A stream that the slow line could not carry."""
    narrow = min(float(home["wan"][key].removesuffix("Mbit/s")) for key in ("rate_down", "rate_up"))
    return any(float(flow.get("rate", "0Mbit/s").removesuffix("Mbit/s")) > narrow / 4 for flow in made)


def elastic(draw, kind):
    own = {"cc": draw.choices(["cubic", "newreno", "reno", "bbr"], [60, 15, 5, 20])[0]}
    if draw.random() < 0.3:
        own["bytes"] = f"{round(log_uniform(draw, 200, 20_000))}kB"
    if draw.random() < 0.1:
        own["ecn"] = True
    return own


def begins(flow):
    return float(flow.get("start", "0s").removesuffix("s"))


def direction_of(flow):
    return "up" if flow["from"].startswith("S") else "down"


def greedy(home, direction=None):
    """Flows that never run dry, in one `direction` or all."""
    endless = [f for f in home["flow"] if f["kind"] in ("ftp", "quic") and "bytes" not in f and "window" not in f]
    return [flow for flow in endless if direction in (None, direction_of(flow))]


def alone(home, direction):
    """The home with nothing but greedy TCP in one `direction`, in queues that never overflow; None where nothing would fill it."""
    wanted = greedy(home, direction)
    if not wanted:
        return None
    deep = {"kind": "fifo", "limit": simulated.DEEP}
    hop = hop_of(home)
    air = {key: each for key, each in home[hop].items() if key != "firmware_queue"} | {"queue": deep, "station_queue": deep}
    wires = home["wan"] | {"buffer_down": simulated.DEEP, "buffer_up": simulated.DEEP}
    tcp = [{"name": f["name"], "from": f["from"], "to": f["to"], "kind": "ftp", "cc": "cubic"} for f in wanted]
    return home | {hop: air, "wan": wires, "flow": tcp, "measure_from": "6s", "duration": "16s"}


def hop_of(home):
    return "wifi" if "wifi" in home else "bridge"


def with_control(home, capacity):
    return home | {"control.window": {"capacity": capacity} | odd.late(home)}


def figures(report):
    """What a run comes to."""
    payload = {"ftp": 1460, "quic": 1164}
    fast = [f for f in simulated.flows(report, set(payload)) if not f["name"].startswith("tiny")]
    acked = sum(f["tcp"]["acked_packets"] * payload[f["kind"]] for f in fast)
    live = [f for f in simulated.flows(report, simulated.REALTIME) if "tcp" not in f and f["added_delay"]]
    pages = [f["page"]["load_ms"][0] for f in simulated.flows(report, {"web"}) if f["page"]["load_ms"]]
    return {
        "goodput": acked * 8 / LASTS / 1e6,
        "films": sum(f["goodput_bps"] for f in simulated.flows(report, {"video"}) if "tcp" in f) / 1e6,
        "p99": statistics.fmean(f["added_delay"]["p99"] for f in live) if live else None,
        "worst": max((f["added_delay"]["p99"] for f in live), default=None),
        "loss": statistics.fmean(f["loss_rate"] for f in live) if live else None,
        "page": statistics.fmean(pages) if pages else None,
        "pages": len(pages),
        "air": sum(station["airtime_share"] for station in report["stations"]),
        "fair": report["fairness"]["goodput"],
        "down": simulated.rate(report, direction="down"),
        "up": simulated.rate(report, direction="up"),
    }


def one_rate(home, direction):
    """All greedy flows in that `direction` cost the same: C does not hang on who sends how much."""
    ends = {flow["to"] if direction == "down" else flow["from"] for flow in greedy(home, direction)}
    return len({(s.get("rate"), s.get("standard")) for s in home["station"] if s["name"] in ends}) == 1


def play(simulator, kind, number, seed, capacity, with_truth, lasts=LASTS):
    home = generate(seed, number, kind)
    if lasts < LASTS:
        home |= {"duration": f"{lasts}s", "flow": [f for f in home["flow"] if begins(f) < lasts] or home["flow"][:1]}
        home["flow"] = [f | {"start": f"{begins(f) % lasts}s"} for f in home["flow"]]
    off = figures(simulator.play(home))
    report = simulator.play(with_control(home, capacity))
    on = figures(report)
    result = {"kind": kind, "home": number, "off": off, "on": on, "what": described(home), "capacity": {}}
    result["goodput"] = on["goodput"] / off["goodput"] - 1 if off["goodput"] > 0 else None
    result["p99"] = on["p99"] - off["p99"] if None not in (on["p99"], off["p99"]) else None
    for direction in ("down", "up") if with_truth else ():
        truth_home = alone(home, direction)
        if truth_home is None:
            continue
        truth = simulated.rate(simulator.play(truth_home), direction=direction)
        other = "up" if direction == "down" else "down"
        carried = {
            "truth": truth,
            "C": simulated.learned(report, direction),
            "queue": simulated.place(report, direction),
            # Greedy flows go in this direction alone, and to stations of one rate: then C means one figure.
            "plain": not greedy(home, other) and one_rate(home, direction),
            "saturated": off[direction] > 0.9 * truth,
        }
        result["capacity"][direction] = carried
    return result


def described(home):
    """A home in one line."""
    rates = sorted({float(s["rate"].removesuffix("Mbit/s")) for s in home["station"] if "rate" in s})
    speed = f"{rates[0]:g}-{rates[-1]:g}" if rates else f"on ports of {home['bridge']['rate']}"
    kinds = {}
    for flow in home["flow"]:
        word = {"game-server": "game", "game-client": "game"}.get(flow["kind"], flow["kind"])
        word = flow["name"].partition("-")[0] if flow["name"].partition("-")[0] in odd.SMALL else word
        if word in ("ftp", "quic"):
            word += " " + direction_of(flow)
        kinds[word] = kinds.get(word, 0) + 1
    air, wires = home[hop_of(home)], home["wan"]
    extras = [f"firmware {air['firmware_queue']}"] if "firmware_queue" in air else []
    extras += [f"loss {air['loss']['rate']}"] if "loss" in air else []
    extras += [f"control from {each}" for each in odd.late(home).values()]
    extras += [f"line {wires['rate_down']} {wires['rate_up']}"] if wires["rate_down"] != "1000Mbit/s" else []
    delays = "/".join(s["delay"] for s in home["server"])
    return (
        f"{len(home['station'])} stations {speed}, {air['queue']['kind']} {air['queue']['limit']},"
        f" {delays}" + "".join(f", {word}" for word in extras) + ": " + ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))
    )


def bound(values):
    """Mean, and how far off it may be with 99 %."""
    spread = statistics.stdev(values) if len(values) > 1 else math.nan
    return statistics.fmean(values), Z99 * spread / math.sqrt(len(values))


def badness(result):
    """How far beyond what is listed a home is; above 1 it is listed."""
    goodput = -(result["goodput"] or 0.0) / LISTED[0]
    return max(goodput, (result["p99"] or 0.0) / LISTED[1])


def line_of(result):
    off, on = result["off"], result["on"]
    shown = lambda v, form: format(v, form) if v is not None else "-"  # noqa: E731
    change = f"{100 * result['goodput']:+.1f} %" if result["goodput"] is not None else "-"
    return (
        f"{result['home']:5}  goodput {off['goodput']:6.2f} -> {on['goodput']:6.2f} ({change})  p99 {shown(off['p99'], '.1f')}"
        f" -> {shown(on['p99'], '.1f')} ms (worst flow {shown(on['worst'], '.1f')})  air {off['air']:.2f} -> {on['air']:.2f}"
        f"  Jain {shown(off['fair'], '.2f')} -> {shown(on['fair'], '.2f')}  {result['what']}"
    )


def summary(results):
    goodput = [r["goodput"] for r in results if r["goodput"] is not None]
    p99 = [r["p99"] for r in results if r["p99"] is not None]
    loss = [r["on"]["loss"] - r["off"]["loss"] for r in results if r["p99"] is not None]
    pages = [r["on"]["page"] / r["off"]["page"] for r in results if r["on"]["page"] and r["on"]["pages"] == r["off"]["pages"]]
    print(f"{len(results)} homes, without control and with it; 99 % of the mean in brackets")
    if goodput:
        mean, off = bound(goodput)
        total = sum(r["on"]["goodput"] for r in results) / sum(r["off"]["goodput"] for r in results)
        print(
            f"  goodput  {100 * mean:+.2f} % ({100 * (mean - off):+.2f} .. {100 * (mean + off):+.2f}), median"
            f" {100 * statistics.median(goodput):+.2f} %, of all bytes together {100 * (total - 1):+.2f} %; {len(goodput)} homes"
        )
    films = [r for r in results if r["off"]["goodput"] + r["off"]["films"] > 0]
    if films:
        every = [[r[which]["goodput"] + r[which]["films"] for r in films] for which in ("off", "on")]
        mean, off = bound([on / before - 1 for before, on in zip(*every)])
        print(f"  and films {100 * mean:+.2f} % ({100 * (mean - off):+.2f} .. {100 * (mean + off):+.2f}); {len(films)} homes")
    jain = [(r["off"]["fair"], r["on"]["fair"]) for r in results if None not in (r["off"]["fair"], r["on"]["fair"])]
    if jain:
        before, after = (statistics.fmean(values) for values in zip(*jain))
        print(f"  Jain     {before:.3f} -> {after:.3f}, index of the goodput of elastic flows; {len(jain)} homes")
    if p99:
        mean, off = bound(p99)
        before, after = ([r[which]["p99"] for r in results if r["p99"] is not None] for which in ("off", "on"))
        print(
            f"  p99      {mean:+.2f} ms ({mean - off:+.2f} .. {mean + off:+.2f}), median {statistics.median(p99):+.2f} ms:"
            f" median {statistics.median(before):.1f} -> {statistics.median(after):.1f} ms; {len(p99)} homes"
        )
        print(f"  lost     {100 * statistics.fmean(loss):+.3f} % of real-time packets")
    if pages:
        print(f"  pages    load time x {statistics.geometric_mean(pages):.3f}; {len(pages)} homes")


def capacities(results, every):
    ratios = {True: [], False: []}
    for result in results:
        for direction, c in result["capacity"].items():
            if not c["C"]:
                continue
            ratio = c["C"] / c["truth"]
            clean = c["plain"] and c["saturated"]
            ratios[clean].append(ratio)
            if clean and every:
                flag = "" if abs(ratio - 1) <= 0.03 else "  <--"
                print(f"{result['home']:5}  {direction:4}  C {c['C']:6.2f} of {c['truth']:6.2f}: {ratio:.3f}  {c['queue'] or ''}{flag}")
    for clean, found in ratios.items():
        what = "saturated in one direction, stations of one rate" if clean else "other homes"
        if found:
            near = sum(abs(r - 1) <= 0.03 for r in found)
            print(f"  C/truth  median {statistics.median(found):.3f}, within 3 % in {near} of {len(found)} ({what})")


def keep(folder, worst, seed, capacity):
    """The worst homes as scenarios."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.toml"):
        old.unlink()
    for result in worst:
        p99 = result["p99"] is not None and f", real-time p99 {result['off']['p99']:.1f} -> {result['on']['p99']:.1f} ms"
        lines = [
            f"# Home {result['home']} of `tools/study/random_homes.py --kind {result['kind']} --seed {seed}`, one of the ten that lost most when control began.",
            f"# {result['what']}",
            f"# Goodput {result['off']['goodput']:.2f} -> {result['on']['goodput']:.2f} Mbit/s{p99 or ''}.",
            "",
            "",
        ]
        home = with_control(generate(seed, result["home"], result["kind"]), capacity)
        (folder / f"{home['name']}.toml").write_text("\n".join(lines) + simulated.toml(home))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path)
    parser.add_argument("--homes", type=int, default=1000, help="of each kind")
    parser.add_argument("--kind", choices=["random", "odd", "all"], default="all")
    parser.add_argument("--first", type=int, default=1, help="number of the first home")
    parser.add_argument("--only", help="numbers of homes: 3,17")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--capacity", default="learn")
    parser.add_argument("--short", action="store_true", help="5 s each, without truths: does it all still work?")
    parser.add_argument("--no-truth", action="store_true", help="do not look how C compares")
    parser.add_argument("--each", action="store_true", help="show every home, and every C that should be right")
    parser.add_argument("--worst", type=int, default=20, help="how many of the listed homes are shown")
    parser.add_argument("--show", type=int)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("-j", type=int, dest="jobs")
    arguments = parser.parse_args()
    if arguments.show is not None:
        kind = "odd" if arguments.kind == "odd" else "random"
        sys.stdout.write(simulated.toml(with_control(generate(arguments.seed, arguments.show, kind), arguments.capacity)))
        return
    simulator = simulated.Simulator(arguments.binary, arguments.jobs)
    numbers = range(arguments.first, arguments.first + arguments.homes)
    if arguments.only:
        numbers = [int(word) for word in arguments.only.split(",")]
    lasts = SHORT if arguments.short else LASTS
    with_truth = not (arguments.no_truth or arguments.short)
    kinds = ["random", "odd"] if arguments.kind == "all" else [arguments.kind]
    every = []
    for kind in kinds:
        work = lambda n: play(simulator, kind, n, arguments.seed, arguments.capacity, with_truth, lasts)  # noqa: E731, B023
        every += tell(kind, simulator.all(work, numbers, f"{kind} homes"), arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps({"seed": arguments.seed, "homes": every}, indent=1) + "\n")
    if arguments.keep:
        keep(arguments.keep, sorted(every, key=badness, reverse=True)[:10], arguments.seed, arguments.capacity)


def tell(kind, results, arguments):
    """The results of one kind, printed."""
    print(f"{kind} homes")
    if arguments.each:
        print("\n".join(line_of(result) for result in results))
    capacities(results, arguments.each)
    summary(results)
    listed = sorted((r for r in results if badness(r) > 1), key=badness, reverse=True)
    print(f"{len(listed)} homes lose more than {100 * LISTED[0]:g} % of goodput or {LISTED[1]:g} ms of p99, the worst first:")
    print("\n".join(line_of(result) for result in listed[: arguments.worst]))
    return results


if __name__ == "__main__":
    main()

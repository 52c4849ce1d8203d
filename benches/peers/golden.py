#!/usr/bin/env python3
"""Runs ns-2 for the cases below and writes tests/golden/ns2-{home,arq,cell,hidden,snoop}.csv.

    golden.py [home] [arq] [cell] [hidden] [snoop] [--work DIR]

Every run is kept in DIR and not done again, so that an interrupted call can be repeated. One run at a time.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys

from figures import (
    FIGURES,
    GOLDEN,
    HERE,
    KEYS,
    delay_figures,
    deviation,
    hidden_figures,
    mean,
    product,
    summary,
    write_rows,
)

HOME_SEEDS, ARQ_SEEDS, CELL_SEEDS, HIDDEN_SEEDS, SNOOP_SEEDS = range(1, 21), range(1, 21), range(1, 11), range(1, 11), range(1, 6)


def home(attempts, capacity="", distance=10, deviation_db=9, queue=50):
    return dict(zip(KEYS["home"], [attempts, capacity, distance, deviation_db, queue]))


# At 9 dB without control for every number of attempts, and SAP-LAW for a range of C; then one thing changed at a time.
HOME = [home(attempts) for attempts in (1, 2, 3, 4, 5)]
HOME += [home(4, capacity) for capacity in (10, 12, 14, 16, 18, 20, 22)]
HOME += [
    home(2, distance=5), home(4, 18, distance=5),
    home(2, deviation_db=7), home(4, 18, deviation_db=7),
    home(4, queue=100), home(4, 20, queue=100),
    home(3, 18), home(2, 14),
]
# Regular 802.11 (5 attempts) with SAP-LAW; then at 7 dB, where the paper's figures but the fifth are read.
HOME += [home(5, queue=100)] + [home(5, capacity) for capacity in (18, 20, 22, 24, 26)]
HOME += [home(attempts, deviation_db=7) for attempts in (1, 3, 4, 5)]
HOME += [home(5, capacity, deviation_db=7) for capacity in (12, 14, 16, 18, 20, 22, 24, 26)]
HOME += [home(5, capacity, deviation_db=7, queue=100) for capacity in ("", 18, 24)]
ARQ = [
    dict(zip(KEYS["arq"], [attempts, flows, sender]))
    for sender in ("newreno", "westwood") for flows in (1, 5) for attempts in (1, 2, 3, 4, 5)
]
CELL = [{"stations": stations} for stations in (1, 4, 16)]


def hidden(near, far, carrier_sense, *traffics):
    """The two stations without and with RTS."""
    cases = [(traffic, near, far, carrier_sense, rts) for traffic in traffics for rts in (3000, 500)]
    return [dict(zip(KEYS["hidden"], case)) for case in cases]


# Out of each other's reach; the same where one captures the other; heard as energy that nobody decodes; decoded.
HIDDEN = hidden(5, 5, "2.4e-10", "cbr", "up", "down") + hidden(1.5, 6.5, "3.5e-10", "cbr", "up", "down")
HIDDEN += hidden(5, 5, "1.559e-11", "cbr", "up", "down") + hidden(3, 3, "2.4e-10", "cbr", "up", "down")


def snoop(source, delay, senders, flows, error_rates, hop=1, stream=0.28):
    """`senders`: pairs of a sender and whether Snoop helps it; `hop`: ms of the link; `stream`: Mbit/s of one."""
    every = [(sender, on, n, rate) for sender, on in senders for n in flows for rate in error_rates]
    cases = [(source, *one, delay, hop, stream) for one in every]
    return [dict(zip(KEYS["snoop"], case)) for case in cases]


# Figures 3 to 5 (1 to 40 flows), then 6 and 7 (error rates with 10 and 20 of them): greedy sources and MPEG streams, and
# streams from five times as far.
SNOOP = []
for source, delay in (("ftp", 20), ("mpeg", 20), ("mpeg", 100)):
    every = [("reno", 0), ("reno", 1), ("vegas", 0), ("vegas", 1), ("westwood+", 0)]
    SNOOP += snoop(source, delay, every, (1, 5, 10, 20, 30, 40), (0.01,))
    some = [one for one in every if one != ("vegas", 1)]
    SNOOP += snoop(source, delay, some, (10, 20), (0, 0.02, 0.03, 0.04, 0.05))
# The link itself is the long way; then streams that a few of fill it.
for source in ("ftp", "mpeg"):
    SNOOP += snoop(source, 1, every[:3], (20, 40), (0.01,), hop=20)
SNOOP += snoop("mpeg", 20, every, (5,), (0.01,), stream=1)


def ns2(script, arguments):
    """The key=value pairs that a script printed."""
    command = ["ns", str(HERE / script)] + [f"{key}={value}" for key, value in arguments.items()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    pairs = [word.split("=", 1) for word in done.stdout.split() if "=" in word]
    if done.returncode != 0 or not pairs:
        sys.exit(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return dict(pairs)


def read_arrivals(path, columns):
    with open(path, encoding="ascii") as file:
        return [tuple(float(word) for word in line.split()[-columns:]) for line in file]


def run_home(case, seed, work):
    arguments = {
        "R": case["attempts"], "ifq": case["queue"], "dist": case["distance_m"], "std": case["deviation_db"],
        "seed": seed, "frames": work / "frames", "arrivals": work / "arrivals",
    }
    if case["capacity_mbps"] != "":
        arguments |= {"saplaw": 1, "C": case["capacity_mbps"]}
    printed = ns2("ns2_home.tcl", arguments)
    # The game leaves every 50 ms from second 45; counted is what left in [135 s, 180 s).
    delays = [
        ((arrived - (45 + 0.05 * number)) * 1e3)
        for number, arrived in read_arrivals(work / "arrivals", 2) if 1800 <= number < 2700
    ]
    # Sent at a constant pace, so that the change of delay is D (between packets received in a row).
    jitter = [abs(after - before) for before, after in zip(delays, delays[1:])]
    return {
        "acked": float(printed["acked"]), "cwnd_max": float(printed["cwmax"]),
        "retransmitted": float(printed["rexmit"]), "timeouts": float(printed["rto"]),
        "jitter_mean_ms": mean(jitter), "jitter_var_ms2": deviation(jitter) ** 2, "jitter_max_ms": max(jitter),
    } | delay_figures(delays)


def run_arq(case, seed, work):
    sender = {"newreno": "Newreno", "westwood": "westwood"}[case["sender"]]
    printed = ns2("ns2_arq.tcl", {
        "R": case["attempts"], "nudp": case["audio_flows"], "tcp": sender, "seed": seed, "arrivals": work / "arrivals",
    })
    with open(work / "arrivals.lost", encoding="ascii") as file:
        counts = {key: int(value) for key, value in (word.split("=") for word in file.read().split())}
    arrivals = read_arrivals(work / "arrivals", 3)
    ports = sorted({port for port, _, _ in arrivals})
    delays = [(at - (50 + 0.004 * ports.index(port) + 0.02 * number)) * 1e3 for port, number, at in arrivals]
    # No wired link drops here: what left and neither arrived nor was dropped by the queue was lost on the air.
    lost_air = int(printed["sent"]) - counts["tcp_arrived"] - counts["tcp_queue"]
    return {
        "tcp_percent": float(printed["tcp_percent"]), "lost_air": lost_air, "lost_queue": counts["tcp_queue"],
    } | delay_figures(delays)


def run_cell(case, seed, _):
    printed = ns2("ns2_cell.tcl", {"n": case["stations"], "seed": seed})
    return {figure: float(printed[figure]) for figure in FIGURES["cell"]}


def run_hidden(case, seed, _):
    printed = ns2("ns2_hidden.tcl", {
        "traffic": case["traffic"], "near": case["near_m"], "far": case["far_m"], "cs": case["carrier_sense_w"],
        "rts": case["rts_threshold"], "seed": seed,
    })
    return hidden_figures(float(printed["near_mbps"]), float(printed["far_mbps"]))


def run_snoop(case, seed, work):
    sender = {"reno": "Reno", "vegas": "Vegas", "westwood+": "westwood"}[case["sender"]]
    flows = int(case["flows"])
    printed = ns2("ns2_snoop.tcl", {
        "N": flows, "tcp": sender, "snoop": case["snoop"], "source": case["source"], "per": case["error_rate"],
        "delay": case["delay_ms"], "hop": case["hop_ms"], "queue": product(case["delay_ms"], case["hop_ms"]), "seed": seed,
        "frames": work / f"frames-{case['rate_mbps']}", "arrivals": work / "arrivals",
    })
    arrived = {key: int(value) for key, value in (word.split("=") for word in (work / "arrivals").read_text().split())}
    sent = int(printed["sent"])
    return {
        "goodput_mbps": float(printed["goodput_mbps"]), "jain": float(printed["jain"]),
        "timely_index": arrived["timely"] / sent,
        "loss_rate": 1 - arrived["packets"] / sent,
        # All arrivals taken for packets of the sender: Snoop's needless copies make up for losses.
        "loss_by_arrivals": 1 - (arrived["delivered"] + arrived["duplicates"]) / sent,
        "delayed_rate": 1 - arrived["timely"] / arrived["delivered"],
        "retransmitted": int(printed["retransmitted"]) / flows,
        # What is on its way at the two ends of the count is no retransmission.
        "link_retransmitted": int(printed["link_retransmitted"]) / flows if case["snoop"] else 0.0,
    }


KINDS = {
    "home": (HOME, HOME_SEEDS, run_home), "arq": (ARQ, ARQ_SEEDS, run_arq), "cell": (CELL, CELL_SEEDS, run_cell),
    "hidden": (HIDDEN, HIDDEN_SEEDS, run_hidden), "snoop": (SNOOP, SNOOP_SEEDS, run_snoop),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="home, arq, cell, hidden, snoop; default all")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("golden-runs"))
    options = parser.parse_args()
    unknown = set(options.kinds) - set(KINDS)
    if unknown:
        parser.error(f"no such kind: {', '.join(sorted(unknown))}")
    options.work.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, HERE / "traces.py", options.work / "frames"], check=True)
    for rate in {case["rate_mbps"] for case in SNOOP}:
        subprocess.run([sys.executable, HERE / "traces.py", options.work / f"frames-{rate}", str(rate)], check=True)
    for kind in options.kinds or KINDS:
        cases, seeds, run = KINDS[kind]
        rows = []
        for case in cases:
            runs = [kept(options.work, kind, case, seed, run) for seed in seeds]
            rows.append(summary(kind, case, runs))
            print(kind, *case.values(), "->", rows[-1][FIGURES[kind][0]], "+-", rows[-1][FIGURES[kind][0] + "_sd"], flush=True)
        write_rows(GOLDEN / f"ns2-{kind}.csv", rows)


def kept(work, kind, case, seed, run):
    """The figures of one run, from an earlier call if there was one."""
    path = work / f"{kind}-{'-'.join(str(value) for value in case.values())}-{seed}.json"
    if not path.exists():
        figures = run(case, seed, work)
        path.write_text(json.dumps({k: None if math.isnan(v) else v for k, v in figures.items()}), encoding="ascii")
    figures = json.loads(path.read_text(encoding="ascii"))
    return {key: math.nan if value is None else value for key, value in figures.items()}


if __name__ == "__main__":
    main()

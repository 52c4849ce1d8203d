"""Case study 2 of the CHAP paper: pings of 100 game servers, beside a real download.

    game.py --binary LASTHOP [--short] [--queues fifo,chap] [--rounds 3]

Runs as root: it makes the home of scenarios/papers/chap-game.toml with `lasthop emulate`, OpenArena's dedicated server behind
the 100 paths of the hosts `game.1` .. `game.100` (one process, see hub.py), and qstat in the station `player`. Writes
bench-results/study-game-REVISION.{json,md}.
"""

import argparse
import json
import shutil
import statistics
import sys
from pathlib import Path

from common import (
    OUT,
    QUEUES,
    SHOWN,
    UNPACKED,
    Unusable,
    emulate,
    file_name,
    give_back,
    goodput,
    joined,
    keep,
    machine,
    offered,
    queue_sets,
    say,
    until_usable,
    version,
    window_sets,
)

SCENARIO = "scenarios/papers/chap-game.toml"
HERE = Path(__file__).resolve().parent
# Section 3.4 and figure 5: median, ms, and the share of servers below 150 ms.
PAPER = {
    "fifo idle": (133, 0.7),
    "fifo download": (562, 0.0),
    "chap idle": (135, 0.7),
    "chap download": (135, 0.7),
}
PLAYABLE_MS = 150
# A run whose hub was later than this, p99, says nothing of the network.
MOST_HUB_MS = 2.0
# From when on servers are pinged: the download has left slow start and filled the queue, the doors are open.
FIRST_S = {"download": 14.0, "idle": 6.0}
# The short form asks whether it works, not for figures: the queue is full after two seconds.
SHORT_FIRST_S = {"download": 5.0, "idle": 3.0}
# Most seconds of a round, several times what it needs: a run ends when its pings have come to an end.
ROUND_S = 100.0


def installed(path):
    """A file of a package, installed or unpacked."""
    found = [root for root in (Path("/"), UNPACKED) if (root / path).exists()]
    if not found:
        raise SystemExit(f"there is no /{path}; type: make study-game")
    return found[0] / path


def game_server():
    """The command line of OpenArena's dedicated server, as Debian's own wrapper has it, without its data for players."""
    base = installed("usr/lib/openarena-server")
    settings = {
        "com_basegame": "baseoa",
        "fs_basepath": base,
        "com_homepath": ".openarena",
        "com_legacyprotocol": 71,
        "com_protocol": 71,
        "dedicated": 1,
        "vm_game": 0,
        "sv_pure": 0,
        "bot_enable": 0,
        "net_ip": "127.0.0.1",
        "net_port": 28960,
        "sv_hostname": "lasthop",
    }
    words = " ".join(f"+set {key} {value}" for key, value in settings.items())
    return f"{installed('usr/lib/ioquake3/ioq3ded')} {words} +map oa_dm1"


def measure(binary, folder, queue, download, wanted):
    """Pings by address in one run, what the hub took, and the report."""
    here = folder / f"{queue}-{'download' if download else 'idle'}"
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir(parents=True)
    first = (SHORT_FIRST_S if wanted.short else FIRST_S)["download" if download else "idle"]
    seconds = first + wanted.rounds * ROUND_S
    sets = {
        "duration": f"{seconds:.0f}s",
        "measure_from": f"{first:.0f}s",
        "server.game.count": wanted.paths,
        "flow.query": "none",
        "flow.answer": "none",
        **queue_sets(queue),
    }
    if not download:
        sets["flow.download"] = "none"
    else:
        sets |= window_sets(wanted.window)
    python = f"exec {sys.executable} -B -S -E"
    programs = [("game.1", f"{python} {HERE}/hub.py {here} {wanted.paths} {game_server()}")]
    programs += [(f"game.{i}", f"{python} {HERE}/door.py {here} {i}") for i in range(1, wanted.paths + 1)]
    addresses = " ".join(f"$LASTHOP_game_{i}" for i in range(1, wanted.paths + 1))
    programs.append(("player", f"{python} {HERE}/ping.py {here} {wanted.rounds} {first} {addresses}"))
    report = emulate(binary, SCENARIO, sets, programs, here / "lasthop.log", ["--end-with", "player"])
    if not (here / "done").exists():
        raise Unusable("the pings did not come to an end")
    lines = [json.loads(line) for line in (here / "pings.jsonl").read_text().splitlines()]
    hub = json.loads((here / "hub.json").read_text())
    if len(lines) != wanted.rounds * wanted.paths:
        raise Unusable(f"{len(lines)} pings instead of {wanted.rounds * wanted.paths}")
    if hub["p99_ms"] > MOST_HUB_MS:
        raise Unusable(f"the machine was too busy: the hub took {hub['p99_ms']:.1f} ms (p99) for an answer")
    return [line["ping_ms"] for line in lines], hub, report


def study(wanted):
    folder = wanted.out / "study" / "game"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    cells, revision = [], None
    for queue in wanted.queues:
        # Without a download no queue stands: in short, one run tells it for all.
        for download in (True,) if wanted.short and cells else (False, True):
            what = f"{SHOWN[queue]}, {'with the download' if download else 'idle'}"
            say(what)
            pings, hub, report = until_usable(
                what, lambda q=queue, d=download: measure(wanted.binary, folder, q, d, wanted)
            )
            revision = report["run"]["revision"]
            answered = sorted(ping for ping in pings if ping is not None)
            cells.append(
                {
                    "queue": queue,
                    "download": download,
                    "median": statistics.median(answered),
                    "below_150": sum(ping < PLAYABLE_MS for ping in answered) / len(pings),
                    "lost": len(pings) - len(answered),
                    "pings_ms": answered,
                    "hub": hub,
                    "download_mbps": goodput(report, "download"),
                    "queue_mean_packets": report["queues"][0]["mean_packets"],
                    "lag_p99_ms": report["run"]["lag_ms"]["p99"],
                }
            )
            say(
                f"  median {cells[-1]['median']:.0f} ms, {cells[-1]['below_150']:.0%} below {PLAYABLE_MS} ms, {cells[-1]['lost']} lost"
            )
    return {
        "study": "game",
        "revision": revision,
        "machine": machine(),
        "window": wanted.window,
        "rounds": wanted.rounds,
        "paths": wanted.paths,
        "programs": ["OpenArena on " + engine(folder), "qstat " + qstat_version()],
        "scenario": SCENARIO,
        "paper": PAPER,
        "cells": cells,
    }


def engine(folder):
    """What the game server called itself."""
    for log in folder.glob("*/game.log"):
        for line in log.read_text(errors="replace").splitlines():
            if line.startswith("ioq3 "):
                return line.split(" linux")[0]
    return "ioquake3"


def qstat_version():
    words = version("dpkg-query", "--show", "--showformat=${Version}", "qstat")
    return words if words[:1].isdigit() else "?"


def table(results):
    """Markdown: median, playable share, losses, and the paper's."""
    text = [
        f"# Case study 2, game: measured at revision {results['revision']}",
        "",
        f"By `make study-game`, on {results['machine']}; {'; '.join(results['programs'])}. {results['rounds']} rounds of pings to",
        f"{results['paths']} servers, one query each and no repetition; median ping, ms, and the share of pings below {PLAYABLE_MS} ms.",
        "",
        "| queue | idle: median | playable | with download: median | playable | lost | download, Mbit/s | packets waiting | paper: idle | with download |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    by = {(c["queue"], c["download"]): c for c in results["cells"]}
    for queue in QUEUES:
        if (queue, True) not in by:
            continue
        idle, loaded = by.get((queue, False)) or by[results["cells"][0]["queue"], False], by[queue, True]
        key = {"fifo": "fifo", "chap-hosts": "chap"}.get(queue)
        paper = [
            f"{results['paper'][f'{key} {w}'][0]} ms, {results['paper'][f'{key} {w}'][1]:.0%}" if key else ""
            for w in ("idle", "download")
        ]
        text.append(
            f"| {SHOWN[queue]} | {idle['median']:.0f} | {idle['below_150']:.1%} | {loaded['median']:.0f} | {loaded['below_150']:.1%} "
            f"| {loaded['lost']} | {loaded['download_mbps']:.2f} | {loaded['queue_mean_packets']:.0f} | {paper[0]} | {paper[1]} |"
        )
    text += offered(results)
    hub = max(c["hub"]["p99_ms"] for c in results["cells"])
    lag = max(c["lag_p99_ms"] for c in results["cells"])
    text += [
        "",
        f"One server process answers behind all paths; from query to answer it took {hub:.2f} ms at most (p99 of the worst run); p99 lag of the runs at most {lag:.3f} ms.",
    ]
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(
        prog="game.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--paths", type=int, default=100)
    parser.add_argument("--window", type=int, help="segments that the download's receiver offers; else the scenario's")
    parser.add_argument("--queues", type=lambda text: text.split(","), default=list(QUEUES))
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument(
        "--add-to", type=Path, help="results of the same revision and machine, to which these are added"
    )
    parser.add_argument("--short", action="store_true", help="a round to 10 servers, FIFO and CHAP: whether it works")
    wanted = parser.parse_args()
    wanted.out = wanted.out.resolve()
    if wanted.short:
        wanted.rounds, wanted.paths, wanted.queues = 1, 10, ["fifo", "chap"]
    results = joined(study(wanted), wanted.add_to)
    text = table(results)
    print(text)
    say(f"written: {keep(wanted.out, file_name('study-game', wanted), results, text)}")
    give_back(wanted.out)


if __name__ == "__main__":
    main()

"""Case study 2 of the CHAP paper: pings of 100 game servers, beside a real download.

    game.py --binary LASTHOP [--short] [--queues fifo,chap] [--rounds 3]

Runs as root: it makes the home of scenarios/papers/chap-game.toml with `lasthop emulate`, OpenArena's dedicated server behind
the 100 paths of the hosts `game.1` .. `game.100` (one process, see hub.py), and qstat in the station `player`. Writes
bench-results/study-game-REVISION.{json,md}.
"""

import json
import statistics
import sys
from pathlib import Path

import common

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
# When servers are first pinged, s: the doors are open; and with the download. Of a whole study, and in short.
FIRST_S = {False: (6.0, 14.0), True: (3.0, 5.0)}
# Most seconds of a round, several times what it needs: a run ends when its pings have come to an end.
ROUND_S = 100.0


def installed(path):
    """A file of a package, installed or unpacked."""
    found = [root for root in (Path("/"), common.UNPACKED) if (root / path).exists()]
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


def measure(queue, download, wanted):
    """Pings by address in one run, what the hub took, and the report."""
    here = common.fresh(wanted.out / "study" / "game" / f"{queue}-{'download' if download else 'idle'}")
    first = common.first_second(wanted, download)
    own = {"server.game.count": wanted.paths, "flow.query": "none", "flow.answer": "none"}
    sets = common.played(wanted, queue, download, first + wanted.rounds * ROUND_S, own)
    python = f"exec {sys.executable} -B -S -E"
    programs = [("game.1", f"{python} {HERE}/hub.py {here} {wanted.paths} {game_server()}")]
    programs += [(f"game.{i}", f"{python} {HERE}/door.py {here} {i}") for i in range(1, wanted.paths + 1)]
    addresses = " ".join(f"$LASTHOP_game_{i}" for i in range(1, wanted.paths + 1))
    programs.append(("player", f"{python} {HERE}/ping.py {here} {wanted.rounds} {first} {addresses}"))
    report = common.emulate(wanted.binary, SCENARIO, sets, programs, here / "lasthop.log", ["--end-with", "player"])
    if not (here / "done").exists():
        raise common.Unusable("the pings did not come to an end")
    lines = [json.loads(line) for line in (here / "pings.jsonl").read_text().splitlines()]
    hub = json.loads((here / "hub.json").read_text())
    if len(lines) != wanted.rounds * wanted.paths:
        raise common.Unusable(f"{len(lines)} pings instead of {wanted.rounds * wanted.paths}")
    if hub["p99_ms"] > MOST_HUB_MS:
        raise common.Unusable(f"the machine was too busy: the hub took {hub['p99_ms']:.1f} ms (p99) for an answer")
    return [line["ping_ms"] for line in lines], hub, report


def study(wanted):
    folder = common.fresh(wanted.out / "study" / "game")
    cells, revision = [], None
    for queue, download, (pings, hub, report) in common.runs(wanted, measure):
        revision = report["run"]["revision"]
        answered = sorted(ping for ping in pings if ping is not None)
        median, below = statistics.median(answered), sum(ping < PLAYABLE_MS for ping in answered) / len(pings)
        lost = len(pings) - len(answered)
        own = {"median": median, "below_150": below, "lost": lost, "pings_ms": answered, "hub": hub}
        cells.append(common.run_cell(queue, download, report, **own))
        common.say(f"  median {median:.0f} ms, {below:.0%} below {PLAYABLE_MS} ms, {lost} lost")
    return {
        "study": "game",
        "revision": revision,
        "machine": common.machine(),
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
    words = common.version("dpkg-query", "--show", "--showformat=${Version}", "qstat")
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
    for queue in common.QUEUES:
        if (queue, True) not in by:
            continue
        idle, loaded = by.get((queue, False)) or by[results["cells"][0]["queue"], False], by[queue, True]
        key = {"fifo": "fifo", "chap-hosts": "chap"}.get(queue)
        paper = [
            f"{results['paper'][f'{key} {w}'][0]} ms, {results['paper'][f'{key} {w}'][1]:.0%}" if key else ""
            for w in ("idle", "download")
        ]
        text.append(
            f"| {common.SHOWN[queue]} | {idle['median']:.0f} | {idle['below_150']:.1%} | {loaded['median']:.0f} | {loaded['below_150']:.1%} "
            f"| {loaded['lost']} | {loaded['download_mbps']:.2f} | {loaded['queue_mean_packets']:.0f} | {paper[0]} | {paper[1]} |"
        )
    text += common.offered(results)
    hub = max(c["hub"]["p99_ms"] for c in results["cells"])
    lag = max(c["lag_p99_ms"] for c in results["cells"])
    text += [
        "",
        f"One server process answers behind all paths; from query to answer it took {hub:.2f} ms at most (p99 of the worst run); p99 lag of the runs at most {lag:.3f} ms.",
    ]
    return "\n".join(text) + "\n"


def main():
    parser = common.arguments("game", __doc__, "rounds", 3, "a round to 10 servers")
    parser.add_argument("--paths", type=int, default=100)
    parser.set_defaults(first=FIRST_S)
    wanted = parser.parse_args()
    if wanted.short:
        wanted.rounds, wanted.paths, wanted.queues = 1, 10, ["fifo", "chap"]
    common.finish(wanted, study(wanted), table)


if __name__ == "__main__":
    main()

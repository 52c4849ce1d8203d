#!/usr/bin/env python3
"""What the controller does when system calls fail, and when it is killed: `make faults`, and in short `make test`.

    faults.py calls --binary LASTHOPD [--short]     the n-th call of each kind fails, for every n
    faults.py kills --binary LASTHOPD [--short]     killed at random moments while a download runs, in each datapath

Needs root, strace, iproute2. Ends with 1 when something did not hold, each in one line.
"""

import argparse
import json
import random
import sys
import tempfile
import time
import zlib
from pathlib import Path
from string import digits

import calls
import kills
import world

DATAPATHS = {
    "tcx": [],
    "clsact": ["--config", "attach = \"clsact\"\n"],
    "user": ["--queue", "chap", "--datapath", "user"],
    "kernel": ["--queue", "chap", "--datapath", "kernel"],
}
# In short: so many cases of a datapath, and those that once went wrong.
SAMPLE, KILLS = 2, 3
# Pairs of a call and which one of it, "+" for all of them.
MENDED = {("chmod", "3"), ("write", "1"), ("accept4", "+"), ("ppoll", "+"), ("write", "+")}


def say(text):
    print(text, flush=True)


def say_of(datapath):
    """Says a line about a datapath; that something was not tried stands first, where those who count look for it."""
    skipped = "SKIPPED: "
    return lambda line: say(skipped * line.startswith(skipped) + f"{datapath}: {line.removeprefix(skipped)}")


def words_of(datapath, folder):
    """Arguments of `lasthopd run`; a configuration becomes a file."""
    words = list(DATAPATHS[datapath])
    if "--config" in words:
        (folder / "lasthop.toml").write_text(words[-1])
        words[-1] = str(folder / "lasthop.toml")
    return words


def all_calls(folder, arguments):
    """Plays the cases of each datapath; how many went wrong."""
    wrong = 0
    for datapath in arguments.datapath or ("tcx", "clsact", "user"):
        more = words_of(datapath, folder)
        counts, early, memory = calls.counted(folder, arguments.binary, more)
        chosen = list(calls.cases(counts, early))
        if arguments.only:
            chosen = [case for case in chosen if case[0] in arguments.only.split(",")]
        part, parts = arguments.part
        # By their names: how many there are differs from run to run.
        chosen = [case for case in chosen if zlib.crc32(repr(case).encode()) % parts == part - 1]
        if arguments.short:
            once = [case for case in chosen if (case[0], str(case[2]).lstrip(digits) or str(case[2])) in MENDED]
            chosen = once + random.Random(arguments.seed).sample(chosen, SAMPLE)
        say(f"{datapath}: {len(chosen)} cases, {sum(counts.values())} calls of {len(counts)} kinds")
        ends = {"refused": 0, "went on": 0, "ended later": 0}
        begun = time.monotonic()
        for case in chosen:
            call, outcome, n = case
            # What a call does it does again; a busy machine stops a download once.
            for _attempt in range(2):
                faults, how = calls.play(folder, arguments.binary, more, case, (counts[call], memory))
                if not faults:
                    break
                calls.sweep()
                say(f"{datapath}: {call} {n}, {outcome}: {'; '.join(faults)}")
            at_work = "controlling" in how["said"]
            ends["went on" if not how["by_itself"] else "ended later" if at_work else "refused"] += 1
            if arguments.log:
                with arguments.log.open("a") as file:
                    file.write(json.dumps({"datapath": datapath, "case": case, "wrong": faults, **how}) + "\n")
            if faults:
                wrong += 1
                say(f"FAILED: {datapath}: {call} {n}, {outcome}: twice, and it said:\n{how['said']}")
        took = time.monotonic() - begun
        say(f"{datapath}: " + ", ".join(f"{count} {end}" for end, count in ends.items()) + f"; {took:.0f} s")
    return wrong


def all_kills(folder, arguments):
    """Kills it in each datapath; how many of those did not hold."""
    wrong = 0
    for datapath in arguments.datapath or DATAPATHS:
        rounds = arguments.rounds or (KILLS if arguments.short else 200)
        chance, more = random.Random(arguments.seed), words_of(datapath, folder)
        faults = kills.play(folder, arguments.binary, more, rounds, chance, say_of(datapath))
        for fault in faults:
            say(f"FAILED: {datapath}: {fault}")
        wrong += bool(faults)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["calls", "kills"])
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--short", action="store_true", help="a few of them")
    parser.add_argument("--datapath", action="append", choices=DATAPATHS, help="this one; may be given more than once")
    parser.add_argument("--only", metavar="CALLS", help="these calls, with commas between them")
    parts = lambda text: tuple(map(int, text.split("/")))
    parser.add_argument("--part", default=(1, 1), type=parts, metavar="2/3", help="the second of three parts of the calls")
    parser.add_argument("--rounds", type=int, help="kills in each datapath")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, help="what came of each case, a line of JSON")
    arguments = parser.parse_args()
    arguments.binary = arguments.binary.resolve()
    if world.BPF is None:
        raise SystemExit("the number of bpf(2) is not known for this processor")
    world.enclose()
    world.build()
    with tempfile.TemporaryDirectory() as folder:
        play = all_calls if arguments.what == "calls" else all_kills
        wrong = play(Path(folder), arguments)
    say("nothing went wrong" if not wrong else f"{wrong} did not hold")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What is each parameter of the control law worth? The same homes with the default and without the parameter's part, in the simulator.

    tools/study/ablate.py [--binary FILE] [--only gain,probe] [--homes 100] [--cases 200] [--json FILE] [-j 2]
    tools/study/ablate.py --set gain=0.25 --set gain=1        other values of one, in place of all

Parameters and the value at which each one's part of the law is off come from the binary (`lasthop run --print-law`). Homes: random
ones and odd ones (random_homes.py), cases of conserve.py, the everyday cases (everyday.py), 24 cells of learn_grid.py. Everything
is played at the same seeds, so a home is compared with itself.

Goodput: of elastic flows, mean change of a home. p99: of the added delay of real-time flows, mean change of a home. In brackets how
far off a mean may be, with 99 %, then how many homes are clearly worse and better (by 0.5 % or 0.5 ms): a mean of p99 is that of a few
overloaded homes. Conserve: cases under 97 % before and after. Changed: homes whose figures are not the same to the last digit.
A parameter costs something where a mean is worse beyond chance, or more homes are clearly worse than better beyond chance, or more
cases fall under 97 %. It costs nothing, and is a candidate to be removed, where none is so and the means are within 0.5 % and 1 ms;
else it is not told: play more homes. None of it speaks of what these homes do not have.
"""

import argparse
import json
import math
import subprocess
from pathlib import Path

import conserve
import everyday
import learn_grid
import random_homes
import simulated

SEED = 7
CONSERVE_SEED = 1
GRID = [
    {"cc": cc, "rtt": rtt, "flows": flows, "direction": direction, "place": place}
    for cc, rtt, flows in (("cubic", 10, 4), ("cubic", 30, 1), ("newreno", 80, 16), ("bbr", 80, 2))
    for direction in ("down", "up")
    for place in ("ap", "firmware", "line")
]
# Clearly worse or better, part and ms; and a mean that is no candidate.
CLEAR = {"goodput": 0.005, "p99": 0.5}
CLOSE = {"goodput": 0.005, "p99": 1.0}


def homes(arguments):
    """What is played: its part of the set, a name, and a function from a simulator and `--set`s to its figures."""
    for kind in ("random", "odd"):
        for number in range(1, arguments.homes + 1):
            home = random_homes.with_control(random_homes.generate(SEED, number, kind), "learn")
            yield kind, f"{kind} {number}", lambda player, sets, home=home: of_random(player.play(home, sets))
    for number in range(1, arguments.cases + 1):
        case = conserve.generate(CONSERVE_SEED, number)
        yield "conserve", f"conserve {number}", lambda player, sets, case=case: of_conserve(player, case, sets)
    for name, more, words in everyday.CASES[:: 6 if arguments.short else 1]:
        path = everyday.FOLDER / f"{name}.toml"
        yield "everyday", f"{name} {words}", lambda player, sets, path=path, more=more: of_everyday(player.play(path, more + sets, 1))
    for cell in GRID[:: 6 if arguments.short else 1]:
        home = learn_grid.home(cell, "learn")
        yield "grid", " ".join(map(str, cell.values())), lambda player, sets, home=home: of_cell(player.play(home, sets, 1))


def of_random(report):
    found = random_homes.figures(report)
    return {"goodput": found["goodput"], "p99": found["p99"]}


def of_conserve(player, case, sets):
    greedy, small = conserve.carried(player.play(conserve.with_control(case, "learn"), sets), case)
    return {"goodput": greedy, "p99": None, "small": small}


def of_everyday(report):
    found = everyday.metrics(report)
    return {"goodput": found["down"] + found["up"], "p99": found["p99"]}


def of_cell(report):
    return {"goodput": simulated.goodput(report), "p99": simulated.worst(report)}


def parameters(program):
    """Those of the law, as the binary says them."""
    return json.loads(subprocess.run([program, "run", "--print-law"], capture_output=True, check=True, text=True).stdout)


def wanted(arguments, known):
    """Name and value of everything that is tried."""
    values = {each["name"]: each["without"] for each in known}
    names = list(values) if arguments.only is None else arguments.only.split(",")
    tried = [(name, values.get(name)) for name in ([] if arguments.set else names)]
    for each in arguments.set:
        name, _, value = each.partition("=")
        tried.append((name, value))
    for name, _ in tried:
        if name not in values:
            raise SystemExit(f"the law has no parameter `{name}`; it has {', '.join(values)}")
    return tried


def kept(without_control, case):
    """What of its own a case's greedy flow keeps (conserve.py)."""
    (off, small_off), found = without_control, case
    return found["goodput"] / max(off - max(0.0, found["small"] - small_off), 1e-9)


def sided(worse, better):
    """More are worse than a fair coin would have it, with 99 % (McNemar's test)."""
    return worse - better > random_homes.Z99 * math.sqrt(worse + better)


def compared(rows, usual, found, uncontrolled):
    """What a law with one value changed is worth beside the usual one, of all homes together."""
    # Of each home how much worse it is.
    worse, changed, failed = {"goodput": [], "p99": []}, 0, [0, 0]
    turned = [0, 0]
    for i, (before, after) in enumerate(zip(usual, found)):
        changed += before != after
        if rows[i][0] == "conserve":
            bad = [kept(uncontrolled[i], each) < conserve.WANTED for each in (before, after)]
            failed = [failed[0] + bad[0], failed[1] + bad[1]]
            turned = [turned[0] + (bad[1] > bad[0]), turned[1] + (bad[0] > bad[1])]
        if before["goodput"] > 0:
            worse["goodput"].append(1 - after["goodput"] / before["goodput"])
        if None not in (before["p99"], after["p99"]):
            worse["p99"].append(after["p99"] - before["p99"])
    result = {"changed": changed, "conserve": failed, "costs": ["conserve"] if sided(*turned) else [], "told": True}
    for what, values in worse.items():
        mean, off = random_homes.bound(values)
        many = sum(value > CLEAR[what] for value in values), sum(value < -CLEAR[what] for value in values)
        result[what] = {"mean": -mean if what == "goodput" else mean, "off": off, "worse": many[0], "better": many[1]}
        if mean > off or sided(*many):
            result["costs"].append(what)
        result["told"] &= mean < CLOSE[what]
    return result


def line_of(result):
    goodput, p99 = result["goodput"], result["p99"]
    verdict = "nothing: candidate" if result["told"] else "not told: play more homes"
    if result["changed"] == 0:
        verdict = "nothing changed: candidate"
    counts = lambda of: f"{of['worse']}/{of['better']}"  # noqa: E731
    return (
        f"{result['name']:15}{result['value']!s:>8}{100 * goodput['mean']:+9.2f} ({100 * goodput['off']:.2f}){counts(goodput):>9}"
        f"{p99['mean']:+10.2f} ({p99['off']:.2f}){counts(p99):>9}{result['conserve'][0]:6} -> {result['conserve'][1]:<4}"
        f"{result['changed']:6}  {', '.join(result['costs']) or verdict}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path)
    parser.add_argument("--only", help="names of parameters: gain,probe")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="try this value in place of all parameters")
    parser.add_argument("--homes", type=int, default=100, help="random homes, and as many odd ones")
    parser.add_argument("--cases", type=int, default=200, help="of conserve.py")
    parser.add_argument("--short", action="store_true", help="a few homes of each kind: does it all still work?")
    parser.add_argument("--json", type=Path, help="figures of every home")
    parser.add_argument("-j", type=int, dest="jobs")
    arguments = parser.parse_args()
    if arguments.short:
        arguments.homes, arguments.cases = 1, 2
    simulator = simulated.Simulator(arguments.binary, arguments.jobs)
    tried = wanted(arguments, parameters(simulator.program))
    rows = list(homes(arguments))

    def play(name, sets):
        simulated.say(f"{name}: {len(rows)} homes")
        return simulator.all(lambda row: row[2](simulator, sets), rows, "homes")

    uncontrolled = {}
    cases = [i for i, row in enumerate(rows) if row[0] == "conserve"]
    simulated.say(f"without control: {len(cases)} cases")
    alone = lambda number: conserve.generate(CONSERVE_SEED, number + 1)  # noqa: E731
    off = simulator.all(lambda n: conserve.carried(simulator.play(alone(n)["home"]), alone(n)), range(len(cases)), "cases")
    uncontrolled = dict(zip(cases, off))
    usual = play("the law as it is", [])
    print(f"{'parameter':15}{'value':>8}{'goodput, %':>16}{'w/b':>9}{'p99, ms':>18}{'w/b':>9}{'conserve':>13}{'changed':>8}  costs", flush=True)
    results = []
    for name, value in tried:
        found = play(f"{name} = {value}", [f"control.law.{name}={value}"])
        result = {"name": name, "value": value} | compared(rows, usual, found, uncontrolled)
        print(line_of(result), flush=True)
        results.append(result | {"homes": found})
    free = [r["name"] for r in results if not r["costs"] and r["told"]]
    unclear = [r["name"] for r in results if not r["costs"] and not r["told"]]
    print(f"{len(rows)} homes. Cost nothing, candidates to be removed: {', '.join(free) or 'none'}; not told: {', '.join(unclear) or 'none'}")
    if arguments.json:
        named = [row[1] for row in rows]
        arguments.json.write_text(json.dumps({"homes": named, "usual": usual, "tried": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()

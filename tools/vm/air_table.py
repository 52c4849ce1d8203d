#!/usr/bin/env python3
"""Writes the tables of book/src/hwsim.md and a file in benches/results from what the case `air` wrote into a log.

    tools/vm/air_table.py FILE.. [--machine WORDS]    FILE: written by tools/vm/test --log FILE; of a cell the last one counts

Rows are the log's lines `ROW table | cell | ..`; nothing else goes into the tables.
"""

import argparse
import collections
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "study"))

from marked import fill  # noqa: E402

BOOK = ROOT / "book" / "src" / "hwsim.md"
RESULTS = ROOT / "benches" / "results"
TABLES = {
    "minstrel": (
        "cell | SNR, dB | best at the true errors | Linux | worth | ours, since 5.12 | worth | ours, before 5.12 | worth"
        " | Linux expects, of the truth | frames a second | tried out a second"
    ),
    "stages": "cell | stages (rate, RTS) that both had | of these, with another number of tries | which",
    "sum": "ratios | Linux and ours since 5.12 with the same rate | mean worth of Linux | ours, since 5.12 | ours, before 5.12",
    "deaf": "cell | at 30 dB | at 8 dB, 4 s of BE in an agreement | then 8 s of VO",
    "dscp": "cell | code points with a name: same class | others of these | without a name: same class",
    "addba": "cell | sender | TID | class | MPDUs asked for / granted | ours",
    "lever": "cell | what was set | TIDs of the packets",
    "retries": "cell | frames | tries of each | stages of their tables | Linux counts retries / failures | the air did",
    "tables": "cell | frames | tries in another order than their table | given up before its end",
    "association": "cell | security | ping, ms (least, mean, most, deviation) | TCP down / up, bytes | encrypted frames | clear ones",
    "counters": "cell | carried | acknowledged | not contending | of others | malformed | overflowed | refused by the driver | overruns",
}


def read(paths):
    """The last log's head, its kernel, and the rows of each table by cell."""
    head, kernel, rows = "unknown", "unknown", collections.defaultdict(dict)
    for path in paths:
        own = collections.defaultdict(lambda: collections.defaultdict(list))
        for line in path.read_text(errors="replace").splitlines():
            if line.startswith("Lasthop "):
                head = line.removeprefix("Lasthop ")
            elif match := re.match(r"Kernel (\S+) \(\S+\), (.*?), a machine", line):
                kernel = f"Linux {match[1]}, QEMU (TCG), {match[2]}"
            elif line.startswith("ROW ") and not line.startswith("ROW sum"):
                name, *fields = line[4:].split(" | ")
                fields = [re.sub(r"^[a-z]+ (?=\d+$)", "", field) if name == "counters" else field for field in fields]
                own[name][fields[0]].append(fields)
        for name, cells in own.items():
            rows[name].update(cells)
    found = {name: [row for cell in cells.values() for row in cell] for name, cells in rows.items()}
    if "minstrel" in found:
        found["sum"] = [summed(found["minstrel"])]
    return head, kernel, found


def summed(rows):
    """Ratios, how often Linux and ours since 5.12 agree, and the mean worths."""
    def rate(field):
        return field.rsplit(" (", 1)[0]

    same = sum(rate(row[3]) == rate(row[5]) for row in rows)
    means = [sum(float(row[column].split()[0]) for row in rows) / len(rows) for column in (4, 6, 8)]
    return [str(len(rows)), str(same), *(f"{mean:.3f}" for mean in means)]


def table(name, rows):
    columns = TABLES[name].split(" | ")
    for each in rows:
        if len(each) != len(columns):
            raise SystemExit(f"{name}: {len(each)} fields for {len(columns)} columns: {each}")
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path, nargs="+")
    parser.add_argument("--machine", default="", help="what it ran on, for the file in benches/results")
    arguments = parser.parse_args()
    head, kernel, rows = read(arguments.log)
    missing = set(TABLES) - set(rows)
    if missing:
        raise SystemExit(f"{arguments.log[-1]} has no rows of {', '.join(sorted(missing))}: did the case `air` pass?")
    tables = {name: table(name, rows[name]) for name in TABLES}
    where = f"Revision {head}; {kernel}{', on ' + arguments.machine if arguments.machine else ''}."
    text = ["# The case `air`: Linux's Wi-Fi stack over our air", "", where, "`make vm-test ARGS=\"air\"`, then `tools/vm/air_table.py`.", ""]
    for name, each in tables.items():
        text += [f"## {name}", "", each, ""]
    result = RESULTS / f"air-{head.split(',')[0]}.md"
    result.write_text("\n".join(text))
    shown = ("minstrel", "sum", "stages", "deaf", "dscp", "addba", "retries")
    fill(BOOK, "tools/vm/air_table.py", {f"hwsim-{name}": f"{where}\n\n{tables[name]}" for name in shown})
    print(result)


main()

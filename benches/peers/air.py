#!/usr/bin/env python3
"""Runs ns-3 for the cells of tests/vectors/air-ns3.csv and writes that file.

    air.py [--ns3 BINARY] [--only NAME] [--seeds N] [--out FILE]

Every row: the mean over the seeds 1.. of what ns3_air.cc prints, and the standard deviation between them. Needs
`target/peers/ns3_air`, which `make bench-peers` builds. `--only` prints the rows whose name begins so and writes
nothing.
"""

import argparse
import concurrent.futures
import csv
import json
import pathlib
import shlex
import subprocess
import sys

from figures import deviation, mean

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HT40 = "--standard=n --width=40 --mcs=7 --streams=2 --gi=400"
VHT80 = "--standard=ac --width=80 --mcs=9 --streams=2 --gi=400"
HE80 = "--standard=ax --width=80 --mcs=11 --streams=2 --gi=800 --window=256"
DOWN = "--cell=download --probe=BE --probeBytes=128 --probeEvery=0.02 --from=10 --stop=40"


def cells():
    for n in (1, 2, 3, 5, 8, 10, 15):
        yield f"n-{n}", f"--n={n}"
    for n in (1, 2, 5, 10):
        yield f"ac-{n}", f"{VHT80} --n={n} --stop=5"
        yield f"ax-{n}", f"{HE80} --n={n} --stop=5"
    yield "ax-large-1", f"{HE80} --ampdu=6500631 --stop=5"
    yield "ax-large-5", f"{HE80} --ampdu=6500631 --n=5 --stop=5"
    yield "ht40-1", HT40
    yield "ht40-5", f"{HT40} --n=5"
    for n in (1, 5, 10):
        yield f"n-rts-{n}", f"--n={n} --rts=500"
        yield f"ac-rts-{n}", f"{VHT80} --n={n} --rts=500 --stop=5"
    for ampdu in (8000, 16000, 32000):
        yield f"n-limit-{ampdu}", f"--n=5 --ampdu={ampdu}"
    yield "n-small", "--n=3 --bytes=300"
    yield "n-vi-5", "--n=5 --bulk=VI"
    yield "n-bk-5", "--n=5 --bulk=BK"
    for probe in ("VO", "VI"):
        for n in (2, 5):
            yield f"n-{n}-probe-{probe}", f"--n={n} --probe={probe} --stop=41"
    yield "n-5-probe-VO-limit-16000", "--n=5 --probe=VO --ampdu=16000 --stop=41"
    yield "n-5-probe-VO-rts", "--n=5 --probe=VO --rts=500 --stop=41"
    for loss in (0.02, 0.05, 0.1, 0.2, 0.3):
        yield f"n-loss-{loss}", f"--loss={loss}"
    yield "ac-loss-0.1", f"{VHT80} --loss=0.1 --stop=5"
    for mcs, snr in ((0, 1), (4, 12.5), (4, 13.25), (7, 20)):
        yield f"n-mcs-{mcs}-snr-{snr}", f"--mcs={mcs} --snr={snr}"
    for snr in (3, 5, 7, 9, 11, 13, 16, 18, 19, 20, 22, 30):
        yield f"n-minstrel-{snr}", f"--rate=minstrel --snr={snr}"
    for snr in (7, 16, 22):
        yield f"n-ideal-{snr}", f"--rate=ideal --snr={snr}"
    for snr in (10, 16, 20, 26):
        yield f"ac-minstrel-{snr}", f"--standard=ac --width=80 --streams=1 --rate=minstrel --snr={snr} --stop=6"
    yield "n-minstrel-3-stations-22", "--rate=minstrel --snr=22 --n=3"
    yield "n-down-fifo-500", f"{DOWN} --limit=500"
    yield "n-down-fifo-200", f"{DOWN} --limit=200"
    yield "n-down-fq-64", f"{DOWN} --queue=fq_codel --limit=64"
    yield "n-down-fq-128", f"{DOWN} --queue=fq_codel --limit=128"
    yield "n-3-down-fq-64", f"{DOWN} --queue=fq_codel --limit=64 --n=3"


COLUMNS = [
    "cell", "seeds", "goodput_mbps", "goodput_sd", "collision", "collision_sd", "mpdus_per_ppdu", "p50_ms", "p50_sd",
    "p95_ms", "p95_sd", "p99_ms", "p99_sd", "mode", "mode_share", "arguments",
]  # fmt: skip
HEAD = (
    "# ns-3.37 (Debian 3.37-2): benches/peers/air.py; ns3_air with these arguments, --seed=1 to `seeds`; "
    "mean and deviation.\n"
)


def row(binary, name, arguments, seeds):
    def run(seed):
        command = [binary, *shlex.split(arguments), f"--seed={seed}"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    runs = [run(seed) for seed in range(1, seeds + 1)]

    def both(values):
        return f"{mean(values):.5g}", f"{deviation(values) if len(values) > 1 else 0:.2g}"

    delays = [both([r["delay_ms"][p] for r in runs]) for p in ("p50", "p95", "p99")]
    shares = {}
    for r in runs:
        for mode, share in r["modes"].items():
            shares[mode] = shares.get(mode, 0) + share / len(runs)
    top = max(shares, key=shares.get)
    return [
        name,
        seeds,
        *both([r["goodput_mbps"] for r in runs]),
        *both([r["collision"] for r in runs]),
        f"{mean([r['mpdus_per_ppdu'] for r in runs]):.4g}",
        *(figure for pair in delays for figure in pair),
        top,
        f"{shares[top]:.3f}",
        arguments,
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ns3", default=str(ROOT / "target/peers/ns3_air"))
    parser.add_argument("--only")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", default=str(ROOT / "tests/vectors/air-ns3.csv"))
    options = parser.parse_args()
    wanted = [(name, arguments) for name, arguments in cells() if name.startswith(options.only or "")]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(row, options.ns3, name, arguments, options.seeds) for name, arguments in wanted]
        rows = []
        for job in jobs:
            rows.append(job.result())
            print(",".join(map(str, rows[-1])), file=sys.stderr, flush=True)
    if options.only:
        return
    with open(options.out, "w", newline="") as out:
        out.write(HEAD)
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows)


if __name__ == "__main__":
    main()

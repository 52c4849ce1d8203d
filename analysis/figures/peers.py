"""What ns-2.35 gave for the same homes: means and spreads from `tests/golden/ns2-*.csv`, which `benches/peers` writes."""

import csv

from .simulator import ROOT, number
from .stats import Sample

GOLDEN = ROOT / "tests" / "golden"


def ns2(kind, field, folder=GOLDEN, **case):
    """One measured column of the case with these keys, as a Sample; None where ns-2 was not asked."""
    path = folder / f"ns2-{kind}.csv"
    if not path.exists():
        return None
    with path.open(encoding="ascii", newline="") as file:
        for row in csv.DictReader(file):
            if all(number(row[key]) == value for key, value in case.items()):
                return Sample(float(row[field]), float(row[f"{field}_sd"]), int(row["runs"]))
    return None


def home(field, attempts, capacity=None, distance=10, deviation=9, queue=50):
    """The SAP-LAW home; `capacity` is C in Mbit/s, None without control."""
    return ns2(
        "home",
        field,
        attempts=attempts,
        capacity_mbps=capacity,
        distance_m=distance,
        deviation_db=deviation,
        queue=queue,
    )


def arq(field, attempts, flows, sender):
    """The ARQ home; `sender` is newreno, or westwood, which in ns-2 is Linux's Westwood+ with SACK."""
    return ns2("arq", field, attempts=attempts, audio_flows=flows, sender=sender)

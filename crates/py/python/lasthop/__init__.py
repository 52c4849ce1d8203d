"""Lasthop's simulator for researchers: a home behind a Wi-Fi router, packet by packet, in virtual time.

    import lasthop

    home = lasthop.load("sap-law").set(wifi__queue__limit=1000)
    report = home.run(seed=3)
    report["flows.game-down.added_delay.p99"]                     # ms

    runs = lasthop.sweep(home, {"control.window": ["none", {"capacity": "learn"}]}, seeds=20, store="out/")
    runs.stats("flows.game-down.added_delay.p99")
    runs.to_polars()

A run is a function of its scenario, what was set, and its seed: the same figures on every machine, and the same as from the program
`lasthop`. Times are in ms where a name says nothing else, rates in bit/s; every field of a report is in `schema/report.md`.
"""

from . import plot
from ._home import load, parse, scenarios
from ._lasthop import REVISION, Ack, Home, Plan, Report, Stop, Store, Table, Window
from ._lasthop import VERSION as __version__
from ._law import Law
from ._stats import Comparison, Interval, Until, compare, interval
from ._sweep import Runs, sweep

__all__ = [
    "REVISION",
    "Ack",
    "Comparison",
    "Home",
    "Interval",
    "Law",
    "Plan",
    "Report",
    "Runs",
    "Stop",
    "Store",
    "Table",
    "Until",
    "Window",
    "__version__",
    "compare",
    "interval",
    "load",
    "parse",
    "plot",
    "scenarios",
    "sweep",
]

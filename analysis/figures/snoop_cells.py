"""The cells of the Snoop paper's figures: a source, a sender with or without Snoop, a number of flows, an error rate.

The network is `scenarios/papers/snoop.toml`. MPEG streams are TES video of 0.28 Mbit/s carried by the sender, as in the paper;
greedy sources are the reference runs'. The paper leaves the delays open: sources 20 ms away are the reference runs', 100 ms are
ours, with the link's buffer to match. ns-2.35's answers stand in `tests/golden/ns2-snoop.csv`.
"""

from dataclasses import asdict, dataclass

from . import peers
from .simulator import where
from .snoop_metrics import Metrics, metrics
from .stats import sample
from .table import Rule

HOME = "papers/snoop"
FLOWS = [1, 5, 10, 20, 30, 40]
ERRORS = [0, 0.01, 0.02, 0.03, 0.04, 0.05]
USUAL = 0.01
SEEDS = 10


@dataclass(frozen=True)
class World:
    """What the sources are, and how far away. `suffix`: of the names of its figures."""

    name: str
    source: str
    delay_ms: int
    buffer: int
    suffix: str
    timing: str = "ns2"
    rate_mbps: float = 0.28

    def settings(self):
        path = {"server.A.delay": f"{self.delay_ms}ms", "wireless_link.buffer": self.buffer}
        path |= {} if self.timing == "ns2" else {"wireless_link.timing": self.timing}
        stream = {"flow.media.kind": "video", "flow.media.rate": f"{self.rate_mbps}Mbit/s"}
        return {**path, **(stream if self.source == "mpeg" else {})}


FAR = World("MPEG streams from 100 ms away", "mpeg", 100, 128, "-far")
NEAR = World("MPEG streams from 20 ms away", "mpeg", 20, 28, "-near")
GREEDY = World("greedy sources 20 ms away", "ftp", 20, 28, "-greedy")
WORLDS = (FAR, NEAR, GREEDY)
# Packets are lost after they were sent, senders keep to the RFCs, Snoop to its own law, below the queue: nothing of ns-2's.
STANDARD = World("greedy sources 20 ms away, standard", "ftp", 20, 28, "", "standard")


@dataclass(frozen=True)
class Scheme:
    """A sender, and whether the base station runs Snoop."""

    name: str
    cc: str
    snoop: bool


RENO = Scheme("Reno", "reno", False)
RENO_SNOOP = Scheme("Reno + Snoop", "reno", True)
VEGAS = Scheme("Vegas", "vegas", False)
VEGAS_SNOOP = Scheme("Vegas + Snoop", "vegas", True)
WESTWOOD = Scheme("Westwood+", "westwood+", False)
WESTWOOD_SNOOP = Scheme("Westwood+ + Snoop", "westwood+", True)
REAL = Scheme("TCP-Real", "tcp-real", False)
REAL_SNOOP = Scheme("TCP-Real + Snoop", "tcp-real", True)

# What is not counted of ns-2's traces.
OURS_ALONE = ("timely_per_flow", "timely_in_order")
# What a figure calls a metric, what counts as no difference from ns-2: as far as the project allows itself.
NAMES = {
    "goodput_mbps": "goodput [Mbit/s]",
    "timely_index": "real-time performance index",
    "delayed_rate": "delayed packets rate",
    "loss_rate": "packet loss rate",
    "jain": "fairness index",
    "retransmitted": "sent again by the sender, per flow",
    "link_retransmitted": "sent again by Snoop, per flow",
}
RULES = {
    "goodput_mbps": Rule(3, share=0.05),
    "timely_index": Rule(3, share=0.0, least=0.03),
    "delayed_rate": Rule(3, share=0.0, least=0.03),
    "loss_rate": Rule(4, share=0.2, least=0.001),
    "jain": Rule(3, share=0.03),
    "retransmitted": Rule(1, share=0.2, least=2.0),
    "link_retransmitted": Rule(1, share=0.2, least=2.0),
}


def settings(world, scheme, flows, more=None):
    counts = {f"{key}.count": flows for key in ("server.A", "station.B", "flow.media")}
    law = {"flow.media.cc": scheme.cc, "wireless_link.snoop": str(scheme.snoop).lower()}
    # ns-2's Westwood+ is the sender of its Linux.
    law |= {"flow.media.sack": "true"} if scheme.cc == "westwood+" and world.timing == "ns2" else {}
    return {**counts, **world.settings(), **law, **(more or {})}


def samples(rows):
    """{metric: Sample} over the rows, one of them per seed."""
    each = [asdict(metrics(row)) for row in rows]
    return {name: sample(one[name] for one in each) for name in Metrics.__dataclass_fields__}


def ours(simulator, world, scheme, flows, error=USUAL, more=None):
    """{metric: Sample} of one cell."""
    if error == USUAL:
        return samples(simulator.sweep(HOME, settings(world, scheme, flows, more), SEEDS))
    rates = {"wireless_link.error_rate": [rate for rate in ERRORS if rate != USUAL]}
    rows = simulator.sweep(HOME, settings(world, scheme, flows, {**rates, **(more or {})}), SEEDS)
    return samples(where(rows, wireless_link__error_rate=error))


def ns2(world, scheme, flows, error=USUAL):
    """The same from ns-2; a metric is None where it was not asked."""
    path = {"source": world.source, "delay_ms": world.delay_ms, "hop_ms": 1, "rate_mbps": world.rate_mbps}
    case = {**path, "sender": scheme.cc, "snoop": int(scheme.snoop), "flows": flows, "error_rate": error}
    asked = world.timing == "ns2"
    known = lambda name: peers.ns2("snoop", name, **case) if asked and name not in OURS_ALONE else None
    return {name: known(name) for name in Metrics.__dataclass_fields__}

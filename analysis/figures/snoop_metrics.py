"""The metrics of the Snoop paper (001, section 4.2) of all flows of a run together, from a row of a sweep.

    goodput     = payload delivered once / time, all flows                  [Mbit/s]
    timely      = packets at most 75 ms after the one before / packets sent; pooled, per flow, and of those that an
                  application gets in order (per flow)
    delayed     = packets later than that / packets delivered
    lost        = packets lost / packets sent
    fairness    = (sum x)^2 / (n sum x^2) over goodput
    transport, link = packets sent again by senders, by the base station; per flow

Shares are of the packets of all flows, as ns-2's traces are counted; the paper's index is the mean of the flows' own. The
two differ where flows differ: one that is starved sends little, and little of it counts when packets are pooled.
"""

import re
from dataclasses import dataclass

from .catalogue import Missing


@dataclass(frozen=True)
class Metrics:
    """See the module."""

    goodput_mbps: float
    timely_index: float
    delayed_rate: float
    loss_rate: float
    jain: float
    retransmitted: float
    link_retransmitted: float
    timely_per_flow: float
    timely_in_order: float


def flow_fields(row, flow):
    """[{field: value}] of the flow and its copies."""
    copies = {}
    for key, value in row.items():
        found = re.fullmatch(rf"flows\.{re.escape(flow)}(\.\d+)?\.([a-z].*)", key)
        if found:
            copies.setdefault(found[1], {})[found[2]] = value
    if not copies:
        raise Missing(f"there is no flow {flow}")
    return list(copies.values())


def jain(values):
    values = list(values)
    squares = sum(x * x for x in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def metrics(row, flow="media"):
    """Of one row."""
    each = flow_fields(row, flow)
    total = lambda field: sum(one.get(field) or 0 for one in each)
    # The report gives shares per flow; here they are counts again.
    weighed = lambda share, of: sum((one.get(share) or 0) * one[of] for one in each)
    sent, delivered = total("sent"), total("delivered")
    return Metrics(
        goodput_mbps=total("goodput_bps") / 1e6,
        timely_index=weighed("timely_index", "sent") / sent,
        delayed_rate=weighed("delayed_rate", "delivered") / delivered,
        loss_rate=weighed("loss_rate", "sent") / sent,
        jain=jain(one["goodput_bps"] for one in each),
        retransmitted=total("tcp.retransmitted") / len(each),
        link_retransmitted=total("tcp.local_retransmitted") / len(each),
        timely_per_flow=total("timely_index") / len(each),
        timely_in_order=total("timely_in_order") / len(each),
    )

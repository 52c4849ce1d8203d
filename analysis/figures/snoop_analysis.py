"""The Snoop paper's analysis (section 3, `snoop_law`) drawn against the simulation of its network.

Greedy Reno, timing of ns-2. The round trip of (3) is that of the empty path; p_B is what the base station's queue dropped of
the packets that came to it, p_A = 0: no queue of a wire is ever full.
"""

from . import style
from .catalogue import Drawn, Figure
from .simulator import where
from .snoop_cells import ERRORS, FLOWS, GREEDY, HOME, RENO, RENO_SNOOP, SEEDS, USUAL, samples, settings
from .snoop_law import delivered, end_to_end_delay, path_loss, tcp_rate, tfrc_rate, underused
from .snoop_metrics import flow_fields
from .stats import sample
from .table import markdown, shown

CHAPTER = "snoop-paper.md"
COLOURS = {RENO: style.VERMILION, RENO_SNOOP: style.BLUE}
MSS, PACKET = 960, 1000
LINK_BPS = 5e6
PAYLOAD_BPS = LINK_BPS * MSS / PACKET
# Of a data packet: the time to send it on each hop and the way, s. The ACK of 40 B takes as long at the same rates.
HOPS = ((0.8e-3, 20e-3), (1.6e-3, 1e-3), (0.8e-3, 1e-3))
ACK_S = sum(transmit * 40 / PACKET + propagate for transmit, propagate in HOPS)
RTT = sum(transmit + propagate for transmit, propagate in HOPS) + ACK_S
RTO = 0.2  # the least of ns-2's senders, which a round trip of 47 ms stays under
SHOWN_ERRORS = [0.001, 0.003, *ERRORS[1:]]


def one_flow(simulator, scheme):
    """{error rate: metrics} of one greedy flow."""
    vary = {"wireless_link.error_rate": SHOWN_ERRORS}
    rows = simulator.sweep(HOME, settings(GREEDY, scheme, 1, vary), 2 * SEEDS)
    return {rate: samples(where(rows, wireless_link__error_rate=rate)) for rate in SHOWN_ERRORS}


def counted(rows):
    """Per run: share lost (p_S), share dropped by the queue of what came to it (p_B), delay by (7) and as simulated, ms."""
    found = {"p_s": [], "p_b": [], "law_ms": [], "delay_ms": []}
    for row in rows:
        each = flow_fields(row, "media")
        total = lambda field: sum(one[field] for one in each)
        sent, air, queue = total("sent"), total("lost.channel"), total("lost.ap_queue")
        waits = [value for key, value in row.items() if key.startswith("queues.A") and key.endswith("mean_sojourn")]
        base = row["queues.AP to stations.mean_sojourn"]
        wire = sum(waits) - base
        queues = (wire / len(each) / 1e3, base / 1e3, 0.0)
        found["p_s"].append((air + queue) / sent)
        found["p_b"].append(queue / (sent - air))
        found["law_ms"].append(1e3 * end_to_end_delay([(t, q, p) for (t, p), q in zip(HOPS, queues)]))
        found["delay_ms"].append(
            sum((one.get("delay.mean") or 0) * one["delivered"] for one in each) / total("delivered")
        )
    return {name: sample(values) for name, values in found.items()}


def law(simulator):
    made, (rate, loss, delay) = style.plt.subplots(1, 3, figsize=(9.4, 3.5))
    table = [
        [
            "error rate p_W",
            "(3) T_S (1 - p_S), p_S = p_W [Mbit/s]",
            "(2) the same",
            "Reno, simulated",
            "Reno + Snoop, simulated",
            "(6) BW (1 - p_W)",
            "(5) under-used?",
            "simulated",
        ]
    ]
    alone, helped = one_flow(simulator, RENO), one_flow(simulator, RENO_SNOOP)
    fine = [0.0005 * step for step in range(2, 101)]
    style.line(
        rate, [(p, delivered(MSS, RTT, p, PAYLOAD_BPS, p) / 1e6) for p in fine], color=style.GREY, label="(3), (5)"
    )
    style.line(
        rate,
        [(p, min(tfrc_rate(MSS, RTT, RTO, p), PAYLOAD_BPS) * (1 - p) / 1e6) for p in fine],
        color=style.GREY,
        linestyle=":",
        label="(2)",
    )
    style.line(
        rate,
        [(p, PAYLOAD_BPS * (1 - p) / 1e6) for p in fine],
        color=style.INK,
        linestyle="--",
        label="(6): BW (1 - p_W)",
    )
    for scheme, cells in ((RENO, alone), (RENO_SNOOP, helped)):
        style.points(
            rate, SHOWN_ERRORS, [cells[p]["goodput_mbps"] for p in SHOWN_ERRORS], scheme.name, color=COLOURS[scheme]
        )
    for p in SHOWN_ERRORS:
        mine = alone[p]["goodput_mbps"]
        table.append(
            [
                p,
                f"{tcp_rate(MSS, RTT, p) * (1 - p) / 1e6:.2f}",
                f"{tfrc_rate(MSS, RTT, RTO, p) * (1 - p) / 1e6:.2f}",
                shown(mine, 2),
                shown(helped[p]["goodput_mbps"], 2),
                f"{PAYLOAD_BPS * (1 - p) / 1e6:.2f}",
                "yes" if underused(tcp_rate(MSS, RTT, p), p, PAYLOAD_BPS, p) else "no",
                "yes" if mine.mean < 0.98 * PAYLOAD_BPS * (1 - p) / 1e6 else "no",
            ]
        )
    rate.set(title="one flow", xlabel="error rate p_W", ylabel="goodput [Mbit/s]", ylim=(0, 7))
    beside = [["flows", "", "p_B, counted", "(4) or (6)", "p_S, simulated", "(7) [ms]", "mean delay, simulated [ms]"]]
    for scheme in (RENO, RENO_SNOOP):
        cells = [counted(simulator.sweep(HOME, settings(GREEDY, scheme, n), SEEDS)) for n in FLOWS]
        p_w = 0.0 if scheme.snoop else USUAL
        laws = [path_loss(0.0, cell["p_b"].mean, p_w) for cell in cells]
        style.points(loss, FLOWS, [cell["p_s"] for cell in cells], scheme.name, color=COLOURS[scheme], linestyle="none")
        style.line(
            loss, list(zip(FLOWS, laws)), color=COLOURS[scheme], linewidth=0.8, label=f"({6 if scheme.snoop else 4})"
        )
        style.points(
            delay, FLOWS, [cell["delay_ms"] for cell in cells], scheme.name, color=COLOURS[scheme], linestyle="none"
        )
        style.line(
            delay,
            [(n, cell["law_ms"].mean) for n, cell in zip(FLOWS, cells)],
            color=COLOURS[scheme],
            linewidth=0.8,
            label="(7)",
        )
        for n, cell, p_s in zip(FLOWS, cells, laws):
            row = [
                shown(cell["p_b"], 4),
                f"{p_s:.4f}",
                shown(cell["p_s"], 4),
                shown(cell["law_ms"], 1),
                shown(cell["delay_ms"], 1),
            ]
            beside.append([n, scheme.name, *row])
    loss.set(title="loss that the sender sees", xlabel="flows", ylabel="p_S", ylim=(0, None), xticks=FLOWS)
    delay.set(title="end-to-end delay, mean", xlabel="flows", ylabel="ms", ylim=(0, None), xticks=FLOWS)
    for axes in (rate, loss, delay):
        axes.legend(fontsize=7, loc="upper right" if axes is rate else "upper left")
    return Drawn(made, markdown(table) + "\n\n" + markdown(beside))


FIGURES = [Figure("snoop-law", "the Snoop paper's equations against the simulation", CHAPTER, law)]

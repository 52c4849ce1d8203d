"""The Snoop paper (001): figures 3 to 7, each in three worlds (see `snoop_cells`), beside ns-2."""

from . import style
from .catalogue import Drawn, Figure
from .snoop_cells import (
    ERRORS,
    FLOWS,
    NAMES,
    REAL,
    RENO,
    RENO_SNOOP,
    RULES,
    VEGAS,
    VEGAS_SNOOP,
    WESTWOOD,
    WORLDS,
    ns2,
    ours,
)
from .table import Line, markdown, reason, shown

CHAPTER = "snoop-paper.md"
# What each panel of figures 3 and 4, 5, and 6 and 7 shows. 3 (f) is drawn apart: it has two kinds of retransmissions.
ALONE = ("goodput_mbps", "timely_index", "delayed_rate", "loss_rate", "retransmitted")
RIVALS = ("goodput_mbps", "timely_index", "delayed_rate", "loss_rate", "jain")
LINKS = ("goodput_mbps", "timely_index")
COLOURS = {
    RENO: style.VERMILION,
    RENO_SNOOP: style.BLUE,
    VEGAS: style.GREEN,
    VEGAS_SNOOP: style.SKY,
    WESTWOOD: style.ORANGE,
    REAL: style.PURPLE,
}
# Of the cells drawn, those that the tables hold.
TABLE_FLOWS, TABLE_ERRORS = (1, 10, 40), (0, 0.03, 0.05)


# What the paper says of each figure; its pictures came without numbers.
SAYS = {
    (3, "goodput_mbps", RENO_SNOOP): "above Reno",
    (3, "timely_index", RENO_SNOOP): "little above Reno, below with many flows",
    (3, "delayed_rate", RENO_SNOOP): "above Reno with many flows",
    (3, "loss_rate", RENO_SNOOP): "below Reno",
    (3, "retransmitted", RENO_SNOOP): "below Reno",
    (4, "goodput_mbps", VEGAS_SNOOP): "above Vegas, by less than Reno gains",
    (4, "timely_index", VEGAS_SNOOP): "below Vegas",
    (4, "delayed_rate", VEGAS_SNOOP): "remarkably above Vegas",
    (4, "retransmitted", VEGAS_SNOOP): "at times above Vegas",
    (5, "goodput_mbps", RENO_SNOOP): "the highest",
    (5, "goodput_mbps", WESTWOOD): "deficient with many flows",
    (5, "timely_index", VEGAS): "among the best",
    (5, "timely_index", REAL): "among the best",
    (5, "delayed_rate", RENO_SNOOP): "excessive",
    (5, "loss_rate", RENO_SNOOP): "most errors repaired",
    (5, "jain", WESTWOOD): "unfair",
    (5, "jain", VEGAS): "in part unfair",
    (6, "goodput_mbps", RENO_SNOOP): "hardly touched by errors",
    (6, "goodput_mbps", VEGAS): "hardly touched by errors",
    (6, "goodput_mbps", WESTWOOD): "limited from 0.04 on",
    (6, "goodput_mbps", REAL): "limited from 0.04 on",
    (7, "goodput_mbps", RENO_SNOOP): "hardly touched by errors",
    (7, "goodput_mbps", VEGAS): "hardly touched by errors",
    (7, "goodput_mbps", WESTWOOD): "limited from 0.04 on",
    (7, "goodput_mbps", REAL): "better than with 10 flows",
}
EDGES = "it counts what is on its way when the count begins and ends"


def compared(number, metric, scheme, mine, theirs):
    """A number of a figure's table."""
    name = f"{scheme.name}: {NAMES[metric]}"
    why = EDGES if metric in ("loss_rate", "link_retransmitted") else ""
    return Line(name, mine[metric], RULES[metric], SAYS.get((number, metric, scheme)), theirs[metric], why_ns2=why)


def beside(lines, heads):
    """A figure's table: a line per sender and metric, ours with ns-2's in brackets, and why where they differ."""
    table = [["", "the paper", *heads, "where ours and ns-2's differ, why"]]
    for line in lines:
        digits = line[0].rule.digits
        cells = [
            shown(one.ours, digits) + (f" ({shown(one.ns2.mean, digits)})" if one.ns2 else "") for one in line
        ]
        whys = [f"{head}: {reason(one)}" for head, one in zip(heads, line) if reason(one)]
        table.append([line[0].what, shown(line[0].paper, digits), *cells, "; ".join(whys)])
    return markdown(table)


def curve(axes, xs, metric, scheme, mine, theirs):
    style.points(axes, xs, [cell[metric] for cell in mine], scheme.name, color=COLOURS[scheme])
    style.peer(axes, xs, [cell[metric] for cell in theirs], None, color=COLOURS[scheme])


def over_flows(number, world, schemes, panels):
    """Figures 3 to 5: every metric over the number of flows."""

    def make(simulator):
        made, axes = style.plt.subplots(3, 2, figsize=(7.2, 7.6), sharex=True)
        flat, lines = axes.flatten(), []
        cells = {scheme: [ours(simulator, world, scheme, n) for n in FLOWS] for scheme in schemes}
        known = {scheme: [ns2(world, scheme, n) for n in FLOWS] for scheme in schemes}
        for letter, one, metric in zip("abcde", flat, panels):
            for scheme in schemes:
                curve(one, FLOWS, metric, scheme, cells[scheme], known[scheme])
            one.set_title(f"({letter}) {NAMES[metric]}")
        if "retransmitted" in panels:
            helped = schemes[1]
            for metric, colour in (("retransmitted", style.INK), ("link_retransmitted", style.PURPLE)):
                style.points(flat[5], FLOWS, [cell[metric] for cell in cells[helped]], NAMES[metric], color=colour)
                style.peer(flat[5], FLOWS, [cell[metric] for cell in known[helped]], None, color=colour)
            flat[5].set_title(f"(f) link against transport, {helped.name}")
            flat[5].set_ylim(0, 1.35 * flat[5].get_ylim()[1])
            flat[5].legend(loc="upper right")
        else:
            flat[5].axis("off")
            flat[3].tick_params(labelbottom=True)
        for metric in (*panels, "link_retransmitted") if "retransmitted" in panels else panels:
            for scheme in schemes:
                if metric != "link_retransmitted" or scheme.snoop:
                    at = [FLOWS.index(n) for n in TABLE_FLOWS]
                    lines.append([compared(number, metric, scheme, cells[scheme][i], known[scheme][i]) for i in at])
        finish(made, flat, f"Figure {number}, {world.name}; open circles: ns-2.35", "flows", FLOWS)
        return Drawn(made, beside(lines, [flows_of(n) for n in TABLE_FLOWS]))

    return make


def flows_of(count):
    return "1 flow" if count == 1 else f"{count} flows"


def over_errors(number, world, flows):
    """Figures 6 and 7: goodput and the index over the error rate."""

    def make(simulator):
        made, axes = style.plt.subplots(1, 2, figsize=(7.2, 3.4), sharex=True)
        lines = []
        for scheme in (RENO_SNOOP, VEGAS, WESTWOOD, REAL, RENO):
            mine = [ours(simulator, world, scheme, flows, rate) for rate in ERRORS]
            theirs = [ns2(world, scheme, flows, rate) for rate in ERRORS]
            for letter, one, metric in zip("ab", axes, LINKS):
                curve(one, ERRORS, metric, scheme, mine, theirs)
                one.set_title(f"({letter}) {NAMES[metric]}")
            for metric in LINKS:
                at = [ERRORS.index(rate) for rate in TABLE_ERRORS]
                lines.append([compared(number, metric, scheme, mine[i], theirs[i]) for i in at])
        finish(
            made,
            axes,
            f"Figure {number}, {flows} flows, {world.name}; open circles: ns-2.35",
            "error rate",
            ERRORS,
        )
        return Drawn(made, beside(lines, [f"error rate {rate}" for rate in TABLE_ERRORS]))

    return make


def finish(made, axes, title, x, ticks):
    for one in axes:
        # Shares that lie near 1 are told apart only where the axis does not begin at 0.
        if "index" not in one.get_title(loc="left"):
            one.set_ylim(bottom=0)
        one.set_xticks(ticks)
    for one in axes[-2:]:
        one.set_xlabel(x)
    made.suptitle(title, x=0.01, ha="left", fontsize=9.5)
    made.legend(*axes[0].get_legend_handles_labels(), loc="outside lower left", ncols=5)


FIGURES = []
for place in WORLDS:
    FIGURES += [
        Figure(
            f"snoop-3{place.suffix}",
            f"Snoop with Reno, {place.name}",
            CHAPTER,
            over_flows(3, place, (RENO, RENO_SNOOP), ALONE),
            short=place is WORLDS[-1],
        ),
        Figure(
            f"snoop-4{place.suffix}",
            f"Snoop with Vegas, {place.name}",
            CHAPTER,
            over_flows(4, place, (VEGAS, VEGAS_SNOOP), ALONE),
        ),
        Figure(
            f"snoop-5{place.suffix}",
            f"Snoop with Reno beside other senders, {place.name}",
            CHAPTER,
            over_flows(5, place, (RENO_SNOOP, VEGAS, WESTWOOD, REAL), RIVALS),
        ),
        Figure(f"snoop-6{place.suffix}", f"error rates, 10 flows, {place.name}", CHAPTER, over_errors(6, place, 10)),
        Figure(f"snoop-7{place.suffix}", f"error rates, 20 flows, {place.name}", CHAPTER, over_errors(7, place, 20)),
    ]

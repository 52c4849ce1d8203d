"""Markdown tables of what was published beside what we measured, and their place in a chapter.

A chapter holds `<!-- table NAME -->` and `<!-- end -->`, each on its own line; what stands between them is written here,
so that a chapter reads the same as plain Markdown and as a built book.
"""

from dataclasses import dataclass

from .stats import Sample, outside


@dataclass(frozen=True)
class Rule:
    """How a quantity is shown, and what counts as no difference: a share of the published value, or so much at least."""

    digits: int
    share: float = 0.03
    least: float = 0.0


PACKETS = Rule(0)
PERCENT = Rule(2)
MILLISECONDS = Rule(2, share=0.15, least=0.2)
LOSSES = Rule(1, share=0.1, least=2.0)


@dataclass(frozen=True)
class Line:
    """One quantity: what we measured, what the paper says (a number, or words) and ns-2 gave, and why they differ."""

    what: str
    ours: Sample
    rule: Rule
    paper: object = None
    ns2: Sample = None
    why_paper: str = ""
    why_ns2: str = ""


def three_columns(lines):
    """The table of a figure: the paper, ns-2, ours, and the reason where they differ by more than the spread."""
    rows = [["", "the paper", "ns-2.35", "ours", "where they differ, why"]]
    for line in lines:
        published = [shown(value, line.rule.digits) for value in (line.paper, line.ns2)]
        rows.append([line.what, *published, shown(line.ours, line.rule.digits), reason(line)])
    return markdown(rows)


def reason(line):
    """Empty while ours agrees with every number beside it; the reason, or that there is none, where it does not."""
    beside = (("the paper", line.paper, line.why_paper), ("ns-2", line.ns2, line.why_ns2))
    return "; ".join(
        f"{name}: {why or '**not explained**'}"
        for name, value, why in beside
        if not isinstance(value, str) and outside(line.ours, value, line.rule.share, line.rule.least)
    )


def shown(value, digits):
    """A number, `mean +- sd` of a sample, a text as it is, a dash for nothing."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if not isinstance(value, Sample):
        return f"{value:.{digits}f}"
    return f"{value.mean:.{digits}f}" + (f" +- {value.sd:.{digits}f}" if value.n > 1 else "")


def markdown(rows):
    """Rows of cells, the first one the head."""
    head, *body = [[str(cell) for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *body])


def splice(chapter, name, text):
    """`chapter` with `text` between the marks of table `name`; ValueError when a mark is missing."""
    start, end = f"<!-- table {name} -->", "<!-- end -->"
    before, found, rest = chapter.partition(start + "\n")
    if not found:
        raise ValueError(f"there is no line {start}")
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"no {end} follows {start}")
    return f"{before}{start}\n\n{text}\n\n{end}{after}"

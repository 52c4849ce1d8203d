"""Markdown tables of what was published beside what we measured, and their place in a chapter.

A chapter holds `<!-- table NAME -->` and `<!-- end -->`, each on its own line; what stands between them is written here,
so that a chapter reads the same as plain Markdown and as a built book.
"""

from dataclasses import dataclass

from .stats import Sample, outside


@dataclass(frozen=True)
class Line:
    """One quantity: what the paper says, what ns-2 gave, what we measured, and why they differ where they do."""

    what: str
    ours: Sample
    paper: object = None  # a number, or a text where the paper gives no number
    ns2: Sample = None
    why: str = ""
    digits: int = 2
    share: float = 0.03  # differences up to this share of the published value, or
    least: float = 0.0  # up to this, count as none


def three_columns(lines):
    """The table of a figure: the paper, ns-2, ours, and the reason where they differ by more than the spread."""
    rows = [["", "the paper", "ns-2.35", "ours", "where they differ, why"]]
    for line in lines:
        rows.append(
            [
                line.what,
                shown(line.paper, line.digits),
                shown(line.ns2, line.digits),
                shown(line.ours, line.digits),
                reason(line),
            ]
        )
    return markdown(rows)


def reason(line):
    """Empty while ours agrees with every number beside it; the reason, or that there is none, where it does not."""
    published = [("the paper", line.paper), ("ns-2", line.ns2)]
    off = [
        name
        for name, value in published
        if not isinstance(value, str) and outside(line.ours, value, line.share, line.least)
    ]
    if not off:
        return ""
    return f"{' and '.join(off)}: {line.why or '**not explained**'}"


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

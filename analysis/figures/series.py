"""Curves: thinned for drawing, cumulated, and jitter from delays.

`D_i = (R_i - R_(i-1)) - (S_i - S_(i-1)) = delay_i - delay_(i-1)`: of packets received in a row, abs(D) is the report's jitter.
"""

import math
from bisect import bisect_right


def thin(points, width=1200):
    """`points` [(x, y)] in at most about 4 x `width` of them, with every peak: per slice of x the first, least, greatest, last."""
    if len(points) <= 4 * width:
        return list(points)
    start, end = points[0][0], points[-1][0]
    step = (end - start) / width or 1.0
    slices = {}
    for index, (x, _) in enumerate(points):
        slices.setdefault(min(int((x - start) / step), width - 1), []).append(index)
    kept = set()
    for indices in slices.values():
        kept.update(
            (
                indices[0],
                indices[-1],
                min(indices, key=lambda i: points[i][1]),
                max(indices, key=lambda i: points[i][1]),
            )
        )
    return [points[i] for i in sorted(kept)]


def as_steps(points, end):
    """The corners of a value that stays until it changes, up to x = `end`."""
    corners = []
    for x, y in points:
        if corners and corners[-1][1] == y:
            continue
        if corners:
            corners.append((x, corners[-1][1]))
        corners.append((x, y))
    if corners:
        corners.append((end, corners[-1][1]))
    return corners


def held(points, x):
    """The last value at or before `x` of one that stays until it changes; infinite before the first."""
    at = bisect_right(points, x, key=lambda point: point[0])
    return points[at - 1][1] if at else math.inf


def jitter(delays):
    """abs(D) of [(sent, delay)], at the time the later packet was sent; same unit as the delay."""
    return [(t, abs(delay - before)) for (_, before), (t, delay) in zip(delays, delays[1:])]


def cumulative(values):
    """[(x, how many values are at most x)]."""
    return [(x, count) for count, x in enumerate(sorted(values), start=1)]


def pooled(rows, flows, field, scale=1.0):
    """Per row the mean of one field over flows of one kind; what a flow has not got is left out."""
    means = []
    for row in rows:
        values = [row[f"flows.{flow}.{field}"] for flow in flows if row.get(f"flows.{flow}.{field}") is not None]
        if values:
            means.append(scale * sum(values) / len(values))
    return means

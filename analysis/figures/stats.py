"""Means over seeds, and when two of them differ.

`sd^2 = sum (x - mean)^2 / (n - 1)`, `se = sd / sqrt(n)`; of a difference `se = sqrt(se_a^2 + se_b^2)`.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    """What some seeds gave. `sd` is 0 for one value."""

    mean: float
    sd: float
    n: int

    @property
    def se(self):
        return self.sd / math.sqrt(self.n)


def sample(values):
    """Mean, standard deviation between seeds, and number of `values`; None when there are none."""
    values = list(values)
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Sample(mean, 0.0, 1)
    return Sample(mean, math.sqrt(math.fsum((x - mean) ** 2 for x in values) / (len(values) - 1)), len(values))


def outside(ours, published, share=0.0, least=0.0):
    """Whether `ours` and a published value differ by more than the spread.

    A published mean with its own spread (a Sample): more than 3 standard errors of the difference. A single number, which
    the papers give: more than 2 standard deviations between our seeds. In both cases differences up to `share` of the
    published value or up to `least` (same unit) count as none.
    """
    if published is None or ours is None:
        return False
    if isinstance(published, Sample):
        value, spread = published.mean, 3.0 * math.hypot(ours.se, published.se)
    else:
        value, spread = published, 2.0 * ours.sd
    return abs(ours.mean - value) > max(spread, share * abs(value), least)


def fits(mean, published, share=0.05):
    """Whether a mean lies within a share of a published number."""
    return abs(mean - published) <= share * abs(published)


def quantile(values, q):
    """The value below which a share `q` of the values lies, by linear interpolation."""
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])

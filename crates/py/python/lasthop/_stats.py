"""Figures over seeds: means with their confidence intervals, paired comparison, and when to stop.

Seeds are independent replications: every component of the simulator draws from its own stream of the seed, so the figures of one cell
over seeds are independent and of one distribution, and homes that differ in one key share the random numbers of all other components
at one seed (common random numbers).

Sources: Law, "Simulation Modeling and Analysis", 5th edition, sections 9.4.1 (intervals by replication, relative error) and 10.2
(paired-t comparison); Chow and Robbins, "On the asymptotic theory of fixed-width sequential confidence intervals for the mean", Annals
of Mathematical Statistics 36 (1965); Abramowitz and Stegun 26.7.3 and 26.7.4 (Student's t).
"""

from __future__ import annotations

import dataclasses
import functools
import math
import statistics
from collections.abc import Iterable, Sequence

# With as many degrees of freedom Student's t is the normal distribution within 1e-4.
_MANY = 5_000


def _within(t: float, freedom: int) -> float:
    """P(|T| <= t) of Student's t with so many degrees of freedom: the finite series of Abramowitz and Stegun 26.7.3, 26.7.4."""
    angle = math.atan2(t, math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    if freedom == 1:
        return 2.0 * angle / math.pi
    term = cosine if odd else 1.0
    total = term
    for k in range(3 if odd else 2, freedom - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    return 2.0 / math.pi * (angle + sine * total) if odd else sine * total


@functools.lru_cache(maxsize=4096)
def student(confidence: float, freedom: int) -> float:
    """The t with P(|T| <= t) = confidence, by bisection."""
    if freedom >= _MANY:
        return statistics.NormalDist().inv_cdf(0.5 + confidence / 2.0)
    low, high = 0.0, 1.0
    while _within(high, freedom) < confidence:
        high *= 2.0
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _within(middle, freedom) < confidence else (low, middle)
    return high


@dataclasses.dataclass(frozen=True)
class Interval:
    """A mean over seeds and its confidence interval, in the figure's unit.

    Attributes:
        n: how many seeds had the figure.
        mean: over them, in the figure's unit; NaN without any.
        sd: standard deviation of the sample (n - 1), in the figure's unit; NaN with fewer than two.
        half: half width of the interval, in the figure's unit: t(n - 1) sd / sqrt(n); infinite with fewer than two.
        confidence: of the interval, 0 to 1.
        values: of a cell of a sweep, what it varies: value, as `--set` takes it, by key.
    """

    n: int
    mean: float
    sd: float
    half: float
    confidence: float
    values: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def low(self) -> float:
        """Lower end of the interval, in the figure's unit."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """Upper end of the interval, in the figure's unit."""
        return self.mean + self.half

    def __str__(self) -> str:
        what = ", ".join(f"{key}={value}" for key, value in self.values.items())
        return f"{what + ': ' if what else ''}{self.mean:.4g} +- {self.half:.2g} ({self.n} seeds)"


def interval(sample: Iterable[float | None], confidence: float = 0.95, values: dict[str, str] | None = None) -> Interval:
    """Mean, standard deviation and t interval of independent figures (Law, "Simulation Modeling and Analysis", 5th edition, 9.4.1).

    Args:
        sample: the figures, one per seed; None and NaN (no population) are left out.
        confidence: of the interval, 0 to 1.
        values: what the figures are of, kept as it is.

    Returns:
        The interval, in the figures' unit. With fewer than two figures it is infinite, and with none the mean is NaN.

    Raises:
        ValueError: the confidence is not between 0 and 1.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError("a confidence is between 0 and 1, for example 0.95")
    there = [float(value) for value in sample if value is not None and not math.isnan(value)]
    n = len(there)
    mean = math.fsum(there) / n if n else math.nan
    sd = math.sqrt(math.fsum((value - mean) ** 2 for value in there) / (n - 1)) if n > 1 else math.nan
    half = student(confidence, n - 1) * sd / math.sqrt(n) if n > 1 else math.inf
    return Interval(n, mean, sd, half, confidence, values or {})


@dataclasses.dataclass(frozen=True)
class Comparison:
    """`b - a` by pairs of one seed (common random numbers).

    Attributes:
        difference: of the pairs, b - a, in the figure's unit.
        a: the one, over the seeds of the pairs, in the figure's unit.
        b: the other.
        gain: how many times wider the interval of the difference would be without pairs; 1: pairs are worth nothing.
    """

    difference: Interval
    a: Interval
    b: Interval
    gain: float

    @property
    def is_sure(self) -> bool:
        """Whether the interval of the difference leaves out zero."""
        return abs(self.difference.mean) > self.difference.half

    def __str__(self) -> str:
        verdict = "" if self.is_sure else ", which may be none"
        return f"{self.a.mean:.4g} -> {self.b.mean:.4g}: {self.difference.mean:+.4g} +- {self.difference.half:.2g}{verdict}"


def compare(a: Sequence[float | None], b: Sequence[float | None], confidence: float = 0.95) -> Comparison:
    """The paired-t comparison of two lists of figures (Law, "Simulation Modeling and Analysis", 5th edition, 10.2).

    Args:
        a: figures, one per seed; None: no population.
        b: as many, of the same unit; the i-th of both come from one seed. Pairs that lack one are left out.
        confidence: of the intervals, 0 to 1.

    Returns:
        The difference b - a and both means, in the figures' unit.

    Raises:
        ValueError: the lists are not equally long, or the confidence is not between 0 and 1.
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} and {len(b)} figures make no pairs")
    pairs = [(x, y) for x, y in zip(a, b) if x is not None and y is not None]
    one, other = interval((x for x, _ in pairs), confidence), interval((y for _, y in pairs), confidence)
    difference = interval((y - x for x, y in pairs), confidence)
    apart = math.hypot(one.sd, other.sd) if one.n > 1 else math.nan
    gain = math.inf if difference.sd == 0.0 else apart / difference.sd
    return Comparison(difference, one, other, gain)


@dataclasses.dataclass(frozen=True)
class Until:
    """The stopping rule of `sweep(until=..)`: seeds until the interval of a figure is within a share of its mean, in every cell.

    After `least` seeds and then every `step` seeds a cell ends if `half / |mean| <= within / (1 + within)`: then the true mean is
    within the share `within` with about `confidence` (Law 9.4.1: the relative error of the estimate against the true mean, whence the
    divisor; Chow and Robbins: right as `within` goes to 0). With few seeds the coverage is a few percent lower than asked for, which
    is why `least` is 10 by default. A figure that no seed has ends its cell, too.

    Args:
        figure: its name, as `Runs.stats` takes it.
        within: share of the mean, 0 to 1: 0.02 is 2 %.
        confidence: of the interval, 0 to 1.
        least: seeds of every cell before the rule is looked at, 2 or more.
        step: seeds that a cell gets which has not ended.
        most: seeds that no cell exceeds; one that has not ended by then has so many.

    Raises:
        ValueError: one of them is outside of its range.
    """

    figure: str
    within: float = 0.02
    confidence: float = 0.95
    least: int = 10
    step: int = 10
    most: int = 1000

    def __post_init__(self) -> None:
        if not (0.0 < self.within < 1.0 and 0.0 < self.confidence < 1.0):
            raise ValueError("within and confidence are between 0 and 1, for example 0.02 and 0.95")
        if self.least < 2 or self.step < 1 or self.most < self.least:
            raise ValueError("least is 2 or more, step 1 or more, and most not below least")

    def is_met(self, sample: Sequence[float | None]) -> bool:
        """Whether these figures are enough.

        Args:
            sample: those of one cell, one per seed; None: no population.

        Returns:
            Whether the cell ends.
        """
        so_far = interval(sample, self.confidence)
        if len(sample) >= self.most:
            return True
        if so_far.n < self.least:
            return len(sample) >= self.least and so_far.n == 0
        return so_far.half <= abs(so_far.mean) * self.within / (1.0 + self.within)

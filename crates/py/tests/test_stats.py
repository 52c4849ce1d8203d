"""Statistics, against published numbers and against distributions whose mean is known."""

import math
import random

import pytest
from lasthop import Until, compare, interval
from lasthop._stats import student


@pytest.mark.parametrize(
    "confidence, freedom, expected",
    # Abramowitz and Stegun, table 26.10; NIST/SEMATECH e-Handbook 1.3.6.7.2.
    [(0.95, 1, 12.706), (0.95, 2, 4.303), (0.95, 4, 2.776), (0.95, 9, 2.262), (0.95, 19, 2.093), (0.99, 9, 3.250), (0.90, 30, 1.697), (0.99, 100, 2.626), (0.95, 4999, 1.9604), (0.95, 10**6, 1.9600)],
)
def test_student(confidence, freedom, expected):
    assert math.isclose(student(confidence, freedom), expected, abs_tol=6e-4)


def test_an_interval_of_a_textbook():
    # Law, section 9.4.1, example 9.14: ten replications of a bank, 90 %.
    delays = [1.53, 1.66, 1.24, 2.34, 2.00, 1.69, 2.69, 2.86, 1.70, 2.60]
    made = interval(delays, 0.90)
    assert math.isclose(made.mean, 2.03, abs_tol=0.005) and math.isclose(made.half, 0.32, abs_tol=0.01)
    assert made.low < 2.03 < made.high


def test_what_is_missing_counts_nowhere():
    assert interval([1.0, None, 3.0]).n == 2 and interval([1.0, None, 3.0]).mean == 2.0
    assert math.isinf(interval([1.0]).half) and math.isnan(interval([]).mean)
    with pytest.raises(ValueError, match="between 0 and 1"):
        interval([1.0, 2.0], 95)


def test_pairs_of_one_seed_take_out_what_both_share():
    draw = random.Random(7)
    shared = [draw.gauss(100, 10) for _ in range(40)]
    a = [value + draw.gauss(0, 1) for value in shared]
    b = [value + 2 + draw.gauss(0, 1) for value in shared]
    made = compare(a, b)
    assert made.is_sure and abs(made.difference.mean - 2) < 3 * 1.5 / math.sqrt(40) and made.gain > 5
    assert not compare(a, b[1:] + b[:1]).is_sure
    assert compare([1.0, None], [2.0, 3.0]).difference.n == 1
    with pytest.raises(ValueError, match="no pairs"):
        compare([1.0], [])


def test_the_stopping_rule_is_right_as_often_as_it_says():
    draw, rule, right, used = random.Random(11), Until("x", within=0.05, least=10, step=5, most=2000), 0, []
    for _ in range(400):
        sample = [draw.gauss(10, 2) for _ in range(rule.least)]
        while not rule.is_met(sample):
            sample += [draw.gauss(10, 2) for _ in range(rule.step)]
        used.append(len(sample))
        right += abs(sum(sample) / len(sample) - 10) <= 0.05 * 10
    # 95 % asked for; a sequential rule is right a little less often, since it may stop at a sample that is small by chance.
    assert 0.90 <= right / 400 <= 0.99
    # sigma / mean = 0.2: (1.96 * 0.2 / (0.05 / 1.05))^2 = 68 figures.
    assert 50 < sum(used) / len(used) < 80


def test_a_rule_ends_at_its_most_and_where_nothing_is_there():
    rule = Until("x", least=10, most=30)
    assert rule.is_met([0.0, 100.0] * 15) and not rule.is_met([0.0, 100.0] * 10) and rule.is_met([None] * 10)
    for wrong in ({"within": 2}, {"least": 1}, {"least": 40, "most": 30}):
        with pytest.raises(ValueError):
            Until("x", **wrong)

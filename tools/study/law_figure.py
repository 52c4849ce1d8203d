#!/usr/bin/env python3
"""The figure of book/src/law.md: how the law takes a queue to its target, with four gains.

    tools/study/law_figure.py [--output book/figures/law-gain.svg]

The plant is the one that the law is made for: held windows over a bottleneck of constant capacity, q = max(0, W / C - d), seen a
time tau = d + q* + T late; d = 40 ms, q* = 2 ms, T = 50 ms, steps of 1 ms. It begins a fifth too high. Without the law's probe
and bounds. Standard library alone; the same file every time.
"""

import argparse
import math
from pathlib import Path

GAINS = [(0.25, "#4c78a8"), (0.5, "#000000"), (1.0, "#54a24b"), (2.0, "#e45756")]
BASE, TARGET, INTERVAL = 0.040, 0.002, 0.050
STEP, LASTS = 0.001, 3.0
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 300, 56, 40, 16
MOST_MS = 20.0


def queues(gain):
    """Queueing delay over time, s, a step each."""
    late = round((BASE + TARGET + INTERVAL) / STEP)
    # The logarithm of the rate, above that at which the queue is at its target.
    above = [math.log(1.2)]
    for i in range(round(LASTS / STEP)):
        # Where there is no queue nobody sees how much less than the target is in flight.
        seen = max(above[i - late], math.log(BASE / (BASE + TARGET))) if i >= late else 0.0
        above.append(above[i] - gain * seen * STEP / (late * STEP))
    return [max(0.0, (BASE + TARGET) * math.exp(x) - BASE) for x in above]


def svg():
    x = lambda t: LEFT + t / LASTS * (WIDTH - LEFT - 90)  # noqa: E731
    y = lambda ms: HEIGHT - BOTTOM - min(ms, MOST_MS) / MOST_MS * (HEIGHT - BOTTOM - TOP)  # noqa: E731
    text = lambda px, py, words, more="": f'<text x="{px:.0f}" y="{py:.0f}" {more}>{words}</text>'  # noqa: E731
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for ms in range(0, int(MOST_MS) + 1, 5):
        lines.append(f'<path d="M{LEFT} {y(ms):.1f}H{x(LASTS):.1f}" stroke="#ddd"/>')
        lines.append(text(LEFT - 6, y(ms) + 4, ms, 'text-anchor="end"'))
    for half in range(0, int(2 * LASTS) + 1):
        lines.append(text(x(half / 2), HEIGHT - BOTTOM + 16, half / 2, 'text-anchor="middle"'))
    lines.append(f'<path d="M{LEFT} {y(1e3 * TARGET):.1f}H{x(LASTS):.1f}" stroke="#888" stroke-dasharray="4 3"/>')
    lines.append(text(x(LASTS / 2), HEIGHT - 6, "time, s", 'text-anchor="middle"'))
    lines.append(text(14, HEIGHT / 2, "queueing delay, ms", f'text-anchor="middle" transform="rotate(-90 14 {HEIGHT // 2})"'))
    for i, (gain, colour) in enumerate(GAINS):
        points = " ".join(f"{x(n * STEP):.1f},{y(1e3 * q):.1f}" for n, q in enumerate(queues(gain)) if n % 5 == 0)
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        lines.append(text(x(LASTS) + 10, TOP + 16 + 18 * i, f"k = {gain:g}", f'fill="{colour}"'))
    return "\n".join([*lines, "</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--output", type=Path, default=root / "book" / "figures" / "law-gain.svg")
    parser.parse_args().output.write_text(svg())


if __name__ == "__main__":
    main()

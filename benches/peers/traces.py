#!/usr/bin/env python3
"""Frames of a video and of a video chat, made up, for both simulators:  traces.py DIR [MBIT/S OF THE VIDEO]

The published traces may not be handed on; these have their statistics (Star Wars IV, MPEG-4, high quality: 25 frames/s,
groups IBBPBBPBBPBB, 0.28 Mbit/s; Lecture Room-Cam, H.263: 618 bytes a frame, 0.062 Mbit/s). Always the same frames.

DIR/video.bin, DIR/chat.bin    what ns-2 reads: microseconds since the frame before and bytes, both 32 bit, big-endian
DIR/video.txt, DIR/chat.txt    what lasthop reads: number, type, time in ms, bytes
"""

import math
import pathlib
import random
import struct
import sys

GROUP = "IBBPBBPBBPBB"
RELATIVE_SIZE = {"I": 2.6, "P": 1.15, "B": 0.74}
VIDEO_FRAMES, VIDEO_MEAN = 90_000, 1400
CHAT_FRAMES, CHAT_MEAN, CHAT_DEVIATION = 45_459, 617.6, 370


def lognormal(mean, deviation):
    variance = math.log(1 + (deviation / mean) ** 2)
    return random.lognormvariate(math.log(mean) - variance / 2, math.sqrt(variance))


def video(mean_bytes=VIDEO_MEAN):
    """(gap in us, type, bytes) per frame; activity changes every 120 frames."""
    scale = mean_bytes / (sum(RELATIVE_SIZE[kind] for kind in GROUP) / len(GROUP))
    most = 9370 * mean_bytes / VIDEO_MEAN
    activity = 1.0
    for number in range(VIDEO_FRAMES):
        if number % 120 == 0:
            activity = lognormal(1.0, 0.35)
        kind = GROUP[number % len(GROUP)]
        mean = RELATIVE_SIZE[kind] * scale
        yield 40_000, kind, int(min(most, max(26, lognormal(mean, mean * 0.30) * activity)))


def chat():
    for number in range(CHAT_FRAMES):
        gap = random.choices([1, 2, 3, 4, 6], [0.35, 0.45, 0.12, 0.05, 0.03])[0] * 40_000
        size = int(min(5760, max(240, lognormal(CHAT_MEAN, CHAT_DEVIATION))))
        yield gap, "I" if number == 0 else "P", size


def write(path, frames):
    now_us = 0
    with open(f"{path}.bin", "wb") as binary, open(f"{path}.txt", "w", encoding="ascii") as text:
        for number, (gap_us, kind, size) in enumerate(frames):
            binary.write(struct.pack("!II", gap_us, size))
            text.write(f"{number} {kind} {now_us // 1000} {size}\n")
            now_us += gap_us


def main():
    if not 2 <= len(sys.argv) <= 3:
        sys.exit("traces.py DIR [MBIT/S]")
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    random.seed(20060614)
    write(directory / "video", video(float(sys.argv[2]) * 1e6 / 8 / 25 if len(sys.argv) == 3 else VIDEO_MEAN))
    write(directory / "chat", chat())


if __name__ == "__main__":
    main()

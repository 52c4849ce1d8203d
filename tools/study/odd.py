"""What homes are full of and papers are not: connections that idle, poll, wait for messages, ask and think, are closed one way,
have tiny windows, or were there before the controller; asymmetric lines, loaded both ways at once."""

import math


def log_uniform(draw, low, high):
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def stream(size, every_s):
    """So many bytes of payload each time, over TCP."""
    size = min(1472, size) + 28
    return {"kind": "cbr", "cc": "cubic", "size": f"{size}B", "rate": f"{max(size * 8 / every_s, 8):.0f}bit/s"}


def idle(draw):
    return stream(draw.choice([50, 100, 500]), draw.choice([0.05, 0.1, 0.5, 1.0]))


def poll(draw):
    return stream(round(log_uniform(draw, 100, 1400)), log_uniform(draw, 0.1, 1.0))


def push(draw):
    return stream(round(log_uniform(draw, 50, 1400)), log_uniform(draw, 1.5, 10.0))


def ask(draw):
    return {
        "kind": "request-response",
        "request": f"{round(log_uniform(draw, 50, 1400))}B",
        "response": f"{round(log_uniform(draw, 100, 30_000))}B",
        "think": f"{log_uniform(draw, 0.5, 500):.1f}ms",
        "every": f"{log_uniform(draw, 200, 3000):.0f}ms",
    }


def tiny(draw):
    """A transfer that its receiver lets have a few segments a round trip."""
    return {"kind": "ftp", "window": draw.randint(2, 4), "mss": f"{draw.choice([200, 536])}B"}


def call(draw):
    return {"kind": draw.choice(["voip", "audio", "game-server"])}


SMALL = {"idle": (idle, 30), "poll": (poll, 20), "push": (push, 15), "ask": (ask, 20), "tiny": (tiny, 5), "call": (call, 10)}


def small(draw, number, server, station):
    """One flow that never needs much, one way or the other."""
    word = draw.choices(list(SMALL), [weight for _, weight in SMALL.values()])[0]
    ends = {"from": server, "to": station}
    if draw.random() < 0.4:
        ends = {"from": station, "to": server}
    flow = {"name": f"{word}-{number}", **ends, **SMALL[word][0](draw)}
    if "cc" in flow and draw.random() < 0.15:
        flow["half_close"] = True
    return flow | {"start": f"{draw.uniform(0, 1.5):.2f}s"}


def port(rate):
    """A wired port of `rate`, Mbit/s of IP: a full packet takes 12 kbit / rate, a small one its part and 20 us."""
    per_packet = 1500 * 8 / rate
    return {"rate": f"{1534 * 8 / (per_packet - 60):.3f}Mbit/s", "control_rate": "100000Mbit/s"}


def queue(limit):
    return {"kind": "fifo", "limit": limit}

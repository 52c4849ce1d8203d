"""What homes are full of and papers are not: connections that idle, poll, wait for messages, ask and think, are closed in one direction,
have tiny windows, or were there before the controller; asymmetric lines, loaded in both directions at once; hops that deliver in bunches."""

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
    """One flow that never needs much, in one direction or the other."""
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


# When the controller comes to every fifth odd home: what is there then, it has not seen begin.
LATE = "6s"


def late(home):
    return {"start": LATE} if home["name"].startswith("odd-") and home["seed"] % 5 == 0 else {}


def line(draw):
    if draw.random() < 0.4:
        return {"delay": "1ms", "rate_down": "1000Mbit/s", "rate_up": "1000Mbit/s", "buffer_down": 1000, "buffer_up": 1000}
    down = round(log_uniform(draw, 5, 100), 1)
    up = max(round(down / draw.choice([1, 2, 5, 10, 20]), 1), 0.5)
    buffer = lambda rate: max(20, round(rate * 1e6 * log_uniform(draw, 0.05, 0.8) / 12e3))  # noqa: E731
    rates = {"rate_down": f"{down}Mbit/s", "rate_up": f"{up}Mbit/s"}
    return {"delay": "1ms", **rates, "buffer_down": buffer(down), "buffer_up": buffer(up)}


def home(draw, number):
    """An odd home: a hop, a line, a game, bulk in one direction or both, and small connections of all kinds."""
    result = {"format": 1, "name": f"odd-{number}", "duration": "20s", "seed": number, "wan": line(draw)}
    stations = [{"name": f"S{i + 1}"} for i in range(draw.randint(1, 6))]
    limit = lambda: round(log_uniform(draw, 50, 1500))  # noqa: E731
    queues = {"queue": queue(limit()), "station_queue": queue(limit())}
    if draw.random() < 0.5:
        result["wifi"] = {"standard": "802.11g", **queues}
        stations = [station | {"rate": f"{draw.choice([6, 12, 24, 36, 54])}Mbit/s"} for station in stations]
    else:
        result["bridge"] = port(round(log_uniform(draw, 10, 100), 1)) | queues
    result["server"] = [
        {"name": f"W{i + 1}", "delay": f"{max(log_uniform(draw, 5, 150) / 2 - 1, 0.5):.1f}ms"} for i in range(draw.randint(1, 3))
    ]
    result["station"] = stations
    any_of = lambda key: draw.choice(result[key])["name"]  # noqa: E731
    server, station = any_of("server"), any_of("station")
    result["flow"] = [
        {"name": "game-down", "from": server, "to": station, "kind": "game-server"},
        {"name": "game-up", "from": station, "to": server, "kind": "game-client"},
    ]
    up_share = draw.choice([0.0, 0.0, 0.5, 1.0])
    for i in range(round(log_uniform(draw, 1, 12))):
        ends = {"from": any_of("server"), "to": any_of("station")}
        if draw.random() < up_share:
            ends = {"from": ends["to"], "to": ends["from"]}
        kind = draw.choices(["ftp", "quic"], [85, 15])[0]
        bulk = {"name": f"bulk-{i + 1}", **ends, "kind": kind, "cc": draw.choices(["cubic", "newreno", "bbr"], [75, 10, 15])[0]}
        if draw.random() < 0.25:
            bulk["bytes"] = f"{round(log_uniform(draw, 100, 10_000))}kB"
        if kind == "ftp" and draw.random() < 0.1:
            bulk["half_close"] = True
        result["flow"].append(bulk | {"start": f"{draw.uniform(0, 8):.2f}s"})
    for i in range(round(log_uniform(draw, 1, 30))):
        result["flow"].append(small(draw, i + 1, any_of("server"), any_of("station")))
    # Drawn last: the other homes stay as they are.
    if "bridge" in result and draw.random() < 0.3:
        result["bridge"]["delivery_interval"] = f"{log_uniform(draw, 1, 20):.1f}ms"
    return result

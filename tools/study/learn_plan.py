"""What the study of the learned capacity plays: homes as tables, and the cells of each part, all of them plain values.

The base home: a game in station G beside greedy flows of station D, 802.11g at 54 Mbit/s without losses but collisions. A cell is
what one run differs in; `control` is its capacity, None without control.
"""

import itertools

CCS = ("cubic", "reno", "bbr")
RTTS = (10, 80, 200)
FLOWS = (1, 4, 16)
# Packets: more than any of these flows fills, and what a home router of 2006 had.
DEEP, SHALLOW = 1000, 50
# Never overflows.
ENDLESS = 4000
# The game was there before; the greedy flows begin here, and so do the figures.
START, LASTS = 2, 10
# The link changes here, when everybody has settled.
CHANGE, AFTER = 8, 8
# Of the truth: slow start over the longest round trip is over by then.
TRUTH_FROM, TRUTH_LASTS = 6, 8
# IP bit/s of the line before the home, and half a second of its packets.
LINE = {"rate_down": "20Mbit/s", "rate_up": "20Mbit/s", "buffer_down": 833, "buffer_up": 833}
# From, to, Mbit/s: five to six times less, and more than ten times.
STEPS = ((54, 6), (54, 2))


def home(cell):
    """The scenario of a cell."""
    rtt, direction = cell["rtt"], cell.get("direction", "down")
    queue = queue_of(cell["queue"])
    wifi = {"rate": "54Mbit/s", "loss": {"kind": "none"}, "queue": queue, "station_queue": {**queue, "kind": "fifo"}}
    line = {"delay": f"{rtt / 4}ms"}
    if cell.get("place") == "firmware":
        wifi["firmware_queue"] = DEEP
    if cell.get("place") == "line":
        line |= LINE
    source, sink = ("W", "D") if direction == "down" else ("D", "W")
    begins, lasts = cell.get("begins", START), cell.get("lasts", LASTS)
    flows = [greedy("bulk", source, sink, cell["cc"], cell["flows"], begins)]
    if cell.get("quic"):
        source, sink = ("W", "Q") if direction == "down" else ("Q", "W")
        flows.append({**greedy("quic", source, sink, cell["quic"], cell["flows"], begins), "kind": "quic"})
    if cell.get("game", True) or cell.get("beside"):
        # More often than most games, so that a p99 of ten seconds is of five packets.
        flows.append({"name": "game-down", "from": "W", "to": "G", "kind": "game-server", "every": "20ms"})
        flows.append({"name": "game-up", "from": "G", "to": "W", "kind": "game-client", "every": "20ms"})
    tables = {
        "format": 1,
        "name": "learn",
        "duration": f"{begins + lasts}s",
        "measure_from": f"{cell.get('measure', begins)}s",
        "wan": line,
        "server": [{"name": "W", "delay": f"{rtt / 4}ms"}],
        "wifi": wifi,
        "station": [{"name": "D"}, {"name": "G"}] + ([{"name": "Q"}] if cell.get("quic") else []),
        "flow": flows,
    }
    if cell.get("control"):
        tables["control.window"] = {"capacity": cell["control"]}
    if cell.get("step"):
        before, after = cell["step"]
        tables["station"][0]["rate"] = f"{before}Mbit/s"
        tables["change"] = [{"at": f"{CHANGE}s", "set": {"station.D.rate": f"{after}Mbit/s"}}]
    return tables


def queue_of(name):
    """`fifo-50`, `fq_codel`, `chap`."""
    kind, _, limit = name.partition("-")
    return {"kind": kind, "limit": int(limit or DEEP)}


def greedy(name, source, sink, cc, count, begins):
    return {"name": name, "from": source, "to": sink, "kind": "ftp", "cc": cc, "count": count, "start": f"{begins}s"}


def both(cells, capacity):
    """Each without and with control."""
    return [{**cell, "control": control} for cell in cells for control in (None, capacity)]


def grid(**axes):
    return [dict(zip(axes, values)) for values in itertools.product(*axes.values())]


def parts(capacity):
    """{part: cells}. `capacity` is that of the runs with control."""
    alone = {"game": False, "queue": f"fifo-{ENDLESS}", "cc": "cubic", "begins": 0.5}
    alone |= {"measure": TRUTH_FROM, "lasts": TRUTH_FROM + TRUTH_LASTS}
    truth = [{**cell, **alone} for cell in grid(rtt=RTTS, flows=FLOWS) + grid(rtt=RTTS, flows=(1, 4), direction=("up",))]
    truth += [{**cell, **alone} for cell in grid(rtt=(40,), flows=(1, 4), place=("firmware", "line"))]
    # What the greedy flows can have at most beside the game: no packet is lost, so nobody acknowledges less often.
    truth += [{**cell, **alone, "beside": "game"} for cell in grid(rtt=RTTS, flows=FLOWS)]
    fifos = (f"fifo-{DEEP}", f"fifo-{SHALLOW}")
    falls = {"begins": START, "lasts": CHANGE + AFTER - START, "measure": CHANGE, "flows": 1}
    steps = [*STEPS, *((after, before) for before, after in STEPS)]
    return {
        "truth": truth,
        "down": both(grid(cc=CCS, rtt=RTTS, flows=FLOWS, queue=fifos), capacity),
        "up": both(grid(cc=("cubic",), rtt=RTTS, flows=(1, 4), queue=(fifos[0],), direction=("up",)), capacity),
        "steps": both(
            [{**cell, **falls} for cell in grid(step=steps, queue=(*fifos, "chap"), cc=("cubic", "bbr"), rtt=(40,))], capacity
        ),
        "quic": both(grid(quic=("cubic", "bbr"), queue=(*fifos, "chap"), cc=("cubic",), rtt=(40,), flows=(1, 4)), capacity),
        "places": both(
            grid(place=("firmware", "line"), queue=("fq_codel",), cc=("cubic", "bbr"), rtt=(40,), flows=(1, 4)), capacity
        ),
    }


def key(cell):
    """A cell as text: what a result is found by."""
    shown = {name: value for name, value in cell.items() if name not in ("begins", "lasts", "measure", "game")}
    return " ".join(f"{name}={'to'.join(map(str, v)) if isinstance(v, tuple) else v}" for name, v in shown.items())

"""What a cell must reach: the bounds, computed from its capacity, its flows and its round trip."""

FIRST_S = 5.0
PACKET_BITS = 1500 * 8
INITIAL_WINDOW = 10
# The controller's interval where the capacity is learned, ms.
INTERVAL_MS = 50
# Of a change: added round trip once what was in flight has drained, ms.
CHANGED_MS = 60
# The daemon's share of a core: nobody moves, up to 10 flows, up to 100, more.
DAEMON_QUIET, DAEMON_SHARES = 0.002, ((10, 0.01), (100, 0.02), (10_000, 0.05))
# Loads of equal weight differ by at most this, QUIC over TCP.
RATIO = (0.8, 1.25)


def capacity(cell):
    """Mbit/s of the bottleneck that data crosses; of two, the slower one's. None without one."""
    rates = []
    for direction, hop in ((0, cell.down), (1, cell.up)):
        if any(load.is_bulk and (load.direction == "up") == bool(direction) and load.station != "pc" for load in cell.loads):
            rates += [rate for rate in (hop, cell.line and cell.line[direction]) if rate]
    if cell.beside == "sqm":
        rates = [0.95 * rate for rate in rates]
    return min(rates, default=None)


def packets_ms(cell, packets):
    return packets * PACKET_BITS / (capacity(cell) * 1e3)


def flows(cell):
    """Those that share the game's bottleneck."""
    return sum(load.n for load in cell.loads if load.is_bulk and load.station != "pc")


def first_bound(cell):
    return max(20.0, packets_ms(cell, flows(cell) * INITIAL_WINDOW))


def rest_bound(cell):
    if "slow-upload" in cell.bars:
        return max(30.0, packets_ms(cell, 3))
    slow = packets_ms(cell, 4) if capacity(cell) < 10 else 0.0
    return 8.0 + max(0.0, packets_ms(cell, 2 * flows(cell)) - cell.rtt) + slow


def change_bound_s(cell, old, new):
    """From when on after a change the queue must be short again: what is in flight drains at the new rate."""
    return old * cell.rtt / 1e3 / new + 2 * (cell.rtt + INTERVAL_MS) / 1e3


def daemon_bound(cell):
    return next(share for most, share in DAEMON_SHARES if cell.bulk <= most) if cell.bulk else DAEMON_QUIET


def at_most(what, value, limit, unit):
    # A percentile that is None is a packet that never came back.
    return {"what": what, "value": value, "limit": limit, "unit": unit, "ok": value is not None and value <= limit}


def at_least(what, value, limit, unit="of what it is without"):
    return {"what": what, "value": value, "limit": limit, "unit": unit, "ok": value is not None and value >= limit}


def ratio(on, off):
    return on / off if off else None


def verdicts(cell, off, on):
    """Every bound of the cell with what was measured."""
    found = []
    bars = set(cell.bars)
    if bars & {"game", "slow-upload"}:
        found.append(at_most("game, first 5 s, p99", on["game"]["first_p99"], first_bound(cell), "ms"))
        found.append(at_most("game, from 5 s on, p99", on["game"]["rest_p99"], rest_bound(cell), "ms"))
    if "forwarding" in bars:
        found.append(at_least("median of half seconds", ratio(on["bin_median"], off["bin_median"]), cell.least))
    if "goodput" in bars:
        found.append(at_least("goodput", ratio(on["mbps"], off["mbps"]), cell.least))
    if "each" in bars:
        without = ways(cell, off)
        found += [at_least(f"goodput {way}", ratio(mbps, without[way]), cell.least) for way, mbps in ways(cell, on).items()]
    if "ratio" in bars:
        quic, tcp = (
            sum(it["mbps"] for it in on["loads"].values() if (it["kind"] == "quic") == is_it) for is_it in (True, False)
        )
        value = ratio(quic, tcp)
        found.append(at_least("QUIC over TCP", value, RATIO[0], ""))
        found.append(at_most("QUIC over TCP", value, RATIO[1], ""))
    if "fair" in bars:
        found.append(at_least("least load, of an equal share", least_share(on), 0.5, ""))
    if "steady" in bars:
        found.append(at_least("slowest second, of the mean", on["slowest_second"], 0.8, ""))
    if "daemon" in bars:
        found.append(at_most("daemon, of a core", on["daemon"], daemon_bound(cell), ""))
    if "change" in bars:
        for change in on["changes"]:
            if change["bound_from_s"] is not None:
                what = f"game, from {change['bound_from_s']:.1f} s after {change['from']:g} -> {change['to']:g} on, p99"
                found.append(at_most(what, change["p99"], CHANGED_MS, "ms"))
    small = [name for name, it in on["loads"].items() if "small_kbps" in it]
    for name in small:
        share = ratio(on["loads"][name]["small_kbps"], off["loads"][name]["small_kbps"])
        found.append(at_least(f"bytes of {name}", share, 0.9))
    for name, it in on["loads"].items():
        if it["kind"] == "udp":
            found.append(at_least(f"bytes of {name}", ratio(it["mbps"], off["loads"][name]["mbps"]), 0.97))
    return found


def ways(cell, run):
    """Mbit/s of each direction, each station apart."""
    sums = {}
    for load, found in zip(cell.loads, run["loads"].values(), strict=True):
        if found.get("mbps") is not None:
            way = load.direction if load.station == "sta" else f"{load.direction} {load.station}"
            sums[way] = sums.get(way, 0.0) + found["mbps"]
    return sums


def least_share(run):
    """Of loads with the same number of flows, while all of them were there: the least one's part of an equal share."""
    rates = [it["steady_mbps"] for it in run["loads"].values() if it.get("steady_mbps") is not None]
    return min(rates) * len(rates) / sum(rates) if rates and sum(rates) else None

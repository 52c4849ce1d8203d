"""What `lasthop emulate --trace` says of one transfer: windows, data times and ACK response times, segment by segment.

Each transfer has a connection of its own. Windows are those between its first and its last data segment, as handshake and
farewell say nothing.
"""

import json
from pathlib import Path

# A window that a sender cannot fill a segment of is as good as none.
SEGMENT = 1460


def connections(path):
    """Lines of each connection, in the order in which connections began. Ports come again: a SYN after data begins anew."""
    found, open_now = [], {}
    with Path(path).open(encoding="utf-8") as file:
        next(file)
        for text in file:
            line = json.loads(text)
            lines = open_now.get(line["connection"])
            begins = "SYN" in line.get("flags", "") and "ack" not in line
            if lines is None or (begins and any(before["bytes"] for before in lines)):
                lines = open_now[line["connection"]] = []
                found.append(lines)
            lines.append(line)
    return sorted(found, key=lambda lines: lines[0]["t_s"])


def transfer(lines):
    """Figures of the connection with these lines: which way its data went, and what was said of it on the way."""
    moved = {way: sum(line["bytes"] for line in lines if line["direction"] == way) for way in ("up", "down")}
    way = max(moved, key=moved.get)
    data = [line for line in lines if line["direction"] == way and line["bytes"] > SEGMENT / 2]
    first, last = data[0]["t_s"], data[-1]["t_s"]
    during = [line for line in lines if first <= line["t_s"] <= last]
    back = [line for line in during if line["direction"] != way]
    times = [line["t_s"] for line in back]
    return {
        "way": way,
        "bytes": moved[way],
        "data_ms": [round(line.get("data_ms", 0.0), 3) for line in data if not line.get("retransmitted")],
        "ack_ms": [[round(line["t_s"] - first, 5), round(line["ack_ms"], 3)] for line in back if "ack_ms" in line],
        "window": changes(back, first),
        "sender_window": changes([line for line in during if line["direction"] == way], first),
        "segments": len(data),
        "acks": sum(not line["bytes"] for line in back),
        "window_updates": sum(bool(line.get("window_update")) for line in back),
        "retransmitted": sum(bool(line.get("retransmitted")) for line in data),
        "longest_silence_ms": max((1e3 * (b - a) for a, b in zip(times, times[1:])), default=0.0),
        "first_collapse_segment": collapse(during, way),
    }


def changes(lines, first):
    """[[time since `first`, offered window]] of these lines, wherever it changes."""
    found = []
    for line in lines:
        if not found or found[-1][1] != line["offered_window"]:
            found.append([round(line["t_s"] - first, 5), line["offered_window"]])
    return found


def collapse(during, way):
    """How many data segments had been sent when the receiver's window first had no room for one; None when it always had."""
    sent = 0
    for line in during:
        if line["direction"] == way:
            sent += line["bytes"] > SEGMENT / 2
        elif line["offered_window"] < SEGMENT:
            return sent
    return None


def least(windows):
    """The least of a list of [time, window]; None when it is empty."""
    return min((window for _, window in windows), default=None)

"""A game's packets through a queue: 200 bytes every 20 ms one way, each carrying when it was sent.

probe.py receive SECONDS FILE    waits on UDP port 7000, then writes {sent, received, p50_ms, p99_ms, max_ms}
                                 (a late virtual processor reorders: order is not judged here)
probe.py send ADDRESS SECONDS [FILE]    sends, and writes {late_p99_ms}: how late it was itself; both ends share a clock
"""

import json
import socket
import struct
import sys
import time

PORT, BYTES, EVERY = 7000, 200, 0.02
FORM = struct.Struct("!Qd")


def at(share, values):
    """The value below which this share of the sorted values lies, to a hundredth."""
    return round(values[min(len(values) - 1, int(share * len(values)))], 2)


def send(address, seconds, file=None):
    wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    start, late = time.monotonic(), []
    for number in range(int(seconds / EVERY)):
        due = start + number * EVERY
        time.sleep(max(0.0, due - time.monotonic()))
        now = time.monotonic()
        late.append((now - due) * 1e3)
        wire.sendto(FORM.pack(number, now).ljust(BYTES, b"\0"), (address, PORT))
    if file:
        with open(file, "w") as out:
            json.dump({"late_p99_ms": at(0.99, sorted(late))}, out)


def receive(seconds, file):
    wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    wire.bind(("0.0.0.0", PORT))
    wire.settimeout(5)
    end, last, delays = time.monotonic() + seconds + 10, -1, []
    while time.monotonic() < end and last + 1 < int(seconds / EVERY):
        try:
            packet = wire.recv(2048)
        except TimeoutError:
            if delays:
                break
            continue
        number, sent = FORM.unpack_from(packet)
        delays.append((time.monotonic() - sent) * 1e3)
        last = max(last, number)
    delays.sort()
    result = {"sent": int(seconds / EVERY), "received": len(delays)}
    if delays:
        result.update(p50_ms=at(0.5, delays), p99_ms=at(0.99, delays), max_ms=round(delays[-1], 2))
    with open(file, "w") as out:
        json.dump(result, out)


if sys.argv[1] == "send":
    send(sys.argv[2], float(sys.argv[3]), *sys.argv[4:])
else:
    receive(float(sys.argv[2]), sys.argv[3])

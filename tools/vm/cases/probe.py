"""A game's packets through a queue: 200 bytes every 20 ms one way, each carrying when it was sent.

probe.py receive SECONDS FILE    waits on UDP port 7000, then writes {sent, received, p50_ms, p99_ms, max_ms}
                                 (a late virtual processor reorders: order is not judged here)
probe.py send ADDRESS SECONDS    sends; both ends must share a clock
"""

import json
import socket
import struct
import sys
import time

PORT, BYTES, EVERY = 7000, 200, 0.02
FORM = struct.Struct("!Qd")


def send(address, seconds):
    wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    start = time.monotonic()
    for number in range(int(seconds / EVERY)):
        due = start + number * EVERY
        time.sleep(max(0.0, due - time.monotonic()))
        wire.sendto(FORM.pack(number, time.monotonic()).ljust(BYTES, b"\0"), (address, PORT))


def receive(seconds, file):
    wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    wire.bind(("0.0.0.0", PORT))
    wire.settimeout(5)
    end, last, delays = time.monotonic() + seconds + 10, -1, []
    while time.monotonic() < end and last + 1 < int(seconds / EVERY):
        try:
            packet = wire.recv(2048)
        except socket.timeout:
            if delays:
                break
            continue
        number, sent = FORM.unpack_from(packet)
        delays.append((time.monotonic() - sent) * 1e3)
        last = max(last, number)
    delays.sort()
    at = lambda share: round(delays[min(len(delays) - 1, int(share * len(delays)))], 2)
    result = {"sent": int(seconds / EVERY), "received": len(delays)}
    if delays:
        result.update(p50_ms=at(0.5), p99_ms=at(0.99), max_ms=round(delays[-1], 2))
    with open(file, "w") as out:
        json.dump(result, out)


if sys.argv[1] == "send":
    send(sys.argv[2], float(sys.argv[3]))
else:
    receive(float(sys.argv[2]), sys.argv[3])

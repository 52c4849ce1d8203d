"""Reads a capture of netlink messages: the TXOPs of best effort that were asked for, in 32 us, are these."""

import struct
import sys


def attributes(data):
    while len(data) >= 4:
        length, kind = struct.unpack_from("<HH", data)
        yield kind & 0x3FFF, data[4:length]
        data = data[(length + 3) & ~3 :]


capture = open(sys.argv[1], "rb").read()
at, txops = 24, []
while at + 16 <= len(capture):
    captured = struct.unpack_from("<I", capture, at + 8)[0]
    packet = capture[at + 16 : at + 16 + captured]
    at += 16 + captured
    if struct.unpack_from(">H", packet, 14)[0] != 16:  # NETLINK_GENERIC
        continue
    message = packet[16:]
    length, _, flags = struct.unpack_from("<IHH", message)
    body = message[16:length]
    if not flags & 1 or body[:1] != b"\x02":  # a request, SET_WIPHY
        continue
    for kind, value in attributes(body[4:]):
        for _, queue in attributes(value) if kind == 37 else ():
            own = dict(attributes(queue))
            assert own[1] == b"\x02", own
            txops.append(struct.unpack("<H", own[2])[0])
print(f"TXOPs of best effort, in 32 us: {txops}")
tried, found = int(sys.argv[2]), int(sys.argv[3])
assert txops[0] == tried and txops[-1] == found and set(txops) <= {tried, found}, txops

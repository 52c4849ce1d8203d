"""Sends datagrams to the station for so many seconds: to port 7000 those of a call, 7001 five hundred full ones a second, 7002 a thousand small ones a
second, 7003 those of a call that is marked as background (CS1)."""

import socket
import sys
import time

FLOWS = [(7000, 160, 0.02, 0), (7001, 1400, 0.002, 0), (7002, 200, 0.001, 0), (7003, 160, 0.02, 8 << 2)]

sockets = []
for port, length, gap, tos in FLOWS:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
    s.connect(("10.9.0.2", port))
    sockets.append([s, bytes([port & 255]) * length, gap, time.monotonic()])
end = time.monotonic() + float(sys.argv[1])
while (now := time.monotonic()) < end:
    for flow in sockets:
        while flow[3] <= now:
            try:
                flow[0].send(flow[1])
            except OSError:
                pass  # nobody listens there, and says so
            # A call never makes up for what it did not send; what is to be fast does.
            flow[3] = flow[3] + flow[2] if flow[2] < 0.01 else now + flow[2]
    time.sleep(0.001)

"""Sends datagrams to the station: datagrams.py PORT BYTES PER_SECOND TYPE_OF_SERVICE SECONDS. What it could not send in time it does not make
up for by more than a few."""

import socket
import sys
import time

port, length, rate, service = (int(word) for word in sys.argv[1:5])
socket_ = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
socket_.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, service)
socket_.connect(("10.9.0.2", port))
now = following = time.monotonic()
end = now + float(sys.argv[5])
while now < end:
    try:
        socket_.send(bytes(length))
    except OSError:
        pass  # nobody listens there, and says so
    now = time.monotonic()
    following = max(following + 1 / rate, now - 5 / rate)
    if following > now:
        time.sleep(following - now)

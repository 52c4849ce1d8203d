"""A real dedicated game server that answers behind many paths. Runs inside the first server of the home.

hub.py FOLDER PATHS PROGRAM ARGUMENT..

Starts the game server, which listens on 127.0.0.1 here, collects the sockets that the doors opened (door.py), and carries
datagrams: what comes to door n goes to the game server from 127.0.1.n, and its answer back through door n. A game server
limits what one address may ask a second; each path has an address of its own, as each of the real ones would have a
server. What the hub adds is measured: `hub.json` has how long it took from a query to the answer on its way.
"""

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time

from realtime import go_first

# Not the doors' port: one of them is in this host.
GAME = ("127.0.0.1", 28960)


def main():
    go_first()
    folder, paths, program = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    inbox.bind(os.path.join(folder, "hub"))
    log = open(os.path.join(folder, "game.log"), "wb")
    home = os.path.join(folder, "home")
    os.makedirs(home, exist_ok=True)
    game = subprocess.Popen(
        program,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env={**os.environ, "HOME": home},
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    selector = selectors.DefaultSelector()
    selector.register(inbox, selectors.EVENT_READ, None)
    asked, took, doors = {}, [], 0
    try:
        while game.poll() is None:
            for key, _ in selector.select(1.0):
                if key.data is None:
                    words, descriptors, _, _ = socket.recv_fds(inbox, 16, 1)
                    number = int(words)
                    door = socket.socket(fileno=descriptors[0])
                    inner = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                    inner.bind((f"127.0.1.{number}", 0))
                    inner.connect(GAME)
                    selector.register(door, selectors.EVENT_READ, ("query", number, inner))
                    selector.register(inner, selectors.EVENT_READ, ("answer", number, door))
                    doors += 1
                    if doors == paths:
                        open(os.path.join(folder, "ready"), "w").close()
                    continue
                direction, number, other = key.data
                try:
                    if direction == "query":
                        words, who = key.fileobj.recvfrom(2048)
                        asked[number] = (time.monotonic(), who)
                        other.send(words)
                    elif number in asked:
                        words = key.fileobj.recv(2048)
                        begun, who = asked[number]
                        other.sendto(words, who)
                        took.append(time.monotonic() - begun)
                except ConnectionRefusedError:
                    continue  # the game server is not up yet
    finally:
        game.terminate()
        took.sort()
        figures = {"answers": len(took), "doors": doors}
        if took:
            figures |= {
                "p50_ms": took[len(took) // 2] * 1e3,
                "p99_ms": took[len(took) * 99 // 100] * 1e3,
                "max_ms": took[-1] * 1e3,
            }
        with open(os.path.join(folder, "hub.json"), "w") as out:
            json.dump(figures, out)


if __name__ == "__main__":
    main()

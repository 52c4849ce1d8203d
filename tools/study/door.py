"""Opens the UDP port of one game path and hands it to the hub. Runs inside a server of the home, and ends.

door.py FOLDER NUMBER

The socket keeps the network it was opened in, whoever holds it: so one hub answers on the addresses of 100 hosts, each
with its own link, and no process stays behind in them.
"""

import os
import socket
import sys
import time

PORT = 27960


def main():
    folder, number = sys.argv[1], int(sys.argv[2])
    door = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    door.bind(("", PORT))
    hub = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    while True:
        try:
            hub.connect(os.path.join(folder, "hub"))
            break
        except OSError:
            time.sleep(0.02)
    socket.send_fds(hub, [str(number).encode()], [door.fileno()])


if __name__ == "__main__":
    main()

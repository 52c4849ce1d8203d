"""Types over ssh, and times when each character comes back.

    typing_session.py SECONDS TIMES COMMAND..

COMMAND is an ssh that runs cat on a terminal there. Writes into the file TIMES ms per character, null for those that did not
come back within two seconds.
"""

import json
import os
import pty
import select
import sys
import time

EVERY_S = 0.2
PATIENCE_S = 2.0


def main():
    seconds, file, *command = sys.argv[1:]
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    last = time.monotonic() + float(seconds)
    # The banner's end: what cat is given first comes back, too.
    time.sleep(1.0)
    drain(terminal, 0.5)
    times = []
    while time.monotonic() < last:
        began = time.monotonic()
        os.write(terminal, b"x")
        came = select.select([terminal], [], [], PATIENCE_S)[0]
        times.append((time.monotonic() - began) * 1e3 if came else None)
        if came:
            os.read(terminal, 4096)
        time.sleep(max(0.0, EVERY_S - (time.monotonic() - began)))
    with open(file, "w", encoding="utf-8") as out:
        json.dump(times, out)
    os._exit(0)


def drain(terminal, seconds):
    while select.select([terminal], [], [], seconds)[0]:
        os.read(terminal, 4096)


if __name__ == "__main__":
    main()

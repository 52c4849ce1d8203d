"""A controller, connections and a download through it, and what it keeps in memory. Needs root.

    unshare --net --pid --fork --kill-child --mount-proc python3 -B tools/try_router.py LASTHOPD [CONNECTIONS]

Called by tools/vm/cases/small in a network namespace of its own, whose other end is a station: a namespace that
lives as long as its one process. The station talks to this machine, past the same hooks. Prints `FIGURE name value`: milliseconds until the
status answers, kilobytes that are resident (VmRSS) before and with the connections, and the most that ever were (VmHWM).
"""

import ctypes
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CLONE_NEWNET = 0x40000000
HERE, STATION, PORT = "10.8.2.1", "10.8.2.2", 5201
DOWNLOAD_S = 3
PATIENCE_S = 60


def figure(name, value):
    print(f"FIGURE {name} {value}", flush=True)


def run(*words):
    subprocess.run(words, check=True)


def until(what, condition):
    """Asks every 50 ms."""
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        if time.monotonic() > end:
            sys.exit(f"not within {PATIENCE_S} s: {what}")
        time.sleep(0.05)
    return found


def station(begin, done, connections):
    """What the child does: connects so often, a byte each way, then downloads until the other end has enough."""
    os.read(begin, 1)
    held = []
    for _ in range(connections):
        one = socket.create_connection((HERE, PORT))
        one.sendall(b"x")
        one.recv(1)
        held.append(one)
    main = socket.create_connection((HERE, PORT))
    main.sendall(b"d")
    while main.recv(1 << 16):
        pass
    os.write(done, b"x")
    os.read(begin, 1)   # all of them stay open until nobody asks any more


def serve(listener, connections):
    """The other end of the station's connections; returns how many bytes were downloaded."""
    held, sent = [], 0
    for _ in range(connections):
        one, _ = listener.accept()
        one.sendall(one.recv(1))
        held.append(one)
    main, _ = listener.accept()
    main.recv(1)
    end = time.monotonic() + DOWNLOAD_S
    while time.monotonic() < end:
        sent += main.send(bytes(1 << 16))
    main.close()
    return held, sent


def memory(process, field):
    """Kilobytes."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    sys.exit(f"/proc/{process}/status has no {field}")


def namespaces(connections):
    """The station's process, and the ends of pipes by which it begins and has done."""
    (begin_read, begin), (done, done_write), (is_there, there) = os.pipe(), os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        if ctypes.CDLL(None).unshare(CLONE_NEWNET):
            os._exit(3)
        os.write(there, b"x")
        station(begin_read, done_write, connections)
        os._exit(0)
    os.read(is_there, 1)
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "lan0", "type", "veth", "peer", "name", "eth0", "netns", str(child))
    run("ip", "addr", "add", f"{HERE}/24", "dev", "lan0")
    run("ip", "link", "set", "lan0", "up")
    enter = ("nsenter", f"--net=/proc/{child}/ns/net", "ip")
    run(*enter, "addr", "add", f"{STATION}/24", "dev", "eth0")
    run(*enter, "link", "set", "eth0", "up")
    # A link at which a download has to wait.
    run("tc", "qdisc", "replace", "dev", "lan0", "root", "tbf", "rate", "20mbit", "burst", "20k", "limit", "300k")
    return child, begin, done


def main(binary, connections):
    resource.setrlimit(resource.RLIMIT_NOFILE, (connections + 100, max(connections + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    child, begin, done = namespaces(connections)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/lasthop.sock"
        configuration = Path(folder, "lasthop.toml")
        configuration.write_text(f'lan = ["lan0"]\ncapacity = "18Mbit/s"\nflows = {16384 if connections > 3000 else 4096}\nsocket = "{path}"\n')
        log = Path(folder, "log")
        started = time.monotonic()
        with log.open("w") as file:
            controller = subprocess.Popen([binary, "run", "--config", str(configuration)], stderr=file)

        def status():
            if controller.poll() is not None:
                sys.exit(f"the controller ended with {controller.returncode}:\n{log.read_text()}")
            asked = subprocess.run([binary, "status", "--json", "--socket", path], capture_output=True, text=True)
            return json.loads(asked.stdout) if asked.returncode == 0 else None

        until("it answers", status)
        figure("small_start_ms", round((time.monotonic() - started) * 1000))
        until("it has decided for a while", lambda: status()["controller"]["intervals"] > 20)
        figure("small_idle_kb", memory(controller.pid, "VmRSS"))
        listener = socket.create_server((HERE, PORT), backlog=128)
        os.write(begin, b"x")
        _held, sent = serve(listener, connections)
        os.read(done, 1)
        says = until("it lowered windows", lambda: (s := status())["packets"]["rewritten"] > 20 and s)
        figure("small_connections", says["table"]["connections"])
        figure("small_busy_kb", memory(controller.pid, "VmRSS"))
        figure("small_most_kb", memory(controller.pid, "VmHWM"))
        figure("small_download_bps", round(sent * 8 / DOWNLOAD_S))
        os.write(begin, b"x")
        os.waitpid(child, 0)
        controller.send_signal(signal.SIGTERM)
        # Stopped by a signal.
        if controller.wait(PATIENCE_S) not in (0, 143):
            sys.exit(f"the controller ended with {controller.returncode}:\n{log.read_text()}")
    if says["table"]["connections"] <= connections or says["controller"]["failures"]:
        sys.exit(f"not all of {connections} connections are known: {says['table']}, {says['controller']}")


main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)

"""A home of namespaces that ends with the program that made it, and what of a controller is left there.

    srv --- wan0 [access point] lan0 --- air (a bridge, 20 Mbit/s towards the station) --- sta

The access point is the namespace that the program itself is in. That, its processes and its mounts are its own (`enclose`): the
kernel removes all of it with the last process, also after kill -9. /run is fresh, so locks and sockets of the machine's own
controllers are neither seen nor touched.
"""

import ctypes
import json
import os
import platform
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ROOT / "schema" / "namespace.conf"
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG, SIGKILL = 1, 9
SOCKET = Path("/run/lasthop/lasthop.sock")
INSIDE = "LASTHOP_FAULTS_INSIDE"
LINE_MBPS = 20
# Nobody waits longer for bytes of a download: the heartbeat's two seconds, and a retransmission.
PATIENCE = 2.5
BPF = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
PROGRAM_NEXT_ID = 11


class Broken(Exception):
    """The world could not be made."""


def enclose():
    """Goes on in namespaces of its own; returns inside."""
    if INSIDE not in os.environ:
        words = "unshare --net --mount --pid --fork --kill-child --".split()
        # It ignores most signals, but not that this process ends.
        inside = subprocess.Popen(
            [*words, sys.executable, "-B", *sys.argv], env={**os.environ, INSIDE: "yes"}, preexec_fn=end_with_parent
        )
        sys.exit(inside.wait())
    call("mount -t tmpfs -o mode=755 tmpfs /run")
    call("mount -t proc proc /proc")
    call("mount -t sysfs sysfs /sys")


def call(line):
    done = subprocess.run(line.split(), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Broken(f"`{line}` said: {(done.stderr + done.stdout).strip() or done.returncode}")
    return done.stdout


def end_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, SIGKILL)


def inside(space, work):
    """What `work` returns, done by a thread in `space`."""
    answer = []

    def there():
        with open(f"/run/netns/{space}") as file:
            if LIBC.setns(file.fileno(), CLONE_NEWNET) != 0:
                return
        answer.append(work())

    thread = threading.Thread(target=there)
    thread.start()
    thread.join()
    if not answer:
        raise Broken(f"nothing came of it in {space}")
    return answer[0]


def settle():
    """Sets the namespace of the calling thread as schema/namespace.conf has it."""
    lines = [re.fullmatch(r"([\w/*]+) = (.+)", line.strip()) for line in SETTINGS.read_text().splitlines()]
    for match in lines:
        for path in Path("/proc/sys").glob(match[1]) if match and "/" in match[1] else []:
            try:
                path.write_text(match[2])
            except OSError:
                pass
    return True


def build():
    """The home."""
    settle()
    for space in ("srv", "air", "sta"):
        call(f"ip netns add {space}")
        call(f"ip netns exec {space} ip link set lo up")
        # Files below /proc/sys/net are those of the process that opens them, not of its thread.
        call(f"ip netns exec {space} {sys.executable} -B {__file__} settle")
    call("ip link set lo up")
    call("ip link add wan0 type veth peer name s0 netns srv")
    call("ip link add lan0 type veth peer name a0 netns air")
    call("ip -n air link add a1 type veth peer name c0 netns sta")
    call("ip -n air link add br0 type bridge forward_delay 0 mcast_snooping 0")
    for dev in ("a0", "a1"):
        call(f"ip -n air link set {dev} master br0 up")
    call("ip -n air link set br0 up")
    call(f"tc -n air qdisc add dev a1 root tbf rate {LINE_MBPS}mbit burst 5kb limit 300000")
    ends = [(None, "wan0", "2.1"), ("srv", "s0", "2.2"), (None, "lan0", "1.1"), ("sta", "c0", "1.2")]
    for space, dev, host in ends:
        there = f"-n {space} " if space else ""
        call(f"ip {there}address add 10.72.{host}/24 dev {dev}")
        call(f"ip {there}link set {dev} up")
    for space, router in (("srv", "10.72.2.1"), ("sta", "10.72.1.1")):
        call(f"ip -n {space} route add default via {router} congctl cubic")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


class Download:
    """Bytes from the server to the station, as many as there is room for, until it is closed."""

    def __init__(self):
        listener = inside("srv", lambda: socket.create_server(("10.72.2.2", 0)))
        listener.settimeout(5)
        station = inside("sta", lambda: socket.create_connection(listener.getsockname(), timeout=5))
        self.server, _ = listener.accept()
        listener.close()
        self.station = station
        self.station.settimeout(None)
        self.received, self.error = 0, None
        self.last, self.longest = time.monotonic(), 0.0
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self.send, self.receive)]
        for thread in self.threads:
            thread.start()

    def send(self):
        block = bytes(65_536)
        try:
            while True:
                self.server.sendall(block)
        except OSError:
            pass

    def receive(self):
        try:
            while count := len(self.station.recv(65_536)):
                now = time.monotonic()
                self.longest, self.last = max(self.longest, now - self.last), now
                self.received += count
            self.error = "it ended"
        except OSError as error:
            self.error = str(error)

    def silence(self):
        """The longest time since this was last asked in which nothing came, seconds."""
        now = time.monotonic()
        longest, self.longest = max(self.longest, now - self.last), 0.0
        self.last = max(self.last, now)
        return longest

    def moves_on(self):
        """Whether bytes come within the time that anybody waits; how long that took."""
        begun, enough = time.monotonic(), self.received + 50_000
        while (took := time.monotonic() - begun) < PATIENCE:
            if self.received >= enough:
                return took
            time.sleep(0.005)
        return None

    def close(self):
        for end in (self.server, self.station):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self.threads:
            thread.join()
        self.server.close()
        self.station.close()


def status():
    """What the controller says of itself; None where it does not."""
    try:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(1)
            asking.connect(str(SOCKET))
            text = b""
            while part := asking.recv(65_536):
                text += part
        return json.loads(text)
    except (OSError, ValueError):
        return None


def traces():
    """Everything of the access point that a controller touches, in words: interfaces, their queues and filters, files."""
    shown = [re.sub(r" (state|mode|qdisc|group) \S+|<\S*>", "", line) for line in call("ip -o link show").splitlines()]
    for dev in ("lan0", "wan0"):
        shown += call(f"tc qdisc show dev {dev}").splitlines()
        for side in ("ingress", "egress"):
            filters = call(f"tc filter show dev {dev} {side}").splitlines()
            shown += [f"filter of {dev} {side}: {line}" for line in filters]
    shown += sorted(str(path) for path in Path("/run/lasthop").rglob("*")) if Path("/run/lasthop").exists() else []
    shown += sorted(str(path) for path in Path("/sys/fs/bpf").rglob("*"))
    return shown


def programs():
    """Numbers of the BPF programs that the kernel holds."""
    numbers, attributes = set(), ctypes.create_string_buffer(64)
    number = 0
    while BPF:
        struct.pack_into("=II", attributes, 0, number, 0)
        if LIBC.syscall(BPF, PROGRAM_NEXT_ID, attributes, 64) != 0:
            break
        (number,) = struct.unpack_from("=I", attributes, 4)
        numbers.add(number)
    return numbers


def held_by(pid):
    """BPF programs that a process holds; those that were seen when it ends meanwhile."""
    held = set()
    try:
        for file in Path(f"/proc/{pid}/fdinfo").iterdir():
            held.update(map(int, re.findall(r"^prog_id:\s*(\d+)$", file.read_text(), re.MULTILINE)))
    except OSError:
        pass
    return held


if __name__ == "__main__" and sys.argv[1:] == ["settle"]:
    settle()

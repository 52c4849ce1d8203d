"""A world of namespaces: server - delay - line - access point - last hop - stations.

    srv --(delay)-- isp ==line== ap --lan0-- [ap2 --l0--] air ==last hop== [(delay)] sta
                                  `-lan1-- pc

`isp` holds both queues of the provider's line, `air` the queue upwards and, where the access point shall not see it, the one
downwards; else that stands on the access point's egress. `air` and `ap2` are bridges. 464XLAT has a translator in
`sta` and one in `isp`. Everything is named after this process and goes with it: namespaces by their names, programs by their
own ids.
"""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from cells import ETHERNET, burst_bytes

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ROOT / "schema" / "namespace.conf"
UNPACKED = ROOT / "bench-results" / "study" / "root"
NETNS = Path("/run/netns")
PREFIX = "outside-"
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1
# Of the hosts in a network, the last number of their addresses.
BULK, GAME = 2, 3
NET, LINE, LAN, POOL = 1, 2, 3, 9
STATION, PLAYER, PC, SECOND = 11, 12, 21, 31
# 464XLAT: the station's IPv4 address, its translator's, the same in IPv6, and the prefix of IPv4 beyond the provider.
CLAT, CLAT_HOST, CLAT6, PREFIX6 = "192.0.0.1", "192.0.0.2", "fd71:0:0:3::c1a7", "fd71:0:0:64::"
VLAN = 5
# Before all others: what measures must not wait for what it measures.
FIRST = ["chrt", "-f", "1"]


class Broken(Exception):
    """The world could not be made, or a program in it did not do what it was started for."""


def address(family, net, host):
    return f"10.71.{net}.{host}" if family == 4 else f"fd71:0:0:{net}::{host:x}"


def program(name):
    """The path of a program, installed or unpacked."""
    found = shutil.which(name, path="/usr/bin:/usr/sbin:/bin:/sbin:/usr/local/bin")
    if found:
        return found
    for folder in ("usr/bin", "usr/sbin"):
        if (UNPACKED / folder / name).exists():
            return str(UNPACKED / folder / name)
    raise SystemExit(f"there is no {name}; type: make outside")


def end_with_parent():
    """For a child: first in line for the processor, and gone when the one that started it is."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        os.nice(-10)
    except PermissionError:
        pass


def sweep():
    """Removes what a run left behind that was killed: namespaces named after a process that is no more."""
    for path in NETNS.glob(f"{PREFIX}*"):
        owner = path.name.removeprefix(PREFIX).split("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            subprocess.run(["ip", "netns", "del", path.name], check=False, capture_output=True)


class World:
    def __init__(self, folder):
        self.folder = folder
        self.spaces, self.programs = {}, []
        folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends every program that was started here, by its own id, then removes the namespaces."""
        for program in reversed(self.programs):
            if program.poll() is None:
                program.terminate()
        last = time.monotonic() + 3
        for program in reversed(self.programs):
            try:
                program.wait(max(0.0, last - time.monotonic()))
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()
        self.programs.clear()
        for space in self.spaces.values():
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)
        self.spaces.clear()

    def space(self, name):
        self.spaces[name] = f"{PREFIX}{os.getpid()}-{name}"
        self.call(["ip", "netns", "add", self.spaces[name]])
        self.call(["ip", "-n", self.spaces[name], "link", "set", "lo", "up"])
        # Before there are interfaces: nobody asks for a second whether an address is somebody else's.
        self.run(name, "sh", "-c", "echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad")

    def call(self, words):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Broken(
                f"`{' '.join(map(str, words))}` said: {(done.stderr + done.stdout).strip() or done.returncode}"
            )
        return done.stdout

    def ip(self, space, line):
        return self.call(["ip", "-n", self.spaces[space], *line.split()])

    def run(self, space, *words):
        return self.call(["ip", "netns", "exec", self.spaces[space], *words])

    def tc(self, space, line):
        return self.run(space, "tc", *line.split())

    def start(self, space, words, log, **more):
        """A program in `space`; what it writes goes to the file `log`, unless `more` says otherwise."""
        with (self.folder / log).open("ab") as file:
            more = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": file, **more}
            command = ["ip", "netns", "exec", self.spaces[space], *map(str, words)]
            # A session of its own: Ctrl-C is for the one that measures.
            program = subprocess.Popen(command, preexec_fn=end_with_parent, start_new_session=True, **more)
        self.programs.append(program)
        return program

    def link(self, here, dev, there, other):
        self.ip(here, f"link add {dev} type veth peer name {other} netns {self.spaces[there]}")
        self.ip(here, f"link set {dev} up txqueuelen 1000")
        self.ip(there, f"link set {other} up txqueuelen 1000")

    def bridge(self, space, name, ports):
        self.ip(space, f"link add {name} type bridge forward_delay 0 mcast_snooping 0")
        for port in ports:
            self.ip(space, f"link set {port} master {name}")
        self.ip(space, f"link set {name} up")

    def give(self, space, dev, net, hosts):
        for host in hosts:
            self.ip(space, f"address add {address(4, net, host)}/24 dev {dev}")
            self.ip(space, f"address add {address(6, net, host)}/64 dev {dev} nodad")

    def route(self, space, to, via):
        """To network number `to` (None: everywhere) by host `via`, a pair of network and number."""
        for family, bits in ((4, 24), (6, 64)):
            target = "default" if to is None else f"{address(family, to, 0)}/{bits}"
            self.ip(space, f"-{family} route replace {target} via {address(family, *via)}")

    def settle(self, space, forward=False):
        """Sets `space` as schema/namespace.conf has it; routes choose no congestion control, programs do."""
        lines = [re.fullmatch(r"([\w/*]+) = (.+)", line.strip()) for line in SETTINGS.read_text().splitlines()]
        pairs = [match.groups() for match in lines if match and "/" in match[1]]
        pairs += [("net/ipv4/tcp_congestion_control", "cubic")]
        if forward:
            pairs += [("net/ipv4/ip_forward", "1"), ("net/ipv6/conf/all/forwarding", "1")]
        lines = [
            f'for f in /proc/sys/{file}; do [ ! -e "$f" ] || echo "{value}" >"$f" 2>/dev/null || :; done'
            for file, value in pairs
        ]
        self.run(space, "sh", "-c", "\n".join(lines))

    def offloads(self, space, dev, on):
        """Packets larger than the MTU: merged and handed on whole, or never made."""
        for feature in ("tso", "gso", "gro"):
            subprocess.run(
                ["ip", "netns", "exec", self.spaces[space], "ethtool", "-K", dev, feature, "on" if on else "off"],
                check=False,
                capture_output=True,
            )

    def shape(self, space, dev, mbps, kind="htb", limit=1000, verb="add", queue="pfifo", burst_ms=1.0):
        """A bottleneck of `mbps` on the egress of `dev`, with `limit` packets in a FIFO, or another `queue`.

        `burst_ms`: what may leave at once, ms of the rate. A timer that is late by less costs no rate.
        """
        burst = burst_bytes(mbps, burst_ms)
        if kind == "tbf":
            self.tc(
                space,
                f"qdisc {verb} dev {dev} root tbf rate {mbps}mbit burst {burst} limit {limit * (1500 + ETHERNET)}",
            )
            return
        if verb == "add":
            self.tc(space, f"qdisc add dev {dev} root handle 1: htb default 1")
        self.tc(
            space,
            f"class {verb} dev {dev} parent 1: classid 1:1 htb rate {mbps}mbit burst {burst} cburst {burst} quantum 1514",
        )
        if verb == "add":
            words = f"{queue} limit {limit}" if queue in ("pfifo", "fq_codel") else queue
            self.tc(space, f"qdisc add dev {dev} parent 1:1 handle 2: {words}")


def lan(cell):
    """The access point's interface towards stations, as its owner would name it."""
    return {"bridge": "br-lan", "transparent": "br-lan", "vlan": f"lan0.{VLAN}"}.get(cell.home, "lan0")


def lacking(cell):
    """What `cell` needs that this kernel has not; None where it has everything."""
    tries = [
        (kind, ["tc", "qdisc", "add", "dev", "lo", "root", kind]) for kind in ("fq_codel", "cake") if kind == cell.queue
    ]
    if cell.home == "vlan":
        tries.append(("VLANs", ["ip", "link", "add", "link", "lo", "name", "v5", "type", "vlan", "id", "5"]))
    for what, words in tries:
        done = subprocess.run(["unshare", "--net", *words], capture_output=True, text=True, check=False)
        if done.returncode != 0 and "nknown" in done.stderr:
            return what
    return None


def build(world, cell, delay):
    """The world of `cell`; `delay` is the program that is a long wire. Returns these programs, by the keys of their delays in a cell."""
    for name in ["srv", "isp", "ap", "air", "sta"]:
        world.space(name)
    bridged, transparent = cell.home in ("bridge", "transparent"), cell.home == "transparent"
    # Server and provider.
    wires = {}
    if cell.rtt:
        wires["rtts"] = long_wire(world, delay, "srv", "isp", "net0", cell.rtt)
    else:
        world.link("srv", "eth0", "isp", "net0")
    world.link("isp", "line0", "ap", "wan0")
    # From the access point's port to the air.
    last = ("ap", "lan0")
    if cell.home == "series":
        world.space("ap2")
        world.link("ap", "lan0", "ap2", "w0")
        world.ip("ap2", "link add l0 type veth peer name a0 netns " + world.spaces["air"])
        world.ip("ap2", "link set l0 up")
        world.ip("air", "link set a0 up")
        world.bridge("ap2", "br0", ["w0", "l0"])
        last = ("ap2", "l0")
    else:
        world.link("ap", "lan0", "air", "a0")
    if cell.hop_rtts:
        wires["hop_rtts"] = long_wire(world, delay, "sta", "air", "a1", 0)
    else:
        world.link("air", "a1", "sta", "eth0")
    ports = ["a0", "a1"]
    stations = ["sta"]
    if any(load.station == "second" for load in cell.loads):
        world.space("second")
        world.link("air", "a2", "second", "eth0")
        ports.append("a2")
        stations.append("second")
    world.bridge("air", "br0", ports)
    if bridged:
        world.space("pc")
        world.link("ap", "lan1", "pc", "eth0")
        stations.append("pc")
        world.bridge("ap", "br-lan", ["lan0", "lan1"] + (["wan0"] if transparent else []))
    if cell.home == "vlan":
        for space, dev in (("ap", "lan0"), ("sta", "eth0")):
            world.ip(space, f"link add link {dev} name {dev}.{VLAN} type vlan id {VLAN}")
            world.ip(space, f"link set {dev}.{VLAN} up")
    addresses(world, cell, stations)
    for space in world.spaces:
        world.settle(space, forward=space in ("isp", "ap"))
        for dev in world.run(space, "ls", "/sys/class/net").split():
            if dev != "lo":
                world.offloads(space, dev, cell.offload)
    if cell.window_scale:
        world.run("sta", "sh", "-c", 'echo "4096 131072 1073725440" >/proc/sys/net/ipv4/tcp_rmem')
    if cell.home == "nat":
        world.run(
            "ap",
            "nft",
            "add table ip nat; add chain ip nat out { type nat hook postrouting priority 100; };"
            " add rule ip nat out oifname wan0 masquerade",
        )
    if cell.home == "464xlat":
        translate(world)
    sizes(world, cell)
    shapers(world, cell, last)
    if cell.beside == "bpf":
        world.tc("ap", "qdisc add dev lan0 clsact")
        for side in ("ingress", "egress"):
            words = f"tc filter add dev lan0 {side} protocol all prio 7 bpf bytecode".split()
            world.run("ap", *words, "1,6 0 0 0")  # matches nothing
    return wires


def long_wire(world, delay, space, there, dev, rtt):
    """From eth0 of a host to a device there, each of which it makes; ms."""
    words = [*FIRST, delay, "eth0", NETNS / world.spaces[there], dev, int(rtt * 500)]
    wire = world.start(space, words, f"delay-{space}.err", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if wire.stdout.readline() != b"ready\n":
        raise Broken(f"the delay did not start; see {world.folder}/delay-{space}.err")
    world.ip(space, "link set eth0 up")
    world.ip(there, f"link set {dev} up")
    return wire


def addresses(world, cell, stations):
    world.give("srv", "eth0", NET, (BULK, GAME))
    world.give("isp", "net0", NET, (1,))
    world.route("srv", None, (NET, 1))
    if cell.home == "transparent":
        world.give("isp", "line0", LAN, (1,))
        world.give("ap", lan(cell), LAN, (5,))
    else:
        world.give("isp", "line0", LINE, (1,))
        world.give("ap", "wan0", LINE, (2,))
        world.give("ap", lan(cell), LAN, (1,))
        world.route("ap", None, (LINE, 1))
        world.route("isp", LAN, (LINE, 2))
    hosts = {"sta": (STATION, PLAYER), "second": (SECOND,), "pc": (PC,)}
    for station in stations:
        world.give(station, f"eth0.{VLAN}" if cell.home == "vlan" else "eth0", LAN, hosts[station])
        world.route(station, None, (LAN, 1))
    if cell.home == "nat":
        # The provider knows nothing of what stands behind the address that it gave.
        world.ip("isp", f"-4 route del {address(4, LAN, 0)}/24")


def translate(world):
    """464XLAT (RFC 6877): IPv4 at the station and beyond the provider, nothing but IPv6 between, by tayga at both ends."""
    # The access point and the line know no IPv4 at all.
    world.ip("sta", "-4 address flush dev eth0")
    world.ip("ap", "-4 address flush dev lan0")
    world.ip("ap", "-4 address flush dev wan0")
    world.ip("isp", "-4 address flush dev line0")
    pool = address(4, POOL, 0)
    tayga(world, "isp", "plat", f"ipv4-addr {address(4, POOL, 1)}\nprefix {PREFIX6}/96\ndynamic-pool {pool}/24\n")
    world.ip("isp", f"-4 route add {pool}/24 dev plat")
    world.ip("isp", f"-6 route add {PREFIX6}/96 dev plat")
    world.run("sta", "sysctl", "-q", "-w", "net.ipv6.conf.all.forwarding=1", "net.ipv4.ip_forward=1")
    tayga(
        world,
        "sta",
        "clat",
        f"ipv4-addr {CLAT_HOST}\nipv6-addr {CLAT6[:-1]}8\nprefix {PREFIX6}/96\nmap {CLAT} {CLAT6}\n",
    )
    world.ip("sta", f"-4 address add {CLAT}/32 dev clat")
    # IPv6 adds 20 bytes to a header, and a fragment's header may come, too.
    world.ip("sta", "-4 route replace default dev clat mtu 1472 advmss 1432")
    world.ip("sta", f"-6 route add {CLAT6}/128 dev clat")
    world.ip("ap", f"-6 route add {CLAT6}/128 via {address(6, LAN, STATION)}")


def tayga(world, space, dev, words):
    file = world.folder / f"{dev}.conf"
    file.write_text(f"tun-device {dev}\n{words}")
    tayga = program("tayga")
    world.run(space, tayga, "--mktun", "-c", str(file))
    world.ip(space, f"link set {dev} up")
    world.start(space, [tayga, "-n", "-c", file], f"{dev}.log")


def sizes(world, cell):
    """A smaller MTU: 1492 on the line, as PPPoE has it; anything else at home, too."""
    if cell.mtu == 1500:
        return
    devices = [("isp", "line0"), ("ap", "wan0")]
    if cell.mtu != 1492:
        devices += [("ap", "lan0"), ("sta", "eth0")]
    for space, dev in devices:
        world.ip(space, f"link set {dev} mtu {cell.mtu}")


def shapers(world, cell, last):
    if cell.line:
        world.shape("isp", "line0", cell.line[0], limit=cell.line_limit, burst_ms=cell.line_burst_ms)
        world.shape("isp", "net0", cell.line[1], limit=cell.line_limit, burst_ms=cell.line_burst_ms)
    if cell.down:
        space, dev = last if cell.place == "ap" else ("air", "a1")
        world.shape(space, dev, cell.down, cell.shaper, cell.limit, queue=cell.queue)
    if cell.up:
        world.shape("air", "a0", cell.up, cell.shaper, cell.limit)
    if cell.beside == "sqm":
        world.shape("ap", "lan0", round(0.95 * cell.line[0], 3), limit=cell.limit)
        world.shape("ap", "wan0", round(0.95 * cell.line[1], 3), limit=cell.limit)

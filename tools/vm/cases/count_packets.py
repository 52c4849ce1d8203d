"""Counts instructions per packet in a guest whose clock counts them; writes FIGURE lines. See `count-packets`.

    count_packets.py FOLDER    with `loop` (tools/vm/loop.c), `bench.bpf.o` and `cases.json` (the bench `fastpath`, --write)

Each program is run with what the kernel compiles of it and by the kernel's interpreter, where there is either. What it takes
to make a packet new is subtracted. A load that the kernel refuses is a figure, too.
"""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS, ROUNDS, PACKETS = 5_000, 3, 20_000
# The switch is in the first namespace alone.
JIT = "nsenter --net=/proc/1/ns/net sysctl -qw net.core.bpf_jit_enable="


def figure(name, value):
    print(f"FIGURE {name} {value}", flush=True)


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}")
    return done.stdout


def bpftool(*words):
    return json.loads(run("bpftool", "-j", *words) or "null")


def in_hex(text):
    return ["hex", *(text[at : at + 2] for at in range(0, len(text), 2))]


class Object:
    """The loaded object of the bench."""

    def __init__(self, folder, compiled, cases):
        run(*f"{JIT}{int(compiled)}".split())
        pins = Path("/sys/fs/bpf/" + ("compiled" if compiled else "interpreted"))
        pins.mkdir()
        self.programs, self.maps = pins / "programs", pins / "maps"
        words = ["bpftool", "prog", "loadall", folder / "bench.bpf.o", self.programs, "pinmaps", self.maps]
        begun = time.monotonic()
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        self.load = round((time.monotonic() - begun) * 1e9)
        self.refused = (done.stderr.strip().splitlines() or ["without a word"]) if done.returncode else None
        if not self.refused:
            control = next(path for path in self.maps.iterdir() if "control" in path.name)
            self.update(control, "00000000", cases["control"])

    def update(self, table, key, value):
        run("bpftool", "map", "update", "pinned", table, "key", *in_hex(key), "value", *in_hex(value))

    def is_compiled(self, name):
        return bpftool("prog", "show", "pinned", self.programs / name)["jited"]

    def counted(self, reason):
        """How often the data path had that reason; counters stand at the begin of the record, eight bytes each."""
        of = bpftool("map", "lookup", "pinned", self.maps / "per_cpu", "key", *in_hex("00000000"))["values"]
        return sum(int.from_bytes(bytes(int(b, 16) for b in each["value"][reason * 8 :][:8]), "little") for each in of)

    def duration(self, name, frame):
        return bpftool("prog", "run", "pinned", self.programs / name, "data_in", frame, "repeat", RUNS)["duration"]

    def cost(self, case):
        frame = Path("/tmp/frame")
        frame.write_bytes(bytes.fromhex(case["frame"]))
        net = []
        for _round in range(ROUNDS):
            if "key" in case:
                self.update(self.maps / "flows", case["key"], case["state"])
            before = self.counted(case["reason"])
            taken = self.duration(case["program"], frame)
            passed = self.counted(case["reason"]) - before
            if passed != RUNS:
                raise SystemExit(f"{case['name']}: {passed} of {RUNS} runs had reason {case['reason']}")
            if "key" in case:
                run("bpftool", "map", "delete", "pinned", self.maps / "flows", "key", *in_hex(case["key"]))
            net.append(taken - self.duration(case["alone"], frame))
        return statistics.median(net)


def count_runs(folder):
    """Of each way to run programs, instructions per packet; the last object that could be loaded, the compiled one first."""
    cases = json.loads((folder / "cases.json").read_text())
    loaded = None
    for compiled in (True, False):
        way = "compiled" if compiled else "interpreted"
        made = Object(folder, compiled, cases)
        figure(f"{way}_loads", "no" if made.refused else "yes")
        if made.refused:
            print("\n".join(made.refused[-12:]))
            continue
        figure(f"{way}_load", made.load)
        loaded = loaded or made
        figure(f"{way}_hook_is_compiled", made.is_compiled("lasthop_egress"))
        figure(f"{way}_is_compiled", made.is_compiled("lasthop_pass"))
        for case in cases["cases"]:
            figure(f"{way}_{case['name']}", made.cost(case))
    return loaded


def pktgen(device, target):
    """Mean ns per packet of 1500 bytes (IP) that pktgen sends out of `device` to Ethernet address `target`."""
    thread, made = Path("/proc/net/pktgen/kpktgend_0"), Path(f"/proc/net/pktgen/{device}")
    thread.write_text("rem_device_all\n")
    thread.write_text(f"add_device {device}\n")
    for setting in (
        f"count {PACKETS}", "pkt_size 1514", "delay 0", "clone_skb 0", "src_min 10.8.1.2", "src_max 10.8.1.2", "dst 10.8.2.2",
        f"dst_mac {target}", "udp_src_min 9", "udp_src_max 9", "udp_dst_min 443", "udp_dst_max 443",
    ):
        made.write_text(setting + "\n")
    Path("/proc/net/pktgen/pgctrl").write_text("start\n")
    # "Result: OK: 61842(c61842+d0) usec, 20000 (1500byte,0frags)"
    result = next(line for line in made.read_text().splitlines() if line.startswith("Result: OK:"))
    return int(result.split(":")[2].split("(")[0]) * 1000 / PACKETS


def link(device):
    return json.loads(run("ip", "-json", "-statistics", "link", "show", device))[0]


def forwarded(target):
    pktgen("far0", target)   # what is new the first time
    before = link("lan0")["stats64"]["tx"]["packets"]
    taken = pktgen("far0", target)
    passed = link("lan0")["stats64"]["tx"]["packets"] - before
    # One or two of the machine's own may be among them.
    if not PACKETS <= passed <= PACKETS + 9:
        raise SystemExit(f"{passed} of {PACKETS} packets were forwarded")
    return taken


def count_forwarding(loaded):
    """Packets that pktgen makes, over a veth and the kernel's forwarding to a device that frees them; each case beside the plain one."""
    for line in (
        "link add far0 type veth peer name wan0", "link add lan0 type dummy", "addr add 10.8.1.1/24 dev wan0",
        "addr add 10.8.2.1/24 dev lan0", "link set far0 up", "link set wan0 up", "link set lan0 up",
    ):
        run("ip", *line.split())
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    target = link("wan0")["address"]
    made = statistics.median(pktgen("lan0", target) for _round in range(ROUNDS))
    plain = forwarded(target)
    figure("forwarding", plain - made)
    if loaded:
        hook = loaded.programs / "lasthop_egress"
        run("tc", "qdisc", "add", "dev", "lan0", "clsact")
        run(*"tc filter add dev lan0 egress bpf direct-action object-pinned".split(), hook)
        figure("clsact_udp_full", forwarded(target) - plain)
        run("tc", "qdisc", "del", "dev", "lan0", "clsact")
        # Linux 6.6 and later.
        if not subprocess.run(["bpftool", "net", "attach", "tcx_egress", "pinned", hook, "dev", "lan0"], capture_output=True).returncode:
            figure("tcx_udp_full", forwarded(target) - plain)
            run("bpftool", "net", "detach", "tcx_egress", "dev", "lan0")
    run(*"tc qdisc replace dev lan0 root handle 1: tbf rate 100gbit burst 10m latency 1s".split())
    run(*"tc qdisc replace dev lan0 parent 1:1 fq_codel".split())
    figure("tbf_fq_codel", forwarded(target) - plain)
    run(*"tc qdisc del dev lan0 root".split())
    run(*"tc qdisc replace dev lan0 root cake bandwidth 100gbit".split())
    figure("cake", forwarded(target) - plain)
    run(*"tc qdisc del dev lan0 root".split())
    run(*"nft add table ip nat".split())
    run(*"nft add chain ip nat out { type nat hook postrouting priority 100 ; }".split())
    run(*"nft add rule ip nat out oifname lan0 masquerade".split())
    figure("nat", forwarded(target) - plain)


def main():
    folder = Path(sys.argv[1])
    figure("loop", run(folder / "loop").strip())
    count_forwarding(count_runs(folder))


main()

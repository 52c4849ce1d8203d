#!/usr/bin/env python3
"""What forwarding costs beside a controller: TCP between namespaces, over an access point without a shaper, as fast as it goes.

    sudo tools/study/speed.py [--mtu] [--flows 4] [--rounds 5] [--seconds 4] NAME=COMMAND..

Each COMMAND is started in the access point's namespace (`on="target/release/lasthop run --lan lan0 --socket /tmp/speed.sock"`, also
with --dry-run); an empty one is none. The cases take turns. Of each: goodput by iperf3, processor time of the command, and of
its programs on interfaces what the kernel says of runs and time (kernel.bpf_stats_enabled, put back in the end). Offloads are on, so
that packets are merged; with --mtu all are off.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import time
from pathlib import Path

STATS = Path("/proc/sys/kernel/bpf_stats_enabled")
SPACES = ("srv", "rt", "sta")


def run(words):
    return subprocess.run(words.split(), check=True, capture_output=True, text=True).stdout


def build(world):
    for name in SPACES:
        run(f"ip netns add {world}-{name}")
        run(f"ip -n {world}-{name} link set lo up")
    for here, far, net in (("wan0", "srv", 81), ("lan0", "sta", 82)):
        run(f"ip -n {world}-rt link add {here} type veth peer name eth0 netns {world}-{far}")
        run(f"ip -n {world}-rt addr add 10.{net}.0.1/24 dev {here}")
        run(f"ip -n {world}-{far} addr add 10.{net}.0.2/24 dev eth0")
        run(f"ip -n {world}-rt link set {here} up")
        run(f"ip -n {world}-{far} link set eth0 up")
        run(f"ip -n {world}-{far} route add default via 10.{net}.0.1")
    run(f"ip netns exec {world}-rt sysctl -qw net.ipv4.ip_forward=1")


def offload(world, state):
    for name, device in (("srv", "eth0"), ("sta", "eth0"), ("rt", "wan0"), ("rt", "lan0")):
        run(f"ip netns exec {world}-{name} ethtool -K {device} tso {state} gso {state} gro {state}")


def processor(pid):
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def programs(pid):
    """Runs of the programs that this process has loaded, and their time, ns."""
    runs = spent = 0
    for entry in os.listdir(f"/proc/{pid}/fdinfo"):
        fields = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/fdinfo/{entry}").read_text().splitlines() if ":\t" in line)
        runs, spent = runs + int(fields.get("run_cnt", 0)), spent + int(fields.get("run_time_ns", 0))
    return runs, spent


def case(world, command, flows, seconds):
    process = None
    if command:
        process = subprocess.Popen(["ip", "netns", "exec", f"{world}-rt", *command.split()], stderr=subprocess.DEVNULL)
        time.sleep(1.5)
        begun, used, (runs, spent) = time.time(), processor(process.pid), programs(process.pid)
    told = json.loads(run(f"ip netns exec {world}-srv iperf3 -c 10.82.0.2 -P {flows} -t {seconds} -J"))
    result = {"gbps": told["end"]["sum_received"]["bits_per_second"] / 1e9}
    if process:
        lasted, now = time.time() - begun, programs(process.pid)
        result |= {
            "process_percent": (processor(process.pid) - used) / lasted / 1e7,
            "ns_per_run": (now[1] - spent) / max(now[0] - runs, 1),
            "programs_percent": (now[1] - spent) / lasted / 1e7,
        }
        process.send_signal(signal.SIGINT)
        process.wait()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mtu", action="store_true")
    parser.add_argument("--flows", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("cases", nargs="+", metavar="NAME=COMMAND")
    settings = parser.parse_args()
    world, before, server = f"speed{os.getpid()}", STATS.read_text(), None
    try:
        STATS.write_text("1")
        build(world)
        offload(world, "off" if settings.mtu else "on")
        server = subprocess.Popen(["ip", "netns", "exec", f"{world}-sta", "iperf3", "-s"], stdout=subprocess.DEVNULL)
        time.sleep(0.5)
        results = {}
        for _ in range(settings.rounds):
            for name, _, command in (text.partition("=") for text in settings.cases):
                results.setdefault(name, []).append(case(world, command, settings.flows, settings.seconds))
        for name, all_of_it in results.items():
            for key in all_of_it[0]:
                values = [one[key] for one in all_of_it]
                print(f"{name} {key}: {statistics.median(values):.2f} ({min(values):.2f}..{max(values):.2f})")
    finally:
        STATS.write_text(before)
        if server:
            server.kill()
            server.wait()
        for name in SPACES:
            subprocess.run(["ip", "netns", "del", f"{world}-{name}"], check=False, capture_output=True)


if __name__ == "__main__":
    main()

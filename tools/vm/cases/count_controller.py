"""What `lasthopd run` takes, in a guest whose clock counts instructions; writes FIGURE lines. See `count-controller`.

Processor time is what Linux accounts to each thread of it (schedstat), system calls included, so also what the kernel's verifier
takes. That of its programs per packet is what the kernel says of them (kernel.bpf_stats_enabled), reading the clock included.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

PROGRAM, SOCKET = "/tmp/lasthopd", "/tmp/lasthop.sock"
SETTLED, WINDOW = 3, 8   # s
HOOKS = {"lasthop_egress": "egress", "lasthop_ingress": "ingress"}


def figure(name, value):
    print(f"FIGURE {name} {value}", flush=True)


def fields(path):
    pairs = (line.split(":", 1) for line in Path(path).read_text().splitlines() if ":" in line)
    return {name: int(rest.split()[0]) for name, rest in pairs if rest.split() and rest.split()[0].isdigit()}


def threads(pid):
    """Instructions of each of its threads so far, by name."""
    all_ = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        name = (task / "comm").read_text().strip()
        all_[name] = all_.get(name, 0) + int((task / "schedstat").read_text().split()[0])
    return all_


def status():
    """Of the controller; the clock may run ahead of a guest that waits for its host, so it is asked again where it was too slow."""
    words = [PROGRAM, "status", "--json", "--socket", SOCKET]
    for _try in range(20):
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode == 0:
            return json.loads(done.stdout)
        time.sleep(0.2)
    raise SystemExit(f"no status: {done.stderr}{Path('/tmp/lasthop.log').read_text()}")


def programs():
    """Runs of the hooks so far and their instructions."""
    shown = json.loads(subprocess.run(["bpftool", "-j", "prog", "show"], capture_output=True, text=True, check=True).stdout)
    return {HOOKS[p["name"]]: (p.get("run_cnt", 0), p.get("run_time_ns", 0)) for p in shown if p.get("name") in HOOKS}


def start():
    """Starts it; what that took, and how much memory."""
    free = fields("/proc/meminfo")["MemAvailable"]
    begun, least = time.monotonic(), free
    log = open("/tmp/lasthop.log", "w+")
    child = subprocess.Popen([PROGRAM, "run", "--config", "/tmp/lasthop.toml"], stderr=log)
    while "controlling" not in Path(log.name).read_text():
        if child.poll() is not None or time.monotonic() - begun > 120:
            raise SystemExit(f"it does not start: {Path(log.name).read_text()}")
        least = min(least, fields("/proc/meminfo")["MemAvailable"])
        time.sleep(0.002)
    figure("start_ms", round((time.monotonic() - begun) * 1e3))
    figure("start", sum(threads(child.pid).values()))
    figure("start_memory_kb", free - least)
    status()
    time.sleep(1)
    figure("memory_kb", free - fields("/proc/meminfo")["MemAvailable"])
    own = fields(f"/proc/{child.pid}/status")
    for name in ("VmRSS", "RssAnon", "VmHWM"):
        figure(f"{name}_kb", own[name])
    for kind in ("map", "prog"):
        shown = json.loads(subprocess.run(["bpftool", "-j", kind, "show"], capture_output=True, text=True, check=True).stdout)
        figure(f"{kind}s_kb", sum(int(each.get("bytes_memlock", 0)) for each in shown) // 1024)
    return child


def window(name, child, length=WINDOW):
    """What it takes in so many seconds, questions for its status apart."""
    first, before, passed = status()["controller"]["intervals"], threads(child.pid), programs()
    begun = time.monotonic()
    time.sleep(length)
    after, lasted = threads(child.pid), time.monotonic() - begun
    passed_now, last = programs(), status()["controller"]["intervals"]
    taken = {each: after[each] - before.get(each, 0) for each in after}
    figure(f"{name}_per_second", round(sum(taken.values()) / lasted))
    figure(f"{name}_decisions_per_second", round((last - first) / lasted, 1))
    figure(f"{name}_per_decision", round(sum(taken.values()) / max(last - first, 1)))
    for each, much in sorted(taken.items()):
        if much:
            figure(f"{name}_thread_{each.replace(' ', '-')}", round(much / lasted))
    for hook, (runs, spent) in passed_now.items():
        runs, spent = runs - passed[hook][0], spent - passed[hook][1]
        figure(f"{name}_{hook}_packets_per_second", round(runs / lasted))
        if runs:
            figure(f"{name}_{hook}_per_packet", round(spent / runs))


def inside(space, *words):
    return subprocess.Popen(["ip", "netns", "exec", space, *words], stdout=subprocess.PIPE, text=True)


def downloads(name, child, connections):
    server = inside("server", "iperf3", "-s", "-1")
    time.sleep(1)
    long = str(SETTLED + WINDOW + 8)
    client = inside("station", "iperf3", "-c", "10.8.1.2", "-R", "-P", str(connections), "-t", long, "--json")
    time.sleep(SETTLED)
    window(name, child)
    end = json.loads(client.communicate()[0])["end"]
    server.wait()
    figure(f"{name}_bps", round(end["sum_received"]["bits_per_second"]))
    figure(f"{name}_known", status()["table"]["connections"])


def merging(state):
    for space, device in (("server", "eth0"), ("station", "eth0"), (None, "wan0"), (None, "lan0")):
        prefix = ["ip", "netns", "exec", space] if space else []
        words = [*prefix, "ethtool", "-K", device, "tso", state, "gso", state, "gro", state]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def main():
    shutil.copy(os.environ["LASTHOP"], PROGRAM)
    Path("/tmp/lasthop.toml").write_text(f'lan = ["lan0"]\nflows = 4096\nsocket = "{SOCKET}"\n')
    child = start()
    Path("/proc/sys/kernel/bpf_stats_enabled").write_text("1")
    time.sleep(SETTLED)
    window("idle", child, 10)
    probe = os.environ["CASES"] + "/probe.py"
    game = [inside("station", "python3", probe, "receive", "18", "/tmp/game"), None]
    time.sleep(1)
    game[1] = inside("server", "python3", probe, "send", "10.8.2.2", "18")
    time.sleep(SETTLED)
    window("game", child)
    for each in game:
        each.wait()
    for connections in (10, 100):
        downloads(f"downloads_{connections}", child, connections)
    merging("on")
    downloads("merged_10", child, 10)
    figure("busy_VmRSS_kb", fields(f"/proc/{child.pid}/status")["VmRSS"])
    child.send_signal(signal.SIGTERM)
    child.wait()


main()

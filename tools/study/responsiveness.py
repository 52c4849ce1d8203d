#!/usr/bin/env python3
"""The responsiveness test beside another client and another server, behind queues of three lengths.

    sudo tools/study/responsiveness.py --binary target/release/lasthop --client networkQuality --server networkqualityd

`--client` is the reference client of the draft's authors (its program `networkQuality`), `--server` their server
(`networkqualityd`); what is not given is left out. Each run has three network namespaces of its own, with a router of 20 Mbit/s
whose queues (tbf, each direction) take 300, 80 or 20 ms to leave when they are full. Downloads and uploads are measured one
after the other. Writes bench-results/responsiveness-REVISION.md; needs root.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RATE = 20_000_000
QUEUES = {"300 ms": 0.3, "80 ms": 0.08, "20 ms": 0.02}
ADDRESS, PORT = "192.0.2.1", 4043
# What both clients are held to at 20 Mbit/s: pairs of probes a second. Ours is, by PTC; the other is told.
PAIRS = 20


class Namespace:
    """Lives as long as a process inside it, which ends with this program."""

    def __init__(self):
        hold = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "3000"]
        self.process = subprocess.Popen(hold)
        own = os.readlink("/proc/self/ns/net")
        for _ in range(500):
            try:
                if os.readlink(f"/proc/{self.process.pid}/ns/net") != own:
                    return
            except OSError:
                pass
            time.sleep(0.01)
        raise SystemExit("cannot make a network namespace")

    def command(self, *words):
        return ["nsenter", f"--net=/proc/{self.process.pid}/ns/net", "--", *map(str, words)]

    def does(self, words):
        subprocess.run(self.command(*words.split()), check=True)

    def end(self):
        self.process.kill()
        self.process.wait()


class Link:
    """A server and a client with a router between, whose queues have a length.

    The queues are not on the end hosts: there a kernel sees them and fills them no further than it likes (TCP small queues).
    """

    def __init__(self, seconds):
        self.server, self.router, self.client = Namespace(), Namespace(), Namespace()
        self.router.does("sysctl -qw net.ipv4.ip_forward=1")
        for side, name, address, gateway in (
            (self.server, "s0", ADDRESS, "192.0.2.254"),
            (self.client, "c0", "198.51.100.2", "198.51.100.254"),
        ):
            self.router.does(f"ip link add {name} type veth peer name v0 netns {side.process.pid}")
            side.does(f"ip addr add {address}/24 dev v0")
            self.router.does(f"ip addr add {gateway}/24 dev {name}")
            side.does("ip link set lo up")
            side.does("ip link set v0 up")
            self.router.does(f"ip link set {name} up")
            # By route: a namespace's own setting takes only what the machine allows everybody.
            side.does(f"ip route add default via {gateway} congctl cubic")
            queue = f"tbf rate {RATE}bit burst 5000 limit {int(RATE / 8 * seconds)}"
            self.router.does(f"tc qdisc add dev {name} root {queue}")

    def end(self):
        for side in (self.server, self.router, self.client):
            side.end()


def our_server(link, args, _):
    process = subprocess.Popen(
        link.server.command(args.binary, "measure", "serve", "--listen", f"{ADDRESS}:{PORT}"),
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in process.stdout:
        if "--fingerprint" in line:
            return process
    raise SystemExit("our server did not start")


def their_server(link, args, folder):
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    if not certificate.exists():
        made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        made += ["-days", "2", "-subj", f"/CN={ADDRESS}", "-keyout", key, "-out", certificate]
        subprocess.run(made, check=True, stderr=subprocess.DEVNULL)
    words = [args.server, "-listen-addr", ADDRESS, "-public-port", PORT, "-config-name", ADDRESS]
    words += ["-cert-file", certificate, "-key-file", key, "-socket-send-buffer-size", 12500]
    process = subprocess.Popen(link.server.command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1.0)
    return process


def our_client(link, args):
    words = [args.binary, "measure", "responsiveness", f"https://{ADDRESS}:{PORT}/config", "--insecure"]
    done = subprocess.run(link.client.command(*words, "--sequential", "--json"), capture_output=True, text=True)
    if done.returncode:
        raise Failed(done.stderr[-500:])
    results = json.loads(done.stdout)["results"]
    return [
        {
            "rpm": each["rpm"],
            "foreign": (each["tcp_ms"] + each["tls_ms"] + each["http_ms"]) / 3,
            "self": each["self_ms"],
            "mbps": (each["goodput_down_bps"] or each["goodput_up_bps"]) / 1e6,
            "stable": each["stable"],
        }
        for each in results
    ]


def their_client(link, args):
    words = [args.client, "-config", ADDRESS, "-port", PORT, "-path", "config", "-rpm.mps", PAIRS, "-debug"]
    environment = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    done = subprocess.run(link.client.command(*words), capture_output=True, text=True, env=environment)
    if done.returncode:
        raise Failed((re.findall(r"panic:.*", done.stdout + done.stderr) or ["no panic"])[0])
    # The result of each direction: the statistics of the intervals that count stand last before its RPM.
    found = []
    for part in re.split(r"(?m)^\s*(?=Download:|Upload:)", done.stdout)[1:]:
        self_s = re.findall(r"Trimmed Mean Self RTT:\s+([\d.]+)", part)
        foreign_s = re.findall(r"Trimmed Mean Foreign RTT:\s+([\d.]+)", part)
        rate = re.search(r"Throughput: ([\d.]+) Mbps", part)
        if not (self_s and foreign_s and rate):
            continue
        own, foreign = float(self_s[-1]) * 1e3, float(foreign_s[-1]) * 1e3
        found.append(
            {
                # The draft's formula of today, on its trimmed means; it prints that of an older one.
                "rpm": (60_000 / foreign + 60_000 / own) / 2,
                "foreign": foreign,
                "self": own,
                "mbps": float(rate.group(1)),
                "stable": "did not run to stability" not in part,
            }
        )
    if len(found) != 2:
        raise Failed("no figures")
    return found


CLIENTS = {"lasthop": our_client, "goresponsiveness": their_client}
SERVERS = {"lasthop": our_server, "goserver": their_server}


class Failed(Exception):
    """A client that ended without a result."""


FAILURES = collections.Counter()


def attempt(queue, server, client, args, folder):
    """One run; again where the client crashes, which is counted."""
    for _ in range(4):
        link = Link(QUEUES[queue])
        process = SERVERS[server](link, args, folder)
        try:
            return CLIENTS[client](link, args)
        except Failed as failed:
            FAILURES[client] += 1
            print(f"{queue}, {server}, {client}: {failed}", file=sys.stderr, flush=True)
        finally:
            process.terminate()
            process.wait()
            link.end()
    raise SystemExit(f"{client} failed four times")


def play(queue, server, args, folder):
    """All runs of one queue and one server: rows of client, direction and figures."""
    rows = []
    for run in range(args.runs):
        for client in wanted(args)[0]:
            found = attempt(queue, server, client, args, folder)
            for direction, figures in zip(("down", "up"), found):
                rows.append({"queue": queue, "server": server, "client": client, "direction": direction, **figures})
            print(f"{queue}, {server}, {client}: run {run + 1}", file=sys.stderr, flush=True)
    return rows


def wanted(args):
    clients = ["lasthop"] + (["goresponsiveness"] if args.client else [])
    servers = ["lasthop"] + (["goserver"] if args.server else [])
    return clients, servers


def spread(values, digits=0):
    middle = statistics.median(values)
    return f"{middle:.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def table(rows, args):
    lines = ["| queue | way | server | client | RPM | foreign, ms | self, ms | Mbit/s | stable |"]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    clients, servers = wanted(args)
    for queue in QUEUES:
        for direction in ("down", "up"):
            for server in servers:
                for client in clients:
                    cell = (queue, direction, server, client)
                    keys = ("queue", "direction", "server", "client")
                    of = [row for row in rows if tuple(row[key] for key in keys) == cell]
                    columns = [spread([row["rpm"] for row in of])]
                    columns += [spread([row[key] for row in of], 1) for key in ("foreign", "self", "mbps")]
                    columns.append(f"{sum(row['stable'] for row in of)} of {len(of)}")
                    lines.append("| " + " | ".join([*cell, *columns]) + " |")
    return lines


def machine():
    model = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    return f"{os.cpu_count()} cores ({model.group(1) if model else platform.machine()}), Linux {platform.release()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "target/release/lasthop"), help="lasthop")
    parser.add_argument("--client", help="the reference client, networkQuality")
    parser.add_argument("--server", help="the reference server, networkqualityd")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=1, help="paths measured at the same time; more need more cores")
    parser.add_argument("--out", default=str(ROOT / "bench-results"))
    args = parser.parse_args()
    for name in ("binary", "client", "server"):
        path = getattr(args, name)
        if path and not (shutil.which(path) and os.access(shutil.which(path), os.X_OK)):
            parser.error(f"--{name}: {path} is no program")
    describe = ["git", "describe", "--always", "--abbrev=12", "--dirty=-changed"]
    revision = subprocess.run(describe, cwd=ROOT, text=True, capture_output=True).stdout.strip() or "unknown"
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
        rows = []
        for server in wanted(args)[1]:
            parts = pool.map(lambda queue: play(queue, server, args, Path(folder)), QUEUES)
            rows += [row for part in parts for row in part]
    lines = [
        f"# Responsiveness beside the reference client, at {revision}",
        "",
        f"`{' '.join(Path(word).name if '/' in word else word for word in sys.argv)}` on {machine()}.",
        "",
        f"A link of {RATE / 1e6:.0f} Mbit/s each way, whose queues (tbf) leave in the time of the first column when they are full; median,",
        f"least and most of {args.runs} runs. RPM by the formula of draft-ietf-ippm-responsiveness-09 of both clients' trimmed means;",
        "foreign: a third of TCP, TLS and HTTP together. Both send about 20 pairs of probes a second.",
        "",
        *table(rows, args),
        "",
        "Runs in which a client ended without a result, and which were repeated: "
        + (", ".join(f"{name} {count}" for name, count in FAILURES.items()) or "none")
        + ".",
    ]
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"responsiveness-{revision}.md"
    path.write_text("\n".join(lines) + "\n")
    print(path)


if __name__ == "__main__":
    main()

"""What runs in the world: programs that others wrote, and how their figures are read."""

import json
import math
import re
import subprocess
import sys
import time
from pathlib import Path

from world import BULK, CLAT, FIRST, GAME, LAN, NET, PC, PLAYER, ROOT, SECOND, STATION, Broken, address, program

HERE = Path(__file__).resolve().parent
PYTHON = [sys.executable, "-B"]
HOSTS = {"sta": STATION, "second": SECOND, "pc": PC}
SMALL_PORT, WEB_PORT, QUIC_PORT, SSH_PORT, IPERF_PORT = 7000, 8080, 8443, 2222, 5201
# Between two of the game's packets: 50 a second, as games send.
GAME_EVERY_MS = 20
BIN_S = 0.5
# Of what nginx answers with, bytes.
SIZE = 100_000
NGINX = """
daemon off; master_process off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 512; }}
http {{
  access_log off; keepalive_requests 1000000;
  client_body_temp_path {folder}/tmp; proxy_temp_path {folder}/tmp; fastcgi_temp_path {folder}/tmp;
  uwsgi_temp_path {folder}/tmp; scgi_temp_path {folder}/tmp;
  server {{ listen {port}; listen [::]:{port}; root {folder}/www; }}
}}
"""
SSHD = """
Port {port}
HostKey {folder}/host_key
PidFile none
AuthorizedKeysFile {folder}/user_key.pub
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
ForceCommand cat
"""
# Runs sshd where it has the folder and the user that its package would have made; nobody outside sees either.
SSHD_PLACE = """
mount -t tmpfs none /run && mkdir /run/sshd
{ grep -v ^sshd: /etc/passwd; echo sshd:x:65533:65533::/run/sshd:/usr/sbin/nologin; } >"$1/passwd"
mount --bind "$1/passwd" /etc/passwd
exec "$2" -D -e -f "$1/sshd_config"
"""

# What it measures is small. With Go's collector and the priority below it was seen to stop for 1.5 s, and once for good, while it wrote.
WITHOUT_GC = ("env", "GOGC=off")


class Game:
    """irtt: a packet in each direction every 20 ms, from before the first load to its end."""

    def __init__(self, world, cell):
        self.file = world.folder / "irtt.json"
        self.cell = cell
        # Bound, or it would answer in the name of the host's first address.
        words = [*FIRST, *WITHOUT_GC, program("irtt"), "server", "-b", self.host(NET, GAME), "-i", "0", "-d", "0", "-l", "0"]
        world.start("srv", words, "irtt-server.log")

    def host(self, net, number):
        if net == LAN and self.cell.home == "464xlat":
            return CLAT
        return ("[%s]" if self.cell.family == 6 else "%s") % address(self.cell.family, net, number)

    def start(self, world, seconds):
        words = [
            *FIRST,
            *WITHOUT_GC,
            program("irtt"),
            "client",
            "-q",
            "--timeouts=4s,8s",
            "-i",
            f"{GAME_EVERY_MS}ms",
            "-d",
            f"{seconds:.1f}s",
            "-l",
            "60",
        ]
        words += ["-o", self.file, f"--local={self.host(LAN, PLAYER)}", self.host(NET, GAME)]
        self.running = world.start("sta", words, "irtt.log")

    def rounds(self):
        """Pairs of Unix time at which a packet was sent, and ms until its answer came; None: lost."""
        try:
            code = self.running.wait(60)
        except subprocess.TimeoutExpired as error:
            raise Broken(f"irtt did not come to an end; see {self.file.with_suffix('.log')}") from error
        if code != 0 or not self.file.exists():
            raise Broken(f"irtt measured nothing; see {self.file.with_suffix('.log')}")
        found = []
        for each in json.loads(self.file.read_text())["round_trips"]:
            sent = each["timestamps"]["client"]["send"]["wall"] / 1e9
            is_back = each["lost"] == "false"
            found.append((sent, each["delay"]["rtt"] / 1e6 if is_back else None))
        return found


class Client:
    """One load: its server, its program at a station, and the bytes that arrived per BIN_S since the load began."""

    def __init__(self, world, cell, load, number):
        self.world, self.cell, self.load, self.number = world, cell, load, number
        self.server = address(cell.family, NET, BULK)
        self.local = CLAT if cell.home == "464xlat" else address(cell.family, LAN, HOSTS[load.station])
        self.file = world.folder / f"{number}-{load.kind}.json"
        self.log = f"{number}-{load.kind}.log"

    def serve(self):
        """Starts what answers."""

    def words(self, seconds):
        raise NotImplementedError

    def start(self, seconds):
        self.seconds, self.began = seconds, time.time()
        self.running = self.world.start(self.load.station, self.words(seconds), self.log)

    def ended(self, patience=40):
        try:
            code = self.running.wait(patience)
        except subprocess.TimeoutExpired as error:
            raise Broken(f"{self.load.name}: did not come to an end; see {self.world.folder / self.log}") from error
        if code != 0:
            raise Broken(f"{self.load.name}: ended with {code}; see {self.world.folder / self.log}")

    def bins(self):
        """Bytes of payload that arrived, per BIN_S since the load began; None where that is not what it measures."""
        return None

    def figures(self):
        """What else it measured."""
        return {}

    def answered(self, count):
        """Of requests, `count` bytes in all: they belong to the goodput, since they take their share of it."""
        return {"answers_mbps": count * 8e-6 / self.seconds}


class Iperf(Client):
    """iperf3: TCP's and UDP's payload as the receiver counts it."""

    def serve(self):
        self.port = IPERF_PORT + self.number
        words = [program("iperf3"), "-s", "-p", self.port, "-i", BIN_S]
        self.world.start("srv", [*words, "-J"], f"{self.number}-server.log")

    def words(self, seconds):
        load = self.load
        words = [program("iperf3"), "-c", self.server, "-p", self.port, "-B", self.local, "-P", load.n]
        words += ["-t", f"{seconds:.0f}", "-i", BIN_S, "-J", "--logfile", self.file, "--connect-timeout", 8000]
        words += ["-R"] if load.direction == "down" else ["--get-server-output"]
        words += ["-u", "-b", f"{load.mbps}M", "-l", 1200] if load.kind == "udp" else ["-C", load.cc]
        return words

    def ended(self, patience=40):
        try:
            super().ended(patience)
        except Broken as why:
            said = json.loads(self.file.read_text() or "{}").get("error", "") if self.file.exists() else ""
            raise Broken(f"{why} {said}") from why

    def report(self):
        report = json.loads(self.file.read_text())
        return report if self.load.direction == "down" else report["server_output_json"]

    def bins(self):
        sums = [each["sum"] for each in self.report()["intervals"]]
        found = [0] * math.ceil(self.seconds / BIN_S)
        for each in sums:
            at = int(each["start"] / BIN_S + 0.5)
            if at < len(found):
                found[at] += each["bytes"]
        return found

    def figures(self):
        streams = {}
        for interval in self.report()["intervals"]:
            for each in interval["streams"]:
                streams[each["socket"]] = streams.get(each["socket"], 0) + each["bytes"]
        return {"flows_mbps": sorted(count * 8e-6 / self.seconds for count in streams.values())}


class Quic(Client):
    def serve(self):
        python = [environment(), "-B", HERE / "quic.py"]
        self.world.start(
            "srv", [*python, "serve", self.server, QUIC_PORT, self.world.folder], f"{self.number}-server.log"
        )

    def words(self, seconds):
        return [environment(), "-B", HERE / "quic.py", "fetch", self.server, QUIC_PORT, self.local, seconds, self.file]

    def bins(self):
        return json.loads(self.file.read_text())


class Small(Client):
    def serve(self):
        self.world.start(
            "srv", [*PYTHON, HERE / "small.py", "serve", SMALL_PORT + self.number], f"{self.number}-server.log"
        )

    def words(self, seconds):
        words = [*PYTHON, HERE / "small.py", "connect", self.server, SMALL_PORT + self.number, self.local]
        return [*words, self.load.kind, self.load.n, self.file]

    def ended(self, patience=40):
        self.running.terminate()
        super().ended(patience)

    def figures(self):
        counts = json.loads(self.file.read_text())
        moved = [here + there for here, there in zip(counts["arrived"], counts["sent"])]
        failed = {"failed": len(counts["failed"])}
        if self.load.kind == "think":
            return {**self.answered(sum(moved)), **failed}
        return {"small_kbps": sum(moved) * 8e-3 / self.seconds, **failed}


class Web(Client):
    """nginx, and ab (without pauses) or curl (with)."""

    def serve(self):
        folder = self.world.folder / "web"
        (folder / "www").mkdir(parents=True, exist_ok=True)
        (folder / "www" / "page").write_bytes(bytes(SIZE))
        folder.chmod(0o755)
        (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=WEB_PORT))
        words = [program("nginx"), "-e", folder / "nginx.log", "-p", folder, "-c", folder / "nginx.conf"]
        self.world.start("srv", words, f"{self.number}-server.log")

    def words(self, seconds):
        host = f"[{self.server}]" if self.cell.family == 6 else self.server
        url = f"http://{host}:{WEB_PORT}/page"
        if self.load.kind == "ab":
            # -t alone would end at 50,000 requests.
            words = [program("ab"), "-q", "-k", "-c", self.load.n, "-t", f"{seconds:.0f}", "-n", 1_000_000]
            return [*words, "-B", self.local, "-e", self.file, url]
        line = f'while sleep 0.5; do curl -s -o /dev/null --interface {self.local} -w "%{{time_total}}\\n" {url} >>{self.file}; done'
        return ["timeout", f"{seconds:.1f}", "sh", "-c", line]

    def ended(self, patience=40):
        if self.load.kind == "ab":
            super().ended(patience)
        else:
            self.running.wait(patience)  # timeout's own code says nothing

    def figures(self):
        lines = self.file.read_text().splitlines()
        if self.load.kind == "curl":
            times = sorted(float(line) * 1e3 for line in lines)
            middle = times[len(times) // 2] if times else None
            return {"answers": len(times), "answer_p50_ms": middle, **self.answered(len(times) * SIZE)}
        by_share = dict(line.split(",") for line in lines[1:])
        said = (self.world.folder / self.log).read_text()
        count = int(re.search(r"HTML transferred: +(\d+) bytes", said)[1])
        return {"answer_p50_ms": float(by_share["50"]), "answer_p99_ms": float(by_share["99"]), **self.answered(count)}


class Ssh(Client):
    def serve(self):
        folder = self.world.folder
        for name in ("host_key", "user_key"):
            (folder / name).unlink(missing_ok=True)
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
        (folder / "sshd_config").write_text(SSHD.format(folder=folder, port=SSH_PORT))
        self.world.start("srv", ["sh", "-c", SSHD_PLACE, "sh", folder, program("sshd")], f"{self.number}-server.log")

    def words(self, seconds):
        key = self.world.folder / "user_key"
        ssh = [program("ssh"), "-F", "none", "-tt", "-i", key, "-p", SSH_PORT, "-b", self.local]
        for option in ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "BatchMode=yes"):
            ssh += ["-o", option]
        return [*PYTHON, HERE / "typing_session.py", seconds, self.file, *ssh, f"root@{self.server}"]

    def figures(self):
        times = json.loads(self.file.read_text())
        back = sorted(ms for ms in times if ms is not None)
        if not back:
            raise Broken(f"nothing that was typed came back; see {self.world.folder}")
        return {"typed": len(times), "echo_p50_ms": back[len(back) // 2], "echo_p99_ms": back[int(0.99 * len(back))]}


KINDS = {"tcp": Iperf, "udp": Iperf, "quic": Quic, "ab": Web, "curl": Web, "ssh": Ssh}


def client(world, cell, load, number):
    return KINDS.get(load.kind, Small)(world, cell, load, number)


def environment():
    """The Python that has aioquic."""
    python = ROOT / "bench-results" / "study" / "outside-python" / "bin" / "python"
    if not python.exists():
        raise SystemExit("there is no Python with aioquic; type: make outside")
    return python
